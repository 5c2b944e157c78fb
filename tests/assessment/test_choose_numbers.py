"""`choose` for the mean of numbers, sums by several messages, several columns, and the shuffler of the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment.candidates import Candidate
from hushuffle.assessment.choice_report import choice_report, specifications
from hushuffle.assessment.choose import Choices, choose
from hushuffle.errors import SpecificationError

Wished = dict[str, Any]
MINUTES: Wished = {"n": 200, "kind": "number", "low": 0, "high": 120, "levels": 5}
UNIFORM: Wished = {"kind": "uniform"}
MEAN: Wished = {"population": MINUTES, "shuffler": UNIFORM, "targets": {"delta": 1e-4, "epsilon": 0.5}}
SHARE: Wished = {**MEAN, "targets": {"delta": 1e-4, "epsilon": 3.0, "standard_error": 0.1}}
SUM: Wished = {"population": MINUTES, "sum": {"epsilon": 0.5, "delta": 1e-4, "honest": 0.9}}
PRECISE: Wished = {**SUM, "targets": {"standard_error": 8.0, "epsilon": 1.0, "bits": 400}}
COLUMNS: Wished = {
    "population": {"n": 200},
    "columns": [{"name": "smokes", "k": 2}, {"name": "region", "k": 3}],
    "shuffler": UNIFORM,
    "targets": {"delta": 1e-4, "epsilon": 2.0, "standard_error": 0.08, "guessing": 0.99},
}
TWO = [{"name": "smokes", "k": 2}, {"name": "votes", "k": 2}]
_CHOSEN: dict[str, Choices] = {}


def chosen(wished: Wished, **options: Any) -> Choices:
    """Return the result of `choose`; each question is answered once for all tests."""
    key = repr((wished, options))
    if key not in _CHOSEN:
        _CHOSEN[key] = choose(wished, **options)
    return _CHOSEN[key]


def figure(assessed: hs.Report, question: str) -> float:
    return next(finding.figure.upper for finding in assessed.findings if finding.question == question)


def error_in(assessed: hs.Report) -> float:
    """Return the error that an assessment prints: of the mean of numbers, of a sum's mean, or of the worst column."""
    tables = {table.key: table.rows for table in assessed.tables}
    if "mean-of-numbers" in tables:
        return float(tables["mean-of-numbers"][0][1])  # type: ignore[arg-type]
    if "accuracy" in tables:
        return float(tables["accuracy"][0][2])  # type: ignore[arg-type]
    return max(float(row[-1]) for row in tables["columns"])  # type: ignore[arg-type]


def agrees(row: Candidate) -> None:
    """Check that every figure of a row is the one that `assess` prints for its specification."""
    assessed = hs.assess(tomllib.loads(row.specification))
    local = row.point.local_epsilon if row.all_reports is None else row.all_reports.upper
    assert figure(assessed, "central-dp") == pytest.approx(row.point.central.upper, rel=1e-9), row.sentence
    assert figure(assessed, "local-dp") == pytest.approx(local, rel=1e-3), row.sentence
    assert error_in(assessed) == pytest.approx(row.point.standard_error, rel=1e-9), row.sentence
    own = {target.key: target for target in row.targets}
    for target in assessed.targets:
        assert own[target.key].word == target.word, row.sentence
        got, expected = own[target.key].got, target.got
        assert got is not None
        assert expected is not None
        assert got.upper == pytest.approx(expected.upper, rel=1e-9)
    costs = {cells[0]: cells[1] for table in assessed.tables if table.key == "costs" for cells in table.rows}
    if costs:
        assert (costs["messages"], costs["bytes of all messages"]) == (row.messages, row.bits / 8)


@pytest.mark.usefixtures("no_charts")
@pytest.mark.parametrize(
    ("wished", "options"),
    [
        (MEAN, {"most_messages": 20}),
        (SHARE, {}),
        (SUM, {}),
        (PRECISE, {}),
        pytest.param(COLUMNS, {}, marks=pytest.mark.slow),
        ({**COLUMNS, "columns": TWO}, {}),
    ],
    ids=["mean", "share of a level", "sum without targets", "sum with targets", "columns", "two columns of two values"],
)
def test_each_figure_of_each_row_is_that_of_assess(wished: Wished, options: Wished) -> None:
    result = chosen(wished, **options)
    assert len(result.rows) > 2
    for row in result.rows:
        assert row.met
        agrees(row)


