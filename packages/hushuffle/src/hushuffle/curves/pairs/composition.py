"""Composition of several mechanisms that use the same value of each person.

Each curve describes a mechanism that uses fresh randomness in each run. The other people's data may change between the
runs and depend on earlier releases. Upper bounds compose dominating pairs, which are computed from the upper bounds of
the single curves. Lower bounds compose explicit datasets.

Source: docs/theory/composition.md, Theorem 3; Zhu, Dong, Wang 2022, Theorem 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from hushuffle.curves.base import LARGEST, Laws, PrivacyCurve, bracket, spread
from hushuffle.curves.dataset_pair import DatasetPair, inscribed
from hushuffle.curves.pairs.dominating import DOMINATING, DOTS, TabulatedCurve, common_step
from hushuffle.errors import NumericalError
from hushuffle.model import Bound, Citation, Progress, Witness, silent
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt, likely_epsilon

Cache: TypeAlias = dict[tuple[str, float], Any]
"""Tables that several epsilons share: dominating pairs, and loss distributions of datasets."""

Choice: TypeAlias = list[tuple[DatasetPair, int]]
"""A pair of datasets for each round, with its number of runs."""

_TINIEST: Final = 1e-300

_WIDE: Final = 0.05
"""Relative width of a bracket above which a slower search looks for datasets of single rounds."""

_ALMOST: Final = 0.98
"""Factor on a quick estimate of the plain sum; above the bound, the sum itself is not computed."""

_COARSE: Final = 8
"""Step of a lattice on which choices of datasets are compared, in steps of that of a lower bound."""

_CLOSE: Final = 0.05
"""Relative distance from the largest approximate epsilon up to which a choice of datasets is evaluated."""

_LEAST: Final = 1e-100
"""Smallest probability down to which dominating pairs are tabulated."""

_DECADES: Final = 5
"""Number of powers of ten of delta that share the same datasets."""

_CUT: Final = 1e-3
"""Share of delta that all dominating pairs together may assign to an infinite privacy loss."""

_CUTS: Final = ((_CUT, 2**20), (0.03, None), (0.3, None))
"""Such shares, each with the longest lattice: rare losses of probabilities rounded to 2**-64 make lattices long."""


_TABLES: Final[WeakKeyDictionary[PrivacyCurve, tuple[tuple[bool, float, float], TabulatedCurve]]] = WeakKeyDictionary()
"""The last table of each curve, and what it was computed for."""


def composed_epsilon(laws: Laws, *, delta: float, tell: Progress = silent) -> Bound:
    """Certified bracket of epsilon (nats) for a composition of at least two runs, at `delta` in [0, 1).

    The lower bound is at least the largest lower bound of a single round. The upper bound is at most the sum of the
    rounds' upper bounds at equal shares of delta.

    >>> import hushuffle as hs
    >>> from hushuffle.curves.search import privacy_curve
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.1), shuffler=hs.NoShuffle(), n=1)
    >>> print(composed_epsilon([(privacy_curve(local), 100)], delta=1e-6))
    4.775 nats (certified bracket)
    """
    sources, total = _sources(laws), total_pure(laws)
    laws = [(law, times) for law, times in laws if law.pure > 0]
    if not laws:
        return Bound.exact(0.0, unit="nats", sources=sources)
    if delta == 0:
        figures = [(law.pure_bound(), times) for law, times in laws]
        witness = figures[0][0].witness
        if all(figure.kind == "exact" for figure, _ in figures):
            return Bound.exact(total, unit="nats", sources=sources, witness=witness)
        lower = math.fsum(times * figure.lower for figure, times in figures) * (1 - 2.0**-50)
        return bracket(lower, total, unit="nats", sources=sources, witness=witness)
    tell("upper bound of all rounds together", 0.0)
    upper = upper_epsilon(laws, delta=delta)
    if any(law.certain > delta for law, _ in laws):
        return Bound.exact(math.inf, unit="nats", sources=sources, witness=laws[0][0].lower(0.0)[1])
    if _beyond_lattices(spread(laws)):
        alone = max((law.epsilon(delta) for law, _ in laws), key=lambda figure: figure.lower)
        exact = alone.lower == total
        return bracket(alone.lower, total, unit="nats", sources=sources, witness=alone.witness, exact=exact)
    tell("lower bound: datasets of all rounds together", 0.5)
    lower, witness = _lower_epsilon(laws, delta, upper)
    return bracket(lower, upper, unit="nats", sources=sources, witness=witness)


def upper_epsilon(laws: Laws, *, delta: float) -> float:
    """Upper bound on epsilon (nats) for the composition of `laws`, at `delta` in [0, 1)."""
    if 0 < delta < _TINIEST:
        message = f"delta = {delta!r} is below {_TINIEST:g}, where floats lose their digits. Use delta = 0 instead."
        raise NumericalError(message)
    laws, total = [(law, times) for law, times in spread(laws) if law.pure > 0], total_pure(laws)
    if delta == 0 or not laws:
        return total
    if any(law.certain > delta for law, _ in laws):
        return math.inf
    return total if _beyond_lattices(laws) else _upper_epsilon(laws, delta, total)


def composed_delta(laws: Laws, *, epsilon: float, cache: Cache | None = None) -> Bound:
    """Certified bracket of delta for the composition of at least two runs, at `epsilon` >= 0.

    The lower bound is at least the largest lower bound of a single round. The upper bound is at most the sum of the
    rounds' upper bounds at equal shares of epsilon. `cache` stores tables for further epsilons of the same curves.
    """
    cache, alone = ({}, True) if cache is None else (cache, False)
    sources, total = _sources(laws), total_pure(laws)
    laws = [(law, times) for law, times in laws if law.pure > 0] or laws
    if epsilon >= total:
        return Bound.exact(0.0, unit="probability", sources=sources, witness=laws[0][0].lower(0.0)[1])
    best = max((law.delta(epsilon) for law, _ in laws), key=lambda figure: figure.lower)
    lower, witness = best.lower, best.witness
    if _beyond_lattices(spread(laws)):
        return bracket(lower, 1.0, unit="probability", sources=sources, witness=witness, exact=lower == 1)
    upper = upper_delta(laws, epsilon=epsilon, cache=cache)
    size = max(upper, 1e-250)
    if not alone:
        size = max(10.0 ** -(math.ceil(-math.log10(size) / _DECADES) * _DECADES), 1e-250)
    for pairs, lattices in _inscribed(laws, size, cache):
        with suppress(NumericalError):  # too long a lattice
            divergence = LossSum.of(lattices, tilt=best_tilt(lattices, epsilon=epsilon)).lower(epsilon)
            if divergence > lower:
                lower, witness = divergence, _describe(pairs)
    return bracket(lower, upper, unit="probability", sources=sources, witness=witness)


def upper_delta(laws: Laws, *, epsilon: float, cache: Cache) -> float:
    """Upper bound on delta for the composition; `cache` stores tables for further epsilons."""
    if epsilon >= total_pure(laws):
        return 0.0
    laws = [(law, times) for law, times in spread(laws) if law.pure > 0]
    if _beyond_lattices(laws):
        return 1.0
    share = epsilon / _rounds(laws)
    plain = math.fsum(times * law.upper(share) for law, times in laws) * (1 + 2.0**-50)
    return min(plain, _upper_delta(laws, epsilon, cache), 1.0)


def upper_near(laws: Laws, *, epsilon: float, delta: float, rough: bool = False) -> float:
    """Upper bound on delta at `epsilon` for the composition; `delta` is its likely magnitude. `rough`: no bound."""
    laws = [(law, times) for law, times in spread(laws) if law.pure > 0]
    if not laws or epsilon >= total_pure(laws):
        return 0.0
    if _beyond_lattices(laws):
        return 1.0
    tables = Tables(laws, delta=delta, rough=rough).curves([times for _, times in laws])
    parts = [(curve.pair(), times) for curve, times in tables]
    return LossSum.of(parts, tilt=best_tilt(parts, delta=delta)).upper(epsilon)


class Tables:
    """Tables of the curves' upper bounds for one `delta` and any number of rounds, once for each lattice step."""

    def __init__(self, laws: Laws, *, delta: float, rough: bool = False) -> None:
        self._laws, self._delta, self._rough = laws, delta, rough

    def curves(self, times: Sequence[int], *, most: int = 0, cut: float = _CUT) -> list[tuple[TabulatedCurve, int]]:
        """Tables for `times[i]` rounds of curve i, reusable for up to `most` rounds in total."""
        laws = [(law, count) for (law, _), count in zip(self._laws, times, strict=True)]
        step, share = common_step(laws, rough=self._rough), cut * self._delta
        rounds = sum(times)
        negligible = share / max(most, rounds)
        return [
            (self._table(place, step, negligible).until(share / rounds), count) for place, count in enumerate(times)
        ]

    def _table(self, place: int, step: float, negligible: float) -> TabulatedCurve:
        law, wanted = self._laws[place][0], (self._rough, step, negligible)
        if law not in _TABLES or _TABLES[law][0] != wanted:
            make = TabulatedCurve.about if self._rough else TabulatedCurve.of
            _TABLES[law] = wanted, make(law, step=step, negligible=negligible)
        return _TABLES[law][1]


