"""A public reference order of the people in which the members of each group have neighbouring ranks.

Nearer ranks mean a smaller sensitivity, and less noise for the same alpha. Finding the best order is NP-hard
(Meehan et al. 2022, Theorem A.3), so the methods are heuristics. Any order is safe if it is computed from public data
(groups and coordinates, never reports), since the guarantee depends on it only through the sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse  # loads `sparse.csgraph` when it is needed

from hushuffle import _checks
from hushuffle.model.groups import Groups, GroupsLike, Integers
from hushuffle.questions.order.groups import Floats, points
from hushuffle.questions.order.sensitivity import kendall_sensitivity, outermost, ranks

Method: TypeAlias = Literal["bfs", "rcm", "sweep", "best"]
METHODS: Final[tuple[Method, ...]] = ("bfs", "rcm", "sweep", "best")

_ROUNDS: Final = 30  # of relaxation at most
_PATIENCE: Final = 3  # rounds without improvement
_AXES: Final = 3  # principal axes, and columns, that are tried as directions


def reference_order(groups: GroupsLike, coordinates: npt.ArrayLike | None = None, method: Method = "best") -> Integers:
    """Return an order of the people, shape (n,), `order[rank] = person`, that keeps groups together.

    `groups` is a list of integer arrays, an (offsets, members) tuple, or `Groups`; `coordinates`, shape (n, d) or
    (n,), are the places or numbers from which the groups were computed (for latitude and longitude, `on_sphere`
    works across the date line). Both must be public. The methods:

    - "bfs": breadth first from the largest group, as published. In the graph, i is linked to the members of i's
      group if every person has a group of their own; otherwise all members of a group are linked;
    - "rcm": reverse Cuthill-McKee on the same graph;
    - "sweep": along the best of several straight lines through the coordinates; then people are sorted by the
      middle rank of their group, repeatedly while the sensitivity falls (relaxation);
    - "best": the order with the smallest exact Kendall sensitivity of these three; the first two are relaxed, too.

    Every component of the graph is ordered, and the result is deterministic.

    Raises:
        InvalidInputError: bad groups or coordinates, an unknown method, or "sweep" without coordinates.

    Source: Meehan et al. 2022, Algorithm 1; E. Cuthill, J. McKee 1969.

    >>> import hushuffle as hs
    >>> hs.order.reference_order([[0, 2], [1, 3], [2, 0, 3], [3, 1, 2]], method="bfs").tolist()
    [2, 0, 3, 1]
    """
    if method not in METHODS:
        _checks.reject("method", f"one of {', '.join(METHODS)}", repr(method))
    where = None if coordinates is None else points(coordinates)
    members = Groups.of(groups, n=None if where is None else len(where))
    if method == "sweep" and where is None:
        hint = "Without coordinates, use method 'best', 'rcm' or 'bfs'."
        _checks.reject("coordinates", "given for method 'sweep'", None, hint)
    if method == "bfs":
        return _breadth_first(members)
    if method == "rcm":
        return _cuthill_mckee(members)
    orders = []
    if where is not None:
        swept = [np.argsort(where @ direction, kind="stable") for direction in _directions(where)]
        orders.append(_relaxed(_best(swept, members), members))
    if method == "best":
        orders += [_relaxed(order, members) for order in (_breadth_first(members), _cuthill_mckee(members))]
    return _best(orders, members)


def _best(orders: list[Integers], groups: Groups) -> Integers:
    return min(orders, key=lambda order: kendall_sensitivity(order, groups))


def _linked(groups: Groups) -> sparse.csr_array:
    """Return the graph of people and one node for each group, which costs its memberships and not their square."""
    n, own = groups.n, groups.group_of
    nodes = np.repeat(np.arange(len(groups)), groups.sizes)
    alone = own is not None and len(groups) == n and bool(np.all(own == np.arange(n)))
    if not alone:
        nodes = nodes + n
    size = n if alone else n + len(groups)
    ends = np.concatenate([nodes, groups.members]), np.concatenate([groups.members, nodes])
    graph = sparse.coo_array((np.ones(len(ends[0]), dtype=np.bool_), ends), shape=(size, size)).tocsr()
    graph.sum_duplicates()
    return graph


def _breadth_first(groups: Groups) -> Integers:
    """Return the people breadth first, component by component, those of the largest groups first."""
    graph = _linked(groups)
    size = graph.shape[0]
    weight = np.zeros(size, dtype=np.int64)
    weight[size - len(groups) :] = groups.sizes
    _, component = sparse.csgraph.connected_components(graph, directed=False)
    by_weight = np.argsort(-weight, kind="stable")
    _, first = np.unique(component[by_weight], return_index=True)
    roots = by_weight[first]  # of component 0, 1, ...: its largest group
    place = np.empty(len(roots), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(roots))
    # One search for all components: from a further node before every root. A queue keeps each component's own
    # order, so a stable sort by component gives the searches one after the other.
    links = graph.tocoo()
    rows = np.concatenate([links.row, np.full(len(roots), size)])
    columns = np.concatenate([links.col, roots])
    shape = (size + 1, size + 1)
    joined = sparse.coo_array((np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=shape).tocsr()
    listed = sparse.csgraph.breadth_first_order(joined, size, return_predecessors=False)
    visited = np.asarray(listed, dtype=np.int64)[1:]
    visited = visited[np.argsort(place[component[visited]], kind="stable")]
    return visited[visited < groups.n]


def _cuthill_mckee(groups: Groups) -> Integers:
    listed = sparse.csgraph.reverse_cuthill_mckee(_linked(groups), symmetric_mode=True)
    order = np.asarray(listed, dtype=np.int64)
    return order[order < groups.n]


def _directions(where: Floats) -> Iterator[Floats]:
    """Yield the first columns, the principal axes, and the diagonals between the first two axes."""
    columns = where.shape[1]
    yield from np.eye(columns)[:_AXES]
    if columns == 1:
        return
    _, vectors = np.linalg.eigh(np.cov(where, rowvar=False, bias=True))
    axes = vectors.T[::-1][:_AXES]
    axes = axes * np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, np.newaxis]
    yield from axes
    yield axes[0] + axes[1]
    yield axes[0] - axes[1]


def _relaxed(order: Integers, groups: Groups) -> Integers:
    """Return the best order of a relaxation, which repeatedly moves each person to the middle of the group's ranks."""
    best, least, waited = order, kendall_sensitivity(order, groups), 0
    for _ in range(_ROUNDS):
        rank = ranks(order)
        order = np.lexsort((rank, _middle(rank, groups)))
        reached = kendall_sensitivity(order, groups)
        if reached < least:
            best, least, waited = order, reached, 0
        else:
            waited += 1
        if waited == _PATIENCE:
            break
    return best


def _middle(rank: Integers, groups: Groups) -> Floats:
    """Return twice the middle rank of each person's own group, or the mean over the groups they are in, shape (n,)."""
    lowest, highest = outermost(rank, groups)
    middle = (lowest + highest).astype(np.float64)
    if groups.group_of is not None:
        return middle[groups.group_of]
    in_how_many = np.bincount(groups.members, minlength=groups.n)
    total = np.bincount(groups.members, weights=np.repeat(middle, groups.sizes), minlength=groups.n)
    return np.where(in_how_many > 0, total / np.maximum(in_how_many, 1), 2.0 * rank)
