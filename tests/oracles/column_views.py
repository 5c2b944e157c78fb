"""Views of columns with dummies, by going through every dataset, neighbour and outcome in fractions.

A column is a tuple of the publishers' entries. Nothing here knows a formula of the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import lcm

Column = tuple[int, ...]
Number = int | Fraction
Law = Mapping[int, Fraction] | tuple[Mapping[int, Fraction], Mapping[int, Fraction]]
"""The dummies of each count; or those of the first count (of pairs: of each publisher's), and of each other."""
Shown = tuple[str, tuple[int, ...], int]
"""What a view shows, its publishers, and the largest number of contacts."""


def cells_of(shown: Shown) -> list[object]:
    """Return the released cells of a view."""
    what, publishers, most = shown
    if what == "pairs":
        return [*((place,) for place in publishers), *combinations(publishers, 2)]
    if what == "union":
        return ["seen"]
    if what == "contacts":
        return list(range(most + 1))
    # The first publisher is the lowest bit of a pattern.
    return [tuple(reversed(bits)) for bits in product((0, 1), repeat=len(publishers))]


def cell(shown: Shown, column: Column) -> object:
    """Return the cell of a column; a union has the cell "none", which is not released."""
    what, publishers, most = shown
    entries = [column[place] for place in publishers]
    if what == "union":
        return "seen" if any(entries) else "none"
    if what == "contacts":
        return min(sum(entries), most)
    return tuple(int(entry > 0) for entry in entries)


def counts(shown: Shown, columns: Iterable[Column]) -> list[int]:
    if shown[0] == "pairs":
        rows = list(columns)
        return [sum(sum(row[place] > 0 for place in some) == 1 for row in rows) for some in cells_of(shown)]  # type: ignore[attr-defined]
    seen = [cell(shown, column) for column in columns]
    return [seen.count(each) for each in cells_of(shown)]


def release(views: Sequence[tuple[Shown, Law]], columns: Sequence[Column]) -> dict[tuple[int, ...], Fraction]:
    """Return the probabilities of all released counts."""
    outcomes: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for shown, law in views:
        first, other = law if isinstance(law, tuple) else (law, law)
        single = len(shown[1]) if shown[0] == "pairs" else 1
        for place, truth in enumerate(counts(shown, columns)):
            outcomes = {
                (*before, truth + dummies): chance * share
                for before, chance in outcomes.items()
                for dummies, share in (other if place >= single else first).items()
            }
    return outcomes


def divergence(
    first: Mapping[tuple[int, ...], Number], second: Mapping[tuple[int, ...], Number], growth: Fraction
) -> Fraction:
    """Return the divergence of two distributions, or its multiple if both are multiplied, say to whole numbers."""
    over, under = growth.as_integer_ratio()
    gaps = (chance * under - over * second.get(outcome, 0) for outcome, chance in first.items())
    return Fraction(sum(gap for gap in gaps if gap > 0), under)


def every_column(publishers: int, largest: int) -> Iterator[Column]:
    return product(range(largest + 1), repeat=publishers)


def worst(
    views: Sequence[tuple[Shown, Law]], *, publishers: int, largest: int, columns: int, growth: Fraction
) -> Fraction:
    """Return the largest divergence over all datasets that differ in the first column."""
    values = list(every_column(publishers, largest))
    found = Fraction(0)
    for others in product(values, repeat=columns - 1):
        laws = [release(views, [value, *others]) for value in values]
        unit = lcm(*(chance.denominator for law in laws for chance in law.values()))
        whole = [{outcome: (chance * unit).numerator for outcome, chance in law.items()} for law in laws]
        found = max(found, *(divergence(first, second, growth) / unit for first, second in product(whole, whole)))
    return found
