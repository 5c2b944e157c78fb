from __future__ import annotations

import json
import math
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.collection.collect import Collected, collect
from hushuffle.collection.engines import local
from hushuffle.collection.request import Keys
from hushuffle.errors import DataError, SpecificationError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import sample_mallows
from hushuffle.randomness import reproducible
from hushuffle.specification import Specification, parse

N = 60
REFERENCE = np.argsort(np.arange(N) % 6, kind="stable")
TOWN = '{ column = "town" }'


def survey(
    *,
    shuffle: str = "alpha = 3.0",
    groups: str = TOWN,
    randomizer: str = '{ kind = "randomized-response", epsilon = 2.0 }',
    missing: str = "refuse",
) -> Specification:
    categories = json.dumps([f"{one}" for one in range(N)])
    return parse(f"""
        population = {{ data = "people.csv", column = "value", categories = {categories}, missing = "{missing}" }}
        randomizer = {randomizer}
        shuffler = {{ kind = "mallows", {shuffle}, groups = {groups} }}
        targets = {{ delta = 1e-6 }}
    """)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    columns = {"id": np.arange(N), "value": np.arange(N), "town": np.arange(N) % 6, "east": np.arange(N) / 2.0}
    pl.DataFrame(columns).write_csv(tmp_path / "people.csv")
    np.save(tmp_path / "order.npy", REFERENCE)
    return tmp_path


def run(folder: Path, specification: Specification | None = None, *, out: str = "out", **more: Any) -> Collected:
    return collect(specification or survey(), out=folder / out, base_folder=folder, **more)


def reports(folder: Path, out: str = "out") -> list[int]:
    return [int(one) for one in pl.read_parquet(folder / out / "reports.parquet")["report"]]


@pytest.mark.parametrize("given", [True, False])
def test_what_is_written(folder: Path, given: bool) -> None:
    collected = run(folder, reference=folder / "order.npy" if given else None)
    document = json.loads(collected.files[1].read_text(encoding="utf-8"))
    groups = [np.arange(town, N, 6) for town in range(6)]
    sensitivity = 45  # ten people in a row: 10 * 9 / 2
    assert document["order"]["sensitivity"] == sensitivity
    assert document["order"]["theta"] == hs.order.theta_for_alpha(3.0, reference=REFERENCE, groups=groups)
    assert document["order"]["alpha"]["upper"] == pytest.approx(3.0)
    assert document["order"]["public_columns"] == ["town"]
    uniform = hs.Protocol(randomizer=hs.RandomizedResponse(k=N, epsilon=2.0), shuffler=hs.UniformShuffle(), n=N)
    central = document["central"]["epsilon"]
    seen = hs.Protocol(randomizer=uniform.randomizer, shuffler=hs.NoShuffle(), n=N)
    ends = hs.dp.epsilon(uniform, delta=1e-6).lower, hs.dp.epsilon(seen, delta=1e-6).upper
    assert (central["lower"], central["upper"]) == ends
    again = parse(document["specification"])
    assert again.shuffler.kind == "none"  # who reads no further is told what holds without any shuffle
    assert "Mallows" in document["deployment"]
    assert len(reports(folder)) == N


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_reports_move_as_the_shuffle_says(folder: Path, distance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise a report names its sender: row reference[i] holds person reference[tau[i]]."""
    specification = survey(
        shuffle=f'theta = 0.7, distance = "{distance}"', randomizer='{ kind = "randomized-response", epsilon = "inf" }'
    )
    monkeypatch.setattr(local, "secure", lambda: reproducible(5))
    run(folder, specification, reference=folder / "order.npy")
    rng = reproducible(5)
    specification.randomizer.build(N).randomize(np.arange(N), rng=rng)
    tau = sample_mallows(N, theta=0.7, distance="hamming" if distance == "hamming" else "kendall", rng=rng)
    expected = np.empty(N, dtype=int)
    expected[REFERENCE] = REFERENCE[tau]
    assert reports(folder) == expected.tolist()


def test_records_stay_among_their_neighbours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inversions of people against the reference: mean and variance of the law, within six standard deviations."""
    rng = reproducible(6)
    monkeypatch.setattr(local, "secure", lambda: rng)
    specification = survey(shuffle="theta = 0.5", randomizer='{ kind = "randomized-response", epsilon = "inf" }')
    found = []
    ranks = np.argsort(REFERENCE)
    for turn in range(20):
        run(folder, specification, out=f"out{turn}", reference=folder / "order.npy")
        ordered = ranks[np.array(reports(folder, f"out{turn}"))[REFERENCE]]
        found.append(sum(int(np.sum(ordered[place + 1 :] < one)) for place, one in enumerate(ordered)))
    mean = variance = 0.0
    for size in range(1, N + 1):
        weights = np.exp(-0.5 * np.arange(size))
        weights /= weights.sum()
        first = float(weights @ np.arange(size))
        mean, variance = mean + first, variance + float(weights @ (np.arange(size) - first) ** 2)
    assert abs(sum(found) - 20 * mean) < 6 * math.sqrt(20 * variance)  # false alarm 2e-9


def test_groups_by_numbers(folder: Path) -> None:
    groups = '{ columns = ["east"], radius = 1.0 }'
    np.save(folder / "order.npy", np.arange(N))
    collected = run(folder, survey(groups=groups), reference=folder / "order.npy")
    assert collected.manifest.facts["order"]["sensitivity"] == 10  # five in a row
    alone = survey(groups='{ columns = ["east"], radius = 0.1 }')
    with pytest.raises(SpecificationError, match="must put two people into one group"):
        run(folder, alone, reference=folder / "order.npy", out="again")


def test_another_file_of_the_same_people(folder: Path) -> None:
    (folder / "people.csv").rename(folder / "others.csv")
    for out, reference in (("out", folder / "order.npy"), ("again", None)):
        collected = run(folder, out=out, sources=[str(folder / "others.csv")], reference=reference)
        assert collected.columns[""].manifest.people == N


def test_what_is_refused(folder: Path) -> None:
    key = folder / "my.key"
    key.write_text(secrets.token_hex(32), encoding="ascii")
    key.chmod(0o600)
    with pytest.raises(UnsupportedProtocolError, match="A Mallows shuffle supports no key"):
        run(folder, keys=Keys(file=key, ids="id"))
    for sources in ([str(folder / "people.csv")] * 2, [str(folder)]):
        with pytest.raises(DataError, match="the records of one file or one glob"):
            run(folder, sources=sources)
    np.save(folder / "order.npy", np.arange(N - 1))
    with pytest.raises(DataError, match="orders 59 records, but there are 60 people"):
        run(folder, reference=folder / "order.npy")
    table = pl.read_csv(folder / "people.csv")
    np.save(folder / "order.npy", REFERENCE)
    table.with_columns(pl.when(pl.col("id") > 0).then("town").alias("town")).write_csv(folder / "people.csv")
    with pytest.raises(DataError, match=r"column 'town' of people[.]csv: 1 of 60 records"):
        run(folder, reference=folder / "order.npy")
    table.with_columns(pl.when(pl.col("id") > 0).then("value").alias("value")).write_csv(folder / "people.csv")
    with pytest.raises(DataError, match="the other reports no longer match the public order"):
        run(folder, survey(missing="drop"))
    assert sorted(path.name for path in folder.iterdir()) == ["my.key", "order.npy", "people.csv"]
