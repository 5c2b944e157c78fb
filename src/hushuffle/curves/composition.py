"""Several mechanisms on the same item: what their divergences add up to.

Each law stands for one mechanism with coins of its own, however often it runs; the other people's data may change
between them, in view of what was released before. Upper ends compose the dominating pairs of the laws' own
upper ends; lower ends compose explicit datasets.

Source: docs/theory/composition.md, Theorem 3; Zhu, Dong, Wang 2022, Theorem 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from hushuffle.curves.base import LARGEST, Laws, PrivacyCurve, bracket, spread
from hushuffle.curves.dataset_pair import DatasetPair, inscribed
from hushuffle.curves.dominating import DOMINATING, DOTS, TabulatedCurve, common_step
from hushuffle.errors import NumericalError
from hushuffle.model import Bound, Citation, Progress, Witness, silent
from hushuffle.numerics.loss_sum import LossLattice, LossSum, best_tilt

Made: TypeAlias = dict[tuple[str, float], Any]
"""What several epsilons of the same laws need: tables of dominating pairs, laws of datasets, the lattice's step."""

_TINIEST: Final = 1e-300

_WIDE: Final = 0.05
"""Where a bracket is wider than this share, datasets of single rounds are looked for with more care."""

_ALMOST: Final = 0.98
"""A curve that is evaluated often may be above the one of a single round, by less than this leaves."""

_LEAST: Final = 1e-100
"""Dominating pairs are not refined further than this."""

_DECADES: Final = 5
"""Datasets are made for so many powers of ten of delta at once."""

_CUT: Final = 1e-3
"""Share of delta that the dominating pairs may put at infinity, in all."""


def composed_epsilon(laws: Laws, *, delta: float, tell: Progress = silent) -> Bound:
    """Return a certified bracket of epsilon (nats) for all `laws` together, more than one run, delta in [0, 1).

    At least the largest lower end of a single round, at most the sum of their upper ends at equal shares of delta.

    >>> import hushuffle as hs
    >>> from hushuffle.curves.divergence import divergence
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.1), shuffler=hs.NoShuffle(), n=1)
    >>> print(composed_epsilon([(divergence(local), 100)], delta=1e-6))
    4.775 nats (certified bracket)
    """
    sources, total = _sources(laws), total_pure(laws)
    laws = [(law, times) for law, times in laws if law.pure > 0]
    if not laws:
        return Bound.exact(0.0, unit="nats", sources=sources)
    if delta == 0:
        return _sum_of_pure(laws, total, sources)
    tell("upper end of all rounds together", 0.0)
    upper = upper_epsilon(laws, delta=delta)
    if any(law.certain > delta for law, _ in laws):
        return Bound.exact(math.inf, unit="nats", sources=sources, witness=laws[0][0].lower(0.0)[1])
    if _beyond_lattices(spread(laws)):
        alone = max((law.epsilon(delta) for law, _ in laws), key=lambda figure: figure.lower)
        exact = alone.lower == total
        return bracket(alone.lower, total, unit="nats", sources=sources, witness=alone.witness, exact=exact)
    tell("lower end: datasets of all rounds together", 0.5)
    lower, witness = _lower_epsilon(laws, delta, upper)
    return bracket(lower, upper, unit="nats", sources=sources, witness=witness)


def upper_epsilon(laws: Laws, *, delta: float) -> float:
    """Return an upper end of epsilon (nats) for all `laws` together, delta in [0, 1).

    Raises:
        NumericalError: delta is positive and too small for floats.
    """
    if 0 < delta < _TINIEST:
        message = f"delta = {delta!r} is below {_TINIEST:g}, where floats lose their digits. Ask for delta = 0 instead."
        raise NumericalError(message)
    laws, total = [(law, times) for law, times in spread(laws) if law.pure > 0], total_pure(laws)
    if delta == 0 or not laws:
        return total
    if any(law.certain > delta for law, _ in laws):
        return math.inf
    return total if _beyond_lattices(laws) else _upper_epsilon(laws, delta, total)


def composed_delta(laws: Laws, *, epsilon: float, made: Made | None = None) -> Bound:
    """Return a certified bracket of delta for all `laws` together, more than one run, at `epsilon` >= 0.

    At least the largest lower end of a single round, at most the sum of their upper ends at equal shares of epsilon.
    What other epsilons of the same laws need as well is kept in `made`.
    """
    made, alone = ({}, True) if made is None else (made, False)
    sources, total = _sources(laws), total_pure(laws)
    laws = [(law, times) for law, times in laws if law.pure > 0] or laws
    if epsilon >= total:
        return Bound.exact(0.0, unit="probability", sources=sources, witness=laws[0][0].lower(0.0)[1])
    best = max((law.delta(epsilon) for law, _ in laws), key=lambda figure: figure.lower)
    lower, witness = best.lower, best.witness
    if _beyond_lattices(spread(laws)):
        return bracket(lower, 1.0, unit="probability", sources=sources, witness=witness, exact=lower == 1)
    upper = upper_delta(laws, epsilon=epsilon, made=made)
    size = max(upper, 1e-250)
    if not alone:
        size = max(10.0 ** -(math.ceil(-math.log10(size) / _DECADES) * _DECADES), 1e-250)
    for pairs, lattices in _inscribed(laws, size, made):
        found = LossSum.of(lattices, tilt=best_tilt(lattices, epsilon=epsilon)).lower(epsilon)
        if found > lower:
            lower, witness = found, _describe(pairs)
    return bracket(lower, upper, unit="probability", sources=sources, witness=witness)


