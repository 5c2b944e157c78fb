from __future__ import annotations

import math
from fractions import Fraction

import pytest

import hushuffle as hs
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.dataset_pair import inscribed
from hushuffle.curves.pairs import composition as pairs_composed
from hushuffle.curves.pairs.dominating import TabulatedCurve, common_step
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import symmetric_law
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.model import Witness
from hushuffle.numerics import loss_sum
from hushuffle.numerics.loss_sum import LossSum, best_tilt
from hushuffle.questions.dp import composition
from hushuffle.questions.dp.composition import compose, compose_delta, parallel
from oracles import dp_composition as oracle


def survey(k: int, epsilon: float, n: int, shuffler: Shuffler | None = None) -> hs.Protocol:
    return hs.Protocol(
        randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=shuffler or hs.UniformShuffle(), n=n
    )


def truth(protocol: hs.Protocol) -> Fraction:
    law = symmetric_law(protocol.randomizer, for_what="a test")
    assert isinstance(law.truth, Fraction)
    return law.truth


@pytest.mark.parametrize(
    ("n", "k", "times"), [(1, 2, 3), (2, 2, 2), (2, 2, 3), (3, 2, 2), (3, 2, 3), (4, 2, 2), (4, 2, 3), (2, 3, 2)]
)
def test_enumeration_of_every_choice_of_datasets_lies_inside(n: int, k: int, times: int) -> None:
    for epsilon_0 in (0.4, 1.5):
        protocol = survey(k, epsilon_0, n)
        rounds = [oracle.round_pairs(n, k, float(truth(protocol)))] * times
        for share in (0.0, 0.15, 0.5, 0.9):
            level = share * epsilon_0 * times
            fixed = float(oracle.worst_fixed(rounds, math.exp(level)))
            adaptive = float(oracle.worst_adaptive(rounds, math.exp(level)))
            bound = compose_delta([(protocol, times)], epsilon=level)
            assert bound.lower <= fixed * (1 + 1e-12) + 1e-15
            assert fixed <= adaptive * (1 + 1e-12)
            assert adaptive <= bound.upper * (1 + 1e-12) + 1e-15
            assert bound.upper <= 1.35 * fixed + 0.01


def test_without_a_lattice_the_bounds_are_those_of_single_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_sum, "_LONGEST", 8)
    monkeypatch.setattr(pairs_composed, "_CUTS", ((1e-3, 8),))
    protocol, times = survey(2, 1.0, 3), 3
    rounds = [oracle.round_pairs(3, 2, float(truth(protocol)))] * times
    bound, single = compose([(protocol, times)], delta=0.01), hs.dp.epsilon(protocol, delta=0.01 / times).upper
    assert bound.upper == pytest.approx(times * single)
    assert float(oracle.worst_adaptive(rounds, math.exp(bound.upper))) <= 0.01
    assert float(oracle.worst_fixed(rounds, math.exp(bound.lower * (1 - 1e-9)))) >= 0.01
    both = compose_delta([(protocol, times)], epsilon=1.2)
    assert both.upper == pytest.approx(times * hs.dp.delta(protocol, epsilon=0.4).upper)
    assert both.lower <= float(oracle.worst_fixed(rounds, math.exp(1.2)))


def test_others_who_adapt_can_be_worse_than_any_who_are_alike_every_round() -> None:
    """n = 4, k = 2, T = 3, epsilon_0 = 1.5, epsilon = 2.25, every choice enumerated."""
    rounds = [oracle.round_pairs(4, 2, float(truth(survey(2, 1.5, 4))))] * 3
    fixed, adaptive = (float(worst(rounds, math.exp(2.25))) for worst in (oracle.worst_fixed, oracle.worst_adaptive))
    assert (f"{fixed:.4f}", f"{adaptive:.4f}") == ("0.1733", "0.1899")


