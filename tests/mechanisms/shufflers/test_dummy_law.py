from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import dummy_law
from hushuffle.mechanisms.shufflers.dummy_law import SCALE

LAWS = {
    "binomial": hs.DummyLaw.binomial(trials=40, p=0.3),
    "geometric": hs.DummyLaw.geometric(mean=2.5),
    "laplace": hs.DummyLaw.discrete_laplace(center=6, scale=2.0),
    "gaussian": hs.DummyLaw.discrete_gaussian(center=9, sigma=1.5),
    "own": hs.DummyLaw.of({0: 0.25, 7: 0.5, 30: 0.25}),
}
every = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


def exact(name: str) -> dict[int, Fraction]:
    """The law as it is written down, in rationals."""
    if name == "binomial":
        p = Fraction(0.3)
        return {d: math.comb(40, d) * p**d * (1 - p) ** (40 - d) for d in range(41)}
    if name == "geometric":
        return {d: Fraction(2, 7) * Fraction(5, 7) ** d for d in range(150)}
    if name == "laplace":
        weights = {d: Fraction(math.exp(-abs(d - 6) / 2.0)) for d in range(13)}
        return {d: weight / sum(weights.values()) for d, weight in weights.items()}
    if name == "gaussian":
        weights = {d: Fraction(math.exp(-((d - 9) ** 2) / 4.5)) for d in range(19)}
        return {d: weight / sum(weights.values()) for d, weight in weights.items()}
    return {0: Fraction(1, 4), 7: Fraction(1, 2), 30: Fraction(1, 4)}


@pytest.mark.parametrize("name", LAWS)
def test_the_implemented_law_is_the_one_written_down_up_to_parts(name: str) -> None:
    law, wanted = LAWS[name], exact(name)
    parts = dict(zip(law.numbers.tolist(), law.parts, strict=True))
    assert sum(law.parts) == SCALE
    # Cumulative probabilities are rounded down, so that each is off by less than a part; e**x is a float here.
    slack = 3 if name not in ("laplace", "gaussian") else SCALE * 2.0**-50
    assert all(abs(parts.get(d, 0) - chance * SCALE) < slack for d, chance in wanted.items())
    assert set(parts) <= set(wanted)
    assert law.mean == pytest.approx(float(sum(d * chance for d, chance in wanted.items())), rel=1e-12)


@every
def test_what_is_drawn_follows_the_published_law(law: hs.DummyLaw) -> None:
    rng, runs = hs.reproducible(11), 20_000
    drawn = np.array([law.draw(rng) for _ in range(runs)])
    expected = law.probabilities * runs
    seen = np.array([(drawn == number).sum() for number in law.numbers])
    many = expected >= 10
    statistic = float(((seen - expected)[many] ** 2 / expected[many]).sum())
    statistic += (
        (seen[~many].sum() - expected[~many].sum()) ** 2 / max(expected[~many].sum(), 1e-9) * bool((~many).any())
    )
    assert set(drawn) <= set(law.numbers.tolist())
    assert statistic < stats.chi2.isf(1e-6, max(int(many.sum()), 1))


