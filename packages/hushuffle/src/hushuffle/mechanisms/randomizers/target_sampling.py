"""Sampling and flooding: a message goes to the true or a random target, and further messages go to other targets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args

import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers
from hushuffle.mechanisms.randomizers.subset_selection import LARGEST_SET, SetReports
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.model.citation import LADJEL
from hushuffle.randomness import SCALE, Randomness

Convention = Literal["uniform", "exclusive"]


@dataclass(frozen=True, kw_only=True)
class TargetSampling(SetReports):
    """Send to the true target with probability 1 - sigma, else to a random target; then to `flood` further targets.

    Convention "uniform": the random target is any of all T, the true one included, so each other target has probability
    nu = sigma/T. "exclusive": the random target is any other target, so nu = sigma/(T - 1). Messages to other targets
    carry no data. The `flood` further targets are distinct, uniform, and not the first one. A report is the sorted row
    of the flood + 1 targets, shape (n, flood + 1); with flood = 0 it is the target, shape (n,). The mechanism is
    `SubsetSelection` of flood + 1 targets, and randomized response at flood = 0.

    Args:
        targets: number of targets T, >= 2.
        sigma: the probability of a random target, in [0, 1]; at most (T - 1)/T with "exclusive".
        flood: number of further messages, 0 to T - 1 (a broadcast), at most 1000.
        convention: "uniform" or "exclusive".

    Raises:
        InvalidInputError: an argument is out of range.

    Source: Ladjel, Anciaux, Bellet, Scerri 2021 (sampling and flooding); docs/theory/traffic.md, Theorem 1.

    >>> import hushuffle as hs
    >>> sampling = hs.TargetSampling(targets=20, sigma=0.2)
    >>> round(float(sampling.law().symmetric.truth), 3), round(sampling.local_epsilon, 4)
    (0.81, 4.3944)
    """

    targets: int
    sigma: float
    flood: int = 0
    convention: Convention = "uniform"
    threshold: int = field(init=False, repr=False, compare=False)
    sized = "targets"
    sources = (LADJEL,)
    table = SettingsTable(
        kind="target-sampling",
        about="Messages go to targets (the categories), and with some probability to a random target.",
        settings={
            "sigma": Setting(
                type="number", about="Probability that a message goes to a random target.", limits={"ge": 0, "le": 1}
            ),
            "flood": Setting(
                type="integer",
                about="Number of further targets that get a message (default: 0).",
                limits={"ge": 0, "le": LARGEST_SET - 1},
                optional=True,
            ),
            "convention": Setting(
                type="choice",
                about='Whether the random target may be the true target ("uniform", the default) or not ("exclusive").',
                choices=get_args(Convention),
                optional=True,
            ),
        },
    )

    def __post_init__(self) -> None:
        targets = _checks.integer("targets", self.targets, low=2, high=2**40)
        sigma = _checks.probability("sigma", self.sigma)
        flood = _checks.integer("flood", self.flood, low=0, high=min(targets - 1, LARGEST_SET - 1))
        if self.convention not in ("uniform", "exclusive"):
            _checks.reject("convention", "uniform or exclusive", self.convention)
        # A Bernoulli trial with this threshold selects the true target; rounded down, so never less private than asked.
        threshold = math.floor(SCALE * (1 - Fraction(sigma)))
        if self.convention == "exclusive" and threshold * targets < SCALE:
            if sigma > math.nextafter((targets - 1) / targets, 1):
                hint = "Above this limit, the true target would be the least likely."
                _checks.reject("sigma", f"at most (T - 1)/T = {(targets - 1) / targets:.6g} if exclusive", sigma, hint)
            threshold = -(-SCALE // targets)
        _checks.set_fields(self, targets=targets, sigma=sigma, flood=flood, threshold=threshold)

    @property
    def size(self) -> int:
        return self.flood + 1

    @property
    def coin(self) -> int:
        return self.threshold

    @property
    def others_only(self) -> bool:
        return self.convention == "exclusive"

    def sample(self, values: npt.ArrayLike, *, rng: Randomness) -> tuple[Integers, Flags]:
        """Return reports with the distribution of `randomize`, and whether each was drawn as truthful, shape (n,).

        A report is drawn as truthful with probability theta = mu - nu, for every true target; otherwise it is drawn
        from the blanket and may be true by chance. The second array reveals nothing about the targets of the
        reports that were drawn from the blanket.

        Source: docs/theory/traffic.md, Theorem 2.

        >>> import hushuffle as hs
        >>> sampling = hs.TargetSampling(targets=2, sigma=0.5)
        >>> reports, on_purpose = sampling.sample([1] * 1000, rng=hs.reproducible(1))
        >>> int(reports.sum()), int(on_purpose.sum())
        (762, 530)
        """
        first, honest = self._first_values(values, rng)
        reports = self._completed(first, rng)
        if self.others_only:
            # An honest message is one of the blanket's with probability lie/truth.
            law = self.first
            honest = honest & rng.coins(math.floor(SCALE * (law.truth - law.lie) / law.truth), first.size)
        return reports, honest

    def describe(self) -> str:
        more = f", and to {self.flood:,} further targets" if self.flood else ""
        if self.sigma == 0:
            return f"every message goes to its own one of {self.targets:,} targets{more} (no sampling)"
        return (
            f"every message goes to its own one of {self.targets:,} targets, with probability {self.sigma:.4g} to a "
            f"random {'other ' if self.convention == 'exclusive' else ''}one{more} "
            f"(target sampling, local epsilon {self.local_epsilon:.4g})"
        )
