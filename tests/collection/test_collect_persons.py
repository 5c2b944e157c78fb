from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection import collect as publishing
from hushuffle.collection.batches import collect_batch
from hushuffle.collection.collect import Collected, collect
from hushuffle.collection.request import Keys, Request
from hushuffle.errors import DataError, SpecificationError, UnsupportedProtocolError
from hushuffle.specification import Collection, Specification, parse
from key_memory import new_key, no_figure

PEOPLE = 'data = "trips.csv", column = "answer", categories = ["a", "b"]'


def survey(population: str = f'{PEOPLE}, person = "user", reports_per_person = 3', *, more: str = "") -> Specification:
    return parse(f"""
        {more}
        population = {{ {population} }}
        randomizer = {{ kind = "randomized-response", epsilon = "inf" }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
    """)


def noisy(*, epsilon: str = "", most: int = 3, rounds: int = 1) -> Specification:
    return parse(f"""
        rounds = {rounds}
        population = {{ {PEOPLE}, person = "user", reports_per_person = {most} }}
        randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6{epsilon} }}
    """)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """40 people with 1 to 20 trips each."""
    users = np.repeat(np.arange(40), 1 + np.arange(40) % 20)
    answers = np.where(users % 2 == 0, "a", "b")
    table = pl.DataFrame({"trip": np.arange(users.size), "user": [f"u{user}" for user in users], "answer": answers})
    table.sample(fraction=1.0, shuffle=True, seed=5).write_csv(tmp_path / "trips.csv")
    new_key(tmp_path / "my.key")
    return tmp_path


def run(folder: Path, specification: Specification | None = None, *, out: str = "out", **more: Any) -> Collected:
    return collect(specification or survey(), out=folder / out, base_folder=folder, **more)


def manifest(folder: Path, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / out / "manifest.json").read_text())
    return found


def test_at_most_so_many_reports_of_each_person_leave(folder: Path) -> None:
    """Without noise the reports are the answers: each person gives as many as there are, 3 at most."""
    found = run(folder).columns[""]
    kept = {name: sum(min(1 + user % 20, 3) for user in range(40) if user % 2 == odd) for odd, name in enumerate("ab")}
    reports = pl.read_parquet(folder / "out" / "reports.parquet")["report"].to_list()
    assert {"a": reports.count(0), "b": reports.count(1)} == kept
    assert found.persons == 40
    assert found.beyond == sum(1 + user % 20 for user in range(40)) - sum(kept.values())
    assert found.protocol.n == sum(kept.values())


def test_the_manifest_says_what_the_guarantee_is_for(folder: Path) -> None:
    run(folder, noisy())
    central = manifest(folder)["central"]
    wanted = hs.dp.epsilon(
        hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=114),
        delta=1e-6,
        reports_per_person=3,
    )
    assert manifest(folder)["people"] == 114
    assert central["epsilon"]["upper"] == wanted.upper
    assert central["relation"] == "replace all reports of one person (at most 3); the number of reports stays the same"
    assert (central["per"], central["reports_per_person"]) == ("person", 3)
    assert "assumed" not in central
    again = parse(manifest(folder)["specification"])
    assert again.population.most == 3
    run(folder, survey(PEOPLE), out="rows")
    assert manifest(folder, "rows")["central"]["assumed"] == "one row is taken for one person"


def test_a_person_is_bounded_before_anything_leaves(folder: Path) -> None:
    once = hs.dp.epsilon(
        hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=114),
        delta=1e-6,
        reports_per_person=3,
    )
    with pytest.raises(DataError, match=r"114 reports, up to 3 of a person, the central epsilon is up to .* nothing"):
        run(folder, noisy(epsilon=f", epsilon = {once.upper * 0.99}"))
    assert not (folder / "out").exists()
    enough = f", epsilon = {once.upper * 1.01}"
    run(folder, noisy(epsilon=enough))
    with pytest.raises(DataError, match="the central epsilon of all 4 rounds together is up to"):
        run(folder, noisy(epsilon=enough, rounds=4), out="rounds")


