"""Leakage of a channel for a prior and a gain function, its maxima (capacities), and the posterior distributions.

Results of rational channels are exact and rounded once; float channels err by less than 1e-15 per input and output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import Bound, Channel
from hushuffle.model.citation import ARIMOTO, BLAHUT, BRAUN, QIF, SHANNON, VERDU
from hushuffle.numerics.binomial import EPS
from hushuffle.numerics.capacity import capacity_ends
from hushuffle.questions.qif.gain import (
    Number,
    Numbers,
    Table,
    distribution,
    joint,
    posterior_vulnerability,
    prior_vulnerability,
)

if TYPE_CHECKING:
    from hushuffle.numerics.binomial import Floats

WORK_LIMIT: Final = 100_000_000
"""Maximum number of entries processed in all steps before the current bracket is returned (a few seconds)."""


def additive_leakage(channel: Channel, prior: Numbers, gain: Table) -> Bound:
    """Return posterior minus prior vulnerability: how much the output raises the expected gain, in units of the gain.

    For rationals, the result is exact up to one rounding.

    Raises:
        InvalidInputError: `prior` is not a distribution, or the shapes do not fit.

    Source: Jurado et al. 2023, section II-A.

    >>> import hushuffle as hs
    >>> print(hs.qif.additive_leakage(hs.qif.reduced_shuffle(3, 2), hs.qif.uniform_prior(8),
    ...     hs.qif.single_target_gain(3, 2)))
    0.2500 gain (exact)
    """
    _checks.of_type("channel", channel, Channel)
    added = posterior_vulnerability(channel, prior, gain) - prior_vulnerability(prior, gain)
    return Bound.exact(float(added), unit="gain", sources=(QIF.at("section II-A"),))


def multiplicative_leakage(channel: Channel, prior: Numbers, gain: Table) -> Bound:
    """Return posterior divided by prior vulnerability: the factor by which the output multiplies the expected gain.

    For rationals, the result is exact up to one rounding. It is at most `bayes_capacity` if no gain is negative.

    Raises:
        InvalidInputError: `prior` is not a distribution, the shapes do not fit, or the prior vulnerability is not > 0.

    Source: Jurado et al. 2023, section II-A.

    >>> import hushuffle as hs
    >>> print(hs.qif.multiplicative_leakage(hs.qif.reduced_shuffle(3, 2), hs.qif.uniform_prior(8),
    ...     hs.qif.single_target_gain(3, 2)))
    1.500 times (exact)
    """
    _checks.of_type("channel", channel, Channel)
    before = prior_vulnerability(prior, gain)
    if before <= 0:
        hint = "Use additive_leakage."
        _checks.reject("gain", "such that the prior vulnerability is > 0", "<a prior vulnerability <= 0>", hint)
    factor = posterior_vulnerability(channel, prior, gain) / before
    return Bound.exact(float(factor), unit="times", sources=(QIF.at("section II-A"),))


def bayes_capacity(channel: Channel) -> Bound:
    """Return sum_y max_x channel[x, y]: the largest multiplicative leakage over all priors and non-negative gains.

    A uniform prior and `identity_gain` attain it. For rationals, the result is exact up to one rounding.

    Source: Braun, Chatzikokolakis, Palamidessi 2009; docs/theory/guessing.md, Theorem 9.

    >>> import hushuffle as hs
    >>> print(hs.qif.bayes_capacity(hs.qif.reduced_shuffle(3, 2)))
    4.000 times (exact)
    """
    _checks.of_type("channel", channel, Channel)
    return Bound.exact(float(channel.matrix.max(axis=0).sum()), unit="times", sources=(BRAUN,))


def shannon_leakage(channel: Channel, prior: Numbers, *, order: float = 1.0) -> Bound:
    """Return the mutual information of secret and output, in bits.

    All summed terms are >= 0, so a small leakage is precise: the error is below 1e-15 bits per input, and the relative
    error for rationals below 1e-13. With an `order` a > 1 (or infinite) the result is a bracket of Sibson's information
    of that order, a/(a-1) log2 of the sum over outputs y of (sum_x prior[x] channel[x, y]**a)**(1/a).

    Raises:
        InvalidInputError: `prior` is not a distribution over the inputs of `channel`, or order < 1.

    Source: Shannon 1948; Verdu 2015 (order).

    >>> import hushuffle as hs
    >>> print(hs.qif.shannon_leakage(hs.qif.reduced_shuffle(3, 2), hs.qif.uniform_prior(8)))
    1.811 bits (exact)
    >>> print(hs.qif.shannon_leakage(hs.qif.reduced_shuffle(3, 2), hs.qif.uniform_prior(8), order=2.0))
    1.900 bits (certified bracket)
    """
    _checks.of_type("channel", channel, Channel)
    if math.isnan(order) or order < 1:
        _checks.reject("order", "at least 1", order)
    weights = distribution(prior)
    if channel.matrix.shape[0] != weights.size:
        _checks.reject("prior", f"a distribution over {channel.matrix.shape[0]} inputs", f"<{weights.size} entries>")
    output = weights @ channel.matrix
    possible = np.array([bool(mass > 0) for mass in output])
    used = np.array([bool(weight > 0) for weight in weights])
    rows, mean = channel.matrix[np.ix_(used, possible)], output[possible]
    if order > 1:
        table, shares = rows.astype(np.float64), weights[used].astype(np.float64)
        peaks = table.max(axis=0)
        bits = math.log2(float(peaks @ (shares @ (table / peaks) ** order) ** (1 / order))) / (1 - 1 / order)
        error = EPS * (8 * sum(table.shape) + 64) / (1 - 1 / order)
        return Bound(lower=max(bits - error, 0.0), upper=bits + error, kind="bracket", unit="bits", sources=(VERDU,))
    # The ratio is formed in rationals, if there are any: no cancellation is left for rounding to spoil.
    excess = np.asarray((rows - mean) / mean, dtype=np.float64)
    terms = _entropy(excess) * np.asarray(mean, dtype=np.float64)
    bits = float(np.asarray(weights[used], dtype=np.float64) @ terms.sum(axis=1)) / math.log(2)
    return Bound.exact(bits, unit="bits", sources=(SHANNON,))


def shannon_capacity(channel: Channel, *, tolerance: float = 1e-9) -> Bound:
    """Return the largest Shannon leakage over all priors, in bits, as a certified bracket.

    Every step of the Blahut-Arimoto algorithm has a prior p, and I(p) <= capacity <= max_x D(row x || output
    distribution for p). Both bounds allow for rounding. The search stops if they differ by at most `tolerance` bits, or
    after `WORK_LIMIT`; the bracket is then wider, but still certified.

    Args:
        channel: maps the secret to what the adversary observes.
        tolerance: target width of the bracket in bits.

    Raises:
        InvalidInputError: `tolerance` is not > 0.

    Source: Blahut 1972, Arimoto 1972; docs/theory/guessing.md, Theorem 9.

    >>> import hushuffle as hs
    >>> print(hs.qif.shannon_capacity(hs.Channel(matrix=[[0.89, 0.11], [0.11, 0.89]])))
    0.5001 bits (certified bracket)
    """
    _checks.of_type("channel", channel, Channel)
    aim = _checks.positive("tolerance", tolerance)
    lower, upper = capacity_ends(channel.matrix.astype(np.float64), tolerance=aim, work=WORK_LIMIT)
    return Bound(lower=lower, upper=upper, kind="bracket", unit="bits", sources=(SHANNON, BLAHUT, ARIMOTO))


def _entropy(excess: Floats) -> Floats:
    """Return (1 + e) ln(1 + e) - e for e >= -1."""
    near = np.abs(excess) < 0.1
    small, large = np.where(near, excess, 0.0), np.where(near | (excess <= -1), 0.0, excess)
    series = np.zeros_like(small)
    for j in range(18, 1, -1):  # e**2/2 - e**3/6 + e**4/12 - ...
        series = series * -small + 1 / (j * (j - 1))
    far = np.where(excess <= -1, 1.0, (1 + large) * np.log1p(large) - large)
    return np.asarray(np.where(near, series * small * small, far))


DIGITS: Final = 12
"""Number of equal decimals at which float posteriors are merged; rational posteriors are merged only if equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hyper:
    """A distribution over posteriors: `outer[i]` is the probability of the posterior `inners[i]`.

    The shapes are (posteriors,) and (posteriors, inputs); entries are `Fraction` objects or float64. The posteriors are
    different and sorted by descending first entry, so equivalent channels have equal rational hyper-distributions.
    """

    outer: npt.NDArray[Any]
    inners: npt.NDArray[Any]

    def vulnerability(self, gain: Table) -> Number:
        """Return sum_i outer[i] max_w sum_x inners[i, x] gain[w, x], the posterior vulnerability.

        Raises:
            InvalidInputError: a gain whose shape does not fit.

        >>> import hushuffle as hs
        >>> hs.qif.hyper(hs.qif.uniform_prior(8),
        ...     hs.qif.reduced_shuffle(3, 2)).vulnerability(hs.qif.single_target_gain(3, 2))
        Fraction(3, 4)
        """
        table = np.array(gain)
        if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != self.inners.shape[1]:
            _checks.reject("gain", f"a table of shape (guesses, {self.inners.shape[1]})", f"<shape {table.shape}>")
        value = (table @ self.inners.T).max(axis=0) @ self.outer
        return value if self.outer.dtype == object and not isinstance(value, float) else float(value)

    def __eq__(self, other: object) -> bool:
        """Return whether the two hyper-distributions agree entry by entry."""
        if not isinstance(other, Hyper):
            return NotImplemented
        return np.array_equal(self.outer, other.outer) and np.array_equal(self.inners, other.inners)

    def __repr__(self) -> str:
        return f"Hyper({self.outer.size} posteriors over {self.inners.shape[1]} inputs)"


