"""A run on this machine that is ended from outside: no process, no key and no record stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hushuffle_network import watcher
from hushuffle_network.watcher import watched
from network.phone_cases import plan_text

LONG = 120.0
"""Seconds that a test waits for another process."""


def test_nothing_is_left_of_a_run_that_ends(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "secret").touch()
    (tmp_path / "room").touch()
    with watched(folder, tmp_path / "room") as group:
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=group)
        os.kill(sleeper.pid, signal.SIGSTOP)  # this one hears no polite request
    assert sleeper.wait(LONG) == -signal.SIGKILL
    wait(lambda: not folder.exists())
    assert list(tmp_path.iterdir()) == []


def test_who_cleans_up_is_not_ended_by_the_hang_up_that_a_killed_parent_causes(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with watched(folder) as group:
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            os.killpg(group, number)
    wait(lambda: not folder.exists())


def test_it_cleans_up_after_a_parent_that_is_gone_before_it_is_ready(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    here, there = os.pipe()
    os.close(here)
    command = [sys.executable, "-I", "-S", watcher.__file__, str(folder)]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=there, process_group=0, timeout=LONG, check=False)
    os.close(there)
    wait(lambda: not folder.exists())


def wait(done: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def children(parent: int) -> dict[int, list[str]]:
    """Return the command lines of the children of a process."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            own = (place / "stat").read_text().rpartition(")")[2].split()[1]
            if int(own) == parent:
                found[int(place.name)] = (place / "cmdline").read_text().split("\0")[:-1]
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_a_run_that_is_ended_from_outside_leaves_no_process_and_no_key(tmp_path: Path, number: signal.Signals) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(plan_text(sets='[["age"]]', partitions=2), encoding="utf-8")
    command = [sys.executable, "-m", "hushuffle", "plan", "run", str(plan), "--out", str(out)]
    parent = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # The run cannot end while the result, the last service of the document, is stopped.
    wait(lambda: any(line[-1].endswith("result.toml") for line in children(parent.pid).values()))
    held = next(pid for pid, line in children(parent.pid).items() if line[-1].endswith("result.toml"))
    os.kill(held, signal.SIGSTOP)
    nodes = children(parent.pid)
    folder = next(Path(line[-1]).parents[1] for line in nodes.values() if line[-1].endswith(".toml"))
    assert (folder / "issuer" / "issuer.keys").exists()
    parent.send_signal(number)
    if number == signal.SIGTERM:  # the parent gives its services seconds to end, also after a hang-up; see there
        wait(lambda: not all(running(pid) for pid in nodes))
        with suppress(ProcessLookupError):  # it may be the first that the parent has ended
            os.kill(held, signal.SIGCONT)
    code = parent.wait(LONG)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    try:
        wait(lambda: not folder.exists())
    except AssertionError:
        pytest.fail(f"left: {sorted(map(str, folder.rglob('*')))}; running: {[pid for pid in nodes if running(pid)]}")
    wait(lambda: not any(running(pid) for pid in nodes))
    wait(lambda: not out.exists() or not list(out.iterdir()))


def running(pid: int) -> bool:
    """Say whether a process is there, and no mere entry of one that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
