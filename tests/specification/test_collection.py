from __future__ import annotations

from pathlib import Path

import pytest

from hushuffle.errors import SpecificationError
from hushuffle.specification import parse
from hushuffle.specification.reading import Collection, load_collection, parse_collection

TOP = """
title = "Two questions"
population = { data = "people.csv" }
shuffler = { kind = "scrambler", dummies = 3 }
targets = { delta = 1e-6, epsilon = 0.5 }
"""
FIRST = """
[[columns]]
column = "smokes"
categories = ["no", "yes"]
missing = "drop"
randomizer = { kind = "randomized-response", epsilon = 1.0 }
"""
SECOND = """
[[columns]]
name = "income"
column = "What do you earn?"
categories = { little = "< 10", much = ">= 10" }
[columns.randomizer]
kind = "local-hashing"
epsilon = 2.0
"""


def problems(text: str) -> list[str]:
    with pytest.raises(SpecificationError) as caught:
        parse_collection(text, file="town.toml")
    assert caught.value.file == "town.toml"
    return [str(problem) for problem in caught.value.problems]


def test_every_column_is_an_ordinary_specification() -> None:
    found = parse_collection(TOP + FIRST + SECOND)
    assert found.kind_of_deployment == "columns"
    assert (found.title, found.delta, found.epsilon) == ("Two questions", 1e-6, 0.5)
    assert list(found.columns) == ["smokes", "income"]
    alone = parse("""
        title = "Two questions"
        population = { data = "people.csv", column = "smokes", categories = ["no", "yes"], missing = "drop" }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "scrambler", dummies = 3 }
        targets = { delta = 1e-6 }
    """)
    assert found.columns["smokes"] == alone


COUNTED = """
population = { n = 900 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
[[columns]]
name = "smokes"
k = 2
randomizer = { kind = "randomized-response", epsilon = 1.0 }
[[columns]]
column = "town"
categories = ["a", "b", "c"]
randomizer = { kind = "randomized-response", epsilon = 0.5 }
"""


def test_columns_are_planned_without_data() -> None:
    found = parse_collection(COUNTED)
    assert {name: one.population.read(Path()).k for name, one in found.columns.items()} == {"smokes": 2, "town": 3}
    assert all(one.population.read(Path()).n == 900 for one in found.columns.values())
    assert found.data is None
    assert parse_collection(found.effective()) == found


def test_what_is_wrong_with_a_plan_without_data() -> None:
    nameless = COUNTED.replace('name = "smokes"\n', "")
    assert problems(nameless) == ["columns[0].name: must be given, got nothing."]
    assert problems(COUNTED.replace("n = 900", "n = 0"))[0].startswith("population.n: must be")
    within = problems(COUNTED.replace("k = 2", "k = 2\nn = 3"))
    assert within == ["columns[0].n: is not a key here, got 3. It belongs to [population]."]


def test_one_column_is_read_as_before(tmp_path: Path) -> None:
    text = """
        population = { n = 10, k = 3 }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
    """
    (tmp_path / "one.toml").write_text(text, encoding="utf-8")
    found = load_collection(tmp_path / "one.toml")
    assert found == Collection.of(parse(text))
    assert found.kind_of_deployment == "column"
    assert problems("a = [") == ['line 1, column 6: must be valid TOML (Invalid value), got "a = [".']


def test_all_problems_at_once_with_their_keys() -> None:
    found = problems("""
        population = { dat = "people.csv", column = "smokes" }
        shuffler = { kind = "mallows", alpha = 3.0 }
        run = { seed = 3 }
        other = 1
        [[columns]]
        column = "smokes"
        categories = ["no"]
        data = "x.csv"
        randomizer = { kind = "randomised-response" }
        [[columns]]
        categories = ["no", "yes"]
        randomizer = { kind = "randomized-response", epsilon = -1.0 }
        [[columns]]
        column = "smokes"
        categories = ["no", "yes"]
        mising = "drop"
        shuffler = { kind = "uniform" }
    """)
    keys = [problem.split(":")[0] for problem in found]
    assert keys == [
        "run",
        "other",
        "population.data",
        "population.dat",
        "population.column",
        "columns[0].data",
        "columns[2].shuffler",
        "columns[2].column",
        "columns[0].categories",
        "columns[0].randomizer.kind",
        "columns[1].column",
        "columns[1].randomizer.epsilon",
        "columns[2].mising",
        "columns[2].randomizer",
        "shuffler.kind",
        "targets",
    ]
    assert "Set it in each of [[columns]]." in found[4]
    assert found[9].endswith('Did you mean "randomized-response"?')
    assert found[12].endswith("Did you mean missing?")
    assert found[14].startswith(
        'shuffler.kind: must be a shuffler without an order for several columns, got "mallows".'
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("columns = []\n" + TOP, "columns: must be one or more [[columns]] tables, got none."),
        ("columns = 3\n" + TOP, "columns: must be one or more [[columns]] tables, got 3."),
        ("columns = [3]\n" + TOP, "columns[0]: must be a table, got 3."),
        (
            TOP + FIRST + FIRST.replace('"smokes"', '"drinks"\nname = "Smokes"'),
            'columns[1].name: must be distinct, got "Smokes". The reports go to folders with these names, '
            "and some systems ignore capital letters in names.",
        ),
        (
            TOP + FIRST.replace("smokes", "a/b"),
            'columns[0].name: must have at most 100 letters, digits, _ and -, got "a/b". '
            "The reports go to a folder of this name. If `name` is left out, it is the name of the data's column.",
        ),
        (
            TOP.replace('{ data = "people.csv" }', "3") + FIRST,
            "population: must be a table with data, got 3. "
            'Set it, for example population = { data = "people.parquet" }.',
        ),
        (
            TOP.replace('population = { data = "people.csv" }\n', "") + FIRST,
            "population: must be a table with data, got nothing. "
            'Set it, for example population = { data = "people.parquet" }.',
        ),
        (
            TOP.replace('data = "people.csv"', 'data = "people.csv", n = 3') + FIRST,
            "population.n: is not allowed together with data, got 3.",
        ),
        (TOP.replace('"people.csv"', "3") + FIRST, "population.data: must be text, got 3."),
    ],
)
def test_what_is_wrong_with_the_whole(text: str, problem: str) -> None:
    assert problems(text) == [problem]
