"""`population.person`: whose a row is, that nobody has said it yet, and that every row is another person's."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import SpecificationError
from hushuffle.model import Report
from hushuffle.specification import Specification, parse
from hushuffle.specification.reading import Collection, parse_collection
from hushuffle.specification.sums import SumSpecification, parse_sum

pytestmark = pytest.mark.usefixtures("no_charts")
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
        'population.person: must be the column that identifies the person of each row, or "none", got "?". '
        'With "none", each row is a different person. `hushuffle inspect` lists columns with repeated values.'
    )


@pytest.mark.parametrize("kind", EVERY)
def test_that_every_row_is_another_persons_is_said_everywhere(kind: str) -> None:
    text, read = EVERY[kind]
    found: Specification | Collection | SumSpecification = read(answering(text, "none"))
    assert tomllib.loads(found.effective())["population"]["person"] == "none"
    assert read(found.effective()) == found
    population = next(iter(found.columns.values())).population if isinstance(found, Collection) else found.population
    assert population.whose is None
    assert population.person_known


def test_without_rows_there_is_nothing_to_say() -> None:
    assert parse(PLANNED).population.person_known
    assert parse(answering(SURVEY, "user")).population.person_known
    assert not parse(SURVEY).population.person_known


def test_none_is_no_column(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("answer\nno\nyes\nyes\n", encoding="utf-8")
    assert parse(answering(SURVEY, "none")).population.read(tmp_path).n == 3
    with pytest.raises(SpecificationError, match="reports_per_person: needs the key person"):
        parse(answering(SURVEY, 'none", reports_per_person = 2, title = "').replace(', title = ""', ""))
    mallows = 'kind = "mallows", theta = 1.0, groups = { columns = ["age"], radius = 1.0 }'
    assert parse(answering(SURVEY, "none").replace('kind = "uniform"', mallows)).population.person_known


@pytest.mark.parametrize("place", ["population", "columns"])
def test_several_columns_are_of_one_row_of_each_person(place: str) -> None:
    text = answering(COLUMNS, "user")
    if place == "columns":
        text = COLUMNS.replace('column = "smokes"', 'column = "smokes"\nperson = "none"')
    with pytest.raises(SpecificationError) as refused:
        parse_collection(text)
    assert 'set person = "none" in [population].' in str(refused.value)


IDS = [f"u{row % 60}" for row in range(300)]


def written(folder: Path, text: str, ids: list[str] = IDS, name: str = "user") -> Path:
    """Write people with ids, and a specification; return the file of the specification."""
    answers = {"answer": ["no", "yes"] * 150, "smokes": ["no"] * 300, "drinks": ["yes"] * 300, "hours": [3] * 300}
    pl.DataFrame({name: ids, **answers}).write_csv(folder / "people.csv")
    (folder / "survey.toml").write_text(f"{text}", encoding="utf-8")
    return folder / "survey.toml"


def repeated(report: Report) -> list[str]:
    return [f"{row.sentence} {row.advice}" for row in report.warnings if row.key.startswith("repeated-ids")]


REMEDIES = {
    "survey": 'set population.person = "user".',
    "columns": "keep one record of each person in the file.",
    "sum": "add up the numbers of each person first.",
}


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("person", [None, "none"])
def test_ids_that_repeat_are_no_silent_people(
    kind: str, person: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EVERY[kind][0] if person is None else answering(EVERY[kind][0], person)
    file = written(tmp_path, text)
    message = (
        'The data have 300 records but only 60 distinct values in column "user". Each record counts as one person. If '
        f'"user" identifies people, the guarantee of a person with several records is weaker than stated: '
        f"{REMEDIES[kind]}"
    )
    assert repeated(hs.assess(file)) == [message]
    assert main(["collect", str(file), "--out", str(tmp_path / "out")]) == Exit.DONE
    assert capsys.readouterr().err.count(f"hushuffle: warning: {message}") == 1


def test_rows_of_other_people_have_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (
        written(tmp_path, answering(SURVEY, "user")),
        written(tmp_path, SURVEY, [f"u{row}" for row in range(300)]),
        written(tmp_path, SURVEY, ["Bern", "Basel", "Zug"] * 100, name="town"),
        written(tmp_path, SURVEY.replace('column = "answer"', 'column = "user"').replace('"no", "yes"', ROWS_OF_IDS)),
    ):
        assert repeated(hs.assess(file)) == []
    assert main(["collect", str(file), "--out", str(tmp_path / "out")]) == Exit.DONE
    assert "distinct values" not in capsys.readouterr().err


ROWS_OF_IDS = ", ".join(f'"u{row}"' for row in range(60))


def test_files_with_other_columns_are_checked_in_the_columns_that_they_share(tmp_path: Path) -> None:
    written(tmp_path, SURVEY)
    more = pl.DataFrame({"age": [40] * 300, "answer": ["no"] * 300, "user": IDS})
    more.write_csv(tmp_path / "people-2.csv")
    (tmp_path / "survey.toml").write_text(SURVEY.replace("people.csv", "people*.csv"), encoding="utf-8")
    (message,) = repeated(hs.assess(tmp_path / "survey.toml"))
    assert message.startswith('The data have 600 records but only 60 distinct values in column "user".')


def test_other_columns_that_cannot_be_read_are_named_as_unchecked(tmp_path: Path) -> None:
    file = written(tmp_path, SURVEY)
    (tmp_path / "people.csv").write_text("user,answer,user\n" + "a,no,a\nb,yes,b\n" * 60, encoding="utf-8")
    (message,) = repeated(hs.assess(file))
    assert "the check for people with several records was left out" in message


def test_a_category_that_is_a_mark_of_missing_answers_is_no_ordinary_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for mark in ("NA", "N/A", "null", "missing", "empty"):
        file = written(tmp_path, SURVEY.replace('"yes"]', f'"yes", "{mark}"]'), [f"u{row}" for row in range(300)])
        found = [row for row in hs.assess(file).warnings if row.key == "missing-as-category"]
        (warned,) = found
        assert warned.sentence.endswith(f'they count as ordinary answers: "{mark}".')
        assert f'Declare missing answers by the key `missing`: missing = "{mark}"' in warned.advice
    assert main(["collect", str(file), "--out", str(tmp_path / "out")]) == Exit.DONE
    assert capsys.readouterr().err.count("These categories look like missing answers") == 1
    declared = file.read_text("utf-8").replace('"empty"]', '"empty"], missing = "empty"')
    file.write_text(declared, encoding="utf-8")
    assert not [row for row in hs.assess(file).warnings if row.key == "missing-as-category"]
    assert main(["collect", str(file), "--out", str(tmp_path / "declared")]) == Exit.DONE
    assert "look like missing answers" not in capsys.readouterr().err
