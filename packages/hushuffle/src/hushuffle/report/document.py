"""The JSON documents: `result.json` of an assessment, `study.json` of any other report, and the schemas of the two."""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from hushuffle import _checks, model

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


@dataclass(frozen=True, kw_only=True)
class _Target:
    key: str
    topic: str
    rule: Literal["at most", "below", "at least"]
    asked: float
    got: Annotated[
        model.Bound | None, Field(description="The figure that is compared with the limit; null: no figure.")
    ]
    met: Annotated[bool | None, Field(description="Whether the limit is met for every value within the figure.")]
    word: Literal["pass", "fail", "not shown", "not known"]
    reason: Annotated[str, Field(description="If there is no figure: the reason.")]


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    met: Annotated[bool | None, Field(description="Whether all targets are shown to be met; null: no targets.")]
    status: Annotated[
        model.Status | None, Field(description='"met" only with a target of privacy, and every assumption confirmed.')
    ]
    sentence: Annotated[str, Field(description="The first line of the report; empty: no targets.")]
    targets: list[_Target]


@dataclass(frozen=True, kw_only=True)
class _Shared:
    schema_version: Literal[1] = SCHEMA_VERSION
    content: Annotated[str, Field(description="What the document is: an assessment, or a study.")]
    title: str
    verdict: _Verdict
    findings: tuple[model.Finding, ...]
    unanswered: Annotated[
        tuple[model.Unanswered, ...], Field(description="Findings, charts and tables that are missing, and why.")
    ]
    warnings: tuple[model.Warned, ...]
    tables: tuple[model.Table, ...]
    charts: tuple[model.Chart, ...]
    maps: Annotated[
        tuple[model.PointMap, ...],
        Field(description="Values by place; in an assessment, the true and released values of every person."),
    ]
    citations: tuple[model.Citation, ...]
    software: list[_Software]


@dataclass(frozen=True, kw_only=True)
class _Assessment(_Shared):
    """The document of the assessment of a deployment."""

    deployment: Annotated[str, Field(description="One sentence: the people, the randomizer and the shuffler.")]
    specification: Annotated[str, Field(description="The effective specification, TOML.")]
    population: model.Population
    statement: Annotated[model.Statement | None, Field(description="The first page.")]
    utility: _Utility | None


@dataclass(frozen=True, kw_only=True)
class _Study(_Shared):
    """The document of a study: a figure of a paper, an attack or a plan."""

    key: Annotated[str, Field(description="A stable name.")]
    question: str
    claims: Annotated[
        tuple[model.Claim, ...], Field(description="Claims of a paper, each with the result and a verdict.")
    ]
    answers: Annotated[tuple[str, ...], Field(description="Plain sentences, the first one the most important.")]
    settings: Annotated[list[_Setting], Field(description="All settings.")]
    heat_maps: tuple[model.HeatMap, ...]
    diagrams: tuple[model.Diagram, ...]


@dataclass(frozen=True, kw_only=True)
class Names:
    """The file names of a report: the page, and the JSON document with all numbers."""

    page: str
    numbers: str

    @classmethod
    def of(cls, report: model.Report) -> Names:
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


def to_json(report: model.Report) -> str:
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


def _document(report: model.Report) -> Any:
    first, targets = report.headline, [_filled(_Target, target) for target in report.targets]
    status, sentence = (None, "") if first is None else (first.status, first.sentence)
    shared: dict[str, Any] = {
        "verdict": _Verdict(met=report.met, status=status, sentence=sentence, targets=targets),
        "citations": report.sources,
        "software": [_Software(name=name, version=version) for name, version in report.software],
    }
    if report.population is None:
        settings = [_Setting(name=name, value=value) for name, value in report.settings]
        return _filled(_Study, report, **shared, content="study", settings=settings)
    utility, accuracy = report.utility, None
    if utility is not None:
        shares = utility.estimate
        intervals = None if shares is None else shares.interval(utility.confidence)
        accuracy = _filled(_Utility, utility, estimate=shares and _filled(_Estimate, shares, intervals=intervals))
    return _filled(_Assessment, report, **shared, content="assessment", deployment=report.question, utility=accuracy)


def _filled(kind: type[Any], source: object, **others: Any) -> Any:
    """Return a part of a document: `others`, and for its other keys the attributes of `source` with these names."""
    names = (field.name for field in fields(kind) if field.default is MISSING and field.name not in others)
    return kind(**{name: getattr(source, name) for name in names}, **others)


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_Assessment if name == "result.json" else _Study)


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
        kinds = set(map(type, value))
        plain = kinds <= {str, int, bool} or (kinds == {float} and all(map(math.isfinite, value)))
        return list(value) if plain else [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
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
    kinds = set(map(type, value)) if isinstance(value, list) else set[type]()
    if {dict, list} & kinds:
        return f"[{inner}{f',{inner}'.join(_text(item, inner) for item in value)}{start}]"
    if kinds == {float} and 0.0 not in (numbers := set(value)):  # the same number may stand for a million values
        texts = {number: repr(number) for number in numbers}
        return f"[{', '.join(map(texts.__getitem__, value))}]"
    return json.dumps(value, allow_nan=False)
