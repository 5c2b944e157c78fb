"""Certified bounds on an adversary's gain from shuffled reports, for any channel, prior and gain.

`joint[w, y]` is the expected gain of guess w at the target's report y, sum_x prior[x] Q(y|x) g(w, x), with gains from
0 to 1. If the other reports are independent with distribution q, the release is a histogram h ~ Multinomial(n; q), and
the best guess gains E max_w (1/n) sum_y h_y joint[w, y]/q_y. Few histograms are enumerated. Otherwise the lower bound
merges reports, and the upper bound separates the guesses.

Source: docs/theory/guessing.md, Theorems 14 to 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import Reveals, Scrambler, SecureAggregation, UniformShuffle
from hushuffle.numerics import binomial
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.exact import exponential
from hushuffle.numerics.roots import farthest
from hushuffle.questions.qif.mixture import Mixture, upper_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.mechanisms.randomizers.report_law import Blanket
    from hushuffle.model import Histogram
    from hushuffle.model.groups import Integers

Complex = npt.NDArray[np.complex128]
Ends = tuple[float, float]
Groups = tuple[tuple[int, Floats], ...]
"""Numbers of other reports and their distributions, shape (outputs,)."""

ENTRIES_LIMIT: Final = 2_000_000
"""Maximum number of counts to enumerate: about a third of a second."""
_MERGED_LIMIT: Final = 600_000
_LOWER_LOG_TAIL: Final = -10.0
_MOST_CELLS: Final = 1 << 18
_REACH: Final = 45.0
_MOST_OUTPUTS: Final = 40
_RIVALS: Final = 8
_MOST_GUESSES: Final = 32
_QUANTILES: Final = (-4.0, -2.0, -0.7, 0.7)
_SLACK: Final = 1e-12
"""Relative error allowed in the sums of an enumeration, as in `mixture`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """The counts of the reports: `matrix` is Q(y|x), `blanket` is the part common to all values.

    If `sums`, only sums of the reports are released, which reveal at most the counts.
    """

    matrix: Floats
    blanket: Blanket
    others: int
    dummies: int = 0
    sums: bool = False

    @classmethod
    def of(cls, protocol: Protocol) -> Release | None:
        """Return the release; None if it has another view, a random number of dummies, or no explicit matrix."""
        views, shufflers = (Reveals.MULTISET, Reveals.SUMS), (UniformShuffle, Scrambler, SecureAggregation)
        if protocol.reveals not in views or not isinstance(protocol.shuffler, shufflers):
            return None
        try:
            dummies, matrix = protocol.shuffler.dummies, protocol.randomizer.channel().matrix.astype(np.float64)
        except UnsupportedProtocolError:
            return None
        blanket, sums = protocol.randomizer.law().blanket(), protocol.reveals is Reveals.SUMS
        return cls(matrix=matrix, blanket=blanket, others=protocol.n - 1, dummies=dummies, sums=sums)

    def ends(self, prior: Floats, gain: Floats, *, shares: Floats, known: tuple[int, Histogram | None]) -> Ends:
        """Return bounds on the gain of an adversary who knows m values, with these counts (None: the worst case).

        `shares` is the distribution of each value that the adversary does not know. The lower bound of sums is -inf.
        """
        least, span, (m, composition) = float(gain.min()), float(gain.max() - gain.min()), known
        joint = ((gain - least) / (span or 1.0) * prior) @ self.matrix
        if m and composition is None:
            upper, cases = self._worst(joint), [] if self.sums else self._likely(m, shares)
            lower = min(upper, max([0.0, *(gain_ends(joint, case, both=False)[0] for case in cases)]))
        else:
            counts = np.zeros(prior.size, dtype=np.int64) if composition is None else composition.counts
            lower, upper = gain_ends(joint, self._groups(counts, shares))
            if lower < upper and (m or self.dummies):
                upper = max(lower, min(upper, self._worst(joint)))
        slack = 4 * EPS * (abs(least) + span) * (lower < upper)
        return -math.inf if self.sums else least + span * lower - slack, least + span * upper + slack

    def _groups(self, counts: Integers, shares: Floats) -> Groups:
        held = [(int(count), row) for count, row in zip(counts, self.matrix, strict=True) if count]
        rest = (self.others - int(counts.sum()), shares @ self.matrix)
        return (*held, rest, (self.dummies, self.blanket.law))

    def _likely(self, m: int, shares: Floats) -> list[Groups]:
        """Return cases of a large gain: all known values are equal, for two values with little noise; none is known."""
        order = np.argsort(-(self.matrix**2).sum(axis=1), kind="stable")
        cases = [m * np.eye(order.size, dtype=np.int64)[x] for x in order[:2]]
        return [self._groups(counts, shares) for counts in (*cases, 0 * cases[0])]

    def _worst(self, joint: Floats) -> float:
        """Return an upper bound for any values of the others: all reports outside of the blanket are revealed."""
        alone, law = float(joint.max(axis=0).sum()), self.blanket.law
        weight = min(1.0, self.blanket.weight) * (1 - 4 * law.size * EPS)
        if weight <= 0:
            return alone
        mean, deviation = self.others * weight, math.sqrt(self.others * weight * (1 - weight))
        starts = sorted({max(0, math.floor(mean + scale * deviation)) for scale in _QUANTILES})
        below = binomial.lower_tail(np.array(starts, dtype=np.float64) - 1, self.others, weight)
        masses = np.maximum(np.diff(np.append(below, 1.0)), 0.0)
        uppers = [Crowd.of(joint, start + self.dummies, law).upper() for start in starts]
        total = float(below[0]) * alone + float(masses @ np.array(uppers))
        return min(alone, total + 2 * len(starts) * binomial.margin(self.others) * alone)


