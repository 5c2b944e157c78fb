"""Records that do not fit are set aside: as few as allowed, each with its line, none with its value."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import DataError
from hushuffle.specification import parse
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.private import load_column

N = 2000
SPECIFICATION = """
[population]
data = "DATA"
column = "visits"
categories = ["never", "daily"]
person = "id"
bad_rows = "quarantine"
bad_rows_at_most = PERCENT

[randomizer]
kind = "randomized-response"
epsilon = 2.0

[shuffler]
kind = "uniform"

[targets]
delta = 1e-6
"""
BAD = {
    5: ("p5,,", "missing"),
    9: ("p9,dayly,secret-town", "in no category"),
    700: ("p700,daily", "wrong number of fields"),
    701: ("p701,daily,a,b,c", "wrong number of fields"),
    1200: (",daily,x", "no person"),
}
"""Records that do not fit, by number, with the reason."""


def rows(bad: dict[int, tuple[str, str]] = BAD) -> list[str]:
    good = [f'p{number},{"never" if number % 4 else "daily"},"two\nlines"' for number in range(1, N + 1)]
    return ["id,visits,town", *(bad[place][0] if place in bad else row for place, row in enumerate(good, start=1))]


def lines(bad: dict[int, tuple[str, str]] = BAD) -> dict[int, str]:
    """Return the line on which each bad record begins, with its reason."""
    found, line = {}, 2
    for number in range(1, N + 1):
        if number in bad:
            found[line] = bad[number][1]
        line += 1 if number in bad else 2
    return found


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("\n".join(rows()) + "\n", encoding="utf-8")
    Path("survey.toml").write_text(specification("1"), encoding="utf-8")


def specification(percent: str, data: str = "people.csv") -> str:
    return SPECIFICATION.replace("PERCENT", percent).replace("DATA", data)


def listed(file: str) -> list[dict[str, str]]:
    with Path(file).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def test_a_collection_lists_the_lines_of_refused_records_in_a_private_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "survey.toml", "--out", "new"]) == Exit.DONE
    said = capsys.readouterr()
    assert "5 records were set aside: their lines are in the private file new.refused.csv." in " ".join(
        said.out.split()
    )
    shown = listed("new.refused.csv")
    assert {int(row["line"]): row["reason"] for row in shown} == lines()
    assert {row["file"] for row in shown} == {"people.csv"}
    assert stat.S_IMODE(Path("new.refused.csv").stat().st_mode) == 0o600
    released = "".join(path.read_text(encoding="utf-8", errors="replace") for path in Path("new").rglob("*.json"))
    for text in (Path("new.refused.csv").read_text(encoding="utf-8"), said.out, said.err, released):
        assert "dayly" not in text
        assert "secret-town" not in text
    assert "refused" not in {path.name.partition(".")[0] for path in Path("new").iterdir()}
    assert f"{N - len(BAD):,} people" in said.out


def test_more_than_the_cap_is_an_error_with_lines_and_nothing_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    Path("survey.toml").write_text(specification("0.2"), encoding="utf-8")
    assert main(["collect", "survey.toml", "--out", "new"]) == Exit.FAILED
    error = " ".join(capsys.readouterr().err.split())
    assert "5 of 2,000 records do not fit (0.25 %)" in error
    assert "at most 0.2 % of the records (bad_rows_at_most)" in error
    line = next(line for line, reason in lines().items() if reason == "in no category")
    assert f"line {line}" in error
    assert not Path("new").exists()
    assert not Path("new.refused.csv").exists()


def test_without_the_key_every_bad_record_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = specification("1").replace('bad_rows = "quarantine"\nbad_rows_at_most = 1\n', "")
    Path("survey.toml").write_text(text, encoding="utf-8")
    assert main(["collect", "survey.toml", "--out", "new"]) == Exit.FAILED
    assert "people.csv is not a well-formed CSV file" in capsys.readouterr().err


def test_an_assessment_counts_what_was_set_aside() -> None:
    report = hs.assess(parse(specification("1")), base_folder=Path())
    assert report.population is not None
    assert report.population.n == N - len(BAD)
    (warned,) = [each for each in report.warnings if each.key == "bad-rows"]
    assert warned.sentence.startswith("5 of 2,000 records were set aside (in no category: 1, missing: 1, no person: 1,")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_other_records_are_those_of_a_clean_file(encoding: str) -> None:
    Path("dirty.csv").write_text("\n".join(rows()), encoding=encoding)
    clean = [row for place, row in enumerate(rows()) if place not in BAD]
    Path("clean.csv").write_text("\n".join(clean), encoding=encoding)
    form = CsvForm(encoding=encoding)
    columns = {
        name: load_column(name, column="visits", categories=["never", "daily"], person="id", form=form, quarantine=1.0)
        for name in ("dirty.csv", "clean.csv")
    }
    assert np.array_equal(columns["dirty.csv"].values, columns["clean.csv"].values)
    kept = columns["dirty.csv"].kept
    assert kept is not None
    assert np.flatnonzero(~kept).tolist() == [number - 1 for number in sorted(BAD)]
    assert columns["clean.csv"].warnings == ()


def test_a_quotation_mark_that_is_never_closed_is_an_error_with_its_line() -> None:
    text = "\n".join(rows({}))
    line = text.count("\n") + 2
    Path("people.csv").write_text(f'{text}\np9999,daily,"open\np10000,daily,x\n', encoding="utf-8")
    with pytest.raises(DataError, match=rf"people.csv is not .*never closed in the row that begins in line {line:,}."):
        load_column("people.csv", column="visits", categories=["never", "daily"], quarantine=1.0)


def test_a_batch_of_one_bad_row_releases_all_others(capsys: pytest.CaptureFixture[str]) -> None:
    Path("in").mkdir()
    for name, bad in (("monday", BAD), ("tuesday", {})):
        text = "\n".join(row.replace("p", f"{name}-", 1) for row in rows(bad))
        Path(f"in/{name}.csv").write_text(text.replace(f"{name}-,", "p,").replace("to", "to"), encoding="utf-8")
    assert main(["collect", "survey.toml", "--input", "in", "--out", "out", "--batches"]) == Exit.DONE
    assert "2 files." in capsys.readouterr().out
    shown = listed("out.refused-0001.csv")
    assert {row["file"] for row in shown} == {"in/monday.csv"}
    assert {row["reason"] for row in shown} >= {"in no category", "missing", "wrong number of fields"}
    assert {path.name for path in Path("out").iterdir()} == {"batch-0001"}
