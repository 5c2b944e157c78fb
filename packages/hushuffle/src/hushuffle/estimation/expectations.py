"""The distribution of reports given a level, and scores of reports that have a given expectation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.mechanisms.randomizers import Mechanism

PENALTIES: Final = 10.0 ** np.arange(-12, 1, 2)
"""Penalties on squared scores, relative to the level with the most informative reports."""

_EXACT: Final = 1e-12  # allowed error of expected scores, relative to the largest of them


@dataclass(frozen=True, kw_only=True, eq=False)
class Expectations:
    """The distribution of one report given a level; `blanket` is the distribution of dummies, shape (reports,).

    `matrix` is Q(y|x), shape (levels, reports); None: randomized response, truthful with probability `told`.
    """

    blanket: Floats
    matrix: Floats | None = None
    told: float = 1.0

    @classmethod
    def of(cls, randomizer: Mechanism) -> Expectations:
        law = randomizer.law()
        if law.symmetric is not None:
            k = law.symmetric.k
            return cls(blanket=np.full(k, 1 / k), told=float(law.symmetric.theta))
        if law.support is not None:
            _checks.unsupported(
                "Estimates of numbers need randomized response, or a randomizer whose distinct reports can be counted. "
                f"{type(randomizer).__name__} is neither."
            )
        return cls(
            blanket=np.asarray(law.blanket().law, dtype=np.float64),
            matrix=np.asarray(law.channel().matrix, dtype=np.float64),
        )

    @property
    def levels(self) -> int:
        return self.blanket.size if self.matrix is None else int(self.matrix.shape[0])

    def whole_matrix(self) -> Floats:
        if self.matrix is not None:
            return self.matrix
        matrix = np.full((self.levels, self.levels), (1 - self.told) / self.levels)
        matrix[np.diag_indices(self.levels)] += self.told
        return matrix

    def law(self, shares: Floats) -> Floats:
        """Return the distribution of one report, shape (reports,), if `shares`, (levels,), is that of the levels."""
        if self.matrix is None:
            return np.asarray(self.told * shares + (1 - self.told) * shares.mean())
        return np.asarray(shares @ self.matrix)

    def expected(self, scores: Floats) -> Floats:
        """Return the expected score of a report of each level, shape (levels,); `scores` has shape (reports,)."""
        if self.matrix is None:
            return np.asarray(self.told * scores + (1 - self.told) * scores.mean(axis=0))
        return np.asarray(self.matrix @ scores)

    def near_scores(self, targets: Floats, *, n: int) -> Floats:
        """Return scores, shape (reports,), whose expectations are near `targets`, shape (levels,).

        The scores are the least-squares solution, over several penalties, with the smallest sum of largest bias and
        largest standard error over n reports. Exact scores can be useless: noise over many levels inflates them.
        """
        matrix = self.whole_matrix()
        weight = np.maximum(matrix.mean(axis=0), np.finfo(np.float64).tiny)
        values, vectors = np.linalg.eigh((matrix / weight) @ matrix.T)
        best, chosen = np.inf, np.zeros(matrix.shape[1])
        for penalty in PENALTIES:
            scores = (matrix / weight).T @ (
                vectors @ ((vectors.T @ targets) / (np.maximum(values, 0) + penalty * values[-1]))
            )
            mean = matrix @ scores
            error = np.sqrt(np.maximum(matrix @ scores**2 - mean**2, 0).max() / n)
            loss = float(np.abs(mean - targets).max() + error)
            if loss < best:
                best, chosen = loss, scores
        return chosen

    def scores(self, targets: Floats) -> Floats | None:
        """Return scores, shape (reports,), of least mean square with expectations `targets`; None if none exist."""
        if self.matrix is None:
            return np.asarray((targets - (1 - self.told) * targets.mean(axis=0)) / self.told)
        weight = np.sqrt(np.maximum(self.matrix.mean(axis=0), np.finfo(np.float64).tiny))
        solution = np.linalg.lstsq(self.matrix / weight, targets, rcond=1e-10)[0] / weight
        missed = np.abs(self.matrix @ solution - targets).max()
        return np.asarray(solution) if missed <= _EXACT * max(float(np.abs(targets).max()), 1e-300) else None
