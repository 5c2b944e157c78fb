"""Numbers in files to a folder of messages, and back to their sum: by the library and by the program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection.collect import collect
from hushuffle.collection.request import Keys, Request, TooFewPeople
from hushuffle.collection.sums import CollectedSum, collect_sum, estimate_folder
from hushuffle.errors import DataError, SpecificationError
from hushuffle.specification import parse
from hushuffle.specification.sums import parse_sum

PEOPLE = 3_000
TEXT = """
title = "Hours"
sum = { epsilon = 1.0, delta = 1e-8, honest = 0.9 }

[population]
data = "people.csv"
column = "hours"
kind = "number"
low = 0
high = 24
levels = 97
missing = "drop"

"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hours: list[float | None] = np.linspace(-1, 20, PEOPLE).tolist()
    table = {"hours": [*hours, None, None], "name": [f"secret {place}" for place in range(PEOPLE + 2)]}
    pl.DataFrame(table).write_csv(tmp_path / "people.csv")
    monkeypatch.setenv("HUSHUFFLE_STATE", str(tmp_path / "state"))
    (tmp_path / "sum.toml").write_text(TEXT, encoding="utf-8")
    return tmp_path


def truth() -> float:
    return float(np.clip(np.linspace(-1, 20, PEOPLE), 0, 24).sum())


def collected(folder: Path, **asked: object) -> Path:
    out = folder / "out"
    collect_sum(parse_sum(TEXT), out=out, request=Request(base_folder=folder, **asked))  # type: ignore[arg-type]
    return out


