"""A collection that is killed at any call of the file system: what is left is whole, and the next run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from crash_points import in_fresh_process, outcomes, winners


@pytest.mark.parametrize("keyed", [True, False])
def test_killed_at_a_few_calls(tmp_path: Path, keyed: bool) -> None:
    ended = in_fresh_process(outcomes, tmp_path, keyed, [0.3, 0.5, 0.8, 0.9, 0.95, 1.0])
    assert [wrong for _, wrong in ended.values() if wrong] == []
    assert "recovered" in {outcome for outcome, _ in ended.values()}


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [True, False])
def test_killed_at_every_call(tmp_path: Path, keyed: bool) -> None:
    ended = in_fresh_process(outcomes, tmp_path, keyed, None)
    assert {point: wrong for point, (_, wrong) in ended.items() if wrong} == {}
    expected = {"recovered", "nothing to do"} | (set() if keyed else {"asked"})
    assert {outcome for outcome, _ in ended.values()} == expected


def test_four_at_once(tmp_path: Path) -> None:
    """One key, four collections of the same people with other answers: one wins."""
    assert len(in_fresh_process(winners, tmp_path, 4)) == 1
