from __future__ import annotations

from typing import Any

import pytest

from hushuffle.assessment.deployment import assess
from hushuffle.errors import SpecificationError
from hushuffle.model import Report
from hushuffle.specification import parse

SPEC = """
population = {{ n = {n}, k = {k} }}
randomizer = {{ kind = "randomized-response", epsilon = {noise} }}
shuffler = {{ kind = "{shuffler}" }}
targets = {{ delta = {delta}{targets} }}
run = {{ repetitions = 0 }}
{rest}
"""


def spec(*, targets: str = "", rest: str = "", **changed: Any) -> str:
    values = {"n": 500, "k": 2, "noise": 2.0, "shuffler": "uniform", "delta": 1e-6, **changed}
    return SPEC.format(targets=targets, rest=rest, **values)


def made(**changed: Any) -> Report:
    return assess(parse(spec(**changed)))


def words(report: Report) -> dict[str, str]:
    return {target.key: target.word for target in report.targets}


EVERY = (
    ", epsilon = 0.6, local_epsilon = 2.5, guessing = 0.6, reidentification = 0.01, people = 400, standard_error = 0.1"
)
NONE = (
    ", epsilon = 0.1, local_epsilon = 1.5, guessing = 0.5001, reidentification = 0.002, people = 600, "
    "standard_error = 0.001"
)


def test_every_target_is_held_against_its_figure() -> None:
    report = made(targets=EVERY)
    assert list(words(report)) == [
        "epsilon",
        "delta",
        "local_epsilon",
        "guessing",
        "reidentification",
        "people",
        "standard_error",
    ]
    assert set(words(report).values()) == {"pass"}
    assert report.met is True
    figures = {target.key: target.got for target in report.targets}
    by_question = {finding.question: finding for finding in report.findings}
    assert figures["epsilon"] == by_question["central-dp"].bound
    assert figures["local_epsilon"] == by_question["local-dp"].bound
    assert figures["reidentification"] == by_question["re-identification"].figure
    guesses = [finding.bound for finding in report.findings if finding.question == "vulnerability"]
    assert figures["guessing"] == max(guesses, key=lambda bound: bound.upper)


def test_each_target_can_be_missed() -> None:
    report = made(targets=NONE, delta=0.01)
    assert set(words(report).values()) == {"fail"}
    assert report.met is False


def test_a_large_delta_is_a_target_missed_although_nobody_asked() -> None:
    """Delta = 0.1 gave "0 nats (exact)", and all was green."""
    report = made(delta=0.1)
    assert words(report) == {"delta": "fail"}
    assert report.targets[0].asked == 1 / 500


def test_targets_without_a_figure_are_not_known() -> None:
    report = made(shuffler="none", targets=", epsilon = 3.0, guessing = 0.9")
    assert words(report)["epsilon"] in ("pass", "not known")
    assert report.met is not None


@pytest.mark.parametrize(
    ("targets", "rest", "key"),
    [
        (", guessing = 0.6", 'adversaries = [{ kind = "linker" }]', "targets.guessing"),
        (", reidentification = 0.6", 'adversaries = [{ kind = "strong" }]', "targets.reidentification"),
    ],
)
def test_a_target_that_no_adversary_tries_is_refused_before_the_work(targets: str, rest: str, key: str) -> None:
    with pytest.raises(SpecificationError, match=f"{key}: is allowed only with an adversary of kind"):
        parse(f"{rest}\n{spec(targets=targets)}")


def test_a_column_of_a_reach_study_has_no_sender() -> None:
    text = """
    population = { people = 500, audiences = { a = 40, b = 30 }, bits = 512, hashes = 1 }
    randomizer = { kind = "bit-flipping", p = 0.3 }
    shuffler = { kind = "uniform" }
    targets = { delta = 1e-6, reidentification = 0.1 }
    """
    with pytest.raises(SpecificationError, match="In a reach study, columns have no senders"):
        parse(text)


def test_a_reach_study_has_a_verdict_and_a_first_page() -> None:
    report = assess(
        parse("""
        population = { people = 500, audiences = { a = 40, b = 30 }, bits = 512, hashes = 1 }
        randomizer = { kind = "bit-flipping", p = 0.3 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6, epsilon = 0.01, guessing = 0.9, people = 60, standard_error = 0.99 }
        run = { repetitions = 0 }
        """)
    )
    assert words(report) == {
        "epsilon": "fail",
        "delta": "pass",
        "guessing": "pass",
        "people": "pass",
        "standard_error": words(report)["standard_error"],
    }
    assert report.statement is not None
    assert report.statement.unit == "One person is added to the audiences or removed from them."
    assert not report.statement.scenarios
    assert not report.statement.respondents
