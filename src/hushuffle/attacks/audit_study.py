"""The report of an audit: what is claimed, what is known exactly, what was measured, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hushuffle.attacks.audit import audit_mechanism, audit_protocol, audit_sampler
from hushuffle.attacks.games import Game, Named, Terms, enough, games
from hushuffle.attacks.measured import AUDIT, Measurement
from hushuffle.attacks.releases import drawn_at_once
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Bound, Cell, Chart, Progress, Report, Series, Table, Unanswered, number, silent
from hushuffle.model.report import software
from hushuffle.questions import dp
from hushuffle.randomness import Randomness, secure

LOCAL_TRIALS: Final = 1_000_000
CENTRAL_TRIALS: Final = 1_000_000
SINGLE_TRIALS: Final = 20_000
"""Releases that must be made one after the other."""
GAME_RELEASES: Final = 2000
MESSAGES: Final = 200_000_000
"""So many numbers are drawn for releases at most, unless trials are given."""

_CLAIMS: Final = 3
"""They and the games share the probability of a false alarm."""

_GRID: Final = 51
_POINTS: Final = 12


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One row: which claim, the figure that is claimed, what its lower end is exactly (None: unknown), the trials."""

    what: str
    claimed: Bound
    exact: Bound | None
    found: Measurement

    @property
    def verdict(self) -> str:
        """In plain words."""
        return "refuted" if self.found.refuted else "not refuted"


def audit_deployment(
    protocol: Protocol,
    *,
    delta: float,
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    labels: Sequence[str] = (),
    further: Sequence[Named] = (),
    progress: Progress | None = None,
) -> Report:
    """Return the audit of a deployment: its device, and its releases at the worst pair of datasets that is known.

    `trials` are those of each claim; by default 1,000,000 reports, and as many releases or fewer where they are large.
    All claims together are wrongly accused with probability 1 - `confidence` at most. `further` are games to play
    besides those of every deployment. Where only so many people are honest, they are whom claims count on: what they
    send is run and looked at, the messages of all others are known.
    """
    tell, source, about = progress or silent, secure() if rng is None else rng, protocol.describe()
    protocol = protocol.secret
    named = [*games(protocol), *further]
    tests = _CLAIMS + len(named)
    each = 1 - (1 - confidence) / tests
    rows, refused = [], []
    tell("reports of one device", 0.0)
    attempts: list[tuple[str, Callable[[], Audited]]] = [
        ("Local epsilon", lambda: _local(protocol.randomizer, trials or LOCAL_TRIALS, each, source, labels)),
        ("Central epsilon", lambda: _released(protocol, delta, trials, each, source, labels)),
        (
            "Central epsilon, half of it",
            lambda: _released(protocol, _larger(protocol, delta), trials, each, source, labels),
        ),
    ]
    for place, (what, attempt) in enumerate(attempts):
        tell(what, place / tests)
        try:
            rows.append(attempt())
        except UnsupportedProtocolError as error:
            refused.append(Unanswered(question="audit", topic=what, reason=str(error)))
    terms = Terms(releases=_releases(trials, protocol.n + 1), confidence=each, rng=source)
    played, unplayed = played_games(
        named, terms, lambda what, share: tell(what, (_CLAIMS + share * len(named)) / tests)
    )
    refused += unplayed
    charts = tuple(_errors(protocol, row.found) for row in rows[:2] if row.exact is not None)
    return audit_report(about, rows, refused, confidence, charts=charts, played=played)


def audit_games(
    named: Sequence[Named],
    *,
    about: str,
    messages: int,
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    progress: Progress | None = None,
) -> Report:
    """Return the audit of what only games are played against; a release is of so many `messages`.

    `trials` are the releases of each game; 2,000 by default, or fewer where they are large.
    """
    each = 1 - (1 - confidence) / max(len(named), 1)
    terms = Terms(releases=_releases(trials, messages), confidence=each, rng=secure() if rng is None else rng)
    played, unplayed = played_games(named, terms, progress or silent)
    return audit_report(about, [], unplayed, confidence, played=played)


