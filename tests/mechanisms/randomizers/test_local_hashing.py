from __future__ import annotations

import itertools
import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import LocalHashing
from hushuffle.mechanisms.randomizers._hash_families import (
    AffineHashes,
    BinaryHashes,
    HashFamily,
    next_prime,
    walsh_hadamard,
)

FAMILIES: list[HashFamily] = [
    BinaryHashes(k=2, g=2),
    BinaryHashes(k=6, g=2),
    BinaryHashes(k=17, g=4),
    BinaryHashes(k=3, g=16),
    BinaryHashes(k=9, g=8),
    AffineHashes(k=2, g=2),
    AffineHashes(k=8, g=3),
    AffineHashes(k=12, g=5),
    AffineHashes(k=5, g=100),
    AffineHashes(k=23, g=4),
]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_collisions_by_enumeration_of_the_family(family: HashFamily) -> None:
    hashes = np.array(list(family.every()))
    assert len(hashes) == family.size
    assert len(set(map(tuple, hashes.tolist()))) == family.size
    seen = [family.buckets(hashes, np.full(len(hashes), x)) for x in range(family.k)]
    assert all(0 <= int(buckets.min()) <= int(buckets.max()) < family.g for buckets in seen)
    for a, b in itertools.combinations(range(family.k), 2):
        assert Fraction(int((seen[a] == seen[b]).sum()), family.size) == family.collision


@pytest.mark.parametrize("k", [2, 3, 5, 17, 64, 100, 1031])
@pytest.mark.parametrize("g", [2, 3, 4, 7, 16, 64, 1000])
def test_counts_are_those_of_testing_every_value(k: int, g: int) -> None:
    rng = hs.reproducible(k * g)
    for hashing in (LocalHashing(k=k, g=g, epsilon=1.0), LocalHashing(k=k, g=g, epsilon=1.0, family="affine")):
        for size in (0, 60):
            reports = hashing.randomize(rng.integers(k, size), rng=rng)
            slow = [
                int((hashing.hashes.buckets(reports[:, :-1], np.full(size, x)) == reports[:, -1]).sum())
                for x in range(k)
            ]
            assert hashing.counts(reports).counts.tolist() == slow


def test_inverses_from_a_table_or_one_by_one() -> None:
    family = AffineHashes(k=101, g=10)
    factors = np.arange(1, 101)
    for many in (factors, np.tile(factors, 3)):
        assert bool(np.all(family._inverses(many) * many % 101 == 1))
    assert AffineHashes(k=2, g=2)._inverses(np.array([1])).tolist() == [1]


@pytest.mark.parametrize(("k", "g"), [(3, 2), (9, 2), (9, 4), (7, 8), (17, 16), (40, 4)])
def test_three_values_share_a_bucket_as_often_as_the_family_says(k: int, g: int) -> None:
    family = BinaryHashes(k=k, g=g)
    hashes = np.array(list(family.every()))
    seen = np.stack([family.buckets(hashes, np.full(len(hashes), x)) for x in range(k)])
    first, least, most = family.triples
    shared = {
        (x, y, z): Fraction(int(np.sum((seen[x] == seen[y]) & (seen[x] == seen[z]))), len(hashes))
        for x, y, z in combinations(range(k), 3)
    }
    assert least <= min(shared.values())
    assert max(shared.values()) == shared[0, 1, 2] == first == most


def test_three_values_share_an_affine_bucket_as_often_as_the_lattice_says() -> None:
    """All functions and triples of 600 families. The bound's excess over the largest probability is small."""
    tested, excess = 0, []
    for prime in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 53, 61, 73, 89, 101, 127, 151):
        for g in range(2, 34):
            first, least, most = AffineHashes(k=prime, g=g).triples
            drawn, steps = np.arange(prime), np.arange(1, prime)
            here, there = drawn % g, (drawn + steps[:, None]) % prime % g
            # A triple is an affine image of 0, 1 and t.
            shared = {
                t: Fraction(int(np.sum((here == there) & (here == (drawn + t * steps[:, None]) % prime % g))), prime)
                / (prime - 1)
                for t in range(2, prime)
            }
            assert shared[2] == first
            assert least <= min(shared.values())
            assert max(shared.values()) <= most
            tested += 1
            excess.append(float(most - max(shared.values())) * g)
    assert tested >= 600
    assert np.median(excess) < 0.2


