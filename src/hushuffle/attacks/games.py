"""Games: an attacker plays against a deployment many times; how often it wins must not be above what is certified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Strong
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Histogram
from hushuffle.numerics.trials import clopper_pearson
from hushuffle.questions import pie, qif
from hushuffle.randomness import Randomness, secure

Floats: TypeAlias = npt.NDArray[np.float64]

_FEWEST: Final = 200
_BLOCK: Final = 1 << 22
"""So many pairs of a report and a value are looked at together."""


@dataclass(frozen=True, kw_only=True)
class Game:
    """One game: what is to be found out, by whom; how often that succeeded; what no attacker exceeds."""

    what: str
    attacker: str
    success: Bound
    certified: Bound

    @property
    def broken(self) -> bool:
        """Whether the attacker wins more often than certified."""
        return self.success.lower > self.certified.upper


Play: TypeAlias = Callable[[], Game]


def games(
    protocol: Protocol,
    *,
    releases: int = 2000,
    reports: int = 200_000,
    confidence: float = 0.95,
    rng: Randomness | None = None,
) -> Iterator[tuple[str, Play]]:
    """Yield the games that can be played against a deployment, each with its name and what plays it.

    Everybody holds a value at random. One attacker knows nobody's value and guesses one person's from a release; one
    knows everybody else's; one sees a single report, knows what everybody holds, and names who sent it.

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle
    >>> from hushuffle.randomness import reproducible
    >>> survey = Protocol(randomizer=RandomizedResponse(k=3, epsilon=2.0), shuffler=UniformShuffle(), n=6)
    >>> for name, play in games(survey, releases=1000, reports=5000, rng=reproducible(1)):
    ...     print(name, play().broken)
    Guess a value, knowing nobody's False
    Guess a value, knowing all others' False
    Name the sender of a report False
    """
    source = secure() if rng is None else rng
    low = _checks.integer("releases", releases, low=0)
    yield "Guess a value, knowing nobody's", lambda: _guess(protocol, low, confidence, source, knows_others=False)
    yield "Guess a value, knowing all others'", lambda: _guess(protocol, low, confidence, source, knows_others=True)
    yield "Name the sender of a report", lambda: _name(protocol, reports, confidence, source)


def enough(protocol: Protocol, releases: int) -> None:
    """Refuse to try releases that are too large to be repeated often enough.

    Raises:
        UnsupportedProtocolError: fewer than 200 releases.
    """
    if releases < _FEWEST:
        why = f"{_FEWEST} releases of {protocol.n:,} messages are many: name the trials, or audit fewer people"
        message = f"The releases were not run: {why}."
        raise UnsupportedProtocolError(message)


def _guess(protocol: Protocol, releases: int, confidence: float, rng: Randomness, *, knows_others: bool) -> Game:
    """Play for one person's value: the value whose reports are commoner in the release than those of the others."""
    enough(protocol, releases)
    mechanism, k = protocol.randomizer, protocol.randomizer.inputs
    values, hits = np.arange(k), 0
    others = np.zeros(protocol.n - 1, dtype=np.int64)
    certified = (
        qif.vulnerability(protocol, adversary=Strong(others=Histogram(counts=np.bincount(others, minlength=k))))
        if knows_others
        else qif.vulnerability(protocol)
    )
    for _ in range(releases):
        held = rng.integers(k, size=protocol.n)
        if knows_others:
            held[1:] = others
        transcript = protocol.collect(held, rng=rng)
        likely = mechanism.likelihoods(transcript.reports, values)
        crowd = likely[0] if knows_others else likely.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(likely > 0, likely / crowd, 0.0).sum(axis=1)
        hits += _best(scores, rng) == held[0]
    what = "a person's value"
    attacker = "knows everybody else's" if knows_others else "knows nobody's"
    return Game(what=what, attacker=attacker, success=_success(hits, releases, confidence), certified=certified)


def _name(protocol: Protocol, reports: int, confidence: float, rng: Randomness) -> Game:
    """Play for the sender of one report: somebody who holds the value that speaks for it most."""
    mechanism, k, n = protocol.randomizer, protocol.randomizer.inputs, protocol.n
    certified = pie.bayes_error(protocol).complement
    used = min(n, k)  # everybody knows that person i holds the value i modulo k
    senders = rng.integers(n, size=reports)
    sent = mechanism.randomize(senders % used, rng=rng)
    hits, together = 0, max(1, _BLOCK // used)
    for start in range(0, reports, together):
        likely = mechanism.likelihoods(sent[start : start + together], np.arange(used))
        ties = likely == likely.max(axis=0)
        place = rng.integers(int(ties.sum(axis=0).max(initial=1)), size=ties.shape[1]) % ties.sum(axis=0)
        value = (ties.cumsum(axis=0) > place).argmax(axis=0)
        holders = n // used + (value < n % used)
        guess = value + used * (rng.integers(n, size=value.size) % holders)
        hits += int(np.count_nonzero(guess == senders[start : start + together]))
    return Game(
        what="who sent a report",
        attacker="knows what everybody holds",
        success=_success(hits, reports, confidence),
        certified=certified,
    )


def _best(scores: Floats, rng: Randomness) -> int:
    """Return the place of the largest score, one of them at random."""
    best = np.flatnonzero(scores >= scores.max() * (1 - 1e-12))
    return int(best[int(rng.integers(best.size, size=1)[0])])


def _success(hits: int, trials: int, confidence: float) -> Bound:
    low, high = clopper_pearson(hits, trials, confidence)
    return Bound(lower=low, upper=high, kind="estimate", unit="probability", confidence=confidence)
