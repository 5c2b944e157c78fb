"""What --json prints: one envelope for all commands, a version and the name of the content."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from hushuffle import report
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle_papers import registry
from scripts import script

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
reference: Final = script("docs/reference")
SURVEY: Final = """
[population]
data = "people.csv"
column = "answer"
person = "none"
categories = ["no", "yes"]
[randomizer]
kind = "randomized-response"
epsilon = 2.0
[shuffler]
kind = "uniform"
[targets]
delta = 1e-4
epsilon = 1.0
[run]
repetitions = 0
"""
SUM: Final = """
sum = { epsilon = 1.0, delta = 1e-4 }
[population]
data = "people.csv"
column = "minutes"
person = "none"
kind = "number"
low = 0
high = 9
levels = 4
"""
COLUMNS: Final = """
population = { data = "people.csv", person = "none" }
shuffler = { kind = "uniform" }
targets = { delta = 1e-4 }
[[columns]]
column = "answer"
categories = ["no", "yes"]
randomizer = { kind = "randomized-response", epsilon = 2.0 }
[[columns]]
column = "minutes"
categories = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
randomizer = { kind = "randomized-response", epsilon = 2.0 }
"""
GROUPS: Final = """
group_column = "half"
population = { data = "people.csv", column = "answer", categories = ["no", "yes"] }
shuffler = { kind = "uniform" }
targets = { delta = 1e-4 }
[[groups]]
name = "a"
randomizer = { kind = "randomized-response", epsilon = 1.0 }
[[groups]]
name = "b"
randomizer = { kind = "randomized-response", epsilon = 2.0 }
"""
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    "assessment": ("assess", "survey.toml", "--out", "assessed"),
    "calibration": ("calibrate", "survey.toml"),
    "smallest batch": ("minimum-batch", "survey.toml"),
    "study": ("compare", "survey.toml", "survey.toml"),
    "frequencies": ("estimate", "collected"),
    "frequencies of columns": ("estimate", "columns"),
    "estimate of a sum": ("estimate", "total"),
    "inspection of true data": ("inspect", "people.csv"),
    "checks of figures": ("verify", "assessed/result.json"),
    "studies": ("reproduce", "jurado2023", "--quick"),
    "targets of papers": ("reproduce", "--list"),
}
STUDIES: Final = ("jurado2023/figure-1", "jurado2023/figure-8")  # the paper's others take longer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("json")
    table = {"answer": ["no", "yes"] * 200, "minutes": list(range(10)) * 40, "half": ["a"] * 200 + ["b"] * 200}
    pl.DataFrame(table).write_csv(place / "people.csv")
    (place / "survey.toml").write_text(SURVEY, encoding="utf-8")
    (place / "sum.toml").write_text(SUM, encoding="utf-8")
    (place / "columns.toml").write_text(COLUMNS, encoding="utf-8")
    (place / "groups.toml").write_text(GROUPS, encoding="utf-8")
    names = {"survey": "collected", "sum": "total", "columns": "columns", "groups": "groups"}
    for file, out in ((f"{name}.toml", out) for name, out in names.items()):
        assert main(["collect", str(place / file), "--out", str(place / out)]) == Exit.DONE
    return place


@pytest.mark.parametrize("content", COMMANDS)
def test_every_document_has_the_same_envelope(
    content: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if content == "checks of figures":
        pytest.importorskip("flint")
    monkeypatch.chdir(folder)
    if content == "studies":
        two = {name: target for name, target in registry.targets().items() if name in STUDIES}
        monkeypatch.setattr(registry, "targets", lambda: two)
    assert main([*COMMANDS[content], "--json"]) in (Exit.DONE, Exit.MISSED)
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert list(document)[:2] == ["schema_version", "content"]
    assert document["schema_version"] == 1
    assert document["content"] == content
    validator().validate(document)
    required = validator().schema["$defs"][content]["required"]
    assert {*required} <= document.keys()
    for study in (*document.get("studies", ()), *([document["summary"]] if content == "studies" else ())):
        validator().validate(study)
    for key in () if content in ("assessment", "study") else required:
        assert not validator().is_valid({**document, key: None}), key


@cache
def validator() -> Any:
    return pytest.importorskip("jsonschema").Draft202012Validator(json.loads(reference.output_text()))


MORE: Final = (
    ("assess", "sum.toml", "--out", "assessed-sum"),
    ("assess", "groups.toml", "--out", "assessed-groups"),
    ("estimate", "groups"),
    ("estimate", "collected", "--heavy-hitters", "--simplex"),
    ("calibrate", "sum.toml"),
    ("audit", "survey.toml", "--trials", "200", "--seed", "1", "--out", "audited"),
    ("attack", "linkage", str(EXAMPLES / "visits.csv"), "--out", "attacked"),
    ("choose", "survey.toml"),
    ("plan", "analyse", str(EXAMPLES / "histogram.toml"), "--out", "analysed"),
    ("plan", "simulate", str(EXAMPLES / "histogram.toml"), "--out", "simulated"),
    ("reproduce", "jurado2023/figure-1", "--out", "reproduced"),
)


@pytest.mark.parametrize("words", MORE, ids=" ".join)
def test_every_document_is_valid(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code = main([*words, "--json"])
    assert code in (Exit.DONE, Exit.MISSED) or words[0] == "calibrate"  # without a target
    text = capsys.readouterr().out
    if text:
        validator().validate(json.loads(text))


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
@pytest.mark.parametrize("verb", ["assess", "calibrate", "minimum-batch", "choose"])
def test_every_example_gives_a_valid_document_or_a_refusal(
    verb: str, file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path / "out")) if verb in ("assess", "choose") else ()
    code = main([verb, str(file), *out, "--json"])
    text = capsys.readouterr().out
    if code in (Exit.DONE, Exit.MISSED):
        validator().validate(json.loads(text))
    else:
        assert not text


def test_the_schema_of_documents_is_published_and_names_every_content() -> None:
    published = (EXAMPLES.parent / "docs" / "output.schema.json").read_text(encoding="utf-8")
    assert published == reference.output_text(), "run: python docs/reference.py"
    schema = json.loads(published)
    assert {*schema["properties"]["content"]["enum"]} == {*COMMANDS}
    pytest.importorskip("jsonschema").Draft202012Validator.check_schema(schema)
    for name, given in (report.json_schema()["$defs"] | report.json_schema("study")["$defs"]).items():
        assert schema["$defs"][name] == given
    assert not validator().is_valid({"schema_version": 1, "content": "colours"})
    assert not validator().is_valid({"schema_version": 2, "content": "study"})
