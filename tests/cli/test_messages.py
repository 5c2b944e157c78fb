"""No private value in any message: one secret in every cell, header and id, every verb, every error."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection.engines.local import LocalCollection
from hushuffle.collection.order import load_reference
from hushuffle.tables.private import ColumnBatches
from hushuffle.tables.published import load_checkins, load_digits, load_ratings
from hushuffle.tables.sketch_files import load_filter
from hushuffle_network import rehearse, serve
from hushuffle_papers.meehan2022.data import load_census, load_graph
from hushuffle_papers.murakami2021.sources import load_scores
from taint import FOLDER, SECRET, Watch, broken_files, refuses

REST = """
randomizer = { kind = "randomized-response", epsilon = 2 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6, epsilon = 9.0 }
"""
LABELS = 'population = { data = "in/*", column = "answer", categories = ["a", "b"] }' + REST
SPECIFICATIONS = {
    "labels": LABELS,
    "drop": LABELS.replace(" }", ', missing = "drop" }', 1),
    "numbers": LABELS.replace('"answer"', '"x"').replace('["a", "b"]', '{ low = "<= 3", high = "> 3" }'),
    "overlap": LABELS.replace('"answer"', '"x"').replace('["a", "b"]', '{ low = "<= 3", all = "<= 5" }'),
    "messy": LABELS.replace(" }", ', encoding = "windows-1252", separator = ";", trim = true, casefold = true }', 1),
    "bins": LABELS.replace('"answer"', '"x"').replace('categories = ["a", "b"]', "bins = [0, 3, 5]"),
    "labels in a file": LABELS.replace('categories = ["a", "b"]', 'categories_file = "in/*"'),
    "seen": LABELS.replace('["a", "b"]', '"from-data", allow_categories_from_data = true'),
    "columns": """
        population = { data = "in/*" }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        [[columns]]
        column = "x"
        categories = { low = "< 3", high = ">= 3" }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        [[columns]]
        column = "answer"
        categories = ["a", "b"]
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
    """,
    "order": LABELS.replace('{ kind = "uniform" }', '{ kind = "mallows", alpha = 2.0, groups = { column = "day" } }'),
    "near": LABELS.replace(
        '{ kind = "uniform" }', '{ kind = "mallows", alpha = 2.0, groups = { columns = ["x"], radius = 1.0 } }'
    ),
    "edges": LABELS.replace(
        '{ kind = "uniform" }', '{ kind = "mallows", alpha = 2.0, groups = { edges = "in/*", id = "id", steps = 1 } }'
    ),
    "reach": """
        population = { publishers = { one = "in/*" }, column = "id", bits = 128, hashes = 1, key_file = "town.key" }
        randomizer = { kind = "bit-flipping", p = 0.3 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        run = { repetitions = 0 }
    """,
    "plan": """
        [query]
        kind = "aggregate"
        data = "in/*"
        columns = { answer = ["a", "b"] }
        values = ["x"]
        functions = ["count", "sum"]
        grouping_sets = [["answer"]]
        partitions = 2
        [traffic]
        sigma = 0.2
        [targets]
        delta = 0
    """,
    "points": """
        [query]
        kind = "k-means"
        data = "in/*"
        columns = { x = [0, 9] }
        centroids = 2
        iterations = 1
        variant = "hidden"
        [traffic]
        sigma = 0.2
        [targets]
        delta = 0
    """,
}
RELAY = 'role = "relay"\nname = "relay"\nlisten = "127.0.0.1:39811"\ngateway = "http://127.0.0.1:9"\n'
KEYED = ("--key-file", "town.key", "--new-key", "--id", "id")
FILES = broken_files()
GIVEN = "given.*"
QUICK = {
    "collect by conditions": ("collect", "numbers.toml", "--out", "out", "--input", "in"),
    "batches": ("collect", "labels.toml", "--input", "in/", "--out", "released", "--batches", *KEYED),
}
VERBS = QUICK | {
    "collect": ("collect", "labels.toml", "--out", "out", *KEYED),
    "collect what is there": ("collect", "drop.toml", "--out", "out", "--min-batch", "99"),
    "overlap": ("collect", "overlap.toml", "--out", "out"),
    "messy": ("collect", "messy.toml", "--out", "out"),
    "bins": ("collect", "bins.toml", "--out", "out"),
    "labels in a file": ("assess", "labels in a file.toml", "--out", "out"),
    "columns": ("collect", "columns.toml", "--out", "out"),
    "batches of columns": ("collect", "columns.toml", "--out", "released", "--batches"),
    "order": ("collect", "order.toml", "--out", "out", "--reference", GIVEN),
    "near": ("collect", "near.toml", "--out", "out"),
    "edges": ("collect", "edges.toml", "--out", "out"),
    "assess": ("assess", "labels.toml", "--out", "out"),
    "calibrate": ("calibrate", "labels.toml"),
    "calibrate what is there": ("calibrate", "seen.toml"),
    "assess reach": ("assess", "reach.toml", "--out", "out"),
    "attack": ("attack", "linkage", "in/*", "--user", "id", "--item", "answer", "--time", "day", "--out", "out"),
    "attack check-ins": ("attack", "linkage", GIVEN, "--kind", "checkins", "--out", "out"),
    "attack ratings": ("attack", "linkage", GIVEN, "--kind", "ratings", "--out", "out"),
    "analyse": ("plan", "analyse", "plan.toml", "--out", "out"),
    "simulate": ("plan", "simulate", "plan.toml", "--out", "out"),
    "simulate points": ("plan", "simulate", "points.toml", "--out", "out"),
    "estimate": ("estimate", GIVEN, "--manifest", "sound/manifest.json"),
    # Data in the place of something else.
    "data as specification": ("assess", GIVEN),
    "data as collection": ("collect", GIVEN, "--out", "out"),
    "data as plan": ("plan", "analyse", GIVEN),
    "data as hosts": ("plan", "run", "plan.toml", "--hosts", GIVEN, "--out", "out"),
    "data as node": ("node", "start", GIVEN),
    "data as manifest": ("estimate", "sound/reports.parquet", "--manifest", GIVEN),
    "data as reports": ("estimate", GIVEN),
    "data as key": ("collect", "labels.toml", "--out", "out", "--key-file", GIVEN, "--id", "id"),
}


LONG = {"assess reach", "batches of columns", "calibrate what is there", "simulate points"}
"""Some broken files are sound for these verbs, whose work takes seconds."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all that the verbs need besides data."""
    folder = tmp_path_factory.mktemp("taint")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path(FOLDER).mkdir()
        for name, text in SPECIFICATIONS.items():
            Path(f"{name}.toml").write_text(text, encoding="utf-8")
        key = Path("town.key")
        key.write_text(secrets.token_hex(32), encoding="ascii")
        key.chmod(0o600)
        Path(f"{FOLDER}/good.csv").write_text("answer\n" + "a\nb\n" * 30)
        assert main(["collect", "labels.toml", "--out", "sound"]) == Exit.DONE
        Path("relay.toml").write_text(RELAY, encoding="utf-8")
    return folder


@pytest.fixture
def watch(
    made: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Watch:
    for path in made.rglob("*"):
        target = tmp_path / path.relative_to(made)
        if path.is_dir():
            target.mkdir()
        else:
            target.write_bytes(path.read_bytes())
            target.chmod(path.stat().st_mode)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUSHUFFLE_STATE", str(tmp_path / "memory"))
    return Watch(folder=tmp_path, capture=capfd, log=caplog, monkeypatch=monkeypatch)


def attempt(watch: Watch, case: str, verb: str) -> int:
    suffix, content = FILES[case]
    watch.forget()
    watch.put(suffix, content, sound=verb.startswith("batches"))
    return watch.run(*(f"given{suffix}" if word == GIVEN else word for word in VERBS[verb]))


@pytest.mark.parametrize("verb", QUICK)
def test_every_broken_file(watch: Watch, verb: str) -> None:
    codes = {case: attempt(watch, case, verb) for case in FILES}
    refused = [case for case, code in codes.items() if code == Exit.FAILED]
    if verb != "batches":  # a file that cannot be read waits there, the sound one is released
        assert len(refused) > 2 * len(FILES) / 3


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - QUICK.keys() - LONG))
def test_every_verb(watch: Watch, verb: str) -> None:
    """With the files that showed what they hold, and some like them."""
    cases = ["unseen value", "no header", "quote in the header", "struct", "cut parquet", "latin 1"]
    cases += ["json of another kind", "json of counts"] * verb.startswith("data as")
    codes = [attempt(watch, case, verb) for case in cases]
    assert codes.count(Exit.FAILED) + codes.count(Exit.USAGE) >= len(cases) / 2


