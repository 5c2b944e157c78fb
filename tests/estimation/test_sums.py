"""Sums from mixed shares: unbiased, with the error that is printed; what is missing or fake."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.attacks.audit import audit_reports
from hushuffle.errors import InvalidInputError


def trials(protocol: hs.SplitAndMix, values: np.ndarray, times: int) -> np.ndarray:
    rng = hs.reproducible(7)
    return np.array(
        [hs.estimate_sum(protocol.collect(values, rng=rng), protocol=protocol).total[0] for _ in range(times)]
    )


@pytest.mark.parametrize(
    "protocol",
    [
        hs.SplitAndMix(low=-3, high=4, n=40, epsilon=0.5, delta=1e-6),
        hs.SplitAndMix(low=-3, high=4, levels=8, n=40, epsilon=2.0, delta=1e-6, honest=0.6),
        hs.SplitAndMix(low=-3, high=4, levels=3, n=40, epsilon=4.0, delta=1e-6, honest=0.9),
    ],
    ids=["integers", "rounded", "coarse"],
)
@pytest.mark.parametrize("answer", [40, 36])
def test_the_sum_is_unbiased_with_the_predicted_error_and_interval(protocol: hs.SplitAndMix, answer: int) -> None:
    if answer < protocol.needed:
        return
    whole = np.arange(answer) % 8 - 3
    values = whole if protocol.levels is None else np.full(answer, -3 + 1.5 * protocol.step)  # the worst for rounding
    found, times = trials(protocol, values, 2000), 2000
    error = protocol.standard_error(answer)
    assert abs(found.mean() - values.sum()) < 5 * error / math.sqrt(times)
    assert found.std() == pytest.approx(error, rel=0.1)
    one = hs.estimate_sum(protocol.collect(values), protocol=protocol)
    assert (one.people, one.standard_error) == (answer, error)
    for confidence in (0.5, 0.95):
        inside = np.mean(np.abs(found - values.sum()) <= one.half_width(confidence))
        assert inside > confidence - 0.03
        smaller = one.half_width(confidence) - (2 if protocol.levels else 1) * protocol.step
        assert np.mean(np.abs(found - values.sum()) < smaller) < confidence + 0.03


def test_who_drops_out_makes_less_noise_but_never_too_little() -> None:
    protocol = hs.SplitAndMix(low=0, high=1, n=1000, epsilon=1.0, delta=1e-6, honest=0.8)
    central = math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1))
    assert protocol.standard_error(800) == pytest.approx(central, rel=1e-9)
    assert protocol.standard_error() == pytest.approx(central * math.sqrt(1000 / 800), rel=1e-9)
    messages = protocol.collect(np.ones(799 + 1, dtype=int))
    assert hs.estimate_sum(messages, protocol=protocol).people == 800
    with pytest.raises(InvalidInputError, match=r"too small for the guarantee\. Release nothing"):
        hs.estimate_sum(messages[:, : -protocol.messages], protocol=protocol)


def test_the_noise_of_many_people_fits_the_modulus() -> None:
    """The bound of the tail, against the law: for as many people as needed and twice as many."""
    for honest in (1.0, 0.5):
        protocol = hs.SplitAndMix(low=0, high=1, n=100, epsilon=0.05, delta=1e-6, honest=honest)
        reach, ratio = protocol.noise_reach(100), protocol.noise.chance
        law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-4 * reach, 4 * reach + 1))
        if honest < 1:
            law = np.convolve(law, law, mode="same")
        beyond = law[np.abs(np.arange(-4 * reach, 4 * reach + 1)) > reach].sum()
        assert 1e-16 < beyond < 2**-40
        assert protocol.margin >= reach


def test_every_sum_has_a_residue_of_its_own() -> None:
    protocol = hs.SplitAndMix(low=10, high=13, n=30, epsilon=1.0, delta=1e-6)
    reach = protocol.noise_reach(30)
    messages = np.zeros(30 * protocol.messages, dtype=np.int64)
    for code in (-reach, 0, 90, 90 + reach):
        messages[0] = code % protocol.modulus
        assert hs.estimate_sum(messages, protocol=protocol).total.tolist() == [300 + code]
    for code in (-reach - 1, 90 + reach + 1):
        messages[0] = code % protocol.modulus
        with pytest.raises(InvalidInputError, match="must be shares of 30 numbers from 10 to 13, got messages=<"):
            hs.estimate_sum(messages, protocol=protocol)


def test_a_message_lost_and_one_doubled_are_noticed_as_often_as_is_said() -> None:
    """The sum is uniform then, and what people cannot have is refused: less than half of all residues."""
    protocol, rng = hs.SplitAndMix(low=0, high=24, levels=101, n=200, epsilon=0.5, delta=1e-6), hs.reproducible(3)
    possible = (200 * protocol.top + 2 * protocol.noise_reach(200) + 1) / protocol.modulus
    assert 0.5 <= possible < 0.99
    refused = 0
    for _ in range(400):
        messages = protocol.collect(np.full(200, 7.2), rng=rng)[0]
        messages[0] = messages[1]
        try:
            found = hs.estimate_sum(messages, protocol=protocol)
        except InvalidInputError:
            refused += 1
        else:
            far = protocol.step * protocol.noise_reach(200)
            assert -far <= found.total[0] <= 24 * 200 + far
    assert abs(refused / 400 - (1 - possible)) < 0.1


def test_too_many_people_are_not_told_that_they_are_too_few() -> None:
    protocol = hs.SplitAndMix(low=0, high=1, n=10, epsilon=1.0, delta=1e-3)
    messages = np.zeros(11 * protocol.messages, dtype=np.int64)
    with pytest.raises(InvalidInputError, match=r"got people=11. The modulus supports n people"):
        hs.estimate_sum(messages, protocol=protocol)
    with pytest.raises(InvalidInputError, match=r"got people=9. With fewer people the noise is too small"):
        hs.estimate_sum(messages[: 9 * protocol.messages], protocol=protocol)


def test_a_single_fake_person_moves_the_sum_to_any_that_people_could_have() -> None:
    protocol = hs.SplitAndMix(low=0, high=1, n=100, epsilon=3.0, delta=1e-6)
    honest = protocol.shares(np.zeros(99, dtype=np.int64), rng=hs.reproducible(1)).ravel()
    reach = protocol.noise_reach(100)
    for wanted in (-reach + 5, 77, 100 + reach - 5):
        fake = np.full(protocol.messages, 3)
        fake[0] = (wanted - 3 * (protocol.messages - 1)) % protocol.modulus
        found = hs.estimate_sum(np.append(honest, fake), protocol=protocol)
        assert found.total[0] == pytest.approx(wanted, abs=4)
        assert abs(found.total[0]) <= found.moved(1) == 100 + reach
    assert found.moved(0) == 0


def test_messages_of_a_person_that_are_missing_or_wrong_are_refused() -> None:
    protocol = hs.SplitAndMix(low=0, high=1, n=10, epsilon=1.0, delta=1e-3)
    messages = protocol.collect([1] * 10)
    for wrong, word in [
        (messages[:, 1:], "Some messages are missing"),
        (messages - protocol.modulus, "residues from 0"),
        (messages + protocol.modulus, "residues from 0"),
        (messages.astype(float), "array of integers"),
        (np.append(messages, messages, axis=0), "array of integers of shape"),
        (messages[:, :0], "too small"),
    ]:
        with pytest.raises(InvalidInputError, match=word):
            hs.estimate_sum(wrong, protocol=protocol)


def test_coordinates_are_estimated_apart() -> None:
    protocol = hs.SplitAndMix(low=0, high=1, levels=5, n=2000, epsilon=8.0, delta=1e-6, coordinates=3)
    values = np.tile([0.1, 0.5, 0.9], (2000, 1))
    found = hs.estimate_sum(protocol.collect(values, rng=hs.reproducible(3)), protocol=protocol)
    assert np.all(np.abs(found.mean - values[0]) < 6 * found.standard_error / 2000)
    assert found.interval().shape == (3, 2)
    assert np.allclose(found.interval().mean(axis=1), found.total)
    assert "standard_error" in repr(found)
    with pytest.raises(InvalidInputError, match="`confidence` must be in"):
        found.interval(1.0)
    with pytest.raises(InvalidInputError, match="`confidence` must be at most"):
        found.interval(1 - 2.0**-53)
    many = hs.SplitAndMix(low=0, high=1, n=10, epsilon=20.0, delta=0.1, coordinates=20)
    assert ", ..." in repr(hs.estimate_sum(many.collect(np.ones((10, 20), dtype=int)), protocol=many))


def test_an_audit_of_the_release_finds_the_noise_and_no_more() -> None:
    """Two neighbouring datasets of four people, released a hundred thousand times each: the sum is what tells."""
    protocol = hs.SplitAndMix(low=0, high=1, n=4, epsilon=1.0, delta=1e-3)
    rng, times = hs.reproducible(5), 100_000

    def released(target: int) -> np.ndarray:
        codes = np.tile([target, 0, 0, 1], times)
        noise = protocol.noise.draw(rng, codes.size) - protocol.noise.draw(rng, codes.size)
        totals: np.ndarray = (codes + noise).reshape(times, 4).sum(axis=1)
        assert hs.estimate_sum(protocol.collect([target, 0, 0, 1], rng=rng), protocol=protocol).people == 4
        return totals

    found = audit_reports(released(0), released(1), claimed=1.0, delta=1e-3)
    assert not found.refuted
    assert found.epsilon.lower > 0.9


def test_an_audit_of_messages_catches_too_few_of_them() -> None:
    """With two messages of each of two people the sums of pairs give the numbers away; with eight they do not."""
    rng, times = hs.reproducible(9), 20_000

    def pairs(messages: int, numbers: tuple[int, int]) -> np.ndarray:
        """How many of the ways to choose a person's messages have the sum that a person with 0 has."""
        first = rng.integers(64, times * messages).reshape(times, messages)
        second = rng.integers(64, times * messages).reshape(times, messages)
        for sent, number in ((first, numbers[0]), (second, numbers[1])):
            sent[:, -1] = (number - sent[:, :-1].sum(axis=1)) % 64
        mixed = np.concatenate([first, second], axis=1)
        fitting = np.zeros(times, dtype=np.int64)
        for chosen in range(1 << (2 * messages)):
            if chosen.bit_count() == messages:
                mask = [bool(chosen >> place & 1) for place in range(2 * messages)]
                fitting += mixed[:, mask].sum(axis=1) % 64 == 0
        return fitting

    few = audit_reports(pairs(2, (0, 10)), pairs(2, (4, 6)), claimed=0.1, delta=0.05)
    many = audit_reports(pairs(6, (0, 10)), pairs(6, (4, 6)), claimed=0.1, delta=0.5)
    assert few.refuted
    assert not many.refuted
