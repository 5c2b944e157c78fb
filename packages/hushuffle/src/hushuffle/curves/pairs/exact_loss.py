"""Output probabilities of two given datasets, for any finite randomizer and shuffled reports; they give lower bounds.

Reports fall into classes. The target's report (or each of several reports, independently) follows one of two
distributions over the classes. Each group of other people follows its own distribution; dummies form one more group.
The statistic is one of two:

- The number of reports of each class, if there are few combinations. This statistic is sufficient.
- Otherwise the sum over all reports of an integer score of the report's class. The score is nearly affine in
  (first - second)/(mean distribution of the others). The sum is a post-processing, so its divergence is a lower bound.
  If all others are at the target's own value, only the rounding of the scores loses information. If the others are at
  another value, the loss is small, and smaller the larger their number.

The distribution of the others' sum is computed from its characteristic function on the full circle, for distributions
tilted by e**(t score) with several t. Each probability is taken from the tilt with the smallest error. The error
consists of the rounding at every node, that of the transform, and the mass a period away (Bernstein's inequality).

Source: N. J. Higham 2002, section 24.1 (error of the transform); docs/theory/datasets.md, Theorem 1;
docs/theory/composition.md, Lemma 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.model import Witness
from hushuffle.numerics.binomial import EPS, Floats, deviation
from hushuffle.numerics.exact import exponential, log1p_parts, turn_parts

Integers = npt.NDArray[np.int64]

Group = tuple[int, Floats]
"""A group of other people: their number, and the distribution of their reports, shape (classes,)."""

_WAYS: Final = 20_000
"""Largest number of combinations of the others' report counts that are listed one by one."""

_FEW: Final = 500
"""Largest number of reports for which combinations are listed one by one."""

_NOISE: Final = 24 * EPS
"""Relative error allowed for each probability and each elementary function, as in `score_sums`."""

_REACH: Final = 60.0
"""Negative logarithm of the probability that a tilted sum exceeds its period, on each side."""

_BLOCK: Final = 16
"""Number of neighbouring nodes that are left out together."""

_SMALL: Final = 80.0
"""Nodes are left out where the transform is at most e**-80."""

_LONGEST: Final = 1 << 21
_WORK: Final = 1 << 26
"""Largest number of points of a period, and of points times classes: takes seconds."""

_WIDEST: Final = 1 << 23
"""Largest number of points of all tables together; points outside are omitted."""

_LABOUR: Final = 1 << 31
"""Largest product of window points, scores and reports of the target: takes ten seconds."""

_STRIDE: Final = 4.0
"""Distance between neighbouring tilts, in standard deviations of the sum."""

_ALIKE: Final = 1e-7
"""Share of the scores' variance that rounding to integer scores may lose."""

_SEEN: Final = 0.05
"""Expected number of the others' reports of a class below which such a report reveals the target's value."""


def exact_pairs(
    witness: Witness, target: tuple[Floats, Floats], others: Sequence[Group], *, log_tail: float, reports: int = 1
) -> tuple[DatasetPair, ...]:
    """One pair with the output probabilities of two datasets; none if the computation takes too long.

    Events rarer than about e**log_tail may be missing. The target sends `reports` independent reports, all from the
    first distribution in one dataset and all from the second in the other.

    >>> laws = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    >>> (pair,) = exact_pairs(Witness(family="", others=(1,), target=(0, 1)), laws, [(1, laws[0])], log_tail=-40.0)
    >>> sorted(pair.p.round(4).tolist()), sorted(pair.q.round(4).tolist())
    ([0.0625, 0.375, 0.5625], [0.1875, 0.1875, 0.625])
    """
    groups = [(count, law) for count, law in others if count]
    target, groups = _merged(target, groups)
    if not groups and reports == 1:
        return (DatasetPair(witness=witness, p=target[0], q=target[1], doubt=_NOISE * (target[0].size + 8)),)
    total, classes = reports + sum(count for count, _ in groups), target[0].size
    ways = math.prod(math.comb(count + classes - 1, count) for count in (reports - 1, *(count for count, _ in groups)))
    if total <= _FEW and ways <= _WAYS and classes * math.log2(total + 1) < 62:
        return (_listed(witness, target, groups, reports),)
    scores = _whole_scores(target, groups) if groups else None
    return () if scores is None else _summed(witness, target, groups, scores, log_tail, reports)


