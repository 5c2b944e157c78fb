"""Calibration: the least noise, or the fewest people, for a target central epsilon or a target of membership inference.

`_varied` lists what may vary, `_target` what may be required; `hushuffle.model.solver` searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from hushuffle import _checks
from hushuffle.curves.base import Laws, PrivacyCurve
from hushuffle.curves.pairs.composition import rounds_meet, total_pure, upper_near
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals, Scrambler
from hushuffle.model import Bound, Progress, number, silent
from hushuffle.model.solver import Parameter, Requirement, Solution, log_excess, solve
from hushuffle.questions.dp import central
from hushuffle.questions.dp.composition import Rounds, compose, compose_delta, curves_of
from hushuffle.questions.dp.curve import PrivacyProfile, profile

D = TypeVar("D")
Parts: TypeAlias = list[tuple[PrivacyCurve, int]]

ParameterName = Literal["epsilon", "n", "dummies", "messages", "rounds"]
"""The parameter solved for: local epsilon, or the number of people, dummies, additional messages or rounds."""

LARGEST_LOCAL: Final = 40.0
"""Largest local epsilon that is tried (a report is false with a probability of about exp(-40))."""

MOST_PEOPLE: Final = 10**9
"""Largest number of people, dummies or rounds that is tried."""

_SMALLEST: Final = 1e-12

_UNREACHABLE: Final = {
    "epsilon": ("a value that some local epsilon achieves", "Even nearly uniform reports exceed the target: allow {}."),
    "n": (
        f"a target that some n up to {MOST_PEOPLE:,} meets",
        "Use a smaller local epsilon (more noise), or allow {}.",
    ),
    "dummies": (f"a target that some number of dummies up to {MOST_PEOPLE:,} meets", "Use more noise, or allow {}."),
    "messages": ("a value that some number of messages achieves", "Ask more people, or allow {}."),
    "rounds": (
        "a target that one round meets",
        "A single round already exceeds the target: use more noise, ask more people, or allow {}.",
    ),
}
"""For each parameter: what the target must be, and what to do if no value of the parameter meets it."""


@dataclass(frozen=True, kw_only=True)
class Calibration(Solution):
    """A solved parameter: a value that meets the target, and a neighbouring value that misses it.

    `bound` is the figure of the target (for the target "epsilon": central epsilon at `delta`) with the parameter at
    `value`; its upper bound is at most the target. `beyond`, within 0.01 % of `value` (or the next integer), misses
    the target: its figure is `beyond_bound`, or None if `beyond` is outside the parameter's range. If `ends`,
    `value` has no neighbour. `monotone` is False if the search found that less private values may also meet the target.
    `protocol` is the collection with `value`, or one of the rounds. `epsilon` and `delta` are nan if not in the target.
    """

    bound: Bound
    epsilon: float
    delta: float
    protocol: Protocol
    target: str = "epsilon"

    def __str__(self) -> str:
        value = f"{self.value:.6g}" if self.parameter in ("epsilon", "messages") else f"{self.value:,.0f}"
        at = f" at delta = {self.delta:g}" if self.target == "epsilon" else ""
        return f"{self.parameter} = {value}: {self.target} {self.bound}{at}"


def calibrate(
    protocol: Protocol,
    *,
    parameter: ParameterName,
    epsilon: float | None = None,
    delta: float | None = None,
    reports_per_person: int = 1,
    rounds: int = 1,
    progress: Progress | None = None,
    advantage: float | None = None,
    tpr_at_fpr: tuple[float, float] | None = None,
    gdp_mu: float | None = None,
) -> Calibration:
    """Return the least private value of one parameter for which a certified figure is at most the target.

    The value is the largest local epsilon, the smallest n, the smallest number of dummies or of additional messages, or
    the largest number of rounds. Everything else is as in `protocol`. The certified upper bound at the returned value
    was computed and meets the target. The value is optimal up to 0.01 % and the width of the brackets if the
    divergence grows with the local epsilon and falls with n. This is proven for k-ary randomized response and a
    uniform shuffle, otherwise assumed; `monotone` is False if the search contradicts it. Give exactly one target:
    `epsilon`, `advantage`, `tpr_at_fpr` or `gdp_mu`.

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
        advantage: the target for the advantage of membership inference (true minus false positives), in (0, 1).
        tpr_at_fpr: the target for the true-positive rate of membership inference, and its false-positive rate.
        gdp_mu: the target for mu of Gaussian differential privacy, > 0; it holds up to an error of delta = 1e-9.

    Raises:
        InvalidInputError: an argument out of range, not exactly one target, or a target that no value of the parameter
            meets. With "messages", also a delta near 2**-64, the rounding of the number of messages of a person.
        UnsupportedProtocolError: the randomizer has no epsilon to choose, the shuffler takes no dummies, or the
            central epsilon is not available.

    Source: bisection on the certified upper bound, see `hushuffle.dp.epsilon` and `hushuffle.dp.profile`.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(hs.dp.calibrate(survey, parameter="epsilon", epsilon=0.1, delta=1e-6))
    epsilon = 0.820219: epsilon 0.10000 nats (certified bracket) at delta = 1e-06
    >>> print(hs.dp.calibrate(survey, parameter="epsilon", advantage=0.01))
    epsilon = 0.772999: advantage 0.010000 (certified bracket)
    """
    _checks.of_type("protocol", protocol, Protocol)
    if parameter not in get_args(ParameterName):
        _checks.reject("parameter", f"one of {', '.join(get_args(ParameterName))}", repr(parameter))
    reports = _checks.integer("reports_per_person", reports_per_person, low=1)
    others = {"advantage": advantage, "tpr_at_fpr": tpr_at_fpr, "gdp_mu": gdp_mu}
    target = _target((epsilon, delta), {name: value for name, value in others.items() if value is not None}, reports)
    collection = _Repeated(protocol, _checks.integer("rounds", rounds, low=1))
    if parameter == "rounds" and rounds > 1:
        _checks.reject("rounds", "omitted if it is the parameter to solve for", rounds)
    tell, varied = progress or silent, _varied(collection, parameter, target, reports)
    if parameter == "messages":
        _refuse_fine(varied, target, reports)
    solution = solve(
        varied, _for_rounds(target, protocol, reports) if parameter == "rounds" else target.requirement, tell=tell
    )
    if solution is None:
        rule, hint = _UNREACHABLE[varied.name]
        wider = "a larger epsilon or delta" if target.name == "epsilon" else f"a larger {target.name}"
        _checks.reject(target.name, rule, target.limit, hint.format(wider))
    tell("done", 1.0)
    level = target.level or (math.nan, math.nan)
    return Calibration(
        **vars(solution),
        epsilon=level[0],
        delta=level[1],
        protocol=varied.apply(solution.value).protocol,
        target=target.name,
    )


class _Repeated(NamedTuple):
    """A collection, and how often it takes place among the same people."""

    protocol: Protocol
    rounds: int


@dataclass(frozen=True, kw_only=True)
class _PrivacyTarget:
    """A target: at most `limit` for the figure `name`. `level` is the pair (epsilon, delta) that is equivalent."""

    name: str
    limit: float
    requirement: Requirement[_Repeated]
    level: tuple[float, float] | None = None


def _target(level: tuple[float | None, float | None], others: dict[str, Any], reports: int) -> _PrivacyTarget:
    """Return the only target that is given, for at most `reports` reports of each person in each round."""
    if len(others) != (level == (None, None)):
        rule = "given with delta, or omitted with one of advantage, tpr_at_fpr, gdp_mu"
        _checks.reject("epsilon", rule, level[0], "Give one target.")
    name, value = next(iter(others.items()), ("epsilon", 0.0))
    if name == "epsilon":
        epsilon = _checks.non_negative("epsilon", math.nan if level[0] is None else level[0])
        if epsilon > LARGEST_LOCAL:
            hint = "A larger epsilon guarantees nothing."
            _checks.reject("epsilon", f"at most {LARGEST_LOCAL:g} as a target", epsilon, hint)
        delta = _checks.probability("delta", math.nan if level[1] is None else level[1], low_open=True, high_open=True)
        return _of_level(name, epsilon, (epsilon, delta), lambda parts: compose(parts, delta=delta), reports)
    if name == "advantage":
        share = _checks.probability(name, value, low_open=True, high_open=True)
        return _of_level(name, share, (0.0, share), lambda parts: compose_delta(parts, epsilon=0.0), reports)
    if name == "gdp_mu":
        return _of_profile(name, _checks.positive(name, value), lambda curve: curve.gdp(1e-9), reports)
    if not isinstance(value, tuple) or len(value) != 2:
        _checks.reject(name, "a pair: the true-positive rate, and its false-positive rate", value)
    most, false = (_checks.probability(name, rate, low_open=True, high_open=True) for rate in value)
    if most <= false:
        _checks.reject(name, "a true-positive rate above its false-positive rate", value, "Guessing has equal rates.")
    return _of_profile(name, most, lambda curve: curve.true_positive_rate(false)[()], reports)


def _of_level(
    name: str, limit: float, level: tuple[float, float], read: Callable[[Parts], Bound], reports: int
) -> _PrivacyTarget:
    """Return a target that is equivalent to (epsilon, delta); `read` returns its figure."""

    def surplus(collection: _Repeated, *, rough: bool = False) -> float:
        return excess(collection.protocol, *level, reports_per_person=reports, rounds=collection.rounds, rough=rough)

    def figure(collection: _Repeated) -> Bound:
        return read([(central.per_person(collection.protocol, reports=reports), collection.rounds)])

    requirement = Requirement(excess=surplus, estimate=partial(surplus, rough=True), figure=figure, limit=limit)
    return _PrivacyTarget(name=name, limit=limit, requirement=requirement, level=level)


def _of_profile(name: str, limit: float, read: Callable[[PrivacyProfile], Bound], reports: int) -> _PrivacyTarget:
    """Return the target for a figure of the whole privacy curve."""

    def figure(collection: _Repeated) -> Bound:
        return read(profile([(central.per_person(collection.protocol, reports=reports), collection.rounds)]))

    return _PrivacyTarget(name=name, limit=limit, requirement=Requirement(figure=figure, limit=limit))


def _varied(collection: _Repeated, name: ParameterName, target: _PrivacyTarget, reports: int) -> Parameter[_Repeated]:
    """Return the parameter with this name."""
    protocol, rounds = collection
    shuffler = protocol.shuffler

    def parameter(apply: Callable[[float], Protocol], **options: Any) -> Parameter[_Repeated]:
        return Parameter(name=name, apply=lambda value: _Repeated(apply(value), rounds), **options)

    if name == "rounds":
        return Parameter(
            name=name,
            apply=lambda value: _Repeated(protocol, int(value)),
            start=1,
            easiest=1,
            hardest=MOST_PEOPLE,
            stride=2,
            whole=True,
        )
    if name == "epsilon":
        own = protocol.randomizer.local_epsilon
        # The sum of the local epsilons meets a target for epsilon in any crowd.
        pure = target.level[0] / (reports * rounds) if target.level else 0.0
        return parameter(
            lambda value: with_local_epsilon(protocol, value),
            start=own if math.isfinite(own) else 1.0,
            easiest=max(pure, _SMALLEST),
            hardest=LARGEST_LOCAL,
            stride=2,
            outside=math.inf,
        )
    if name == "messages":
        most = shuffler.best_own_messages
        return parameter(
            lambda value: replace(protocol, shuffler=shuffler.with_own_messages(value)),
            start=shuffler.own_messages or min(1.0, most / 2),
            easiest=most,
            hardest=_SMALLEST,
            outside=0.0,
            stride=4,
        )
    if name == "dummies":
        if shuffler.reveals is not Reveals.MULTISET:
            _checks.unsupported(f"{type(shuffler).__name__} supports no dummies. Use UniformShuffle or Scrambler.")
        return parameter(
            lambda value: replace(protocol, shuffler=Scrambler(dummies=int(value))),
            start=max(round(shuffler.expected_dummies), 1),
            easiest=MOST_PEOPLE - 1,
            hardest=0,
            outside=-1,
            whole=True,
            stride=4,
        )
    if math.isinf(protocol.randomizer.local_epsilon) and shuffler.tossed is None:
        hint = "Without noise, no number of people protects: choose a finite local epsilon first."
        if shuffler.value_law is not None:
            hint = "The protection of the shuffler's dummies does not grow with n: compute the epsilon instead."
        _checks.reject(target.name, "a target that some n meets", target.limit, hint)
    return number_of_people(protocol.n, lambda n: _Repeated(replace(protocol, n=n), rounds))


def number_of_people(n: int, apply: Callable[[int], D]) -> Parameter[D]:
    """Return the number of people as a parameter, up to 10**9; the search begins at `n`."""
    return Parameter(
        name="n",
        apply=lambda value: apply(int(value)),
        start=n,
        easiest=MOST_PEOPLE,
        hardest=1,
        outside=0,
        whole=True,
        stride=4,
    )


def _for_rounds(target: _PrivacyTarget, protocol: Protocol, reports: int) -> Requirement[_Repeated]:
    """Return the requirement of a target if rounds vary: one table serves all numbers of rounds."""
    if target.level is None:
        return target.requirement
    ((part, each),) = privacy_curve(protocol, reports).parts
    epsilon, delta = target.level
    together = rounds_meet(part, epsilon=epsilon, delta=delta, most=each * MOST_PEOPLE)

    def surplus(collection: _Repeated) -> float:
        if not together(collection.rounds * each):
            return math.inf
        if collection.rounds >= MOST_PEOPLE:
            hint = f"Even {MOST_PEOPLE:,} rounds meet the target, so no limit of rounds is needed."
            _checks.reject(target.name, "small enough that it limits the number of rounds", target.limit, hint)
        return -math.inf

    return replace(target.requirement, excess=surplus, estimate=None)


def _refuse_fine(varied: Parameter[_Repeated], target: _PrivacyTarget, reports: int) -> None:
    """Refuse a delta below the error of drawing the number of messages, if the search cannot begin because of it."""
    protocol, rounds = start = varied.apply(min(varied.start or varied.easiest, varied.easiest))
    if any(source.each for source in protocol.shuffler.sources):  # more messages lower the floor
        return
    lost = rounds * sum(times * part.floor for part, times in privacy_curve(protocol, reports).parts)
    surplus = target.requirement.excess
    if target.level is not None and lost >= target.level[1] and surplus is not None and surplus(start) > 0:
        hint = "The number of messages is drawn in parts of 2**-64. With p = 1 it is not drawn."
        _checks.reject("delta", f"above {number(lost, up=True)} with so many messages", target.level[1], hint)


def with_local_epsilon(protocol: Protocol, epsilon: float) -> Protocol:
    """Return the protocol with this local epsilon (nats) in its randomizer.

    Raises:
        UnsupportedProtocolError: the randomizer has no parameter epsilon.
    """
    return replace(protocol, randomizer=protocol.randomizer.with_epsilon(epsilon))


def excess(
    protocol: Protocol,
    epsilon: float,
    delta: float,
    *,
    reports_per_person: int = 1,
    rounds: int = 1,
    rough: bool = False,
) -> float:
    """Return ln(upper bound on delta at `epsilon` / `delta`), clipped to [-50, 50]: at most 0 meets the target.

    `rough`: an approximation in less time, which proves nothing.
    """
    return _excess([(privacy_curve(protocol, reports_per_person), rounds)], epsilon, delta, rough=rough)


def excess_together(rounds: Rounds, epsilon: float, delta: float, *, rough: bool = False) -> float:
    """Return `excess` for all rounds together, from upper bounds only: faster than `compose`."""
    return _excess(curves_of(rounds), epsilon, delta, rough=rough)


def _excess(laws: Laws, epsilon: float, delta: float, *, rough: bool) -> float:
    if total_pure(laws) <= epsilon:
        return log_excess(0.0, delta)
    alone = sum(times for _, times in laws) == 1
    if not alone:
        return log_excess(upper_near(laws, epsilon=epsilon, delta=delta, rough=rough), delta)
    law = laws[0][0]
    return log_excess(law.rough(delta).likely(epsilon) if rough else law.near(delta).upper(epsilon), delta)
