"""Calibration: the smallest flip probability of Bloom filters for a target epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from hushuffle import _checks
from hushuffle.model import Bound
from hushuffle.numerics.roots import crossing
from hushuffle.questions.bloom.privacy import epsilon as certified_figure
from hushuffle.questions.bloom.privacy import person_delta, published_pair_epsilon
from hushuffle.questions.bloom.transition import law_of, published_pair_law

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
    """Return the smallest flip probability whose epsilon is at most `epsilon` at `delta`, to about 1e-6 of it.

    The search brackets p; it is deterministic. With basis "certified", the certified upper bound of epsilon at the
    returned p was computed and is at most the target. No smaller p meets the target, up to the width of the bracket,
    because epsilon falls as p grows (more flips are a post-processing).

    Args:
        filters: number of filters.
        bits: number of bits of each filter.
        epsilon: the target in nats, > 0.
        delta: in (0, 1).
        hashes: number of hash functions (columns that one person touches).
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
        return person_delta(law_of(filters, bits, p).near(level / several).upper, aim, several)

    def likely(p: float) -> float:
        return person_delta(law_of(filters, bits, p).near(level / several).likely, aim, several)

    def pair(p: float) -> float:
        return published_pair_law(filters, bits, p).upper(aim)

    chosen = crossing(likely if basis == "certified" else pair, level, high=0.5, guess=0.2)[1]
    if basis == "certified" and not certified(chosen) <= level:
        chosen = crossing(certified, level, high=0.5, guess=chosen)[1]
    return FlipProbability(
        p=chosen,
        certified=certified_figure(filters=filters, bits=bits, p=chosen, delta=level, hashes=several),
        pair=published_pair_epsilon(filters=filters, bits=bits, p=chosen, delta=level),
        basis=basis,
        epsilon=target,
        delta=level,
    )
