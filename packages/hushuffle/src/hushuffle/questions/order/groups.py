"""Groups of people whose records must not be distinguished, computed from public data.

Person i's group is `groups[groups.group_of[i]]` and contains i; people with the same public data share a group.
"""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy  # loads `scipy.spatial` when it is needed
from scipy.sparse import coo_array, csr_array

from hushuffle import _checks
from hushuffle.model.groups import Groups, Integers

Metric: TypeAlias = Literal["euclidean", "great-circle"]
Floats: TypeAlias = npt.NDArray[np.float64]

EARTH_RADIUS: Final = 6371.0088
"""Mean radius of the earth in km."""


def on_sphere(coordinates: npt.ArrayLike) -> Floats:
    """Return points of the unit sphere, shape (n, 3), from (latitude, longitude) in degrees, shape (n, 2).

    Raises:
        InvalidInputError: not two finite columns, a latitude outside [-90, 90] or a longitude outside [-180, 360].

    >>> import hushuffle as hs
    >>> hs.order.on_sphere([[0.0, 90.0], [90.0, 0.0]]).round(12).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    degrees = points(coordinates)
    if degrees.shape[1] != 2:
        _checks.reject("coordinates", "latitude and longitude in degrees, shape (n, 2)", f"<shape {degrees.shape}>")
    if np.any(np.abs(degrees[:, 0]) > 90) or np.any((degrees[:, 1] < -180) | (degrees[:, 1] > 360)):
        hint = "The first column is the latitude."
        _checks.reject("coordinates", "latitudes in [-90, 90] and longitudes in [-180, 360]", "<other numbers>", hint)
    latitude, longitude = np.radians(degrees).T
    flat = np.cos(latitude)
    return np.column_stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])


def points(coordinates: npt.ArrayLike) -> Floats:
    """Return `coordinates`, shape (n,) or (n, d), as finite floats of shape (n, d)."""
    try:
        array = np.asarray(coordinates, dtype=np.float64)
    except (TypeError, ValueError):
        _checks.reject("coordinates", "numbers, shape (n,) or (n, d)", "<something else>")
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or 0 in array.shape:
        _checks.reject("coordinates", "numbers, shape (n,) or (n, d)", f"<shape {array.shape}>")
    if not bool(np.isfinite(array).all()):
        _checks.reject("coordinates", "finite", "<nan or infinity>")
    return array


def radius_groups(coordinates: npt.ArrayLike, radius: npt.ArrayLike, *, metric: Metric = "euclidean") -> Groups:
    """Return each person's group: all people at a distance of at most `radius` from the person.

    `coordinates` has shape (n, d), or (n,) for one numeric column (say age: |age_i - age_j| <= radius).
    `radius` is one number or one for each person, shape (n,). With metric "great-circle" the coordinates are
    latitude and longitude in degrees and the radius is in km.

    Raises:
        InvalidInputError: coordinates not finite, a radius not finite or < 0, or shapes that do not fit.

    Source: Meehan et al. 2022, section 4.2.

    >>> import hushuffle as hs
    >>> groups = hs.order.radius_groups([30, 31, 31, 40], 1)
    >>> [groups[group].tolist() for group in groups.group_of]
    [[0, 1, 2], [0, 1, 2], [0, 1, 2], [3]]
    >>> hs.order.radius_groups([[48.86, 2.35], [51.51, -0.13], [40.71, -74.01]], 350,
    ...     metric="great-circle").sizes.tolist()
    [2, 2, 1]
    """
    where, reach = _located(coordinates, metric), _reach(radius, metric)
    if reach.ndim == 1 and len(reach) != len(where):
        _checks.reject("radius", f"one number or one for each of {len(where)} people", f"<shape {reach.shape}>")
    rows = where if reach.ndim == 0 else np.column_stack([where, reach])
    places, which = np.unique(rows, axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(places) == len(where):  # nobody shares a place: keep the people's own order
        places, which = rows, np.arange(len(where))
    spots = places[:, : where.shape[1]]
    tree = scipy.spatial.cKDTree(spots)
    if reach.ndim == 0:
        pairs = tree.query_pairs(float(reach), output_type="ndarray").astype(np.int64)
        here, there = np.concatenate([pairs, pairs[:, ::-1]]).T
    else:
        here, there = _each_within(tree, spots, places[:, -1])
    own = np.arange(len(places))
    near = _table(np.concatenate([here, own]), np.concatenate([there, own]), len(places))
    return _shared(near, which)


def nearest_groups(coordinates: npt.ArrayLike, size: int, *, metric: Metric = "euclidean") -> Groups:
    """Return each person's group: the `size` nearest people, the person included.

    Ties are broken arbitrarily, but in the same way every time. `coordinates` and `metric` are as in `radius_groups`.

    Raises:
        InvalidInputError: size < 1 or above the number of people, or bad coordinates (as `radius_groups`).

    Source: Meehan et al. 2022, section 4.2.

    >>> import hushuffle as hs
    >>> hs.order.nearest_groups([0.0, 1.0, 3.0, 7.0], 2).members.reshape(-1, 2).tolist()
    [[0, 1], [0, 1], [1, 2], [2, 3]]
    """
    where = _located(coordinates, metric)
    n = len(where)
    size = _checks.integer("size", size, low=1, high=n)
    _, nearest = scipy.spatial.cKDTree(where).query(where, k=[*range(1, size + 1)])
    members = np.asarray(nearest, dtype=np.int64)
    people = np.arange(n)
    crowded = ~np.any(members == people[:, np.newaxis], axis=1)  # enough others at the very same place
    members[crowded, -1] = people[crowded]
    return Groups(offsets=np.arange(n + 1) * size, members=members.reshape(-1), n=n, group_of=people)


def path_groups(edges: npt.ArrayLike, *, n: int, radius: int) -> Groups:
    """Return each person's group: the people at most `radius` steps from the person in an undirected graph.

    `edges` has shape (m, 2) with people 0..n-1; repeated edges and loops have no effect.

    Raises:
        InvalidInputError: edges of another shape or outside 0..n-1, or radius < 0.

    Source: Meehan et al. 2022, section 4.2, figure 3.

    >>> import hushuffle as hs
    >>> hs.order.path_groups([[0, 1], [1, 2], [2, 3]], n=5, radius=2).sizes.tolist()
    [3, 4, 4, 3, 1]
    """
    n, radius = _checks.integer("n", n, low=1), _checks.integer("radius", radius, low=0)
    ends = np.asarray(edges)
    if ends.size and (ends.ndim != 2 or ends.shape[1] != 2):
        _checks.reject("edges", "pairs of people, shape (m, 2)", f"<shape {ends.shape}>")
    first, second = _checks.codes("edges", ends.reshape(-1), k=n).reshape(-1, 2).T
    people = np.arange(n)
    step = _table(np.concatenate([first, second, people]), np.concatenate([second, first, people]), n)
    near = _table(people, people, n)
    for _ in range(radius):
        wider = near @ step
        if wider.nnz == near.nnz:
            break  # every component is filled
        near = wider
    return _shared(near, people)


def column_groups(labels: npt.ArrayLike) -> Groups:
    """Return each person's group: the people with the same label. There is one group for each label.

    `labels` has shape (n,): text or whole numbers. For people of similar numbers see `radius_groups`.

    Raises:
        InvalidInputError: not one column, or no person in it.

    >>> import hushuffle as hs
    >>> hs.order.column_groups(["north", "south", "north"]).group_of.tolist()
    [0, 1, 0]
    """
    column = np.asarray(labels)
    if column.ndim != 1 or not column.size:
        _checks.reject("labels", "one label for each person, shape (n,)", f"<shape {column.shape}>")
    _, which, counts = np.unique(column, return_inverse=True, return_counts=True)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Groups(offsets=offsets, members=np.argsort(which, kind="stable"), n=len(column), group_of=which)


def _located(coordinates: npt.ArrayLike, metric: Metric) -> Floats:
    if metric == "great-circle":
        return on_sphere(coordinates)
    if metric != "euclidean":
        _checks.reject("metric", "'euclidean' or 'great-circle'", repr(metric))
    return points(coordinates)


def _reach(radius: npt.ArrayLike, metric: Metric) -> Floats:
    try:
        reach = np.asarray(radius, dtype=np.float64)
    except (TypeError, ValueError):
        _checks.reject("radius", "finite and >= 0", "<something else>")
    if reach.ndim > 1:
        _checks.reject("radius", "one number or one for each person", f"<shape {reach.shape}>")
    if not bool(np.all((reach >= 0) & np.isfinite(reach))):
        _checks.reject("radius", "finite and >= 0", radius if reach.ndim == 0 else "<nan, infinite or negative>")
    if metric == "great-circle":  # the chord of an arc, both on the unit sphere
        reach = np.asarray(2 * np.sin(np.minimum(reach / EARTH_RADIUS, math.pi) / 2))
    return reach


def _each_within(tree: scipy.spatial.cKDTree, spots: Floats, reach: Floats) -> tuple[Integers, Integers]:
    """Return pairs (place, place within its own radius)."""
    members = tree.query_ball_point(spots, reach)
    sizes = np.array([len(row) for row in members], dtype=np.int64)
    there = np.concatenate([np.asarray(row, dtype=np.int64) for row in members])
    return np.repeat(np.arange(len(spots)), sizes), there


def _table(rows: Integers, columns: Integers, n: int) -> csr_array:
    table = coo_array((np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=(n, n)).tocsr()
    table.sum_duplicates()
    return table


def _shared(near: csr_array, which: Integers) -> Groups:
    """Return groups of people from the table of places near places; person i is at place `which[i]`."""
    offsets = np.asarray(near.indptr, dtype=np.int64)
    places = np.asarray(near.indices, dtype=np.int64)
    n, spots = len(which), len(offsets) - 1
    if n == spots:  # one person at each place
        members = places
    else:
        there = np.argsort(which, kind="stable")
        counts = np.bincount(which, minlength=spots)
        first = np.cumsum(counts) - counts
        lengths = counts[places]
        ends = np.cumsum(lengths)
        members = there[np.arange(ends[-1]) + np.repeat(first[places] - ends + lengths, lengths)]
        offsets = np.concatenate([[0], ends[offsets[1:] - 1]])
    return Groups(offsets=offsets, members=members, n=n, group_of=which)