def summed_pairs(
    witness: Witness, target: tuple[Floats, Floats], people: Group, scores: Integers, *, log_tail: float
) -> tuple[DatasetPair, ...]:
    """One pair with the distributions of the sum of all people's integer scores; none if that takes too long.

    `scores[i]` is the score of a report of class i, shape (classes,). The target sends one report.

    >>> laws = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    >>> none = Witness(family="", others=(1,), target=(0, 1))
    >>> (pair,) = summed_pairs(none, laws, (1, laws[0]), np.array([0, 1]), log_tail=-40.0)
    >>> sorted(pair.p.round(4).tolist())
    [0.0625, 0.375, 0.5625]
    """
    if _period([people], scores.astype(np.float64)) * min(scores.size, 1 << 10) > _WORK:
        return ()
    return _summed(witness, target, [people], scores, log_tail, 1)


def _merged(target: tuple[Floats, Floats], groups: list[Group]) -> tuple[tuple[Floats, Floats], list[Group]]:
    table = np.stack([*target, *(law for _, law in groups)])
    table = table[:, table.sum(axis=0) > 0]
    _, place = np.unique((table / table.sum(axis=0)).round(12), axis=1, return_inverse=True)
    merged = np.zeros((table.shape[0], int(place.max()) + 1))
    np.add.at(merged.T, place.ravel(), table.T)
    return (merged[0], merged[1]), [(count, law) for (count, _), law in zip(groups, merged[2:], strict=True)]


def _listed(witness: Witness, target: tuple[Floats, Floats], groups: list[Group], reports: int) -> DatasetPair:
    """The distributions of the numbers of reports of each class, from all combinations."""
    classes, total = target[0].size, reports + sum(count for count, _ in groups)
    radix = (total + 1) ** np.arange(classes, dtype=np.int64)
    codes: npt.NDArray[Any] = np.zeros(1, dtype=np.int64)
    mass, error = np.ones(1), np.zeros(1)
    for count, law in groups:
        bars = np.array(list(combinations(range(count + classes - 1), classes - 1)), dtype=np.int64)
        ends = np.full((bars.shape[0], 1), count + classes - 1)
        counts = np.diff(np.hstack([np.full_like(ends, -1), bars.reshape(ends.size, -1), ends]), axis=1) - 1
        parts = gammaln(count + 1) - gammaln(counts + 1).sum(axis=1), xlogy(counts, law).sum(axis=1)
        each = np.exp(parts[0] + parts[1])
        doubt = each * _NOISE * (count + 1 + 2 * gammaln(count + 1) + np.where(each > 0, np.abs(parts[1]), 0.0))
        codes = (codes[:, None] + counts @ radix).ravel()
        error = (error[:, None] * (each + doubt) + mass[:, None] * doubt).ravel()
        mass = (mass[:, None] * each).ravel()
    laws, errors = [mass, mass], [error, error]
    for _ in range(reports):
        every, place = np.unique((codes[:, None] + radix).ravel(), return_inverse=True)
        for side, report in enumerate(target):
            laws[side], errors[side] = (
                np.bincount(place, np.outer(values, report).ravel(), every.size).astype(np.float64)
                for values in (laws[side], errors[side])
            )
            errors[side] = errors[side] + _NOISE * (classes + 8) * laws[side]
        codes = every
    return DatasetPair(witness=witness, p=laws[0], q=laws[1], p_error=errors[0], q_error=errors[1])


def _whole_scores(target: tuple[Floats, Floats], groups: list[Group]) -> Integers | None:
    """Integer score of each class, shape (classes,): the coarsest scores that lose at most `_ALIKE`."""
    total = sum(count for count, _ in groups)
    mean = np.asarray(sum(count * law for count, law in groups)) / total
    gain, usual = target[0] - target[1], total * mean >= _SEEN
    score = np.sign(gain)
    if bool(np.any(gain[usual] != 0)):
        raw = gain / np.where(mean > 0, mean, 1.0)
        far = 8 * math.sqrt(total * float(mean[usual] @ raw[usual] ** 2)) + float(np.abs(raw[usual]).max())
        score = np.where(usual, raw, np.sign(gain) * far)
    spread, low = math.sqrt(float(mean @ score**2)), float(score.min())
    width = float(score.max()) - low
    if width == 0:
        return None
    best, least = None, math.inf
    for step in [*(width / parts for parts in range(1, 65)), *(spread / parts for parts in (4, 8, 16, 32, 64))]:
        whole = np.rint((score - low) / step)
        rest = score - low - step * whole
        lost = float(mean @ (rest - mean @ rest) ** 2) / spread**2 if spread else 0.0
        if lost < least and _period(groups, whole) * min(np.unique(whole).size, 1 << 10) <= _WORK:
            best, least = whole, lost
        if least <= _ALIKE:
            break
    return None if best is None or least > 1 else best.astype(np.int64)


