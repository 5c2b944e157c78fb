from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment.charts import privacy_charts
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.findings import Questions
from hushuffle.assessment.warnings import _about_accuracy
from hushuffle.model import Report, Utility
from hushuffle.specification import load, parse

EXAMPLES = Path(__file__).parents[2] / "examples"


def planned(people: str = "n = 3000, k = 50", randomizer: str = "epsilon = 1.0", shuffler: str = "uniform") -> Report:
    return assess(
        parse(f"""
            population = {{ {people} }}
            randomizer = {{ kind = "local-hashing", {randomizer} }}
            shuffler = {{ kind = "{shuffler}" }}
            targets = {{ delta = 1e-6 }}
        """)
    )


def warned(assessment: Report) -> set[str]:
    return {warning.key for warning in assessment.warnings}


def test_the_example() -> None:
    spec = load(EXAMPLES / "hashing.toml")
    result = assess(spec, base_folder=EXAMPLES)
    by_question = {finding.question: finding for finding in result.findings}
    survey = hs.Protocol(
        randomizer=hs.LocalHashing(k=100_000, g=8, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1_000_000
    )
    assert by_question["central-dp"].bound == hs.dp.epsilon(survey, delta=1e-8)
    assert by_question["local-dp"].bound.upper == survey.randomizer.local_epsilon
    assert by_question["re-identification"].bound == hs.pie.bayes_error(survey)
    assert by_question["re-identification"].bound.kind == "lower"
    assert by_question["identity-information"].bound == hs.pie.alpha(survey)
    guess = by_question["vulnerability"].bound
    assert guess.kind == "upper"
    assert 1e-5 < guess.upper < 1.1e-5
    assert {chart.key for chart in result.charts} == {
        "privacy-against-people",
        "privacy-against-noise",
        "accuracy-against-noise",
    }
    assert warned(result) == {"rare-values-hidden"}
    assert any(source.key == "wang2017" for source in result.sources)
    assert result.utility is not None
    assert result.utility.met is True


def test_measured_against_predicted(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    places = np.minimum(rng.zipf(1.5, size=4000), 400) - 1
    people = tmp_path / "people.csv"
    people.write_text("place\n" + "\n".join(f"p{place}" for place in places) + "\n", encoding="utf-8")
    labels = ", ".join(f'"p{place}"' for place in range(400))
    result = assess(
        parse(f"""
            population = {{ data = "people.csv", column = "place", categories = [{labels}] }}
            randomizer = {{ kind = "local-hashing", epsilon = 2.0 }}
            shuffler = {{ kind = "uniform" }}
            targets = {{ delta = 1e-6 }}
            run = {{ repetitions = 100, seed = 5 }}
        """),
        base_folder=tmp_path,
    )
    utility = result.utility
    assert utility is not None
    assert utility.z is not None
    assert utility.measured is not None
    assert float(np.abs(utility.z).max()) < 6.0  # 400 normal deviates: 8e-7
    ratio = float((utility.measured**2).sum() / (utility.predicted**2).sum())
    assert 0.9 < ratio < 1.1
    assert "rare-values-hidden" in warned(result)


def test_without_noise_or_shuffler_or_with_exact_figures() -> None:
    bare = planned(randomizer='epsilon = "inf", g = 16', people="n = 300, k = 9")
    assert "no-noise" in warned(bare)
    assert {chart.key for chart in bare.charts} == {"privacy-against-noise", "accuracy-against-noise"}
    named = planned(shuffler="none")
    assert "no-shuffler" in warned(named)
    injective = planned(randomizer="epsilon = 9.0, g = 1000")  # the hash never merges two of the 50 values
    kinds = {finding.question: finding.bound.kind for finding in injective.findings}
    assert kinds["re-identification"] == kinds["identity-information"] == "exact"


@pytest.mark.parametrize(("n", "hidden"), [(1000, True), (10**9, False)])
def test_rare_values_show_among_enough_people(n: int, hidden: bool) -> None:
    result = planned(people=f"n = {n}, k = 101", randomizer="epsilon = 4.0")
    assert ("rare-values-hidden" in warned(result)) == hidden


def test_the_more_values_the_larger_a_deviation_may_be() -> None:
    for values, alarm in ((2, True), (100_000, False)):
        z = np.zeros(values)
        z[0] = 5.5
        utility = Utility(predicted=np.ones(values), measured=np.ones(values), z=z, repetitions=10)
        survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=9)
        assert bool(list(_about_accuracy(survey, utility))) == alarm


def test_charts_against_noise_need_noise_to_choose() -> None:
    matrix = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.75, 0.25], [0.5, 0.5]]))
    charts = privacy_charts(Questions(), hs.Protocol(randomizer=matrix, shuffler=hs.UniformShuffle(), n=50), delta=1e-3)
    assert [chart.key for chart in charts] == ["privacy-against-people"]


def test_subset_selection_has_every_row_and_chart() -> None:
    result = assess(load(EXAMPLES / "subset.toml"), base_folder=EXAMPLES)
    assert result.unanswered == ()
    kinds = {(finding.question, finding.bound.kind) for finding in result.findings}
    assert kinds == {
        ("central-dp", "bracket"),
        ("local-dp", "exact"),
        ("vulnerability", "bracket"),
        ("membership-inference", "bracket"),
        ("re-identification", "exact"),
        ("identity-information", "exact"),
    }
    assert [chart.key for chart in result.charts] == [
        "privacy-against-people",
        "privacy-against-noise",
        "accuracy-against-noise",
    ]
    assert "size of the sets stays the same" in result.charts[2].caption
