"""Shuffled releases as events of dp-accounting, and an accountant that composes them with its other events.

Neighbours are datasets in which one person's value is replaced. Every figure is an upper bound.
"""

from __future__ import annotations

import math
from typing import Any

import attr
import numpy as np
from dp_accounting import dp_event, privacy_accountant
from dp_accounting.pld import pld_privacy_accountant

from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import MatrixRandomizer, Mechanism, RandomizedResponse, UnaryEncoding
from hushuffle.mechanisms.shufflers import Scrambler, UniformShuffle
from hushuffle.questions import dp


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ChannelDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """One report of a finite channel: `matrix` has a row for each value, a column for each report."""

    matrix: tuple[tuple[float, ...], ...]


@attr.s(frozen=True, slots=True, auto_attribs=True)
class UnaryEncodingDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """One bit for each of `num_buckets` values, flipped with probability 1/(e**(epsilon/2) + 1)."""

    num_buckets: int
    epsilon: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ShuffledReleaseDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """The shuffled reports of `num_people` people, one each, among `num_dummies` dummies of the shuffler.

    `event` is that of one report: `RandomizedResponseDpEvent` of dp-accounting, `ChannelDpEvent` or
    `UnaryEncodingDpEvent`.
    """

    num_people: int
    event: dp_event.DpEvent
    num_dummies: int = 0


def protocol_of(event: ShuffledReleaseDpEvent) -> Protocol:
    """Return the protocol whose release the event describes.

    Raises:
        InvalidInputError, UnsupportedProtocolError: the event describes none.

    >>> from dp_accounting import dp_event
    >>> survey = ShuffledReleaseDpEvent(1000, dp_event.RandomizedResponseDpEvent(0.25, 4))
    >>> protocol_of(survey).randomizer.k, round(protocol_of(survey).randomizer.local_epsilon, 9)
    (4, 2.564949357)
    """
    shuffler = Scrambler(dummies=event.num_dummies) if event.num_dummies else UniformShuffle()
    return Protocol(randomizer=_randomizer(event.event), shuffler=shuffler, n=event.num_people)


def _randomizer(event: dp_event.DpEvent) -> Mechanism:
    if isinstance(event, dp_event.RandomizedResponseDpEvent):
        if event.noise_parameter <= 0:
            message = "A report without noise has no privacy loss distribution."
            raise UnsupportedProtocolError(message)
        epsilon = math.log1p(event.num_buckets * (1 - event.noise_parameter) / event.noise_parameter)
        # Rounded up, so that the report is no less accurate than that of the event.
        return RandomizedResponse(k=event.num_buckets, epsilon=float(np.nextafter(epsilon * (1 + 1e-15), math.inf)))
    if isinstance(event, ChannelDpEvent):
        return MatrixRandomizer(np.array(event.matrix))
    if isinstance(event, UnaryEncodingDpEvent):
        return UnaryEncoding(k=event.num_buckets, epsilon=event.epsilon, encoding="symmetric")
    message = f"No shuffled release of {type(event).__name__} is analysed."
    raise UnsupportedProtocolError(message)


class ShufflePLDAccountant(pld_privacy_accountant.PLDAccountant):  # type: ignore[misc]
    """The accountant of privacy loss distributions of dp-accounting that also composes shuffled releases.

    Args:
        value_discretization_interval: spacing of privacy losses (nats).
        target_delta: losses of shuffled releases are resolved where they matter at about this delta.

    >>> from dp_accounting import dp_event
    >>> accountant = ShufflePLDAccountant()
    >>> survey = ShuffledReleaseDpEvent(10_000, dp_event.RandomizedResponseDpEvent(0.3, 10))
    >>> _ = accountant.compose(survey, 12).compose(dp_event.GaussianDpEvent(10.0))
    >>> round(accountant.get_epsilon(1e-6), 3)
    1.206
    """

    def __init__(self, value_discretization_interval: float = 1e-4, *, target_delta: float = 1e-6) -> None:
        relation = privacy_accountant.NeighboringRelation.REPLACE_ONE
        super().__init__(relation, value_discretization_interval)
        self._target_delta = target_delta

    def _maybe_compose(self, event: dp_event.DpEvent, count: int, do_compose: bool) -> Any:  # noqa: FBT001 - theirs
        if isinstance(event, dp_event.RandomizedResponseDpEvent) and count > 1:
            # dp-accounting 0.6.0 composes this event once, whatever the count.
            for _ in range(count):
                refused = super()._maybe_compose(event, 1, do_compose)
            return refused
        if not isinstance(event, ShuffledReleaseDpEvent):
            return super()._maybe_compose(event, count, do_compose)
        try:
            protocol = protocol_of(event)
            if do_compose:
                step = self._value_discretization_interval
                released = dp.to_pld([(protocol, count)], interval=step, delta=self._target_delta)
                self._pld: Any = self._pld.compose(released)
        except (InvalidInputError, UnsupportedProtocolError) as error:
            return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        return None
