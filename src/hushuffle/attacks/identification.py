"""Naming the person behind a report: the best-score rule, its error, and lists of the k best."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from hushuffle import _checks
from hushuffle.attacks.detection import square
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import PIE

Floats = npt.NDArray[np.float64]
Ties = Literal["uniform", "against"]

BINOMIAL: Final = Citation(
    key="clopper1934",
    text="C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of the "
    "binomial, Biometrika 26 (1934)",
)


def identification_error(scores: npt.ArrayLike, *, ties: Ties = "uniform", confidence: float = 0.95) -> Bound:
    """Return an interval for the probability that the best-score rule names the wrong person.

    `scores[i, j]`, shape (n, n), says how well the report of person i matches what is known of person j; higher is
    better; every report is ascribed to the person with its highest score. `identified` gives the rate itself. The
    interval (Clopper, Pearson) covers other reports against the same n people; with more people the error grows.

    Args:
        scores: the matrix.
        ties: of equal best scores one is named at random ("uniform"), or a wrong one ("against").
        confidence: of the interval.

    Raises:
        InvalidInputError: not a square matrix of finite numbers, or an argument out of range.

    Source: Murakami, Takahashi 2021, section 5.3; Clopper, Pearson 1934.

    >>> print(identification_error(np.eye(100)))
    0 to 0.03622 (95% interval)
    """
    sure = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    wrong = 1 - identified(scores, (1,), ties=ties)
    n = len(np.asarray(scores))
    errors = float(wrong[0]) * n
    lower = 0.0 if errors <= 0 else float(betaincinv(errors, n - errors + 1, (1 - sure) / 2))
    upper = 1.0 if errors >= n else float(betaincinv(errors + 1, n - errors, (1 + sure) / 2))
    sources = (BINOMIAL, PIE.at("section 5.3"))
    return Bound(lower=lower, upper=upper, kind="estimate", unit="probability", confidence=sure, sources=sources)


def identified(scores: npt.ArrayLike, tops: npt.ArrayLike = (1,), *, ties: Ties = "uniform") -> Floats:
    """Return how often the right person is among the t best scores of a report, for each t in `tops`.

    `scores` as in `identification_error`. With g people strictly above the right one and e others equal to them,
    the right one is among the t best with probability (t - g)/(e + 1), cut to [0, 1] ("uniform"), or if g + e < t
    ("against"). For t = 1, 2, ..., n this is the cumulative match curve.

    Raises:
        InvalidInputError: not a square matrix of finite numbers, a t outside 1..n, or ties not understood.

    Source: Murakami, Takahashi 2021, section 5.3; theory.md section 4 (top-k lists).

    >>> identified([[3, 1, 1], [2, 2, 0], [5, 4, 3]], (1, 2, 3)).tolist()
    [0.5, 0.6666666666666666, 1.0]
    """
    if ties not in {"uniform", "against"}:
        _checks.reject("ties", '"uniform" or "against"', repr(ties))
    table = square(scores)
    lists = _checks.codes("tops", tops, k=len(table) + 1)
    if not lists.all():
        _checks.reject("tops", f"from 1 to n = {len(table)}", "<0 among them>")
    own = table.diagonal()[:, None]
    above = np.count_nonzero(table > own, axis=1)
    equal = np.count_nonzero(table == own, axis=1) - 1
    if ties == "against":
        return np.array([np.mean(above + equal < top) for top in lists])
    return np.array([np.mean(np.clip((top - above) / (equal + 1), 0.0, 1.0)) for top in lists])
