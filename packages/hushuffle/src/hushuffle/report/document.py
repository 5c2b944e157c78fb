"""The JSON documents: `result.json` of an assessment, `study.json` of any other report, and the schemas of the two."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from hushuffle import _checks
from hushuffle.model import (
    Bound,
    Chart,
    Citation,
    Claim,
    Diagram,
    Estimate,
    Finding,
    HeatMap,
    PointMap,
    Population,
    Report,
    Statement,
    Status,
    Table,
    Target,
    Unanswered,
    Utility,
    Warned,
)

SCHEMA_VERSION: Final = 1
INDEX: Final = "verdicts"
"""The key of the report that collects the claims tested by several studies."""

_Count = Annotated[int, Field(ge=0)]
_Interval = Annotated[list[float], Field(min_length=2, max_length=2)]


@dataclass(frozen=True, kw_only=True)
class _Setting:
    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class _Software:
    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class _Estimate:
    n: _Count
    frequencies: list[float]
    raw: list[float]
    standard_errors: list[float]
    intervals: list[_Interval]
    postprocessing: list[str]

    @classmethod
    def of(cls, estimate: Estimate, confidence: float) -> _Estimate:
        return cls(
            n=estimate.n,
            frequencies=estimate.frequencies.tolist(),
            raw=estimate.raw.tolist(),
            standard_errors=estimate.standard_errors.tolist(),
            intervals=estimate.interval(confidence).tolist(),
            postprocessing=list(estimate.postprocessing),
        )


@dataclass(frozen=True, kw_only=True)
class _Utility:
    predicted: Annotated[list[float], Field(description="Predicted standard errors by value.")]
    measured: Annotated[
        list[float] | None, Field(description="Root mean square errors over the repetitions, by value.")
    ]
    z: Annotated[
        list[float] | None, Field(description="Standard deviations from the predicted mean square error, by value.")
    ]
    repetitions: _Count
    target: float | None
    met: Annotated[bool | None, Field(description="Whether every predicted standard error is within the target.")]
    confidence: Annotated[float, Field(gt=0, lt=1)]
    estimate: _Estimate | None

    @classmethod
    def of(cls, utility: Utility) -> _Utility:
        return cls(
            predicted=utility.predicted.tolist(),
            measured=None if utility.measured is None else utility.measured.tolist(),
            z=None if utility.z is None else utility.z.tolist(),
            repetitions=utility.repetitions,
            target=utility.target,
            met=utility.met,
            confidence=utility.confidence,
            estimate=None if utility.estimate is None else _Estimate.of(utility.estimate, utility.confidence),
        )


@dataclass(frozen=True, kw_only=True)
class _Target:
    key: str
    topic: str
    rule: Literal["at most", "below", "at least"]
    asked: float
    got: Annotated[Bound | None, Field(description="The figure that is compared with the limit; null: no figure.")]
    met: Annotated[bool | None, Field(description="Whether the limit is met for every value within the figure.")]
    word: Literal["pass", "fail", "not shown", "not known"]
    reason: Annotated[str, Field(description="If there is no figure: the reason.")]

    @classmethod
    def of(cls, target: Target) -> _Target:
        return cls(
            key=target.key,
            topic=target.topic,
            rule=target.rule,
            asked=target.asked,
            got=target.got,
            met=target.met,
            word=target.word,
            reason=target.reason,
        )


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    met: Annotated[bool | None, Field(description="Whether all targets are shown to be met; null: no targets.")]
    status: Annotated[
        Status | None, Field(description='"met" only with a target of privacy, and every assumption confirmed.')
    ]
    sentence: Annotated[str, Field(description="The first line of the report; empty: no targets.")]
    targets: list[_Target]

    @classmethod
    def of(cls, report: Report) -> _Verdict:
        first = report.headline
        return cls(
            met=report.met,
            status=None if first is None else first.status,
            sentence="" if first is None else first.sentence,
            targets=[_Target.of(target) for target in report.targets],
        )


@dataclass(frozen=True, kw_only=True)
class _Shared:
    schema_version: Literal[1] = SCHEMA_VERSION
    content: Annotated[str, Field(description="What the document is: an assessment, or a study.")]
    title: str
    verdict: _Verdict
    findings: tuple[Finding, ...]
    unanswered: Annotated[
        tuple[Unanswered, ...], Field(description="Findings, charts and tables that are missing, and why.")
    ]
    warnings: tuple[Warned, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    maps: Annotated[
        tuple[PointMap, ...],
        Field(description="Values by place; in an assessment, the true and released values of every person."),
    ]
    citations: tuple[Citation, ...]
    software: list[_Software]


@dataclass(frozen=True, kw_only=True)
class _Result(_Shared):
    """The document of the assessment of a deployment."""

    deployment: Annotated[str, Field(description="One sentence: the people, the randomizer and the shuffler.")]
    specification: Annotated[str, Field(description="The effective specification, TOML.")]
    population: Population
    statement: Annotated[Statement | None, Field(description="The first page.")]
    utility: _Utility | None


@dataclass(frozen=True, kw_only=True)
class _Study(_Shared):
    """The document of a study: a figure of a paper, an attack or a plan."""

    key: Annotated[str, Field(description="A stable name.")]
    question: str
    claims: Annotated[tuple[Claim, ...], Field(description="Claims of a paper, each with the result and a verdict.")]
    answers: Annotated[tuple[str, ...], Field(description="Plain sentences, the first one the most important.")]
    settings: Annotated[list[_Setting], Field(description="All settings.")]
    heat_maps: tuple[HeatMap, ...]
    diagrams: tuple[Diagram, ...]


@dataclass(frozen=True, kw_only=True)
class Names:
    """The file names of a report: the page, and the JSON document with all numbers."""

    page: str
    numbers: str

    @classmethod
    def of(cls, report: Report) -> Names:
        """Return the file names for this report: an assessment, the claims of several studies, or a study."""
        if report.key == INDEX:
            return cls(page="index.html", numbers="verdicts.json")
        if report.population is None:
            return cls(page="study.html", numbers="study.json")
        return cls(page="report.html", numbers="result.json")


def folder_of(target: str) -> str:
    """Return the name of the folder with the study that has the key `target`.

    >>> folder_of("jurado2023/figure-2")
    'jurado2023-figure-2'
    """
    return target.replace("/", "-")


def to_json(report: Report) -> str:
    """Return the text of `result.json` or `study.json`, which conforms to `json_schema`.

    The text is deterministic. Infinities are the strings "infinity" and "-infinity". Non-ASCII characters are escaped.

    Raises:
        InvalidInputError: a number of the report is nan.
    """
    values = _adapter(Names.of(report).numbers).dump_python(_document(report), warnings=False)
    return _text(_plain(values), "\n") + "\n"


def json_schema(document: Literal["result", "study"] = "result") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `result.json` or of `study.json`.

    Within one schema version keys may be added. They are never renamed or removed, and their meaning never changes.

    >>> json_schema("study")["properties"]["schema_version"]
    {'const': 1, 'type': 'integer'}
    """
    schema = _adapter(f"{document}.json").json_schema(mode="serialization", schema_generator=_DocumentSchema)
    return {"$schema": _DocumentSchema.schema_dialect, **schema, "title": f"hushuffle {document}"}


