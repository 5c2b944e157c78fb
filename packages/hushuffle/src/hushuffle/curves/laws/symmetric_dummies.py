"""k-ary randomized response with uniform dummies: neighbouring datasets in which all others have one value c.

C of the N = n + d reports are at c, S = N - C at other values, x_a of them at a. Let w be the distribution of the
number of the others' and the dummies' reports at c, and u(x | S) that of S reports uniform over the other k - 1 values:

    target at a, not c:   P_a(C, x) = u(x | S) ((k - 1) nu w(C) + nu w(C - 1) + (k - 1) theta w(C)/S x_a) ,
    target at c:          P_c(C, x) = u(x | S) ((k - 1) nu w(C) + mu w(C - 1)) .

Both are linear in the counts given C. Neighbouring C share a bin: reports at other values are removed at random until
their number is the smallest of the bin. This post-processing keeps both linear in the remaining counts.

If the number of dummies is random, an observer who ignores C has the same formulas: w(C) is then the probability that S
- 1 reports of the others and the dummies are at other values than c, and w(C - 1) that S are.

Source: docs/theory/datasets.md, Theorem 8 and Lemma 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.symmetric_pairs import AT_FIRST, AT_THIRD, FINE, BinomialCells, assemble
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Witness
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import (
    EPS,
    LOG_TAIL,
    FairTable,
    Floats,
    beside_traces,
    deviation,
    fair_signs,
    positive_mean,
)

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers import DummyLaw

_TABLE: Final = 2_000_000
"""Largest number of probabilities that are computed one by one."""

_LONGEST: Final = 1 << 29
"""Largest number of products of a direct convolution: takes about a second."""

_WHOLE: Final = 1000
"""Largest number of people or dummies for which every number of reports at c is tabulated."""

_BIN: Final = 1 / 10
_ROW: Final = 1 / 16
"""Width of a bin of C (`_BIN`), and of a row of reports at a or b (`_ROW`), in standard deviations."""

_EVENTS: Final = 2_000_000
"""Largest number of events of an explicit pair of datasets."""

_TRACE: Final = 1e-45
"""Smallest probability of a cell; less probable cells are dropped, which only lowers a lower bound."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldAlike:
    """Output probabilities if all other people have one value c, in bins of the number C of reports at c.

    In each bin, `elsewhere` reports at values other than c remain; x counts these reports by value. Arrays have shape
    (bins,). In the module's formulas, P_a/u(x) is `apart` + `bend` x_a, and P_c/u(x) is `held`.
    """

    k: int
    n: int
    total: int
    elsewhere: Floats
    apart: Floats
    bend: Floats
    held: Floats
    doubt: float
    outside: float
    negligible: float = 0.0

    @classmethod
    def of(
        cls, law: Symmetric, *, n: int, dummies: int, counted: DummyLaw | None = None, log_tail: float = LOG_TAIL
    ) -> HeldAlike | None:
        """None if the tabulation would take too long. Events rarer than e**log_tail may be missing.

        With `counted`, the number of dummies is random, and at most `dummies`.
        """
        k, truth, lie, theta = law.k, float(law.truth), float(law.lie), float(law.theta)
        groups = ((n - 1, truth), (dummies, 1 / k))
        windows = [(0, t) if t <= _WHOLE else binomial.window(t, chance, log_tail) for t, chance in groups]
        if (windows[0][1] - windows[0][0] + 1) * (windows[1][1] - windows[1][0] + 1) > _LONGEST:
            return None
        own, extra = (
            binomial.pmf(np.arange(low, high + 1, dtype=np.float64), trials, chance)
            for (trials, chance), (low, high) in zip(groups, windows, strict=True)
        )
        first, doubt = windows[0][0] + windows[1][0], 0.0
        if counted is not None:
            # Every number of dummies counts as the next multiple of `step`: an observer can add the missing dummies.
            step = max(1, int(_ROW * math.sqrt(counted.mean * (k - 1)) / k))
            numbers, chances = counted.rounded(step, up=True)
            least, elsewhere, doubt = binomial.mixed(numbers, (k - 1) / k, chances[:, None], log_tail)
            first, extra = windows[0][0] + dummies - least - elsewhere.size + 1, elsewhere[0, ::-1]
        mass = np.convolve(own, extra)
        total, here, before = n + dummies, np.append(mass, 0.0), np.append(0.0, mass)
        left = total - first - np.arange(here.size, dtype=np.float64)
        # No report is at another value only if the target's report is at c as well: then w(C) = 0.
        rate = here / np.maximum(left, 1.0)
        spread = np.sqrt(float((n - 1) * truth * (1 - truth) + dummies * (k - 1) / k**2))
        starts = np.arange(0, here.size, max(1, int(_BIN * spread)))
        ends = np.append(starts[1:], here.size) - 1
        fewest = left[ends]
        removed = np.add.reduceat(rate * (left - np.repeat(fewest, np.diff(np.append(starts, here.size)))), starts)
        at, next_to, bend = (np.add.reduceat(part, starts) for part in (here, before, (k - 1) * theta * rate))
        keep = at + next_to > _TRACE
        return cls(
            k=k,
            n=n,
            total=total,
            elsewhere=fewest[keep],
            apart=((k - 1) * lie * at + lie * next_to + theta * removed)[keep],
            bend=bend[keep],
            held=((k - 1) * lie * at + truth * next_to)[keep],
            doubt=2 * binomial.margin(n) + 2 * binomial.margin(dummies) + EPS * (64 + 3 * here.size) + doubt,
            outside=0.0 if max(n - 1, dummies) <= _WHOLE and counted is None else 4 * float(np.exp(log_tail)),
        )

    @cached_property
    def _signs(self) -> FairTable | None:
        return FairTable.of(self._pairs[0], above=False)

    @cached_property
    def _pairs(self) -> tuple[Floats, Floats, Floats]:
        """Rows of the number of reports at a or b, in every bin: smallest number, weight, factor of the threshold."""
        chance, bends = 2 / (self.k - 1), self.bend > 0
        trials, bend = self.elsewhere[bends], self.bend[bends]
        variance = float((trials * chance * (1 - chance)).max(initial=0.0))
        reach, step = deviation(-LOG_TAIL, variance), max(1, int(_ROW * math.sqrt(variance)))
        low = np.maximum(np.floor(trials * chance - reach), 0.0)[:, None]
        first = low + step * np.arange(2 * math.ceil(reach) // step + 2, dtype=np.float64)
        last = np.minimum(first + step - 1, trials[:, None])
        if chance == 1 or not trials.size:
            mass = binomial.pmf(first, trials[:, None], chance)
        elif first.size * step <= _TABLE:
            each = binomial.runs(low[:, 0], step * first.shape[1], trials, chance)
            mass = each.reshape(*first.shape, step).sum(axis=2)
            mass = mass * (1 - binomial.margin(self.total) - 8 * EPS * each.shape[1])
        else:
            cuts = np.concatenate([first, first[:, -1:] + step], axis=1) - 1
            mass, tails = binomial.between(cuts, trials[:, None], chance)
            mass = mass - binomial.margin(self.total) * tails
        weight = bend[:, None] * np.where(first <= last, mass, 0.0)
        bias = last / 2 + (self.apart[bends] / bend)[:, None]
        keep = np.flatnonzero(weight > _TRACE)
        keep = keep[beside_traces((weight * first).ravel()[keep], self.negligible)]
        return first.ravel()[keep], weight.ravel()[keep], bias.ravel()[keep]

    def without_traces(self, delta: float) -> HeldAlike:
        """Without the least probable rows, which lowers a lower bound by at most delta/10**6."""
        return replace(self, negligible=1e-6 * delta)

    def lower_third(self, epsilon: float) -> float:
        """Lower bound on delta, from datasets in which c is neither of the target's values.

        >>> from fractions import Fraction
        >>> law = Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4))
        >>> round(HeldAlike.of(law, n=1, dummies=1).lower_third(0.0), 9)
        0.166666667
        """
        growth, (signs, weight, bias) = float(np.exp(epsilon)), self._pairs
        slope, excess = (1 + growth) / 2, float(np.expm1(epsilon)) * (1 + self.doubt)
        level = excess / slope * bias
        if self._signs is not None and not self._signs.cancels(level):
            bound = slope * self._signs.mean(weight, level) * (1 - self.doubt - 64 * EPS)
        else:
            head = slope * signs - excess * bias, slope * signs + excess * bias
            value = fair_signs(signs, slope, excess * bias, head)[0]
            bound = float(np.sum(weight * value)) * (1 - self.doubt - EPS * (64 + weight.size))
        return max(bound - growth * self.outside, 0.0)

    def lower_first(self, epsilon: float) -> float:
        """Lower bound on delta in either order, from datasets in which c is one of the target's values.

        >>> from fractions import Fraction
        >>> law = Symmetric(k=3, truth=Fraction(1, 2), lie=Fraction(1, 4))
        >>> round(HeldAlike.of(law, n=1, dummies=1).lower_first(0.0), 9)
        0.166666667
        """
        return max(self.directions(epsilon))

    def directions(self, epsilon: float) -> tuple[float, float]:
        """Lower bounds on the divergence of "target at c" from "target elsewhere", and in reversed order."""
        growth, less, more = float(np.exp(epsilon)), 1 - self.doubt, 1 + self.doubt
        alone = self.bend == 0
        toward = self.held * less - growth * self.apart * more
        back = self.apart * less - growth * self.held * more
        sums = [float(np.maximum(offset[alone], 0.0).sum()) for offset in (toward, back)]
        bend, trials = self.bend[~alone], self.elsewhere[~alone]
        for place, (offset, slope) in enumerate(((toward, -growth), (back, 1.0))):
            mean = positive_mean(trials, 1 / (self.k - 1), slope=slope, offset=offset[~alone] / bend)
            sums[place] += float(bend @ mean)
        sharp, lost = less - EPS * (64 + self.bend.size), growth * self.outside
        return max(sums[0] * sharp - lost, 0.0), max(sums[1] * sharp - lost, 0.0)

    def pair_third(self, log_tail: float) -> DatasetPair | None:
        """The pair if c is neither of the target's values; None if there are too many events."""
        rows = BinomialCells.of(self.elsewhere, 2 / (self.k - 1), log_tail=log_tail, width=_ROW)
        place, row = np.nonzero(rows.mass > math.exp(log_tail) / rows.mass.size)
        last, mean, blur = (part[place, row] for part in (rows.last, rows.mean, rows.blur))
        if last.size * deviation(-log_tail, float(last.max(initial=0.0))) > _EVENTS:
            return None
        # Uniform random reports complete the reports at a or b to the same number for the whole row.
        coins = BinomialCells.of(last, 0.5, log_tail=log_tail, width=FINE)
        real, apart, bend = (mean / np.maximum(last, 1.0))[:, None], self.apart[place, None], self.bend[place, None]
        factors = [apart + bend * real * heads for heads in (coins.mean, last[:, None] - coins.mean)]
        slopes = bend * (real * coins.blur + blur[:, None])
        witness = Witness(family=AT_THIRD, others=(0, 0, self.n - 1), target=(0, 1))
        return self._assembled(witness, rows.mass[place, row][:, None] * coins.mass, factors, slopes, place)

    def pair_first(self, log_tail: float) -> DatasetPair:
        """The pair if c is one of the target's two values."""
        cells = BinomialCells.of(self.elsewhere, 1 / (self.k - 1), log_tail=log_tail, width=FINE)
        apart, held = self.apart[:, None] + self.bend[:, None] * cells.mean, np.zeros_like(cells.mean)
        slopes = self.bend[:, None] * cells.blur
        witness = Witness(family=AT_FIRST, others=(self.n - 1,), target=(1, 0))
        factors = [apart, held + self.held[:, None]]
        return self._assembled(witness, cells.mass, factors, slopes, np.arange(self.bend.size))

    def _assembled(
        self, witness: Witness, mass: Floats, factors: list[Floats], slopes: Floats, place: npt.NDArray[np.int64]
    ) -> DatasetPair:
        """The pair `mass` times the first factor, and times the second; row i belongs to bin `place[i]`."""
        there = self.held[place] > 0  # a lower bound may omit events that only one of the two values can cause
        scale = self.held[place[there], None]
        first, second = (factor[there] / scale for factor in factors)
        pair = assemble(witness, mass[there] * scale, (first, second), slopes=slopes[there] / scale, n=self.total)
        return replace(pair, doubt=pair.doubt + 2 * self.doubt)
