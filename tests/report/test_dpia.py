"""What a data protection officer asks for: names, an export, the text in four languages, the notice at the top."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from assessment.test_targets import made, spec
from hushuffle import report
from hushuffle.assessment.deployment import assess
from hushuffle.report.page import dpia
from hushuffle.specification import parse
from hushuffle.specification.sums import parse_sum
from report.assessments import assessment

pytestmark = pytest.mark.usefixtures("few_points")
NAMED = """
[statement]
controller = "Example | <b>Insurance</b>"
purpose = "prevention"
legal_basis = "consent"
retention = "two years"
contact = "dpo@example.org"
impact_assessment = "DPIA 17"
approved_by = "A. Muster"
approved_on = "2026-11-02"
shuffler = "Trust Ltd"
"""


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.split("</style>")[1]).split())


def test_the_first_page_prints_who_is_responsible_or_lists_what_is_missing() -> None:
    named, bare = made(rest=NAMED), made()
    page = words(report.html(named))
    for shown in ("Controller Example | &lt;b&gt;Insurance", "Legal basis consent", "Approved on 2026-11-02"):
        assert shown in page
    assert "Missing in [statement]" not in page
    missing = "controller, purpose, legal_basis, retention, contact, impact_assessment, approved_by, approved_on"
    assert f"Missing in [statement]: {missing}." in words(report.html(bare))
    assert json.loads(report.to_json(named))["statement"]["responsible"][1] == ["Purpose", "prevention"]


def test_the_export_has_the_whole_first_page_as_markdown(tmp_path: Path) -> None:
    named = made(rest=NAMED, targets=", epsilon = 5.0")
    report.write(named, tmp_path)
    text = (tmp_path / "dpia.md").read_text(encoding="utf-8")
    assert text == dpia(named)
    assert "| Controller | Example \\| \\<b\\>Insurance\\</b\\> |" in text
    assert named.headline is not None
    assert named.statement is not None
    assert "**The one target is met. 5 assumptions are not confirmed" in text
    for part in (named.statement.unit.split(",")[0], "## What if", "## This document", "(Español)"):
        assert part in text
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1, table
    assert "**not written yet**" in dpia(made())
    assert dpia(replace(named, statement=None)) == ""


@pytest.mark.parametrize("rest", ["", "rounds = 400\n", "rounds = 9\nmemoised = true\nchanges = 1\n"])
@pytest.mark.parametrize("noise", [0.5, '"inf"'])
def test_every_language_says_what_english_says(rest: str, noise: object) -> None:
    if noise == '"inf"' and "memoised" in rest:
        pytest.skip("no report is kept without noise")
    found = assess(parse(rest + spec(noise=noise, rest='[statement]\nshuffler = "Trust Ltd"')))
    assert found.statement is not None
    texts = {row.code: row.sentences for row in found.statement.translations}
    assert list(texts) == ["en", "de", "fr", "es"]
    assert texts["en"][1:] == found.statement.respondents
    assert len({len(sentences) for sentences in texts.values()}) == 1
    for code, sentences in texts.items():
        said = " ".join(sentences)
        assert "Trust Ltd" in said
        assert "[" in sentences[0], "what nobody wrote is a placeholder"
        assert not re.search(r"\{|e[+-]\d", said), code
        for mark in re.findall(r"(?:Faktor|facteur|factor de) (\S+)", said):
            assert "." not in mark.rstrip(".,")


def test_a_sum_knows_the_same_names() -> None:
    found = parse_sum("""
        population = { n = 10_000, kind = "number", low = 0, high = 100, levels = 101 }
        sum = { epsilon = 1.0, delta = 1e-9 }
        statement = { controller = "C", approved_on = "2026-11-02" }
    """)
    assert (found.statement.controller, found.statement.approved_on) == ("C", "2026-11-02")


def test_true_answers_are_said_at_the_top_and_once() -> None:
    internal = "This report uses the true answers"
    found = assessment(2)
    warned = replace(
        found.warnings[0], key="true-values-shown", sentence=f"{internal} and shows them.", advice="Internal use only."
    )
    page = words(report.html(replace(found, warnings=(*found.warnings, warned))))
    assert page.count(internal) == 1
    assert page.index(internal) < page.index("What each adversary learns")
