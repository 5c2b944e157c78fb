"""Composition of guarantees: several rounds with the same people, or parallel rounds with different people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve, bracket, spread
from hushuffle.curves.pairs import composition as laws
from hushuffle.curves.pairs.composition import ComposedCurve
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound, Progress, silent
from hushuffle.questions.dp.central import Round, round_curve

T = TypeVar("T")

ROUNDS: Final = (Protocol, MixedProtocol, SplitAndMix, PrivacyCurve)

MOST_ROUNDS: Final = 10**9
"""Maximum number of rounds of one person, and of reports in all rounds (floats lose digits beyond)."""

Rounds: TypeAlias = Sequence[Round | tuple[Round, int]]
"""The rounds of one person, each given as a round or as a pair (round, number of times)."""


def compose(rounds: Rounds, *, delta: float, progress: Progress | None = None) -> Bound:
    """Return a certified bracket of the smallest epsilon (nats) for which all rounds together are (epsilon, delta)-DP.

    Relation: replace one person's values in every round. Other people's values may change from round to round and
    depend on earlier releases. The choice of rounds in which the person takes part may depend on them, too, up to the
    listed numbers; rounds without the person add no loss. The upper bound holds for all datasets; the lower bound is
    attained by explicit datasets, the same in every round of a protocol. At delta = 0 the result is the sum of the pure
    guarantees, which is attained. For a single round the result is that of `dp.epsilon`.

    Args:
        rounds: protocols (or what `dp.per_person` or `dp.from_pld` gives), or pairs (protocol, times), each with
            randomness of its own; 10**9 rounds in all, at most.
        delta: in [0, 1).
        progress: called with the current step and the fraction completed, from 0 to 1; the call may take seconds.

    Raises:
        InvalidInputError: no rounds, too many, times < 1, or delta out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler.
        NumericalError: the sum of all losses does not fit into memory (never observed).

    Source: docs/theory/composition.md, Theorem 3; Zhu, Dong, Wang 2022, Theorem 10.

    >>> import hushuffle as hs
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.1), shuffler=hs.NoShuffle(), n=1)
    >>> print(hs.dp.compose([(local, 100)], delta=1e-6))
    4.775 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    curves = curves_of(rounds)
    if sum(times for _, times in curves) == 1:
        return curves[0][0].epsilon(level)
    tell = progress or silent
    bound = laws.composed_epsilon(curves, delta=level, tell=tell)
    tell("done", 1.0)
    return bound


def compose_delta(rounds: Rounds, *, epsilon: float) -> Bound:
    """Return a certified bracket of the smallest delta for which all rounds together are (epsilon, delta)-DP.

    Relation, adversary and bounds are as for `compose`.

    Args:
        rounds: protocols (or what `dp.per_person` or `dp.from_pld` gives), or pairs (protocol, times), each with
            randomness of its own; 10**9 rounds in all, at most.
        epsilon: in nats, finite, >= 0.

    Raises:
        InvalidInputError: no rounds, too many, times < 1, or epsilon out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler.
        NumericalError: the sum of all losses does not fit into memory (never observed).

    Source: docs/theory/composition.md, Theorem 3; Zhu, Dong, Wang 2022, Theorem 10.

    >>> import hushuffle as hs
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
    >>> print(hs.dp.compose_delta([(local, 2)], epsilon=1.0))
    0.3379 (certified bracket)
    """
    level = _checks.non_negative("epsilon", epsilon)
    curves = curves_of(rounds)
    if sum(times for _, times in curves) == 1:
        return curves[0][0].delta(level)
    return laws.composed_delta(curves, epsilon=level)


def parallel(protocols: Sequence[Round | tuple[Round, int] | Rounds], *, delta: float) -> Bound:
    """Return a certified bracket of epsilon (nats) for disjoint groups of people: the largest epsilon of a group.

    Every person is in one group, which must not depend on any person's value. A round with several groups is listed
    for each of these groups, with all its participants as n. A round without a group adds no loss to that group.

    Args:
        protocols: the rounds of every group: a protocol, a pair (protocol, times), or a list of these.
        delta: in [0, 1).

    Raises:
        InvalidInputError: no protocols, or delta out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler.

    Source: docs/theory/composition.md, Lemma 6.

    >>> import hushuffle as hs
    >>> small, large = (
    ...     hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=n)
    ...     for n in (100, 10_000)
    ... )
    >>> hs.dp.parallel([small, large], delta=1e-6) == hs.dp.epsilon(small, delta=1e-6)
    True
    >>> odd_weeks, even_weeks = [(large, 26), small], [(large, 26)]
    >>> hs.dp.parallel([odd_weeks, even_weeks], delta=1e-6) == hs.dp.compose(odd_weeks, delta=1e-6)
    True
    """
    level = _checks.probability("delta", delta, high_open=True)
    groups: list[list[tuple[Round, int]]] = []
    for group in _listed(protocols, "protocols"):
        rounds = [group] if isinstance(group, (*ROUNDS, tuple)) else group
        merged = _merge(rounds, name="protocols")
        if merged not in groups:
            groups.append(merged)
    if not groups:
        _checks.reject("protocols", "at least one protocol", "none")
    figures = [compose(group, delta=level) for group in groups]
    worst = max(figures, key=lambda figure: figure.lower)
    upper = max(figure.upper for figure in figures)
    if upper == worst.upper:
        return worst
    return bracket(worst.lower, upper, unit="nats", sources=worst.sources, witness=worst.witness)


def _listed(values: Iterable[T], name: str) -> Iterable[T]:
    if not isinstance(values, Iterable) or isinstance(values, Mapping | str | bytes):
        _checks.reject(name, "a list of protocols or pairs (protocol, times)", f"<{type(values).__name__}>")
    return values


def curves_of(rounds: Round | Rounds) -> list[tuple[PrivacyCurve, int]]:
    """The privacy curve of each round, and the number of times that it takes place."""
    curves: list[tuple[PrivacyCurve, int]] = []
    for item, times in merged(rounds):
        curve = round_curve(item)
        same = curve.laws if isinstance(curve, ComposedCurve) else [(curve, 1)]
        curves += [(law, times * each) for law, each in same]
    reports = sum(times for _, times in spread(curves))
    if reports > MOST_ROUNDS:
        hint = "If each person gives several reports, each report counts."
        _checks.reject("times", f"at most {MOST_ROUNDS:,} in all rounds together", f"{reports:,}", hint)
    return curves


def curve_of(rounds: Round | Rounds) -> PrivacyCurve:
    """The privacy curve of one protocol, or of the composition of all rounds."""
    curves = curves_of(rounds)
    return curves[0][0] if sum(times for _, times in curves) == 1 else ComposedCurve(laws=curves)


def merged(rounds: Round | Rounds) -> list[tuple[Round, int]]:
    """Each different round with its number of times; a round without a number counts once."""
    return _merge([rounds] if isinstance(rounds, ROUNDS) else rounds)


def _merge(rounds: Rounds, *, name: str = "rounds") -> list[tuple[Round, int]]:
    merged: list[tuple[Round, int]] = []
    for item in _listed(rounds, name):
        protocol, count = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
        if not isinstance(protocol, ROUNDS):
            hint = "For twelve rounds of one survey, pass [(survey, 12)]."
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
