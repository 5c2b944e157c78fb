"""Lower bounds on the power of a test on a sum of independent scores, from the transforms of `score_sums`.

P(S + Z > 0) is the power of the randomized test that accepts with probability Phi(S/tau). The aliases of the
trapezoidal rule are bounded (Chernoff) and subtracted.

Source: docs/theory/sums.md, Lemmas 1 to 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.exact import turn_parts
from hushuffle.numerics.score_sums import NOISE, WIDE, Complex, Nodes, ReportScores, ScoreTransform, beyond

_CLOSE: Final = 1e-9
"""A lower bound this close, relatively, to the upper bound for all tests is accepted."""

_FAR: Final = 8.0
"""Standard deviations, of a normal distribution's transform, to which approximations evaluate the integral."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherReports:
    """Other people's reports: `counts[i]` reports have distribution `masses[i]`, shape (V,), over the same scores."""

    counts: tuple[int, ...]
    masses: Floats


def advantage(
    scores: ReportScores, crowd: OtherReports, target: tuple[Floats, Floats], growth: float, *, smoothing: float
) -> float:
    """Return a lower bound on P_a(accept) - growth P_b(accept) for a test on all reports; 0 without a bound.

    The result is the better of two tests. The first accepts if the smoothed sum of `scores` is positive; the mass of
    `scores` is the mean distribution of the other reports. The second accepts if there is a report that other people
    hardly ever send. The target's report has distribution target[0] or target[1] over the scores; their missing mass is
    not counted."""
    total = sum(crowd.counts)
    # The other reports have at most `total` times their mean distribution, for any value of the target.
    price, noise = total * scores.mass, 8 * EPS * (target[0] + growth * (target[1] + total * scores.mass))
    sighted = float(np.maximum(target[0] - growth * (target[1] + price) - noise, 0.0).sum()) * (1 - 1e-14)
    # No test is better than one that sees the target's own report alone.
    if total == 0 or sighted >= (1 - _CLOSE) * float(np.maximum(target[0] - growth * target[1], 0.0).sum()):
        return sighted
    scores, _ = scores.tamed(total).scaled()  # the division keeps the sign of the sum
    order, begins = scores.ties()
    scores = scores.merged()
    crowd = replace(crowd, masses=np.add.reduceat(crowd.masses[:, order], begins, axis=1))
    target = np.add.reduceat(target[0][order], begins), np.add.reduceat(target[1][order], begins)
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            smoothed = _smoothed_test(scores, crowd, target, growth, smoothing)
    except ArithmeticError:
        return sighted
    return sighted if math.isnan(smoothed) else max(smoothed, sighted)


def _smoothed_test(
    scores: ReportScores, crowd: OtherReports, target: tuple[Floats, Floats], growth: float, smoothing: float
) -> float:
    """Return a lower bound on P_a(accept) - growth P_b(accept) for the test on the smoothed sum of scores."""
    value, size = scores.value, scores.size
    nodes = Nodes.of(scores, sum(crowd.counts), smoothing)
    if nodes.deep:
        return 0.0
    groups = zip(crowd.masses, crowd.counts, strict=True)
    nodes = nodes.thinned(*((replace(scores, mass=mass), count) for mass, count in groups if count))
    product, error, log_mass, slack = _product(value, size, crowd, nodes)
    own, own_error = _own(value, size, (target[0], growth * target[1]), nodes)
    kernel = nodes.weights * nodes.smooth() / nodes.line
    result = float((product * own * kernel).real.sum())
    wrong = error * np.abs(own) + (np.abs(product) + error) * (own_error + 64 * EPS * np.abs(own))
    moved = float((target[0] + growth * target[1]) @ np.exp(nodes.tilt * value))
    missed = float(np.abs(kernel) @ wrong) + beyond(nodes, power=1) * moved
    scale = float(np.exp(log_mass))
    return scale * (result - missed) - 2 * slack * scale * abs(result) - _aliases(value, crowd, target[0], nodes)


def saddle_point(
    scores: ReportScores, crowd: OtherReports, target: tuple[Floats, Floats], epsilon: float, smoothing: float
) -> tuple[float, float]:
    """Return an approximation of `advantage` with growth e**epsilon, and of its derivative in epsilon; not a bound.

    The integral of `advantage` is evaluated where a normal distribution would have its transform.
    """
    total, growth = sum(crowd.counts), math.exp(epsilon)
    gain = (target[0] - target[1]) - math.expm1(epsilon) * target[1]
    with np.errstate(all="ignore"):
        nodes = Nodes.of(scores, total, smoothing)
        spread = math.sqrt(total * scores.variance(nodes.tilt))
        z = nodes.line[: math.ceil(_FAR * nodes.period / (2 * math.pi * spread)) + 1]
        grown = np.expm1(z[:, None] * scores.value)
        logs = np.log1p(grown @ crowd.masses.T) @ np.array(crowd.counts)
        kernel = np.exp(logs + nodes.tau**2 / 2 * z**2) / z * nodes.weights[: z.size]
        value, rest = ((kernel @ (grown @ own + own.sum())).real for own in (gain, target[1]))
    return float(value), -growth * float(rest)


def _product(value: Floats, size: Floats, crowd: OtherReports, nodes: Nodes) -> tuple[Complex, Floats, float, float]:
    """Return the others' transform at the nodes with its error, and its logarithm at the tilt with its error."""
    product, error = np.ones(nodes.angles.size, dtype=np.complex128), np.zeros(nodes.angles.size)
    log_mass, slack = 0.0, 0.0
    for count, mass in zip(crowd.counts, crowd.masses, strict=True):
        if count == 0:
            continue
        transform = ScoreTransform.of(ReportScores(value=value, size=size, mass=mass), nodes)
        each, doubt = transform.power(count)
        product, error = product * each, error * (np.abs(each) + doubt) + np.abs(product) * doubt
        log_mass, slack = log_mass + count * transform.log_mass, slack + count * transform.slack
    return product, error, log_mass, slack


def _own(value: Floats, size: Floats, target: tuple[Floats, Floats], nodes: Nodes) -> tuple[Complex, Floats]:
    """Return the sum over scores of (first - second) e**(z score) at the nodes, and its error."""
    lifted, (away, sine) = np.exp(nodes.tilt * value), turn_parts(np.outer(nodes.angles, value))
    weights = (target[0] - target[1]) * lifted
    own = (1 - away) @ weights + 1j * (sine @ weights)
    moved = (target[0] + target[1]) * lifted
    return own, NOISE * (float(moved @ (1 + nodes.tilt * size)) + nodes.angles * float(moved @ size))


def _aliases(value: Floats, crowd: OtherReports, first: Floats, nodes: Nodes) -> float:
    """Return a bound on the probabilities a period or more away, weighted as in the trapezoidal rule."""
    below = float(np.exp(-nodes.tilt * nodes.period))
    best = np.inf
    for step in (0.5, 1.0, 2.0, 4.0, 8.0):
        more = step * WIDE / nodes.period
        tilt = nodes.tilt + more
        top = max(tilt * float(value.max()), 0.0)  # factored out to prevent overflow
        lifted = np.exp(tilt * value - top)
        own = math.log(max(float(first @ lifted), 1e-300))
        pairs = zip(crowd.counts, crowd.masses, strict=True)
        others = sum(count * (top + math.log(max(float(mass @ lifted), 1e-300))) for count, mass in pairs)
        exponent = top + own + others + (nodes.tau * tilt) ** 2 / 2 - more * nodes.period
        best = min(best, 1.01 * math.exp(min(exponent, 700.0)) / -math.expm1(-more * nodes.period))
    return best + below / (1 - below)
