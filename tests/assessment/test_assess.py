from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment import trials
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.findings import Questions, inferred, learned
from hushuffle.assessment.trials import deviation
from hushuffle.assessment.warnings import _about_accuracy
from hushuffle.model import Report, Utility, number
from hushuffle.model.bound import percent
from hushuffle.specification import load, parse

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the same trials every time where a survey asks for secure coins."""
    monkeypatch.setattr(trials, "secure", lambda: hs.reproducible(1))


def planned(
    *,
    people: str = "n = 900, k = 3",
    randomizer: str = "epsilon = 1.0",
    shuffler: str = "uniform",
    extra: str = "",
    targets: str = "delta = 1e-6",
) -> Report:
    return assess(
        parse(f"""
            population = {{ {people} }}
            randomizer = {{ kind = "randomized-response", {randomizer} }}
            shuffler = {{ kind = "{shuffler}" }}
            targets = {{ {targets} }}
            {extra}
        """)
    )


def warned(assessment: Report) -> set[str]:
    return {warning.key for warning in assessment.warnings}


@pytest.mark.usefixtures("all_points", "repeatable")
def test_the_main_job_on_real_data() -> None:
    stages: list[tuple[str, float]] = []
    result = assess(load(EXAMPLES / "affairs.toml"), base_folder=EXAMPLES, progress=lambda *told: stages.append(told))
    assert result.population is not None
    assert result.population.counts == (4313, 2053)
    by_question = {finding.question: finding for finding in result.findings}
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=6366)
    assert by_question["central-dp"].bound == hs.dp.epsilon(survey, delta=1e-6)
    assert by_question["local-dp"].bound.upper == 2.0
    assert by_question["re-identification"].bound == hs.pie.bayes_error(survey)
    assert {"vulnerability", "identity-information"} <= set(by_question)
    assert result.utility is not None
    assert result.utility.met is True
    assert result.utility.z is not None
    # Normal deviates: |z| > 5.2 has probability 2e-7 for each of the two (equal) values.
    assert float(np.abs(result.utility.z).max()) < 5.2
    assert warned(result) == {"true-values-shown"}
    shares = [share for _, share in stages]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert result.sources
    lines = {chart.key: chart.series[0].x for chart in result.charts}
    assert len(lines["privacy-against-people"]) == len(lines["privacy-against-noise"]) == 9
    banded(result)


@pytest.mark.usefixtures("repeatable")
@pytest.mark.usefixtures("all_points")
def test_membership_inference_has_the_figures_of_the_privacy_curve() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=500)
    found, profile = inferred(protocol, delta=1e-6), hs.dp.profile(protocol, least=1e-6)
    assert found.bound == profile.advantage
    assert f"mu = {number(profile.gdp(1e-6).upper, up=True)[:5]}" in found.sentence
    assert f"at most {percent(profile.true_positive_rate(0.01)[()].upper, up=True)[:4]}" in found.sentence
    (once,) = [row for row in learned(Questions(), protocol, guessers=[], linking=False, delta=1e-6) if row == found]
    assert once.question == "membership-inference"


def test_a_second_survey_with_seven_answers() -> None:
    result = assess(load(EXAMPLES / "party.toml"), base_folder=EXAMPLES)
    assert result.utility is not None
    assert result.utility.z is not None
    assert float(np.abs(result.utility.z).max()) < 5.5
    assert result.population is not None
    assert sum(result.population.counts or ()) == 944
    assert {chart.key for chart in result.charts} == {
        "privacy-against-people",
        "privacy-against-noise",
        "accuracy-against-noise",
        "guessing-by-mechanism",
        "guessing-by-knowledge",
    }
    banded(result)


def banded(assessment: Report) -> None:
    for chart in assessment.charts:
        for series in chart.series:
            assert all(low <= high for low, high in zip(series.lower, series.upper, strict=True))


def test_planning_without_data() -> None:
    result = planned(targets="delta = 1e-6, standard_error = 0.001")
    assert result.utility is not None
    assert result.utility.measured is None
    assert result.utility.met is False
    assert warned(result) == {"target-missed"}


def test_a_missed_privacy_target_is_warned_about() -> None:
    assert "privacy-target-missed" in warned(planned(targets="delta = 1e-6, epsilon = 0.01"))
    assert "privacy-target-missed" not in warned(planned(targets="delta = 1e-6, epsilon = 3.0"))


def test_every_sentence_carries_its_figure() -> None:
    result = planned(extra='adversaries = [{ kind = "informed", m = 5 }, { kind = "uninformed" }, { kind = "strong" }]')
    names = [finding.adversary for finding in result.findings]
    assert "An adversary who knows the answers of 5 others" in names
    assert not any("whose report" in name for name in names)
    for finding in result.findings:
        assert finding.sentence[0].isupper()
        assert finding.sentence.endswith(".")
        assert "nan" not in finding.sentence
    central = result.findings[0]
    assert number(math.exp(central.bound.upper), up=True) in central.sentence


def test_no_noise_is_said_plainly() -> None:
    result = planned(randomizer='epsilon = "inf"')
    assert "no-noise" in warned(result)
    assert "No differential privacy" in result.findings[0].sentence
    assert "nothing protects your answer" in result.findings[1].sentence
    assert {chart.key for chart in result.charts} == {
        "privacy-against-noise",
        "accuracy-against-noise",
        "guessing-by-knowledge",
    }
    assert all(chart.here is None for chart in result.charts if "noise" in chart.key)


def test_no_shuffler_is_said_plainly() -> None:
    result = planned(shuffler="none", people="n = 50, k = 2", randomizer="epsilon = 6.0")
    assert {"no-shuffler", "large-epsilon", "small-crowd"} <= warned(result)
    assert result.findings[0].bound.kind == "exact"


def test_large_delta_and_useless_shuffler_are_warned_about() -> None:
    result = planned(people="n = 30, k = 2", randomizer="epsilon = 3.0", targets="delta = 0.04")
    assert "large-delta" in warned(result)
    assert "no-amplification" in warned(planned(people="n = 30, k = 2", randomizer="epsilon = 3.0"))


def test_small_groups_missing_answers_and_fixed_seeds(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("answer\n" + "yes\n" * 150 + "no\n" * 15 + '""\n' * 2, encoding="utf-8")
    spec = parse("""
        population = { data = "people.csv", column = "answer", categories = ["no", "yes"], missing = "drop" }
        randomizer = { kind = "randomized-response", truth_probability = 0.9 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        run = { seed = 7, repetitions = 20 }
    """)
    first, second = (assess(spec, base_folder=tmp_path) for _ in range(2))
    assert {"small-groups", "dropped-records", "fixed-seed", "true-values-shown"} <= warned(first)
    assert first.utility is not None
    assert second.utility is not None
    assert first.utility.estimate is not None
    assert second.utility.estimate is not None
    assert first.utility.estimate.frequencies.tolist() == second.utility.estimate.frequencies.tolist()
    none = assess(parse(spec.effective().replace("repetitions = 20", "repetitions = 0")), base_folder=tmp_path)
    assert none.utility is not None
    assert none.utility.measured is None


def test_deviation_is_standard_normal_for_normal_errors() -> None:
    rng = np.random.default_rng(3)
    z = deviation((rng.standard_normal((40, 5000)) ** 2).sum(axis=0), np.ones(5000), 40)
    # Mean and spread of 5,000 deviates: standard errors 0.014 and 0.01; six of them is a false alarm below 1e-8.
    assert abs(z.mean()) < 0.085
    assert abs(z.std() - 1) < 0.06


def test_deviation_without_predicted_error() -> None:
    assert deviation(np.array([0.0, 1.0]), np.zeros(2), 3).tolist() == [0.0, math.inf]


def test_measured_far_from_predicted_is_reported() -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=9)
    utility = Utility(predicted=np.array([0.1]), measured=np.array([0.3]), z=np.array([12.0]), repetitions=10)
    assert [warning.key for warning in _about_accuracy(survey, utility)] == ["measured-differs"]


@pytest.mark.parametrize(
    ("share", "up", "text"),
    [(0.0, None, "0 %"), (1.0, True, "100 %"), (0.05, True, "5.00 %"), (0.999999, True, "99.9999 %")],
)
def test_percent(share: float, up: bool | None, text: str) -> None:
    assert percent(share, up=up) == text
