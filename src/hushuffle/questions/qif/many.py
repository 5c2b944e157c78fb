"""More than two values: exact while that can be evaluated, a certified bracket beyond.

Exact: nobody's value known, or no noise (the shuffle alone); all others at one value; few enough
people for the torus. The worst case is exact when every composition (up to the names of the values)
can be evaluated.

Upper bounds otherwise: the blanket; for a given composition also the people at its commonest value alone,
since the adversary may be given the reports of the rest. Lower bounds: compositions that can be evaluated;
an adversary who reads only the counts of a few values, of one at least: V >= (1 + theta max f)/k, f the law
of that count among the others; for the worst case also the adversary who knows nobody (the worst case is
not below the average), and all people at one value whose count is not looked at.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from hushuffle.errors import NumericalError
from hushuffle.numerics.max_load import TOLERANCE
from hushuffle.questions.qif import torus
from hushuffle.questions.qif.blanket import COARSE, lower_rate, shuffle_rate, upper_rate
from hushuffle.questions.qif.knowledge import Rates
from hushuffle.questions.qif.mode import largest_probability
from hushuffle.questions.qif.one_value import one_value_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hushuffle.questions.qif.knowledge import Knowledge

ACCURACY: Final = 1e-12
"""Relative error of every exact rate; the ends of brackets are moved outward by it."""

COMPOSITIONS_LIMIT: Final = 2_000_000
"""Most torus cells, summed over all compositions, for an exact worst case: about a second."""

_FEW_VALUES: Final = 8  # values up to which the torus may hold enough counts to matter

_NAMED_UP_TO: Final = 1_000  # values up to which a composition is written out as a witness

Known = tuple[int, ...]


def rates(knowledge: Knowledge) -> Rates:
    """Return the rate G, V = nu + theta G, for k > 2: exact (relative error below 1e-12) or certified ends.

    Raises:
        NumericalError: n is beyond what `expected_max_load` takes.

    Source: docs/theory/guessing.md, Theorem 7.

    >>> from fractions import Fraction
    >>> from hushuffle.questions.qif.knowledge import Knowledge
    >>> from hushuffle.mechanisms.randomizers import Symmetric
    >>> law = Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4))
    >>> rates(Knowledge(law=law, m=2, known=None, unknown=0)).known
    (1, 1, 0)
    """
    if knowledge.m == 0 or knowledge.law.lie == 0:
        rate = shuffle_rate(knowledge.unknown + 1, knowledge.law.k)
        return Rates(lower=rate, upper=rate)
    return _worst(knowledge) if knowledge.known is None else _given(knowledge, knowledge.known)


def _given(knowledge: Knowledge, known: Known) -> Rates:
    alone = _all_at_one(knowledge) if max(known) == knowledge.m else None
    if alone is not None:
        return Rates(lower=alone, upper=alone)
    some, exact = _on_torus(knowledge, known)
    if exact:
        return Rates(lower=some, upper=some)
    lower = max(some, *(_one_count(knowledge, count) for count in set(known)))
    commonest = _all_at_one(replace(knowledge, m=max(known), unknown=0), COARSE)
    upper = upper_rate(knowledge)
    return _bracket(lower, upper if commonest is None else min(upper, commonest * (1 + COARSE + ACCURACY)))


def _worst(knowledge: Knowledge) -> Rates:
    m, k = knowledge.m, knowledge.law.k
    if _all_compositions_cost(knowledge) <= COMPOSITIONS_LIMIT:
        tried = [(torus.guess_rate(known, knowledge.unknown, knowledge.law), known) for known in _compositions(m, k)]
        best, worst = max(tried)
        return Rates(lower=best, upper=best, known=worst)
    one_value = _spread(m, 1, k)
    alone = _all_at_one(knowledge, TOLERANCE if m == 1 else COARSE)
    if m == 1 and alone is not None:
        return Rates(lower=alone, upper=alone, known=one_value)
    candidates: list[tuple[float, Known | None]] = [(_one_count(knowledge, 0), one_value)]
    candidates.append((lower_rate(knowledge), one_value))
    candidates.append((shuffle_rate(knowledge.others + 1, k), None))
    if alone is not None:
        candidates.append((alone * (1 - COARSE), one_value))
    if k <= _FEW_VALUES:
        spreads = [_spread(m, values, k) for values in (1, 2, k)]
        candidates += [(_on_torus(knowledge, known)[0], known) for known in spreads if known]
    lower, witness = max(candidates, key=lambda candidate: candidate[0])
    return replace(_bracket(lower, upper_rate(knowledge)), known=witness)


def _bracket(lower: float, upper: float) -> Rates:
    return Rates(lower=min(lower * (1 - ACCURACY), upper), upper=upper)


def _on_torus(knowledge: Knowledge, known: Known) -> tuple[float, bool]:
    """Return a lower bound of the rate for the known values, from as many counts as fit; True if it is exact."""
    law, unknown = knowledge.law, knowledge.unknown
    axes = torus.affordable_axes(known, unknown, law, limit=torus.CELLS_LIMIT)
    if not axes:
        return 1 / law.k, False
    return torus.guess_rate(known, unknown, law, axes=axes), len(axes) == law.k - 1


def _all_at_one(knowledge: Knowledge, tolerance: float = TOLERANCE) -> float | None:
    """Return the exact rate when the m people hold one value and no other report is unknown, or None."""
    if knowledge.unknown:
        return None
    try:
        return one_value_rate(knowledge.m, knowledge.law, tolerance=tolerance)
    except NumericalError:
        return None


def _one_count(knowledge: Knowledge, holders: int) -> float:
    """Return a lower bound of the rate: the count of one value, which `holders` of the known people hold."""
    law = knowledge.law
    counts = [[holders, knowledge.m - holders, knowledge.unknown]]
    return (1 + float(largest_probability(counts, [law.truth, law.lie, Fraction(1, law.k)])[0])) / law.k


def _spread(m: int, values: int, k: int) -> Known | None:
    """Return m people spread evenly over the first `values` values, None for too many values to write out."""
    if k > _NAMED_UP_TO:
        return None
    return tuple(m // values + (value < m % values) if value < values else 0 for value in range(k))


def _compositions(m: int, k: int) -> Iterator[Known]:
    """Yield the ways to spread m people over k values, up to the names of the values: falling counts."""

    def falling(left: int, places: int, most: int) -> Iterator[Known]:
        if places == 1:
            yield (left,)
            return
        for first in range(min(left, most), -(-left // places) - 1, -1):
            for rest in falling(left - first, places - 1, first):
                yield (first, *rest)

    return falling(m, k, m)


def _all_compositions_cost(knowledge: Knowledge) -> float:
    """Return about how many torus cells all compositions take; inf if one of them is too many."""
    m, k = knowledge.m, knowledge.law.k
    even = _spread(m, k, k)
    cells = math.inf if even is None else torus.cells(even, knowledge.unknown, knowledge.law)
    if cells * m > COMPOSITIONS_LIMIT:
        return math.inf  # there are at least m compositions up to m = 3, and more than m beyond
    ways = [1] + [0] * m  # partitions into parts of at most k: as many as into at most k parts
    for part in range(1, k + 1):
        for total in range(part, m + 1):
            ways[total] += ways[total - part]
    return cells * float(ways[m])
