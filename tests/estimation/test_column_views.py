from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.estimation.column_views import assumed_reach, consistent, people, planned_people
from hushuffle.estimation.contacts import frequencies, planned_frequencies
from hushuffle.estimation.reach import Reach

COLUMNS, RUNS = 20_000, 150
LAW = hs.DummyLaw.discrete_gaussian(center=500, sigma=50.0)
NONE = hs.DummyLaw.of({0: 1.0})
GROUPS = np.array([0, 2500, 1500, 700, 1200, 400, 900, 600])
"""People by exact set of audiences of three publishers."""

PATTERNS = hs.ColumnView(publishers=(0, 1, 2), shows="patterns", each=LAW)
UNIONS = tuple(
    hs.ColumnView(publishers=chosen, each=LAW) for size in (1, 2, 3) for chosen in combinations((2, 0, 1), size)
)
PAIR = hs.ColumnView(publishers=(2, 0), shows="patterns", each=LAW)
PAIRS = hs.ColumnView(
    publishers=(1, 2, 0), shows="pairs", each=LAW, single=hs.DummyLaw.discrete_gaussian(center=200, sigma=20.0)
)
CONTACTS = hs.ColumnView(publishers=(0, 1, 2), shows="contacts", most=3, each=LAW)


def design(*views: hs.ColumnView, hashes: int = 1) -> hs.ColumnViews:
    return hs.ColumnViews(publishers=3, columns=COLUMNS, views=views, hashes=hashes)


def simulated(made: hs.ColumnViews, rng: np.random.Generator, seed: int) -> hs.ColumnCounts:
    patterns = np.zeros(COLUMNS, dtype=np.int64)
    held = np.repeat(np.arange(8), GROUPS * made.hashes)
    np.bitwise_or.at(patterns, rng.integers(COLUMNS, size=held.size), held)
    return made.release(patterns, rng=hs.reproducible(seed))


@cache
def released(views: tuple[hs.ColumnView, ...]) -> list[Any]:
    made, rng = design(*views), np.random.default_rng(1)
    return [simulated(made, rng, seed) for seed in range(RUNS)]


def union(publishers: tuple[int, ...]) -> float:
    mask = sum(1 << each for each in publishers)
    return float(GROUPS[np.arange(8) & mask != 0].sum())


QUESTIONS: list[tuple[Any, tuple[int, ...] | None, int]] = [
    ("reach", None, 7800),
    ("reach", (0,), 4200),
    ("reach", (2, 0), 6300),
    ("overlap", (0, 2), 1000),
    ("overlap", None, 600),
    ("exclusive", (1,), 1500),
    ("exclusive", (0, 2), 400),
    (lambda a, b, c: a & (b | ~c), None, 3800),
    (lambda a, b: a ^ b, (1, 2), 1500 + 700 + 1200 + 400),
]


@pytest.mark.parametrize(("question", "publishers", "truth"), QUESTIONS)
@pytest.mark.parametrize(
    "views",
    [(PATTERNS,), UNIONS, (UNIONS[-1], PAIRS), (*UNIONS, PATTERNS, PAIR)],
    ids=["patterns", "unions", "pairs", "all"],
)
def test_estimates_are_centred_and_their_errors_as_predicted(
    views: tuple[hs.ColumnView, ...], question: Any, publishers: tuple[int, ...] | None, truth: int
) -> None:
    planned = planned_people(design(*views), question, reach=union, publishers=publishers)
    answers = [people(release, question, publishers=publishers) for release in released(views)]
    errors = np.array([answer.estimate - truth for answer in answers])
    assert planned.estimate == pytest.approx(truth)
    assert abs(errors.mean()) <= 4.5 * planned.standard_error / np.sqrt(RUNS)
    assert np.sqrt((errors**2).mean()) == pytest.approx(planned.standard_error, rel=0.2)
    assert np.median([answer.standard_error for answer in answers]) == pytest.approx(planned.standard_error, rel=0.1)