class Words:
    """Coins that are one given word."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, size: int) -> np.ndarray:
        return np.full(size, self.word, dtype=np.uint64)


@every
def test_each_number_has_its_words_and_no_other(law: hs.DummyLaw) -> None:
    start = 0
    for number, part in zip(law.numbers.tolist(), law.parts, strict=True):
        for word in (start, start + part - 1):
            assert law.draw(Words(word)) == number  # type: ignore[arg-type]
        start += part


@every
def test_middle_and_cumulative_probabilities(law: hs.DummyLaw) -> None:
    sums = np.cumsum(law.probabilities)
    assert law.up_to(law.numbers.tolist()).tolist() == pytest.approx(sums.tolist(), rel=1e-12)
    place = law.numbers.tolist().index(law.middle)
    assert sums[place] >= 0.5 - 1e-12
    assert place == 0 or sums[place - 1] <= 0.5 + 1e-12
    assert law.middle in law
    assert -1 not in law


def test_equal_laws_are_equal_and_others_are_not() -> None:
    assert hs.DummyLaw.binomial(trials=40, p=0.3) == LAWS["binomial"]
    assert hash(hs.DummyLaw.binomial(trials=40, p=0.3)) == hash(LAWS["binomial"])
    assert hs.DummyLaw.binomial(trials=41, p=0.3) != LAWS["binomial"]
    long = [hs.DummyLaw.of({d: (1 + (d == odd)) / 21 for d in range(20)}) for odd in (3, 15)]
    assert long[0] != long[1]
    assert repr(long[0]) != repr(long[1])
    assert repr(hs.DummyLaw.of({3: Fraction(1, 2), 5: 0.5})) == "DummyLaw.of({3: 0.5, 5: 0.5})"


DIGESTS = {
    "binomial": "5d6ec3866e6c6a17",
    "geometric": "c12756605ce30f34",
    "laplace": "51479496c9e3114e",
    "gaussian": "65bc9896e67f26aa",
    "own": "5b2b96023f2e97ae",
}


def test_tables_are_the_same_on_every_machine() -> None:
    # A keyed collection that is repeated elsewhere must draw the same number.
    assert {name: law.digest[:16] for name, law in LAWS.items()} == DIGESTS


@every
def test_means_of_falling_figures_hold_and_narrow_with_more_numbers(law: hs.DummyLaw) -> None:
    def figure(dummies: int) -> tuple[float, float]:
        value = math.exp(-dummies / 5) + 1 / (1 + dummies)
        return value * (1 - 1e-3), value * (1 + 1e-3)

    true = sum(figure(d)[0] / (1 - 1e-3) * p for d, p in zip(law.numbers.tolist(), law.probabilities, strict=True))
    ends = [law.falling_mean(figure, share=0.0, most=most) for most in (2, 3, 5, 9, 17, 10**4)]
    for (lower, upper, numbers), most in zip(ends, (2, 3, 5, 9, 17, 10**4), strict=True):
        assert lower <= true <= upper
        assert len(numbers) <= max(most, 12)
        assert numbers[0] == law.numbers[0]
        assert numbers[-1] == law.numbers[-1]
    assert [upper for _, upper, _ in ends] == sorted((upper for _, upper, _ in ends), reverse=True)
    assert [lower for lower, _, _ in ends] == sorted(lower for lower, _, _ in ends)
    assert ends[-1][2] == tuple(law.numbers.tolist())
    assert ends[-1][1] - ends[-1][0] == pytest.approx(2e-3 * true, rel=1e-6)


@every
def test_quantiles_are_those_of_the_probabilities(law: hs.DummyLaw) -> None:
    levels = [1e-6, 0.1, 0.5, 0.77, 0.999]
    upto = np.cumsum(law.probabilities)
    for level, number in zip(levels, law.quantiles(levels), strict=True):
        place = law.numbers.tolist().index(number)
        assert upto[place] > level - 1e-12
        assert place == 0 or upto[place - 1] <= level + 1e-12


def test_finer_numbers_only_narrow() -> None:
    law, rng = LAWS["binomial"], np.random.default_rng(5)
    numbers = law.numbers.tolist()
    values = np.sort(rng.random(len(numbers)))[::-1]
    known = {number: (value * 0.99, value) for number, value in zip(numbers, values.tolist(), strict=True)}
    for _ in range(200):
        few = sorted({numbers[0], numbers[-1], *rng.choice(numbers, 5).tolist()})
        more = sorted({*few, *rng.choice(numbers, 3).tolist()})
        coarse, fine = (law.mean_between(chosen, [known[d] for d in chosen]) for chosen in (few, more))
        assert fine[0] >= coarse[0] * (1 - 1e-12)
        assert fine[1] <= coarse[1] * (1 + 1e-12)


def test_what_is_refused() -> None:
    for wrong in ({}, [0.5, 0.5], {0: 0.5, 1: 0.4}, {0: -0.5, 1: 1.5}, {-1: 1.0}, {0.5: 1.0}, {10**9 + 1: 1.0}):
        with pytest.raises(InvalidInputError, match="`probabilities` must be"):
            hs.DummyLaw.of(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="`probabilities` must be in"):
        hs.DummyLaw.of({0: Fraction(3, 2), 1: Fraction(-1, 2)})
    with pytest.raises(InvalidInputError, match="at most 1,048,576 possible numbers"):
        hs.DummyLaw.geometric(mean=10**8)
    with pytest.raises(InvalidInputError, match="`p` must be"):
        hs.DummyLaw.binomial(trials=5, p=1.0)
    with pytest.raises(InvalidInputError, match="`scale` must be"):
        hs.DummyLaw.discrete_laplace(center=5, scale=0.0)
    with pytest.raises(InvalidInputError, match="`sigma` must be"):
        hs.DummyLaw.discrete_gaussian(center=5, sigma=0.0)


def test_too_many_numbers_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dummy_law, "_MOST", 3)
    with pytest.raises(InvalidInputError, match="at most 3 possible numbers"):
        hs.DummyLaw.of(dict.fromkeys(range(4), 0.25))


def test_a_scrambler_with_a_random_number() -> None:
    law = LAWS["own"]
    scrambler = hs.Scrambler(dummies=law)
    assert scrambler.dummy_law == law
    assert scrambler.expected_dummies == law.mean
    assert scrambler == hs.Scrambler(dummies=hs.DummyLaw.of({0: 0.25, 7: 0.5, 30: 0.25}))
    assert repr(scrambler) == "Scrambler(dummies=DummyLaw.of({0: 0.25, 7: 0.5, 30: 0.25}))"
    assert scrambler.describe() == (
        "a scrambler adds a number of dummies drawn from a given distribution with mean 11, and releases all "
        "reports in a uniformly random order"
    )
    assert scrambler.with_dummies(30) == hs.Scrambler(dummies=30)
    with pytest.raises(InvalidInputError, match=r"`dummies` must be a number that occurs in DummyLaw\.of"):
        scrambler.with_dummies(8)
    with pytest.raises(InvalidInputError, match="`dummies` must be an integer from 4 to 4"):
        hs.Scrambler(dummies=4).with_dummies(8)
    assert hs.UniformShuffle().with_dummies(0) == hs.UniformShuffle()
    with pytest.raises(UnsupportedProtocolError, match="needs a fixed number of dummies, but it is drawn from a"):
        _ = scrambler.dummies
    with pytest.raises(InvalidInputError, match="`cap` must be None if the number of dummies is random"):
        hs.Scrambler(dummies=law, cap=5)
    with pytest.raises(InvalidInputError, match="For a random number, pass a DummyLaw"):
        hs.Scrambler(dummies=0.5)  # type: ignore[arg-type]
    # A law of one number is that number.
    assert hs.Scrambler(dummies=hs.DummyLaw.of({4: 1.0}), cap=2) == hs.Scrambler(dummies=4, cap=2)


def test_a_run_draws_its_number_and_says_it() -> None:
    protocol = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.Scrambler(dummies=LAWS["own"]), n=5
    )
    seen = {protocol.collect([0] * 5, rng=hs.reproducible(seed)).dummies for seed in range(40)}
    assert seen == {0, 7, 30}
    assert protocol.collect([0] * 5).reports.shape[0] - 5 in LAWS["own"]
    assert protocol.with_dummies(7).shuffler == hs.Scrambler(dummies=7)