def upper_delta(laws: Laws, *, epsilon: float, made: Made) -> float:
    """Return an upper end of delta at `epsilon` >= 0; what other epsilons need as well is kept in `made`."""
    if epsilon >= total_pure(laws):
        return 0.0
    laws = [(law, times) for law, times in spread(laws) if law.pure > 0]
    if _beyond_lattices(laws):
        return 1.0
    share = epsilon / _rounds(laws)
    plain = math.fsum(times * law.upper(share) for law, times in laws) * (1 + 2.0**-50)
    return min(plain, _upper_delta(laws, epsilon, made), 1.0)


def upper_near(laws: Laws, *, epsilon: float, delta: float) -> float:
    """Return an upper end of the divergence of all `laws` together at `epsilon`, as good as it matters at `delta`."""
    laws = [(law, times) for law, times in spread(laws) if law.pure > 0]
    if not laws or epsilon >= total_pure(laws):
        return 0.0
    if _beyond_lattices(laws):
        return 1.0
    parts = [(curve.pair(), times) for curve, times in Tables(laws, delta=delta).curves([times for _, times in laws])]
    return LossSum.of(parts, tilt=best_tilt(parts, delta=delta)).upper(epsilon)


class Tables:
    """The dominating pairs of laws, tabulated for `delta` and any number of rounds: what `composed_epsilon` adds up.

    A table is made once for each lattice step and kept as far as `rounds` of it need.
    """

    def __init__(self, laws: Laws, *, delta: float) -> None:
        self._laws, self._delta = laws, delta
        self._made: dict[tuple[int, float, float], TabulatedCurve] = {}

    def curves(self, times: Sequence[int], *, most: int = 0) -> list[tuple[TabulatedCurve, int]]:
        """Return the curves for so many rounds of each law, from tables that also do for `most` rounds in all."""
        laws = [(law, count) for (law, _), count in zip(self._laws, times, strict=True)]
        step, share = common_step(laws), _CUT * self._delta
        rounds = sum(times)
        made = share / max(most, rounds)
        return [(self._table(place, step, made).until(share / rounds), count) for place, count in enumerate(times)]

    def _table(self, place: int, step: float, negligible: float) -> TabulatedCurve:
        key = place, step, negligible
        if key not in self._made:
            self._made = {known: table for known, table in self._made.items() if known[1:] == key[1:]}
            self._made[key] = TabulatedCurve.of(self._laws[place][0], step=step, negligible=negligible)
        return self._made[key]


def rounds_meet(law: PrivacyCurve, *, epsilon: float, delta: float, most: int) -> Callable[[int], bool]:
    """Return a function of T <= `most`: whether T runs of one law meet (epsilon, delta), as `composed_epsilon` sees it.

    It can differ from it in the last digits, since one table is shared by all T.
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
    """Return the sum of the pure guarantees, rounded up."""
    total = math.fsum(times * law.pure for law, times in laws)
    return total * (1 + 2.0**-50)


def _beyond_lattices(laws: Laws) -> bool:
    """Whether a round gives a value away for certain, or as good as, at every epsilon that a lattice reaches."""
    return any(law.upper(LARGEST) >= 1 for law, _ in laws)


def _upper_epsilon(laws: Laws, delta: float, total: float) -> float:
    """Return an upper end, at most `total` and the plain sum of single rounds."""
    curves = Tables(laws, delta=delta).curves([times for _, times in laws])
    parts = [(curve.pair(), times) for curve, times in curves]
    losses = LossSum.of(parts, tilt=best_tilt(parts, delta=delta))
    upper = losses.epsilon_above(delta, high=min(total, LARGEST))
    if total > LARGEST and losses.upper(upper) > delta:
        upper = total
    # Not even with the curves read as far down as they go: the sum of single rounds is seldom smaller.
    least = _ALMOST * math.fsum(times * curve.last_above(delta / _rounds(laws)) for curve, times in curves)
    return min(upper, _plain_sum(laws, delta)) if least <= upper else upper


def _lower_epsilon(laws: Laws, delta: float, upper: float) -> tuple[float, Witness | None]:
    """Return a lower end, at least that of any single round, and its datasets."""
    step = common_step(spread(laws)) / 2
    lower, witness = 0.0, None
    for pairs in _choices(laws, delta):
        lattices = [(inscribed(pair, step=step), times) for pair, times in pairs]
        found = LossSum.of(lattices, tilt=best_tilt(lattices, delta=delta)).epsilon_below(delta)
        if witness is None or found > lower:
            lower, witness = found, _describe(pairs)
    for law in (law for law, _ in laws if law.pure > lower):
        single = law.delta(lower).lower if upper - lower > _WIDE * upper else law.lower(lower)[0]
        if single > delta:
            alone = law.epsilon(delta)
            if alone.lower > lower:
                lower, witness = alone.lower, alone.witness
    return lower, witness


def _plain_sum(laws: Laws, delta: float) -> float:
    """Return the sum of the rounds' upper ends, each at an equal share of delta."""
    share = delta / _rounds(laws)
    return math.fsum(times * law.epsilon(share).upper for law, times in laws) * (1 + 2.0**-50)