def rounds_meet(law: PrivacyCurve, *, epsilon: float, delta: float, most: int) -> Callable[[int], bool]:
    """Return a function of T <= `most` that tests whether the upper bound for T runs meets (epsilon, delta).

    All T share one table, so the bound can differ in the last digits from that of `composed_epsilon`.
    """
    tables = Tables([(law, 1)], delta=delta)

    def meet(times: int) -> bool:
        if times * law.pure <= epsilon:
            return True
        if times == 1:
            return law.upper(epsilon) <= delta
        if _beyond_lattices([(law, times)]):
            return False
        parts = [(curve.pair(), count) for curve, count in tables.curves([times], most=most)]
        return LossSum.of(parts, tilt=best_tilt(parts, delta=delta)).upper(epsilon) <= delta

    return meet


def total_pure(laws: Laws) -> float:
    """Sum of the pure epsilons of all rounds (nats), rounded up."""
    total = math.fsum(times * law.pure for law, times in laws)
    return total * (1 + 2.0**-50)


def _beyond_lattices(laws: Laws) -> bool:
    """Whether some round has delta = 1, up to rounding, at every epsilon that a lattice covers."""
    return any(law.upper(LARGEST) >= 1 for law, _ in laws)


def _upper_epsilon(laws: Laws, delta: float, total: float) -> float:
    """Upper bound on epsilon, at most `total` and at most the plain sum over single rounds.

    If all lattices would be too long, it is the smaller of these two.
    """
    tables, upper = Tables(laws, delta=delta), total
    for cut, longest in _CUTS:
        curves = tables.curves([times for _, times in laws], cut=cut)
        parts = [(curve.pair(), times) for curve, times in curves]
        with suppress(NumericalError):
            losses = LossSum.of(parts, tilt=best_tilt(parts, delta=delta), longest=longest)
            place = losses.epsilon_above(delta, high=min(total, LARGEST))
            upper = total if total > LARGEST and losses.upper(place) > delta else place
            break
    # The plain sum is slow and seldom smaller: compute it only if a quick estimate of it does not exceed `upper`.
    share = delta / _rounds(laws)
    if _ALMOST * math.fsum(times * curve.last_above(share) for curve, times in curves) > upper:
        return upper
    return min(upper, math.fsum(times * law.epsilon(share).upper for law, times in laws) * (1 + 2.0**-50))


