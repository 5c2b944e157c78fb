"""Find a first deployment (command `init`) for several rounds, reports per person or columns, and for numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any, Final

from hushuffle.assessment.calibrate import calibrate, held, point_at
from hushuffle.assessment.columns import all_central, calibrate_columns, guarantees
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.sum_calibration import calibrate_sum
from hushuffle.assessment.targets import Choice
from hushuffle.errors import SpecificationError, UnsupportedProtocolError
from hushuffle.estimation.numbers import mean_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import NumberGrid, Progress, number, silent
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve
from hushuffle.questions.dp.calibration import LARGEST_LOCAL
from hushuffle.specification import build_protocol, parse
from hushuffle.specification.reading import parse_collection
from hushuffle.specification.sums import parse_sum

_KINDS: Final = ("randomized-response", "subset-selection")
_LEVELS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_LEAST: Final = 1e-3
"""The smallest local epsilon that is tried for a mean of numbers."""

_SHARES: Final = 50
"""A standard error of a share, in percentage points, from which on an estimate is useless."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """A complete specification as `tables` and in words; if no deployment is possible, `advice` lists changes."""

    tables: Mapping[str, Any]
    sentence: str
    advice: tuple[str, ...] = ()


def repeated(
    population: Mapping[str, Any],
    targets: Mapping[str, Any],
    *,
    rounds: int,
    changes: int | None,
    progress: Progress | None = None,
) -> Design:
    """Return the first deployment that meets all targets over all `rounds`, or sufficient changes, the smallest first.

    Reports are memoized if a value changes at most `changes` times. With None (values change often) reports are fresh
    in every round. Each mechanism gets the smallest local epsilon that meets the accuracy target.

    >>> asked = {"delta": 1e-6, "standard_error": 0.03, "epsilon": 1.0, "local_epsilon": 2.0}
    >>> print(repeated({"n": 4000, "k": 3}, asked, rounds=52, changes=0).sentence)
    randomized response with local epsilon 0.73, reports memoized for all 52 rounds
    """
    tell = progress or silent
    advice: list[tuple[float, str]] = []
    memoizable = changes is not None and rounds > 1 and "reports_per_person" not in population
    times = [("memoized for", changes)] if memoizable else []
    ways = [(kind, way, allowed) for way, allowed in [*times, ("drawn anew in", None)] for kind in _KINDS]
    for place, (kind, way, allowed) in enumerate(ways):
        tell("looking for a deployment", place / len(ways))
        tables = _tables(kind, population, targets, rounds=rounds, changes=allowed)
        choice = _choice(tables)
        if choice is None:
            continue
        words = "" if rounds == 1 else f", reports {way} all {rounds:,} rounds"
        if choice.met and choice.accurate is not None:
            least = _rounded(choice.accurate.local_epsilon)
            epsilon = least if least <= choice.proposed.local_epsilon else choice.accurate.local_epsilon
            tables["randomizer"]["epsilon"] = epsilon
            sentence = f"{kind.replace('-', ' ')} with local epsilon {epsilon:g}{words}"
            return Design(tables=tables, sentence=sentence)
        advice += _otherwise(choice, tables, f"{kind.replace('-', ' ')}{words}")
    return Design(tables={}, sentence="", advice=tuple(dict.fromkeys(words for _, words in sorted(advice))))


def columns(
    answers: Sequence[Mapping[str, Any]],
    targets: Mapping[str, Any],
    *,
    n: int,
    rounds: int,
    progress: Progress | None = None,
) -> Design:
    """Return the deployment of several columns with the smallest local epsilons that meet the accuracy target.

    `answers` has, for each column, its `name` and `k` or `categories`. Limits of epsilon hold for all columns together.

    >>> asked = {"delta": 1e-6, "standard_error": 0.02, "epsilon": 1.0, "local_epsilon": 4.0}
    >>> both = [{"name": "smokes", "categories": ["no", "yes"]}, {"name": "town", "k": 3}]
    >>> print(columns(both, asked, n=10_000, rounds=1).sentence)
    2 columns with local epsilons 0.495 and 0.694
    """
    tell, parts, shares = progress or silent, list[dict[str, Any]](), {**targets, "epsilon": LARGEST_LOCAL}
    shares.pop("local_epsilon", None)
    for place, column in enumerate(answers):
        tell(f"column {column['name']}", place / (len(answers) + 1))
        population = {"n": n, **{key: value for key, value in column.items() if key != "name"}}
        tried = [_choice(_tables(kind, population, shares, rounds=1, changes=None)) for kind in _KINDS]
        accurate = [
            (choice.accurate.local_epsilon, kind)
            for kind, choice in zip(_KINDS, tried, strict=True)
            if choice is not None and choice.accurate is not None
        ]
        if not accurate:
            return Design(tables={}, sentence="")
        epsilon, kind = min(accurate, key=lambda pair: (_rounded(pair[0]), _KINDS.index(pair[1])))
        parts.append({**column, "randomizer": {"kind": kind, "epsilon": min(_rounded(epsilon), LARGEST_LOCAL)}})
    tables = {
        **({"rounds": rounds} if rounds > 1 else {}),
        "population": {"n": n},
        "columns": parts,
        "shuffler": {"kind": "uniform"},
        "targets": dict(targets),
    }
    tell("all columns together", len(answers) / (len(answers) + 1))
    epsilons = " and ".join(
        ", ".join(words)
        for words in ([f"{part['randomizer']['epsilon']:g}" for part in rows] for rows in (parts[:-1], parts[-1:]))
    )
    again = "" if rounds == 1 else f", reports drawn anew in all {rounds:,} rounds"
    words = f"{len(parts):,} columns with local epsilons {epsilons}{again}"
    return _together(tables, words)


def _together(tables: Mapping[str, Any], words: str) -> Design:
    """Return the design of several columns if it meets the limits of epsilon, else advice."""
    import tomli_w  # noqa: PLC0415 - only when needed

    collection, targets = parse_collection(tomli_w.dumps(tables)), tables["targets"]
    protocols = [
        build_protocol(each, n=(people := each.population.read(Path())).n, k=people.k)
        for each in collection.columns.values()
    ]
    (local,) = guarantees(collection, protocols, central=None)
    limit = targets.get("local_epsilon", math.inf)
    if local.bound.upper <= limit and all_central(collection, protocols).upper <= targets["epsilon"]:
        return Design(tables=tables, sentence=words)
    try:
        choice = calibrate_columns(collection)
    except (SpecificationError, UnsupportedProtocolError):
        return Design(tables={}, sentence="")
    error = 100 * choice.proposed.standard_error
    shown = number(error, up=True, digits=2)
    advice = (f"This works with a standard error of {shown} percentage points.",) if error < _SHARES else ()
    return Design(tables={}, sentence="", advice=advice)


def mean(
    population: Mapping[str, Any],
    targets: Mapping[str, Any],
    *,
    error: float,
    rounds: int,
    progress: Progress | None = None,
) -> Design:
    """Return the deployment for a mean of numbers whose standard error is at most `error`, in the numbers' unit.

    `population` has the bounds, and `levels` unless they are chosen here: then the smallest local epsilon decides.

    >>> ages = {"n": 10_000, "kind": "number", "low": 0, "high": 110}
    >>> asked = {"delta": 1e-6, "epsilon": 1.0, "local_epsilon": 4.0}
    >>> print(mean(ages, asked, error=1.0, rounds=1).sentence)
    numbers rounded to 3 levels, randomized response with local epsilon 1.2, standard error of the mean at most 0.995
    """
    tell, low, high, n = progress or silent, population["low"], population["high"], population["n"]
    grids = [
        NumberGrid(low=low, high=high, levels=levels)
        for levels in ([population["levels"]] if "levels" in population else _LEVELS)
    ]
    local = {grid.levels: _needed(grid, n=n, error=error) for grid in grids}
    advice: list[tuple[float, str]] = []
    for place, grid in enumerate(sorted(grids, key=lambda grid: local[grid.levels] or math.inf)):
        tell("looking for a deployment", place / len(grids))
        chosen, least = {**population, "levels": grid.levels}, local[grid.levels]
        tables = _tables("randomized-response", chosen, targets, rounds=rounds, changes=None)
        words = f"numbers rounded to {grid.levels:,} levels"
        if least is not None and _met({**tables, "randomizer": {"kind": "randomized-response", "epsilon": least}}):
            tables["randomizer"]["epsilon"] = least
            reached = number(_error(grid, n=n, epsilon=least), up=True, digits=3)
            again = "" if rounds == 1 else f", reports drawn anew in all {rounds:,} rounds"
            sentence = f"{words}, randomized response with local epsilon {least:g}{again}"
            return Design(tables=tables, sentence=f"{sentence}, standard error of the mean at most {reached}")
        choice = _choice(tables)
        if choice is None or choice.private is None:
            continue
        possible = _error(grid, n=n, epsilon=choice.private.local_epsilon)
        shown = number(possible, up=True, digits=2)
        advice.append((possible, f"This works with a standard error of the mean of {shown}: {words}."))
    return Design(tables={}, sentence="", advice=tuple(words for _, words in sorted(advice)[:1]))


def _met(tables: Mapping[str, Any]) -> bool:
    """Return whether a deployment meets its targets."""
    import tomli_w  # noqa: PLC0415 - only when needed

    specification = parse(tomli_w.dumps(tables))
    people = specification.population.read(Path())
    exposure, protocol = Exposure.of(specification, k=people.k), build_protocol(specification, n=people.n, k=people.k)
    point = point_at(protocol, protocol.randomizer.local_epsilon, specification.targets.delta, exposure)
    rows = held(specification, protocol, exposure, point, people.population.least_people)
    return all(target.met for target in rows)


def _error(grid: NumberGrid, *, n: int, epsilon: float) -> float:
    """Return the standard error of the mean for the worst numbers."""
    response = RandomizedResponse(k=grid.levels, epsilon=epsilon)
    return mean_error(Protocol(randomizer=response, shuffler=UniformShuffle(), n=n), grid=grid)


def _needed(grid: NumberGrid, *, n: int, error: float) -> float | None:
    """Return the smallest local epsilon, rounded up, for this error of the mean; None if no noise is small enough."""
    noise = Parameter(
        name="epsilon", apply=lambda epsilon: _error(grid, n=n, epsilon=epsilon), easiest=LARGEST_LOCAL, hardest=_LEAST
    )
    solution = solve(noise, Requirement(excess=lambda reached: log_excess(reached, error)))
    return None if solution is None else min(_rounded(solution.value), LARGEST_LOCAL)


def total(population: Mapping[str, Any], targets: Mapping[str, Any], *, honest: float, rounds: int) -> Design:
    """Return the sum by several messages with the smallest epsilon that meets targets.standard_error, of the mean.

    >>> minutes = {"n": 10_000, "kind": "number", "low": 0, "high": 120}
    >>> asked = {"delta": 1e-6, "epsilon": 0.5, "standard_error": 0.1}
    >>> print(total(minutes, asked, honest=0.9, rounds=1).sentence)
    a sum by 5 messages of each person, central epsilon 0.1807
    """
    import tomli_w  # noqa: PLC0415 - only when needed

    delta, times = targets["delta"], {"rounds": rounds} if rounds > 1 else {}
    noise = {"epsilon": targets["epsilon"], "delta": delta / rounds, "honest": honest}
    tables = {**times, "population": {**population, "levels": 2}, "sum": noise, "targets": dict(targets)}
    try:
        choice = calibrate_sum(parse_sum(tomli_w.dumps(tables)))
    except SpecificationError:
        return Design(tables={}, sentence="")
    best = choice.accurate
    if best is not None and best.central.upper <= targets["epsilon"]:
        noise = {"epsilon": best.protocol.epsilon, "delta": best.protocol.delta, "honest": honest}
        tables |= {"population": {**population, "levels": best.protocol.levels}, "sum": noise}
        epsilon = number(best.central.upper, up=True)
        sentence = f"a sum by {best.protocol.messages:,} messages of each person, central epsilon {epsilon}"
        return Design(tables=tables, sentence=f"{sentence} in all {rounds:,} rounds" if rounds > 1 else sentence)
    error = number(choice.proposed.standard_error, up=True, digits=2)
    people = [f"This works with {choice.people:,} people."] if choice.people is not None else []
    return Design(tables={}, sentence="", advice=(*people, f"This works with a standard error of the mean of {error}."))


def _tables(
    kind: str, population: Mapping[str, Any], targets: Mapping[str, Any], *, rounds: int, changes: int | None
) -> dict[str, Any]:
    times: dict[str, Any] = {"rounds": rounds} if rounds > 1 else {}
    if changes is not None:
        times |= {"memoised": True, "changes": changes}
    return {
        **times,
        "population": dict(population),
        "randomizer": {"kind": kind, "epsilon": 1.0},
        "shuffler": {"kind": "uniform"},
        "targets": dict(targets),
    }


def _choice(tables: Mapping[str, Any]) -> Choice | None:
    """Return the calibration; None if the mechanism has no certified figure, or no noise meets targets.epsilon."""
    import tomli_w  # noqa: PLC0415 - only when needed

    try:
        return calibrate(parse(tomli_w.dumps(tables)))
    except (SpecificationError, UnsupportedProtocolError):
        return None


def _otherwise(choice: Choice, tables: Mapping[str, Any], words: str) -> Iterator[tuple[float, str]]:
    """Yield the factors of sufficient changes, with sentences: more people, a larger error, or a trusted shuffler."""
    if choice.people is not None:
        yield choice.people / choice.population.least_people, f"This works with {choice.people:,} people: {words}."
    error = 100 * choice.proposed.standard_error
    if error < _SHARES:
        sentence = f"This works with a standard error of {number(error, up=True, digits=2)} percentage points: {words}."
        yield error / 100 / tables["targets"]["standard_error"], sentence
    if choice.binding == "local_epsilon":
        targets = {key: value for key, value in tables["targets"].items() if key != "local_epsilon"}
        trusted = _choice({**tables, "targets": targets})
        if trusted is not None and trusted.met and trusted.accurate is not None:
            factor = trusted.accurate.local_epsilon / choice.proposed.local_epsilon
            yield factor, f"This works without a limit on local epsilon, if the shuffler is trusted: {words}."


def _rounded(epsilon: float) -> float:
    """Return epsilon with three significant digits, rounded up.

    >>> _rounded(0.91412), _rounded(12.0)
    (0.915, 12.0)
    """
    exact = Decimal(repr(epsilon))
    places = 2 - math.floor(math.log10(epsilon))
    return float(exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING))
