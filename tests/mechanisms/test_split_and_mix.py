"""Sums by shares: every release enumerated, the noise as it is drawn, what is refused."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.polya_law import PolyaLaw
from hushuffle.numerics.random_pairing import colourings
from oracles import split_and_mix as oracle

SIZES = [(2, 3, 3), (2, 3, 4), (2, 4, 3), (3, 2, 3), (3, 3, 2), (2, 6, 4), (3, 4, 3)]


@pytest.mark.parametrize(("people", "messages", "modulus"), [(2, 3, 3), (2, 3, 4), (3, 2, 3), (3, 2, 2)])
def test_the_second_moment_is_that_of_two_pairings(people: int, messages: int, modulus: int) -> None:
    paired = list(oracle.pieces(people, messages))
    for values in product(range(modulus), repeat=people):
        release = oracle.release(values, messages=messages, modulus=modulus)
        uniform = oracle.ideal(sum(values), people=people, messages=messages, modulus=modulus)
        total = 0
        for found in paired:
            even = all((sum(values[i] for i in a) - sum(values[i] for i in b)) % modulus == 0 for a, b in found)
            total += modulus ** (len(found) - 1) * even
        exact = oracle.chi_square(release, uniform)
        assert exact == Fraction(total, len(paired)) - 1
        assert exact <= oracle.excess(people, messages, modulus)
        if len(set(values)) == 1:
            assert exact == oracle.excess(people, messages, modulus)


@pytest.mark.parametrize(("people", "messages", "modulus"), SIZES)
def test_releases_of_equal_sums_are_as_near_as_proved(people: int, messages: int, modulus: int) -> None:
    every = math.sqrt(oracle.excess(people, messages, modulus))
    near = colourings(people, messages, modulus, near=True) if messages > 2 and modulus > 2 else math.inf
    tau = math.sqrt(near * modulus / (2 * (modulus - 2))) if modulus > 2 else math.inf
    laws = {
        values: oracle.release(values, messages=messages, modulus=modulus)
        for values in product(range(modulus), repeat=people)
    }
    for first, second in product(laws, repeat=2):
        if first < second and (sum(first) - sum(second)) % modulus == 0:
            away = oracle.distance(laws[first], laws[second])
            changed = sum(a != b for a, b in zip(first, second, strict=True))
            assert 0 <= away <= min(every, changed * tau)


def folded(law: PolyaLaw, modulus: int) -> list[Fraction]:
    """The difference of two shares as they are drawn, modulo q."""
    one = [Fraction(0)] * modulus
    for number, part in enumerate(law.parts):
        one[number % modulus] += Fraction(part, 2**128)
    return [
        sum((one[(place + other) % modulus] * one[other] for other in range(modulus)), Fraction(0))
        for place in range(modulus)
    ]


def small(people: int, messages: int, modulus: int, *, top: int = 1, epsilon: float = 1.0) -> hs.SplitAndMix:
    """A protocol with a modulus that is too small to count, which changes nothing about its privacy."""
    made = hs.SplitAndMix(low=0, high=top, n=people, epsilon=epsilon, delta=0.9)
    tau = math.sqrt(colourings(people, messages, modulus, near=True) * modulus / (2 * (modulus - 2)))
    for name, value in {"messages": messages, "modulus": modulus, "slack": tau}.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize(
    ("people", "messages", "modulus", "top", "level"),
    [(2, 6, 4, 1, 1.0), (2, 6, 4, 1, 3.0), (2, 9, 3, 2, 2.0), (2, 7, 4, 2, 4.0), (3, 5, 3, 1, 2.0), (3, 5, 3, 1, 5.0)],
)
def test_the_whole_protocol_is_as_private_as_promised(
    people: int, messages: int, modulus: int, top: int, level: float
) -> None:
    made = small(people, messages, modulus, top=top, epsilon=level)
    noise = folded(made.noise, modulus)
    worst = dict.fromkeys((0.0, level / 4, level / 2, made.pure_part, 1.5 * level), 0.0)
    for others in product(range(top + 1), repeat=people - 1):
        first, second = (
            oracle.release([value, *others], messages=messages, modulus=modulus, noise=noise) for value in (0, top)
        )
        for epsilon in worst:
            growth = Fraction(math.exp(epsilon))
            ways = oracle.hockey_stick(first, second, growth), oracle.hockey_stick(second, first, growth)
            worst[epsilon] = max(worst[epsilon], *map(float, ways))
    for epsilon, exact in worst.items():
        bound = hs.dp.delta(made, epsilon=epsilon).upper
        assert exact <= bound
    assert hs.dp.delta(made, epsilon=level).upper < 0.2
    assert worst[made.pure_part] > 0 or level < 3  # the messages do say something more


def test_shares_add_up_to_a_geometric_number() -> None:
    law = PolyaLaw.of(shares=3, ratio=2**63)
    parts = np.array([part / 2**128 for part in law.parts])
    total = np.convolve(np.convolve(parts, parts), parts)[:40]
    assert total == pytest.approx(0.5 ** np.arange(1, 41), rel=1e-12)
    assert sum(law.parts) == 2**128
    assert law.variance * 3 == pytest.approx(2.0)


@pytest.mark.parametrize(("people", "steps"), [(2, 1), (2, 4), (3, 2), (3, 5), (5, 2)])
def test_shares_grow_by_drawing_few_people(people: int, steps: int) -> None:
    """The law given a larger sum, step by step; and how many people are drawn, on average over a geometric sum."""
    average = 0.0
    for total in range(5):
        law = oracle.drawn(people, oracle.urn(people, total), steps)
        after: dict[tuple[int, ...], Fraction] = {}
        for state, chance in law.items():
            after[state[:people]] = after.get(state[:people], Fraction(0)) + chance
        assert after == oracle.urn(people, total + steps)
        met = float(sum((chance * sum(state[people:]) for state, chance in law.items()), Fraction(0)))
        assert met <= min(people, steps, sum(1 / t for t in range(1, total + steps + 1)))
        changed = sum((chance * (1 + sum(state[people + 1 :])) for state, chance in law.items()), Fraction(0))
        average += 0.5 ** (total + 1) * float(changed)  # the first person's number changes anyway
    made = hs.SplitAndMix(low=0, high=steps, n=people, epsilon=steps * math.log(2), delta=0.9)
    assert made.noise.chance == pytest.approx(0.5)
    assert average <= made.changes


def test_the_smaller_part_of_the_noise_says_nothing_of_the_difference() -> None:
    """P(A = a, B = b) of two geometric numbers, by their difference and the smaller one."""
    joint = {(a, b): 0.3**2 * 0.7 ** (a + b) for a in range(60) for b in range(60)}
    by = np.zeros((5, 9))
    for (a, b), chance in joint.items():
        if min(a, b) < 5 and abs(a - b) < 5:
            by[min(a, b), a - b + 4] += chance
    rows = by / by.sum(axis=1, keepdims=True)
    assert np.allclose(rows, rows[0])


@pytest.mark.parametrize(("shares", "ratio"), [(1, 2**60), (2, 2**63), (7, 2**64 - 2**60), (1000, 2**64 - 2**58)])
def test_tables_are_as_near_to_the_law_as_they_say(shares: int, ratio: int) -> None:
    """Against logarithms of 60 digits: the distance is 2**-100, which no float shows."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        chance, share = mpmath.mpf(ratio) / 2**64, mpmath.mpf(1) / shares
        exact, away, left = (1 - chance) ** share, mpmath.mpf(0), mpmath.mpf(1)
        law = PolyaLaw.of(shares=shares, ratio=ratio)
        for number, part in enumerate(law.parts):
            away += abs(mpmath.mpf(part) / 2**128 - exact)
            left -= exact
            exact *= chance * (number + share) / (number + 1)
        assert 0 < (away + left) / 2 <= law.distance < 1e-30