def gain_ends(joint: Floats, groups: Groups, *, both: bool = True) -> Ends:
    """Return bounds on the expected gain, equal if exact, among independent others (`both`: an upper bound is needed).

    >>> matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> np.round(gain_ends(matrix / 2, ((2, np.array([0.5, 0.5])),)), 12).tolist()
    [0.625, 0.625]
    """
    groups = tuple((count, law) for count, law in groups if count)
    alone, blind = float(joint.max(axis=0).sum()), float(joint.sum(axis=1).max())
    if not groups or alone <= blind * (1 + 4 * EPS):
        return alone, alone
    if all(np.array_equal(law, groups[0][1]) for _, law in groups):
        return Crowd.of(joint, sum(count for count, _ in groups), groups[0][1]).ends(both=both)
    if math.prod(_widths(groups)[1]) * joint.shape[0] <= 8 * _MERGED_LIMIT:
        lower, upper = _by_transform(joint, groups)
    else:
        lower, uppers = _by_classes(joint, groups), (Crowd.of(joint, *group).upper() for group in groups if both)
        upper = min([alone, *uppers])
    return min(max(blind, lower), upper), max(blind, min(alone, upper))


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """The target among others of one distribution, posteriors joint/q; `given`: gain of reports that no other sends."""

    mixture: Mixture
    given: float

    @classmethod
    def of(cls, joint: Floats, others: int, law: Floats) -> Crowd:
        shared = law > 0
        given = float(joint[:, ~shared].max(axis=0).sum())
        joint, law = joint[:, shared], law[shared] / law[shared].sum()
        ratios = joint / law
        scale = max(float(joint.sum(axis=1).max()), 1e-300)
        # Reports with equal ratios are merged, and so are guesses that gain nothing over another guess.
        _, place = np.unique((ratios / scale).round(13), axis=1, return_inverse=True)
        law, joint = _in_classes(law, place.ravel()), np.array([_in_classes(row, place.ravel()) for row in joint])
        joint = joint[_undominated(joint)]
        whole = Mixture(n=others + 1, frequencies=joint.sum(axis=1), reports=law, posteriors=joint / law)
        return cls(mixture=whole, given=given)

    def ends(self, *, both: bool) -> Ends:
        if _entries(self.mixture) <= ENTRIES_LIMIT:
            value = self.given + self.mixture.expected_best()
            return value, value
        upper = self.upper() if both else math.inf
        return min(self.lower(), upper), upper

    def upper(self) -> float:
        if _entries(self.mixture) <= _MERGED_LIMIT:
            return (self.given + self.mixture.expected_best()) * (1 + _SLACK)
        whole, scale = self.mixture, float(self.mixture.posteriors.max()) or 1.0  # `upper_end` needs steps up to 1
        scaled = replace(whole, frequencies=whole.frequencies / scale, posteriors=whole.posteriors / scale)
        return self.given * (1 + _SLACK) + min(upper_end(scaled) * scale, self._separated() * (1 + _SLACK))

    def _separated(self) -> float:
        """Return E A + t + sum_w E[Z_w - A - t]_+ for A, the mean of the likeliest guesses, and a threshold t."""
        whole, (spread, order) = self.mixture, self._rivals()
        if order.size > _MOST_GUESSES:
            return math.inf
        cases: list[tuple[float, float, Floats]] = []
        for many in range(1, min(order.size, _RIVALS) + 1):
            base = whole.posteriors[order[:many]].mean(axis=0)
            for threshold in (np.linspace(0.0, 2.0, 9) * spread).tolist():
                excess = _excesses(whole.posteriors - base, whole.reports, whole.n, threshold)[0]
                cases.append((float(base @ whole.reports) + threshold + float(excess.sum()), threshold, base))
        _, threshold, base = min(cases, key=lambda case: case[0])
        steps = whole.posteriors - base
        grain, alike = 1e-14 * (float(np.abs(steps).max()) or 1.0), dict[bytes, list[float]]()
        for row in steps:  # guesses whose steps have the same distribution, up to rounding, are evaluated once
            levels, place = np.unique(np.round(row / grain) + 0.0, return_inverse=True)
            masses = np.round(_in_classes(whole.reports, place) * 1e14)
            own = alike.setdefault(np.append(levels, masses).tobytes(), [])
            own.append(own[0] if own else _excess(row, whole, threshold)[1] + 2 * grain * (1 + levels.size))
        return float(base @ whole.reports) + threshold + sum(map(sum, alike.values()))

    def lower(self) -> float:
        """Return the gain of an adversary who distinguishes only two guesses, or only classes of reports."""
        whole, (_, order) = self.mixture, self._rivals()
        first = whole.posteriors[order[0]]
        low, high = _excess(whole.posteriors[order[:2][-1]] - first, whole, 0.0)
        best = max(0.0, low, *(self._merged(order[:many]) for many in {min(many, order.size) for many in (3, _RIVALS)}))
        if best < high:  # otherwise two guesses alone gain no more
            best = max(best, self._merged(order[:2]))
        return (self.given + float(first @ whole.reports) + best) * (1 - _SLACK)

    def _merged(self, guesses: Integers) -> float:
        """Return E max_w (Z_w - Z_first) of some guesses, with similar reports merged until few histograms remain."""
        whole = self.mixture
        steps = whole.posteriors[guesses] - whole.posteriors[guesses[0]]

        def smaller(place: Integers) -> Mixture:
            law, merged = _merge(whole.reports, steps, place)
            return replace(whole, frequencies=merged @ law, reports=law, posteriors=merged, log_tail=_LOWER_LOG_TAIL)

        chosen = smaller(_classes(whole.reports, steps, lambda place: _entries(smaller(place)) <= _MERGED_LIMIT))
        return chosen.expected_best() if _entries(chosen) <= 2 * _MERGED_LIMIT else 0.0

    def _rivals(self) -> tuple[float, Integers]:
        """Return the largest standard deviation of a rival's advantage, and the guesses, the most relevant first."""
        whole, first = self.mixture, int(np.argmax(self.mixture.frequencies))
        score, width = _excesses(whole.posteriors - whole.posteriors[first], whole.reports, whole.n)
        score[first] = np.inf
        order = np.argsort(-score, kind="stable")
        return float(width[order[:2]].max()), order


