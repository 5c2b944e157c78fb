from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hushuffle.errors import DataError
from hushuffle.files import private_files
from hushuffle.files.private_files import publish, workplace


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed_in(out: Path) -> None:
    """Begin a collection in a process of its own, and kill it."""
    child = os.fork()
    if child == 0:
        with workplace(out) as place:
            (place / "spill").mkdir()
            (place / "spill" / "reports").write_bytes(b"1")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_what_killed_collections_left_is_removed(tmp_path: Path) -> None:
    killed_in(tmp_path / "other")
    killed_in(tmp_path / "out")
    (left,) = names(tmp_path)  # what the first left, the second has removed
    assert left.startswith(".out.")
    (tmp_path / ".mine.collecting").mkdir()  # not ours
    (tmp_path / ".old.01234567.collecting").mkdir()  # of an earlier version, which may be at it
    with workplace(tmp_path / "out") as place:
        assert names(tmp_path) == sorted([".mine.collecting", ".old.01234567.collecting", place.name])
    assert names(tmp_path) == [".mine.collecting", ".old.01234567.collecting"]


def test_what_is_in_use_stays(tmp_path: Path) -> None:
    with workplace(tmp_path / "out") as place, workplace(tmp_path / "out") as other:
        assert names(tmp_path) == sorted([place.name, other.name])
    link = tmp_path / ".link.01234567.collecting"
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "in-use").touch()
    link.symlink_to(tmp_path / "theirs")
    with workplace(tmp_path / "out"):
        pass
    assert names(tmp_path) == [link.name, "theirs"]
    assert names(tmp_path / "theirs") == ["in-use"]


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_in(tmp_path / "out")

    def refuse(_: int, **_how: bool) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(private_files, "lock", refuse)
    with workplace(tmp_path / "out"):
        assert len(names(tmp_path)) == 2
    assert len(names(tmp_path)) == 1


def test_an_error_of_the_system_says_what_became_of_it(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match=r"^The collection into .*out failed: No space left on device\. Nothing was rel"),
        workplace(tmp_path / "out"),
    ):
        raise OSError(28, "No space left on device")
    with pytest.raises(DataError, match=r"out failed: No such file or dir.*\. Nothing"), workplace(tmp_path / "out"):
        (tmp_path / "no" / "file").write_bytes(b"")
    assert names(tmp_path) == []


def test_a_release_is_on_the_disk_before_anybody_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file and folder of it is flushed, then it gets its name, then the folder that has the name is flushed."""
    (tmp_path / "release" / "town").mkdir(parents=True)
    for name in ("manifest.json", "town/manifest.json", "town/reports.parquet"):
        (tmp_path / "release" / name).write_bytes(b"1")
    inodes = {path.stat().st_ino: path.name for path in (tmp_path, *(tmp_path / "release").rglob("*"))}
    inodes[(tmp_path / "release").stat().st_ino] = "release"
    content = sorted(inodes[path.stat().st_ino] for path in (tmp_path / "release").rglob("*"))
    done: list[str] = []
    flush, rename = os.fsync, Path.rename

    def flushed(number: int) -> None:
        done.append(inodes[os.fstat(number).st_ino])
        flush(number)

    def renamed(path: Path, target: Path) -> Path:
        done.append("renamed")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "rename", renamed)
    publish(tmp_path / "release", tmp_path / "out")
    assert sorted(done[:-3]) == content
    assert done[-3:] == ["release", "renamed", tmp_path.name]


def test_a_release_that_the_disk_does_not_confirm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and the message says so."""
    (tmp_path / "release").mkdir()

    def fail(folder: Path) -> None:
        if folder == tmp_path:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(private_files, "flush_folder", fail)
    with pytest.raises(DataError, match=r"out is released, but the disk does not confirm it \(Input/output error\)"):
        publish(tmp_path / "release", tmp_path / "out")
    assert names(tmp_path) == ["out"]
