"""The author of a file: what names and cells of a table do to the terminal and the files of the person who opens it."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Final

import pytest

from hushuffle.cli import main

pytestmark = pytest.mark.usefixtures("no_charts")
HOSTILE: Final = {
    "ESC": "\x1b[31m",
    "C1 introducer": "\u009b31m",
    "right to left": "\u202egnp",
    "isolate": "\u2066x\u2069",
    "line separator": "\u2028z",
    "paragraph separator": "\u2029z",
    "bell": "\x07",
    "delete": "\x7f",
}
"""Characters that move a cursor, hide text or turn it around."""
SHAPES: Final = {"Cc", "Zl", "Zp", "Cs"}
DIRECTIONS: Final = {chr(code) for code in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def raw(text: str) -> set[str]:
    """Return the characters of a text that are not to be printed as they are."""
    return {mark for mark in text if mark != "\n" and (unicodedata.category(mark) in SHAPES or mark in DIRECTIONS)}


def specification(data: str, column: str, categories: list[str]) -> str:
    listed = ", ".join(map(json.dumps, categories))
    return (
        f"title = {json.dumps('About ' + column)}\n"
        f'[population]\ndata = {json.dumps(data)}\ncolumn = {json.dumps(column)}\nperson = "none"\n'
        f"categories = [{listed}]\n"
        '[randomizer]\nkind = "randomized-response"\nepsilon = 1.0\n'
        '[shuffler]\nkind = "uniform"\n[targets]\ndelta = 1e-4\n'
    )


def printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run the verbs that read a table, and return what each has printed and written as text."""
    spoken = []
    survey, out = str(folder / "survey.toml"), folder / "out"
    data = next(path for path in folder.iterdir() if path.name.startswith("table"))
    calls = (
        ["inspect", str(data)],
        ["inspect", str(data), "--column", "answer"],
        ["assess", survey, "--out", str(out / "assess")],
        ["collect", survey, "--out", str(out / "collect")],
        ["estimate", str(out / "collect")],
        ["minimum-batch", survey],
        ["calibrate", survey],
    )
    for call in calls:
        main(call)
        shown = capsys.readouterr()
        spoken += [shown.out, shown.err]
    return spoken


@pytest.mark.parametrize("mark", HOSTILE)
@pytest.mark.parametrize("place", ["cell", "column", "category", "file", "elsewhere"])
def test_no_text_of_a_file_moves_the_cursor_or_hides_what_follows(
    place: str, mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """U+009B, U+202E, U+2028 and names of files with ESC came out as they are."""
    evil = HOSTILE[mark]
    name = f"table{evil if place == 'file' else ''}.csv"
    column = f"answer{evil}" if place == "column" else "answer"
    cell = f"b{evil}" if place in ("cell", "category") else "b"
    other = f"x{evil}" if place == "elsewhere" else "x"
    rows = [f"{number},{'a' if number % 2 else cell},{other}" for number in range(40)]
    (tmp_path / name).write_text(f'id,"{column}",{other}\n' + "\n".join(rows) + "\n", encoding="utf-8", newline="")
    categories = ["a", cell if place == "category" else "b"]
    (tmp_path / "survey.toml").write_text(specification(name, column, categories), encoding="utf-8")
    for text in printed(tmp_path, capsys):
        assert not raw(text), (place, mark, text)


@pytest.mark.parametrize("name", ['a "b" c', '"', 'a, "b"', "a\nb"])
def test_a_column_is_found_by_the_name_that_its_quoted_header_says(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RFC 4180 doubles quotation marks: such a column was not found."""
    quoted = name.replace('"', '""')
    (tmp_path / "table.csv").write_text(f'id,"{quoted}"\n' + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
    (tmp_path / "survey.toml").write_text(specification("table.csv", name, ["a", "b"]))
    code = main(["collect", str(tmp_path / "survey.toml"), "--out", str(tmp_path / "out")])
    assert (code, "\n" in name) in {(0, False), (2, True)}, capsys.readouterr().err


@pytest.mark.parametrize("formula", ["=1+1", "+no", "-no", "@SUM(A1)", "=HYPERLINK(A1)"])
def test_no_cell_that_is_written_is_a_formula(formula: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i},{'a' if i % 2 else formula}\n" for i in range(400))
    (tmp_path / "table.csv").write_text("id,answer\n" + rows)
    (tmp_path / "survey.toml").write_text(specification("table.csv", "answer", ["a", formula]))
    assert main(["collect", str(tmp_path / "survey.toml"), "--out", str(tmp_path / "out")]) == 0, (
        capsys.readouterr().err
    )
    assert main(["estimate", str(tmp_path / "out"), "--out", str(tmp_path / "shares.csv")]) == 0
    cells = [line.lstrip('"')[0] for line in (tmp_path / "shares.csv").read_text().splitlines()[1:]]
    assert sorted(cells) == ["'", "a"]
