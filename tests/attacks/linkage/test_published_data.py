"""Real check-ins and ratings, from the folder named by HUSHUFFLE_DATA."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.attacks.linkage import Knowledge, miss_rate, randomize, ranks, report_scores, scene, trace_scores, train
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model.traces import Traces
from hushuffle.questions import pie
from hushuffle.tables.published import load_checkins, load_ratings

pytestmark = pytest.mark.data


def folder(name: str) -> Path:
    if not os.environ.get("HUSHUFFLE_DATA"):
        pytest.skip("HUSHUFFLE_DATA does not name the folder of data sets")
    return Path(os.environ["HUSHUFFLE_DATA"]) / name


@pytest.fixture(scope="module")
def checkins() -> Traces:
    return load_checkins(folder("foursquare_nyc"))


@pytest.fixture(scope="module")
def ratings() -> Traces:
    liked = load_ratings(folder("movielens_latest_small"), least=4)
    return liked.select(liked.lengths >= 10)


@pytest.mark.parametrize(
    ("knowledge", "events", "low", "high"),
    [
        ("partial", 1, 0.47, 0.51),
        ("partial", 3, 0.36, 0.39),
        ("partial", None, 0.18, 0.20),
        ("maximum", 1, 0.39, 0.43),
        ("maximum", 3, 0.0, 0.01),
        ("maximum", None, 0.0, 0.0),
    ],
)
def test_check_ins_without_noise(
    checkins: Traces, knowledge: Knowledge, events: int | None, low: float, high: float
) -> None:
    there = scene(checkins, knowledge=knowledge, events=events)
    start = time.process_time()
    scores = trace_scores(train(there.training), there.reported)
    taken = time.process_time() - start
    error = float(np.mean(ranks(scores, rng=hs.reproducible(1)) > 1))
    assert low <= error <= high
    assert taken < 10


@pytest.mark.parametrize(
    "epsilon",
    [
        pytest.param(0.1, marks=pytest.mark.slow),
        1.0,
        pytest.param(5.0, marks=pytest.mark.slow),
        10.0,
        pytest.param(20.0, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("hashing", [False, True])
def test_check_ins_with_noise_keep_the_bound(checkins: Traces, epsilon: float, hashing: bool) -> None:
    there = scene(checkins)
    g = hs.LocalHashing.best_g(epsilon)
    randomizer: Mechanism = (
        hs.LocalHashing(k=checkins.k, g=g, epsilon=epsilon)
        if hashing
        else hs.RandomizedResponse(k=checkins.k, epsilon=epsilon)
    )
    reports = randomize(there.reported, randomizer=randomizer, rng=hs.reproducible(1))
    places = ranks(report_scores(train(there.training), reports), rng=hs.reproducible(2))
    least = pie.bayes_error(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=checkins.n)).lower
    # False alarm below 1e-6.
    assert miss_rate(places, confidence=1 - 2e-6).upper >= least


def test_ratings_without_noise(ratings: Traces) -> None:
    errors = []
    for known in (1, 2, 3, 4, 5):
        there = scene(ratings, split="none", training=known, events=None)
        places = ranks(trace_scores(train(there.training), there.reported), rng=hs.reproducible(known))
        errors.append(float(np.mean(places > 1)))
    assert errors[0] > errors[-1]
    there = scene(ratings, split="none", knowledge="maximum", events=5)
    assert np.mean(ranks(trace_scores(train(there.training), there.reported), rng=hs.reproducible(6)) > 1) < 0.2


@pytest.mark.parametrize("epsilon", [1.0, 10.0, math.inf])
def test_ratings_with_noise_keep_the_bound(ratings: Traces, epsilon: float) -> None:
    there = scene(ratings, split="none", knowledge="maximum")
    randomizer = hs.RandomizedResponse(k=ratings.k, epsilon=epsilon)
    reports = randomize(there.reported, randomizer=randomizer, rng=hs.reproducible(1))
    places = ranks(report_scores(train(there.training), reports), rng=hs.reproducible(2))
    least = pie.bayes_error(hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=ratings.n)).lower
    assert miss_rate(places, confidence=1 - 2e-6).upper >= least
