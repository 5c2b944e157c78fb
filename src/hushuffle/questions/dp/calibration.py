"""Calibration: the least noise, or the fewest people, for a target central epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from hushuffle import _checks
from hushuffle.curves.pairs.composition import rounds_meet, upper_near
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals, Scrambler
from hushuffle.model import Bound, Progress, number, silent
from hushuffle.questions.dp import central
from hushuffle.questions.dp.composition import compose

Parameter = Literal["epsilon", "n", "dummies", "messages", "rounds"]
"""The parameter solved for: local epsilon, or the number of people, dummies, additional messages or rounds."""

LARGEST_LOCAL: Final = 40.0
"""Largest local epsilon that is tried (a report is false with a probability of about exp(-40))."""

MOST_PEOPLE: Final = 10**9
"""Largest number of people, dummies or rounds that is tried."""

_RESOLUTION: Final = 1e-4
"""Relative resolution of the search, which is about the width of the certified brackets."""

_HAIR: Final = 1e-6
"""Relative distance above the crossing at which a search for epsilon ends."""

_SMALLEST: Final = 1e-12
_FAR: Final = 50.0


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A solved parameter: a value that meets the target, and a neighbouring value that misses it.

    `bound` is central epsilon of `protocol` at `delta`, with the parameter at `value`; its upper bound is at most the
    target `epsilon`. `beyond`, within 0.01 % of `value` (or the next integer), misses the target: its epsilon is
    `beyond_bound`, or None outside the parameter's range. `protocol` contains `value`, except for "rounds".
    """

    parameter: Parameter
    value: float
    bound: Bound
    beyond: float
    beyond_bound: Bound | None
    epsilon: float
    delta: float
    protocol: Protocol

    def __str__(self) -> str:
        value = f"{self.value:.6g}" if self.parameter in ("epsilon", "messages") else f"{self.value:,.0f}"
        return f"{self.parameter} = {value}: epsilon {self.bound} at delta = {self.delta:g}"


def calibrate(
    protocol: Protocol,
    *,
    parameter: Parameter,
    epsilon: float,
    delta: float,
    reports_per_person: int = 1,
    rounds: int = 1,
    progress: Progress | None = None,
) -> Calibration:
    """Return the least private value of one parameter for which the certified central epsilon is at most `epsilon`.

    The value is the largest local epsilon, the smallest n, the smallest number of dummies or of additional messages, or
    the largest number of rounds. Everything else is as in `protocol`. The certified upper bound at the returned value
    was computed and meets the target. The value is optimal up to 0.01 % and the width of the brackets, if the
    divergence grows with the local epsilon (a smaller one is a post-processing) and falls with n (one more report can
    be given to the adversary). This is proven for k-ary randomized response and a uniform shuffle, otherwise assumed.

    Args:
        protocol: the collection; its own value of the parameter is where the search starts.
        parameter: "epsilon" (local epsilon of the randomizer, nats), "n" (number of people), "dummies" (the
            shuffler is replaced by a scrambler), "messages" (additional messages of each person, on average: of
            BlanketMessages or FakesPerValue) or "rounds" (repetitions of the collection among the same people).
        epsilon: the target for central epsilon in nats, from 0 to 40.
        delta: in (0, 1).
        reports_per_person: the largest number of the n reports from one person, as for `dp.epsilon`.
        rounds: how often the same people take part (unless it is the parameter); the target is for all rounds
            together, composed by `dp.compose`.
        progress: called with the value that is tried and the approximate completed fraction of the search, 0 to 1.

    Raises:
        InvalidInputError: an argument out of range, a target that no value of the parameter meets, or with "messages" a
            delta below the error of drawing their number in units of 2**-64.
        UnsupportedProtocolError: the randomizer has no epsilon to choose, the shuffler takes no dummies, or the
            central epsilon is not available.

    Source: bisection on the certified upper bound, see `hushuffle.dp.epsilon`.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(hs.dp.calibrate(survey, parameter="epsilon", epsilon=0.1, delta=1e-6))
    epsilon = 0.820233: epsilon 0.10000 nats (certified bracket) at delta = 1e-06
    """
    _checks.of_type("protocol", protocol, Protocol)
    if parameter not in get_args(Parameter):
        _checks.reject("parameter", f"one of {', '.join(get_args(Parameter))}", repr(parameter))
    target = _checks.non_negative("epsilon", epsilon)
    if target > LARGEST_LOCAL:
        hint = "A larger epsilon guarantees nothing."
        _checks.reject("epsilon", f"at most {LARGEST_LOCAL:g} as a target", target, hint)
    wanted = _Wanted(
        epsilon=target,
        delta=_checks.probability("delta", delta, low_open=True, high_open=True),
        reports=_checks.integer("reports_per_person", reports_per_person, low=1),
        rounds=_checks.integer("rounds", rounds, low=1),
        tell=progress or silent,
    )
    if parameter == "rounds" and wanted.rounds > 1:
        _checks.reject("rounds", "omitted if it is the parameter to solve for", wanted.rounds)
    calibration = _solved(protocol, parameter, wanted)
    wanted.tell("done", 1.0)
    return calibration


