"""Whole runs with real processes, and processes that are killed, stopped or hindered."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.errors import DataError, UnsupportedProtocolError
from hushuffle.network.nodes.result import RunFailedError
from hushuffle.network.run import Interference, NetworkRun, _why, run_on_network
from hushuffle.plans import GroupStatistics
from hushuffle.queries import parse_plan
from network.network_tools import (
    KEY,
    Processes,
    arrived,
    events,
    finished,
    held,
    kept,
    plan_text,
    simulation,
    start_again,
)
from runtime_cases import aggregate_of, until

TRAFFIC = "dummies = 3\nbatch = 20\nmin_batch = 12"
PEOPLE = 60
VALUES = 'values = ["x"]\nfunctions = ["count", "avg"]'


def run(
    out: Path,
    *,
    interfere: Interference | None = None,
    trace: Path | None = None,
    **more: Any,
) -> NetworkRun:
    """Run sixty people behind three scramblers."""
    options: dict[str, Any] = {"people": PEOPLE, "traffic": TRAFFIC, "collect": 20.0, "patience": 10.0} | more
    return run_on_network(parse_plan(plan_text(**options)), out=out, coins=KEY, interfere=interfere, trace=trace)


def received(made: NetworkRun) -> list[list[float]]:
    """Return the received counts of each step."""
    return [answer["received"] for answer in made.result["answers"]]


def released(made: NetworkRun) -> dict[str, int]:
    """Return how many messages somebody on the wire saw from each scrambler."""
    rows = made.trace.messages().filter(pl.col("sender").str.starts_with("scrambler"))
    return dict(rows.group_by("sender").agg(pl.col("messages").sum()).rows())


def nothing(out: Path) -> bool:
    """Say whether there is nothing in a folder, not even half a file."""
    return not out.exists() or not list(out.iterdir())


def test_a_whole_run_gives_what_the_simulation_gives(tmp_path: Path) -> None:
    sets = '[["age"], ["age", "sex"]]'
    made = run(tmp_path / "out", people=40, sets=sets, more=VALUES, collect=120.0)  # nobody waits where all come
    query = aggregate_of(made.deployment.document).query
    for answer, (received, estimated) in zip(made.result["answers"], simulated(made), strict=True):
        assert answer["received"] == received.count.tolist()
        assert (answer["sources"], answer["planned"], answer["lost_batches"]) == (40, 40, 0)
        for name, values in estimated.results(query).items():
            found = np.array(answer["estimates"][name], dtype=np.float64)  # None where there is nobody
            np.testing.assert_allclose(found, values, rtol=1e-9)
    assert made.failures == {}
    scramblers = [f"scrambler-{step}-{place}" for step in (1, 2) for place in (1, 2)]
    assert released(made) == dict.fromkeys(scramblers, 23)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["result.json", "run.json", "trace.parquet"]
    assert json.loads((tmp_path / "out" / "result.json").read_bytes()) == made.result
    assert pl.read_parquet(tmp_path / "out" / "trace.parquet").equals(made.trace.table())


def simulated(made: NetworkRun) -> list[tuple[GroupStatistics, GroupStatistics]]:
    """Return what arrives in the simulation of the same plan over the same records, on the same coins."""
    return simulation(
        made.plan, aggregate_of(made.deployment.document).table(made.records.rows), made.deployment, made.coins
    )


def test_a_run_without_a_result_says_what_was_counted() -> None:
    counters: dict[str, dict[str, Any]] = {
        "result": {"rejected": {}},
        "scrambler-1-1": {"rejected": {"below minimum": 1}},
        "scrambler-1-2": {"rejected": {"below minimum": 1, "certificate": 2}},
        "source-1": {"rejected": {"slow": 1}},
    }
    failures = {f"source-{number:04d}": "no space" for number in range(2000)} | {"result": "too few"}
    assert _why(failures, counters).splitlines() == [
        "the run ended without a result, and no file was written.",
        "  result: too few",
        *(f"  source-{number:04d}: no space" for number in range(9)),
        "  and 1,991 others failed",
        "  counted by scrambler nodes: below minimum 2, certificate 2",
        "  counted by source nodes: slow 1",
    ]


def test_a_plan_with_a_cascade_is_for_phones(tmp_path: Path) -> None:
    text = plan_text().replace("[traffic]", "[traffic]\nscramblers = 2")
    with pytest.raises(
        UnsupportedProtocolError, match=r"traffic\.scramblers = 2\. Chains of scramblers run on the network of phones"
    ):
        run_on_network(parse_plan(text), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_plan_that_misses_its_own_epsilon_is_not_run(tmp_path: Path) -> None:
    text = plan_text().replace("delta = 1e-6", "delta = 1e-6\nepsilon = 0.01")
    with pytest.raises(DataError, match=r"above targets\.epsilon = 0\.01"):
        run_on_network(parse_plan(text), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_full_disk_for_the_trace(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(DataError, match="the trace /dev/full cannot be written: No space left on device"):
        run(out, trace=Path("/dev/full"))
    # The answer was there before, and is whole.
    assert sorted(path.name for path in out.iterdir()) == ["result.json", "run.json"]
    assert json.loads((out / "result.json").read_bytes())["answers"][0]["sources"] == PEOPLE


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before it sends", "while it sends"])
def test_sources_killed_and_started_again_send_the_same_bytes(tmp_path: Path, when: str) -> None:
    seen: list[dict[str, bytes]] = []

    async def interfere(running: Processes, folder: Path) -> None:
        sources = running["source-nodes-1"]
        if when == "before it sends":
            await until(lambda: kept(folder))
        else:
            await until(lambda: len(kept(folder)) >= PEOPLE // 2)
        sources.kill()
        await sources.wait()
        seen.append(kept(folder))
        assert await finished(await start_again(folder)) == 0
        seen.append(kept(folder))

    made = run(tmp_path / "out", interfere=interfere)
    before, after = seen
    assert 0 < len(before) < PEOPLE
    assert len(after) == PEOPLE
    assert before.items() <= after.items()  # to the byte
    assert received(made) == arrived(made.deployment)
    scramblers = [made.counters[name] for name in released(made)]
    assert sum(one["accepted"] for one in scramblers) == PEOPLE  # each record once
    assert all(one["rejected"].keys() <= {"truncated", "certificate"} for one in scramblers)  # never a conflict
    assert set(released(made).values()) == {23}
    assert made.failures == {"source-nodes-1": "killed by signal 9"}


@pytest.mark.slow
def test_sources_killed_for_good_are_missed_and_too_few_are_never_released(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: len(kept(folder)) >= 8)
        running["source-nodes-1"].kill()

    with pytest.raises(RunFailedError, match="the run ended without a result, and no file was written") as failed:
        run(tmp_path / "out", interfere=interfere, collect=8.0, patience=5.0)
    assert "source-nodes-1: killed by signal 9" in str(failed.value)
    assert "sources came through, fewer than the share of 0.6" in str(failed.value)
    assert "counted by scrambler nodes: below minimum" in str(failed.value)
    assert nothing(tmp_path / "out")


@pytest.mark.slow
def test_a_scrambler_killed_while_gathering(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        sources = running["source-nodes-1"]
        await until(lambda: len(kept(folder)) >= 8 and len(events(folder, "scrambler-nodes-1")) >= 3)
        sources.send_signal(signal.SIGSTOP)
        running["scrambler-nodes-1"].kill()
        await running["scrambler-nodes-1"].wait()
        sources.send_signal(signal.SIGCONT)

    with pytest.raises(RunFailedError) as failed:
        run(tmp_path / "out", interfere=interfere, collect=8.0, patience=5.0)
    assert "scrambler-nodes-1: killed by signal 9" in str(failed.value)
    assert "only 0 of 60 sources came through" in str(failed.value)
    assert nothing(tmp_path / "out")


@pytest.mark.slow
def test_a_scrambler_killed_while_releasing(tmp_path: Path) -> None:
    codes = list[int]()

    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: any(one["event"] == "sending" for one in events(folder, "scrambler-nodes-1")))
        scrambler = running["scrambler-nodes-1"]
        scrambler.kill()
        codes.append(await scrambler.wait())

    traffic = "dummies = 4000\nbatch = 20\nmin_batch = 12"  # enough to be in the middle of
    with pytest.raises(RunFailedError, match=r"only \d+ of 60 sources came through") as failed:
        run(tmp_path / "out", interfere=interfere, traffic=traffic, collect=12.0, patience=6.0)
    assert codes == [-signal.SIGKILL]
    assert "scrambler-nodes-1: killed by signal 9" in str(failed.value)
    assert nothing(tmp_path / "out")


@pytest.mark.slow
def test_one_of_several_scramblers_killed_is_a_batch_lost(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: len(events(folder, "scrambler-nodes-2")) >= 1)
        running["scrambler-nodes-2"].kill()

    made = run(tmp_path / "out", interfere=interfere, collect=8.0, patience=5.0, processes=2)
    ((_, batch),) = made.deployment.document.batches_of("scrambler-1-2")
    assert made.failures.keys() == {"scrambler-nodes-2", *batch.holders}
    assert made.failures["scrambler-nodes-2"] == "killed by signal 9"
    assert made.failures[batch.holders[0]].startswith("none of its 1 messages was accepted (slow)")
    assert received(made) == arrived(made.deployment, lost=batch.holders)
    (answer,) = made.result["answers"]
    assert (answer["sources"], answer["planned"], answer["lost_batches"]) == (40, 60, 1)
    assert [made.counters[name]["rejected"] for name in batch.holders] == [{"slow": 1}] * 20
    # Estimates are of those who came through: not twenty people too few.
    counts = np.array(answer["estimates"]["count"])
    assert counts.sum() == pytest.approx(sum(answer["received"]) * 60 / 40 / 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_one_dead_scrambler_takes_no_others_with_it(tmp_path: Path, how: signal.Signals) -> None:
    """Many more sources wait for it than a process has places."""

    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: events(folder, "scrambler-nodes-2"))
        running["scrambler-nodes-2"].send_signal(how)

    traffic = "dummies = 3\nbatch = 60\nmin_batch = 30"
    made = run(
        tmp_path / "out", interfere=interfere, people=240, traffic=traffic, collect=15.0, patience=5.0, processes=4
    )
    ((_, batch),) = made.deployment.document.batches_of("scrambler-1-2")
    assert received(made) == arrived(made.deployment, lost=batch.holders)
    (answer,) = made.result["answers"]
    assert (answer["sources"], answer["planned"], answer["lost_batches"]) == (180, 240, 1)


@pytest.mark.slow
def test_a_compute_node_killed(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: events(folder, "compute-nodes-1"))
        running["compute-nodes-1"].kill()

    with pytest.raises(RunFailedError) as failed:
        run(tmp_path / "out", interfere=interfere, collect=8.0, patience=5.0)
    assert "3 of 3 compute nodes did not report (compute-1-1, compute-1-2, compute-1-3)" in str(failed.value)
    assert "compute-nodes-1: killed by signal 9" in str(failed.value)
    assert nothing(tmp_path / "out")


@pytest.mark.slow
def test_a_compute_node_that_stands_still(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: events(folder, "compute-nodes-1"))
        running["compute-nodes-1"].send_signal(signal.SIGSTOP)

    with pytest.raises(RunFailedError) as failed:
        run(tmp_path / "out", interfere=interfere, collect=8.0, patience=5.0)
    assert "3 of 3 compute nodes did not report" in str(failed.value)
    assert nothing(tmp_path / "out")


@pytest.mark.slow
def test_the_result_killed(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: events(folder, "result"))
        running["result"].kill()

    with pytest.raises(RunFailedError) as failed:
        run(tmp_path / "out", interfere=interfere, collect=8.0, patience=5.0)
    assert "result: killed by signal 9" in str(failed.value)
    assert nothing(tmp_path / "out")


@pytest.mark.slow
def test_a_scrambler_told_to_end_while_gathering_gives_up(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: len(kept(folder)) >= 8 and len(events(folder, "scrambler-nodes-1")) >= 3)
        running["source-nodes-1"].kill()
        running["scrambler-nodes-1"].terminate()

    with pytest.raises(RunFailedError, match="only 0 of 60 sources came through"):
        run(tmp_path / "out", interfere=interfere, collect=300.0)  # the targets are told, and nobody waits for long
    assert nothing(tmp_path / "out")


@pytest.mark.slow
def test_a_scrambler_told_to_end_while_releasing_finishes(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        await until(lambda: any(one["event"] == "releasing" for one in events(folder, "scrambler-nodes-1")))
        running["scrambler-nodes-1"].terminate()

    made = run(tmp_path / "out", interfere=interfere, traffic="dummies = 1000\nbatch = 60\nmin_batch = 30")
    assert received(made) == arrived(made.deployment)
    assert released(made) == {"scrambler-1-1": 1060}
    assert made.failures == {}


@pytest.mark.slow
def test_sources_that_cannot_keep_their_messages_send_nothing(tmp_path: Path) -> None:
    async def interfere(running: Processes, folder: Path) -> None:
        running["source-nodes-1"].kill()
        await running["source-nodes-1"].wait()
        for path in (folder / "source-nodes-1.state").glob("*"):
            path.unlink()
        if (folder / "source-nodes-1.state").exists():
            (folder / "source-nodes-1.state").rmdir()
        (folder / "source-nodes-1.state").write_text("in the way")
        again = await start_again(folder)
        assert await finished(again) == 1
        said = (folder / "source-nodes-1.again.log").read_text()
        assert said.count("cannot be read: Not a directory") == PEOPLE

    with pytest.raises(RunFailedError, match="only 0 of 60 sources came through"):
        run(tmp_path / "out", interfere=interfere, collect=15.0, patience=5.0)
    assert nothing(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_a_capture_shows_tls_one_size_of_messages_and_no_content(tmp_path: Path) -> None:
    captured, said = tmp_path / "run.pcapng", tmp_path / "tshark.log"
    started: list[subprocess.Popen[bytes]] = []

    async def interfere(running: Processes, folder: Path) -> None:
        running["source-nodes-1"].send_signal(signal.SIGSTOP)  # nobody speaks before the sources do
        servers = json.loads((folder / "run.json").read_bytes())["servers"].values()
        places = [server["address"].split(":") for server in servers]
        ports = " or ".join(f"(host {host} and tcp port {port})" for host, port in places)
        command = ["tshark", "-i", "lo", "-B", "64", "-f", ports, "-w", str(captured)]
        with said.open("wb") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log))  # noqa: ASYNC220 - outlives the loop
        await until(lambda: b"Capturing on" in said.read_bytes() or started[0].poll() is not None)
        await until(lambda: captured.exists() or started[0].poll() is not None)
        running["source-nodes-1"].send_signal(signal.SIGCONT)

    try:
        made = run(tmp_path / "out", interfere=interfere, more=VALUES, patience=60.0, collect=60.0)
        (capture,) = started
        if capture.poll() is not None:
            pytest.skip(f"tshark may not capture here: {said.read_text()}")
        # Packets are written with a delay: the capture is whole when it holds every message that the recorder saw.
        asyncio.run(until(lambda: lengths(captured).count(made.trace.cell) >= made.trace.cells))
    finally:
        for one in started:
            one.send_signal(signal.SIGINT)
            one.wait()
    assert lengths(captured).count(made.trace.cell) == made.trace.cells
    assert max(lengths(captured)) == made.trace.cell
    records = seen(captured, "tls.record", "tls.record.opaque_type", "tls.record.content_type")
    # Every byte is TLS: handshakes and alerts, whose first records are readable, then encrypted records alone (23).
    kinds = {kind for encrypted, plain in records for kind in f"{encrypted},{plain}".split(",") if kind}
    assert kinds <= {"20", "22", "23"}
    versions = seen(captured, "tls.handshake.type == 2", "tls.handshake.extensions.supported_version")
    assert {version for (version,) in versions} == {"0x0304"}  # TLS 1.3
    whole = captured.read_bytes()
    assert not [entry for entries in held(made.deployment).values() for entry in entries if entry.content in whole]


def seen(captured: Path, which: str, *fields: str) -> list[tuple[str, ...]]:
    """Return fields of the packets of a capture; all ports are taken for TLS."""
    command = ["tshark", "-r", str(captured), "-d", "tcp.port==1-65535,tls", "-Y", which, "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    lines = subprocess.run(command, check=False, capture_output=True, text=True).stdout.splitlines()
    return [tuple(line.split("\t")) for line in lines]


def lengths(captured: Path) -> list[int]:
    """Return the lengths of all records of TLS in a capture."""
    return [int(size) for (sizes,) in seen(captured, "tls.record", "tls.record.length") for size in sizes.split(",")]
