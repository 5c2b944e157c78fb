"""Numbers compared with a public threshold: the share of people whose number is larger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hushuffle import _checks
from hushuffle.answers.base import Answer, Estimated, Fakes, error_facts, moved_by
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.settings import Setting
from hushuffle.mechanisms.settings import SettingsTable as Keys
from hushuffle.model import Cell, Histogram, Table, number
from hushuffle.tables.labels import NumberConditions

if TYPE_CHECKING:
    from hushuffle.estimation.readout import FrequencyVariance

# The estimators are imported where they are used: a mistake in a file shows without them.
# ruff: noqa: PLC0415

_LARGEST: Final = 2**53
"""Conditions compare smaller numbers exactly."""


@dataclass(frozen=True)
class Threshold(Answer):
    """Numbers, of which a device randomizes only whether they are larger than `above`.

    >>> from hushuffle import RandomizedResponse, UniformShuffle
    >>> late = Threshold(above=30)
    >>> late.labels
    ('at most 30', 'above 30')
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=3.0), shuffler=UniformShuffle(), n=10_000)
    >>> print(late.words(late.error(survey)).partition(". ")[2])
    Standard error of the share above 30: at most 0.002349.
    """

    keys: ClassVar[Keys | None] = Keys(
        kind="threshold",
        about='"threshold": answers are numbers; a device sends only whether its number is larger than `above`.',
        settings={
            "above": Setting(
                type="number",
                about=(
                    'With kind = "threshold": the threshold, public; the share of people with a larger number is '
                    "estimated."
                ),
            ),
        },
        example='kind = "threshold", above = 30',
    )
    estimated_as: ClassVar[str] = "share_above"
    topic: ClassVar[str] = "The share above the threshold"
    hints: ClassVar[Mapping[str, str]] = {
        "above": "For example above = 30. Choose the threshold before the collection: the file and the release show it."
    }

    above: float

    def __post_init__(self) -> None:
        if not abs(_checks.finite("above", self.above)) < _LARGEST:
            _checks.reject("above", "between -2**53 and 2**53", f"{self.above:g}")

    @property
    def labels(self) -> tuple[str, str]:
        return f"at most {self._shown}", f"above {self._shown}"

    @property
    def coded(self) -> NumberConditions:
        at_most, above = self.labels
        return NumberConditions({at_most: f"<= {float(self.above)!r}", above: f"> {float(self.above)!r}"})

    @property
    def _shown(self) -> str:
        value = float(self.above)
        return f"{value:.0f}" if value.is_integer() else repr(value)

    def error(self, protocol: Protocol) -> float:
        from hushuffle.estimation.readout import frequency_variance

        return math.sqrt(max(_variances(frequency_variance(protocol))))

    def words(self, error: float | None) -> str:
        sent = f"A device randomizes and sends only whether its number is larger than {self._shown}."
        if error is None:
            return sent
        return f"{sent} Standard error of the share above {self._shown}: at most {number(error, up=True)}."

    def tables(self, error: float) -> tuple[Table, ...]:
        return (
            Table(
                key="share-above-threshold",
                title=f"The share above {self._shown}",
                caption=(
                    f"A number counts if it is larger than {self._shown}; a number equal to {self._shown} does not "
                    "count. The errors hold for every true share."
                ),
                columns=("figure", "value"),
                rows=(
                    ("standard error of the share, at most", error),
                    ("half of the width of a 95 % interval, about", _quantile(0.95) * error),
                ),
            ),
        )

    def facts(self, error: float | None, n: int) -> Mapping[str, Cell]:
        rows: dict[str, Cell] = {"threshold": f"above {self._shown}"}
        if error is None:
            return rows
        return rows | error_facts({"share above the threshold": error, "number above the threshold": error * n})

    def estimated(self, counts: Histogram, *, protocol: Protocol, confidence: float, fakes: Fakes) -> Estimated:
        from hushuffle.estimation.frequency import estimate
        from hushuffle.estimation.readout import counted, frequency_variance

        share = float(estimate(counts, protocol=protocol).raw[1])
        none_above, all_above = _variances(frequency_variance(protocol))
        low, high = share_interval(
            share,
            none_above=none_above,
            all_above=all_above,
            half_step=counted(protocol)[0].slack / protocol.n,
            confidence=confidence,
        )
        at = min(max(share, 0.0), 1.0)
        error = math.sqrt(none_above + at * (all_above - none_above))
        moved = self._moved(protocol, fakes)
        facts: dict[str, Any] = {
            "above": self.above,
            "share": share,
            "standard_error": error,
            "low": low,
            "high": high,
            "fake_users": moved,
        }
        name = f"Share above {self._shown}"
        outside = "" if share == at else " The estimate is outside 0 to 1 by chance; the interval is not."
        meaning = f"Standard error of the share above {self._shown}: {number(error, digits=3)}.{outside}"
        return Estimated(
            facts=facts,
            rows=((name, f"{share:.4f}", f"{math.floor(low * 1e4) / 1e4:.4f} to {math.ceil(high * 1e4) / 1e4:.4f}"),),
            notes=(moved["in_words"], meaning),
        )

    def _moved(self, protocol: Protocol, fakes: Fakes) -> dict[str, Any]:
        """Maximal poisoning gain of Sybil clients for the share above the threshold."""
        from hushuffle.estimation.poisoning import poisoning_gain

        gain = poisoning_gain(protocol, fakes=fakes.reports)
        raised, lowered, honest = (float(end.upper) for end in (gain.raised, gain.lowered, gain.honest))
        up, down, following = (number(end, up=True) for end in (raised, lowered, honest))
        limits = f"up by at most {up} ({following} if they follow the protocol) or down by at most {down}"
        return moved_by(fakes, raised, lowered, honest, f"the share above {self._shown} {limits}")


def share_interval(
    share: float, *, none_above: float, all_above: float, half_step: float = 0.0, confidence: float
) -> tuple[float, float]:
    """Return a confidence interval inside [0, 1] for a true share, from its unbiased estimate `share`.

    The interval has the shares p that a two-sided normal test does not reject, with the variance of the estimate at p:
    `none_above` at 0, `all_above` at 1, and linear between. `half_step` is half of the change of the estimate by one
    report (continuity correction). An estimate outside [0, 1] is first moved to the nearer end. This brings it nearer
    to every p, so the interval stays valid, and it is never empty.

    Source: Wilson 1927; docs/theory/estimation.md, Theorem 1.

    >>> low, high = share_interval(-0.01, none_above=0.0004, all_above=0.0004, confidence=0.95)
    >>> round(low, 4), round(high, 4)
    (0.0, 0.0392)
    """
    at = min(max(share, 0.0), 1.0)
    if none_above == all_above == 0.0:
        return at, at
    z2, slope = _quantile(confidence) ** 2, all_above - none_above
    ends = []
    for sign in (-1, 1):
        # Each end solves (start - p)^2 = z^2 (none_above + slope p).
        start = at + sign * half_step
        square = z2 * (none_above + slope * start) + (z2 * slope / 2) ** 2
        ends.append(start + z2 * slope / 2 + sign * math.sqrt(max(square, 0.0)))
    low, high = ends
    return min(max(low, 0.0), at), max(min(high, 1.0), at)


def _variances(variance: FrequencyVariance) -> tuple[float, float]:
    """Return the variance of the estimated share above if no number is above, and if all are."""
    import numpy as np

    none_above, all_above = (float(variance.at(np.array(shares))[1]) for shares in ([1.0, 0.0], [0.0, 1.0]))
    return none_above, all_above


def _quantile(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2)
