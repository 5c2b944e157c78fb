"""Certified bounds on the probability that a group loses many of its places to other people in a Mallows shuffle.

The number of lost places is a mixture. With x = e**theta - 1, F items are frozen, where P(F = f) is proportional to
x**f / f!, f = 0..n. The other r = n - f items are permuted uniformly. Of these, s are in the group; s is
hypergeometric. The number of lost places is hypergeometric again: s draws from r items, of which r - s are outside the
group. All terms are positive, so no digits cancel.

Source: docs/theory/order.md, Theorem 9 and Corollary 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.shufflers import MallowsShuffle
from hushuffle.mechanisms.shufflers._mallows_laws import CERTAIN, frozen_law
from hushuffle.mechanisms.shufflers.mallows import several_mallows
from hushuffle.model import Bound
from hushuffle.model.citation import MEEHAN
from hushuffle.model.groups import Groups, GroupsLike
from hushuffle.numerics.binomial import lower_tail, upper_tail
from hushuffle.numerics.roots import farthest
from hushuffle.numerics.trials import clopper_pearson
from hushuffle.randomness import Randomness

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST: Final = 20_000
"""Maximum number of people (log-factorials are accurate to 5e-11 up to this number)."""

_DOUBT: Final = 4e-9
"""Relative error of a sum: a term has eighteen log-factorials in it, and as many roundings of 3e-11 between them."""

_TRACE: Final = 1e-18
"""Numbers of frozen and of free items rarer than this are left to the upper bound."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Distribution of the number of places that a group of `size` out of n people loses, at most `most` places."""

    n: int
    size: int
    theta: float
    most: int

    def beyond(self, lost: int) -> tuple[float, float]:
        """Return certified bounds on the probability that the group loses more than `lost` places.

        >>> ends = Losses(n=2, size=1, theta=0.0, most=1).beyond(0)
        >>> ends[0] <= 0.5 <= ends[1]
        True
        """
        return (0.0, 0.0) if lost >= self.most else _failure(self.n, self.size, self.theta, lost)


@lru_cache(maxsize=4096)
def _failure(n: int, size: int, theta: float, lost: int) -> tuple[float, float]:
    first, cumulative = frozen_law(n, theta) if theta < CERTAIN else (n, (1,))
    logs, total, outside, before = _log_factorials(n), 0.0, 0.0, 0
    for free, upto in zip(range(n - first, -1, -1), cumulative, strict=False):
        chance, before = (upto - before) / cumulative[-1], upto
        if chance < _TRACE:
            outside += chance
            continue
        total += chance * _failure_of_free(n, size, free, lost, logs)
    lower, upper = total * (1 - _DOUBT), total * (1 + _DOUBT) + outside * (1 + _DOUBT) + (n + 1) * _TRACE
    return lower, min(upper, 1.0)


def _failure_of_free(n: int, size: int, free: int, lost: int, logs: Floats) -> float:
    """Return P(more than `lost` are lost) if `free` of the n items are permuted uniformly."""
    inside = np.arange(max(0, free - (n - size)), min(size, free) + 1)
    where = _log_hypergeometric(inside, n, size, free, logs)
    keep = (where > math.log(_TRACE)) & (np.minimum(inside, free - inside) > lost)
    inside, where = inside[keep], where[keep]
    if not inside.size:
        return 0.0
    # Rows: members among the free items; columns: how many of their places go to others.
    gone = np.arange(lost + 1, int(np.minimum(inside, free - inside).max()) + 1)
    rows, columns = inside[:, None], gone[None, :]
    possible = columns <= np.minimum(rows, free - rows)
    taken = np.where(possible, columns, 0)
    chance = np.exp(_log_hypergeometric(taken, free, free - rows, rows, logs))
    tails = np.where(possible, chance, 0.0).sum(axis=1)
    return float(np.exp(where) @ tails)


def _log_hypergeometric(x: Integers, n: int, good: int | Integers, draws: int | Integers, logs: Floats) -> Floats:
    """Return ln P(x good ones among `draws` out of n, of which `good` are good)."""

    def binomial(top: int | Integers, bottom: int | Integers) -> Floats:
        return logs[top] - logs[bottom] - logs[np.subtract(top, bottom)]

    return binomial(good, x) + binomial(np.subtract(n, good), np.subtract(draws, x)) - binomial(n, draws)