def _excesses(steps: Floats, law: Floats, n: int, threshold: float = 0.0) -> tuple[Floats, Floats]:
    """Return E[X - t]_+ as if X, the mean of n steps, was normal, and its deviation; this only ranks and chooses."""
    mean = steps @ law
    width = np.sqrt(np.maximum((steps - mean[:, None]) ** 2 @ law / n, 1e-300))
    z = (mean - threshold) / width
    return np.asarray(width * (np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) + z * ndtr(z))), width


def _undominated(joint: Floats) -> npt.NDArray[np.bool_]:
    """Return which guesses to keep: a guess that gains no more than another one at every report is dropped."""
    keep = np.ones(joint.shape[0], dtype=np.bool_)
    for w, row in enumerate(joint[:_MOST_GUESSES]):
        keep[w] = False
        keep[w] = not (joint[keep] >= row).all(axis=1).any()
    return keep


def _merge(law: Floats, steps: Floats, place: Integers) -> tuple[Floats, Floats]:
    merged = _in_classes(law, place)
    return merged, np.array([_in_classes(row * law, place) for row in steps]) / merged


def _in_classes(weights: Floats, place: Integers) -> Floats:
    return np.bincount(place, weights=weights).astype(np.float64)


def _classes(law: Floats, steps: Floats, fits: Callable[[Integers], bool]) -> Integers:
    """Return the class of each report: the most similar classes are merged until they fit, or two remain.

    Fewer classes are taken to fit if more classes do.
    """
    place = np.arange(law.size)
    if law.size > _MOST_OUTPUTS:  # merge by rank of one difference first
        place = np.argsort(np.argsort(steps[1])) * _MOST_OUTPUTS // law.size
    places = [place]
    while place.max() > 1:
        merged, means = _merge(law, steps, place)
        loss = merged[:, None] * merged / (merged[:, None] + merged)
        loss = loss * ((means[:, :, None] - means[:, None]) ** 2).sum(axis=0)
        np.fill_diagonal(loss, np.inf)
        stays, gone = sorted(np.unravel_index(int(np.argmin(loss)), loss.shape))
        place = np.where(place == gone, stays, place)
        place -= place > gone
        places.append(place)
    return places[farthest(lambda at: fits(places[at]), good=len(places) - 1, bad=-1)]


