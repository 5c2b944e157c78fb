"""Write a report: all of its files or none."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from hushuffle.files.causes import naming
from hushuffle.model import Report
from hushuffle.report.document import Names, to_json
from hushuffle.report.page import html


def write(report: Report, folder: Path) -> list[Path]:
    """Write the page and the document of `report` into `folder`; return their paths.

    An assessment: `report.html`, `result.json`, `specification.toml`; any other report: `study.html`, `study.json`. If
    anything fails (or Ctrl-C is pressed) the folder is left as it was.

    Raises:
        InvalidInputError: a number of the report is nan.
        OSError: the folder cannot be made or written.
    """
    names = Names.of(report)
    texts = {names.page: html(report), names.numbers: to_json(report)}
    if report.specification:
        texts["specification.toml"] = report.specification.rstrip("\n") + "\n"
    return _write(texts, folder)


def _write(texts: dict[str, str], folder: Path) -> list[Path]:
    """Write `texts` by name of file.

    All are written beside their places first, then moved there: no part of a file is ever seen, and
    no new file beside old ones.
    """
    mark = secrets.token_hex(4)
    # Left in this order, innermost first: put old files back, delete temporary ones, remove new folders.
    with ExitStack() as folders, ExitStack() as temporary, ExitStack() as undo:
        _make(folder, folders)
        moves = []
        for name, text in texts.items():
            new = folder / f".{name}.{mark}.new"
            temporary.callback(new.unlink, missing_ok=True)
            with naming(folder / name):
                _save(new, text)
            moves.append((new, folder / name))
        for new, path in moves:
            undo.callback(_keep(path, folder / f".{path.name}.{mark}.old", temporary))
            with naming(path):
                new.replace(path)
        undo.pop_all()
        folders.pop_all()
    return [path for _, path in moves]


def _make(folder: Path, undo: ExitStack) -> None:
    """Make `folder` and its missing parents."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        undo.callback(path.rmdir)
    folder.mkdir(exist_ok=True)  # complains if a file has that name


def _save(path: Path, text: str) -> None:
    """Write `text` to the new file `path`, through to the disk."""
    with path.open("xb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _keep(path: Path, copy: Path, temporary: ExitStack) -> Callable[[], object]:
    """Copy the file at `path`, if there is one; return what brings it back."""
    if not path.exists():
        return partial(path.unlink, missing_ok=True)
    temporary.callback(copy.unlink, missing_ok=True)
    shutil.copy2(path, copy)
    return partial(copy.replace, path)