def test_larger_domains_lie_inside_too() -> None:
    """k = 3, n = 3 and 4: the adaptive worst case alone, which is at least any fixed choice."""
    for n, times in ((3, 2), (4, 2), (3, 3)):
        protocol = survey(3, 1.0, n)
        pairs = oracle.round_pairs(n, 3, float(truth(protocol)))
        level = 0.3 * times
        adaptive = float(oracle.worst_adaptive([pairs] * times, math.exp(level)))
        same = max(float(oracle.hockey_stick([pair] * times, math.exp(level))) for pair in pairs)
        bound = compose_delta([(protocol, times)], epsilon=level)
        assert bound.lower <= adaptive <= bound.upper
        assert bound.lower <= same * (1 + 1e-12)


def test_different_rounds_together() -> None:
    first, second, third = survey(2, 1.0, 3), survey(3, 0.7, 2), survey(2, 0.5, 2, hs.NoShuffle())
    mu = float(truth(third))
    local: oracle.Pair = ((mu, 1 - mu), (1 - mu, mu))
    rounds = [
        oracle.round_pairs(3, 2, float(truth(first))),
        oracle.round_pairs(2, 3, float(truth(second))),
        oracle.merged([local, tuple((q, p) for p, q in local)]),
    ]
    for level in (0.0, 0.5, 1.2, 2.0):
        adaptive = float(oracle.worst_adaptive(rounds, math.exp(level)))
        bound = compose_delta([first, second, third], epsilon=level)
        assert bound.lower <= adaptive <= bound.upper
        assert bound.width <= 0.5 * bound.upper


@pytest.mark.parametrize(
    ("times", "low", "high"), [(100, 0.9956, 0.9966), pytest.param(1000, 3.497, 3.507, marks=pytest.mark.slow)]
)
def test_checkpoint_of_the_theory(times: int, low: float, high: float) -> None:
    """All others at zero every round; the upper end allows all datasets, chosen adaptively."""
    bound = compose([(survey(2, 2.0, 10**4), times)], delta=1e-6)
    assert low <= bound.lower <= high
    assert bound.lower <= bound.upper <= bound.lower * (1.0055 if times == 100 else 1.0075)
    assert bound.kind == "bracket"
    assert bound.witness is not None
    assert bound.witness.others == (9999,)
    assert "all others at the target's value" in str(bound.witness)


@pytest.mark.parametrize(
    ("k", "n", "epsilon_0", "times"),
    [(2, 60, 1.0, 20), pytest.param(3, 300, 2.0, 5, marks=pytest.mark.slow), (3, 1000, 5.0, 3)],
)
def test_epsilon_and_delta_are_each_others_inverse(k: int, n: int, epsilon_0: float, times: int) -> None:
    rounds = [(survey(k, epsilon_0, n), times)]
    bound = compose(rounds, delta=1e-6)
    assert compose_delta(rounds, epsilon=bound.upper).upper <= 1.002e-6
    assert compose_delta(rounds, epsilon=bound.lower).lower >= 0.998e-6
    assert bound.width <= 0.05 * bound.upper


def test_more_rounds_cost_more_and_less_than_their_sum() -> None:
    protocol, level = survey(2, 1.0, 40), 1e-6
    one = hs.dp.epsilon(protocol, delta=level)
    previous = one
    for times in (2, 3, 30):
        bound = compose([(protocol, times)], delta=level)
        assert bound.upper >= previous.lower
        assert bound.lower >= previous.lower * (1 - 1e-3)
        assert compose([(protocol, times)], delta=times * level).lower <= times * one.upper
        assert compose([(protocol, times)], delta=times * level).upper <= times * one.upper * 1.001
        previous = bound


def test_one_round_is_the_ordinary_figure() -> None:
    protocol = survey(2, 1.0, 300)
    assert compose([protocol], delta=1e-6) == hs.dp.epsilon(protocol, delta=1e-6)
    assert compose([(protocol, 1)], delta=1e-6) == hs.dp.epsilon(protocol, delta=1e-6)
    assert compose_delta([protocol], epsilon=0.1) == hs.dp.delta(protocol, epsilon=0.1)


def test_rounds_of_bits_are_as_tight_as_one() -> None:
    """Curves made for the smallest delta hold at larger ones too: the upper end was 44 % above the lower one."""
    columns = hs.Protocol(randomizer=hs.BitFlipping(width=4, p=0.25), shuffler=hs.UniformShuffle(), n=10_000)
    for times in (2, 16):
        bound = compose([(columns, times)], delta=1e-6)
        assert bound.width <= 0.008 * bound.upper


