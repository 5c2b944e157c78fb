"""Sampling of message targets: with some probability a message goes to a random target, and more go along."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers._rounding import log_upwards
from hushuffle.mechanisms.randomizers.base import (
    Blanket,
    CountsReports,
    HasBlanket,
    HasChannel,
    HasSymmetricLaw,
    HasValueLaws,
    Randomizer,
    SupportProbabilities,
    Symmetric,
    ValueLaws,
)
from hushuffle.model import Channel, Histogram
from hushuffle.randomness import SCALE, Randomness

Convention = Literal["uniform", "exclusive"]

_LARGEST_MATRIX: Final = 20_000
_MOST_FLOODED: Final = 1000


@dataclass(frozen=True, kw_only=True)
class TargetSampling(Randomizer, HasChannel, HasBlanket, HasSymmetricLaw, HasValueLaws, CountsReports):
    """Send to the true target with probability 1 - sigma, else to a random one; then to `flood` further targets.

    Convention "uniform": the random target is any of all T, the true one included (mu = 1 - sigma + sigma/T,
    nu = sigma/T). "exclusive": any of the others (mu = 1 - sigma, nu = sigma/(T - 1)). A message that goes
    elsewhere carries no data. The `flood` further targets are distinct, uniform, and not the first one; a
    report is then the sorted row of the flood + 1 targets, shape (n, flood + 1), else the target, shape (n,).
    Only without flooding is there a symmetric law.

    Args:
        targets: number of targets T, >= 2.
        sigma: in [0, 1]; at most (T - 1)/T in the exclusive convention, where every target is equally likely.
        flood: number of further messages, 0 to T - 1 (a broadcast), at most 1000.
        convention: "uniform" or "exclusive".

    Raises:
        InvalidInputError: an argument out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (sampling and flooding); docs/theory/traffic.md, Theorem 1.

    >>> sampling = TargetSampling(targets=20, sigma=0.2)
    >>> round(float(sampling.symmetric_law().truth), 3), round(sampling.local_epsilon, 4)
    (0.81, 4.3944)
    """

    targets: int
    sigma: float
    flood: int = 0
    convention: Convention = "uniform"
    threshold: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        targets = _checks.integer("targets", self.targets, low=2, high=2**40)
        sigma = _checks.probability("sigma", self.sigma)
        flood = _checks.integer("flood", self.flood, low=0, high=min(targets - 1, _MOST_FLOODED))
        if self.convention not in ("uniform", "exclusive"):
            _checks.reject("convention", "uniform or exclusive", self.convention)
        # The coin of this threshold decides for the true target; rounded down, never less private than asked.
        threshold = math.floor(SCALE * (1 - Fraction(sigma)))
        if self.convention == "exclusive" and threshold * targets < SCALE:
            if sigma > math.nextafter((targets - 1) / targets, 1):
                hint = "Beyond it the true target would be the least likely one."
                _checks.reject("sigma", f"at most (T - 1)/T = {(targets - 1) / targets:.6g} if exclusive", sigma, hint)
            threshold = -(-SCALE // targets)
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "flood", flood)
        object.__setattr__(self, "threshold", threshold)

    @property
    def inputs(self) -> int:
        return self.targets

    def offers(self, capability: type) -> bool:
        """Say no to a symmetric law under flooding: a report is a set of targets then."""
        return super().offers(capability) and not (self.flood and capability is HasSymmetricLaw)

    def _first(self) -> Symmetric:
        """Return the law of the first message's target."""
        t = self.targets
        told = Fraction(self.threshold, SCALE)
        lie = (1 - told) / (t if self.convention == "uniform" else t - 1)
        return Symmetric(k=t, truth=1 - (t - 1) * lie, lie=lie)

    def symmetric_law(self) -> Symmetric:
        """Return the law of the target of the one message.

        Raises:
            UnsupportedProtocolError: there is flooding.
        """
        if self.flood:
            message = "TargetSampling with flooding has no symmetric law: a report is a set of targets."
            raise UnsupportedProtocolError(message)
        return self._first()

    @property
    def local_epsilon(self) -> float:
        """ln((mu + d nu)/((d + 1) nu)), d = flood; 0 for a broadcast (d = T - 1)."""
        law, d = self._first(), self.flood
        if d == self.targets - 1:
            return 0.0
        return math.inf if law.lie == 0 else log_upwards((law.truth + d * law.lie) / ((d + 1) * law.lie))

    def _support(self) -> tuple[Fraction, Fraction]:
        """Return the probabilities that a report has its own target, and that it has a given other one."""
        law, d, others = self._first(), self.flood, self.targets - 1
        along = Fraction(d, others)
        return law.truth + (1 - law.truth) * along, law.lie + (1 - law.lie) * along

    def support_probabilities(self) -> SupportProbabilities:
        true, false = self._support()
        return SupportProbabilities(
            true=float(true), false=float(false), dummy=float(Fraction(self.flood + 1, self.targets))
        )

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> npt.NDArray[np.int64]:
        return self._flooded(self._first_targets(values, rng)[0], rng)

    def sample(self, values: npt.ArrayLike, *, rng: Randomness) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return reports, the same as those of `randomize`, and which of them are true on purpose, shape (n,).

        A report is on purpose with probability theta, the difference of the chances of the own target and of
        another, whatever that target is; all others are draws of the blanket, which may be true by luck. Whoever knows
        who was on purpose learns nothing from it about where the others' messages went.

        Source: docs/theory/traffic.md, Theorem 2.

        >>> from hushuffle.randomness import reproducible
        >>> sampling = TargetSampling(targets=2, sigma=0.5)
        >>> reports, on_purpose = sampling.sample([1] * 1000, rng=reproducible(1))
        >>> int(reports.sum()), int(on_purpose.sum())
        (762, 530)
        """
        first, honest = self._first_targets(values, rng)
        reports = self._flooded(first, rng)
        if self.convention == "exclusive":
            # An honest message is one of the blanket's with probability lie/truth.
            law = self._first()
            honest = honest & rng.coins(math.floor(SCALE * (law.truth - law.lie) / law.truth), first.size)
        return reports, honest

    def _first_targets(
        self, values: npt.ArrayLike, rng: Randomness
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return where the first messages go, and which were sent to their own target by the coin."""
        truth = _checks.codes("values", values, k=self.targets)
        honest = rng.coins(self.threshold, truth.size)
        if self.convention == "uniform":
            other = rng.integers(self.targets, truth.size)
        else:
            other = rng.integers(self.targets - 1, truth.size)
            other += other >= truth
        return np.where(honest, truth, other), honest

    def dummies(self, count: int, *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return reports of uniform targets."""
        size = _checks.integer("count", count, low=0)
        return self._flooded(rng.integers(self.targets, size), rng)

    def _flooded(self, first: npt.NDArray[np.int64], rng: Randomness) -> npt.NDArray[np.int64]:
        """Return each first target together with `flood` distinct others, sorted."""
        if not self.flood:
            return first
        rows = np.empty((first.size, self.flood + 1), dtype=np.int64)
        others = self.targets - 1
        for column, last in enumerate(range(others - self.flood, others)):
            # Floyd's sampling without replacement: take a number up to `last`, or `last` itself if that is taken.
            drawn = rng.integers(last + 1, first.size)
            taken = (rows[:, :column] == drawn[:, None]).any(axis=1)
            rows[:, column] = np.where(taken, last, drawn)
        chosen = rows[:, : self.flood]
        chosen += chosen >= first[:, None]
        rows[:, self.flood] = first
        rows.sort(axis=1)
        return rows

    def counts(self, reports: npt.NDArray[np.int64]) -> Histogram:
        rows = np.asarray(reports)
        shape = (rows.shape[0], self.flood + 1) if self.flood else (rows.size,)
        if rows.shape != shape:
            _checks.reject("reports", f"of shape {shape}", f"<shape {rows.shape}>")
        targets = _checks.codes("reports", rows.ravel(), k=self.targets)
        return Histogram(counts=np.bincount(targets, minlength=self.targets))

    def channel(self) -> Channel:
        """Return Q(targets | x); only where there are few sets of targets.

        Raises:
            UnsupportedProtocolError: more than 20,000 entries.
        """
        size = math.comb(self.targets, self.flood + 1) * self.targets
        if size > _LARGEST_MATRIX:
            message = f"TargetSampling has {size:,} entries, too many for a matrix; see `value_laws`."
            raise UnsupportedProtocolError(message)
        law, sets = self._first(), list(combinations(range(self.targets), self.flood + 1))
        inside = float((law.truth + self.flood * law.lie) / math.comb(self.targets - 1, self.flood))
        outside = float((self.flood + 1) * law.lie / math.comb(self.targets - 1, self.flood))
        matrix = [[inside if x in chosen else outside for chosen in sets] for x in range(self.targets)]
        names = sets if self.flood else list(range(self.targets))
        return Channel(matrix=np.array(matrix), outputs=names)

    def blanket(self) -> Blanket:
        """Return the blanket over `channel`'s outputs; uniform."""
        size = math.comb(self.targets, self.flood + 1)
        if size > _LARGEST_MATRIX:
            message = f"TargetSampling has {size:,} reports, too many for a list; see `value_laws`."
            raise UnsupportedProtocolError(message)
        return Blanket(weight=float(self._gamma()), law=np.full(size, 1.0 / size))

    def _gamma(self) -> Fraction:
        """Return what all targets' reports have in common: every set as likely as one without the target."""
        if self.flood == self.targets - 1:
            return Fraction(1)
        law = self._first()
        sets = Fraction(self.targets, self.flood + 1)  # C(T, d + 1) / C(T - 1, d)
        return sets * (self.flood + 1) * law.lie

    def value_laws(self) -> tuple[ValueLaws, ...]:
        """Return the one pair there is: a report has the first target only, the second only, both, or neither."""
        t, d, law = self.targets, self.flood, self._first()
        inside, outside = law.truth + d * law.lie, (d + 1) * law.lie  # a set that has the value, that has it not
        one, both, neither = (self._share(t - 2, size) for size in (d, d - 1, d + 1))
        first = (one * inside, one * outside, both * inside, neither * outside)
        rows: list[tuple[Fraction, ...]] = [first, (first[1], first[0], first[2], first[3])]
        if t > 2:
            have = [self._share(t - 3, size) for size in (d - 1, d - 2, d)]
            third = [
                some * inside + (every - some) * outside for some, every in zip(have, (one, both, neither), strict=True)
            ]
            rows.append((third[0], third[0], third[1], third[2]))
        every = one + one + both + neither
        uniform = [share / every for share in (one, one, both, neither)]
        return (
            ValueLaws(
                rows=np.array(rows, dtype=np.float64),
                labels=tuple(range(len(rows))),
                blanket=np.array(uniform, dtype=np.float64),
                weight=float(self._gamma()),
                pairs=((0, 1),),
            ),
        )

    def _share(self, others: int, chosen: int) -> Fraction:
        """Return C(others, chosen) / C(T - 1, d): how many sets there are, over how many one first target has."""
        return Fraction(math.comb(others, chosen) if chosen >= 0 else 0, math.comb(self.targets - 1, self.flood))

    def describe(self) -> str:
        more = f", and to {self.flood:,} further targets" if self.flood else ""
        if self.sigma == 0:
            return f"every message goes to its own one of {self.targets:,} targets{more} (no sampling)"
        return (
            f"every message goes to its own one of {self.targets:,} targets, with probability {self.sigma:.4g} to a "
            f"random {'other ' if self.convention == 'exclusive' else ''}one{more} "
            f"(target sampling, local epsilon {self.local_epsilon:.4g})"
        )