def _period(groups: Sequence[Group], whole: Floats) -> int:
    """A power of 2, left on each side with probability at most e**-_REACH (Bernstein); above `_WORK` if too long."""
    wide = float(whole.max() - whole.min())
    variance = sum(count * float(law @ (whole - law @ whole) ** 2) for count, law in groups)
    away = deviation(_REACH, variance, largest=wide)
    most = min(2 * away + 4, sum(count for count, _ in groups) * wide + 2)
    return 1 << max(4, math.ceil(math.log2(most))) if most <= _LONGEST else _WORK + 1


def _summed(
    witness: Witness,
    target: tuple[Floats, Floats],
    groups: list[Group],
    scores: Integers,
    log_tail: float,
    reports: int,
) -> tuple[DatasetPair, ...]:
    """The distributions of the sum of all scores; an empty tuple if it would take too long."""
    whole, place = np.unique(scores, return_inverse=True)
    first, second = (np.bincount(place, law).astype(np.float64) for law in target)
    groups = [(count, np.bincount(place, law).astype(np.float64)) for count, law in groups]
    lowest, highest = (sum(count * int(end[law > 0].max()) for count, law in groups) for end in (-whole, whole))
    wide = int(whole[-1] - whole[0])
    spread = math.sqrt(sum(count * float(law @ (whole - law @ whole) ** 2) for count, law in groups))
    tables = []
    for stride in range(1 + math.ceil(math.sqrt(-2 * log_tail) / _STRIDE)):
        for sign in (1, -1) if stride else (1,):
            tilt = sign * min(stride * _STRIDE / max(spread, 1e-6), 300 / wide)
            table = _Table.of(groups, whole, tilt)
            tables += [] if table is None else [table]
    start, stop = _window(tables)
    start, stop = max(-lowest, start), min(highest, stop)
    if reports > 1 and (stop - start + reports * wide) * whole.size * reports > _LABOUR:
        return ()
    mass, error = np.zeros(stop - start + 1), np.full(stop - start + 1, np.inf)
    for table in tables:
        table.improve(mass, error, start)
    unknown = error >= 1  # an error of 1 or more: nothing is known about such a probability
    mass, error = np.where(unknown, 0.0, np.minimum(mass, 1.0)), np.minimum(error, 1.0)
    # Events near the boundaries of the window lack some of their terms, so they are omitted.
    reach = reports * wide
    inside = slice(reach if start > -lowest else 0, -reach if stop < highest and reach else None)

    def told(report: Floats, values: Floats) -> Floats:
        law = values
        for _ in range(reports):
            before, law = law, np.zeros(law.size + wide)
            for chance, shift in zip(report.tolist(), (whole - whole[0]).tolist(), strict=True):
                law[shift : shift + before.size] += chance * before
        return law[inside]

    p, q, slack = told(first, mass), told(second, mass), _NOISE * reports * (whole.size + 8)
    p_error, q_error = told(first, error) + slack * p, told(second, error) + slack * q
    keep = (np.maximum(p - p_error, q - q_error) > 0) & (p + q > 1e-3 * math.exp(log_tail) / mass.size)
    common = max(table.common for table in tables)
    pair = DatasetPair(
        witness=witness, p=p[keep], q=q[keep], p_error=p_error[keep], q_error=q_error[keep], common=common
    )
    return (pair,)


def _window(tables: list[_Table]) -> tuple[int, int]:
    """First and last sum that the tables cover; tables too far from the first table are ignored."""
    start, stop = tables[0].first, tables[0].first
    for table in tables:
        first, last = min(start, table.first), max(stop, table.first + table.mass.size - 1)
        if last - first < _WIDEST:
            start, stop = first, last
    return start, stop


