"""`population.person`: whose a row is, that nobody has said it yet, and that every row is another person's."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from hushuffle.errors import SpecificationError
from hushuffle.specification import Specification, parse
from hushuffle.specification.reading import Collection, parse_collection
from hushuffle.specification.sums import SumSpecification, parse_sum

SURVEY = """
population = { data = "people.csv", column = "answer", categories = ["no", "yes"] }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""
COLUMNS = """
population = { data = "people.csv" }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
[[columns]]
column = "smokes"
categories = ["no", "yes"]
randomizer = { kind = "randomized-response", epsilon = 1.0 }
[[columns]]
column = "drinks"
categories = ["no", "yes"]
randomizer = { kind = "randomized-response", epsilon = 1.0 }
"""
SUM = """
population = { data = "people.csv", column = "hours", kind = "number", low = 0, high = 10, levels = 11 }
sum = { epsilon = 1.0, delta = 1e-6 }
"""
PLANNED = SURVEY.replace('data = "people.csv", column = "answer", ', "n = 100, ")
EVERY: dict[str, tuple[str, Callable[[str], Specification | Collection | SumSpecification]]] = {
    "survey": (SURVEY, parse),
    "columns": (COLUMNS, parse_collection),
    "sum": (SUM, parse_sum),
}


def answering(text: str, person: str) -> str:
    return text.replace('data = "people.csv"', f'data = "people.csv", person = "{person}"', 1)


@pytest.mark.parametrize("kind", EVERY)
def test_a_question_without_an_answer_is_refused_once(kind: str) -> None:
    text, read = EVERY[kind]
    with pytest.raises(SpecificationError) as refused:
        read(answering(text, "?"))
    (problem,) = refused.value.problems
    assert str(problem) == (
        'population.person: must be the column that says whose a row is, or "none", got "?". With "none" every row is '
        "another person's. `hushuffle inspect` lists columns that may say it."
    )


@pytest.mark.parametrize("kind", EVERY)
def test_that_every_row_is_another_persons_is_said_everywhere(kind: str) -> None:
    text, read = EVERY[kind]
    found: Specification | Collection | SumSpecification = read(answering(text, "none"))
    assert found.person_known
    assert not read(text).person_known
    assert tomllib.loads(found.effective())["population"]["person"] == "none"
    assert read(found.effective()) == found
    population = next(iter(found.columns.values())).population if isinstance(found, Collection) else found.population
    assert population.whose is None


def test_without_rows_there_is_nothing_to_say() -> None:
    assert parse(PLANNED).person_known
    assert parse(answering(SURVEY, "user")).person_known


def test_none_is_no_column(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("answer\nno\nyes\nyes\n", encoding="utf-8")
    assert parse(answering(SURVEY, "none")).population.read(tmp_path).n == 3
    with pytest.raises(SpecificationError, match="reports_per_person: must go with person"):
        parse(answering(SURVEY, 'none", reports_per_person = 2, title = "').replace(', title = ""', ""))
    mallows = 'kind = "mallows", theta = 1.0, groups = { columns = ["age"], radius = 1.0 }'
    assert parse(answering(SURVEY, "none").replace('kind = "uniform"', mallows)).person_known


@pytest.mark.parametrize("place", ["population", "columns"])
def test_several_columns_are_of_one_row_of_each_person(place: str) -> None:
    text = answering(COLUMNS, "user")
    if place == "columns":
        text = COLUMNS.replace('column = "smokes"', 'column = "smokes"\nperson = "none"')
    with pytest.raises(SpecificationError) as refused:
        parse_collection(text)
    assert 'is said by person = "none" in [population].' in str(refused.value)
