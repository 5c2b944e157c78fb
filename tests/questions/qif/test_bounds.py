"""Guesses at mechanisms other than randomized response, against the enumeration of every release."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.questions.qif import bounds
from oracles.subset_selection import guess, mean, subset_law
from plain_protocols import Opaque

F = Fraction
HASHINGS = [
    hs.LocalHashing(k=3, g=2, epsilon=1.0),
    hs.LocalHashing(k=3, g=2, epsilon=math.inf),
    hs.LocalHashing(k=2, g=3, epsilon=0.5),
    hs.LocalHashing(k=4, g=2, epsilon=3.0),
]
OTHERS = [
    *HASHINGS,
    hs.HadamardResponse(k=3, epsilon=1.0),
    hs.UnaryEncoding(k=3, epsilon=1.0, encoding="optimized"),
    hs.UnaryEncoding(k=3, epsilon=4.0, encoding="symmetric"),
    hs.BitFlipping(width=2, p=0.2),
    hs.MatrixRandomizer(channel=hs.Channel(matrix=np.random.default_rng(1).dirichlet(np.ones(3), size=3))),
]


def survey(randomizer: Any, n: int, shuffler: Any = None) -> hs.Protocol:
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler or hs.UniformShuffle(), n=n)


def laws_of(randomizer: Any) -> list[dict[tuple[int, ...], Fraction]]:
    matrix = randomizer.channel().matrix
    return [{(y,): F(float(chance)) for y, chance in enumerate(row) if chance} for row in matrix]


@pytest.mark.parametrize(("k", "w", "n"), [(3, 2, 1), (3, 2, 3), (4, 2, 2), (4, 3, 2)])
@pytest.mark.parametrize("growth", [F(3, 2), F(20)])
def test_sets_after_a_shuffle_against_enumeration(k: int, w: int, n: int, growth: Fraction) -> None:
    laws = [subset_law(x, k, w, growth) for x in range(k)]
    protocol = survey(hs.SubsetSelection(k=k, w=w, epsilon=math.log(growth)), n)
    for m in range(n):
        unknown = [mean(laws)] * (n - 1 - m)
        worst = max(
            guess(laws, [*(laws[x] for x in held), *unknown])
            for held in itertools.combinations_with_replacement(range(k), m)
        )
        bound = hs.qif.vulnerability(protocol, adversary=hs.Informed(m=m))
        assert bound.lower - 1e-12 <= float(worst) <= bound.upper + 1e-12
        assert bound.lower > 1 / k
        if m:
            counts = [m] + [0] * (k - 1)
            given = hs.qif.vulnerability(protocol, adversary=hs.Informed(m=m, known=hs.Histogram(counts=counts)))
            assert given.lower - 1e-12 <= float(guess(laws, [*[laws[0]] * m, *unknown])) <= given.upper + 1e-12


def test_sets_with_dummies_against_enumeration() -> None:
    laws = [subset_law(x, 3, 2, F(4)) for x in range(3)]
    protocol = survey(hs.SubsetSelection(k=3, w=2, epsilon=math.log(4)), 2, hs.Scrambler(dummies=2))
    bound = hs.qif.vulnerability(protocol, adversary=hs.Strong())
    worst = max(guess(laws, [law, mean(laws), mean(laws)]) for law in laws)
    assert bound.lower <= float(worst) <= bound.upper


@pytest.mark.parametrize("randomizer", OTHERS, ids=str)
def test_no_guesser_does_better(randomizer: Any) -> None:
    laws = laws_of(randomizer)
    k = len(laws)
    for n in (2, 3):
        bound = hs.qif.vulnerability(survey(randomizer, n), adversary=hs.Strong())
        assert bound.kind in ("bracket", "exact")
        others = itertools.combinations_with_replacement(range(k), n - 1)
        worst = max(float(guess(laws, [laws[x] for x in held])) for held in others)
        assert 1 / k < bound.lower <= worst + 1e-12
        assert worst <= bound.upper + 1e-12
    alone = hs.qif.vulnerability(survey(randomizer, 2, hs.NoShuffle()))
    assert float(guess(laws, [])) <= alone.upper + 1e-12


@pytest.mark.parametrize("randomizer", [hs.SubsetSelection(k=4, w=2, epsilon=1.0), OTHERS[-1], OTHERS[-2]], ids=str)
def test_a_report_next_to_its_name_is_exact(randomizer: Any) -> None:
    bound = hs.qif.vulnerability(survey(randomizer, 9, hs.NoShuffle()), adversary=hs.Strong())
    assert bound.kind == "exact"
    assert bound.upper == pytest.approx(float(guess(laws_of(randomizer), [])), abs=1e-14)


def test_a_shuffle_of_many_hides_what_the_report_says() -> None:
    hashed = hs.LocalHashing(k=1000, g=8, epsilon=1.0)
    alone, shuffled = (hs.qif.vulnerability(survey(hashed, 100_000, how)) for how in (hs.NoShuffle(), None))
    assert alone.upper == pytest.approx(float(8 * hashed.law().bucket.truth) / 1000)
    assert 1e-3 < shuffled.upper < 1.006e-3 < alone.upper


@pytest.mark.parametrize("n", [100, 10_000, 10**7])
def test_the_ends_of_sets_are_close(n: int) -> None:
    protocol = survey(hs.SubsetSelection(k=20, w=5, epsilon=1.0), n)
    nobody, all_others = (hs.qif.vulnerability(protocol, adversary=each) for each in (hs.Uninformed(), hs.Strong()))
    assert nobody.upper - 0.05 < 1.25 * (nobody.lower - 0.05)
    assert nobody.upper <= all_others.upper
    assert all_others.upper - 0.05 < 1.7 * (all_others.lower - 0.05)


def test_adversaries_are_checked() -> None:
    protocol = survey(hs.SubsetSelection(k=4, w=2, epsilon=1.0), 5)
    with pytest.raises(InvalidInputError, match="a histogram of 4 values"):
        hs.qif.vulnerability(protocol, adversary=hs.Strong(others=hs.Histogram(counts=[2, 2])))


def gained(randomizer: Any, gain: Any, prior: Any, others: tuple[int, ...]) -> float:
    """Return the expected gain after all releases: sorted reports of the target and of others with known values."""
    laws = laws_of(randomizer)
    release: dict[tuple[Any, ...], np.ndarray[Any, Any]] = {}
    for value, law in enumerate(laws):
        for reports in itertools.product(law, *(laws[other] for other in others)):
            chance = prior[value] * float(law[reports[0]])
            for other, report in zip(others, reports[1:], strict=True):
                chance *= float(laws[other][report])
            release.setdefault(tuple(sorted(reports)), np.zeros(len(laws)))[value] += chance
    return sum(float((np.array(gain) @ joint).max()) for joint in release.values())


NEAR = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0], [-0.4, 0.9, -0.4]]


@pytest.mark.parametrize("randomizer", [OTHERS[-1], HASHINGS[0], hs.RandomizedResponse(k=3, epsilon=0.3)], ids=str)
@pytest.mark.parametrize("prior", [[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
def test_no_guesser_with_a_prior_gains_more(randomizer: Any, prior: list[float]) -> None:
    for n in (1, 2, 3):
        bound = hs.qif.gain_vulnerability(survey(randomizer, n), gain=NEAR, frequencies=prior)
        others = itertools.combinations_with_replacement(range(3), n - 1)
        worst = max(gained(randomizer, NEAR, prior, held) for held in others)
        assert float(hs.qif.prior_vulnerability(prior, NEAR)) <= bound.lower <= worst + 1e-12
        assert worst <= bound.upper + 1e-12
    alone = hs.qif.gain_vulnerability(survey(randomizer, 2, hs.NoShuffle()), gain=NEAR, frequencies=prior)
    assert alone.kind == "exact"
    assert alone.upper == pytest.approx(gained(randomizer, NEAR, prior, ()))


def test_many_others_leave_little_to_gain() -> None:
    prior, gain = [0.2, 0.5, 0.3], hs.qif.identity_gain(3)
    figures = [
        hs.qif.gain_vulnerability(survey(OTHERS[-1], n), gain=gain, frequencies=prior).upper for n in (1, 1000, 100_000)
    ]
    assert figures == sorted(figures, reverse=True)
    assert figures[-1] < 0.52


def test_a_gain_needs_a_matrix_or_a_guarantee() -> None:
    wide = hs.LocalHashing(k=300, g=64, epsilon=1.0)
    prior = np.full(300, 1 / 300)
    shuffled = hs.qif.gain_vulnerability(survey(wide, 10_000), gain=np.eye(300), frequencies=prior)
    assert shuffled.upper < 2 / 300
    with pytest.raises(UnsupportedProtocolError, match="matrix"):
        hs.qif.gain_vulnerability(survey(wide, 10_000, hs.NoShuffle()), gain=np.eye(300), frequencies=prior)
    with pytest.raises(UnsupportedProtocolError, match="matrix"):
        hs.qif.gain_vulnerability(survey(Opaque(), 10), gain=np.eye(4), frequencies=np.full(4, 0.25))


def test_an_order_tells_no_more_of_a_value_than_the_report_next_to_its_name() -> None:
    order = hs.MallowsShuffle(reference=list(range(5)), theta=0.5)
    figures = [
        hs.qif.gain_vulnerability(survey(OTHERS[-1], 5, how), gain=np.eye(3), frequencies=[0.2, 0.5, 0.3])
        for how in (order, hs.NoShuffle())
    ]
    assert figures[0].upper == pytest.approx(figures[1].upper)
    assert [figure.kind for figure in figures] == ["upper", "exact"]


def test_without_a_central_guarantee_the_report_next_to_its_name_bounds_a_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(protocol: hs.Protocol) -> None:
        raise UnsupportedProtocolError(str(protocol))

    monkeypatch.setattr(bounds, "privacy_curve", none)
    prior, capped = [0.2, 0.5, 0.3], hs.Scrambler(dummies=1, cap=5)
    found = hs.qif.gain_vulnerability(survey(OTHERS[-1], 5, capped), gain=np.eye(3), frequencies=prior)
    assert found.kind == "upper"
    assert found.upper == pytest.approx(gained(OTHERS[-1], np.eye(3), prior, ()))


def test_priors_and_gains_are_checked() -> None:
    protocol = survey(OTHERS[-1], 5)
    with pytest.raises(InvalidInputError, match="`frequencies` must be 3 probabilities"):
        hs.qif.gain_vulnerability(protocol, gain=np.eye(2), frequencies=[0.5, 0.5])
    infinite: tuple[Any, ...] = ([[1.0, math.inf, 0.0]], [[1j, 0.0, 0.0]])
    for gain in infinite:
        with pytest.raises(InvalidInputError, match="`gain` must be finite"):
            hs.qif.gain_vulnerability(protocol, gain=gain, frequencies=[0.2, 0.5, 0.3])
    wrong: tuple[Any, ...] = ("x", [["a", "b", "c"]], [[1], [0, 1]], {}, [[10**400, 0, 0]])
    for gain in wrong:
        with pytest.raises(InvalidInputError, match="`gain` must be a table of"):
            hs.qif.gain_vulnerability(protocol, gain=gain, frequencies=[0.2, 0.5, 0.3])
    with pytest.raises(InvalidInputError, match="`frequencies` must be probabilities >= 0 that sum to 1"):
        hs.qif.gain_vulnerability(protocol, gain=np.eye(3), frequencies=[0.5, 0.5, 0.1])
    with pytest.raises(InvalidInputError, match=r"`gain` must be a table of shape \(guesses, 3\)"):
        hs.qif.gain_vulnerability(protocol, gain=[[1.0, 0.0]], frequencies=[0.2, 0.5, 0.3])


@pytest.mark.parametrize("n", [3, 40, 5000])
@pytest.mark.parametrize("mechanism", [OTHERS[0], OTHERS[4], hs.MatrixRandomizer([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])])
def test_the_best_level_is_that_of_all_levels(mechanism: Any, n: int) -> None:
    protocol = hs.Protocol(randomizer=mechanism, shuffler=hs.UniformShuffle(), n=n)
    curve, k = privacy_curve(protocol).near(bounds._NEGLIGIBLE, often=True), mechanism.inputs
    levels = [epsilon for epsilon in bounds._TRIED if math.exp(epsilon) < k]
    every = min([1.0, *((math.exp(epsilon) + (k - 1) * curve.upper(epsilon)) / k for epsilon in levels)])
    assert bounds._central(protocol) == pytest.approx(every, rel=1e-12)
