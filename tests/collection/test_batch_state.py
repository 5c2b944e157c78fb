from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hushuffle.collection.batch_state import Arrival, BatchState, alone, arrival
from hushuffle.errors import DataError
from hushuffle.files import private_files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "day-1.csv"
    path.write_text("a\n1\n", encoding="utf-8")
    return path


def test_there_and_back(tmp_path: Path, file: Path) -> None:
    path = tmp_path / "out.state.json"
    assert BatchState.load(path) == BatchState()
    found = arrival(file, "file 1")
    assert found.same_place(file)
    state = BatchState(claimed=2, coins="00").with_files([found], 2)
    state.save(path)
    assert BatchState.load(path) == state
    assert path.stat().st_mode & 0o777 == 0o600
    assert (state.last, state.latest, len(state.of_batch(2)), state.of_batch(1)) == (2, str(file), 1, ())
    assert state.without(2) == BatchState()
    assert state.settled() == BatchState().with_files([found], 2)
    assert BatchState().with_files([found], 0).latest == ""
    file.write_text("a\n22\n", encoding="utf-8")
    assert not found.same_place(file)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["day-1.csv", "out.state.json"]


def test_a_state_without_coins(tmp_path: Path) -> None:
    path = tmp_path / "out.state.json"
    document = {"content": "batches", "schema_version": 1, "claimed": 1, "files": []}
    path.write_text(json.dumps(document), encoding="utf-8")
    assert BatchState.load(path) == BatchState(claimed=1)


def test_its_name_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[Path, bool]] = []
    path = tmp_path / "out.state.json"
    monkeypatch.setattr(private_files, "flush_folder", lambda folder: flushed.append((folder, path.exists())))
    BatchState().save(path)
    assert flushed == [(tmp_path, True)]


def test_a_file_that_is_being_written(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        arrival(tmp_path / "none.csv", "file 1")
    monkeypatch.setattr(Arrival, "same_place", lambda *_: False)
    with pytest.raises(DataError, match="is being written"):
        arrival(file, "file 1")


ENTRY = {"path": "/a.csv", "digest": "00", "size": 1, "modified": 2, "batch": 1}


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        {"content": "other"},
        {"content": "batches", "schema_version": 1},
        {"content": "batches", "schema_version": 1, "claimed": -1, "files": []},
        {"content": "batches", "schema_version": 1, "claimed": None, "files": [{"path": "a"}]},
        {"content": "batches", "schema_version": 1, "claimed": None, "files": [ENTRY | {"size": None}]},
        {"content": "batches", "schema_version": 1, "claimed": None, "files": [ENTRY | {"size": True}]},
        {"content": "batches", "schema_version": 1, "claimed": None, "files": [ENTRY | {"path": 3}]},
        {"content": "batches", "schema_version": 1, "claimed": None, "files": [3]},
        {"content": "batches", "schema_version": 1, "claimed": 1, "coins": 3, "files": []},
    ],
)
def test_damaged_states(document: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.state.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=r"is damaged, so the collected files are unknown\. Choose a new folder"):
        BatchState.load(path)


def test_other_states(tmp_path: Path) -> None:
    path = tmp_path / "out.state.json"
    path.write_text(json.dumps({"content": "batches", "schema_version": 2}), encoding="utf-8")
    with pytest.raises(DataError, match="another version"):
        BatchState.load(path)
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        BatchState.load(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="there is no such lock")
def test_one_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "out"
    with alone(folder):
        assert folder.is_dir()
        with pytest.raises(DataError, match="Another collection is adding batches"), alone(folder):
            pass
    with alone(folder):
        pass
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written"), alone(tmp_path / "file" / "out"):
        pass
