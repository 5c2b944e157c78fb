"""Shufflers behind which people, or the shuffler, add messages that say nothing: what they draw and refuse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import hushuffle as hs
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import Shuffler

TRUTH = hs.RandomizedResponse(k=3, epsilon=math.inf)
BLANKET, FAKES = hs.BlanketMessages(p=0.3, trials=2), hs.FakesPerValue(p=0.2)
AUGMENTED = hs.AugmentedShuffle(each=hs.GeometricDummies(ratio=0.6), kept=0.75)


def survey(shuffler: Shuffler, n: int = 50) -> hs.Protocol:
    return hs.Protocol(randomizer=TRUTH, shuffler=shuffler, n=n)


@pytest.mark.parametrize("shuffler", [BLANKET, FAKES, AUGMENTED])
def test_counts_have_the_law_that_is_written_down(shuffler: Shuffler) -> None:
    # Six standard errors: false alarms below 1e-8.
    protocol, runs, rng = survey(shuffler), 2000, hs.reproducible(1)
    values = np.repeat([0, 1], [30, 20])
    counts = np.array([np.bincount(protocol.collect(values, rng=rng).reports, minlength=3) for _ in range(runs)])
    held = np.array([30, 20, 0])
    mean, variance = {
        BLANKET: (held + 50 * 2 * 0.3 / 3, np.full(3, 100 * 0.1 * 0.9)),
        FAKES: (held + 50 * 0.2, np.full(3, 50 * 0.2 * 0.8)),
        AUGMENTED: (0.75 * held + 1.5, 0.75 * 0.25 * held + 0.6 / 0.4**2),
    }[shuffler]
    assert np.all(abs(counts.mean(axis=0) - mean) < 6 * np.sqrt(variance / runs))
    assert counts.var(axis=0) == pytest.approx(variance, rel=0.25)


def test_messages_are_as_many_as_coins_show_heads() -> None:
    protocol, rng = survey(BLANKET), hs.reproducible(2)
    found = [protocol.collect([0] * 50, rng=rng).dummies for _ in range(400)]
    assert abs(np.mean(found) - 30) < 6 * math.sqrt(100 * 0.3 * 0.7 / 400)
    assert protocol.shuffler.expected_dummies == pytest.approx(30.0)
    assert survey(FAKES).shuffler.expected_dummies == pytest.approx(30.0)
    assert (protocol.shuffler.own_messages, protocol.shuffler.most_messages) == (0.6, 2)
    assert survey(FAKES).shuffler.own_messages == pytest.approx(0.6)
    assert survey(FAKES).shuffler.most_messages == 3


def test_coins_that_always_fall_alike_give_a_fixed_number() -> None:
    protocol = survey(hs.BlanketMessages(p=1.0, trials=2))
    assert (protocol.shuffler.dummies, protocol.shuffler.dummy_law) == (100, None)
    assert survey(hs.BlanketMessages(p=0.0)).shuffler.dummies == 0
    assert protocol.collect([1] * 50).dummies == 100


def test_a_known_number_of_messages_is_a_number_of_dummies() -> None:
    given = survey(BLANKET).with_dummies(31)
    fixed = survey(hs.Scrambler(dummies=31))
    assert (given.shuffler.dummies, given.shuffler.dummy_law, given.shuffler.most_messages) == (31, None, 2)
    ends = [hs.dp.delta(one, epsilon=0.7) for one in (given, fixed)]
    assert ends[0].upper == pytest.approx(ends[1].upper, rel=1e-6)
    assert given.with_dummies(31) == given
    assert (given.shuffler.most_dummies, survey(BLANKET).shuffler.most_dummies) == (None, 100)
    for one, number, rule in ((given, 30, "from 31 to 31"), (survey(BLANKET), 101, "from 0 to 100")):
        with pytest.raises(InvalidInputError, match=rule):
            one.with_dummies(number)
    known = survey(replace(BLANKET, honest=0.5)).with_dummies(31)
    with pytest.raises(UnsupportedProtocolError, match="the number from honest people is unknown"):
        hs.dp.epsilon(known, delta=1e-3)


@pytest.mark.parametrize("shuffler", [BLANKET, FAKES])
def test_it_belongs_to_a_protocol(shuffler: Shuffler) -> None:
    with pytest.raises(UnsupportedProtocolError, match=r"Use the `shuffler` of a `Protocol`"):
        _ = shuffler.expected_dummies
    with pytest.raises(UnsupportedProtocolError):
        _ = survey(shuffler).shuffler.dummies


def test_everything_else_sends_one_report() -> None:
    for shuffler in (hs.UniformShuffle(), hs.Scrambler(dummies=3), AUGMENTED):
        assert (survey(shuffler).shuffler.own_messages, survey(shuffler).shuffler.most_own_messages) == (0, 0)
        with pytest.raises(UnsupportedProtocolError, match="supports one message per person"):
            shuffler.with_own_messages(0.5)


def test_more_messages_take_more_coins_where_one_is_not_enough() -> None:
    more, fakes = survey(BLANKET).shuffler.with_own_messages(2.5), survey(FAKES).shuffler.with_own_messages(0.9)
    assert isinstance(more, hs.BlanketMessages)
    assert isinstance(fakes, hs.FakesPerValue)
    assert more.trials == 3
    assert more.p == pytest.approx(2.5 / 3)
    assert fakes.p == pytest.approx(0.3)
    assert survey(BLANKET, n=10**6).shuffler.most_own_messages == 1000
    assert survey(FAKES).shuffler.most_own_messages == 3
    assert survey(FAKES).shuffler.best_own_messages == 1.5


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: hs.BlanketMessages(p=1.5), "`p` must be"),
        (lambda: hs.BlanketMessages(p=0.5, trials=0), "`trials` must be"),
        (lambda: hs.BlanketMessages(p=0.5, honest=2.0), "`honest` must be"),
        (lambda: survey(hs.BlanketMessages(p=0.5, trials=10_000), n=10**6), "in total over all people"),
        (lambda: hs.FakesPerValue(p=-0.1), "`p` must be"),
        (lambda: hs.FakesPerValue(p=0.1, honest=-1.0), "`honest` must be"),
        (lambda: survey(hs.FakesPerValue(p=1e-9), n=10**9 + 1), "`n` must be at most"),
        (lambda: survey(hs.FakesPerValue(p=0.9), n=10**9), "dummies on average"),
        (lambda: hs.AugmentedShuffle(each=hs.DummyLaw.of({1: 1.0}), kept=0.0), "`kept` must be"),
        (lambda: hs.AugmentedShuffle(each=3), "`each` must be"),  # type: ignore[arg-type]
        (lambda: hs.AugmentedShuffle.pure(epsilon=50.0), "`epsilon` must be at most 40"),
        (lambda: hs.GeometricDummies(ratio=1.0), "`ratio` must be"),
        (
            lambda: hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=FAKES, n=5),
            "a shuffler that supports randomized reports",
        ),
        (
            lambda: hs.Protocol(randomizer=hs.LocalHashing(k=3, g=2, epsilon=1.0), shuffler=AUGMENTED, n=5),
            "a shuffler that supports randomized reports",
        ),
    ],
)
def test_what_is_refused(made: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        made()  # type: ignore[operator]


def test_geometric_dummies_have_the_law_they_say() -> None:
    law = hs.GeometricDummies(ratio=0.6)
    drawn = law.draws(40_000, hs.reproducible(3))
    seen = np.bincount(np.minimum(drawn, 12), minlength=13)
    wanted = 40_000 * np.append(0.4 * 0.6 ** np.arange(12), 0.6**12)
    assert stats.chisquare(seen, wanted).pvalue > 1e-6
    masses, lost = law.masses()
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert 0.6**masses.size < lost < 1e-40
    assert (masses @ np.arange(masses.size)) == pytest.approx(law.mean)
    for chance in (1.0, 0.7, 0.6, 1e-3, 1e-12):
        reached = law.reached(chance)
        assert 0.6**reached <= chance * (1 + 1e-12)
        assert reached == 0 or 0.6 ** (reached - 1) > chance * (1 - 1e-12)


def test_tables_say_how_often_a_number_is_reached() -> None:
    law = hs.DummyLaw.of({2: 0.5, 4: 0.25, 9: 0.25})
    assert [law.reached(chance) for chance in (1.0, 0.6, 0.5, 0.3, 0.25, 0.1, 0.0)] == [0, 3, 3, 5, 5, 10, 10]
    assert law.variance == pytest.approx(sum(p * (d - law.mean) ** 2 for d, p in ((2, 0.5), (4, 0.25), (9, 0.25))))
    masses, lost = law.masses()
    assert (masses.tolist(), lost) == ([0.5, 0, 0.25, 0, 0, 0, 0, 0.25], 0.0)


@pytest.mark.parametrize("shuffler", [BLANKET, FAKES, replace(BLANKET, honest=0.5), replace(FAKES, honest=0.5)])
def test_it_is_described(shuffler: Shuffler) -> None:
    words = survey(shuffler).describe()
    assert ("is honest" in words) == (shuffler.honest < 1)  # type: ignore[attr-defined]
    one, two = (survey(hs.BlanketMessages(p=0.25, trials=trials)).shuffler.describe() for trials in (1, 2))
    assert one.startswith("each person sends an additional blanket message with probability 0.25, and")
    assert two.startswith("each person sends up to 2 additional blanket messages, each with probability 0.25, and")
    assert "keeps all reports" in hs.AugmentedShuffle(each=hs.DummyLaw.of({1: 1.0})).describe()


def test_a_shuffler_that_keeps_all_reports_keeps_them() -> None:
    protocol = survey(hs.AugmentedShuffle(each=hs.DummyLaw.of({2: 1.0})))
    released = protocol.collect([0] * 50, rng=hs.reproducible(4))
    assert np.bincount(released.reports).tolist() == [52, 2, 2]
    assert (released.people, released.dummies) == (50, 6)
    assert hs.UniformShuffle().placed is None
