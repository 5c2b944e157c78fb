"""Several rounds with the same people, or side by side with different ones: what the guarantees add up to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from hushuffle import _checks
from hushuffle.analysis.dp import central
from hushuffle.laws.base import Divergence, between
from hushuffle.laws.divergence import divergence
from hushuffle.laws.loss_sum import LossLattice, LossSum, best_tilt
from hushuffle.laws.profile import DOMINATING, DOTS, Profile, common_step
from hushuffle.laws.witness_loss import Distinction, distinctions, inscribed
from hushuffle.model import Bound, Citation, Witness
from hushuffle.protocol import Protocol

Rounds: TypeAlias = Sequence[Protocol | tuple[Protocol, int]]
"""The rounds that one person takes part in: protocols, or pairs (protocol, how many times)."""

_Laws: TypeAlias = list[tuple[Divergence, int]]

_WIDE: Final = 0.05
"""A bracket wider than this share also tries the lower ends of single rounds."""

_LEAST: Final = 1e-100
"""Dominating pairs are not refined further than this."""

_FINER: Final = 1e-6
"""Where the number of rounds is not known yet, a round may put this share of the usual at infinity."""

_CUT: Final = 1e-3
"""Share of delta that the dominating pairs may put at infinity, in all."""


def compose(rounds: Rounds, *, delta: float) -> Bound:
    """Return a certified bracket of the smallest epsilon (nats) for which all rounds together are (epsilon, delta)-DP.

    Relation: replace one person's values, in every round. The others' values may change from round to round and be
    chosen in view of what was released before. The upper end holds for all datasets; the lower end
    is that of explicit datasets, the same in every round of a protocol. At delta = 0 the figure is the sum of the pure
    guarantees, which is attained. One round alone is `dp.epsilon`.

    Args:
        rounds: protocols, or pairs (protocol, times), each with randomness of its own.
        delta: in [0, 1).

    Raises:
        InvalidInputError: no rounds, times < 1, or delta out of range.
        UnsupportedProtocolError: no law for a randomizer and shuffler.
        NumericalError: the sum of all losses does not fit into memory (never observed).

    Source: theory.md section 8; Zhu, Dong, Wang 2022, Theorem 10.

    >>> import hushuffle as hs
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.1), shuffler=hs.NoShuffle(), n=1)
    >>> print(compose([(local, 100)], delta=1e-6))
    4.775 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    merged = _merge(rounds)
    if sum(times for _, times in merged) == 1:
        return central.epsilon(merged[0][0], delta=level)
    laws: _Laws = [(divergence(protocol), times) for protocol, times in merged]
    sources, total = _sources(laws), _pure(laws)
    if level == 0 or total == math.inf:
        return Bound.exact(total, unit="nats", sources=sources, witness=laws[0][0].lower(0.0)[1])
    step, negligible = common_step(laws), _CUT * level / sum(times for _, times in laws)
    parts = [(Profile.of(law, step=step, negligible=negligible).pair(), times) for law, times in laws]
    upper = LossSum.of(parts, tilt=best_tilt(parts, delta=level)).epsilon_above(level, high=total)
    lower, witness = 0.0, None
    for pairs in _choices(laws, level):
        lattices = [(inscribed(pair, step=step / 2), times) for pair, times in pairs]
        found = LossSum.of(lattices, tilt=best_tilt(lattices, delta=level)).epsilon_below(level)
        if witness is None or found > lower:
            lower, witness = found, _describe(pairs)
    if upper - lower > _WIDE * upper:
        for protocol, _ in merged:
            alone = central.epsilon(protocol, delta=level)
            if alone.lower > lower:
                lower, witness = alone.lower, alone.witness
    return between(lower, upper, unit="nats", sources=sources, witness=witness)


