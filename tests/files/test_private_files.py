"""Files that only their owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from hushuffle.files import private_files
from hushuffle.files.private_files import make_folder, mark_once, private_file, remove_unfinished, write_private


@pytest.mark.parametrize("durable", [True, False])
def test_only_the_owner_can_read_it_whatever_was_there(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    path.chmod(0o644)
    write_private(path, b"new", durable=durable)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["state"]


def test_the_first_to_write_stays(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with private_file(path, first=True) as file:
        file.write(b"first")
    second = private_file(path, first=True)
    second.__enter__().write(b"second")
    with pytest.raises(FileExistsError):
        second.__exit__(None, None, None)
    assert (path.read_bytes(), [one.name for one in tmp_path.iterdir()]) == (b"first", ["state"])


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "state"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
    with pytest.raises(OSError, match="No such file"):
        write_private(tmp_path / "none" / "state", b"new")


@pytest.mark.parametrize("name", [".ann.key.partial", ".ann.key.new"])
def test_a_link_that_lies_in_wait_gets_nothing(tmp_path: Path, name: str) -> None:
    stolen = tmp_path / "stolen"
    stolen.write_bytes(b"")
    stolen.chmod(0o666)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).symlink_to(stolen)
    (folder / "ann.key").symlink_to(stolen)
    write_private(folder / "ann.key", b"secret")
    assert stolen.read_bytes() == b""
    assert not (folder / "ann.key").is_symlink()
    assert (folder / "ann.key").stat().st_mode & 0o777 == 0o600


def test_a_name_that_is_taken_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even who guesses the name of the new file cannot have the content in a file of their own."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    taken = tmp_path / ".state.guessed.new"
    taken.write_bytes(b"")
    taken.chmod(0o666)
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "state", b"secret")
    assert taken.read_bytes() == b""


def test_an_open_mask_does_not_open_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "state", b"secret")
    finally:
        os.umask(before)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".state.0123.new").write_bytes(b"half")
    (tmp_path / ".other.0123.new").write_bytes(b"half")
    remove_unfinished(tmp_path / "state")
    assert [one.name for one in tmp_path.iterdir()] == [".other.0123.new"]


def test_a_mark_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "state" / "released"
    assert mark_once(path)
    assert not mark_once(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(OSError, match="exists"):
        mark_once(path / "more")


def test_new_folders_are_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(private_files, "flush_folder", flushed.append)
    make_folder(tmp_path / "a" / "b")
    assert sorted(flushed) == [tmp_path, tmp_path / "a"]
    flushed.clear()
    assert mark_once(tmp_path / "a" / "c" / "mark")
    assert flushed == [tmp_path / "a", tmp_path / "a" / "c"]


def test_a_published_folder_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, out = tmp_path / "release", tmp_path / "out"
    (release / "column").mkdir(parents=True)
    (release / "column" / "reports").write_bytes(b"1")
    flushed: list[tuple[Path, bool]] = []
    monkeypatch.setattr(private_files, "flush_folder", lambda folder: flushed.append((folder, out.exists())))
    private_files.publish(release, out)
    assert flushed == [(release / "column", False), (release, False), (tmp_path, True)]
