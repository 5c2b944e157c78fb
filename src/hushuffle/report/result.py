"""`result.json`: the assessment for programs, strict JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from hushuffle import _checks
from hushuffle.model import Assessment, Bound, Chart, Citation, Estimate, Finding, Population, Utility

SCHEMA_VERSION = 1


def to_json(assessment: Assessment) -> str:
    """Return the text of `result.json`, as `json_schema` describes it; the same assessment, the same text.

    Infinite numbers are the strings "infinity" and "-infinity". Characters outside ASCII are escaped.

    Raises:
        InvalidInputError: a number of the assessment is nan.
    """
    return json.dumps(_document(assessment), indent=2, allow_nan=False) + "\n"


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
        "findings": [_finding(finding) for finding in assessment.findings],
        "utility": None if utility is None else _utility(utility),
        "warnings": [
            {"key": warned.key, "sentence": warned.sentence, "advice": warned.advice} for warned in assessment.warnings
        ],
        "citations": [_citation(citation) for citation in assessment.citations],
        "software": [{"name": name, "version": version} for name, version in assessment.software],
        "charts": [_chart(chart) for chart in assessment.charts],
    }


def _population(population: Population) -> dict[str, Any]:
    counts = population.counts
    return {
        "n": int(population.n),
        "labels": list(population.labels),
        "source": population.source,
        "counts": None if counts is None else [int(count) for count in counts],
        "dropped": int(population.dropped),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "question": finding.question,
        "adversary": finding.adversary,
        "sentence": finding.sentence,
        "proof": finding.proof,
        "bound": _bound(finding.bound),
    }


def _bound(bound: Bound) -> dict[str, Any]:
    witness = bound.witness
    return {
        "lower": _number("bound.lower", bound.lower),
        "upper": _number("bound.upper", bound.upper),
        "kind": bound.kind,
        "unit": bound.unit,
        "confidence": None if bound.confidence is None else _number("bound.confidence", bound.confidence),
        "witness": None
        if witness is None
        else {
            "family": witness.family,
            "others": [int(count) for count in witness.others],
            "target": [int(value) for value in witness.target],
        },
        "sources": [_citation(source) for source in bound.sources],
    }


def _utility(utility: Utility) -> dict[str, Any]:
    measured, z, estimate = utility.measured, utility.z, utility.estimate
    return {
        "predicted": _numbers("utility.predicted", utility.predicted),
        "measured": None if measured is None else _numbers("utility.measured", measured),
        "z": None if z is None else _numbers("utility.z", z),
        "repetitions": int(utility.repetitions),
        "target": None if utility.target is None else _number("utility.target", utility.target),
        "met": utility.met,
        "confidence": _number("utility.confidence", utility.confidence),
        "estimate": None if estimate is None else _estimate(estimate, utility.confidence),
    }


def _estimate(estimate: Estimate, confidence: float) -> dict[str, Any]:
    intervals = estimate.interval(confidence)
    return {
        "n": int(estimate.n),
        "frequencies": _numbers("estimate.frequencies", estimate.frequencies),
        "raw": _numbers("estimate.raw", estimate.raw),
        "standard_errors": _numbers("estimate.standard_errors", estimate.standard_errors),
        "intervals": [_numbers("estimate.intervals", interval) for interval in intervals],
        "postprocessing": list(estimate.postprocessing),
    }


def _chart(chart: Chart) -> dict[str, Any]:
    return {
        "key": chart.key,
        "title": chart.title,
        "caption": chart.caption,
        "x_label": chart.x_label,
        "y_label": chart.y_label,
        "x_log": chart.x_log,
        "y_log": chart.y_log,
        "here": None if chart.here is None else _number("chart.here", chart.here),
        "series": [
            {
                "label": series.label,
                "x": _numbers("series.x", series.x),
                "lower": _numbers("series.lower", series.lower),
                "upper": _numbers("series.upper", series.upper),
            }
            for series in chart.series
        ],
    }


def _citation(citation: Citation) -> dict[str, Any]:
    return {"key": citation.key, "text": citation.text, "where": citation.where}


def _numbers(name: str, values: Iterable[float]) -> list[float | str]:
    return [_number(name, value) for value in values]


def _number(name: str, value: float) -> float | str:
    """Return `value` as JSON can say it."""
    if math.isnan(value):
        _checks.reject(name, "a number", "nan")
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return float(value)
