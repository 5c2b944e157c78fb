"""Many releases of two neighbouring datasets, and how much each of them speaks for the one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.randomness import Randomness

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_TOGETHER: Final = 1 << 20
"""So many messages are drawn in one call."""


def drawn_at_once(protocol: Protocol) -> bool:
    """Return whether many releases can be drawn in one call: a fixed number of messages, of which only counts leave."""
    shuffler = protocol.shuffler
    return protocol.reveals is Reveals.MULTISET and shuffler.dummy_law is None and shuffler.value_law is None


def release_scores(
    protocol: Protocol, others: Sequence[int], pair: tuple[int, int], releases: int, rng: Randomness
) -> tuple[Floats, Floats]:
    """Return the log likelihood ratio of releases, shape (releases,), with the one and with the other value of `pair`.

    `others` counts the other people by value. The ratio is exact where all of them hold one value and nobody adds
    dummies; else others and dummies count as draws from their mixture.

    Raises:
        InvalidInputError: others who are not n - 1 people, or values out of range.
        UnsupportedProtocolError: the law has no likelihoods that can be computed.
    """
    counts = np.array(others, dtype=np.int64)
    inputs = protocol.randomizer.inputs
    if counts.sum() != protocol.n - 1 or counts.size > inputs or bool((counts < 0).any()):
        _checks.reject("others", f"counts of n - 1 = {protocol.n - 1} people by value", f"<{int(counts.sum())} people>")
    wanted = _checks.codes("values", pair, k=inputs)
    rest = np.repeat(np.arange(counts.size), counts)
    first, second = (_scores(protocol, np.append(rest, value), wanted, releases, rng) for value in wanted)
    return first, second


def _scores(protocol: Protocol, held: Integers, pair: Integers, releases: int, rng: Randomness) -> Floats:
    among = protocol.hashed and protocol.reveals is Reveals.MULTISET
    if among or (protocol.truthful and not drawn_at_once(protocol)):
        each = (protocol.collect(held, rng=rng).reports for _ in range(releases))
        return np.array([_counted(protocol, reports, held, pair) for reports in each])
    if not drawn_at_once(protocol):
        each = (protocol.collect(held, rng=rng).reports for _ in range(releases))
        return np.array([_added_up(_told(protocol, reports, held, pair)) for reports in each])
    mechanism, dummies = protocol.randomizer, protocol.shuffler.dummies
    found, at_once = np.empty(releases), max(1, _TOGETHER // (protocol.n + dummies))
    for start in range(0, releases, at_once):
        size = min(at_once, releases - start)
        sent = mechanism.randomize(np.tile(held, size), rng=rng)
        told = _told(protocol, sent, held, pair).reshape(2, size, -1)
        if dummies:
            added = mechanism.dummies(size * dummies, rng=rng)
            told = np.concatenate([told, _told(protocol, added, held, pair).reshape(2, size, -1)], axis=2)
        found[start : start + size] = _added_up(told)
    return found


def _added_up(told: Floats) -> Floats:
    """Return the log ratio of the sums over messages, the last axis.

    Added by size: rounding would otherwise depend on the order of messages, which no shuffle has hidden here.
    """
    return np.asarray(log_ratio(*np.sort(told, axis=-1).sum(axis=-1)))


def _counted(protocol: Protocol, reports: Integers, held: Integers, pair: Integers) -> float:
    """Return ln of how many more speak for either value than others hold it: what true reports are told apart by.

    What speaks for both is counted for the one that more of the others hold.
    """
    known = np.array([np.count_nonzero(held[:-1] == value) for value in pair])
    speaks = protocol.randomizer.supports(reports, pair)
    popular = int(known.argmax())
    speaks[1 - popular] &= ~speaks[popular]
    return float(log_ratio(*(speaks.sum(axis=1) - known).astype(np.float64)))


def _told(protocol: Protocol, reports: Integers, held: Integers, pair: Integers) -> Floats:
    """Return how much likelier each message is from either value than from the others and dummies, shape (2, m)."""
    if reports.ndim > 1 or reports.size == 0 or reports.max() > reports.size:
        return _weights(protocol, reports, held, pair)
    seen = np.flatnonzero(np.bincount(reports))  # few different reports: each is looked at once
    table = np.zeros((2, int(seen[-1]) + 1))
    table[:, seen] = _weights(protocol, seen, held, pair)
    return table[:, reports]


def _weights(protocol: Protocol, reports: Integers, held: Integers, pair: Integers) -> Floats:
    mechanism = protocol.randomizer
    values, counts = np.unique(held[:-1], return_counts=True)
    likely = mechanism.likelihoods(reports, np.concatenate([pair, values]))
    crowd = counts @ likely[2:] if values.size else likely[:2].mean(axis=0)
    dummies = protocol.shuffler.expected_dummies
    if dummies:
        crowd = crowd + dummies * _of_dummies(protocol, reports)
    weights = np.divide(likely[:2], crowd, out=np.full_like(likely[:2], np.inf), where=crowd > 0)
    return np.where(likely[:2] > 0, weights, 0.0)


def _of_dummies(protocol: Protocol, reports: Integers) -> Floats:
    """Return the likelihoods of dummies, up to the same factors as the mechanism's `likelihoods`, shape (m,)."""
    law = protocol.randomizer.law()
    if law.support is not None:
        told, dummy = law.support.told, law.support.dummy
        return np.full(len(reports), law.support.inside / (1 - told + told / dummy))
    least = protocol.randomizer.likelihoods(reports, np.arange(law.values)).min(axis=0)
    return np.asarray(least / max(law.blanket().weight, np.finfo(float).tiny))


def log_ratio(first: Any, second: Any) -> Any:
    """Return ln(first/second); where both are 0 or infinite, nothing is told: 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.log(first) - np.log(second), nan=0.0, posinf=np.inf, neginf=-np.inf)
