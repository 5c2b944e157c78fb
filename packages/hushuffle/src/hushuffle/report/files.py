"""Write the files of a report: either all files or none."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from hushuffle.files.causes import naming
from hushuffle.model import Report
from hushuffle.model.explorer import Explorer
from hushuffle.report.document import Names, to_json
from hushuffle.report.explorer import explorer_html
from hushuffle.report.page import dpia, html


def write(
    report: Report, folder: Path, *, figures: bool = False, beside: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the page and the JSON document of `report` into `folder`; return the paths of the files.

    The files of an assessment are `report.html`, `result.json`, `specification.toml` and, with a first page, `dpia.md`.
    The files of any other report are `study.html` and `study.json`. With `figures`, each picture is also written as SVG
    and PNG, and all numbers as CSV and Parquet (figure-KEY, table-KEY). `beside` maps names of additional text files to
    their content. If an error occurs (or Ctrl-C is pressed), the folder is left unchanged.

    Raises:
        InvalidInputError: a number of the report is nan.
        OSError: the folder cannot be made or written.
    """
    names = Names.of(report)
    contents = {names.page: html(report).encode(), names.numbers: to_json(report).encode()}
    if text := dpia(report):
        contents["dpia.md"] = text.encode()
    if report.specification:
        contents["specification.toml"] = (report.specification.rstrip("\n") + "\n").encode()
    contents |= {name: text.encode() for name, text in (beside or {}).items()}
    if figures:
        from hushuffle.report.figures import figure_files  # noqa: PLC0415 - only when needed

        contents |= figure_files(report)
    return _write(contents, folder)


def write_explorer(explorer: Explorer, file: Path) -> None:
    """Write the page with sliders of an `Explorer`: either the whole file or nothing.

    Raises:
        OSError: the file, or its folder, cannot be made or written.
    """
    _write({file.name: explorer_html(explorer).encode()}, file.parent)


def _write(contents: dict[str, bytes], folder: Path) -> list[Path]:
    """Write all files under temporary names and then rename them, so that an error leaves no partial or mixed set."""
    mark = secrets.token_hex(4)
    # The contexts exit from the innermost: restore old files, delete temporary files, remove new folders.
    with ExitStack() as folders, ExitStack() as temporary, ExitStack() as undo:
        for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
            path.mkdir()
            folders.callback(path.rmdir)
        folder.mkdir(exist_ok=True)  # raises an error if a file has that name
        moves = []
        for name, content in contents.items():
            new = folder / f".{name}.{mark}.new"
            temporary.callback(new.unlink, missing_ok=True)
            with naming(folder / name), new.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            moves.append((new, folder / name))
        for new, path in moves:
            undo.callback(_keep(path, folder / f".{path.name}.{mark}.old", temporary))
            with naming(path):
                new.replace(path)
        undo.pop_all()
        folders.pop_all()
    return [path for _, path in moves]


def _keep(path: Path, copy: Path, temporary: ExitStack) -> Callable[[], object]:
    """Copy the file at `path`, if it exists; return a function that restores the previous state."""
    if not path.exists():
        return partial(path.unlink, missing_ok=True)
    temporary.callback(copy.unlink, missing_ok=True)
    shutil.copy2(path, copy)
    return partial(copy.replace, path)