def hyper(prior: Numbers, channel: Channel) -> Hyper:
    """Return the hyper-distribution of `prior` after `channel`: its posteriors, with equal posteriors merged.

    It is exact if prior and channel are rational. Float posteriors that agree to 12 decimals are merged into their
    mean, so the mean of all posteriors is still the prior. Two posteriors that differ only by rounding errors may stay
    separate; this changes no vulnerability.

    Args:
        prior: a distribution over the channel's inputs, shape (inputs,).
        channel: maps the secret to what the adversary observes.

    Raises:
        InvalidInputError: `prior` is not a distribution over the inputs of `channel`.

    Source: McIver, Morgan, Smith, Espinoza, Meinicke 2014; Jurado et al. 2023, section II-A.

    >>> import hushuffle as hs
    >>> [str(weight) for weight in hs.qif.hyper(hs.qif.uniform_prior(8), hs.qif.shuffle(3, 2)).outer]
    ['1/8', '3/8', '3/8', '1/8']
    """
    together = joint(channel, prior)
    exact = together.dtype == object and all(not isinstance(entry, float) for entry in together.flat)
    together = together if exact else together.astype(np.float64)
    merged: dict[tuple[Number, ...], npt.NDArray[Any]] = {}
    for column in together.T:
        weight = column.sum()
        if weight:
            inner = column / weight
            key = tuple(inner if exact else np.round(inner, DIGITS))
            merged[key] = merged[key] + column if key in merged else column
    columns = [merged[key] for key in sorted(merged, reverse=True)]
    outer = np.array([column.sum() for column in columns])
    return Hyper(outer=outer, inners=np.array([column / column.sum() for column in columns]))


