"""The Mallows shuffle in specifications: what it needs, what does not go together, what is left out."""

from __future__ import annotations

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import SpecificationError, UnsupportedProtocolError
from hushuffle.specification import Specification, build_adversaries, build_protocol, parse
from hushuffle.specification.order import Groups, MallowsShuffle, Order, OrderAttack, with_order_adversaries

DATA = 'population = { data = "people.csv", column = "answer", categories = ["no", "yes"] }\n'
RANDOMIZER = 'randomizer = { kind = "randomized-response", epsilon = 2 }\n'
REST = "targets = { delta = 1e-6 }\n"
PLACES = 'groups = { columns = ["x", "y"], radius = 1 }'


def text(shuffler: str, more: str = "", *, population: str = DATA, randomizer: str = RANDOMIZER) -> str:
    return f'{more}\n{population}{randomizer}{REST}shuffler = {{ kind = "mallows", {shuffler} }}\n'


def problems(*arguments: str, **given: str) -> list[str]:
    try:
        parse(text(*arguments, **given))
    except SpecificationError as error:
        return [str(problem) for problem in error.problems]
    return []


def mallows(spec: Specification) -> MallowsShuffle:
    assert isinstance(spec.shuffler, MallowsShuffle)
    return spec.shuffler


@pytest.mark.parametrize(
    ("groups", "public"),
    [
        ('{ columns = ["lat", "lon"], radius = 4.0, metric = "great-circle" }', ("lat", "lon")),
        ('{ columns = ["age"], radius = 0 }', ("age",)),
        ('{ columns = ["x", "y", "z"], nearest = 50 }', ("x", "y", "z")),
        ('{ column = "district" }', ("district",)),
        ('{ edges = "edges.parquet", steps = 1 }', ()),
        ('{ edges = "edges.csv", id = "name", steps = 2 }', ("name",)),
    ],
)
def test_groups(groups: str, public: tuple[str, ...]) -> None:
    spec = parse(text(f"alpha = 4, groups = {groups}"))
    assert mallows(spec).groups.public == public
    assert mallows(spec).alpha == 4.0
    assert parse(spec.effective()) == spec


def test_the_order_is_read_unless_somebody_else_is_asked_for() -> None:
    spec = parse(text(f"theta = 0.5, {PLACES}"))
    assert [adversary.kind for adversary in spec.adversaries] == ["order", "linker"]
    built = build_adversaries(spec)
    assert (built.guessers, built.linker) == ((), True)
    assert built.order == Order(kind="order")
    other = parse(text(f"theta = 0.5, {PLACES}", 'adversaries = [{ kind = "strong" }]'))
    assert build_adversaries(other).order is None
    assert not build_adversaries(other).linker
    assert with_order_adversaries(3) == 3


def test_an_attack() -> None:
    asked = 'adversaries = [{ kind = "order", household = 3, attack = { column = "job", radius = 9 } }]'
    built = build_adversaries(parse(text(f"alpha = 1.0, {PLACES}", asked)))
    assert built.order is not None
    assert built.order.attack == OrderAttack(column="job", radius=9.0)
    assert built.order.household == 3
    nothing = 'adversaries = [{ kind = "order", attack = {} }]'
    assert problems('alpha = 1.0, groups = { column = "town" }', nothing) == []


def test_the_shuffle_is_built_from_an_order() -> None:
    spec = parse(text(f"alpha = 1.0, {PLACES}"))
    shuffler = mallows(spec).shuffler(np.array([1, 0, 2]), 0.25)
    assert shuffler == hs.MallowsShuffle(reference=[1, 0, 2], theta=0.25)
    assert build_protocol(spec, n=3, k=2, shuffler=shuffler).shuffler is shuffler
    with pytest.raises(UnsupportedProtocolError, match="computed from public columns"):
        build_protocol(spec, n=3, k=2)