def _entries(whole: Mixture) -> float:
    """Return the number of counts that `expected_best` evaluates, with as many columns as guesses."""
    return float(whole.entries * max(1.0, whole.posteriors.shape[0] / whole.reports.size))


def _excess(steps: Floats, whole: Mixture, threshold: float) -> Ends:
    """Return bounds on E[X - t]_+ for the mean X of n independent steps, by the transform of a lattice distribution.

    Every step is spread to its two neighbours in the lattice with the same mean, which raises the expectation by at
    most half of the mean distance.
    """
    n, mean = whole.n, float(steps @ whole.reports)
    moved = steps - mean
    variance, largest = float(moved**2 @ whole.reports), float(np.abs(moved).max())
    if largest <= 1e-13 * float(np.abs(steps).max()):
        return max(mean - threshold, 0.0), max(mean - threshold, 0.0) + largest
    reach = binomial.deviation(_REACH, n * variance, largest=largest)
    cells = min(_MOST_CELLS, max(1 << 14, 1 << math.ceil(math.log2(150 * math.sqrt(n)))))
    grid = 2.2 * reach / cells
    beyond = binomial.deviation(_REACH, n * (variance + grid**2 / 4), largest=largest + grid)
    if beyond > (cells // 2 - 2) * grid:
        return 0.0, math.inf
    lattice = np.floor(moved / grid)
    share = moved / grid - lattice
    own = np.bincount(lattice.astype(np.int64) % cells, whole.reports * (1 - share), cells)
    own += np.bincount((lattice.astype(np.int64) + 1) % cells, whole.reports * share, cells)
    product, error = _product([(n, np.fft.rfft(own))], cells)
    mass, noise = np.fft.irfft(product, cells), 2 * error / cells
    place = np.fft.fftfreq(cells, 1 / cells) * (grid / n) + mean - threshold
    gain = np.maximum(place, 0.0)
    rounding = (cells + 64) * EPS * (largest + abs(mean) + abs(threshold))
    tail = 4 * math.exp(-_REACH) * (largest + abs(mean) + abs(threshold) + float(gain.max())) + rounding
    spread = math.sqrt(float(whole.reports @ (share * (1 - share))) / n) * grid / 2
    upper = float(gain @ np.maximum(mass + noise, 0.0)) + tail
    return float(gain @ np.maximum(mass - noise, 0.0)) - spread - tail, upper


def _product(transforms: list[tuple[int, Complex]], cells: int) -> tuple[Complex, float]:
    """Return the product of powers of transforms of distributions on `cells` cells, and its error, summed."""
    levels = 8 * EPS * (math.log2(cells) + 2)  # twice Higham's bound, as in `loss_sum`
    sizes = [(power, np.maximum(np.abs(transform), 1e-300)) for power, transform in transforms]
    log_size = np.asarray(sum(power * np.log(size) for power, size in sizes))
    product = np.exp(log_size)
    reach = np.exp(sum(power * np.log(size + levels) for power, size in sizes))
    phase = sum(power * np.angle(transform) for power, transform in transforms)
    error = reach - product + product * (16 * EPS * (sum(power for power, _ in transforms) + 8) + levels)
    return exponential(log_size, np.asarray(phase)), float(error.sum())


def _by_transform(joint: Floats, groups: Groups) -> Ends:
    """Return bounds for others of several distributions, from the transform of the counts modulo `_widths`."""
    first, widths = _widths(groups)
    axes = [y for y in range(joint.shape[1]) if y != first]
    cells, outputs = math.prod(widths), joint.shape[1]
    waves = np.meshgrid(*(np.exp(-2j * np.pi * np.fft.fftfreq(width)) for width in widths), indexing="ij", sparse=True)
    product, error = _product(
        [
            (count, law[first] + sum(law[y] * wave for y, wave in zip(axes, waves, strict=True)))
            for count, law in groups
        ],
        cells << outputs,
    )
    mass = np.fft.ifftn(product).real
    shifted = [mass if y == first else np.roll(mass, 1, axis=axes.index(y)) for y in range(outputs)]
    best = np.zeros(mass.shape)  # gains are >= 0
    for row in joint:
        np.maximum(best, sum(gain * moved for gain, moved in zip(row, shifted, strict=True)), out=best)
    alone = float(joint.max(axis=0).sum())
    doubt = (2 * error + (cells + 64) * EPS * float(np.abs(mass).sum())) * alone
    return float(best.sum()) - doubt, float(best.sum()) + doubt + 4 * outputs * math.exp(-_REACH) * alone


def _widths(groups: Groups) -> tuple[int, list[int]]:
    """Return the report whose count is not needed, and for each other report a width that its count seldom exceeds."""
    variances = np.sum([count * law * (1 - law) for count, law in groups], axis=0)
    first = int(np.argmax(variances))
    most = np.sum([count * (law > 0) for count, law in groups], axis=0) + 2
    widths = [
        min(int(top), math.ceil(2 * binomial.deviation(_REACH, v) + 4)) for top, v in zip(most, variances, strict=True)
    ]
    return first, [width for y, width in enumerate(widths) if y != first]


def _by_classes(joint: Floats, groups: Groups) -> float:
    """Return a lower bound for an adversary who distinguishes only classes of reports."""
    typical = np.sum([count * law for count, law in groups], axis=0)
    shared = typical > 0
    given = float(joint[:, ~shared].max(axis=0).sum())
    joint, law = joint[:, shared], typical[shared] / typical.sum()
    order = np.argsort(-joint.sum(axis=1), kind="stable")[:_RIVALS]
    ratios = joint[order] / law

    def merged(place: Integers) -> Groups:
        return tuple((count, _in_classes(own[shared], place)) for count, own in groups)

    place = _classes(law, ratios - ratios[0], lambda place: math.prod(_widths(merged(place))[1]) <= _MERGED_LIMIT)
    if math.prod(_widths(merged(place))[1]) > 4 * _MERGED_LIMIT:
        return 0.0
    seen = np.array([_in_classes(row, place) for row in joint])
    return given + _by_transform(seen, merged(place))[0]
