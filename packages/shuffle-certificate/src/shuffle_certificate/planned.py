"""Compare a certificate with the specification in its result: the randomizer, and the random number of dummies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .certificate import Randomizer

_LOCAL = {
    *("unary-encoding", "subset-selection", "hadamard-response", "local-hashing", "discrete-laplace", "square-wave"),
    *("rounded-response", "randomized-response"),
}
"""Kinds of randomizers whose key `epsilon` is the local epsilon."""

_CLOSE = 1e-6
"""Largest relative difference of local epsilons, and of distributions of a number of dummies."""


def randomizes(stated: Mapping[str, Any], population: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Return whether a certificate has the number of values, and the rows or local epsilon, that `stated` implies.

    Randomizers of other kinds, and a matrix in another file, are not compared.
    """
    try:
        labels, randomizer = population.get("categories"), Randomizer.of(given)
        k = len(labels) if isinstance(labels, list | Mapping) else population.get("k")
        if k not in (None, randomizer.k) or given.get("randomizers"):
            return False
        if isinstance(stated.get("matrix"), list):
            rows = [[float(p) for p in row] for row in stated["matrix"]]
            common = [min(column) for column in zip(*rows, strict=True)]
            dummies = given.get("dummy")
            if dummies and not _alike([[p / math.fsum(common) for p in common]], [dummies]):
                return False
            return _alike(rows, given["rows"])
        if "truth_probability" in stated and "epsilon" not in stated:
            return randomizer.truth is not None and math.isclose(randomizer.truth, float(stated["truth_probability"]))
        return fits_kind(stated, randomizer)
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return False


def compared(stated: Mapping[str, Any]) -> bool:
    """Return whether `randomizes` compares a stated randomizer with that of a certificate."""
    by_epsilon = stated.get("kind") in _LOCAL and "epsilon" in stated
    return by_epsilon or "truth_probability" in stated or isinstance(stated.get("matrix"), list)


def fits_kind(stated: Mapping[str, Any], randomizer: Randomizer) -> bool:
    """Return whether a randomizer has the local epsilon, and the form, of its stated kind."""
    if not compared(stated) or "epsilon" not in stated:
        return True
    if stated["kind"] == "randomized-response" and randomizer.truth is None:
        return False
    if randomizer.bits is not None:
        p, q = map(float, randomizer.bits)
        apart = {"symmetric": p + q - 1, "optimized": p - 1 / 2}.get(str(stated.get("encoding")), 0.0)
        if abs(apart) > _CLOSE:
            return False
    return math.isclose(_local(randomizer), float(stated["epsilon"]), rel_tol=_CLOSE)


def _alike(rows: Sequence[Sequence[float]], shown: Sequence[Sequence[Any]]) -> bool:
    """Return whether two matrices are equal up to the digits that a certificate has."""
    return len(rows) == len(shown) and all(
        math.isclose(p, float(q), rel_tol=1e-9, abs_tol=1e-12)
        for row, other in zip(rows, shown, strict=True)
        for p, q in zip(row, other, strict=True)
    )


def _local(randomizer: Randomizer) -> float:
    """Return the local epsilon of a randomizer."""
    if randomizer.bits is not None:
        p, q = randomizer.bits
        return math.log(p) + math.log(1 - q) - math.log(q) - math.log(1 - p) if q and p < 1 else math.inf
    if randomizer.rows is None:
        assert randomizer.truth is not None
        columns = [(randomizer.truth, (1 - randomizer.truth) / (randomizer.k - 1))]
    else:
        columns = [column for column in zip(*randomizer.rows, strict=True) if any(column)]
    return max(math.log(max(column) / min(column)) if min(column) else math.inf for column in columns)


def draws(stated: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Return whether the messages `sent` have the stated distribution of a number of dummies."""
    try:
        shown = {
            int(number): int(part) / 2**64 for number, part in sent.get("table") or [[sent.get("trials", 0), 2**64]]
        }
        weights = _weights(stated, max(shown))
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return False
    return math.fsum(abs(weights.get(number, 0.0) - shown.get(number, 0.0)) for number in weights | shown) < _CLOSE


def _weights(stated: Mapping[str, Any], most: int) -> dict[int, float]:
    """Return the probabilities of the numbers of dummies up to `most`, or of all numbers."""
    kind = stated["kind"]
    if kind == "own":
        return dict(zip(map(int, stated["numbers"]), map(float, stated["probabilities"]), strict=True))
    if kind == "geometric":
        ratio = stated["mean"] / (1 + stated["mean"])
        return {number: (1 - ratio) * ratio**number for number in range(most + 1)}
    if kind == "discrete-laplace":
        center = int(stated["center"])
        parts = [math.exp(-abs(number - center) / stated["scale"]) for number in range(2 * center + 1)]
        total = math.fsum(parts)
        return {number: part / total for number, part in enumerate(parts)}
    if kind == "discrete-gaussian":
        center = int(stated["center"])
        parts = [math.exp(-(((number - center) / stated["sigma"]) ** 2) / 2) for number in range(2 * center + 1)]
        total = math.fsum(parts)
        return {number: part / total for number, part in enumerate(parts)}
    trials, p = int(stated["trials"]), float(stated["p"])
    top = math.lgamma(trials + 1) + trials * math.log1p(-p)
    return {
        number: math.exp(
            top - math.lgamma(number + 1) - math.lgamma(trials - number + 1) + number * (math.log(p) - math.log1p(-p))
        )
        for number in range(min(trials, most) + 1)
    }
