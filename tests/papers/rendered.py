"""What holds of every study of a paper, whoever builds it."""

from __future__ import annotations

import json

import pytest

from hushuffle import report
from hushuffle.model import Report
from hushuffle_papers.registry import Request, reproduce
from scripts import script


def as_on_the_page(study: Report, *, quick: bool) -> None:
    """A quick run tests the sentences of the page by the paper's numbers, and decides none; a whole run finds all."""
    page = script("docs/verdicts")
    words = ("place", "quote", "sentence", "printed", "repeats") if quick else page.KEYS
    expected = [claim for claim in page.claims() if claim["target"] == study.key]
    found = [{word: getattr(claim, word) for word in words} for claim in study.claims]
    assert found == [{word: claim[word] for word in words} for claim in expected]
    if quick:
        decided = {"holds on other data", "differs on other data", "not testable"}
        assert {claim.verdict for claim in study.claims} <= decided


def rendered(name: str, *, quick: bool = False) -> Report:
    """Build a target; its study is whole, valid, as the page of verdicts says, and can be read on page and terminal."""
    jsonschema = pytest.importorskip("jsonschema")
    shares: list[float] = []
    study = reproduce(name, Request(tell=lambda _, share: shares.append(share)), quick=quick)
    assert study.key == name
    as_on_the_page(study, quick=quick)
    assert study.answers or study.claims
    assert all(claim.target == name for claim in study.claims)
    assert all(len(chart.series) <= 6 for chart in study.charts)
    assert study.tables or study.charts or study.maps or study.heat_maps
    assert study.sources
    assert study.software
    assert study.question.endswith("?")
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)
    jsonschema.Draft202012Validator(report.json_schema("study")).validate(json.loads(report.to_json(study)))
    page = report.html(study)
    assert "No point of this" not in page
    assert len(page) < 2_000_000
    assert max(map(len, report.terminal(study).splitlines())) <= 80
    return study
