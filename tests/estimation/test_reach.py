from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.estimation.reach import Question, Reach, exclusive, inclusion_exclusion, overlap, planned, reach
from hushuffle.mechanisms.sketches import BloomEncoder, align, logo_counts
from oracles.bloom_reach import empty_columns, empty_columns_by_enumeration, standard_error, studies, weights_of

KEY = bytes(range(32))
ASK = {"reach": reach, "overlap": overlap, "exclusive": exclusive}


def columns(k: int, n: int, p: float) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.BitFlipping(width=k, p=p), shuffler=hs.UniformShuffle(), n=n)


@pytest.mark.parametrize("question", ["reach", "overlap", "exclusive"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_inclusion_and_exclusion_by_solving(question: Question, k: int) -> None:
    for chosen in range(1, 1 << k):
        publishers = tuple(each for each in range(k) if chosen >> each & 1)
        weights = inclusion_exclusion(question, publishers, k)
        assert {int(s): int(weights[s]) for s in np.flatnonzero(weights)} == weights_of(question, chosen, k)


@pytest.mark.parametrize(("people", "hashes"), [([0, 1, 2, 1], 1), ([0, 1, 0, 1], 2), ([0, 2, 1, 2], 1)])
def test_the_oracle_of_collisions_by_enumeration(people: list[int], hashes: int) -> None:
    for first in range(1, 4):
        for other in range(1, 4):
            slow = empty_columns_by_enumeration(people, hashes, 4, first, other)
            assert slow == empty_columns(people, hashes, 4, first, other)


@pytest.mark.parametrize("question", ["reach", "overlap", "exclusive"])
@pytest.mark.parametrize(
    ("people", "hashes", "p", "publishers"),
    [
        ([0, 700], 1, 0.1, [0]),
        ([0, 300, 500, 200], 1, 0.2, [0, 1]),
        ([0, 300, 50, 20], 2, 0.05, [1]),
        ([0, 100, 50, 30, 200, 10, 20, 90], 1, 0.1, [0, 2]),
        ([0, 100, 50, 30, 20, 10, 20, 60], 3, 0.02, [0, 1, 2]),
    ],
)
def test_standard_errors_pair_by_pair(
    question: Question, people: list[int], hashes: int, p: float, publishers: list[int]
) -> None:
    bits, k = 1000, (len(people) - 1).bit_length()
    chosen = sum(1 << each for each in publishers)
    found = planned(people, protocol=columns(k, bits, p), question=question, publishers=publishers, hashes=hashes)
    expected = standard_error(question, chosen, people, hashes=hashes, bits=bits, p=p)
    # The product takes the limit of many columns: off by a few in a thousand at 1000.
    assert found.standard_error == pytest.approx(expected, rel=0.005)
    truth = sum(
        count
        for kind, count in enumerate(people)
        if {"reach": kind & chosen, "overlap": kind & chosen == chosen, "exclusive": kind == chosen}[question]
    )
    assert found.estimate == pytest.approx(truth, rel=1e-9, abs=1e-6)


def test_without_noise_it_is_linear_counting() -> None:
    # Whang, Vander-Zanden, Taylor 1990: n = -m ln(z/m), variance m (e^t - t - 1), t = n/m.
    found = planned([0, 800], protocol=columns(1, 1000, 1e-12))
    assert found.standard_error == pytest.approx(math.sqrt(1000 * (math.exp(0.8) - 0.8 - 1)), rel=1e-6)
    counted = reach(hs.Histogram(counts=[450, 550]), protocol=columns(1, 1000, 1e-15))
    assert counted.estimate == pytest.approx(-1000 * math.log(0.45), rel=1e-9)
    hashed = reach(hs.Histogram(counts=[450, 550]), protocol=columns(1, 1000, 1e-15), hashes=4)
    assert hashed.estimate == pytest.approx(-250 * math.log(0.45), rel=1e-9)


STUDIES: list[tuple[list[int], int, int, float]] = [
    ([0, 800], 1000, 1, 0.1),
    ([0, 500], 2000, 2, 0.3),
    ([0, 1500, 1000, 50], 2000, 1, 0.1),
    ([0, 300, 200, 900], 2000, 1, 0.2),
    ([0, 900, 900, 0], 4000, 1, 0.05),
    ([0, 300, 200, 150, 400, 50, 20, 300], 3000, 2, 0.05),
    ([0, 200, 100, 20, 300, 10, 10, 5, 100, 30, 20, 40, 50, 10, 5, 60], 3000, 1, 0.1),
]


@pytest.mark.parametrize(
    ("people", "bits", "hashes", "p"),
    # One to three publishers, one and two hash functions, a truth of 0; the others take as long again.
    [pytest.param(*study, marks=[] if place in (1, 4, 5) else pytest.mark.slow) for place, study in enumerate(STUDIES)],
)
def test_coverage_over_a_thousand_studies(people: list[int], bits: int, hashes: int, p: float) -> None:
    k, times = (len(people) - 1).bit_length(), 1000
    protocol, everyone = columns(k, bits, p), len(people) - 1
    truths: dict[Question, int] = {"reach": sum(people), "overlap": people[everyone], "exclusive": people[1]}
    inside: dict[tuple[Question, float], int] = {}
    for counts in studies(people, bits=bits, hashes=hashes, p=p, times=times, seed=1):
        for question, truth in truths.items():
            publishers = [0] if question == "exclusive" else None
            found = ASK[question](hs.Histogram(counts=counts), protocol=protocol, publishers=publishers, hashes=hashes)
            for confidence in (0.8, 0.95):
                key = question, confidence
                inside[key] = inside.get(key, 0) + (truth in found.interval(confidence))
    # At most 2e-8 for each of the 42 comparisons, were the coverage nominal: 1e-6 in all.
    for (question, confidence), count in inside.items():
        low, high = (float(stats.binom.ppf(tail, times, confidence)) for tail in (1e-8, 1 - 1e-8))
        if truths[question] == 0:  # the interval is cut off at 0, where the truth is: it only gains
            high = times
        assert low <= count <= high, (question, confidence, count)


def test_bias_and_standard_error_over_a_thousand_studies() -> None:
    people, bits, p = STUDIES[3][0], STUDIES[3][1], STUDIES[3][3]
    protocol = columns(2, bits, p)
    found = [
        overlap(hs.Histogram(counts=c), protocol=protocol)
        for c in studies(people, bits=bits, hashes=1, p=p, times=1000, seed=2)
    ]
    estimates = np.array([each.estimate for each in found])
    error = planned(people, protocol=protocol, question="overlap").standard_error
    assert abs(estimates.mean() - 900) < (5 / math.sqrt(1000) + 0.1) * error  # 6e-7, beside a bias of a tenth
    assert estimates.std() == pytest.approx(error, rel=5 / math.sqrt(2000))  # 6e-7, two-sided, normal kurtosis
    assert np.mean([each.standard_error for each in found]) == pytest.approx(error, rel=0.01)


def test_from_identifiers_to_reach() -> None:
    encoder = BloomEncoder(bits=50_000, key=KEY)
    audiences = [np.arange(12_000), np.arange(9_000, 17_000), np.arange(16_000, 20_000)]
    filters = [encoder.encode(each) for each in audiences]
    randomizer = hs.BitFlipping(width=3, p=0.1)
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=50_000)
    flipped = [f.flip(randomizer=randomizer, rng=hs.reproducible(i)) for i, f in enumerate(filters)]
    ways: list[Any] = [logo_counts(flipped), align(flipped), protocol.collect(align(filters), rng=hs.reproducible(7))]
    truths: list[tuple[Any, list[int] | None, int]] = [
        (reach, None, 20_000),
        (reach, [1], 8_000),
        (overlap, [0, 1], 3_000),
        (overlap, [2, 0], 0),
        (exclusive, [0], 9_000),
        (exclusive, [1, 2], 1_000),
        (overlap, None, 0),
    ]
    for reports in ways:
        for ask, publishers, truth in truths:
            found = ask(reports, protocol=protocol, publishers=publishers)
            assert abs(found.estimate - truth) < 5.5 * found.standard_error  # 4e-8 each
            assert found.standard_error < 400
            assert truth in found.interval(1 - 1e-7)
    first, second = (overlap(ways[0], protocol=protocol, publishers=each) for each in ([0, 1], [1, 0]))
    assert first.estimate == pytest.approx(second.estimate)
    assert second.publishers == (1, 0)


def test_twenty_publishers_at_once() -> None:
    k, bits = 20, 100_000
    rng = np.random.default_rng(3)
    logos = np.zeros(bits, dtype=np.int64)
    for bit in range(k):
        logos[rng.integers(bits, size=1500)] |= 1 << bit
    protocol = columns(k, bits, 0.02)
    released = protocol.collect(logos, rng=hs.reproducible(3))
    total = reach(released, protocol=protocol)
    assert abs(total.estimate - 30_000) < 5.5 * total.standard_error < 4_000
    pair = overlap(released, protocol=protocol, publishers=[3, 17])
    assert abs(pair.estimate) < 5.5 * pair.standard_error
    alone = exclusive(released, protocol=protocol, publishers=[19])
    assert abs(alone.estimate - 1_500) < 5.5 * alone.standard_error


def test_more_than_twenty_publishers_some_at_a_time() -> None:
    protocol = columns(40, 5000, 0.1)
    logos = np.zeros(5000, dtype=np.int64)
    logos[:1000] = 1 << 39
    released = protocol.collect(logos, rng=hs.reproducible(3))
    found = reach(released, protocol=protocol, publishers=[39, 0])
    assert abs(found.estimate + 5000 * math.log(0.8)) < 5.5 * found.standard_error
    for ask in (reach, exclusive):
        with pytest.raises(UnsupportedProtocolError, match="at most 20 publishers"):
            ask(released, protocol=protocol, publishers=range(21))


def test_full_or_noisy_filters_are_refused() -> None:
    with pytest.raises(NumericalError, match="An estimated 7 of 1,000 columns are empty in all 1 filters") as raised:
        planned([0, 5000], protocol=columns(1, 1000, 0.1))
    assert "Use more bits, fewer hash functions" in str(raised.value)
    with pytest.raises(NumericalError, match="too few for linear counting"):
        reach(hs.Histogram(counts=[0, 100]), protocol=columns(1, 100, 0.1))
    with pytest.raises(NumericalError, match="columns are empty in all 8 filters"):
        planned([0, *[10] * 255], protocol=columns(8, 10_000, 0.4))
    with pytest.raises(NumericalError, match="too few distinct columns"):
        reach(hs.Histogram(counts=[100, 0, 0, 0]), protocol=columns(2, 100, 1e-19))


def test_figures_in_words() -> None:
    found = Reach(estimate=-3.0, standard_error=2.0, question="overlap", publishers=(2, 0))
    assert str(found) == "overlap of 2, 0: -3 people (standard error 2)"
    bound = found.interval(0.95)
    assert (bound.lower, bound.kind, bound.unit, bound.confidence) == (0.0, "estimate", "people", 0.95)
    assert bound.upper == pytest.approx(2 * 1.959964 - 3)
    assert bound.sources[0].key == "whang1990"
    with pytest.raises(InvalidInputError, match="`confidence`"):
        found.interval(1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"publishers": []}, "one or more, each once"),
        ({"publishers": [0, 0]}, "one or more, each once"),
        ({"publishers": [2]}, "`publishers` must be an integer from 0 to 1"),
        ({"hashes": 0}, "`hashes` must be"),
        ({"people": [0, 1]}, r"2\*\*2 finite numbers >= 0"),
        ({"people": [0, 1, 1, -1]}, r"2\*\*2 finite numbers >= 0"),
        ({"question": "size"}, "one of reach, overlap, exclusive, got question=size"),
        ({"protocol": columns(11, 10, 0.1)}, "Plan for fewer publishers"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"people": [0, 10, 10, 5], "protocol": columns(2, 100, 0.1)}
    with pytest.raises(InvalidInputError, match=message):
        planned(**(arguments | changes))
