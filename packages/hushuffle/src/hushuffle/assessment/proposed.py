"""The deployment that `init` proposes: the first candidate of `choose` that meets the targets."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hushuffle.assessment.advice import advise, factor
from hushuffle.assessment.candidates import UNIFORM, Search, Wishes, of_key
from hushuffle.assessment.choose import Choices, chosen
from hushuffle.assessment.column_candidates import CollectionWishes
from hushuffle.assessment.message_candidates import AnswerWishes
from hushuffle.assessment.number_candidates import MeanWishes, SumWishes
from hushuffle.model import Progress, number

_REQUESTS: Final[Mapping[str, type[Wishes]]] = {
    "columns": CollectionWishes,
    "number": MeanWishes,
    "sum": SumWishes,
    "shares": AnswerWishes,
}
_SIMPLE: Final = ("randomized-response", "subset-selection")
_MOST_MESSAGES: Final = 100
_DIGITS: Final = 3
_TRUSTED: Final = "no limit on local epsilon (the shuffler is trusted)"


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """A complete specification as `tables` and in words; if no deployment is possible, `advice` lists changes."""

    tables: Mapping[str, Any]
    sentence: str
    advice: tuple[str, ...] = ()


def proposed(
    kind: str,
    population: Mapping[str, Any],
    targets: Mapping[str, Any],
    *,
    rounds: int = 1,
    changes: int | None = None,
    columns: Sequence[Mapping[str, Any]] = (),
    honest: float = 1.0,
    messages: bool = False,
    progress: Progress | None = None,
) -> Proposed:
    """Return the first deployment that meets all targets over all `rounds`, or sufficient changes, the smallest first.

    `kind` is that of the answers: "shares", "columns", "number" (for a mean) or "sum". A target for the standard error
    limits that of a share, or of the mean. If a value changes at most `changes` times, memoized reports are tried
    before fresh ones (None: values change often). Of a sum, an `honest` share of the people follows the protocol. With
    `messages`, people may send blanket messages. The mechanism is the best of all for one report with one answer, and
    of the simplest otherwise.

    >>> limits = {"delta": 1e-6, "standard_error": 0.03, "epsilon": 1.0, "local_epsilon": 40.0}
    >>> print(proposed("shares", {"n": 4000, "k": 3}, limits, rounds=52).sentence)
    randomized response with local epsilon 0.73, a uniform shuffle, 52 rounds with fresh reports in every round
    >>> ages = {"n": 10_000, "kind": "number", "low": 0, "high": 110}
    >>> print(proposed("number", ages, {**limits, "standard_error": 1.0}).sentence)
    randomized response (3 levels) with local epsilon 1.2, a uniform shuffle, standard error of the mean at most 0.995
    """
    single = kind == "shares" and rounds == 1 and "reports_per_person" not in population
    mean, simple = kind in ("number", "sum"), not (single or messages)

    def changed(key: str, value: float) -> str:
        if key == "standard_error":
            return f"a standard error of {f'the mean of {value:g}' if mean else f'{100 * value:g} percentage points'}"
        return _TRUSTED if math.isinf(value) else of_key(key, value)

    def tried(search: Search) -> bool:
        fits = search.kind in (("sum",) if kind == "sum" else _SIMPLE) and not getattr(search, "written", False)
        return not simple or (fits and search.shuffler == UNIFORM and not search.beside)

    times: dict[str, Any] = {"rounds": rounds} if rounds > 1 else {}
    tables: dict[str, Any] = {"population": population, "targets": targets, **({"columns": columns} if columns else {})}
    limits: dict[str, Any] = {
        "changed": changed,
        "shufflers": (UNIFORM, {"kind": "none"}),
        "most_messages": _MOST_MESSAGES if messages else _REQUESTS[kind].usual_messages,
        **({"digits": _DIGITS} if simple else {}),
    }
    if mean:
        tables["population"] = {"levels": 2, **population}
        limits["levels_chosen"] = "levels" not in population
        limits["most_error"] = (population["high"] - population["low"]) / 2
    if kind == "sum":
        tables["sum"] = {"epsilon": targets["epsilon"], "delta": targets["delta"] / rounds, "honest": honest}
    memoizable = simple and changes is not None and rounds > 1 and "reports_per_person" not in population
    advice: list[tuple[float, str]] = []
    for memory in [{"memoised": True, "changes": changes}, {}] if memoizable else [{}]:
        request = _REQUESTS[kind](tables={**times, **memory, **tables}, **limits)
        choices = chosen(request, among=tried, progress=progress)
        if choices.rows:
            return _first(choices, messages=messages, mean=mean, single=single)
        advice += _advice(choices, alone=simple)
    return Proposed(tables={}, sentence="", advice=tuple(dict.fromkeys(words for _, words in sorted(advice))))


def _first(choices: Choices, *, messages: bool, mean: bool, single: bool) -> Proposed:
    best, words = choices.rows[0], choices.again
    if messages:
        blanket = [row for row in choices.rows if "blanket-messages" in row.specification]
        best = min(blanket or choices.rows, key=lambda row: row.point.standard_error)
    elif single:
        words = f", the first of {len(choices.rows)} deployments that hushuffle choose lists"
    if choices.rounds > 1 and math.isinf(best.point.local_epsilon):
        words += f", central epsilon {number(best.point.central.upper, up=True)} in all of them"
    if mean:
        reached = number(best.point.standard_error, up=True, digits=3)
        words += f", {choices.wishes.error_name} at most {reached}"
    return Proposed(tables=tomllib.loads(best.specification), sentence=f"{best.sentence}{words}")


def _advice(choices: Choices, *, alone: bool) -> Iterator[tuple[float, str]]:
    """Yield the factors of sufficient changes, with sentences; if `alone`, for each of the searches."""
    tables = choices.wishes.tables
    for missed in [[miss] for miss in choices.missed] if alone else [choices.missed]:
        for advice in advise(choices.wishes, missed):
            # How often a value changes is a fact, so memoized reports are no change that suffices.
            if ("memoised" in tomllib.loads(advice.wishes)) == ("memoised" in tables):
                yield factor(tables, advice), f"{advice.sentence.removesuffix('.')}{choices.again}."
