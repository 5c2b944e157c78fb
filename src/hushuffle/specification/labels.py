"""population.categories_file: its labels take its place, so that an effective specification needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hushuffle.errors import DataError, Problem

_FILE: Final = "categories_file"


def with_labels(raw: Mapping[str, Any], base_folder: Path) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    """Return the tables of a specification with the labels of `population.categories_file`, and what is wrong with it.

    What is said twice is left as it is: rules refuse it.
    """
    population = raw.get("population")
    if not isinstance(population, dict) or not isinstance(population.get(_FILE), str) or not population[_FILE]:
        return raw, ()
    if any(key in population for key in ("categories", "bins", "k")):
        return raw, ()
    from hushuffle.tables.label_files import load_labels_file  # noqa: PLC0415 - only when needed

    name = population[_FILE]
    try:
        labels = load_labels_file(name, base_folder=base_folder)
    except DataError as error:
        rule = "must be a file of labels"
        return raw, (Problem(key=f"population.{_FILE}", rule=rule, value=f'"{name}"', hint=str(error)),)
    read = {key: value for key, value in population.items() if key != _FILE} | {"categories": list(labels)}
    return {**raw, "population": read}, ()


def categories_problems(population: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with how the categories of people with data are given: once, in one of three ways."""
    if not {"data", "column"} & population.keys() or {"publishers", "audiences"} & population.keys():
        return
    given = [key for key in ("categories", _FILE, "bins") if key in population]
    if not given:
        hint = f"Or {_FILE}, or bins."
        yield Problem(key="population.categories", rule="must be given", value="nothing", hint=hint)
    for key in given[1:]:
        yield Problem(key=f"population.{key}", rule=f"must be left out beside {given[0]}", value="both")
