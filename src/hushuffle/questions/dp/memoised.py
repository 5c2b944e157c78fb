"""Repeated collections among the same people with memoised reports."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.curves.base import bracket
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import MatrixRandomizer, Mechanism
from hushuffle.mechanisms.randomizers.report_law import Symmetric
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound
from hushuffle.numerics.exact import times_upwards
from hushuffle.questions.dp.central import epsilon, local_epsilon
from hushuffle.questions.dp.composition import compose

_ROUNDED: Final = 1e-9
"""Relative rounding error of the two randomizers multiplied into one matrix."""

_ABOVE: Final = 1 + 1e-5
"""A probability counts only if it exceeds delta by this factor, since smaller differences lose precision."""

_FEW_DIGITS: Final = 1e-300
"""Smaller floats have lost digits."""

_THRESHOLDS: Final = 64
"""Number of sets of reports that are tried on each side of a change."""


def waves(
    protocol: Protocol, *, waves: int, delta: float, instantaneous: Mechanism | None = None, changes: int = 0
) -> Bound:
    """Return a bracket of epsilon (nats) of several waves of collection together, with memoised reports.

    Every client draws a permanent report once and reuses it while its value stays. In every wave it sends this report,
    or a fresh randomization of it, and each wave is shuffled separately. Relation: replace one person's values in all
    waves. The waves at which the values change (at most `changes` times), or return to an earlier value whose report
    is reused, are the same in the two datasets. Without changes, epsilon of all waves is that of one shuffle of the
    permanent reports. A change draws a new report. As other people's reports stay the same, two waves reveal the old
    and the new report (`change_shows`), unless each wave adds fresh randomness. With fresh reports in every wave,
    epsilon is `dp.compose([(protocol, waves)])`, which grows without limit.

    Args:
        protocol: the permanent reports: randomizer, shuffler (without dummies or random bits of servers) and n, the
            people who take part in every wave with a constant value. Other participants are not counted.
        waves: number of collections.
        delta: in [0, 1); at 0 epsilon is that of a compromised shuffler.
        instantaneous: the randomizer that each wave applies to the permanent report; None sends this report itself.
        changes: largest number of changes of one person's value; each draws a new permanent report, or reuses that of
            an earlier value.

    Raises:
        InvalidInputError: fewer than one wave, a negative number of changes, delta out of range, or an instantaneous
            randomizer for another number of reports.
        UnsupportedProtocolError: dummies, random bits of servers, an instantaneous randomizer where only sums are
            released, or no bound for this randomizer and shuffler.

    Source: docs/theory/composition.md, Theorem 11 and Remark 12; Erlingsson, Pihur, Korolova 2014 (both randomizers).

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(waves(survey, waves=365, delta=1e-6))
    0.3234 nats (certified bracket)
    >>> print(hs.dp.compose([(survey, 365)], delta=1e-6))
    7.386 to 7.518 nats (certified bracket)
    """
    _checks.of_type("protocol", protocol, Protocol)
    times = _checks.integer("waves", waves, low=1)
    level = _checks.probability("delta", delta, high_open=True)
    changed = min(_checks.integer("changes", changes, low=0), times - 1)
    if protocol.shuffler.expected_dummies or protocol.shuffler.all_coins:
        _checks.unsupported(
            "Memoised reports need a shuffler without dummies, and servers without random bits: an observer averages "
            "out what is fresh in every wave."
        )
    once = epsilon(protocol, delta=level)
    upper = once.upper if changed == 0 else times_upwards(local_epsilon(protocol).upper, changed + 1)
    if instantaneous is None:
        if changed == 0:
            return once
        lower = max(once.lower, _told(protocol, delta=level, changes=changed, upper=upper))
        return bracket(min(lower, upper), upper, unit="nats", sources=once.sources)
    _checks.of_type("instantaneous", instantaneous, Mechanism)
    if protocol.reveals is Reveals.SUMS:
        _checks.unsupported(
            "An instantaneous randomizer needs reports of one number: on one-hot reports it reveals more than sums."
        )
    permanent = protocol.randomizer.channel()
    reports = permanent.matrix.shape[1]
    if instantaneous.inputs != reports:
        _checks.reject("instantaneous", f"for {reports} permanent reports", f"<{instantaneous.inputs} values>")
    together = MatrixRandomizer(channel=permanent.cascade(instantaneous.channel()))
    first = epsilon(replace(protocol, randomizer=together), delta=level)
    fresh = compose([(replace(protocol, randomizer=instantaneous), times)], delta=level)
    upper = min(upper, fresh.upper)
    lower = min(first.lower * (1 - _ROUNDED), upper)
    return bracket(lower, upper, unit="nats", sources=(*once.sources, *fresh.sources), witness=first.witness)


def _told(protocol: Protocol, *, delta: float, changes: int, upper: float) -> float:
    """Return a lower bound on epsilon from the reports before and after changes (waves reveal them): Theorem 11 (f).

    A candidate above `upper` comes from a probability that was rounded to 0, and is ignored.
    """
    if protocol.reveals is Reveals.SUMS:
        return 0.0
    law = protocol.randomizer.law()
    bounds = [
        _of_one_change(laws.rows[first], laws.rows[second], delta)
        for laws in law.pairs()
        for first, second in laws.pairs
    ]
    alike = law.symmetric
    if alike is not None and alike.lie > 0:
        for values in range(3, min(changes + 1, alike.k) + 1):
            mass = float(alike.truth) ** values
            if mass <= delta * _ABOVE:
                break
            bounds.append(math.log(mass - delta) - values * math.log(float(alike.lie)))
    return max((end for end in (end * (1 - _ROUNDED) - _ROUNDED for end in bounds) if end <= upper), default=0.0)


def _of_one_change(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], delta: float) -> float:
    """Return the lower bound for a change from a first to a second value and back, from two report distributions.

    Before it a report that the first value makes likelier, after it one that the second does; else the other way round.
    """
    likelier, rarer = _cumulated(first, second), _cumulated(second, first)
    mass = np.outer(likelier[0], rarer[0])
    seen = mass > delta * _ABOVE
    with np.errstate(divide="ignore"):
        other = np.add.outer(np.log(likelier[1]), np.log(rarer[1]))
    return float(np.max(np.log(mass[seen] - delta) - other[seen], initial=0.0))


def _cumulated(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return cumulative masses under each distribution, over classes likelier under the first, by falling ratio."""
    chosen = np.flatnonzero(first > second)
    with np.errstate(divide="ignore", over="ignore"):
        order = chosen[np.argsort(-(first[chosen] / second[chosen]), kind="stable")]
    places = np.unique(np.linspace(0, order.size - 1, min(order.size, _THRESHOLDS)).astype(np.int64))
    rare = np.where(second[order] < _FEW_DIGITS, 0.0, second[order])
    return np.stack([first[order].cumsum()[places], rare.cumsum()[places]])


