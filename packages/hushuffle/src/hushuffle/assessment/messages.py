"""Tables and charts on additional messages of people, and the fewest messages that meet the privacy target."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hushuffle.assessment.trials import worst_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Chart, Series, Table
from hushuffle.questions.dp import epsilon
from hushuffle.specification.exposure import ONCE, Exposure

_TIMES: Final = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)


def sends_more(protocol: Protocol) -> bool:
    """Return whether people send additional messages next to a report."""
    return messages_of(protocol) > 1


def messages_of(protocol: Protocol) -> float:
    """Return the mean number of messages of one person, with the report."""
    return 1 + protocol.shuffler.own_messages


def message_table(protocol: Protocol) -> Table:
    """Return a table of the messages and bits that a person sends.

    >>> import hushuffle as hs
    >>> truth = hs.RandomizedResponse(k=1024, epsilon=float("inf"))
    >>> survey = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.05), n=10**6)
    >>> [row[1] for row in message_table(survey).rows]
    [1.05, 2, 10.0, 10.5]
    """
    shuffler, bits = protocol.shuffler, protocol.randomizer.layout.bits
    each = messages_of(protocol)
    return Table(
        key="messages",
        title="What a person sends",
        caption=(
            "Each person sends the report and additional messages that do not depend on it. They protect the report "
            "only after shuffling, and hardly protect it if an adversary sees which messages come from one person."
        ),
        columns=("figure", "value"),
        rows=(
            ("messages of each person, on average", each),
            ("messages of each person, at most", 1 + shuffler.most_messages),
            ("bits of a message", bits),
            ("bits of each person, on average", each * bits),
        ),
    )


def dummy_table(protocol: Protocol, *, delta: float) -> Table:
    """Return a table about a shuffler that adds dummies of each value, with their number and the guarantee.

    >>> import hushuffle as hs
    >>> truth = hs.RandomizedResponse(k=4, epsilon=float("inf"))
    >>> survey = hs.Protocol(randomizer=truth, shuffler=hs.AugmentedShuffle.pure(epsilon=1.0), n=10**6)
    >>> [f"{row[1]:.4g}" for row in dummy_table(survey, delta=1e-6).rows[:3]]
    ['0.3935', '0.6065', '2.426']
    """
    shuffler, law = protocol.shuffler, protocol.shuffler.value_law
    assert law is not None
    pure = epsilon(protocol, delta=0.0)
    without = "no guarantee" if math.isinf(pure.upper) else pure
    return Table(
        key="added-dummies",
        title="What the shuffler is trusted with",
        caption=(
            "The shuffler keeps each report with a fixed probability, adds a random number of dummies per category, "
            "and keeps both secret. An adversary who learns the numbers of dummies may read answers."
        ),
        columns=("figure", "value"),
        rows=(
            ("probability that a report is kept", shuffler.kept),
            ("dummies of each category, on average", law.mean),
            ("dummies of all categories, on average", shuffler.expected_dummies),
            (f"epsilon of one release at delta = {delta:g}", epsilon(protocol, delta=delta)),
            ("epsilon of one release at delta = 0", without),
        ),
    )


def message_tables(protocol: Protocol, *, delta: float) -> Iterator[Table]:
    """Yield the tables on additional messages of people, and on dummies of each value, that the protocol has."""
    if sends_more(protocol):
        yield message_table(protocol)
    if protocol.shuffler.value_law is not None and protocol.shuffler.tossed is None:
        yield dummy_table(protocol, delta=delta)


def message_charts(protocol: Protocol, *, delta: float, exposure: Exposure = ONCE) -> tuple[Chart, Chart]:
    """Return charts of the central epsilon and of the standard error against the number of additional messages."""
    here = protocol.shuffler.own_messages
    numbers = sorted({here * times for times in _TIMES if here * times <= protocol.shuffler.most_own_messages})
    others = [with_messages(protocol, number) for number in numbers]
    label = "additional messages of each person"
    return (
        Chart(
            key="privacy-against-messages",
            title="Privacy against the number of additional messages",
            caption=f"Epsilon at delta = {delta:g} falls as people send more messages; smaller is more private.",
            x_label=label,
            y_label="epsilon (nats)",
            series=(
                Series.through(
                    "released, after the shuffler", numbers, (exposure.epsilon(one, delta=delta) for one in others)
                ),
            ),
            x_log=True,
            y_log=True,
            here=here,
        ),
        Chart(
            key="accuracy-against-messages",
            title="Accuracy against the number of additional messages",
            caption="Predicted standard error of an estimated share, at the worst true share.",
            x_label=label,
            y_label="standard error of a share",
            series=(Series.through("standard error", numbers, [worst_error(one) for one in others]),),
            x_log=True,
            y_log=True,
            here=here,
        ),
    )


def with_messages(protocol: Protocol, number: float) -> Protocol:
    """Return the protocol in which each person sends on average `number` additional messages."""
    return replace(protocol, shuffler=protocol.shuffler.with_own_messages(number))
