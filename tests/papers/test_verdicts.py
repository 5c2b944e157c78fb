"""The page of claims and verdicts says what the program finds; quick runs test every claim."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from browser import CHROMIUM, measured
from hushuffle import report
from hushuffle.model import VERDICTS, Claim, Report
from hushuffle.model.claim import count, distinct
from hushuffle_papers.registry import Request, reproduce, targets
from papers.rendered import as_on_the_page
from scripts import script

TEXTS = [file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parent.glob("test_*.py"))]


def elsewhere(options: str) -> set[str]:
    """Return the targets that another test of this folder runs with these options, which `rendered` compares too."""
    return {name for text in TEXTS for name in re.findall(rf'rendered\("([\w/-]+)"{options}\)', text)}


FIGURES = {name for name in targets() if name.startswith("buffling/figure-")}  # test_reproduce_bloom runs them
WITHOUT_DATA = {name: target.quick is not None for name, target in targets().items() if not target.data}
QUICK = [name for name, quick in WITHOUT_DATA.items() if quick and name not in elsewhere(", quick=True")]
WHOLE = [name for name, quick in WITHOUT_DATA.items() if not quick and name not in elsewhere("") | FIGURES]
CHARTS = {
    "jurado2023/figure-3",
    "jurado2023/figure-7",
    "ladjel2021/figure-5",
    "ladjel2021/figure-6",
    "ladjel2021/figure-7",
    "ladjel2021/figure-8",
    "ladjel2021/figure-8-k-means",
    "ladjel2021/figure-9",
    "meehan2022/figure-1",
    "meehan2022/figure-7",
    "murakami2021/figure-4",
    "murakami2021/figure-11",
    "murakami2021/figure-12",
}


def test_the_page_is_made_from_the_data() -> None:
    made = script("docs/verdicts")
    assert made.PAGE.read_text("utf-8") == made.page()


def test_every_claim_belongs_to_a_target_and_has_a_verdict() -> None:
    known = targets()
    for claim in script("docs/verdicts").claims():
        assert claim["target"] in known
        assert claim["verdict"] in VERDICTS
        assert claim["place"]
        assert claim["ours"]


def test_a_claim_that_repeats_names_the_one_it_repeats() -> None:
    every = script("docs/verdicts").claims()
    for claim in every:
        repeated = [other for other in every if other["target"] == claim["repeats"] and not other["repeats"]]
        assert not claim["repeats"] or claim["quote"] in [other["quote"] for other in repeated], claim["sentence"]


def test_repeated_claims_are_counted_once() -> None:
    same = [Claim(place="", quote="A", sentence="A.", ours="A.", verdict="confirmed", target="x/figure-1")]
    again = replace(same[0], target="x/figure-2", repeats="x/figure-1")
    assert count([*same, again]) == "1 claim: 1 confirmed. 1 other claim repeats one of these."
    assert count([again]) == "1 claim: 1 confirmed."
    assert distinct([*same, again, replace(again, target="x/figure-1")]) == same


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_quick_to_recompute_is_as_on_the_page(name: str) -> None:
    as_on_the_page(reproduce(name, Request()), quick=False)


@cache
def small(name: str) -> Report:
    return reproduce(name, Request(), quick=True)


@pytest.mark.parametrize("name", QUICK)
def test_quick_runs_test_the_sentences_of_the_page_and_decide_none(name: str) -> None:
    study = small(name)
    assert dict(study.settings)["sizes"] == "small, for a quick look"
    as_on_the_page(study, quick=True)


@pytest.mark.data
@pytest.mark.parametrize("target", [target for target in targets().values() if target.data], ids=lambda t: t.name)
def test_targets_with_data_run_at_small_sizes(target: Any) -> None:
    if "HUSHUFFLE_DATA" not in os.environ:
        pytest.skip("HUSHUFFLE_DATA is not set: it names the folder of the data sets")
    study = reproduce(target.name, Request(data=Path(os.environ["HUSHUFFLE_DATA"])), quick=True)
    assert study.key == target.name
    if target.quick is not None:
        as_on_the_page(study, quick=True)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_labels_never_overlap_and_nothing_is_too_wide(tmp_path: Path) -> None:
    for one in measured([report.html(small(name)) for name in sorted(CHARTS)], (390, 1280), tmp_path):
        assert one["overlaps"] == [], one
        assert one["wide"] == [], one
        assert one["smallest"] >= 10, one
