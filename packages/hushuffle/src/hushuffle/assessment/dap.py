"""Describe a secure-aggregation collection as a DAP task: the VDAF of its reports, and the task's configuration."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from hushuffle.estimation import refused
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals, SecureAggregation

DAP: Final = "draft-ietf-ppm-dap-18"
VDAF: Final = "draft-irtf-cfrg-vdaf-20"
SHARES: Final = 2
"""The number of aggregators of a task of the Distributed Aggregation Protocol (DAP): a leader and a helper."""


NAMES: Final = {3: "Prio3SumVec", 4: "Prio3Histogram", 5: "Prio3MultihotCountVec"}
"""The functions by their identifiers in the registry of the VDAF draft."""

FORMS: Final = {3: ">IQI", 4: ">II", 5: ">IIQ"}
"""How DAP encodes the parameters of each function, as a format of `struct`."""


@dataclass(frozen=True, kw_only=True)
class Vdaf:
    """The VDAF (verifiable distributed aggregation function) that adds up reports.

    If a report is one number, the VDAF is `Prio3Histogram`. For bit vectors it is `Prio3SumVec` with 1 as the largest
    entry, or `Prio3MultihotCountVec` with a limit `most_ones` on the number of ones. `chunk_length` is near the square
    root of the length of the proven vector, as the VDAF draft recommends.

    >>> bits = Vdaf(length=8, bits=True)
    >>> bits.name, bits.number, bits.parameters
    ('Prio3SumVec', 3, {'length': 8, 'max_measurement': 1, 'chunk_length': 3})
    >>> bits.configuration.hex()
    '00000008000000000000000100000003'
    """

    length: int
    bits: bool = False
    most_ones: int | None = None

    @property
    def name(self) -> str:
        return NAMES[self.number]

    @property
    def number(self) -> int:
        """The identifier of the function in the registry of the VDAF draft."""
        return 5 if self.most_ones is not None else 3 if self.bits else 4

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters of the function by the draft's names, in the order of DAP's encoding."""
        proven = self.length + (self.most_ones or 0).bit_length()
        length, chunk = {"length": self.length}, {"chunk_length": max(1, round(math.sqrt(proven)))}
        if self.most_ones is not None:
            return length | chunk | {"max_weight": self.most_ones}
        return length | ({"max_measurement": 1} if self.bits else {}) | chunk

    @property
    def configuration(self) -> bytes:
        """The parameters as DAP encodes them in a task's configuration."""
        return struct.pack(FORMS[self.number], *self.parameters.values())


def refusal(protocol: Protocol) -> tuple[str, str, str] | None:
    """Why DAP does not support a collection (rule, value, hint for `shuffler.kind`); None if it does."""
    shuffler = protocol.shuffler
    if shuffler.reveals is not Reveals.SUMS:
        return "must be secure-aggregation", shuffler.describe(), "DAP releases nothing but sums of reports."
    if shuffler.all_coins:
        return (
            "must be without random bits of servers",
            f"{shuffler.all_coins:,} Bernoulli trials for each sum",
            "DAP's aggregators add no random bits. Use `laplace`, the noise that they can add.",
        )
    return None


def vdaf(protocol: Protocol, *, most_ones: int | None = None) -> Vdaf:
    """The VDAF whose aggregate result equals the result of `protocol.sums`.

    >>> import hushuffle as hs
    >>> votes = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.SecureAggregation(), n=9)
    >>> vdaf(votes).name, vdaf(votes).parameters
    ('Prio3Histogram', {'length': 5, 'chunk_length': 2})
    """
    bits = protocol.randomizer.law().one_hot is not None
    length = protocol.randomizer.inputs if bits else protocol.randomizer.layout.limits[0]
    return Vdaf(length=length, bits=bits, most_ones=most_ones)


def task(protocol: Protocol, *, batch: int, asked: Mapping[str, Any], most_ones: int | None = None) -> dict[str, Any]:
    """Settings of a DAP task that a collection determines, and the assumptions of its certificate.

    `batch` is the smallest batch size for which the guarantee holds; `asked` has the `reports_per_person` and the
    `rounds` that the guarantee covers. With `most_ones`, servers refuse a report with more ones.
    """
    instance = vdaf(protocol, most_ones=most_ones)
    limit: list[str] = []
    if most_ones is not None:
        chance = refused(protocol.randomizer, most_ones=most_ones).upper
        limit = [
            f"Aggregators refuse an honest report with probability {chance:.4g}. With n reports in a batch, refusals "
            f"add (1 + exp(epsilon)) * n * {chance:.4g} to delta."
        ]
    assert isinstance(protocol.shuffler, SecureAggregation)  # see `refusal`
    scale = protocol.shuffler.laplace
    noise = (
        f"Leader and helper each add discrete Laplace noise of scale {scale:g} to each sum (Janus: dp_strategy)."
        if scale
        else "Noise that the leader or the helper adds (Janus: dp_strategy) is not counted. It only raises privacy."
    )
    return {
        "standards": {"dap": DAP, "vdaf": VDAF},
        "min_batch_size": batch,
        "vdaf_type": instance.number,
        "vdaf": {"type": instance.name, "shares": SHARES, **instance.parameters},
        "vdaf_configuration": instance.configuration.hex(),
        "measurement": "the number that the device reports"
        if not instance.bits
        else "the bits that the device reports, one true or false for each value",
        "aggregate": "how often each number was reported"
        if not instance.bits
        else "number of reports with bit 1, by value",
        "assumes": [
            "Each device randomizes its value before it splits the measurement into shares.",
            "The leader and the helper do not collude. If they do, only the guarantee local_epsilon holds.",
            "At least min_batch_size reports of a batch come from people who do not collude with the collector: DAP "
            "counts reports, and does not identify their senders.",
            f"One person gives at most {asked['reports_per_person']} of the reports of a batch, and is in at most "
            f"{asked['rounds']} of the batches.",
            noise,
            *limit,
        ],
        **({"dp_strategy": dp_strategy(instance.length, scale)} if scale else {}),
    }


def dp_strategy(length: int, scale: float) -> dict[str, Any]:
    """Return the `dp_strategy` of Janus that adds discrete Laplace noise of this scale to sums of `length` bits.

    Janus divides the sensitivity of Prio3SumVec, which is `length`, by the epsilon of the budget. Numerator and
    denominator of that epsilon are lists of digits to base 2**32, lowest first.

    >>> dp_strategy(8, 20.0)["budget"]
    {'epsilon': [[2], [5]]}
    """
    budget, digits = length / Fraction(scale), list[list[int]]()
    for number in (budget.numerator, budget.denominator):
        digits.append([number >> start & 0xFFFFFFFF for start in range(0, number.bit_length(), 32)])
    return {"dp_strategy": "PureDpDiscreteLaplace", "budget": {"epsilon": digits}}