def test_equal_rounds_are_counted_together() -> None:
    protocol = survey(2, 1.0, 30)
    assert compose([protocol, (survey(2, 1.0, 30), 2)], delta=1e-5) == compose([(protocol, 3)], delta=1e-5)


def test_a_round_next_to_a_large_one_is_seen() -> None:
    large, small = survey(4, 1.0, 1, hs.NoShuffle()), survey(2, 2.0, 10**4)
    both = compose([large, small], delta=1e-6)
    alone = hs.dp.epsilon(small, delta=1e-6)
    assert 1.0 < both.lower <= both.upper <= 1.0 + alone.upper
    assert both.width <= 0.002 * both.upper


def test_pure_guarantees_add_up() -> None:
    bound = compose([(survey(2, 1.0, 50), 3), survey(3, 0.5, 20)], delta=0.0)
    assert bound.kind == "exact"
    assert bound.upper == pytest.approx(3.5, rel=1e-12)
    assert bound.upper >= 3.5
    assert compose_delta([(survey(2, 1.0, 50), 3)], epsilon=3.1).upper == 0.0


def test_local_rounds_match_their_binomial_sum() -> None:
    """Reports in the open: the number of truthful reports is binomial."""
    protocol, times, level = survey(2, 0.3, 5, hs.NoShuffle()), 40, 2.0
    mu = float(truth(protocol))
    exact = sum(
        math.comb(times, ones)
        * max(0.0, mu**ones * (1 - mu) ** (times - ones) - math.exp(level) * mu ** (times - ones) * (1 - mu) ** ones)
        for ones in range(times + 1)
    )
    bound = compose_delta([(protocol, times)], epsilon=level)
    assert bound.lower <= exact <= bound.upper
    assert bound.width <= 1e-7 * exact


def test_a_generous_delta_needs_no_epsilon() -> None:
    assert compose([(survey(2, 0.5, 1000), 2)], delta=0.5).upper == 0.0


def test_tiny_delta() -> None:
    rounds = [(survey(2, 1.0, 80), 30)]
    bound = compose(rounds, delta=1e-30)
    assert bound.width <= 0.02 * bound.upper
    delta = compose_delta(rounds, epsilon=bound.upper)
    assert 1e-32 < delta.lower <= delta.upper <= 1.01e-30


def test_no_noise_gives_no_differential_privacy() -> None:
    rounds = [survey(2, 1.0, 100), survey(2, math.inf, 100)]
    assert compose(rounds, delta=1e-6).lower == math.inf
    assert compose(rounds, delta=0.0).lower == math.inf
    assert compose_delta(rounds, epsilon=5.0).lower == 1.0


def test_disjoint_people_share_the_largest() -> None:
    small, large = survey(2, 2.0, 50), survey(2, 2.0, 5000)
    assert parallel([large, small], delta=1e-6) == hs.dp.epsilon(small, delta=1e-6)


def test_groups_asked_in_different_rounds_share_the_largest_figure() -> None:
    weekly, extra = survey(2, 1.0, 30), survey(3, 0.5, 8)
    often: list[hs.Protocol | tuple[hs.Protocol, int]] = [(weekly, 4), extra]
    seldom = [(weekly, 2)]
    assert parallel([seldom, often], delta=1e-5) == compose(often, delta=1e-5)
    assert parallel([seldom, seldom], delta=1e-5) == compose(seldom, delta=1e-5)
    # A pair says how often: it is no single round.
    assert parallel([(weekly, 4), extra], delta=1e-5) == compose([(weekly, 4)], delta=1e-5)
    with pytest.raises(InvalidInputError, match="`protocols` must be"):
        parallel([[], [weekly]], delta=1e-5)
    with pytest.raises(InvalidInputError, match="`protocols` must be"):
        parallel(3, delta=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("n", "times"), [(2, 3), (3, 3), (2, 4)])
