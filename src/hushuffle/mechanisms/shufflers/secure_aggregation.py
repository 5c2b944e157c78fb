"""Secure aggregation: servers that add up everybody's vector, and see none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(Shuffler):
    """Releases the sums of the reports' vectors and nothing else, as Prio and DAP do.

    A one-hot encoding is a vector of bits as it is. A report that is one number is sent as the vector with a 1 in its
    place: the sums are then how often each report occurs, all that a uniform shuffle reveals. Reports of several
    numbers (hashes, sets) are no vectors, and refused.

    Source: Corrigan-Gibbs, Boneh 2017 (Prio); docs/theory/secure-sums.md, Theorem 1.

    >>> import hushuffle as hs
    >>> votes = hs.RandomizedResponse(k=3, epsilon=float("inf"))
    >>> hs.Protocol(randomizer=votes, shuffler=SecureAggregation(), n=4).sums([0, 2, 2, 2])
    Histogram(1, 0, 3)
    """

    @property
    def reveals(self) -> Reveals:
        return Reveals.SUMS

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Refuse: no message leaves.

        Raises:
            UnsupportedProtocolError: always.
        """
        del messages, rng
        message = "Secure aggregation releases no reports: `protocol.sums(values)` gives what leaves."
        raise UnsupportedProtocolError(message)

    def describe(self) -> str:
        return "secure aggregation releases the sums of all reports and nothing else"
