from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.files.private_files import write_private
from hushuffle.model import number
from hushuffle_network import rehearse

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
    assert "8.789 nats" in said.out
    assert "4.394 to" not in said.out
    assert "PASS Epsilon of the traffic, at delta = 0: asked at most 9, got 8.789 nats\n     (exact)." in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    written = folder / "hushuffle-out" / "plan-sets"
    assert sorted(path.name for path in written.iterdir()) == ["study.html", "study.json"]
    study = json.loads((written / "study.json").read_text(encoding="utf-8"))
    assert study["diagrams"][0]["svg"].startswith("<svg")


def test_a_missed_target_is_an_error_only_if_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sets.toml").write_text(SPEC.replace("9.0", "2.0"), encoding="utf-8")
    assert main(["plan", "analyse", "sets.toml"]) == Exit.DONE
    assert main(["plan", "analyse", "sets.toml", "--strict"]) == Exit.MISSED
    missed = "Epsilon of the traffic, at delta = 0: asked at most 2, got 8.789 nats (exact)."
    assert capsys.readouterr().err == f"hushuffle: target not met: {missed}\n" * 2


def test_no_guarantee_ends_with_an_error_after_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "analyse", "hidden.toml", "--out", "here"]) == Exit.FAILED
    said = capsys.readouterr()
    assert said.err == "hushuffle: this plan has no privacy guarantee.\n"
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
    said = capsys.readouterr()
    assert said.out == ""
    assert "--out must be a folder, but file is a file." in said.err
    assert "no.toml: 1 problem" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["analyse", "simulate"])
@pytest.mark.parametrize("name", ["aggregate", "kmeans"])
def test_the_examples_take_half_a_minute_at_most(verb: str, name: str, tmp_path: Path) -> None:
    start = time.process_time()
    example = Path(__file__).parents[2] / "examples" / f"{name}.toml"
    assert main(["plan", verb, os.fspath(example), "--out", os.fspath(tmp_path)]) == Exit.DONE
    assert time.process_time() - start < 30


SMALL = """
[query]
kind = "aggregate"
generated = { people = 20 }
columns = { age = 4 }
grouping_sets = [["age"]]
partitions = 2
[traffic]
sigma = 0.2
dummies = 2
batch = 10
[targets]
delta = 0
[run]
seed = 7
"""


def test_a_run_prints_and_writes_no_key(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "small.toml").write_text(SMALL, encoding="utf-8")
    private, logs = dict[str, bytes](), list[str]()

    def remember(path: Path, content: bytes, *, durable: bool = True) -> None:
        private[path.name] = content
        write_private(path, content, durable=durable)

    counters = rehearse.Rehearsal.counters

    async def read_logs(self: rehearse.Rehearsal) -> Any:
        logs.extend(path.read_text() for path in self.folder.rglob("log"))
        modes = {path.stat().st_mode & 0o777 for path in self.folder.rglob("*.keys")}
        modes |= {path.stat().st_mode & 0o777 for path in self.folder.rglob("*.sqlite")}
        assert modes == {0o600}
        return await counters(self)

    monkeypatch.setattr(rehearse, "write_private", remember)
    monkeypatch.setattr(rehearse.Rehearsal, "counters", read_logs)
    assert main(["plan", "run", "small.toml", "--trace", "seen.parquet", "--json"]) == Exit.DONE
    said = capfd.readouterr()
    assert said.err == ""
    written = folder / "hushuffle-out" / "plan-small-phones"
    names = ["result.json", "study.html", "study.json", "task.json"]
    assert sorted(path.name for path in written.iterdir()) == names
    study = json.loads((written / "study.json").read_text(encoding="utf-8"))
    assert json.loads(said.out) == study
    assert "20 of 20 messages of phones arrived" in said.out
    assert "fixed-seed" in {one["key"] for one in study["warnings"]}
    everything = said.out + "".join(logs) + "".join((written / name).read_text(encoding="utf-8") for name in names)
    everything += (folder / "seen.parquet").read_bytes().decode("latin-1")
    keys = [json.loads(own) for name, own in private.items() if name.endswith(".keys")]
    assert len(keys) == 1 + 2 + 1 + 1  # scrambler, targets, result, issuer
    secrets = [value for own in keys for value in (own["seal"], own["sign"])]
    secrets += [line for own in keys for pem in own.get("tokens", ()) for line in pem.splitlines()[1:-1]]
    assert len(secrets) > 10
    assert not any(secret in everything for secret in secrets)
    assert "PRIVATE KEY" not in everything


@pytest.mark.usefixtures("folder")
def test_a_plan_without_guarantee_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "run", "hidden.toml"]) == Exit.FAILED
    assert "on a network every node sees the centroids" in " ".join(capsys.readouterr().err.split())
    assert list(Path().glob("hushuffle-out/*/*")) == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("start", ["soon", "2026-05-01T10:00"])
def test_a_start_without_a_time_zone_is_refused(start: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "run", "sets.toml", "--hosts", "hosts.toml", "--start", start]) == Exit.USAGE
    assert "--start must be a time with a time zone" in capsys.readouterr().err


PHONES = """
[query]
kind = "aggregate"
{data}
grouping_sets = [["age"]]
partitions = 2
[query.columns]
age = ["young", "old"]
[traffic]
sigma = 0.2
dummies = 50
batch = 1000
[targets]
delta = 1e-6
epsilon = 5.0
"""


def test_a_plan_for_phones_needs_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.toml").write_text(PHONES.format(data='data = "people.csv"'))
    (tmp_path / "bare.toml").write_text(PHONES.format(data=""))
    out = ["--out", str(tmp_path / "out")]
    assert main(["plan", "analyse", str(tmp_path / "plan.toml"), *out]) == Exit.FAILED
    assert "people.csv does not exist" in (said := " ".join(capsys.readouterr().err.split()))
    assert "If phones supply the records, pass --people N" in said
    for verb in ("analyse", "simulate"):
        assert main(["plan", verb, str(tmp_path / "bare.toml"), *out]) == Exit.USAGE
        said = capsys.readouterr().err
        assert "query: must have either data or generated, got neither." in said
        assert "--people N" in said
    assert main(["plan", "analyse", str(tmp_path / "bare.toml"), "--people", "6000", *out]) == Exit.DONE


def test_the_line_of_a_target_names_its_adversary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.toml").write_text(PHONES.format(data=""))
    arguments = ["plan", "analyse", str(tmp_path / "plan.toml"), "--people", "6000", "--out", str(tmp_path / "out")]
    assert main(arguments) == Exit.DONE
    line = " ".join(capsys.readouterr().out.split()).partition("PASS ")[2].partition("(certified")[0]
    study = json.loads((tmp_path / "out" / "study.json").read_text())
    table = next(each for each in study["tables"] if each["key"] == "scramblers")
    honest, _, active = table["rows"][0]
    assert honest == "1 of 1"
    assert active["upper"] > study["verdict"]["targets"][0]["got"]["upper"]
    shown = number(active["upper"], up=True)
    assert f"passive adversaries ({shown} nats against active ones, with 1 honest scrambler of 1): asked" in line