def test_numbers_on_a_boundary_are_decided_by_a_second_word() -> None:
    law = PolyaLaw.of(shares=5, ratio=2**62)

    class Fixed(type(hs.reproducible(1))):  # type: ignore[misc]
        def __init__(self, first: list[int], second: list[int]) -> None:
            self.given = [first, second]

        def words(self, size: int, *, at: np.ndarray | None = None) -> np.ndarray:
            found = np.array(self.given.pop(0), dtype=np.uint64)
            assert found.size == (size if at is None else at.size)
            return found

    edge, low, last = int(law.high[3]), int(law.low[3]), 2**64 - 1
    drawn = law.draw(Fixed([edge, edge, 0, last, edge + 1, last], [low, low - 1, 0, 0, last]), 6)
    below = list(accumulate(law.parts, initial=0))
    asked = [(edge, low), (edge, low - 1), (0, 0), (last, 0), (edge + 1, 0), (last, last)]
    assert drawn.tolist() == [bisect_right(below, (high << 64) + rest) - 1 for high, rest in asked]
    assert drawn.tolist()[:3] == [3, 2, 0]
    assert drawn[-1] == law.high.size - 1


def test_shares_as_drawn_have_their_law() -> None:
    law = PolyaLaw.of(shares=2, ratio=3 * 2**62)
    drawn = law.draw(hs.reproducible(3), 200_000)
    seen = np.bincount(drawn, minlength=5)[:5]
    expected = 200_000 * np.array([part / 2**128 for part in law.parts[:5]])
    assert np.all(np.abs(seen - expected) < 5 * np.sqrt(expected))


