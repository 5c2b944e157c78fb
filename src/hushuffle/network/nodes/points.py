"""What is inside a message of k-means: one person's point, or what a centroid's node releases; as bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np

from hushuffle.errors import DataError
from hushuffle.network.nodes.document import RESULT, KMeans, RunDocument
from hushuffle.network.nodes.tally import Counts, counts_size, pack_counts, unpack_counts
from hushuffle.plans.centroids import Floats, means, nearest, noisy_means
from hushuffle.randomness import Randomness

_HEAD: Final = struct.Struct("<Q")
_LARGEST: Final = 1e100
"""Of the absolute values of coordinates: neither sums nor squares of them overflow."""


@dataclass(frozen=True, kw_only=True)
class PointCodec:
    """A point is its coordinates, 8 bytes each.

    >>> codec = PointCodec(query=KMeans(initial=((0.0, 0.0), (1.0, 1.0))))
    >>> content = codec.pack(np.array([0.9, 0.2]))
    >>> len(content), codec.unpack([content]).tolist()
    (16, [[0.9, 0.2]])
    """

    query: KMeans

    @property
    def size(self) -> int:
        """Bytes of a point."""
        return 8 * self.query.dimensions

    def pack(self, point: Floats) -> bytes:
        """Return the bytes of a point, shape (dimensions,); shortened if the run's noise asks for it."""
        noise = self.query.noise
        held = point[None, :] if noise is None else noise.build().shorten(point[None, :])
        return held.astype("<f8").tobytes()

    def check(self, content: bytes) -> None:
        """Refuse what is no point, or a longer one than the noise hides.

        Raises:
            DataError: not of its size, not finite, or too long; the message shows nothing of it.
        """
        if len(content) != self.size:
            _fail("a message does not hold a point of this plan.")
        point = self.unpack([content])
        if not (np.abs(point) <= (self.query.largest or _LARGEST)).all():
            _fail("a message holds coordinates that are not finite, or larger than they can be.")
        noise = self.query.noise
        if noise is not None and not np.array_equal(noise.build().shorten(point), point):
            _fail("a message holds a point that is longer than the radius.")

    @property
    def sample(self) -> bytes:
        """The bytes of some point: what is computed with where a message carries no data."""
        return bytes(self.size)

    def unpack(self, contents: Sequence[bytes]) -> Floats:
        """Return the points, shape (n, dimensions)."""
        return np.frombuffer(b"".join(contents), dtype="<f8").reshape(-1, self.query.dimensions)

    def own(self, point: Floats, centroids: Floats) -> int:
        """Return the number of the nearest centroid to a point."""
        return int(nearest(self.unpack([self.pack(point)]), centroids)[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """What the node of one centroid releases after one iteration: the centroid, and what it saw of each batch."""

    iteration: int
    centroid: Floats
    counts: Counts


@dataclass(frozen=True, kw_only=True)
class ReleasedCodec:
    """Released centroids in messages of `room` bytes: as many messages, whatever they are; `head` bytes are counts."""

    query: KMeans
    room: int
    head: int = 0

    @property
    def size(self) -> int:
        """Bytes of what a node releases."""
        return _HEAD.size + self.head + 8 * self.query.dimensions

    def pack(self, released: Released) -> list[bytes]:
        """Return the contents of the messages of one node."""
        head = _HEAD.pack(released.iteration) + pack_counts(released.counts)
        return self.cut(head + released.centroid.astype("<f8").tobytes())

    def unpack(self, contents: list[bytes]) -> Released:
        """Return what a node released.

        Raises:
            DataError: these are not its bytes.
        """
        whole = b"".join(contents)
        if len(whole) != self.size:
            _fail("what a compute node sent is no centroid of this plan.")
        (iteration,), first = _HEAD.unpack_from(whole), _HEAD.size + self.head
        centroid = np.frombuffer(whole, dtype="<f8", offset=first)
        if not (np.abs(centroid) <= _LARGEST).all():
            _fail("what a compute node sent is no finite centroid.")
        return Released(iteration=iteration, centroid=centroid, counts=unpack_counts(whole[_HEAD.size : first]))

    def cut(self, whole: bytes) -> list[bytes]:
        """Return bytes in pieces of `room`."""
        return [whole[start : start + self.room] for start in range(0, len(whole), self.room)]

    def read_board(self, contents: list[bytes]) -> Floats:
        """Return all centroids from what the result answered.

        Raises:
            DataError: these are not all centroids, not finite, or too large.
        """
        whole, k = b"".join(contents), len(self.query.initial)
        if len(whole) != 8 * k * self.query.dimensions:
            _fail("what the result sent is not the centroids of this plan.")
        centroids = np.frombuffer(whole, dtype="<f8").reshape(k, self.query.dimensions)
        if not (np.abs(centroids) <= _LARGEST).all():
            _fail("what the result sent is no finite centroids.")
        return centroids


def released_codec(document: RunDocument) -> ReleasedCodec:
    """Return what the nodes of centroids send to the result; iterations have one number of batches."""
    head, room = counts_size(document.step(1)), document.seals(RESULT).room
    return ReleasedCodec(query=document.clustering, head=head, room=room)


def moved(
    points: Floats, previous: Floats, query: KMeans, *, used: Sequence[bool] | None = None, rng: Randomness
) -> Floats:
    """Return one centroid after an iteration, shape (dimensions,), from the points of its node, shape (n, dimensions).

    With noise on their sum and their number, drawn from `rng`, if the run has any. `used` says which points count.
    """
    mask = np.ones(len(points)) if used is None else np.array(used, dtype=np.float64)
    sums, counts = (points * mask[:, None]).sum(axis=0)[None, :], np.array([mask.sum()])
    if query.noise is None:
        centroids = means(sums, counts, previous[None, :])
    else:
        centroids = noisy_means(sums, counts, previous[None, :], noise=query.noise.build(), rng=rng)
    return centroids.ravel()


def _fail(message: str) -> NoReturn:
    raise DataError(message)
