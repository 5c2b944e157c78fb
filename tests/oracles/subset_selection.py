"""Subset selection, and guessing after a shuffle, by enumeration in rationals: tiny sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

Report = tuple[int, ...]
Law = Mapping[Report, Fraction]


def subset_law(x: int, k: int, w: int, growth: Fraction) -> dict[Report, Fraction]:
    """Law of the report of value x: every w-subset with x is `growth` = e**epsilon times as likely as one without."""
    weights = {chosen: growth if x in chosen else Fraction(1) for chosen in combinations(range(k), w)}
    total = sum(weights.values())
    return {chosen: weight / total for chosen, weight in weights.items()}


def mean(laws: Sequence[Law]) -> dict[Report, Fraction]:
    """Law of the report of somebody whose value is uniform."""
    reports = {report for law in laws for report in law}
    return {report: sum((law.get(report, Fraction(0)) for law in laws), Fraction(0)) / len(laws) for report in reports}


def released(laws: Iterable[Law]) -> dict[tuple[Report, ...], Fraction]:
    """Law of the multiset of one report of each."""
    found: dict[tuple[Report, ...], Fraction] = {(): Fraction(1)}
    for law in laws:
        after: dict[tuple[Report, ...], Fraction] = {}
        for reports, chance in found.items():
            for report, share in law.items():
                key = tuple(sorted((*reports, report)))
                after[key] = after.get(key, Fraction(0)) + chance * share
        found = after
    return found


def guess(laws: Sequence[Law], others: Sequence[Law]) -> Fraction:
    """The chance of naming a uniform value x from the multiset of its report (law `laws[x]`) and those of `others`."""
    crowd = released(others)
    best: dict[tuple[Report, ...], Fraction] = {}
    for law in laws:
        whole: dict[tuple[Report, ...], Fraction] = {}
        for reports, chance in crowd.items():
            for report, share in law.items():
                key = tuple(sorted((*reports, report)))
                whole[key] = whole.get(key, Fraction(0)) + chance * share
        for key, chance in whole.items():
            best[key] = max(best.get(key, Fraction(0)), chance)
    return sum(best.values(), Fraction(0)) / len(laws)
