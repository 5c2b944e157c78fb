from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection import ledger as ledgers
from hushuffle.collection.batches import collect_batch
from hushuffle.collection.collect import Collected, collect
from hushuffle.collection.engines.kernel import MemoizedKernel
from hushuffle.collection.ledger import Candidate, begin, opened
from hushuffle.collection.record_tags import MemoizedTags, TagSorter
from hushuffle.collection.request import Keys, Request
from hushuffle.errors import DataError, SpecificationError
from hushuffle.specification import Collection, Specification, parse
from key_memory import new_key

PEOPLE = 300


def spec(
    *, rounds: int = 4, epsilon: float = 1.0, targets: str = "", head: str = "memoised = true", person: str = "user"
) -> Specification:
    whose = f', person = "{person}"' if person else ""
    return parse(f"""
        rounds = {rounds}
        {head}
        population = {{ data = "week-1.csv", column = "answer", categories = ["a", "b", "c"]{whose} }}
        randomizer = {{ kind = "randomized-response", epsilon = {epsilon} }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6{targets} }}
    """)


def answers(changed: int = 0) -> list[str]:
    """Return everybody's answer; the first so many have changed theirs."""
    return ["abc"[(person + (person < changed)) % 3] for person in range(PEOPLE)]


def write(folder: Path, week: int, users: list[int], given: list[str]) -> None:
    rows = pl.DataFrame({"user": [f"u{user}" for user in users], "answer": [given[user] for user in users]})
    rows.sample(fraction=1.0, shuffle=True, seed=week).write_csv(folder / f"week-{week}.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, 1, list(range(PEOPLE)), answers())
    write(tmp_path, 2, list(range(PEOPLE)), answers())
    write(tmp_path, 3, list(range(20, PEOPLE)), answers(changed=50))
    new_key(tmp_path / "my.key")
    return tmp_path


def run(folder: Path, week: int, specification: Specification | None = None, **more: Any) -> Collected:
    options = {
        "out": folder / f"out-{week}",
        "sources": [str(folder / f"week-{week}.csv")],
        "keys": Keys(file=folder / "my.key", ids="user", round=week),
        **more,
    }
    return collect(specification or spec(), **options)


def reports(folder: Path, week: int | str) -> list[int]:
    found: list[int] = sorted(pl.read_parquet(folder / f"out-{week}" / "reports.parquet")["report"].to_list())
    return found


def test_a_person_sends_the_same_report_in_every_round(folder: Path) -> None:
    run(folder, 1)
    run(folder, 2)
    assert reports(folder, 1) == reports(folder, 2)
    fresh = spec(head="", rounds=1)
    other = folder / "other.key"
    other.write_text(bytes(range(32)).hex(), encoding="ascii")  # two random draws are the same multiset now and then
    other.chmod(0o600)
    for week in (1, 2):
        key = Keys(file=other, ids="user", round=week, new=week == 1)
        run(folder, week, fresh, keys=key, out=folder / f"out-fresh-{week}")
    assert reports(folder, "fresh-1") != reports(folder, "fresh-2")


def test_what_a_key_keeps_never_changes(folder: Path) -> None:
    """Else a new version would draw a second report of everybody."""
    (folder / "fixed.key").write_text(bytes(range(32)).hex(), encoding="ascii")
    (folder / "fixed.key").chmod(0o600)
    run(folder, 1, keys=Keys(file=folder / "fixed.key", ids="user", round=1, new=True))
    digest = hashlib.sha256(repr(reports(folder, 1)).encode()).hexdigest()
    assert (reports(folder, 1).count(0), digest[:16]) == (94, "fc9c7830767cb13e")


def test_each_value_of_a_person_has_a_report_of_its_own_and_comes_back_with_it() -> None:
    randomizer, records = hs.RandomizedResponse(k=3, epsilon=1.0), np.arange(20_000, dtype=np.uint64)
    kernel = MemoizedKernel(randomizer=randomizer, key=bytes(32))
    first, second, again = (kernel.reports(np.full(20_000, value), records=records) for value in (0, 1, 0))
    assert bool(np.all(first == again))
    # Independent: they agree as often as two reports with coins of their own, here to four standard deviations.
    shows = hs.dp.change_shows(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=2)).upper
    assert abs(np.mean(first != second) - shows) < 4 * 0.5 / np.sqrt(20_000)
    mixed = kernel.reports(np.arange(20_000) % 2, records=records)
    assert bool(np.all(mixed == np.where(np.arange(20_000) % 2, second, first)))