def compose_delta(rounds: Rounds, *, epsilon: float) -> Bound:
    """Return a certified bracket of the smallest delta for which all rounds together are (epsilon, delta)-DP.

    Relation, adversary and ends as for `compose`.

    Args:
        rounds: protocols, or pairs (protocol, times), each with randomness of its own.
        epsilon: in nats, finite, >= 0.

    Raises:
        InvalidInputError: no rounds, times < 1, or epsilon out of range.
        UnsupportedProtocolError: no law for a randomizer and shuffler.
        NumericalError: the sum of all losses does not fit into memory (never observed).

    Source: theory.md section 8; Zhu, Dong, Wang 2022, Theorem 10.

    >>> import hushuffle as hs
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
    >>> print(compose_delta([(local, 2)], epsilon=1.0))
    0.3379 (certified bracket)
    """
    level = _checks.non_negative("epsilon", epsilon)
    merged = _merge(rounds)
    if sum(times for _, times in merged) == 1:
        return central.delta(merged[0][0], epsilon=level)
    laws: _Laws = [(divergence(protocol), times) for protocol, times in merged]
    sources, total = _sources(laws), _pure(laws)
    if total == math.inf or level >= total:
        value = 1.0 if total == math.inf else 0.0
        return Bound.exact(value, unit="probability", sources=sources, witness=laws[0][0].lower(0.0)[1])
    step, upper = common_step(laws), _upper_delta(laws, level)
    lower, witness = 0.0, None
    for pairs in _choices(laws, max(upper, 1e-250)):
        lattices = [(inscribed(pair, step=step / 2), times) for pair, times in pairs]
        found = LossSum.of(lattices, tilt=best_tilt(lattices, epsilon=level)).lower(level)
        if witness is None or found > lower:
            lower, witness = found, _describe(pairs)
    return between(lower, upper, unit="probability", sources=sources, witness=witness)


def parallel(protocols: Sequence[Protocol], *, delta: float) -> Bound:
    """Return a certified bracket of epsilon (nats) for collections from disjoint sets of people: the largest.

    One person takes part in one of them only, and which one does not depend on anybody's value.

    Raises:
        InvalidInputError: no protocols, or delta out of range.
        UnsupportedProtocolError: no law for a randomizer and shuffler.

    Source: theory.md section 6 (scramblers side by side take the maximum).

    >>> import hushuffle as hs
    >>> small, large = (
    ...     hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=n)
    ...     for n in (100, 10_000)
    ... )
    >>> parallel([small, large], delta=1e-6) == hs.dp.epsilon(small, delta=1e-6)
    True
    """
    level = _checks.probability("delta", delta, high_open=True)
    figures = [central.epsilon(protocol, delta=level) for protocol, _ in _merge(protocols, name="protocols")]
    worst = max(figures, key=lambda figure: figure.lower)
    upper = max(figure.upper for figure in figures)
    if upper == worst.upper:
        return worst
    return between(worst.lower, upper, unit="nats", sources=worst.sources, witness=worst.witness)


def rounds_upper(protocol: Protocol, *, epsilon: float, delta: float) -> Callable[[int], float]:
    """Return a function of T: an upper end of delta at `epsilon` for T rounds of one protocol, good near `delta`.

    The dominating pair is tabulated once, fine enough for any T that could still meet `delta`.
    """
    laws: _Laws = [(divergence(protocol), 1)]
    pair = Profile.of(laws[0][0], step=common_step(laws), negligible=_CUT * delta * _FINER).pair()

    def upper(times: int) -> float:
        if times * laws[0][0].pure <= epsilon:
            return 0.0
        if times == 1:
            return laws[0][0].upper(epsilon)
        parts = [(pair, times)]
        return LossSum.of(parts, tilt=best_tilt(parts, epsilon=epsilon)).upper(epsilon)

    return upper


def _merge(rounds: Rounds, *, name: str = "rounds") -> list[tuple[Protocol, int]]:
    """Return the different protocols with how often each takes place."""
    merged: list[tuple[Protocol, int]] = []
    for item in rounds:
        protocol, count = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
        if not isinstance(protocol, Protocol):
            hint = "For example [(survey, 12)] for twelve rounds of one survey."
            _checks.reject(name, "protocols or pairs (protocol, times)", f"<{type(protocol).__name__}>", hint)
        times = _checks.integer("times", count, low=1)
        place = next((index for index, (other, _) in enumerate(merged) if other == protocol), None)
        if place is None:
            merged.append((protocol, times))
        else:
            merged[place] = protocol, merged[place][1] + times
    if not merged:
        _checks.reject(name, "at least one protocol", "none")
    return merged


def _pure(laws: _Laws) -> float:
    """Return the sum of the pure guarantees, rounded up."""
    total = math.fsum(times * law.pure for law, times in laws)
    return total * (1 + 2.0**-50)


def _upper_delta(laws: _Laws, level: float) -> float:
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


def _choices(laws: _Laws, delta: float) -> Iterator[list[tuple[Distinction, int]]]:
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


def _sources(laws: _Laws) -> tuple[Citation, ...]:
    own = [source for law, _ in laws for source in law.sources]
    return tuple(dict.fromkeys([DOMINATING.at("Theorem 10"), DOTS, *own]))
