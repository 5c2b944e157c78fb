from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hushuffle.collection.engines import spark as module
from hushuffle.collection.engines.spark import interleaved
from hushuffle.model.report_layout import Packed
from hushuffle.randomness import reproducible


def source(mark: int, size: int) -> tuple[int, Any]:
    def take(count: int, start: int) -> Packed:
        return np.array([(mark, start + i) for i in range(count)], dtype=[("mark", "u1"), ("number", "u4")])

    return size, take


@pytest.mark.parametrize(("reports", "dummies"), [(3, 2), (2, 3)])
def test_all_interleavings_are_equally_likely(reports: int, dummies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten ways to interleave, 3,000 draws: chi-square; false alarm 1e-6."""
    monkeypatch.setattr(module, "_BLOCK", 2)
    rng = reproducible(5)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(3_000):
        whole = np.concatenate(list(interleaved(source(0, reports), source(1, dummies), rng=rng)))
        seen[tuple(whole["mark"].tolist())] += 1
        for mark in (0, 1):
            numbers = whole["number"][whole["mark"] == mark]
            assert np.array_equal(numbers, np.arange(numbers.size))
    assert len(seen) == 10
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6


def test_interleaving_with_nothing() -> None:
    assert sum(block.size for block in interleaved(source(0, 0), source(1, 5), rng=reproducible(1))) == 5
    assert list(interleaved(source(0, 0), source(1, 0), rng=reproducible(1))) == []
