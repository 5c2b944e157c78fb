"""Axioms of PIE privacy, and bits of a report (Murakami, Takahashi 2021)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.model.report_layout import ReportLayout
from hushuffle_papers.murakami2021 import buckets
from oracles.pie_information import capacity, randomized_response
from papers.rendered import rendered


def test_post_processing_and_mixtures() -> None:
    study = rendered("murakami2021/theorem-3-5")
    assert [claim.verdict for claim in study.claims] == ["confirmed", "confirmed"]
    (table,) = study.tables
    shown, hidden, mean = ([row[column] for row in table.rows] for column in (1, 2, 4))
    for weight, seen, unseen in zip(buckets._WEIGHTS, shown, hidden, strict=True):
        assert isinstance(seen, hs.Bound)
        assert isinstance(unseen, hs.Bound)
        first = randomized_response(4, 2.0)
        other = [row[-1:] + row[:-1] for row in first]
        mixed = [
            [weight * a + (1 - weight) * b for a, b in zip(x, y, strict=True)]
            for x, y in zip(first, other, strict=True)
        ]
        both = [[weight * a for a in x] + [(1 - weight) * b for b in y] for x, y in zip(first, other, strict=True)]
        assert unseen.upper == pytest.approx(capacity(mixed), abs=1e-6)
        assert seen.upper == pytest.approx(capacity(both), abs=1e-6)
        assert unseen.upper <= seen.upper + 1e-9
    assert all(float(str(a)) < float(str(b)) for a, b in pairwise(mean))


def test_a_mechanism_that_says_nothing_has_no_bits() -> None:
    assert buckets.alpha(np.full((4, 2), 0.5)).upper == pytest.approx(0.0, abs=1e-9)


def test_what_a_report_costs() -> None:
    study = rendered("murakami2021/section-4-bits")
    assert [claim.verdict for claim in study.claims] == ["contradicted", "confirmed"]
    layout = ReportLayout(names=("hash", "bucket"), limits=(6, 3))
    assert layout.bits == pytest.approx(math.log2(18))
    for k, g in ((5, 2), (9, 4), (7, 3)):
        hashing = hs.LocalHashing(k=k, g=g, epsilon=1.0)
        assert hashing.layout.bits >= math.log2(k)  # hash and bucket never take fewer bits than the value
