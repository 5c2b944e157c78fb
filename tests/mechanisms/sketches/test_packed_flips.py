from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers.bit_flipping import packed_coins
from hushuffle.randomness import SCALE, Randomness


class Scripted(Randomness):
    """Step j gives the words of row j, so that the 64 digits of every coin are known in advance."""

    def __init__(self, words: npt.NDArray[np.uint64]) -> None:
        self._words, self._step, self.drawn = words, 0, 0

    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        assert at is not None
        assert size == self._words.shape[1]
        row: npt.NDArray[np.uint64] = self._words[self._step]
        self._step += 1
        self.drawn += at.size
        return row[at]


@pytest.mark.parametrize(
    "threshold",
    [1, 2, 3, 2**62, 2**63, 2**63 - 1, 2**60 + 2**59, hs.BitFlipping(width=1, p=0.05).threshold, 0x5555555555555555],
)
def test_every_coin_is_a_comparison_with_the_threshold(threshold: int) -> None:
    rng = np.random.default_rng(threshold % 1000)
    words = rng.integers(SCALE, size=(64, 40), dtype=np.uint64, endpoint=False)
    # Some coins agree with the threshold for long, some in every digit.
    for step in range(64):
        if threshold >> (63 - step) & 1:
            words[step, :8] = ~np.uint64(0)
            words[step, 8:16] |= np.uint64(0xFFFFFFFF)
        else:
            words[step, :8] = 0
            words[step, 8:16] &= np.uint64(0xFFFFFFFF00000000)
    coins = packed_coins(threshold, 40, Scripted(words))
    for place in range(40):
        for lane in range(64):
            uniform = sum((int(words[step, place]) >> lane & 1) << (63 - step) for step in range(64))
            assert (int(coins[place]) >> lane & 1) == (uniform < threshold)


def test_seven_words_or_so_make_sixty_four_coins() -> None:
    words = np.random.default_rng(1).integers(SCALE, size=(64, 2000), dtype=np.uint64, endpoint=False)
    script = Scripted(words)
    packed_coins(hs.BitFlipping(width=1, p=0.1).threshold, 2000, script)
    assert script.drawn < 9 * 2000


@pytest.mark.parametrize("p", [0.01, 0.25, 0.4])
def test_share_and_independence_of_flips(p: float) -> None:
    n, randomizer = 8 * 200_001, hs.BitFlipping(width=3, p=p)
    zeros = np.zeros((3, n // 24 + 1), dtype=np.uint8)
    flips = np.unpackbits(randomizer.flip_packed(zeros, rng=hs.reproducible(1)))
    assert abs(flips.mean() - p) < 5 * math.sqrt(p * (1 - p) / flips.size)  # 6e-7, two-sided
    share = p * p
    for lag in (1, 8, 64):
        both = (flips[lag:] & flips[:-lag]).mean()
        # Neighbouring products overlap: their variance is at most three times that of independent ones.
        assert abs(both - share) < 5 * math.sqrt(3 * share * (1 - share) / flips.size)
    assert not zeros.any()


def test_the_same_threshold_as_bit_by_bit() -> None:
    assert hs.BitFlipping(width=1, p=0.1).threshold == math.ceil(Fraction(0.1) * SCALE)
    with pytest.raises(InvalidInputError, match="`rng` must be secure"):
        hs.BitFlipping(width=1, p=0.1).flip_packed(
            np.zeros(8, dtype=np.uint8), rng=hs.keyed(key=bytes(32), records=np.arange(1))
        )