def test_the_crowd_is_of_those_who_stay_and_is_told_to_nobody_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=250)
    run(folder, 1)
    second = run(folder, 2)
    assert second.rounds is not None
    assert (second.rounds.collections, second.rounds.kept, second.rounds.changed) == (2, PEOPLE, 0)
    with pytest.raises(DataError, match=r"30 people gave another answer .* up to 2 different .*: nothing was released"):
        run(folder, 3)
    assert not (folder / "out-3").exists()
    crowds, waves = list[hs.Protocol](), hs.dp.waves

    def asked(crowd: hs.Protocol, **more: Any) -> hs.Bound:
        crowds.append(crowd)
        return waves(crowd, **more)

    with monkeypatch.context() as patched:
        patched.setattr("hushuffle.collection.kept.dp.waves", asked)
        third = run(folder, 3, spec(head="memoised = true\nchanges = 1"))
    assert third.rounds is not None
    assert min(crowd.n for crowd in crowds) == 250  # the figure may be that of two reports, whatever the crowd is
    assert (third.rounds.collections, third.rounds.kept, third.rounds.changed) == (3, 250, 30)
    assert third.rounds.epsilon.upper == hs.dp.waves(protocol, waves=3, delta=1e-6, changes=1).upper
    text = (folder / "out-3" / "manifest.json").read_text(encoding="utf-8")
    assert "250" not in text
    assert "key" not in json.loads(text)
    again = run(folder, 2, spec(head="memoised = true\nchanges = 1"), out=folder / "again")
    assert again.rounds is not None
    assert (again.repeated, again.rounds.collections, again.rounds.kept) == (True, 3, 250)


def test_the_manifest_says_what_all_rounds_rest_on(folder: Path) -> None:
    found = run(folder, 3).columns[""]
    told = json.loads((folder / "out-3" / "manifest.json").read_text(encoding="utf-8"))["central"]
    assert found.total == hs.dp.waves(found.protocol, waves=4, delta=1e-6)
    assert found.persons == 280
    assert "assumed" not in told
    assert told["rounds"]["epsilon"]["upper"] == hs.dp.epsilon(found.protocol, delta=1e-6).upper
    assert (told["rounds"]["memoised"], told["rounds"]["changes"]) == (True, 0)
    assert told["rounds"]["assumed"] == "all 280 people take part in every round and keep their values"
    assert "in which they return to an earlier value, stays as it is" in told["rounds"]["relation"]
    once_changed = spec(head="memoised = true\nchanges = 1")
    assert run(folder, 2, once_changed).columns[""].total == hs.dp.waves(
        hs.Protocol(randomizer=found.protocol.randomizer, shuffler=hs.UniformShuffle(), n=PEOPLE),
        waves=4,
        delta=1e-6,
        changes=1,
    )


def test_nothing_leaves_if_too_few_stayed(folder: Path) -> None:
    people = [f"new{user}" if user < 50 else f"u{user}" for user in range(PEOPLE)]
    pl.DataFrame({"user": people, "answer": answers()}).write_csv(folder / "week-3.csv")
    found = run(folder, 1)
    limit = f", epsilon = {found.central.upper * 1.05}"
    run(folder, 2, spec(targets=limit))
    with pytest.raises(
        DataError, match=r"Only 250 people have sent the same report in all 3 rounds so far: .* Nothing"
    ):
        run(folder, 3, spec(targets=limit))
    assert not (folder / "out-3").exists()
    run(folder, 3)


