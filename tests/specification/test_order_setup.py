"""From a specification with a Mallows shuffle to groups, order and shuffle, for the people who are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushuffle.errors import DataError, SpecificationError
from hushuffle.questions import order
from hushuffle.specification import parse
from hushuffle.specification.order_setup import Arrangement, arranged, coins

TOWNS = ("north", "south", "west")
N = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    lines = ["id,lat,lon,town,answer"]
    for person in range(N + 1):
        answer = "" if person == 4 else ("no", "yes")[int(rng.integers(2))]
        lat, lon = rng.random(2).round(3)
        lines.append(f"p{person},{lat},{lon},{TOWNS[person % 3]},{answer}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    edges = [f"{person},{person + 1}" for person in range(N)]
    (tmp_path / "edges.csv").write_text("\n".join(["from,to", *edges]) + "\n", encoding="utf-8")
    named = [f"p{person},p{(person * 7) % (N + 1)}" for person in range(N + 1)]
    (tmp_path / "named.csv").write_text("\n".join(["from,to", *named]) + "\n", encoding="utf-8")
    return tmp_path


def made(folder: Path, groups: str, keys: str = "alpha = 2.0") -> Arrangement:
    spec = parse(f"""
        population = {{ data = "people.csv", column = "answer", categories = ["no", "yes"], missing = "drop" }}
        randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
        shuffler = {{ kind = "mallows", {keys}, groups = {groups} }}
        targets = {{ delta = 1e-6 }}
    """)
    found = arranged(spec, spec.population.read(folder), folder)
    assert found is not None
    return found


def places(folder: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rows = [line.split(",") for line in (folder / "people.csv").read_text(encoding="utf-8").splitlines()[1:]]
    return np.array([[float(row[1]), float(row[2])] for row in rows if row[4]])


def same(one: order.Groups, other: order.Groups) -> bool:
    return bool(np.array_equal(one.members, other.members) and np.array_equal(one.offsets, other.offsets))


def test_other_shufflers_are_left_alone(folder: Path) -> None:
    spec = parse("""
        population = { n = 10, k = 2 }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
    """)
    assert arranged(spec, spec.population.read(folder), folder) is None


def test_groups_by_radius(folder: Path) -> None:
    found = made(folder, '{ columns = ["lat", "lon"], radius = 0.2 }')
    where = places(folder)
    groups = order.radius_groups(where, 0.2)
    assert same(found.groups, groups)
    reference = order.reference_order(groups, where)
    assert np.array_equal(found.shuffler.reference, reference)
    assert found.sensitivity == order.kendall_sensitivity(reference, groups)
    assert found.shuffler.theta == order.theta_for_alpha(2.0, reference=reference, groups=groups)
    assert found.alpha == order.alpha_for_theta(found.shuffler.theta, reference=reference, groups=groups)
    assert found.alpha.upper == pytest.approx(2.0, rel=1e-12)
    assert found.published == order.published_sensitivity(reference, groups)
    assert found.width == order.width(reference, groups)
    assert (found.n, found.names, found.labelled) == (N, ("lat", "lon"), False)
    assert found.features is found.places
    assert same(found.within(0.3), order.radius_groups(where, 0.3))
    assert same(found.nearest(4), order.nearest_groups(where, 4))


def test_groups_on_the_globe_and_of_a_size(folder: Path) -> None:
    globe = made(folder, '{ columns = ["lat", "lon"], radius = 30.0, metric = "great-circle" }')
    assert same(globe.groups, order.radius_groups(places(folder), 30.0, metric="great-circle"))
    assert globe.metric == "great-circle"
    few = made(folder, '{ columns = ["lat", "lon"], nearest = 5 }', 'theta = 0.5, distance = "hamming"')
    assert same(few.groups, order.nearest_groups(places(folder), 5))
    assert (few.alpha.upper, few.sensitivity, few.published) == (2.5, 5, None)


def test_groups_by_label(folder: Path) -> None:
    found = made(folder, '{ column = "town" }')
    towns = [TOWNS[person % 3] for person in range(N + 1) if person != 4]
    assert same(found.groups, order.column_groups(towns))
    assert found.places is None
    assert found.features is not None
    assert [TOWNS.index(town) for town in towns] == found.features[:, 0].tolist()


def test_groups_along_edges(folder: Path) -> None:
    found = made(folder, '{ edges = "edges.csv", steps = 1 }')
    line = [[person, person + 1] for person in range(N - 1) if person != 3]  # person 4 of the file is left out
    assert same(found.groups, order.path_groups(line, n=N, radius=1))
    assert (found.features, found.names) == (None, ("edges.csv",))
    named = made(folder, '{ edges = "named.csv", id = "id", steps = 2 }')
    number = {person: place for place, person in enumerate(person for person in range(N + 1) if person != 4)}
    edges = [(person, (person * 7) % (N + 1)) for person in range(N + 1)]
    kept = [[number[one], number[other]] for one, other in edges if 4 not in {one, other}]
    assert same(named.groups, order.path_groups(kept, n=N, radius=2))
    assert named.names == ("id", "named.csv")


def test_everybody_is_kept_where_nothing_is_missing(folder: Path) -> None:
    spec = parse("""
        population = { data = "people.csv", column = "town", categories = ["north", "south", "west"] }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "mallows", alpha = 1.0, groups = { edges = "named.csv", id = "id", steps = 1 } }
        targets = { delta = 1e-6 }
    """)
    people = spec.population.read(folder)
    assert people.kept is None
    found = arranged(spec, people, folder)
    assert found is not None
    assert found.n == N + 1


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ('{ columns = ["lat", "lon"], nearest = 50 }', "shuffler.groups: must be an integer from 1 to 40, got 50"),
        ('{ columns = ["lat", "lon"], radius = 0 }', "must put two people into one group, got one person in every"),
    ],
)
def test_groups_that_do_not_fit(folder: Path, groups: str, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        made(folder, groups)


def test_columns_that_are_no_numbers(folder: Path) -> None:
    with pytest.raises(DataError, match=r"public column 'town' of people\.csv: 40 of 40 records lack a finite"):
        made(folder, '{ columns = ["town"], radius = 1 }')
    with pytest.raises(DataError, match=r"people\.csv has no column 'towns' \(number of columns: 5\)"):
        made(folder, '{ column = "towns" }')


def test_coins() -> None:
    assert coins(3).permutation(5).tolist() == coins(3).permutation(5).tolist()
    assert sorted(coins("secure").permutation(5).tolist()) == [0, 1, 2, 3, 4]