def test_two_hash_functions_are_counted_once() -> None:
    made, rng = design(PATTERNS, hashes=2), np.random.default_rng(2)
    planned = planned_people(made, reach=union)
    errors = np.array([people(simulated(made, rng, seed)).estimate - 7800 for seed in range(100)])
    assert abs(errors.mean()) <= 4.5 * planned.standard_error / 10
    assert np.sqrt((errors**2).mean()) == pytest.approx(planned.standard_error, rel=0.3)


def test_the_union_of_a_contacts_view() -> None:
    made, rng = design(CONTACTS), np.random.default_rng(3)
    seen = people(simulated(made, rng, 1))
    assert seen.estimate == pytest.approx(7800, abs=5 * seen.standard_error)


def test_frequencies_undo_collisions() -> None:
    contacts = hs.ColumnView(publishers=(0, 1), shows="contacts", most=4, each=LAW)
    made = hs.ColumnViews(publishers=2, columns=COLUMNS, views=(contacts,))
    truth, rng = np.array([3000, 2000, 1000, 1500]), np.random.default_rng(4)
    held = np.repeat([[1, 0], [1, 1], [0, 3], [5, 1]], truth, axis=0)
    planned, errors = planned_frequencies(made, truth.tolist()), []
    for seed in range(RUNS):
        columns = np.zeros((COLUMNS, 2), dtype=np.int64)
        np.add.at(columns, rng.integers(COLUMNS, size=len(held)), held)
        errors.append(frequencies(made.release(columns, rng=hs.reproducible(seed))).estimates - truth)
    assert planned.estimates == pytest.approx(truth)
    assert np.all(np.abs(np.mean(errors, axis=0)) <= 4.5 * planned.standard_errors / np.sqrt(RUNS))
    assert np.sqrt(np.mean(np.square(errors), axis=0)) == pytest.approx(planned.standard_errors, rel=0.2)


def test_a_publisher_among_twenty_and_what_no_view_shows() -> None:
    everyone = hs.ColumnView(publishers=tuple(range(20)), each=LAW)
    wide = hs.ColumnView(publishers=tuple(range(20)), shows="patterns", each=NONE)
    single = hs.ColumnView(publishers=(3,), each=LAW)
    made = hs.ColumnViews(publishers=20, columns=COLUMNS, views=(everyone, single))
    columns = np.zeros(COLUMNS, dtype=np.int64)
    columns[:4000] = 1 << 3
    columns[2000:6000] |= 1 << 17
    seen = made.release(columns, rng=hs.reproducible(1))
    assert people(seen).estimate == pytest.approx(-COLUMNS * np.log(0.7), rel=0.05)
    assert people(seen, publishers=[3]).estimate == pytest.approx(-COLUMNS * np.log(0.8), rel=0.05)
    with pytest.raises(UnsupportedProtocolError, match=r"union of the publishers \[17\]"):
        people(seen, publishers=[17])
    with pytest.raises(UnsupportedProtocolError, match="at most 10"):
        people(seen, "overlap")
    with pytest.raises(UnsupportedProtocolError, match="contacts"):
        frequencies(seen)
    exact = hs.ColumnViews(publishers=20, columns=COLUMNS, views=(wide,)).release(columns)
    assert people(exact).estimate == pytest.approx(-COLUMNS * np.log(0.7))
    assert people(exact, publishers=[17]).estimate == pytest.approx(-COLUMNS * np.log(0.8))


@pytest.mark.parametrize("seed", range(20))
def test_consistent_unions_keep_the_largest_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sets = [tuple(chosen) for size in (1, 2, 3) for chosen in combinations(range(3), size)]
    truth = np.array([union(chosen) for chosen in sets])
    noisy = truth + rng.normal(0, 3000, len(sets))
    answers = [
        Reach(estimate=float(value), standard_error=3000.0, question="reach", publishers=chosen)
        for value, chosen in zip(noisy, sets, strict=True)
    ]
    fitted = consistent(answers)
    for first in fitted:
        for second in fitted:
            assert not set(first.publishers) <= set(second.publishers) or first.estimate <= second.estimate
    error = np.abs([answer.estimate for answer in fitted] - truth).max()
    assert error <= np.abs(np.maximum(noisy, 0) - truth).max() + 1e-9
    assert [answer.estimate for answer in consistent(fitted)] == pytest.approx([a.estimate for a in fitted])