def test_rounds_without_a_person_say_nothing_more(n: int, times: int) -> None:
    """By enumeration, the others' data and whether the target is asked chosen in view of what was released."""
    for epsilon_0 in (0.4, 1.5):
        protocol = survey(2, epsilon_0, n)
        mu = float(truth(protocol))
        taken, missed = oracle.round_pairs(n, 2, mu), oracle.without_target(n, 2, mu)
        for most in range(1, times):
            for share in (0.0, 0.3, 0.8):
                level = share * epsilon_0 * most
                panel = float(oracle.worst_panel([(taken, missed)] * times, math.exp(level), most))
                always = float(oracle.worst_adaptive([taken] * most, math.exp(level)))
                bound = compose_delta([(protocol, most)], epsilon=level)
                assert panel == pytest.approx(always, rel=1e-9, abs=1e-15)
                assert bound.lower <= panel * (1 + 1e-12) + 1e-15
                assert panel <= bound.upper * (1 + 1e-12) + 1e-15


def test_disjoint_people_whose_brackets_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    low = hs.Bound(lower=1.0, upper=3.0, kind="bracket", unit="nats")
    high = hs.Bound(lower=2.0, upper=2.5, kind="bracket", unit="nats")
    answers = iter([low, high])
    monkeypatch.setattr("hushuffle.questions.dp.composition.compose", lambda *_, **__: next(answers))
    bound = parallel([survey(2, 1.0, 5), survey(2, 1.0, 6)], delta=1e-6)
    assert (bound.lower, bound.upper, bound.kind) == (2.0, 3.0, "bracket")


class Opaque(PrivacyCurve):
    """A law of which only the curve is known."""

    def __init__(self, inner: PrivacyCurve) -> None:
        self.inner = inner

    @property
    def pure(self) -> float:
        return self.inner.pure

    def upper(self, epsilon: float) -> float:
        return self.inner.upper(epsilon)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return self.inner.lower(epsilon)


def test_a_law_without_known_datasets_still_has_a_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = survey(2, 1.0, 100)
    monkeypatch.setattr(composition, "round_curve", lambda p: Opaque(privacy_curve(p)))
    bound = compose([(protocol, 4)], delta=1e-6)
    alone = hs.dp.epsilon(protocol, delta=1e-6)
    assert bound.lower == pytest.approx(alone.lower, rel=1e-7)
    assert bound.upper > 1.5 * alone.upper
    joint = compose_delta([(protocol, 4)], epsilon=bound.upper)
    assert joint.lower == pytest.approx(hs.dp.delta(protocol, epsilon=bound.upper).lower)
    assert compose([protocol, survey(2, 1.0, 200)], delta=1e-6).lower == pytest.approx(alone.lower, rel=1e-7)


@pytest.mark.parametrize("rounds", [[], [3], [(survey(2, 1.0, 5), 0)], [(survey(2, 1.0, 5), 1.5)]])
def test_bad_rounds_are_refused(rounds: list[hs.Protocol]) -> None:
    with pytest.raises(InvalidInputError, match=r"`(rounds|times)` must be"):
        compose(rounds, delta=1e-6)


def test_bad_levels_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="`delta` must be in"):
        compose([survey(2, 1.0, 5)], delta=1.0)
    with pytest.raises(InvalidInputError, match="`epsilon` must be finite"):
        compose_delta([survey(2, 1.0, 5)], epsilon=math.inf)
    with pytest.raises(InvalidInputError, match="`protocols` must be at least one"):
        parallel([], delta=1e-6)


