from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.estimation.logos import marginal, true_logos
from oracles.bloom_reach import estimated_moments, flip_law, inverted


def columns(k: int, n: int, p: float = 0.2) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.BitFlipping(width=k, p=p), shuffler=hs.UniformShuffle(), n=n)


@dataclass(frozen=True, kw_only=True)
class AllReleases:
    """Every release of some true columns, with its chance."""

    truth: tuple[int, ...]
    k: int
    p: float

    def mean(self, what: str) -> np.ndarray:
        law = hs.BitFlipping(width=self.k, p=self.p).channel().matrix
        protocol, total = columns(self.k, len(self.truth), self.p), 0.0
        for release in np.ndindex(*[1 << self.k] * len(self.truth)):
            chance = np.prod([law[x, y] for x, y in zip(self.truth, release, strict=True)])
            found = true_logos(np.array(release), protocol=protocol)
            total = total + chance * (found.counts if what == "counts" else found.covariance())
        return np.asarray(total)


@pytest.mark.parametrize(
    ("truth", "k", "p"), [((0, 1, 1), 1, 0.25), ((0, 3, 1), 2, 0.125), ((2, 2), 2, 0.375), ((5, 7), 3, 0.25)]
)
def test_mean_and_covariance_by_enumeration(truth: tuple[int, ...], k: int, p: float) -> None:
    mean, covariance = estimated_moments(truth, k, Fraction(p))
    releases = AllReleases(truth=truth, k=k, p=p)
    assert mean == [truth.count(logo) for logo in range(1 << k)]
    assert releases.mean("counts") == pytest.approx(np.array(mean, dtype=float), abs=1e-9)
    # The estimated covariance is unbiased as well.
    exact = np.array([[float(each) for each in row] for row in covariance])
    assert releases.mean("covariance") == pytest.approx(exact, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_counts_by_the_inverse_matrix(k: int) -> None:
    counts = np.random.default_rng(k).integers(0, 1000, size=1 << k)
    protocol = columns(k, int(counts.sum()))
    found = true_logos(hs.Histogram(counts=counts), protocol=protocol)
    flip = hs.BitFlipping(width=k, p=0.2).flip
    if k < 6:
        back = np.array([[float(each) for each in row] for row in inverted(flip_law(k, flip))])
        assert found.counts == pytest.approx(back @ counts, rel=1e-10)
    matrix = found.covariance()
    vector = np.random.default_rng(1).normal(size=1 << k)
    assert found.covariance_times(vector) == pytest.approx(matrix @ vector, rel=1e-9)
    assert found.standard_errors**2 == pytest.approx(np.diag(matrix), rel=1e-9)
    assert found.covariance_times(np.ones(1 << k)) == pytest.approx(np.zeros(1 << k), abs=1e-6)
    assert (found.publishers, repr(found)[:26]) == (k, f"LogoEstimate(publishers={k},")


def test_twenty_publishers() -> None:
    rng = np.random.default_rng(1)
    logos = rng.integers(1 << 20, size=10**6)
    found = true_logos(logos, protocol=columns(20, 10**6, 0.05))
    assert found.counts.sum() == pytest.approx(10**6)
    assert found.covariance_times(np.eye(1, 1 << 20)[0])[0] == pytest.approx(found.standard_errors[0] ** 2)
    with pytest.raises(UnsupportedProtocolError, match="covariance_times"):
        found.covariance()
    with pytest.raises(InvalidInputError, match="`vector` must be"):
        found.covariance_times([1.0])


@pytest.mark.parametrize("publishers", [(0,), (2,), (3, 0), (0, 1, 2, 3), (2, 3, 1)])
def test_marginals_of_reports_and_of_their_counts(publishers: tuple[int, ...]) -> None:
    logos = np.random.default_rng(1).integers(16, size=500)
    protocol = columns(4, 500)
    expected = np.zeros(1 << len(publishers), dtype=int)
    for logo in logos:
        expected[sum((int(logo) >> each & 1) << place for place, each in enumerate(publishers))] += 1
    for reports in (
        logos,
        hs.Transcript(reports=logos, people=500),
        hs.Histogram(counts=np.bincount(logos, minlength=16)),
    ):
        assert np.array_equal(marginal(reports, protocol=protocol, publishers=publishers), expected)


def test_what_is_refused() -> None:
    counts = hs.Histogram(counts=[5, 5])
    with pytest.raises(InvalidInputError, match=r"n = 11 columns in all, got reports=10"):
        true_logos(counts, protocol=columns(1, 11))
    with pytest.raises(InvalidInputError, match=r"counts of 2\*\*2 bit patterns"):
        true_logos(counts, protocol=columns(2, 10))
    with pytest.raises(InvalidInputError, match="n = 3 bit patterns, got reports=<2 bit patterns>"):
        true_logos(np.array([0, 1]), protocol=columns(1, 3))
    with pytest.raises(UnsupportedProtocolError, match="at most 20 publishers"):
        true_logos(np.array([0, 1]), protocol=columns(21, 2))
    answers = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=10)
    with pytest.raises(UnsupportedProtocolError, match="needs the randomizer BitFlipping, not"):
        true_logos(counts, protocol=answers)
    dummies = hs.Protocol(randomizer=hs.BitFlipping(width=1, p=0.1), shuffler=hs.Scrambler(dummies=1), n=9)
    with pytest.raises(UnsupportedProtocolError, match="dummy columns"):
        true_logos(counts, protocol=dummies)
