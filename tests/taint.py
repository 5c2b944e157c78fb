"""Files with one secret in every cell, header, name and id, each broken in its own way; and who must not show it."""

from __future__ import annotations

import gzip
import json
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

import hushuffle.cli as program
from hushuffle.errors import DataError

SECRET: Final = "tAiNt7f3"  # noqa: S105 - no password
FOLDER: Final = "in"
"""Where the data are; nothing outside of it may hold the secret."""

PRIVATE: Final = ("released.state.json",)
"""Files that are made to hold it, and say so: which file went into which batch, readable by its owner only."""

_COUNTS: Final = {"schema_version": 1, "content": "support counts", "counts": [1], "people": 5, "dummies": 0} | {
    "specification": f"{SECRET} = {SECRET}"
}
_HEAD: Final = f"id,answer,x,day,{SECRET}h"


def _rows(count: int = 6, **changed: str) -> list[str]:
    rows = []
    for number in range(count):
        row = {"id": f"{SECRET}i{number}", "answer": "ab"[number % 2], "x": f"{number}", "day": f"{number}"}
        last = number == count - 1
        rows.append(",".join([*((row | (changed if last else {})).values()), f"{SECRET}c"]))
    return rows


def _csv(*rows: str, head: str = _HEAD) -> bytes:
    return ("\n".join([head, *(rows or _rows())]) + "\n").encode()


def _parquet(**columns: pl.Series | None) -> bytes:
    """Return the table with other columns, or without those that are None."""
    absent = [name for name, series in columns.items() if series is None]
    changed = [series.alias(name) for name, series in columns.items() if series is not None]
    file = BytesIO()
    pl.read_csv(_csv()).with_columns(changed).drop(absent).write_parquet(file)
    return file.getvalue()


