from __future__ import annotations

import math
from pathlib import Path

import pytest

from hushuffle.errors import SpecificationError
from hushuffle.specification import Specification, load, parse
from hushuffle.specification.kinds import RANDOMIZERS
from hushuffle.specification.reading import parse_collection
from hushuffle.specification.sums import parse_sum
from hushuffle_network.queries import parse_plan

POPULATION = 'population = { data = "people.csv", column = "x", categories = ["no", "yes"] }\n'
COUNTED = "population = { n = 100, k = 4 }\n"
RANDOMIZER = 'randomizer = { kind = "randomized-response", epsilon = 2 }\n'
POPULATIONS = "must be a table with data, n, publishers or audiences"
POPULATION_KEYS = "For example data, column and categories; n and k; n and categories; in a reach study, publishers."
_QUOTED = [f'"{kind}"' for kind in sorted(RANDOMIZERS)]
KINDS = f"{', '.join(_QUOTED[:-1])} or {_QUOTED[-1]}"
_NOISY = [f'"{kind}"' for kind, section in sorted(RANDOMIZERS.items()) if "epsilon" in section.model_fields]
WITH_EPSILON = f"{', '.join(_NOISY[:-1])} or {_NOISY[-1]}"
SUM = """
population = { n = 900, kind = "number", low = 0, high = 10, levels = 11 }
sum = { epsilon = 1.0, delta = 1e-6 }
"""
REST = 'shuffler = { kind = "uniform" }\ntargets = { delta = 1e-6 }\n'


def problems(text: str) -> list[str]:
    with pytest.raises(SpecificationError) as caught:
        parse(text, file="here.toml")
    assert str(caught.value).startswith("here.toml: ")
    return [str(problem) for problem in caught.value.problems]


def test_defaults() -> None:
    spec = parse(POPULATION + RANDOMIZER + REST)
    assert spec.title is None
    assert [adversary.kind for adversary in spec.adversaries] == ["uninformed", "strong", "linker"]
    assert (spec.run.repetitions, spec.run.seed, spec.run.confidence) == (100, "secure", 0.95)
    assert spec.targets.standard_error is None
    assert spec.plain()["population"]["missing"] == "refuse"


def test_no_noise_in_two_spellings() -> None:
    for written in ('"inf"', "inf"):
        randomizer = parse(COUNTED + RANDOMIZER.replace("2", written) + REST).randomizer
        assert randomizer.given() == {"epsilon": math.inf}


@pytest.mark.parametrize("written", ["nan", "0", "-1.0", "41.0", "true", '"2"', "-inf", "[2]"])
def test_what_epsilon_cannot_be(written: str) -> None:
    (problem,) = problems(COUNTED + RANDOMIZER.replace("2", written) + REST)
    assert problem.startswith(
        'randomizer.epsilon: must be a number from 0 (excluded) to 40, or "inf" for no noise, got'
    )


def test_every_problem_at_once() -> None:
    text = """
        titel = "x"
        delta = 3
        [population]
        data = 3
        colum = "a"
        n = 3
        missing = "dropp"
        allow_categories_from_data = 1
        [population.categories]
        a = "= 0"
        b = 3
        "" = "> 0"
        "c d" = "> 'a'"
        [randomizer]
        kind = "target-sampling"
        epsilon = "x"
        [shuffler]
        kid = "x"
        [[adversaries]]
        kind = "informed"
        [[adversaries]]
        kind = "traffic"
        [[adversaries]]
        kind = "strong"
        m = 3
        [[adversaries]]
        kind = "stong"
        [targets]
        delta = 2
        standard_error = nan
        [run]
        seed = 1.0
        repetitions = -1
        confidence = "0.9"
        foo = 3
    """
    comparisons = "must be comparisons with numbers or quoted text, joined by `and`, `or`, got"
    known = '"uninformed", "strong", "informed", "linker" or "order"'
    assert problems(text) == [
        'titel: is not a key here, got "x". Did you mean title?',
        "delta: is not a key here, got 3. It belongs to [targets].",
        "population.data: must be text, got 3.",
        "population.column: must be given, got nothing.",
        f'population.categories.a: {comparisons} "= 0". Equality is written ==.',
        "population.categories.b: must be text, got 3.",
        'population.categories."": must be text on one line, without control characters, got "".',
        f'population.categories."c d": {comparisons} "> \'a\'". Compare text only with == or !=.',
        "population.allow_categories_from_data: must be true or false, got 1.",
        'population.colum: is not a key here, got "a". Did you mean column?',
        "population.n: is not a key here, got 3. It belongs to a population without data: give either n or data.",
        'population.missing: must be "refuse", "drop" or the name of a category, got "dropp". Did you mean \'drop\'?',
        "randomizer.sigma: must be given, got nothing.",
        f'randomizer.epsilon: is not a key here, got "x". This key needs kind = {WITH_EPSILON}.',
        'shuffler.kind: must be "augmented", "blanket-messages", "fakes-per-value", "mallows", "none", "scrambler", '
        '"secure-aggregation" or "uniform", got nothing.',
        "adversaries[0].m: must be given, got nothing.",
        f'adversaries[1].kind: must be {known}, got "traffic". "traffic" is planned, but not implemented yet.',
        'adversaries[2].m: is not a key here, got 3. This key needs kind = "informed".',
        f'adversaries[3].kind: must be {known}, got "stong". Did you mean "strong"?',
        "targets.delta: must be less than 1, got 2.",
        "targets.standard_error: must be less than 1, got nan.",
        "run.repetitions: must be greater than or equal to 0, got -1.",
        'run.seed: must be "secure" or an integer >= 0, got 1.0.',
        'run.confidence: must be a number, got "0.9".',
        "run.foo: is not a key here, got 3. Allowed keys: confidence, repetitions, seed, show_people.",
    ]


