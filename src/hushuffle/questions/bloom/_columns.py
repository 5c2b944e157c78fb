"""What the functions of this room have in common: arguments to columns, and where things are from."""

from __future__ import annotations

from typing import Final

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.divergence import divergence
from hushuffle.curves.one_logo import AllAlike
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Citation

BUFFLING: Final = Citation(
    key="seed001",
    text="Technical details of the buffling package: signal to noise and privacy of shuffled, flipped Bloom filters",
)


_RARE = 1e-7


def columns(filters: int, bits: int, p: float) -> Protocol:
    """Return `bits` columns of `filters` bits each, flipped and shuffled."""
    width = _checks.integer("filters", filters, low=1, high=62)
    return Protocol(
        randomizer=BitFlipping(width=width, p=p),
        shuffler=UniformShuffle(),
        n=_checks.integer("bits", bits, low=1),
    )


def law_of(filters: int, bits: int, p: float) -> PrivacyCurve:
    """Return the divergence over all pairs of datasets that differ in one column."""
    return divergence(columns(filters, bits, p))


def pair_law(filters: int, bits: int, p: float, *, others: int, target: tuple[int, int]) -> AllAlike:
    """Return the divergence of one pair of datasets, all other columns at one logo."""
    if 0 < p < _RARE:
        message = f"p = {p!r} is too small for the figure of one pair of datasets: at least {_RARE:g}."
        raise NumericalError(message)
    flips = BitFlipping(width=_checks.integer("filters", filters, low=1, high=62), p=p)
    n = _checks.integer("bits", bits, low=1)
    return AllAlike.of(width=flips.width, flip=flips.flip, n=n, others=others, target=target)


def published_pair_law(filters: int, bits: int, p: float) -> AllAlike:
    """Return the divergence of the published pair: all columns 0...0, against one of them at 1...1."""
    last = (1 << _checks.integer("filters", filters, low=1, high=62)) - 1
    return pair_law(filters, bits, p, others=0, target=(0, last))
