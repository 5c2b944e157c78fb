"""Scramblers one after the other: docs/theory/traffic.md, Theorems 11 to 13, against enumeration."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.questions import traffic
from hushuffle.randomness import reproducible
from hushuffle_network.queries.exchange import exchange
from oracles import cascade_enumeration as oracle
from oracles.cascade_enumeration import Act, Hop
from oracles.traffic_enumeration import first_target, neighbours, scrambled

SIGMA = Fraction(2, 5)
GROWTHS = (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(7, 2))
MARKS = tuple[tuple[str, ...], ...]


def alone(one: tuple[int, ...], other: tuple[int, ...], targets: int, dummies: int, growth: Fraction) -> Fraction:
    """Return the divergence of one scrambler of these sources with so many dummies."""
    laws = [scrambled(truths, targets, SIGMA, dummies, None, "uniform") for truths in (one, other)]
    return sum((max(p - growth * laws[1].get(c, Fraction(0)), Fraction(0)) for c, p in laws[0].items()), Fraction(0))


@pytest.mark.parametrize(
    ("targets", "sources", "dummies"),
    [(2, 2, (1, 1)), (2, 3, (1, 1)), (2, 2, (2, 1)), (2, 2, (1, 0)), (3, 2, (1, 1)), (2, 2, (1, 1, 1))],
)
def test_whoever_is_corrupted_the_dummies_of_the_others_count(
    targets: int, sources: int, dummies: tuple[int, ...]
) -> None:
    """docs/theory/traffic.md, Theorem 11: the figure of n sources and the honest ones' dummies, exactly."""
    for honest in product((True, False), repeat=len(dummies)):
        hops = tuple(Hop(dummies=d, honest=h) for h, d in zip(honest, dummies, strict=True))
        kept = sum(hop.dummies for hop in hops if hop.honest)
        for one, other in neighbours(targets, sources):
            laws = [oracle.view(truths, targets, SIGMA, hops, "uniform") for truths in (one, other)]
            for growth in GROWTHS:
                found = oracle.divergence(laws[0], laws[1], growth)
                if any(honest):
                    assert found == alone(one, other, targets, kept, growth)
                else:
                    local = [first_target(truths[0], targets, SIGMA, "uniform") for truths in (one, other)]
                    assert found == sum((max(p - growth * q, Fraction(0)) for p, q in zip(*local, strict=True)))


def replacing(kept: tuple[int, ...], size: int) -> oracle.Tamper:
    """Return a scrambler that sends on what it got at the places `kept`, and fills the batch up with its own."""

    def tamper(_marks: MARKS) -> tuple[tuple[Act, ...], ...]:
        return ((*kept, *["own"] * (size - len(kept))),)

    return tamper


@pytest.mark.parametrize("convention", ["uniform", "exclusive"])
def test_who_replaces_the_others_before_an_honest_one_leaves_its_dummies(convention: str) -> None:
    """docs/theory/traffic.md, Theorem 12: one source among the honest ones' dummies is the worst, and attained."""
    one, other = (0, 1, 1), (1, 1, 1)
    for dummies in (1, 2):
        for growth in GROWTHS:
            bound = _single(2, dummies, convention, growth)
            found = {}
            for kept in oracle.selections(range(3)):
                hops = (oracle.corrupted(replacing(kept, 3)), oracle.honest(dummies))
                laws = [oracle.view(truths, 2, SIGMA, hops, convention) for truths in (one, other)]
                found[kept] = oracle.divergence(laws[0], laws[1], growth)
            assert max(found.values()) == found[0,] == bound
            assert found[0, 1, 2] < bound or bound == 0
            assert found[1, 2] == 0


def _single(targets: int, dummies: int, convention: str, growth: Fraction) -> Fraction:
    laws = [oracle.view((true,), targets, SIGMA, (oracle.honest(dummies),), convention) for true in (0, 1)]
    return oracle.divergence(laws[0], laws[1], growth)


def test_who_stands_between_honest_ones_may_drop_and_split_and_gets_no_more() -> None:
    """docs/theory/traffic.md, Theorem 12: three scramblers, the one in the middle drops, forges, cuts batches up."""
    first, later = 2, 1
    for growth in GROWTHS:
        bound = alone((0,), (1,), 2, first + later, growth)
        found = {}
        for kept in oracle.selections(range(1 + first)):
            for batches in oracle.splits(kept):

                def tamper(
                    _marks: MARKS, batches: tuple[tuple[Act, ...], ...] = batches
                ) -> tuple[tuple[Act, ...], ...]:
                    return tuple((*batch, "own") for batch in batches)

                hops = (oracle.honest(first), oracle.corrupted(tamper), oracle.honest(later))
                laws = [oracle.view((truth,), 2, SIGMA, hops, "uniform") for truth in (0, 1)]
                found[batches] = oracle.divergence(laws[0], laws[1], growth)
        assert max(found.values()) == found[((0, 1, 2),)] == bound


@pytest.mark.parametrize(("targets", "first", "later"), [(2, 1, 1), (2, 2, 1), (2, 3, 1), (2, 2, 2), (3, 2, 1)])
@pytest.mark.parametrize("convention", ["uniform", "exclusive"])
def test_deciding_after_each_batch_brings_nothing_either(targets: int, first: int, later: int, convention: str) -> None:
    """docs/theory/traffic.md, Theorem 12: what is sent next may depend on where the last batch arrived."""
    for growth in GROWTHS:
        bound = _single(targets, first + later, convention, growth)
        best = oracle.adaptive(
            0, 1, targets=targets, sigma=SIGMA, first=first, later=later, convention=convention, growth=growth
        )
        assert best == bound