def test_a_mean_is_ranked_by_its_error_and_the_best_levels_are_those_of_best_levels() -> None:
    result = chosen(MEAN, most_messages=20)
    best = [row for row in result.rows if row.best]
    errors = [row.point.standard_error for row in best]
    assert errors == sorted(errors)
    assert result.order == "standard error of the mean"
    mechanisms = {row.mechanism.partition(" (")[0] for row in result.rows}
    assert {"randomized response", "discrete laplace", "rounded gaussian", "sum by several messages"} <= mechanisms
    (response, *_) = (row for row in result.rows if row.mechanism.startswith("randomized response"))
    levels = hs.best_levels(n=200, epsilon=0.5, delta=1e-4, low=0, high=120)
    assert response.point.standard_error <= 1.02 * levels.error
    assert tomllib.loads(response.specification)["population"]["levels"] == response.protocol.randomizer.k


def test_a_sum_needs_more_messages_than_a_caller_allows_by_default() -> None:
    reasons = {miss.search.mechanism: miss for miss in chosen(MEAN).missed}
    assert reasons["sum by several messages"].over == "messages"
    assert "the limit most_messages is 1" in reasons["sum by several messages"].reason
    assert all(row.messages <= 1 for row in chosen(MEAN).rows)


def test_targets_about_levels_keep_the_levels_and_no_sum_can_meet_them() -> None:
    result = chosen(SHARE)
    assert {tomllib.loads(row.specification)["population"]["levels"] for row in result.rows} == {5}
    reasons = {miss.search.mechanism: miss.reason for miss in result.missed}
    assert reasons["sum by several messages"].startswith("A sum gives no share of a level")
    assert "A target is about single levels" in " ".join(choice_report(result).answers)


