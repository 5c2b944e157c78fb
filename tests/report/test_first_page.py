from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hushuffle import report
from hushuffle.model import Report
from hushuffle.report.first_page import verdict
from report.assessments import assessment, with_first_page
from report.outline import outline
from report.studies import study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TEXT, FACTS = shutil.which("pdftotext"), shutil.which("pdfinfo")
MADE = with_first_page(assessment(2))


def words(made: Report) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", report.html(made).split("</style>")[1]).split())


def test_every_target_is_a_row_with_its_verdict() -> None:
    found = [one.text for one in outline(report.html(MADE)).all("strong") if one.attributes.get("class")]
    assert [text for text in found if text in ("pass", "fail", "not shown", "not known")] == [
        "fail",
        "pass",
        "not shown",
        "not known",
    ]
    assert "3 of 4 targets are not met: Central epsilon; Standard error; Guessing." in words(MADE)


def test_the_verdict_stands_before_everything_else() -> None:
    page, terminal = words(MADE), report.terminal(MADE)
    assert page.index("3 of 4 targets are not met") < page.index("The analyst, knowing")
    assert terminal.index("Verdict: 3 of 4 targets are not met") < terminal.index("The analyst,")


def test_met_targets_say_so() -> None:
    one = replace(MADE, targets=MADE.targets[1:2])
    two = replace(MADE, targets=MADE.targets[1:2] * 2)
    assert [made.sentence for made in map(verdict, (one, two)) if made] == [
        "The one target is met.",
        "All 2 targets met.",
    ]
    assert verdict(replace(MADE, targets=())) is None
    assert "Verdict" not in report.terminal(replace(MADE, targets=()))


def test_a_terminal_shows_every_target_in_80_columns() -> None:
    lines = report.terminal(MADE).splitlines()
    assert max(map(len, lines)) <= 80
    marks = [re.match(r"(PASS|FAIL|NOT SHOWN|NOT KNOWN) ", line) for line in lines]
    assert [mark[1] for mark in marks if mark] == ["FAIL", "PASS", "NOT SHOWN", "NOT KNOWN"]


def test_the_statement_is_text_and_never_markup() -> None:
    page = report.html(MADE)
    assert "&lt;b&gt;Trust&lt;/b&gt;" in page
    assert "No &lt;law&gt; fits." in page


def test_what_nobody_vouches_for_is_said() -> None:
    shown = words(MADE)
    assert "Devices run the mechanism. nobody yet" in shown
    assert "Everybody sends one report. the works council" in shown
    assert "All tell Nobody is left. not known" in shown
    assert "Singling out? Not analysed." in shown


def test_a_study_has_a_verdict_and_no_statement() -> None:
    made = replace(study(points=5), targets=MADE.targets)
    assert "3 of 4 targets are not met" in words(made)
    assert 'class="first-page"' not in report.html(made)


@pytest.mark.browser
@pytest.mark.skipif(
    CHROMIUM is None or shutil.which("pdftotext") is None, reason="chromium or poppler is not installed"
)
def test_the_first_page_is_one_sheet_of_paper(tmp_path: Path) -> None:
    page, paper = tmp_path / "report.html", tmp_path / "report.pdf"
    page.write_text(report.html(MADE), encoding="utf-8")
    chromium = [str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'p'}"]
    subprocess.run([*chromium, "--no-pdf-header-footer", f"--print-to-pdf={paper}", page.as_uri()], check=True)
    sheets = subprocess.run([str(TEXT), str(paper), "-"], check=True, capture_output=True, text=True).stdout
    first, second = sheets.split("\f")[:2]
    assert "Verdict" in first
    assert "SHA-256" in first
    assert "What each adversary learns" in second
    size = subprocess.run([str(FACTS), str(paper)], check=True, capture_output=True, text=True).stdout
    assert "A4" in size
