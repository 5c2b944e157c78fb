"""Find rows of probabilities with the smallest error, under a limit on the distance of two rows relative to a third.

The matrix Q, shape (k, columns), has the *spread* max over rows a, b, x of sum_y (Q_a - Q_b)(y)**2/Q_x(y). The spread
is convex in Q, so a limit on it becomes linear cuts (tangents). The error is linear, or it is that of least squares.
The information sum_y Q(y)Q(y)'/m(y) of least squares (m: mean of a column) is also convex. The error from its tangent
is an upper bound, attained at the point of contact. Every step solves this convex programme.

Source: docs/theory/curves.md, Lemma 7 and Lemma 8.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from hushuffle.errors import NumericalError
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.roots import halved

_STEPS: Final = 40
_GAIN: Final = 1e-3
"""The iteration stops when a step can gain less than this, relatively."""

_NEAR: Final = 0.95
"""A triple of rows gets a cut if its spread is at least this fraction of the largest spread."""

_CUTS: Final = 300
"""Largest number of new cuts in one step."""

_SLACK: Final = 0.05
"""Cuts with more slack than this are removed."""

_REACH: Final = 1.5
"""The largest change of an entry in a first step, as a factor."""

_RARE: Final = 1e-2
"""Columns with less than this fraction of an average column's mass are dropped."""

_ALIKE: Final = 1e-3
"""Columns are merged if their entries are in the same proportions, up to this relative difference."""


def spreads(rows: Floats) -> Floats:
    """Return sum_y (Q_a - Q_b)(y)**2/Q_x(y), shape (k, k, k) for a, b, x; columns of zeros are ignored.

    >>> spreads(np.array([[0.75, 0.25], [0.25, 0.75]]))[0, 1].round(4).tolist()
    [1.3333, 1.3333]
    """
    seen = rows[:, rows.any(axis=0)]
    apart = (seen[:, None] - seen[None]) ** 2
    with np.errstate(divide="ignore"):
        return np.asarray(apart @ (1 / seen).T)


def information(rows: Floats) -> Floats:
    """Return sum_y Q(y)Q(y)'/m(y), shape (k, k): the information of one report on the shares, at equal shares."""
    seen = rows[:, rows.any(axis=0)]
    return np.asarray((seen / seen.mean(axis=0)) @ seen.T)


def least_squares(rows: Floats, wanted: Floats) -> float:
    """Return the summed variance of least-squares estimates of `wanted` @ shares, shape (quantities,), from one report.

    Sampling error is excluded. The variance is infinite if reports do not determine these quantities.

    >>> least_squares(np.eye(3), np.eye(3)), round(least_squares(np.array([[0.75, 0.25], [0.25, 0.75]]), np.eye(2)), 4)
    (0.0, 1.5)
    """
    k = len(rows)
    values, vectors = np.linalg.eigh(information(rows))
    parts = ((wanted @ vectors) ** 2).sum(axis=0)
    positive = values > 1e-14 * k
    if bool((parts[~positive] > 1e-12 * parts.max(initial=1.0)).any()):
        return math.inf
    return max(float((parts[positive] / values[positive]).sum() - (wanted**2).sum() / k), 0.0)


def together(rows: Floats) -> Floats:
    """Return the matrix with nearly proportional columns merged, and without columns of zeros."""
    merged: list[Floats] = []
    for column in rows[:, rows.any(axis=0)].T:
        for place, other in enumerate(merged):
            if np.abs(column / column.mean() - other / other.mean()).max() <= _ALIKE:
                merged[place] = other + column
                break
        else:
            merged.append(column)
    return np.array(merged).T