def _releases(trials: int | None, messages: int) -> int:
    return trials or min(GAME_RELEASES, MESSAGES // max(messages, 1))


def played_games(named: Sequence[Named], terms: Terms, tell: Progress) -> tuple[list[Game], list[Unanswered]]:
    """Return the games that were played, and why others were not."""
    played, unplayed = [], []
    for place, (what, play) in enumerate(named):
        tell(what, place / len(named))
        try:
            played.append(play(terms))
        except UnsupportedProtocolError as error:
            unplayed.append(Unanswered(question="game", topic=what, reason=str(error)))
    return played, unplayed


def _errors(protocol: Protocol, found: Measurement) -> Chart:
    """Return the errors of every test between two datasets: what is certified of all, and what trials saw of ours."""
    alpha = np.linspace(0.0, 1.0, _GRID)
    certified = dp.profile(protocol, points=_POINTS).false_negatives(alpha)
    most = [np.minimum(shares + found.off, 1.0).tolist() for shares in (found.false_positives, found.false_negatives)]
    return Chart(
        key="errors",
        title="Errors of tests between the two datasets",
        caption="No test has fewer errors than the certified line. A measured line below it would refute the claim.",
        x_label="false positives",
        y_label="false negatives",
        series=(
            Series.through("certified, of all tests", alpha.tolist(), certified),
            Series.through("measured, at most", most[0], most[1]),
        ),
    )


def _local(mechanism: Mechanism, trials: int, confidence: float, rng: Randomness, labels: Sequence[str]) -> Audited:
    if math.isinf(mechanism.local_epsilon):
        message = "The device was not audited: nothing is claimed of a report that gives its value away."
        raise UnsupportedProtocolError(message)
    pair = _worst_values(mechanism)
    claimed = Bound(lower=0.0, upper=mechanism.local_epsilon, kind="upper", unit="nats", sources=mechanism.sources)
    found = audit_mechanism(mechanism, values=pair, trials=trials, confidence=confidence, rng=rng)
    return Audited(what="Local epsilon", claimed=claimed, exact=None, found=_named(found, labels))


def _larger(protocol: Protocol, delta: float) -> float:
    """Return the delta at half of epsilon: events of that size are seen in fewer trials."""
    claimed = dp.epsilon(protocol, delta=delta)
    if math.isinf(claimed.upper):
        message = f"The releases were not run: no epsilon is claimed at delta = {delta:g}."
        raise UnsupportedProtocolError(message)
    return dp.delta(protocol, epsilon=claimed.lower / 2).lower


def _released(
    protocol: Protocol, delta: float, trials: int | None, confidence: float, rng: Randomness, labels: Sequence[str]
) -> Audited:
    claimed = dp.epsilon(protocol, delta=delta)
    witness = claimed.witness
    size = trials or _audited(protocol)
    enough(size, protocol.n)
    if witness is None or not math.isfinite(claimed.upper):
        message = "The releases were not run: no pair of datasets is known that attains the lower end."
        raise UnsupportedProtocolError(message)
    found = audit_protocol(
        protocol,
        others=witness.others,
        values=witness.target,
        claimed=claimed.upper,
        delta=delta,
        trials=size,
        confidence=confidence,
        rng=rng,
    )
    exact = Bound(lower=claimed.lower, upper=math.inf, kind="lower", unit="nats", sources=claimed.sources)
    what = f"Central epsilon at delta = {delta:.3g}"
    return Audited(what=what, claimed=claimed, exact=exact, found=_named(found, labels))


def _audited(protocol: Protocol) -> int:
    """Return how many releases are run where nobody says how many."""
    numbers = (protocol.n + math.ceil(protocol.shuffler.expected_dummies)) * len(protocol.randomizer.layout.names)
    most = CENTRAL_TRIALS if drawn_at_once(protocol) else SINGLE_TRIALS
    return min(most, MESSAGES // numbers)


def _worst_values(mechanism: Mechanism) -> tuple[int, int]:
    """Return the two values that one report tells apart best; any two where the law treats all values alike."""
    if mechanism.law().support is not None or mechanism.inputs == 2:
        return 0, 1
    matrix = np.asarray(mechanism.channel().matrix, dtype=np.float64)
    most, least = matrix.argmax(axis=0), matrix.argmin(axis=0)
    with np.errstate(divide="ignore"):
        ratio = np.log(matrix.max(axis=0)) - np.log(matrix.min(axis=0))
    best = int(np.nan_to_num(ratio, posinf=np.finfo(float).max).argmax())
    return int(most[best]), int(least[best])


def audit_foreign(
    sampler: Callable[[Any], Sequence[Any]],
    names: tuple[str, str],
    *,
    claimed: float,
    delta: float = 0.0,
    trials: int = LOCAL_TRIALS,
    confidence: float = 0.95,
    about: str,
) -> Report:
    """Return the audit of somebody else's randomizer on two values; `sampler` takes codes 0 and 1."""
    found = audit_sampler(
        sampler, (0, 1), claimed=claimed, delta=delta, trials=trials, confidence=confidence, names=names
    )
    return study_of(found, confidence=confidence, about=about)


def study_of(found: Measurement, *, confidence: float, about: str) -> Report:
    """Return the report of one measurement of somebody else's reports."""
    bound = Bound(lower=0.0, upper=found.claimed, kind="upper", unit="nats")
    what = "Local epsilon" if found.delta == 0 else f"Local epsilon at delta = {found.delta:g}"
    return audit_report(about, [Audited(what=what, claimed=bound, exact=None, found=found)], [], confidence)


def _named(found: Measurement, labels: Sequence[str]) -> Measurement:
    if not labels:
        return found
    return replace(found, first=labels[int(found.first)], second=labels[int(found.second)])


def audit_report(
    about: str,
    rows: Sequence[Audited],
    refused: Sequence[Unanswered],
    confidence: float,
    *,
    charts: Sequence[Chart] = (),
    played: Sequence[Game] = (),
) -> Report:
    """Return the report of what was tried `about` something: claims, games, and what was refused."""
    return Report(
        key="audit",
        title="Audit: claims against trials",
        question=f"Do trials refute what is claimed of this? {about}",
        answers=tuple(_sentences(rows, played, confidence)),
        unanswered=tuple(refused),
        tables=(*((_table(rows),) if rows else ()), *((_games(played),) if played else ())),
        charts=tuple(charts),
        settings=(("confidence", f"{confidence:g}"),),
        citations=(AUDIT,),
        software=software(),
    )


def _sentences(rows: Sequence[Audited], played: Sequence[Game], confidence: float) -> Iterator[str]:
    broken = [row for row in rows if row.found.refuted]
    for row in broken:
        yield (
            f"{row.what}: the claim of {number(row.claimed.upper, up=True)} is refuted: trials show at least "
            f"{number(row.found.epsilon.lower, up=False)}."
        )
    lost = [game for game in played if game.broken]
    for game in lost:
        yield (
            f"The claim about {game.what} is refuted: an attacker who {game.attacker} wins at least "
            f"{number(game.success.lower, up=False)} of the games; certified: {number(game.certified.upper, up=True)}."
        )
    for row in rows:
        for kinds in row.found.one_sided:
            yield (
                f"Of {kinds.trials:,} reports of each value, reports of the same few kinds came {kinds.hits[0]:,} "
                f"times for {kinds.first} and {kinds.hits[1]:,} times for {kinds.second}. Look at them first."
            )
    if (rows or played) and not broken and not lost:
        yield "No claim is refuted. That proves none: a mechanism may leak where these trials do not look."
    if rows or played:
        yield f"An honest mechanism is accused in at most {100 * (1 - confidence):.3g} % of such audits."


def _games(played: Sequence[Game]) -> Table:
    return Table(
        key="games",
        title="Games",
        caption="How often each attacker succeeds, and how often any can. The certified figures are those of "
        "the same questions in `hushuffle assess` and `hushuffle plan analyse`.",
        columns=("to be found out", "the attacker", "verdict", "success", "certified"),
        rows=tuple(
            (game.what, game.attacker, "refuted" if game.broken else "not refuted", game.success, game.certified)
            for game in played
        ),
    )


def _table(rows: Sequence[Audited]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        found = row.found
        cells.append(
            (
                row.what,
                row.verdict,
                f"{number(found.epsilon.lower, up=False)} nats",
                row.claimed,
                "not known" if row.exact is None else row.exact,
                f"{found.first} against {found.second}",
                f"{found.hits[0]:,} and {found.hits[1]:,} of {found.trials:,}",
                "none" if math.isinf(found.for_a_lie) else f"{found.for_a_lie:,.0f}",
            )
        )
    return Table(
        key="claims",
        title="Claims",
        caption="At least: the lower end that trials show. Exact: the one that is proven. The event was chosen "
        "on as many other trials. The last column says how many trials would show a claim that is 1 % too low, half of "
        "the time.",
        columns=("claim", "verdict", "at least", "claimed", "exact", "inputs", "event happened", "trials for 1 %"),
        rows=tuple(cells),
    )