def test_ids_written_in_another_way_are_noticed(folder: Path) -> None:
    run(folder, 1)
    rows = pl.read_csv(folder / "week-2.csv").with_columns(pl.col("user").str.to_uppercase() + " ")
    rows.write_csv(folder / "week-2.csv")
    known = run(folder, 2).rounds
    assert known is not None
    assert known.kept, "differ only in capital letters, spaces"
    rows = rows.with_columns(("person " + pl.col("user")).alias("user"))
    rows.write_csv(folder / "week-2.csv")
    rows.write_csv(folder / "week-3.csv")
    with pytest.raises(DataError, match=r"No person has sent the same report in all 3 rounds so far.* write ids as"):
        run(folder, 3)
    assert not (folder / "out-3").exists()


def test_more_rounds_than_announced_are_refused(folder: Path) -> None:
    run(folder, 1, spec(rounds=2))
    run(folder, 2, spec(rounds=2))
    run(folder, 1, spec(rounds=2), out=folder / "again")
    with pytest.raises(DataError, match="This key has 2 rounds, as many as the specification announces"):
        run(folder, 3, spec(rounds=2))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.9}, "have another column, other categories or another randomizer"),
        ({"head": ""}, r"This key is reserved for memoized reports\. Use another key"),
    ],
)
def test_another_specification_is_refused(folder: Path, changed: dict[str, Any], message: str) -> None:
    run(folder, 1)
    with pytest.raises(DataError, match=message):
        run(folder, 2, spec(**changed))
    assert not (folder / "out-2").exists()


def test_another_deployment_takes_another_key(folder: Path) -> None:
    run(folder, 1)
    plain = {**spec().plain(), "population": {**spec().plain()["population"], "categories": ["a", "c", "b"]}}
    with pytest.raises(DataError, match="use another key for another deployment"):
        run(folder, 2, Specification.model_validate(plain))


def test_a_key_of_fresh_reports_keeps_none(folder: Path) -> None:
    run(folder, 1, spec(head="", rounds=1))
    with pytest.raises(DataError, match="This key was used for fresh reports"):
        run(folder, 2)


def test_a_round_is_collected_once(folder: Path) -> None:
    write(folder, 1, list(range(200)), answers())
    write(folder, 2, list(range(200, PEOPLE)), answers())
    run(folder, 1)
    keys = Keys(file=folder / "my.key", ids="user", round=1)
    with pytest.raises(DataError, match="This round was collected with this key from other people"):
        run(folder, 2, keys=keys)
    write(folder, 2, list(range(200)), answers(changed=3))
    with pytest.raises(DataError, match="3 people have reported under this key and round with other values"):
        run(folder, 2, keys=keys)
    write(folder, 2, list(range(150)), answers())
    with pytest.raises(DataError, match="150 people are in an earlier, different batch"):
        run(folder, 2, keys=keys)


def test_a_person_who_is_there_twice_is_refused(folder: Path) -> None:
    write(folder, 1, [*range(PEOPLE), 7], answers())
    with pytest.raises(DataError, match=r"for memoized reports, keep one record per person"):
        run(folder, 1)


def test_a_copy_of_the_key_elsewhere_gives_the_same_reports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(folder, 1)
    (folder / "elsewhere").mkdir()
    shutil.copy(folder / "my.key", folder / "elsewhere" / "copy.key")
    monkeypatch.setenv("HUSHUFFLE_STATE", str(folder / "elsewhere" / "state"))
    copy = folder / "elsewhere" / "copy.key"
    with pytest.raises(DataError, match="has no ledger"):
        run(folder, 2, keys=Keys(file=copy, ids="user", round=2))
    run(folder, 2, keys=Keys(file=copy, ids="user", round=2, new=True))
    assert reports(folder, 1) == reports(folder, 2)


