from __future__ import annotations

from pathlib import Path

import pytest

from browser import CHROMIUM, measured
from hushuffle import report
from report.assessments import assessment, with_first_page
from report.studies import study

CASES = {
    "two values": assessment(2),
    "many values": assessment(200),
    "first page": with_first_page(assessment(2)),
    "long labels": assessment(4, names=("x" * 200, "日本語" * 50, "a label of many words " * 9, "<b>")),
}
WIDTHS = (320, 390, 540, 768, 850, 1280)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_nothing_is_wider_than_the_screen(tmp_path: Path) -> None:
    pages = [*(report.html(made) for made in CASES.values()), report.html(study(points=500))]
    found = measured(pages, WIDTHS, tmp_path)
    for one in found:
        assert one["page"] <= one["width"], one
        assert one["wide"] == [], one
        assert one["smallest"] >= (10 if one["width"] >= 390 else 8), one
        assert one["overlaps"] == [], one


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_overlapping_labels_are_noticed(tmp_path: Path) -> None:
    text = '<text x="{x}" y="20" font-size="13">{words}</text>'
    apart, near = ("".join(text.format(x=x, words="100,000") for x in places) for places in ((5, 205), (5, 35)))
    pages = [f'<body><svg class="chart" width="300" height="40">{texts}</svg>' for texts in (apart, near)]
    good, bad = measured(pages, (390,), tmp_path)
    assert good["overlaps"] == []
    assert bad["overlaps"] == ["100,000 | 100,000"]
