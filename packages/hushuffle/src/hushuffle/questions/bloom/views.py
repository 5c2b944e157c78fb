"""Central epsilon of several views of columns, each with dummies of its own, released together."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from operator import ge
from typing import Final

from hushuffle import _checks
from hushuffle.curves.base import Laws, PrivacyCurve, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.value_dummies import OneCount, TrueAmongEach, ValueCounts
from hushuffle.curves.pairs.composition import ComposedCurve, upper_epsilon
from hushuffle.curves.rules.batches import one_by_one
from hushuffle.curves.rules.every_group import WorstCurve
from hushuffle.mechanisms.column_views import ColumnViews, Dummies
from hushuffle.model import Bound

_MOST_CHANGES: Final = 1 << 12
"""Largest number of changes, up to exchanges of publishers, that are compared for views of pairs."""

_HALVINGS: Final = 24
"""For several changed columns, the delta of one column is halved up to this often, until group privacy meets delta."""


def views_epsilon(design: ColumnViews, *, delta: float, touched: int | None = None) -> Bound:
    """Return a certified bracket of epsilon (nats) for all views of the columns, released together.

    Relation: `touched` of the m columns change, from any values to any values; m is public. One person added or removed
    changes `design.hashes` columns (the default). One person exchanged for another changes twice as many. Adversary:
    sees all released counts, and may know all other columns and the key of the hash functions.

    If one column changes, each view's count of its old cell falls by 1, and that of its new cell rises by 1. The upper
    bound composes the worst change of every view. The lower bound is attained by a column that changes from no entry to
    the largest entries of all publishers, which changes all views at once; with "pairs", by the worst set of publishers
    instead of all. For several columns, the upper bound follows
    from group privacy, and the lower bound is that of one column.

    Args:
        design: the views and their dummies.
        delta: in (0, 1): the dummies of a count are bounded, so no finite epsilon holds at delta = 0.
        touched: number of columns that change, from 1 to m.

    Raises:
        InvalidInputError: an argument is out of range.

    Source: docs/theory/histograms.md, Theorem 4 and Corollary 10; docs/theory/composition.md, Theorem 3.

    >>> import hushuffle as hs
    >>> law = hs.DummyLaw.discrete_laplace(center=1200, scale=30.0)
    >>> patterns = hs.ColumnView(publishers=(0, 1, 2), shows="patterns", each=law)
    >>> print(hs.bloom.views_epsilon(hs.ColumnViews(publishers=3, columns=10**6, views=(patterns,)), delta=1e-9))
    0.06667 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    several = _checks.integer("touched", touched or design.hashes, low=1, high=design.columns)
    curve = views_curve(design)
    column = replace(curve.epsilon(level), witness=None)
    if several == 1:
        return column
    upper = math.inf
    for halving in range(_HALVINGS):
        whole = several * curve.epsilon(level / several / 2**halving).upper
        if math.isinf(whole) or one_by_one(curve.upper, whole, several) <= level:
            upper = whole
            break
    return bracket(column.lower, upper, unit="nats", sources=column.sources)


def views_delta(design: ColumnViews, *, epsilon: float) -> Bound:
    """Return a certified bracket of delta at `epsilon` (nats) if one column changes from any value to any value.

    Raises:
        InvalidInputError: epsilon is negative or infinite.

    Source: see `views_epsilon`.

    >>> import hushuffle as hs
    >>> view = hs.ColumnView(publishers=(0,), each=hs.DummyLaw.of({0: 0.5, 1: 0.5}))
    >>> print(hs.bloom.views_delta(hs.ColumnViews(publishers=1, columns=3, views=(view,)), epsilon=0.0))
    0.5000 (exact)
    """
    return replace(views_curve(design).delta(_checks.non_negative("epsilon", epsilon)), witness=None)


def views_curve(design: ColumnViews) -> PrivacyCurve:
    """Return the privacy curve of all views of a design if one column changes."""
    composed: list[Laws] = [
        [(_curve(*kind, design.columns), times) for kind, times in kinds.items() if times] for kinds in _changes(design)
    ]
    if len(composed) > 1:
        return _Hardest(curves=tuple(ComposedCurve(laws=laws) for laws in composed))
    ((curve, times), *others) = composed[0]
    return ComposedCurve(laws=composed[0]) if others or times > 1 else curve


_Kind = tuple[Dummies, int, Dummies | None, bool]


def _changes(design: ColumnViews) -> list[Counter[_Kind]]:
    """Return the largest numbers of changed counts, by kind, for a change of some publishers' bits; the worst first.

    Without pairs, a change of all bits changes all views. Publishers in the same views are exchangeable.
    """
    classes = Counter(
        tuple(place for place, view in enumerate(design.views) if publisher in view.publishers)
        for publisher in range(design.publishers)
    )
    pairs = any(view.shows == "pairs" for view in design.views)
    if pairs and math.prod(count + 1 for count in classes.values()) > _MOST_CHANGES:
        _checks.unsupported(
            "Too many views of some of the publishers beside pairs. Use pairs of all publishers instead."
        )
    changes: dict[tuple[int, ...], Counter[_Kind]] = {}
    for chosen in product(*(range(count + 1) if pairs else (count,) for count in classes.values())):
        kinds: Counter[_Kind] = Counter()
        for place, view in enumerate(design.views):
            bits = sum(count for seen, count in zip(classes, chosen, strict=True) if place in seen)
            if view.shows == "pairs":
                kinds[view.single or view.each, 1, None, False] += bits
                kinds[view.each, 1, None, False] += view.changed(bits) - bits
            else:
                kinds[view.each, view.moved, view.empty, view.cells > 2] += bits > 0
        changes[tuple(kinds.values())] = kinds  # all have the same kinds, in the same order
    front = [kinds for each, kinds in changes.items() if not any(x != each and all(map(ge, x, each)) for x in changes)]
    return sorted(
        front, key=lambda kinds: -sum(times * kind[1] / (kind[0].variance or 1e-9) for kind, times in kinds.items())
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Hardest(WorstCurve):
    """The largest of several curves, of which the first is the largest at most epsilons."""

    curves: tuple[ComposedCurve, ...]
    proof = f"the largest over all changes of a column: {ComposedCurve.proof}"

    def epsilon(self, delta: float) -> Bound:
        """The lower bound is that of the first."""
        first = self.curves[0].epsilon(delta)
        upper = max(first.upper, *(upper_epsilon(curve.laws, delta=delta) for curve in self.curves[1:]))
        return first if upper == first.upper else bracket(first.lower, upper, unit="nats", sources=self.sources)


@lru_cache(maxsize=256)
def _curve(each: Dummies, moved: int, empty: Dummies | None, several: bool, columns: int) -> PrivacyCurve:  # noqa: FBT001
    """`several`: two patterns that are not empty exist."""
    counts = ValueCounts.of(each)
    if moved == 1:
        return OneCount(counts=counts, n=columns)
    among = TrueAmongEach.of(counts, k=3, n=columns)
    if empty is None:
        return among
    filled = OneCount(counts=counts, other=ValueCounts.of(empty), n=columns)
    return _Filled(curves=(filled, among)) if several else filled


@dataclass(frozen=True, kw_only=True, eq=False)
class _Filled(WorstCurve):
    """The larger curve of a column that is empty or full, and of one that has two patterns, neither empty.

    Only the former changes all views at once, so only its datasets compose with those of other views.
    """

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        return self.curves[0].datasets(log_tail=log_tail)