def _document(report: Report) -> _Result | _Study:
    shared: dict[str, Any] = {
        "title": report.title,
        "verdict": _Verdict.of(report),
        "findings": report.findings,
        "unanswered": report.unanswered,
        "warnings": report.warnings,
        "tables": report.tables,
        "charts": report.charts,
        "maps": report.maps,
        "citations": report.sources,
        "software": [_Software(name=name, version=version) for name, version in report.software],
    }
    if report.population is not None:
        return _Result(
            **shared,
            content="assessment",
            deployment=report.question,
            specification=report.specification,
            population=report.population,
            statement=report.statement,
            utility=None if report.utility is None else _Utility.of(report.utility),
        )
    return _Study(
        **shared,
        content="study",
        key=report.key,
        question=report.question,
        claims=report.claims,
        answers=report.answers,
        settings=[_Setting(name=name, value=value) for name, value in report.settings],
        heat_maps=report.heat_maps,
        diagrams=report.diagrams,
    )


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_Result if name == "result.json" else _Study)


class _DocumentSchema(GenerateJsonSchema):
    """Schema generator: all keys are required, numbers may be infinite, and docstrings become descriptions."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        number = super().float_schema(schema)
        return number if len(number) > 1 else {"anyOf": [number, {"enum": ["infinity", "-infinity"]}]}

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002, FBT001 - pydantic's signature
        return True

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        result = super().dataclass_schema(schema)
        if "description" in result:
            result["description"] = " ".join(result["description"].partition("\n\n")[0].split())
        return result


def _plain(value: Any) -> Any:
    """Return `value` converted to the types of JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            _checks.reject("report", "made of numbers", "nan")
        return "infinity" if value > 0 else "-infinity"
    return value


def _text(value: Any, start: str) -> str:
    """Return strict JSON with an indent of two spaces; a list without lists or objects in it stays on one line."""
    inner = f"{start}  "
    if isinstance(value, dict) and value:
        items = (f"{json.dumps(key)}: {_text(item, inner)}" for key, item in value.items())
        return f"{{{inner}{f',{inner}'.join(items)}{start}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return f"[{inner}{f',{inner}'.join(_text(item, inner) for item in value)}{start}]"
    return json.dumps(value, allow_nan=False)
