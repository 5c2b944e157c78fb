"""Estimate frequencies without bias, with their variance, post-process them, and select heavy hitters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.estimation.readout import counted, frequency_variance
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import support_law
from hushuffle.model import Estimate, Histogram, Transcript, released_reports

_CELLS: Final = 1 << 20
"""Largest number of pairs of report and value in memory at once."""


def estimate(
    reports: Transcript | npt.NDArray[np.int64] | Histogram, *, protocol: Protocol | MixedProtocol
) -> Estimate:
    """Return unbiased estimates of the frequencies of n people's values, with standard errors.

    Args:
        reports: a `Transcript`, its reports as an array, or their counts as a `Histogram` (as returned by
            `protocol.randomizer.counts`, or the sum of the counts of several machines).
        protocol: the protocol that produced them.

    If the number of dummies is random, its actual value follows from the number of reports, and the estimate is
    conditional on it. If each value has its own dummies, their mean is subtracted. If groups of people have different
    randomizers, the estimate is that of a weighted mean of the groups' frequencies: shuffled reports do not reveal the
    frequencies of each group.

    Raises:
        InvalidInputError: the number of reports is not n + dummies (if fixed), or exceeds what clients may send.
        UnsupportedProtocolError: the randomizer's reports cannot be counted.
        NumericalError: the reports do not distinguish the values.

    If the mechanism does not define which values a report supports, the estimate uses the inverse of its matrix, or
    weighted least squares if there are more different reports than values.

    Source: Kairouz, Bonawitz, Ramage 2016; docs/theory/estimation.md, Theorems 1, 10 and 12.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=4)
    >>> hs.estimate(np.array([0, 1, 1, 1]), protocol=survey).frequencies.round(4).tolist()
    [-0.041, 1.041]
    """
    _checks.of_type("protocol", protocol, Protocol, MixedProtocol)
    counted(protocol, dummies=0)  # the function either returns or refuses
    randomizer = protocol.parts[0][1]
    if isinstance(reports, Histogram):
        counts = reports
        if counts.k != randomizer.counted:
            what = "values" if randomizer.counted == randomizer.inputs else "different reports"
            _checks.reject("reports", f"counts of {randomizer.counted} {what}", counts.k)
        if protocol.shuffler.value_law is not None:  # reports are values: each report counts for one value
            _check_size(protocol, counts.total)
    else:
        array = released_reports(reports)
        protocol = _received(protocol, array)
        counts = randomizer.counts(array)
    return _estimated(protocol, counts.counts)


def estimate_values(
    reports: Transcript | npt.NDArray[np.int64], *, values: npt.ArrayLike, protocol: Protocol
) -> Estimate:
    """Return unbiased frequencies of `values` only, in their order, for domains too large to estimate in full.

    Time grows with the number of reports times the number of `values`, whatever k is.

    Args:
        reports: a `Transcript`, or its reports as an array.
        values: codes from 0 to k - 1, shape (m,), chosen independently of the reports: otherwise large estimates
            are biased by selection.
        protocol: the protocol that produced them.

    Raises:
        InvalidInputError: for the reasons of `estimate`, or a value is outside the domain.
        UnsupportedProtocolError: the randomizer's reports do not support values.

    Source: docs/theory/estimation.md, Theorem 1.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.LocalHashing(k=2**27, g=4000, epsilon=float("inf")),
    ...     shuffler=hs.BlanketMessages(p=1.0),
    ...     n=9000,
    ... )
    >>> released = survey.collect([7] * 3000 + [10**8] * 6000, rng=hs.reproducible(1))
    >>> estimate_values(released, values=[7, 8, 10**8], protocol=survey).frequencies.round(2).tolist()
    [0.33, -0.0, 0.67]
    """
    _checks.of_type("protocol", protocol, Protocol)
    randomizer = protocol.randomizer
    support_law(randomizer, for_what="An estimate of frequencies")  # the function either returns or refuses
    requested = _checks.codes("values", values, k=randomizer.inputs)
    array = released_reports(reports)
    received = _received(protocol, array)
    counts, together = np.zeros(requested.size, dtype=np.int64), max(1, _CELLS // max(requested.size, 1))
    for start in range(0, array.shape[0], together):
        counts += randomizer.supports(array[start : start + together], requested).sum(axis=1)
    return _estimated(received, counts)


def _received(protocol: Protocol | MixedProtocol, reports: npt.NDArray[np.int64]) -> Protocol | MixedProtocol:
    """Return the protocol with the number of dummies that follows from the number of reports, or raise an error."""
    _check_size(protocol, reports.shape[0])
    own = protocol.shuffler.value_law is not None
    return protocol if own else protocol.with_dummies(reports.shape[0] - protocol.n)


def _estimated(protocol: Protocol | MixedProtocol, counts: npt.NDArray[np.int64]) -> Estimate:
    """Return the estimate from the number of reports that support each value, or from the counts of each report."""
    read, others = counted(protocol)
    variance = read.variance(n=protocol.n, dummies=others)
    frequencies = read.frequencies(counts, n=protocol.n, dummies=int(others))
    return Estimate(
        frequencies=frequencies,
        raw=frequencies,
        n=protocol.n,
        variance_intercept=variance.intercept,
        variance_slope=variance.slope,
        variance_matrix=variance.matrix,
    )


def _check_size(protocol: Protocol | MixedProtocol, reports: int) -> None:
    shuffler, n = protocol.shuffler, protocol.n
    drawn, most = shuffler.dummy_law, shuffler.most_dummies
    if most is not None:
        if not n <= reports <= n + most:
            rule = f"n = {n} reports and up to {most} additional messages"
            _checks.reject("reports", rule, reports)
    elif shuffler.value_law is not None:
        if reports < n and shuffler.kept == 1:
            _checks.reject("reports", f"n = {n} reports or more", reports)
    elif drawn is not None:
        if reports - n not in drawn:
            _checks.reject("reports", f"n = {n} reports plus a number of dummies possible under {drawn!r}", reports)
    elif reports != n + shuffler.dummies:
        _checks.reject("reports", f"n + dummies = {n + shuffler.dummies} reports", reports)


def predicted_standard_error(
    protocol: Protocol | MixedProtocol, *, frequency: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return the standard error of an estimated frequency whose true value is `frequency`, in the shape of `frequency`.

    The error is over the randomizers' randomness, with the people's values fixed. If it depends on which value is
    estimated, or on other people's values, the largest error is returned; with several groups, an upper bound.

    Raises:
        InvalidInputError: a frequency is outside [0, 1].
        UnsupportedProtocolError: the randomizer's reports cannot be counted.

    Source: docs/theory/estimation.md, Theorem 1.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=6366)
    >>> round(float(predicted_standard_error(survey, frequency=0.3)), 5)
    0.00533
    """
    share = np.asarray(frequency, dtype=np.float64)
    if share.size and not bool(np.all((share >= 0) & (share <= 1))):
        _checks.reject("frequency", "in [0, 1]", "<a value outside>")
    return np.sqrt(frequency_variance(protocol).worst(share))


