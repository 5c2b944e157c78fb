from __future__ import annotations

import itertools
import math
from collections import defaultdict

import pytest

import hushuffle as hs
from hushuffle.assessment.bounded_guess import bounded_vulnerability
from hushuffle.mechanisms.shufflers import Shuffler


def guess(rows: list[list[float]], others: tuple[int, ...], *, shuffled: bool) -> float:
    """The best guess of a uniform target by somebody who knows the others' values, by enumeration of all reports."""
    values, outputs = len(rows), range(len(rows[0]))
    seen: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0] * values)
    for reports in itertools.product(outputs, repeat=len(others) + 1):
        release = tuple(sorted(reports)) if shuffled else reports
        known = math.prod(rows[x][y] for x, y in zip(others, reports[1:], strict=True))
        for x in range(values):
            seen[release][x] += known * rows[x][reports[0]] / values
    return math.fsum(max(chances) for chances in seen.values())


@pytest.mark.parametrize(
    "hashing",
    [
        hs.LocalHashing(k=3, g=2, epsilon=1.0),
        hs.LocalHashing(k=3, g=2, epsilon=math.inf),
        hs.LocalHashing(k=2, g=3, epsilon=0.5),
        hs.LocalHashing(k=4, g=2, epsilon=3.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.05])
def test_no_guesser_does_better(hashing: hs.LocalHashing, delta: float) -> None:
    rows = hashing.channel().matrix.tolist()
    shufflers: tuple[Shuffler, ...] = (hs.UniformShuffle(), hs.NoShuffle())
    for shuffler in shufflers:
        survey = hs.Protocol(randomizer=hashing, shuffler=shuffler, n=2)
        central = hs.dp.epsilon(survey, delta=delta)
        bound = bounded_vulnerability(survey, epsilon=central.upper, delta=delta)
        assert bound.kind == "upper"
        assert bound.lower == pytest.approx(1 / hashing.k)
        for other in range(hashing.k):
            assert guess(rows, (other,), shuffled=isinstance(shuffler, hs.UniformShuffle)) <= bound.upper + 1e-12


def test_both_bounds_are_used() -> None:
    survey = hs.Protocol(randomizer=hs.LocalHashing(k=1000, g=8, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100_000)
    named = bounded_vulnerability(survey, epsilon=math.inf, delta=0.0).upper
    released = bounded_vulnerability(survey, epsilon=hs.dp.epsilon(survey, delta=1e-7).upper, delta=1e-7).upper
    law = hs.LocalHashing(k=1000, g=8, epsilon=1.0).bucket_law()
    assert named == pytest.approx(float(8 * law.truth) / 1000)
    assert 1e-3 < released < 1.05e-3 < named
