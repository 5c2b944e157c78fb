from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from hushuffle.collection import batches as module
from hushuffle.collection import collect as publishing
from hushuffle.collection import release as collect_release
from hushuffle.collection.batch_state import BatchState, alone
from hushuffle.collection.batches import BatchRun, collect_batch
from hushuffle.collection.estimate import tally_columns
from hushuffle.collection.request import Keys, Request
from hushuffle.errors import DataError
from hushuffle.files import private_files
from hushuffle.files.secret_keys import key_folder
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification.reading import Collection, parse_collection
from key_memory import ledgers, new_key, no_figure

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"
ONE = """
population = { data = "arrivals/*.csv", column = "answer", categories = ["no", "yes"], missing = "drop" }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect_release, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
    monkeypatch.setattr(dp, "compose", lambda *_, **__: Bound.exact(2.0, unit="nats"))
    monkeypatch.setattr(publishing, "rounds_of", no_figure)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "arrivals").mkdir()
    new_key(tmp_path / "my.key")
    arrive(tmp_path, "day-1", range(60))
    return tmp_path


def arrive(folder: Path, name: str, people: range) -> Path:
    path = folder / "arrivals" / f"{name}.csv"
    answers = ["yes" if one % 3 else "no" for one in people]
    pl.DataFrame({"id": list(people), "answer": answers, "other": answers}).write_csv(path)
    return path


def keys(folder: Path) -> Keys:
    return Keys(file=folder / "my.key", ids="id")


def run(
    folder: Path, *, specification: Collection | None = None, late: Any = "next", interrupted: Any = None, **more: Any
) -> BatchRun:
    request = Request(**{"base_folder": folder, "min_batch": 50, **more})
    spec = specification or parse_collection(ONE)
    return collect_batch(spec, out=folder / "out", request=request, late=late, interrupted=interrupted)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".used")


def state(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out.state.json").read_text(encoding="utf-8"))
    return found


def taken(folder: Path) -> dict[str, int]:
    return {Path(one["path"]).name: one["batch"] for one in state(folder)["files"]}


def test_files_arrive_and_each_is_collected_once(folder: Path) -> None:
    first = run(folder)
    assert first.collected is not None
    assert (first.number, first.collected.columns[""].manifest.people, len(first.files)) == (1, 60, 1)
    assert first.collected.files[0] == folder / "out" / "batch-0001" / "reports.parquet"
    assert run(folder) == BatchRun(number=None, collected=None, files=())
    arrive(folder, "day-2", range(60, 80))
    waiting = run(folder)
    assert (waiting.number, waiting.collected, len(waiting.files)) == (None, None, 1)
    arrive(folder, "day-3", range(80, 115))
    second = run(folder)
    assert second.collected is not None
    assert (second.number, second.collected.columns[""].manifest.people) == (2, 55)
    assert names(folder / "out") == ["batch-0001", "batch-0002"]
    assert taken(folder) == {"day-1.csv": 1, "day-2.csv": 2, "day-3.csv": 2}
    assert (folder / "out.state.json").stat().st_mode & 0o077 == 0
    assert names(folder) == ["arrivals", "my.key", "out", "out.state.json"]
    assert tally_columns([folder / "out"])[""].manifest.people == 115


def test_taken_files_are_known_by_their_content(folder: Path) -> None:
    run(folder)
    path = folder / "arrivals" / "day-1.csv"
    os.utime(path, (1, 1))  # read again, and the same
    path.with_name("renamed.csv").write_bytes(path.read_bytes())
    assert run(folder).files == ()
    path.with_name("renamed.csv").unlink()
    arrive(folder, "day-1", range(61))
    with pytest.raises(DataError, match="has changed since batch 1 was collected, so its people would report twice"):
        run(folder)
    arrive(folder, "day-1", range(60))
    arrive(folder, "day-2", range(200, 300))
    arrive(folder, "day-3", range(200, 300))
    with pytest.raises(DataError, match=r"day-3\.csv has the same content as arrivals/day-2\.csv"):
        run(folder)
    assert names(folder / "out") == ["batch-0001"]


@pytest.mark.parametrize("late", ["next", "drop", "refuse"])
def test_late_files(folder: Path, late: str) -> None:
    run(folder)
    for one in range(7):
        arrive(folder, f"day-0-{one}", range(1000 + 10 * one, 1010 + 10 * one))
    arrive(folder, "day-2", range(60, 130))
    if late == "refuse":
        with pytest.raises(DataError, match=r"7 of 8 new files are late: .*\(the first is arrivals/day-\S+\.csv\)"):
            run(folder, late=late)
        assert taken(folder) == {"day-1.csv": 1}
        return
    found = run(folder, late=late)
    assert found.collected is not None
    assert found.collected.columns[""].manifest.people == (140 if late == "next" else 70)
    assert len(found.dropped) == (0 if late == "next" else 7)
    assert taken(folder)["day-0-0.csv"] == (2 if late == "next" else 0)
    assert run(folder).files == ()
    if late == "drop":
        arrive(folder, "day-0-0", range(5000, 5100))
        with pytest.raises(DataError, match="has changed since its exclusion"):
            run(folder)


def test_only_late_files(folder: Path) -> None:
    run(folder)
    arrive(folder, "day-0", range(500, 600))
    found = run(folder, late="drop")
    assert (found.number, found.files, len(found.dropped)) == (None, (), 1)
    arrive(folder, "day-00", range(600, 610))
    assert run(folder, late="refuse", min_batch=1, sources=[str(folder / "arrivals" / "day-1.csv")]).files == ()


class PowerCut(BaseException):
    """Nothing after this is executed."""


def cut(monkeypatch: pytest.MonkeyPatch, folder: Path, *, released: bool = False) -> None:
    """End a run after the batch was claimed, as if the machine had been switched off."""

    def publish(release: Path, out: Path) -> None:
        if released:
            private_files.publish(release, out)
        shutil.copy(folder / "out.state.json", folder / "kept")
        raise PowerCut

    with monkeypatch.context() as broken:
        broken.setattr(module, "publish", publish)
        with pytest.raises(PowerCut):
            run(folder)
    (folder / "kept").replace(folder / "out.state.json")
    assert state(folder)["claimed"] == 1


def test_an_interrupted_batch_is_not_randomized_again_unasked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, folder)
    with pytest.raises(DataError, match="A run ended while it released batch 1"):
        run(folder)
    before = (folder / "out.state.json").read_bytes()
    assert names(folder / "out") == []
    skipped = run(folder, interrupted="skip")
    assert (skipped.number, skipped.files) == (None, ())
    arrive(folder, "day-2", range(60, 130))
    assert run(folder).number == 2
    (folder / "out.state.json").write_bytes(before)
    shutil.rmtree(folder / "out")
    repeated = run(folder, interrupted="repeat")
    assert repeated.collected is not None
    assert (repeated.number, repeated.collected.columns[""].manifest.people) == (1, 130)
    assert state(folder)["claimed"] is None


def test_a_batch_that_was_released_before_the_end_is_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, folder, released=True)
    assert run(folder).files == ()
    assert state(folder)["claimed"] is None
    assert names(folder / "out") == ["batch-0001"]


def test_with_a_key_an_interrupted_batch_is_repeated_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def publish(release: Path, _out: Path) -> None:
        seen.append(sorted(pl.read_parquet(release / "reports.parquet")["report"]))
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(module, "publish", publish)
        with pytest.raises(KeyboardInterrupt):
            run(folder, keys=keys(folder))
    assert state(folder)["claimed"] == 1
    arrive(folder, "day-2", range(60, 130))
    first = run(folder, keys=keys(folder))
    assert first.collected is not None
    assert (first.number, first.collected.columns[""].manifest.people, first.collected.repeated) == (1, 60, True)
    assert sorted(pl.read_parquet(first.collected.files[0])["report"]) == seen[0]
    assert run(folder, keys=keys(folder)).number == 2
    assert state(folder)["claimed"] is None


def test_a_state_that_cannot_be_written_after_the_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is released, and the run says so: the next one notes it."""
    save, count = BatchState.save, [0]

    def full(self: BatchState, path: Path) -> None:
        count[0] += 1
        if count[0] > 1:
            message = f"{path} cannot be written: No space left on device."
            raise DataError(message)
        save(self, path)

    with monkeypatch.context() as broken:
        broken.setattr(BatchState, "save", full)
        released = run(folder)
    assert released.number == 1
    assert released.unnoted == f"{folder / 'out.state.json'} cannot be written: No space left on device."
    assert state(folder)["claimed"] == 1
    assert names(folder / "out") == ["batch-0001"]
    assert run(folder).number is None
    assert state(folder)["claimed"] is None


