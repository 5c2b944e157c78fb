"""People of the order studies (census, friendship graph, crescents), with neighbourhoods and public features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.linalg import eigsh

from hushuffle.model.groups import Groups
from hushuffle.papers.meehan2022.data import SocialGraph, crescents, load_census, load_graph
from hushuffle.questions import order

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_AXES: Final = 16  # coordinates of a graph that the learner uses
_ROWS: Final = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """People with one private value each; `near` has radius r*, and only the attacker knows `privileged`."""

    name: str
    values: Integers
    labels: tuple[str, ...]
    near: Groups
    within: str
    features: Floats
    privileged: Floats | None = None

    @property
    def n(self) -> int:
        return self.values.size

    @property
    def k(self) -> int:
        return len(self.labels)


def adult(folder: Path, *, people: int | None = None) -> tuple[Case, Floats]:
    frame = load_census(folder)
    frame = frame.filter(frame["split"] == "train").head(people or frame.height)
    age = frame["age"].to_numpy().astype(np.float64)
    _, status = np.unique(frame["marital_status"].to_numpy(), return_inverse=True)
    case = Case(
        name="Adult",
        values=(frame["income"] == ">50K").to_numpy().astype(np.int64),
        labels=("up to 50K", "above 50K"),
        near=order.radius_groups(age, 1),
        within="1 year of age",
        features=age[:, np.newaxis],
        privileged=np.eye(int(status.max()) + 1)[status],
    )
    return case, age


def next_in_line(line: Floats, size: int) -> Groups:
    """Return for each person the group of the `size` nearest people on a line; on ties, earlier records come first.

    >>> next_in_line(np.array([30.0, 20.0, 30.0, 40.0]), 3)[3].tolist()
    [0, 2, 3]
    """
    n = line.size
    standing = np.argsort(line, kind="stable")
    width = min(size, n)
    first = np.clip(np.arange(n) - (width - 1) // 2, 0, n - width)
    group_of = np.empty(n, dtype=np.int64)
    group_of[standing] = np.arange(n)
    members = standing[first[:, np.newaxis] + np.arange(width)]
    return Groups(offsets=np.arange(n + 1) * width, members=members.reshape(-1), n=n, group_of=group_of)


def twitch(folder: Path, *, people: int | None = None) -> tuple[Case, csr_array]:
    """Return the people of the German graph (or the first `people`), and the closeness of each pair of friends."""
    graph = load_graph(folder, language="DE")
    if people is not None:
        edges = graph.edges[(graph.edges < people).all(axis=1)]
        graph = SocialGraph(name=graph.name, edges=edges, mature=graph.mature[:people])
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    table = coo_array((np.ones(ends.shape[1], dtype=np.float32), tuple(ends)), shape=(graph.n, graph.n)).tocsr()
    case = Case(
        name="Twitch DE",
        values=graph.mature.astype(np.int64),
        labels=("not explicit", "explicit"),
        near=order.path_groups(graph.edges, n=graph.n, radius=1),
        within="1 step: friends",
        features=_places(table, min(_AXES, graph.n - 2)),
    )
    return case, closeness(table)


def closeness(table: csr_array) -> csr_array:
    """Return a matrix, shape (n, n): for each pair of friends, 1 + the number of their common friends."""
    rows = []
    for start in range(0, table.shape[0], _ROWS):
        block = table[start : start + _ROWS]
        rows.append((block @ table).multiply(block) + block)
    return csr_array(vstack(rows, format="csr"))


def closest_friends(close: csr_array, size: int) -> Groups:
    """Return each person's group: the person, and up to `size` - 1 friends with the most common friends.

    >>> table = csr_array(np.array([[0, 2, 1], [2, 0, 0], [1, 0, 0]]))
    >>> [group.tolist() for group in map(closest_friends(table, 2).__getitem__, range(3))]
    [[0, 1], [0, 1], [0, 2]]
    """
    n = close.shape[0]
    rows = np.repeat(np.arange(n), np.diff(close.indptr))
    ranked = np.lexsort((close.indices, -close.data, rows))
    place = np.arange(rows.size) - close.indptr[rows]
    nearest = ranked[place < size - 1]
    owners = np.concatenate([np.arange(n), rows[nearest]])
    members = np.concatenate([np.arange(n), close.indices[nearest]])
    by_owner = np.argsort(owners, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n))])
    return Groups(offsets=offsets, members=members[by_owner].astype(np.int64), n=n, group_of=np.arange(n))


def syn(people: int, *, seed: int) -> tuple[Case, Floats, tuple[Floats, Integers]]:
    """Return generated people and their places, and places and labels of equally many people for testing."""
    trained, tested = crescents(people, seed=seed), crescents(people, seed=seed + 1)
    case = Case(
        name="Syn",
        values=trained.labels,
        labels=tuple(str(label) for label in range(8)),
        near=order.radius_groups(trained.points, 0.1),
        within="0.1 in the plane",
        features=trained.points,
    )
    return case, trained.points, (tested.points, tested.labels)


def _places(table: csr_array, axes: int) -> Floats:
    """Return coordinates of a graph, shape (n, axes): leading eigenvectors of the normalised adjacency, by degree."""
    n = table.shape[0]
    scale = 1 / np.sqrt(np.maximum(np.asarray(table.sum(axis=1)).reshape(-1), 1))
    links = table.tocoo()
    normal = coo_array((scale[links.row] * scale[links.col], (links.row, links.col)), shape=(n, n)).tocsr()
    _, vectors = eigsh(normal.astype(np.float64), k=axes, v0=np.ones(n), which="LA")
    return np.asarray(vectors * scale[:, np.newaxis], dtype=np.float64)