def _solved(protocol: Protocol, parameter: Parameter, wanted: _Wanted) -> Calibration:
    search = {"epsilon": _local_epsilon, "rounds": _rounds, "dummies": _dummies, "messages": _messages}.get(parameter)
    if search is not None:
        return search(protocol, wanted)
    if math.isinf(protocol.randomizer.local_epsilon) and protocol.shuffler.tossed is None:
        hint = "Without noise, no number of people protects: choose a finite local epsilon first."
        if protocol.shuffler.value_law is not None:
            hint = "The protection of the shuffler's dummies does not grow with n: compute the epsilon instead."
        _checks.reject("epsilon", "a target that some n meets", wanted.epsilon, hint)

    def build(n: float) -> Protocol:
        return replace(protocol, n=int(n))

    followed = _Followed(lambda n: wanted.excess(build(n)), "n", wanted.tell)
    interval = smallest_people(followed, start=protocol.n, target=wanted.epsilon)
    return _calibration("n", interval, build, wanted)


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """The target epsilon and delta, for at most `reports` of each person in each of `rounds` rounds."""

    epsilon: float
    delta: float
    reports: int
    rounds: int
    tell: Progress

    def excess(self, protocol: Protocol) -> float:
        """Return the `excess` of `protocol` at this target; at most 0 if the protocol meets the target."""
        return excess(protocol, self.epsilon, self.delta, reports_per_person=self.reports, rounds=self.rounds)

    def bound(self, protocol: Protocol, rounds: int | None = None) -> Bound:
        """Return the certified central epsilon of all rounds of `protocol`."""
        return compose([(central.per_person(protocol, reports=self.reports), rounds or self.rounds)], delta=self.delta)


class _Followed:
    """A function that returns the excess at a value and reports progress: the value, and the state of the search."""

    def __init__(self, excess_at: Callable[[float], float], name: str, tell: Progress, *, start: int = 0) -> None:
        self._excess_at, self._name, self._tell, self._start = excess_at, name, tell, start
        self._ends: dict[bool, float] = {}
        self._widest = 0.0

    def __call__(self, value: float) -> float:
        self._tell(f"trying {self._name} = {value - self._start:,.6g}", self._share())
        excess = self._excess_at(value)
        self._ends[excess <= 0] = value
        return excess

    def _share(self) -> float:
        if len(self._ends) < 2:
            return 0.0
        apart = max(abs(math.log(self._ends[True] / self._ends[False])), _RESOLUTION)
        self._widest = max(self._widest, apart, 2 * _RESOLUTION)
        return 0.9 * math.log(self._widest / apart) / math.log(self._widest / _RESOLUTION)


def with_local_epsilon(protocol: Protocol, epsilon: float) -> Protocol:
    """Return the protocol with this local epsilon (nats) in its randomizer.

    Raises:
        UnsupportedProtocolError: the randomizer has no parameter epsilon.
    """
    return replace(protocol, randomizer=protocol.randomizer.with_epsilon(epsilon))


def excess(protocol: Protocol, epsilon: float, delta: float, *, reports_per_person: int = 1, rounds: int = 1) -> float:
    """Return ln(upper bound on delta at `epsilon` / `delta`), clipped to [-50, 50]: at most 0 meets the target."""
    law = privacy_curve(protocol, reports_per_person)
    if rounds * law.pure <= epsilon:
        return -_FAR
    alone = rounds == reports_per_person == 1
    value = law.near(delta).upper(epsilon) if alone else upper_near([(law, rounds)], epsilon=epsilon, delta=delta)
    if value <= delta:
        return -_FAR if value == 0 else max(math.log(value / delta), -_FAR)
    return max(min(math.log(value / delta), _FAR), 1e-15)


