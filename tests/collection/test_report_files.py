from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.collection import released
from hushuffle.collection.released import read_reports, schema_of, write_reports
from hushuffle.errors import DataError, InvalidInputError
from hushuffle.model.report_layout import ReportLayout

ONE = ReportLayout(names=("report",), limits=(300,))
TWO = ReportLayout(names=("hash", "bucket"), limits=(70_000, 4))


def reports(n: int, layout: ReportLayout) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    rng = np.random.default_rng(1)
    return layout.pack(np.stack([rng.integers(0, limit, n) for limit in layout.limits], axis=1))


@pytest.mark.parametrize("layout", [ONE, TWO])
@pytest.mark.parametrize("cut", [7, 100, 5000])
def test_the_file_depends_on_the_sequence_alone(
    layout: ReportLayout, cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(released, "GROUP", 64)
    packed = reports(1000, layout)
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_reports(first, (packed[start : start + cut] for start in range(0, 1000, cut)), layout=layout)
    write_reports(second, [packed], layout=layout)
    assert first.read_bytes() == second.read_bytes()
    assert dict(pl.read_parquet_schema(first)) == schema_of(layout)
    assert np.array_equal(np.concatenate(list(read_reports(first, layout=layout))), layout.unpack(packed))


def test_whole_groups_and_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(released, "GROUP", 10)
    for n in (0, 10, 20):
        path = tmp_path / f"{n}.parquet"
        write_reports(path, [reports(n, ONE)], layout=ONE)
        assert sum(block.size for block in read_reports(path, layout=ONE)) == n


@pytest.mark.parametrize(("names", "limits"), [((), ()), (("a",), (1, 2)), (("a", "a"), (1, 2)), (("a",), (0,))])
def test_what_is_no_layout(names: tuple[str, ...], limits: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError):
        ReportLayout(names=names, limits=limits)


def test_a_full_disk() -> None:
    with pytest.raises(DataError, match="full cannot be written: No space left on device"):
        write_reports(Path("/dev/full"), [reports(1000, ONE)], layout=ONE)


def test_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks wait until there is room, and stop waiting when nobody takes them."""
    write = pl.LazyFrame.sink_parquet

    def late(*arguments: Any, **named: Any) -> None:
        time.sleep(0.3)
        write(*arguments, **named)

    over: Future[None] = Future()
    over.set_result(None)
    released._hand_over((), Queue(), over)
    monkeypatch.setattr(released, "GROUP", 10)
    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", late)
    write_reports(tmp_path / "a.parquet", [reports(100, ONE)], layout=ONE)
    assert sum(block.size for block in read_reports(tmp_path / "a.parquet", layout=ONE)) == 100


def test_an_interruption(tmp_path: Path) -> None:
    def blocks() -> Iterator[np.ndarray[tuple[int], np.dtype[np.void]]]:
        yield reports(10, ONE)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_reports(tmp_path / "a.parquet", blocks(), layout=ONE)


def test_files_that_are_no_reports(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    with pytest.raises(DataError, match="does not exist"):
        list(read_reports(path, layout=ONE))
    path.write_bytes(b"something else")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        list(read_reports(path, layout=ONE))
    pl.DataFrame({"report": ["a"]}).write_parquet(path)
    with pytest.raises(DataError, match=r"has other columns than its manifest, which lists report\."):
        list(read_reports(path, layout=ONE))
    for wrong in (300, None):
        pl.DataFrame({"report": [1, wrong]}, schema=schema_of(ONE)).write_parquet(path)
        with pytest.raises(DataError, match="'report' must hold integers from 0 to 299"):
            list(read_reports(path, layout=ONE))

    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(read_reports(path, layout=ONE))
