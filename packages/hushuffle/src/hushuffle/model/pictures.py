"""`Chart`, `HeatMap`, `PointMap`, `Diagram`: the data of pictures, which `hushuffle.report` draws."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from hushuffle import _checks
from hushuffle.errors import MissingDependencyError
from hushuffle.model import notebook
from hushuffle.model.bound import Bound


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a chart: at each x a certified band [lower, upper]; equal bounds are drawn as a plain line.

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
        """Return the series of `figures` against `x`.

        A bracket or an estimate becomes a band. A plain number, an upper bound or a lower bound becomes a line.

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
    """Return the smallest and the largest y value at which a figure is drawn."""
    if not isinstance(figure, Bound):
        return float(figure), float(figure)
    if figure.kind == "upper":
        return figure.upper, figure.upper
    if figure.kind == "lower":
        return figure.lower, figure.lower
    return figure.lower, figure.upper


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A line chart of a figure against a parameter; `here` is the x of the deployment, `caption` is a sentence."""

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    here: float | None = None

    def _repr_html_(self) -> str:
        lines = [notebook.Line(label=one.label, x=one.x, lower=one.lower, upper=one.upper) for one in self.series]
        axes = notebook.Axes(x_label=self.x_label, y_label=self.y_label, x_log=self.x_log, y_log=self.y_log)
        return notebook.chart(self.title, lines, axes=axes, more=self.caption)

    def plot(self, axes: Any = None) -> Any:
        """Draw the chart with matplotlib on `axes` (default: new axes), and return the axes.

        A certified band is shaded between its lower and its upper bound.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError as error:
            message = "Chart.plot needs matplotlib. Install it with: pip install matplotlib"
            raise MissingDependencyError(message) from error
        axes = pyplot.subplots()[1] if axes is None else axes
        for series in self.series:
            (line,) = axes.plot(series.x, series.upper, label=series.label)
            if series.lower != series.upper:
                axes.plot(series.x, series.lower, color=line.get_color())
                axes.fill_between(series.x, series.lower, series.upper, color=line.get_color(), alpha=0.3)
        if self.here is not None:
            axes.axvline(self.here, color="gray", linestyle=":")
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        axes.set_xscale("log" if self.x_log else "linear")
        axes.set_yscale("log" if self.y_log else "linear")
        axes.legend()
        return axes


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """A matrix drawn in colours: `values[row][column]`, with the names `y` of the rows and `x` of the columns.

    If `log` is set, colours follow the logarithm of the value.

    Raises:
        InvalidInputError: the numbers of rows and names in `y` differ, the numbers of values in a row and names in `x`
            differ, or a value is nan.
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
    """One picture of a `PointMap`: a point at each (x, y), whose colour is that of its category.

    `values` are the codes of the categories: positions in `PointMap.labels`.

    Raises:
        InvalidInputError: x, y and values differ in length, or a number is nan.
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
    """Several pictures of the same people side by side; each picture shows another value of each person by colour.

    `labels` name the categories; `caption` is one plain sentence. `families` assigns each category "warm" or "cool"
    colours; without it the colours of all categories come from one palette.

    Raises:
        InvalidInputError: a code is not one of 0..len(labels)-1, or the numbers of families and labels differ.
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
    """A drawing: `svg` is an SVG document of shapes and text, `text` is the same content as plain lines of text.

    `caption` is one plain sentence. A report shows the SVG only if it consists of shapes, text and arrow heads, without
    any script, style or address.

    >>> Diagram(key="d", title="A box", caption="", svg='<svg viewBox="0 0 9 9"/>', text="one box").text
    'one box'
    """

    key: str
    title: str
    caption: str
    svg: str
    text: str
