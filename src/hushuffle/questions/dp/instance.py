"""Epsilon of one given dataset: how much the worst case exaggerates here. Never a guarantee."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hushuffle import _checks
from hushuffle.curves.base import in_order
from hushuffle.curves.known_dataset import FAMILY, BinaryDataset, KaryDataset, KnownDataset
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Symmetric, symmetric_law
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Histogram, Witness
from hushuffle.questions.dp.central import epsilon

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

UNIT: Final = "nats, this dataset only"
"""The unit of such a figure: not "nats", so that no `Guarantee` can be made of it."""


def instance(protocol: Protocol, *, histogram: Histogram, delta: float) -> Bound:
    """Return a bracket of epsilon for ONE dataset and its neighbours. This is no privacy guarantee.

    The worst divergence over which one of the n people changes and to which value, everybody else as in
    `histogram`. It can be far below `epsilon`, which holds for every dataset; it depends on the private data,
    so that choosing noise by it, or publishing it, gives data away. Its unit is "nats, this dataset only".

    Args:
        protocol: the collection: uniform shuffle (dummies allowed) or none.
        histogram: how many of the n people hold each value, shape (k,).
        delta: in (0, 1).

    Raises:
        InvalidInputError: a histogram of other than n people or k values; delta out of range.
        UnsupportedProtocolError: no law for this randomizer and shuffler.
        NumericalError: k >= 3 and n too large (counts over more than 2**21 cells: n of about 10**5 at k = 3),
            or delta below what rounding allows (about 1e-10).

    Source: docs/theory/datasets.md, Theorem 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=4.0), shuffler=hs.UniformShuffle(), n=999)
    >>> print(instance(survey, histogram=hs.Histogram(counts=[333, 333, 333]), delta=1e-6))
    0.8924 nats, this dataset only (certified bracket)
    """
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    law = symmetric_law(protocol.randomizer, for_what="Epsilon of one dataset")
    people = _people(protocol, histogram, law.k)
    match protocol.shuffler.reveals:
        case Reveals.SENDERS:
            return _alike(protocol, people, level)
        case Reveals.MULTISET if law.lie == 0 and protocol.shuffler.dummies == 0:
            return _alike(protocol, people, level)
        case Reveals.MULTISET if law.lie > 0:
            return _shuffled(protocol, law, people, level)
    message = f"Epsilon of one dataset is not available with {protocol.shuffler.describe()}, and this randomizer."
    raise UnsupportedProtocolError(message)


def _people(protocol: Protocol, histogram: Histogram, k: int) -> tuple[int, ...]:
    if histogram.k != k:
        _checks.reject("histogram", f"counts of k = {k} values", f"<{histogram.k} values>")
    if histogram.total != protocol.n:
        _checks.reject("histogram", f"counts of all n = {protocol.n} people", f"<{histogram.total} people>")
    return tuple(int(count) for count in histogram.counts)


def _alike(protocol: Protocol, people: tuple[int, ...], level: float) -> Bound:
    """The report is seen with its sender, or the counts give the value away: all datasets are alike."""
    before = next(value for value, count in enumerate(people) if count)
    others = tuple(count - (value == before) for value, count in enumerate(people))
    witness = Witness(family=FAMILY, others=others, target=(before, (before + 1) % len(people)))
    worst = epsilon(protocol, delta=level)
    return replace(worst, unit=UNIT, witness=witness)


def _shuffled(protocol: Protocol, law: Symmetric, people: tuple[int, ...], level: float) -> Bound:
    pure, dummies = protocol.randomizer.local_epsilon, protocol.shuffler.dummies
    dataset: KnownDataset
    if law.k == 2:
        dataset = BinaryDataset.of(people, law, dummies, local_epsilon=pure)
    else:
        dataset = KaryDataset.of(people, law, dummies, level, local_epsilon=pure)
    found = dataset.epsilon(level)
    upper = found.upper
    if law.k > 3:
        with suppress(UnsupportedProtocolError):  # what holds for every dataset holds here
            upper = min(upper, epsilon(protocol, delta=level).upper)
    low = in_order(found.lower, upper)
    return Bound(lower=low, upper=upper, kind="bracket", unit=UNIT, sources=found.sources, witness=found.witness)
