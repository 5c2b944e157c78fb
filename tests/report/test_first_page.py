from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hushuffle import report
from hushuffle.model import Report
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
    assert "3 of 3 targets are not met: Central epsilon; Standard error; Guessing." in words(MADE)


def test_the_verdict_stands_before_everything_else() -> None:
    page, terminal = words(MADE), report.terminal(MADE)
    assert page.index("3 of 3 targets are not met") < page.index("The analyst, knowing")
    assert terminal.index("Verdict: 3 of 3 targets are not met") < terminal.index("The analyst,")


def test_the_box_is_green_only_where_nothing_is_missing() -> None:
    assert MADE.statement is not None
    confirmed = tuple(replace(row, vouched="Anna") for row in MADE.statement.assumptions)
    good = replace(MADE.targets[0], asked=1.0)
    sure = replace(MADE, targets=(good,), statement=replace(MADE.statement, assumptions=confirmed))
    for made, status in (
        (sure, "met"),
        (replace(sure, statement=MADE.statement), "not confirmed"),
        (replace(sure, targets=MADE.targets[1:2]), "no privacy limit"),
        (replace(sure, targets=(replace(good, key="guessing"),)), "no privacy limit"),
        (replace(sure, targets=MADE.targets), "not met"),
    ):
        assert made.headline is not None
        assert made.headline.status == status
        box = f'<p class="notice {"met" if status == "met" else "warning"}"><strong>{made.headline.sentence}'
        assert box in report.html(made)
        assert made.headline.sentence[:40] in report.terminal(made)
        said = json.loads(report.to_json(made))["verdict"]
        assert (said["status"], said["sentence"]) == (status, made.headline.sentence)
        assert said["met"] is made.met
    assert "Verdict" not in words(replace(MADE, targets=()))
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
    assert "Devices run the mechanism. not yet confirmed" in shown
    assert "Everybody sends one report. the works council" in shown
    assert "All tell Nobody is left. not known" in shown
    assert "Singling out? Not analysed." in shown


def test_a_study_has_a_verdict_and_no_statement() -> None:
    made = replace(study(points=5), targets=MADE.targets)
    assert "3 of 3 targets are not met" in words(made)
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
