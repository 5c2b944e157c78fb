"""Every figure that is printed for a release of several features at once holds the truth by enumeration.

Views of columns are not drawn here: they count one column in several releases, and no `Release` describes that.
`tests/questions/bloom/test_views.py` draws them, with an oracle of their own.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import permutations

import numpy as np
import pytest

import hushuffle as hs
from drawn_releases import binomial, draw, figures, response, too_much, unary, wrong
from hushuffle.curves.laws import slices
from hushuffle.curves.laws.kinds import Others
from hushuffle.curves.laws.pooled import MOST, Pooled
from hushuffle.errors import HushuffleError
from oracles import (
    dp_composition,
    dummy_mixture,
    mallows_enumeration,
    memoised_enumeration,
    mixed_enumeration,
    person_enumeration,
    secure_sums,
    several_messages,
)
from oracles import releases as twin

GROWTH = Fraction(5, 4)
ROWS = [[Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], [Fraction(1, 8), Fraction(5, 8), Fraction(1, 4)]]
DEVICE = tuple(twin.law({twin.report(y): chance for y, chance in enumerate(row)}) for row in ROWS)


def truth(release: twin.Release, *, target: int = 0, reports: int = 1, helpers: int = 0) -> Fraction:
    each = twin.Round(release, target, reports, helpers)
    return twin.Twin(twin.Question(((each,),))).delta(GROWTH)[0]


# --- the twin is right: other enumerations, written for one feature each, agree -----------------------------------


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_several_reports_of_a_person(reports: int) -> None:
    found = truth(twin.Release((twin.Group(4, DEVICE),)), reports=reports)
    assert found == person_enumeration.worst_delta(ROWS, 4, reports, GROWTH)


def test_groups_with_different_devices_and_a_fixed_number_of_dummies() -> None:
    other = [[Fraction(1, 2), Fraction(3, 8), Fraction(1, 8)], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]]
    devices = DEVICE, tuple(twin.law({twin.report(y): chance for y, chance in enumerate(row)}) for row in other)
    dummy = [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    source = twin.Source(twin.law({2: 1}), twin.law({twin.report(y): chance for y, chance in enumerate(dummy)}))
    release = twin.Release((twin.Group(2, devices[0]), twin.Group(2, devices[1])), (source,))
    for target in range(2):
        expected = mixed_enumeration.worst_delta([(2, ROWS), (2, other)], target, GROWTH, [dummy] * 2)
        assert float(truth(release, target=target)) == pytest.approx(expected, rel=1e-14)


def test_a_random_number_of_dummies() -> None:
    numbers = {0: Fraction(1, 4), 2: Fraction(3, 4)}
    shared = [Fraction(1, 8), Fraction(1, 4), Fraction(1, 4)]
    dummy = twin.law({twin.report(y): chance / sum(shared) for y, chance in enumerate(shared)})
    release = twin.Release((twin.Group(3, DEVICE),), (twin.Source(twin.law(numbers), dummy),))
    assert truth(release) == dummy_mixture.worst_delta(ROWS, 3, GROWTH, numbers)


def test_sums_of_bits_with_noise_of_servers() -> None:
    device = unary(3, Fraction(2), "optimized")
    release = twin.Release(
        (twin.Group(3, device.laws(summed=True)),),
        (twin.Source(binomial(2, Fraction(1, 2)), each=tuple(map(twin.report, range(3)))),),
    )
    bits = {vector: Fraction(1, 8) for vector in itertools.product((0, 1), repeat=3)}
    assert truth(release) == secure_sums.worst_delta(3, 3, Fraction(1, 2), Fraction(1, 5), GROWTH, [bits] * 2)


@pytest.mark.parametrize("kind", ["uniform", "fakes"])
def test_messages_of_people_thinning_and_dummies_of_each_value(kind: str) -> None:
    k, p, keep = 2, Fraction(1, 4), Fraction(3, 4)
    symbols = tuple(map(twin.report, range(k)))
    uniform = twin.law({symbol: Fraction(1, k) for symbol in symbols})
    own = twin.Source(binomial(2, p), uniform) if kind == "uniform" else twin.Source(binomial(1, p), each=symbols)
    extra = several_messages.uniform_messages(k, p, 2) if kind == "uniform" else several_messages.fakes(k, p)
    dummies = twin.Source(binomial(1, Fraction(1, 2)), each=symbols)
    group = twin.Group(3, response(k, Fraction(3)).laws(summed=False), (own,))
    _, expected = several_messages.worst(
        3,
        k,
        GROWTH,
        messages=lambda value: several_messages.person(value, k, extra=extra, theta=Fraction(1, 2), kept=keep),
        besides=several_messages.fakes(k, Fraction(1, 2)),
    )
    assert truth(twin.Release((group,), (dummies,), keep)) == expected


def test_slices_are_above_the_truth_in_two_hundred_releases() -> None:
    """Random channels, n <= 5; slices that take all they may, or half of it."""
    rng = np.random.default_rng(16)
    better = 0
    for _ in range(200):
        k, outputs, n = (int(rng.integers(low, high)) for low, high in ((2, 4), (2, 4), (3, 6)))
        weights = rng.integers(5, 30, size=(k, outputs))
        if rng.random() < 0.2:  # a report that a value never gives
            weights[0, -1] = 0
        rows = [[Fraction(int(each), int(row.sum())) for each in row] for row in weights]
        growth = Fraction(int(rng.integers(10, 14)), 10)
        device = tuple(twin.law({twin.report(y): chance for y, chance in enumerate(row)}) for row in rows)
        each = twin.Round(twin.Release((twin.Group(n, device),)))
        true = twin.Twin(twin.Question(((each,),))).delta(growth)[0]
        matrix = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[float(chance) for chance in row] for row in rows]))
        pool = Pooled.of(matrix.law().pairs(), Others.alike(n - 1), 0)
        goal = MOST * pool.laws[0].weight / int(rng.integers(1, 3))
        level = max(math.exp(6 - goal * (n - 1)), (1 - goal) ** (n - 1))
        places = tuple((0, j) for j in range(len(pool.laws[0].pairs)))
        alone = max(
            sum(max(p - growth * q, Fraction(0)) for p, q in zip(*pair, strict=True)) for pair in permutations(rows, 2)
        )
        upper = slices.upper(pool, places, math.log(growth), level)
        assert float(true) <= upper + 1e-13
        better += upper < 0.95 * float(alone)
    assert better > 55


def test_what_helpers_tell_is_subtracted() -> None:
    """One of three people tells the adversary the report and the messages beside it: told literally, and left out."""
    symbols = tuple(map(twin.report, range(2)))
    group = twin.Group(
        3, response(2, Fraction(3)).laws(summed=False), (twin.Source(binomial(1, Fraction(1, 4)), each=symbols),)
    )
    release = twin.Release((group,))
    worst = Fraction(0)
    for silent, helper in itertools.product(range(2), repeat=2):
        laws = []
        for own in range(2):
            parts: dict[object, int] = {}
            rest = twin.together([release.person(0, own), release.person(0, silent)])
            told = release.person(0, helper)
            for (seen, p), (said, q) in itertools.product(rest.parts.items(), told.parts.items()):
                parts[seen + said, said] = parts.get((seen + said, said), 0) + p * q
            laws.append(twin.Law(parts, rest.total * told.total))
        worst = max(worst, *(twin.Pair(p, q, None, None).hockey_stick(GROWTH) for p, q in itertools.permutations(laws)))
    assert truth(release, helpers=1) == worst


@pytest.mark.parametrize("instantaneous", [False, True])
def test_waves_of_memoized_reports_with_a_change(instantaneous: bool) -> None:
    rows = [[0.75, 0.25], [0.375, 0.625]]
    second = [[0.625, 0.375], [0.25, 0.75]] if instantaneous else [[1.0, 0.0], [0.0, 1.0]]
    laws = [
        tuple(twin.law({twin.report(y): Fraction(p) for y, p in enumerate(row)}) for row in each)
        for each in (rows, second)
    ]
    coin = tuple(enumerate_reports(laws[1])) if instantaneous else None
    each = twin.Round(twin.Release((twin.Group(2, laws[0]),)))
    found, _ = twin.Twin(twin.Question(((each,),), twin.Memory(3, coin, 1))).delta(GROWTH)
    expected = 0.0
    for other, cut in itertools.product(range(2), range(4)):
        both = [
            memoised_enumeration.law([[a] * cut + [1 - a] * (3 - cut), [other] * 3], rows, second, by_value=True)
            for a in range(2)
        ]
        expected = max(
            expected, *(memoised_enumeration.divergence(p, q, float(GROWTH)) for p, q in itertools.permutations(both))
        )
    assert float(found) == pytest.approx(expected, rel=1e-12)


def enumerate_reports(laws: tuple[twin.Law, ...]) -> Iterator[tuple[int, twin.Law]]:
    return ((twin.report(y), law) for y, law in enumerate(laws))


def test_rounds_are_against_the_best_adaptive_adversary() -> None:
    release = twin.Release((twin.Group(2, response(2, Fraction(3)).laws(summed=False)),))
    rounds = [dp_composition.round_pairs(2, 2, Fraction(3, 4))] * 2
    found, _ = twin.Twin(twin.Question(((twin.Round(release),) * 2,))).delta(GROWTH)
    assert found == dp_composition.worst_adaptive(rounds, GROWTH)


@pytest.mark.parametrize("distance", ["kendall", "hamming"])
def test_orders_follow_the_law_of_mallows(distance: str) -> None:
    found = twin.orders(4, Fraction(1, 2), distance)
    for tau, chance in mallows_enumeration.law(4, math.log(2), distance).items():
        assert found.parts[tau] / found.total == pytest.approx(chance, rel=1e-12)


def test_dummies_under_a_cap_come_one_after_the_other() -> None:
    """Both reports at 0 fill it: dummies go to 1. After one at each, the second dummy goes where the first did not."""
    view = twin.Capped(2, 2, 2)
    release = twin.Release((twin.Group(2, response(2, Fraction(3)).laws(summed=False)),), view=view)
    assert all(set(pair.first.parts) == {2 * twin.report(0) + 2 * twin.report(1)} for pair in twin.pairs(release, 0))
    release = twin.Release((twin.Group(2, response(2, None).laws(summed=False)),), view=twin.Capped(2, 1, 2))
    (pair,) = [pair for pair in twin.pairs(release, 0) if pair.target == ((0,), (1,)) and pair.others == ((0,),)]
    assert dict(pair.first.parts) == {2 + twin.report(1): 1}
    assert {sums: Fraction(part, pair.second.total) for sums, part in pair.second.parts.items()} == {
        2 + twin.report(1): Fraction(1, 2),
        1 + 2 * twin.report(1): Fraction(1, 2),
    }


# --- figures are inside ---------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What came of the descriptions that were looked at."""

    descriptions: int = 0
    ends: int = 0
    drawn: Counter[tuple[str, str]] = field(default_factory=Counter)
    answered: set[tuple[str, str]] = field(default_factory=set)
    left: set[tuple[str, str]] = field(default_factory=set)
    """Pairs that the product has answered and the twin has not."""
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def take(self, seed: int, *, tries: int | None = None, patient: bool = False) -> None:
        """Ask all figures of a description.

        With `tries` only if it has a pair of features that was answered in none so far, and drawn less often.
        `patient`: also figures that take seconds.
        """
        try:
            drawn = draw(seed)
        except HushuffleError as refusal:
            self.refused[reason(refusal)] += 1
            return
        pairs = list(itertools.combinations(sorted(drawn.features), 2))
        if tries and all(pair in self.answered or self.drawn[pair] >= tries for pair in pairs):
            return
        self.drawn.update(pairs)
        self.descriptions += 1
        for name, ask in figures(drawn, patient=patient):
            try:
                printed = ask()
            except HushuffleError as refusal:
                self.refused[reason(refusal)] += 1
                continue
            if too_much(drawn):
                self.refused["the twin would take too long"] += 1
                self.left.update(pairs)
                continue
            self.answered.update(pairs)
            self.ends += 2 * len(printed)
            for figure in printed:
                said = wrong(figure, drawn.truth)
                self.wrong += [
                    f"seed {seed}, {name} ({figure.name} at {figure.at!r}): {words}: {drawn}" for words in said
                ]


