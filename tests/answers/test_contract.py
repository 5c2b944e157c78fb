"""What every kind of answer must do: each verb works on a file with its example, and carries it to the estimate."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.answers.base import SHARES, Fakes
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.specification.answers import ANSWERS, answer_in, answer_problems
from hushuffle.specification.reading import load, tables_of

pytestmark = pytest.mark.usefixtures("no_charts")
PEOPLE: Final = 400
KINDS: Final = tuple(ANSWERS)


def keys_of(kind: str) -> str:
    """The example of a kind, one key in each line."""
    keys = ANSWERS[kind].keys
    assert keys is not None
    return keys.example.replace(", ", "\n")


def survey(folder: Path, kind: str) -> Path:
    """Write a survey with the example's keys, and data: integers from 0 to 100."""
    values = np.random.default_rng(1).integers(0, 101, PEOPLE)
    pl.DataFrame({"id": [f"p{n}" for n in range(PEOPLE)], "value": values}).write_csv(folder / "people.csv")
    (folder / "survey.toml").write_text(
        f'[population]\ndata = "people.csv"\ncolumn = "value"\nperson = "none"\n{keys_of(kind)}\n'
        '[randomizer]\nkind = "randomized-response"\nepsilon = 3.0\n[shuffler]\nkind = "uniform"\n'
        "[targets]\ndelta = 1e-4\nepsilon = 2.0\nstandard_error = 0.4\n[run]\nrepetitions = 2\nseed = 1\n",
        encoding="utf-8",
    )
    return folder / "survey.toml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, where charts and most stops of sliders are left out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hushuffle.assessment.explore._beyond", lambda _: ())
    for name in ("_EPSILONS", "_DELTAS", "_DUMMIES", "_TIMES", "_OTHER_K"):
        monkeypatch.setattr(f"hushuffle.assessment.explore.{name}", ())
    monkeypatch.setattr("hushuffle.assessment.explore._PER_DECADE", 1)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_is_the_answer_that_it_writes(kind: str) -> None:
    read = tables_of(keys_of(kind))
    answer = answer_in(read)
    assert type(answer) is ANSWERS[kind]
    assert answer.written == read
    assert answer.labels
    assert len(set(answer.labels)) == len(answer.labels) >= 2
    assert answer.keys is not None
    assert {field.name for field in fields(answer)} == set(answer.keys.settings)
    assert answer.keys.about.startswith(f'"{kind}": ')
    assert answer.estimated_as
    assert not list(answer_problems(read))


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_key_is_named_with_what_to_do(kind: str) -> None:
    read = tables_of(keys_of(kind))
    for key in read.keys() - {"kind"}:
        rest = {name: value for name, value in read.items() if name != key}
        (problem,) = answer_problems(rest)
        assert problem.key == f"population.{key}"
        assert problem.hint
        (problem,) = answer_problems({key: read[key]})
        assert problem.rule == f'is allowed only with kind = "{kind}"'


@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_works_on_it(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey(folder, kind)
    key = ["--key-file", "survey.key", "--id", "id", "--round"]
    runs = (
        ["assess", "survey.toml", "--out", "assess"],
        ["verify", "assess/result.json"],
        ["calibrate", "survey.toml"],
        ["minimum-batch", "survey.toml"],
        ["compare", "survey.toml", "survey.toml"],
        ["explore", "survey.toml", "--out", "explore"],
        ["audit", "survey.toml", "--trials", "500", "--seed", "1", "--out", "audit"],
        ["collect", "survey.toml", "--out", "collected"],
        ["collect", "survey.toml", "--out", "first", *key, "1", "--new-key"],
        ["collect", "survey.toml", "--out", "second", *key, "2"],
        ["collect", "survey.toml", "--out", "batches", "--batches", "--input", "people.csv"],
        ["estimate", "collected"],
        ["estimate", "first", "second"],
    )
    for run in runs:
        assert main(run) in (Exit.DONE, Exit.MISSED), f"{run}: {capsys.readouterr().err}"
    capsys.readouterr()


@pytest.mark.parametrize("kind", KINDS)
def test_the_release_says_what_its_answers_are(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey(folder, kind)
    assert main(["collect", "survey.toml", "--out", "collected"]) == Exit.DONE
    manifest = json.loads(Path("collected/manifest.json").read_text(encoding="utf-8"))
    assert answer_in(tables_of(manifest["specification"])["population"]) == load("survey.toml").population.answer
    capsys.readouterr()
    assert main(["estimate", "collected", "--json"]) == Exit.DONE
    facts = json.loads(capsys.readouterr().out)
    assert facts[ANSWERS[kind].estimated_as]
    assert main(["estimate", "collected"]) == Exit.DONE
    assert "95% interval" in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_names_its_rows_and_the_effect_of_fake_reports(kind: str) -> None:
    answer = answer_in(tables_of(keys_of(kind)))
    assert answer is not None
    assert answer.labels is not None
    k = len(answer.labels)
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=3.0), shuffler=hs.UniformShuffle(), n=PEOPLE)
    reports = protocol.collect(np.arange(PEOPLE) % k, rng=hs.reproducible(1))
    counts = hs.Histogram(counts=np.bincount(reports.reports, minlength=k))
    fakes = Fakes(reports=4, words="4 Sybil clients")
    found = [answer.estimated(counts, protocol=protocol, confidence=level, fakes=fakes) for level in (0.9, 0.99)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].rows
    assert all(len(row) == 3 for row in found[0].rows)
    assert any("4 Sybil clients" in note for note in found[0].notes)
    assert found[0].facts != found[1].facts
    json.dumps(dict(found[0].facts), allow_nan=False)
    error = answer.error(protocol)
    assert error is None or error > 0
    assert answer.words(error)
    assert re.search(r"\d", " ".join(map(str, answer.facts(error, PEOPLE).values())))


def test_categories_are_the_kind_without_keys() -> None:
    assert SHARES.written == {}
    assert SHARES.labels is None
    assert SHARES.words(None) == ""
    assert answer_in({"categories": ["a", "b"]}) is None
