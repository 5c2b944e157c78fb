"""The same people asked again, each answering from one report that was drawn once."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.curves.base import bracket
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import MatrixRandomizer, Mechanism
from hushuffle.mechanisms.randomizers.report_law import Symmetric
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound
from hushuffle.numerics.exact import times_upwards
from hushuffle.questions.dp.central import epsilon, local_epsilon
from hushuffle.questions.dp.composition import compose

_ROUNDED: Final = 1e-9
"""Relative: the two coins as one matrix are rounded."""

_ABOVE: Final = 1 + 1e-5
"""A mass that hardly exceeds delta would lose its digits."""

_FEW_DIGITS: Final = 1e-300
"""Floats below have lost digits."""

_THRESHOLDS: Final = 64
"""As many sets of reports are tried on each side of a change."""


def waves(
    protocol: Protocol, *, waves: int, delta: float, instantaneous: Mechanism | None = None, changes: int = 0
) -> Bound:
    """Return a bracket of epsilon (nats) of all waves together, where reports are memoised.

    Everybody draws a permanent report once and keeps it while the own value stays. In every wave everybody sends
    it, or a report on it with fresh coins, and the wave is shuffled by itself. Relation: replace one person's values in
    all waves; at which waves they change, at most `changes` times, stays, and so does at which they go back to an
    earlier value, where its report is taken up again. Without changes no number of waves says more
    than one shuffle of the permanent reports. A change draws a new one, and is seen (`change_shows`): the others'
    reports stay, so that two waves show the old report and the new one, and no crowd hides them; only fresh coins do.
    With fresh answers in every wave instead, the figure is `dp.compose([(protocol, waves)])`, and grows without end.

    Args:
        protocol: the permanent reports: randomizer, shuffler (without dummies, or coins of servers) and n, the people
            who take part in every wave and whose values stay. Others may come, go and change; they are not counted.
        waves: how often people are asked.
        delta: in [0, 1); at 0 the figure is what the waves say if the shuffler is broken.
        instantaneous: the coin of a wave, a randomizer of the permanent report's number; None: it is sent as it is.
        changes: how often one person's value may change, at most; each time a new permanent report is drawn, or that
            of a value held before is taken up again.

    Raises:
        InvalidInputError: fewer than one wave, a negative number of changes, delta out of range, or an instantaneous
            coin for another number of reports.
        UnsupportedProtocolError: dummies, coins of servers, a second coin where only sums of bits leave, or no law
            for a randomizer and shuffler.

    Source: docs/theory/composition.md, Theorem 11 and Remark 12; Erlingsson, Pihur, Korolova 2014 (the two coins).

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
        message = (
            "Waves of memoised reports are known for shufflers without dummies and servers without coins: what is "
            "fresh in every wave is averaged out."
        )
        raise UnsupportedProtocolError(message)
    once = epsilon(protocol, delta=level)
    upper = once.upper if changed == 0 else times_upwards(local_epsilon(protocol).upper, changed + 1)
    if instantaneous is None:
        if changed == 0:
            return once
        lower = max(once.lower, _told(protocol, delta=level, changes=changed, upper=upper))
        return bracket(min(lower, upper), upper, unit="nats", sources=once.sources)
    _checks.of_type("instantaneous", instantaneous, Mechanism)
    if protocol.reveals is Reveals.SUMS:
        message = "A second coin on one-hot reports tells more than their sums: it is known for reports of one number."
        raise UnsupportedProtocolError(message)
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
    """Return a lower end from the reports before and after changes, which the waves tell: Theorem 11 (f).

    One above `upper` is a probability that was rounded to 0, and left out.
    """
    if protocol.reveals is Reveals.SUMS:
        return 0.0
    law = protocol.randomizer.law()
    found = [
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
            found.append(math.log(mass - delta) - values * math.log(float(alike.lie)))
    return max((end for end in (end * (1 - _ROUNDED) - _ROUNDED for end in found) if end <= upper), default=0.0)


def _of_one_change(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], delta: float) -> float:
    """Return the same from two laws of classes of reports, for a change from the first value to the second, and back.

    Before it a report that the first value makes likelier, after it one that the second does; else the other way round.
    """
    likelier, rarer = _cumulated(first, second), _cumulated(second, first)
    mass = np.outer(likelier[0], rarer[0])
    seen = mass > delta * _ABOVE
    with np.errstate(divide="ignore"):
        other = np.add.outer(np.log(likelier[1]), np.log(rarer[1]))
    return float(np.max(np.log(mass[seen] - delta) - other[seen], initial=0.0))


def _cumulated(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the masses of classes that one law makes likelier, under both, those where it does most first; summed."""
    chosen = np.flatnonzero(one > other)
    with np.errstate(divide="ignore", over="ignore"):
        order = chosen[np.argsort(-(one[chosen] / other[chosen]), kind="stable")]
    places = np.unique(np.linspace(0, order.size - 1, min(order.size, _THRESHOLDS)).astype(np.int64))
    rare = np.where(other[order] < _FEW_DIGITS, 0.0, other[order])
    return np.stack([one[order].cumsum()[places], rare.cumsum()[places]])


def change_shows(protocol: Protocol) -> Bound:
    """Return how often a change of one person's value shows in two waves of memoised reports, sent as they are.

    Nobody else's report changes, and everybody's is sent in both waves. What is released differs then exactly if the
    person's old and new report do. The figure is for the two values whose reports differ most often; without a change
    nothing ever shows. Where a report is a bucket of a fresh hash it is between the chance of another bucket, and one.

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
        one, zero = law.one_hot.kept, law.one_hot.raised
        own, other = one * zero + (1 - one) * (1 - zero), zero**2 + (1 - zero) ** 2
        return Bound.exact(float(1 - own**2 * other ** (law.one_hot.k - 2)), unit="probability")
    matrix = np.asarray(law.channel().matrix, dtype=np.float64)
    alike = (matrix @ matrix.T)[~np.eye(matrix.shape[0], dtype=np.bool_)]
    return Bound.exact(float(1 - alike.min()), unit="probability")


def _same(law: Symmetric) -> Fraction:
    """Return the chance that the reports on two values are the same."""
    return 2 * law.truth * law.lie + (law.k - 2) * law.lie**2
