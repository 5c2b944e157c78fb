from __future__ import annotations

import pytest

from hushuffle.errors import SpecificationError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse, SquareWave
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import NumberGrid
from hushuffle.specification import build_protocol, parse, parse_collection
from hushuffle.specification.warnings import accuracy_warnings

REST = (
    'randomizer = { kind = "randomized-response", epsilon = 2 }\nshuffler = { kind = "uniform" }\n'
    "targets = { delta = 1e-6 }\n"
)
GRID = 'kind = "number", low = -5, high = 15, levels = 5'


def problems(population: str, rest: str = REST) -> list[str]:
    with pytest.raises(SpecificationError) as caught:
        parse(f"population = {{ {population} }}\n{rest}")
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("who", ["n = 100", 'data = "people.csv", column = "age"'])
def test_a_specification_of_numbers_says_its_levels(who: str) -> None:
    specification = parse(f"population = {{ {who}, {GRID} }}\n{REST}")
    assert specification.population.grid == NumberGrid(low=-5, high=15, levels=5)
    assert parse(specification.effective()) == specification
    assert build_protocol(specification, n=100, k=5).randomizer.inputs == 5


def test_columns_of_a_collection_may_be_numbers() -> None:
    found = parse_collection(
        'population = { data = "people.csv" }\nshuffler = { kind = "uniform" }\ntargets = { delta = 1e-6 }\n'
        f'[[columns]]\ncolumn = "age"\n{GRID.replace(", ", chr(10))}\n'
        'randomizer = { kind = "square-wave", epsilon = 1.0 }\n'
    )
    assert found.columns["age"].population.grid == NumberGrid(low=-5, high=15, levels=5)
    assert parse_collection(found.effective()).columns == found.columns


def test_bounds_must_stand_in_the_file() -> None:
    for who in ("n = 9", 'data = "a.csv", column = "x"'):
        assert problems(f'{who}, kind = "number", levels = 3') == [
            f'population.{key}: must be given for kind = "number", got nothing. Choose the bounds before the '
            "collection: bounds taken from the answers reveal the extreme answers."
            for key in ("low", "high")
        ]
    assert problems('n = 9, kind = "number", low = 0, high = 1') == [
        'population.levels: must be given for kind = "number", got nothing. For example levels = 21.'
    ]


@pytest.mark.parametrize(
    ("population", "message"),
    [
        (
            'n = 9, kind = "number", low = 1, high = 1, levels = 3',
            "population.high: must be above low = 1, with a finite",
        ),
        ('n = 9, kind = "number", low = nan, high = 1, levels = 3', "population.low: must be finite, got nan"),
        ('n = 9, kind = "number", low = 0, high = inf, levels = 3', "population.high: must be finite, got inf"),
        (
            'n = 9, kind = "number", low = 0, high = 1, levels = 1',
            "population.levels: must be greater than or equal to 2",
        ),
        ('n = 9, kind = "number", low = "0", high = 1, levels = 3', 'population.low: must be a number, got "0"'),
        (
            'n = 9, kind = "numbers", low = 0, high = 1, levels = 3',
            'population.kind: must be "number" or "threshold", got "numbers". Did',
        ),
        ("n = 9, k = 3, low = 0", 'population.low: is allowed only with kind = "number", got low = 0. For example'),
        (f"n = 9, k = 3, {GRID}", "population: must have either k or categories, got both"),
        (
            f'data = "a.csv", column = "x", bins = [0, 1, 2], {GRID}',
            "population.kind: is not allowed together with bins",
        ),
        (
            f'data = "a.csv", column = "x", missing = "none", {GRID}',
            'population.missing: must be "refuse" or "drop" for',
        ),
        (f'data = "a.csv", column = "x", otherwise = "o", {GRID}', "population.otherwise: must be left out for kind"),
        (f'data = "a.csv", column = "x", trim = true, {GRID}', "population.trim: must be left out for kind"),
    ],
)
def test_what_does_not_fit_is_a_problem_of_its_key(population: str, message: str) -> None:
    assert any(problem.startswith(message) for problem in problems(population)), problems(population)


def test_a_mechanism_for_numbers_is_never_advised_for_categories() -> None:
    """Its reports say little about which value it was; a small survey is advised among the others."""
    survey = Protocol(randomizer=RandomizedResponse(k=5, epsilon=0.5), shuffler=UniformShuffle(), n=50)
    found = list(accuracy_warnings(survey))
    assert [warned.key for warned in found] == ["rare-values-hidden"]
    assert not any(kind in found[0].advice for kind in ("square-wave", "discrete-laplace", "rounded-gaussian"))


def test_who_chose_a_mechanism_for_numbers_is_not_sent_to_one_for_categories() -> None:
    survey = Protocol(randomizer=SquareWave(bins=25, epsilon=0.5), shuffler=UniformShuffle(), n=50)
    assert not list(accuracy_warnings(survey))
