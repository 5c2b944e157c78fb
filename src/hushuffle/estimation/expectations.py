"""What a report says about a level on average: laws and expectations of reports, and scores with given ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism

Floats = npt.NDArray[np.float64]

PENALTIES: Final = 10.0 ** np.arange(-12, 1, 2)
"""Of squares of scores, relative to how much reports say of the level that they say most about."""

_EXACT: Final = 1e-12  # what expected scores may miss, relative to the largest of them


@dataclass(frozen=True, kw_only=True, eq=False)
class Expectations:
    """What one report says on average; `blanket` is the law of dummies, shape (reports,).

    `matrix` is Q(y|x), shape (levels, reports). None: randomized response, which tells the truth on purpose with
    probability `told`.
    """

    blanket: Floats
    matrix: Floats | None = None
    told: float = 1.0

    @classmethod
    def of(cls, randomizer: Mechanism) -> Expectations:
        """Return those of a randomizer whose reports can be counted one by one."""
        law = randomizer.law()
        if law.symmetric is not None:
            k = law.symmetric.k
            return cls(blanket=np.full(k, 1 / k), told=float(law.symmetric.theta))
        if law.support is not None:
            message = (
                "Estimates of numbers need randomized response, or reports that are counted one by one, which "
                f"{type(randomizer).__name__} does not offer."
            )
            raise UnsupportedProtocolError(message)
        return cls(
            blanket=np.asarray(law.blanket().law, dtype=np.float64),
            matrix=np.asarray(law.channel().matrix, dtype=np.float64),
        )

    @property
    def levels(self) -> int:
        """Number of levels."""
        return self.blanket.size if self.matrix is None else int(self.matrix.shape[0])

    def whole_matrix(self) -> Floats:
        """Return Q(y|x), shape (levels, reports), also of randomized response."""
        if self.matrix is not None:
            return self.matrix
        matrix = np.full((self.levels, self.levels), (1 - self.told) / self.levels)
        matrix[np.diag_indices(self.levels)] += self.told
        return matrix

    def law(self, shares: Floats) -> Floats:
        """Return the law of one report, shape (reports,), of somebody whose level has the law `shares`, (levels,)."""
        if self.matrix is None:
            return np.asarray(self.told * shares + (1 - self.told) * shares.mean())
        return np.asarray(shares @ self.matrix)

    def expected(self, scores: Floats) -> Floats:
        """Return the expectation of scores, shape (reports,), of a report of each level, shape (levels,)."""
        if self.matrix is None:
            return np.asarray(self.told * scores + (1 - self.told) * scores.mean(axis=0))
        return np.asarray(self.matrix @ scores)

    def near_scores(self, targets: Floats, *, n: int) -> Floats:
        """Return scores, shape (reports,), whose expectations are near `targets`, shape (levels,).

        Of least squares with several penalties, those whose largest bias and largest standard error over n reports are
        least in all. That exact ones exist may help nobody: noise of many levels' width takes thousands of them.
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
        """Return scores, shape (reports,), whose expectations are `targets`, shape (levels,); None: there are none.

        Of several solutions it is that of the least square where all levels are equally frequent.
        """
        if self.matrix is None:
            return np.asarray((targets - (1 - self.told) * targets.mean(axis=0)) / self.told)
        weight = np.sqrt(np.maximum(self.matrix.mean(axis=0), np.finfo(np.float64).tiny))
        found = np.linalg.lstsq(self.matrix / weight, targets, rcond=1e-10)[0] / weight
        missed = np.abs(self.matrix @ found - targets).max()
        return np.asarray(found) if missed <= _EXACT * max(float(np.abs(targets).max()), 1e-300) else None
