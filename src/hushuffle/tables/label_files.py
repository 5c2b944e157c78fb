"""Reads files of labels: the categories of a column with many categories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import polars as pl

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.tables.csv_form import KINDS
from hushuffle.tables.sources import open_source

_MOST: Final = 10**7


def load_labels_file(name: str, *, base_folder: Path) -> tuple[str, ...]:
    r"""Return the labels in a file: the first column of a CSV file with a line of names, or the lines of another file.

    Files must be UTF-8. Spaces around a line of text are removed; blank lines are ignored. Messages contain no label,
    since the file may contain answers by mistake.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "towns.txt").write_text("Bern\nChur\n")
    ...     load_labels_file("towns.txt", base_folder=Path(folder))
    ('Bern', 'Chur')
    """
    if name.endswith((*KINDS, ".parquet")):
        labels, lines = _of_table(name, base_folder)
    else:
        labels, lines = _of_text(name, base_folder / Path(name).expanduser())
    _check(name, labels, lines)
    return tuple(labels)


def _of_table(name: str, base_folder: Path) -> tuple[list[str], Sequence[int]]:
    (part,) = open_source(name, base_folder=base_folder)
    first = part.schema().names()[0]
    texts = part.collect(pl.col(first).cast(pl.String)).to_series()
    if missing := texts.is_null().arg_true().to_list():
        fail(f"{name}: its first column, the labels, is empty in record {missing[0] + 1:,}.")
    return texts.to_list(), range(1, texts.len() + 1)


def _of_text(name: str, path: Path) -> tuple[list[str], Sequence[int]]:
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except FileNotFoundError:
        fail(f"{name} does not exist. Relative paths start at the folder of the specification.")
    except OSError as error:
        fail(f"{name} cannot be read: {cause(error)}.")
    except UnicodeDecodeError:
        fail(f"{name} is not UTF-8 text.")
    places = [place for place, line in enumerate(lines, start=1) if line.strip()]
    return [lines[place - 1].strip() for place in places], places


def _check(name: str, labels: Sequence[str], places: Sequence[int]) -> None:
    if not labels:
        fail(f"{name} holds no labels.")
    if len(labels) > _MOST:
        fail(f"{name} holds {len(labels):,} labels, but at most {_MOST:,} are allowed.")
    seen: dict[str, int] = {}
    for label, place in zip(labels, places, strict=True):
        if not label.isprintable() or not label.strip():
            _refuse(name, place, "must be text on one line, without control characters")
        if label in seen:
            _refuse(name, place, f"it is the same as number {seen[label]:,}")
        seen[label] = place


def _refuse(name: str, place: int, what: str) -> NoReturn:
    fail(f"{name}, number {place:,}: {what}. Each label must occur once.")