def parallel(first: Channel, second: Channel) -> Channel:
    """Return the channel that runs both channels independently on the same input and outputs both results.

    Entry (x, (y, z)) is first[x, y] second[x, z]; exact if both are rational, else in floats.

    Raises:
        InvalidInputError: different numbers of inputs.

    Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, The Science of Quantitative
    Information Flow (2020), chapter 8.

    >>> import hushuffle as hs
    >>> from fractions import Fraction as F
    >>> coin = hs.Channel(matrix=[[F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]])
    >>> [str(entry) for entry in hs.qif.parallel(coin, coin).matrix[0]]
    ['9/16', '3/16', '3/16', '1/16']
    """
    _checks.of_type("first", first, Channel)
    _checks.of_type("second", second, Channel)
    inputs = first.matrix.shape[0]
    if second.matrix.shape[0] != inputs:
        _checks.reject("second", f"a channel with {inputs} inputs", second.matrix.shape[0])
    pair = (first.matrix, second.matrix)
    left, right = pair if first.rational == second.rational else tuple(m.astype(np.float64) for m in pair)
    matrix = (left[:, :, None] * right[:, None, :]).reshape(inputs, -1)
    outputs = [(y, z) for y in first.outputs for z in second.outputs]
    return Channel(matrix=matrix, inputs=first.inputs, outputs=outputs)
