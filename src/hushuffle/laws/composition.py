"""Several mechanisms on the same item: what their divergences add up to.

Each law stands for one mechanism with coins of its own, however often it runs; the other people's data may change
between them, in view of what was released before. Upper ends compose the dominating pairs of the laws' own
upper ends; lower ends compose explicit datasets.

Source: theory.md section 8; Zhu, Dong, Wang 2022, Theorem 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hushuffle.errors import NumericalError
from hushuffle.laws.base import Divergence, between
from hushuffle.laws.certified_epsilon import LARGEST, certified_epsilon
from hushuffle.laws.loss_sum import LossLattice, LossSum, best_tilt
from hushuffle.laws.profile import DOMINATING, DOTS, Profile, common_step
from hushuffle.laws.witness_loss import Distinction, distinctions, inscribed
from hushuffle.model import Bound, Citation, Witness

Laws: TypeAlias = Sequence[tuple[Divergence, int]]
"""Divergences, and how often each mechanism runs."""

_TINIEST: Final = 1e-300

_WIDE: Final = 0.05
"""A bracket wider than this share also tries the lower ends of single rounds."""

_LEAST: Final = 1e-100
"""Dominating pairs are not refined further than this."""

_FINER: Final = 1e-6
"""Where the number of rounds is not known yet, a round may put this share of the usual at infinity."""

_CUT: Final = 1e-3
"""Share of delta that the dominating pairs may put at infinity, in all."""


def composed_epsilon(laws: Laws, *, delta: float) -> Bound:
    """Return a certified bracket of epsilon (nats) for all `laws` together, more than one run, delta in [0, 1).

    >>> import hushuffle as hs
    >>> from hushuffle.laws.divergence import divergence
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.1), shuffler=hs.NoShuffle(), n=1)
    >>> print(composed_epsilon([(divergence(local), 100)], delta=1e-6))
    4.775 nats (certified bracket)
    """
    sources, total = _sources(laws), total_pure(laws)
    laws = [(law, times) for law, times in laws if law.pure > 0]
    if not laws:
        return Bound.exact(0.0, unit="nats", sources=sources)
    if 0 < delta < _TINIEST:
        message = f"delta = {delta!r} is below {_TINIEST:g}, where floats lose their digits. Ask for delta = 0 instead."
        raise NumericalError(message)
    if delta == 0 or any(law.upper(LARGEST) >= 1 for law, _ in laws):
        return _sum_of_pure(laws, total, sources)
    step, negligible = common_step(laws), _CUT * delta / sum(times for _, times in laws)
    parts = [(Profile.of(law, step=step, negligible=negligible).pair(), times) for law, times in laws]
    losses = LossSum.of(parts, tilt=best_tilt(parts, delta=delta))
    upper = losses.epsilon_above(delta, high=min(total, LARGEST))
    if total > LARGEST and losses.upper(upper) > delta:
        upper = math.inf
    lower, witness = 0.0, None
    for pairs in _choices(laws, delta):
        lattices = [(inscribed(pair, step=step / 2), times) for pair, times in pairs]
        found = LossSum.of(lattices, tilt=best_tilt(lattices, delta=delta)).epsilon_below(delta)
        if witness is None or found > lower:
            lower, witness = found, _describe(pairs)
    if upper - lower > _WIDE * upper:
        for law, _ in laws:
            alone = certified_epsilon(law, delta)
            if alone.lower > lower:
                lower, witness = alone.lower, alone.witness
    return between(lower, upper, unit="nats", sources=sources, witness=witness)


def composed_delta(laws: Laws, *, epsilon: float) -> Bound:
    """Return a certified bracket of delta for all `laws` together, more than one run, at `epsilon` >= 0."""
    sources, total = _sources(laws), total_pure(laws)
    laws = [(law, times) for law, times in laws if law.pure > 0] or laws
    if epsilon >= total or any(law.upper(LARGEST) >= 1 for law, _ in laws):
        value = 1.0 if total == math.inf else 0.0
        return Bound.exact(value, unit="probability", sources=sources, witness=laws[0][0].lower(0.0)[1])
    step, upper = common_step(laws), _upper_delta(laws, epsilon)
    lower, witness = 0.0, None
    for pairs in _choices(laws, max(upper, 1e-250)):
        lattices = [(inscribed(pair, step=step / 2), times) for pair, times in pairs]
        found = LossSum.of(lattices, tilt=best_tilt(lattices, epsilon=epsilon)).lower(epsilon)
        if witness is None or found > lower:
            lower, witness = found, _describe(pairs)
    return between(lower, upper, unit="probability", sources=sources, witness=witness)


def rounds_upper(law: Divergence, *, epsilon: float, delta: float) -> Callable[[int], float]:
    """Return a function of T: an upper end of delta at `epsilon` for T runs of one law, good near `delta`.

    The dominating pair is tabulated once, fine enough for any T that could still meet `delta`.
    """
    pair = Profile.of(law, step=common_step([(law, 1)]), negligible=_CUT * delta * _FINER).pair()

    def upper(times: int) -> float:
        if times * law.pure <= epsilon:
            return 0.0
        if times == 1:
            return law.upper(epsilon)
        parts = [(pair, times)]
        return LossSum.of(parts, tilt=best_tilt(parts, epsilon=epsilon)).upper(epsilon)

    return upper


def total_pure(laws: Laws) -> float:
    """Return the sum of the pure guarantees, rounded up."""
    total = math.fsum(times * law.pure for law, times in laws)
    return total * (1 + 2.0**-50)


def _sum_of_pure(laws: Laws, total: float, sources: tuple[Citation, ...]) -> Bound:
    """Return the sum of the pure guarantees: attained if each of them is."""
    figures = [(law.pure_bound(), times) for law, times in laws]
    witness = figures[0][0].witness
    if all(figure.kind == "exact" for figure, _ in figures):
        return Bound.exact(total, unit="nats", sources=sources, witness=witness)
    lower = math.fsum(times * figure.lower for figure, times in figures) * (1 - 2.0**-50)
    return between(lower, total, unit="nats", sources=sources, witness=witness)


def _upper_delta(laws: Laws, level: float) -> float:
    """Return an upper end of delta; the dominating pairs are refined until what they put at infinity hardly counts."""
    step, rounds = common_step(laws), sum(times for _, times in laws)
    negligible, upper = 1e-9, 1.0
    while True:
        parts: list[tuple[LossLattice, int]] = [
            (Profile.of(law, step=step, negligible=negligible / rounds).pair(), times) for law, times in laws
        ]
        upper = min(upper, LossSum.of(parts, tilt=best_tilt(parts, epsilon=level)).upper(level))
        if sum(times * part.infinity for part, times in parts) <= 10 * _CUT * upper or negligible < _LEAST:
            return upper
        negligible *= 1e-9


def _choices(laws: Laws, delta: float) -> Iterator[list[tuple[Distinction, int]]]:
    """Return ways to fix datasets for all rounds; a round for which none is known is left out (post-processing)."""
    rounds = sum(times for _, times in laws)
    known = [(distinctions(law, log_tail=math.log(delta / rounds) - 8), times) for law, times in laws]
    known = [(found, times) for found, times in known if found]
    if not known:
        return
    for choice in range(max(len(found) for found, _ in known)):
        pairs = [(found[min(choice, len(found) - 1)], times) for found, times in known]
        yield pairs
        yield [(pair.swapped(), times) for pair, times in pairs]


def _describe(pairs: list[tuple[Distinction, int]]) -> Witness:
    """Return the first round's datasets, with a family that says what all rounds are."""
    said = "; then ".join(f"{times:,} rounds with {pair.witness.family}" for pair, times in pairs)
    return replace(pairs[0][0].witness, family=said + (", of which the first" if len(pairs) > 1 else ""))


def _sources(laws: Laws) -> tuple[Citation, ...]:
    own = [source for law, _ in laws for source in law.sources]
    return tuple(dict.fromkeys([DOMINATING.at("Theorem 10"), DOTS, *own]))