@pytest.mark.parametrize("key", ["local_epsilon", "guessing", "reidentification"])
def test_a_sum_has_no_figure_for_targets_of_reports(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.assessment.noise_candidates.mechanisms", lambda _: [])
    monkeypatch.setattr("hushuffle.assessment.choose.advise", lambda *_: ())
    wished = {**MEAN, "targets": {**MEAN["targets"], key: 0.9}}
    (miss,) = [miss for miss in choose(wished).missed if miss.search.kind == "sum"]
    assert miss.reason
    assert miss.candidate is None


def test_a_sum_without_targets_is_compared_with_noisy_reports_of_the_same_epsilon() -> None:
    result = chosen(SUM)
    names = {row.mechanism.partition(" (")[0] for row in result.rows}
    assert {"sum by several messages", "sum by several messages as written", "randomized response"} <= names
    assert all(row.point.central.upper <= 0.5 for row in result.rows)
    assert "central epsilon at most 0.5" in result.asked
    tables = [tomllib.loads(row.specification) for row in result.rows]
    assert all(("sum" in each) != ("randomizer" in each) for each in tables)
    assert all(each["statement"]["colluders"] == 20 for each in tables if "randomizer" in each)
    answers = " ".join(choice_report(result).answers)
    assert "while 20 people collude" in answers
    assert "The file has no target" in answers


def test_noisy_reports_beside_a_sum_meet_the_target_of_the_mean() -> None:
    result = chosen(PRECISE)
    assert all(row.point.standard_error <= 8.0 and row.bits <= 400 for row in result.rows)
    assert {"sum" in tomllib.loads(row.specification) for row in result.rows} == {True, False}
    assert "the table of the mean" in " ".join(choice_report(result).answers)


@pytest.mark.usefixtures("no_charts")
def test_rounds_count_for_noisy_reports_and_for_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.assessment.noise_candidates.mechanisms", lambda _: [("randomized-response", {})])
    wished = {**MEAN, "rounds": 2, "targets": {"delta": 1e-4, "epsilon": 1.0}}
    result = choose(wished, most_messages=30)
    assert {"sum", "randomized-response"} <= {row.search.kind for row in result.rows}
    for row in result.rows:
        assert row.point.central.upper <= 1.0
        assert tomllib.loads(row.specification)["rounds"] == 2
        agrees(row)
    text = report.terminal(choice_report(result), width=80)
    assert "2 rounds with fresh reports in every round" in " ".join(text.split())


def test_columns_share_a_mechanism_and_meet_the_accuracy_target_each() -> None:
    result = chosen({**COLUMNS, "columns": TWO})
    for row in result.rows:
        columns = tomllib.loads(row.specification)["columns"]
        assert len({column["randomizer"]["kind"] for column in columns}) == 1
        assert row.point.standard_error <= 0.08
    assert "All columns use the same mechanism" in " ".join(choice_report(result).answers)
    assert "2 columns" in choice_report(result).question


def test_columns_without_an_accuracy_target_keep_the_ratios_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "hushuffle.assessment.column_candidates.mechanisms"
    monkeypatch.setattr(place, lambda _: [("randomized-response", {})])
    own = [{"kind": "randomized-response", "epsilon": epsilon} for epsilon in (2.0, 1.0)]
    columns = [{**column, "randomizer": each} for column, each in zip(COLUMNS["columns"], own, strict=True)]
    result = choose({**COLUMNS, "columns": columns, "targets": {"delta": 1e-4, "epsilon": 0.5}})
    (row,) = result.rows
    first, second = (column["randomizer"]["epsilon"] for column in tomllib.loads(row.specification)["columns"])
    assert first == pytest.approx(2 * second, rel=1e-3)
    assert 0.48 < row.point.central.upper <= 0.5
    limited = {"delta": 1e-4, "epsilon": 0.5, "local_epsilon": 1.0}
    (row,) = choose({**COLUMNS, "columns": columns, "targets": limited}).rows
    assert row.all_reports is not None
    assert 0.99 < row.all_reports.upper <= 1.0


def test_columns_that_miss_the_targets_are_given_changes_that_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "hushuffle.assessment.column_candidates.mechanisms"
    monkeypatch.setattr(place, lambda _: [("randomized-response", {})])
    wished = {**COLUMNS, "targets": {"delta": 1e-4, "epsilon": 0.05, "standard_error": 0.08}}
    result = choose(wished)
    assert not result.rows
    assert result.advice
    for advice in result.advice:
        assert choose(tomllib.loads(advice.wishes)).rows, advice.sentence


LAW = {"kind": "binomial", "trials": 100, "p": 0.5}


@pytest.mark.usefixtures("no_charts")
def test_random_dummies_of_the_file_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.assessment.noise_candidates.mechanisms", lambda _: [("randomized-response", {})])
    wished = {
        "population": {"n": 60, "k": 2},
        "shuffler": {"kind": "scrambler", "dummies": LAW},
        "targets": {"delta": 1e-3, "epsilon": 3.0, "standard_error": 0.12},
    }
    result = choose(wished)
    drawn = [row for row in result.rows if "random number of dummies (binomial)" in row.shuffler]
    assert {"true reports", "randomized response"} <= {row.mechanism for row in drawn}
    for row in drawn:
        assert tomllib.loads(row.specification)["shuffler"] == {"kind": "scrambler", "dummies": LAW}
        assert row.dummies == 50
        assessed = hs.assess(tomllib.loads(row.specification))
        assert figure(assessed, "central-dp") == row.point.central.upper
        assert assessed.met


def test_noise_of_servers_in_the_file_is_kept() -> None:
    table = {"kind": "secure-aggregation", "coins": 8}
    wished = {"population": {"n": 60, "k": 2}, "shuffler": table, "targets": {"delta": 1e-3, "standard_error": 0.12}}
    behind = [tomllib.loads(row.specification)["shuffler"] for row in chosen(wished).rows]
    assert table in behind
    assert {"kind": "secure-aggregation"} not in behind


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shuffler": {"kind": "mallows", "alpha": 4.0}}, "shuffler.kind: must be a shuffler without an order"),
        ({"population": {"publishers": {"tv": "tv.csv"}}}, "population: must be people with one value each"),
        ({"columns": [{"name": "a", "k": 2}, 7]}, "columns[1]: must be a table"),
        ({"columns": []}, "columns: must be one or more"),
        ({"sum": {"epsilon": 1.0}}, "sum.delta"),
        ({"population": {**MINUTES, "levels": 1}}, "population.levels"),
    ],
)
def test_files_without_a_choice_are_refused_by_the_right_key(changed: Wished, message: str) -> None:
    with pytest.raises(SpecificationError) as error:
        choose({"population": {"n": 200}, "targets": {"delta": 1e-4, "epsilon": 1.0}, **changed})
    assert message in str(error.value)


def test_private_numbers_are_never_used(tmp_path: Path) -> None:
    rows = []
    for low, high in ((1, 9), (50, 100)):
        numbers = "\n".join(str(low + place % (high - low)) for place in range(200))
        (tmp_path / "people.csv").write_text(f"minutes\n{numbers}\n", encoding="utf-8")
        population = {key: MINUTES[key] for key in MINUTES if key != "n"}
        population |= {"data": "people.csv", "column": "minutes", "person": "none"}
        rows.append(choose({**SHARE, "population": population}, base_folder=tmp_path).rows)
    assert rows[0] == rows[1]
    assert hs.assess(tomllib.loads(rows[0][0].specification), base_folder=tmp_path).met


def test_the_report_names_the_error_and_writes_a_file_for_each_row(tmp_path: Path) -> None:
    result = chosen(MEAN, most_messages=20)
    shown = choice_report(result)
    text = report.terminal(shown, width=80)
    assert "200 people, numbers from 0 to 120" in text
    assert "standard error of the mean" in shown.tables[0].columns
    assert "Order: by standard error of the mean" in text
    files = specifications(result)
    assert len(files) == len(result.rows)
    assert any(name.endswith("-sum-by-several-messages.toml") for name in files)
    report.write(shown, tmp_path / "new", beside=files)
