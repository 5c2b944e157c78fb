"""The Mallows shuffle: its order of indices, its privacy by enumeration, what it refuses."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import MallowsShuffle, Reveals, mallows
from hushuffle.mechanisms.shufflers.mallows import Distance
from oracles import mallows_enumeration as oracle
from oracles.rr_statistics import chi_square_excess

DISTANCES: tuple[Distance, ...] = ("kendall", "hamming")
LARGE_AND_SMALL = [0.0, 0.7, math.inf]


def survey(shuffler: MallowsShuffle, k: int = 3, epsilon: float = 1.0) -> hs.Protocol:
    randomizer = hs.RandomizedResponse(k=k, epsilon=epsilon)
    return hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=shuffler.people)


def test_the_worked_example_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Appendix A.10: sigma_0 = (5 2 3 8 4 1 6 7), sampled (3 2 5 4 8 1 7 6), released (y1 y2 y5 y8 y3 y7 y6 y4)."""
    reference, sampled = np.array([5, 2, 3, 8, 4, 1, 6, 7]) - 1, np.array([3, 2, 5, 4, 8, 1, 7, 6]) - 1
    rank = np.argsort(reference)

    def drawn(n: int, **arguments: Any) -> npt.NDArray[np.int64]:
        assert (n, arguments["theta"], arguments["distance"]) == (8, 0.1, "kendall")
        found: npt.NDArray[np.int64] = rank[sampled]
        return found

    monkeypatch.setattr(mallows, "sample_mallows", drawn)
    shuffler = MallowsShuffle(reference=reference, theta=0.1)
    assert shuffler.release(np.arange(1, 9), rng=hs.secure()).tolist() == [1, 2, 5, 8, 3, 7, 6, 4]


@pytest.mark.parametrize("distance", DISTANCES)
def test_release_follows_the_convention_and_the_law(distance: Distance) -> None:
    reference, theta, draws, rng = (2, 0, 3, 1), 0.6, 8_000, hs.reproducible(1)
    shuffler = MallowsShuffle(reference=reference, theta=theta, distance=distance)
    wanted: dict[tuple[object, ...], float] = {
        oracle.released(reference, tau, (10, 11, 12, 13)): probability
        for tau, probability in oracle.law(4, theta, distance).items()
    }
    place = {release: number for number, release in enumerate(wanted)}
    seen = np.zeros(len(wanted))
    for _ in range(draws):
        seen[place[tuple(shuffler.release(np.array([10, 11, 12, 13]), rng=rng).tolist())]] += 1
    assert chi_square_excess(seen, draws * np.array(list(wanted.values()))) < 0


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_its_privacy_is_theta_times_the_sensitivity_exactly(n: int, distance: Distance) -> None:
    """The whole mechanism enumerated: every reference, every group."""
    for reference in itertools.permutations(range(n)):
        for size in range(1, n + 1):
            for group in itertools.combinations(range(n), size):
                worst = oracle.worst_log_ratio(reference, group, distance)
                assert worst == oracle.sensitivity(reference, group, distance)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(("reference", "group"), [((0, 3, 1, 2, 4), (0, 3)), ((4, 1, 3, 0, 2), (4, 0, 2))])
def test_its_privacy_for_five_people(reference: tuple[int, ...], group: tuple[int, ...], distance: Distance) -> None:
    assert oracle.worst_log_ratio(reference, group, distance) == oracle.sensitivity(reference, group, distance)


def test_rows_move_whole() -> None:
    shuffler = MallowsShuffle(reference=[1, 0, 2], theta=0.1)
    released = shuffler.release(np.arange(6).reshape(3, 2), rng=hs.reproducible(3))
    assert sorted(released.tolist()) == [[0, 1], [2, 3], [4, 5]]


def test_ends_of_theta_are_no_shuffle_and_the_uniform_one() -> None:
    reference = [3, 1, 0, 2]
    revealed = [MallowsShuffle(reference=reference, theta=theta).reveals for theta in LARGE_AND_SMALL]
    assert revealed == [Reveals.MULTISET, Reveals.NOISY_ORDER, Reveals.SENDERS]
    kept = MallowsShuffle(reference=reference, theta=math.inf).release(np.array([5, 6, 7, 8]), rng=hs.secure())
    assert kept.tolist() == [5, 6, 7, 8]


def test_messages_that_do_not_fit_are_refused() -> None:
    shuffler = MallowsShuffle(reference=[1, 0, 2], theta=1.0)
    assert shuffler.people == 3
    with pytest.raises(InvalidInputError, match=r"`messages` must be one per person in the reference, 3, got.*4"):
        shuffler.release(np.arange(4), rng=hs.secure())


def test_protocols_of_another_size_are_refused() -> None:
    shuffler = MallowsShuffle(reference=[1, 0, 2], theta=1.0)
    for n in (2, 4):
        with pytest.raises(InvalidInputError, match=f"`reference` must be an order of the protocol's n = {n} people"):
            hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=shuffler, n=n)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reference": [0, 1, 1]}, r"`reference` must be a permutation of 0..2, got reference=<1 people missing>"),
        ({"reference": [1, 2, 3]}, r"`reference` must be integers from 0 to 2"),
        ({"reference": []}, r"`reference` must be an order of at least one person"),
        ({"reference": [0.0, 1.0]}, r"`reference` must be integers"),
        ({"reference": [[0, 1]]}, r"`reference` must be a one-dimensional array"),
        ({"reference": [0], "theta": -1}, r"`theta` must be finite and >= 0"),
        ({"reference": [0], "distance": "spearman"}, r"`distance` must be 'kendall' or 'hamming'"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MallowsShuffle(**{"theta": 1.0, **arguments})


def test_too_many_people_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mallows, "_MOST", 3)
    with pytest.raises(InvalidInputError, match="`reference` must be an order of at most 3 people"):
        MallowsShuffle(reference=np.arange(4), theta=1.0)


