"""Tables and warnings about a sum by several messages: its costs, its accuracy, and several sums together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Table, Warned, number
from hushuffle.questions import dp

_ROUNDS: Final = (4, 12, 52)


def costs(protocol: SplitAndMix) -> Table:
    """The messages and bits that one person sends."""
    return Table(
        key="costs",
        title="What each person sends",
        caption=(
            f"Each message is a whole number below {protocol.modulus:,}, and is uniformly distributed whatever the "
            "number is. Encryption increases the size of each message."
        ),
        columns=("figure", "value"),
        rows=(
            ("messages", protocol.messages_per_person),
            ("bits of a message", protocol.bits_per_message),
            ("bytes of all messages", protocol.bits_per_person / 8),
            ("messages of all people", protocol.messages_per_person * protocol.n),
            ("people who must answer and be honest", protocol.needed),
        ),
    )


def accuracy(protocol: SplitAndMix) -> Table:
    """The standard errors of sum and mean, if all people answer or fewer."""
    central = math.sqrt(2 * protocol.noise.variance * protocol.needed) * protocol.step
    on_levels = math.sqrt(2 * protocol.noise.variance * protocol.n) * protocol.step
    of_each = "" if protocol.coordinates == 1 else f"The table is about each of the {protocol.coordinates:,} sums. "
    rows = []
    for people in sorted({protocol.n, (protocol.n + protocol.needed) // 2, protocol.needed}, reverse=True):
        error = protocol.standard_error(people)
        rows.append((f"{people:,} people", error, error / people, error / central))
    return Table(
        key="accuracy",
        title="How accurate the sum is: standard errors",
        caption=(
            f"{of_each}"
            "Standard errors over all randomness, for the worst numbers, which lie half way between levels. If all "
            f"numbers are on levels and all people answer, the error of the sum is {number(on_levels, up=True)}. Last "
            "column: the error divided by the error of a trusted party that adds discrete Laplace noise to the sum. If "
            f"fewer than {protocol.needed:,} people answer, the shuffler must release nothing."
        ),
        columns=("who answers", "error of the sum", "error of the mean", "ratio to a trusted party's error"),
        rows=tuple(rows),
    )


def together(protocol: SplitAndMix) -> Table:
    """Central epsilon of several sums of the same people."""
    # Several rounds need a larger delta than a single round: the guarantee may fail in each round.
    delta = protocol.delta
    rows = [(times, delta * times, dp.compose([(protocol, times)], delta=delta * times)) for times in _ROUNDS]
    return Table(
        key="rounds",
        title="Several sums of the same people",
        caption="Central epsilon of all sums together, if each sum uses fresh randomness.",
        columns=("sums", "delta", "central epsilon"),
        rows=tuple(rows),
    )


def sum_warnings(protocol: SplitAndMix) -> Iterator[Warned]:
    """Warnings on a sum, the most serious first."""
    yield Warned(
        key="one-fake-person",
        sentence=(
            f"A single Sybil client can move the sum by up to {number(protocol.farthest, up=True)}, in the unit of the "
            "numbers. No check of single messages detects this."
        ),
        advice="Use split and mix only with trusted devices, or compare the sum with another source.",
    )
    yield Warned(
        key="no-local-privacy",
        sentence="No protection remains if the shuffler reveals who sent which message.",
        advice="Encrypt messages for the analyst, and let a party that does not collude with the analyst shuffle.",
    )
    yield Warned(
        key="too-few-people",
        sentence=(
            f"The guarantee needs {protocol.needed:,} people of {protocol.n:,} who answer, are honest and do not "
            "collude with the analyst. Who answers must not depend on the numbers. The analyst has all messages before "
            "a check could reject a dishonest one."
        ),
        advice=(
            f"Let the shuffler release nothing if fewer than {protocol.needed:,} people answer. Raise this limit by "
            "the number of dishonest people who may answer."
        ),
    )
    if protocol.needed == protocol.n:
        yield Warned(
            key="nobody-may-drop-out",
            sentence="The guarantee holds only if all people answer, are honest and do not collude with the analyst.",
            advice="Lower the share of people that the guarantee needs: with honest = 0.8 the error is 1/9 larger.",
        )
