"""`study.json`: a study for programs, strict JSON."""

from __future__ import annotations

from typing import Any

from hushuffle.model import Diagram, HeatMap, Study
from hushuffle.report.json_values import chart, citation, compact, finding, numbers, pairs, point_map, table, warning

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
        "tables": [table(made) for made in study.tables],
        "charts": [chart(drawn) for drawn in study.charts],
        "maps": [point_map(drawn) for drawn in study.maps],
        "heat_maps": [_heat_map(drawn) for drawn in study.heat_maps],
        "diagrams": [_diagram(drawn) for drawn in study.diagrams],
        "warnings": [warning(warned) for warned in study.warnings],
        "citations": [citation(source) for source in study.sources],
        "software": pairs(study.software, "version"),
    }


def _diagram(drawn: Diagram) -> dict[str, Any]:
    return {
        "key": drawn.key,
        "title": drawn.title,
        "caption": drawn.caption,
        "svg": drawn.svg,
        "text": drawn.text,
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
