"""Upper bounds on E[sum of N scores]_+ that are valid for every choice of a distribution for each of the N terms.

Terms form groups, and each term of a group follows one of the group's distributions. For any tilt t > 0, and with a
Gaussian Z of standard deviation tau added (see `score_sums`),

    E[S]_+ <= (1/period) sum over nodes u of |phi(t + iu)| |transform of Z|/(t**2 + u**2) + (omitted nodes),

where |phi| is the product of the terms' |phi_c|. It is log-linear in the numbers of terms with each distribution. So
the bound is a convex function of these numbers, and it is largest if all terms of a group follow the same distribution.
Only these cases need evaluation. The excess of scores over a cap is linear in these numbers,

    [S]_+ <= [sum of min(X, cap)]_+ + sum of (X - cap)_+ ,

and so is the contribution of reports that only the target sends. If the groups' sizes are random, a convex function of
the sizes is at most its mean over the vertices of a surrounding simplex, weighted to have the mean sizes.

Source: docs/theory/sums.md, Lemmas 1 and 2; docs/theory/pool.md, Lemma 2 and Corollary 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from scipy.special import erfcx, logsumexp

from hushuffle.curves.laws.kinds import NOISE, Kinds
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.score_sums import Nodes, ReportScores, ScoreTransform, log_damped

_LAST: Final = 9.0
"""Nodes extend to u = 9/tau, where the Gaussian factor is e**-40.5."""

_SMOOTH: Final = 0.04
"""Product of tau and t: smoothing multiplies the bound by e**(0.04**2/2)."""

_SAFE: Final = 300.0
"""Largest product of tilt and score: far above it, exponentials would overflow."""

_TILTS: Final = np.geomspace(0.02, 200.0, 120)
"""Candidate tilts, in units of one over the standard deviation of the sum."""

_SKIP: Final = 8
"""Every so many candidates are estimated first, then those around the best of these."""

_LEAST: Final = 1e-9 - 1
"""Smallest value of E[e**(t X)] - 1: a type whose E[e**(t X)] is below 1e-9 does not matter."""

_TRACE: Final = 1e-14
"""Share of the tilted mass whose classes are dropped and counted as an error."""

_NEGLIGIBLE: Final = -60.0
"""Logarithm of a modulus whose contribution is negligible."""

_HOPELESS: Final = 1e6
"""Logarithm that replaces an overflow: no useful bound."""

_CHOICES: Final = 4096
"""Largest number of choices evaluated one by one; beyond, the worst choice is taken at each node."""

_EVERY: Final = 64
"""Largest number of choices that determine the tilt together."""

Choice = tuple[int, ...]
"""A choice: the index of one type (report distribution) for each group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedSums:
    """Upper bounds on E[sum of N scores]_+ for one pair of the target's values, at one epsilon and several N.

    Each bin b has one bound, shape (bins,): a mean over vertices v with weights `shares[b, v]`. At vertex v,
    `counts[b, v, g]` terms follow types of group g. If `every` is set, all choices (up to 64) determine the tilt, not
    only the two choices with the largest squares, and only the tilt and cap with the best estimate are evaluated.
    """

    groups: tuple[Kinds, ...]
    epsilon: float
    counts: Floats
    shares: Floats
    every: bool = False

    @classmethod
    def alike(cls, kinds: Kinds, epsilon: float, counts: Floats) -> MixedSums:
        """Return the bounds for sums of `counts` terms, shape (bins,), that all belong to one group.

        >>> kinds = Kinds.of(np.array([0.75, 0.25]), np.array([0.25, 0.75]), np.array([[0.75, 0.25], [0.25, 0.75]]))
        >>> sums = MixedSums.alike(kinds, 0.3, np.array([100.0]))
        >>> (np.exp(sums.raised(np.array([-np.inf]))) / 100).round(4).tolist()
        [0.0005]
        """
        return cls(groups=(kinds,), epsilon=epsilon, counts=counts[:, None, None], shares=np.ones((counts.size, 1)))

    def raised(self, bound: Floats) -> Floats:
        """Return logarithms of upper bounds for all choices of distributions, but at least `bound`, shape (bins,)."""
        if self._largest <= 0:
            each = np.array([float(self._above(g, 0.0).max()) for g in range(len(self.groups))])
            return np.maximum(bound, _log(self._linear(each)))
        bound = bound - math.log(self._unit)
        best = np.full(bound.shape, np.inf)
        for tilt, cap in self.tuned[: 1 if self.every else None]:
            best = np.minimum(best, np.maximum(bound, self._over_all(tilt, cap, bound)))
            if bool((best <= bound).all()):
                break
        return best + math.log(self._unit) + 4 * EPS

    def coarse(self, tilt: float, *, damped: bool = True) -> Floats:
        """Return logarithms of coarse upper bounds for each type of the only group, shape (kinds, bins).

        The tilt is in the scores' original unit. With several groups, one row is for all choices. Bounds that are not
        `damped` are larger, and take less time.
        """
        shape = self.groups[0].starts.size if len(self.groups) == 1 else 1, self.counts.shape[0]
        if self._largest <= 0:
            return np.broadcast_to(self.raised(np.full(shape[1], -np.inf)), shape)
        table = _ScoreTransforms(sums=self, cap=math.inf, nodes=nodes_at(tilt * self._unit, 0.0), damped=damped)
        choices, values = table.ordered()
        bounds = np.empty(shape)
        if len(self.groups) == 1:
            bounds[[kind for (kind,) in choices]] = values[:, :, 0]
        else:
            bounds[0] = logsumexp(values.max(axis=0), axis=1, b=self.shares)
        return np.logaddexp(bounds, _log(self._linear(self._excess(math.inf)))) + math.log(self._unit) + 64 * EPS

    @property
    def best(self) -> float:
        """The tilt to try first, in the scores' original unit."""
        return self.tuned[0][0] / self._unit if self._largest > 0 else 1.0

    @cached_property
    def tuned(self) -> list[tuple[float, float]]:
        """Pairs (tilt, cap) to try, sorted by an estimate of the bound, smallest first."""
        choices = []
        for cap in self._caps():
            tilts, guess = self._guessed(cap)
            choice = int(guess.argmin())
            beyond = float(self._linear(self._excess(cap))[0])
            choices.append((math.exp(min(float(guess[choice]), 700.0)) + beyond, float(tilts[choice]), cap))
        return [(tilt, cap) for _, tilt, cap in sorted(choices)]

    def _over_all(self, tilt: float, cap: float, bound: Floats) -> Floats:
        """Return logarithms of the bound with this tilt and cap, shape (bins,); it is refined only above `bound`."""
        nodes = nodes_at(tilt, self._spread(tilt, cap))
        beyond = self._linear(self._excess(cap))
        # Sums of capped scores up to this size do not raise the result above `bound`.
        allowed = _log(np.exp(np.minimum(bound, 700.0)) - beyond)[:, None]
        table = _ScoreTransforms(sums=self, cap=cap, nodes=nodes)
        if math.prod(kinds.starts.size for kinds in self.groups) > _CHOICES:
            worst = table.together()
        else:
            choices, values = table.ordered()
            above = (values > allowed).any(axis=(1, 2))
            worst = values[~above].max(axis=0, initial=-np.inf)
            for place in np.flatnonzero(above).tolist():
                value = values[place]
                if bool((value > np.maximum(allowed, worst)).any()):
                    closer = table.close(choices[place])
                    value = closer if bool(np.isfinite(closer).all()) else value
                worst = np.maximum(worst, value)
        most = worst.max(axis=1)
        if not bool(np.isfinite(most).all()):
            return np.full(bound.shape, np.inf)
        mixed = most + np.log((self.shares * np.exp(worst - most[:, None])).sum(axis=1))
        total: Floats = np.logaddexp(mixed, _log(beyond)) + 16 * EPS
        return total

    @cached_property
    def _first(self) -> Floats:
        """Mean number of terms of each group in the first bin, shape (groups,)."""
        return np.asarray(self.shares[0] @ self.counts[0])

    def _linear(self, each: Floats) -> Floats:
        """Return the sum over all terms, shape (bins,), if a term of group g adds `each[g]`, shape (groups,)."""
        total: Floats = np.einsum("bv,bvg,g->b", self.shares, self.counts, each) * (1 + 1e-12)
        return total

    @cached_property
    def _plain(self) -> tuple[ReportScores, ...]:
        return tuple(kinds.scores(self.epsilon) for kinds in self.groups)

    @cached_property
    def _largest(self) -> float:
        return max(float(each.value.max()) for each in self._plain)

    @cached_property
    def _unit(self) -> float:
        """Unit of scores, a power of 2 near the largest score, so that squares neither overflow nor underflow."""
        return 2.0 ** math.frexp(self._largest)[1]

    @cached_property
    def scores(self) -> tuple[ReportScores, ...]:
        """The scores of each group's classes, in units; scores so low that their sum is always negative are raised."""
        unit, floor = self._unit, -2.0 * float(self.counts.sum(axis=2).max())
        return tuple(
            replace(
                each, value=np.maximum(each.value / unit, floor), size=np.minimum(each.size / unit, np.float64(-floor))
            )
            for each in self._plain
        )

    @cached_property
    def _corners(self) -> tuple[tuple[Choice, ...], tuple[tuple[ReportScores, ...], ...]]:
        """The two choices with the largest mean square of scores, and of positive scores, or all; and their scores."""
        marks = []
        for kinds, scores in zip(self.groups, self.scores, strict=True):
            both = kinds.sums(scores.mass * scores.value**2)
            above = kinds.sums(scores.mass * np.maximum(scores.value, 0.0) ** 2)
            marks.append((int(both.argmax()), int(above.argmax())))
        choices = tuple(dict.fromkeys(zip(*marks, strict=True)))
        every = [range(kinds.starts.size) for kinds in self.groups]
        if self.every and math.prod(len(each) for each in every) <= _EVERY:
            choices = tuple(product(*every))
        return choices, tuple(tuple(self.of_kind(g, kind) for g, kind in enumerate(choice)) for choice in choices)

    def of_kind(self, group: int, kind: int) -> ReportScores:
        """Return the scores of type number `kind` in group number `group`."""
        kinds, scores = self.groups[group], self.scores[group]
        inside = slice(kinds.starts[kind], kinds.starts[kind + 1] if kind + 1 < kinds.starts.size else None)
        return ReportScores(value=scores.value[inside], size=scores.size[inside], mass=scores.mass[inside])

    def _square(self, scores: tuple[ReportScores, ...], cap: float) -> float:
        """Return the sum of the mean squares of the capped scores over all terms of the first bin."""
        squares = (float(each.mass @ np.minimum(each.value, cap) ** 2) for each in scores)
        return float(sum(count * square for count, square in zip(self._first.tolist(), squares, strict=True)))

    def _caps(self) -> tuple[float, ...]:
        """Return the caps to try: a score above the drift of all other terms alone makes the sum positive."""
        drift = float(self._first.sum()) * math.expm1(self.epsilon) / self._unit
        corners = self._corners[1]
        more = 2 * math.sqrt(max(self._square(scores, math.inf) for scores in corners))
        largest = max(float(each.value.max()) for scores in corners for each in scores)
        return (*(cap for cap in (drift, drift + more) if 0 < cap < largest), math.inf)

    def _guessed(self, cap: float) -> tuple[Floats, Floats]:
        """Return the best tilts, and estimates of the logarithm of the bound with each, from Gaussian sums."""
        corners = self._corners[1]
        tilts = _TILTS / math.sqrt(max(*(self._square(scores, cap) for scores in corners), 1e-300))
        largest = max(float(np.minimum(each.value, cap).max()) for scores in corners for each in scores)
        safe = tilts * largest <= _SAFE
        tilts = tilts[safe] if bool(safe.any()) else np.array([_SAFE / largest])
        middle = _SKIP * int(self._estimated(tilts[::_SKIP], cap).argmin())
        tilts = tilts[max(middle - _SKIP + 1, 0) : middle + _SKIP]
        return tilts, self._estimated(tilts, cap)

    def _estimated(self, tilts: Floats, cap: float) -> Floats:
        guess = np.full(tilts.shape, -np.inf)
        for scores in self._corners[1]:
            log_mass, variance = np.zeros(tilts.shape), np.zeros(tilts.shape)
            for count, each in zip(self._first.tolist(), scores, strict=True):
                value = np.minimum(each.value, cap)
                grown = np.expm1(tilts[:, None] * value)
                excess = np.maximum(grown @ each.mass, _LEAST)
                log_mass += count * np.log1p(excess)
                variance += count * ((grown + 1) @ (each.mass * value**2)) / (1 + excess)
            guess = np.maximum(guess, log_mass + np.log(erfcx(tilts * np.sqrt(variance / 2)) / (2 * tilts)))
        return guess

    def _spread(self, tilt: float, cap: float) -> float:
        """Return the largest standard deviation of the tilted sum over the choices of `_corners`."""
        deviations = []
        for scores in self._corners[1]:
            variance = 0.0
            for count, each in zip(self._first.tolist(), scores, strict=True):
                value = np.minimum(each.value, cap)
                mass = each.mass * np.exp(tilt * value)
                mean = float(mass @ value) / float(mass.sum())
                variance += count * max(float(mass @ value**2) / float(mass.sum()) - mean**2, 0.0)
            deviations.append(math.sqrt(variance))
        return max(deviations)

    def _excess(self, cap: float) -> Floats:
        """Return the largest `_above` of each group's types, in units, shape (groups,)."""
        return np.array([float(self._above(g, cap * self._unit).max()) for g in range(len(self.groups))]) / self._unit

    def _above(self, group: int, cap: float) -> Floats:
        """Return, for each type, E[X - cap]_+ plus the divergence from reports that only the target sends.

        Rounded up, shape (kinds,).
        """
        kinds, scores = self.groups[group], self._plain[group]
        seen = kinds.seen(self.epsilon)
        if math.isinf(cap):
            return seen
        over = np.maximum(scores.value - cap + NOISE * scores.size, 0.0)
        return seen + kinds.sums(scores.mass * over) * (1 + 2 * NOISE)


