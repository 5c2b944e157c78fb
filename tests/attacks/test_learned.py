"""Reports whose pieces say nothing alone: whole reports are counted, or a classifier sees the pieces together."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushuffle.attacks.audit import audit_reports, audit_sampler
from hushuffle.attacks.learned import codes_of, columns_of
from hushuffle.errors import InvalidInputError, MissingDependencyError

Codes = npt.NDArray[np.int64]


def hidden(width: int, places: tuple[int, ...], *, epsilon: float = 1.0) -> Callable[[Codes], Any]:
    """Return a device of random bits: the sum of those at `places`, modulo 2, is the value or, now and then, not."""
    rng, keep = np.random.default_rng(1), math.exp(epsilon) / (1 + math.exp(epsilon))

    def device(values: Codes) -> Any:
        bits = rng.integers(2, size=(values.size, width), dtype=np.uint8)
        told = (values ^ (rng.random(values.size) > keep)).astype(np.uint8)
        others = bits[:, list(places[1:])].sum(axis=1, dtype=np.uint8) % 2
        bits[:, places[0]] = others ^ told
        return bits

    return device


@pytest.mark.parametrize(("width", "places"), [(8, (1, 3, 4)), (32, (2, 5))])
def test_a_sum_of_bits_modulo_two_is_found(width: int, places: tuple[int, ...]) -> None:
    found = audit_sampler(hidden(width, places), (0, 1), claimed=1.0, trials=120_000, confidence=0.999)
    assert not found.refuted
    assert found.epsilon.lower > 0.9


def test_piece_by_piece_next_to_nothing_is_found_there() -> None:
    found = audit_sampler(hidden(32, (2, 5)), (0, 1), claimed=1.0, trials=60_000)
    reports = [hidden(32, (2, 5))(np.full(20_000, value)) for value in (0, 1)]
    alone = audit_reports(reports[0], reports[1], claimed=1.0, classify=False)
    assert alone.epsilon.lower < 0.2
    assert found.epsilon.lower > 0.5


def test_an_honest_device_is_not_accused_by_a_classifier() -> None:
    device = hidden(32, (2, 5), epsilon=0.5)
    accused = sum(audit_sampler(device, (0, 1), claimed=0.5, trials=2000, confidence=0.8).refuted for _ in range(6))
    assert accused <= 4


def test_bytes_tuples_and_texts_of_many_pieces_are_taken_apart() -> None:
    bits = hidden(32, (2, 5))(np.zeros(200, dtype=np.int64))
    expected = bits.tolist()
    assert columns_of([[bytes(row) for row in np.packbits(bits, axis=1)]]).tolist() == expected
    assert columns_of([[tuple(row) for row in expected]]).tolist() == expected
    words = columns_of([["".join("ab"[bit] for bit in row) for row in expected]])
    assert (words == ord("b")).astype(int).tolist() == expected


def test_tuples_of_numbers_are_numbers() -> None:
    rng = np.random.default_rng(4)
    noisy = [
        [tuple(row) for row in (rng.laplace(size=(30_000, 2)) + np.array([value, 0.0])).tolist()]
        for value in (0.0, 1.0)
    ]
    found = audit_reports(noisy[0], noisy[1], claimed=1.0, confidence=0.999, classify=False)
    assert 0.7 < found.epsilon.lower <= 1.0


def test_texts_that_are_numbers_are_numbers_and_others_of_several_lengths_are_whole() -> None:
    rng = np.random.default_rng(3)
    told = [[f"{number:.6f}" for number in rng.laplace(value, 1.0, 40_000)] for value in (0.0, 1.0)]
    assert 0.85 < audit_reports(told[0], told[1], claimed=1.0, confidence=0.999).epsilon.lower <= 1.0
    mixed = ["a", "bb", "ccc"] * 3 + [json.dumps({"x": place}) for place in range(100)]
    assert columns_of([mixed, mixed]).shape == (218, 1)


def test_codes_know_what_was_learned_and_nothing_else() -> None:
    first, second = codes_of(columns_of([[1.5, 2.5, 9.0], [2.5, 1.5, 1.5]]), 3, 2)
    assert first[:, 0].tolist() == [0, 1, 2]
    assert second[:, 0].tolist() == [1, 0, 0]
    words = codes_of(columns_of([["a", "c"] * 30, ["b", "a"] * 30]), 60, 1)
    assert [words[0][0, 0], words[0][1, 0], words[1][0, 0]] == [0, 2, 1]


def test_reports_of_several_widths_or_kinds_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="of one type and length"):
        columns_of([np.zeros((3, 2)), np.zeros((3, 3))])
    with pytest.raises(InvalidInputError, match="numbers, strings, bytes"):
        columns_of([[[1]], [[2]]])


def test_without_scikit_learn_pieces_are_added_up_and_a_classifier_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.attacks.learned.find_spec", lambda _name: None)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    reports = [hidden(32, (2, 5))(np.full(4000, value)) for value in (0, 1)]
    assert audit_reports(reports[0], reports[1], claimed=1.0).epsilon.lower < 0.5
    with pytest.raises(MissingDependencyError, match="scikit-learn"):
        audit_reports(reports[0], reports[1], claimed=1.0, classify=True)
