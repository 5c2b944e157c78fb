"""Express epsilon as a factor on odds, and delta as a chance, in words."""

from __future__ import annotations

import math
from typing import Final

from hushuffle.model import number

_MOST: Final = 1000.0
_NAMES: Final = {10**6: "a million", 10**9: "a billion", 10**12: "a trillion"}


def factor(epsilon: float) -> str:
    """Return in words the largest factor by which epsilon changes odds; "" if it exceeds 1,000.

    >>> factor(0.5), factor(104.0)
    ('a factor 1.649', '')
    """
    return "" if epsilon > math.log(_MOST) else f"a factor {number(math.exp(epsilon), up=True)}"


def chance(delta: float) -> str:
    """Return a small probability in words, rounded up.

    >>> chance(1e-6), chance(3e-7), chance(0.02), chance(0.7)
    ('one in a million', 'one in 3,333,333', 'one in 50', '0.7')
    """
    if delta > 0.5 or delta < 1e-18:
        return f"{delta:g}"
    times = math.floor(1 / delta * (1 + 1e-12))
    return f"one in {_NAMES.get(times, f'{times:,}')}"
