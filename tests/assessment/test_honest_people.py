"""Assessments where few people are honest: every row is there, whatever somebody knows of the others."""

from __future__ import annotations

import pytest

from hushuffle.assessment.deployment import assess
from hushuffle.specification import parse


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_few_honest_people_end_no_assessment(p: float) -> None:
    report = assess(
        parse(f"""
            population = {{ n = 200, k = 3 }}
            randomizer = {{ kind = "randomized-response", epsilon = "inf" }}
            shuffler = {{ kind = "blanket-messages", p = {p}, honest = 0.1 }}
            adversaries = [{{ kind = "strong" }}, {{ kind = "informed", m = 100 }}, {{ kind = "linker" }}]
            targets = {{ delta = 1e-3 }}
        """)
    )
    rows = {finding.adversary: finding.bound for finding in report.findings if finding.question == "vulnerability"}
    assert rows["An adversary who knows the answers of 100 others"] == rows["An adversary who knows all other answers"]
    assert "guessing-by-knowledge" in {chart.key for chart in report.charts}
    assert {"re-identification", "identity-information"} <= {finding.question for finding in report.findings}