def smallest_people(excess_at: Callable[[int], float], *, start: int, target: float) -> tuple[int, int]:
    """Return (n, m): n people meet the target; m < n people, within 0.01 % or 1 of n, miss it (m = 0 if n = 1).

    Raises:
        InvalidInputError: not even 10**9 people are enough.
    """
    good = bad = min(start, MOST_PEOPLE)
    while excess_at(good) > 0:
        if good >= MOST_PEOPLE:
            hint = "Use a smaller local epsilon (more noise), or allow a larger epsilon or delta."
            _checks.reject("epsilon", f"a target that some n up to {MOST_PEOPLE:,} meets", target, hint)
        bad, good = good, min(4 * good, MOST_PEOPLE)
    while bad >= good:
        bad = good // 4
        if bad >= 1 and excess_at(bad) <= 0:
            good = bad
    if bad == 0:
        if good == 1 or excess_at(1) <= 0:
            return 1, 0
        bad = 1
    interval = narrowed(lambda x: excess_at(round(x)), float(good), float(bad), whole=True)
    return round(interval[0]), round(interval[1])


def _dummies(protocol: Protocol, wanted: _Wanted) -> Calibration:
    if protocol.shuffler.reveals is not Reveals.MULTISET:
        _checks.unsupported(f"{type(protocol.shuffler).__name__} supports no dummies. Use UniformShuffle or Scrambler.")

    def build(value: float) -> Protocol:
        return replace(protocol, shuffler=Scrambler(dummies=int(value)))

    # The search counts from one, as for people.
    start = max(round(protocol.shuffler.expected_dummies), 1) + 1
    followed = _Followed(lambda m: wanted.excess(build(m - 1)), "dummies", wanted.tell, start=1)
    interval = smallest_people(followed, start=start, target=wanted.epsilon)
    return _calibration("dummies", (interval[0] - 1, interval[1] - 1), build, wanted)


def _messages(protocol: Protocol, wanted: _Wanted) -> Calibration:
    shuffler = protocol.shuffler

    def build(value: float) -> Protocol:
        return replace(protocol, shuffler=shuffler.with_own_messages(value))

    followed = _Followed(lambda value: wanted.excess(build(value)), "messages", wanted.tell)
    most = shuffler.best_own_messages
    good = bad = min(shuffler.own_messages or min(1.0, most / 2), most)
    while followed(good) > 0:
        _refuse_fine(build(good), wanted)
        if good >= most:
            hint = "Ask more people, or allow a larger epsilon or delta."
            _checks.reject("epsilon", "a value that some number of messages achieves", wanted.epsilon, hint)
        bad, good = good, min(4 * good, most)
    while bad >= good:
        bad = good / 4
        if bad <= _SMALLEST:  # the noise of the reports alone meets the target
            return _calibration("messages", (good, 0.0), build, wanted)
        good = bad if followed(bad) <= 0 else good
    return _calibration("messages", narrowed(followed, good, bad, whole=False), build, wanted)


def _refuse_fine(protocol: Protocol, wanted: _Wanted) -> None:
    """Refuse a delta below the error of drawing the number of messages, which no epsilon can meet."""
    parts = privacy_curve(protocol, wanted.reports).parts
    lost = wanted.rounds * sum(times * part.floor for part, times in parts)
    if lost >= wanted.delta:
        hint = "The number of messages is drawn in parts of 2**-64. With p = 1 it is not drawn."
        _checks.reject("delta", f"above {number(lost, up=True)} with so many messages", wanted.delta, hint)


