"""Gains from shuffled reports for any channel, prior and gain: against enumeration in rationals, and narrow."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.questions.qif import shuffled
from oracles.qif_toolkit import Matrix, random_rows, shuffled_gain

F = Fraction
Case = tuple[Matrix, list[Fraction], Matrix, int]


def point(k: int, x: int) -> list[Fraction]:
    return [F(int(value == x)) for value in range(k)]


def drawn(source: random.Random, most: int) -> Case:
    """Draw a channel (zeros occur), a prior, gains and the number of people; k, outputs <= 3."""
    k, outputs, n = source.randint(2, 3), source.randint(2, 3), source.randint(1, most)
    gain = [[F(source.randrange(-2, 5), 4) for _ in range(k)] for _ in range(source.randint(1, 4))]
    return random_rows(source, k, outputs), random_rows(source, 1, k)[0], gain, n


def gained(case: Case, adversary: Any, shuffler: Any = None) -> hs.Bound:
    matrix, prior, gain, n = case
    randomizer = hs.MatrixRandomizer([[float(entry) for entry in row] for row in matrix])
    survey = hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=n)
    table, shares = np.array(gain, dtype=np.float64), [float(share) for share in prior]
    return hs.qif.gain_vulnerability(survey, gain=table, frequencies=shares, adversary=adversary)


def within(truth: Fraction, bound: hs.Bound) -> bool:
    return bound.lower - 1e-13 <= float(truth) <= bound.upper + 1e-13


def narrow(monkeypatch: pytest.MonkeyPatch, merged: int) -> None:
    """Let every figure be a bracket."""
    monkeypatch.setattr(shuffled, "ENTRIES_LIMIT", 0)
    monkeypatch.setattr(shuffled, "_MERGED_LIMIT", merged)


@pytest.mark.parametrize("seed", range(4))
def test_who_knows_no_value_equals_enumeration(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - examples, not secrets
    for _ in range(25):
        matrix, prior, gain, n = case = drawn(source, 6)
        bound = gained(case, hs.Uninformed())
        assert bound.kind == "exact"
        assert bound.upper == pytest.approx(float(shuffled_gain(matrix, prior, gain, [prior] * (n - 1))), abs=1e-13)


@pytest.mark.parametrize("merged", [-1, 12, 60, 600_000])
def test_brackets_contain_the_enumeration(merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow(monkeypatch, merged)
    source = random.Random(merged)  # noqa: S311 - examples, not secrets
    for _ in range(40):
        matrix, prior, gain, n = case = drawn(source, 6)
        assert within(shuffled_gain(matrix, prior, gain, [prior] * (n - 1)), gained(case, hs.Uninformed()))


@pytest.mark.parametrize("merged", [-1, 12, 600_000])
def test_given_values_contain_the_enumeration(merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffled, "_MERGED_LIMIT", merged)
    source = random.Random(merged)  # noqa: S311 - examples, not secrets
    for _ in range(40):
        matrix, prior, gain, n = case = drawn(source, 6)
        k, m = len(prior), source.randrange(n)
        held = [source.randrange(k) for _ in range(m)]
        known = hs.Histogram(counts=np.bincount(held, minlength=k))
        others = [*(point(k, x) for x in held), *[prior] * (n - 1 - m)]
        truth, bound = shuffled_gain(matrix, prior, gain, others), gained(case, hs.Informed(m=m, known=known))
        assert within(truth, bound)
        assert merged < 600_000 or bound.upper == pytest.approx(float(truth), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_worst_values_contain_the_enumeration(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - examples, not secrets
    for _ in range(15):
        matrix, prior, gain, n = case = drawn(source, 4)
        k, m = len(prior), source.randrange(n)
        cases = itertools.combinations_with_replacement(range(k), m)
        rest = [prior] * (n - 1 - m)
        truth = max(shuffled_gain(matrix, prior, gain, [*(point(k, x) for x in held), *rest]) for held in cases)
        assert within(truth, gained(case, hs.Informed(m=m)))
        assert gained(case, None) == gained(case, hs.Strong())


@pytest.mark.parametrize("merged", [-1, 600_000])
def test_dummies_contain_the_enumeration(merged: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffled, "_MERGED_LIMIT", merged)
    source, checked = random.Random(5), 0  # noqa: S311 - examples, not secrets
    while checked < 5:
        matrix, prior, gain, n = case = drawn(source, 4)
        shared = [min(column) for column in zip(*matrix, strict=True)]
        if not sum(shared):
            continue
        checked += 1
        dummies = [[entry / sum(shared) for entry in shared]] * 2
        k, shuffler = len(prior), hs.Scrambler(dummies=2)
        truth = shuffled_gain(matrix, prior, gain, [prior] * (n - 1), dummies)
        assert within(truth, gained(case, hs.Uninformed(), shuffler))
        cases = itertools.combinations_with_replacement(range(k), n - 1)
        worst = max(shuffled_gain(matrix, prior, gain, [point(k, x) for x in held], dummies) for held in cases)
        assert within(worst, gained(case, hs.Strong(), shuffler))


def test_brackets_of_random_channels_are_narrow() -> None:
    """k <= 5, at most 6 reports, n from 10 to 10**5, random and uniform priors, random and identity gains."""
    source, ratios = np.random.default_rng(8), []
    for _ in range(40):
        k, outputs, n = int(source.integers(2, 6)), int(source.integers(2, 7)), round(10 ** source.uniform(1, 5))
        matrix = source.dirichlet(np.full(outputs, source.choice([0.5, 1, 3])), size=k)
        prior = source.dirichlet(np.full(k, source.choice([1, 5, 1e6])))
        gain = source.random((int(source.integers(2, 7)), k)) if source.random() < 0.6 else np.eye(k)
        lower, upper = shuffled.gain_ends((gain * prior) @ matrix, ((n - 1, prior @ matrix),))
        ratios.append(upper / lower)
    assert np.median(ratios) < 1.001
    assert max(ratios) < 1.01


def test_figures_of_a_matrix() -> None:
    """The exact figures of 500 people: a sum over 125,751 histograms."""
    matrix = [[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.1, 0.2, 0.7]]
    survey = hs.Protocol(randomizer=hs.MatrixRandomizer(matrix), shuffler=hs.UniformShuffle(), n=500)
    assert str(hs.qif.vulnerability(survey)) == "0.3455 (exact)"
    assert str(hs.qif.iid_vulnerability(survey, frequencies=[0.3, 0.3, 0.4])) == "0.4000 (exact)"
    worst = hs.qif.vulnerability(survey, adversary=hs.Strong())
    given = hs.qif.vulnerability(survey, adversary=hs.Strong(others=hs.Histogram(counts=[167, 166, 166])))
    assert worst.kind == given.kind == "bracket"
    assert given.width < 1e-8
    assert given.lower <= worst.upper


def test_a_secret_that_depends_on_the_value() -> None:
    """Gains from a secret z with p(z | x) are gains sum_z p(z | x) g(w, z) from x."""
    source = random.Random(2)  # noqa: S311 - examples, not secrets
    matrix, prior, _, n = drawn(source, 5)
    secrets, gain = random_rows(source, len(prior), 3), [[F(1), F(0), F(1, 2)], [F(0), F(1), F(1, 4)]]
    table = [[sum((p * g for p, g in zip(row, guess, strict=True)), F(0)) for row in secrets] for guess in gain]
    joint = [[prior[x] * secrets[x][z] for x in range(len(prior))] for z in range(3)]
    rows = [
        [
            sum((w * row[y] for w, row in zip(weights, matrix, strict=True)), F(0)) / sum(weights)
            for y in range(len(matrix[0]))
        ]
        for weights in joint
    ]
    channel = [[float(entry) for entry in row] for row in rows]
    marginal = np.array([float(sum(weights)) for weights in joint])
    alone = hs.qif.posterior_vulnerability(hs.Channel(matrix=channel), marginal, np.array(gain, dtype=np.float64))
    assert gained((matrix, prior, table, 1), hs.Uninformed()).upper == pytest.approx(float(alone), rel=1e-12)
    several = gained((matrix, prior, table, n), hs.Uninformed()).upper
    assert several == pytest.approx(float(shuffled_gain(matrix, prior, table, [prior] * (n - 1))), rel=1e-12)


@pytest.mark.parametrize("n", [1000, 10**9])
def test_many_guesses_reports_and_people(n: int) -> None:
    start, k = process_time(), 40
    matrix = np.random.default_rng(1).dirichlet(np.ones(50), size=k)
    survey = hs.Protocol(randomizer=hs.MatrixRandomizer(matrix), shuffler=hs.UniformShuffle(), n=n)
    release, uniform = shuffled.Release.of(survey), np.full(k, 1 / k)
    assert release is not None
    alone = float(matrix.max(axis=0).sum()) / k
    for known in ((0, None), (n - 1, None)):
        lower, upper = release.ends(uniform, np.eye(k), shares=uniform, known=known)
        assert 1 / k < lower < upper <= (1.1 / k if not known[0] else alone * (1 + 1e-12))
    lower, upper = release.ends(uniform, hs.qif.tries_gain(k, 2), shares=uniform, known=(0, None))
    assert 2 / k < lower < upper < 2.2 / k
    assert process_time() - start < 10


def test_other_views_have_upper_bounds_alone() -> None:
    source = random.Random(4)  # noqa: S311 - examples, not secrets
    case = (random_rows(source, 3, 3), [F(1, 3)] * 3, [point(3, x) for x in range(3)], 5)
    order = hs.MallowsShuffle(reference=list(range(5)), theta=0.5)
    random_dummies = hs.Scrambler(dummies=hs.DummyLaw.binomial(trials=3, p=0.5))
    for shuffler in (order, random_dummies, hs.Scrambler(dummies=0, cap=5)):
        assert gained(case, hs.Uninformed(), shuffler).kind == "upper"


def test_the_mean_over_dummies_has_no_values_that_depend_on_their_number() -> None:
    matrix = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    shuffler = hs.Scrambler(dummies=hs.DummyLaw.of({0: 0.5, 30: 0.5}))
    survey = hs.Protocol(randomizer=hs.MatrixRandomizer(matrix), shuffler=shuffler, n=8)
    bound = hs.qif.vulnerability(survey, adversary=hs.Strong())
    uninformed = [hs.qif.vulnerability(survey.with_dummies(number)).lower for number in (0, 30)]
    assert bound.lower == pytest.approx(sum(uninformed) / 2, rel=1e-9)