def test_messages_are_uniform_and_add_up() -> None:
    made = hs.SplitAndMix(low=0, high=3, n=50, epsilon=40.0, delta=1e-6)
    codes = np.arange(50) % 4
    shares = made.shares(codes, rng=hs.reproducible(1))
    assert shares.shape == (made.messages, 50)
    assert np.array_equal(shares.sum(axis=0) % made.modulus, codes)  # noise is rarer than e**-13
    many = np.concatenate([made.shares(codes, rng=hs.reproducible(seed)).ravel() for seed in range(40)])
    cells = np.bincount(many * 8 // made.modulus, minlength=8)
    assert np.all(np.abs(cells - many.size / 8) < 5 * math.sqrt(many.size / 8))


def test_keyed_coins_repeat_a_device() -> None:
    made = hs.SplitAndMix(low=0, high=3, n=50, epsilon=1.0, delta=1e-6)
    codes, key = np.arange(50) % 4, bytes(32)
    whole = made.shares(codes, rng=hs.keyed(key=key, records=np.arange(50)))
    part = made.shares(codes[10:20], rng=hs.keyed(key=key, records=np.arange(10, 20)))
    assert np.array_equal(whole[:, 10:20], part)


def test_numbers_become_codes() -> None:
    whole = hs.SplitAndMix(low=-2, high=2, n=10, epsilon=1.0, delta=1e-3)
    assert whole.encode([-9, -2, 0, 2, 7], rng=hs.reproducible(1)).tolist() == [0, 0, 2, 4, 4]
    assert (whole.top, whole.step, whole.distance) == (4, 1.0, 4)
    for numbers in (np.array([0, 2**64 - 1], dtype=np.uint64), np.array([0, 200], dtype=np.uint8)):
        assert whole.encode(numbers, rng=hs.reproducible(1)).tolist() == [2, 4]
    rounded = hs.SplitAndMix(low=0, high=1, levels=3, n=10, epsilon=1.0, delta=1e-3)
    assert rounded.encode([0.0, 0.5, 1.0, 9.0], rng=hs.reproducible(1)).tolist() == [0, 1, 2, 2]
    rounded = replace(rounded, coordinates=5)
    assert (rounded.top, rounded.step, rounded.distance) == (2, 0.5, 10)
    with pytest.raises(InvalidInputError, match="where levels are asked for"):
        _ = whole.grid


def test_mixed_messages_stand_in_no_order() -> None:
    made = hs.SplitAndMix(low=0, high=3, n=500, epsilon=40.0, delta=1e-6)
    (messages,) = made.collect(np.zeros(500, dtype=np.int64), rng=hs.reproducible(1))
    for grouped in (messages.reshape(500, -1).sum(axis=1), messages.reshape(-1, 500).sum(axis=0)):
        assert np.count_nonzero(grouped % made.modulus == 0) < 10  # everybody's own messages add up to 0
    assert messages.sum() % made.modulus == 0


def test_what_is_promised_is_met() -> None:
    mpmath = pytest.importorskip("mpmath")
    for people, epsilon, delta, honest, coordinates in [
        (10, 1.0, 1e-6, 1.0, 1),
        (1000, 0.1, 1e-9, 0.7, 1),
        (10**6, 3.0, 1e-12, 0.5, 30),
        (10**9, 0.5, 1e-9, 1.0, 2),
    ]:
        made = hs.SplitAndMix(
            low=0, high=1, n=people, epsilon=epsilon, delta=delta, honest=honest, coordinates=coordinates
        )
        assert made.needed == math.ceil(people * honest)
        assert made.pure_part <= epsilon <= made.pure_part * (1 + 1e-9)
        assert made.failure <= delta
        near = colourings(made.needed, made.messages, made.modulus, near=True)
        assert made.slack == pytest.approx(math.sqrt(near / 2), rel=0.02)
        assert made.failure >= coordinates * made.changes * made.slack
        with mpmath.workdps(50):
            exact = made.distance * mpmath.log(mpmath.mpf(2) ** 64 / made.noise.ratio)
            assert exact <= epsilon
            assert exact <= made.pure_part
        assert hs.dp.epsilon(made, delta=delta).upper <= epsilon
        assert made.margin >= made.noise_reach(people)
        assert made.bits_per_person == made.messages_per_person * made.bits_per_message
        fewer = colourings(made.needed, made.messages - 1, made.modulus, near=True) if made.messages > 3 else math.inf
        assert coordinates * made.changes * math.sqrt(fewer / 2) > delta  # not one message more than needed


def test_the_promise_is_described() -> None:
    made = hs.SplitAndMix(low=0, high=1, levels=11, n=100, epsilon=1.0, delta=1e-6, honest=0.8, coordinates=3)
    assert made.describe() == (
        "100 people: each has 3 numbers from 0 to 1 (rounded to 11 levels), adds a share of discrete Laplace noise and "
        f"sends {made.messages_per_person} messages of {made.bits_per_message} bits, uniform except for their sum; a "
        "shuffler mixes all messages; 80 people must answer and be honest."
    )
    assert "a number from 0 to 1 (integers)" in hs.SplitAndMix(low=0, high=1, n=9, epsilon=1, delta=0.1).describe()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"n": 1}, "`n` must be an integer from 2"),
        ({"epsilon": 0}, "`epsilon` must be finite and > 0"),
        ({"epsilon": 1e-30}, "`epsilon` must be so large that noise is finite"),
        ({"epsilon": 5.2e-4}, "at most 1,048,576 different values"),
        ({"epsilon": 1e-6}, "at most 1,048,576 different values"),
        ({"epsilon": 41}, "`epsilon` must be at most 40"),
        ({"delta": 0}, "`delta` must be in (0, 1)"),
        ({"delta": 1e-300}, "64 messages per person are not enough"),
        ({"honest": 0}, "`honest` must be in (0, 1]"),
        ({"honest": 0.001}, "at least 2 people"),
        ({"low": 0.5}, "`low` must be an integer"),
        ({"high": 0}, "`high` must be above low = 0"),
        ({"low": math.nan, "levels": 3}, "`low` must be finite"),
        ({"levels": 1}, "`levels` must be an integer from 2"),
        ({"coordinates": 0}, "`coordinates` must be an integer from 1"),
        ({"n": 10**9, "high": 2**40, "epsilon": 40}, "at most 1,048,576 different values"),
    ],
)
def test_what_does_not_exist_is_refused(changed: dict[str, float], word: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        hs.SplitAndMix(**({"low": 0, "high": 10, "n": 1000, "epsilon": 1.0, "delta": 1e-6} | changed))  # type: ignore[arg-type]
    assert word in str(refused.value)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([1] * 7, "integer from 8 to 10"),
        ([1] * 11, "integer from 8 to 10"),
        ([0.25] * 9, "array of integers"),
        ([[1, 2]] * 9, "one-dimensional"),
        ([[1], [2, 3]], "an array of numbers"),
        (["x"] * 9, "array of integers"),
    ],
)
def test_people_who_are_too_few_or_have_no_numbers_are_refused(values: list[object], word: str) -> None:
    made = hs.SplitAndMix(low=0, high=3, n=10, epsilon=1.0, delta=1e-3, honest=0.8)
    with pytest.raises(InvalidInputError, match=word) as refused:
        made.collect(values)  # type: ignore[arg-type]
    assert "0.25" not in str(refused.value)