def standard_errors_at(protocol: Protocol, *, frequencies: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the standard error of each estimated frequency, shape (k,), if the true ones are `frequencies`, (k,).

    Source: docs/theory/estimation.md, Theorems 1 and 10.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=6366)
    >>> standard_errors_at(survey, frequencies=np.array([0.3, 0.7])).round(5).tolist()
    [0.00533, 0.00533]
    """
    return np.sqrt(frequency_variance(protocol).at(frequencies))


def keep_significant(estimate: Estimate, *, level: float = 0.05) -> Estimate:
    """Set to 0 every frequency that is not significantly above 0 (one-sided test, Bonferroni over the k values).

    A value of frequency 0 is kept with probability about level / k; some such value is kept with at most about `level`.

    Source: Erlingsson, Pihur, Korolova 2014.
    """
    wanted = _checks.probability("level", level, low_open=True, high_open=True)
    cut = NormalDist().inv_cdf(1 - wanted / estimate.k) * np.sqrt(np.maximum(estimate.variances_if_absent, 0.0))
    significant = np.where(estimate.raw > cut, estimate.frequencies, 0.0)
    return replace(
        estimate, frequencies=significant, postprocessing=(*estimate.postprocessing, f"significant at {wanted:g}")
    )


def project_on_simplex(estimate: Estimate) -> Estimate:
    """Return the nearest (Euclidean) frequencies that are >= 0 and sum to 1.

    Source: W. Wang, M. A. Carreira-Perpinan, Projection onto the probability simplex (2013).
    """
    # Adding a constant to all frequencies does not change the result; starting at 0 keeps precision for huge estimates.
    centred = estimate.frequencies - estimate.frequencies.max()
    descending = np.sort(centred)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, estimate.k + 1)
    shift = excess[np.flatnonzero(descending > excess)[-1]]
    projected = np.maximum(centred - shift, 0.0)
    return replace(estimate, frequencies=projected, postprocessing=(*estimate.postprocessing, "simplex projection"))


@dataclass(frozen=True, kw_only=True, eq=False)
class HeavyHitters:
    """Values whose frequency is statistically significant, the most frequent first.

    `values` are codes, shape (m,); `frequencies` their unbiased estimates, shape (m,). `intervals`, shape (m, 2),
    hold the true frequencies of all k values at once with probability about 1 - `level` (normal approximation), so
    selection does not invalidate the intervals. `threshold` is the smallest significant estimate.
    """

    values: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.float64]
    intervals: npt.NDArray[np.float64]
    threshold: float
    level: float

    def among(self, k: int) -> npt.NDArray[np.bool_]:
        """Return, for each of the k values, whether its frequency is significant, shape (k,)."""
        return np.isin(np.arange(k), self.values)

    def __len__(self) -> int:
        return self.values.size

    def __repr__(self) -> str:
        return f"HeavyHitters({len(self)} values above {self.threshold:.4g}, level={self.level:g})"


def heavy_hitters(
    estimate: Estimate, *, protocol: Protocol | MixedProtocol, level: float = 0.05, top: int | None = None
) -> HeavyHitters:
    """Return the values whose frequency is significantly above 0, at most `top` of them.

    The probability that any value of frequency 0 is listed is at most `level` (Bonferroni over the k values). A
    value is listed if an estimate this large has probability at most level / k at frequency 0. If reports support
    values, the estimate is a sum of independent Bernoulli trials and its tail is exact. The test is then valid for
    any n and k, even if the normal approximation fails. Otherwise a Chernoff bound of the tail is used, which holds
    for any values of the other people.

    Args:
        estimate: the result of `hushuffle.estimate`; its `raw` frequencies are used.
        protocol: the protocol that produced the reports; if dummies are random, `protocol.with_dummies(number)`.
        level: family-wise error rate allowed, in (0, 1).
        top: the largest number of values to return; None returns all.

    Raises:
        InvalidInputError: an argument is out of range, or the estimate has another number of values or people.
        UnsupportedProtocolError: the randomizer's reports cannot be counted, or the number of dummies is not fixed.

    Source: Erlingsson, Pihur, Korolova 2014 (Bonferroni); docs/theory/estimation.md, Theorems 5 and 11.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.LocalHashing(k=1000, g=8, epsilon=3.0), shuffler=hs.UniformShuffle(), n=5000
    ... )
    >>> values = np.where(np.arange(5000) < 1500, 7, np.arange(5000) % 1000)
    >>> reports = survey.collect(values, rng=hs.reproducible(1))
    >>> heavy_hitters(hs.estimate(reports, protocol=survey), protocol=survey).values.tolist()
    [7]
    """
    wanted = _checks.probability("level", level, low_open=True, high_open=True)
    read, others = counted(protocol)
    n, dummies, k = protocol.n, int(others), protocol.parts[0][1].inputs
    if (estimate.k, estimate.n) != (k, n):
        _checks.reject("estimate", f"of {k} values of {n} people", f"<{estimate.k} values of {estimate.n} people>")
    most = k if top is None else _checks.integer("top", top, low=1)
    thresholds = read.thresholds(n=n, dummies=dummies, chance=wanted / k)
    significant = np.flatnonzero(estimate.raw > thresholds - read.slack / n)
    order = significant[np.argsort(-estimate.raw[significant], kind="stable")][:most]
    return HeavyHitters(
        values=order.astype(np.int64),
        frequencies=estimate.raw[order],
        intervals=estimate.interval(1 - wanted / k)[order],
        threshold=float(thresholds.min()),
        level=wanted,
    )