def test_assumed_audiences_agree_with_those_of_a_specification() -> None:
    from hushuffle.specification.reach import assumed_people  # noqa: PLC0415 - a higher room, for comparison only

    counts, reach = assumed_people(100_000, [30_000, 20_000, 5_000]), assumed_reach(100_000, [30_000, 20_000, 5_000])
    for mask in range(1, 8):
        chosen = tuple(place for place in range(3) if mask >> place & 1)
        assert reach(chosen) == pytest.approx(counts[np.arange(8) & mask != 0].sum(), abs=4)


def _no_condition(*_: Any) -> Any:
    return 3


_NO_QUESTION: Any = "some"


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda seen: people(seen, lambda *audiences: ~audiences[0]), InvalidInputError, "in no audience"),
        (lambda seen: people(seen, _no_condition), InvalidInputError, "Boolean"),
        (lambda seen: people(seen, _NO_QUESTION), InvalidInputError, "reach, overlap, exclusive"),
        (lambda seen: people(seen, publishers=[]), InvalidInputError, "one or more"),
        (lambda seen: people(seen, publishers=[3]), InvalidInputError, "publishers"),
    ],
)
def test_refused_questions(ask: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    seen = design(PATTERNS).release(np.zeros(COLUMNS, dtype=np.int64))
    with pytest.raises(error, match=words):
        ask(seen)


def test_full_columns_are_refused() -> None:
    full: npt.NDArray[np.int64] = np.full(COLUMNS, 7)
    with pytest.raises(NumericalError, match="too few for linear counting"):
        people(design(PATTERNS).release(full))
    with pytest.raises(NumericalError, match="have no contact"):
        frequencies(design(CONTACTS).release(full))
    with pytest.raises(InvalidInputError, match="1 to 3 contacts"):
        planned_frequencies(design(CONTACTS), [1.0])
    with pytest.raises(InvalidInputError, match="reach"):
        consistent([Reach(estimate=1.0, standard_error=1.0, question="overlap", publishers=(0,))])


def test_noise_of_its_own_for_empty_columns() -> None:
    """The known number of columns corrects each count in proportion to its variance."""
    each, empty = (hs.DummyLaw.discrete_gaussian(center=200, sigma=sigma) for sigma in (30.0, 5.0))
    view = hs.ColumnView(publishers=(0, 1), shows="patterns", each=each, empty=empty)
    design = hs.ColumnViews(publishers=2, columns=10_000, views=(view,))
    assert design.dummies == pytest.approx(800)
    columns = np.repeat([0, 1, 2, 3], [6000, 2000, 1500, 500])
    rng, runs = hs.reproducible(3), 600
    seen = [design.release(columns, rng=rng) for _ in range(runs)]
    variances = [25.0, 900.0, 900.0, 900.0]
    for who, cells in (((0, 1), [0]), ((0,), [0, 2])):
        empties = []
        for counts in seen:
            numbers = [int(count) - 200 for count in counts.counts[0]]
            excess = sum(numbers) - 10_000
            empties.append(sum(numbers[cell] - variances[cell] / sum(variances) * excess for cell in cells))
        estimates = [people(counts, publishers=who).estimate for counts in seen]
        assert estimates == pytest.approx([-10_000 * math.log(empty / 10_000) for empty in empties], rel=1e-6)
        part = sum(variances[cell] for cell in cells)
        noise = part - part**2 / sum(variances)
        assert np.std(empties) == pytest.approx(math.sqrt(noise), rel=0.12)
        exact = dataclasses.replace(view, each=hs.DummyLaw.of({0: 1.0}), empty=None)
        plain = dataclasses.replace(design, views=(exact,))
        true = {(0, 1): 6000, (0,): 7500}[who]

        def reach(_: tuple[int, ...], true: int = true) -> float:
            return -10_000 * math.log(true / 10_000)

        errors = [planned_people(made, reach=reach, publishers=who).standard_error ** 2 for made in (design, plain)]
        assert errors[0] - errors[1] == pytest.approx(noise * (10_000 / true) ** 2, rel=0.01)
    with pytest.raises(InvalidInputError, match="`empty`"):
        hs.ColumnView(publishers=(0, 1), each=each, empty=empty)
