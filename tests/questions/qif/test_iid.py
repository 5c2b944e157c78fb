"""A guesser with an i.i.d. prior, against every dataset and report; brackets and estimates against exact figures."""

from __future__ import annotations

from fractions import Fraction
from time import process_time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushuffle as hs
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.questions import qif
from hushuffle.questions.qif import iid, mixture
from hushuffle.questions.qif.shuffled import Crowd
from oracles.qif_guessing import channel
from oracles.qif_toolkit import iid_success
from plain_protocols import OtherShuffle, protocol

TRUTHS = [Fraction(7, 10), Fraction(1), Fraction(51, 100)]
SHARES = {
    2: [[Fraction(1, 3), Fraction(2, 3)], [Fraction(9, 10), Fraction(1, 10)], [Fraction(0), Fraction(1)]],
    3: [[Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(3, 10), Fraction(7, 10), Fraction(0)]],
}
CASES = [(n, shares) for k, rows in SHARES.items() for shares in rows for n in range(1, 7 - k)]


def floats(shares: list[Fraction]) -> npt.NDArray[np.float64]:
    return np.array([float(share) for share in shares])


def law(k: int, truth: Fraction) -> Symmetric:
    return Symmetric(k=k, truth=truth, lie=(1 - truth) / (k - 1))


@pytest.mark.parametrize(("n", "shares"), CASES)
@pytest.mark.parametrize("truth", TRUTHS)
def test_equals_enumeration(n: int, shares: list[Fraction], truth: Fraction) -> None:
    k = len(shares)
    found = qif.iid_vulnerability(protocol(n, k, truth), frequencies=floats(shares))
    assert found.kind == "exact"
    assert found.upper == pytest.approx(float(iid_success(n, channel(k, truth), shares)), rel=1e-14)


@pytest.mark.parametrize("dummies", [1, 3])
@pytest.mark.parametrize("truth", TRUTHS)
def test_dummies_for_two_values(dummies: int, truth: Fraction) -> None:
    shares = [Fraction(2, 5), Fraction(3, 5)]
    shuffler = OtherShuffle(added=dummies)
    found = qif.iid_vulnerability(protocol(3, 2, truth, shuffler), frequencies=floats(shares))
    assert found.kind == "exact"
    assert found.upper == pytest.approx(float(iid_success(3, channel(2, truth), shares, dummies)), rel=1e-14)


@pytest.mark.parametrize(("n", "k"), [(2, 2), (2, 3), (3, 2)])
def test_the_same_from_the_channels(n: int, k: int) -> None:
    """The i.i.d. prior over datasets, the channel of noise and shuffle and the single-target gain."""
    truth, shares = Fraction(3, 4), SHARES[k][0]
    by_channel = qif.posterior_vulnerability(
        qif.noise_then_reduced_shuffle(n, k, truth), qif.iid_prior(n, shares), qif.single_target_gain(n, k)
    )
    assert by_channel == iid_success(n, channel(k, truth), shares)
    found = qif.iid_vulnerability(protocol(n, k, truth), frequencies=floats(shares))
    assert found.upper == pytest.approx(float(by_channel), rel=1e-14)


@pytest.mark.parametrize("shares", [SHARES[2][0], SHARES[3][0]])
def test_without_a_shuffler_or_alone_the_report_is_the_targets(shares: list[Fraction]) -> None:
    k, truth = len(shares), Fraction(7, 10)
    shuffler = OtherShuffle(revealed=Reveals.SENDERS)
    apart = qif.iid_vulnerability(protocol(50, k, truth, shuffler), frequencies=floats(shares))
    alone = qif.iid_vulnerability(protocol(1, k, truth), frequencies=floats(shares))
    expected = float(iid_success(1, channel(k, truth), shares))
    assert apart.upper == alone.upper == pytest.approx(expected, rel=1e-15)


def test_equal_frequencies_are_the_uninformed_adversary() -> None:
    survey = protocol(40, 5, Fraction(7, 10), OtherShuffle(added=3))
    assert qif.iid_vulnerability(survey, frequencies=[0.2] * 5) == qif.vulnerability(survey)


