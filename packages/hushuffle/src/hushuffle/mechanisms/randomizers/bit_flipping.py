"""Bit flipping: every bit of a value is flipped with the same probability, as in randomized Bloom filters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.errors import Problem
from hushuffle.mechanisms.randomizers.base import Mechanism, in_blocks
from hushuffle.mechanisms.randomizers.report_law import Bits
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.model.report_layout import ReportLayout
from hushuffle.numerics.exact import log_upwards
from hushuffle.randomness import SCALE, Randomness

_WIDEST = 62
_BLOCK = 1 << 13  # words of packed bits per step: the working arrays stay in the processor's cache


@dataclass(frozen=True, kw_only=True)
class BitFlipping(Mechanism):
    """Flip each of the `width` bits of a value with probability p.

    Values and reports are integers 0..2**width - 1: bit j answers the person's yes-or-no question j. For Bloom filters,
    a value is the column of bits at one position of all filters: bit j is that of filter j. p is rounded up to a
    multiple of 2**-64, so the implemented mechanism is never less private than asked for. With this p, the local
    epsilon is width ln((1-p)/p). The privacy blanket is uniform, its weight gamma = (2p)**width.

    Args:
        width: number of bits, 1 to 62.
        p: the probability of a flip, in (0, 1/2).

    Raises:
        InvalidInputError: an argument is out of range.

    Source: docs/theory/randomizers.md, Theorem 15.

    >>> import hushuffle as hs
    >>> columns = hs.BitFlipping(width=3, p=0.1)
    >>> round(columns.local_epsilon, 6), round(columns.weight, 6)
    (6.591674, 0.008)
    """

    width: int
    p: float
    threshold: int = field(init=False, repr=False, compare=False)
    sized = "width"
    table = SettingsTable(
        kind="bit-flipping",
        about="For reach studies: every bit of the publishers' Bloom filters is flipped with probability p.",
        settings={
            "p": Setting(
                type="number",
                about="Probability that a bit is flipped (default: about the least that meets targets.epsilon).",
                limits={"gt": 0, "lt": 0.5},
                optional=True,
            ),
        },
    )

    def __post_init__(self) -> None:
        width = _checks.integer("width", self.width, low=1, high=_WIDEST)
        chance = _checks.probability("p", self.p, low_open=True)
        threshold = math.ceil(Fraction(chance) * SCALE)
        if 2 * threshold >= SCALE:
            _checks.reject("p", "< 1/2", chance, "At p = 1/2, reports are independent of values.")
        _checks.set_fields(self, width=width, p=chance, threshold=threshold)

    @classmethod
    def problems(cls, raw: Mapping[str, Any], k: int | None) -> Iterator[Problem]:
        return iter(())

    @property
    def flip(self) -> Fraction:
        """The implemented probability p of a flip, an exact multiple of 2**-64."""
        return Fraction(self.threshold, SCALE)

    @property
    def weight(self) -> float:
        """The weight of the privacy blanket, gamma = (2p)**width."""
        return float((2 * self.flip) ** self.width)

    @property
    def inputs(self) -> int:
        return 1 << self.width

    @property
    def local_epsilon(self) -> float:
        return log_upwards((1 - self.flip) / self.flip, times=self.width)

    @property
    def layout(self) -> ReportLayout:
        return ReportLayout(names=("report",), limits=(self.inputs,))

    def law(self) -> Bits:
        return Bits(width=self.width, flip=self.flip)

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        return in_blocks(self._step, _checks.codes("values", values, k=self.inputs), rng)

    def _step(self, truth: Integers, rng: Randomness) -> Integers:
        flips = np.zeros_like(truth)
        for bit in range(self.width):
            flips |= rng.coins(self.threshold, truth.size).astype(np.int64) << bit
        return truth ^ flips

    def flip_packed(self, packed: npt.NDArray[np.uint8], *, rng: Randomness) -> npt.NDArray[np.uint8]:
        """Return `packed`, bytes of eight bits each, with every bit flipped with the implemented p, same shape.

        The distribution is that of `randomize`, but 64 bits take about 7 random words instead of 64. `width` is unused.

        Raises:
            InvalidInputError: `rng` is keyed by record; packed bits are not records.
        """
        if not rng.sequential:
            _checks.reject("rng", "secure() or reproducible(seed) for packed bits", "<keyed>")
        flips = np.empty(-(-packed.size // 8), dtype=np.uint64)
        for start in range(0, flips.size, _BLOCK):
            block = flips[start : start + _BLOCK]
            block[:] = packed_coins(self.threshold, block.size, rng)
        return packed ^ flips.view(np.uint8)[: packed.size].reshape(packed.shape)

    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        return rng.integers(self.inputs, _checks.integer("count", count, low=0))

    def describe(self) -> str:
        return (
            f"every bit of {self.width} is flipped with probability {float(self.flip):.4g} "
            f"(bit flipping, local epsilon {self.local_epsilon:.4g})"
        )


def packed_coins(threshold: int, size: int, rng: Randomness) -> npt.NDArray[np.uint64]:
    """Return `size` words of 64 Bernoulli trials each; every bit is 1 with probability threshold / 2**64 exactly.

    A trial succeeds if U < threshold for a uniform 64-bit U. Each random word gives one binary digit of U to 64
    trials, from the top digit down, until each of the 64 trials is decided.
    """
    coins = np.zeros(size, dtype=np.uint64)
    open_words = np.arange(size, dtype=np.int64)
    undecided = np.full(size, ~np.uint64(0))
    # Below its last digit 1 the threshold has no digit that U could be less than.
    for place in range(63, (threshold & -threshold).bit_length() - 2, -1):
        digits = rng.words(size, at=open_words)
        if threshold >> place & 1:
            coins[open_words] |= undecided & ~digits
            undecided &= digits
        else:
            undecided &= ~digits
        still = undecided != 0
        open_words, undecided = open_words[still], undecided[still]
        if not open_words.size:
            break
    return coins