def test_what_comes_after_honest_ones_in_front_cannot_undo_their_crowd() -> None:
    """docs/theory/traffic.md, Theorem 12: with people behind its batch, the first scrambler's figure stays."""
    for one, other in neighbours(2, 2):
        for growth in GROWTHS:
            bound = alone(one, other, 2, 1, growth)
            for kept in oracle.selections(range(3)):
                hops = (oracle.honest(1), oracle.corrupted(replacing(kept, 3)), oracle.honest(1))
                laws = [oracle.view(truths, 2, SIGMA, hops, "uniform") for truths in (one, other)]
                assert oracle.divergence(laws[0], laws[1], growth) <= bound


def test_a_scrambler_that_takes_a_message_twice_gives_it_away() -> None:
    """docs/theory/traffic.md, Theorem 12: copies of one message must be refused, by every honest scrambler."""
    copies, growth = 4, Fraction(2)

    def tamper(_marks: MARKS) -> tuple[tuple[Act, ...], ...]:
        return ((0,) * copies,)

    laws = [
        oracle.view((truth,), 2, SIGMA, (oracle.corrupted(tamper), oracle.honest(2)), "uniform") for truth in (0, 1)
    ]
    local = [first_target(truth, 2, SIGMA, "uniform") for truth in (0, 1)]
    found, bound = oracle.divergence(laws[0], laws[1], growth), alone((0,), (1,), 2, 2, growth)
    assert bound < found == sum(max(p - growth * q, Fraction(0)) for p, q in zip(*local, strict=True))


def test_the_weights_of_the_proof() -> None:
    """docs/theory/traffic.md, Theorem 12: no message is the person's with more than 1 in 1 + the dummies so far."""
    for before, more in product(range(4), repeat=2):
        places = 1 + before
        for size in range(1, 9):
            mass = min(Fraction(size, places), Fraction(1))
            assert mass / (size + more) <= Fraction(1, places + more)


def plan(**options: Any) -> hs.plans.Plan:
    sets = tuple(hs.plans.GroupingSet(columns=(name,), sizes=(20,)) for name in ("age", "bmi"))
    query = hs.plans.GroupingQuery(grouping_sets=sets, partitions=20)
    return hs.plans.aggregate(query, people=1000, sigma=0.2, per_person="one", **options)


def test_the_rows_are_figures_of_one_scrambler() -> None:
    """docs/theory/traffic.md, Theorems 11 and 12: n sources, or one, and the honest ones' dummies."""
    rows = traffic.collusions(plan(dummies=30, batch=250, min_batch=200, scramblers=3), delta=1e-4)
    assert [row.honest for row in rows] == [3, 2, 1, 0]
    for row in rows[:-1]:
        for sources, found in ((200, row.curious), (1, row.active)):
            one = traffic.scrambler_epsilon(20, sources, 0.2, 30 * row.honest, delta=1e-4)
            assert (found.lower, found.upper) == (one.lower, one.upper)
        assert row.curious.upper < row.active.lower
    local = hs.dp.epsilon(hs.plans.messages("local", sources=1, targets=20, sigma=0.2).protocol, delta=1e-4)
    assert rows[-1].curious.upper == rows[-1].active.upper == local.upper
    assert traffic.plan_guarantee(plan(dummies=30, batch=250, min_batch=200, scramblers=3), delta=1e-4).epsilon == (
        rows[2].curious
    )


def test_without_scramblers_there_is_nobody_to_ask() -> None:
    assert traffic.collusions(plan(), delta=1e-4) == ()


def test_under_a_cap_the_active_figure_is_an_upper_bound() -> None:
    """docs/theory/traffic.md, Theorem 5: a cap only hides more, whatever else is in the batch."""
    capped, free = (
        traffic.collusions(plan(dummies=30, batch=250, capped=capped), delta=1e-4) for capped in (True, False)
    )
    assert (capped[0].active.kind, capped[0].active.upper) == ("upper", free[0].active.upper)
    assert capped[1] == free[1]


def test_a_cascade_needs_scramblers_and_no_cap() -> None:
    with pytest.raises(InvalidInputError, match="`scramblers` must be None without dummies and batch, got"):
        plan(scramblers=2)
    with pytest.raises(InvalidInputError, match="`cascade` must be 1 without a scrambler, and with a cap, got"):
        plan(dummies=3, batch=250, capped=True, scramblers=2)
    alone = hs.plans.messages("ages", sources=9, targets=4, sigma=0.5)
    with pytest.raises(InvalidInputError, match="`cascade` must be 1 without a scrambler, and with a cap, got"):
        replace(alone, cascade=2)


@pytest.mark.parametrize("chain", [1, 2, 3])
def test_messages_of_a_cascade_counted_one_by_one(chain: int) -> None:
    """docs/theory/traffic.md, Theorem 13: what goes over every link, and how many links there are."""
    cluster = hs.plans.messages("ages", sources=25, targets=4, sigma=0.5, dummies=3, batch=10, scramblers=chain)
    links: Counter[tuple[str, str]] = Counter()
    for batch, size in enumerate((9, 8, 8)):
        for source in range(size):
            links[f"source {batch} {source}", f"{batch} 1"] += 1
        for hop in range(1, chain):
            links[f"{batch} {hop}", f"{batch} {hop + 1}"] += size + 3 * hop
        for target in range(4):
            links[f"{batch} {chain}", f"target {target}"] += size + 3 * chain if target == 0 else 0
    at = Counter(name for link in links for name in link if name[0] in "012")
    costs = hs.plans.cluster_costs(cluster)
    assert (costs.messages, costs.channels, costs.busiest) == (links.total(), len(links), max(at.values()))
    counted = exchange(cluster, [0] * 25, rng=reproducible(1)).costs
    assert (counted.messages, counted.channels, counted.busiest) == (costs.messages, costs.channels, costs.busiest)