def test_it_is_a_value() -> None:
    order = np.array([1, 0, 2])
    shuffler = MallowsShuffle(reference=order, theta=1)
    order[0] = 2
    assert shuffler.reference.tolist() == [1, 0, 2]
    with pytest.raises(ValueError, match="read-only"):
        shuffler.reference[0] = 5
    assert shuffler == MallowsShuffle(reference=[1, 0, 2], theta=1.0)
    assert shuffler != MallowsShuffle(reference=[0, 1, 2], theta=1.0)
    assert shuffler != MallowsShuffle(reference=[1, 0, 2], theta=2.0)
    assert shuffler != MallowsShuffle(reference=[1, 0, 2], theta=1.0, distance="hamming")
    assert shuffler != hs.UniformShuffle()
    assert repr(shuffler) == "MallowsShuffle(3 people, theta=1, distance='kendall')"
    with pytest.raises(TypeError):
        hash(shuffler)


def test_descriptions() -> None:
    for distance, theta in itertools.product(DISTANCES, LARGE_AND_SMALL):
        text = MallowsShuffle(reference=[1, 0], theta=theta, distance=distance).describe()
        assert 20 < len(text) < 200
    assert (
        "theta = 0.7 for each person out of place"
        in MallowsShuffle(reference=[1, 0], theta=0.7, distance="hamming").describe()
    )


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
def test_differential_privacy_lies_between_the_uniform_shuffle_and_none(k: int, delta: float) -> None:
    people, randomizer = 200, hs.RandomizedResponse(k=k, epsilon=1.5)
    noisy, uniform, open_ = (
        hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=people)
        for shuffler in (
            MallowsShuffle(reference=np.arange(people)[::-1], theta=0.1),
            hs.UniformShuffle(),
            hs.NoShuffle(),
        )
    )
    bound = hs.dp.epsilon(noisy, delta=delta)
    assert bound.lower == pytest.approx(hs.dp.epsilon(uniform, delta=delta).lower, rel=1e-4)
    assert bound.upper == hs.dp.epsilon(open_, delta=delta).upper <= randomizer.local_epsilon
    for epsilon in (0.0, 0.3, 2.0):
        between = hs.dp.delta(noisy, epsilon=epsilon)
        assert between.lower == hs.dp.delta(uniform, epsilon=epsilon).lower
        assert between.upper == hs.dp.delta(open_, epsilon=epsilon).upper


def test_other_randomizers_and_no_noise() -> None:
    columns = survey(MallowsShuffle(reference=np.arange(30), theta=0.2))
    columns = hs.Protocol(randomizer=hs.BitFlipping(width=2, p=0.2), shuffler=columns.shuffler, n=30)
    bound = hs.dp.epsilon(columns, delta=1e-3)
    seen = hs.Protocol(randomizer=columns.randomizer, shuffler=hs.NoShuffle(), n=30)
    assert 0 < bound.lower < bound.upper == hs.dp.epsilon(seen, delta=1e-3).upper
    plain = survey(MallowsShuffle(reference=np.arange(30), theta=0.2), epsilon=math.inf)
    assert hs.dp.epsilon(plain, delta=1e-3).upper == math.inf
    assert hs.dp.delta(plain, epsilon=1.0).upper == 1.0


def test_the_pure_guarantee_is_attained() -> None:
    protocol = survey(MallowsShuffle(reference=np.arange(30), theta=0.2))
    bound = privacy_curve(protocol).pure_bound()
    assert (bound.kind, bound.upper) == ("exact", protocol.randomizer.local_epsilon)
    assert hs.dp.compose([(protocol, 3)], delta=0.0).upper == pytest.approx(3 * bound.upper)


def test_rounds_add_up_to_no_more_than_without_a_shuffle() -> None:
    shuffler = MallowsShuffle(reference=np.arange(100), theta=0.2)
    uniform = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100)
    bound, hidden = (hs.dp.compose([(one, 5)], delta=1e-4) for one in (survey(shuffler), uniform))
    assert bound.lower == pytest.approx(hidden.lower, rel=0.01)
    assert hidden.upper < bound.upper < 5.0
    assert hs.dp.compose_delta([(survey(shuffler), 5)], epsilon=1.0).width > 0


def test_at_the_ends_of_theta_the_accountant_knows_more() -> None:
    for theta, other in ((0.0, hs.UniformShuffle()), (math.inf, hs.NoShuffle())):
        shuffler = MallowsShuffle(reference=np.arange(50), theta=theta)
        there = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=other, n=50)
        assert hs.dp.epsilon(survey(shuffler), delta=1e-4) == hs.dp.epsilon(there, delta=1e-4)
        assert hs.qif.vulnerability(survey(shuffler)) == hs.qif.vulnerability(there)


def test_other_questions_answer_or_refuse() -> None:
    protocol = survey(MallowsShuffle(reference=np.arange(50), theta=0.3))
    with pytest.raises(UnsupportedProtocolError, match="reveals the multiset, not the noisy order"):
        hs.qif.vulnerability(protocol)
    assert hs.pie.alpha(protocol).upper > 0
    reports = protocol.collect(np.arange(50) % 3, rng=hs.reproducible(1))
    assert hs.estimate(reports, protocol=protocol).n == 50
