"""The share above a threshold, against the true share: over seeded collections, and with exact binomial sums."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.answers.base import Fakes
from hushuffle.answers.threshold import Threshold, share_interval
from hushuffle.errors import DataError, InvalidInputError
from hushuffle.specification.reading import load

PEOPLE: Final = 400
TIMES: Final = 600
LATE: Final = Threshold(above=30)
FAKES: Final = Fakes(reports=4, words="4 Sybil clients")
BINARY: Final = hs.RandomizedResponse(k=2, epsilon=1.0)
PROTOCOLS: Final = {
    "no dummies": hs.Protocol(randomizer=BINARY, shuffler=hs.UniformShuffle(), n=PEOPLE),
    "dummies": hs.Protocol(randomizer=BINARY, shuffler=hs.Scrambler(dummies=200), n=PEOPLE),
    "matrix": hs.Protocol(
        randomizer=hs.MatrixRandomizer([[0.7, 0.2, 0.1], [0.1, 0.4, 0.5]]), shuffler=hs.Scrambler(dummies=50), n=PEOPLE
    ),
    "unary encoding": hs.Protocol(
        randomizer=hs.UnaryEncoding(k=2, epsilon=1.0),
        shuffler=hs.SecureAggregation(coins=40, servers=2, honest=1),
        n=PEOPLE,
    ),
}


def collected(protocol: hs.Protocol, above: int, seed: int) -> hs.Histogram:
    """The counts of reports if the numbers of this many people are above the threshold."""
    values = np.arange(protocol.n) < above
    rng = hs.reproducible(seed)
    if isinstance(protocol.shuffler, hs.SecureAggregation):
        reports = protocol.randomizer.randomize(values.astype(np.int64), rng=rng)
        counts = protocol.randomizer.counts(reports).counts
        return hs.Histogram(counts=counts + np.random.default_rng(seed).binomial(protocol.shuffler.all_coins, 0.5, 2))
    return protocol.randomizer.counts(protocol.collect(values.astype(np.int64), rng=rng).reports)


@pytest.mark.parametrize("true", [0.0, 0.03, 0.4, 1.0])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_estimate_is_unbiased_and_its_interval_covers_the_true_share(name: str, true: float) -> None:
    protocol = PROTOCOLS[name]
    rows = []
    for seed in range(TIMES):
        counts = collected(protocol, round(true * PEOPLE), seed)
        answer = LATE.estimated(counts, protocol=protocol, confidence=0.9, fakes=FAKES)
        rows.append([float(answer.facts[key]) for key in ("share", "low", "high", "standard_error")])
    share, low, high, error = np.array(rows).T
    spread = float(share.std())
    assert abs(share.mean() - true) < 4 * spread / math.sqrt(TIMES)
    assert spread == pytest.approx(error.mean(), rel=0.1)
    assert spread <= LATE.error(protocol) * 1.1
    assert low.min() >= 0
    assert high.max() <= 1
    covered = float(np.mean((low <= true) & (true <= high)))
    deviation = 4 * math.sqrt(0.9 * 0.1 / TIMES)
    # Near 0 and 1, estimates on the far side are moved to the end, so that more intervals cover the true share.
    most = 0.925 if 0.1 < true < 0.9 else 0.96
    deviation = 4 * math.sqrt(0.9 * 0.1 / TIMES)
    assert 0.9 - deviation <= covered <= most + deviation


def masses(n: int, p: float) -> npt.NDArray[np.float64]:
    """The probability of each number of successes among n trials, by adding one trial after another."""
    law = np.ones(1)
    for _ in range(n):
        law = np.convolve(law, [1 - p, p])
    return law


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("dummies", [0, 100])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_coverage_is_near_the_confidence_for_every_true_share(epsilon: float, dummies: int, confidence: float) -> None:
    """The exact coverage: reports above are a sum of three binomial numbers."""
    mechanism = hs.RandomizedResponse(k=2, epsilon=epsilon)
    protocol = hs.Protocol(randomizer=mechanism, shuffler=hs.Scrambler(dummies=dummies), n=PEOPLE)
    truthful = math.exp(epsilon) / (math.exp(epsilon) + 1)
    all_reports = PEOPLE + dummies
    ends = []
    for above in range(all_reports + 1):
        counts = hs.Histogram(counts=np.array([all_reports - above, above]))
        facts = LATE.estimated(counts, protocol=protocol, confidence=confidence, fakes=FAKES).facts
        ends.append((facts["low"], facts["high"]))
    low, high = np.array(ends).T
    for people in (0, 4, 20, 100, 200, 333, 400):
        law = np.convolve(masses(people, truthful), masses(PEOPLE - people, 1 - truthful))
        law = np.convolve(law, masses(dummies, 0.5))
        inside = (low <= people / PEOPLE + 1e-12) & (people / PEOPLE - 1e-12 <= high)
        covered = float(law[inside].sum())
        assert covered >= confidence - 0.005
        assert covered <= confidence + (0.1 if 0.1 < people / PEOPLE < 0.9 else (1 - confidence) / 2 + 0.1)


def test_the_interval_has_the_shares_that_a_normal_test_does_not_reject() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        none_above, all_above = rng.uniform(0, 0.02, 2)
        share, confidence = rng.uniform(-0.2, 1.2), rng.uniform(0.5, 0.999)
        z = 2**0.5 * _inverse_erf(confidence)
        half_step = rng.uniform(0, 0.01) * (rng.random() < 0.5)
        low, high = share_interval(
            share, none_above=none_above, all_above=all_above, half_step=half_step, confidence=confidence
        )
        assert 0 <= low <= min(max(share, 0.0), 1.0) <= high <= 1
        for p in np.linspace(0, 1, 101):
            distance = abs(min(max(share, 0.0), 1.0) - p)
            bound = half_step + z * math.sqrt(none_above + (all_above - none_above) * p)
            if abs(distance - bound) > 1e-9:
                assert (low <= p <= high) == (distance < bound)


def _inverse_erf(value: float) -> float:
    """The inverse of the error function, by bisection."""
    low, high = 0.0, 6.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < value else (low, middle)
    return low


def test_the_interval_is_the_share_if_reports_are_truthful() -> None:
    truthful = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=2, epsilon=math.inf), shuffler=hs.UniformShuffle(), n=PEOPLE
    )
    facts = LATE.estimated(
        hs.Histogram(counts=np.array([300, 100])), protocol=truthful, confidence=0.95, fakes=FAKES
    ).facts
    assert facts["share"] == facts["low"] == facts["high"] == 0.25


@pytest.mark.parametrize("name", ["no dummies", "dummies", "matrix"])
def test_fake_reports_move_the_share_as_far_as_stated(name: str) -> None:
    protocol = PROTOCOLS[name]
    reports = protocol.n + int(protocol.shuffler.dummies)
    outputs = int(protocol.randomizer.law().channel().matrix.shape[1])
    facts = LATE.estimated(
        hs.Histogram(counts=np.array([reports] + [0] * (outputs - 1))), protocol=protocol, confidence=0.9, fakes=FAKES
    ).facts
    # The contribution of one report: the change of the estimate if a report is another one.
    alone = []
    for report in range(outputs):
        counts = np.zeros(outputs, dtype=np.int64)
        counts[0] = reports - 1
        counts[report] += 1
        changed = LATE.estimated(hs.Histogram(counts=counts), protocol=protocol, confidence=0.9, fakes=FAKES)
        alone.append(changed.facts["share"] - facts["share"])
    matrix = np.asarray(protocol.randomizer.law().channel().matrix)
    # An honest person below the threshold adds 0 in expectation.
    contribution = np.array(alone) - matrix[0] @ np.array(alone)
    moved = facts["fake_users"]
    assert FAKES.reports * contribution.max() <= moved["raised"] + 1e-12
    assert -FAKES.reports * contribution.min() <= moved["lowered"] + 1e-12
    if name != "matrix":
        assert FAKES.reports * contribution.max() == pytest.approx(moved["raised"])
        assert -FAKES.reports * contribution.min() == pytest.approx(moved["lowered"])


def test_a_number_equal_to_the_threshold_does_not_count(tmp_path: Path) -> None:
    numbers = ["29.9", "30", "30.0", "30.000001", "31", "-5", "1e3", "30"]
    pl.DataFrame({"minutes": numbers}).write_csv(tmp_path / "people.csv")
    (tmp_path / "survey.toml").write_text(
        '[population]\ndata = "people.csv"\ncolumn = "minutes"\nperson = "none"\nkind = "threshold"\nabove = 30\n'
        '[randomizer]\nkind = "randomized-response"\nepsilon = 1.0\n[shuffler]\nkind = "uniform"\n'
        "[targets]\ndelta = 1e-4\n",
        encoding="utf-8",
    )
    people = load(tmp_path / "survey.toml").population.read(tmp_path)
    assert people.values is not None
    assert people.values.tolist() == [0, 0, 0, 1, 1, 0, 1, 0]
    assert people.population.labels == ("at most 30", "above 30")


@pytest.mark.parametrize(
    ("above", "label"), [(-2.5, "above -2.5"), (1e-7, "above 1e-07"), (0, "above 0"), (2**52, f"above {2**52}")]
)
def test_labels_have_every_digit_of_the_threshold(above: float, label: str) -> None:
    answer = Threshold(above=above)
    assert answer.labels[1] == label
    assert answer.coded.conditions[label] == f"> {float(above)!r}"


@pytest.mark.parametrize("above", [math.inf, math.nan, 2.0**53])
def test_a_threshold_that_floats_cannot_compare_exactly_is_refused(above: float) -> None:
    with pytest.raises(InvalidInputError, match="above"):
        Threshold(above=above)


@pytest.mark.parametrize("value", ["abc", "inf", "1e400"])
def test_what_is_no_finite_number_is_refused_with_advice_that_helps(value: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("late\n3\n70\n" + value + "\n", encoding="utf-8")
    file = tmp_path / "late.toml"
    file.write_text(
        '[population]\ndata = "people.csv"\ncolumn = "late"\nperson = "none"\nkind = "threshold"\nabove = 30\n'
        '[randomizer]\nkind = "randomized-response"\nepsilon = 2.0\n[shuffler]\nkind = "uniform"\n'
        "[targets]\ndelta = 1e-4\n",
        encoding="utf-8",
    )
    with pytest.raises(DataError, match="hold no finite number") as caught:
        hs.assess(file)
    assert "category" not in str(caught.value)
    assert value not in str(caught.value)
