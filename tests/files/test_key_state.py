from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hushuffle.errors import DataError
from hushuffle.files import secret_keys as key_state
from hushuffle.files.secret_keys import fingerprint, key_folder, locked, read_memory, state_folder, write_memory

KEY = bytes(range(32))


def test_a_fingerprint_says_nothing_about_the_key() -> None:
    assert fingerprint(KEY) == "04d7592ebedbb418f4e2ae90c118ca70"  # today and in every later version
    assert fingerprint(KEY) != fingerprint(KEY[::-1])
    assert KEY.hex()[:8] not in fingerprint(KEY)


def test_where_memory_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHUFFLE_STATE", str(tmp_path / "a"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "b"))
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert state_folder() == tmp_path / "a"
    assert key_folder(KEY) == tmp_path / "a" / "keys" / fingerprint(KEY)
    monkeypatch.setenv("HUSHUFFLE_STATE", "")
    assert state_folder() == tmp_path / "b" / "hushuffle"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_folder() == tmp_path / "c" / ".local" / "state" / "hushuffle"

    def homeless() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(DataError, match="Set HUSHUFFLE_STATE to a permanent folder"):
        state_folder()


def test_only_the_owner_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "new" / "folder"
    with locked(folder):
        write_memory(folder / "m.json", "m", {"a": 1})
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    monkeypatch.setattr(os, "name", "nt")  # where files cannot be locked in this way
    with locked(folder):
        pass


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(
            DataError, match=r"cannot be written: Not a directory\. To use another folder, set HUSHUFFLE_STATE"
        ),
        locked(tmp_path / "file" / "folder"),
    ):
        pass


def test_memory_is_whole_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert read_memory(path, "m") is None
    (tmp_path / ".m.json.0123.new").write_bytes(b"{")
    write_memory(path, "m", {"a": 1})
    assert [file.name for file in tmp_path.iterdir()] == ["m.json"]
    assert (read_memory(path, "m") or {})["a"] == 1
    whole = path.read_bytes()
    for content in (whole[:-1], whole[: len(whole) // 2], b"", b"[]", whole.replace(b'"m"', b'"n"'), b"[" * 99_999):
        path.write_bytes(content)
        with pytest.raises(DataError, match="is damaged"):
            read_memory(path, "m")
    path.write_text(json.dumps({"schema_version": key_state.MEMORY_VERSION + 1, "content": "m"}), encoding="utf-8")
    with pytest.raises(DataError, match="another version"):
        read_memory(path, "m")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_memory(tmp_path, "m")
