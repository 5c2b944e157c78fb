"""Suggests changes to the targets or the collection if no deployment meets the targets; each change is verified."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final

import tomli_w

from hushuffle.assessment.candidates import Candidate, Miss, Search, Wishes, rounded
from hushuffle.errors import InvalidInputError, NumericalError, SpecificationError, UnsupportedProtocolError
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.model.solver import Parameter, solve, verdict
from hushuffle.questions.dp.calibration import MOST_PEOPLE

_NEAREST: Final = 2
"""Changes of settings are tried for this number of deployments, those that miss the targets least."""

_RELAXED: Final = ("epsilon", "local_epsilon", "guessing", "reidentification")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A change of the request that makes its targets attainable: a `sentence`, and the changed request (TOML).

    If the limit of messages must change, `most_messages` is the new limit: the average number per person.
    """

    sentence: str
    wishes: str
    most_messages: float | None = None


def advise(wishes: Wishes, missed: Sequence[Miss]) -> Iterator[Advice]:
    """Yield sufficient changes, the smallest first: memoized reports, relaxed targets, more people; then messages."""
    tried, changes = [miss for miss in missed if not miss.over][:_NEAREST], list[Advice]()
    for change in (_memoized, _less_private, _less_accurate, _more_people):
        for miss in tried:
            try:
                advice = change(wishes, miss)
            except (SpecificationError, UnsupportedProtocolError, InvalidInputError, NumericalError):
                continue
            if advice is not None:
                changes.append(advice)
                break
    yield from sorted(changes, key=partial(factor, wishes.tables))
    # Deployments that need the fewest messages come first.
    yield from [_more_messages(wishes, miss) for miss in missed if miss.over == "messages"][:1]


def factor(wanted: Mapping[str, Any], advice: Advice) -> float:
    """Return the largest factor by which an advice changes a target or the number of people; inf: no target is left."""
    tables = tomllib.loads(advice.wishes)
    factors = [tables["targets"].get(key, math.inf) / limit for key, limit in wanted["targets"].items()]
    return float(max([tables["population"].get("n", 1) / wanted["population"].get("n", 1), *factors]))


def _memoized(wishes: Wishes, miss: Miss) -> Advice | None:
    """Suggest memoized reports: a person whose value does not change sends the same report in every round."""
    tables = wishes.tables
    if tables.get("rounds", 1) == 1 or tables.get("memoised") or "reports_per_person" in tables["population"]:
        return None
    changed = replace(wishes, tables={**tables, "memoised": True, "changes": 0})
    return _checked(changed, miss.search, "memoised = true and changes = 0 (values that never change are rare)")


def _less_private(wishes: Wishes, miss: Miss) -> Advice | None:
    """Suggest privacy targets relaxed to the figures of the mechanism at the noise that meets the accuracy target."""
    if miss.local is None:
        return None
    given = miss.candidate or miss.search.candidate(miss.local)
    if any(target.key not in _RELAXED or target.got is None for target in given.unmet):
        return None
    allowed = {one.key: rounded(one.got.upper, up=True) for one in given.unmet if one.got is not None}
    # A local epsilon above the largest value that a file may contain protects nothing: the target is dropped.
    dropped = "local_epsilon" if allowed.get("local_epsilon", 0.0) > LARGEST_EPSILON else ""
    words = " and ".join(wishes.changed(key, math.inf if key == dropped else value) for key, value in allowed.items())
    allowed = {key: value for key, value in allowed.items() if key != dropped}
    return _checked(_asking(wishes, allowed, without=dropped), miss.search, words)


def _less_accurate(wishes: Wishes, miss: Miss) -> Advice | None:
    """Suggest an accuracy target relaxed to the error of the mechanism at the noise that meets the privacy targets."""
    if "standard_error" not in wishes.tables["targets"]:
        return None
    private = _asking(wishes, {}, without="standard_error")
    if not any(key in private.tables["targets"] for key in _RELAXED):
        return None
    candidate = replace(miss.search, wishes=private).run()
    if not isinstance(candidate, Candidate):
        return None
    error = rounded(candidate.point.standard_error, up=True)
    if not 0 < error <= max(wishes.most_error, wishes.tables["targets"]["standard_error"]):
        return None
    return _checked(_asking(wishes, {"standard_error": error}), miss.search, wishes.changed("standard_error", error))


def _more_people(wishes: Wishes, miss: Miss) -> Advice | None:
    """Suggest more people, if no data is collected yet; the number is rounded up to two significant digits."""
    search = miss.search
    if "n" not in wishes.tables["population"] or "standard_error" not in wishes.tables["targets"]:
        return None

    @cache
    def attempt(n: int) -> Advice | None:
        tables = {**wishes.tables, "population": {**wishes.tables["population"], "n": n}}
        people = -(-n // max(1, wishes.n // wishes.people))
        return _checked(replace(wishes, tables=tables, n=n, people=people), search, f"{n:,} people")

    people = Parameter(
        name="n",
        apply=lambda n: attempt(_two_digits(n)),
        start=2 * wishes.n,
        easiest=MOST_PEOPLE,
        hardest=wishes.n,
        stride=4,
        resolution=1e-3,
    )
    solution = solve(people, verdict(lambda advice: advice is not None))
    return None if solution is None else attempt(_two_digits(solution.value))


def _more_messages(wishes: Wishes, miss: Miss) -> Advice:
    """Suggest a limit that allows the number of messages with which the candidate meets all targets."""
    assert miss.candidate is not None
    allowed = rounded(miss.candidate.messages, up=True)
    sentence = (
        f"If most_messages is {allowed:g} per person, this deployment meets all targets: {miss.candidate.sentence}."
    )
    return Advice(sentence=sentence, wishes=tomli_w.dumps(dict(wishes.tables)), most_messages=allowed)


def _two_digits(value: float) -> int:
    """Return `value` as a whole number with two significant digits, rounded up."""
    unit = int(10 ** max(len(str(math.ceil(value))) - 2, 0))
    return -(-math.ceil(value) // unit) * unit


def _asking(wishes: Wishes, changed: Mapping[str, Any], *, without: str = "") -> Wishes:
    targets = {key: value for key, value in wishes.tables["targets"].items() if key != without}
    return replace(wishes, tables={**wishes.tables, "targets": {**targets, **changed}})


def _checked(changed: Wishes, search: Search, words: str) -> Advice | None:
    """Return the advice if a deployment meets the changed targets, else None."""
    result = replace(search, wishes=changed).run()
    if not isinstance(result, Candidate):
        return None
    sentence = f"With {words}, this deployment meets all targets: {result.sentence}."
    return Advice(sentence=sentence, wishes=tomli_w.dumps(dict(changed.tables)))
