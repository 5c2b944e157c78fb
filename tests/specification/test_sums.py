"""Files with [sum]: what they say, what is wrong with them, and where they are refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from hushuffle.assessment.deployment import deployment_of
from hushuffle.collection.request import Request
from hushuffle.collection.sums import collect_sum
from hushuffle.errors import SpecificationError
from hushuffle.specification import Collection, load_collection
from hushuffle.specification.mixed import load_deployment
from hushuffle.specification.sums import SumSpecification, is_sum, parse_sum

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = """
population = { n = 1000, kind = "number", low = 0, high = 10, levels = 11 }
sum = { epsilon = 1.0, delta = 1e-6 }
"""


def test_the_example_is_read_and_written_out() -> None:
    found = parse_sum((EXAMPLES / "sum.toml").read_text("utf-8"))
    assert found.sum.honest == 0.8
    assert parse_sum(found.effective()) == found
    protocol = found.build(20_000)
    assert (protocol.needed, protocol.levels, protocol.epsilon, protocol.delta) == (16_000, 241, 1.0, 1e-9)


def test_several_numbers_of_each_person_are_planned_and_neither_collected_nor_audited(tmp_path: Path) -> None:

    found = parse_sum(TEXT.replace("delta = 1e-6", "delta = 1e-6, coordinates = 4, l1 = 20"))
    assert parse_sum(found.effective()) == found
    protocol = found.build(1000)
    assert (protocol.coordinates, protocol.l1) == (4, 20.0)
    alone = parse_sum(TEXT).build(1000)
    report = deployment_of(found, tmp_path).assess()
    assert report.findings[0].bound.upper == pytest.approx(1.0, rel=1e-3)
    facts = {row[0]: row[1] for row in next(table for table in report.tables if table.key == "costs").rows}
    assert facts["messages"] == protocol.messages_per_person == 4 * protocol.messages
    assert protocol.standard_error() < found.altered(epsilon=0.5, delta=1e-6, levels=11).build(1000).standard_error()
    assert alone.standard_error() < protocol.standard_error()
    with pytest.raises(SpecificationError, match=r"sum\.coordinates: must be 1 for audit, got 4\. The files have one"):
        deployment_of(found, tmp_path).audit()
    with pytest.raises(SpecificationError, match=r"sum\.coordinates: must be 1 for collect, got 4"):
        collect_sum(found, out=tmp_path / "out", request=Request())


def test_both_kinds_of_files_are_told_apart() -> None:
    assert isinstance(load_deployment(EXAMPLES / "sum.toml"), SumSpecification)
    assert isinstance(load_deployment(EXAMPLES / "minutes.toml"), Collection)
    assert not is_sum("no TOML [")
    hint = r"This command takes a file of shares or of numbers, with \[randomizer\] and \[shuffler\]"
    with pytest.raises(SpecificationError, match=hint):
        load_collection(EXAMPLES / "sum.toml")


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("epsilon = 1.0", "epsilon = 50.0", "sum.epsilon: must be less than or equal to 40"),
        ("epsilon = 1.0", "epsilon = 0", "sum.epsilon: must be greater than 0"),
        (", delta = 1e-6", "", "sum.delta: must be given, got nothing"),
        ("delta = 1e-6", "delta = 1e-6, honest = 0.0", "sum.honest: must be greater than 0"),
        ("delta = 1e-6", "delta = 1e-6, messages = 3", "sum.messages: is not a key here"),
        ("delta = 1e-6", "delta = 1e-6, coordinates = 0", "sum.coordinates: must be greater than or equal to 1"),
        (
            'n = 1000, kind = "number", low = 0, high = 10, levels = 11 }\nsum = { epsilon = 1.0, ',
            'data = "x.csv", column = "y", kind = "number", low = 0, high = 10, levels = 11 }\n'
            "sum = { epsilon = 1.0, coordinates = 2, ",
            "sum.coordinates: must be 1 with data, got 2",
        ),
        ('kind = "number", low = 0, high = 10, levels = 11', "k = 3", 'population.kind: must be "number", got nothing'),
        (", levels = 11", "", "population.levels: must be given"),
        ("high = 10", "high = 0", "population.high: must be above low = 0"),
        ("n = 1000", "n = 1000, reports_per_person = 2", "Add up the numbers of a person first"),
        ("n = 1000", 'data = "x.csv", column = "y", person = "z"', "population.person: must be left out"),
        ("population = {", "randomizer = {}\npopulation = {", "randomizer: is not a key here"),
        ("population = {", "population = 3 #", "population: must be a table"),
    ],
)
def test_everything_wrong_is_said(old: str, new: str, word: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        parse_sum(TEXT.replace(old, new))
    assert word in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "people", "word"),
    [
        ("delta = 1e-6", "delta = 1e-300", 1000, "sum.delta: must be larger for this number of people"),
        ("levels = 11", "levels = 16384", 1000, None),
        ("epsilon = 1.0", "epsilon = 1e-5", 1000, "population.levels: must be so few"),
        ("", "", 1, "population.n: must be an integer from 2"),
        ("delta = 1e-6", "delta = 1e-6, honest = 0.001", 1000, "sum.honest: must be large enough"),
    ],
)
def test_what_no_protocol_does_is_a_problem_of_its_key(old: str, new: str, people: int, word: str | None) -> None:
    specification = parse_sum(TEXT.replace(old, new) if old else TEXT)
    if word is None:
        assert specification.build(people).n == people
        return
    with pytest.raises(SpecificationError) as refused:
        specification.build(people)
    assert word in str(refused.value)
    assert f"for n = {people:,} people" in str(refused.value)


def test_a_model_that_breaks_a_rule_is_refused_too() -> None:
    plain = parse_sum(TEXT).plain()
    plain["population"]["reports_per_person"] = 3
    with pytest.raises(ValueError, match="must be left out"):
        SumSpecification.model_validate(plain)


def test_the_schema_takes_the_example_and_nothing_else() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.Draft202012Validator(
        json.loads((EXAMPLES.parent / "docs" / "specification.schema.json").read_text())
    )
    tables = tomllib.loads((EXAMPLES / "sum.toml").read_text(encoding="utf-8"))
    checker.validate(tables)
    checker.validate(parse_sum((EXAMPLES / "sum.toml").read_text("utf-8")).plain())
    for key, value in (("sum", {}), ("randomizer", {}), ("population", {"n": 3, "k": 2})):
        assert not checker.is_valid({**tables, key: value})


@pytest.mark.parametrize("key", ["randomizer", "shuffler", "adversaries", "run", "columns", "memoised"])
def test_a_key_of_another_kind_of_file_says_where_it_belongs(key: str) -> None:
    with pytest.raises(SpecificationError, match=rf"{key}: is not a key here, got .*\. (A|No|The) \w+"):
        parse_sum(f"{key} = true\n{TEXT}")


def test_rounds_and_a_statement_are_read_and_left_out_where_there_are_none() -> None:
    found = parse_sum(f'rounds = 4\nstatement = {{ author = "A", vouched = {{ honest = "B" }} }}\n{TEXT}')
    assert (found.times, found.delta, found.wanted_delta) == (4, 4e-6, 4e-6)
    assert found.statement.vouched.honest == "B"
    assert parse_sum(found.effective()) == found
    assert "statement" not in parse_sum(TEXT).plain()
    with pytest.raises(SpecificationError, match=r"statement\.vouched\.honesty: is not a key here"):
        parse_sum(f'statement = {{ vouched = {{ honesty = "B" }} }}\n{TEXT}')
