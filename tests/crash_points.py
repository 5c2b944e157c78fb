"""Collections that are killed at any call of the file system, or run at once; in processes that never ran Polars.

A process whose Polars has threads cannot be forked, and starting a fresh one for each point takes a second. So all of
it is done by a process that is started for it, imports everything, and forks. See collection/test_collect_crashes.py.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from hushuffle.collection import collect as publishing
from hushuffle.collection import release as collect_release
from hushuffle.collection.batches import BatchRun, collect_batch
from hushuffle.collection.collect import collect
from hushuffle.collection.request import Keys, Request
from hushuffle.errors import DataError
from hushuffle.model import Bound
from hushuffle.specification import Collection, parse
from key_memory import new_key, no_figure

Answer = TypeVar("Answer")

PEOPLE = 120
SPECIFICATION = parse("""
    population = { data = "in", column = "answer", categories = ["a", "b", "c", "d"] }
    randomizer = { kind = "randomized-response", epsilon = 1.0 }
    shuffler = { kind = "scrambler", dummies = 5 }
    targets = { delta = 1e-6 }
""")
CALLS = ("open", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir")


def in_fresh_process(work: Callable[..., Answer], *args: Any) -> Answer:
    """Return what `work` returns in a process of its own, in which nothing has run before."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, args)


def outcomes(folder: Path, keyed: bool, points: Sequence[float] | None) -> dict[int, tuple[str, list[str]]]:
    """Kill a collection at points (shares of all, or all), let another follow; return how that went, and what is wrong.

    An even point is before a call, an odd one after it.
    """
    _without_figures()
    start = _prepared(folder / "start")
    shutil.copytree(start, folder / "whole")
    total = 2 * (_in_child(lambda: _collected(folder / "whole", -1, keyed)) or 0)
    chosen = range(total) if points is None else [int(share * (total - 1)) for share in points]
    return {point: _outcome(start, folder / f"at-{point}", point, keyed) for point in chosen}


def winners(folder: Path, processes: int) -> list[int]:
    """Collect at once, with one key, other answers of the same people; return who released something."""
    _without_figures()
    start = _prepared(folder)
    os.environ["HUSHUFFLE_STATE"] = str(folder / "state")
    children = []
    for number in range(processes):
        child = os.fork()
        if child == 0:
            try:
                _write(start / f"{number}.csv", range(PEOPLE), shift=number)
                keys = Keys(file=folder / "my.key", ids="id")
                sources = [str(start / f"{number}.csv")]
                collect(SPECIFICATION, out=folder / f"out-{number}", sources=sources, keys=keys)
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return [number for number in range(processes) if (folder / f"out-{number}").exists()]


def _without_figures() -> None:
    stand_ins: dict[Any, tuple[str, Any]] = {
        collect_release: ("central_of", lambda *_: Bound.exact(1.0, unit="nats")),
        publishing: ("rounds_of", no_figure),
    }
    for module, (name, stand_in) in stand_ins.items():
        setattr(module, name, stand_in)


def _prepared(folder: Path) -> Path:
    (folder / "in").mkdir(parents=True)
    for part in range(2):
        _write(folder / "in" / f"{part}.csv", range(part * PEOPLE // 2, (part + 1) * PEOPLE // 2))
    os.environ["HUSHUFFLE_STATE"] = str(folder / "state")
    new_key(folder / "my.key")
    return folder


def _write(path: Path, people: range, *, shift: int = 0) -> None:
    rows = [f"{person},{'abcd'[(person + shift) % 4]}\n" for person in people]
    path.write_text("id,answer\n" + "".join(rows), encoding="utf-8")


def _run(folder: Path, *, keyed: bool, interrupted: Any = None) -> BatchRun:
    os.environ["HUSHUFFLE_STATE"] = str(folder / "state")
    keys = Keys(file=folder / "my.key", ids="id") if keyed else None
    request = Request(sources=(str(folder / "in"),), keys=keys)
    return collect_batch(Collection.of(SPECIFICATION), out=folder / "out", request=request, interrupted=interrupted)


def _collected(folder: Path, point: int, keyed: bool) -> int:
    """Collect, and be killed at a point; return how many calls there were."""
    count = [0]

    def wrapped(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            before, count[0] = count[0], count[0] + 1
            if 2 * before == point:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **kwargs)
            if 2 * before + 1 == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))
    _run(folder, keyed=keyed)
    return count[0]


def _outcome(start: Path, folder: Path, point: int, keyed: bool) -> tuple[str, list[str]]:
    shutil.copytree(start, folder)
    _in_child(lambda: _collected(folder, point, keyed))
    seen = _in_child(lambda: _counts(folder))
    outcome = _in_child(lambda: _followed(folder, keyed))
    wrong = [] if outcome else ["the next run failed"]
    if seen is not None and seen != _in_child(lambda: _counts(folder)):
        wrong.append("released twice, differently")
    if _names(folder / "out") != ["batch-0001"]:
        wrong.append(f"batches {_names(folder / 'out')}")
    elif _names(folder / "out" / "batch-0001") != ["manifest.json", "reports.parquet"]:
        wrong.append("half a batch")
    state = json.loads((folder / "out.state.json").read_text(encoding="utf-8"))
    if state["claimed"] is not None or [each["batch"] for each in state["files"]] != [1, 1]:
        wrong.append(f"state {state}")
    left = [path for path in folder.rglob(".*") if path.suffix == ".new" or _holds(path)]
    shutil.rmtree(folder)
    return outcome or "", [*wrong, *(f"left {path.name}" for path in left)]


def _followed(folder: Path, keyed: bool) -> str:
    try:
        return "recovered" if _run(folder, keyed=keyed).number else "nothing to do"
    except DataError as error:
        if "--interrupted" not in str(error):
            raise
        _run(folder, keyed=keyed, interrupted="repeat")
        return "asked"


def _counts(folder: Path) -> list[int] | None:
    path = folder / "out" / "batch-0001" / "reports.parquet"
    return np.bincount(pl.read_parquet(path)["report"].to_numpy(), minlength=4).tolist() if path.exists() else None


def _holds(folder: Path) -> bool:
    """Say whether a private folder holds anything but its lock, which it gets first."""
    return folder.is_dir() and any(path.name != "in-use.new" for path in folder.iterdir())


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.exists() else []


def _in_child(work: Callable[[], Answer]) -> Answer | None:
    """Return what a child process returns; None if it was killed, or failed."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        try:
            os.write(target, pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(target)
    with os.fdopen(source, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None  # noqa: S301 - of this file
