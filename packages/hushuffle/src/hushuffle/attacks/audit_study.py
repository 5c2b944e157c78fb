"""Write the report of an audit: claims, exact lower bounds, measured lower bounds, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict

import numpy as np

from hushuffle.attacks.audit import audit_mechanism, audit_protocol, audit_sampler, drawn_at_once
from hushuffle.attacks.games import Game, Named, Terms, enough, games, refuse
from hushuffle.attacks.measured import AUDIT, Measurement
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
"""Number of simulated releases per claim or game, if releases are drawn one after the other."""
GAME_RELEASES: Final = 2000
MESSAGES: Final = 200_000_000
"""Largest total number of messages that are simulated to test a claim, unless `trials` is given."""

_CLAIMS: Final = 3
"""The probability of a false alarm is divided equally among two claims and all games together."""

_GRID: Final = 51
_POINTS: Final = 12


class Options(TypedDict, total=False):
    """The options of all audits: trials of each claim, confidence of all together, random generator, and progress."""

    trials: int | None
    confidence: float
    rng: Randomness | None
    progress: Progress | None


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One audited claim: the claimed upper bound on epsilon, a proven lower bound (None: unknown), and the trials."""

    what: str
    claimed: Bound
    exact: Bound | None
    found: Measurement

    @property
    def verdict(self) -> str:
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
    """Audit the local randomizer, and the releases on the worst-case pair of datasets.

    The probability that any true claim is refuted is at most 1 - `confidence`. If only some clients are honest, only
    their messages are drawn.
    """
    tell, source, about = progress or silent, secure() if rng is None else rng, protocol.describe()
    protocol = protocol.secret
    named = [*games(protocol), *further]
    tests = _CLAIMS + len(named)
    each = 1 - (1 - confidence) / tests
    rows, refused, half = [], [], "Central epsilon, half of it"
    tell("reports of one device", 0.0)
    attempts: list[tuple[str, Callable[[], Audited]]] = [
        ("Local epsilon", lambda: _local(protocol.randomizer, trials or LOCAL_TRIALS, each, source, labels)),
        ("Central epsilon", lambda: _released(protocol, delta, trials, each, source, labels)),
        (half, lambda: _released(protocol, _larger(protocol, delta), trials, each, source, labels)),
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
    """Return an audit of games only; `messages` counts those of one release, `trials` the releases of each game."""
    each = 1 - (1 - confidence) / max(len(named), 1)
    terms = Terms(releases=_releases(trials, messages), confidence=each, rng=secure() if rng is None else rng)
    played, unplayed = played_games(named, terms, progress or silent)
    return audit_report(about, [], unplayed, confidence, played=played)


def _releases(trials: int | None, messages: int) -> int:
    return trials or min(GAME_RELEASES, MESSAGES // max(messages, 1))


def played_games(named: Sequence[Named], terms: Terms, tell: Progress) -> tuple[list[Game], list[Unanswered]]:
    played, unplayed = [], []
    for place, (what, play) in enumerate(named):
        tell(what, place / len(named))
        try:
            played.append(play(terms))
        except UnsupportedProtocolError as error:
            unplayed.append(Unanswered(question="game", topic=what, reason=str(error)))
    return played, unplayed


def _errors(protocol: Protocol, measurement: Measurement) -> Chart:
    alpha = np.linspace(0.0, 1.0, _GRID)
    certified = dp.profile(protocol, points=_POINTS).false_negatives(alpha)
    rates = (measurement.false_positives, measurement.false_negatives)
    most = [np.minimum(shares + measurement.off, 1.0).tolist() for shares in rates]
    return Chart(
        key="errors",
        title="False positives and false negatives of tests between two datasets",
        caption="Certified: lower bound on the errors of any test. A measured curve below it would refute the claim.",
        x_label="false positives",
        y_label="false negatives",
        series=(
            Series.through("certified, of all tests", alpha.tolist(), certified),
            Series.through("measured, at most", *most),
        ),
    )


def _local(mechanism: Mechanism, trials: int, confidence: float, rng: Randomness, labels: Sequence[str]) -> Audited:
    if math.isinf(mechanism.local_epsilon):
        refuse("The local randomizer was not audited: it adds no noise, so no local epsilon is claimed.")
    pair = _worst_values(mechanism)
    claimed = Bound(lower=0.0, upper=mechanism.local_epsilon, kind="upper", unit="nats", sources=mechanism.sources)
    measurement = audit_mechanism(mechanism, values=pair, trials=trials, confidence=confidence, rng=rng)
    return Audited(what="Local epsilon", claimed=claimed, exact=None, found=_named(measurement, labels))


def _larger(protocol: Protocol, delta: float) -> float:
    """Return the delta at half of the claimed epsilon, whose events are more frequent and need fewer trials."""
    claimed = dp.epsilon(protocol, delta=delta)
    if math.isinf(claimed.upper):
        refuse(f"The release was not audited: no central epsilon is claimed at delta = {delta:g}.")
    return dp.delta(protocol, epsilon=claimed.lower / 2).lower


def _released(
    protocol: Protocol, delta: float, trials: int | None, confidence: float, rng: Randomness, labels: Sequence[str]
) -> Audited:
    claimed = dp.epsilon(protocol, delta=delta)
    witness = claimed.witness
    size = trials or _audited(protocol)
    enough(size, protocol.n)
    if witness is None or not math.isfinite(claimed.upper):
        refuse("The release was not audited: no pair of datasets is known whose epsilon attains the lower bound.")
    measurement = audit_protocol(
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
    return Audited(what=what, claimed=claimed, exact=exact, found=_named(measurement, labels))


def _audited(protocol: Protocol) -> int:
    numbers = (protocol.n + math.ceil(protocol.shuffler.expected_dummies)) * len(protocol.randomizer.layout.names)
    most = CENTRAL_TRIALS if drawn_at_once(protocol) else SINGLE_TRIALS
    return min(most, MESSAGES // numbers)


def _worst_values(mechanism: Mechanism) -> tuple[int, int]:
    """Return the two values that one report distinguishes best; any two if the mechanism treats all values alike."""
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
    """Return the audit of an external randomizer on two values; `sampler` takes codes 0 and 1."""
    measurement = audit_sampler(
        sampler, (0, 1), claimed=claimed, delta=delta, trials=trials, confidence=confidence, names=names
    )
    return study_of(measurement, confidence=confidence, about=about)


def study_of(found: Measurement, *, confidence: float, about: str) -> Report:
    bound = Bound(lower=0.0, upper=found.claimed, kind="upper", unit="nats")
    what = "Local epsilon" if found.delta == 0 else f"Local epsilon at delta = {found.delta:g}"
    return audit_report(about, [Audited(what=what, claimed=bound, exact=None, found=found)], [], confidence)


def _named(measurement: Measurement, labels: Sequence[str]) -> Measurement:
    if not labels:
        return measurement
    return replace(measurement, first=labels[int(measurement.first)], second=labels[int(measurement.second)])


def audit_report(
    about: str,
    rows: Sequence[Audited],
    refused: Sequence[Unanswered],
    confidence: float,
    *,
    charts: Sequence[Chart] = (),
    played: Sequence[Game] = (),
) -> Report:
    return Report(
        key="audit",
        title="Audit: claims against trials",
        question=f"Do trials refute the claims about this mechanism? {about}",
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
        claimed, shown = apart(row.claimed.upper, row.found.epsilon.lower)
        yield f"{row.what}: the claimed {claimed} is refuted, because trials show at least {shown}."
    lost = [game for game in played if game.broken]
    for game in lost:
        claimed, shown = apart(game.certified.upper, game.success.lower)
        yield (
            f"The claim about {game.what} is refuted: an adversary who {game.attacker} wins at least {shown} of the "
            f"games; certified: {claimed}."
        )
    for row in rows:
        for kinds in row.found.one_sided:
            yield (
                f"Of {kinds.trials:,} reports of each value, certain reports occurred {kinds.hits[0]:,} times for "
                f"{kinds.first} and {kinds.hits[1]:,} times for {kinds.second}"
                f"{f', for example {kinds.example}' if kinds.example else ''}. Check these reports first."
            )
        if row.found.rare and not row.found.refuted:
            seen = "; ".join(f"{report}: {count:,} times for {name}" for report, name, count in row.found.rare)
            yield f"Some reports occurred for one value only, perhaps by chance: {seen}. Check these reports."
    if (rows or played) and not broken and not lost:
        yield "No claim is refuted. This proves no claim: a mechanism may leak in ways that these trials do not test."
    if rows or played:
        yield f"If all claims are true, some are refuted with probability at most {100 * (1 - confidence):.3g} %."


def apart(claimed: float, shown: float) -> tuple[str, str]:
    """Return a claim, rounded up, and a lower bound, rounded down, with digits that show that the bound is larger.

    >>> apart(1.0, 1.0002), apart(1.0, 0.9)
    (('1.000', '1.0002'), ('1.000', '0.9000'))
    """
    short = number(claimed, up=True)
    for digits in range(4, 18):
        first, second = number(claimed, up=True, digits=digits), number(shown, up=False, digits=digits)
        most, least, usual = (float(text.replace(",", "")) for text in (first, second, short))
        if claimed >= shown or most < least:
            break
    return short if most == usual else first, second


def _games(played: Sequence[Game]) -> Table:
    return Table(
        key="games",
        title="Games",
        caption="Success rate: how often this adversary won. The upper bound is for any adversary with the same "
        "knowledge, as `hushuffle assess` and `hushuffle plan analyse` report it.",
        columns=("what is guessed", "the adversary", "verdict", "success rate", "certified upper bound"),
        rows=tuple(
            (game.what, game.attacker, "refuted" if game.broken else "not refuted", game.success, game.certified)
            for game in played
        ),
    )


def _table(rows: Sequence[Audited]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        measurement = row.found
        claimed, shown = apart(row.claimed.upper, measurement.epsilon.lower)
        most = row.claimed if claimed == number(row.claimed.upper, up=True) else f"at most {claimed} nats"
        exact = "not known" if row.exact is None else row.exact
        inputs = f"{measurement.first} against {measurement.second}"
        hits = f"{measurement.hits[0]:,} and {measurement.hits[1]:,} of {measurement.trials:,}"
        needed = "none" if math.isinf(measurement.for_a_lie) else f"{measurement.for_a_lie:,.0f}"
        cells.append((row.what, row.verdict, f"{shown} nats", most, exact, inputs, hits, needed))
    return Table(
        key="claims",
        title="Claims",
        caption="At least: lower bound from trials. Proven: proven lower bound. The event was chosen on other trials. "
        "Last column: the number of trials that refutes half of all claims that are 1 % too low.",
        columns=("claim", "verdict", "at least", "claimed", "proven", "inputs", "event happened", "trials for 1 %"),
        rows=tuple(cells),
    )