@lru_cache(maxsize=8)
def _log_factorials(n: int) -> Floats:
    """Return ln k! for k = 0..n, with a compensated sum: off by 4e-16 per logarithm and one rounding."""
    values, total, rest = np.zeros(n + 1), 0.0, 0.0
    for k in range(2, n + 1):
        term = math.log(k) + rest
        larger = total + term
        rest = term - (larger - total)
        total = larger
        values[k] = total
    values.flags.writeable = False
    return values


_SOURCE: Final = MEEHAN.at("definition A.4")


def preservation(
    shuffler: MallowsShuffle,
    groups: GroupsLike,
    *,
    eta: Fraction | float,
    samples: int = 1000,
    confidence: float = 0.99,
    rng: Randomness | None = None,
) -> tuple[Bound, ...]:
    """Return for each group the probability delta that less than the fraction `eta` of its places is preserved.

    Its places are those of its members; one is preserved if the release has a record of the group there. The result is
    certified for Hamming, and for Kendall at theta = 0 or infinity. Otherwise it is a Clopper-Pearson interval at
    `confidence` for each group, from the same `samples` permutations.

    Args:
        shuffler: a Mallows shuffle with its reference order of n people.
        groups: a list of integer arrays of people, an (offsets, members) pair, or `Groups`.
        eta: share in [0, 1]. A float is read as the shortest decimal that gives the same float, so that 0.8 of 5 is 4.
        samples: number of simulated permutations, >= 1.
        confidence: confidence of each interval, in (0, 1).
        rng: source of randomness; default: `secure()`.

    Raises:
        InvalidInputError: an argument out of range, or bad groups.
        NumericalError: the certified result would need a sum over more than 20,000 people.

    Source: Meehan et al. 2022, definition A.4; docs/theory/order.md, Corollary 10.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> shuffler = hs.MallowsShuffle(reference=range(100), theta=6.0, distance="hamming")
    >>> print(hs.order.preservation(shuffler, [range(20)], eta=Fraction(9, 10))[0])
    1.663e-06 (certified bracket)
    """
    _checks.probability("eta", eta)
    level = eta if isinstance(eta, Fraction) else Fraction(repr(float(eta)))
    members = Groups.of(groups, n=shuffler.people)
    draws, trust = _simulation(samples, confidence)
    lost = [size - math.ceil(level * size) for size in members.sizes.tolist()]
    if _solved(shuffler):
        return tuple(
            _bracket(*_losses(shuffler, size).beyond(most))
            for size, most in zip(members.sizes.tolist(), lost, strict=True)
        )
    failures = np.zeros(len(members), dtype=np.int64)
    allowed = np.array(lost)
    for remaining in _simulated(shuffler, members, draws, rng):
        failures += members.sizes - remaining > allowed
    ends = [clopper_pearson(count, draws, trust) for count in failures.tolist()]
    return tuple(
        Bound(lower=low, upper=high, kind="estimate", unit="probability", sources=(_SOURCE,), confidence=trust)
        for low, high in ends
    )


def preserved_share(
    shuffler: MallowsShuffle,
    groups: GroupsLike,
    *,
    delta: float,
    samples: int = 1000,
    confidence: float = 0.99,
    rng: Randomness | None = None,
) -> tuple[Bound, ...]:
    """Return for each group the largest eta: the fraction of its places preserved except with probability `delta`.

    A place is preserved if the release has a record of the group there. The result is certified or simulated (see
    `preservation`). Each simulated bound is an order statistic of the preserved shares. With fewer than about ln(2 / (1
    - confidence)) / delta permutations, the lower bound is the share that every permutation preserves.

    Args:
        shuffler: a Mallows shuffle with its reference order of n people.
        groups: a list of integer arrays of people, an (offsets, members) pair, or `Groups`.
        delta: in [0, 1).
        samples: number of simulated permutations, >= 1.
        confidence: confidence of each interval, in (0, 1).
        rng: source of randomness; default: `secure()`.

    Raises:
        InvalidInputError: an argument out of range, or bad groups.
        NumericalError: the certified result would need a sum over more than 20,000 people.

    Source: Meehan et al. 2022, definition A.4 and appendix A.14.1 (figure 7); order statistics and binomial tails.

    >>> import hushuffle as hs
    >>> shuffler = hs.MallowsShuffle(reference=range(100), theta=6.0, distance="hamming")
    >>> print(hs.order.preserved_share(shuffler, [range(20)], delta=0.01)[0])
    0.9500 (exact)
    """
    members, level = Groups.of(groups, n=shuffler.people), _checks.probability("delta", delta, high_open=True)
    draws, trust = _simulation(samples, confidence)
    if _solved(shuffler):
        return tuple(_largest_share(_losses(shuffler, size), size, level) for size in members.sizes.tolist())
    shares = np.sort(np.array(list(_simulated(shuffler, members, draws, rng))) / members.sizes, axis=0)
    low, high = _order_statistics(draws, level, trust)
    surely = np.maximum(2 * members.sizes - members.n, 0) / members.sizes
    lower = shares[low - 1] if low else surely
    upper = shares[high - 1] if high <= draws else np.ones(len(members))
    return tuple(
        Bound(lower=a, upper=b, kind="estimate", unit="", sources=(_SOURCE,), confidence=trust)
        for a, b in zip(np.maximum(lower, surely).tolist(), np.maximum(upper, surely).tolist(), strict=True)
    )