def reason(refusal: HushuffleError) -> str:
    return f"{type(refusal).__name__}: {str(refusal)[:60]}"


@cache
def sample() -> Tally:
    tally = Tally()
    for seed in range(2_500):
        tally.take(seed, tries=1)
    return tally


def test_no_figure_of_releases_with_several_features_is_on_the_wrong_side_of_the_truth() -> None:
    assert sample().wrong == []
    assert sample().ends > 200


def test_hundreds_of_pairs_of_features_were_drawn_together_and_most_were_answered() -> None:
    drawn = {frozenset(pair) for pair in sample().drawn}
    assert len(drawn) > 300
    assert len(sample().answered) > 200


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_a_hundred_thousand_descriptions(block: int) -> None:
    tally = Tally()
    for seed in range(10_000 + 1_000 * block, 11_000 + 1_000 * block):
        tally.take(seed)
    assert tally.wrong == []


@pytest.mark.slow
def test_every_pair_of_features_is_answered_or_refused() -> None:
    """What two features come to together is compared, or the product refuses it in all of the tries."""
    tally = Tally()
    for seed in range(200_000, 260_000):
        tally.take(seed, tries=5, patient=True)
    assert tally.wrong == []
    assert tally.left <= tally.answered
    assert len(tally.drawn) > 450
