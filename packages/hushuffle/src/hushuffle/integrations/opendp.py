"""Shuffled releases as measurements of OpenDP, which chains and composes them with its own."""

from __future__ import annotations

from typing import Any

from hushuffle.errors import MissingDependencyError
from hushuffle.estimation import estimate
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.questions import dp


def as_measurement(protocol: Protocol, *, delta: float) -> Any:
    """Return a measurement of OpenDP: from people's values to the shares estimated from their shuffled reports.

    The input is a list of `protocol.n` values, 0 to k - 1, one for each person; neighbours differ in one of them. The
    output is a list of k estimated shares. The measure is `approximate(max_divergence())`: the upper bound of epsilon
    at `delta`. OpenDP adds epsilons and deltas of a composition; `hs.dp.compose` gives less for the same releases.

    Raises:
        InvalidInputError, UnsupportedProtocolError: as `hs.dp.epsilon`.
        MissingDependencyError: OpenDP is not installed.
        OpenDPException: the features "contrib" and "honest-but-curious" are not enabled.

    >>> import hushuffle as hs
    >>> randomizer = hs.RandomizedResponse(k=10, epsilon=2.0)
    >>> survey = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=10_000)
    >>> as_measurement(survey, delta=1e-6).map(1)  # doctest: +SKIP
    (0.07980427398007793, 1e-06)
    """
    try:
        import opendp.prelude as odp  # noqa: PLC0415 - not of an extra
    except ImportError as missing:
        message = "A measurement needs OpenDP. Install it with: pip install 'opendp>=0.14'"
        raise MissingDependencyError(message) from missing
    epsilon = dp.epsilon(protocol, delta=delta).upper

    def shares(values: list[int]) -> list[float]:
        return list(estimate(protocol.collect(values), protocol=protocol).frequencies.tolist())

    def loss(people: int) -> tuple[float, float]:
        if people > 1:
            message = "The measurement is for one person. Several people need their own epsilon."
            raise ValueError(message)
        return (epsilon, delta) if people else (0.0, 0.0)

    values = odp.atom_domain(bounds=(0, protocol.randomizer.inputs - 1), T=int)
    return odp.m.make_user_measurement(
        input_domain=odp.vector_domain(values, size=protocol.n),
        input_metric=odp.change_one_distance(),
        output_measure=odp.approximate(odp.max_divergence()),
        function=shares,
        privacy_map=loss,
        TO="Vec<f64>",
    )
