"""Composition of guarantees: rounds with the same people, with memoised reports, or with different people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeAlias, TypeVar

import numpy as np

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve, bracket, spread
from hushuffle.curves.pairs import composition as laws
from hushuffle.curves.pairs.composition import ComposedCurve
from hushuffle.curves.question import Memory, Question
from hushuffle.curves.search import solve
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.report_law import Symmetric
from hushuffle.mechanisms.shufflers import Reveals
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
    depend on earlier releases. Whether the person takes part in a round may also depend on earlier releases, if the
    person takes part in each protocol at most as often as listed (`times`); rounds without the person add no loss. The
    upper bound holds for all datasets; the lower bound is attained by explicit datasets, the same in every round of a
    protocol. At delta = 0 the result is the sum of the pure guarantees, which is attained. For a single round the
    result is that of `dp.epsilon`.

    Args:
        rounds: protocols (or what `dp.per_person` or `dp.from_pld` gives), or pairs (protocol, times), each with
            randomness of its own; 10**9 rounds in all, at most.
        delta: in [0, 1).
        progress: a function of the current step and the completed fraction (0 to 1), called while the work goes on.

    Raises:
        InvalidInputError: no rounds, too many, times < 1, or delta out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler.

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

    Relation: replace one person's values in every round, as for `dp.compose`.

    Args:
        rounds: protocols (or what `dp.per_person` or `dp.from_pld` gives), or pairs (protocol, times), each with
            randomness of its own; 10**9 rounds in all, at most.
        epsilon: in nats, finite, >= 0.

    Raises:
        InvalidInputError: no rounds, too many, times < 1, or epsilon out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler.

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

    Every person is in one group, which must not depend on any person's value. List the rounds in which each group
    takes part; n counts all participants of a round, also of other groups. Other rounds cost the group nothing.

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


def waves(
    protocol: Protocol, *, waves: int, delta: float, instantaneous: Mechanism | None = None, changes: int = 0
) -> Bound:
    """Return a bracket of epsilon (nats) of several waves of collection together, with memoised reports.

    Every client draws a permanent report once and reuses it while its value stays. In every wave it sends this report,
    or a fresh randomization of it, and each wave is shuffled separately. Relation: replace one person's values in all
    waves. The waves at which the values change (at most `changes` times), or return to an earlier value whose report is
    reused, are the same in the two datasets. Without changes, epsilon of all waves is that of one shuffle of the
    permanent reports. A change draws a new report. Since other reports stay the same, two waves reveal the old and the
    new report (`change_shows`), unless each wave adds fresh randomness. With fresh reports in every wave, epsilon is
    `dp.compose([(protocol, waves)])`, which grows without limit.

    Args:
        protocol: the permanent reports: randomizer, shuffler (without dummies or random bits of servers) and n, the
            people who take part in every wave with a constant value. Other participants are not counted.
        waves: number of collections.
        delta: in [0, 1). With delta = 0 the result is the epsilon against a compromised shuffler.
        instantaneous: the randomizer that each wave applies to the permanent report; None sends this report itself.
        changes: largest number of changes of one person's value; each draws a new permanent report, or reuses that of
            an earlier value.

    Raises:
        InvalidInputError: fewer than one wave, a negative number of changes, delta out of range, or an instantaneous
            randomizer whose number of values is not the number of possible permanent reports.
        UnsupportedProtocolError: the shuffler adds dummies or random bits; or `instantaneous` is given although only
            sums are released; or there is no bound for this randomizer and shuffler.

    Source: docs/theory/composition.md, Theorem 11 and Remark 12; Erlingsson, Pihur, Korolova 2014 (both randomizers).

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(hs.dp.waves(survey, waves=365, delta=1e-6))
    0.3234 nats (certified bracket)
    >>> print(hs.dp.compose([(survey, 365)], delta=1e-6))
    7.386 to 7.518 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    return solve(wave_question(protocol, waves, instantaneous=instantaneous, changes=changes)).epsilon(level)


def wave_question(
    protocol: Protocol | MixedProtocol, waves: int, *, instantaneous: Mechanism | None = None, changes: int = 0
) -> Question:
    """The question that `waves` answers, after checks of its arguments."""
    _checks.of_type("protocol", protocol, Protocol)
    times = _checks.integer("waves", waves, low=1)
    changed = min(_checks.integer("changes", changes, low=0), times - 1)
    if instantaneous is not None:
        _checks.of_type("instantaneous", instantaneous, Mechanism)
        if protocol.reveals is Reveals.SUMS:
            _checks.unsupported(
                "An instantaneous randomizer needs reports of one number: on one-hot reports it reveals more than sums."
            )
        reports = protocol.randomizer.channel().matrix.shape[1]
        if instantaneous.inputs != reports:
            _checks.reject("instantaneous", f"for {reports} permanent reports", f"<{instantaneous.inputs} values>")
    return Question.of(protocol, rounds=times, memory=Memory(values=changed + 1, again=instantaneous))


def change_shows(protocol: Protocol) -> Bound:
    """Return the probability that a change of one person's value is visible in two waves of memoised reports.

    Both waves send the permanent reports, and no other person's report changes. The releases then differ if and only if
    the person's old and new reports differ. The result is for the two values whose reports differ most often. For local
    hashing, the lower bound is the probability that the two buckets differ, and the upper bound is 1.

    Raises:
        UnsupportedProtocolError: the mechanism has too many reports for a matrix, and no closed form.

    Source: docs/theory/composition.md, Remark 13.

    >>> import hushuffle as hs
    >>> coin = hs.RandomizedResponse.from_truth_probability(k=2, p=0.75)
    >>> print(hs.dp.change_shows(hs.Protocol(randomizer=coin, shuffler=hs.UniformShuffle(), n=1000)))
    0.6250 (exact)
    """
    _checks.of_type("protocol", protocol, Protocol)
    law = protocol.randomizer.law()
    if law.symmetric is not None:
        return Bound.exact(float(1 - _same(law.symmetric)), unit="probability")
    if law.bucket is not None:
        bucket = law.bucket
        together = bucket.truth**2 + (bucket.k - 1) * bucket.lie**2  # the two values share the bucket
        return bracket(float(1 - max(together, _same(bucket))), 1.0, unit="probability", sources=())
    if law.one_hot is not None:
        truth, noise = law.one_hot.own, law.one_hot.raised
        own, other = truth * noise + (1 - truth) * (1 - noise), noise**2 + (1 - noise) ** 2
        return Bound.exact(float(1 - own**2 * other ** (law.one_hot.k - 2)), unit="probability")
    matrix = np.asarray(law.channel().matrix, dtype=np.float64)
    alike = (matrix @ matrix.T)[~np.eye(matrix.shape[0], dtype=np.bool_)]
    return Bound.exact(float(1 - alike.min()), unit="probability")


def _same(law: Symmetric) -> Fraction:
    """Probability that independent reports of two different values are equal."""
    return 2 * law.truth * law.lie + (law.k - 2) * law.lie**2
