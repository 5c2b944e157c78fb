from __future__ import annotations

import pytest

from hushuffle.model import Bound, Report
from hushuffle_papers.buffling.bloom import figure_2, figure_3, figure_4
from hushuffle_papers.buffling.simulation import every_pair, worst_pairs
from hushuffle_papers.registry import Request, targets
from oracles.bloom_reach import flip_law
from papers.rendered import rendered


@pytest.fixture(scope="module")
def studies() -> dict[str, Report]:
    return {name: rendered(name) for name in targets() if name.startswith("buffling/figure-")}


def test_they_render(studies: dict[str, Report]) -> None:
    assert studies.keys() | {"buffling/part-2", "buffling/part-3"} == {
        name for name, target in targets().items() if target.paper == "buffling"
    }


def test_observation_1(studies: dict[str, Report]) -> None:
    (claim,) = studies["buffling/figure-2"].claims
    assert claim.verdict == "holds on other data"
    assert "for 2, 3, 4, 5 filters" in claim.ours
    assert "agree to nine digits" in studies["buffling/figure-2"].answers[1]
    assert figure_2(Request(), publishers=(2,)).charts[0].title.endswith("2 filters")


def test_observation_2(studies: dict[str, Report]) -> None:
    study = studies["buffling/figure-3"]
    assert [claim.verdict for claim in study.claims] == ["not testable", "confirmed"]
    assert study.claims[0].ours == (  # every p that was tried, not one of them
        "That change is the most visible one at every tested skewness with p = 0.1, 0.2, 0.3; "
        "with p = 0.02 it is not at skewness 0.5 to 0.95; with p = 0.05 it is not at skewness 0.5 to 0.9."
    )
    assert "in 9 of the 20 combinations" in study.answers[0]
    assert "That change also ends at 1...1" in study.answers[0]
    assert "at most 1.166 times" in study.answers[1]
    assert len(study.heat_maps) == 6
    assert {row[2] for row in study.tables[0].rows if row[0] == 2} == {"nowhere"}
    always = figure_3(Request(), publishers=(2,))
    assert "in 0 of the 5 combinations" in always.answers[0]
    assert len(always.answers) == len(study.answers) - 1


def test_observation_3(studies: dict[str, Report]) -> None:
    study = studies["buffling/figure-4"]
    assert study.claims[0].verdict == "not testable"
    assert "checked to nine digits" in study.answers[1]
    rows = {row[0]: row[1:] for row in study.tables[0].rows}
    assert rows["111"] == (0.6654, 0.8527, 0.9322, 0.9353)
    assert rows["000"][0] == -0.6654
    assert figure_4(Request()).tables == study.tables


def test_worst_pairs(studies: dict[str, Report]) -> None:
    study = studies["buffling/figure-3-worst-pairs"]
    assert study.claims[0].verdict == "contradicted"
    assert study.claims[0].ours.startswith("In 3 of ")
    assert "0.1370 against 0.1574" in study.claims[0].ours
    assert "never below" in study.answers[0]
    for *_, published, worst, certified, where in study.tables[0].rows:
        assert isinstance(published, float)
        assert isinstance(worst, float)
        assert isinstance(certified, Bound)
        assert published <= worst <= certified.upper
        assert (where == "the paper's pair") == (worst <= published * (1 + 1e-9))
    single = worst_pairs(Request(), sizes=(2,), noises=(0.1,), epsilons=(0.5,))
    assert single.claims[0].verdict == "confirmed"
    assert single.claims[0].ours == (
        "In 0 of 1 cases enumerated another pair of datasets has a larger delta at the same epsilon."
    )
    assert "no others" in str(next(every_pair(1, 0.1, 0.5)))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_deltas_of_pairs_report_by_report(m: int) -> None:
    """Against the law of the sorted reports, by plain enumeration in exact rationals."""
    from fractions import Fraction  # noqa: PLC0415
    from itertools import product  # noqa: PLC0415

    rows = flip_law(2, Fraction(1, 4))

    def law(columns: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
        found: dict[tuple[int, ...], Fraction] = {}
        for reports in product(range(4), repeat=len(columns)):
            chance = Fraction(1)
            for before, after in zip(columns, reports, strict=True):
                chance *= rows[before][after]
            key = tuple(sorted(reports))
            found[key] = found.get(key, Fraction(0)) + chance
        return found

    pairs = list(every_pair(m, 0.25, 0.0))
    assert len(pairs) == {1: 12, 2: 48, 3: 120}[m]
    for pair in pairs[:: m**2]:
        first, second = law((*pair.others, pair.before)), law((*pair.others, pair.after))
        exact = sum((max(first[key] - second[key], Fraction(0)) for key in first), Fraction(0))
        assert pair.delta == pytest.approx(float(exact), abs=1e-14)