def _losses(shuffler: MallowsShuffle, size: int) -> Losses:
    n, theta = shuffler.people, shuffler.theta
    most = 0 if theta == math.inf else min(size, n - size)
    if most and n > MOST:
        message = f"The exact preservation is available up to {MOST:,} people, got {n:,}. Use a smaller population."
        raise NumericalError(message)
    return Losses(n=n, size=size, theta=theta, most=most)


def _simulation(samples: int, confidence: float) -> tuple[int, float]:
    trust = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    return _checks.integer("samples", samples, low=1), trust


def _solved(shuffler: MallowsShuffle) -> bool:
    """Return whether the shuffle is a mixture of uniform permutations, so that the result is exact."""
    return shuffler.distance == "hamming" or shuffler.theta in (0, math.inf)


def _largest_share(losses: Losses, size: int, delta: float) -> Bound:
    """Return the largest eta, by bisection on the number of members that may be lost."""

    def fewest(end: int) -> int:
        return farthest(lambda lost: losses.beyond(lost)[end] <= delta, good=losses.most, bad=-1)

    lower, upper = 1 - fewest(1) / size, 1 - fewest(0) / size
    if lower == upper:
        return Bound.exact(lower, unit="", sources=(_SOURCE,))
    return Bound(lower=lower, upper=upper, kind="bracket", unit="", sources=(_SOURCE,))


def _bracket(lower: float, upper: float) -> Bound:
    if upper == 0:
        return Bound.exact(0.0, unit="probability", sources=(_SOURCE,))
    return Bound(lower=lower, upper=upper, kind="bracket", unit="probability", sources=(_SOURCE,))


def _simulated(shuffler: MallowsShuffle, groups: Groups, samples: int, rng: Randomness | None) -> list[Integers]:
    """Return the number of preserved places of each group, shape (g,), for each of `samples` permutations."""
    n = groups.n
    rank = np.empty(n, dtype=np.int64)
    rank[shuffler.reference] = np.arange(n)
    owners = np.repeat(np.arange(len(groups)), groups.sizes)
    keys = np.sort(owners * n + rank[groups.members])
    places = keys - owners * n
    inside = _membership(keys, owners, n, len(groups))
    return [
        np.add.reduceat(inside(tau[places]).astype(np.int64), groups.offsets[:-1])
        for tau in several_mallows(n, theta=shuffler.theta, distance=shuffler.distance, samples=samples, rng=rng)
    ]


def _membership(keys: Integers, owners: Integers, n: int, groups: int) -> Callable[[Integers], Flags]:
    """Return a test of whether items, one for each membership, belong to the group of that membership."""
    if groups * n <= _TABLE:
        table = np.zeros(groups * n, dtype=np.bool_)
        table[keys] = True
        return lambda items: table[owners * n + items]

    def search(items: Integers) -> Flags:
        wanted = owners * n + items
        member: Flags = keys[np.minimum(np.searchsorted(keys, wanted), keys.size - 1)] == wanted
        return member

    return search


_TABLE: Final = 1 << 28
"""Up to so many pairs of group and person a table of who belongs is kept (one byte each)."""


def _order_statistics(samples: int, delta: float, confidence: float) -> tuple[int, int]:
    """Return ranks (from 1) around the delta-quantile; 0 or samples + 1 where none will do.

    The rank a is the largest with P(Bin(samples, delta) <= a - 1) small enough, b the smallest with P(Bin >= b) so.
    """
    tail = (1 - confidence) / 2
    ranks = np.arange(samples + 1)
    low = int(np.count_nonzero(lower_tail(ranks[:-1], samples, delta) <= tail))
    high = int(np.count_nonzero(upper_tail(ranks, samples, delta) > tail))
    return low, high