@pytest.mark.slow
@pytest.mark.parametrize("verb", sorted(VERBS.keys() - QUICK.keys()))
def test_every_verb_with_every_broken_file(watch: Watch, verb: str) -> None:
    for case in FILES:
        attempt(watch, case, verb)


@pytest.mark.slow
def test_a_whole_run_over_the_network(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in what its services leave in their private folders: logs, states, keys."""
    text = SPECIFICATIONS["plan"].replace("sigma = 0.2", "sigma = 0.3\n        dummies = 2\n        batch = 6")
    (watch.folder / "plan.toml").write_text(text)
    rows = [f"{SECRET}{number},{'ab'[number % 2]},{number},{SECRET}" for number in range(12)]
    watch.put(".csv", "\n".join([f"id,answer,x,{SECRET}", *rows, ""]).encode())
    names, counters = list[str](), rehearse.Rehearsal.counters

    async def looked_at(self: rehearse.Rehearsal) -> Any:
        for path in self.folder.rglob("*"):
            if path.is_file():
                assert SECRET.encode() not in path.read_bytes(), path
                names.append(path.name)
        return await counters(self)

    monkeypatch.setattr(rehearse.Rehearsal, "counters", looked_at)
    assert watch.run("plan", "run", "plan.toml", "--out", "out") == Exit.DONE
    assert "task.json" in names
    assert names.count("log") == 6


NOT_EVERYTHING = "-dac_override,-dac_read_search"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may read everything")
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_processes_that_may_not_read(watch: Watch, suffix: str) -> None:
    """Real processes, whose standard error others collect; and the true cause."""
    humble = ["setpriv", "--bounding-set", NOT_EVERYTHING, "--inh-caps", NOT_EVERYTHING] if os.geteuid() == 0 else []
    case = {".csv": "quote in the header", ".csv.gz": "cut gzip", ".parquet": "struct"}[suffix]
    for mode in (0o600, 0):
        watch.put(suffix, FILES[case][1])
        (watch.folder / FOLDER / f"day-2{suffix}").chmod(mode)
        for verb in ("collect", "batches"):
            command = [*humble, sys.executable, "-m", "hushuffle", *VERBS[verb]]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            assert ran.stderr.startswith("hushuffle: ")
            assert SECRET not in ran.stdout + ran.stderr
            assert ("Permission denied" in ran.stderr) == (mode == 0), ran.stderr
    assert not list(watch.leaks())


def test_late_and_changed_files(watch: Watch) -> None:
    options = ("collect", "labels.toml", "--input", "in/*.csv", "--out", "released", "--batches")
    place, suffix = Path(FOLDER), ".csv"
    watch.put(suffix, FILES["too few"][1])
    assert watch.run(*options) == Exit.DONE
    (place / "day-1.csv").write_bytes(FILES["too few"][1] + b"\n")
    assert watch.run(*options, "--late", "refuse") == Exit.FAILED
    (place / "day-2.csv").write_bytes(FILES["unseen number"][1])
    assert watch.run(*options) == Exit.FAILED
    watch.put(suffix, FILES["too few"][1])
    (place / "day-8.csv").write_bytes(FILES["unseen number"][1])
    (place / "day-9.csv").write_bytes(FILES["unseen number"][1])
    assert watch.run(*options) == Exit.FAILED
    (place / "day-9.csv").unlink()
    (place / "day-8.csv").chmod(0)
    assert watch.run(*options, "--min-batch", "99") == Exit.DONE


def test_paths_that_do_not_exist(watch: Watch) -> None:
    watch.put(".csv", FILES["too few"][1])
    (watch.folder / FOLDER / "day-2.csv").unlink()
    for verb in ("collect", "columns", "assess", "attack", "analyse", "assess reach"):
        assert watch.run(*VERBS[verb]) == Exit.FAILED
    assert watch.run("estimate", "nowhere") == Exit.FAILED
    (watch.folder / FOLDER / f"{SECRET}.csv").mkdir()
    for verb in ("collect", "collect by conditions", "assess"):
        assert watch.run(*VERBS[verb]) == Exit.FAILED


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file grow beyond `size`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [200, 1500])
def test_a_full_disk(watch: Watch, size: int) -> None:
    watch.put(".csv", FILES["semicolons"][1].replace(b";", b","))
    for arguments in (VERBS["collect"], QUICK["batches"], VERBS["columns"], ("estimate", "sound", "--out", "s.csv")):
        with full_disk(size):
            watch.run(*arguments)


@pytest.mark.parametrize("name", ["shares.csv", "shares.parquet", "shares.json", "shares.svg"])
def test_a_file_that_cannot_be_written_is_named_as_it_was_given(
    watch: Watch, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    option = "--chart" if name.endswith(".svg") else "--out"
    with full_disk(100):
        code = main(["estimate", "sound", option, f"sound/{name}"])
    assert code == Exit.FAILED
    assert capfd.readouterr().err == f"hushuffle: sound/{name} cannot be written: File too large.\n"
    assert main(["estimate", "sound", option, f"nowhere/{name}"]) == Exit.FAILED
    assert (
        capfd.readouterr().err == f"hushuffle: nowhere/{name} cannot be written: the folder nowhere does not exist.\n"
    )
    assert sorted(path.name for path in Path("sound").iterdir()) == ["manifest.json", "reports.parquet"]
    assert main(["estimate", "nowhere"]) == Exit.FAILED
    assert capfd.readouterr().err.startswith("hushuffle: nowhere does not exist.")
    assert watch.run("estimate", "sound") == Exit.DONE


def test_an_interruption_and_a_mistake_in_the_middle(watch: Watch, capfd: pytest.CaptureFixture[str]) -> None:
    """What a library raises outside of all that explains it may quote data."""
    watch.put(".csv", FILES["too few"][1])
    errors = (
        KeyboardInterrupt(SECRET),
        MemoryError(SECRET),
        OSError(SECRET),
        PermissionError(13, "Permission denied", f"in/{SECRET}.csv"),
        ValueError(f"could not convert string to float: '{SECRET}'"),
        pl.exceptions.ComputeError(f"could not parse `{SECRET}` as dtype `i64`"),
        pl.exceptions.PanicException(SECRET),
    )
    for error in errors:
        for place, name in ((LocalCollection, "add"), (ColumnBatches, "__iter__")):

            def fail(*_: object, error: BaseException = error) -> Any:
                raise error

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(place, name, fail)
                assert main(list(VERBS["collect"])) in (Exit.FAILED, Exit.INTERRUPTED)
                shown = capfd.readouterr()
                assert SECRET not in shown.out + shown.err
                assert shown.err.startswith("hushuffle: ")
    assert not list(watch.leaks())


def test_a_mistake_in_a_service(
    watch: Watch, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its own work, and in a task that nobody waits for."""

    @asynccontextmanager
    async def fail(_service: object, where: socket.socket, _context: object) -> AsyncIterator[None]:
        where.close()

        async def beside() -> None:
            raise ValueError(SECRET)

        lost = asyncio.create_task(beside())
        await asyncio.sleep(0)
        del lost
        raise ValueError(SECRET)
        yield

    monkeypatch.setattr(serve, "serving", fail)
    assert main(["node", "start", "relay.toml"]) == Exit.FAILED
    gc.collect()
    shown = capfd.readouterr()
    assert '"event": "unexpected error", "kind": "ValueError"' in shown.err
    assert "an unexpected error (ValueError) at" in shown.err
    assert SECRET not in shown.out + shown.err + watch.log.text
    assert not list(watch.leaks())


def test_loaders_of_published_data(tmp_path: Path) -> None:
    """`hushuffle reproduce` reads them from a folder; in every file of theirs stands something else."""
    names = (
        *("checkins.parquet", "ratings.csv", "adult.parquet", "adult.data", "adult.test", "edges.parquet"),
        *("DE_edges.csv", "targets.parquet", "DE_target.csv", "train-images-idx3-ubyte"),
        *("a.npz", "a.npy", "a.csv", "a.txt"),
    )
    for place, (_, content) in enumerate(FILES.values()):
        folder = tmp_path / f"{place}"
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(content)
        refuses(lambda folder=folder: load_checkins(folder))  # type: ignore[misc]
        refuses(lambda folder=folder: load_checkins(folder / "a.txt"))  # type: ignore[misc]
        refuses(lambda folder=folder: load_ratings(folder))  # type: ignore[misc]
        refuses(lambda folder=folder: load_census(folder))  # type: ignore[misc]
        (folder / "adult.parquet").unlink()
        refuses(lambda folder=folder: load_census(folder))  # type: ignore[misc]
        refuses(lambda folder=folder: load_graph(folder))  # type: ignore[misc]
        (folder / "edges.parquet").unlink()
        refuses(lambda folder=folder: load_graph(folder))  # type: ignore[misc]
        refuses(lambda folder=folder: load_digits(folder))  # type: ignore[misc]
        for name in ("a.npz", "a.csv", "a.txt"):
            refuses(lambda path=folder / name: load_scores(path))  # type: ignore[misc]
        for name in ("a.npy", "a.csv"):
            refuses(lambda path=folder / name: load_reference(path, n=6))  # type: ignore[misc]
        refuses(lambda folder=folder: load_filter(folder / "a.npz"))  # type: ignore[misc]


def test_arrays_with_telling_names(tmp_path: Path) -> None:
    record = np.zeros(6, dtype=[(SECRET, "<i8")])
    np.save(tmp_path / "order.npy", record)
    refuses(lambda: load_reference(tmp_path / "order.npy", n=6))
    arrays: dict[str, Any] = {SECRET: np.full((2, 3), 0.5)}
    np.savez(tmp_path / "scores.npz", **arrays)
    refuses(lambda: load_scores(tmp_path / "scores.npz"))
    for version in (SECRET, 7):
        text = np.frombuffer(json.dumps({"format": "hushuffle bloom filter", "version": version}).encode(), np.uint8)
        np.savez(tmp_path / "filter.npz", manifest=text, packed=record)
        refuses(lambda: load_filter(tmp_path / "filter.npz"))
    with zipfile.ZipFile(tmp_path / "odd.npz", "w") as file:
        file.writestr(f"{SECRET}.npy", SECRET)
    refuses(lambda: load_scores(tmp_path / "odd.npz"))
    refuses(lambda: load_filter(tmp_path / "odd.npz"))