def _rounds(laws: Laws) -> int:
    return sum(times for _, times in laws)


def _sum_of_pure(laws: Laws, total: float, sources: tuple[Citation, ...]) -> Bound:
    """Return the sum of the pure guarantees: attained if each of them is."""
    figures = [(law.pure_bound(), times) for law, times in laws]
    witness = figures[0][0].witness
    if all(figure.kind == "exact" for figure, _ in figures):
        return Bound.exact(total, unit="nats", sources=sources, witness=witness)
    lower = math.fsum(times * figure.lower for figure, times in figures) * (1 - 2.0**-50)
    return bracket(lower, total, unit="nats", sources=sources, witness=witness)


def _upper_delta(laws: Laws, level: float, made: Made) -> float:
    """Return an upper end of delta; the dominating pairs are refined until what they put at infinity hardly counts."""
    rounds, negligible, upper = _rounds(laws), 1e-9, 1.0
    while True:
        if ("above", negligible) not in made:
            step = _step(laws, made)
            made["above", negligible] = [
                (TabulatedCurve.of(law, step=step, negligible=negligible / rounds).pair(), times) for law, times in laws
            ]
        parts: list[tuple[LossLattice, int]] = made["above", negligible]
        upper = min(upper, LossSum.of(parts, tilt=best_tilt(parts, epsilon=level)).upper(level))
        if sum(times * part.infinity for part, times in parts) <= 10 * _CUT * upper or negligible < _LEAST:
            return upper
        negligible *= 1e-9


def _step(laws: Laws, made: Made) -> float:
    if ("step", 0.0) not in made:
        made["step", 0.0] = common_step(spread(laws))
    step: float = made["step", 0.0]
    return step


def _inscribed(laws: Laws, delta: float, made: Made) -> list[tuple[list[Any], list[Any]]]:
    """Return the choices of datasets, and the laws of their losses on the lattice."""
    if ("below", delta) not in made:
        step = _step(laws, made)
        made["below", delta] = [
            (pairs, [(inscribed(pair, step=step / 2), times) for pair, times in pairs])
            for pairs in _choices(laws, delta)
        ]
    found: list[tuple[list[Any], list[Any]]] = made["below", delta]
    return found


def _choices(laws: Laws, delta: float) -> Iterator[list[tuple[DatasetPair, int]]]:
    """Return ways to fix datasets for all rounds; a round for which none is known is left out (post-processing)."""
    rounds = _rounds(laws)
    known = [(_comparable(law.datasets(log_tail=math.log(delta / rounds) - 8)), times) for law, times in laws]
    known = [(pairs, times) for pairs, times in known if pairs]
    if not known:
        return
    for choice in range(max(len(found) for found, _ in known)):
        pairs = [(found[min(choice, len(found) - 1)], times) for found, times in known]
        yield pairs
        yield [(pair.swapped(), times) for pair, times in pairs]


def _comparable(pairs: tuple[DatasetPair, ...]) -> list[DatasetPair]:
    """Return the pairs that say something, whichever comes first: some event of both is not in doubt altogether."""
    return [
        pair
        for pair in pairs
        if bool(np.any((pair.p > pair.p_error) & (pair.q > 0))) and bool(np.any((pair.q > pair.q_error) & (pair.p > 0)))
    ]


def _describe(pairs: list[tuple[DatasetPair, int]]) -> Witness:
    """Return the first round's datasets, with a family that says what all rounds are."""
    said = "; then ".join(f"{times:,} rounds with {pair.witness.family}" for pair, times in pairs)
    return replace(pairs[0][0].witness, family=said + (", of which the first" if len(pairs) > 1 else ""))


def _sources(laws: Laws) -> tuple[Citation, ...]:
    own = [source for law, _ in laws for source in law.sources]
    return tuple(dict.fromkeys([DOMINATING.at("Theorem 10"), DOTS, *own]))
