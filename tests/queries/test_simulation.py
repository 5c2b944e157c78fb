"""One cluster's exchange against the enumerated law, and its costs against the formulas."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.plans import Cluster, cluster_costs, messages
from hushuffle.randomness import keyed, reproducible
from hushuffle_network.queries import exchange
from oracles.plan_enumeration import scrambled


def cluster(sources: int, targets: int, sigma: float, **changes: Any) -> Cluster:
    return messages("send", sources=sources, targets=targets, sigma=sigma, reads=("people",), **changes)


@pytest.mark.parametrize("lucky", [True, False])
@pytest.mark.parametrize("capped", [True, False])
def test_many_scramblers_at_once_follow_the_enumerated_law(lucky: bool, capped: bool) -> None:
    # 20,000 scramblers of two sources with the same own target, one dummy each. Every cell's count is binomial; a cell
    # that is off by more than 6 standard errors has probability below 2e-9, and there are fewer than 100 cells.
    many = 20_000
    run = exchange(
        cluster(2 * many, 3, 0.5, dummies=1, batch=2, capped=capped),
        np.zeros(2 * many, dtype=np.int64),
        only_honest=not lucky,
        rng=reproducible(11),
    )
    assert run.scrambler_of is not None
    arrived = np.bincount(run.scrambler_of, weights=run.used, minlength=many).astype(int)
    found = Counter((tuple(row), ok) for row, ok in zip(run.graph.tolist(), arrived.tolist(), strict=True))
    law: defaultdict[tuple[Any, int], Fraction] = defaultdict(Fraction)
    for (view, used), chance in scrambled(
        [0, 0], 3, Fraction(1, 2), dummies=1, cap=2 if capped else None, lucky=lucky
    ).items():
        law[view, sum(used)] += chance
    assert found.keys() <= law.keys()
    for outcome, chance in law.items():
        share = float(chance)
        assert abs(found[outcome] - many * share) <= 6 * math.sqrt(many * share * (1 - share))


@pytest.mark.parametrize(("dummies", "batch", "capped"), [(50, 100, False), (0, 70, False), (7, 50, True)])
def test_costs_counted_are_costs_computed(dummies: int, batch: int, capped: bool) -> None:
    made = cluster(1000, 20, 0.3, dummies=dummies, batch=batch, capped=capped)
    run = exchange(made, np.arange(1000) % 20, rng=reproducible(3))
    counted, formula = run.costs, cluster_costs(made)
    for name in ("messages", "unprotected", "channels", "busiest", "scramblers", "overhead"):
        assert getattr(counted, name) == getattr(formula, name)
    # Standard error below 16: more than 5 of them off has probability below 1e-6.
    assert abs(counted.used - formula.used) < 80
    assert run.received.sum() == counted.messages - 1000
    assert run.graph.sum(axis=1).tolist() == (np.bincount(run.scrambler_of) + dummies).tolist()  # type: ignore[arg-type]
    if capped:
        assert run.graph.max() <= batch


def test_without_scramblers_every_source_s_targets_are_seen() -> None:
    made = cluster(1000, 20, 0.3, flood=2)
    run = exchange(made, np.arange(1000) % 20, rng=reproducible(3))
    assert run.scrambler_of is None
    assert run.graph.shape == (1000, 3)
    assert (run.costs.messages, run.costs.channels, run.costs.busiest) == (3000, 3000, 3)
    assert run.received.sum() == 3000
    assert run.used.tolist() == [i % 20 in row for i, row in enumerate(run.graph.tolist())]
    assert abs(run.costs.used - cluster_costs(made).used) < 80
    plain = exchange(cluster(5, 3, 0.0), [0, 1, 2, 0, 1])
    assert plain.graph.ravel().tolist() == [0, 1, 2, 0, 1]
    assert plain.used.all()


def test_who_shares_a_scrambler_does_not_depend_on_the_targets() -> None:
    made = cluster(100, 4, 0.5, dummies=1, batch=10)
    one, other = (exchange(made, own, rng=reproducible(8)) for own in (np.zeros(100, dtype=int), np.arange(100) % 4))
    assert one.scrambler_of is not None
    assert other.scrambler_of is not None
    assert np.array_equal(one.scrambler_of, other.scrambler_of)
    assert np.bincount(one.scrambler_of).tolist() == [10] * 10


def test_inputs_that_do_not_fit() -> None:
    with pytest.raises(InvalidInputError, match="`targets` must be of 5 sources"):
        exchange(cluster(5, 3, 0.5), [0, 1])
    with pytest.raises(InvalidInputError, match="`targets` must be integers from 0 to 2"):
        exchange(cluster(2, 3, 0.5), [0, 3])
    with pytest.raises(InvalidInputError, match="one with data-dependent messages"):
        exchange(Cluster(name="fixed", sources=2, targets=3), [0, 1])


@pytest.mark.parametrize("changes", [{}, {"flood": 1}, {"dummies": 2, "batch": 5}])
def test_coins_of_the_sources_own_decide_where_messages_go(changes: dict[str, Any]) -> None:
    made, own = cluster(20, 4, 0.5, **changes), np.arange(20) % 4

    def run(seed: int, records: Any = range(20)) -> Any:
        coins = keyed(key=bytes(32), records=np.array(records), round=1)
        return exchange(made, own, coins=coins, rng=reproducible(seed))

    assert made.sampling is not None
    sent = made.sampling.randomize(own, rng=keyed(key=bytes(32), records=np.arange(20), round=1))
    expected = (sent.reshape(20, -1) == own[:, None]).any(axis=1)
    assert 0 < np.count_nonzero(expected) < 20
    for seed in (1, 2):
        assert np.array_equal(run(seed).used, expected)
    assert not np.array_equal(run(1, range(20, 40)).used, expected)
    if made.scrambler is None:
        assert np.array_equal(run(1).graph, sent.reshape(20, -1))
    else:
        # Dummies and who shares a scrambler are drawn by `rng`, not by the sources.
        assert not np.array_equal(run(1).graph, run(2).graph)
        assert np.array_equal(run(1).graph, run(1).graph)