def test_several_coordinates_have_messages_of_their_own() -> None:
    made = hs.SplitAndMix(low=0, high=3, n=10, epsilon=40.0, delta=1e-3, coordinates=2)
    messages = made.collect([[1, 3]] * 10, rng=hs.reproducible(1))
    assert messages.shape == (2, 10 * made.messages)
    assert (messages.sum(axis=1) % made.modulus).tolist() == [10, 30]
    with pytest.raises(InvalidInputError, match=r"of shape \(people, 2\)"):
        made.collect([1] * 10)


def test_the_page_prints_what_it_costs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "estimation-benchmark.md").read_text(encoding="utf-8")
    for people in (100, 1_000, 10_000, 1_000_000):
        made = hs.SplitAndMix(low=0, high=1, levels=1001, n=people, epsilon=1.0, delta=1e-9)
        assert f"| {people:,} | {made.messages} | {round(made.bits_per_person / 8)} |" in page
    made = hs.SplitAndMix(low=0, high=1, levels=2501, n=10**6, epsilon=1.0, delta=1e-9)
    assert made.standard_error() == pytest.approx(1.01 * math.sqrt(2), rel=1e-3)
    mean = hs.SplitAndMix(low=0, high=1, levels=1001, n=10**5, epsilon=0.5, delta=1e-9).standard_error() / 10**5
    assert round(mean, 5) == 0.00003


