"""Central DP of any finite randomizer: privacy blanket (upper bound), explicit datasets (lower bound).

Upper bound. The adversary is given the truthful reports of all other people. N = M + 1 + d reports remain,
M ~ Bin(n-1, gamma), all but the target's drawn from the blanket omega. For the target's values a and b

    delta(eps) <= E_M (1/N) E [sum of N (Q_a - e**eps Q_b)(W)/omega(W)]_+
                  + sum over y outside omega [Q_a(y) - e**eps Q_b(y)]_+ ,

with W ~ omega. A report outside the blanket's support can only be the target's. Without dummies
C(n-1, M)/(M+1) = C(n, M+1)/n, so the first term is (1/n) E [sum of n scores]_+. There a score is
(Q_a - e**eps Q_b)(W)/(gamma omega(W)) with probability gamma and 0 otherwise, so no sum over M remains. With dummies M
is binned. The expectation decreases with N (averages of exchangeable terms), so a bin counts as its smallest N.

Lower bound. All other people (of a group) have one value c. The test accepts if the sum over all reports of (Q_a -
e**eps Q_b)/(mean distribution of the others' reports) is positive. It is optimal for one group without dummies.

Source: Balle, Bell, Gascon, Nissim 2019; docs/theory/blanket.md, Theorem 1 and Corollary 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import erfcx

from hushuffle.curves.base import NEAR, ReportCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws import slices
from hushuffle.curves.laws.kinds import Background, Others, Place, Places, covered_reports, every_place, largest, parts
from hushuffle.curves.laws.kinds import gain as gain_of
from hushuffle.curves.laws.plain_blanket import COARSE, PlainBlanket
from hushuffle.curves.laws.pooled import Pooled
from hushuffle.curves.pairs.exact_loss import exact_pairs
from hushuffle.mechanisms.randomizers import ValueLaws
from hushuffle.model import Witness
from hushuffle.model.citation import BLANKET
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.score_sums import FAINT, ReportScores
from hushuffle.numerics.score_tests import OtherReports, advantage, saddle_point

if TYPE_CHECKING:
    from hushuffle.curves.base import PrivacyCurve
    from hushuffle.mechanisms.release import Release

_PLAIN: Final = 0.005
_BOTH: Final = 0.05
_POOLED: Final = 0.2
"""See `FiniteDivergence._lead`: up to `_BOTH`, the blanket's bound is evaluated before the pool's."""

_NEAR: Final = 0.03
_FINE: Final = 0.005
_FINEST: Final = 0.0005
"""Smoothing in standard deviations of the sum: for searches, and for bounds (1e-5 of epsilon, 1e-7)."""

_LARGE: Final = 500.0
"""Smallest expected number of reports that are not neutral for which the finest smoothing takes little time."""

_SOME: Final = 6
"""Number of pairs of datasets that a lower bound evaluates; with more pairs of values, tables use no slices."""

_MANY: Final = 64
"""Number of pairs of datasets that are ranked by a fast estimate first."""

_TILTS: Final = np.geomspace(0.2, 40.0, 24)
"""Tilts of the fast estimates, in units of one over the standard deviation of the sum."""

_CELLS: Final = 1 << 15
"""Approximate number of cells of tables that are computed together."""

_CLOSE: Final = 1e-9
"""Relative distance to the local divergence, which no lower bound exceeds, at which the search stops."""

_STEPS: Final = 12
"""Largest number of Newton steps for a first approximation of epsilon."""

_NEWTON: Final = 1e-6
"""Relative length of a Newton step that is the last: the error is then about its square."""

Trial = tuple[Place, Background]
"""A pair of neighbouring datasets: the target's pair of values, and the other people's values as matrix rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FiniteDivergence(ReportCurve):
    """Privacy curve of the target's report, shuffled among the reports of `others` and `dummies` blanket reports.

    `places` are the target's pairs of values examined. Upper bounds are from the `plain` blanket and the `pool`.
    `trials` are the datasets that a lower bound evaluates; if empty, they are searched at every epsilon. `level` is the
    delta for which pools of common reports are chosen (None: searched). `sliced`: whether upper bounds also use pools
    in sequence, see the module `slices`. `smoothing` of sums is in standard deviations.
    """

    laws: tuple[ValueLaws, ...]
    others: Others
    dummies: int
    plain: PlainBlanket
    places: tuple[Place, ...]
    pool: Pooled
    trials: tuple[Trial, ...] = ()
    level: float | None = None
    sliced: bool = False
    smoothing: float = _FINE
    sources = (BLANKET,)
    proof = "pool of common reports or privacy blanket (upper bound), explicit neighbouring datasets (lower bound)"

    @classmethod
    def of(cls, release: Release) -> FiniteDivergence:
        """Return the privacy curve of a uniformly shuffled release.

        >>> import hushuffle as hs
        >>> from hushuffle.mechanisms.release import Release
        >>> from hushuffle.mechanisms.randomizers import BitFlipping
        >>> columns = hs.Protocol(randomizer=BitFlipping(width=2, p=0.25), shuffler=hs.UniformShuffle(), n=1)
        >>> round(FiniteDivergence.of(Release.of(columns)).upper(1.0), 6)
        0.392607
        """
        laws = release.device.law().pairs()
        n, dummies = release.n, release.dummies
        if dummies == 0:
            # All entries of `laws` describe one randomizer, so the weight of its blanket is the same in each.
            law = np.array([float(n)]), np.array([1.0 / n]), 0.0, laws[0].weight
        else:
            law = (*covered_reports(((n - 1, laws[0].weight),), dummies), 1.0)
        return cls.among(
            laws, Others.alike(n - 1), dummies=dummies, local_epsilon=release.device.local_epsilon, law=law
        )

    @classmethod
    def among(
        cls,
        laws: tuple[ValueLaws, ...],
        others: Others,
        *,
        dummies: int,
        local_epsilon: float,
        law: tuple[Floats, Floats, float, float],
    ) -> FiniteDivergence:
        """Return a target's privacy curve among `others`; `law` has the last four of `PlainBlanket`."""
        counts, weights, missing, covered = law
        (a, b), first = laws[0].pairs[0], laws[0]
        differ = first.rows[a] != first.rows[b]
        tests = others.people * float(first.rows[:, differ].sum(axis=1).min()) + dummies * first.blanket[differ].sum()
        return cls(
            laws=laws,
            local_epsilon=local_epsilon,
            others=others,
            dummies=dummies,
            plain=PlainBlanket(laws=laws, counts=counts, weights=weights, missing=missing, covered=covered),
            pool=Pooled.of(laws, others, dummies),
            sliced=others.people * laws[0].weight + dummies < slices.ROOM,
            places=every_place(laws),
            smoothing=_FINEST if tests >= _LARGE else _FINE,
        )

    @property
    def _crowd(self) -> int:
        """Number of reports apart from the target's."""
        return self.others.people + self.dummies

    @property
    def tight(self) -> bool:
        """Whether the crowd is so large that both bounds are near any other: within 2e-6 of epsilon."""
        return self.smoothing <= _FINEST

    def guess(self) -> float:
        spread = math.sqrt(max(float(_distance(near, far).max()) for _, near, far in parts(self.laws, self.places)))
        return min(self.largest_finite / 2, 4 * spread / math.sqrt(self._crowd + 1) + 1e-9)

    @property
    def largest_finite(self) -> float:
        """The epsilon beyond which delta is constant: the largest finite log-ratio of two values' probabilities."""
        return max(float(_largest_ratio(near, far).max()) for _, near, far in parts(self.laws, self.places))

    @property
    def certain(self) -> float:  # type: ignore[override]
        """Limit of delta at large epsilon: the largest probability of a report that only the target can send."""
        if math.isfinite(self.pure):  # a probability that floats round to 0 is not certain to be 0
            return 0.0
        return max(self.others.unmatched(law, self.dummies) for law in self.laws)

    def upper(self, epsilon: float) -> float:
        return self._at_most(epsilon)

    def _at_most(self, epsilon: float, goal: float = 0.0) -> float:
        """Return `upper`; with a `goal`, any bound that is at most `goal`, or else infinity or a bound above it."""
        if epsilon >= self.pure:
            return 0.0
        places = self._likeliest(self._estimated(epsilon)) if len(self.places) > 1 else self.places
        if not self.pool.usable():
            return self.plain.upper(places, epsilon, self.smoothing, goal)
        value = math.inf
        if self.sliced and self.level is not None:
            value = slices.upper(self.pool, places, epsilon, self.level, goal)
            if value <= self.level or self.trials:
                return value
        value = min(value, self._of_pool_or_blanket(places, epsilon, goal))
        if self.sliced and self.level is None and value > 0:
            value = min(value, slices.upper(self.pool, places, epsilon, value))
        return value

    def _of_pool_or_blanket(self, places: Places, epsilon: float, goal: float) -> float:
        """Return the smaller bound of the pool and of the plain blanket; `goal` as in `_at_most`."""
        lead, single, near = self._lead(places[0], epsilon), len(places) == 1, (self.level or 0.0) / 2
        plain = math.nan
        if lead < (_PLAIN if single else _BOTH):
            plain = self.plain.upper(places, epsilon, self.smoothing, goal)
            if plain <= goal or (single and plain >= near):
                return plain
            # The pool's bound is at least its bound at this pair.
            if not single and goal == 0 and plain <= self.pool.upper(places[:1], epsilon, self.level):
                return plain
        value = self.pool.upper(places, epsilon, self.level, goal)
        if value <= goal or (single and lead > _POOLED and value >= near):
            return value
        # The plain blanket's bound is at least its bound at this pair, at the mean N: skip it if that is not better.
        if math.isnan(plain) and self.plain.at(places[0], epsilon, self.smoothing, self.plain.typical) < value:
            plain = self.plain.upper(places, epsilon, self.smoothing, goal)
        return value if math.isnan(plain) else min(value, plain)

    def _lead(self, place: Place, epsilon: float) -> float:
        """Return by how much the pool's variance is smaller than the plain blanket's, times -ln(level).

        In a crowd of one kind, tests show the blanket's bound to be the smaller one up to `_PLAIN`, and the pool's from
        `_POOLED` on, if they are about `level`. In another crowd, or without a level, the result is between these.
        """
        if len(self.pool.portions) > 1 or self.others.people * self.laws[0].weight <= slices.ROOM:
            return _POOLED
        ratio = self.plain.square(place, epsilon) / self.pool.square(place, epsilon, self.level)
        return (ratio - 1) * -math.log(self.level) if self.level else (_BOTH if ratio >= 1 else 0.0)

    def about(self, delta: float, guess: float, *, relative: float) -> float:
        return self._crossing(delta, guess)[0] or super().about(delta, guess, relative=relative)

    def place(self, delta: float, guess: float) -> tuple[float, float]:
        point, slope = self._crossing(delta, guess)
        return point or super().about(delta, guess, relative=NEAR), slope

    def _crossing(self, delta: float, guess: float) -> tuple[float, float]:
        """Return `place` from saddle-point approximations for the likeliest trial; zeros if they fail."""
        point, (trial, *more), wanted, before = guess, self._likely(guess), math.sqrt(-math.log(delta)), 0.0
        for _ in range(0 if more else _STEPS):
            scores, crowd, target, _ = self._tested(trial, point)
            with suppress(ArithmeticError, ValueError):
                value, rise = saddle_point(scores, crowd, target, point, self.smoothing)
                depth = math.sqrt(-math.log(value))
                slope = -rise / value / (2 * depth)
                last, point = point, point * min(max(1 + (wanted - depth) / slope / point, 0.25), 4.0)
                if slope > 0 and point < self.pure and abs(point - last) > _NEWTON * point:
                    continue
                settled = abs(point - before) <= _NEWTON * point  # the next trial has the same crossing
                (best, *more), before = self._likely(point), point
                if slope > 0 and point < self.pure and not more and (settled or best == trial):
                    return point, slope
                trial = best
                if slope > 0 and not more:
                    continue
            break
        return 0.0, 0.0

    def likely(self, epsilon: float) -> float:
        """Return a lower bound on delta from the pairs of datasets that seem to be worst."""
        return max(self._lower_at(trial, epsilon, _NEAR) for trial in self._likely(epsilon))

    def _likely(self, epsilon: float) -> list[Trial]:
        """Return the likeliest trial, and those in which the target's report is often unique, if there are such."""
        if self.trials:
            return [*self.trials[:1]]
        likely, seen = self._estimated(epsilon)
        return [*dict.fromkeys([*likely[:1], *self._plain(epsilon), *seen[:1]])]

    def holds(self, epsilon: float, delta: float) -> bool:
        return self._at_most(epsilon, delta) <= delta

    def smoother(self) -> FiniteDivergence:
        return replace(self, smoothing=_NEAR)

    def unsliced(self) -> FiniteDivergence:
        return replace(self, sliced=False) if self.sliced else self

    def seen_at(self, epsilon: float, delta: float) -> Witness | None:
        likely = (trial for trial in self._likely(epsilon) if self._lower_at(trial, epsilon, self.smoothing) > delta)
        first = next(likely, None)
        return super().seen_at(epsilon, delta) if first is None else self._witness(first)

    def near(self, delta: float, *, often: bool = False) -> FiniteDivergence:
        sliced = self.sliced and not (often and len(self.places) > _SOME)
        return replace(self, level=delta, sliced=sliced, plain=self.plain.near(delta))

    def rough(self, delta: float, place: float | None = None) -> FiniteDivergence:
        best = () if place is None or self.trials else (self._best(self._likely(place), place),)
        return replace(self.near(delta, often=True), trials=self.trials or best)

    def blanket(self, epsilon: float) -> float:
        """Return the upper bound of the plain privacy blanket alone."""
        return self.plain.upper(self.places, epsilon, self.smoothing)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        place, c = self._best(self.trials or self._promising(epsilon), epsilon)
        return self._lower_at((place, c), epsilon, self.smoothing), self._witness((place, c))

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        other = max(len(witness.others) - 1, 0)  # all other people have this value
        for i, law in enumerate(self.laws):
            named = [(law.labels[a], law.labels[b]) for a, b in law.pairs]
            if witness.target in named and other in law.labels:
                held = self.others.at(law, law.labels.index(other))
                return self._lower_at(((i, named.index(witness.target)), held), epsilon, self.smoothing)
        return 0.0

    def _witness(self, trial: Trial) -> Witness:
        (i, j), held = trial
        return self.others.witness(self.laws[i], self.laws[i].pairs[j], held)

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Return the pairs of datasets that seem worst at epsilon = 0 (up to two), and at a typical epsilon (one)."""
        return self.alike(1, log_tail=log_tail)

    def alike(self, reports: int, *, log_tail: float) -> tuple[DatasetPair, ...]:
        """Return pairs of datasets in which the target sends `reports` reports, all of one value or all of another.

        Each of the n - 1 other people sends one report.
        """
        guess = self.guess()
        trials = dict.fromkeys([*self._promising(0.0)[:2], self._best(self._promising(guess), guess)])
        pairs: list[DatasetPair] = []
        for (i, j), held in trials:
            law = self.laws[i]
            target = law.rows[law.pairs[j][0]], law.rows[law.pairs[j][1]]
            others = self._reports(law, held)
            pairs += exact_pairs(self._witness(((i, j), held)), target, others, log_tail=log_tail, reports=reports)
        return tuple(pairs)

    def _best(self, trials: Sequence[Trial], epsilon: float) -> Trial:
        """Return the trial with the largest lower bound, or the first trial that attains the local divergence."""
        if len(trials) == 1:
            return trials[0]
        values: list[tuple[float, Trial]] = []
        for trial in trials:
            values.append((self._lower_at(trial, epsilon, COARSE), trial))
            least = values[-1][0] / (1 - _CLOSE)
            if all(least >= largest(self.laws, places, epsilon)[0] for places in (trial[:1], self.places)):
                break
        return max(values, key=lambda item: item[0])[1]

    def contenders(self, epsilon: float) -> FiniteDivergence:
        estimated = self._estimated(epsilon)
        promising = self._promising(epsilon, estimated)
        trials = sorted(promising, key=lambda trial: -self._lower_at(trial, epsilon, COARSE))
        likely, best = self._likeliest(estimated)[:_SOME], tuple(trials[:2])
        plain = replace(self, places=tuple(dict.fromkeys([*likely, *self.pool.worst])), trials=best, sliced=False)
        sliced = replace(self, places=tuple(dict.fromkeys([*likely, *self.pool.ahead])), trials=best)
        # A search uses the better bound near `epsilon`.
        if not self.sliced or self.level is None or sliced.upper(epsilon) >= plain.upper(epsilon):
            return plain
        return replace(sliced, places=tuple(dict.fromkeys([*likely[:1], *self.pool.ahead])))

    def covers(self, law: PrivacyCurve) -> bool:
        return isinstance(law, FiniteDivergence) and {*law.places} <= {*self.places}

    def only(self, few: PrivacyCurve, epsilon: float) -> PrivacyCurve:
        if not isinstance(few, FiniteDivergence):
            return self.contenders(epsilon)
        return replace(self, places=few.places, trials=few.trials, sliced=few.sliced)

    def _likeliest(self, estimated: tuple[list[Trial], list[Trial]]) -> tuple[Place, ...]:
        """Return all pairs of values of the target; pairs that are likely to be worst come first."""
        likely, seen = estimated
        return tuple(dict.fromkeys([*(place for place, _ in (*likely, *seen)), *self.places]))

    def _promising(self, epsilon: float, estimated: tuple[list[Trial], list[Trial]] | None = None) -> tuple[Trial, ...]:
        """Return the trials that are likely to be worst, and those with all others at the worst pair's own values."""
        likely, seen = estimated or self._estimated(epsilon)
        best = [*self._plain(epsilon), *likely[:_SOME], *seen]
        (i, j), _ = best[0]
        law = self.laws[i]
        return tuple(dict.fromkeys([*best, *(((i, j), self.others.at(law, own)) for own in law.pairs[j])]))

    def _estimated(self, epsilon: float) -> tuple[list[Trial], list[Trial]]:
        """Return two lists: trials with the largest estimates, and trials with reports that the others never send."""
        rows: list[tuple[float, Trial, Floats, Floats]] = []
        seen: list[tuple[float, Trial]] = []
        for part, near, far in parts(self.laws, self.places):
            law, mean = self.laws[part[0][0]], self._means[part[0][0]]
            backgrounds = self.others.backgrounds(law)
            gain, _ = gain_of(near, far, epsilon)
            rare = mean < FAINT
            with np.errstate(over="ignore"):  # this result is used for ranking only
                signal = gain**2 @ np.where(rare, 0.0, 1 / np.where(rare, 1.0, mean)).T
            hidden = np.maximum(gain, 0.0) @ rare.T if bool(rare.any()) else np.zeros((1, 1))
            for strength, count in ((signal, _MANY), (hidden, 2)):
                flat = -strength.ravel()
                best = np.argpartition(flat, count)[:count] if flat.size > 64 * _MANY else np.arange(flat.size)
                for place in best[np.argsort(flat[best])][:count].tolist():
                    j, c = divmod(place, len(backgrounds))
                    trial, value = (part[j], backgrounds[c]), float(strength[j, c])
                    if strength is signal:
                        rows.append((value, trial, gain[j].copy(), mean[c]))
                    elif value > 0:
                        seen.append((value, trial))
        rows = sorted(rows, key=lambda row: -row[0])[:_MANY]
        estimates = _estimates(rows, self._crowd + 1)
        order = np.argsort(-estimates, kind="stable").tolist()
        return [rows[place][1] for place in order], [trial for _, trial in sorted(seen, key=lambda item: -item[0])[:2]]

    def _plain(self, epsilon: float) -> list[Trial]:
        """Return the trial in which the target's report is most often unique, if it is likely to be worst; else []."""
        price = math.exp(epsilon) * self._crowd
        cases = zip(self.laws, self._means, strict=True)
        if all(bool((law.rows.max(axis=0) <= price * means.min(axis=0)).all()) for law, means in cases):
            return []
        most, place = largest(self.laws, self.places, epsilon)
        law = self.laws[place[0]]
        a, b = law.pairs[place[1]]
        gain, _ = gain_of(law.rows[a], law.rows[b], epsilon)
        backgrounds = self.others.backgrounds(law)
        seen = np.maximum(gain - price * self._means[place[0]], 0.0).sum(axis=1).tolist()
        best = int(np.argmax(seen))
        return [(place, backgrounds[best])] if 2 * seen[best] > most else []

    @cached_property
    def _means(self) -> list[Floats]:
        """For each entry of `laws`, the mean distribution of the other reports, shape (backgrounds, classes)."""
        return [np.stack([self._crowd_law(law, held) for held in self.others.backgrounds(law)]) for law in self.laws]

    def _reports(self, law: ValueLaws, held: Background) -> tuple[tuple[int, Floats], ...]:
        """Return the groups of the other reports: number of reports, and their distribution over the classes."""
        return (*self.others.reports(law, held), (self.dummies, law.blanket))

    def _crowd_law(self, law: ValueLaws, held: Background) -> Floats:
        """Return the mean distribution of the other reports if the other people have the values `held`."""
        mean: Floats = np.sum([count * each for count, each in self._reports(law, held)], axis=0) / max(self._crowd, 1)
        return mean

    def _lower_at(self, trial: Trial, epsilon: float, smoothing: float) -> float:
        scores, crowd, target, certain = self._tested(trial, epsilon)
        hidden = advantage(scores, crowd, target, math.exp(epsilon), smoothing=smoothing)
        return min(max(hidden, 0.0) + certain, 1.0)

    def _tested(self, trial: Trial, epsilon: float) -> tuple[ReportScores, OtherReports, tuple[Floats, Floats], float]:
        """Return the scores of a trial, the distributions of the other reports and of the target's, and the rest.

        The rest is a lower bound on what reports contribute that the others hardly ever send.
        """
        law, held = self.laws[trial[0][0]], trial[1]
        mean = self._crowd_law(law, held)
        inside, (a, b) = mean >= FAINT, law.pairs[trial[0][1]]
        gain, size = gain_of(law.rows[a], law.rows[b], epsilon)
        # The test accepts if such a report occurs; `seen` bounds how often another person or a dummy sends it.
        seen = np.exp(epsilon) * self._crowd * mean
        certain = float(np.maximum(gain - 8 * EPS * size - seen, 0.0)[~inside].sum()) * (1 - 4 * EPS * gain.size)
        counts, masses = zip(*self._reports(law, held), strict=True)
        crowd = OtherReports(counts=counts, masses=np.stack(masses)[:, inside])
        scores = ReportScores.of(gain[inside], size[inside], mean[inside])
        return scores, crowd, (law.rows[a][inside], law.rows[b][inside]), certain


