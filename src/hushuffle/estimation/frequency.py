"""Frequencies from reports: unbiased, with their variance; post-processing by name."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.curves.readout import counted, frequency_variance, readout
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import support_law
from hushuffle.model import Estimate, Histogram, Transcript

_CELLS: Final = 1 << 20
"""Pairs of report and value looked at together."""


def estimate(reports: Transcript | npt.NDArray[np.int64] | Histogram, *, protocol: Protocol) -> Estimate:
    """Return unbiased frequencies of the n people's values, with their errors.

    Args:
        reports: a `Transcript`, its reports as an array, or what `protocol.randomizer.counts` returns of them (a
            `Histogram`, for example the sum of the counts of several machines).
        protocol: the protocol that produced them.

    A random number of dummies is counted: what is estimated, and how well, is as with that fixed number, whatever it
    is; where people send them, fewer or more may do so than were expected. Where each value gets dummies of its own,
    their mean is subtracted.

    Raises:
        InvalidInputError: the number of reports is not n + dummies (where it can be told), or more than people may
            send.
        UnsupportedProtocolError: the randomizer's reports cannot be counted.
        NumericalError: the reports do not tell the values apart.

    A mechanism whose reports do not support values is read by the inverse of its matrix, or by weighted least squares
    where it has more reports than values.

    Source: Kairouz, Bonawitz, Ramage 2016; docs/theory/estimation.md, Theorems 1 and 10.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=4)
    >>> hs.estimate(np.array([0, 1, 1, 1]), protocol=survey).frequencies.round(4).tolist()
    [-0.041, 1.041]
    """
    _checks.of_type("protocol", protocol, Protocol)
    readout(protocol.randomizer)  # or refuse
    if isinstance(reports, Histogram):
        counts = reports
        if counts.k != protocol.randomizer.counted:
            what = "values" if protocol.randomizer.counted == protocol.randomizer.inputs else "different reports"
            _checks.reject("reports", f"counts of {protocol.randomizer.counted} {what}", counts.k)
        if protocol.shuffler.value_law is not None:  # reports are values: each counts once
            _check_size(protocol, counts.total)
    else:
        array = reports.reports if isinstance(reports, Transcript) else np.atleast_1d(reports)
        protocol = _received(protocol, array)
        counts = protocol.randomizer.counts(array)
    return _estimated(protocol, counts.counts)


def estimate_values(
    reports: Transcript | npt.NDArray[np.int64], *, values: npt.ArrayLike, protocol: Protocol
) -> Estimate:
    """Return unbiased frequencies of some values only, in their order: where there are too many to look at all.

    Time grows with the number of reports times that of `values`, whatever k is.

    Args:
        reports: a `Transcript`, or its reports as an array.
        values: codes from 0 to k - 1, shape (m,), chosen without looking at the reports: else a large estimate is
            partly chance.
        protocol: the protocol that produced them.

    Raises:
        InvalidInputError: as for `estimate`, or a value outside the domain.
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
    support_law(randomizer, for_what="An estimate of some frequencies")  # or refuse
    asked = _checks.codes("values", values, k=randomizer.inputs)
    array = reports.reports if isinstance(reports, Transcript) else np.atleast_1d(reports)
    made = _received(protocol, array)
    counts, together = np.zeros(asked.size, dtype=np.int64), max(1, _CELLS // max(asked.size, 1))
    for start in range(0, array.shape[0], together):
        counts += randomizer.supports(array[start : start + together], asked).sum(axis=1)
    return _estimated(made, counts)


def _received(protocol: Protocol, reports: npt.NDArray[np.int64]) -> Protocol:
    """Return the protocol with the dummies counted that are among its reports, or refuse their number."""
    _check_size(protocol, reports.shape[0])
    own = protocol.shuffler.value_law is not None
    return protocol if own else protocol.with_dummies(reports.shape[0] - protocol.n)


def _estimated(protocol: Protocol, counts: npt.NDArray[np.int64]) -> Estimate:
    """Return the estimate from how many reports support each of some values, or from counts of the matrix's reports."""
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


def _check_size(protocol: Protocol, reports: int) -> None:
    """Refuse a number of reports that the protocol never releases."""
    shuffler, n = protocol.shuffler, protocol.n
    drawn, most = shuffler.dummy_law, shuffler.most_dummies
    if most is not None:
        if not n <= reports <= n + most:
            rule = f"n = {n} reports and up to {most} messages that people send besides"
            _checks.reject("reports", rule, reports)
    elif shuffler.value_law is not None:
        if reports < n and shuffler.kept == 1:
            _checks.reject("reports", f"n = {n} reports or more", reports)
    elif drawn is not None:
        if reports - n not in drawn:
            _checks.reject("reports", f"n = {n} reports and dummies of {drawn!r}", reports)
    elif reports != n + shuffler.dummies:
        _checks.reject("reports", f"n + dummies = {n + shuffler.dummies} reports", reports)


def predicted_standard_error(protocol: Protocol, *, frequency: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the standard error of an estimated frequency whose true value is `frequency`, same shape.

    It is over the randomizers' coins, with the people's values held fixed. Where it depends on the value, or on what
    all others hold, it is the largest.

    Raises:
        InvalidInputError: a frequency outside [0, 1].
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
    """Return the standard error of each estimated frequency, shape (k,), where the true ones are `frequencies`, (k,).

    Source: docs/theory/estimation.md, Theorems 1 and 10.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=6366)
    >>> standard_errors_at(survey, frequencies=np.array([0.3, 0.7])).round(5).tolist()
    [0.00533, 0.00533]
    """
    return np.sqrt(frequency_variance(protocol).at(frequencies))


def keep_significant(estimate: Estimate, *, level: float = 0.05) -> Estimate:
    """Set to 0 every frequency that does not exceed 0 significantly (one-sided, Bonferroni over the k values).

    A value that nobody holds survives with probability about level / k, any of them with at most about `level`.

    Source: Erlingsson, Pihur, Korolova 2014.
    """
    wanted = _checks.probability("level", level, low_open=True, high_open=True)
    cut = NormalDist().inv_cdf(1 - wanted / estimate.k) * np.sqrt(np.maximum(estimate.variances_if_absent, 0.0))
    kept = np.where(estimate.raw > cut, estimate.frequencies, 0.0)
    return replace(estimate, frequencies=kept, postprocessing=(*estimate.postprocessing, f"significant at {wanted:g}"))


def project_on_simplex(estimate: Estimate) -> Estimate:
    """Return the nearest (Euclidean) frequencies that are >= 0 and sum to 1.

    Source: W. Wang, M. A. Carreira-Perpinan, Projection onto the probability simplex (2013).
    """
    # Adding a constant changes nothing; starting at 0 keeps precision where estimates are huge.
    centred = estimate.frequencies - estimate.frequencies.max()
    descending = np.sort(centred)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, estimate.k + 1)
    shift = excess[np.flatnonzero(descending > excess)[-1]]
    projected = np.maximum(centred - shift, 0.0)
    return replace(estimate, frequencies=projected, postprocessing=(*estimate.postprocessing, "simplex projection"))
