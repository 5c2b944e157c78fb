"""The plain privacy blanket of any finite randomizer: the truthful reports of all other people are known.

Source: Balle, Bell, Gascon, Nissim 2019; docs/theory/blanket.md, Theorem 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from hushuffle.curves.laws.kinds import NOISE, Place, Places, largest, parts
from hushuffle.curves.laws.kinds import gain as gain_of
from hushuffle.mechanisms.randomizers import ValueLaws
from hushuffle.numerics.binomial import EPS, Floats, beside_traces
from hushuffle.numerics.score_sums import FAINT, ReportScores, positive_part

Numbers = tuple[Floats, Floats]
"""Values of N, and of each its probability divided by N, shapes (J,)."""

COARSE: Final = 0.12
"""Smoothing of sums, in standard deviations, to rank pairs of values."""

_LONELY: Final = 1e-12
"""Expected number of reports in the blanket below which the bound of one unshuffled report is used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainBlanket:
    """The bound of the plain privacy blanket.

    N is the number of reports among which the target's report hides, including this report. `weights[j]` is
    P(N = `counts[j]`) / `counts[j]`, shape (J,), and `missing` is the probability that N is not in `counts`. Each of
    the N reports is from the blanket with probability `covered`.
    """

    laws: tuple[ValueLaws, ...]
    counts: Floats
    weights: Floats
    missing: float
    covered: float

    def near(self, delta: float) -> PlainBlanket:
        """Return the bound without numbers N that hardly matter at `delta`."""
        likely = beside_traces(chances := self.weights * self.counts, 1e-9 * delta)
        missing = self.missing + float(chances[~likely].sum()) * (1 + 1e-9)
        return replace(self, counts=self.counts[likely], weights=self.weights[likely], missing=missing)

    def upper(self, places: Places, epsilon: float, smoothing: float, goal: float = 0.0) -> float:
        """Return an upper bound on delta for the target's pairs of values `places`; a bound above a `goal` is infinite.

        `smoothing` of sums is in standard deviations.
        """
        if len(places) > 1:  # pairs that only rename reports have the same bound
            places = tuple({(i, self.laws[i].renamed[j]): (i, j) for i, j in reversed(places)}.values())[::-1]
        if len(places) == 1:
            return self.at(places[0], epsilon, smoothing)
        best, most = goal, self._at_once(places, epsilon)
        for place in np.argsort(-most, kind="stable").tolist():
            if most[place] <= best or best > goal > 0:
                break
            if (estimate := min(float(most[place]), self.at(places[place], epsilon, COARSE))) > best:
                best = max(best, min(estimate, self.at(places[place], epsilon, smoothing)))
        return math.inf if best > goal > 0 else best

    def _at_once(self, places: Places, epsilon: float) -> Floats:
        """Return an upper bound on `at` for each place, from [x]_+ <= e**(t x - 1)/t, valid for any t > 0."""
        bounds, mean = [], float(self.typical[0][0])
        for part, near, far in parts(self.laws, places):
            mass = self.covered * self.laws[part[0][0]].blanket
            inside = mass >= FAINT
            value, size = gain_of(near, far, epsilon)
            value = value + NOISE * size
            with np.errstate(all="ignore"):  # a bound that is not finite is replaced at the end
                scores = value[:, inside] / mass[inside]
                drift, square = mean * (scores @ mass[inside]), mean * (scores**2 @ mass[inside])
                tilt = (np.sqrt(drift**2 + 4 * square) - drift) / (2 * square)  # the best for sums of normal scores
                steep = tilt[:, None] * scores
                logs = np.log1p(np.maximum(np.expm1(steep) @ mass[inside], -0.5))
                logs += NOISE * (mass.size + steep.max(axis=1, initial=0.0))
                hidden = sum(
                    weight * np.exp(count * logs - 1)
                    for count, weight in zip(self.counts.tolist(), self.weights.tolist(), strict=True)
                )
                certain = np.maximum(value[:, ~inside], 0.0).sum(axis=1) + self.missing
                bounds.append((hidden / tilt + certain) * (1 + 1e-9) + 1e-300)
        return np.asarray(np.nan_to_num(np.concatenate(bounds), nan=math.inf, posinf=math.inf))

    def square(self, place: Place, epsilon: float) -> float:
        """Return the mean square of the mean of N scores, at the mean N."""
        law, mass = self.laws[place[0]], self.covered * self.laws[place[0]].blanket
        a, b = law.pairs[place[1]]
        gain, _ = gain_of(law.rows[a], law.rows[b], epsilon)
        with np.errstate(divide="ignore", over="ignore"):
            return float((gain[gain != 0] ** 2 / mass[gain != 0]).sum() / self.typical[0][0])

    @cached_property
    def typical(self) -> Numbers:
        """The mean of N in place of `counts`, and its `weights`: for comparison, not for bounds."""
        chances = self.weights * self.counts
        mean = float(chances @ self.counts) / max(float(chances.sum()), 1e-300)
        return np.array([mean]), np.array([float(chances.sum()) / max(mean, 1.0)])

    def at(self, place: Place, epsilon: float, smoothing: float, numbers: Numbers | None = None) -> float:
        """Return an upper bound on delta for one pair of values; with `typical` numbers N, a smaller number."""
        law, most = self.laws[place[0]], largest(self.laws, [place], epsilon)[0]
        a, b = law.pairs[place[1]]
        gain, size = gain_of(law.rows[a], law.rows[b], epsilon)
        mass = self.covered * law.blanket
        # Reports that the blanket hardly ever contains count in full: [s + t]_+ <= [s]_+ + [t]_+.
        inside = mass >= FAINT
        if self.covered * float(self.counts.max()) < _LONELY or not bool(inside.any()):
            return most
        certain = float(np.maximum(gain + 8 * EPS * size, 0.0)[~inside].sum()) * (1 + 4 * EPS * gain.size)
        scores = ReportScores.of(gain[inside], size[inside], mass[inside]).merged()
        hidden = positive_part(scores, *(numbers or (self.counts, self.weights)), smoothing=smoothing)
        return min(hidden + certain + self.missing, most)
