"""Values as JSON can say them: what `result.json` and `study.json` share."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from hushuffle import _checks
from hushuffle.model import Bound, Cell, Chart, Citation, Finding, Panel, PointMap, Table, Warned


def compact(document: dict[str, Any]) -> str:
    r"""Return `document` as strict JSON, two spaces in; a list without lists or objects in it on one line.

    >>> print(compact({"x": [1, 2], "rows": [[1], [2]]}), end="")
    {
      "x": [1, 2],
      "rows": [
        [1],
        [2]
      ]
    }
    """
    return _compact(document, "\n") + "\n"


def _compact(value: Any, start: str) -> str:
    inner = f"{start}  "
    if isinstance(value, dict) and value:
        items = (f"{json.dumps(key)}: {_compact(item, inner)}" for key, item in value.items())
        return f"{{{inner}{f',{inner}'.join(items)}{start}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return f"[{inner}{f',{inner}'.join(_compact(item, inner) for item in value)}{start}]"
    return json.dumps(value, allow_nan=False)


def finding(learned: Finding) -> dict[str, Any]:
    """Return `learned` with its bound."""
    return {
        "question": learned.question,
        "adversary": learned.adversary,
        "sentence": learned.sentence,
        "proof": learned.proof,
        "bound": bound(learned.bound),
    }


def bound(figure: Bound) -> dict[str, Any]:
    """Return `figure` with its kind, witness and sources."""
    witness = figure.witness
    return {
        "lower": number("bound.lower", figure.lower),
        "upper": number("bound.upper", figure.upper),
        "kind": figure.kind,
        "unit": figure.unit,
        "confidence": None if figure.confidence is None else number("bound.confidence", figure.confidence),
        "witness": None
        if witness is None
        else {
            "family": witness.family,
            "others": [int(count) for count in witness.others],
            "target": [int(value) for value in witness.target],
        },
        "sources": [citation(source) for source in figure.sources],
    }


def chart(drawn: Chart) -> dict[str, Any]:
    """Return the lines of `drawn`."""
    return {
        "key": drawn.key,
        "title": drawn.title,
        "caption": drawn.caption,
        "x_label": drawn.x_label,
        "y_label": drawn.y_label,
        "x_log": drawn.x_log,
        "y_log": drawn.y_log,
        "here": None if drawn.here is None else number("chart.here", drawn.here),
        "series": [
            {
                "label": series.label,
                "x": numbers("series.x", series.x),
                "lower": numbers("series.lower", series.lower),
                "upper": numbers("series.upper", series.upper),
            }
            for series in drawn.series
        ],
    }


def table(made: Table) -> dict[str, Any]:
    """Return the rows of `made`, a figure in a cell with all that belongs to it."""
    return {
        "key": made.key,
        "title": made.title,
        "caption": made.caption,
        "columns": list(made.columns),
        "rows": [[_cell(cell) for cell in row] for row in made.rows],
    }


def _cell(cell: Cell) -> Any:
    if isinstance(cell, Bound):
        return bound(cell)
    return cell if isinstance(cell, str | int) else number("cell", cell)


def point_map(drawn: PointMap) -> dict[str, Any]:
    """Return the points of `drawn`, panel by panel."""
    return {
        "key": drawn.key,
        "title": drawn.title,
        "caption": drawn.caption,
        "x_label": drawn.x_label,
        "y_label": drawn.y_label,
        "labels": list(drawn.labels),
        "panels": [_panel(panel) for panel in drawn.panels],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "label": panel.label,
        "x": numbers("panel.x", panel.x),
        "y": numbers("panel.y", panel.y),
        "values": [int(value) for value in panel.values],
    }


def citation(source: Citation) -> dict[str, Any]:
    """Return `source`."""
    return {"key": source.key, "text": source.text, "where": source.where}


def warning(warned: Warned) -> dict[str, Any]:
    """Return `warned`."""
    return {"key": warned.key, "sentence": warned.sentence, "advice": warned.advice}


def pairs(items: Iterable[tuple[str, str]], second: str) -> list[dict[str, str]]:
    """Return names and what belongs to them, under the key `second`.

    >>> pairs((("numpy", "2.0"),), "version")
    [{'name': 'numpy', 'version': '2.0'}]
    """
    return [{"name": name, second: value} for name, value in items]


def numbers(name: str, values: Iterable[float]) -> list[float | str]:
    """Return `values`; `name` is what an error calls them."""
    return [number(name, value) for value in values]


def number(name: str, value: float) -> float | str:
    """Return `value` as JSON can say it."""
    if math.isnan(value):
        _checks.reject(name, "a number", "nan")
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return float(value)
