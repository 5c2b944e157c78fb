from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hushuffle import report
from hushuffle.errors import DataError
from report.assessments import assessment

NAMES = ["report.html", "result.json", "specification.toml"]
SMALL = assessment(2, data=False, noise=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def _no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.report.files.html", lambda made: f"<p>{made.title}</p>")


def fail_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, error: BaseException) -> None:
    """Let the call number `call` of `owner.name` raise `error`."""
    real, calls = getattr(owner, name), [0]

    def sometimes(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise error
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, sometimes)


def test_writes_three_files_into_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    paths = report.write(SMALL, folder)
    assert paths == [folder / name for name in NAMES]
    assert names(folder) == NAMES
    assert (folder / "result.json").read_text() == report.to_json(SMALL)
    assert (folder / "specification.toml").read_text() == SMALL.specification


def test_replaces_an_older_report_and_leaves_other_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "report.html").write_text("old")
    report.write(SMALL, tmp_path)
    first = [(tmp_path / name).read_bytes() for name in NAMES]
    report.write(SMALL, tmp_path)
    assert [(tmp_path / name).read_bytes() for name in NAMES] == first
    assert names(tmp_path) == sorted([*NAMES, "notes.txt"])


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["error", "interrupt"]
)
@pytest.mark.parametrize("step", [(os, "fsync"), (Path, "replace")], ids=["writing", "moving"])
def test_a_failure_midway_leaves_nothing_new(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: tuple[Any, str], error: BaseException, call: int
) -> None:
    fail_at(monkeypatch, *step, call, error)
    with pytest.raises(type(error)):
        report.write(SMALL, tmp_path / "new" / "deep")
    assert names(tmp_path) == []


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_failure_midway_brings_the_old_report_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: int
) -> None:
    for name in NAMES[:2]:  # the third is new
        (tmp_path / name).write_text(f"old {name}")
    fail_at(monkeypatch, Path, "replace", call, OSError(28, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        report.write(SMALL, tmp_path)
    assert names(tmp_path) == NAMES[:2]
    for name in NAMES[:2]:
        assert (tmp_path / name).read_text() == f"old {name}"


def test_a_folder_in_the_place_of_a_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "result.json").mkdir()
    (tmp_path / "report.html").write_text("old")
    with pytest.raises(OSError, match="result"):
        report.write(SMALL, tmp_path)
    assert names(tmp_path) == ["report.html", "result.json"]
    assert (tmp_path / "report.html").read_text() == "old"


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.write_text("a file")
    with pytest.raises(FileExistsError):
        report.write(SMALL, place)
    assert place.read_text() == "a file"


def test_an_assessment_that_cannot_be_rendered_makes_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(_: object) -> str:
        raise DataError

    monkeypatch.setattr("hushuffle.report.files.to_json", refuse)
    with pytest.raises(DataError):
        report.write(SMALL, tmp_path / "out")
    assert names(tmp_path) == []
