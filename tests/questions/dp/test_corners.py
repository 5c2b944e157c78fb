"""Independent checks at corners where floats cancel: mpmath, no code of the library."""

from __future__ import annotations

import mpmath as mp
import pytest

import hushuffle as hs


def _law(rr: hs.RandomizedResponse) -> tuple[mp.mpf, mp.mpf]:
    law = rr.law()
    return mp.mpf(law.truth.numerator) / law.truth.denominator, mp.mpf(law.lie.numerator) / law.lie.denominator


@pytest.mark.parametrize(("k", "e0", "share"), [(2, 1e-4, 1 - 3.3e-14), (100, 1.8e-10, 0.999), (2, 2e-6, 1 - 2.4e-11)])
def test_one_person_delta_is_not_understated(k: int, e0: float, share: float) -> None:
    for shuffler in (hs.NoShuffle(), hs.UniformShuffle()):
        own = hs.RandomizedResponse(k=k, epsilon=e0)
        protocol = hs.Protocol(randomizer=own, shuffler=shuffler, n=1)
        with mp.workdps(60):
            truth, lie = _law(own)
            assert hs.dp.delta(protocol, epsilon=e0 * share).upper >= truth - mp.exp(e0 * share) * lie


def test_bit_flipping_with_rare_flips() -> None:
    flipping = hs.BitFlipping(width=1, p=1e-12)
    protocol = hs.Protocol(randomizer=flipping, shuffler=hs.UniformShuffle(), n=1)
    epsilon = protocol.randomizer.local_epsilon - 1
    with mp.workdps(60):
        flip = mp.mpf(flipping.flip.numerator) / flipping.flip.denominator
        found, value = hs.dp.delta(protocol, epsilon=epsilon), 1 - flip - mp.exp(epsilon) * flip
        assert found.lower <= value <= found.upper


def test_composed_lower_end_counts_dummies() -> None:
    own = hs.RandomizedResponse(k=4, epsilon=2.5)
    protocol = hs.Protocol(randomizer=own, shuffler=hs.Scrambler(dummies=1), n=1)
    # n = 1, one dummy: enumerate two rounds at epsilon = 0, the total variation of the product.
    with mp.workdps(40):
        truth, lie = _law(own)
        laws = []
        for value in (0, 1):
            law: dict[tuple[int, ...], mp.mpf] = {}
            for report in range(4):
                for dummy in range(4):
                    key = tuple(sorted((report, dummy)))
                    law[key] = law.get(key, mp.mpf(0)) + (truth if report == value else lie) / 4
            laws.append(law)
        p, q = laws
        exact = sum(max(p[x] * p[y] - q[x] * q[y], mp.mpf(0)) for x in p for y in p)
        found = hs.dp.compose_delta([(protocol, 2)], epsilon=0.0)
        assert found.lower <= exact <= found.upper


def test_composition_without_common_reports_in_floats() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=40.0), shuffler=hs.UniformShuffle(), n=1)
    assert hs.dp.compose([(protocol, 3)], delta=0.5).upper > 39
