"""Matrices of matching scores, and estimates of how identifying each source is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.attacks import linkage
from hushuffle.attacks.detection import Detection, detection_curve, identified
from hushuffle.files.causes import refused
from hushuffle.model import Bound, Cell, Claim, Series, Table, Warned
from hushuffle.questions import pse
from hushuffle_papers.base import Request, claim, tabulated

SUFFIXES: Final = (".npz", ".csv", ".txt", ".dat")


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreMatrix:
    """`scores[i, j]` compares probe i with enrolment j (higher is better); `left_out` counts people without either."""

    name: str
    scores: npt.NDArray[np.float64] = field(repr=False)
    left_out: int = 0

    @property
    def n(self) -> int:
        return len(self.scores)


def load_scores(source: str | Path, *, failed: float | None = -1.0) -> dict[str, ScoreMatrix]:
    """Return the score matrices of a file by name; an .npz has one for each square array.

    A person whose comparisons are all `failed` is omitted and counted in `left_out`. A single failed comparison is an
    error, since omitting only some comparisons of a person would bias the result.

    Source: NIST Biometric Scores Set 1 (format, and -1 for failures).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "faces.npz")
    ...     np.savez(path, C=[[0.9, -1.0, 0.2], [0.1, -1.0, 0.3], [0.2, -1.0, 0.8]])
    ...     faces = load_scores(path)["C"]
    >>> faces, faces.scores.tolist()
    (ScoreMatrix(name='C', left_out=1), [[0.9, 0.2], [0.2, 0.8]])
    """
    path = Path(source).expanduser()
    if not path.is_file():
        fail(f"{source} is not a file. Pass the name of a file, for example bssr1_set1.npz.")
    if path.suffix not in SUFFIXES:
        fail(f"{source}: unsupported format (use {', '.join(SUFFIXES)}).")
    arrays = _archive(path) if path.suffix == ".npz" else {path.stem: _text(path)}
    return {
        name: _matrix(array, f"{path}: matrix {place:,} of {len(arrays):,}", name, failed)
        for place, (name, array) in enumerate(arrays.items(), start=1)
    }


def _archive(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    with (
        refused(path, f"{path} cannot be read as a NumPy archive of plain arrays."),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        arrays = {name: archive[name] for name in archive.files}
    matrices = {name: array for name, array in arrays.items() if isinstance(array, np.ndarray) and array.ndim == 2}
    if not matrices:
        fail(f"{path} holds no matrix.")
    return matrices


def _text(path: Path) -> npt.NDArray[np.generic]:
    rows: list[list[float]] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        fail(f"{path} cannot be read as UTF-8 text.")
    for number, line in enumerate(lines, start=1):
        try:
            row = [float(field) for field in line.replace(",", " ").split()]
        except ValueError:
            fail(f"{path}: line {number:,} has an entry that is not a number.")
        if row and rows and len(row) != len(rows[0]):
            fail(f"{path}: line {number:,} has {len(row):,} numbers, those before it {len(rows[0]):,}.")
        if row:
            rows.append(row)
    return np.array(rows, dtype=np.float64)


def _matrix(array: npt.NDArray[np.generic], where: str, name: str, mark: float | None) -> ScoreMatrix:
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] < 2 or array.dtype.kind not in "iuf":
        fail(f"{where} must be square, of numbers, for at least 2 people (shape {array.shape}).")
    scores = array.astype(np.float64)
    if not np.isfinite(scores).all():
        fail(f"{where}: row {_first(~np.isfinite(scores)):,} (counted from 1) has a score that is not finite.")
    failed = np.zeros(scores.shape, dtype=np.bool_) if mark is None else scores == mark
    matched = ~(failed.all(axis=0) | failed.all(axis=1))
    if np.count_nonzero(matched) < 2:
        fail(f"{where}: fewer than 2 people are enrolled.")
    failed[~matched] = failed[:, ~matched] = False
    if failed.any():
        fail(
            f"{where}: row {_first(failed):,} (counted from 1) holds {mark:g}, the mark of a failure, "
            "among other scores."
        )
    scores = scores[np.ix_(matched, matched)]
    scores.flags.writeable = False
    return ScoreMatrix(name=name, scores=scores, left_out=int(np.count_nonzero(~matched)))


def _first(wrong: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(wrong.any(axis=1))[0]) + 1


LIKELIHOOD: Final = "likelihood"
PER_EVENT: Final = "likelihood per event"

_NATS: Final = 0.01
_SIZES: Final = 4
_CLOSE: Final = "The intervals of the estimates overlap: nothing is decided."


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """`scores[i, j]` compares data i with profile j (higher is better); `resolution` is the step between scores."""

    label: str
    scores: npt.NDArray[np.float64] = field(repr=False)
    resolution: float

    @property
    def n(self) -> int:
        return len(self.scores)

    def detection(self) -> Detection:
        return detection_curve(linkage.genuine_scores(self.scores), linkage.impostor_scores(self.scores))


@dataclass(frozen=True, kw_only=True)
class MeasuredDivergence:
    """`bits` is the estimate of D(f_G || f_I); `counts` is the estimate from merged cells, which can only lower D.

    `interval` has no upper bound if the estimate still changes with n.
    """

    label: str
    n: int
    trend: pse.Trend
    bits: float
    interval: Bound
    counts: Bound
    equal_error: float
    wrong: float

    @property
    def compared(self) -> float:
        """The estimate for the number of people that all compared sources have."""
        return self.trend.bits[-1]

    @property
    def moving(self) -> bool:
        """Whether the estimate still changes with the number of people."""
        return math.isinf(self.interval.upper)


def measure(sources: Sequence[Source], request: Request) -> list[MeasuredDivergence]:
    """Return the measurements of each source; `trend` ends at the number of people of the smallest source."""
    people = min(source.n for source in sources)
    each = request.each(sources, "divergence of scores, {.label}")
    return [_measure(source, people, request.seed) for source in each]


def _measure(source: Source, people: int, seed: int) -> MeasuredDivergence:
    scores, resolution = source.scores, source.resolution
    sizes = tuple(people >> step for step in reversed(range(_SIZES)))
    genuine, impostor = linkage.genuine_scores(scores), linkage.impostor_scores(scores)
    return MeasuredDivergence(
        label=source.label,
        n=source.n,
        trend=pse.matrix_trend(scores, sizes, resolution=resolution, seed=seed),
        bits=pse.matrix_trend(scores, (source.n // 2, source.n), resolution=resolution, seed=seed).bits[-1],
        interval=pse.from_matrix(scores, resolution=resolution, seed=seed),
        counts=pse.plug_in(*pse.score_counts(genuine, impostor, resolution=resolution)),
        equal_error=source.detection().equal_error,
        wrong=1 - float(identified(scores, (1,))[0]),
    )


def matched(label: str, scene: linkage.Scene, *, per_event: bool = False) -> Source:
    scores = linkage.trace_scores(linkage.train(scene.training), scene.reported)
    if per_event:
        scores = scores / scene.reported.lengths[:, None]
    return Source(label=label, scores=scores, resolution=_NATS)


def table(found: Sequence[MeasuredDivergence], *, key: str, title: str) -> Table:
    people = found[0].trend.sizes[-1]
    columns: dict[str, Callable[[MeasuredDivergence], Cell]] = {
        "what is sent": lambda each: each.label,
        "people": lambda each: each.n,
        "log2 people": lambda each: float(np.log2(each.n)),
        "D estimated (bits)": lambda each: each.bits,
        "D, interval": lambda each: each.interval,
        "D from merged counts": lambda each: each.counts,
        f"D at {people:,} people": lambda each: each.compared,
        "equal error rate": lambda each: each.equal_error,
        "identification error": lambda each: each.wrong,
    }
    return tabulated(
        found,
        columns,
        key=key,
        title=title,
        caption="D: divergence of genuine from impostor scores, the PSE of ever more people; an estimate may fall "
        "below 0. PSE among these people is at most the smaller of D and log2 of their number. Merging scores into "
        "cells can only lower D; its interval assumes independent scores. An interval to infinity: the estimate still "
        "grows.",
    )


def unsettled(found: Sequence[MeasuredDivergence]) -> tuple[Warned, ...]:
    moving = sum(one.moving for one in found)
    if not moving:
        return ()
    return (
        Warned(
            key="not-settled",
            sentence=f"{moving} of {len(found)} divergences have not settled: their intervals have no upper limit.",
            advice="These points are estimates for this number of people, and not the divergence.",
        ),
    )


def decided(
    sentence: str,
    holds: bool,  # noqa: FBT001 - what every claim turns on
    ours: str,
    *,
    quote: str,
    data: str,
    stand_in: str,
    sure: bool,
    figure: int = 5,
    printed: str = "",
    reason: str = "",
    repeats: str = "",
) -> Claim:
    """Return the claim with its verdict; a negative result that is not `sure` decides nothing, for that `reason`."""
    decides = holds or sure
    return claim(
        f"section 5.2, Figure {figure}",
        sentence,
        holds if decides else None,
        ours,
        quote=quote,
        printed=printed,
        reason=reason if decides else reason or _CLOSE,
        data=data,
        stand_in=stand_in if decides else "",
        repeats=repeats,
    )


def below(found: Sequence[MeasuredDivergence], others: Sequence[MeasuredDivergence]) -> bool:
    """Return whether all of `found` are below all of `others`, by their confidence intervals."""
    return max(one.interval.upper for one in found) < min(one.interval.lower for one in others)


def level(label: str, x: Sequence[float], value: float) -> Series:
    return Series.through(label, x, [value] * len(x))
