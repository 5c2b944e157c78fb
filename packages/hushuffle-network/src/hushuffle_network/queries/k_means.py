"""K-means: every iteration is a step in which each person's point goes to the node of its nearest centroid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hushuffle import _checks, plans
from hushuffle._checks import Floats, Integers, fail
from hushuffle.errors import Problem
from hushuffle.plans import CentroidNoise, Plan, Traffic
from hushuffle.plans.builders import Variant
from hushuffle.plans.centroids import Noise as NoiseKind
from hushuffle.plans.centroids import means, nearest, noisy_means
from hushuffle.randomness import Randomness
from hushuffle.specification._base import Name, Section
from hushuffle_network.queries.columns import Finite, Positive, Range, range_problems
from hushuffle_network.queries.k_means_run import compared, run_k_means
from hushuffle_network.queries.query import (
    DeviceQuery,
    Known,
    MadeUp,
    Query,
    Records,
    Rows,
    Simulated,
    Task,
    data_or_generated,
)

_SCALED: Final = 1.0
"""The largest absolute value of a coordinate that was scaled from its public range."""
_LARGEST: Final = 1e100
"""Bound on absolute values of coordinates: neither sums nor sums of squares overflow."""
_DRAWN: Final = 2
"""Number of iterations that a drawing shows; all further iterations have the same structure."""
_FIRST_CENTROIDS: Final = 1
"""A constant that gives the first centroids another random stream than synthetic points."""


class Noise(Section):
    """Noise on the coordinate sums and numbers of points that each iteration releases."""

    kind: NoiseKind
    """"gaussian" or "laplace"."""
    radius: Positive
    """Points are clipped to this norm (Gaussian: Euclidean; Laplace: sum of absolute values)."""
    scale: Positive
    """Standard deviation of Gaussian noise, or the scale b of Laplace noise."""

    def build(self) -> CentroidNoise:
        return CentroidNoise(kind=self.kind, radius=self.radius, scale=self.scale)


class KMeans(Task):
    """The nodes' task in k-means. A record is a point: its coordinates, 8 bytes each. Each node stands for a centroid.

    In every iteration, a node sums and counts the points that it receives, and returns its new centroid.

    >>> task = KMeans(initial=((0.0, 0.0), (1.0, 1.0)))
    >>> points = np.array([[0.9, 0.2], [0.1, 0.0]])
    >>> task.size(1), task.own(1, points, task.start).tolist()
    (16, [1, 0])
    >>> task.merge(1, task.empty(1), task.pack(1, points), [True, False]).tolist()
    [0.9, 0.2, 1.0]
    """

    rounds: ClassVar[bool] = True
    answers: ClassVar[str] = "iterations"

    initial: Annotated[tuple[Annotated[tuple[Finite, ...], Field(min_length=1)], ...], Field(min_length=2)]
    """The first centroids, public."""
    largest: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The largest absolute value of a coordinate if columns have public ranges; points outside are refused."""
    noise: Noise | None = None
    """The noise on the release of every iteration; None: the centroids are assumed public."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if len({len(centroid) for centroid in self.initial}) > 1:
            message = "all initial centroids must have the same number of coordinates"
            raise ValueError(message)
        return self

    @property
    def dimensions(self) -> int:
        """Number of coordinates of a point."""
        return len(self.initial[0])

    @property
    def targets(self) -> int:
        return len(self.initial)

    @property
    def start(self) -> Floats:
        return np.array(self.initial)

    def size(self, step: int) -> int:
        return 8 * self.dimensions

    def points(self, content: bytes) -> Floats:
        """Return the points in concatenated records, shape (n, dimensions)."""
        return np.frombuffer(content, dtype="<f8").reshape(-1, self.dimensions)

    def own(self, step: int, rows: Rows, known: Floats | None) -> Integers:
        assert known is not None
        return nearest(self.points(b"".join(self.pack(step, rows))), known)

    def pack(self, step: int, rows: Rows) -> list[bytes]:
        held = rows if self.noise is None else self.noise.build().shorten(rows)
        return [row.tobytes() for row in held.astype("<f8")]

    def check(self, step: int, node: int, content: bytes) -> None:
        if len(content) != self.size(step):
            fail("a message is not a point of this plan.")
        point = self.points(content)
        if not (np.abs(point) <= (self.largest or _LARGEST)).all():
            fail("a message has coordinates that are not finite or exceed the largest possible value.")
        if self.noise is not None and not np.array_equal(self.noise.build().shorten(point), point):
            fail("a message has a point whose norm exceeds the radius.")

    def sample(self, step: int, node: int) -> bytes:
        return bytes(self.size(step))

    def empty(self, step: int) -> Floats:
        return np.zeros(self.dimensions + 1)

    def merge(self, step: int, merged: Floats, contents: Sequence[bytes], used: Sequence[bool]) -> Floats:
        points, mask = self.points(b"".join(contents)), np.array(used, dtype=np.float64)
        further: Floats = np.append((points * mask[:, None]).sum(axis=0), mask.sum())
        return merged + further

    def width(self, step: int) -> int:
        return self.dimensions

    def tell(self, step: int, node: int, merged: Floats, rng: Randomness) -> Floats:
        previous = np.array(self.initial[node])[None, :]
        sums, counts = merged[None, :-1], merged[-1:]
        if self.noise is None:
            return means(sums, counts, previous).ravel()
        return noisy_means(sums, counts, previous, noise=self.noise.build(), rng=rng).ravel()

    def part(self, step: int, node: int, told: Floats) -> Floats:
        if not (np.abs(told) <= _LARGEST).all():
            fail("a compute node sent a centroid that is not finite.")
        return told

    def combine(self, step: int, parts: Sequence[Floats]) -> Floats:
        return np.stack(parts)

    def answer(
        self, step: int, combined: Floats, came: Mapping[str, int], scale: Callable[[], float]
    ) -> dict[str, Any]:
        return {"centroids": combined.tolist(), **came}


class GeneratedPoints(MadeUp):
    """Synthetic points around as many centres as there are centroids, in the box from -1 to 1."""

    dimensions: Annotated[int, Field(ge=1, le=10_000)] = 2
    """Number of coordinates of a point."""
    spread: Positive = 0.15
    """Standard deviation of the points around their centre."""
    seed: Annotated[int, Field(ge=0)] = 1
    """The seed; equal seeds give equal points."""


class KMeansQuery(Query):
    """K-means: in every iteration each person's point goes to the node of its nearest centroid."""

    tables: ClassVar[Mapping[str, tuple[type[Section], ...]]] = {"generated": (GeneratedPoints,), "noise": (Noise,)}
    task_type: ClassVar[type[Task]] = KMeans

    kind: Literal["k-means"]
    data: Annotated[str, Field(min_length=1)] | None = None
    """A folder of IDX images such as MNIST (pixels 0 to 1; Rand index on the test images), or a table with `columns` as
    for "aggregate". Give this or `generated`."""
    generated: GeneratedPoints | None = None
    """Synthetic points instead of data."""
    columns: Annotated[dict[Name, Range], Field(min_length=1)] | None = None
    """The columns of a table and their public ranges [low, high], which are scaled to [-1, 1]; values are clipped."""
    centroids: Annotated[int, Field(ge=2, le=10_000)]
    """The number K of centroids."""
    iterations: Annotated[int, Field(ge=1, le=1000)]
    """Number of iterations."""
    variant: Variant
    """"private-centroids" (with noise), "public-centroids" (guarantee without what they reveal), "hidden" (none)."""
    noise: Noise | None = None
    """The noise on centroids; only for private centroids."""
    start: Annotated[int, Field(ge=0)] = 1
    """Public seed of the first centroids, which are test images, or uniform in the box from -1 to 1. They never
    depend on the people's points."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        yield from data_or_generated(raw)
        if "columns" in raw and "data" not in raw:
            yield Problem(key="query.columns", rule="must come with data", value="no data")
        yield from range_problems(raw, "columns")
        private = raw.get("variant") == "private-centroids"
        if private and "noise" not in raw:
            hint = 'For example noise = { kind = "gaussian", radius = 1.5, scale = 20.0 }.'
            yield Problem(key="query.noise", rule="must be given with private centroids", value="nothing", hint=hint)
        if not private and "noise" in raw and "variant" in raw:
            yield Problem(key="query.noise", rule="is allowed only with private centroids", value="a table")

    @property
    def iteration(self) -> dict[str, Any]:
        norm, radius = (None, None) if self.noise is None else (self.noise.kind, self.noise.radius)
        return {"rounds": self.iterations, "scaled": self.columns is not None, "norm": norm, "radius": radius}

    @property
    def drawn(self) -> tuple[Self, str] | None:
        if self.iterations <= _DRAWN:
            return None
        words = f"the first {_DRAWN} of {self.iterations} iterations are drawn; the others have the same structure."
        return self.model_copy(update={"iterations": _DRAWN}), words

    def plan(self, people: int, traffic: Traffic) -> Plan:
        noise, hidden = self.centroid_noise(), traffic.given()
        return plans.k_means(
            people=people,
            centroids=self.centroids,
            iterations=self.iterations,
            variant=self.variant,
            noise=noise,
            **hidden,
        )

    def centroid_noise(self) -> CentroidNoise | None:
        """Return the noise on released centroids, or None."""
        return None if self.noise is None else self.noise.build()

    def records(self, base_folder: Path) -> Records:
        if self.generated is not None:
            return self._made_up(self.generated)
        if self.columns is None:
            return self._digits(base_folder / Path(self.file).expanduser(), self.file)
        read = self.read(base_folder, categories={}, numbers=tuple(self.columns))
        scaled = [
            np.clip(2 * (read.numbers[name] - low) / (high - low) - 1, -_SCALED, _SCALED)
            for name, (low, high) in self.columns.items()
        ]
        start = self.first_centroids(len(scaled))
        return Records(n=read.n, source=read.source, dropped=read.dropped, rows=np.column_stack(scaled), start=start)

    def _made_up(self, generated: GeneratedPoints) -> Records:
        generator = np.random.default_rng(generated.seed)
        centres = generator.uniform(-1, 1, (self.centroids, generated.dimensions))
        labels = generator.integers(self.centroids, size=generated.people)
        points = centres[labels] + generated.spread * generator.normal(size=(generated.people, generated.dimensions))
        reference = Known(points=points, labels=labels, what="the centres that generated the points")
        start = self.first_centroids(generated.dimensions)
        return Records(n=generated.people, source="synthetic points", rows=points, start=start, known=reference)

    def _digits(self, folder: Path, name: str) -> Records:
        if not folder.is_dir():
            fail(f"{name} is not a folder of IDX images. For a table, set [query.columns] with public ranges.")
        from hushuffle.tables.published import load_digits  # noqa: PLC0415 - a mistake in the file shows without Polars

        train, test = load_digits(folder), load_digits(folder, part="t10k")
        points, shown = (part.images.astype(np.float32) / 255 for part in (train, test))
        if test.n < self.centroids:
            fail(
                f"{name} has {test.n:,} test images, fewer than the {self.centroids:,} first centroids taken from them."
            )
        chosen = np.random.default_rng(self.start).choice(test.n, self.centroids, replace=False)
        start, source = shown[chosen].astype(np.float64), f"{train.n:,} training images in {name}"
        what = f"the digits of {test.n:,} test images"
        reference = Known(points=shown, labels=test.labels.astype(np.int64), what=what)
        return Records(n=train.n, source=source, rows=points, start=start, known=reference)

    def first_centroids(self, dimensions: int) -> Floats:
        """Return public first centroids, drawn uniformly in the box from -1 to 1."""
        generator = np.random.default_rng([_FIRST_CENTROIDS, self.start])
        return generator.uniform(-1, 1, (self.centroids, dimensions))

    def asked(self, plan: Plan, people: int, rng: Randomness) -> list[Integers]:
        return [np.arange(people)] * self.iterations

    def task(self, start: Sequence[Sequence[float]] | None = None) -> KMeans:
        if self.variant == "hidden":
            _checks.unsupported(
                "Variant hidden assumes that no node sees centroids, but on a network every node sees the centroids "
                "of every iteration. Use private-centroids (released with noise) or public-centroids (without noise)."
            )
        if start is None and self.columns is None:
            _checks.unsupported(
                "On separate hosts, points are read from tables: the plan needs [query.columns] with their public "
                "ranges."
            )
        initial = self.first_centroids(len(self.columns or ())).tolist() if start is None else start
        largest = None if self.columns is None else _SCALED
        return KMeans(initial=tuple(map(tuple, initial)), largest=largest, noise=self.noise)

    def for_devices(self, start: Sequence[Sequence[float]] | None = None) -> DeviceQuery:
        task = self.task(start)
        ranges: Mapping[str, tuple[float, float] | None] = self.columns or {
            f"x{number}": None for number in range(1, task.dimensions + 1)
        }
        return DeviceQuery(values=ranges, steps=(((), ()),) * self.iterations, task=task)

    def simulate(self, plan: Plan, records: Records, *, rng: Randomness, tell: Callable[[float], None]) -> Simulated:
        assert records.start is not None
        run = run_k_means(plan, records.rows, records.start, noise=self.centroid_noise(), rng=rng)
        tell(0.4)
        return compared(records, run.centroids, exchanges=run.exchanges, tell=lambda share: tell(0.4 + 0.6 * share))

    def compared(self, answers: Sequence[Mapping[str, Any]], records: Records) -> Simulated:
        assert records.start is not None
        return compared(records, np.array([records.start.tolist(), *(one["centroids"] for one in answers)]))