@pytest.mark.parametrize(
    "case",
    [
        (PLACES, "shuffler: must have either alpha or theta, got neither. For example alpha = 4.0."),
        (
            f"alpha = 1, theta = 1, {PLACES}",
            "shuffler: must have either alpha or theta, got both. "
            "alpha limits what the order reveals, theta = alpha / sensitivity.",
        ),
        ("alpha = 1", "shuffler.groups: must be given, got nothing."),
        ("alpha = 1, groups = 3", "shuffler.groups: must be a table, got 3."),
        ("alpha = 1, groups = {}", "shuffler.groups: must have one of columns, column or edges, got none of them."),
        (
            'alpha = 1, groups = { column = "a", edges = "e.csv" }',
            "shuffler.groups: must have one of columns, column or edges, got column and edges.",
            "shuffler.groups.steps: must be given with edges, got nothing. For example 1.",
        ),
        (
            'alpha = 1, groups = { columns = ["x"] }',
            "shuffler.groups: must have either radius or nearest with columns, got neither.",
        ),
        (
            'alpha = 1, groups = { columns = ["x", "x"], radius = 1, nearest = 3 }',
            "shuffler.groups: must have either radius or nearest with columns, got both.",
            "shuffler.groups.columns: must be distinct, got one twice.",
        ),
        (
            'alpha = 1, groups = { columns = ["x"], radius = 1, metric = "great-circle" }',
            "shuffler.groups.columns: must list two columns for the great-circle metric, got 1. "
            "The first column is the latitude, the second the longitude, in degrees.",
        ),
        (
            'alpha = 1, groups = { column = "town", radius = 1, steps = 2 }',
            "shuffler.groups.radius: must come with columns, got no columns.",
            "shuffler.groups.steps: must come with edges, got no edges.",
        ),
        (
            'alpha = 1, reference = "sweep", groups = { column = "town" }',
            'shuffler.reference: needs groups from columns of numbers, got "sweep". Use "best", "rcm" or "bfs".',
        ),
        (
            'alpha = 1, groups = { columns = ["x", "answer"], radius = 1 }',
            'shuffler.groups.columns: must be public, and not the private column, got "answer". '
            "The order is public, and would reveal the values of this column.",
        ),
        (
            'alpha = 1, groups = { columns = ["x"], raduis = 1 }',
            "shuffler.groups.raduis: is not a key here, got 1. Did you mean radius?",
            "shuffler.groups: must have either radius or nearest with columns, got neither.",
        ),
        ("alpha = 1, groups = { columns = 3, radius = 1 }", "shuffler.groups.columns: must be a list, got 3."),
        (f"alpha = 0, {PLACES}", "shuffler.alpha: must be greater than 0, got 0."),
        (
            f'alpha = 1, distance = "kendal", {PLACES}',
            'shuffler.distance: must be "kendall" or "hamming", got "kendal". Did you mean "kendall"?',
        ),
    ],
)
def test_what_does_not_go_together(case: tuple[str, ...]) -> None:
    shuffler, *expected = case
    assert problems(shuffler) == expected


def test_there_must_be_data() -> None:
    (problem,) = problems(f"alpha = 1, {PLACES}", population="population = { n = 100, k = 2 }\n")
    assert problem.startswith("population: must have data for a Mallows shuffle, got no data. The order is computed")


@pytest.mark.parametrize(
    ("adversary", "expected"),
    [
        (
            '{ kind = "order", attack = { column = "answer" } }',
            "adversaries[0].attack.column: must be a column other than",
        ),
        ('{ kind = "order", attack = { colum = "job" } }', "adversaries[0].attack.colum: is not a key here"),
        ('{ kind = "order", attack = 3 }', "adversaries[0].attack: must be a table, got 3."),
        ('{ kind = "order" }, { kind = "order", household = 2 }', "adversaries[1].kind: must be listed once"),
    ],
)
def test_adversaries_that_do_not_fit(adversary: str, expected: str) -> None:
    (problem,) = problems(f"alpha = 1, {PLACES}", f"adversaries = [{adversary}]")
    assert problem.startswith(expected)


def test_nearby_needs_numbers() -> None:
    asked = 'adversaries = [{ kind = "order", attack = { radius = 2 } }]'
    (problem,) = problems('alpha = 1, groups = { column = "town" }', asked)
    assert problem.startswith("adversaries[0].attack.radius: is allowed only if groups are made from columns")


def test_only_released_values_vote_and_are_drawn() -> None:
    hashing = 'randomizer = { kind = "local-hashing", epsilon = 2 }\n'
    asked = 'adversaries = [{ kind = "order", attack = {} }]\nrun = { show_people = true }'
    attack, drawn = problems(f"alpha = 1, {PLACES}", asked, randomizer=hashing)
    assert attack.startswith('adversaries[0].attack: is allowed only if [randomizer] kind = "randomized-response"')
    assert drawn.startswith("run.show_people: is allowed only with randomized response and a Mallows")
    assert problems(f"alpha = 1, {PLACES}", "run = { show_people = true }") == []


@pytest.mark.parametrize("groups", ['{ columns = ["x"], radius = 1 }', '{ column = "town" }'])
def test_a_map_needs_two_columns(groups: str) -> None:
    (problem,) = problems(f"alpha = 1, groups = {groups}", "run = { show_people = true }")
    assert problem.startswith("run.show_people: is allowed only with")


def test_other_shufflers_have_no_order_to_read() -> None:
    body = f'{DATA}{RANDOMIZER}{REST}shuffler = {{ kind = "uniform" }}\n'
    with pytest.raises(SpecificationError, match="2 problems") as caught:
        parse('adversaries = [{ kind = "order" }]\nrun = { show_people = true }\n' + body)
    assert [problem.key for problem in caught.value.problems] == ["adversaries[0].kind", "run.show_people"]


def test_groups_by_hand() -> None:
    assert Groups(columns=("x",), radius=2.0).public == ("x",)
