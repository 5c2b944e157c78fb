"""What every shuffler promises. Statistical tests: false-alarm rate below 1e-6 each, fixed seeds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from contracts.examples import SHUFFLERS, named
from hushuffle.errors import InvalidInputError, UnsupportedProtocolError
from hushuffle.mechanisms.shufflers import MallowsShuffle, Reveals, Shuffler
from oracles.rr_statistics import chi_square_excess

ALL: dict[str, Any] = named(SHUFFLERS)
MESSAGES = tuple(what for what in Reveals if what is not Reveals.SUMS)


def revealing(*what: Reveals) -> pytest.MarkDecorator:
    """Parametrize over the examples that reveal one of `what`."""
    chosen = {name: example for name, example in ALL.items() if example.reveals in what}
    return pytest.mark.parametrize("shuffler", chosen.values(), ids=chosen.keys())


def size(shuffler: Shuffler, n: int) -> int:
    """The number of messages it takes: `n`, or what it is made for."""
    return shuffler.people if isinstance(shuffler, MallowsShuffle) else n


@revealing(*MESSAGES)
@pytest.mark.parametrize("shape", [(60,), (60, 3), (1,)])
def test_released_messages_are_the_messages(shuffler: Shuffler, shape: tuple[int, ...]) -> None:
    shape = (size(shuffler, shape[0]), *shape[1:])
    messages = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    before = messages.copy()
    released = shuffler.release(messages, rng=hs.reproducible(1))
    assert released.shape == shape
    assert sorted(released.tolist()) == messages.tolist()
    assert np.array_equal(messages, before)
    assert not np.shares_memory(released, messages)


@revealing(Reveals.MULTISET, Reveals.CAPPED_MULTISET)
def test_every_order_is_equally_likely(shuffler: Shuffler) -> None:
    orders = {order: place for place, order in enumerate(itertools.permutations(range(4)))}
    rng, seen, each = hs.reproducible(2), np.zeros(24), 800
    for _ in range(24 * each):
        seen[orders[tuple(shuffler.release(np.arange(4), rng=rng).tolist())]] += 1
    assert chi_square_excess(seen, np.full(24, each)) < 0


@revealing(Reveals.MULTISET, Reveals.CAPPED_MULTISET)
def test_position_and_message_are_independent_on_many(shuffler: Shuffler) -> None:
    rng, seen, trials = hs.reproducible(3), np.zeros(50), 5000
    for _ in range(trials):
        seen[np.flatnonzero(shuffler.release(np.arange(50), rng=rng) == 7)[0]] += 1
    assert chi_square_excess(seen, np.full(50, trials / 50)) < 0


@revealing(Reveals.MULTISET, Reveals.CAPPED_MULTISET, Reveals.NOISY_ORDER)
def test_the_order_may_not_be_keyed_by_the_records(shuffler: Shuffler) -> None:
    rng = hs.keyed(key=bytes(32), records=np.arange(4))
    with pytest.raises(InvalidInputError, match=r"`rng` must be secure\(\) or reproducible\(seed\)"):
        shuffler.release(np.arange(size(shuffler, 4)), rng=rng)


@revealing(Reveals.SENDERS)
def test_senders_order_is_kept(shuffler: Shuffler) -> None:
    messages = hs.reproducible(4).integers(9, 40)
    assert np.array_equal(shuffler.release(messages, rng=hs.reproducible(5)), messages)


@revealing(*MESSAGES)
def test_secure_release_and_description(shuffler: Shuffler) -> None:
    n = size(shuffler, 9)
    assert sorted(shuffler.release(np.arange(n), rng=hs.secure()).tolist()) == list(range(n))
    assert shuffler.expected_dummies >= 0
    assert shuffler.drawn(hs.reproducible(1)).dummies >= 0
    assert "\n" not in shuffler.describe()


@revealing(Reveals.SUMS)
def test_sums_are_no_messages(shuffler: Shuffler) -> None:
    with pytest.raises(UnsupportedProtocolError, match="releases no reports"):
        shuffler.release(np.arange(3), rng=hs.secure())
    assert "\n" not in shuffler.describe()


def test_who_adds_no_coins_leaves_sums_alone() -> None:
    shuffler, sums = hs.UniformShuffle(), np.array([3, 0, 7])
    assert (shuffler.all_coins, shuffler.sum_noise) == (0, None)
    assert shuffler.noisy(sums, rng=hs.reproducible(1)).tolist() == [3, 0, 7]