def test_the_sum_comes_back_and_files_say_nothing_else(folder: Path) -> None:
    told: list[float] = []
    out = folder / "out"
    request = Request(base_folder=folder, memory=10_000, progress=lambda _, share: told.append(share))
    made = collect_sum(parse_sum(TEXT), out=out, request=request)
    assert told == sorted(told)
    assert told[-1] == 1
    assert (made.protocol.n, made.dropped) == (PEOPLE, 2)
    assert made.clipped == int((np.linspace(-1, 20, PEOPLE) < 0).sum())
    assert sorted(path.name for path in out.iterdir()) == ["manifest.json", "messages.parquet"]
    specification, found = estimate_folder(out)
    assert specification.title == "Hours"
    assert found.people == PEOPLE
    assert abs(found.total[0] - truth()) < 7 * found.standard_error
    messages = pl.read_parquet(out / "messages.parquet")
    assert messages.columns == ["message"]
    assert messages.height == PEOPLE * made.protocol.messages
    assert int(messages["message"].max()) < made.protocol.modulus  # type: ignore[arg-type]
    cells = np.bincount(messages["message"].to_numpy() * 16 // made.protocol.modulus, minlength=16)
    assert np.all(np.abs(cells - messages.height / 16) < 5 * np.sqrt(messages.height / 16))
    manifest = (out / "manifest.json").read_text(encoding="utf-8")
    facts = json.loads(manifest)
    assert facts["central"]["epsilon"]["upper"] <= 1.0
    assert facts["central"]["needed"] == 2_700
    assert facts["local_epsilon"] == "infinity"
    assert "people.csv" not in manifest
    assert "hours" not in manifest


def test_messages_stand_in_no_order(folder: Path) -> None:
    """Messages of one person are not beside each other: neighbouring ones do not add up to small numbers."""
    out = collected(folder)
    _, found = estimate_folder(out)
    modulus, parts = found.protocol.modulus, found.protocol.messages
    messages = pl.read_parquet(out / "messages.parquet")["message"].to_numpy().astype(np.int64)
    sums = messages.reshape(-1, parts).sum(axis=1) % modulus
    by_slot = messages.reshape(parts, -1).sum(axis=0) % modulus
    for totals in (sums, by_slot):
        assert np.mean(totals < 97) < 0.05


def test_other_files_and_columns_may_be_named(folder: Path) -> None:
    plan = parse_sum(TEXT.replace('data = "people.csv"\ncolumn = "hours"', "n = 5").replace('missing = "drop"', ""))
    pl.DataFrame({"x": [1.0] * 50}).write_parquet(folder / "more.parquet")
    made = collect_sum(plan, out=folder / "other", request=Request(sources=[str(folder / "more.parquet")], column="x"))
    assert made.protocol.n == 50
    with pytest.raises(SpecificationError, match="must have data and column"):
        collect_sum(plan, out=folder / "none", request=Request())
    assert not (folder / "none").exists()


def test_too_few_people_and_what_is_not_offered_leave_nothing(folder: Path) -> None:
    with pytest.raises(TooFewPeople, match="--min-batch"):
        collected(folder, min_batch=PEOPLE + 1)
    few = parse_sum(TEXT + "[targets]\npeople = 4000")
    with pytest.raises(TooFewPeople, match=r"targets\.people"):
        collect_sum(few, out=folder / "out", request=Request(base_folder=folder))
    with pytest.raises(DataError, match="released without an order"):
        collected(folder, reference=folder / "r")
    (folder / "people.csv").write_text("hours\n1\n", encoding="utf-8")
    with pytest.raises(TooFewPeople, match="fewer than the 2"):
        collected(folder)
    (folder / "people.csv").write_text("hours\n1\n2\nmany\n", encoding="utf-8")
    with pytest.raises(DataError) as refused:
        collected(folder)
    assert "many" not in str(refused.value)
    assert sorted(path.name for path in folder.iterdir()) == ["people.csv", "sum.toml"]


def test_files_that_change_meanwhile_are_refused(folder: Path) -> None:
    def change(what: str, share: float) -> None:
        if what == "splitting numbers up" or share > 0.19:
            (folder / "people.csv").write_text("hours\n1\n2\n", encoding="utf-8")

    with pytest.raises(DataError, match="have changed while they were read"):
        collected(folder, progress=change)
    assert not (folder / "out").exists()


def with_key(folder: Path, out: str, *, number: int = 0, text: str = TEXT, **asked: object) -> CollectedSum:
    keys = Keys(file=folder / "key", ids="name", round=number, new=not (folder / "key").exists())
    request = Request(base_folder=folder, keys=keys, **asked)  # type: ignore[arg-type]
    return collect_sum(parse_sum(text), out=folder / out, request=request)


def messages_in(folder: Path) -> list[int]:
    return sorted(pl.read_parquet(folder / "messages.parquet")["message"].to_list())


def test_a_key_repeats_all_messages_and_nothing_else(folder: Path) -> None:
    first, again = with_key(folder, "first"), with_key(folder, "again")
    assert (first.repeated, again.repeated) == (False, True)
    assert messages_in(folder / "first") == messages_in(folder / "again")
    order = [pl.read_parquet(folder / name / "messages.parquet")["message"].to_list() for name in ("first", "again")]
    assert order[0] != order[1]
    assert first.rounds is not None
    assert again.rounds is not None
    assert (first.rounds.collections, again.rounds.collections) == (1, 1)
    assert 0.99 < again.rounds.epsilon.upper <= 1.001
    facts = json.loads((folder / "again" / "manifest.json").read_text(encoding="utf-8"))
    assert facts["coins"] == "keyed, round 0"
    assert facts["key"]["collections"] == 1
    later = with_key(folder, "later", number=1)
    assert not later.repeated
    assert messages_in(folder / "later") != messages_in(folder / "first")
    assert later.rounds is not None
    assert later.rounds.collections == 2
    assert estimate_folder(folder / "later")[1].people == PEOPLE
    fresh = collected(folder)
    assert messages_in(fresh) != messages_in(folder / "first")


def test_sums_under_one_key_have_a_figure_at_the_delta_of_all_of_them(folder: Path) -> None:
    failure = parse_sum(TEXT).build(PEOPLE).failure
    text = TEXT.replace("1e-8", repr(failure * 1.01))  # two of them fail more often than one may
    first = with_key(folder, "first", text=text)
    second = with_key(folder, "second", text=text, number=1)
    assert first.rounds is not None
    assert second.rounds is not None
    assert first.rounds.delta == failure * 1.01
    assert second.rounds.delta == pytest.approx(2 * failure * 1.01)
    assert 1.0 < second.rounds.epsilon.upper <= 2.001
    facts = json.loads((folder / "second" / "manifest.json").read_text(encoding="utf-8"))
    assert facts["key"]["delta"] == second.rounds.delta


def test_rounds_that_are_planned_are_in_the_manifest_with_their_total(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "sum.toml").write_text(f"rounds = 3\n{TEXT}", encoding="utf-8")
    assert main(["collect", str(folder / "sum.toml"), "--out", str(folder / "out")]) == Exit.DONE
    assert "All 3 rounds together: central epsilon" in " ".join(capsys.readouterr().out.split())
    facts = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))["central"]
    assert facts["rounds"]["times"] == 3
    assert facts["rounds"]["delta"] == pytest.approx(3e-8)
    assert 2 < facts["rounds"]["epsilon"]["upper"] <= 3.001
    assert facts["epsilon"]["upper"] <= 1
    assert estimate_folder(folder / "out")[0].rounds == 3


def test_a_budget_with_too_small_a_delta_says_so(folder: Path) -> None:
    budget = folder / "budget.toml"
    budget.write_text("epsilon = 9.0\ndelta = 1e-14\n", encoding="utf-8")
    budget.chmod(0o600)
    with pytest.raises(DataError, match="failure probability of sums by several messages is up to 1e-08 in total"):
        collect_sum(parse_sum(TEXT), out=folder / "x", request=Request(base_folder=folder, budget=budget))
    assert not (folder / "x").exists()