def _lower_epsilon(laws: Laws, delta: float, upper: float) -> tuple[float, Witness | None]:
    """Lower bound on epsilon, at least that of any single round, and its datasets."""
    step = common_step(spread(laws)) / 2
    lower, witness = 0.0, None
    for pairs in _likeliest(list(_choices(laws, delta)), step, delta):
        lattices = [(inscribed(pair, step=step), times) for pair, times in pairs]
        with suppress(NumericalError):  # too long a lattice
            epsilon = LossSum.of(lattices, tilt=best_tilt(lattices, delta=delta)).epsilon_below(delta)
            if witness is None or epsilon > lower:
                lower, witness = epsilon, _describe(pairs)
    for law in (law for law, _ in laws if law.pure > lower and not _private(law, lower, delta)):
        single = law.delta(lower).lower if upper - lower > _WIDE * upper else law.lower(lower)[0]
        if single > delta:
            alone = law.epsilon(delta)
            if alone.lower > lower:
                lower, witness = alone.lower, alone.witness
    return lower, witness


def _private(law: PrivacyCurve, epsilon: float, delta: float) -> bool:
    """Whether the last table of `law`, if there is one, shows that it is (epsilon, delta)-DP."""
    (rough, _, _), table = _TABLES.get(law, ((True, 0.0, 0.0), None))
    return table is not None and not rough and bool(np.any(table.deltas[table.epsilons <= epsilon] <= delta))


def _rounds(laws: Laws) -> int:
    return sum(times for _, times in laws)


def _upper_delta(laws: Laws, level: float, cache: Cache) -> float:
    """Refines the dominating pairs until their mass at infinity is negligible, or no longer falls."""
    rounds, negligible, upper, before = _rounds(laws), 1e-9, 1.0, math.inf
    while True:
        if ("above", negligible) not in cache:
            step = common_step(spread(laws))
            cache["above", negligible] = [
                (TabulatedCurve.of(law, step=step, negligible=negligible / rounds).pair(), times) for law, times in laws
            ]
        parts: list[tuple[LossLattice, int]] = cache["above", negligible]
        with suppress(NumericalError):  # too long a lattice
            upper = min(upper, LossSum.of(parts, tilt=best_tilt(parts, epsilon=level)).upper(level))
        infinity = sum(times * part.infinity for part, times in parts)
        if infinity <= 10 * _CUT * upper or infinity >= max(before, negligible) or negligible < _LEAST:
            return upper
        negligible, before = negligible * 1e-9, infinity


