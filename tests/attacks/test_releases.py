"""Scores of releases: the likelihood ratio that an enumeration of all reports gives, and nothing of their order."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle import (
    DummyLaw,
    LocalHashing,
    MatrixRandomizer,
    Protocol,
    RandomizedResponse,
    Scrambler,
    UniformShuffle,
    dp,
)
from hushuffle.attacks.audit import audit_protocol, release_scores
from hushuffle.attacks.audit_specification import audit_specification
from hushuffle.attacks.audit_study import audit_deployment
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.randomness import reproducible
from hushuffle.specification import parse

SURVEY = RandomizedResponse(k=3, epsilon=1.5)
UNEVEN = MatrixRandomizer([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]])


def laws(mechanism: Any, others: tuple[int, ...], value: int, dummies: int) -> dict[tuple[int, ...], float]:
    """Return the chance of each multiset of reports, everybody's reports gone through one by one."""
    matrix = np.asarray(mechanism.channel().matrix)
    least = matrix.min(axis=0)
    held = [matrix[other] for other, count in enumerate(others) for _ in range(count)]
    rows = [*held, matrix[value], *[least / least.sum()] * dummies]
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for reports in product(range(matrix.shape[1]), repeat=len(rows)):
        found[tuple(sorted(reports))] += math.prod(row[report] for row, report in zip(rows, reports, strict=True))
    return dict(found)


@pytest.mark.parametrize("mechanism", [SURVEY, UNEVEN], ids=["response", "matrix"])
@pytest.mark.parametrize("pair", [(0, 1), (2, 0)])
def test_scores_are_the_ratios_of_the_enumerated_laws_and_come_as_often(mechanism: Any, pair: tuple[int, int]) -> None:
    protocol, size = Protocol(randomizer=mechanism, shuffler=UniformShuffle(), n=4), 40_000
    scores = release_scores(protocol, (0, 0, 3), pair, size, reproducible(1))
    first, second = (laws(mechanism, (0, 0, 3), value, 0) for value in pair)
    for found, law in zip(scores, (first, second), strict=True):
        expected: defaultdict[float, float] = defaultdict(float)
        for multiset, chance in law.items():
            expected[round(math.log(first[multiset] / second[multiset]), 6)] += chance
        seen = Counter(np.round(found, 6).tolist())
        assert set(seen) <= set(expected)
        for score, chance in expected.items():
            assert abs(seen[score] - size * chance) <= 5 * math.sqrt(size * chance) + 1


@pytest.mark.parametrize("mechanism", [SURVEY, UNEVEN], ids=["response", "matrix"])
def test_dummies_are_drawn_and_belong_to_the_crowd(mechanism: Any) -> None:
    protocol, size = Protocol(randomizer=mechanism, shuffler=Scrambler(dummies=2), n=3), 40_000
    scores = release_scores(protocol, (0, 0, 2), (0, 1), size, reproducible(2))
    matrix = np.asarray(mechanism.channel().matrix)
    crowd = 2 * matrix[2] + 2 * matrix.min(axis=0) / matrix.min(axis=0).sum()
    for found, law in zip(scores, (laws(mechanism, (0, 0, 2), value, 2) for value in (0, 1)), strict=True):
        expected: defaultdict[float, float] = defaultdict(float)
        for multiset, chance in law.items():
            sums = (matrix[:2] / crowd)[:, list(multiset)].sum(axis=1)
            expected[round(math.log(sums[0] / sums[1]), 6)] += chance
        seen = Counter(np.round(found, 6).tolist())
        for score, chance in expected.items():
            assert abs(seen[score] - size * chance) <= 5 * math.sqrt(size * chance) + 1


@pytest.mark.parametrize(("k", "different"), [(2, 10), (10, 18)])  # counted, sorted
def test_a_score_says_nothing_of_the_order_of_messages(k: int, different: int) -> None:
    """The last bit neither: messages that are drawn at once are in the order of the people who sent them."""
    protocol = Protocol(randomizer=RandomizedResponse(k=k, epsilon=1.0), shuffler=UniformShuffle(), n=9)
    scores = release_scores(protocol, (4, 4), (0, 1), 4000, reproducible(3))
    assert np.unique(np.concatenate(scores)).size <= different
    sums = {float(np.sum(order)) for order in permutations((0.1, 0.2, 0.3, 1.7))}
    assert len(sums) > 1  # which is what adding them in their order would do


def test_releases_that_must_be_made_one_by_one_have_the_same_law() -> None:
    random = Scrambler(dummies=DummyLaw.binomial(trials=2, p=0.5))
    mixed = release_scores(Protocol(randomizer=SURVEY, shuffler=random, n=3), (0, 0, 2), (0, 1), 1500, reproducible(4))
    fixed = release_scores(
        Protocol(randomizer=SURVEY, shuffler=Scrambler(dummies=1), n=3), (0, 0, 2), (0, 1), 1500, reproducible(5)
    )
    assert abs(float(mixed[0].mean()) - float(fixed[0].mean())) < 0.1
    assert float(mixed[0].mean()) > 0.2 > -0.2 > float(mixed[1].mean())


