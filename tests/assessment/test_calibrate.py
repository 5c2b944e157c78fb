from __future__ import annotations

import math
from pathlib import Path

import pytest

import hushuffle as hs
from hushuffle.assessment.calibrate import _least, _people, calibrate
from hushuffle.assessment.targets import Choice
from hushuffle.assessment.trials import worst_error
from hushuffle.errors import SpecificationError
from hushuffle.specification import load, parse
from hushuffle.specification.exposure import ONCE

EXAMPLES = Path(__file__).parents[2] / "examples"


def choose(
    *, people: str = "n = 900, k = 2", randomizer: str = "epsilon = 1.0", targets: str = "", delta: float = 1e-6
) -> Choice:
    targets = ", ".join([f"delta = {delta}", targets] if targets else [f"delta = {delta}"])
    return calibrate(
        parse(f"""
            population = {{ {people} }}
            randomizer = {{ kind = "randomized-response", {randomizer} }}
            shuffler = {{ kind = "uniform" }}
            targets = {{ {targets} }}
        """)
    )


def survey(k: int, epsilon: float, n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def test_both_targets_met() -> None:
    choice = choose(targets="epsilon = 0.2, standard_error = 0.05")
    assert choice.accurate is not None
    assert choice.written is not None
    assert choice.accurate.local_epsilon < choice.proposed.local_epsilon
    assert (choice.met, choice.people) == (True, None)
    for point in (choice.accurate, choice.proposed, choice.written):
        assert point.central.upper <= 0.2
        assert point.standard_error <= 0.05
        again = survey(2, point.local_epsilon, 900)
        assert point.standard_error == worst_error(again)
        assert hs.dp.epsilon(again, delta=1e-6).upper <= 0.2 * (1 + 1e-6)


def test_the_example() -> None:
    choice = calibrate(load(EXAMPLES / "calibrate.toml"), base_folder=EXAMPLES)
    assert choice.met
    assert choice.accurate is not None
    assert choice.written is not None
    assert choice.accurate.local_epsilon < choice.written.local_epsilon < choice.proposed.local_epsilon


def test_targets_that_need_more_people() -> None:
    choice = choose(targets="epsilon = 0.2, standard_error = 0.01")
    assert choice.accurate is not None
    assert choice.people is not None
    assert not choice.met
    assert choice.accurate.local_epsilon > choice.proposed.local_epsilon
    assert choice.people > 900
    enough = choose(people=f"n = {choice.people}, k = 2", targets="epsilon = 0.2, standard_error = 0.01")
    assert enough.met
    short = choose(people=f"n = {choice.people - 2}, k = 2", targets="epsilon = 0.2, standard_error = 0.01")
    assert not short.met


def test_privacy_alone() -> None:
    choice = choose(targets="epsilon = 0.2", randomizer="truth_probability = 1.0")
    assert (choice.accurate, choice.people, choice.met) == (None, None, True)
    assert choice.written is not None
    assert choice.written.local_epsilon == math.inf
    assert choice.written.central.upper == math.inf
    assert choice.title == "Calibration of a shuffled collection"


def test_the_smallest_local_epsilon_reaches_the_accuracy_and_a_smaller_one_does_not() -> None:
    found = _least(survey(5, 1.0, 33_000), 0.005)
    assert found is not None
    assert worst_error(survey(5, found, 33_000)) <= 0.005
    assert worst_error(survey(5, found * (1 - 1e-9), 33_000)) > 0.005


def test_accuracy_out_of_reach() -> None:
    few = survey(2, 1.0, 10)
    assert _least(few, 1e-12) is None
    assert _people(few, epsilon=0.1, delta=1e-6, standard_error=1e-15, exposure=ONCE) is None


def test_values_in_the_data_are_not_looked_at(tmp_path: Path) -> None:
    found = []
    for answers in (["no"] * 40 + ["yes"] * 10, ["yes"] * 50):
        (tmp_path / "people.csv").write_text("vote\n" + "\n".join(answers) + "\n", encoding="utf-8")
        spec = parse("""
            population = { data = "people.csv", column = "vote", categories = ["no", "yes"] }
            randomizer = { kind = "randomized-response", epsilon = 1.0 }
            shuffler = { kind = "uniform" }
            targets = { delta = 1e-6, epsilon = 0.5, standard_error = 0.1 }
        """)
        told: list[str] = []
        found.append(calibrate(spec, base_folder=tmp_path, progress=lambda stage, _, told=told: told.append(stage)))  # type: ignore[misc]
        assert told[0] == "counting people"
        assert told[-1] == "done"
    one, other = ((choice.proposed, choice.accurate, choice.people) for choice in found)
    assert one == other


@pytest.mark.parametrize(
    ("targets", "delta", "message"),
    [
        ("", 1e-6, "targets.epsilon: must be given to calibrate, got nothing"),
        ("epsilon = 1e-13", 1e-200, "targets.epsilon: must be a value that some local epsilon achieves, got 1e-13"),
    ],
)
def test_no_target_to_solve_for(targets: str, delta: float, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        choose(people="n = 3, k = 2", targets=targets, delta=delta)


def test_local_hashing_is_calibrated_with_its_buckets() -> None:
    choice = calibrate(
        parse("""
            population = { n = 20_000, k = 1000 }
            randomizer = { kind = "local-hashing", epsilon = 1.0 }
            shuffler = { kind = "uniform" }
            targets = { delta = 1e-6, epsilon = 0.2, standard_error = 0.02 }
        """)
    )
    assert choice.met
    assert choice.accurate is not None
    assert choice.accurate.local_epsilon < choice.proposed.local_epsilon
    assert choice.proposed.central.upper <= 0.2
    assert choice.accurate.standard_error <= 0.02


@pytest.mark.parametrize(
    "target", ["guessing = 0.51", "reidentification = 0.0015", "local_epsilon = 0.7"], ids=lambda text: text.split()[0]
)
def test_the_privacy_target_that_allows_least_is_met_and_named(target: str) -> None:
    key, _, limit = target.split()
    choice, free = choose(targets=f"epsilon = 0.3, {target}"), choose(targets="epsilon = 0.3")
    assert (free.binding, choice.binding) == ("epsilon", key)
    assert choice.proposed.local_epsilon < free.proposed.local_epsilon
    assert choice.met
    more = 1.001 * choice.proposed.local_epsilon
    wider = survey(2, more, 900)
    figures = {
        "guessing": hs.qif.vulnerability(wider, adversary=hs.Strong()).upper,
        "reidentification": 1 - hs.pie.bayes_error(wider).lower,
        "local_epsilon": hs.dp.local_epsilon(wider).upper,
    }
    assert figures[key] > float(limit)


def test_a_target_that_chance_alone_misses_is_refused() -> None:
    with pytest.raises(
        SpecificationError, match=r"targets\.guessing: must be a probability that some local epsilon achieves"
    ):
        choose(targets="epsilon = 0.3, guessing = 0.4")


def test_guesses_from_several_reports_follow_from_the_central_epsilon_of_all() -> None:
    choice = choose(
        people="n = 90, k = 2, reports_per_person = 3", targets="epsilon = 2.5, guessing = 0.9, people = 40"
    )
    assert {target.key: target.word for target in choice.targets} == {
        "epsilon": "pass",
        "delta": "pass",
        "guessing": "not shown",
        "people": "fail",
    }
    (people,) = [target.got for target in choice.targets if target.key == "people"]
    assert people is not None
    assert people.upper == 30  # 90 reports are of 30 people at least
