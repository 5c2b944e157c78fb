"""Scores of many releases of two neighbouring datasets: the evidence of each release for the first dataset."""

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
"""Number of random messages that are drawn in one call."""


def drawn_at_once(protocol: Protocol) -> bool:
    """Return whether many releases can be drawn at once: their size is fixed, and only counts are released."""
    shuffler = protocol.shuffler
    return protocol.reveals is Reveals.MULTISET and shuffler.dummy_law is None and shuffler.value_law is None


def release_scores(
    protocol: Protocol, others: Sequence[int], pair: tuple[int, int], releases: int, rng: Randomness
) -> tuple[Floats, Floats]:
    """Return log likelihood ratios of releases of each value, shape (releases,) each; `others` counts people by value.

    They are exact if all others have one value and there are no dummies; else others are draws from their mixture.
    """
    counts = np.array(others, dtype=np.int64)
    inputs = protocol.randomizer.inputs
    if counts.sum() != protocol.n - 1 or counts.size > inputs or bool((counts < 0).any()):
        _checks.reject("others", f"counts per value that add up to n - 1 = {protocol.n - 1}", f"<sum {counts.sum()}>")
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
    scores, at_once = np.empty(releases), max(1, _TOGETHER // (protocol.n + dummies))
    for start in range(0, releases, at_once):
        size = min(at_once, releases - start)
        sent = mechanism.randomize(np.tile(held, size), rng=rng)
        weights = _told(protocol, sent, held, pair).reshape(2, size, -1)
        if dummies:
            added = mechanism.dummies(size * dummies, rng=rng)
            weights = np.concatenate([weights, _told(protocol, added, held, pair).reshape(2, size, -1)], axis=2)
        scores[start : start + size] = _added_up(weights)
    return scores


def _added_up(weights: Floats) -> Floats:
    """Sum over messages (last axis) in order of size, so that rounding does not depend on the unshuffled order."""
    return np.asarray(log_ratio(*np.sort(weights, axis=-1).sum(axis=-1)))


def _counted(protocol: Protocol, reports: Integers, held: Integers, pair: Integers) -> float:
    """Return the log ratio of reports to holders; a report that supports both counts for the more frequent value."""
    holders = np.array([np.count_nonzero(held[:-1] == value) for value in pair])
    speaks = protocol.randomizer.supports(reports, pair)
    popular = int(holders.argmax())
    speaks[1 - popular] &= ~speaks[popular]
    return float(log_ratio(*(speaks.sum(axis=1) - holders).astype(np.float64)))


def _told(protocol: Protocol, reports: Integers, held: Integers, pair: Integers) -> Floats:
    """Return the likelihood of each message under both values, relative to other people and dummies, shape (2, m)."""
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
    law = protocol.randomizer.law()
    if law.support is not None:
        truthful, dummy = law.support.told, law.support.dummy
        return np.full(len(reports), law.support.inside / (1 - truthful + truthful / dummy))
    least = protocol.randomizer.likelihoods(reports, np.arange(law.values)).min(axis=0)
    return np.asarray(least / max(law.blanket().weight, np.finfo(float).tiny))


def log_ratio(first: Any, second: Any) -> Any:
    """Return ln(first/second), and 0 (no evidence) if both are 0 or both are infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.log(first) - np.log(second), nan=0.0, posinf=np.inf, neginf=-np.inf)
