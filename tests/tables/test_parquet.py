"""Parquet files that end the process that reads them; the process itself."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hushuffle.collection.released import read_reports
from hushuffle.errors import DataError
from hushuffle.model.report_layout import ReportLayout
from hushuffle.tables import _parquet_child as child
from hushuffle.tables import parquet
from hushuffle.tables.categories import Answers
from hushuffle.tables.csv_form import UnreadableFile
from hushuffle.tables.parquet import read_parquet
from hushuffle.tables.private import ColumnBatches, load_column, load_table
from hushuffle.tables.published import load_edges, load_numbers
from hushuffle.tables.sketch_files import identifier_columns

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
SPECIFICATION = """
population = { data = "people.parquet", column = "ans", categories = ["a", "b", "c"] }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    parquet._end_idle()
    yield
    parquet._end_idle()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pl.DataFrame({"id": range(1000), "ans": ["a", "b"] * 500}).write_parquet(path)
    return path


def rows(path: Path, at_a_time: int = parquet.ROWS) -> Iterator[pl.DataFrame]:
    return read_parquet(pl.scan_parquet(path, glob=False), path, name=path.name, rows=at_a_time)


def waiting() -> int:
    (reader,) = parquet._idle
    return reader._process.pid


def gone(pid: int) -> bool:
    """Say whether a process has ended, or does within a minute."""
    for _ in range(600):
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


def test_every_reader_survives_files_that_end_a_process() -> None:
    path, panic = (str(CORPUS / name) for name in ("aborts.parquet", "panics.parquet"))
    readers: list[Any] = [
        lambda: load_column(path, column="ans", categories=["a", "b", "c"]),
        lambda: list(ColumnBatches([path], column="ans", answers=Answers.of(["a", "b", "c"], "refuse"))),
        lambda: load_table(panic, categories={"ans": ["a", "b", "c"]}),
        lambda: load_numbers(path, ["ans"], n=60),
        lambda: load_edges(path, n=60),
        lambda: list(identifier_columns(path, column="ans")),
        lambda: list(read_reports(Path(panic), layout=ReportLayout(names=("ans",), limits=(3,)))),
    ]
    for read in readers:
        with pytest.raises(UnreadableFile, match="is not a readable Parquet file: it may be truncated or damaged"):
            read()


