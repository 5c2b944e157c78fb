"""What the order says: against enumeration of the mechanism, and against the figures it is put together from."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment import findings
from hushuffle.assessment.order.findings import (
    central,
    groups_table,
    guesser,
    identified,
    identity_information,
    likeliest,
    reader,
    uniform_mean,
)
from hushuffle.errors import NumericalError
from hushuffle.model import Finding, Groups
from hushuffle.questions import order
from hushuffle.specification.order_setup import Arrangement
from oracles.order_naming import best_naming, most_bits, senders

Distance = Literal["kendall", "hamming"]


def survey(n: int, theta: float, distance: Distance = "kendall", *, k: int = 2, epsilon: float = 1.0) -> hs.Protocol:
    shuffler = hs.MallowsShuffle(reference=range(n), theta=theta, distance=distance)
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler, n=n)


def arrangement(groups: Groups, theta: float, distance: Distance = "kendall") -> Arrangement:
    reference = np.arange(groups.n)
    return Arrangement(
        groups=groups,
        places=None,
        names=("x",),
        metric="euclidean",
        shuffler=hs.MallowsShuffle(reference=reference, theta=theta, distance=distance),
        alpha=order.alpha_for_theta(theta, reference=reference, groups=groups, distance=distance),
        sensitivity=order.sensitivity(reference, groups, distance=distance),
        published=order.published_sensitivity(reference, groups) if distance == "kendall" else None,
        width=order.width(reference, groups),
    )


def rows(found: Arrangement, *, household: int = 1, local: float = 1.0) -> dict[str, Finding]:
    shuffler = found.shuffler
    moved = order.displacement(
        n=found.n, theta=shuffler.theta, distance=shuffler.distance, samples=3, rng=hs.reproducible(4)
    )
    return {row.question: row for row in reader(found, local_epsilon=local, household=household, moved=moved)}


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
@pytest.mark.parametrize("theta", [1e-6, 0.2, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_the_likeliest_sender_of_a_place(n: int, theta: float, distance: Distance) -> None:
    truth = max(max(row) for row in senders(n, theta, distance))
    assert truth <= likeliest(survey(n, theta, distance)) <= min(1.0, truth * (1 + 2e-8)) * (1 + 1e-12)


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
@pytest.mark.parametrize(("n", "k", "theta", "epsilon"), [(4, 2, 0.5, 1.0), (3, 3, 0.1, 2.0), (3, 2, 2.0, 0.3)])
def test_nobody_names_senders_better(n: int, k: int, theta: float, epsilon: float, distance: Distance) -> None:
    protocol = survey(n, theta, distance, k=k, epsilon=epsilon)
    lie = 1 / (math.exp(epsilon) + k - 1)
    channel = [[math.exp(epsilon) * lie if x == y else lie for y in range(k)] for x in range(k)]
    error, bits = identified(protocol), identity_information(protocol)
    assert best_naming(n, theta, distance, channel) <= 1 - error.bound.lower + 1e-12
    assert most_bits(n, theta, distance, channel) <= bits.bound.upper + 1e-12
    assert error.bound.kind == "lower"
    assert bits.bound.upper <= math.log2(n) * (1 + 1e-7)


def test_without_order_linking_is_that_of_the_report_alone() -> None:
    protocol = survey(1000, 1e-12)
    bare = replace(protocol, shuffler=hs.UniformShuffle())
    error, bits = identified(protocol), identity_information(protocol)
    assert error.bound.lower == pytest.approx(hs.pie.bayes_error(bare).lower, rel=1e-6)
    assert bits.bound.upper == pytest.approx(hs.pie.alpha(bare).upper, rel=1e-6)


def test_guessers_lie_between_no_shuffle_and_a_uniform_one() -> None:
    protocol = survey(50, 0.01, k=3)
    for adversary in (hs.Uninformed(), hs.Strong(), hs.Informed(m=7)):
        found = guesser(protocol, adversary).bound
        uniform = hs.qif.vulnerability(replace(protocol, shuffler=hs.UniformShuffle()), adversary=adversary)
        bare = hs.qif.vulnerability(replace(protocol, shuffler=hs.NoShuffle()), adversary=adversary)
        assert (found.lower, found.upper, found.kind) == (uniform.lower, bare.upper, "bracket")
        assert "right at most " in guesser(protocol, adversary).sentence
    hashing = replace(protocol, randomizer=hs.LocalHashing(k=20, g=4, epsilon=1.0))
    found = guesser(hashing, hs.Strong()).bound
    uniform = hs.qif.vulnerability(replace(hashing, shuffler=hs.UniformShuffle()), adversary=hs.Strong())
    assert 1 / 20 <= uniform.lower == found.lower < found.upper < 1


def test_the_central_guarantee_says_that_the_order_is_another_question() -> None:
    found = central(findings.central(survey(100, 0.01), delta=1e-6))
    assert found.sentence.endswith("It does not cover what the order reveals about senders.")
    assert found.bound.upper == hs.dp.epsilon(replace(survey(100, 0.01), shuffler=hs.NoShuffle()), delta=1e-6).upper
    assert found.bound.lower < 0.7


def test_who_reads_the_order() -> None:
    found = arrangement(Groups.of([[0, 1, 2, 9], [3, 4, 5], [6, 7, 8]]), 0.125)
    said = rows(found)
    assert list(said) == ["order-privacy", "order-inference", "order-reidentification", "order-displacement"]
    alpha = said["order-privacy"]
    assert alpha.bound is found.alpha
    assert f"than {math.exp(found.alpha.upper):.4g}"[:9] in alpha.sentence
    published = f"{0.125 * 45:.3f}"
    assert published in alpha.proof
    assert "spans 10 ranks" in alpha.proof
    assert "among the 3 reports of a group" in said["order-reidentification"].sentence
    assert said["order-reidentification"].bound == order.reidentification(
        found.alpha.upper, epsilon=1.0, group=3, wanted=1
    )
    assert said["order-inference"].bound == order.posterior_probability(found.alpha.upper, prior=0.5)
    moved = said["order-displacement"]
    assert moved.bound == order.displacement(n=10, theta=0.125).mean
    assert "In a uniform shuffle the average is 3.300." in moved.sentence
    assert "order-reidentification" not in rows(found, household=2)
    assert math.isinf(rows(found, local=math.inf)["order-reidentification"].bound.upper) is False


def test_other_distances_and_large_promises() -> None:
    found = arrangement(Groups.of([range(600)]), 5.0, "hamming")
    said = rows(found)
    assert "may fully reveal which member" in said["order-privacy"].sentence
    assert "published" not in said["order-privacy"].proof
    simulated = rows(arrangement(Groups.of([range(600)]), 0.01))["order-displacement"]
    assert simulated.bound.kind == "estimate"
    assert " to " in simulated.sentence


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_mean_displacement_of_a_uniform_shuffle(n: int) -> None:
    mean = sum(abs(i - j) for i in range(n) for j in range(n)) / n**2
    assert uniform_mean(n) == pytest.approx(mean)


def test_what_stays_together() -> None:
    groups = Groups.of([[0, 1], [2, 3, 4], list(range(10, 30)), [*range(30, 40)], *([person] for person in range(40))])
    made = groups_table(arrangement(groups, 0.4), confidence=0.9, rng=hs.reproducible(2))
    assert [row[:2] for row in made.rows] == [
        ("smallest group", 1),
        ("largest group", 20),
        ("a tenth of the public order", 4),
        ("half of the public order", 20),
    ]
    for _, people, share, uniform in made.rows:
        assert isinstance(share, hs.Bound)
        assert share.confidence == 0.9
        assert uniform == people / 40 if isinstance(people, int) else False
    assert {bound.kind for bound in made.bounds} == {"estimate"}


def test_groups_of_one_size_and_few_people() -> None:
    made = groups_table(arrangement(Groups.of([[0, 1], [2, 3]]), 1.0), confidence=0.9, rng=hs.reproducible(2))
    assert [row[0] for row in made.rows] == ["a group", "half of the public order"]
    middle = groups_table(arrangement(Groups.of([[0], [0, 1], [0, 1, 2]]), 1.0), confidence=0.9, rng=hs.reproducible(2))
    assert [row[0] for row in middle.rows][:3] == ["smallest group", "middle group", "largest group"]


def test_too_many_people_for_the_exact_sum() -> None:
    large = arrangement(Groups.of([[0, 1]], n=20_001), 1.0, "hamming")
    with pytest.raises(NumericalError):
        groups_table(large, confidence=0.9, rng=hs.reproducible(2))