def _estimates(rows: list[tuple[float, Trial, Floats, Floats]], count: int) -> Floats:
    """Return approximate logarithms of E[sum of `count` scores]_+ with scores gain/mean, one per row; for ranking."""
    width = max(gain.size for _, _, gain, _ in rows)
    gains, means = np.zeros((len(rows), width)), np.zeros((len(rows), width))
    for place, (_, _, gain, mean) in enumerate(rows):
        gains[place, : gain.size], means[place, : mean.size] = gain, np.where(mean < FAINT, 0.0, mean)
    with np.errstate(all="ignore"):
        scores = np.where(means > 0, gains / np.where(means > 0, means, 1.0), 0.0)
        spread = np.sqrt(count * (means * scores**2).sum(axis=1))
        best = np.full(len(rows), np.inf)
        for tilts in np.array_split(_TILTS, min(_TILTS.size, -(-_TILTS.size * scores.size // _CELLS))):
            t = tilts[:, None] / spread
            grown = np.expm1(np.minimum(t[..., None] * scores, 600.0))
            excess = np.maximum((means * grown).sum(axis=2), 1e-9 - 1)
            second = (means * (grown + 1) * scores**2).sum(axis=2) / (1 + excess)
            smooth = erfcx(t * np.sqrt(count * second / 2)) / (2 * t)
            best = np.fmin(best, np.fmin.reduce(count * np.log1p(excess) + np.log(smooth)))
    return np.where(np.isfinite(best), best, -np.inf)


def _distance(near: Floats, far: Floats) -> Floats:
    """Return the mean square score of a report at epsilon = 0, if half of the others have each of the two values."""
    middle = (near + far) / 2
    return np.asarray(((near - far) ** 2 / np.where(middle > 0, middle, 1.0)).sum(axis=-1))


def _largest_ratio(near: Floats, far: Floats) -> Floats:
    both = (near > 0) & (far > 0)
    ratios = np.log(np.where(both, near, 1.0)) - np.log(np.where(both, far, 1.0))
    largest = np.where(both, ratios, -np.inf).max(axis=-1)
    return np.asarray(np.where(both.any(axis=-1), largest, 0.0) * (1 + 8 * EPS))
