from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chi2

from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers.target_sampling import Convention, TargetSampling
from hushuffle.randomness import SCALE, keyed, reproducible
from oracles.target_coins import sampled
from oracles.traffic_enumeration import flooded

F = Fraction
SETTINGS = [
    (targets, sigma, flood, convention)
    for targets, sigma, flood, convention in product(
        (2, 3, 4, 5), (F(0), F(1, 8), F(1, 2)), (0, 1, 2, 3, 4), ("uniform", "exclusive")
    )
    if flood < targets
]


def sampling(targets: int, sigma: Fraction, flood: int, convention: str) -> TargetSampling:
    kind: Convention = "uniform" if convention == "uniform" else "exclusive"
    return TargetSampling(targets=targets, sigma=float(sigma), flood=flood, convention=kind)


def names(randomizer: TargetSampling) -> list[tuple[int, ...]]:
    """Return the sets of targets, in the order of the channel's columns."""
    return list(combinations(range(randomizer.targets), randomizer.flood + 1))


def test_channel_and_local_epsilon_are_those_of_the_enumerated_mechanism() -> None:
    for setting in SETTINGS:
        randomizer = sampling(*setting)
        channel = randomizer.channel()
        laws = [flooded(x, *setting) for x in range(setting[0])]
        for x, law in enumerate(laws):
            for column, key in enumerate(names(randomizer)):
                assert channel.matrix[x, column] == pytest.approx(float(law.get(key, 0)), abs=1e-15)
        largest = max(
            math.inf if not there.get(y) else share / there[y]
            for here, there in product(laws, laws)
            for y, share in here.items()
            if share
        )
        expected = math.inf if math.isinf(largest) else math.log(largest)
        assert randomizer.local_epsilon == pytest.approx(expected, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("sigma", [1e-25, 1e-19, 0.1, 0.3, 1 - 2.0**-53])
def test_the_implemented_sigma_is_never_below_the_one_asked_for(sigma: float) -> None:
    implemented = 1 - F(TargetSampling(targets=20, sigma=sigma).threshold, SCALE)
    assert F(sigma) <= implemented < F(sigma) + F(1, SCALE)


def test_published_local_epsilon() -> None:
    for targets, sigma, flood in product((20, 100), (0.2, 0.05), (0, 5, 18)):
        published = math.log((1 - sigma) * targets / (sigma * (flood + 1)) + 1)
        figure = TargetSampling(targets=targets, sigma=sigma, flood=flood).local_epsilon
        assert figure == pytest.approx(published, rel=1e-13)


def test_value_laws_are_the_channel_by_class() -> None:
    for setting in SETTINGS:
        randomizer = sampling(*setting)
        channel, (laws,) = randomizer.channel(), randomizer.law().pairs()
        sets, held = names(randomizer), min(setting[0], 3)
        has = [tuple(value in each for value in range(held)) for each in sets]
        order = [which for which in product((True, False), repeat=held) if which in has]
        classes = [order.index(each) for each in has]
        for row, label in zip(laws.rows, laws.labels, strict=True):
            assert row == pytest.approx(np.bincount(classes, weights=channel.matrix[label]), abs=1e-15)
        gamma = channel.matrix.min(axis=0).sum()
        assert laws.complete
        assert laws.weight == pytest.approx(gamma, abs=1e-15)
        assert randomizer.law().blanket().weight == pytest.approx(gamma, abs=1e-15)
        assert laws.blanket == pytest.approx(np.bincount(classes) / len(sets), abs=1e-15)


def test_a_symmetric_law_only_without_flooding() -> None:
    plain, more = TargetSampling(targets=4, sigma=0.5), TargetSampling(targets=4, sigma=0.5, flood=1)
    assert plain.law().symmetric is not None
    assert more.law().symmetric is None


def test_broadcast_says_nothing() -> None:
    assert TargetSampling(targets=4, sigma=0.0, flood=3).local_epsilon == 0
    assert TargetSampling(targets=4, sigma=1.0).local_epsilon == 0
    assert TargetSampling(targets=5, sigma=0.8, convention="exclusive").local_epsilon == pytest.approx(0, abs=1e-15)
    assert TargetSampling(targets=5, sigma=0.8, convention="exclusive").inputs == 5
    assert TargetSampling(targets=3, sigma=2 / 3, convention="exclusive").local_epsilon == pytest.approx(0, abs=1e-15)


def test_sentences() -> None:
    assert "no sampling" in TargetSampling(targets=4, sigma=0.0, flood=1).describe()
    assert "random other one" in TargetSampling(targets=4, sigma=0.25, convention="exclusive").describe()


def test_large_matrices_are_refused() -> None:
    with pytest.raises(UnsupportedProtocolError, match="a matrix would have"):
        TargetSampling(targets=50, sigma=0.1, flood=5).channel()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"targets": 1, "sigma": 0.1}, "targets"),
        ({"targets": 3, "sigma": 1.5}, "sigma"),
        ({"targets": 3, "sigma": 0.7, "convention": "exclusive"}, "sigma"),
        ({"targets": 3, "sigma": 0.1, "flood": 3}, "flood"),
        ({"targets": 3, "sigma": 0.1, "convention": "other"}, "convention"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"`{name}`"):
        TargetSampling(**arguments)  # type: ignore[arg-type]


