"""Sizes of the batches of a first scrambler: a rule on counts alone, under which every remainder can be divided."""

from __future__ import annotations

from typing import Final

_MOST: Final = 20
"""Largest number of batches that wait. If `least` is nearly `batch`, a few messages may remain at the end."""


def held_back(batch: int, least: int) -> int:
    """Return how many messages must remain after a batch of `batch` messages is sent before the end.

    Every number of messages from this number on can be divided into batches of `least` to `batch` messages: k batches
    contain k·least to k·batch messages, and if (k + 1)·least <= k·batch + 1, no number lies between the ranges of k and
    of k + 1 batches. The result is 0 if `least` equals `batch`, since holding messages back then does not help.

    >>> held_back(500, 400), held_back(8, 8), held_back(8, 1)
    (1600, 0, 0)
    """
    if batch == least:
        return 0
    return min(-(-(least - 1) // (batch - least)), _MOST) * least


def last_sizes(waiting: int, batch: int, least: int) -> list[int]:
    """Return the sizes of the last batches, for `waiting` messages when no further message is expected.

    Each batch has `least` to `batch` messages, and there are as few batches as possible. The remainder, fewer than
    `least` messages, is deleted; there is no remainder if `waiting` is at least `held_back` (except at the bound of
    `held_back`).

    >>> last_sizes(1966, 500, 400), last_sizes(900, 500, 400), last_sizes(700, 500, 400), last_sizes(399, 500, 400)
    ([492, 492, 491, 491], [450, 450], [500], [])
    """
    count = -(-waiting // batch)
    if count * least > waiting:  # `count` batches would be too small, and fewer cannot hold all messages
        return [batch] * (count - 1)
    return [waiting // count + (place < waiting % count) for place in range(count)]
