"""The order studies on small data of the published formats: what is in them, and what the parts do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from hushuffle.errors import DataError
from hushuffle.model import Report, Series
from hushuffle.questions import order
from hushuffle_papers.base import Request
from hushuffle_papers.meehan2022 import attack as order_attack
from hushuffle_papers.meehan2022 import exact as order_exact
from hushuffle_papers.meehan2022 import hospitals as order_hospitals
from hushuffle_papers.meehan2022 import map as order_map
from hushuffle_papers.meehan2022 import preservation as order_preservation
from hushuffle_papers.meehan2022 import runs as order_runs
from hushuffle_papers.registry import targets


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return small data sets: income rises with age and marriage, friends are alike."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    n = 300
    age, married = rng.integers(18, 60, n), rng.integers(0, 2, n)
    rich = rng.random(n) < 0.05 + 0.4 * married * (age > 35)
    text = dict.fromkeys(
        ("workclass", "education", "occupation", "relationship", "race", "sex", "native_country"), ["?"] * n
    )
    number = dict.fromkeys(("fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"), [0] * n)
    census = {
        **text,
        **number,
        "age": age,
        "marital_status": np.where(married == 1, "Married", "Single"),
        "income": np.where(rich, ">50K", "<=50K"),
        "split": ["train"] * n,
    }
    (root / "adult").mkdir()
    pl.DataFrame(census).write_parquet(root / "adult" / "adult.parquet")
    (root / "twitch_musae").mkdir()
    ends = np.unique(np.sort(np.minimum(rng.integers(0, 120, (600, 1)) + rng.integers(1, 9, (600, 2)), 119)), axis=0)
    ends = ends[ends[:, 0] < ends[:, 1]]
    graph = {"lang": ["DE"] * len(ends), "src": ends[:, 0], "dst": ends[:, 1]}
    pl.DataFrame(graph).write_parquet(root / "twitch_musae" / "edges.parquet")
    people = {"lang": ["DE"] * 120, "new_id": range(120), "mature": (np.arange(120) // 20 % 2 == 0).tolist()}
    pl.DataFrame(people).write_parquet(root / "twitch_musae" / "targets.parquet")
    return root


def told(study: Report, key: str, charts: int, tables: int) -> None:
    assert study.key == key
    assert study.answers or study.claims
    assert all(answer.endswith(".") for answer in study.answers)
    assert all(len(chart.series) <= 6 for chart in study.charts)
    assert (len(study.charts), len(study.tables)) == (charts, tables)
    assert study.settings
    assert study.citations


def test_friends(folder: Path) -> None:
    study = order_attack.twitch_study(Request(data=folder), sizes=(2, 200), alphas=(4.0, 1e6), repetitions=2, trees=5)
    told(study, "meehan2022/figure-4", 5, 2)
    assert any("PUDF" in answer for answer in study.answers)
    # With the highest alpha nothing moves: the line ends where there is no shuffle.
    chart = next(chart for chart in study.charts if chart.key == "learnability-alpha")
    local, weaker = chart.series[0], chart.series[2]
    assert weaker.lower[-1] == pytest.approx(local.lower[0], abs=0.02)


def test_ages(folder: Path) -> None:
    study = order_attack.adult_study(
        Request(data=folder), years=(0, 80), sizes=(2, 300), alphas=(4.0, 1e6), repetitions=2, trees=5
    )
    told(study, "meehan2022/figure-8", 6, 3)
    assert any("marital status" in value for _, value in study.settings)


def test_the_exact_comparison(folder: Path) -> None:
    study = order_exact.exact_study(Request(data=folder), repetitions=1, trees=1, people=100)
    told(study, "meehan2022/figure-4-exact", 0, 1)
    rows = study.tables[0].rows
    assert {row[0] for row in rows} == {"Adult", "Twitch DE", "Syn"}
    for row in rows:
        if row[2]:
            assert int(str(row[3]).replace(",", "")) <= int(str(row[4]).replace(",", ""))


def test_crescents() -> None:
    study = order_exact.syn_study(Request(), people=600, radii=(0.02, 0.3), repetitions=2, wide=0.3, trees=4)
    told(study, "meehan2022/figure-5", 3, 1)
    assert study.claims[0].verdict == "holds on other data"
    assert {claim.verdict for claim in study.claims} <= {"holds on other data", "differs on other data", "not testable"}


def test_hospitals() -> None:
    study = order_hospitals.hospital_study(
        Request(), people=600, radii=(0, 2000), alphas=(1.0, 1e9), repetitions=2, trees=4
    )
    told(study, "meehan2022/figure-4-hospitals", 3, 2)
    assert {claim.verdict for claim in study.claims} <= {"holds on other data", "differs on other data", "not testable"}
    assert study.claims[-1].verdict == "not testable"
    assert [warning.key for warning in study.warnings] == ["generated-data"]
    # With the highest alpha nothing moves: the line ends where there is no shuffle.
    chart = next(chart for chart in study.charts if chart.key == "learnability-alpha")
    assert chart.series[2].lower[-1] == pytest.approx(chart.series[0].lower[0], abs=0.02)


def test_patients_are_where_hospitals_are_and_pay_as_their_hospital_does() -> None:
    made = order_hospitals.patients(20_000, seed=3)
    places, hospital, sizes = np.unique(made.places, axis=0, return_inverse=True, return_counts=True)
    assert 60 < len(places) <= 120
    assert np.array_equal(np.unique(made.methods), np.arange(len(order_hospitals.METHODS)))
    largest = np.argsort(-sizes)[:5]
    shares = [np.bincount(made.methods[hospital.ravel() == each], minlength=4) / sizes[each] for each in largest]
    assert np.ptp(np.array(shares), axis=0).max() > 0.1  # hospitals differ by more than chance
    means = [np.log(made.amounts[made.methods == method]).mean() for method in range(4)]
    assert means == pytest.approx([9.2, 8.6, 9.0, 7.8], abs=0.05)
    again = order_hospitals.patients(20_000, seed=3)
    assert np.array_equal(again.places, made.places)
    assert np.array_equal(again.methods, made.methods)


def test_no_radius_is_read_off_where_accuracy_does_not_fall() -> None:
    def at(radius: float) -> order_runs.ShuffleStep:
        groups = order.column_groups(np.array([0, 0, 1]))
        return order_runs.step(radius, groups, np.arange(3), alpha=1.0, basis="exact", label=order_exact.COMMON)

    def measured(*shares: float) -> dict[int, order_runs.RepeatedMeasurement]:
        return {
            ways: order_runs.RepeatedMeasurement(each=(share,)) for ways, share in zip((8, 4, 2), shares, strict=True)
        }

    steps = [at(0.1), at(0.2), at(0.4)]
    names = [each.label for each in steps]
    found = {names[0]: measured(0.9, 0.9, 0.9), names[1]: measured(0.4, 0.9, 0.9), names[2]: measured(0.1, 0.5, 0.9)}
    assert order_exact._granularity(steps, found, order_exact.COMMON, "").verdict == "holds on other data"
    found[names[1]] = measured(0.95, 0.9, 0.9)
    told = order_exact._granularity(steps, found, order_exact.COMMON, "")
    assert told.verdict == "not testable"
    assert "no largest radius can be read off" in told.reason


def test_map() -> None:
    study = order_map.map_study(Request(), people=120, radii=(0.1, 0.4))
    told(study, "meehan2022/figure-1", 0, 1)
    assert study.maps[0].panels[0].label == "true values"
    assert len(study.maps[1].panels) == 6
    assert [claim.repeats for claim in study.claims] == ["", "", "", "meehan2022/figure-1"]


def test_preservation() -> None:
    study = order_preservation.preservation_study(
        Request(), people=100, samples=40, alphas=(1.0, 10.0), widths=(30, 100)
    )
    told(study, "meehan2022/figure-7", 3, 1)
    assert len(study.claims) == 5
    assert len(study.bounds) == 5 * len(study.tables[0].rows) == 30


def test_a_trend_that_is_not_there() -> None:
    line = Series(label="a", x=(1.0, 2.0), lower=(0.5, 0.1), upper=(0.6, 0.2))
    assert order_preservation._trend("it grows", "grows", [line], rising=True).verdict == "differs on other data"
    point = Series(label="a", x=(1.0,), lower=(0.5,), upper=(0.6,))
    assert order_preservation._trend("it grows", "grows", [point], rising=True).verdict == "not testable"
    assert order_preservation._trend("it falls", "falls", [line], rising=False).verdict == "holds on other data"


def test_every_target_names_its_data() -> None:
    ends = ("figure-1", "figure-4", "figure-4-exact", "figure-5", "figure-7", "figure-8")
    for target in (targets()[f"meehan2022/{end}"] for end in ends):
        if target.data:
            with pytest.raises(DataError, match=target.data[0]):
                target.build(Request())


def test_groups_next_in_line() -> None:
    rng = np.random.default_rng(2)
    line = rng.integers(0, 5, 40).astype(float)
    groups = order_runs.next_in_line(line, 7)
    rank = np.argsort(np.argsort(line, kind="stable"))
    assert groups.group_of is not None
    for person in range(40):
        members = groups[int(groups.group_of[person])]
        assert len(members) == 7
        assert np.ptp(rank[members]) == 6
        assert np.abs(np.median(rank[members]) - rank[person]) <= 3
    # Groups fill their windows: the published sensitivity is exact.
    steps = order_runs.step(7, groups, order_runs.stands(line), alpha=4.0, basis="exact")
    assert steps.exact == steps.published == 21
    assert len(order_runs.next_in_line(line, 100)) == 40


def test_closest_friends_have_most_in_common() -> None:
    edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
    table = np.zeros((6, 6), dtype=np.float32)
    for one, other in edges:
        table[one, other] = table[other, one] = 1
    close = order_runs.closeness(csr_array(table))
    assert close.toarray()[2].tolist() == [2, 2, 0, 1, 0, 0]
    groups = order_runs.closest_friends(close, 3)
    assert [groups[person].tolist() for person in range(6)] == [[0, 1, 2], [0, 1, 2], [0, 1, 2], [2, 3, 4], [3, 4], [5]]


def test_a_step_rests_on_the_sensitivity_it_names() -> None:
    groups = order.path_groups([[0, 3]], n=4, radius=1)
    exact = order_runs.step(1, groups, np.arange(4), alpha=2.0, basis="exact")
    published = order_runs.step(1, groups, np.arange(4), alpha=2.0, basis="published")
    assert (exact.exact, exact.published) == (5, 6)
    assert (exact.shuffler.theta, published.shuffler.theta) == (2 / 5, 2 / 6)
    alone = order_runs.step(
        1, order.path_groups(np.zeros((0, 2), dtype=int), n=4, radius=1), np.arange(4), alpha=2.0, basis="exact"
    )
    assert alone.shuffler.theta == np.inf


def test_one_repetition_has_no_deviation_and_equal_ends_no_way() -> None:
    one = order_runs.RepeatedMeasurement(each=(0.25,))
    assert str(one) == "0.250 ± 0.000"
    score = order_runs.Score(rho=one, by_value=(one, one), error=one, cleared=one)
    assert order_runs.way(score, {order_runs.LOCAL: score, order_runs.UNIFORM: score}, what="rho") == 0.0


def test_no_group_size_is_free() -> None:
    values = np.array([0, 0, 1])
    case = order_runs.Case(
        name="x",
        values=values,
        labels=("a", "b"),
        near=order.column_groups(values),
        within="",
        features=values[:, np.newaxis].astype(float),
    )
    low, high = order_runs.RepeatedMeasurement(each=(0.1,)), order_runs.RepeatedMeasurement(each=(0.9,))
    start = order_runs.Score(rho=high, by_value=(high, high), error=low, cleared=low)
    end = order_runs.Score(rho=low, by_value=(low, low), error=high, cleared=high)
    step = order_runs.step(2, order.column_groups(values), np.arange(3), alpha=1.0, basis="exact")
    scores = {order_runs.LOCAL: start, order_runs.UNIFORM: end, step.label: end}
    assert order_attack._trade(case, [step], scores).verdict == "not testable"
    scores[step.label] = start
    assert order_attack._trade(case, [step], scores).verdict == "differs on other data"


def test_a_line_that_turns_back_does_not_span_the_way() -> None:
    def score(rho: float) -> order_runs.Score:
        one = order_runs.RepeatedMeasurement(each=(rho,))
        return order_runs.Score(rho=one, by_value=(one,), error=one, cleared=one)

    groups = order.column_groups(np.arange(3))
    steps = [order_runs.step(x, groups, np.arange(3), alpha=1.0, basis="exact") for x in (1, 2, 3)]
    scores = {order_runs.LOCAL: score(1.0), order_runs.UNIFORM: score(0.0)}
    for middle, verdict in ((0.5, "holds on other data"), (0.95, "differs on other data")):
        found = {**scores, **dict(zip((each.label for each in steps), map(score, (0.8, middle, 0.05)), strict=True))}
        claims = order_attack.spans(steps, found, "exact", figures=("1a", "1b"), data="3 people.", stand_in="Few.")
        assert {claim.verdict for claim in claims} == {verdict}
    alone = order_attack.spans(steps[:1], found, "exact", figures=("1a", "1b"), data="3 people.", stand_in="Few.")
    assert {claim.verdict for claim in alone} == {"not testable"}


def test_the_exact_sensitivity_is_said_to_help_where_it_does() -> None:
    values = np.array([0, 0, 1])
    case = order_runs.Case(
        name="x",
        values=values,
        labels=("a", "b"),
        near=order.column_groups(values),
        within="",
        features=values[:, np.newaxis].astype(float),
    )
    groups = order.path_groups([[0, 2]], n=3, radius=1)
    pair = order_exact._pair(("near", groups, {"best": np.arange(3)}), "best")
    low, high = order_runs.RepeatedMeasurement(each=(0.1,)), order_runs.RepeatedMeasurement(each=(0.9,))
    good = order_runs.Score(rho=high, by_value=(low, low), error=low, cleared=low)
    bad = order_runs.Score(rho=low, by_value=(low, low), error=high, cleared=low)
    helped = order_exact._answer(case, [pair], {pair[0].basis: good, pair[1].basis: bad})
    assert "lambda 0.100 ± 0.000 for 0.900 ± 0.000" in helped
    assert "no effect" in order_exact._answer(case, [pair], {pair[0].basis: good, pair[1].basis: good})
