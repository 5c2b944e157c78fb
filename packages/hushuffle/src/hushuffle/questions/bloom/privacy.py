"""Central privacy of shuffled, flipped Bloom filters, and the smallest flip probability for a target epsilon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from hushuffle import _checks
from hushuffle.curves.base import bracket
from hushuffle.curves.laws.known_dataset import BinaryDataset
from hushuffle.curves.rules.batches import one_by_one
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Bound, Guarantee
from hushuffle.numerics.roots import first_below
from hushuffle.questions.bloom.transition import BUFFLING, columns, law_of, pair_law, person_law_of, published_pair_law

FILLING: Final = "nats, this dataset only"
"""Unit of an epsilon of one dataset; `Guarantee` does not accept it."""

_ONE_COLUMN: Final = "one column of bits changes, their number fixed: one person added or removed, one hash function"


def epsilon(*, filters: int, bits: int, p: float, delta: float, hashes: int = 1) -> Bound:
    """Return a certified bracket of epsilon (nats) for Bloom filters with flipped bits and shuffled columns.

    All filters have `bits` bits and the same hash functions; column i contains bit i of every filter. Every bit is
    flipped with probability p, the columns are put in random order, and all of them are released. Relation: add or
    remove one person, who changes up to `hashes` columns, in any of the filters. Replacing a person changes up to twice
    as many columns.

    For one hash function this is `dp.epsilon` of a uniform shuffle of n = `bits` reports of `BitFlipping(width=filters,
    p=p)`. For h > 1 hash functions the upper bound follows from group privacy: the hockey-stick divergence at eps over
    h columns is at most the sum over i < h of e**(i eps/h) times that at eps/h over one column. The lower bound is that
    of datasets in which one person changes h columns and all others are alike.

    Args:
        filters: number of filters, 1 to 62; with more than 24 the upper bound (the privacy blanket's) is loose.
        bits: number of bits of each filter.
        p: probability of a flip, in (0, 1/2); rounded up to a multiple of 2**-64, as `BitFlipping` does.
        delta: in [0, 1).
        hashes: number of hash functions, from 1 to `bits`.

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/pool.md, Corollary 3; docs/theory/randomizers.md, Theorem 18; Balle, Bell, Gascon, Nissim 2019.

    >>> import hushuffle as hs
    >>> print(hs.bloom.epsilon(filters=1, bits=1000, p=0.05, delta=1e-3))
    0.3081 nats (certified bracket)
    >>> print(hs.bloom.epsilon(filters=2, bits=10_000, p=0.25, delta=1e-3))
    0.02737 to 0.02748 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    several = _checks.integer("hashes", hashes, low=1, high=_checks.integer("bits", bits, low=1))
    if several == 1:
        return law_of(filters, bits, p).epsilon(level)
    person = person_law_of(filters, bits, p, several)
    return person.below(person.grouped(level), level) if level else person.pure_bound()


def guarantee(*, filters: int, bits: int, p: float, delta: float, hashes: int = 1) -> Guarantee:
    """Return `epsilon`, for the same arguments, as a `Guarantee` with relation and unit (a column or a person).

    >>> import hushuffle as hs
    >>> promise = hs.bloom.guarantee(filters=1, bits=1000, p=0.05, delta=1e-3, hashes=2)
    >>> promise.per, promise.relation
    ('person', 'one person added or removed: up to 2 of the columns change, their number fixed')
    """
    bound = epsilon(filters=filters, bits=bits, p=p, delta=delta, hashes=hashes)
    several = f"one person added or removed: up to {hashes} of the columns change, their number fixed"
    if hashes == 1:
        return Guarantee(epsilon=bound, delta=delta, relation=_ONE_COLUMN, per="column")
    return Guarantee(epsilon=bound, delta=delta, relation=several, per="person")


def published_pair_epsilon(*, filters: int, bits: int, p: float, delta: float) -> Bound:
    """Return epsilon (nats) of one pair of datasets: all columns 0...0, against one of them at 1...1.

    The buffling paper takes this pair as the worst case. It often is, or nearly, but the result is no guarantee. It is
    the larger epsilon of the two directions; the bracket includes a relative error of delta of up to 1e-3.

    Raises:
        InvalidInputError: an argument out of range.

    Source: buffling, part III; docs/theory/randomizers.md, Theorem 17.

    >>> import hushuffle as hs
    >>> print(hs.bloom.published_pair_epsilon(filters=6, bits=100_000, p=0.145, delta=1e-3))
    0.8826 to 0.8827 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    return _with_sources(published_pair_law(filters, bits, p).epsilon(level))


def pair_epsilon(*, filters: int, bits: int, p: float, delta: float, target: tuple[int, int], others: int = 0) -> Bound:
    """Return epsilon (nats) of two datasets: one column is `target[0]` or `target[1]`, every other column is `others`.

    Bit patterns are integers 0 to 2**filters - 1. The other arguments are as in `epsilon`. The result is the larger
    epsilon of the two directions. It is no guarantee: other datasets can have a larger epsilon.

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/randomizers.md, Theorem 17.

    >>> import hushuffle as hs
    >>> print(hs.bloom.pair_epsilon(filters=2, bits=1000, p=0.25, delta=1e-3, target=(0b00, 0b01)))
    0.05766 to 0.05768 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    last = (1 << _checks.integer("filters", filters, low=1, high=62)) - 1
    if not isinstance(target, tuple | list) or len(target) != 2:
        _checks.reject("target", "two different bit patterns", f"<{type(target).__name__}>")
    first, second = (_checks.integer("target", value, low=0, high=last) for value in target)
    if first == second:
        _checks.reject("target", "two different bit patterns", target)
    rest = _checks.integer("others", others, low=0, high=last)
    return _with_sources(pair_law(filters, bits, p, others=rest, target=(first, second)).epsilon(level))


def filling_epsilon(*, bits: int, p: float, delta: float, ones: int) -> Bound:
    """Return epsilon of ONE filter with `ones` ones against its neighbours with one bit changed. This is no guarantee.

    Exact up to rounding. `bits`, `p` and `delta` are as in `epsilon`. The result depends on the private data:
    publishing it, or choosing p by it, reveals data. Its unit is "nats, this dataset only".

    Raises:
        InvalidInputError: an argument out of range.

    Source: docs/theory/two-values.md, Theorem 1.

    >>> import hushuffle as hs
    >>> print(hs.bloom.filling_epsilon(bits=100_000, p=0.05, delta=1e-3, ones=0))
    0.01378 nats, this dataset only (certified bracket)
    """
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    protocol = columns(1, bits, p)
    held = _checks.integer("ones", ones, low=0, high=bits)
    bits_law = protocol.randomizer.law().flipped
    assert bits_law is not None
    flip = bits_law.flip
    law, pure = Symmetric(k=2, truth=1 - flip, lie=flip), protocol.randomizer.local_epsilon
    dataset = BinaryDataset.of((bits - held, held), law, 0, local_epsilon=pure)
    return replace(dataset.epsilon(level), unit=FILLING)


def _with_sources(bound: Bound) -> Bound:
    return bracket(bound.lower, bound.upper, unit=bound.unit, sources=(BUFFLING,), witness=bound.witness)


Basis = Literal["certified", "pair"]
"""The epsilon that must meet the target: the certified upper bound, or that of the published pair of datasets."""

_MARGIN: Final = 3e-6
"""The search aims below the target by this fraction, so that the printed epsilon still meets the target."""


@dataclass(frozen=True, kw_only=True)
class FlipProbability:
    """The smallest flip probability p for which epsilon meets the target, with two epsilons at p.

    `certified` is epsilon over all datasets that differ in one person (up to `hashes` columns). `pair` is epsilon of
    the published pair of datasets, which differ in one column. With basis "pair", other datasets may exceed the target.
    """

    p: float
    certified: Bound
    pair: Bound
    basis: Basis
    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"p = {self.p:.6g}: {self.certified} for all datasets, {self.pair} for the published pair"


def estimate_flip_prob(
    *, filters: int, bits: int, epsilon: float, delta: float, hashes: int = 1, basis: Basis = "certified"
) -> FlipProbability:
    """Return the smallest flip probability whose epsilon is at most `epsilon` at `delta` (relative precision 1e-6).

    The search brackets p; it is deterministic. With basis "certified", the certified upper bound of epsilon at the
    returned p was computed and is at most the target. No smaller p meets the target, up to the width of the bracket,
    because epsilon falls as p grows (further flips are post-processing).

    Args:
        filters: number of filters.
        bits: number of bits of each filter.
        epsilon: the target in nats, > 0.
        delta: in (0, 1).
        hashes: number of hash functions (columns that one person changes).
        basis: "certified", or "pair" for the published pair of datasets, one column: no guarantee.

    Raises:
        InvalidInputError: an argument out of range, or basis "pair" with several hash functions.

    Source: buffling, part III, section 2.

    >>> import hushuffle as hs
    >>> found = hs.bloom.estimate_flip_prob(filters=2, bits=10_000, epsilon=0.1, delta=1e-3)
    >>> print(round(found.p, 5), found.certified, found.pair, sep=" | ")
    0.13307 | 0.09984 to 0.10000 nats (certified bracket) | 0.09984 to 0.09985 nats (certified bracket)
    """
    if basis not in get_args(Basis):
        _checks.reject("basis", f"one of {', '.join(get_args(Basis))}", repr(basis))
    target = _checks.positive("epsilon", epsilon)
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    several = _checks.integer("hashes", hashes, low=1, high=_checks.integer("bits", bits, low=1))
    if basis == "pair" and several > 1:
        hint = 'The published pair differs in one column. Use basis="certified".'
        _checks.reject("hashes", '1 with basis="pair"', several, hint)
    aim = target * (1 - _MARGIN)

    def certified(p: float) -> float:
        return one_by_one(law_of(filters, bits, p).near(level / several).upper, aim, several)

    def likely(p: float) -> float:
        return one_by_one(law_of(filters, bits, p).near(level / several).likely, aim, several)

    def pair(p: float) -> float:
        return published_pair_law(filters, bits, p).upper(aim / several)

    # The pair is fast, and its p is near that of all datasets; far below that p, bounds for small crowds take a second.
    chosen = first_below(pair, level / several, high=0.5, guess=0.2)
    if basis == "certified":
        chosen = first_below(likely, level, high=0.5, guess=chosen)
    if basis == "certified" and not certified(chosen) <= level:
        chosen = first_below(certified, level, high=0.5, guess=chosen)
    return FlipProbability(
        p=chosen,
        certified=guarantee(filters=filters, bits=bits, p=chosen, delta=level, hashes=several).epsilon,
        pair=published_pair_epsilon(filters=filters, bits=bits, p=chosen, delta=level),
        basis=basis,
        epsilon=target,
        delta=level,
    )
