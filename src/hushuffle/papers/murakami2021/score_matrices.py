"""Matrices of matching scores: everybody against everybody, from NumPy archives or text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.files.causes import refused

_SUFFIXES: Final = (".npz", ".csv", ".txt", ".dat")


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreMatrix:
    """Scores of n people, shape (n, n): `scores[i, j]` compares a probe of person i with the enrolment of person j.

    Genuine scores are the diagonal, impostor scores the rest; higher is a better match. `left_out` people of the
    file failed to enrol (or their probe failed) and are not among the n.
    """

    name: str
    scores: npt.NDArray[np.float64] = field(repr=False)
    left_out: int = 0

    @property
    def n(self) -> int:
        """Number of people."""
        return len(self.scores)


def load_scores(source: str | Path, *, failed: float | None = -1.0) -> dict[str, ScoreMatrix]:
    """Return the score matrices of a file by name.

    Formats: a NumPy archive (.npz) of square matrices (other arrays in it are passed over), or text (.csv, .txt,
    .dat): one row for each probe, separated by commas or spaces. `failed` is the mark of a comparison that did not
    take place (None: there is no mark). A person whose row or column holds nothing else failed to enrol: left out,
    row and column, and counted in `left_out`. A mark elsewhere is refused: it is no score, and leaving out only
    some comparisons of a person would be a choice.

    Raises:
        DataError: not there, not square matrices of finite numbers, or single failed comparisons.

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
        fail(f"{source} is no file. Name the file, for example bssr1_set1.npz.")
    if path.suffix not in _SUFFIXES:
        fail(f"{source} is no kind of file that can be read: {', '.join(_SUFFIXES)}.")
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
            fail(f"{path}: line {number:,} holds something that is no number.")
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
        fail(f"{where}: row {_first(~np.isfinite(scores)):,} (counted from 1) holds a score that is not finite.")
    failed = np.zeros(scores.shape, dtype=np.bool_) if mark is None else scores == mark
    kept = ~(failed.all(axis=0) | failed.all(axis=1))
    if np.count_nonzero(kept) < 2:
        fail(f"{where}: fewer than 2 people are enrolled.")
    failed[~kept] = failed[:, ~kept] = False
    if failed.any():
        fail(
            f"{where}: row {_first(failed):,} (counted from 1) holds {mark:g}, the mark of a failure, "
            "among other scores."
        )
    scores = scores[np.ix_(kept, kept)]
    scores.flags.writeable = False
    return ScoreMatrix(name=name, scores=scores, left_out=int(np.count_nonzero(~kept)))


def _first(wrong: npt.NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(wrong.any(axis=1))[0]) + 1
