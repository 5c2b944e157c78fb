"""Rules that decide claims see whole lines, at the papers' sizes."""

from __future__ import annotations

import pytest

from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.questions import pie
from hushuffle_papers.base import claim, every, falling, flattening
from hushuffle_papers.meehan2022.example import shift
from hushuffle_papers.murakami2021.buckets import at_scale
from hushuffle_papers.murakami2021.frequencies import VALUES


def test_other_data_neither_confirm_nor_contradict() -> None:
    for holds, own, other in (
        (True, "confirmed", "holds on other data"),
        (False, "contradicted", "differs on other data"),
    ):
        assert claim("", "", holds, "", quote="").verdict == own
        assert claim("", "", holds, "", quote="", stand_in="Another city.").verdict == other
    assert claim("", "", None, "", quote="").verdict == "not testable"


def test_a_single_point_decides_nothing() -> None:
    assert falling([1.0]) is falling([]) is flattening([1, 2], [2.0, 1.0]) is every([]) is None
    assert every([True, falling([1.0])]) is None
    assert every([falling([1.0]), False]) is False


def test_a_line_is_seen_between_its_ends() -> None:
    assert falling([3.0, 2.0, 1.0])
    assert falling([3.0, 3.5, 1.0]) is False
    assert flattening([0, 1, 2, 3], [9.0, 4.0, 1.0, 0.0])
    assert flattening([0, 1, 2, 3], [9.0, 8.0, 1.0, 0.0]) is False


def test_the_bound_of_randomized_response_is_far_above_the_exact_capacity_at_small_epsilon() -> None:
    found = []
    for epsilon in (1.0, 2.0, 4.0, 8.0, 10.0, 14.0):
        response = at_scale(RandomizedResponse(k=VALUES, epsilon=epsilon))
        found.append(pie.rr_alpha(response).upper / pie.alpha(response).upper)
    assert found == pytest.approx([24.3, 10.8, 4.6, 2.02, 1.57, 1.12], abs=0.06)


def test_beliefs_move_both_ways() -> None:
    """Two orders with one half each: the belief in one rises by 2e/(1 + e), that in the other falls by (1 + e)/2."""
    assert shift(1 / 3, 3, 0.5) == pytest.approx(0.6201, abs=1e-4)
