"""Describe a secure-aggregation collection as a DAP task: the VDAF of its reports, and the task's configuration."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals

DAP: Final = "draft-ietf-ppm-dap-18"
VDAF: Final = "draft-irtf-cfrg-vdaf-20"
SHARES: Final = 2
"""The number of aggregators of a task of the Distributed Aggregation Protocol (DAP): a leader and a helper."""


@dataclass(frozen=True, kw_only=True)
class Vdaf:
    """The VDAF (verifiable distributed aggregation function) that adds up reports.

    If a report is one number, the VDAF is `Prio3Histogram`; for bit vectors it is `Prio3MultihotCountVec`, whose
    `max_weight` is the largest number of ones in a vector. `chunk_length` is near the square root of the length of the
    proven vector, as the VDAF draft recommends.

    >>> bits = Vdaf(length=8, max_weight=8)
    >>> bits.name, bits.number, bits.parameters
    ('Prio3MultihotCountVec', 5, {'length': 8, 'chunk_length': 3, 'max_weight': 8})
    >>> bits.configuration.hex()
    '00000008000000030000000000000008'
    """

    length: int
    max_weight: int | None = None

    @property
    def name(self) -> str:
        return "Prio3Histogram" if self.max_weight is None else "Prio3MultihotCountVec"

    @property
    def number(self) -> int:
        """The identifier of the function in the registry of the VDAF draft."""
        return 4 if self.max_weight is None else 5

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters of the function by the draft's names, in the order of DAP's encoding."""
        weight = 0 if self.max_weight is None else self.max_weight.bit_length()
        chunk = {"length": self.length, "chunk_length": max(1, round(math.sqrt(self.length + weight)))}
        return chunk if self.max_weight is None else {**chunk, "max_weight": self.max_weight}

    @property
    def configuration(self) -> bytes:
        """The parameters as DAP encodes them in a task's configuration."""
        return struct.pack(">II" if self.max_weight is None else ">IIQ", *self.parameters.values())


def refusal(protocol: Protocol) -> tuple[str, str, str] | None:
    """Why DAP does not support a collection (rule, value, hint for `shuffler.kind`); None if it does."""
    shuffler = protocol.shuffler
    if shuffler.reveals is not Reveals.SUMS:
        return "must be secure-aggregation", shuffler.describe(), "DAP releases nothing but sums of reports."
    if shuffler.all_coins:
        return (
            "must be without noise that the servers add",
            f"{shuffler.all_coins:,} Bernoulli trials for each sum",
            "DAP's aggregators cannot add noise.",
        )
    return None


def vdaf(protocol: Protocol) -> Vdaf:
    """The VDAF whose aggregate result equals the result of `protocol.sums`.

    >>> import hushuffle as hs
    >>> votes = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.SecureAggregation(), n=9)
    >>> vdaf(votes).name, vdaf(votes).parameters
    ('Prio3Histogram', {'length': 5, 'chunk_length': 2})
    """
    bits = protocol.randomizer.law().one_hot is not None
    length = protocol.randomizer.inputs if bits else protocol.randomizer.layout.limits[0]
    return Vdaf(length=length, max_weight=length if bits else None)


def task(protocol: Protocol, *, batch: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a DAP task that a collection determines, and the assumptions of its certificate.

    `batch` is the smallest batch size for which the guarantee holds; `asked` has the `reports_per_person` and the
    `rounds` that the guarantee covers.
    """
    instance = vdaf(protocol)
    number = instance.max_weight is None
    return {
        "standards": {"dap": DAP, "vdaf": VDAF},
        "min_batch_size": batch,
        "vdaf_type": instance.number,
        "vdaf": {"type": instance.name, "shares": SHARES, **instance.parameters},
        "vdaf_configuration": instance.configuration.hex(),
        "measurement": "the number that the device reports"
        if number
        else "the bits that the device reports, one true or false for each value",
        "aggregate": "how often each number was reported" if number else "number of reports with bit 1, by value",
        "assumes": [
            "Each device randomizes its value before it splits the measurement into shares.",
            "The leader and the helper do not collude. If they do, only the guarantee local_epsilon holds.",
            "At least min_batch_size reports of a batch come from people who do not collude with the collector: DAP "
            "counts reports, and does not identify their senders.",
            f"One person gives at most {asked['reports_per_person']} of the reports of a batch, and is in at most "
            f"{asked['rounds']} of the batches.",
        ],
    }