def broken_files() -> dict[str, tuple[str, bytes]]:
    """Return suffix and content of files by what is wrong with them."""
    whole, zipped = _csv(), gzip.compress(_csv(*_rows(2000)))
    table = _parquet()
    structs = pl.Series([{SECRET: f"{SECRET}{number}"} for number in range(6)])
    values = pl.Series([SECRET, "a"] * 3, dtype=pl.Enum([SECRET, "a"]))
    cases = {
        "unseen value": _csv(*_rows(answer=f"{SECRET}a")),
        "unseen number": _csv(*_rows(x=f"{SECRET}x")),
        "infinite number": _csv(*_rows(x="1e999")),
        "missing": _csv(*_rows(answer="", x="", day="", id="")),
        "id twice": _csv(*_rows(), _rows()[0]),
        "too few": _csv(_rows()[0]),
        "no record": _csv("", head=_HEAD),
        "no header": _csv(*_rows()[1:], head=_rows()[0]),
        "other header": _csv(head=",".join(f"{SECRET}{number}" for number in range(5))),
        "header in capitals": _csv(head=_HEAD.upper()),
        "header twice": _csv(head=f"id,answer,x,day,answer,{SECRET},{SECRET}"),
        "one column": _csv(*([SECRET] * 6), head=SECRET),
        "quote in the header": _csv(head=f'id,"answer,x,day,{SECRET}'),
        "quote in a record": _csv(*_rows(answer=f'"{SECRET}')),
        "quote within a field": _csv(*_rows(answer=f'{SECRET}"a')),
        "long row": _csv(*_rows(), f"{SECRET},a,1,1,{SECRET},{SECRET},{SECRET}"),
        "short row": _csv(*_rows(), SECRET),
        "semicolons": whole.replace(b",", b";"),
        "tabs": whole.replace(b",", b"\t"),
        "latin 1": whole.replace(b"i0", b"i\xf1"),
        "utf 16": whole.decode().encode("utf-16"),
        "nul": whole.replace(b"i0", b"\x00" * 9),
        "binary": b"\x80\xff\x00" + SECRET.encode() * 50 + bytes(range(256)),
        "empty": b"",
        "line ends": whole.replace(b"\n", b"\r"),
    }
    found: dict[str, tuple[str, bytes]] = {name: (".csv", content) for name, content in cases.items()}
    found |= {
        "cut gzip": (".csv.gz", zipped[:-30]),
        "no gzip": (".csv.gz", SECRET.encode() * 9),
        "gzip of no table": (".csv.gz", gzip.compress(SECRET.encode() * 9)),
        "unknown kind": (".xlsx", SECRET.encode()),
        "json of another kind": (".json", json.dumps({SECRET: SECRET, "content": SECRET, "steps": [SECRET]}).encode()),
        "json of counts": (".json", json.dumps(_COUNTS).encode()),
        "no parquet": (".parquet", b"PAR1" + SECRET.encode() * 40 + b"PAR1"),
        "cut parquet": (".parquet", table[:-50]),
        "mutated parquet": (".parquet", table[:40] + SECRET.encode() + table[48:]),
        "unseen in parquet": (".parquet", _parquet(answer=pl.Series(["a", SECRET] * 3), x=structs)),
        "struct": (".parquet", _parquet(answer=structs, id=structs, day=structs)),
        "enum": (".parquet", _parquet(answer=values, id=values, x=values, day=values)),
        "lists": (".parquet", _parquet(answer=pl.Series([[SECRET]] * 6), id=pl.Series([[SECRET]] * 6))),
        "bytes": (".parquet", _parquet(answer=pl.Series([SECRET.encode() + b"\xff"] * 6))),
        "text for numbers": (".parquet", _parquet(x=pl.Series([SECRET] * 6), day=pl.Series([SECRET] * 6))),
        "other columns": (".parquet", _parquet(answer=None, id=None, x=None, day=None)),
    }
    return found


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Runs the program, and looks for the secret in all that it says and leaves."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    log: pytest.LogCaptureFixture
    monkeypatch: pytest.MonkeyPatch

    def put(self, suffix: str, content: bytes, *, sound: bool = False) -> None:
        """Let these be the data; `sound`: beside a file with nothing wrong."""
        for path in (*(self.folder / FOLDER).iterdir(), *self.folder.glob("given.*")):
            path.unlink()
        place = self.folder / FOLDER / f"day-2{suffix}"
        place.write_bytes(content)
        place.chmod(0o600)
        (self.folder / f"given{suffix}").hardlink_to(place)
        if sound:
            (self.folder / FOLDER / "day-1.csv").write_bytes(_csv())

    def forget(self) -> None:
        """Remove what runs have left."""
        for name in ("out", "released", "memory", "ann.state"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for path in (self.folder / "released.state.json", *self.folder.glob("*.used")):
            path.unlink(missing_ok=True)

    def run(self, *arguments: str) -> int:
        """Return the exit code of a run that must not show the secret."""
        errors: list[BaseException] = []
        explain = program._explained

        def noticed(error: BaseException, given: Sequence[str]) -> Any:
            errors.append(error)
            return explain(error, given)

        with self.monkeypatch.context() as patch:
            patch.setattr(program, "_explained", noticed)
            code = program.main(arguments)
        shown = self.capture.readouterr()
        chained = "".join(line for error in errors for line in traceback.format_exception(error))
        for place, text in (("out", shown.out), ("err", shown.err), ("log", self.log.text), ("traceback", chained)):
            assert SECRET not in text, f"{place} of {arguments}: {text[:2000]}"
        assert "an unexpected error" not in shown.err, f"{arguments}: {shown.err}"
        assert not list(self.leaks()), f"{arguments}: {list(self.leaks())}"
        return code

    def leaks(self) -> Iterator[str]:
        """Yield the files outside of the data that are called by the secret or hold it."""
        for path in self.folder.rglob("*"):
            name = str(path.relative_to(self.folder))
            if name.startswith((f"{FOLDER}/", "given.")) or name in PRIVATE:
                continue
            if SECRET in name or (path.is_file() and SECRET.encode() in path.read_bytes()):
                yield name


def refuses(load: Callable[[], object]) -> None:
    """Call a loader, which refuses without the secret or returns something."""
    text = ""
    try:
        load()
    except DataError as error:
        text = "".join(traceback.format_exception(error))
    assert SECRET not in text, text