def test_two_values_at_any_size() -> None:
    """The guess is the commoner value once it is clearly so; near a tie the release helps."""
    survey = protocol(10**9, 2, Fraction(4, 5))
    assert qif.iid_vulnerability(survey, frequencies=[0.4, 0.6]).upper == pytest.approx(0.6, rel=1e-12)
    near = qif.iid_vulnerability(survey, frequencies=[0.5 - 1e-9, 0.5 + 1e-9])
    assert near.upper == pytest.approx(qif.vulnerability(survey).upper, abs=2e-9)
    start = process_time()
    qif.iid_vulnerability(survey, frequencies=[0.49999, 0.50001])
    assert process_time() - start < 1


@pytest.mark.parametrize("truth", [Fraction(3, 5), Fraction(1)])
def test_the_general_method_agrees_for_two_values(truth: Fraction) -> None:
    for n in (5, 200, 5000):
        shares = np.array([0.48, 0.52])
        one = mixture.two_values(law(2, truth), n, shares, 0)
        assert mixture.Mixture.of(law(2, truth), n, shares).expected_best() == pytest.approx(one, rel=2e-14)


def least(people: mixture.Mixture) -> float:
    return Crowd(mixture=people, given=0.0).lower()


ENDS = [
    (3, 200, [0.34, 0.33, 0.33]),
    (3, 200, [0.6, 0.3, 0.1]),
    (3, 3000, [0.34, 0.33, 0.33]),
    (4, 60, [0.3, 0.3, 0.25, 0.15]),
    (5, 30, [0.25, 0.2, 0.2, 0.2, 0.15]),
    (8, 6, [0.3, *[0.1] * 7]),
]


@pytest.mark.parametrize(("k", "n", "shares"), ENDS)
@pytest.mark.parametrize("truth", [Fraction(3, 5), Fraction(9, 10), Fraction(1)])
def test_ends_hold_the_exact_figure(k: int, n: int, shares: list[float], truth: Fraction) -> None:
    people = mixture.Mixture.of(law(k, truth), n, np.array(shares))
    exact, lower, upper = people.expected_best(), least(people), mixture.upper_end(people)
    assert max(shares) * (1 - 1e-10) <= lower <= exact <= upper <= people.alone * (1 + 1e-10)
    level, beyond = mixture.beyond(people)
    assert level > 0
    assert beyond < level * 1e-6


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 25),
    weights=st.lists(st.integers(0, 9), min_size=3, max_size=4).filter(lambda w: len(set(w)) > 1),
    truth=st.fractions(Fraction(2, 5), Fraction(1), max_denominator=50),
)
def test_ends_hold_for_random_frequencies(n: int, weights: list[int], truth: Fraction) -> None:
    people = mixture.Mixture.of(law(len(weights), truth), n, np.array(weights) / sum(weights))
    exact = people.expected_best()
    assert least(people) <= exact <= mixture.upper_end(people)


def test_moments_by_enumeration() -> None:
    """E Y and E Y**2 of three reports, term by term."""
    people = mixture.Mixture.of(law(3, Fraction(3, 5)), 3, np.array([0.5, 0.3, 0.2]))
    found = mixture._moments(people, 0)
    steps = (people.posteriors - people.posteriors[0]) / 3
    for power, moments in zip((1, 2), found, strict=True):
        expected = np.zeros(3)
        for reports in np.ndindex(3, 3, 3):
            expected += people.reports[list(reports)].prod() * steps[:, list(reports)].sum(axis=1) ** power
        assert moments == pytest.approx(expected, rel=1e-13, abs=1e-16)


