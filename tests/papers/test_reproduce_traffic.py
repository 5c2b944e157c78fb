"""The traffic paper's figures: points against oracles, small sizes; the large ones by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle import report
from hushuffle.model import Bound, Report, Table
from hushuffle.tables.published import Digits
from hushuffle_papers.base import Request
from hushuffle_papers.ladjel2021 import deltas as traffic_deltas
from hushuffle_papers.ladjel2021 import rounds as traffic_rounds
from hushuffle_papers.ladjel2021 import runs as traffic_runs
from hushuffle_papers.ladjel2021 import savings as traffic_savings
from hushuffle_papers.ladjel2021 import tradeoffs as traffic_tradeoffs
from hushuffle_papers.ladjel2021 import traffic
from hushuffle_papers.registry import targets
from oracles.traffic_enumeration import largest_ratio, scrambled

REQUEST = Request()


def check(study: Report) -> None:
    """A study renders, validates, and its charts have points."""
    jsonschema = pytest.importorskip("jsonschema")
    assert study.question.endswith("?")
    assert all(answer.endswith((".", "?")) for answer in study.answers)
    assert study.tables
    jsonschema.Draft202012Validator(report.json_schema("study")).validate(json.loads(report.to_json(study)))
    assert report.html(study)
    for chart in study.charts:
        assert any(series.x for series in chart.series)
        assert len(chart.series) <= 6
        assert len({series.label for series in chart.series}) == len(chart.series)


def verdicts(study: Report) -> list[str]:
    return [claim.verdict for claim in study.claims]


def line(study: Report, key: str, label: str) -> dict[float, tuple[float, float]]:
    (chart,) = (one for one in study.charts if one.key == key)
    (found,) = (series for series in chart.series if series.label == label)
    return {x: (low, high) for x, low, high in zip(found.x, found.lower, found.upper, strict=True)}


def rows(study: Report, key: str) -> list[tuple[Any, ...]]:
    (found,) = (table for table in study.tables if table.key == key)
    assert isinstance(found, Table)
    return list(found.rows)


def test_targets_have_names_of_their_own() -> None:
    names = {name for name in targets() if name.startswith("ladjel2021/")}
    assert len(names) == 12
    assert {f"ladjel2021/figure-{number}" for number in (3, 4, 5, 6, 7, 8, 9)} < names


def test_figure_3() -> None:
    target = targets()["ladjel2021/figure-3"]
    study = target.build(REQUEST)
    check(study)
    assert line(study, "sampling", "T = 20")[0.2][1] == pytest.approx(math.log(0.8 * 20 / 0.2 + 1), rel=1e-12)
    assert line(study, "flooding", "sigma = 0.5")[4][1] == pytest.approx(math.log(0.5 * 20 / (0.5 * 5) + 1), rel=1e-12)
    assert verdicts(study) == ["confirmed"] * 3


def test_figure_5_shows_the_printed_formula_below_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    study = traffic.cap_study(REQUEST, n=60, rates=(0.2, 0.8, 0.95), dummies=(0, 2, 10, 59), batches=(21, 60))
    check(study)
    for _, _, printed, exclusive, uniform, _ in rows(study, "cap"):
        assert printed < exclusive.upper < uniform.upper
    assert 0.95 not in line(study, "sigma-10", "exclusive")
    assert verdicts(study)[:2] == ["contradicted", "contradicted"]
    monkeypatch.setattr(traffic, "TARGETS_OF", 3)
    traffic.capped.cache_clear()
    try:
        true = math.log(largest_ratio(3, 4, Fraction(1, 4), 2, 4, "exclusive"))
        assert traffic.capped(4, 0.25, 2, "exclusive").upper == pytest.approx(true, rel=1e-9)
    finally:
        traffic.capped.cache_clear()


@pytest.mark.slow
def test_figure_5_in_full() -> None:
    target = targets()["ladjel2021/figure-5"]
    study = target.build(REQUEST)
    assert "which only the printed formula undercuts" in study.claims[1].ours
    assert "4.293" in study.claims[0].ours
    assert "3.571" in study.claims[0].printed


def test_every_output_against_enumeration() -> None:
    pair = traffic_deltas.NeighbouringInputs.of((2, 1, 0), sigma=0.25, dummies=2)
    quarter = Fraction(1, 4)
    for truths, law in (((0, 0, 1), pair.first), ((0, 2, 1), pair.second)):
        exact = scrambled(truths, 3, quarter, 2, None, "uniform")
        assert law.size == len(exact) == math.comb(7, 2)
        shares = [float(exact[(a, b, 5 - a - b)]) for a in range(6) for b in range(6 - a)]
        assert law.tolist() == pytest.approx(shares, rel=1e-12)
    growth = Fraction(3, 2)
    one, other = (scrambled(truths, 3, quarter, 2, None, "uniform") for truths in ((0, 0, 1), (0, 2, 1)))
    found = [sum(max(a[c] - growth * b[c], Fraction(0)) for c in a) for a, b in ((one, other), (other, one))]
    assert pair.delta(math.log(1.5)) == pytest.approx(float(max(found)), rel=1e-9)
    assert pair.above(0.0) <= 1.0 + 1e-12
    absent = [(1 - p) ** 1000 for p in pair.first.tolist()]
    chance = math.fsum(p * each for p, each in zip(pair.first.tolist(), absent, strict=True))
    assert pair.unseen(1000.0) == pytest.approx((math.fsum(absent), chance), rel=1e-9)


def test_figure_6() -> None:
    study = traffic_deltas.output_study(REQUEST)
    check(study)
    assert "exactly 12,341" in study.claims[1].ours
    pair = traffic_deltas.NeighbouringInputs.of((5, 5, 5, 5), sigma=0.2, dummies=20)
    assert pair.first.size == math.comb(43, 3)
    assert pair.first.sum() == pytest.approx(1.0, abs=1e-12)
    certified = hs.traffic.scrambler_epsilon(4, 20, 0.2, 20, delta=pair.delta(1.0))
    assert certified.upper >= 1.0  # the pair is one of those that the figure is about
    assert verdicts(study) == ["confirmed", "contradicted", "confirmed"]
    assert "delta at epsilon = 2 is 1.6e-07" in study.claims[2].reason  # the tail differs


def test_figure_7() -> None:
    study = traffic_deltas.amplification_study(
        REQUEST, batches=(10, 400), dummies=(0, 300), rates=(0.1, 0.5), samples=500
    )
    check(study)
    assert verdicts(study)[0] == "contradicted"
    for row in rows(study, "formulas"):
        n, sigma, d, certified, _, _, _, _, bennett, hoeffding = row
        assert certified == hs.traffic.scrambler_epsilon(20, n, sigma, d, delta=1e-4)
        assert certified.upper <= bennett.upper * (1 + 1e-6)
        assert bennett.upper <= hoeffding.upper
    band = line(study, "sigma", "certified")[0.5]
    assert band[0] < band[1]


def test_figure_7_where_nothing_is_understated() -> None:
    study = traffic_deltas.amplification_study(REQUEST, batches=(10,), dummies=(0,), rates=(0.05,), samples=200)
    assert verdicts(study)[0] == "confirmed"
    assert "none of these numbers by the formula corrected" in study.claims[2].ours
    assert verdicts(study)[2] == "not testable"


def test_savings() -> None:
    study = traffic_savings.savings_study(REQUEST, batches=(10,), rates=(0.0,), dummies=(0, 400), samples=300)
    check(study)
    table = {(row[0], row[1]): row for row in rows(study, "dummies")}
    for (n, sigma), row in table.items():
        exact, bennett, hoeffding = row[2:5]
        assert exact <= bennett <= hoeffding
        assert hs.traffic.scrambler_epsilon(20, n, sigma, exact, delta=1e-4).upper <= 1 + 1e-5
        if exact:
            assert hs.traffic.scrambler_epsilon(20, n, sigma, exact - 1, delta=1e-4).upper > 1 - 1e-5
    assert table[10, 0.0][2:5] == (484, 863, 6648)
    assert table[10, 0.0][6] == 264
    assert table[10, 0.0][7].lower > 1
    assert verdicts(study) == ["contradicted"]


def test_savings_where_there_is_nothing_to_say() -> None:
    nothing = traffic_savings.Needed(exact=0.0, bennett=math.inf, hoeffding=math.inf, printed=0.0, simulated=0.0)
    assert "Where dummies suffice" in traffic_savings._rates_answer({(10, 0): nothing})
    assert traffic_savings._worst([]) == "none."
    assert traffic_savings._to_exact({(10, 0.0): nothing}, "simulated") == [1.0]
    assert traffic_savings._rate_table({(10, 0): nothing}).rows[0][3] == "none below 1"
    hopeless = traffic_savings.needed(lambda x: (10, x / 1000, 0), 5, samples=10, seed=1)
    assert hopeless.exact == hopeless.bennett == math.inf


def test_table_1() -> None:
    target = targets()["ladjel2021/table-1"]
    study = target.build(REQUEST)
    check(study)
    assert study.claims[-1].ours.startswith("At sigma = 0.9 68,966 are enough")
    first = rows(study, "corners")[0]
    assert first[3] == Bound.exact(math.inf, unit="nats", sources=first[3].sources, witness=first[3].witness)


def test_figure_8_of_aggregate() -> None:
    study = traffic_tradeoffs.aggregate_study(REQUEST, used=1000, batches=(20, 50, 100, 200), dummies=(700,), steps=3)
    check(study)
    for n, _, d, scramblers, messages, sources, certified, bennett, _ in rows(study, "load"):
        assert messages == 2 * sources + scramblers * d
        assert scramblers == -(-sources // n)
        assert certified.upper <= bennett.upper * (1 + 1e-6)
    many, few = study.claims[3], study.claims[2]
    assert few.quote == many.quote
    assert "With n = 100" in few.ours
    assert "With n = 200" in many.ours
    for budget, n, sources, _, d, _ in rows(study, "consents"):
        assert 2 * sources + -(-sources // n) * d <= budget


def test_one_sampling_rate_is_not_compared_with_itself() -> None:
    study = traffic_tradeoffs.aggregate_study(REQUEST, used=1000, batches=(20, 50), dummies=(700,), steps=2)
    _, node, *_, utility, _ = study.claims
    assert (node.verdict, utility.verdict) == ("not testable", "not testable")


def test_figure_8_of_k_means() -> None:
    study = traffic_rounds.iteration_study(
        REQUEST, people=600, rates=(0.9,), rounds=2, dummies=(0, 50), batches=(100, 300)
    )
    check(study)
    assert verdicts(study)[0] == "contradicted"
    assert "Given the centroids, as if they were public, the formula holds" in study.claims[0].reason
    for *_, composed, simple, _ in rows(study, "rounds"):
        assert composed.upper <= simple.upper * (1 + 1e-6)


def test_figure_9() -> None:
    study = traffic_rounds.grouping_study(REQUEST, used=1000, n=200, dummies=(400,), most=2)
    check(study)
    found = {(row[0], row[1]): row for row in rows(study, "sets")}
    assert found[1, 400][3].upper < found[2, 400][3].upper <= found[2, 400][4].upper
    assert found[2, 400][2] > found[1, 400][2]


def test_aggregate_runs() -> None:
    study = traffic_runs.generated_study(REQUEST, sizes=(1000, 20_000), rates=(0.5,))
    check(study)
    assert verdicts(study) == ["confirmed"]


def made_up(size: int, seed: int) -> Digits:
    """Return images of 16 pixels, one bright one for each label and some noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(10, size=size)
    images = rng.integers(60, size=(size, 16))
    images[np.arange(size), labels] = 255
    return Digits(images=images.astype(np.uint8), labels=labels.astype(np.uint8))


