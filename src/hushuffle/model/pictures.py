"""`Chart`, `HeatMap`, `PointMap`, `Diagram`: pictures as values; `report` draws them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

from hushuffle import _checks
from hushuffle.model.bound import Bound


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a chart: points x with a certified band [lower, upper] (equal: a plain line).

    Raises:
        InvalidInputError: a number is nan.
    """

    label: str
    x: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self) -> None:
        _checks.no_nan("x, lower, upper", self.x, self.lower, self.upper)

    @classmethod
    def through(cls, label: str, x: Iterable[float], figures: Iterable[Bound | float]) -> Self:
        """Return the line through `figures`: plain numbers, or of a `Bound` the ends that say something.

        A bracket and an estimate give a band; an upper bound is a line at its upper end, a lower bound at its lower.

        >>> import hushuffle as hs
        >>> Series.through("error", [1, 2], [0.5, hs.Bound(lower=0.1, upper=0.2, kind="bracket", unit="")]).upper
        (0.5, 0.2)
        """
        ends = [_ends(figure) for figure in figures]
        return cls(
            label=label,
            x=tuple(float(place) for place in x),
            lower=tuple(low for low, _ in ends),
            upper=tuple(high for _, high in ends),
        )


def _ends(figure: Bound | float) -> tuple[float, float]:
    """Return from where to where a figure is drawn."""
    if not isinstance(figure, Bound):
        return float(figure), float(figure)
    if figure.kind == "upper":
        return figure.upper, figure.upper
    if figure.kind == "lower":
        return figure.lower, figure.lower
    return figure.lower, figure.upper


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure against one parameter. `here` marks this deployment's x; `caption` is one plain sentence."""

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    here: float | None = None


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """A matrix as a picture: `values[row][column]`, named rows (`y`) and columns (`x`).

    `log` colours by the logarithm.

    Raises:
        InvalidInputError: not one row for each name in `y`, not one value for each name in `x`, or a value is nan.
    """

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    log: bool = False

    def __post_init__(self) -> None:
        if len(self.values) != len(self.y) or any(len(row) != len(self.x) for row in self.values):
            shape = f"{len(self.values)} rows of {sorted({len(row) for row in self.values})}"
            _checks.reject("values", f"{len(self.y)} rows of {len(self.x)}", shape)
        _checks.no_nan("values", *self.values)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture of a `PointMap`: a point for each (x, y), coloured by the category `values`, codes into labels.

    Raises:
        InvalidInputError: x, y and values are not of one length, or a number is nan.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.y) == len(self.values):
            _checks.reject("x, y, values", "of one length", (len(self.x), len(self.y), len(self.values)))
        _checks.no_nan("x, y", self.x, self.y)


@dataclass(frozen=True, kw_only=True)
class PointMap:
    """Pictures side by side on the same axes: the same people, coloured by what is seen of them.

    `labels` name the categories; `caption` is one plain sentence. Where categories are of two families, "warm" and
    "cool" say for each of them in which colours it is drawn.

    Raises:
        InvalidInputError: a code is not one of 0..len(labels)-1, or not one family for each label.
    """

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    labels: tuple[str, ...]
    panels: tuple[Panel, ...]
    families: tuple[Literal["warm", "cool"], ...] = ()

    def __post_init__(self) -> None:
        if self.families and len(self.families) != len(self.labels):
            _checks.reject("families", f"one for each of the {len(self.labels)} labels", len(self.families))
        for panel in self.panels:
            if panel.values and not 0 <= min(panel.values) <= max(panel.values) < len(self.labels):
                rule = f"codes of the {len(self.labels)} labels"
                _checks.reject("values", rule, f"<{min(panel.values)} to {max(panel.values)}>")


@dataclass(frozen=True, kw_only=True)
class Diagram:
    """A drawing: `svg` is an SVG document of shapes and text, `text` says the same in lines of words.

    `caption` is one plain sentence. A report shows the SVG only if it holds nothing but shapes, text and arrow heads:
    no script, no style, no address.

    >>> Diagram(key="d", title="A box", caption="", svg='<svg viewBox="0 0 9 9"/>', text="one box").text
    'one box'
    """

    key: str
    title: str
    caption: str
    svg: str
    text: str
