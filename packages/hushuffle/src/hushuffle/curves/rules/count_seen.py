"""Privacy curve with a random number of dummies: the mean of the divergence over that number.

The number is drawn independently of all values, and an observer of the release can count the messages. So the
divergence of a pair of neighbouring datasets is the mean of the divergences given the number. The divergence decreases
with the number, since an observer of the release could add further dummies. Curves are evaluated at some numbers only.
Upper bound: the mean of the upper bounds; a number in between counts as the next smaller evaluated number. Lower bound:
the mean at one pair of datasets, the same for all numbers; a number in between counts as the next larger one.

Source: docs/theory/more-and-less.md, Theorem 8 and Theorem 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle.curves.base import LARGEST, NEAR, PrivacyCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.question import Feature, Mean, Question, Rule, Solve
from hushuffle.mechanisms.shufflers import Source
from hushuffle.mechanisms.shufflers.dummy_law import FEW
from hushuffle.model import Bound, Citation, Witness
from hushuffle.numerics.binomial import EPS
from hushuffle.numerics.roots import about

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers import DummyLaw

_SHARE: Final = 0.05
"""Share of delta that evaluation at some numbers only may cost, both bounds together: 0.002 of epsilon."""

_ROUGH: Final = 0.3
"""Share of delta that evaluation at some numbers only may cost in rough searches."""

_OFTEN: Final = 0.005
"""Share of delta that evaluation at some numbers only may cost in the bulk of the loss of a composed round."""

_BULK: Final = 0.01
"""Approximate delta where most of the loss distribution of a round lies."""

_ANCHORS: Final = (1e-9, 1e-4, 0.02, 0.2, 0.5, 0.8, 0.98)
"""Levels of the quantiles at which delta is approximated, besides the smallest and the largest number."""

_TINY: Final = 5e-324


class _Curves(dict[int, PrivacyCurve]):
    """Maps a number of dummies to its privacy curve, computed at first access."""

    def __init__(self, make: Callable[[int], PrivacyCurve]) -> None:
        self._make = make

    def __missing__(self, dummies: int) -> PrivacyCurve:
        return self.setdefault(dummies, self._make(dummies))


@dataclass(frozen=True, kw_only=True, eq=False)
class DummyMixture(PrivacyCurve):
    """Privacy curve if the number of dummies has the distribution `law`; `curves` has the curve of each number.

    `numbers` are the evaluated numbers, with the smallest and the largest; if empty, they are chosen at each epsilon.
    `trial` is the pair of datasets of the lower bound; None: the pair that attains the lower bound at the median
    number, in the order with the larger bound. `share` is the share of delta that evaluation at some numbers may cost.
    """

    law: DummyLaw
    curves: _Curves
    numbers: tuple[int, ...] = ()
    trial: Witness | None = None
    share: float = _SHARE
    revealing = True

    @classmethod
    def of(cls, law: DummyLaw, make: Callable[[int], PrivacyCurve]) -> DummyMixture:
        """Mean of privacy curves over `law`, where `make` returns the curve for a number of dummies.

        >>> import hushuffle as hs
        >>> from hushuffle.curves.search import privacy_curve
        >>> survey = hs.Protocol(
        ...     randomizer=hs.RandomizedResponse(k=2, epsilon=2.0),
        ...     shuffler=hs.Scrambler(dummies=hs.DummyLaw.of({0: 0.5, 400: 0.5})),
        ...     n=1000,
        ... )
        >>> print(privacy_curve(survey).delta(0.2))
        8.381e-05 (certified bracket)
        """
        return cls(law=law, curves=_Curves(make))

    @property
    def _fewest(self) -> PrivacyCurve:
        return self.curves[int(self.law.numbers[0])]

    @property
    def _typical(self) -> PrivacyCurve:
        return self.curves[self.law.middle]

    @property
    def sources(self) -> tuple[Citation, ...]:  # type: ignore[override]
        return self._typical.sources

    @property
    def proof(self) -> str:  # type: ignore[override]
        return f"mean over the number of dummies, which can be counted: {self._typical.proof}"

    @property
    def pure(self) -> float:
        """The pure epsilon at the smallest number of dummies, which occurs with positive probability."""
        return self._fewest.pure

    def pure_bound(self) -> Bound:
        return self._fewest.pure_bound()

    @property
    def certain(self) -> float:  # type: ignore[override]
        if math.isfinite(self.pure):
            return 0.0
        return max(self.law.chance(0, 1) * self._fewest.certain, self.curves[int(self.law.numbers[-1])].certain)

    def guess(self) -> float:
        return self._typical.guess()

    def rough(self, delta: float, place: float | None = None) -> PrivacyCurve:
        return replace(self, curves=_Curves(lambda dummies: self.curves[dummies].rough(delta, place)), numbers=())

    def near(self, delta: float, *, often: bool = False) -> PrivacyCurve:
        if not often:
            return self._looking_at(_Curves(lambda dummies: self.curves[dummies].near(delta)), ((delta, self.share),))
        # The composition of rounds depends mainly on the bulk of the loss distribution.
        curves = _Curves(lambda dummies: self.curves[dummies].near(delta, often=True))
        return self._looking_at(curves, ((_BULK, _OFTEN), (delta, _ROUGH)))

    def smoother(self) -> DummyMixture:
        return replace(self, curves=_Curves(lambda dummies: self.curves[dummies].smoother()))

    def unsliced(self) -> DummyMixture:
        return replace(self, curves=_Curves(lambda dummies: self.curves[dummies].unsliced()))

    def _looking_at(self, curves: _Curves, wanted: tuple[tuple[float, float], ...]) -> DummyMixture:
        """With other curves, and numbers that matter near the deltas in `wanted`: (delta, share that may be lost)."""
        new = replace(self, curves=curves, numbers=())
        if self.law.numbers.size <= FEW and self.share <= _SHARE:
            return replace(new, numbers=tuple(self.law.numbers.tolist()))
        aid, high, numbers = new.few(self.guess()), min(self.pure, LARGEST), set[int]()  # no valid bound is needed
        most, least = aid.likely(0.0), aid.likely(high)
        for delta, share in wanted:
            place = 0.0 if most <= delta else high
            if least <= delta < most:
                place = about(aid.likely, delta, high=high, guess=self.guess(), relative=NEAR, least=0.0)
            heights = {number: (height, height) for number, height in aid.profile(place).items()}
            numbers |= set(self.law.falling_mean(heights.__getitem__, share=share)[2])
        return replace(new, numbers=tuple(sorted(numbers)))

    def place(self, delta: float, guess: float) -> tuple[float, float]:
        return self.about(delta, guess, relative=NEAR), 0.0

    def few(self, epsilon: float) -> DummyMixture:
        """A faster curve for searches, over the worst datasets at the median number near `epsilon`; not a bound."""
        worst = self._typical.contenders(epsilon)
        return replace(self, curves=_Curves(lambda dummies: self.curves[dummies].only(worst, epsilon)))

    def likely(self, epsilon: float) -> float:
        return float(self.law.probabilities @ [*self.profile(epsilon).values()])

    def profile(self, epsilon: float) -> dict[int, float]:
        """Approximate delta for each number of dummies; its logarithm is nearly linear between a few numbers."""
        numbers = self.law.numbers
        anchors = sorted({*numbers[[0, -1]].tolist(), *self.law.quantiles(_ANCHORS)}) if len(numbers) > FEW else numbers
        curves = [self.curves[int(number)] for number in anchors]
        deltas = (delta for alike in _by_class(curves) for delta in type(alike[0]).likelies(alike, epsilon))
        logs = [math.log(max(delta, _TINY)) for delta in deltas]
        return dict(zip(numbers.tolist(), np.exp(np.interp(numbers, anchors, logs)).tolist(), strict=True))

    def contenders(self, epsilon: float) -> PrivacyCurve:
        new = self.few(epsilon)
        numbers = (self.law.middle, *self.law.numbers[[0, -1]].tolist())
        trials = _both_ways(new.curves[dummies].lower(epsilon)[1] for dummies in numbers)
        return replace(new, trial=max(trials, key=lambda witness: new.lower_at(witness, epsilon)))

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.pure:
            return 0.0
        return max(min(self.some_upper(epsilon, self.share)[0], 1.0), _TINY)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        typical, trial = self._typical, self.trial
        if trial is None:
            trial = max(_both_ways([typical.lower(epsilon)[1]]), key=lambda one: typical.lower_at(one, epsilon))
        return self.lower_at(trial, epsilon), trial

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        mean = self._mean(lambda curves: type(curves[0]).lowers_at(curves, witness, epsilon), self.share)
        return min(mean[0], 1.0)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """The events also include the number of dummies."""
        typical = self._typical.datasets(log_tail=log_tail)
        numbers = self.some_upper(min(self.guess(), self.pure / 2), _ROUGH)[1] if typical else ()
        tables = [self.curves[number].datasets(log_tail=log_tail) for number in numbers]
        masses = np.diff(self.law.up_to(numbers), prepend=0.0)
        pairs = []
        for wanted in typical:
            rows = [
                (mass, next((pair for pair in table if pair.witness == wanted.witness), None))
                for mass, table in zip(masses.tolist(), tables, strict=True)
            ]
            attained = [(mass, pair) for mass, pair in rows if pair is not None and mass > 0]
            if attained:
                pairs.append(_mixed(attained))
        return tuple(pairs)

    def some_upper(self, epsilon: float, share: float) -> tuple[float, tuple[int, ...]]:
        """Upper bound on delta, too large by a share of about `share`, and the numbers of dummies used."""
        return self._mean(lambda curves: type(curves[0]).uppers(curves, epsilon), share)[1:]

    def _mean(
        self, read: Callable[[list[PrivacyCurve]], list[float]], share: float
    ) -> tuple[float, float, tuple[int, ...]]:
        if not self.numbers:
            return self.law.falling_mean(lambda dummies: (read([self.curves[dummies]])[0],) * 2, share=share)
        curves = _by_class([self.curves[dummies] for dummies in self.numbers])
        values = [value for alike in curves for value in read(alike)]
        return (*self.law.mean_between(self.numbers, [(value,) * 2 for value in values]), self.numbers)


def _by_class(curves: list[PrivacyCurve]) -> list[list[PrivacyCurve]]:
    """Return all curves together if they are of one class, else each alone."""
    return [curves] if len({type(curve) for curve in curves}) == 1 else [[curve] for curve in curves]


def _both_ways(named: Iterable[Witness]) -> tuple[Witness, ...]:
    """Both orders of each pair, since all numbers of dummies must use the same order."""
    witnesses = dict.fromkeys(named)
    return tuple(dict.fromkeys([*witnesses, *(replace(one, target=one.target[::-1]) for one in witnesses)]))


def _mixed(rows: list[tuple[float, DatasetPair]]) -> DatasetPair:
    """The events of all pairs, weighted by the probabilities of their numbers of dummies."""

    def side(read: Callable[[DatasetPair], np.ndarray | float]) -> np.ndarray:
        return np.concatenate([mass * np.broadcast_to(read(pair), pair.p.shape) for mass, pair in rows])

    return DatasetPair(
        witness=rows[0][1].witness,
        p=side(lambda pair: pair.p),
        q=side(lambda pair: pair.q),
        # Each number has its own common factor; two such factors differ by up to twice `common`.
        doubt=max(pair.doubt + 2 * pair.common for _, pair in rows) + 4 * EPS,
        common=max(pair.common for _, pair in rows),
        p_error=side(lambda pair: pair.p_error),
        q_error=side(lambda pair: pair.q_error),
    )


def _reduce(question: Question) -> Mean:
    (source,) = question.release.sources
    return Mean(law=source.table, at=lambda number: question.about(sources=Source.dummies(number)))


def _build(question: Question, solve: Solve) -> PrivacyCurve:
    mean = _reduce(question)
    mixture = DummyMixture.of(mean.law, lambda number: solve(mean.at(number)))
    if question.reports > 1:
        return replace(mixture, share=_ROUGH)  # each number takes seconds
    return mixture.curves[mean.law.middle].drawn(mean.law, mixture)


RULE: Final = Rule(
    name="number of dummies seen",
    statement="An observer counts the messages, so delta is the mean over the number of dummies.",
    page="more-and-less.md, Theorem 8",
    on=frozenset({Feature.RANDOM}),
    beside=frozenset({Feature.GROUPS, Feature.REPORTS}),
    reduce=_reduce,
    build=_build,
)
