from __future__ import annotations

import polars as pl

from hushuffle.tables.categories import Reading, coding


def test_a_record_has_one_label_only() -> None:
    frame = pl.DataFrame({"x": ["no", "yes", None]})
    reading = Reading.of("x", pl.String(), numeric=False)
    first, last = coding(["no", "yes"]).first_and_last(reading)
    assert frame.select(first.alias("first"), last.alias("last")).rows() == [(0, 0), (1, 1), (-1, -1)]
