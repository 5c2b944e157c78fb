"""`result.json`: the assessment for programs, strict JSON."""

from __future__ import annotations

from typing import Any

from hushuffle.model import Assessment, Estimate, Population, Utility
from hushuffle.report.json_values import (
    chart,
    citation,
    compact,
    finding,
    number,
    numbers,
    pairs,
    point_map,
    table,
    warning,
)

SCHEMA_VERSION = 1


def to_json(assessment: Assessment) -> str:
    """Return the text of `result.json`, as `json_schema` describes it; the same assessment, the same text.

    Infinite numbers are the strings "infinity" and "-infinity". Characters outside ASCII are escaped.

    Raises:
        InvalidInputError: a number of the assessment is nan.
    """
    return compact(_document(assessment))


def refuse_nan(assessment: Assessment) -> None:
    """Raise InvalidInputError if a number of `assessment` is nan, and do nothing else."""
    _document(assessment)


def _document(assessment: Assessment) -> dict[str, Any]:
    utility = assessment.utility
    return {
        "schema_version": SCHEMA_VERSION,
        "title": assessment.title,
        "deployment": assessment.deployment,
        "specification": assessment.specification,
        "population": _population(assessment.population),
        "findings": [finding(learned) for learned in assessment.findings],
        "utility": None if utility is None else _utility(utility),
        "warnings": [warning(warned) for warned in assessment.warnings],
        "citations": [citation(source) for source in assessment.citations],
        "software": pairs(assessment.software, "version"),
        "charts": [chart(drawn) for drawn in assessment.charts],
        "tables": [table(made) for made in assessment.tables],
        "maps": [point_map(drawn) for drawn in assessment.maps],
        "unanswered": [
            {"question": row.question, "topic": row.topic, "reason": row.reason} for row in assessment.unanswered
        ],
    }


def _population(population: Population) -> dict[str, Any]:
    counts = population.counts
    return {
        "n": int(population.n),
        "labels": list(population.labels),
        "source": population.source,
        "counts": None if counts is None else [int(count) for count in counts],
        "dropped": int(population.dropped),
        "label_of": population.label_of,
    }


def _utility(utility: Utility) -> dict[str, Any]:
    measured, z, estimate = utility.measured, utility.z, utility.estimate
    return {
        "predicted": numbers("utility.predicted", utility.predicted),
        "measured": None if measured is None else numbers("utility.measured", measured),
        "z": None if z is None else numbers("utility.z", z),
        "repetitions": int(utility.repetitions),
        "target": None if utility.target is None else number("utility.target", utility.target),
        "met": utility.met,
        "confidence": number("utility.confidence", utility.confidence),
        "estimate": None if estimate is None else _estimate(estimate, utility.confidence),
    }


def _estimate(estimate: Estimate, confidence: float) -> dict[str, Any]:
    intervals = estimate.interval(confidence)
    return {
        "n": int(estimate.n),
        "frequencies": numbers("estimate.frequencies", estimate.frequencies),
        "raw": numbers("estimate.raw", estimate.raw),
        "standard_errors": numbers("estimate.standard_errors", estimate.standard_errors),
        "intervals": [numbers("estimate.intervals", interval) for interval in intervals],
        "postprocessing": list(estimate.postprocessing),
    }
