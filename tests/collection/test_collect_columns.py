from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.collection import collect as publishing
from hushuffle.collection import release as collect_release
from hushuffle.collection.collect import Collected
from hushuffle.collection.engines import local
from hushuffle.collection.request import Keys, Request
from hushuffle.errors import DataError
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.randomness import reproducible
from hushuffle.specification.reading import Collection, parse_collection
from key_memory import ledgers, new_key, no_figure

SMOKES = """
[[columns]]
column = "smokes"
categories = ["no", "yes"]
missing = "drop"
randomizer = { kind = "randomized-response", epsilon = 1.0 }
"""
TOWN = """
[[columns]]
name = "town"
column = "home town"
categories = ["a", "b", "c"]
randomizer = { kind = "local-hashing", epsilon = 2.0, g = 2 }
"""


def survey(*columns: str, more: str = "", shuffler: str = '{ kind = "uniform" }') -> Collection:
    return parse_collection(f"""
        title = "Two questions"
        population = {{ data = "people.csv" }}
        shuffler = {shuffler}
        targets = {{ delta = 1e-6{more} }}
        {"".join(columns or (SMOKES, TOWN))}
    """)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute figures where they are looked at."""
    if not request.node.name.startswith("test_what_is_written"):
        monkeypatch.setattr(collect_release, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
        monkeypatch.setattr(dp, "compose", lambda *_, **__: Bound.exact(2.0, unit="nats"))
        monkeypatch.setattr(publishing, "rounds_of", no_figure)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    smokes = rng.choice(["no", "yes", ""], 300, p=[0.5, 0.3, 0.2])
    pl.DataFrame({"id": np.arange(300), "smokes": smokes, "home town": rng.choice(["a", "b", "c"], 300)}).write_csv(
        tmp_path / "people.csv"
    )
    new_key(tmp_path / "my.key")
    return tmp_path


def test_the_local_epsilons_of_all_columns_are_held_against_the_target(folder: Path) -> None:
    with pytest.raises(
        DataError, match=r"all reports of one person is 3, above targets\.local_epsilon = 2\.9: no data"
    ):
        run(folder, survey(more=", local_epsilon = 2.9"))
    assert top(folder) == {"people.csv", "my.key"}
    assert run(folder, survey(more=", local_epsilon = 3.0")).local_epsilon == 3.0


def top(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".used"}


def run(folder: Path, specification: Collection | None = None, *, out: str = "out", **more: Any) -> Collected:
    request = Request(base_folder=folder, **more)
    return publishing.run(specification or survey(), out=folder / out, request=request)


def reports(folder: Path, name: str, out: str = "out") -> list[tuple[int, ...]]:
    return pl.read_parquet(folder / out / name / "reports.parquet").rows()


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_written(folder: Path) -> None:
    told: list[float] = []
    collected = run(folder, progress=lambda _, share: told.append(share))
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert names(folder / "out") == [
        "manifest.json",
        "smokes/manifest.json",
        "smokes/reports.parquet",
        "town/manifest.json",
        "town/reports.parquet",
    ]
    smokers = int((pl.read_csv(folder / "people.csv")["smokes"].fill_null("") != "").sum())
    assert [one.manifest.people for one in collected.columns.values()] == [smokers, 300]
    assert collected.columns["smokes"].dropped == 300 - smokers
    assert [len(reports(folder, name)) for name in ("smokes", "town")] == [smokers, 300]
    protocols = [
        hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=smokers),
        hs.Protocol(randomizer=hs.LocalHashing(k=3, g=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=300),
    ]
    together = hs.dp.compose(protocols, delta=1e-6)
    assert (collected.central, collected.local_epsilon) == (together, 3.0)
    document = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert (document["title"], document["local_epsilon"], document["coins"]) == ("Two questions", 3.0, "secure")
    assert document["central"]["epsilon"]["upper"] == together.upper
    assert document["central"]["relation"].startswith("replace one person's values in all columns")
    assert [one["people"] for one in document["columns"]] == [smokers, 300]
    assert "people.csv" not in "".join(path.read_text(encoding="utf-8") for path in (folder / "out").rglob("*.json"))
    assert set(collected.files) == {folder / "out" / name for name in names(folder / "out")}
    assert top(folder) == {"my.key", "out", "people.csv"}


def test_columns_cannot_be_joined(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, people are their own two values: rows of the two files agree no more often than by chance.

    Of 12 collections of 500 people, the number that stand in the same place of both files is about Poisson with mean
    12: false alarm 1e-6; so is that of neighbours who are neighbours in both (mean 24).
    """
    column = '[[columns]]\ncolumn = "{0}"\ncategories = {1}\n'
    truth = 'randomizer = {{ kind = "randomized-response", epsilon = "inf" }}\n'
    people = [f"{one}" for one in range(500)]
    pl.DataFrame({"first": people, "second": people}).write_csv(folder / "people.csv")
    both = survey(*(column.format(name, json.dumps(people)) + truth.format() for name in ("first", "second")))
    same = near = 0
    for turn in range(12):
        rng = reproducible(turn)
        monkeypatch.setattr(local, "secure", lambda rng=rng: rng)
        run(folder, both, out=f"out{turn}")
        one, other = (np.array(reports(folder, name, f"out{turn}"))[:, 0].astype(int) for name in ("first", "second"))
        assert np.array_equal(np.sort(one), np.sort(other))
        same += int(np.sum(one == other))
        places = np.argsort(other)[one]
        near += int(np.sum(np.abs(np.diff(places)) == 1))
    assert same < 34  # P(Poisson(12) >= 34) is 4e-7
    assert near < 54  # P(Poisson(24) >= 54) is 1e-7


