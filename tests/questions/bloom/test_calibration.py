"""The smallest flip probability: it keeps the promise, and hardly less would not."""

from __future__ import annotations

import math

import pytest

from hushuffle.curves.laws.flipped_columns import FlippedColumns
from hushuffle.errors import InvalidInputError
from hushuffle.questions import bloom


@pytest.mark.parametrize(
    ("filters", "bits", "epsilon", "delta", "hashes"),
    [(1, 200, 0.5, 1e-3, 1), (2, 5000, 0.2, 1e-4, 1), (3, 5000, 0.5, 1e-3, 2)],
)
def test_the_promise_holds(filters: int, bits: int, epsilon: float, delta: float, hashes: int) -> None:
    found = bloom.estimate_flip_prob(filters=filters, bits=bits, epsilon=epsilon, delta=delta, hashes=hashes)
    assert found.certified.upper <= epsilon
    assert found.certified.upper >= epsilon * (1 - 1e-4)
    assert found.certified == bloom.epsilon(filters=filters, bits=bits, p=found.p, delta=delta, hashes=hashes)
    less = bloom.epsilon(filters=filters, bits=bits, p=found.p * (1 - 1e-4), delta=delta, hashes=hashes)
    assert less.upper > epsilon
    assert (found.basis, found.epsilon, found.delta) == ("certified", epsilon, delta)


def test_on_the_published_pair() -> None:
    certified = bloom.estimate_flip_prob(filters=2, bits=10**4, epsilon=0.5, delta=1e-3)
    pair = bloom.estimate_flip_prob(filters=2, bits=10**4, epsilon=0.5, delta=1e-3, basis="pair")
    assert pair.p < certified.p
    assert pair.pair.upper <= 0.5
    assert pair.pair.upper == pytest.approx(0.5, rel=1e-3)
    assert pair.certified.upper > 0.5
    assert pair.certified.upper == pytest.approx(0.5, rel=0.03)
    again = bloom.estimate_flip_prob(filters=2, bits=10**4, epsilon=0.5, delta=1e-3, basis="pair")
    assert again == pair  # deterministic


def test_a_target_that_needs_hardly_any_noise() -> None:
    found = bloom.estimate_flip_prob(filters=1, bits=10, epsilon=8.0, delta=1e-9)
    assert found.certified.upper <= 8.0
    assert found.p == pytest.approx(1 / (1 + math.exp(8.0)), rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"basis": "hope"}, "basis"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"hashes": 101}, "hashes"),
        ({"hashes": 2, "basis": "pair"}, "certified"),
        ({"filters": 0}, "filters"),
        ({"bits": 0}, "bits"),
    ],
)
def test_arguments_out_of_range(arguments: dict[str, object], message: str) -> None:
    whole: dict[str, object] = {"filters": 2, "bits": 100, "epsilon": 1.0, "delta": 1e-3, **arguments}
    with pytest.raises(InvalidInputError, match=message):
        bloom.estimate_flip_prob(**whole)  # type: ignore[arg-type]


def test_other_pairs_are_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should pairs at a shorter distance need more noise, they get it."""
    seen = FlippedColumns.pooled

    def pooled(self: FlippedColumns, epsilon: float, *, enough: float) -> float:
        return seen(self, epsilon, enough=enough) * (1.0 if self.distances else 1.5)

    plain = bloom.estimate_flip_prob(filters=2, bits=5000, epsilon=0.2, delta=1e-3)
    monkeypatch.setattr(FlippedColumns, "pooled", pooled)
    more = bloom.estimate_flip_prob(filters=2, bits=5000, epsilon=0.2, delta=1e-3)
    assert more.p > plain.p * 1.001
    assert more.certified.upper <= 0.2
