"""What holds of every study of a paper, whoever builds it."""

from __future__ import annotations

import json

import pytest

from hushuffle import report
from hushuffle.model import Report
from hushuffle_papers.registry import Request, reproduce


def rendered(name: str, *, quick: bool = False) -> Report:
    """Build a target, and show that its study is whole, valid, and can be read on a page and a terminal."""
    jsonschema = pytest.importorskip("jsonschema")
    shares: list[float] = []
    study = reproduce(name, Request(tell=lambda _, share: shares.append(share)), quick=quick)
    assert study.key == name
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