def test_nothing_is_a_table() -> None:
    assert problems("population = 3\nrandomizer = 'x'\nshuffler = 3\nadversaries = 3\nrun = 3\n") == [
        f"population: {POPULATIONS}, got 3. {POPULATION_KEYS}",
        'randomizer: must be a table, got "x".',
        "shuffler: must be a table, got 3.",
        "adversaries: must be a list, got 3.",
        "targets: must be given, got nothing.",
        "run: must be a table, got 3.",
    ]


def test_nothing_is_there() -> None:
    missing = ["population", "randomizer", "shuffler", "targets"]
    assert problems("") == [f"{key}: must be given, got nothing." for key in missing]


def test_tables_that_are_empty() -> None:
    assert problems("population = {}\nrandomizer = {}\nshuffler = {}\nadversaries = [3, {}]\ntargets = {}\n") == [
        f"population: {POPULATIONS}, got a table with none of these keys. {POPULATION_KEYS}",
        f"randomizer.kind: must be {KINDS}, got nothing.",
        'shuffler.kind: must be "augmented", "blanket-messages", "fakes-per-value", "mallows", "none", "scrambler", '
        '"secure-aggregation" or "uniform", got nothing.',
        "adversaries[0]: must be a table, got 3.",
        'adversaries[1].kind: must be "uninformed", "strong", "informed", "linker" or "order", got nothing.',
        "targets.delta: must be given, got nothing.",
    ]


@pytest.mark.parametrize(
    "case",
    [
        (
            COUNTED.replace("k = 4", 'k = 4, column = "x"') + RANDOMIZER + REST,
            'population.column: is not a key here, got "x". It belongs to a population with '
            "data: give either data or n.",
        ),
        (
            COUNTED.replace("k = 4", 'k = 4, missing = "drop"') + RANDOMIZER + REST,
            'population.missing: is not a key here, got "drop". It belongs to a population with '
            "data: give either data or n.",
        ),
        (
            POPULATION.replace('["no", "yes"]', '"from"') + RANDOMIZER + REST,
            'population.categories: must be a table of conditions, a list of labels, or "from-data", got "from".',
        ),
        (
            POPULATION.replace('["no", "yes"]', "3") + RANDOMIZER + REST,
            'population.categories: must be a table of conditions, a list of labels, or "from-data", got 3.',
        ),
        (
            POPULATION.replace('["no", "yes"]', '["a", 2.5, "b\\u0007"]') + RANDOMIZER + REST,
            "population.categories[1]: must be text, got 2.5.",
            'population.categories[2]: must be text on one line, without control characters, got "b\\u0007".',
        ),
        (
            "kind = 3\nepsilon = 1.0\ntargets.title = 'x'\ntargets.zzz = '" + "z" * 99 + "'\n" + COUNTED + RANDOMIZER,
            "kind: is not a key here, got 3. It belongs to [randomizer].",
            "epsilon: is not a key here, got 1.0. It belongs to [randomizer].",
            "shuffler: must be given, got nothing.",
            "targets.delta: must be given, got nothing.",
            'targets.title: is not a key here, got "x". Move it to the top of the file, above all tables.',
            f'targets.zzz: is not a key here, got "{"z" * 56}... (101 characters). Allowed keys: delta, epsilon, '
            "guessing, local_epsilon, people, reidentification, standard_error.",
        ),
    ],
)
def test_wrong_values(case: tuple[str, ...]) -> None:
    text, *expected = case
    assert problems(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[run]\nseed = \n", 'line 2, column 8: must be valid TOML (Invalid value), got "seed =".'),
        (
            "[run]\nseed = 1\nseed = 2",
            'line 3, column 9: must be valid TOML (Cannot overwrite a value), got "seed = 2".',
        ),
        ("seed = ", 'line 1, column 7: must be valid TOML (Invalid value), got "seed =".'),
        ("x = [1,\r\n2\r\n\r\n", 'line 2, column 2: must be valid TOML (Unclosed array), got "2".'),
        ("x = " + "[" * 100_000, "file: must not nest so deeply, got hundreds of brackets."),
    ],
)
def test_what_is_no_toml(text: str, expected: str) -> None:
    assert problems(text) == [expected]