def test_wrong_reports_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="`reports`"):
        TargetSampling(targets=5, sigma=0.1, flood=1).counts(np.zeros(4, dtype=np.int64))


def test_the_coin_of_purpose_and_reports_have_the_laws_of_the_enumerated_coins() -> None:
    for targets, sigma, flood, convention in SETTINGS:
        purpose, others = [], []
        for x in range(targets):
            law = sampled(x, targets, sigma, flood, convention)
            reports: dict[tuple[int, ...], Fraction] = {}
            for (report, _), chance in law.items():
                reports[report] = reports.get(report, F(0)) + chance
            expected = flooded(x, targets, sigma, flood, convention)
            assert reports == {report: chance for report, chance in expected.items() if chance}
            purpose.append(sum((chance for (_, meant), chance in law.items() if meant), F(0)))
            others.append({report: chance for (report, meant), chance in law.items() if not meant})
            assert all(x in report for (report, meant) in law if meant)
        assert all(one == others[0] for one in others)  # whoever was not on purpose: the same law for every value
        lie = sigma / targets if convention == "uniform" else sigma / (targets - 1)
        assert set(purpose) == {1 - targets * lie}


@pytest.mark.parametrize("convention", ["uniform", "exclusive"])
@pytest.mark.parametrize("flood", [0, 2])
def test_samples_are_the_reports_and_say_which_are_on_purpose(convention: Convention, flood: int) -> None:
    randomizer = TargetSampling(targets=5, sigma=0.5, flood=flood, convention=convention)
    values = np.arange(4000) % 5
    for make in (lambda: reproducible(3), lambda: keyed(key=bytes(32), records=np.arange(4000))):
        reports, meant = randomizer.sample(values, rng=make())
        assert np.array_equal(reports, randomizer.randomize(values, rng=make()))
        assert meant.shape == (4000,)
        own = (reports.reshape(4000, -1) == values[:, None]).any(axis=1)
        assert own[meant].all()
        assert (own & ~meant).any()


@pytest.mark.parametrize("convention", ["uniform", "exclusive"])
@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize("flood", [0, 2])
@pytest.mark.parametrize("way", ["one after the other", "keyed"])
def test_samples_follow_their_law(convention: Convention, value: int, flood: int, way: str) -> None:
    # chi-square at false-alarm rate 1e-7 for each of 16 tests
    setting, size = (4, F(3, 8), flood, convention), 40_000
    randomizer = sampling(*setting)
    rng = reproducible(11) if way != "keyed" else keyed(key=bytes(range(32)), records=np.arange(size))
    reports, meant = randomizer.sample(np.full(size, value), rng=rng)
    law = sampled(value, *setting)
    rows = reports.reshape(size, -1)
    observed = {key: int((np.all(rows == np.array(key[0]), axis=1) & (meant == key[1])).sum()) for key in law}
    assert sum(observed.values()) == size
    statistic = sum((observed[key] - size * float(share)) ** 2 / (size * float(share)) for key, share in law.items())
    assert statistic < chi2.isf(1e-7, len(law) - 1)


@pytest.mark.parametrize("convention", ["uniform", "exclusive"])
def test_nobody_or_everybody_on_purpose(convention: Convention) -> None:
    values = np.arange(300) % 3
    reports, meant = TargetSampling(targets=3, sigma=0.0, convention=convention).sample(values, rng=reproducible(1))
    assert meant.all()
    assert np.array_equal(reports, values)
    most = 1.0 if convention == "uniform" else 2 / 3
    assert not TargetSampling(targets=3, sigma=most, convention=convention).sample(values, rng=reproducible(1))[1].any()
