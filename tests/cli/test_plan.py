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
from hushuffle.network import run as network_run
from hushuffle.network.run import Process, statuses
from hushuffle.randomness import reproducible

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
    assert main(["plan", "run", "sets.toml"]) == Exit.USAGE
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
[network]
processes = 1
"""
SERVERS = ("result", "compute-1-1", "compute-1-2", "scrambler-1-1", "scrambler-1-2")


def test_run_with_real_nodes_says_and_writes_no_key(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "small.toml").write_text(SMALL, encoding="utf-8")
    private, logs = dict[str, bytes](), list[str]()

    def remember(path: Path, content: bytes, *, durable: bool = True) -> None:
        private[path.name] = content
        write_private(path, content, durable=durable)

    def read_logs(processes: list[Process]) -> Any:
        logs.extend(one.configuration.with_suffix(".log").read_text() for one in processes)
        place = processes[0].configuration.parent
        modes = {one.stat().st_mode & 0o777 for one in (place / "identities").iterdir() if one.suffix != ".pem"}
        modes |= {(place / "coins.key").stat().st_mode & 0o777}
        modes |= {one.stat().st_mode & 0o777 for one in place.glob("*.npz")}
        modes |= {one.stat().st_mode & 0o777 for one in place.glob("*.state/*")}
        assert modes == {0o600}
        return statuses(processes)

    monkeypatch.setattr("hushuffle.network.run.write_private", remember)
    monkeypatch.setattr(network_run, "statuses", read_logs)
    ran, run = list[network_run.NetworkRun](), network_run.run_on_network

    def run_once(*arguments: Any, **options: Any) -> network_run.NetworkRun:
        if not ran:
            ran.append(run(*arguments, **options))
        return ran[0]

    monkeypatch.setattr(network_run, "run_on_network", run_once)
    assert main(["plan", "run", "small.toml", "--network", "--trace", "seen.parquet"]) == Exit.DONE
    said = capfd.readouterr()
    assert "20 of 20 messages of sources came through to the result." in said.out
    assert said.err == ""
    written = folder / "hushuffle-out" / "plan-small-network"
    names = ["result.json", "run.json", "study.html", "study.json"]
    assert sorted(path.name for path in written.iterdir()) == names
    assert (folder / "seen.parquet").exists()
    study = json.loads((written / "study.json").read_text(encoding="utf-8"))
    assert "fixed-seed" in {one["key"] for one in study["warnings"]}
    everything = said.out + "".join(logs) + "".join((written / name).read_text(encoding="utf-8") for name in names)
    everything += (folder / "seen.parquet").read_bytes().decode("latin-1")
    assert main(["plan", "run", "small.toml", "--network", "--json"]) == Exit.DONE
    said = capfd.readouterr()
    assert json.loads(said.out) == json.loads((written / "study.json").read_text(encoding="utf-8"))
    everything += said.out
    keys = [own for name, own in private.items() if name.endswith((".key", ".seal"))]
    assert len(keys) == 20 + 5 + 3 + 1  # certificates, seals, coins
    assert reproducible(7).words(4).tobytes().hex().encode() in keys
    lines = [line for own in keys for line in own.decode().splitlines() if line and not line.startswith("-----")]
    assert len(lines) >= len(keys)
    assert not any(line in everything for line in lines)
    assert "PRIVATE KEY" not in everything


def test_run_on_other_hosts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "small.toml").write_text(SMALL, encoding="utf-8")
    assert main(["node", "certs", *SERVERS, "--out", "keys"]) == Exit.DONE
    sources = [f"person-{number}" for number in range(60)]
    places = [f'{name} = "{name}.example.org:9000"' for name in SERVERS]

    def hosts(count: int, people: int) -> None:
        lines = ['seals = "keys"', f"sources = {json.dumps(sources[:people])}", "[servers]", *places[:count]]
        (folder / "hosts.toml").write_text("\n".join(lines), encoding="utf-8")

    run = ["plan", "run", "small.toml", "--hosts", "hosts.toml", "--out", "run"]
    hosts(3, 20)
    assert main(run) == Exit.USAGE
    assert "Host and port of each: scrambler-1-1, scrambler-1-2" in capsys.readouterr().err
    assert not (folder / "run").exists()
    hosts(5, 20)
    for wrong in ("soon", "2026-05-01T10:00"):
        assert main([*run, "--start", wrong]) == Exit.USAGE
        assert "--start must be a time with a time zone" in capsys.readouterr().err
    assert main(["plan", "run", "small.toml", "--network", "--start", "2026-05-01T10:00Z"]) == Exit.USAGE
    assert "--start needs --hosts" in capsys.readouterr().err
    assert main([*run, "--start", "2126-05-01T10:00Z"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "All times are counted from 2126-05-01T10:00:00.000Z on." in said
    assert f"Wrote {Path('run', 'run.json')} and 25 configurations into the same folder." in said
    commands = [line.strip() for line in said.splitlines() if line.startswith("  ")]
    assert len(commands) == 25
    assert commands[:5] == [f"hushuffle node start {name}.toml" for name in SERVERS]
    assert "more alike" not in said
    assert {path.name for path in (folder / "run").iterdir()} == {"run.json", *(one.split()[-1] for one in commands)}
    assert main(run) == Exit.FAILED
    assert "run exists and is not empty" in capsys.readouterr().err
    hosts(5, 20)
    text = SMALL.replace("batch = 10", "batch = 30")
    (folder / "small.toml").write_text(text, encoding="utf-8")
    hosts(5, 60)
    assert main([*run[:-1], "other"]) == Exit.DONE
    assert "  ... and 25 more alike" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_plan_is_run_here_or_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hosts.toml").touch()
    for more in ([], ["--network", "--hosts", "hosts.toml"]):
        assert main(["plan", "run", "sets.toml", *more]) == Exit.USAGE
        assert "pass --network" in capsys.readouterr().err
    assert main(["plan", "run", "hidden.toml", "--network"]) == Exit.FAILED
    assert "has no guarantee: it must not use people's data" in capsys.readouterr().err
    assert not Path("hushuffle-out").exists()


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
    assert f"against passive adversaries, {shown} nats against active ones (scramblers: row 1 of 1): asked" in line