CLOSE = {
    "response, n = 10": (RandomizedResponse(k=2, epsilon=2.0), UniformShuffle(), 10, 100_000, 0.95),
    "response, n = 30": (RandomizedResponse(k=2, epsilon=2.0), UniformShuffle(), 30, 600_000, 0.88),
    "hashing, dummies": (LocalHashing(k=20, g=4, epsilon=2.0), Scrambler(dummies=5), 10, 300_000, 0.88),
}


@pytest.mark.parametrize(("mechanism", "shuffler", "n", "trials", "share"), CLOSE.values(), ids=CLOSE.keys())
def test_releases_show_nearly_the_exact_lower_end(
    mechanism: Any, shuffler: Any, n: int, trials: int, share: float
) -> None:
    nearly(Protocol(randomizer=mechanism, shuffler=shuffler, n=n), trials, share)


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 100])
def test_four_million_releases_show_it_within_five_percent(n: int) -> None:
    nearly(Protocol(randomizer=RandomizedResponse(k=2, epsilon=2.0), shuffler=UniformShuffle(), n=n), 4_000_000, 0.95)


def nearly(protocol: Protocol, trials: int, share: float) -> None:
    bound = dp.epsilon(protocol, delta=0.01)
    assert bound.witness is not None
    found = audit_protocol(
        protocol,
        others=bound.witness.others,
        values=bound.witness.target,
        claimed=bound.upper,
        delta=0.01,
        trials=trials,
        rng=reproducible(1),
    )
    assert not found.refuted
    assert found.epsilon.lower > share * bound.lower


@pytest.mark.parametrize(
    "shuffler",
    [
        hs.BlanketMessages(p=0.2),
        hs.FakesPerValue(p=0.05),
        hs.BlanketMessages(p=0.4, honest=0.5),
        hs.FakesPerValue(p=0.1, honest=0.5),
        hs.AugmentedShuffle(each=hs.DummyLaw.binomial(trials=20, p=0.5), kept=0.9),
    ],
)
def test_true_reports_among_messages_are_audited_by_the_counts_of_two_values(shuffler: Shuffler) -> None:
    truth = hs.RandomizedResponse(k=4, epsilon=math.inf)
    survey = hs.Protocol(randomizer=truth, shuffler=shuffler, n=200)
    claimed = hs.dp.epsilon(survey, delta=0.02)
    assert claimed.witness is not None
    arguments: Any = {"others": claimed.witness.others, "values": claimed.witness.target, "delta": 0.02, "trials": 3000}
    honest = audit_protocol(survey, claimed=claimed.upper, rng=hs.reproducible(1), **arguments)
    assert not honest.refuted
    # A claim that is far too low is seen.
    lie = audit_protocol(survey, claimed=claimed.upper / 4, rng=hs.reproducible(2), **arguments)
    assert lie.refuted


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_hashed_values_are_audited_by_what_speaks_for_two_values(p: float) -> None:
    hashing = hs.LocalHashing(k=300, g=20, epsilon=math.inf)
    survey = hs.Protocol(randomizer=hashing, shuffler=hs.BlanketMessages(p=p), n=200)
    claimed = hs.dp.epsilon(survey, delta=0.02)
    assert claimed.witness is not None
    arguments: Any = {"others": claimed.witness.others, "values": claimed.witness.target, "delta": 0.02, "trials": 6000}
    honest = audit_protocol(survey, claimed=claimed.upper, rng=hs.reproducible(1), **arguments)
    assert not honest.refuted
    # A claim that is far too low is seen.
    lie = audit_protocol(survey, claimed=claimed.upper / 2, rng=hs.reproducible(2), **arguments)
    assert lie.refuted


def test_no_claim_is_tested_of_a_device_that_makes_none() -> None:
    truth = hs.RandomizedResponse(k=3, epsilon=math.inf)
    survey = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.5), n=40)
    made = audit_deployment(survey, delta=0.05, trials=2000, rng=hs.reproducible(1))
    assert made.unanswered[0].topic == "Local epsilon"
    assert "no local epsilon is claimed" in made.unanswered[0].reason
    assert not any("refuted:" in sentence for sentence in made.answers)


@pytest.mark.parametrize("people", [0.5, 0.01])
@pytest.mark.parametrize("kind", ["blanket-messages", "fakes-per-value"])
def test_a_specification_with_honest_people_is_audited(kind: str, people: float) -> None:
    specification = parse(f"""
        population = {{ n = 100, k = 3 }}
        randomizer = {{ kind = "randomized-response", epsilon = "inf" }}
        shuffler = {{ kind = "{kind}", p = 0.4, honest = {people} }}
        targets = {{ delta = 0.05 }}
        rounds = 2
    """)
    made = audit_specification(specification, trials=1000, rng=hs.reproducible(1))
    assert f"a fraction of {people:g} of all people is honest" in made.question
    tables = {table.key: [str(row[0]) for row in table.rows] for table in made.tables}
    assert ("Central epsilon at delta = 0.05" in tables.get("claims", [])) == (people == 0.5)
    reasons = " ".join(row.reason for row in made.unanswered)
    assert ("no central epsilon is claimed at delta = 0.05" in reasons) == (people < 0.5)
    assert "who sent a report" in tables["games"]
    if kind == "blanket-messages":
        assert {"a person's value", "which of two values a person reports in two rounds"} <= {*tables["games"]}
    assert not any("is refuted:" in sentence for sentence in made.answers)
