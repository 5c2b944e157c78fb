"""How many messages a first scrambler puts into a batch: a rule of counts alone, by which a remainder finds room."""

from __future__ import annotations

from typing import Final

_MOST: Final = 20
"""Batches that are held back, at most: where `least` is nearly `batch` a few messages may be left over all the same."""


def held_back(batch: int, least: int) -> int:
    """Return how many messages stay when a batch of `batch` leaves before the end.

    From so many on, every number of messages can be divided into batches of `least` to `batch`: k batches hold k·least
    to k·batch messages, and where (k + 1)·least <= k·batch + 1 no number lies between those of k and of k + 1.
    0 where all batches have one size: no number that is held back would help then.

    >>> held_back(500, 400), held_back(8, 8), held_back(8, 1)
    (1600, 0, 0)
    """
    if batch == least:
        return 0
    return min(-(-(least - 1) // (batch - least)), _MOST) * least


def last_sizes(waiting: int, batch: int, least: int) -> list[int]:
    """Return the sizes of the batches that `waiting` messages leave in when no more are to come.

    Each has from `least` to `batch` messages, in as few batches as they fit into. What finds no room is given up:
    fewer than `least` messages, and none from `held_back` on (but where that is bounded).

    >>> last_sizes(1966, 500, 400), last_sizes(900, 500, 400), last_sizes(700, 500, 400), last_sizes(399, 500, 400)
    ([492, 492, 491, 491], [450, 450], [500], [])
    """
    count = -(-waiting // batch)
    if count * least > waiting:  # so many batches would be too small, and fewer do not hold them all
        return [batch] * (count - 1)
    return [waiting // count + (place < waiting % count) for place in range(count)]