@pytest.mark.parametrize("change", ["value", "person", "honest"])
def test_coins_of_a_key_serve_one_sum_of_a_round(folder: Path, change: str) -> None:
    with_key(folder, "first")
    table, text = pl.read_csv(folder / "people.csv"), TEXT
    if change == "value":
        table = table.with_columns(pl.when(pl.col("name") == "secret 5").then(7.0).otherwise("hours").alias("hours"))
    elif change == "person":
        table = table.tail(PEOPLE - 1)
    elif change == "honest":
        text = TEXT.replace("0.9", "0.8")
    table.write_csv(folder / "people.csv")
    with pytest.raises(DataError, match="Use a new `--round`"):
        with_key(folder, "second", text=text)
    assert not (folder / "second").exists()


def test_a_survey_takes_no_coins_of_a_sum(folder: Path) -> None:
    first = with_key(folder, "first")
    asked = 'randomizer = { kind = "randomized-response", epsilon = 1.0 }\nshuffler = { kind = "uniform" }\n'
    survey = TEXT.replace("sum = { epsilon = 1.0, delta = 1e-8, honest = 0.9 }", f"{asked}targets = {{ delta = 1e-6 }}")
    specification = parse(survey.replace("levels = 97", "levels = 9"))
    with pytest.raises(DataError, match="Use a new `--round`"):
        collect(specification, out=folder / "x", keys=Keys(file=folder / "key", ids="name"), base_folder=folder)
    keys = Keys(file=folder / "key", ids="name", round=1)
    made = collect(specification, out=folder / "second", keys=keys, base_folder=folder)
    assert made.rounds is not None
    assert first.rounds is not None
    assert made.rounds.collections == 2
    assert first.rounds.epsilon.upper < made.rounds.epsilon.upper < 2


def test_ids_must_be_distinct_and_no_numbers(folder: Path) -> None:
    (folder / "people.csv").write_text("hours,name\n1,a\n2,a\n", encoding="utf-8")
    with pytest.raises(DataError, match="records have the same id"):
        with_key(folder, "out")
    keys = Keys(file=folder / "key", ids="hours")
    with pytest.raises(DataError, match="cannot be its private column"):
        collect_sum(parse_sum(TEXT), out=folder / "out", request=Request(base_folder=folder, keys=keys))


def test_a_budget_adds_sums_and_surveys_up(folder: Path) -> None:
    budget = folder / "budget.toml"
    budget.write_text("epsilon = 2.5\ndelta = 1e-6\n", encoding="utf-8")
    budget.chmod(0o600)
    for name in ("one", "two"):
        spent = collect_sum(
            parse_sum(TEXT), out=folder / name, request=Request(base_folder=folder, budget=budget)
        ).spent
    assert spent is not None
    assert 1.9 < spent.epsilon <= 2.001
    assert spent.collections == 2
    before = budget.read_bytes()
    with pytest.raises(DataError, match="nothing was released"):
        collect_sum(parse_sum(TEXT), out=folder / "three", request=Request(base_folder=folder, budget=budget))
    assert budget.read_bytes() == before
    assert not (folder / "three").exists()
    repeated = with_key(folder, "keyed", text=TEXT.replace("1.0", "0.3"), budget=budget)
    assert repeated.spent is not None
    again = with_key(folder, "keyed again", text=TEXT.replace("1.0", "0.3"), budget=budget)
    assert again.spent == repeated.spent
    budget.write_text("epsilon = 0.5\ndelta = 1e-6\n" + budget.read_text(encoding="utf-8").partition("1e-6\n")[2])
    with pytest.raises(DataError, match="is used up"):
        collect_sum(parse_sum(TEXT), out=folder / "four", request=Request(base_folder=folder, budget=budget))


def test_the_program_says_what_a_key_was_used_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["collect", str(folder / "sum.toml"), "--key-file", str(folder / "key"), "--id", "name"]
    assert main([*command, "--out", str(folder / "a"), "--new-key"]) == Exit.DONE
    assert "With this key so far: 1 collection" in " ".join(capsys.readouterr().out.split())
    assert main([*command, "--out", str(folder / "b")]) == Exit.DONE
    assert "This sum was collected before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda facts: facts.update(people=2_999), "contradict each other"),
        (lambda facts: facts.update(people="many"), "must have `specification` and `people`"),
        (lambda facts: facts.update(content="manifest"), "contains no manifest of a sum"),
        (lambda facts: facts.update(specification="sum = 3"), "sum: must be a table"),
        (
            lambda facts: facts.update(specification=facts["specification"].replace("1e-08", "1e-12")),
            "`messages` and `spec",
        ),
        (lambda facts: facts.update(modulus=2**20), "`modulus` and `specification` contradict each other"),
        (lambda facts: facts.update(specification=facts["specification"].replace("24", "240")), "`numbers` and `spec"),
        (lambda facts: facts.update(specification=facts["specification"].replace("1e-08", "1e-300")), "sum.delta"),
        (lambda facts: facts.update(people=0), "population.n"),
    ],
)
def test_edited_manifests_are_refused(folder: Path, change: object, word: str) -> None:
    out = collected(folder)
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    change(facts)  # type: ignore[operator]
    (out / "manifest.json").write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(DataError, match=word):
        estimate_folder(out)