def _inscribed(laws: Laws, delta: float, cache: Cache) -> list[tuple[list[Any], list[Any]]]:
    """Choices of datasets for all rounds, each with the lattice distributions of its privacy losses."""
    if ("below", delta) not in cache:
        step = common_step(spread(laws))
        cache["below", delta] = [
            (pairs, [(inscribed(pair, step=step / 2), times) for pair, times in pairs])
            for pairs in _choices(laws, delta)
        ]
    choices: list[tuple[list[Any], list[Any]]] = cache["below", delta]
    return choices


def _choices(laws: Laws, delta: float) -> Iterator[Choice]:
    """Choices of a dataset pair for each round; rounds without a known pair are omitted (post-processing)."""
    rounds = _rounds(laws)
    attained = [(_comparable(law.datasets(log_tail=math.log(delta / rounds) - 8)), times) for law, times in laws]
    attained = [(pairs, times) for pairs, times in attained if pairs]
    if not attained:
        return
    for choice in range(max(len(candidates) for candidates, _ in attained)):
        pairs = [(candidates[min(choice, len(candidates) - 1)], times) for candidates, times in attained]
        yield pairs
        if not all(pair.mirrored for pair, _ in pairs):
            yield [(pair.swapped(), times) for pair, times in pairs]


def attained(laws: Laws, delta: float, witness: Witness | None) -> list[Witness] | None:
    """The datasets of each law that attain a lower bound of `composed_epsilon` with this witness; None: not listed."""
    for pairs in _choices(laws, delta):
        if len(pairs) == len(laws) and _describe(pairs) == witness:
            return [pair.witness for pair, _ in pairs]
    return None


def _likeliest(choices: list[Choice], step: float, delta: float) -> list[Choice]:
    """The choices whose epsilon may be the largest, by a Chernoff bound on a coarse lattice, within 2.5 % in tests."""
    if len(choices) < 2:
        return choices
    coarse = ([(inscribed(pair, step=_COARSE * step), times) for pair, times in pairs] for pairs in choices)
    scores = [likely_epsilon(lattices, delta) for lattices in coarse]
    least = max(scores)
    return [pairs for pairs, score in zip(choices, scores, strict=True) if score >= least - _CLOSE * abs(least)]


def _comparable(pairs: tuple[DatasetPair, ...]) -> list[DatasetPair]:
    """The pairs usable in both orders: each order has an event whose probability exceeds its error."""
    return [
        pair
        for pair in pairs
        if bool(np.any((pair.p > pair.p_error) & (pair.q > 0))) and bool(np.any((pair.q > pair.q_error) & (pair.p > 0)))
    ]


def _describe(pairs: Choice) -> Witness:
    rounds = "; then ".join(f"{times:,} rounds with {pair.witness.family}" for pair, times in pairs)
    return replace(pairs[0][0].witness, family=rounds + (", of which the first" if len(pairs) > 1 else ""))


def _sources(laws: Laws) -> tuple[Citation, ...]:
    own = [source for law, _ in laws for source in law.sources]
    return tuple(dict.fromkeys([DOMINATING.at("Theorem 10"), DOTS, *own]))


@dataclass(frozen=True, kw_only=True, eq=False)
class ComposedCurve(PrivacyCurve):
    """Privacy curve of the composition of all runs of all mechanisms in `laws`, at least two runs in total."""

    laws: Laws
    cache: Cache = field(default_factory=dict, repr=False)
    proof = "dominating pairs composed (upper bound), explicit datasets composed (lower bound)"

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return _sources(self.laws)

    @property
    def rounds(self) -> Laws:
        return self.laws

    @property
    def pure(self) -> float:
        return total_pure(self.laws)

    def upper(self, epsilon: float) -> float:
        return self.delta(epsilon).upper

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        bound = self.delta(epsilon)
        return bound.lower, bound.witness or self.laws[0][0].lower(0.0)[1]

    def epsilon(self, delta: float) -> Bound:
        return composed_epsilon(self.laws, delta=delta)

    def delta(self, epsilon: float) -> Bound:
        return composed_delta(self.laws, epsilon=epsilon, cache=self.cache)
