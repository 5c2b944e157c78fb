"""`hushuffle init`: kinds of answers other than shares of a single question, and blanket messages."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

pytestmark = pytest.mark.usefixtures("no_charts")
Type = Callable[[str], None]
SLOW = (" rounds", "several reports")
KINDS = {
    "columns": ("columns", "", "9,000", "1", "2", "c", "c"),
    "columns, 4 rounds": ("columns", "a: no, yes; b_2: 12; c-3: x, y, z", "90k", "4", "3", "c", "d"),
    "number": ("number", "", "best", "9,000", "1", "1", "", "c", "c"),
    "number, 11 levels": ("Number", "-2.5 to 97.5", "11", "90,000", "1", "1", "2", "1", "4"),
    "number, 3 rounds": ("number", "0 to 1e6", "best", "90,000", "3", "1", "", "c", "d"),
    "number, several reports": ("number", "18 to 99", "best", "90,000", "1", "2", "", "c", "d"),
    "sum": ("sum", "", "9,000", "1", "", "b", ""),
    "sum, 12 rounds": ("sum", "0 to 24", "9,000", "12", "0.1", "c", "80 %"),
    "messages": ("no, yes", "9,000", "1", "1", "1", "b", "e"),
    "messages, 12 rounds, changes": ("no, yes", "9,000", "12", "0", "1", "1", "c", "E"),
    "messages, several reports": ("7", "90,000", "1", "3", "1", "c", "e"),
}


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Type:
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def written() -> dict[str, Any]:
    return tomllib.loads(Path("survey.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if any(word in name for word in SLOW) else ()) for name in KINDS]
)
def test_what_init_writes_meets_its_own_targets(name: str, typed: Type, capsys: pytest.CaptureFixture[str]) -> None:
    typed("\n".join([*KINDS[name], "Trust Ltd", "-"]) + "\n")
    assert main(["init"]) == Exit.DONE
    questions, text = capsys.readouterr().out, Path("survey.toml").read_text(encoding="utf-8")
    assert max(map(len, (text if "rounds" in name else questions + text).splitlines())) <= 80
    tables, kind = written(), KINDS[name][0].lower()
    assert tables["statement"] == {"shuffler": "Trust Ltd"}
    assert ("columns" in tables, "sum" in tables) == (kind == "columns", kind == "sum")
    assert (tables["population"].get("kind") == "number") == (kind in ("number", "sum"))
    assert ("blanket-messages" in text) == ("messages" in name)
    assert tables.get("rounds", 1) == int((re.findall(r"(\d+) rounds", name) or ["1"])[0])
    assert "memoised" not in tables
    assert main(["assess", "survey.toml", "--strict", "--out", "report"]) == Exit.DONE
    assert main(["calibrate", "survey.toml", "--strict"]) == Exit.DONE


def test_the_error_of_a_mean_is_at_most_the_answer(typed: Type, capsys: pytest.CaptureFixture[str]) -> None:
    typed("number\n0 to 120\n5\n4000\n1\n1\n1.5\nc\nc\n\n\n")
    assert main(["init"]) == Exit.DONE
    reached = re.search(r"standard error of the mean at\s+most\s+(\d+\.\d+)", capsys.readouterr().out)
    assert reached
    assert 1.48 < float(reached[1]) <= 1.5
    assert written()["population"] == {"n": 4000, "kind": "number", "low": 0, "high": 120, "levels": 5}
    assert "standard_error" not in written()["targets"], "it would be about shares of levels"
    assert main(["assess", "survey.toml", "--out", "report"]) == Exit.DONE
    shown = re.search(r"Standard\s+error\s+of\s+the\s+mean:\s+at\s+most\s+(\d+\.\d+)", capsys.readouterr().out)
    assert shown
    assert float(shown[1]) <= float(reached[1])


@pytest.mark.parametrize(
    ("answers", "place", "digits"),
    [
        (["columns", "", "1000", "1", "1", "a", "b"], 4, r"standard error of ([\d.]+) percentage points"),
        (["number", "", "best", "100", "1", "1", "0.1", "a", "a"], 6, r"of the mean of ([\d.]+)"),
        (["sum", "", "100", "1", "0.01", "a", "90"], 4, r"of the mean of ([\d.]+)"),
        (["sum", "", "100", "1", "0.01", "a", "90"], 2, r"With ([\d,]+) people"),
    ],
)
def test_a_change_that_init_advises_suffices(
    answers: list[str], place: int, digits: str, typed: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("\n".join([*answers, "", ""]) + "\n")
    assert main(["init"]) == Exit.MISSED
    advice = re.search(digits, " ".join(capsys.readouterr().out.partition("What would do")[2].split()))
    assert advice
    assert not Path("survey.toml").exists()
    answers[place] = advice[1]
    typed("\n".join([*answers, "", ""]) + "\n")
    assert main(["init"]) == Exit.DONE


def test_answers_that_do_not_fit_are_asked_again(
    typed: Type, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("columns\na: no, yes\na b: 2; c: 3\na: 2; A: 3\na: 2; b: x\na: 2; b: 3\n9000\n1\n3\nc\ne\nc\n\n\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["init"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert shown.count("Give 2 to 50 questions, for example smokes: no, yes; mood: 5.") == 2
    assert "Give each question another name." in shown
    assert "Give two answers or more" in shown
    assert "Answer with one of a, b, c, d" in shown, "blanket messages are for a single question"
    assert [column["k"] for column in written()["columns"]] == [2, 3]
    typed("sum\n5\n7 to 7\nnan to 3\n0 to 0.5\n9000\n1\n0.3\n\nc\n0\n101\n95%\n\n\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["init", "sum.toml"]) == Exit.DONE
    shown = capsys.readouterr().out
    assert shown.count("Give two numbers, the smaller one first, for example 0 to 120.") == 3
    assert "Give a number above 0 and below 0.25, for example 0.125." in shown
    assert shown.count("Give a whole number from 1 to 100.") == 2
    assert tomllib.loads(Path("sum.toml").read_text(encoding="utf-8"))["sum"]["honest"] == 0.95


def test_the_kind_of_answers_is_no_further_question(typed: Type, capsys: pytest.CaptureFixture[str]) -> None:
    typed("\n" * 9)
    assert main(["init"]) == Exit.DONE
    assert re.findall(r"^(\d+)\. ", capsys.readouterr().out, flags=re.MULTILINE) == [str(n) for n in range(1, 10)]
    tables = written()
    assert tables["population"] == {"n": 10_000, "categories": ["no", "yes"]}
    assert tables["shuffler"] == {"kind": "uniform"}
    assert tables["targets"] == {"delta": 1e-6, "standard_error": 0.01, "epsilon": 0.5, "local_epsilon": 4.0}