@pytest.mark.parametrize(
    "hashing",
    [
        LocalHashing(k=6, g=4, epsilon=1.0),
        LocalHashing(k=4, g=8, epsilon=0.7),
        LocalHashing(k=5, g=3, epsilon=2.0),
        LocalHashing(k=2, g=2, epsilon=1.0, family="affine"),
    ],
)
def test_value_laws_are_the_channel_by_classes(hashing: LocalHashing) -> None:
    law, channel = hashing.law().pairs()[0], hashing.channel()
    reports = np.array(channel.outputs)
    seen = [hashing.hashes.buckets(reports[:, :-1], np.full(len(reports), x)) for x in law.labels]
    # By which of the values share a bucket, and which one is reported.
    each = np.stack([*seen, reports[:, -1]], axis=1)
    names = [tuple(x == y for x, y in combinations(row, 2)) for row in each.tolist()]
    order = sorted(set(names))
    place = np.array([order.index(name) for name in names])

    def by_class(masses: npt.NDArray[Any]) -> list[float]:
        return sorted(np.bincount(place, weights=masses).tolist())

    for row, label in zip(law.rows, law.labels, strict=True):
        assert sorted(row.tolist()) == pytest.approx(by_class(channel.matrix[label]), abs=1e-14)
    assert sorted(law.blanket.tolist()) == pytest.approx(by_class(np.full(len(reports), 1 / len(reports))), abs=1e-14)
    assert bool(np.all(law.weight * law.blanket <= law.rows + 1e-15))


@pytest.mark.parametrize(("k", "g"), [(5, 3), (7, 3), (11, 3), (11, 5), (5, 2)])
def test_affine_hashes_have_the_figures_of_their_whole_channel(k: int, g: int) -> None:
    hashing = LocalHashing(k=k, g=g, epsilon=1.0, family="affine")
    for n in (40, 400):
        found, whole = (
            hs.dp.epsilon(hs.Protocol(randomizer=each, shuffler=hs.UniformShuffle(), n=n), delta=1e-6)
            for each in (hashing, hs.MatrixRandomizer(channel=hashing.channel()))
        )
        assert found.lower <= whole.upper
        assert found.lower <= found.upper <= 1.2 * found.lower
        assert whole.lower <= found.upper * (1 + 1e-9)


def test_best_g_has_the_least_variance() -> None:
    for epsilon in (0.1, 0.5, 1.0, 1.7, 2.5, 4.0):
        best, growth = LocalHashing.best_g(epsilon), math.exp(epsilon)
        variance = {g: (g + growth - 1) ** 2 / (g - 1) for g in range(2, 200)}
        assert variance[best] == min(variance.values())
    assert LocalHashing.best_g(60.0) == 2 * 10**9


def test_best_fast_g_costs_little() -> None:
    for epsilon in np.linspace(0.05, 5.5, 110).tolist():
        fast, best, growth = LocalHashing.best_fast_g(epsilon), LocalHashing.best_g(epsilon), math.exp(epsilon)
        assert fast <= 256
        assert fast & (fast - 1) == 0
        assert (fast + growth - 1) ** 2 / (fast - 1) <= 1.08 * (best + growth - 1) ** 2 / (best - 1)
    assert LocalHashing.best_fast_g(8.0) == LocalHashing.best_g(8.0)


