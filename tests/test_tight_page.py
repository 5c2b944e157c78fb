"""The page that says what is tight: its cheap rows, computed anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import hushuffle as hs
from scripts import script

ROOT = Path(__file__).parent.parent
tight = script("benchmarks/tight")
CASES = list(tight.cases())
PAGE = (ROOT / "docs" / "reference" / "what-is-tight.md").read_text(encoding="utf-8")
ROWS = {
    row[0]: row[1:]
    for row in ([cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines())
    if len(row) > 1 and not row[0].startswith(("mechanism", "---"))
}


def cells(name: str, n: int) -> list[str]:
    """The lower and the upper bound on the page."""
    row = ROWS[name]
    if len(row) == 8:
        return row[:2] if n == 100 else row[4:6]
    assert row[0] == f"{n:,}"
    return row[1:3]


def test_every_case_has_a_row() -> None:
    cases = [(name, n) for name, _, n, _, _ in CASES]
    assert all(len(cells(*case)) == 2 for case in cases)
    assert set(ROWS) == {name for name, _ in cases} | {name for name, _, _ in tight.groups()}


@pytest.mark.parametrize("place", [1, 4, 9, 12, 13, 15, 20, 22])
def test_rows_are_what_the_library_prints(place: int) -> None:
    name, randomizer, n, dummies, delta = CASES[place]
    shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    bound = hs.dp.epsilon(hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n), delta=delta)
    assert cells(name, n) == [f"{bound.lower:.5g}", f"{bound.upper:.5g}"]


def test_memoized_reports_with_fresh_noise_are_as_wide_as_the_page_says() -> None:
    permanent, fresh = (hs.RandomizedResponse(k=2, epsilon=epsilon) for epsilon in (2.0, 1.0))
    survey = hs.Protocol(randomizer=permanent, shuffler=hs.UniformShuffle(), n=10_000)
    bound = hs.dp.waves(survey, waves=10, delta=1e-6, instantaneous=fresh)
    assert 1.215 < bound.upper / bound.lower < 1.225
    assert "22 % for ten waves\n  of 10,000 people" in PAGE