def test_shares_of_reports_are_not_taken_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, noisy())
    run(folder, noisy(most=1), out="single")
    assert main(["estimate", str(folder / "out"), "--json"]) == Exit.DONE
    several = json.loads(capsys.readouterr().out)
    assert (several["unit"], several["reports"], several["reports_per_person"]) == ("reports", 114, 3)
    assert several["meaning"] == "people, people_low and people_high count reports: up to 3 per person."
    assert several["fake_users"]["fakes"] == 1, "of about 38 people"
    assert several["fake_users"]["following_the_protocol"] == 3 / 114
    run(folder, noisy(most=1000), out="many")
    assert main(["estimate", str(folder / "many"), "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["fake_users"]["following_the_protocol"] == 1.0, "one person may be all"
    assert main(["estimate", str(folder / "single"), "--json"]) == Exit.DONE
    single = json.loads(capsys.readouterr().out)
    assert (single["unit"], single["reports"], single["reports_per_person"]) == ("people", 40, 1)
    assert "meaning" not in single


def test_all_rounds_are_added_up(folder: Path) -> None:
    found = run(folder, noisy(rounds=4)).columns[""]
    once = hs.dp.per_person(found.protocol, reports=3)
    assert found.total == hs.dp.compose([(once, 4)], delta=1e-6)
    told = manifest(folder)["central"]["rounds"]
    assert told["times"] == 4
    assert told["epsilon"]["upper"] == hs.dp.compose([(once, 4)], delta=1e-6).upper
    assert parse(manifest(folder)["specification"]).rounds == 4


def test_the_choice_says_nothing_of_values(folder: Path) -> None:
    """One person, 30 trips, a third of them "b": over many choices of 3 as many "b" as by chance, and all are met."""
    answers = ["b"] * 10 + ["a"] * 20
    pl.DataFrame({"user": ["x"] * 30, "answer": answers}).write_csv(folder / "trips.csv")
    found = []
    for place in range(60):
        run(folder, out=f"out-{place}")
        found.append(sum(pl.read_parquet(folder / f"out-{place}" / "reports.parquet")["report"].to_list()))
    # The number of "b" among 3 of 30 is hypergeometric: mean 1, variance 0.62; six standard deviations of the mean.
    assert abs(np.mean(found) - 1) < 6 * np.sqrt(0.62 / 60)
    assert len(set(found)) > 1


def test_a_key_repeats_the_choice_whatever_the_values(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "rounds_of", no_figure)
    keys = Keys(file=folder / "my.key", ids="trip")
    table = pl.read_csv(folder / "trips.csv").with_columns(answer=pl.Series(["a", "b"] * 230)[:420].head(420))
    table.write_csv(folder / "trips.csv")
    first = run(folder, keys=keys)
    table.sample(fraction=1.0, shuffle=True, seed=9).write_csv(folder / "trips.csv")  # another order of the rows
    again = run(folder, keys=keys, out="again")
    one, two = (
        sorted(pl.read_parquet(folder / out / "reports.parquet")["report"].to_list()) for out in ("out", "again")
    )
    assert one == two
    assert not first.repeated
    assert again.repeated


def test_people_are_counted_where_a_batch_must_have_so_many(folder: Path) -> None:
    with pytest.raises(DataError, match="40 people are fewer than the 41"):
        run(folder, min_batch=41)
    run(folder, min_batch=40)


def test_every_record_is_somebody_s(folder: Path) -> None:
    pl.DataFrame({"user": ["x", None, "y"], "answer": ["a", "b", "a"]}).write_csv(folder / "trips.csv")
    with pytest.raises(DataError, match=r"1 of 3 records name no person in column 'user'.*needs a person"):
        run(folder)
    pl.DataFrame({"user": ["x", None, "y"], "answer": ["a", None, "a"]}).write_csv(folder / "trips.csv")
    dropping = survey(f'{PEOPLE}, person = "user", missing = "drop"')
    assert run(folder, dropping).columns[""].persons == 2  # nobody's record has no answer


def test_where_several_records_of_a_person_are_not_collected(folder: Path) -> None:
    made = collect_batch(Collection.of(survey()), out=folder / "batches", request=Request(base_folder=folder))
    assert made.people == 40
    with pytest.raises(UnsupportedProtocolError, match="pass `--engine local`"):
        run(folder, master="local[1]")
    counted = survey("n = 100, k = 2, reports_per_person = 3")
    with pytest.raises(SpecificationError, match=r"population\.reports_per_person: needs population\.person"):
        run(folder, counted, sources=[str(folder / "trips.csv")], column="answer")


def test_ids_in_two_spellings_are_refused(folder: Path) -> None:
    """`P04711` and `p04711` were two people."""
    table = pl.read_csv(folder / "trips.csv")
    for other in ("U{}", " u{}", "\uff55{}"):
        twice = table.with_columns(
            user=pl.when(pl.col("trip") % 97 == 0)
            .then(pl.col("user").str.replace("^u(.*)$", other.format("$1")))
            .otherwise("user")
        )
        twice.write_csv(folder / "trips.csv")
        message = (
            r"column 'user': \d+ ids are written in several ways: with and without capital letters, spaces, leading "
            r"zeros, a plus sign or \.0\..* Write each id in one way"
        )
        for most in (1, 3):
            with pytest.raises(DataError, match=message) as refused:
                run(folder, noisy(most=most))
            assert "u1" not in str(refused.value).replace("column 'user'", "")
            with pytest.raises(DataError, match=message):
                noisy(most=most).population.read(folder)
        assert not (folder / "out").exists()
    table.with_columns(pl.col("user").str.to_uppercase()).write_csv(folder / "trips.csv")
    assert run(folder).columns[""].persons == 40, "all ids are written in one way"


def test_a_person_who_is_not_in_the_file_is_an_error_that_names_the_column(folder: Path) -> None:
    with pytest.raises(DataError, match="nobody"):
        run(folder, survey(f'{PEOPLE}, person = "nobody"'))