@pytest.mark.parametrize(
    ("rounds", "delta"),
    [([(2, 2.0, 900, 3)], 1e-6), ([(3, 3.3, 26, 7)], 1e-8), ([(5, 1.0, 300, 2), (5, 3.0, 80, 1)], 1e-3)],
)
def test_the_choice_of_datasets_that_seems_best_is_best(
    rounds: list[tuple[int, float, int, int]], delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocols = [(survey(k, epsilon_0, n), times) for k, epsilon_0, n, times in rounds]
    fast = compose(protocols, delta=delta)
    monkeypatch.setattr(pairs_composed, "_likeliest", lambda choices, *_: choices)
    assert compose(protocols, delta=delta) == fast


@pytest.mark.parametrize(("k", "n", "epsilon_0"), [pytest.param(2, 500, 1.0, marks=pytest.mark.slow), (3, 200, 2.0)])
def test_one_round_through_the_lattices_contains_the_ordinary_figure(k: int, n: int, epsilon_0: float) -> None:
    protocol = survey(k, epsilon_0, n)
    law, known = privacy_curve(protocol), hs.dp.epsilon(protocol, delta=1e-5)
    step = common_step([(law, 1)])
    part = TabulatedCurve.of(law, step=step, negligible=1e-8).pair()
    upper = LossSum.of([(part, 1)], tilt=best_tilt([(part, 1)], delta=1e-5)).epsilon_above(1e-5, high=law.pure)
    lattices = [
        inscribed(pair, step=step / 2) for found in law.datasets(log_tail=-22.0) for pair in (found, found.swapped())
    ]
    lower = max(
        LossSum.of([(each, 1)], tilt=best_tilt([(each, 1)], delta=1e-5)).epsilon_below(1e-5) for each in lattices
    )
    assert lower <= known.upper
    assert known.lower <= upper
    assert lower * 1.01 >= known.lower
    assert upper <= known.upper * 1.003


@pytest.mark.parametrize(("k", "epsilon_0", "n"), [(3, 3.0, 1), (2, 2.0, 3), (4, 0.5, 20)])
def test_rounds_cost_no_more_than_their_plain_sum_and_no_less_than_one(k: int, epsilon_0: float, n: int) -> None:
    protocol = survey(k, epsilon_0, n)
    for delta in (1e-3, 0.2):
        together = compose([(protocol, 2)], delta=delta)
        assert together.upper <= 2 * hs.dp.epsilon(protocol, delta=delta / 2).upper * (1 + 1e-12)
        assert together.lower >= hs.dp.epsilon(protocol, delta=delta).lower * (1 - 1e-6)
    for epsilon in (0.0, 0.5 * epsilon_0):
        joint = compose_delta([(protocol, 2)], epsilon=epsilon)
        assert joint.upper <= 2 * hs.dp.delta(protocol, epsilon=epsilon / 2).upper * (1 + 1e-12)
        assert joint.lower >= hs.dp.delta(protocol, epsilon=epsilon).lower * (1 - 1e-6)


def test_a_mapping_of_rounds_is_refused() -> None:
    """{survey: 5} was taken for one round of each survey: the 5 was lost."""
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=50)
    for question in (hs.dp.compose, hs.dp.parallel):
        with pytest.raises(InvalidInputError, match="must be a list of"):
            question({survey: 5}, delta=1e-6)  # type: ignore[arg-type]


def test_rounds_beyond_what_floats_can_add_up_are_one_clear_error() -> None:
    rule = "`times` must be at most 1,000,000,000 in all rounds together, got times="
    for rounds in ([(survey(5, 2.0, 33_000), 10**18)], [(survey(2, 1.0, 30), 10**9), (survey(3, 1.0, 30), 1)]):
        with pytest.raises(InvalidInputError, match=rule):
            compose(rounds, delta=1e-6)
        with pytest.raises(InvalidInputError, match=rule):
            compose_delta(rounds, epsilon=1.0)
    several = hs.dp.per_person(survey(2, 1.0, 30), reports=2)
    with pytest.raises(InvalidInputError, match=rule + "2,000,000,000. If each person gives several"):
        compose([(several, 10**9)], delta=1e-6)


def test_composing_tells_what_it_does() -> None:
    told: list[tuple[str, float]] = []
    rounds = [(survey(2, 1.0, 30), 3)]
    bound = compose(rounds, delta=1e-6, progress=lambda stage, share: told.append((stage, share)))
    assert bound == compose(rounds, delta=1e-6)
    assert [share for _, share in told] == [0.0, 0.5, 1.0]
    assert all(stage for stage, _ in told)


def test_rounds_whose_datasets_are_all_in_doubt_have_an_upper_end() -> None:
    sampling = hs.TargetSampling(targets=5, sigma=0.4)
    capped = hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=2, cap=4), n=4)
    open_ended = hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=2), n=4)
    assert 0 < compose([(capped, 3)], delta=0.01).upper <= compose([(open_ended, 3)], delta=0.01).upper
    assert compose_delta([(capped, 3)], epsilon=0.0).upper < 1
