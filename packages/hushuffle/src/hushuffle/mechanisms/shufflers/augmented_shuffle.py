"""The augmented shuffle: the shuffler keeps a sample of the reports and adds dummies of each value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import Problem
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.mechanisms.shufflers.base import MOST, PerValue
from hushuffle.mechanisms.shufflers.dummy_law import SCALE, DummyLaw
from hushuffle.mechanisms.shufflers.source import GeometricDummies, Source
from hushuffle.model import number

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness


LARGEST_PURE: Final = 40.0
"""Largest epsilon of `AugmentedShuffle.pure` (a larger pure guarantee gives no useful protection)."""

_HAIR: Final = 1e-12


@dataclass(frozen=True, kw_only=True)
class AugmentedShuffle(PerValue):
    """A trusted shuffler that samples reports, adds a random number of dummies of each of the k values, and shuffles.

    People send their values as they are (`RandomizedResponse(k=k, epsilon=math.inf)`), encrypted so that the shuffler
    cannot read them. Privacy rests on a shuffler that keeps its sample and its dummies secret. The guarantee stays the
    same if other participants collude with the analyst, since it does not rest on other people's reports.

    Args:
        each: distribution of the number of dummies, drawn for each value: a `DummyLaw` or `GeometricDummies`.
        kept: the probability that a report is kept, in (0, 1]; rounded down to a multiple of 2**-64.

    Raises:
        InvalidInputError: a number is out of range, or there are more than 2**31 dummies on average.

    Source: Murakami, Sei, Eriguchi 2025; docs/theory/histograms.md, Theorem 5 and Corollary 6.

    >>> import hushuffle as hs
    >>> truth = hs.RandomizedResponse(k=100, epsilon=float("inf"))
    >>> survey = hs.Protocol(randomizer=truth, shuffler=hs.AugmentedShuffle.pure(epsilon=1.0), n=50_000)
    >>> found = hs.dp.epsilon(survey, delta=0.0)
    >>> found.kind, round(found.upper, 9)
    ('exact', 1.0)
    """

    each: DummyLaw | GeometricDummies
    kept: float = 1.0
    table = SettingsTable(
        kind="augmented",
        about="The shuffler keeps a sample of the reports and adds dummies of each category; all leave in a random "
        "order.",
        settings={
            "trusted": Setting(
                type="true",
                about="Must be true: the operator samples, adds dummies and keeps their number secret. Nothing else "
                "protects a value.",
            ),
            "pure_epsilon": Setting(
                type="number",
                about="Central epsilon in nats at delta = 0; it determines `kept` and the distribution of the dummies.",
                limits={"gt": 0, "le": LARGEST_PURE},
                optional=True,
            ),
            "each": Setting(
                type="endless dummies",
                about="Instead of `pure_epsilon`: distribution of the number of dummies of a category, drawn for each "
                "category.",
                optional=True,
            ),
            "kept": Setting(
                type="number",
                about="With `each`: probability that the shuffler keeps a report (default: 1).",
                limits={"gt": 0, "le": 1},
                optional=True,
            ),
        },
        either=("pure_epsilon", "each"),
        example="pure_epsilon = 1.0, which needs no delta",
        messages=True,
        calibrated="nothing",
        trusted_with="It is also trusted to sample reports, to draw the number of dummies of each category, and to "
        "keep both secret. Otherwise nothing hides an answer.",
    )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> AugmentedShuffle:
        if "pure_epsilon" not in settings:
            return cls(**settings)
        if "kept" in settings:
            _checks.reject("kept", "left out beside pure_epsilon", settings["kept"], "It follows from pure_epsilon.")
        return cls.pure(epsilon=settings["pure_epsilon"])

    def problems(self, *, truthful: bool, n: int | None, k: int | None) -> Iterator[Problem]:
        yield from super().problems(truthful=truthful, n=n, k=k)
        if k is not None and k * self.each.mean > MOST:
            rule = f"must have a mean of at most {number(MOST / k, up=False, digits=3)} for {k:,} categories"
            yield Problem(key="shuffler.each", rule=rule, value=f"{self.each.mean:g}")

    @property
    def assumed(self) -> Mapping[str, str]:
        return {"shuffler": " It adds the described dummies, and keeps their number secret."}

    def __post_init__(self) -> None:
        _checks.of_type("each", self.each, DummyLaw, GeometricDummies)
        chance = _checks.probability("kept", self.kept, low_open=True)
        object.__setattr__(self, "kept", int(Fraction(chance) * SCALE) / SCALE)

    @classmethod
    def pure(cls, *, epsilon: float) -> AugmentedShuffle:
        """Return the augmented shuffle with geometric dummies whose guarantee is epsilon (nats) at delta = 0.

        Reports are kept with probability 1 - e**(-epsilon/2); the dummies' geometric ratio is 1/(1 + e**(epsilon/2)).

        Raises:
            InvalidInputError: epsilon is not > 0, or beyond 40.
        """
        wanted = _checks.positive("epsilon", epsilon)
        if wanted > LARGEST_PURE:
            _checks.reject("epsilon", f"at most {LARGEST_PURE:g}", wanted)
        # The probability and the ratio are slightly reduced, so that the guarantee holds despite rounding.
        retention, ratio = -math.expm1(-wanted / 2) * (1 - _HAIR), (1 + _HAIR) / (1 + math.exp(wanted / 2))
        return cls(each=GeometricDummies(ratio=ratio), kept=retention)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (Source(count=self.each, each=True),)

    def thinned(self, reports: npt.NDArray[Any], *, rng: Randomness) -> npt.NDArray[Any]:
        if self.kept == 1:
            return reports
        return reports[rng.words(reports.shape[0]) < np.uint64(int(Fraction(self.kept) * SCALE))]

    def describe(self) -> str:
        law = self.each
        share = "all reports" if self.kept == 1 else f"each report with probability {self.kept:.6g}"
        return (
            f"a shuffler keeps {share}, adds for each value a random number of dummies with mean {law.mean:,.6g}, and "
            "releases all in a uniformly random order"
        )