def test_a_manifest_alone_is_one_of_a_sum(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = collected(folder)
    (out / "messages.parquet").unlink()
    assert main(["estimate", str(out)]) == Exit.FAILED
    said = " ".join(capsys.readouterr().err.split())
    assert "messages.parquet does not exist" in said
    (out / "manifest.json").write_text("[", encoding="utf-8")
    assert main(["estimate", str(out)]) == Exit.FAILED


def test_messages_that_are_no_shares_of_such_numbers_are_refused(folder: Path) -> None:
    out = collected(folder)
    messages = pl.read_parquet(out / "messages.parquet")
    protocol = parse_sum(TEXT).build(PEOPLE)
    away = protocol.modulus - protocol.noise_reach(PEOPLE) - 2  # as far below 0 as the noise brings no sum
    values = np.zeros(messages.height, dtype=np.uint32)
    values[0] = away
    pl.DataFrame({"message": values}, schema=messages.schema).write_parquet(out / "messages.parquet")
    with pytest.raises(DataError, match="must be shares of 3,000 numbers from 0 to 24"):
        estimate_folder(out)


def test_a_message_less_or_damaged_is_refused(folder: Path) -> None:
    out = collected(folder)
    messages = pl.read_parquet(out / "messages.parquet")
    messages.head(messages.height - 1).write_parquet(out / "messages.parquet")
    with pytest.raises(DataError, match="but there are"):
        estimate_folder(out)
    (out / "messages.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not a readable Parquet file"):
        estimate_folder(out)


def test_the_program_collects_and_estimates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, facts = folder / "out", folder / "facts.json"
    assert main(["collect", str(folder / "sum.toml"), "--out", str(out)]) == Exit.DONE
    printed = capsys.readouterr().out
    said = " ".join(printed.split())
    assert "Dropped 2 records" in said
    assert "4.77 % of the numbers were outside" in said
    assert "nats (certified bracket) at delta = 1e-08" in said
    assert f"Wrote {out / 'messages.parquet'}\n" in printed
    assert main(["estimate", str(out), "--out", str(facts), "--confidence", "0.9"]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Hours", "3,000 people"]
    assert lines[2].startswith("sum: ")
    assert f"Wrote {facts}" in lines
    assert main(["estimate", str(out), "--json", "--confidence", "0.9"]) == Exit.DONE
    printed = capsys.readouterr().out
    assert printed == facts.read_text(encoding="utf-8")
    found = json.loads(printed)
    assert found["sum"]["value"] == pytest.approx(found["mean"]["value"] * PEOPLE)
    assert found["sum"]["low"] < found["sum"]["value"] < found["sum"]["high"]
    assert found["fake_users"]["moved"] > 24 * PEOPLE > truth()
    assert main(["collect", str(folder / "sum.toml"), "--out", str(out)]) == Exit.FAILED


@pytest.mark.parametrize("option", [["--batches"], ["--reference", "r"]])
def test_the_program_refuses_what_a_sum_does_not_offer(
    folder: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", str(folder / "sum.toml"), "--out", str(folder / "out"), *option]) == Exit.USAGE
    assert f"{option[0]}: a specification with [sum] is collected in one run" in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_the_program_estimates_one_sum_and_nothing_else_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = collected(folder)
    for option in (["--all"], ["--heavy-hitters"], ["--simplex"], [str(folder)], ["--chart", str(folder / "c.svg")]):
        assert main(["estimate", str(out), *option]) == Exit.USAGE
        assert "has one estimate, from one folder" in capsys.readouterr().err
    assert main(["estimate", str(out), "--out", str(folder / "x.csv")]) == Exit.USAGE
    assert "must be a .json file for a sum" in capsys.readouterr().err
    assert main(["collect", str(folder / "sum.toml"), "--out", str(folder / "b"), "--min-batch", "0"]) == Exit.USAGE
    assert main(["explore", str(folder / "sum.toml")]) == Exit.USAGE
    assert "a sum by several messages" in capsys.readouterr().err
