"""Find a first deployment for collections with several rounds or reports per person (command `init`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from hushuffle.assessment.calibrate import calibrate
from hushuffle.assessment.targets import Choice
from hushuffle.errors import SpecificationError, UnsupportedProtocolError
from hushuffle.model import Progress, number, silent
from hushuffle.specification import parse

_KINDS: Final = ("randomized-response", "subset-selection")


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
    error, shares = 100 * choice.proposed.standard_error, 50
    if error < shares:
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