def test_what_keeps_reports_must_be_there(folder: Path) -> None:
    with pytest.raises(DataError, match=r"are not stored: a key reproduces their randomness. Pass `--key-file`"):
        run(folder, 1, keys=None)
    with pytest.raises(SpecificationError, match=r"population.person: must be given to collect memoized reports"):
        run(folder, 1, spec(person=""))
    with pytest.raises(DataError, match=r"--id is the column of population.person, 'user'. Pass this, or remove --id"):
        run(folder, 1, keys=Keys(file=folder / "my.key", ids="id"))
    with pytest.raises(DataError, match="remove `--budget`"):
        run(folder, 1, budget=folder / "budget.toml")
    request = Request(sources=[str(folder)], keys=Keys(file=folder / "my.key", ids="user"))
    with pytest.raises(DataError, match="in whole rounds, not in batches"):
        collect_batch(Collection.of(spec()), out=folder / "batches", request=request)
    with pytest.raises(DataError, match=r"is 2, above targets.local_epsilon = 1.5"):
        run(folder, 1, spec(head="memoised = true\nchanges = 1", targets=", local_epsilon = 1.5"))
    run(folder, 1, spec(targets=", local_epsilon = 1.5"))
    run(folder, 2, spec(rounds=50, head="memoised = true\nchanges = 40", targets=", local_epsilon = 3"))


def test_rounds_are_not_added_up_to_more_people(folder: Path) -> None:
    run(folder, 1)
    run(folder, 2)
    assert main(["estimate", str(folder / "out-1")]) == Exit.DONE
    assert main(["estimate", str(folder / "out-1"), str(folder / "out-2")]) == Exit.FAILED


def test_the_program_needs_no_column_of_ids(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "weekly.toml").write_text(spec(head="memoised = true\nchanges = 1").effective(), encoding="utf-8")
    for week in (1, 3):
        command = ["collect", str(folder / "weekly.toml"), "--input", str(folder / f"week-{week}.csv")]
        command += ["--out", str(folder / f"out-{week}"), "--key-file", str(folder / "my.key"), "--round", str(week)]
        assert main(command) == Exit.DONE
        out = " ".join(capsys.readouterr().out.split())
        assert ("1 round of memoized reports" in out) == (week == 1)
    assert "if 280 people take part in all rounds and keep their values" in out
    assert "2 rounds of memoized reports. 250 people sent the same report in all of them" in out
    assert "30 people changed their answer" in out


def test_who_stays_is_counted_as_sets_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against plain dictionaries, with pieces of a few pairs."""
    monkeypatch.setattr(ledgers, "_CHUNK", 7)
    key, rng = bytes(range(32)), np.random.default_rng(4)
    (tmp_path / "my.key").write_text(key.hex(), encoding="ascii")
    (tmp_path / "my.key").chmod(0o600)
    begin(key, tmp_path / "my.key", new=True)
    waves = []
    for number in range(4):
        people = rng.choice(60, size=40, replace=False).astype(np.uint64)
        waves.append({int(person): int(rng.integers(0, 2) if rng.random() < 0.2 else person % 2) for person in people})
        tags = MemoizedTags(key=key, round_number=number, mechanism="m")
        (tmp_path / f"{number}").mkdir()
        sorter = TagSorter(tmp_path / f"{number}", scope=tags.scope, deployment=tags.deployment)
        sorter.add(tags.of(people, np.array(list(waves[-1].values()))))
        candidate = Candidate(entries=sorter.entries(), shuffler="uniform", specification="people")
        before = waves[:-1]
        same = sum(all(wave.get(person) == value for wave in before) for person, value in waves[-1].items())
        changed = sum(any(wave.get(person, value) != value for wave in before) for person, value in waves[-1].items())
        with opened(key, tmp_path / "my.key") as ledger:
            assert ledger.check([candidate]) == (True,)
            sent = [{wave[person] for wave in waves if person in wave} for person in waves[-1]]
            assert ledger.kept(candidate) == (same, changed, max(map(len, sent)))
            ledger.admit([candidate])