@pytest.mark.parametrize(
    ("coordinates", "top", "l1"), [(2, 3, 2), (2, 3, 4), (3, 2, 3), (3, 2, 5), (4, 1, 2), (2, 3, 99)]
)
def test_the_sensitivity_under_a_cap_is_that_of_the_two_people_farthest_apart(
    coordinates: int, top: int, l1: int
) -> None:
    made = hs.SplitAndMix(low=5, high=5 + top, n=30, epsilon=1.0, delta=1e-2, coordinates=coordinates, l1=l1)
    allowed = [codes for codes in product(range(top + 1), repeat=coordinates) if sum(codes) <= l1]
    assert made.distance == max(
        sum(abs(a - b) for a, b in zip(one, other, strict=True)) for one in allowed for other in allowed
    )
    everybody = np.array(list(product(range(top + 1), repeat=coordinates)))
    clipped = made.encode(everybody + 5, rng=hs.reproducible(1))
    assert clipped.sum(axis=1).max() <= l1
    kept = everybody.sum(axis=1) <= l1
    assert np.array_equal(clipped[kept], everybody[kept])
    assert bool(np.all(clipped <= everybody))


def test_a_cap_makes_less_noise_and_cuts_long_vectors_on_the_device() -> None:
    free = hs.SplitAndMix(low=0, high=10, n=400, epsilon=1.0, delta=1e-6, coordinates=5)
    capped = replace(free, l1=12.0)
    assert (free.distance, capped.distance) == (50, 24)
    assert capped.standard_error() < 0.5 * free.standard_error()
    assert "(in total at most 12 above 0)" in capped.describe()
    assert capped.kind != free.kind
    values = np.tile([10, 10, 4, 0, 0], (400, 1))
    found = hs.estimate_sum(capped.collect(values, rng=hs.reproducible(1)), protocol=capped)
    assert np.abs(found.total - 400 * np.array([5, 5, 2, 0, 0])).max() < 6 * found.standard_error
    with pytest.raises(InvalidInputError, match="`l1` must be left out for one coordinate"):
        hs.SplitAndMix(low=0, high=10, n=400, epsilon=1.0, delta=1e-6, l1=5)
    with pytest.raises(InvalidInputError, match="at least one step"):
        replace(free, l1=0.5)


@pytest.mark.parametrize(
    ("levels", "coordinates", "l1", "each"), [(2, 10, 1.0, 0.1), (11, 20, 0.5, 0.025), (11, 4, 1.0, 0.25)]
)
def test_people_within_the_cap_are_counted_without_bias(levels: int, coordinates: int, l1: float, each: float) -> None:
    survey = hs.SplitAndMix(
        low=0, high=1, levels=levels, n=2000, epsilon=5.0, delta=1e-6, coordinates=coordinates, l1=l1
    )
    rng = hs.reproducible(3)
    covered = 0
    for _ in range(20):
        total = hs.estimate_sum(survey.collect(np.full((2000, coordinates), each), rng=rng), protocol=survey)
        low, high = total.interval(0.95).T
        covered += int(np.count_nonzero((low <= 2000 * each) & (2000 * each <= high)))
    assert covered >= 0.9 * 20 * coordinates


def test_rounding_under_a_cap_by_enumeration_of_its_randomness() -> None:
    """Every draw of 2**16: codes are unbiased, beside their numbers, and never above the cap together."""
    survey = hs.SplitAndMix(low=0, high=3, levels=4, n=30, epsilon=1.0, delta=1e-2, coordinates=3, l1=4.5)
    assert survey.cap == 5

    class Every:
        def integers(self, high: int, size: int) -> npt.NDArray[np.int64]:
            assert high == size == 1 << 16
            return np.arange(size)

    for numbers in ([0.25, 1.5, 2.75], [1.0, 1.0, 2.5], [3.0, 3.0, 3.0], [0.0, 0.0, 0.0]):
        codes = survey.encode(np.tile(numbers, (1 << 16, 1)), rng=Every())  # type: ignore[arg-type]
        shares = np.array(numbers) * min(1.0, 5 / max(sum(numbers), 1))
        assert codes.mean(axis=0) == pytest.approx(shares, abs=2**-15)
        assert bool(np.all((codes == np.floor(shares)) | (codes == np.ceil(shares))))
        assert codes.sum(axis=1).max() <= 5
