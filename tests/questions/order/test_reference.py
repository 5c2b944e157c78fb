from __future__ import annotations

import itertools

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model.groups import Groups
from hushuffle.questions.order import reference
from hushuffle.questions.order.groups import column_groups, on_sphere, path_groups, radius_groups
from hushuffle.questions.order.reference import METHODS, Method, reference_order
from hushuffle.questions.order.sensitivity import kendall_sensitivity, published_sensitivity
from oracles import order_groups as oracle
from oracles import order_sensitivity


def is_order(order: np.ndarray[tuple[int], np.dtype[np.int64]], n: int) -> bool:
    return order.dtype == np.int64 and sorted(order.tolist()) == list(range(n))


@pytest.mark.parametrize("seed", range(8))
def test_breadth_first_is_the_papers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    groups = path_groups(rng.integers(n, size=(30 + 8 * seed, 2)), n=n, radius=1 + seed % 2)
    lists = [groups[person].tolist() for person in range(n)]
    expected = oracle.breadth_first(lists, groups.sizes.tolist())
    assert reference_order(groups, method="bfs").tolist() == expected
    assert reference_order(lists, method="bfs").tolist() == expected


def test_breadth_first_follows_links_both_ways() -> None:
    # Person 3 has everybody near, nobody has person 3: Algorithm 1's graph is undirected all the same.
    groups = [[0], [1], [2], [0, 1, 2, 3]]
    assert reference_order(groups, method="bfs").tolist() == [3, 0, 1, 2]


def test_breadth_first_over_explicit_groups_links_all_members() -> None:
    groups = [[5, 6], [0, 3, 4], [4, 1], [1, 2]]
    order = reference_order(groups, method="bfs").tolist()
    assert order == [0, 3, 4, 1, 2, 5, 6]


@pytest.mark.parametrize("method", METHODS)
def test_every_component_and_every_person(method: Method) -> None:
    rng = np.random.default_rng(7)
    places = np.concatenate([rng.random((30, 2)), rng.random((20, 2)) + 9, [[50.0, 50.0], [90.0, 0.0]]])
    for groups in (
        radius_groups(places, 0.3),
        column_groups(np.arange(52) % 7),
        Groups.of([[0, 5, 9], [5, 6], [30, 31]], n=52),
        Groups.of([[3]], n=52),
    ):
        order = reference_order(groups, places, method)
        assert is_order(order, 52)
        assert np.array_equal(order, reference_order(groups, places, method))


def test_one_person() -> None:
    for method in METHODS:
        assert reference_order([[0]], [1.0], method).tolist() == [0]


def test_labels_end_up_in_blocks() -> None:
    labels = np.random.default_rng(8).integers(0, 5, 200)
    groups = column_groups(labels)
    largest = int(groups.sizes.max())
    for method in ("bfs", "rcm", "best"):
        order = reference_order(groups, method=method)
        assert kendall_sensitivity(order, groups) == largest * (largest - 1) // 2


def test_a_column_is_sorted() -> None:
    ages = np.random.default_rng(9).integers(17, 91, 500)
    order = reference_order(radius_groups(ages, 2), ages, "sweep")
    assert np.all(np.diff(ages[order]) >= 0) or np.all(np.diff(ages[order]) <= 0)


def test_best_is_the_least_of_all() -> None:
    rng = np.random.default_rng(10)
    for places in (rng.random((400, 2)), rng.random((300, 3)), on_sphere(rng.random((300, 2)) * 40)):
        groups = radius_groups(places, 0.1)
        reached = {m: kendall_sensitivity(reference_order(groups, places, m), groups) for m in METHODS}
        assert reached["best"] == min(reached.values())
        without = kendall_sensitivity(reference_order(groups), groups)
        assert reached["best"] <= without <= min(reached["bfs"], reached["rcm"])


