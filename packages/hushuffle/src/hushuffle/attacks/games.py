"""Games in which an adversary attacks simulated releases; its success rate must not exceed the certified bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, NoReturn, TypeAlias

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Floats, Integers
from hushuffle.attacks.audit import relative, tallied
from hushuffle.attacks.detection import rate_interval
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Strong
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.mechanisms.sketches import BloomEncoder, BloomFilter, logo_counts
from hushuffle.model import Bound, Histogram
from hushuffle.questions import bloom, dp, pie, qif
from hushuffle.randomness import KeyedRandomness, Randomness, secure

_FEWEST: Final = 200
_BLOCK: Final = 1 << 22
"""Largest number of pairs of a report and a value that are scored at once."""


@dataclass(frozen=True)
class Game:
    """The result of a game: the adversary's goal and knowledge, its success rate, and the certified upper bound."""

    what: str
    attacker: str
    _: KW_ONLY
    success: Bound
    certified: Bound

    @property
    def broken(self) -> bool:
        """Whether the attacker won significantly more often than the certified bound allows."""
        return self.success.lower > self.certified.upper


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The length of a game (releases, or single reports), the confidence of its interval, and its randomness."""

    releases: int = 2000
    reports: int = 200_000
    confidence: float = 0.95
    rng: Randomness = field(default_factory=secure)

    def __post_init__(self) -> None:
        for name in ("releases", "reports"):
            _checks.integer(name, getattr(self, name), low=0)
        _checks.probability("confidence", self.confidence, low_open=True, high_open=True)


Play: TypeAlias = Callable[[Terms], Game]
Named: TypeAlias = tuple[str, Play]


def games(protocol: Protocol) -> list[Named]:
    """Return the value games (uninformed, strong) and the sender game, whose adversary knows all values and one report.

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle
    >>> from hushuffle.randomness import reproducible
    >>> survey = Protocol(randomizer=RandomizedResponse(k=3, epsilon=2.0), shuffler=UniformShuffle(), n=6)
    >>> for name, play in games(survey):
    ...     print(name, play(Terms(releases=1000, reports=5000, rng=reproducible(1))).broken)
    Guess a value, knowing no value False
    Guess a value, knowing all other values False
    Name the sender of a report False
    """
    return [
        ("Guess a value, knowing no value", lambda terms: _guess(protocol, terms, knows_others=False)),
        ("Guess a value, knowing all other values", lambda terms: _guess(protocol, terms, knows_others=True)),
        ("Name the sender of a report", lambda terms: _name(protocol, terms)),
    ]


def refuse(message: str) -> NoReturn:
    """Raise `UnsupportedProtocolError(message)`: a claim cannot be tested, or a game cannot be played."""
    raise UnsupportedProtocolError(message)


def enough(releases: int, messages: int) -> None:
    """Raise `UnsupportedProtocolError` for fewer than 200 releases."""
    if releases < _FEWEST:
        why = f"{_FEWEST} releases of {messages:,} messages take too long. Set trials, or audit fewer people"
        refuse(f"The release was not audited: {why}.")


def tell_apart(run: Callable[[int], float], terms: Terms) -> Bound:
    """Return how often scores `run(world)` identify world 0 or 1; the first half of the runs chooses the threshold.

    >>> from hushuffle.randomness import reproducible
    >>> noise = reproducible(2)
    >>> rate = tell_apart(lambda world: float(noise.integers(4, 1)[0] > 2 - world), Terms(rng=reproducible(1)))
    >>> rate.lower < 0.625 < rate.upper
    True
    """
    worlds = terms.rng.integers(2, size=terms.releases)
    scores = np.array([run(int(world)) for world in worlds], dtype=np.float64)
    half = terms.releases // 2
    threshold, for_second = _threshold(scores[:half], worlds[:half])
    says = (scores[half:] >= threshold) == for_second
    return rate_interval(int(np.count_nonzero(says == worlds[half:])), terms.releases - half, terms.confidence)


def _threshold(scores: Floats, worlds: Integers) -> tuple[float, bool]:
    """Return the threshold with the fewest errors, and whether scores at or above it indicate world 1."""
    order = np.argsort(scores, kind="stable")
    values, first = np.unique(scores[order], return_index=True)
    below = np.concatenate([[0], np.cumsum(worlds[order])])  # of world 1 among the smallest
    right = (below[-1] - below[first]) + (first - below[first])  # world 1 from the threshold on, world 0 below it
    best, worst = int(right.argmax()), int(right.argmin())
    if right[best] >= scores.size - right[worst]:
        return float(values[best]), True
    return float(values[worst]), False


def fair(distance: float, bound: Bound) -> Bound:
    """Return the largest success rate for two worlds, 1/2 + TV/2; `bound` bounds TV, which is delta at epsilon = 0.

    >>> fair(0.5, Bound.exact(0.5, unit="")).upper
    0.7500000000000001
    """
    most = min(float(np.nextafter(0.5 + min(distance, 1.0) / 2, 1.0)), 1.0)
    return Bound(lower=0.5, upper=most, kind="upper", unit="probability", sources=bound.sources)


def evidence(protocol: Protocol, reports: Integers, pair: tuple[int, int], others: Sequence[int]) -> Floats:
    """Return the sum over messages of P(message | value) / P(message | other people), shape (2,).

    This is the release's likelihood, up to a factor, if all others have one value and there are no dummies.
    """
    held = np.flatnonzero(np.asarray(others))
    reports, times = tallied(reports) or (reports, 1)
    likely = protocol.randomizer.likelihoods(reports, np.concatenate([np.asarray(pair), held]))
    shares = np.asarray(others, dtype=np.float64)[held]
    crowd = shares @ likely[2:] / shares.sum() if held.size else likely[:2].mean(axis=0)
    return fit(likely[:2], crowd, times)


def fit(likely: Floats, crowd: Floats, times: Integers | int = 1) -> Floats:
    """Return, for each row of `likely`, the sum over messages of its likelihood divided by that of other people.

    `times` is how often the message of each column occurs: one number for all, or shape (1, columns).
    """
    return np.asarray((relative(likely, crowd) * times).sum(axis=1))


def _guess(protocol: Protocol, terms: Terms, *, knows_others: bool) -> Game:
    """Play the value game: guess the value whose reports are more frequent in the release than among other people."""
    enough(terms.releases, protocol.n)
    mechanism, k, rng = protocol.randomizer, protocol.randomizer.inputs, terms.rng
    values, hits = np.arange(k), 0
    others = np.zeros(protocol.n - 1, dtype=np.int64)
    certified = (
        qif.vulnerability(protocol, adversary=Strong(others=Histogram(counts=np.bincount(others, minlength=k))))
        if knows_others
        else qif.vulnerability(protocol)
    )
    for _ in range(terms.releases):
        held = rng.integers(k, size=protocol.n)
        if knows_others:
            held[1:] = others
        transcript = protocol.collect(held, rng=rng)
        reports, times = tallied(transcript.reports) or (transcript.reports, 1)
        likely = mechanism.likelihoods(reports, values)
        scores = fit(likely, likely[0] if knows_others else likely.mean(axis=0), times)
        best = np.flatnonzero(scores >= scores.max() * (1 - 1e-12))  # ties are broken at random
        hits += int(best[int(rng.integers(best.size, size=1)[0])]) == held[0]
    attacker = "knows all other values" if knows_others else "knows no value"
    rate = rate_interval(hits, terms.releases, terms.confidence)
    return Game("a person's value", attacker, success=rate, certified=certified)


def _name(protocol: Protocol, terms: Terms) -> Game:
    """Play the sender game: name a person who holds the value under which the report is most likely."""
    mechanism, k, n, rng = protocol.randomizer, protocol.randomizer.inputs, protocol.n, terms.rng
    certified = pie.bayes_error(protocol).complement
    used = min(n, k)  # everybody knows that person i holds the value i modulo k
    senders = rng.integers(n, size=terms.reports)
    sent = mechanism.randomize(senders % used, rng=rng)
    hits, together = 0, max(1, _BLOCK // used)
    for start in range(0, terms.reports, together):
        likely = mechanism.likelihoods(sent[start : start + together], np.arange(used))
        ties = likely == likely.max(axis=0)
        place = rng.integers(int(ties.sum(axis=0).max(initial=1)), size=ties.shape[1]) % ties.sum(axis=0)
        value = (ties.cumsum(axis=0) > place).argmax(axis=0)
        holders = n // used + (value < n % used)
        guess = value + used * (rng.integers(n, size=value.size) % holders)
        hits += int(np.count_nonzero(guess == senders[start : start + together]))
    rate = rate_interval(hits, terms.reports, terms.confidence)
    return Game("who sent a report", "knows all values", success=rate, certified=certified)


_MOST_SET_BITS: Final = 20_000_000
_CANDIDATES: Final = 50


def filter_games(*, audiences: Integers, bits: int, p: float, hashes: int = 1) -> list[Named]:
    """Return the membership-inference game on released filters: was the target in every audience, or in none?

    The adversary knows the key and all other people's audiences; `audiences[i]` counts people in exactly those of set
    bits i, shape (2**k,). The certified success is 1/2 + TV/2; TV is at most `hashes` times that of one column.

    Source: docs/theory/randomizers.md, Theorem 18.

    >>> from hushuffle.randomness import reproducible
    >>> ((name, play),) = filter_games(audiences=np.array([0, 20, 10, 5]), bits=100, p=0.25)
    >>> game = play(Terms(rng=reproducible(1)))
    >>> print(f"{name}: certified {game.certified.upper:.3f}, broken: {game.broken}")
    Infer membership in the audiences: certified 0.544, broken: False
    """
    return [("Infer membership in the audiences", lambda terms: _member(audiences, bits, p, hashes, terms))]


def _member(audiences: Integers, bits: int, p: float, hashes: int, terms: Terms) -> Game:
    publishers = int(audiences.size).bit_length() - 1
    enough(terms.releases, bits * publishers)
    if audiences.sum() * hashes > _MOST_SET_BITS:
        refuse(f"The game on Bloom filters was not played: all people would set over {_MOST_SET_BITS:,} bits.")
    protocol = bloom.snr.columns(publishers, bits, p)
    column = dp.delta(protocol, epsilon=0.0)
    encoder = BloomEncoder(bits=bits, hashes=hashes, key=terms.rng.words(4).tobytes())
    # The number of audiences of other people that set each bit column, at uniform positions.
    logos = np.zeros(bits, dtype=np.int64)
    sets = np.repeat(np.arange(audiences.size), audiences * hashes)
    np.bitwise_or.at(logos, terms.rng.integers(bits, sets.size), sets)
    ones = [np.packbits((logos >> bit & 1).astype(np.bool_)) for bit in range(publishers)]
    without = [BloomFilter(bits=bits, hashes=hashes, key_check=encoder.key_check, packed=packed) for packed in ones]
    # The target is a person whose columns are set by the fewest other people: the easiest one.
    names = [f"person {place}" for place in range(_CANDIDATES)]
    name = names[int(np.bitwise_count(logos[encoder.positions(names)]).sum(axis=1).argmin())]
    person, touched = encoder.encode([name]), np.unique(encoder.positions([name]))
    both, flips = (without, [each | person for each in without]), BitFlipping(width=1, p=p)

    law = bloom.transition_matrix(publishers, p)
    crowd = np.bincount(logos, minlength=audiences.size) @ law / bits
    worth = (law[-1] - law[logos[touched]]).sum(axis=0) / crowd

    def run(world: int) -> float:
        released = [each.flip(randomizer=flips, rng=terms.rng) for each in both[world]]
        return float(logo_counts(released).counts @ worth)

    return Game(
        "whether a person is in every audience or in none",
        "knows all other members and the hash key",
        success=tell_apart(run, terms),
        certified=fair(column.upper * hashes, column),
    )


def round_games(protocol: Protocol, *, rounds: int, memoised: bool = False) -> list[Named]:
    """Return the game of two rounds: guess a value (fresh reports), or whether it changed (memoized reports).

    The adversary knows all other values. The certified bound is the total variation distance of two rounds for fresh
    reports, and `dp.change_shows` for memoized reports.

    >>> from hushuffle import RandomizedResponse, UniformShuffle
    >>> from hushuffle.randomness import reproducible
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=2.0), shuffler=UniformShuffle(), n=5)
    >>> for memoised in (False, True):
    ...     ((name, play),) = round_games(survey, rounds=2, memoised=memoised)
    ...     game = play(Terms(rng=reproducible(1)))
    ...     print(f"{name}: certified {game.certified.upper:.3f}, broken: {game.broken}")
    Guess a value from two rounds: certified 0.829, broken: False
    See a change between two rounds: certified 0.895, broken: False
    """
    if memoised:
        return [("See a change between two rounds", lambda terms: _change(protocol, rounds, terms))]
    return [("Guess a value from two rounds", lambda terms: _both(protocol, rounds, terms))]


def _both(protocol: Protocol, rounds: int, terms: Terms) -> Game:
    _asked_again(rounds, protocol, terms)
    distance = dp.compose_delta([(protocol, 2)], epsilon=0.0)
    witness = dp.delta(protocol, epsilon=0.0).witness
    if witness is None:
        refuse("The rounds were not audited: no pair of datasets is known whose epsilon attains the lower bound.")
    rest = np.repeat(np.arange(len(witness.others)), witness.others)

    def run(world: int) -> float:
        held, score = np.append(rest, witness.target[world]), 0.0
        for _ in range(2):
            reports = protocol.collect(held, rng=terms.rng).reports
            first, second = evidence(protocol, reports, witness.target, witness.others)
            with np.errstate(divide="ignore", invalid="ignore"):
                score += float(np.nan_to_num(np.log(second) - np.log(first), posinf=1e300, neginf=-1e300))
        return score

    return Game(
        "which of two values a person reports in two rounds",
        "knows all other values and both candidate values",
        success=tell_apart(run, terms),
        certified=fair(distance.upper, distance),
    )


def _change(protocol: Protocol, rounds: int, terms: Terms) -> Game:
    _asked_again(rounds, protocol, terms)
    if protocol.reveals is Reveals.SUMS or protocol.shuffler.expected_dummies:
        refuse("The game on changed values was not played: the shuffler adds reports up, or adds dummies or noise.")
    shows = dp.change_shows(protocol)
    last = protocol.randomizer.inputs - 1

    def run(world: int) -> float:
        key, held = terms.rng.words(4).tobytes(), np.zeros(protocol.n, dtype=np.int64)
        first = _kept(protocol, held, key)
        held[0] = last * world
        second = _kept(protocol, held, key)
        first, second = (protocol.shuffler.release(reports, rng=terms.rng) for reports in (first, second))
        return float(not np.array_equal(_sorted(first), _sorted(second)))

    return Game(
        "whether one person's value changed between two rounds",
        "knows that no other value changed",
        success=tell_apart(run, terms),
        certified=fair(shows.upper, shows),
    )


def _asked_again(rounds: int, protocol: Protocol, terms: Terms) -> None:
    if rounds < 2:
        refuse("Two rounds were not audited: people report once (rounds is missing or 1).")
    enough(terms.releases, 2 * protocol.n)


def _kept(protocol: Protocol, held: Integers, key: bytes) -> Integers:
    """Return memoized reports: the random bits depend on a key, the person and the value."""
    people = np.arange(protocol.n, dtype=np.uint64)
    coins = KeyedRandomness(key=key, records=people, round_number=0, values=held)
    return protocol.randomizer.randomize(held, rng=coins)


def _sorted(reports: Integers) -> Integers:
    """Return sorted reports: the order reveals nothing about senders."""
    rows = reports.reshape(reports.shape[0], -1)
    return rows[np.lexsort(rows.T)]