def test_digits_on_made_up_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = traffic_runs.digits_study(
        REQUEST, made_up(600, 1), made_up(200, 2), draws=1, iterations=2, rates=(0.5,), scales=(10.0,)
    )
    check(study)
    table = {row[0]: row for row in rows(study, "rand")}
    assert table["no sampling"][-1] == "none"
    assert min(table["sigma = 0.5, public centroids"][1:2]) > 0.8
    (tmp_path / "mnist").mkdir()
    monkeypatch.setattr(traffic_runs, "load_digits", lambda _folder, part="train": made_up(600, len(part)))
    monkeypatch.setattr(
        traffic_runs, "digits_study", lambda _request, train, test: Report(title=f"{train.n + test.n}", question="")
    )
    assert traffic_runs.digits(Request(data=tmp_path)).title == "1200"


@pytest.mark.parametrize(
    ("holds", "most", "found"),
    [(lambda n: n >= 0, 9, 0), (lambda n: n >= 1, 9, 1), (lambda n: n >= 9, 9, 9), (lambda n: n >= 10, 9, None)],
)
def test_the_smallest(holds: Callable[[int], bool], most: int, found: int | None) -> None:
    assert traffic.least(holds, most) == found


def test_a_line_without_points() -> None:
    assert traffic.drawn("nothing", [1.0], [math.inf]).x == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ladjel2021/figure-7", "ladjel2021/figure-8", "ladjel2021/figure-8-k-means", "ladjel2021/figure-9"]
)
def test_full_sizes(name: str) -> None:
    target = targets()[name]
    study = target.build(REQUEST)
    assert study.key == name
    check(study)
