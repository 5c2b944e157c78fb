"""Numbers in files to a folder of messages, and back to their sum: by the library and by the program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection.request import Request, TooFewPeople
from hushuffle.collection.sums import collect_sum, estimate_folder
from hushuffle.errors import DataError, SpecificationError
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
def folder(tmp_path: Path) -> Path:
    hours: list[float | None] = np.linspace(-1, 20, PEOPLE).tolist()
    pl.DataFrame({"hours": [*hours, None, None], "name": ["secret"] * (PEOPLE + 2)}).write_csv(tmp_path / "people.csv")
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
    for asked in ({"master": "local"}, {"budget": folder / "b.toml"}, {"reference": folder / "r"}):
        with pytest.raises(DataError, match="on this machine with fresh coins"):
            collected(folder, **asked)
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


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda facts: facts.update(people=2_999), "do not fit together"),
        (lambda facts: facts.update(people="many"), "must say specification and people"),
        (lambda facts: facts.update(content="manifest"), "holds no manifest of a sum"),
        (lambda facts: facts.update(specification="sum = 3"), "sum: must be a table"),
        (lambda facts: facts.update(specification=facts["specification"].replace("1e-08", "1e-12")), "messages, but"),
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
    assert found["fake_users"]["moved"] > 3 * truth()
    assert main(["collect", str(folder / "sum.toml"), "--out", str(out)]) == Exit.FAILED


@pytest.mark.parametrize("option", [["--batches"], ["--key-file", "k"], ["--new-key"], ["--budget", "b"]])
def test_the_program_refuses_what_a_sum_does_not_offer(
    folder: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", str(folder / "sum.toml"), "--out", str(folder / "out"), *option]) == Exit.USAGE
    assert f"{option[0]}: a sum by several messages" in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_the_program_estimates_one_sum_and_nothing_else_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = collected(folder)
    for option in (["--all"], ["--heavy-hitters"], ["--simplex"], [str(folder)], ["--chart", str(folder / "c.svg")]):
        assert main(["estimate", str(out), *option]) == Exit.USAGE
        assert "is one figure, of one folder" in capsys.readouterr().err
    assert main(["estimate", str(out), "--out", str(folder / "x.csv")]) == Exit.USAGE
    assert "must be a .json file for a sum" in capsys.readouterr().err
    assert main(["collect", str(folder / "sum.toml"), "--out", str(folder / "b"), "--min-batch", "0"]) == Exit.USAGE
    assert main(["calibrate", str(folder / "sum.toml")]) == Exit.USAGE
    assert "a sum by several messages" in capsys.readouterr().err
