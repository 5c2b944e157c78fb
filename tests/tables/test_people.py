from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from hushuffle.randomness import reproducible
from hushuffle.tables import people
from hushuffle.tables.people import FewOfEach


def plain(persons: list[str], words: list[int], most: int) -> set[int]:
    """The records that are kept: of each person those with the smallest words."""
    kept: set[int] = set()
    for person in set(persons):
        own = sorted(
            (word, place) for place, (word, whose) in enumerate(zip(words, persons, strict=True)) if whose == person
        )
        kept |= {place for _, place in own[:most]}
    return kept


@pytest.mark.parametrize("room", [1 << 20, 10])
def test_the_smallest_words_of_each_person_are_kept_however_records_arrive(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "_ROOM", room)
    rng = np.random.default_rng(4)
    for most in (1, 2, 5):
        whose = [f"p{number}" for number in rng.integers(12, size=200)]
        words = reproducible(most).words(200)
        keep = FewOfEach(most)
        for start in range(0, 200, 23):
            part = slice(start, start + 23)
            keep.add(pl.Series(whose[part]), words[part], np.arange(200)[part], np.arange(200)[part])
        wanted = plain(whose, words.tolist(), most)
        assert set(keep.records.tolist()) == set(keep.values.tolist()) == wanted
        assert keep.left_out == 200 - len(wanted)
        assert keep.people == len(set(whose))


def test_nothing_is_kept_of_nobody() -> None:
    keep = FewOfEach(2)
    assert (keep.people, keep.values.size, keep.left_out) == (0, 0, 0)
    keep.add(pl.Series([], dtype=pl.String), np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64))
    assert (keep.people, keep.values.size) == (0, 0)
