"""The sum of people's numbers, estimated from mixed shares, with its standard error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.mechanisms.split_and_mix import WRAP, SplitAndMix

_SHOWN: Final = 12
_WIDE: Final = 9.0
"""The distribution of the rounding error is truncated after this number of standard deviations."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SumEstimate:
    """The estimated sum of the numbers of `people` people: `total`, shape (coordinates,).

    The total is unbiased unless the noise exceeds the modulus, which has probability at most 2**-40. `standard_error`
    is that of a total over all randomness: the noise, and the rounding of the worst-case numbers. Totals are not
    clipped to the bounds.

    Source: docs/theory/split-and-mix.md, Theorem 10 and Theorem 11.
    """

    protocol: SplitAndMix
    people: int
    total: Floats

    @property
    def mean(self) -> Floats:
        """The mean of the people's numbers, shape (coordinates,)."""
        return self.total / self.people

    @property
    def standard_error(self) -> float:
        """The standard error of a total."""
        return self.protocol.standard_error(self.people)

    @cached_property
    def _within(self) -> Floats:
        """The probability that a sum of codes differs from its expectation by at most 0, 1, 2, ..."""
        protocol = self.protocol
        spread = 0.0 if protocol.levels is None else math.sqrt(self.people) / 2
        reach = protocol.noise_reach(self.people) + math.ceil(_WIDE * spread)
        cells = 1 << (2 * reach).bit_length()
        angles = 2 * math.pi / cells * np.arange(cells // 2 + 1)
        ratio = protocol.noise.chance
        # |1 - ratio e**(i angle)|**2, without the loss of digits near angle 0.
        away = (1 - ratio) ** 2 + 4 * ratio * np.sin(angles / 2) ** 2
        transform = ((1 - ratio) ** 2 / away) ** (self.people / protocol.needed) * np.exp(-((spread * angles) ** 2) / 2)
        law = np.maximum(np.fft.irfft(transform, cells)[: reach + 1], 0.0)
        return np.asarray(np.cumsum(np.concatenate([law[:1], 2 * law[1:]])))

    def half_width(self, confidence: float = 0.95) -> float:
        """Return a bound that the error of an estimated total does not exceed with probability `confidence`.

        It uses the distribution of the noise; the error of rounding is taken as normal, with the worst-case variance.

        Raises:
            InvalidInputError: the confidence is outside (0, 1), or so near to 1 that the modulus does not allow it.
        """
        level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
        if level > 1 - 2 * WRAP:
            _checks.reject("confidence", "at most 1 - 2**-39, because sums are modulo q", level)
        codes = int(np.searchsorted(self._within, level)) + (0 if self.protocol.levels is None else 1)
        return self.protocol.step * codes

    def interval(self, confidence: float = 0.95) -> Floats:
        """Return a confidence interval for each total, shape (coordinates, 2), each at `confidence`.

        Raises:
            InvalidInputError: the reasons are those of `half_width`.
        """
        half = self.half_width(confidence)
        return np.stack([self.total - half, self.total + half], axis=1)

    def moved(self, fakes: int) -> float:
        """Return the largest change of a total by `fakes` Sybil clients; a single client can reach any accepted total.

        The bound is the range of accepted sums, in the unit of the numbers. A residue carries no information
        about its sender or its number, so checks of single messages cannot help. A client that follows the
        protocol moves the total by its own number.

        Raises:
            InvalidInputError: there are more Sybil clients than respondents.

        >>> import hushuffle as hs
        >>> steps = hs.SplitAndMix(low=0, high=1000, n=10_000, epsilon=1.0, delta=1e-9)
        >>> found = hs.estimate_sum(steps.collect([250] * 10_000), protocol=steps)
        >>> found.moved(0), found.moved(1)
        (0.0, 10032215.0)
        """
        attacked = _checks.integer("fakes", fakes, low=0, high=self.people) > 0
        return self.protocol.farthest if attacked else 0.0

    def __repr__(self) -> str:
        shown = ", ".join(f"{total:.10g}" for total in self.total[:_SHOWN].tolist())
        more = ", ..." if self.total.size > _SHOWN else ""
        return f"SumEstimate(total=[{shown}{more}], standard_error={self.standard_error:.4g}, people={self.people:,})"


def estimate_sum(messages: npt.ArrayLike, *, protocol: SplitAndMix) -> SumEstimate:
    """Return the sums of people's numbers, estimated from their mixed messages, with the standard error.

    Args:
        messages: residues in any order, shape (coordinates, messages * people), as `SplitAndMix.collect` returns them;
            one-dimensional if there is one coordinate. Their number determines the number of respondents.
        protocol: the protocol that produced them.

    Raises:
        InvalidInputError: `messages` is not such an array, or a residue is out of range. The number of messages must be
            that of a whole number of people, from `protocol.needed` to n. The error is also raised if no numbers within
            the bounds can have the sum, noise included (by chance at most once in 2**40). If one message is missing and
            another is added, the sum is uniformly random. It is then accepted with a probability of at least 1/2 if all
            people answer: do not rely on this check.

    Source: docs/theory/split-and-mix.md, Theorem 10.

    >>> import hushuffle as hs
    >>> hours = hs.SplitAndMix(low=0, high=24, levels=97, n=5_000, epsilon=1.0, delta=1e-8, honest=0.9)
    >>> found = hs.estimate_sum(hours.collect([7.2] * 4_800, rng=hs.reproducible(1)), protocol=hours)
    >>> found.people, found.mean.round(2).tolist(), round(found.standard_error / found.people, 4)
    (4800, [7.19], 0.0075)
    >>> found.interval().round(0).tolist()
    [[34444.0, 34596.0]]
    """
    array = np.asarray(messages)
    rows = array[None] if array.ndim == 1 else array
    if rows.ndim != 2 or rows.shape[0] != protocol.coordinates or not np.issubdtype(rows.dtype, np.integer):
        rule = f"an array of integers of shape ({protocol.coordinates}, messages)"
        _checks.reject("messages", rule, f"<shape {array.shape}, {array.dtype}>")
    if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= protocol.modulus):
        _checks.reject("messages", f"residues from 0 to {protocol.modulus - 1:,}", "<other numbers>")
    people, left = divmod(rows.shape[1], protocol.messages)
    if left:
        hint = "Some messages are missing or belong to another collection, so their sum is meaningless."
        _checks.reject("messages", f"{protocol.messages:,} of each person", f"<{rows.shape[1]:,} messages>", hint)
    return sums_found([residue(row, protocol.modulus) for row in rows], people=people, protocol=protocol)


def residue(messages: npt.NDArray[np.int64], modulus: int) -> int:
    """Return the sum of residues modulo a power of two; integer overflow does not change it."""
    return int(messages.astype(np.uint64).sum(dtype=np.uint64)) % modulus


def sums_found(residues: list[int], *, people: int, protocol: SplitAndMix) -> SumEstimate:
    reach = protocol.noise_reach(protocol.answers(people))
    codes = [(part + protocol.margin) % protocol.modulus - protocol.margin for part in residues]
    if min(codes) < -reach or max(codes) > people * protocol.top + reach:
        rule = f"shares of {people:,} numbers from {protocol.low:g} to {protocol.high:g}"
        hint = "Some messages are missing, are repeated, or belong to another collection."
        _checks.reject("messages", rule, "<a sum outside the range of these shares and the noise>", hint)
    total = np.array([people * protocol.low + protocol.step * code for code in codes])
    return SumEstimate(protocol=protocol, people=people, total=total)
