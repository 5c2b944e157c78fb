"""The privacy curve delta(epsilon) of a release, with bounds for hypothesis tests and guesses, and charts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.curves.base import LARGEST, PrivacyCurve, bracket
from hushuffle.curves.pairs.evaluated import EvaluatedCurve
from hushuffle.curves.pairs.known_curve import Ends
from hushuffle.curves.pairs.renyi import renyi_bounds
from hushuffle.model import Bound, Bounds, Chart, Citation, Kind, Series, notebook, number
from hushuffle.questions.dp.central import Round, array, gathered, kind_of
from hushuffle.questions.dp.composition import Rounds, curve_of

GDP: Final = Citation(
    key="dong2022",
    text="J. Dong, A. Roth, W. J. Su, Gaussian differential privacy, "
    "Journal of the Royal Statistical Society B 84 (2022)",
)

MANY: Final = 64
"""If more new points than this are requested at once, they are interpolated between evaluated points."""

_LEVELS: Final = (1e-3, 1e-6, 1e-9, 1e-12)
"""The deltas at which a notebook shows a curve."""

_FEW: Final = 4
"""Up to this number of requested deltas, each is computed separately."""


@dataclass(frozen=True, kw_only=True)
class NearestGaussian:
    """Gaussian curves below and above a privacy curve: mu is `below` for the lower and `above` for the upper curve.

    Both bounds hold for every epsilon in [0, `epsilon`], where delta is at least `delta`.
    """

    below: float
    above: float
    epsilon: float
    delta: float

    def __str__(self) -> str:
        ends = f"{number(self.below, up=False)} to {number(self.above, up=True)}"
        return f"mu {ends} for epsilon up to {number(self.epsilon, up=False)} (delta down to {self.delta:g})"


class PrivacyProfile:
    """The privacy curve delta(epsilon) of one protocol or of composed rounds, with certified bounds at any point.

    Every point is computed once and cached. Trade-off functions, the nearest Gaussians, and requests of more than 64
    new points interpolate between at least `points` computed points: the upper bound is a chord, the lower bound a
    tangent. More points never widen the bounds.
    """

    def __init__(self, curve: PrivacyCurve, *, points: int, least: float) -> None:
        self._curve, self._least = curve, least
        self._evaluated = EvaluatedCurve(curve, points=points, least=least)
        self._asked: dict[float, Bound] = {}

    def delta(self, epsilon: npt.ArrayLike) -> Bounds:
        """Return certified bounds on delta at every `epsilon` (nats, finite, >= 0, any shape).

        Raises:
            InvalidInputError: an epsilon out of range.

        Source: as `dp.delta`; between points docs/theory/curves.md, Lemma 1.

        >>> import hushuffle as hs
        >>> survey = hs.Protocol(
        ...     randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000
        ... )
        >>> print(hs.dp.profile(survey).delta([0.0, 0.1, 0.2])[2])
        1.656e-04 (certified bracket)
        """
        levels = array("epsilon", epsilon, _checks.non_negative)
        missing = sorted({float(level) for level in levels.flat} - self._evaluated.known.keys())
        if len(missing) <= MANY:
            for level in missing:
                self._evaluated.point(level)
            return gathered([self._evaluated.known[float(level)] for level in levels.flat], levels.shape, "probability")
        return self._read(self._evaluated.table().delta(levels), "probability")

    def epsilon(self, delta: npt.ArrayLike) -> Bounds:
        """Return certified bounds on the smallest epsilon (nats) at every `delta` (in [0, 1), any shape).

        Raises:
            InvalidInputError: a delta out of range.

        Source: as `dp.epsilon`; between points docs/theory/curves.md, Lemma 1.

        >>> import hushuffle as hs
        >>> survey = hs.Protocol(
        ...     randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000
        ... )
        >>> print(hs.dp.profile(survey).epsilon([1e-4, 1e-6])[1])
        0.05113 to 0.05114 nats (certified bracket)
        """
        levels = array("delta", delta, lambda name, value: _checks.probability(name, value, high_open=True))
        missing = sorted({float(level) for level in levels.flat} - self._asked.keys())
        if len(missing) > MANY:
            return self._read(self._evaluated.table().epsilon(levels), "nats")
        for level in missing:
            alone = len(missing) <= _FEW or level < self._least
            self._asked[level] = self._curve.epsilon(level) if alone else self._evaluated.crossing(level)
        return gathered([self._asked[float(level)] for level in levels.flat], levels.shape)

    def false_negatives(self, false_positives: npt.ArrayLike) -> Bounds:
        """Return certified bounds of the trade-off function: the smallest false-negative rate of any test.

        An adversary tests which of two neighbouring datasets a release comes from. Every test with a false-positive
        rate of at most `false_positives` (in [0, 1], any shape) has a false-negative rate of at least the returned
        lower bound, for all pairs of datasets. No convex function with this property exceeds the returned upper bound.

        Raises:
            InvalidInputError: a false-positive rate out of range.

        Source: Dong, Roth, Su 2022, Proposition 6; docs/theory/curves.md, Theorem 2.

        >>> import hushuffle as hs
        >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
        >>> print(hs.dp.profile(local).false_negatives([0.05, 0.5])[0])
        0.8641 (certified bracket)
        """
        shares = array("false_positives", false_positives, _checks.probability)
        return self._read(
            self._evaluated.table().false_negatives(shares), "probability", sources=(GDP.at("Proposition 6"),)
        )

    def true_positive_rate(self, false_positives: npt.ArrayLike) -> Bounds:
        """Return certified bounds on the largest true-positive rate of membership inference: 1 - `false_negatives`.

        Raises:
            InvalidInputError: a false-positive rate out of range.

        >>> import hushuffle as hs
        >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
        >>> print(hs.dp.profile(local).true_positive_rate(0.05)[()])
        0.1360 (certified bracket)
        """
        missed = self.false_negatives(false_positives)
        kind: Kind = "lower" if missed.kind == "upper" else missed.kind
        return replace(missed, lower=1 - missed.upper, upper=1 - missed.lower, kind=kind)

    @property
    def advantage(self) -> Bound:
        """The adversary's advantage: the largest total variation distance of two neighbours, delta at epsilon = 0."""
        return self._evaluated.point(0.0)

    def guess(self, prior: float) -> Bound:
        """Return the success probability of the best guess between two values of one person.

        The adversary knows all other people's values. The two values are the worst pair; one has probability `prior`.
        With p = max(prior, 1 - prior), the result is p + (1 - p) delta(ln(p/(1 - p))).

        Args:
            prior: in (0, 1).

        Raises:
            InvalidInputError: the prior out of range.

        >>> import hushuffle as hs
        >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
        >>> print(hs.dp.profile(local).guess(0.5))
        0.7311 (exact)
        """
        chance = _checks.probability("prior", prior, low_open=True, high_open=True)
        smaller = min(chance, 1 - chance)
        larger = 1 - smaller
        gain = self._evaluated.point(max(math.log(larger) - math.log(smaller), 0.0))
        lower, upper = (larger + smaller * end for end in (gain.lower, gain.upper))
        return bracket(
            lower, upper, unit="probability", sources=gain.sources, witness=gain.witness, exact=gain.kind == "exact"
        )

    def posterior(self, prior: float, *, delta: float) -> Bound:
        """Return a bound that the adversary's posterior of the true value exceeds with probability at most `delta`.

        The adversary knows all other values, and gives the true one of two values the probability `prior`. A release
        changes the odds by its likelihood ratio. Except with probability `delta`, the odds grow by at most a factor
        e**epsilon for an epsilon that is larger than that of (epsilon, delta)-DP.

        Args:
            prior: in (0, 1).
            delta: in (0, 1).

        Raises:
            InvalidInputError: an argument out of range.

        Source: docs/theory/curves.md, Lemma 4.

        >>> import hushuffle as hs
        >>> survey = hs.Protocol(
        ...     randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100
        ... )
        >>> print(hs.dp.profile(survey).posterior(0.01, delta=1e-6))
        at most 0.01833 (upper bound)
        """
        chance = _checks.probability("prior", prior, low_open=True, high_open=True)
        level = _checks.probability("delta", delta, low_open=True, high_open=True)
        if level < self._least:
            hint = f"Make the profile with least={level:g}."
            _checks.reject("delta", f"at least `least` = {self._least:g} of this profile", level, hint)
        loss = min(self._evaluated.table().loss(level), self._curve.pure)
        upper = 1.0 if math.isinf(loss) else 1 / (1 + math.exp(-loss) * (1 - chance) / chance) * (1 + 1e-15)
        return Bound(lower=0.0, upper=upper, kind="upper", unit="probability", sources=self._curve.sources)

    def _repr_html_(self) -> str:
        levels = [level for level in _LEVELS if level >= self._least]
        rows = [(f"{level:g}", str(self._curve.epsilon(level))) for level in levels]
        more = f"A strong adversary distinguishes two equally likely values with probability {self.guess(0.5)}."
        return notebook.table(("delta", "epsilon"), rows, more=more)

    def gaussian(self) -> NearestGaussian:
        """Return the nearest Gaussian curves below and above this curve where delta is at least `least`.

        A mu-GDP release has the curve of two normal distributions of variance 1 whose means differ by mu.

        Source: docs/theory/curves.md, Lemma 3; Dong, Roth, Su 2022, Corollary 1.

        >>> import hushuffle as hs
        >>> survey = hs.Protocol(
        ...     randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100
        ... )
        >>> print(hs.dp.profile(survey).gaussian())
        mu 0.1029 to 0.1253 for epsilon up to 0.6731 (delta down to 1e-09)
        """
        last = self._evaluated.last.lower
        below, above = self._evaluated.table().gaussians(last)
        return NearestGaussian(below=below, above=above, epsilon=last, delta=self._least)

    def gdp(self, delta: float = 0.0) -> Bound:
        """Return certified bounds on the smallest mu for which the release is mu-GDP (Gaussian differential privacy).

        The trade-off function of a mu-GDP release is at least that of two normal distributions of variance 1, mu apart.
        With delta = 0 the upper bound covers the whole curve: it is wide for many people, and infinite if pure epsilon
        is infinite. With another `delta`, the privacy curve is at most the larger of `delta` and the Gaussian curve.

        Args:
            delta: 0, or at least `least` of this profile and below 1.

        Raises:
            InvalidInputError: delta out of range.

        Source: docs/theory/curves.md, Lemma 3; Dong, Roth, Su 2022, Corollary 1.

        >>> import hushuffle as hs
        >>> survey = hs.Protocol(
        ...     randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100
        ... )
        >>> print(hs.dp.profile(survey).gdp())
        0.1297 to 0.1298 standard deviations (certified bracket)
        >>> print(hs.dp.profile(survey).gdp(1e-6))
        0.1198 to 0.1207 standard deviations (certified bracket)
        """
        level = _checks.probability("delta", delta, high_open=True)
        if 0 < level < self._least:
            hint = f"Make the profile with least={level:g}, or ask for delta = 0."
            _checks.reject("delta", f"0, or at least `least` = {self._least:g} of this profile", level, hint)
        end = self._curve.pure if level == 0 else self.epsilon(level).upper.item()
        table = self._evaluated.table(min(end, LARGEST) if level == 0 else 0.0)
        lower, upper = table.least_gaussian(min(end, LARGEST), delta=level)
        if end > LARGEST:
            return Bound(lower=lower, upper=math.inf, kind="lower", unit="standard deviations", sources=(GDP,))
        return bracket(lower, upper, unit="standard deviations", sources=(*self._curve.sources, GDP))

    def renyi(self, alpha: float) -> Bound:
        """Return certified bounds on the Rényi divergence (nats) of order `alpha`: the epsilon of (alpha, epsilon)-RDP.

        The upper bound holds for all pairs of neighbouring datasets, the lower bound is attained by explicit datasets.
        The upper bound is infinite if pure epsilon is infinite.

        Args:
            alpha: > 1, finite.

        Raises:
            InvalidInputError: alpha out of range.

        Source: docs/theory/curves.md, Lemma 10.

        >>> import hushuffle as hs
        >>> survey = hs.Protocol(
        ...     randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100
        ... )
        >>> print(hs.dp.profile(survey).renyi(8))
        0.04625 to 0.04715 nats (certified bracket)
        """
        order = _checks.positive("alpha", alpha)
        if order <= 1:
            _checks.reject("alpha", "above 1", order)
        lower, upper = renyi_bounds(self._curve.rounds, order)
        if math.isinf(upper):
            return Bound(lower=lower, upper=upper, kind="lower", unit="nats", sources=self._curve.sources)
        return bracket(lower, upper, unit="nats", sources=self._curve.sources)

    def chart(self, points: int = 20) -> Chart:
        """Return a chart of delta against epsilon, at `points` values from 0 to the epsilon at which delta is `least`.

        Raises:
            InvalidInputError: fewer than 2 points.
        """
        places = np.linspace(0.0, self._evaluated.end, _checks.integer("points", points, low=2))
        deltas = self.delta(places)
        return Chart(
            key="privacy-profile",
            title="Delta against epsilon",
            caption="Delta falls as epsilon grows. A lower curve is more private.",
            x_label="epsilon (nats)",
            y_label="delta",
            series=(Series.through("delta", places.tolist(), deltas),),
            y_log=True,
        )

    def tests_chart(self, points: int = 101) -> Chart:
        """Return a chart of the false-negative rate against the false-positive rate, with the line of a random guess.

        Raises:
            InvalidInputError: fewer than 2 points.
        """
        shares = np.linspace(0.0, 1.0, _checks.integer("points", points, low=2))
        rates = self.false_negatives(shares)
        return Chart(
            key="tests-of-two-datasets",
            title="False negatives against false positives",
            caption="Error rates of the best test between two neighbouring datasets. A higher curve is more private.",
            x_label="false positives",
            y_label="false negatives",
            series=(
                Series.through("the best test", shares.tolist(), rates),
                Series.through("a blind guess", shares, 1 - shares),
            ),
        )

    def _read(self, ends: Ends, unit: str, *, sources: tuple[Citation, ...] = ()) -> Bounds:
        lower, upper = ends
        return Bounds(
            lower=lower, upper=upper, kind=kind_of(lower), unit=unit, sources=(*self._curve.sources, *sources)
        )


def profile(rounds: Round | Rounds, *, points: int = 32, least: float = 1e-9) -> PrivacyProfile:
    """Return the privacy curve of one protocol or of composed rounds, with bounds on membership inference, and charts.

    Relation: replace one person's values in every round (`dp.compose`). Values are computed only on request.

    Args:
        rounds: a protocol, or a list of protocols or pairs (protocol, times).
        points: minimum number of computed points for interpolation, >= 3.
        least: the smallest delta of the curve, in (0, 0.5).

    Raises:
        InvalidInputError: no rounds, times < 1, or an argument out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler.

    >>> import hushuffle as hs
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.NoShuffle(), n=1)
    >>> print(hs.dp.profile(local).advantage)
    0.4621 (exact)
    """
    places = _checks.integer("points", points, low=3)
    level = _checks.probability("least", least, low_open=True, high_open=True)
    if level >= 0.5:
        _checks.reject("least", "in (0, 0.5)", level)
    return PrivacyProfile(curve_of(rounds), points=places, least=level)