@dataclass(frozen=True, kw_only=True, eq=False)
class _Table:
    """Probabilities `mass[i]` of the sum `first` + i, with absolute errors `error[i]`, shape (points,).

    In addition, all probabilities may be wrong by the same factor, between e**-common and e**common.
    """

    first: int
    mass: Floats
    error: Floats
    common: float

    @classmethod
    def of(cls, groups: list[Group], whole: Integers, tilt: float) -> _Table | None:
        """Computed with the weight e**(tilt sum); None if the sum's range is too wide."""
        tilted: list[Group] = []
        middles, mean, log_mass, common = [], 0.0, 0.0, 0.0
        for count, law in groups:
            rough = law * np.exp(tilt * whole - (tilt * whole).max())
            middle = round(float(rough @ whole) / float(rough.sum()))
            grown = law * np.exp(tilt * (whole - middle))
            size = float(grown.sum())
            tilted.append((count, grown / size))
            middles.append(middle)
            mean += count * float(grown @ (whole - middle)) / size
            log_mass += count * math.log(size)
            moved = float(grown @ np.abs(tilt * (whole - middle))) / size
            common += count * _NOISE * (2 + moved + abs(math.log(size)))
        origin = sum(count * middle for (count, _), middle in zip(groups, middles, strict=True))
        period = _period(tilted, whole.astype(np.float64))
        if period > _LONGEST:
            return None
        transform, error = _transform(tilted, whole, middles, period)
        mass = np.fft.irfft(transform, period)
        first = round(mean) - period // 2
        away = first + np.arange(period, dtype=np.float64)
        lift = log_mass - tilt * away
        common += 8 * EPS * (abs(log_mass) + abs(tilt) * float(np.abs(away).max()))
        with np.errstate(over="ignore", invalid="ignore"):
            back = np.exp(np.minimum(lift, 600.0))
            mass = np.maximum(np.roll(mass, -(first % period)), 0.0) * back
        return cls(first=origin + first, mass=mass, error=(error + 2 * math.exp(-_REACH)) * back, common=common)

    def improve(self, mass: Floats, error: Floats, start: int) -> None:
        """Copy probabilities whose error is below that in `error` into `mass` and `error`, which begin at `start`."""
        low, high = max(self.first, start), min(self.first + self.mass.size, start + mass.size)
        if high <= low:
            return
        own, there = slice(low - self.first, high - self.first), slice(low - start, high - start)
        better = self.error[own] < error[there]
        mass[there] = np.where(better, self.mass[own], mass[there])
        error[there] = np.where(better, self.error[own], error[there])


def _transform(
    groups: list[Group], whole: Integers, middles: list[int], period: int
) -> tuple[npt.NDArray[np.complex128], float]:
    """E[e**(-i angle sum)] at angles from 0 to pi, scores counted from `middles`, and a probability's largest error.

    Values are 0 where they are negligible.
    """
    nodes = _peaks(groups, whole, period)
    angles = 2 * np.pi / period * nodes
    log_size, log_reach, phase, turns = (np.zeros(angles.size) for _ in range(4))
    for (count, law), middle in zip(groups, middles, strict=True):
        real, imaginary, moved = np.zeros(angles.size), np.zeros(angles.size), 0.0
        for chance, step in zip(law.tolist(), (whole - middle).tolist(), strict=True):
            if chance > 0 and step:
                # Reduce angles by whole periods: smaller angles have smaller rounding errors.
                arc = 2 * np.pi / period * ((step * nodes + period // 2 & period - 1) - period // 2)
                away, sine = turn_parts(arc)
                real -= chance * away
                imaginary += chance * sine
                moved += chance * abs(step)
        size, turn = log1p_parts(real, imaginary)
        noise = _NOISE * (EPS + np.minimum(angles * moved, 2.0))
        log_size += count * size
        log_reach += count * (size + np.log1p(noise * np.exp(-size)))
        phase, turns = phase - count * turn, turns + count * (np.abs(size) + np.abs(turn))
    product = np.exp(log_size)
    levels = 8 * EPS * (math.log2(period) + 2)  # twice what Higham's bound gives, per unit of mass
    error = np.exp(log_reach) * -np.expm1(log_size - log_reach) + product * (16 * EPS * (1 + turns) + levels)
    transform = np.zeros(period // 2 + 1, dtype=np.complex128)
    transform[nodes] = exponential(log_size, phase)
    return transform, 2 * (float(error.sum()) / period + math.exp(-_SMALL))


def _peaks(groups: list[Group], whole: Integers, period: int) -> Integers:
    """The nodes of `_transform`, 0 to period/2, without blocks in which the value is at most e**-`_SMALL`.

    Source: docs/theory/sums.md, Lemma 7, for scores that are whole numbers.
    """
    nodes = np.arange(period // 2 + 1)
    starts = nodes[:-_BLOCK:_BLOCK]
    middles, squares, reach = 2 * np.pi / period * (starts + (_BLOCK - 1) / 2), np.zeros(starts.size), 0.0
    for count, law in groups:
        arcs = np.multiply.outer(middles, whole - whole[0])
        away, sine = turn_parts(arcs)
        real, imaginary = -away @ law, sine @ law
        squares -= count * np.minimum(real * (2 + real) + imaginary**2, 0.0)
        reach += count * float(law @ (whole - law @ whole) ** 2)
    distance = np.sqrt(squares) * (1 - 1e-6) - math.sqrt(reach) * math.pi / period * (_BLOCK - 1)
    matter = np.ones(nodes.size, dtype=np.bool_)
    matter[: starts.size * _BLOCK] = np.repeat(distance < math.sqrt(2 * _SMALL), _BLOCK)
    return nodes[matter]
