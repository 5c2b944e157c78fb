"""Replaces file names in a specification by the contents of the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hushuffle.errors import DataError, Problem

_FILE: Final = "categories_file"
Tables = Mapping[str, Any]


def with_files(raw: Tables, base_folder: Path) -> tuple[Tables, tuple[Problem, ...]]:
    """Return the tables of a specification with the contents of the files that they name, and the problems with them.

    `population.categories_file` becomes `categories`, and `randomizer.file` becomes `matrix`. If the tables have both
    keys, the file name remains, so that the rules report the conflict.
    """

    def labels(name: str) -> list[str]:
        from hushuffle.tables.label_files import load_labels_file  # noqa: PLC0415 - only when needed

        return list(load_labels_file(name, base_folder=base_folder))

    def matrix(name: str) -> list[list[float]]:
        from hushuffle.tables.matrix_files import load_matrix  # noqa: PLC0415 - only when needed

        return load_matrix(name, base_folder=base_folder)

    problems: list[Problem] = []
    twice = {"categories", "bins", "k", "kind"}
    raw = _replaced(raw, ("population", _FILE), "categories", twice, labels, "must be a file of labels", problems)
    raw = _replaced(raw, ("randomizer", "file"), "matrix", {"matrix"}, matrix, "must be a file of numbers", problems)
    return raw, tuple(problems)


def _replaced(
    raw: Tables,
    place: tuple[str, str],
    by: str,
    twice: set[str],
    load: Callable[[str], Any],
    rule: str,
    problems: list[Problem],
) -> Tables:
    """Return the tables with the key `by` in place of a file name; an unreadable file is a problem."""
    section, key = place
    table = raw.get(section)
    if not isinstance(table, dict) or not isinstance(table.get(key), str) or not table[key] or twice & table.keys():
        return raw
    try:
        read = load(table[key])
    except DataError as error:
        problems.append(Problem(key=f"{section}.{key}", rule=rule, value=f'"{table[key]}"', hint=str(error)))
        return raw
    return {**raw, section: {name: value for name, value in table.items() if name != key} | {by: read}}


def categories_problems(population: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem unless exactly one of four keys defines the categories of a population with data."""
    has_data = "data" in population or ("column" in population and "n" not in population)
    if not has_data or {"publishers", "audiences"} & population.keys():
        return
    given = [key for key in ("categories", _FILE, "bins", "kind") if key in population]
    if not given:
        hint = f'Alternatives are {_FILE}, bins, or kind = "number".'
        yield Problem(key="population.categories", rule="must be given", value="nothing", hint=hint)
    for key in given[1:]:
        yield Problem(key=f"population.{key}", rule=f"must be left out beside {given[0]}", value="both")