def test_the_program_says_so_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "people.parquet").write_bytes((CORPUS / "aborts.parquet").read_bytes())
    (tmp_path / "spec.toml").write_text(SPECIFICATION)
    command = [sys.executable, "-m", "hushuffle", "collect", "spec.toml", "--out", "out"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 1
    (line,) = made.stderr.splitlines()
    assert line.startswith("hushuffle: people.parquet is not a readable Parquet file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.parquet", "spec.toml"]


def test_one_process_reads_many_files(table: Path) -> None:
    first, *others = list(rows(table, 100))
    assert (first.height, first.columns, sum(frame.height for frame in others)) == (0, ["id", "ans"], 1000)
    assert len(others) > 1
    pid = waiting()
    assert pl.concat(rows(table)).equals(pl.read_parquet(table))
    (table.parent / "text.parquet").write_text("text")
    with pytest.raises(UnreadableFile):
        list(rows(table.parent / "text.parquet"))
    assert waiting() == pid


def test_a_reading_that_is_given_up_ends_its_process(table: Path) -> None:
    reading = rows(table, 10)
    next(reading)
    other = rows(table)  # while the first one is under way
    assert pl.concat(other).height == 1000
    pid = waiting()
    reading.close()  # type: ignore[attr-defined]
    assert waiting() == pid
    os.kill(pid, signal.SIGKILL)
    parquet._idle[0]._process.wait()
    assert pl.concat(rows(table)).height == 1000
    assert waiting() != pid


def test_a_process_without_work_leaves(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_PATIENCE", 0.1)
    list(rows(table))
    assert parquet._idle[0]._process.wait(60) == child.IDLE
    # It may leave after it was looked at, and before it was asked.
    monkeypatch.setattr(parquet._Reader, "alive", lambda _: True)
    assert pl.concat(rows(table)).height == 1000


def test_threads_read_side_by_side(table: Path) -> None:
    heights: list[int] = []

    def read() -> None:
        heights.extend(pl.concat(rows(table, 100)).height for _ in range(3))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heights == [1000] * 9


def test_a_process_that_is_ended_from_outside_says_nothing_of_the_file(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = parquet._Reader._ask

    def ended(self: Any, block: bytes) -> None:
        if len(block) > len(table.name) and not block.startswith(b"["):  # the query
            self._process.kill()
            self._process.wait()
        ask(self, block)

    monkeypatch.setattr(parquet._Reader, "_ask", ended)
    with pytest.raises(
        DataError, match=r"could not be read completely: signal 9 ended the process that read it\. Memory may be"
    ) as e:
        list(rows(table))
    assert not isinstance(e.value, UnreadableFile)


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"^none.parquet does not exist\.$"):
        list(rows(tmp_path / "none.parquet"))
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        list(rows(tmp_path))

    def refuse(*_: object, **__: object) -> Any:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.parquet").touch()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        with pytest.raises(DataError, match="cannot be read: Permission denied"):
            list(rows(tmp_path / "a.parquet"))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(DataError, match="cannot be started: Permission denied"):
        list(rows(tmp_path / "a.parquet"))


def test_a_python_without_polars(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(DataError, match="Polars cannot be imported"):
        list(rows(table))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes cannot be looked at")
def test_neither_arguments_nor_environment_name_the_file(table: Path) -> None:
    list(rows(table))
    place = Path("/proc", str(waiting()))
    for name in ("cmdline", "environ"):
        assert str(table).encode() not in (place / name).read_bytes()
    limits = (place / "limits").read_text(encoding="ascii")
    assert next(line for line in limits.splitlines() if line.startswith("Max core")).split()[4] == "0"


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "sys.exit(0)"])
def test_the_process_ends_with_the_one_that_asked(end: str, table: Path) -> None:
    program = f"""
        import os, signal, sys
        from pathlib import Path
        import polars as pl
        from hushuffle.tables import parquet
        path = Path({str(table)!r})
        list(parquet.read_parquet(pl.scan_parquet(path), path, name="a"))
        busy = parquet.read_parquet(pl.scan_parquet(path), path, name="a", rows=10)
        next(busy)
        list(parquet.read_parquet(pl.scan_parquet(path), path, name="a"))
        print(parquet._idle[0]._process.pid, busy.gi_frame.f_locals["reader"]._process.pid, flush=True)
        {end}
    """
    made = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    pids = [int(word) for word in made.stdout.split()]
    assert len(set(pids)) == 2, made.stderr
    assert all(map(gone, pids))
    assert made.stderr == ""


def test_a_forked_process_has_a_reader_of_its_own(table: Path) -> None:
    list(rows(table))
    pid = waiting()
    end, start = os.pipe()
    forked = os.fork()
    if not forked:
        os.write(start, b"%d" % len(parquet._idle))
        os._exit(0)
    os.waitpid(forked, 0)
    assert os.read(end, 9) == b"0"
    os.close(end)
    os.close(start)
    assert waiting() == pid


def test_what_the_process_answers(table: Path) -> None:
    """The same code, in this process."""
    query = pl.scan_parquet(table).select("id").serialize()
    out = io.BytesIO()
    child.answer(child.ASKED.pack(100, 10**15) + query, out)
    kinds, tables = [], []
    out.seek(0)
    while head := out.read(child.ANSWER.size):
        kind, length = child.ANSWER.unpack(head)
        kinds.append(kind)
        content = out.read(length)
        tables += [pl.read_ipc_stream(content)] if kind == b"T" else []
    assert (set(kinds[:-1]), kinds[-1]) == ({b"T"}, b"E")
    assert (tables[0].height, pl.concat(tables).height) == (0, 1000)
    table.write_text("text")
    out = io.BytesIO()
    child.answer(child.ASKED.pack(100, 0) + query, out)
    assert out.getvalue() == child.ANSWER.pack(b"F", 0)

    class Gone(io.BytesIO):
        def write(self, _content: Any) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        child.answer(child.ASKED.pack(100, 0) + query, Gone())
    whole = child.LENGTH.pack(3) + b"abc"
    assert child.block(io.BytesIO(whole)) == b"abc"
    for cut in (0, 4, len(whole) - 1):
        with pytest.raises(EOFError):
            child.block(io.BytesIO(whole[:cut]))


def test_a_reader_that_nobody_holds_any_more_ends() -> None:
    """It was left running if an interrupt came at a bad moment."""
    reader = parquet._Reader()
    process = reader._process
    del reader
    gc.collect()
    assert process.returncode is not None