def _rounds(protocol: Protocol, wanted: _Wanted) -> Calibration:
    target, level = wanted.epsilon, wanted.delta
    ((part, each),) = privacy_curve(protocol, wanted.reports).parts
    together = rounds_meet(part, epsilon=target, delta=level, most=each * MOST_PEOPLE)

    followed = _Followed(lambda times: -1.0 if together(int(times) * each) else 1.0, "rounds", wanted.tell)

    def meet(times: int) -> bool:
        return followed(times) <= 0

    if not meet(1):
        hint = "A single round already exceeds the target: use more noise, or ask more people."
        _checks.reject("epsilon", "a target that one round meets", target, hint)
    good, bad = 1, 2
    while meet(bad):
        if bad >= MOST_PEOPLE:
            hint = f"Even {bad:,} rounds meet the target, so no limit of rounds is needed."
            _checks.reject("epsilon", "small enough that it limits the number of rounds", target, hint)
        good, bad = bad, min(2 * bad, MOST_PEOPLE)
    while bad - good > 1 and math.log(bad / good) > _RESOLUTION:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if meet(middle) else (good, middle)
    bound, there = (wanted.bound(protocol, times) for times in (good, bad))
    # The returned bound is that of `compose`, which can differ from the search in the last digits.
    least = target * (1 + _HAIR)
    while good > 1 and bound.upper > least:
        bad, there = good, bound
        good -= max(1, int(good * _RESOLUTION))
        bound = wanted.bound(protocol, good)
    while there.upper <= target:
        good, bound = bad, there
        bad += max(1, int(bad * _RESOLUTION))
        there = wanted.bound(protocol, bad)
    return Calibration(
        parameter="rounds",
        value=good,
        bound=replace(bound, lower=min(bound.lower, target), upper=min(bound.upper, target)),
        beyond=bad,
        beyond_bound=there,
        epsilon=target,
        delta=level,
        protocol=protocol,
    )


def _local_epsilon(protocol: Protocol, wanted: _Wanted) -> Calibration:
    target = wanted.epsilon / (wanted.reports * wanted.rounds)

    def build(value: float) -> Protocol:
        return with_local_epsilon(protocol, value)

    excess_at = _Followed(lambda value: wanted.excess(build(value)), "epsilon", wanted.tell)
    own = protocol.randomizer.local_epsilon
    good = bad = max(target, min(own, LARGEST_LOCAL) if math.isfinite(own) else 1.0, _SMALLEST)
    while excess_at(good) > 0:
        if good <= _SMALLEST:
            hint = "Even nearly uniform reports exceed the target: allow a larger epsilon or delta."
            _checks.reject("epsilon", "a value that some local epsilon achieves", wanted.epsilon, hint)
        bad, good = good, max(good / 2, target, _SMALLEST)
    while bad <= good:
        if good >= LARGEST_LOCAL:
            return _calibration("epsilon", (good, math.inf), build, wanted)
        bad = min(2 * good, LARGEST_LOCAL)
        if excess_at(bad) <= 0:
            good = bad
    return _calibration("epsilon", narrowed(excess_at, good, bad, whole=False), build, wanted)


def narrowed(excess_at: Callable[[float], float], good: float, bad: float, *, whole: bool) -> tuple[float, float]:
    """Narrow the interval from `good`, which meets the target, to `bad`, which misses it."""
    ends = {True: (good, excess_at(good)), False: (bad, excess_at(bad))}
    turn = 0
    while True:
        (good, low), (bad, high) = ends[True], ends[False]
        if abs(math.log(bad / good)) <= _RESOLUTION or (whole and abs(bad - good) <= 1):
            return good, bad
        # A little beyond the root as seen from the nearer end, so that both bounds move.
        share = 0.5 if turn % 2 else min(max(-low / (high - low) * (0.98 if turn % 4 else 1.02), 0.05), 0.95)
        point = good * (bad / good) ** share
        if whole:
            point = min(max(round(point), min(good, bad) + 1), max(good, bad) - 1)
        value = excess_at(point)
        ends[value <= 0] = (point, value)
        turn += 1


def _calibration(
    parameter: Parameter, interval: tuple[float, float], build: Callable[[float], Protocol], wanted: _Wanted
) -> Calibration:
    (value, beyond), target = interval, wanted.epsilon
    wanted.tell("central epsilon at what was found", 0.9)
    protocol = build(value)
    bound = wanted.bound(protocol)
    # The search for epsilon ends slightly above the crossing; the target itself was evaluated and is met.
    bound = replace(bound, lower=min(bound.lower, target), upper=min(bound.upper, target))
    possible = (beyond >= 0 if parameter == "dummies" else beyond > 0) and beyond < math.inf
    return Calibration(
        parameter=parameter,
        value=value,
        bound=bound,
        beyond=beyond,
        beyond_bound=wanted.bound(build(beyond)) if possible else None,
        epsilon=target,
        delta=wanted.delta,
        protocol=protocol,
    )
