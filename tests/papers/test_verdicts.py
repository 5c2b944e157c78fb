"""The page of claims and verdicts says what the program finds; quick runs test every claim."""

from __future__ import annotations

import importlib.util
import os
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

ROOT = Path(__file__).parents[2]
QUICK = [target for target in targets().values() if target.quick is not None and not target.data]
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
WHOLE = [target for target in targets().values() if target.quick is None and not target.data]


def script() -> Any:
    spec = importlib.util.spec_from_file_location("verdicts", ROOT / "docs" / "verdicts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_data() -> None:
    made = script()
    assert made.PAGE.read_text("utf-8") == made.page()


def test_every_claim_belongs_to_a_target_and_has_a_verdict() -> None:
    known = targets()
    for claim in script().claims():
        assert claim["target"] in known
        assert claim["verdict"] in VERDICTS
        assert claim["place"]
        assert claim["ours"]


def test_a_claim_that_repeats_names_the_one_it_repeats() -> None:
    every = script().claims()
    for claim in every:
        repeated = [other for other in every if other["target"] == claim["repeats"] and not other["repeats"]]
        assert not claim["repeats"] or claim["quote"] in [other["quote"] for other in repeated], claim["sentence"]


def test_repeated_claims_are_counted_once() -> None:
    same = [Claim(place="", quote="A", sentence="A.", ours="A.", verdict="confirmed", target="x/figure-1")]
    again = replace(same[0], target="x/figure-2", repeats="x/figure-1")
    assert count([*same, again]) == "1 claim: 1 confirmed. 1 other claim repeats one of these."
    assert count([again]) == "1 claim: 1 confirmed."
    assert distinct([*same, again, replace(again, target="x/figure-1")]) == same


@pytest.mark.parametrize("target", WHOLE, ids=lambda target: target.name)
def test_what_is_quick_to_recompute_is_as_on_the_page(target: Any) -> None:
    made = script()
    found = [{key: getattr(claim, key) for key in made.KEYS} for claim in reproduce(target.name, Request()).claims]
    assert found == [claim for claim in made.claims() if claim["target"] == target.name]


@cache
def small(name: str) -> Report:
    return reproduce(name, Request(), quick=True)


def as_on_the_page(study: Report) -> None:
    """A quick run tests the sentences of the page, by the paper's numbers, and confirms or contradicts none of them."""
    words = ("place", "quote", "sentence", "printed", "repeats")
    expected = [claim for claim in script().claims() if claim["target"] == study.key]
    found = [{word: getattr(claim, word) for word in words} for claim in study.claims]
    assert found == [{word: claim[word] for word in words} for claim in expected]
    decided = {"holds on other data", "differs on other data", "not testable"}
    assert {claim.verdict for claim in study.claims} <= decided


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_quick_runs_test_the_sentences_of_the_page_and_decide_none(target: Any) -> None:
    study = small(target.name)
    assert dict(study.settings)["sizes"] == "small, for a quick look"
    as_on_the_page(study)


@pytest.mark.data
@pytest.mark.parametrize("target", [target for target in targets().values() if target.data], ids=lambda t: t.name)
def test_targets_with_data_run_at_small_sizes(target: Any) -> None:
    if "HUSHUFFLE_DATA" not in os.environ:
        pytest.skip("HUSHUFFLE_DATA is not set: it names the folder of the data sets")
    study = reproduce(target.name, Request(data=Path(os.environ["HUSHUFFLE_DATA"])), quick=True)
    assert study.key == target.name
    if target.quick is not None:
        as_on_the_page(study)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_labels_never_overlap_and_nothing_is_too_wide(tmp_path: Path) -> None:
    for one in measured([report.html(small(name)) for name in sorted(CHARTS)], (390, 1280), tmp_path):
        assert one["overlaps"] == [], one
        assert one["wide"] == [], one
        assert one["smallest"] >= 10, one
