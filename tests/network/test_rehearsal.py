"""A rehearsal by one command: processes that are killed and started again, the result beside what phones sent."""

from __future__ import annotations

import asyncio
import json
import runpy
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.randomness import reproducible
from hushuffle_network.promise import check_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.rehearse import read_metrics, rehearse
from hushuffle_network.study import phone_study
from hushuffle_network.task import read_task
from network.phone_cases import plan_text

SMALL = plan_text(sets='[["age"]]', partitions=2).replace("people = 24", "people = 120")


@pytest.mark.slow
def test_services_that_are_killed_in_the_middle_and_started_again(tmp_path: Path) -> None:
    """No message is lost or counted twice, whoever is killed while phones send."""

    async def kill(running: Mapping[str, asyncio.subprocess.Process], again: Callable[[str], Awaitable[None]]) -> None:
        for name in ("scrambler-1", "issuer", "scrambler-2", "target-1-1", "relay", "result"):
            await asyncio.sleep(0.3)
            running[name].send_signal(signal.SIGKILL)
            await running[name].wait()
            await again(name)

    specification = parse_plan(SMALL.replace("patience = 5.0", "patience = 30.0"))
    run = rehearse(specification, out=tmp_path, interfere=kill)
    (answer,) = run.result["answers"]
    assert (answer["sources"], answer["lost_batches"], answer["without_token"]) == (120, 0, 0)
    assert run.crowd.taken == 120
    assert run.passed == (120, 120)
    assert read_task(tmp_path / "task.json").id == run.document.id
    assert json.loads((tmp_path / "result.json").read_bytes()) == run.result
    study = phone_study(specification, run)
    assert study.answers[0] == "120 of 120 messages of phones arrived at the result, each with a valid token."
    services = next(table for table in study.tables if table.key == "services")
    assert [row[0] for row in services.rows] == ["relay", "scrambler", "target", "result", "issuer"]


@pytest.mark.slow
def test_one_command_rehearses_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL.replace("people = 120", "people = 40"))
    assert main(["plan", "run", "small.toml"]) == Exit.DONE
    out = tmp_path / "hushuffle-out" / "plan-small-phones"
    assert {path.name for path in out.iterdir()} == {
        *("result.json", "task.json", "trace.parquet", "study.html", "study.json")
    }
    assert "40 of 40 messages of phones arrived" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.parametrize("traffic", ["dummies = 3\nbatch = 8\ncapped = true", "flood = 0"])
def test_a_run_sends_what_its_plan_says_and_its_trace_names_nobody(traffic: str, tmp_path: Path) -> None:
    """The counts are those that the same random numbers give in one process."""
    seed = "[run]\nseed = 3\n[targets]"
    specification = parse_plan(plan_text(sets='[["age"]]', traffic=traffic).replace("[targets]", seed))
    run = rehearse(specification, out=tmp_path)
    (answer,), (step,), rng = run.answers, run.document.steps, reproducible(3)
    task = check_task(run.document).task
    (rows,) = (run.records.rows[who] for who in specification.query.asked(run.plan, 24, rng))
    own = task.own(1, rows, None)
    sent, _ = step.sampling.sample(own, rng=rng)
    used = [bool(target == place) for target, place in zip(sent.reshape(-1), own, strict=True)]
    assert answer["received"] == task.merge(1, task.empty(1), task.pack(1, rows), used)[0].tolist()
    study = phone_study(specification, run)
    wire = next(table for table in study.tables if table.key == "wire")
    assert [row[0] for row in wire.rows] == ["phones to relay", "relay to scrambler", "scrambler to target"]
    assert all(planned == seen for _, planned, seen in wire.rows)
    batches = run.trace.received(1, {"scrambler-1"})
    assert [sum(one.values()) for one in batches.values()] == [step.batch + step.dummies] * step.batches
    if step.capped:
        assert max(max(one.values()) for one in batches.values()) <= step.batch
    table = pl.read_parquet(tmp_path / "trace.parquet")
    assert table.drop("order").rows() == run.trace.rows
    names = {"phones", *run.counters}
    assert set(table["sender"]) | set(table["receiver"]) <= names
    assert set(table.drop("sender", "receiver").dtypes) == {pl.UInt32}


def test_plans_that_phones_cannot_run_start_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedProtocolError, match="asks each phone for several messages"):
        rehearse(parse_plan(plan_text(traffic="flood = 1")), out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_counters_are_read_as_they_are_written() -> None:
    assert read_metrics('# TYPE x\nhushuffle_tasks 1\nhushuffle_batches_total{what="given_up"} 3\n') == {
        "tasks": 1,
        "batches given_up": 3,
    }


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--hosts", "hosts.toml", "--trace", "x"], "--hosts runs nothing"),
        (["--bundle"], "need --hosts"),
        (["--start", "2026-05-01T10:00Z"], "need --hosts"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    more: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    assert main(["plan", "run", str(tmp_path / "small.toml"), *more]) == Exit.USAGE
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_the_benchmark_measures_every_service() -> None:
    measure = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "phones.py"))["run"]
    measure.__globals__["SAMPLE"] = 2
    measured = asyncio.run(measure(40, kept=True, together=8, signers=1))
    assert (measured["taken"], measured["came through"]) == (40, [40])
    assert measured["CPU seconds"].keys() >= {"issuer", "relay", "scrambler-1", "target-1-1", "result", "phones"}
