from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from oracles.traffic_enumeration import scrambled


@pytest.mark.parametrize(("sources", "dummies", "cap"), [(2, 3, 2), (3, 2, 3), (3, 2, None)])
def test_counts_of_a_run_follow_the_enumerated_law(sources: int, dummies: int, cap: int | None) -> None:
    # chi-square at false-alarm rate 1e-6; a sigma of 0.4 or 0.6 is found out with probability 0.97 at least.
    sampling = hs.TargetSampling(targets=3, sigma=0.5)
    protocol = hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=dummies, cap=cap), n=sources)
    law = scrambled((0,) * sources, 3, Fraction(1, 2), dummies, cap, "uniform")
    rng, runs = hs.reproducible(3), 6_000
    seen = dict.fromkeys(law, 0)
    for _ in range(runs):
        reports = protocol.collect(np.zeros(sources, dtype=np.int64), rng=rng).reports
        seen[tuple(np.bincount(reports, minlength=3).tolist())] += 1
    statistic = sum((seen[key] - runs * float(share)) ** 2 / (runs * float(share)) for key, share in law.items())
    assert statistic < chi2.isf(1e-6, len(law) - 1)


def test_no_target_gets_more_than_the_cap() -> None:
    sampling = hs.TargetSampling(targets=4, sigma=0.1)
    protocol = hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=150, cap=50), n=50)
    reports = protocol.collect(np.zeros(50, dtype=np.int64), rng=hs.secure()).reports
    assert np.bincount(reports, minlength=4).tolist() == [50, 50, 50, 50]


def test_a_cap_must_be_the_number_of_people_and_leave_room() -> None:
    sampling = hs.TargetSampling(targets=3, sigma=0.1)
    with pytest.raises(InvalidInputError, match=r"`cap`.*n = 5"):
        hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=1, cap=4), n=5)
    with pytest.raises(InvalidInputError, match=r"`dummies`.*10 under a cap"):
        hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=11, cap=5), n=5)
    flooded = hs.Protocol(
        randomizer=hs.TargetSampling(targets=3, sigma=0.1, flood=1), shuffler=hs.Scrambler(dummies=1, cap=5), n=5
    )
    with pytest.raises(InvalidInputError, match="more than one number"):
        flooded.collect([0, 1, 2, 0, 1], rng=hs.reproducible(1))


def test_descriptions() -> None:
    assert "at most 5 messages" in hs.Scrambler(dummies=1, cap=5).describe()
    assert repr(hs.Scrambler(dummies=1, cap=5)) == "Scrambler(dummies=1, cap=5)"
    assert repr(hs.Scrambler(dummies=1)) == "Scrambler(dummies=1)"