@pytest.mark.parametrize(("k", "n", "shares"), ENDS)
def test_estimates_hold_the_exact_figure(k: int, n: int, shares: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Confidence 1 - 1e-7 each, seeds fixed."""
    survey = protocol(n, k, Fraction(3, 5))
    exact = qif.iid_vulnerability(survey, frequencies=shares)
    assert exact.kind == "exact"
    monkeypatch.setattr(iid, "ENTRIES_LIMIT", 0)
    bracket = qif.iid_vulnerability(survey, frequencies=shares)
    assert bracket.kind == "bracket"
    assert exact.upper in bracket
    options = {"samples": 20_000, "confidence": 1 - 1e-7}
    found = qif.iid_vulnerability(survey, frequencies=shares, rng=hs.reproducible(3), **options)  # type: ignore[arg-type]
    assert found.kind == "estimate"
    assert found.confidence == 1 - 1e-7
    assert bracket.lower <= found.lower <= exact.upper <= found.upper <= bracket.upper
    again = qif.iid_vulnerability(survey, frequencies=shares, rng=hs.reproducible(3), **options)  # type: ignore[arg-type]
    assert again == found


def test_one_sample_says_nothing_beyond_the_bracket() -> None:
    survey, shares = protocol(10**5, 8, Fraction(3, 5)), [0.126, *[0.125] * 6, 0.124]
    bracket = qif.iid_vulnerability(survey, frequencies=shares)
    found = qif.iid_vulnerability(survey, frequencies=shares, samples=1)
    assert (found.kind, found.lower, found.upper) == ("estimate", bracket.lower, bracket.upper)
    many = qif.iid_vulnerability(survey, frequencies=shares, samples=50_000, rng=hs.reproducible(5))
    assert many.width < bracket.width / 3


def test_a_clear_winner_is_the_guess() -> None:
    found = qif.iid_vulnerability(protocol(10**6, 10, Fraction(1, 2)), frequencies=[0.19, *[0.09] * 9])
    assert found.width < 1e-10
    assert 0.19 in found


def test_more_people_reveal_less_and_more_noise_reveals_less() -> None:
    shares = [0.4, 0.35, 0.25]
    sizes = [qif.iid_vulnerability(protocol(n, 3, Fraction(3, 5)), frequencies=shares).upper for n in (1, 3, 10, 100)]
    assert sizes == sorted(sizes, reverse=True)
    noises = [Fraction(2, 5), Fraction(3, 5), Fraction(1)]
    right = [qif.iid_vulnerability(protocol(10, 3, truth), frequencies=shares).upper for truth in noises]
    assert right == sorted(right)


def test_the_prior() -> None:
    assert qif.iid_prior_vulnerability([0.5, 0.3, 0.2]).upper == 0.5


@pytest.mark.parametrize("bad", [[0.5, 0.6], [0.5, 0.3, 0.2], [1.5, -0.5], [float("nan"), 1], ["a", "b"], [[0.5, 0.5]]])
def test_refuses_frequencies(bad: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="`frequencies` must be"):
        qif.iid_vulnerability(protocol(3, 2, Fraction(3, 5)), frequencies=bad)


@pytest.mark.parametrize("dummies", [0, 1])
def test_other_mechanisms_and_dummies_against_enumeration(dummies: int) -> None:
    shares = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    table = channel(3, Fraction(3, 5))
    survey = hs.Protocol(randomizer=hs.MatrixRandomizer(table), shuffler=hs.Scrambler(dummies=dummies), n=3)
    response = hs.RandomizedResponse.from_truth_probability(k=3, p=0.6)
    for each in (survey, hs.Protocol(randomizer=response, shuffler=hs.Scrambler(dummies=1), n=3)):
        found = qif.iid_vulnerability(each, frequencies=floats(shares))
        true = float(iid_success(3, table, shares, each.shuffler.dummies))
        assert found.kind == ("bracket" if each.shuffler.dummies else "exact")
        assert found.lower <= true * (1 + 1e-14)
        assert true * (1 - 1e-14) <= found.upper
        assert found.upper == pytest.approx(true, rel=1e-10)
    wide = hs.Protocol(randomizer=hs.SubsetSelection(k=1501, w=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=3)
    with pytest.raises(NumericalError, match="Merge values"):
        qif.iid_vulnerability(wide, frequencies=[1.0, *[0.0] * 1500])


def test_refuses_what_it_cannot_answer() -> None:
    shares = [0.5, 0.3, 0.2]
    noisy = OtherShuffle(revealed=Reveals.NOISY_ORDER)
    with pytest.raises(UnsupportedProtocolError, match="noisy order"):
        qif.iid_vulnerability(protocol(3, 3, Fraction(3, 5), noisy), frequencies=shares)
    with pytest.raises(NumericalError, match="Merge values"):
        qif.iid_vulnerability(protocol(3, 1501, Fraction(3, 5)), frequencies=[1.0, *[0.0] * 1500])
    with pytest.raises(NumericalError, match="smaller n"):
        qif.iid_vulnerability(protocol(10**13, 2, Fraction(3, 5)), frequencies=[0.4, 0.6])
    with pytest.raises(InvalidInputError, match="`samples` must be"):
        qif.iid_vulnerability(protocol(3, 3, Fraction(3, 5)), frequencies=shares, samples=-1)
    with pytest.raises(InvalidInputError, match="`confidence` must be"):
        qif.iid_vulnerability(protocol(3, 3, Fraction(3, 5)), frequencies=shares, confidence=1)
