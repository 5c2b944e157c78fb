"""Outputs that cannot be written are refused before the work, by the name that was given."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hushuffle.errors import DataError
from hushuffle.files.private_files import refuse_file, refuse_folder


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    refuse_folder(tmp_path)
    refuse_folder(tmp_path / "a" / "b")
    refuse_file(tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept", encoding="utf-8")
    Path("away").symlink_to("nowhere")
    with pytest.raises(DataError, match=r"^file/a/b is no folder: .*/file is a file\.$"):
        refuse_folder(Path("file/a/b"))
    with pytest.raises(DataError, match=r"^file is a file, not a folder\.$"):
        refuse_folder(Path("file"))
    with pytest.raises(DataError, match=r"^away is a file, not a folder\.$"):
        refuse_folder(Path("away"))
    with pytest.raises(DataError, match=r"^none/x\.csv cannot be written: the folder none does not exist\.$"):
        refuse_file(Path("none/x.csv"))
    with pytest.raises(DataError, match=r"^\. cannot be written: it is a folder\.$"):
        refuse_file(Path())
    assert Path("file").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(("call", "number"), [("open", errno.EACCES), ("open", errno.EROFS), ("write", errno.ENOSPC)])
def test_the_true_cause_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(f"hushuffle.files.private_files.os.{call}", fail)
        for check, name in ((refuse_folder, "out/new"), (refuse_file, "x.csv")):
            with pytest.raises(DataError) as caught:
                check(Path(name))
            assert str(caught.value) == f"{name} cannot be written: {os.strerror(number)}."
    assert not list(tmp_path.iterdir())


def test_a_disk_that_takes_a_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, sizes = os.write, list[int]()

    def little(number: int, content: memoryview) -> int:
        sizes.append(write(number, content[:10_000]))
        return sizes[-1]

    monkeypatch.setattr("hushuffle.files.private_files.os.write", little)
    refuse_folder(tmp_path)
    assert sum(sizes) == 1 << 16
