"""`study.json`: a study for programs, strict JSON."""

from __future__ import annotations

from typing import Any

from hushuffle.model import Bound, Cell, HeatMap, Panel, PointMap, Study, Table
from hushuffle.report.json_values import bound, chart, citation, compact, finding, number, numbers, pairs, warning

STUDY_SCHEMA_VERSION = 1


def study_json(study: Study) -> str:
    """Return the text of `study.json`, as `study_json_schema` describes it; the same study, the same text.

    Infinite numbers are the strings "infinity" and "-infinity". Characters outside ASCII are escaped.

    Raises:
        InvalidInputError: a number of the study is nan.
    """
    return compact(_document(study))


def refuse_nan(study: Study) -> None:
    """Raise InvalidInputError if a number of `study` is nan, and do nothing else."""
    _document(study)


def _document(study: Study) -> dict[str, Any]:
    return {
        "schema_version": STUDY_SCHEMA_VERSION,
        "key": study.key,
        "title": study.title,
        "question": study.question,
        "answers": list(study.answers),
        "settings": pairs(study.settings, "value"),
        "findings": [finding(learned) for learned in study.findings],
        "tables": [_table(table) for table in study.tables],
        "charts": [chart(drawn) for drawn in study.charts],
        "maps": [_point_map(drawn) for drawn in study.maps],
        "heat_maps": [_heat_map(drawn) for drawn in study.heat_maps],
        "warnings": [warning(warned) for warned in study.warnings],
        "citations": [citation(source) for source in study.sources],
        "software": pairs(study.software, "version"),
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "key": table.key,
        "title": table.title,
        "caption": table.caption,
        "columns": list(table.columns),
        "rows": [[_cell(cell) for cell in row] for row in table.rows],
    }


def _cell(cell: Cell) -> Any:
    if isinstance(cell, Bound):
        return bound(cell)
    return cell if isinstance(cell, str | int) else number("cell", cell)


def _point_map(drawn: PointMap) -> dict[str, Any]:
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


def _heat_map(drawn: HeatMap) -> dict[str, Any]:
    return {
        "key": drawn.key,
        "title": drawn.title,
        "caption": drawn.caption,
        "x_label": drawn.x_label,
        "y_label": drawn.y_label,
        "x": list(drawn.x),
        "y": list(drawn.y),
        "values": [numbers("heat_map.values", row) for row in drawn.values],
        "log": drawn.log,
    }