def test_the_sweep_of_a_square_beats_breadth_first() -> None:
    n = 5000
    places = np.random.default_rng(11).random((n, 2))
    groups = radius_groups(places, float(np.sqrt(50 / np.pi / n)))
    swept = kendall_sensitivity(reference_order(groups, places, "sweep"), groups)
    published = published_sensitivity(reference_order(groups, method="bfs"), groups)
    assert published > 15 * swept


def widths(order: tuple[int, ...], groups: list[set[int]]) -> list[int]:
    """Return how many ranks apart the outermost members of each group are."""
    ranks = [[order.index(person) for person in group] for group in groups]
    return [max(each) - min(each) for each in ranks]


def test_the_least_width_does_not_minimise_the_time_of_the_published_schedule() -> None:
    """p_n = max(width + 1 - size): over all orders of five people it is 1 at least, of least width 2 at least."""
    groups = [{0, 1, 2, 3}, {1, 2, 3}, {2, 4}, {3, 4}, {0, 4}]  # each person is in the group of its number
    assert all(person in group for person, group in enumerate(groups))
    found = []
    for order in itertools.permutations(range(5)):
        wide = widths(order, groups)
        found.append((max(wide), max(w + 1 - len(group) for w, group in zip(wide, groups, strict=True))))
    least = min(width for width, _ in found)
    assert least == 3
    assert min(time for width, time in found if width == least) == 2
    assert min(time for _, time in found) == 1


@pytest.mark.parametrize(
    ("parents", "bandwidth"),
    [((1, 2, 3, 4, 4), 1), ((0, 0, 0, 0, 0), 2), ((0, 0, 0, 0, 0, 0), 3), ((0, 0, 0, 0, 1, 2, 3), 2)],
)
def test_pairs_of_parent_and_child_make_the_width_a_bandwidth(parents: tuple[int, ...], bandwidth: int) -> None:
    """A path, two stars, a star with three long arms (docs/theory/order.md, Theorem 12): every order is tried."""
    n = len(parents)
    root = next(person for person in range(n) if parents[person] == person)
    child = next(person for person in range(n) if person != root and parents[person] == root)
    groups = [{person, parents[person] if person != root else child} for person in range(n)]
    edges = [(person, parents[person]) for person in range(n) if person != root]
    orders = list(itertools.permutations(range(n)))
    least = min(max(abs(order.index(a) - order.index(b)) for a, b in edges) for order in orders)
    assert least == min(max(widths(order, groups)) for order in orders) == bandwidth


def test_near_the_optimum_of_a_few_people() -> None:
    rng = np.random.default_rng(12)
    for _ in range(5):
        places = rng.random((6, 2))
        groups = radius_groups(places, 0.4)
        best = min(kendall_sensitivity(order, groups) for order in order_sensitivity.orders(6))
        assert best <= kendall_sensitivity(reference_order(groups, places), groups) <= 2 * best + 3


def test_people_in_no_group_keep_their_place_when_relaxed() -> None:
    groups = [[0, 2], [2, 4]]
    for order in itertools.islice(order_sensitivity.orders(5), 10):
        places = np.array(order_sensitivity.inverse(order), dtype=float)
        assert is_order(reference_order(groups, places), 5)


def test_relaxation_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.random.default_rng(13).random((300, 2))
    groups = radius_groups(places, 0.1)
    longer = kendall_sensitivity(reference_order(groups, places), groups)
    monkeypatch.setattr(reference, "_ROUNDS", 1)
    assert longer <= kendall_sensitivity(reference_order(groups, places), groups)


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match=r"`method` must be one of bfs, rcm, sweep, best, got method='dfs'"):
        reference_order([[0]], method="dfs")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"`coordinates` must be given for method 'sweep'"):
        reference_order([[0]], method="sweep")
    with pytest.raises(InvalidInputError, match=r"`groups` must be groups of 3 people"):
        reference_order(Groups.of([[0, 1]]), [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInputError, match=r"`members` must be integers from 0 to 1"):
        reference_order([[0, 2]], [1.0, 2.0])