@dataclass(frozen=True, kw_only=True, eq=False)
class RowProgramme:
    """Minimize the error of rows with spread at most `spread` and ratios in a column at most `ratio`.

    Exactly one of two errors is given: `wanted`, shape (quantities, k), for the variance of least squares, or `costs`,
    shape (k, columns), for the sum of costs times probabilities over k. `mirror`: reversing the rows does not change
    the error, so the matrix has pairs of reversed columns; the solver (and `costs`) use only the first of each pair.
    """

    spread: float
    ratio: float
    wanted: Floats | None = None
    costs: Floats | None = None
    mirror: bool = False

    def error(self, half: Floats) -> float:
        """Return the error of the matrix whose first half of columns is `half`."""
        if self.costs is not None:
            return float((1 + self.mirror) * (half * self.costs).sum() / len(half))
        return least_squares(self.full(half), np.asarray(self.wanted))

    def full(self, half: Floats) -> Floats:
        return np.hstack([half, half[::-1]]) if self.mirror else half

    def best(self, start: Floats) -> Floats:
        """Return a matrix within both limits whose error is at most that of `inside(start)`.

        For costs the error is the minimum up to a few thousandths; for least squares, equally nearly a local minimum.
        """
        held = self.inside(start)
        cuts, reach = self._cuts(held), _REACH
        for _ in range(_STEPS):
            reached = self._solved(held, cuts, reach=reach)
            inside, error = self.inside(reached), self.error(held)
            hopes = error - self._promised(held, reached)
            gain = error - self.error(inside)
            cuts = np.concatenate([cuts, self._cuts(inside), self._cuts(reached)])
            room = 1 - np.einsum("cky,ky->c", cuts, reached)
            cuts = cuts[np.argsort(room, kind="stable")[: min(int((room < _SLACK).sum()), 2 * _CUTS)]]
            held = inside if gain > 0 else held
            if max(hopes, gain) <= _GAIN * error:
                break
            # If the cuts nearly equalled the limit itself, the next step may be longer, else it is shorter.
            reach = reach**2 if gain > hopes / 2 else math.sqrt(reach)
        return held

    def mixed(self, start: Floats) -> Floats:
        """Return the best matrix whose columns are columns of `start` times positive weights; rows may have any sum."""
        cuts = self._cuts(start)
        reached = self._solved(start, cuts)
        while float(spreads(self.full(reached)).max()) > self.spread * (1 + _GAIN):
            cuts = np.concatenate([cuts, self._cuts(reached)])
            reached = self._solved(start, cuts)
        often = reached.mean(axis=0) * len(start.T) > _RARE
        return np.asarray(reached[:, often] / self.full(reached[:, often]).sum(axis=1, keepdims=True))

    def inside(self, half: Floats) -> Floats:
        """Return the matrix with its rows moved towards their mean until both limits hold."""
        mean = (half + half[::-1]).mean(axis=0) / 2 if self.mirror else half.mean(axis=0)

        def holds(share: float) -> bool:
            mixed = mean + share * (half - mean)
            seen = mixed[:, mixed.any(axis=0)]
            if bool((seen.max(axis=0) > self.ratio * seen.min(axis=0)).any()):
                return False
            return float(spreads(self.full(mixed)).max()) <= self.spread

        share = 1.0 if holds(1.0) else halved(holds, good=0.0, bad=1.0)
        return np.asarray(mean + share * (half - mean))

    def _cuts(self, half: Floats) -> Floats:
        """Return gradients of the largest spreads divided by the limit, shape (cuts, k, columns): at most 1 inside."""
        full = self.full(half)
        values = spreads(full) / self.spread
        a, b, x = np.nonzero(np.triu(np.ones(values.shape[:2]), 1)[:, :, None] * values > _NEAR)
        order = np.argsort(-values[a, b, x], kind="stable")[:_CUTS]
        a, b, x = a[order], b[order], x[order]
        with np.errstate(invalid="ignore", divide="ignore"):
            steps = np.nan_to_num((full[a] - full[b]) / full[x], posinf=0.0, neginf=0.0)
        cuts, each = np.zeros((a.size, *full.shape)), np.arange(a.size)
        np.add.at(cuts, (each, a), 2 * steps)
        np.add.at(cuts, (each, b), -2 * steps)
        np.add.at(cuts, (each, x), -(steps**2))
        if self.mirror:
            columns = half.shape[1]
            cuts = cuts[:, :, :columns] + cuts[:, ::-1, columns:]
        return cuts / self.spread

    @cached_property
    def _root(self) -> tuple[Floats, Floats]:
        """Return a basis of contrasts, shape (k, k-1), and R with |R v| = |wanted basis v|."""
        wanted = np.asarray(self.wanted)
        k = wanted.shape[1]
        basis = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, :-1]]))[0][:, 1:]
        root = np.linalg.qr(wanted @ basis)[1]
        likely = min(self.spread, 2 * (self.ratio - 1) ** 2 / (k + self.ratio - 1))
        return basis / math.sqrt(likely), root[np.abs(root).max(axis=1) > 1e-9] / np.abs(root).max()

    def _tangent(self, held: Floats) -> tuple[Floats, Floats]:
        """Return (Z, R): the tangent of the information about contrasts is Z'Q R' + R Q'Z - R diag(mean of Q) R'."""
        basis, _ = self._root
        full = self.full(held)
        mean = full.mean(axis=0)
        return basis, np.divide(basis.T @ full, mean, out=np.zeros((basis.shape[1], full.shape[1])), where=mean > 0)

    def _promised(self, held: Floats, reached: Floats) -> float:
        """Return the error at `reached` if the information equalled its tangent at `held`."""
        if self.costs is not None:
            return self.error(reached)
        basis, slope = self._tangent(held)
        full = self.full(reached)
        part = (basis.T @ full) @ slope.T
        less = part + part.T - (slope * full.mean(axis=0)) @ slope.T
        wanted = np.asarray(self.wanted)
        variance = np.trace(wanted @ basis @ np.linalg.pinv(less, hermitian=True) @ basis.T @ wanted.T)
        return float(variance - (wanted**2).sum() / len(full) + (wanted.sum(axis=1) ** 2).sum() / len(full) ** 2)

    def _solved(self, held: Floats, cuts: Floats, *, reach: float = 0.0) -> Floats:
        """Return the best matrix under the cuts, with the tangent of the information at `held`.

        No entry changes by more than the factor `reach`; with 0 its columns keep their shapes.
        """
        cp: Any = importlib.import_module("cvxpy")  # an optional dependency, and slow to import
        k, columns = held.shape
        least = np.ones((k, 1)) @ cp.Variable((1, columns), nonneg=True)
        rows = cp.Variable((k, columns)) if reach else cp.multiply(held, least)
        sums = cp.sum(rows, axis=1)
        rules = [(sums + sums[::-1])[: (k + 1) // 2] == 1 if self.mirror else sums == 1]
        if reach:
            rules += [rows >= least, rows <= self.ratio * least]
            rules += [rows >= held / reach, rows <= held * reach]
        if len(cuts):
            rules.append(cuts.reshape(len(cuts), -1) @ cp.vec(rows, order="C") <= 1)
        if self.costs is not None:
            target = cp.sum(cp.multiply(self.costs, rows))
        else:
            basis, slope = self._tangent(held)
            full = cp.hstack([rows, rows[::-1]]) if self.mirror else rows
            part = (basis.T @ full) @ slope.T
            less = part + part.T - slope @ cp.diag(cp.sum(full, axis=0) / k) @ slope.T
            target = cp.matrix_frac(self._root[1].T, less)
        problem = cp.Problem(cp.Minimize(target), rules)
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):  # then there is no value
            warnings.simplefilter("ignore")  # an inaccurate solution is moved inside the limits
            problem.solve(solver=cp.CLARABEL)
        if rows.value is None:
            message = "The convex programme was not solved: its numbers are too far apart. Use a smaller ratio."
            raise NumericalError(message)
        raised = np.maximum(rows.value, rows.value.max(axis=0, initial=0.0) / self.ratio)
        return np.asarray(raised / self.full(raised).sum(axis=1, keepdims=True))