def test_a_full_disk_before_the_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(DataError, match="No space left on device"):
            run(folder)
    assert names(folder / "out") == []
    assert run(folder).number == 1


def test_the_same_batch_with_other_dummies_is_asked_about(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(folder, monkeypatch, keys=keys(folder))
    other = parse_collection(ONE.replace('"uniform"', '"scrambler", dummies = 5'))
    with pytest.raises(DataError, match="A run ended while it released batch 1"):
        run(folder, specification=other, keys=keys(folder))
    assert run(folder, keys=keys(folder)).number == 1


def test_a_claimed_file_that_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def publish(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(module, "publish", publish)
        with pytest.raises(KeyboardInterrupt):
            run(folder, keys=keys(folder))
    arrive(folder, "day-1", range(70))
    with pytest.raises(DataError, match="was changed or removed while it was collected: nothing was released"):
        run(folder, keys=keys(folder))
    (folder / "arrivals" / "day-1.csv").unlink()
    with pytest.raises(DataError, match="was changed or removed"):
        run(folder, keys=keys(folder))


def claim(folder: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """End a run after the batch was claimed, and before it is there."""

    def publish(*_: Any) -> None:
        shutil.copy(folder / "out.state.json", folder / "kept")
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(module, "publish", publish)
        with pytest.raises(KeyboardInterrupt):
            run(folder, **more)
    (folder / "kept").replace(folder / "out.state.json")
    assert state(folder)["claimed"] == 1


def other(folder: Path, what: str) -> Keys | None:
    """Return keys whose coins are not those of `keys`."""
    if what == "key":
        return replace(keys(folder), file=new_key(folder / "b.key"))
    return {"none": None, "round": replace(keys(folder), round=1), "ids": replace(keys(folder), ids="code")}[what]


@pytest.mark.parametrize(
    ("claimed", "now"), [("none", "same"), ("same", "none"), ("same", "round"), ("same", "key"), ("same", "ids")]
)
@pytest.mark.parametrize("interrupted", ["repeat", "skip"])
def test_an_interrupted_batch_never_gets_other_coins_unasked(
    folder: Path, claimed: str, now: str, interrupted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "arrivals" / "day-1.csv"
    pl.read_csv(path).with_columns(code=pl.col("id") + 1000).write_csv(path)
    options: list[dict[str, Any]] = [
        {"keys": keys(folder) if what == "same" else other(folder, what)} for what in (claimed, now)
    ]
    first, second = options
    claim(folder, monkeypatch, **first)
    before, known = (folder / "out.state.json").read_bytes(), ledgers()
    with pytest.raises(DataError, match="A run ended while it released batch 1") as found:
        run(folder, **second)
    assert ("It was collected with a key" in str(found.value)) is (claimed == "same")
    assert (folder / "out.state.json").read_bytes() == before
    assert ledgers() == known  # nothing was admitted
    assert names(folder / "out") == []
    assert run(folder, interrupted=interrupted, **second).number == (1 if interrupted == "repeat" else None)
    assert (state(folder)["claimed"], taken(folder)) == (None, {"day-1.csv": 1})


def test_a_claim_of_an_earlier_version_is_asked_about(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(folder, monkeypatch, keys=keys(folder))
    old = state(folder)
    assert len(old.pop("coins")) == 64
    (folder / "out.state.json").write_text(json.dumps(old), encoding="utf-8")
    with pytest.raises(DataError, match="A run ended while it released batch 1"):
        run(folder, keys=keys(folder))


def test_a_claim_stays_if_the_ledger_refuses_the_repetition(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(folder, monkeypatch, keys=keys(folder))
    key = bytes.fromhex((folder / "my.key").read_text(encoding="ascii"))
    (key_folder(key) / "ledger.json").write_bytes(b"{")
    with pytest.raises(DataError, match="is damaged"):
        run(folder, keys=keys(folder))
    assert (state(folder)["claimed"], taken(folder)) == (1, {"day-1.csv": 1})


def test_a_batch_that_was_released_and_moved_at_once_stays_claimed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(release: Path, out: Path) -> None:
        private_files.publish(release, out)
        out.rename(folder / "moved")
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(module, "publish", publish)
        with pytest.raises(KeyboardInterrupt):
            run(folder)
    with pytest.raises(DataError, match="A run ended while it released batch 1"):
        run(folder)


@pytest.mark.parametrize("what", ["prepare", "publish"])
def test_ctrl_c_leaves_nothing_claimed(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(module, what, interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(folder)
    assert names(folder / "out") == []
    assert run(folder).number == 1


def test_the_ledger_knows_people_who_come_again(folder: Path) -> None:
    run(folder, keys=keys(folder))
    arrive(folder, "day-2", range(50, 130))
    with pytest.raises(DataError, match="10 people are in an earlier, different batch"):
        run(folder, keys=keys(folder))
    assert state(folder)["claimed"] is None
    assert taken(folder) == {"day-1.csv": 1}
    arrive(folder, "day-2", range(60, 130))
    assert run(folder, keys=keys(folder)).number == 2


@pytest.mark.parametrize("spelling", ["{:04}", "{}.0", " {}", "{} ", "+{}", "full"])
def test_the_same_people_in_another_spelling_are_known(folder: Path, spelling: str) -> None:
    """Six spellings were six batches of other people."""
    full = str.maketrans("0123456789", "".join(chr(0xFF10 + digit) for digit in range(10)))
    run(folder, keys=keys(folder))
    ids = [str(one).translate(full) if spelling == "full" else spelling.format(one) for one in range(60)]
    pl.DataFrame({"id": ids, "answer": ["no"] * 60}).write_csv(folder / "arrivals" / "day-2.csv")
    with pytest.raises(DataError, match="40 people have reported under this key and round with other values"):
        run(folder, keys=keys(folder))
    assert state(folder)["claimed"] is None


def test_a_ledger_that_took_ids_as_they_are_written(folder: Path) -> None:
    run(folder, keys=keys(folder))
    (path,) = Path(os.environ["HUSHUFFLE_STATE"]).glob("keys/*/ledger.json")
    document = json.loads(path.read_bytes())
    for batch in document["batches"]:
        assert batch.pop("ids") == "normal form"
    path.write_text(json.dumps(document), encoding="utf-8")
    arrive(folder, "day-2", range(100, 170))
    assert run(folder, keys=keys(folder)).number == 2, "these ids mean what they meant"
    pl.DataFrame({"id": [f"U{one}" for one in range(60)], "answer": ["no"] * 60}).write_csv(
        folder / "arrivals" / "day-3.csv"
    )
    with pytest.raises(DataError, match="An earlier version of hushuffle compared the ids in this ledger literally"):
        run(folder, keys=keys(folder))


def test_a_state_that_was_lost(folder: Path) -> None:
    run(folder)
    (folder / "out.state.json").unlink()
    with pytest.raises(DataError, match=r"holds batch-0001, which .*out.state.json does not list"):
        run(folder)
    with alone(folder / "out"), pytest.raises(DataError, match="Another collection is adding batches"):
        run(folder)


def of_columns(*columns: str) -> Collection:
    parts = "".join(
        f"""
        [[columns]]
        column = "{name}"
        categories = ["no", "yes"]
        randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
        """
        for name in columns
    )
    return parse_collection(f"""
        population = {{ data = "arrivals/*.csv" }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
        {parts}
    """)


def test_several_columns(folder: Path) -> None:
    specification = of_columns("answer", "other")
    first = run(folder, specification=specification, keys=keys(folder))
    assert first.collected is not None
    assert names(folder / "out" / "batch-0001") == ["answer", "manifest.json", "other"]
    arrive(folder, "day-2", range(60, 130))
    assert run(folder, specification=specification, keys=keys(folder)).number == 2
    assert state(folder)["coins"] is None
    tallies = tally_columns([folder / "out"])
    assert {name: tally.manifest.people for name, tally in tallies.items()} == {"answer": 130, "other": 130}


def test_several_columns_are_repeated_as_they_were(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = of_columns("answer", "other")
    claim(folder, monkeypatch, specification=specification, keys=keys(folder))
    with pytest.raises(DataError, match="It was collected with a key"):
        run(folder, specification=of_columns("answer"), keys=keys(folder))
    again = run(folder, specification=of_columns("other", "answer"), keys=keys(folder))
    assert again.collected is not None
    assert (again.number, {one.repeated for one in again.collected.columns.values()}) == (1, {True})


def test_what_cannot_be_batches(folder: Path) -> None:
    bundled = ONE.replace("arrivals/*.csv", "statsmodels:fair")
    with pytest.raises(DataError, match="a bundled data set is not possible"):
        run(folder, specification=parse_collection(bundled))
    counted = parse_collection(
        ONE.replace('data = "arrivals/*.csv", column = "answer"', "n = 3").replace(', missing = "drop"', "")
    )
    with pytest.raises(DataError, match="Batches need files"):
        run(folder, specification=counted)
    found = run(folder, specification=counted, sources=[str(folder / "arrivals")], column="answer")
    assert found.number == 1
    mallows = ONE.replace('{ kind = "uniform" }', '{ kind = "mallows", alpha = 2.0, groups = { column = "id" } }')
    with pytest.raises(
        DataError, match="A Mallows shuffle has one public order of all people, so batches are impossible"
    ):
        run(folder, specification=parse_collection(mallows.replace('missing = "drop"', 'missing = "refuse"')))


@pytest.mark.parametrize("name", ["aborts.parquet", "panics.parquet"])
def test_a_damaged_file_is_set_aside_and_comes_in_time_when_it_is_mended(name: str, folder: Path) -> None:
    """It neither ends the run nor any later one, and is tried again each time."""
    arrivals = folder / "arrivals"
    table = pl.DataFrame({"id": range(60), "ans": ["a", "b"] * 30})
    (arrivals / "day-1.csv").unlink()
    (arrivals / "day-0.parquet").write_bytes((CORPUS / name).read_bytes())
    asked = parse_collection(ONE.replace('"answer"', '"ans"').replace('"no", "yes"', '"a", "b", "c"'))
    more: dict[str, Any] = {"specification": asked, "sources": (str(arrivals),), "late": "refuse"}
    for number in (1, 2):
        table.with_columns(pl.col("id") + 100 * number).write_csv(arrivals / f"day-{number}.csv")
        made = run(folder, **more)
        assert (made.number, made.files) == (number, (str(arrivals / f"day-{number}.csv"),))
        (message,) = made.damaged
        assert "is not a readable Parquet file" in message
        assert not [place for place in names(folder) if "collecting" in place]
        assert len(state(folder)["damaged"]) == 1
    table.write_parquet(arrivals / "day-0.parquet")
    with pytest.raises(DataError, match="late"):  # what is mended has arrived again
        run(folder, **more)
    made = run(folder, **(more | {"late": "next"}))
    assert (made.number, len(made.files), made.damaged) == (3, 1, ())
    assert state(folder)["damaged"] == []


def test_a_file_with_a_wrong_value_does_not_stop_the_others(folder: Path) -> None:
    """One wrong row of 120,000 stopped a daily batch, and the next."""
    wrong = folder / "arrivals" / "day-2.csv"
    wrong.write_text("id,answer\n200,no\n201,SECRET\n", encoding="utf-8")
    arrive(folder, "day-3", range(300, 360))
    found = run(folder)
    assert (found.number, len(found.files)) == (1, 2)
    (message,) = found.damaged
    assert message.startswith("column 'answer' of arrivals/day-2.csv: 1 of 2 records match no category (50 %; line 3).")
    assert "SECRET" not in message
    assert taken(folder) == {"day-1.csv": 1, "day-3.csv": 1}
    arrive(folder, "day-4", range(400, 460))
    again = run(folder, late="refuse")
    assert (again.number, again.damaged) == (2, (message,))
    with pytest.raises(DataError, match="match no category"):
        run(folder)
    wrong.write_text("id,answer\n" + "200,no\n" * 50, encoding="utf-8")
    assert run(folder, late="next").number == 3


def test_nothing_but_damaged_files(folder: Path) -> None:
    path = folder / "arrivals" / "day-1.csv"
    path.write_text('id,answer\n1,"yes\n')
    made = run(folder)
    assert (made.number, made.files, len(made.damaged)) == (None, (), 1)
    path.write_bytes(b"id,answer\n1,\xff\n")
    arrive(folder, "day-2", range(20))
    made = run(folder)
    assert (made.number, made.files, len(made.damaged)) == (None, (str(folder / "arrivals" / "day-2.csv"),), 1)
    assert "not UTF-8" in made.damaged[0]
    assert names(folder) == ["arrivals", "my.key", "out", "out.state.json"]
