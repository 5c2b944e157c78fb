"""Fake users: the closed form against all reports and all values that they could choose."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation.numbers import NumberEstimate
from hushuffle.estimation.poisoning import usual_fakes
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.subset_selection import Sets
from oracles.number_enumeration import outcomes
from oracles.poisoning import moves, moves_by_matrix
from plain_protocols import Opaque

Law = tuple[list[list[Fraction]], list[frozenset[int]]]


def response(k: int, epsilon: float) -> tuple[Mechanism, Law]:
    made = hs.RandomizedResponse(k=k, epsilon=epsilon)
    law = made.law()
    rows = [[law.truth if x == y else law.lie for y in range(k)] for x in range(k)]
    return made, (rows, [frozenset({y}) for y in range(k)])


def sets(k: int, w: int, epsilon: float) -> tuple[Mechanism, Law]:
    made = hs.SubsetSelection(k=k, w=w, epsilon=epsilon)
    reports = [frozenset(chosen) for chosen in combinations(range(k), w)]
    law, with_own = made.law(), sum(0 in report for report in reports)
    assert isinstance(law, Sets)
    own = law.own
    rows = [
        [own / with_own if x in report else (1 - own) / (len(reports) - with_own) for report in reports]
        for x in range(k)
    ]
    return made, (rows, reports)


def one_hot(k: int, epsilon: float) -> tuple[Mechanism, Law]:
    made = hs.UnaryEncoding(k=k, epsilon=epsilon, encoding="optimized")
    law, reports, rows = made.law(), list(product((0, 1), repeat=k)), []
    for x in range(k):
        chances = [[(law.own if y == x else law.raised) for y in range(k)] for _ in reports]
        row = [Fraction(1)] * len(reports)
        for place, report in enumerate(reports):
            for bit, chance in zip(report, chances[place], strict=True):
                row[place] *= chance if bit else 1 - chance
        rows.append(row)
    return made, (rows, [frozenset(y for y in range(k) if report[y]) for report in reports])


def hashing(k: int, g: int, epsilon: float) -> tuple[Mechanism, Law]:
    made = hs.LocalHashing(k=k, g=g, epsilon=epsilon)
    law, hashes = made.law().response, list(made.hashes.every())
    supports = [
        frozenset(x for x in range(k) if made.hashes.buckets(np.array([h]), np.array([x]))[0] == y)
        for h in hashes
        for y in range(g)
    ]
    rows = [[(law.truth if x in held else law.lie) / len(hashes) for held in supports] for x in range(k)]
    return made, (rows, supports)


CASES = [
    (response(2, 1.0), [0, 1, 1], 1),
    (response(3, 0.5), [0, 2], 2),
    (response(4, 3.0), [3], 1),
    (sets(4, 2, 1.0), [0, 1], 2),
    (sets(3, 2, 2.0), [2, 2, 2], 1),
    (one_hot(3, 1.0), [1, 1], 2),
    (hashing(4, 2, 1.0), [0, 1, 3], 1),
    (hashing(3, 3, 2.0), [0, 0], 1),
]


@pytest.mark.parametrize(("case", "honest", "fakes"), CASES)
def test_no_report_and_no_value_moves_a_share_further(
    case: tuple[Mechanism, Law], honest: list[int], fakes: int
) -> None:
    randomizer, law = case
    wanted = moves(*law, honest, fakes)
    protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=len(honest) + fakes)
    found = hs.poisoning_gain(protocol, fakes=fakes)
    assert found.raised.upper == pytest.approx(float(wanted.most), rel=1e-12)
    assert found.lowered.upper == pytest.approx(-float(wanted.least), rel=1e-12)
    assert found.honest.upper == pytest.approx(float(wanted.honest_most), rel=1e-12)
    assert wanted.honest_least == 0
    assert found.at_once >= wanted.together
    assert {found.raised.kind, found.lowered.kind, found.honest.kind} == {"exact"}
    assert found.raised.upper >= found.honest.upper


@pytest.mark.parametrize("dummies", [0, 3])
@pytest.mark.parametrize("case", [case for case, _, _ in CASES if not isinstance(case[0], hs.LocalHashing)])
def test_an_estimate_of_nothing_but_fakes_is_what_they_want(case: tuple[Mechanism, Law], dummies: int) -> None:
    """All n people send one report, whichever: the estimate is the gain of n fake users (dummies: as expected)."""
    randomizer, n = case[0], 5
    shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    protocol = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)
    found = hs.poisoning_gain(protocol, fakes=n)
    support = randomizer.law().support
    assert support is not None
    counted = [(n * (x in held)) + dummies * support.dummy for held in case[1][1] for x in range(randomizer.inputs)]
    shares = [(count / n - support.false - dummies * support.dummy / n) for count in counted]
    ends = np.array([min(shares), max(shares)]) / (support.true - support.false)
    assert ends == pytest.approx([-found.lowered.upper, found.raised.upper], rel=1e-12)
    if not dummies:
        estimates = [
            hs.estimate(np.array([report] * n), protocol=protocol).frequencies
            for report in randomizer.randomize(np.arange(200) % randomizer.inputs, rng=hs.reproducible(1)).tolist()
        ]
        assert np.max(estimates) == pytest.approx(found.raised.upper)
        assert np.min(estimates) == pytest.approx(-found.lowered.upper)


@pytest.mark.parametrize("seed", range(6))
def test_a_matrix_of_ones_own_is_moved_as_enumerated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, fakes = 2 + seed % 2, 1 + seed % 3
    table = rng.integers(1, 9, (k, k)) + 9 * np.eye(k, dtype=np.int64)
    rows = [[Fraction(int(entry), int(row.sum())) for entry in row] for row in table]
    honest = rng.integers(k, size=2).tolist()
    channel = hs.Channel(matrix=np.array(rows, dtype=np.float64))
    protocol = hs.Protocol(
        randomizer=hs.MatrixRandomizer(channel=channel), shuffler=hs.UniformShuffle(), n=len(honest) + fakes
    )
    least, most = moves_by_matrix(rows, honest, fakes)
    found = hs.poisoning_gain(protocol, fakes=fakes)
    assert (-found.lowered.upper, found.raised.upper) == pytest.approx((float(least), float(most)), rel=1e-9)
    assert found.honest.upper == pytest.approx(fakes / (len(honest) + fakes))
    assert 1 <= found.at_once <= k


def test_more_reports_than_values_are_read_by_least_squares() -> None:
    """All people send one report: the estimate is what it weighs."""
    channel = hs.Channel(matrix=[[0.5, 0.2, 0.1, 0.2], [0.1, 0.6, 0.1, 0.2], [0.1, 0.1, 0.6, 0.2]])
    protocol = hs.Protocol(randomizer=hs.MatrixRandomizer(channel=channel), shuffler=hs.UniformShuffle(), n=10)
    weighed = np.array([hs.estimate(np.full(10, report), protocol=protocol).frequencies for report in range(4)])
    found = hs.poisoning_gain(protocol, fakes=10)
    assert (weighed.min(), weighed.max()) == pytest.approx((-found.lowered.upper, found.raised.upper))
    assert found.at_once == int((weighed > weighed.max() - 1e-9).sum(axis=1).max())


def test_a_value_named_twice_in_a_report_counts_once() -> None:
    """Sent as a set of w equal values a report would pull w times as hard."""
    randomizer = hs.SubsetSelection(k=6, w=3, epsilon=1.0)
    forged = np.array([[2, 2, 2], [0, 1, 5], [4, 0, 4]])
    assert randomizer.counts(forged).counts.tolist() == [2, 1, 1, 0, 1, 1]
    flood = hs.TargetSampling(targets=6, sigma=0.5, flood=2)
    assert flood.counts(forged).counts.tolist() == [2, 1, 1, 0, 1, 1]


def test_a_hash_that_nobody_draws_speaks_for_nothing() -> None:
    """A factor 0 has no inverse: one such report counted P/g times for value 0."""
    randomizer = hs.LocalHashing(k=100, g=3, epsilon=1.0)
    assert randomizer.counts(np.array([[0, 5, 1], [0, 7, 2], [1, 0, 2]])).counts.sum() == 33
    assert randomizer.counts(np.array([[0, 5, bucket] for bucket in range(3)])).counts.sum() == 0
    assert not randomizer.supports(np.array([[0, 5, 2]]), np.arange(100)).any()


def test_more_reports_of_each_fake_user_pull_as_much_more() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=1.0), shuffler=hs.UniformShuffle(), n=1000)
    thrice = hs.poisoning_gain(protocol, fakes=10, reports_per_person=3)
    assert thrice.raised == hs.poisoning_gain(protocol, fakes=30).raised
    assert thrice.fakes == 10
    assert hs.poisoning_gain(protocol, fakes=0).raised.upper == 0


def test_numbers_that_cannot_be() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100)
    with pytest.raises(InvalidInputError, match="`fakes` must be at most the n = 100 of the collection, got fakes=101"):
        hs.poisoning_gain(protocol, fakes=101)
    with pytest.raises(InvalidInputError, match="got fakes=34 with 3 reports each"):
        hs.poisoning_gain(protocol, fakes=34, reports_per_person=3)
    with pytest.raises(InvalidInputError, match="`fakes` must be an integer >= 0"):
        hs.poisoning_gain(protocol, fakes=-1)
    with pytest.raises(InvalidInputError, match="`reports_per_person`"):
        hs.poisoning_gain(protocol, fakes=1, reports_per_person=0)
    opaque = hs.Protocol(randomizer=Opaque(), shuffler=hs.UniformShuffle(), n=10)
    with pytest.raises(UnsupportedProtocolError):
        hs.poisoning_gain(opaque, fakes=1)
    assert [usual_fakes(n) for n in (1, 99, 250)] == [1, 1, 2]


GRID = hs.NumberGrid(low=-2, high=6, levels=3)


@pytest.mark.parametrize("fakes", [0, 1, 2])
@pytest.mark.parametrize("dummies", [0, 1])
@pytest.mark.parametrize(
    "randomizer",
    [
        hs.RoundedResponse(levels=3, epsilon=1.2, low=-2, high=6),
        hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.25, 0.125, 0.125], [0.25] * 4, [0.0, 0.25, 0.25, 0.5]])),
    ],
    ids=["response", "matrix"],
)
def test_no_report_moves_the_mean_of_numbers_further(
    randomizer: hs.RoundedResponse | hs.MatrixRandomizer, dummies: int, fakes: int
) -> None:
    """All reports of fake users, beside two honest people of every level, whose coins are all tried."""
    rows = [[Fraction(entry) for entry in row] for row in randomizer.channel().matrix.tolist()]
    survey = hs.Protocol(randomizer=randomizer, shuffler=hs.Scrambler(dummies=dummies), n=2 + fakes)
    blanket, outputs = [Fraction(part) for part in randomizer.law().blanket().law.tolist()], len(rows[0])

    @lru_cache
    def estimated(reports: tuple[int, ...]) -> NumberEstimate:
        counts = hs.Histogram(counts=np.bincount(reports, minlength=outputs))
        return hs.estimate_numbers(counts, protocol=survey, grid=GRID)

    moved = []
    for held in product(range(3), repeat=2):
        truth, laws = float(GRID.points[list(held)].mean()), [*(rows[level] for level in held), *[blanket] * dummies]
        for sent in product(range(outputs), repeat=fakes):
            cases = outcomes(laws)
            mean = sum(float(weight) * estimated(tuple(sorted((*own, *sent)))).mean for own, weight in cases)
            moved.append(mean - truth)
    lowered, raised = estimated((0,) * (2 + fakes + dummies)).moved(fakes)
    assert (-lowered, raised) == pytest.approx((min(moved), max(moved)), abs=1e-9)
