"""`PointMap`: people on a map, coloured by what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle import _checks


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture of a `PointMap`: a point for each (x, y), coloured by the category `values`, codes into labels.

    Raises:
        InvalidInputError: x, y and values are not of one length.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.y) == len(self.values):
            _checks.reject("x, y, values", "of one length", (len(self.x), len(self.y), len(self.values)))


@dataclass(frozen=True, kw_only=True)
class PointMap:
    """Pictures side by side on the same axes: the same people, coloured by what is seen of them.

    `labels` name the categories; `caption` is one plain sentence.

    Raises:
        InvalidInputError: a code is not one of 0..len(labels)-1.
    """

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    labels: tuple[str, ...]
    panels: tuple[Panel, ...]

    def __post_init__(self) -> None:
        for panel in self.panels:
            if panel.values and not 0 <= min(panel.values) <= max(panel.values) < len(self.labels):
                rule = f"codes of the {len(self.labels)} labels"
                _checks.reject("values", rule, f"<{min(panel.values)} to {max(panel.values)}>")
