from __future__ import annotations

import numpy as np
import pytest

from hushuffle.model import Assessment, Bound, Citation, Finding, Population, Utility

FIRST, SECOND = Citation(key="a", text="A"), Citation(key="b", text="B")


def finding(*sources: Citation) -> Finding:
    bound = Bound.exact(0.5, unit="probability", sources=sources)
    return Finding(question="vulnerability", adversary="anyone", sentence="Half.", bound=bound, proof="by hand")


def test_citations_are_those_used_once_each_in_order() -> None:
    assessment = Assessment(
        title="T",
        deployment="D",
        population=Population(n=3, labels=("no", "yes"), source="none"),
        findings=(finding(SECOND), finding(FIRST, SECOND.at("Theorem 1")), finding(SECOND)),
        utility=None,
        charts=(),
        warnings=(),
        specification="",
        software=(),
        further_citations=(FIRST, SECOND.at("Theorem 2")),
    )
    assert assessment.citations == (SECOND, FIRST, SECOND.at("Theorem 1"), SECOND.at("Theorem 2"))


@pytest.mark.parametrize(("target", "met"), [(None, None), (0.02, True), (0.0199, False)])
def test_a_target_is_met_by_the_largest_error(target: float | None, met: bool | None) -> None:
    assert Utility(predicted=np.array([0.01, 0.02]), target=target).met is met