class _ScoreTransforms:
    """Characteristic functions of the types' scores with one tilt and one cap, computed at first use."""

    def __init__(self, *, sums: MixedSums, cap: float, nodes: Nodes, damped: bool = True) -> None:
        self._sums, self._cap, self._nodes, self._damped = sums, cap, nodes, damped
        self._weights, self._tail = kernel(nodes)
        self._logs, self._spreads, self._widths = zip(*map(self._tilted, range(len(sums.groups))), strict=True)
        self._known: dict[tuple[int, int], tuple[ScoreTransform, float]] = {}

    def ordered(self) -> tuple[list[Choice], Floats]:
        """Return all choices of a type for each group, and logarithms of coarse bounds, (choices, bins, vertices).

        These use |phi| at u = 0 and a bound on its decay. The choices with the largest bounds come first.
        """
        choices = np.indices([logs.size for logs in self._logs]).reshape(len(self._logs), -1)
        logs, spreads, widths = (
            np.stack([each[chosen] for each, chosen in zip(part, choices, strict=True)], axis=1)
            for part in (self._logs, self._spreads, self._widths)
        )
        counts, tilt = self._sums.counts, self._nodes.tilt
        kernel = np.full(len(choices.T), math.log(float(self._weights.sum()) + self._tail))
        if self._damped:
            variances = np.einsum("bvg,cgw->cbvw", counts, spreads).min(axis=(1, 2))
            kernel = np.minimum(kernel, log_damped(tilt, variances, widths.max(axis=1), blur=0.05))
        values = np.einsum("bvg,cg->cbv", counts, logs) + kernel[:, None, None] + 64 * EPS
        order = np.argsort(-values[:, 0, 0], kind="stable")
        return [tuple(choice) for choice in choices.T[order].tolist()], values[order]

    def close(self, choice: Choice) -> Floats:
        """Return logarithms of a bound that evaluates |phi| at all nodes, shape (bins, vertices)."""
        try:
            parts = [self._transform(g, kind) for g, kind in enumerate(choice)]
        except ArithmeticError:  # no unit is accurate enough: only the coarse bound is available
            return np.full(self._sums.shares.shape, np.inf)
        shape = self._sums.shares.shape
        total, moduli = np.zeros(shape), np.ones((*shape, self._nodes.angles.size))
        for (transform, doubt), counts in zip(parts, np.moveaxis(self._sums.counts, -1, 0), strict=True):
            moduli *= _moduli(transform, counts)
            total += counts * (transform.log_mass + transform.slack + doubt)
        logarithms: Floats = total + np.log(moduli @ self._weights + self._tail) + 64 * EPS
        return logarithms

    def together(self) -> Floats:
        """Return logarithms of one bound for all choices: it uses the worst choice at each node, (bins, vertices)."""
        try:
            parts = [[self._transform(g, kind) for kind in range(logs.size)] for g, logs in enumerate(self._logs)]
        except ArithmeticError:
            return np.full(self._sums.shares.shape, np.inf)
        logs = np.zeros((*self._sums.shares.shape, self._nodes.angles.size))
        for group, counts in zip(parts, np.moveaxis(self._sums.counts, -1, 0), strict=True):
            each = [
                _log(_moduli(transform, counts)) + (counts * (transform.log_mass + transform.slack + doubt))[..., None]
                for transform, doubt in group
            ]
            logs += np.max(each, axis=0)
        top = logs.max(axis=-1)
        inside = np.log(np.exp(logs - top[..., None]) @ self._weights)
        logarithms: Floats = np.logaddexp(top + inside, logs[..., 0] + math.log(self._tail)) + 64 * EPS
        return logarithms

    def _tilted(self, group: int) -> tuple[Floats, Floats, Floats]:
        """Return an upper bound on ln E[e**(tilt X)] for the score X of each type of a group, shape (kinds,).

        Also return what `log_damped` needs of a score, for the whole range of X and for its middle quarter: a lower
        bound on mass squared times variance, and the width, both of shape (kinds, 2).
        """
        kinds, scores, tilt = self._sums.groups[group], self._sums.scores[group], self._nodes.tilt
        value = np.minimum(scores.value, self._cap)
        with np.errstate(over="ignore", invalid="ignore"):
            grown = np.expm1(tilt * value)
            reach = tilt * scores.size
            noise = NOISE * kinds.sums(scores.mass * (np.abs(grown) + (grown + 1) * reach * (1 + reach)))
            excess = np.maximum(kinds.sums(scores.mass * grown), _LEAST)
            logs: Floats = np.log1p(excess) + noise / (1 + excess) + 4 * EPS
            logs[~np.isfinite(logs)] = _HOPELESS
            if not self._damped:  # nothing reads the other two
                return logs, logs[:, None], logs[:, None]
            mass = scores.mass * (grown + 1)
            width = np.maximum.reduceat(value, kinds.starts) - np.minimum.reduceat(value, kinds.starts)
            sizes = np.diff(kinds.starts, append=value.size)
            away = value - np.repeat(kinds.sums(mass * value) / (1 + excess), sizes)
            spreads = []
            for inside in (mass, mass * (np.abs(away) <= np.repeat(width / 8, sizes))):
                size, mean, square = (kinds.sums(inside * away**power) / (1 + excess) for power in range(3))
                spread = np.where(excess > _LEAST, size * square * (1 - 1e-6) - mean**2, 0.0)
                spreads.append(np.where(np.isfinite(spread), spread, 0.0))
        return logs, np.stack(spreads, axis=1), np.outer(width, (1.0, 0.25))

    def _transform(self, group: int, kind: int) -> tuple[ScoreTransform, float]:
        if self._logs[group][kind] >= _HOPELESS:
            raise FloatingPointError
        if (group, kind) not in self._known:
            scores = self._sums.of_kind(group, kind)
            scores = replace(scores, value=np.minimum(scores.value, self._cap)).merged()
            scores, doubt = _without_traces(scores, self._nodes.tilt)
            transform = ScoreTransform.of(scores, self._nodes)
            self._known[group, kind] = replace(transform, doubt=transform.doubt + doubt), doubt
        return self._known[group, kind]


