from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.sketches import align
from oracles.column_views import Shown, counts

NONE = hs.DummyLaw.of({0: 1.0})
SHOWN: list[Shown] = [
    ("union", (0, 2), 0),
    ("union", (1,), 0),
    ("patterns", (2, 0), 0),
    ("patterns", (0, 1, 2), 0),
    ("contacts", (0, 1, 2), 4),
    ("contacts", (1,), 1),
]
PAIRS: list[Shown] = [("pairs", (2, 0), 0), ("pairs", (0, 1, 2), 0), ("contacts", (0, 1, 2), 2)]


def design(shown: list[Shown] = SHOWN, columns: int = 200) -> hs.ColumnViews:
    views = [
        hs.ColumnView(publishers=who, shows=what, most=most or None, each=NONE)  # type: ignore[arg-type]
        for what, who, most in shown
    ]
    return hs.ColumnViews(publishers=3, columns=columns, views=tuple(views))


@pytest.mark.parametrize("shown", [SHOWN, PAIRS])
def test_every_view_of_contacts_against_plain_loops(shown: list[Shown]) -> None:
    contacts = np.random.default_rng(1).integers(0, 4, (200, 3)) * np.random.default_rng(2).integers(0, 2, (200, 3))
    seen = design(shown).release(contacts, rng=hs.reproducible(1))
    rows = [tuple(row) for row in contacts.tolist()]
    assert [part.tolist() for part in seen.counts] == [counts(view, rows) for view in shown]


def test_patterns_counts_and_chunks_give_the_same_release() -> None:
    patterns = np.random.default_rng(3).integers(0, 8, 200)
    rows = [tuple(value >> place & 1 for place in range(3)) for value in patterns.tolist()]
    histogram = hs.Histogram(counts=np.bincount(patterns, minlength=8))
    same: list[Any] = [patterns, patterns.tolist(), histogram, iter([patterns[:70], patterns[70:].astype(np.uint8)])]
    for columns in same:
        seen = design().release(columns, rng=hs.reproducible(1))
        assert [part.tolist() for part in seen.counts] == [counts(shown, rows) for shown in SHOWN]


def test_dummies_are_drawn_for_each_count() -> None:
    law = hs.DummyLaw.discrete_gaussian(center=80, sigma=8.0)
    view = hs.ColumnView(publishers=tuple(range(12)), shows="patterns", each=law)
    made = hs.ColumnViews(publishers=12, columns=5, views=(view,))
    noise = made.release([0] * 5, rng=hs.reproducible(2)).counts[0][1:]
    assert noise.mean() == pytest.approx(80, abs=5 * 8 / 64)
    assert noise.std() == pytest.approx(8, rel=0.1)
    assert made.dummies == pytest.approx(4096 * 80)


def test_columns_of_filters_that_are_aligned() -> None:
    encoder = hs.BloomEncoder(bits=500, key=bytes(range(32)))
    filters = [encoder.encode(range(100)), encoder.encode(range(50, 150)), encoder.encode(range(10))]
    union = design(columns=500).release(align(filters)).counts[0]
    assert union.tolist() == [(filters[0] | filters[2]).ones]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"publishers": ()}, "publishers"),
        ({"publishers": (1, 1)}, "each once"),
        ({"publishers": (-1,)}, "publishers"),
        ({"publishers": (0,), "shows": "all"}, "union, pairs, patterns, contacts"),
        ({"publishers": (0,), "shows": "contacts"}, "most"),
        ({"publishers": (0,), "most": 3}, "only with"),
        ({"publishers": (0,), "each": 3}, "each"),
        ({"publishers": (0,), "single": NONE}, "pairs"),
        ({"publishers": range(21)}, "1 to 20"),
    ],
)
def test_a_view_that_does_not_fit(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        hs.ColumnView(**{"each": NONE, **keys})


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([0] * 9, "m = 10 columns"),
        ([8] * 10, "out of range"),
        ([-1] * 10, "out of range"),
        ([0.5] * 10, "as integers"),
        (np.zeros((10, 2), dtype=np.int64), "as integers"),
        (hs.Histogram(counts=[10, 0]), "bit patterns"),
    ],
)
def test_columns_that_do_not_fit_and_no_private_number_in_the_message(columns: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        design(columns=10).release(columns)
    assert "8]" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"publishers": 2}, "publishers of a view"),
        ({"views": ()}, "views"),
        ({"columns": 0}, "columns"),
        ({"hashes": 0}, "hashes"),
        ({"views": (3,)}, "views"),
        ({"views": design(PAIRS).views[:1] + design().views[-1:]}, "contacts of all publishers"),
    ],
)
def test_a_design_that_does_not_fit(keys: dict[str, Any], words: str) -> None:
    view = hs.ColumnView(publishers=(2,), each=NONE)
    with pytest.raises(InvalidInputError, match=words):
        hs.ColumnViews(**{"publishers": 3, "columns": 10, "views": (view,), **keys})


def test_counts_of_another_shape() -> None:
    made = design()
    with pytest.raises(InvalidInputError, match="counts"):
        hs.ColumnCounts(design=made, counts=tuple(np.zeros(2, dtype=np.int64) for _ in SHOWN))