def test_files(tmp_path: Path) -> None:
    good = tmp_path / "good.toml"
    good.write_text(COUNTED + RANDOMIZER + REST, encoding="utf-8")
    assert isinstance(load(good), Specification)
    assert load(str(good)) == load(good)
    (tmp_path / "latin.toml").write_bytes(b'title = "caf\xe9"')
    with pytest.raises(SpecificationError, match=r"file: must be UTF-8 text, got something else at byte 12\."):
        load(tmp_path / "latin.toml")
    with pytest.raises(SpecificationError, match=r"nobody.toml: 1 problem\n  file: must exist, got no such file"):
        load(tmp_path / "nobody.toml")
    with pytest.raises(SpecificationError, match="file: must be a file that can be read, got Is a directory"):
        load(tmp_path)


def test_a_file_of_several_columns_is_for_collect() -> None:
    (problem,) = problems("[[columns]]\ncolumn = 'a'\n")
    assert problem.startswith(
        "columns: must be left out here, got several columns. This command takes a file of one column"
    )


def test_integers_of_thousands_of_digits_are_refused_in_words() -> None:
    text = "population = { n = " + "9" * 5000 + ", k = 2 }"
    for read in (parse, parse_collection, parse_plan):
        with pytest.raises(SpecificationError, match="must have numbers of fewer digits"):
            read(text)


@pytest.mark.parametrize(
    "written",
    [
        *("?", "-", "...", "2025", "No", "NONE", "not yet", "Not yet.", "not confirmed", "unknown", "(TBD)", "T.B.A."),
        *("to-do", "pending", "n/a", "N.A.", "na", "nobody", "open", "unclear", "later", "not yet confirmed"),
    ],
)
def test_a_placeholder_confirms_no_assumption(written: str) -> None:
    hint = "Leave the key out until someone confirms it."
    confirming = f'[statement.vouched]\ndevices = "{written}"\n'
    assert problems(COUNTED + RANDOMIZER + REST + confirming) == [
        "statement.vouched.devices: must name who confirms the assumption: a person, a role or a document, got "
        f'"{written}". {hint}'
    ]
    with pytest.raises(SpecificationError, match=r"statement\.vouched\.withheld: must name who confirms") as refused:
        parse_sum(SUM + confirming.replace("devices", "withheld"))
    assert hint in str(refused.value)


@pytest.mark.parametrize("written", ["Dr. No", "the works council", "Contract 12/2025", "\u7530\u4e2d", "A."])
def test_a_name_or_a_document_confirms_an_assumption(written: str) -> None:
    confirming = f'[statement.vouched]\ndevices = "{written}"\n'
    assert parse(COUNTED + RANDOMIZER + REST + confirming).statement.vouched.devices == written
    assert parse_sum(SUM + confirming).statement.vouched.devices == written


@pytest.mark.parametrize("written", ["2025-01-02", '"2025-01-02"'])
def test_the_date_of_the_approval_is_a_date_or_text(written: str) -> None:
    approved = f"[statement]\napproved_on = {written}\n"
    found = parse(COUNTED + RANDOMIZER + REST + approved)
    assert found.statement.approved_on == parse_sum(SUM + approved).statement.approved_on == "2025-01-02"
    assert parse(found.effective()) == found


@pytest.mark.parametrize("written", ["2025-01-02T10:00:00", "10:00:00", "2025"])
def test_a_time_or_a_number_is_no_date_of_an_approval(written: str) -> None:
    (problem,) = problems(f"{COUNTED}{RANDOMIZER}{REST}[statement]\napproved_on = {written}\n")
    assert problem.startswith("statement.approved_on: must be text, got ")
