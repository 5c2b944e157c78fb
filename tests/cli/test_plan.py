from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from hushuffle.cli import main
from hushuffle.cli.exits import Exit

SPEC = """
[query]
kind = "aggregate"
generated = { people = 500 }
columns = { age = 20, bmi = 20 }
grouping_sets = [["age"], ["bmi"]]
partitions = 20
[traffic]
sigma = 0.2
[targets]
delta = 0
epsilon = 9.0
[run]
seed = 1
"""
HIDDEN = """
[query]
kind = "k-means"
generated = { people = 500 }
centroids = 3
iterations = 2
variant = "hidden"
[traffic]
sigma = 0.2
[targets]
delta = 0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sets.toml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "hidden.toml").write_text(HIDDEN, encoding="utf-8")
    return tmp_path


def test_analyse_prints_and_writes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "analyse", "sets.toml", "--strict"]) == Exit.DONE
    said = capsys.readouterr()
    print(said.out)
    assert said.err == ""
    assert "4.394 to 8.789 nats" in said.out
    assert "Epsilon is at most 8.789: within the 9 asked for." in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    written = folder / "hushuffle-out" / "plan-sets"
    assert sorted(path.name for path in written.iterdir()) == ["study.html", "study.json"]
    study = json.loads((written / "study.json").read_text(encoding="utf-8"))
    assert study["diagrams"][0]["svg"].startswith("<svg")


def test_a_missed_target_is_an_error_only_if_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sets.toml").write_text(SPEC.replace("9.0", "2.0"), encoding="utf-8")
    assert main(["plan", "analyse", "sets.toml"]) == Exit.DONE
    assert main(["plan", "analyse", "sets.toml", "--strict"]) == Exit.MISSED
    assert capsys.readouterr().err == "hushuffle: the epsilon asked for is not certified.\n" * 2


def test_no_guarantee_ends_with_an_error_after_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "analyse", "hidden.toml", "--out", "here"]) == Exit.FAILED
    said = capsys.readouterr()
    assert said.err == "hushuffle: no guarantee can be stated for this plan.\n"
    assert "No guarantee can be stated. One item can move 500 messages" in said.out
    assert (folder / "here" / "study.html").exists()


@pytest.mark.usefixtures("folder")
def test_simulate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "simulate", "sets.toml", "--json"]) == Exit.DONE
    said = capsys.readouterr()
    written = Path("hushuffle-out", "plan-sets-run", "study.json").read_text(encoding="utf-8")
    assert json.loads(said.out) == json.loads(written)
    assert main(["plan", "simulate", "hidden.toml"]) == Exit.DONE
    assert "Rand index" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    assert main(["plan", "analyse", "sets.toml", "--out", "file"]) == Exit.USAGE
    assert main(["plan", "simulate", "no.toml"]) == Exit.USAGE
    assert main(["plan", "run", "sets.toml"]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "--out must be a folder, file is a file." in said.err
    assert "no.toml: 1 problem" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["analyse", "simulate"])
@pytest.mark.parametrize("name", ["aggregate", "kmeans"])
def test_the_examples_take_half_a_minute_at_most(verb: str, name: str, tmp_path: Path) -> None:
    start = time.process_time()
    example = Path(__file__).parents[2] / "examples" / f"{name}.toml"
    assert main(["plan", verb, os.fspath(example), "--out", os.fspath(tmp_path)]) == Exit.DONE
    assert time.process_time() - start < 30