def _moduli(transform: ScoreTransform, counts: Floats) -> Floats:
    """Return upper bounds on |phi(t + iu)/phi(t)|**count at all nodes u, shape (*counts, nodes).

    Where the smallest power is negligible, it bounds the others.
    """
    least = float(counts.min())
    matter = least * transform.exponent.real > _NEGLIGIBLE
    moduli = np.empty((*counts.shape, matter.size))
    for number, inside in ((counts[..., None], matter), (np.array([least]), ~matter)):
        exponent, doubt = transform.exponent[inside], transform.doubt[inside]
        modulus = np.maximum(np.exp(exponent.real), doubt)
        # |x + e|**count - |x|**count <= count e (|x| + e)**(count - 1)
        logarithm = np.log(np.maximum(number, 1e-200) * doubt)
        logarithm = logarithm + np.maximum(number - 1, 0.0) * (np.log(modulus) + doubt / modulus)
        rounding = 4 * EPS * (1 + number * np.abs(exponent))
        moduli[..., inside] = np.exp(number * exponent.real) * (1 + rounding) + np.exp(np.minimum(logarithm, 1.0))
    return moduli


def nodes_at(tilt: float, spread: float) -> Nodes:
    """Return the nodes for all types; the bound is convex in the shares only if all types have the same nodes."""
    tau, period = _SMOOTH / tilt, max(12 / tilt, 8 * min(spread, 8 / tilt))
    last = math.ceil(_LAST * period / (2 * math.pi * tau))
    return Nodes(tilt=tilt, tau=tau, period=period, angles=np.arange(last + 1.0) * (2 * math.pi / period))