def change_shows(protocol: Protocol) -> Bound:
    """Return the probability that a change of one person's value is visible in two waves of memoised reports.

    Both waves send the permanent reports, and no other person's report changes. The releases then differ if and only if
    the person's old and new reports differ. The result is for the two values whose reports differ most often. For local
    hashing, it is a bracket from the probability of another bucket to 1.

    Raises:
        UnsupportedProtocolError: the mechanism has too many reports for a matrix, and no closed form.

    Source: docs/theory/composition.md, Remark 13.

    >>> import hushuffle as hs
    >>> coin = hs.RandomizedResponse.from_truth_probability(k=2, p=0.75)
    >>> print(change_shows(hs.Protocol(randomizer=coin, shuffler=hs.UniformShuffle(), n=1000)))
    0.6250 (exact)
    """
    _checks.of_type("protocol", protocol, Protocol)
    law = protocol.randomizer.law()
    if law.symmetric is not None:
        return Bound.exact(float(1 - _same(law.symmetric)), unit="probability")
    if law.bucket is not None:
        bucket = law.bucket
        together = bucket.truth**2 + (bucket.k - 1) * bucket.lie**2  # the two values share the bucket
        return bracket(float(1 - max(together, _same(bucket))), 1.0, unit="probability", sources=())
    if law.one_hot is not None:
        truth, noise = law.one_hot.kept, law.one_hot.raised
        own, other = truth * noise + (1 - truth) * (1 - noise), noise**2 + (1 - noise) ** 2
        return Bound.exact(float(1 - own**2 * other ** (law.one_hot.k - 2)), unit="probability")
    matrix = np.asarray(law.channel().matrix, dtype=np.float64)
    alike = (matrix @ matrix.T)[~np.eye(matrix.shape[0], dtype=np.bool_)]
    return Bound.exact(float(1 - alike.min()), unit="probability")


def _same(law: Symmetric) -> Fraction:
    """Return the probability that independent reports of two different values are equal."""
    return 2 * law.truth * law.lie + (law.k - 2) * law.lie**2
