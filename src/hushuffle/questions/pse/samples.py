"""Samples of genuine and impostor scores, as two lists or as a matrix of people, and their division into parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.questions.pse.neighbours import Floats, scores_of

_FINEST = 2.0**32


class Sample(ABC):
    """Genuine and impostor scores of `n` units (scores or people) that were drawn independently of each other."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of units."""

    @abstractmethod
    def whole(self) -> tuple[Floats, Floats]:
        """Return all genuine and all impostor scores, each ascending."""

    @abstractmethod
    def parts(self, count: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
        """Yield `count` disjoint random parts of about n/count units: (genuine, impostor), each ascending."""

    @abstractmethod
    def smaller(self, n: int, rng: np.random.Generator) -> Sample:
        """Return n random units, without replacement."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lists(Sample):
    """Independent lists of genuine and impostor scores, each ascending; a part takes the same share of both lists."""

    genuine: Floats = field(repr=False)
    impostor: Floats = field(repr=False)

    @property
    def n(self) -> int:
        return self.genuine.size

    def whole(self) -> tuple[Floats, Floats]:
        return self.genuine, self.impostor

    def parts(self, count: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
        yield from zip(_dealt(self.genuine, count, rng), _dealt(self.impostor, count, rng), strict=True)

    def smaller(self, n: int, rng: np.random.Generator) -> Lists:
        m = max(1, round(self.impostor.size * n / self.n))
        return Lists(
            genuine=np.sort(rng.choice(self.genuine, n, replace=False, shuffle=False)),
            impostor=np.sort(rng.choice(self.impostor, m, replace=False, shuffle=False)),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class People(Sample):
    """A score matrix of all pairs of people, shape (n, n); a part takes some people's rows and columns."""

    scores: Floats = field(repr=False)

    @property
    def n(self) -> int:
        return len(self.scores)

    def whole(self) -> tuple[Floats, Floats]:
        same = np.eye(self.n, dtype=np.bool_)
        return np.sort(self.scores[same]), np.sort(self.scores[~same])

    def parts(self, count: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
        for people in np.array_split(rng.permutation(self.n), count):
            yield self._of(people).whole()

    def smaller(self, n: int, rng: np.random.Generator) -> People:
        return self._of(rng.choice(self.n, n, replace=False, shuffle=False))

    def _of(self, people: npt.NDArray[np.int64]) -> People:
        return People(scores=self.scores[np.ix_(people, people)])


def from_lists(
    genuine: npt.ArrayLike, impostor: npt.ArrayLike, resolution: float | None, rng: np.random.Generator
) -> Lists:
    """Return the sample from two lists of scores; `spread` treats discrete scores of step `resolution`."""
    ours, others = scores_of("genuine", genuine), scores_of("impostor", impostor)
    return Lists(genuine=np.sort(spread(ours, resolution, rng)), impostor=np.sort(spread(others, resolution, rng)))


def from_square(scores: npt.ArrayLike, resolution: float | None, rng: np.random.Generator) -> People:
    """Return the sample from a score matrix; `spread` treats discrete scores of step `resolution`."""
    array = np.asarray(scores)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        _checks.reject("scores", "a square matrix", f"<shape {array.shape}>")
    flat = spread(scores_of("scores", array.reshape(-1)), resolution, rng)
    return People(scores=flat.reshape(array.shape))


def spread(scores: Floats, resolution: float | None, rng: np.random.Generator) -> Floats:
    """Return the scores unchanged, or in units of `resolution`, rounded and spread evenly over their cells.

    By data processing, the divergence of the result is at most that of the scores.
    """
    if resolution is None:
        return scores
    steps = np.rint(scores / _checks.positive("resolution", resolution))
    if steps.size and not float(np.abs(steps).max()) < _FINEST:
        _checks.reject("resolution", f"so coarse that scores are fewer than {_FINEST:,.0f} steps", resolution)
    return steps + (rng.random(steps.shape) - 0.5)


def _dealt(ordered: Floats, count: int, rng: np.random.Generator) -> list[Floats]:
    """Deal the scores at random into `count` ascending lists of sizes that differ by at most one."""
    lists = rng.permutation(np.arange(ordered.size, dtype=np.int64) % count).astype(np.uint8)
    dealt = ordered[np.argsort(lists, kind="stable")]
    return np.split(dealt, np.cumsum(np.bincount(lists, minlength=count))[:-1])