def test_a_key_repeats_every_column(folder: Path) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    shuffler = '{ kind = "scrambler", dummies = 20 }'
    first = run(folder, survey(shuffler=shuffler), keys=keys)
    again = run(folder, survey(shuffler=shuffler), keys=keys, out="again")
    assert [one.repeated for one in first.columns.values()] == [False, False]
    assert [one.repeated for one in again.columns.values()] == [True, True]
    for name in ("smokes", "town"):
        assert sorted(reports(folder, name)) == sorted(reports(folder, name, "again"))
        assert reports(folder, name) != reports(folder, name, "again")
    only = run(folder, survey(TOWN, shuffler=shuffler), keys=keys, out="only")
    assert only.columns["town"].repeated
    assert sorted(reports(folder, "town")) == sorted(reports(folder, "town", "only"))


def test_coins_of_columns_are_independent(folder: Path) -> None:
    """Two columns with the same 300 values out of 100: how often each is reported agrees with probability < 1e-30."""
    labels = [f"{one}" for one in range(100)]
    pl.DataFrame({"id": np.arange(300), "first": labels * 3, "second": labels * 3}).write_csv(folder / "people.csv")
    columns = [
        f'[[columns]]\ncolumn = "{name}"\ncategories = {json.dumps(labels)}\n'
        'randomizer = { kind = "randomized-response", epsilon = 0.1 }\n'
        for name in ("first", "second")
    ]
    run(folder, survey(*columns), keys=Keys(file=folder / "my.key", ids="id"))
    assert sorted(reports(folder, "first")) != sorted(reports(folder, "second"))


def test_edited_values_are_refused_and_nothing_is_used_up(folder: Path) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    run(folder, survey(TOWN), keys=keys)
    before = ledgers()
    table = pl.read_csv(folder / "people.csv")
    table.with_columns(pl.lit("a").alias("home town")).write_csv(folder / "people.csv")
    with pytest.raises(DataError, match="with other values, categories or another randomizer"):
        run(folder, keys=keys, out="again")
    assert ledgers() == before  # not even for the other column
    assert top(folder) == {"my.key", "out", "people.csv"}


def test_what_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="of all columns together is up to 2 at delta = 1e-06, above"):
        run(folder, survey(more=", epsilon = 1.9"))
    with pytest.raises(DataError, match=r"this specification has \[\[columns\]\]"):
        run(folder, column="smokes")
    with pytest.raises(DataError, match="fewer than the 290 that --min-batch requires"):
        run(folder, min_batch=290)
    with pytest.raises(DataError, match="A reference order needs"):
        run(folder, reference=folder / "order.npy")
    assert top(folder) == {"my.key", "people.csv"}


@pytest.mark.parametrize("what", ["_manifest", "publish", "release", "write_reports"])
def test_all_or_nothing(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(collect_release if what == "write_reports" else publishing, what, fail)
        with pytest.raises(KeyboardInterrupt):
            run(folder, memory=10)
    assert top(folder) == {"my.key", "people.csv"}
    run(folder, memory=10)


def test_sums_of_local_epsilons(folder: Path) -> None:
    endless = TOWN.replace("epsilon = 2.0", 'epsilon = "inf"')
    assert run(folder, survey(SMOKES, endless)).local_epsilon == float("inf")
    collected = run(folder, survey(SMOKES, TOWN.replace("epsilon = 2.0", "epsilon = 1e-9")), out="small")
    assert collected.local_epsilon > 1.0


def test_what_is_written_of_several_rounds(folder: Path) -> None:
    found = parse_collection(f"""
        rounds = 3
        population = {{ data = "people.csv" }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
        {SMOKES}{TOWN.replace('"local-hashing", epsilon = 2.0, g = 2', '"randomized-response", epsilon = 2.0')}
    """)
    made = run(folder, found)
    protocols = [column.protocol for column in made.columns.values()]
    assert made.central == dp.compose(protocols, delta=1e-6)
    assert made.total == dp.compose([(protocol, 3) for protocol in protocols], delta=1e-6)
    central = json.loads((folder / "out" / "manifest.json").read_text())["central"]
    assert central["epsilon"]["upper"] == made.central.upper
    assert (central["rounds"]["times"], central["rounds"]["epsilon"]["upper"]) == (3, made.total.upper)
    limited = parse_collection(
        found.effective().replace("delta = 1e-06", f"delta = 1e-06\nepsilon = {made.central.upper}")
    )
    with pytest.raises(DataError, match="all columns together in all 3 rounds is up to"):
        run(folder, limited, out="limited")
