"""Data as they come, from a specification to a report, a release and an estimate."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hushuffle.cli import main
from hushuffle.errors import SpecificationError
from hushuffle.specification import load, load_collection, parse

MESSY = 'id;Stadt;Alter;Tag\n1; Zürich;17;2024-01-05\n2;"GENÈVE";18;2024-02-29\n3;N/A;70;2024-02-01\n4;zürich ;-1;x\n'
KEYS = 'encoding = "windows-1252"\nseparator = ";"\n'
REST = '[shuffler]\nkind = "uniform"\n[targets]\ndelta = 0.01\n'
TOWN = 'categories_file = "towns.txt"\ntrim = true\ncasefold = true\notherwise = "other"\n'
RANDOMIZER = 'kind = "randomized-response"\nepsilon = "inf"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "messy.csv").write_bytes((MESSY * 1).encode("windows-1252"))
    (tmp_path / "towns.txt").write_text("Zürich\nGenève\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "survey.toml"
    path.write_text(text, encoding="utf-8")
    return path


def town(more: str = TOWN) -> str:
    population = f'[population]\ndata = "messy.csv"\ncolumn = "Stadt"\n{KEYS}{more}'
    return f"{population}[randomizer]\n{RANDOMIZER}{REST}[run]\nrepetitions = 0\n"


def shares(folder: Path) -> dict[str, float]:
    assert main(["estimate", str(folder), "--out", f"{folder}.parquet"]) == 0
    table = pl.read_parquet(f"{folder}.parquet")
    return dict(zip(table["value"], table["frequency"], strict=True))


def test_a_messy_file_is_assessed_collected_and_estimated(folder: Path) -> None:
    path = written(folder, town())
    assert main(["assess", str(path), "--out", "report"]) == 0
    assert main(["collect", str(path), "--out", "made"]) == 0
    assert shares(folder / "made") == {"Zürich": 0.5, "Genève": 0.25, "other": 0.25}


def test_what_is_written_down_needs_no_file_of_labels(folder: Path) -> None:
    specification = load(written(folder, town()))
    assert main(["collect", "survey.toml", "--out", "made"]) == 0
    (folder / "towns.txt").unlink()
    assert parse(specification.effective()) == specification
    assert shares(folder / "made")["other"] == 0.25


def test_batches_and_files_given_elsewhere_are_read_alike(folder: Path) -> None:
    path = written(folder, town())
    (folder / "in").mkdir()
    (folder / "messy.csv").rename(folder / "in" / "monday.csv")
    assert main(["collect", str(path), "--input", "in", "--out", "made", "--batches"]) == 0
    assert shares(folder / "made" / "batch-0001") == {"Zürich": 0.5, "Genève": 0.25, "other": 0.25}


def columns(more: str = "") -> str:
    return (
        f'[population]\ndata = "messy.csv"\n{KEYS}{REST}'
        f'[[columns]]\ncolumn = "Stadt"\n{TOWN}[columns.randomizer]\n{RANDOMIZER}'
        f'[[columns]]\ncolumn = "Alter"\nbins = [0, 18, 65, inf]\n{more}[columns.randomizer]\n{RANDOMIZER}'
        f'[[columns]]\ncolumn = "Tag"\nbins = [2024-01-01, "2024-02-01", 2025-01-01]\n{more}'
        f"[columns.randomizer]\n{RANDOMIZER}"
    )


def test_several_messy_columns(folder: Path) -> None:
    assert main(["collect", str(written(folder, columns('otherwise = "other"\n'))), "--out", "made"]) == 0
    ages = {"0 to under 18": 0.25, "18 to under 65": 0.25, "65 or more": 0.25, "other": 0.25}
    assert shares(folder / "made" / "Alter") == ages
    days = {"2024-01-01 to before 2024-02-01": 0.25, "2024-02-01 to before 2025-01-01": 0.5, "other": 0.25}
    assert shares(folder / "made" / "Tag") == days


def test_what_is_wrong_with_all_columns_is_said_in_one_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = columns().replace('otherwise = "other"\n', "")
    assert main(["collect", str(written(folder, text)), "--out", "made"]) == 1
    shown = capsys.readouterr().err
    for line in (
        "column 'Stadt' of messy.csv: 1 of 4 records match no category (25 %; line 4).",
        "column 'Alter' of messy.csv: 1 of 4 records match no category (25 %; line 5).",
        "column 'Tag' of messy.csv: 1 of 4 records match no category (25 %; line 5).",
    ):
        assert line in shown
    assert "N/A" not in shown
    assert not (folder / "made").exists()


def test_a_column_that_cannot_be_read_beside_one_that_does_not_fit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = columns().replace('otherwise = "other"\n', "").replace('column = "Tag"', 'column = "Day"\nname = "Day"')
    assert main(["collect", str(written(folder, text)), "--out", "made"]) == 1
    shown = capsys.readouterr().err
    assert "column 'Stadt' of messy.csv: 1 of" in shown
    assert "column 'Alter' of messy.csv: 1 of" in shown
    assert "messy.csv has no column 'Day'" in shown


def test_the_count_is_of_the_whole_file_also_where_it_is_read_in_parts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hushuffle.tables.private.BATCH", 100)
    rows = "".join("SECRET\n" if row % 1000 == 7 else "\n" if row % 1000 == 9 else "a\n" for row in range(50_000))
    (folder / "x.csv").write_text(f"x\n{rows}", encoding="utf-8")
    population = '[population]\ndata = "x.csv"\ncolumn = "x"\ncategories = ["a", "b"]\n'
    written(folder, f"{population}[randomizer]\n{RANDOMIZER}{REST}")
    for verb in (["assess"], ["collect", "--out", "made"]):
        assert main([*verb, "survey.toml"]) == 1
        shown = capsys.readouterr().err
        assert "50 of 50,000 records match no category (0.1 %; lines 9, 1,009, 2,009, 3,009, 4,009, ...)" in shown
        assert "50 of 50,000 records are missing (0.1 %; lines 11, 1,011, " in shown
        assert "SECRET" not in shown


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ('categories = ["a", "b"]\nbins = [0, 1, 2]', "population.bins: is not allowed together with categories"),
        ("", 'categories: must be given, got nothing. Alternatives are categories_file, bins, or kind = "number".'),
        (
            'categories_file = "no.txt"',
            'population.categories_file: must be a file of labels, got "no.txt". no.txt does ',
        ),
        (
            "bins = [3, 2, 4]",
            "population.bins: must be three or more numbers, or dates, in increasing order, got [3, 2, 4]",
        ),
        ("bins = [1, true, 4]", "population.bins[1]: must be numbers or dates, such as [0, 18, 65, inf]"),
        ('bins = ["2024-01-01", "soon", "2025-01-01"]', "population.bins[1]: must be numbers or dates"),
        ('categories = ["a", "A"]\ncasefold = true', "population.categories: must be distinct, got a twice. With trim"),
        ('categories = ["a", "b"]\nencoding = "klingon"', "population.encoding: must be the name of an encoding"),
        ('categories = ["a", "b"]\nseparator = "ab"', "population.separator: must be one character that is neither"),
        (
            'categories = ["a", "b"]\notherwise = ""',
            "population.otherwise: must be text on one line, without control characters",
        ),
        (
            'categories = "from-data"\nallow_categories_from_data = true\notherwise = "x"',
            "population.otherwise: must be left out here, got 'x'. All values that occur are categories.",
        ),
    ],
)
def test_keys_that_are_refused(folder: Path, more: str, problem: str) -> None:
    population = f'[population]\ndata = "messy.csv"\ncolumn = "Stadt"\n{more}\n'
    with pytest.raises(SpecificationError) as caught:
        load(written(folder, f"{population}[randomizer]\n{RANDOMIZER}{REST}"))
    assert problem in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_plan_with_numbers_alone_takes_labels_from_a_file(folder: Path) -> None:
    text = f'[population]\nn = 500\ncategories_file = "towns.txt"\n[randomizer]\n{RANDOMIZER}{REST}'
    assert load(written(folder, text)).population.read(folder).population.labels == ("Zürich", "Genève")
    with pytest.raises(SpecificationError, match="must have either k or categories, got both"):
        load(written(folder, text.replace("n = 500", "n = 500\nk = 2")))


def test_labels_in_a_file_are_read_with_the_specification(folder: Path) -> None:
    specification = load(written(folder, town()))
    tables = specification.plain()
    for population in (
        {"data": "messy.csv", "column": "Stadt", "categories_file": "towns.txt"},
        {"n": 3, "categories_file": "towns.txt"},
    ):
        unread = type(specification).model_validate({**tables, "population": population})
        with pytest.raises(SpecificationError, match="must be replaced by the labels in that file"):
            unread.population.read(folder)


def test_the_size_of_categories_is_known_beforehand(folder: Path) -> None:
    text = town('bins = [0, 18, 65]\notherwise = "other"\nmissing = "none"\n')
    wrong = text.replace(
        'kind = "randomized-response"\nepsilon = "inf"', 'kind = "subset-selection"\nepsilon = 1.0\nw = 4'
    )
    with pytest.raises(SpecificationError, match=r"randomizer\.w"):
        load(written(folder, wrong))
    assert load(written(folder, wrong.replace("w = 4", "w = 3"))).randomizer.kind == "subset-selection"


def test_keys_of_the_file_belong_to_the_population(folder: Path) -> None:
    with pytest.raises(
        SpecificationError, match=r"columns\[0\]\.encoding: is not a key here.*It belongs to \[population\]"
    ):
        load_collection(written(folder, columns().replace('column = "Stadt"', 'column = "Stadt"\nencoding = "utf-8"')))
    with pytest.raises(SpecificationError, match=r"population\.trim: is not a key here.*Set it in each of"):
        load_collection(written(folder, columns().replace(KEYS, "trim = true\n")))