@pytest.mark.parametrize("theta", [1e-12, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("g", [2, 16, 1000, 10**8])
def test_theta_is_kept_and_hardly_less(g: int, theta: float) -> None:
    made = float(LocalHashing.from_theta(k=100, g=g, theta=theta).law().bucket.theta)
    assert theta * (1 - 1e-7) - 2**-63 <= made <= theta
    assert LocalHashing.from_theta(k=100, g=g, theta=1.0).epsilon == math.inf


def test_a_heavy_value_among_a_hundred_thousand_is_found() -> None:
    n = 20_000
    survey = hs.Protocol(randomizer=LocalHashing(k=100_000, g=4, epsilon=2.0), shuffler=hs.UniformShuffle(), n=n)
    values = np.where(np.arange(n) < n // 2, 77_777, np.arange(n))
    estimate = hs.estimate(survey.collect(values, rng=hs.reproducible(1)), protocol=survey)
    assert abs(estimate.frequencies[77_777] - 0.5) < 6 * estimate.standard_errors[77_777]  # 2e-9
    assert int(estimate.frequencies.argmax()) == 77_777


def test_buckets_beyond_every_residue() -> None:
    hashing = LocalHashing(k=10**6, g=10**8, epsilon=12.0)
    assert hashing.collision == 0
    reports = hashing.randomize(np.full(2000, 5), rng=hs.reproducible(1))
    assert (
        hashing.counts(reports).counts[5]
        == (hashing.hashes.buckets(reports[:, :2], np.full(2000, 5)) == reports[:, 2]).sum()
    )


def test_no_noise_and_description() -> None:
    hashing = LocalHashing(k=50, g=4, epsilon=math.inf)
    values = np.arange(50)
    reports = hashing.randomize(values, rng=hs.reproducible(0))
    assert np.array_equal(hashing.hashes.buckets(reports[:, :-1], values), reports[:, -1])
    assert hashing.local_epsilon == math.inf
    assert "no noise" in hashing.describe()


def test_helpers() -> None:
    signs = np.array([[(-1) ** (i & j).bit_count() for j in range(16)] for i in range(16)])
    values = np.arange(16) ** 2
    assert walsh_hadamard(values).tolist() == (signs @ values).tolist()
    assert [next_prime(low) for low in (2, 3, 4, 14, 90)] == [2, 3, 5, 17, 97]


def test_large_families_have_no_matrix() -> None:
    with pytest.raises(UnsupportedProtocolError, match="is too large"):
        LocalHashing(k=1000, g=4, epsilon=1.0).channel()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 1, "g": 4, "epsilon": 1.0}, r"`k` must be an integer from 2 to 134217728"),
        ({"k": 5, "g": 1, "epsilon": 1.0}, r"`g` must be an integer from 2 to 2000000000"),
        ({"k": 5, "g": 4, "epsilon": 0.0}, r"`epsilon` must be > 0"),
        ({"k": 5, "g": 4, "epsilon": 1e-20}, r"`epsilon` must be large enough"),
        ({"k": 5, "g": 3, "epsilon": 1.0, "family": "binary"}, r"`g` must be a power of two up to 65536"),
        ({"k": 5, "g": 3, "epsilon": 1.0, "family": "md5"}, r"`family` must be auto, binary or affine"),
    ],
)
def test_bad_parameters(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LocalHashing(**arguments)  # type: ignore[arg-type]


def test_bad_reports() -> None:
    hashing = LocalHashing(k=5, g=4, epsilon=1.0)
    with pytest.raises(InvalidInputError, match=r"`reports` must be of shape \(n, 2\)"):
        hashing.counts(np.zeros((3, 3), dtype=np.int64))
    with pytest.raises(InvalidInputError, match=r"`reports` must be integers from 0 to 3"):
        hashing.counts(np.array([[0, 4]]))


@pytest.mark.parametrize(("k", "g"), [(8, 3), (7, 3), (25, 5), (4, 11), (24, 4)])
def test_the_number_of_supported_values_is_that_of_a_count(k: int, g: int) -> None:
    hashing = LocalHashing(k=k, g=g, epsilon=1.0)
    reports = np.concatenate(
        [hashing.dummies(200, rng=hs.reproducible(1)), np.zeros((1, len(hashing.hashes.limits) + 1), dtype=np.int64)]
    )
    assert hashing.supported(reports).tolist() == hashing.supports(reports, np.arange(k)).sum(axis=0).tolist()
