"""Numbers between public bounds: their mean, distribution and quantiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hushuffle.answers.base import Answer, Estimated, Fakes, error_facts, moved_by
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.settings import Setting
from hushuffle.mechanisms.settings import SettingsTable as Keys
from hushuffle.model import Cell, Histogram, NumberGrid, Table, number
from hushuffle.model.number_grid import LARGEST

if TYPE_CHECKING:
    from hushuffle.estimation.numbers import NumberEstimate

# The estimators are imported where they are used: a mistake in a file shows without them.
# ruff: noqa: PLC0415

_PUBLIC: Final = "Choose the bounds before the collection: bounds taken from the answers reveal the extreme answers."
_ROUNDING: Final = 2
"""Steps between levels that an interval of a quantile spans even without noise."""


@dataclass(frozen=True)
class Numbers(Answer):
    """Numbers from `low` to `high`, rounded stochastically to `levels` equally spaced levels.

    Source: docs/theory/numbers.md.

    >>> from hushuffle import RandomizedResponse, UniformShuffle
    >>> ages = Numbers(low=0, high=100, levels=11)
    >>> survey = Protocol(randomizer=RandomizedResponse(k=11, epsilon=3.0), shuffler=UniformShuffle(), n=10_000)
    >>> print(ages.words(ages.error(survey)).partition("; ")[2])
    numbers outside count as the nearer bound. Standard error of the mean: at most 0.4848.
    >>> ages.tables(0.5)[0].rows[0]
    ('standard error of the mean, at most', 0.5)
    """

    keys: ClassVar[Keys | None] = Keys(
        kind="number",
        about='"number": answers are numbers from `low` to `high`, without categories.',
        settings={
            "low": Setting(
                type="number",
                about='With kind = "number": the smallest number, public; smaller answers are raised to it.',
            ),
            "high": Setting(
                type="number",
                about='With kind = "number": the largest number, public; larger answers are lowered to it.',
            ),
            "levels": Setting(
                type="integer",
                about=(
                    'With kind = "number": number of equally spaced levels, to which answers are stochastically '
                    "rounded."
                ),
                limits={"ge": 2, "le": LARGEST},
            ),
        },
        example='kind = "number", low = 0, high = 100, levels = 21',
    )
    estimated_as: ClassVar[str] = "numbers"
    topic: ClassVar[str] = "The mean of the numbers"
    hints: ClassVar[Mapping[str, str]] = {"low": _PUBLIC, "high": _PUBLIC, "levels": "For example levels = 21."}

    low: float
    high: float
    levels: int

    def __post_init__(self) -> None:
        NumberGrid(low=self.low, high=self.high, levels=self.levels)  # raises an error if the keys do not fit

    @property
    def grid(self) -> NumberGrid:
        return NumberGrid(low=self.low, high=self.high, levels=self.levels)

    @property
    def coded(self) -> NumberGrid:
        return self.grid

    @property
    def labels(self) -> tuple[str, ...]:
        return self.grid.labels

    def error(self, protocol: Protocol) -> float:
        from hushuffle.estimation.numbers import mean_error

        return mean_error(protocol, grid=self.grid)

    def words(self, error: float | None) -> str:
        of_mean = "" if error is None else f" Standard error of the mean: at most {number(error, up=True)}."
        return (
            f"Numbers from {self.low:g} to {self.high:g} are rounded stochastically to {self.levels:,} levels, "
            f"{self.grid.step:.4g} apart; numbers outside count as the nearer bound.{of_mean}"
        )

    def tables(self, error: float) -> tuple[Table, ...]:
        return (
            Table(
                key="mean-of-numbers",
                title="The mean of the numbers",
                caption=(
                    f"Numbers from {self.low:g} to {self.high:g} are rounded stochastically to {self.levels:,} levels. "
                    "Doubling high - low doubles the error. Numbers outside count as the nearer bound and bias the "
                    "mean."
                ),
                columns=("figure", "value"),
                rows=(
                    ("standard error of the mean, at most", error),
                    (
                        "standard error of the mean, divided by the distance between the bounds",
                        error / (self.high - self.low),
                    ),
                    ("step between two levels", self.grid.step),
                ),
            ),
        )

    def facts(self, error: float | None, n: int) -> Mapping[str, Cell]:
        numbers: dict[str, Cell] = {"numbers": f"{self.low:g} to {self.high:g}, {self.levels:,} levels"}
        return numbers if error is None else numbers | error_facts({"mean": error, "sum": error * n})

    def estimated(self, counts: Histogram, *, protocol: Protocol, confidence: float, fakes: Fakes) -> Estimated:
        from hushuffle.estimation.numbers import estimate_numbers

        estimate = estimate_numbers(counts, protocol=protocol, grid=self.grid)
        moved = self._moved(estimate, fakes)
        facts: dict[str, Any] = {**estimate.facts(confidence), "fake_users": moved}
        rows = [("Mean", f"{estimate.mean:.4g}", f"{facts['low']:.4g} to {facts['high']:.4g}")]
        for quantile in facts["quantiles"]:
            at = "Median" if quantile["share"] == 0.5 else f"{100 * quantile['share']:g}% are at most"
            rows.append((at, f"{quantile['value']:.4g}", f"{quantile['low']:.4g} to {quantile['high']:.4g}"))
        meaning = (
            f"Standard error of the mean: {estimate.standard_error:.3g}. Each interval separately has its confidence, "
            "for numbers clipped to the bounds. The table shows the shares of the levels after rounding."
        )
        return Estimated(facts=facts, rows=tuple(rows), notes=(moved["in_words"], meaning, *self._widths(facts)))

    def _moved(self, estimate: NumberEstimate, fakes: Fakes) -> dict[str, Any]:
        """Maximal poisoning gain of Sybil clients for the mean of numbers."""
        lowered, raised = estimate.moved(fakes.reports)
        honest = fakes.reports / estimate.n * (self.high - self.low)
        up, down, following = (number(end, up=True, digits=3) for end in (raised, lowered, honest))
        limits = f"up by at most {up} or down by at most {down}"
        return moved_by(fakes, raised, lowered, honest, f"the mean {limits} ({following} if they follow the protocol)")

    def _widths(self, facts: Mapping[str, Any]) -> Iterator[str]:
        """Sentences on why the widest interval of a quantile is wide, and on what makes it narrower."""
        step = self.grid.step
        inside = [one for one in facts["quantiles"] if self.low < one["low"] and one["high"] < self.high]
        if not inside:
            return
        widest = max(inside, key=lambda one: float(one["high"] - one["low"]))
        wide = round((widest["high"] - widest["low"]) / step)
        noise = max(wide - _ROUNDING, 0)
        of = f"The widest of these intervals of a quantile spans {wide:,} steps of {step:.4g} between levels"
        if not noise:
            yield (
                f"{of}: all of them come from rounding, and none from noise. More levels (population.levels) narrow "
                "the interval; more people do not."
            )
            return
        yield (
            f"{of}: {_ROUNDING} steps come from rounding and {noise:,} from noise. More people or a larger local "
            "epsilon reduce the noise. More levels make steps smaller, and increase the noise of each level."
        )
