"""`Chart`, `HeatMap`, `PointMap`, `Diagram`: the data of pictures, which `hushuffle.report` draws."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final, Literal, Self

from hushuffle import _checks
from hushuffle.errors import MissingDependencyError
from hushuffle.model.bound import Bound

_WIDTH, _HEIGHT, _LEFT, _BELOW, _RIGHT = 560, 300, 70, 44, 28
_COLORS: Final = ("#1b5fa8", "#b3541e", "#2f7d4f", "#7a4fa3", "#8a6d1c", "#555555")


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
        return _html(self)

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


def _html(chart: Chart) -> str:
    """Return the HTML with which a notebook displays a chart: an SVG picture, its title and its caption."""
    across = _scale([x for line in chart.series for x in line.x], _LEFT, _WIDTH - _RIGHT, log=chart.x_log)
    both = [y for line in chart.series for y in (*line.lower, *line.upper)]
    upwards = _scale(both, _HEIGHT - _BELOW, 10, log=chart.y_log)
    parts = [
        f'<rect x="{_LEFT}" y="10" width="{_WIDTH - _RIGHT - _LEFT}" height="{_HEIGHT - _BELOW - 10}" fill="none" '
        'stroke="#999"/>'
    ]
    for value, place in across.ticks:
        parts.append(_text(place, _HEIGHT - _BELOW + 16, f"{value:.4g}", "middle"))
    for value, place in upwards.ticks:
        parts.append(_text(_LEFT - 6, place + 4, f"{value:.3g}", "end"))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, chart.x_label, "middle"))
    for number, line in enumerate(chart.series):
        color = _COLORS[number % len(_COLORS)]
        top, bottom = (_points(line.x, y, across, upwards) for y in (line.upper, line.lower))
        outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*top, *bottom[::-1]])
        parts.append(f'<polygon points="{outline}" fill="{color}" fill-opacity="0.25" stroke="none"/>')
        for edge in (top, bottom):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        parts.append(_text(_WIDTH - _RIGHT - 6, 26 + 15 * number, line.label, "end", color))
    picture = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" aria-label="{escape(chart.title)}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    )
    caption = f"{chart.y_label}. {chart.caption}".strip()
    return (
        f"<figure><strong>{escape(chart.title)}</strong>\n{picture}<figcaption>{escape(caption)}</figcaption></figure>"
    )


@dataclass(frozen=True, kw_only=True)
class _Scale:
    place: Callable[[float], float | None]
    ticks: Sequence[tuple[float, float]]


def _scale(values: Sequence[float], start: float, end: float, *, log: bool) -> _Scale:
    """Return the scale that maps `values` to positions from `start` to `end`; it maps undrawable values to None."""
    shown = [value for value in values if math.isfinite(value) and (value > 0 or not log)] or [1.0]
    low, high = min(shown), max(shown)
    low, high = (low, high) if low < high else (low - 0.1 * abs(low), high + 0.1 * abs(high) or 1.0)

    def turned(value: float) -> float:
        return math.log(value) if log else value

    def place(value: float) -> float | None:
        if not math.isfinite(value) or (log and value <= 0):
            return None
        return start + (end - start) * (turned(value) - turned(low)) / (turned(high) - turned(low))

    middle = math.sqrt(low * high) if log else (low + high) / 2
    marks = [(value, place(value)) for value in (low, middle, high)]
    return _Scale(place=place, ticks=[(value, where) for value, where in marks if where is not None])


def _points(x: Sequence[float], y: Sequence[float], across: _Scale, upwards: _Scale) -> list[tuple[float, float]]:
    places = [(across.place(a), upwards.place(b)) for a, b in zip(x, y, strict=True)]
    return [(a, b) for a, b in places if a is not None and b is not None]


def _text(x: float, y: float, words: str, anchor: str, color: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(words)}</text>'


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