def kernel(nodes: Nodes) -> tuple[Floats, float]:
    """Return the weights of the moduli, shape (J,), and an upper bound on what the omitted nodes add."""
    weights = nodes.weights * np.abs(nodes.smooth()) / np.abs(nodes.line) ** 2 * (1 + 64 * EPS)
    last = float(nodes.angles[-1])
    gaussian = math.exp(nodes.tau**2 / 2 * (nodes.tilt**2 - last**2))
    return weights, gaussian / (math.pi * nodes.tau**2 * last**3)


def _without_traces(scores: ReportScores, tilt: float) -> tuple[ReportScores, float]:
    """Return the scores without classes of negligible mass (their scores become 0), and the error that results.

    The error bounds the change of phi on the line of this tilt, relative to the value of phi at u = 0.
    """
    part = scores.mass * (np.exp(tilt * scores.value) + 1)
    order = np.argsort(part)
    total = float((scores.mass * np.exp(tilt * scores.value)).sum())
    dropped = order[np.cumsum(part[order]) <= _TRACE * total]
    keep = np.ones(part.size, dtype=np.bool_)
    keep[dropped] = False
    left = ReportScores(value=scores.value[keep], size=scores.size[keep], mass=scores.mass[keep])
    return left, 1.01 * float(part[dropped].sum()) / total


def _log(value: Floats) -> Floats:
    return np.log(np.maximum(value, 1e-300))
