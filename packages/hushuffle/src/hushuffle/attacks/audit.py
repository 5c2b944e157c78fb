"""Empirical lower bounds on epsilon, from trials of a mechanism on two neighbouring inputs.

Some trials choose an event, and the others count it. The lower bound holds with the stated confidence for any
mechanism: it can refute a claimed epsilon, but no trial proves a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats, Integers
from hushuffle.attacks.learned import codes_of, columns_of, one_input_only, one_sided, scorer
from hushuffle.attacks.measured import Measurement, OneSided, measure, with_one_sided
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.randomness import Randomness, secure

Sampler: TypeAlias = Callable[[npt.NDArray[np.int64]], Sequence[Any] | npt.NDArray[Any]]
"""A function that takes values (codes 0..k-1) and returns one report for each value."""

_LONGEST: Final = 60
_SHOWN: Final = 5
_LEARNED: Final = 0.25
"""Share of the trials that train the score of reports; the other trials choose the tested event and count it."""


def audit_reports(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    *,
    claimed: float,
    delta: float = 0.0,
    confidence: float = 0.95,
    names: tuple[str, str] = ("first", "second"),
    classify: bool | None = None,
    show: bool = False,
) -> Measurement:
    """Return a measured lower bound on epsilon, from reports of two values.

    `first` and `second` are independent reports of a device that holds the first or the second value: numbers, texts,
    bytes, tuples, or rows of an array. Reports that repeat often are counted one by one, and numbers in 200 bins.
    For other reports, each bit, character, entry or column is evidence. The evidence is added up or combined by a
    classifier; the method that separates the two values better is used. Reports that occur for only one value are
    tested as a separate event, even if they are rare. The order of the reports does not matter, since a random choice
    decides which reports choose the event.

    Args:
        first: reports of the first value.
        second: reports of the second value.
        claimed: the epsilon (nats) that is claimed.
        delta: the delta of the claim.
        confidence: confidence of the lower bound.
        names: names of the two values.
        classify: whether to try a classifier; None: if scikit-learn is installed and reports have several pieces.
        show: whether the result contains examples of reports that occur for one value only.

    Raises:
        InvalidInputError: there are fewer than four reports, or reports of several types.
        MissingDependencyError: a classifier is requested, but scikit-learn is not installed.

    >>> rng = np.random.default_rng(1)
    >>> yes, no = rng.random(100_000) < 0.75, rng.random(100_000) < 0.25
    >>> result = audit_reports(yes.tolist(), no.tolist(), claimed=1.0)
    >>> result.refuted, result.epsilon.lower > 1.05
    (True, True)
    """
    size = min(len(first), len(second))
    drawn = [_shuffled(reports)[:size] for reports in (first, second)]
    pieces = columns_of(drawn)
    learned = max(1, int(size * _LEARNED))
    codes = codes_of(pieces, size, learned)
    training, fresh = [each[:learned] for each in codes], [each[learned:] for each in codes]
    score = scorer(*training, trials=size - learned, delta=delta, confidence=confidence, classify=classify)
    kinds = [(own, pick) for own in range(2) if (pick := one_sided(training[own], training[1 - own])) is not None]
    # All events share the probability of a false alarm. Whether there are any was decided on other reports.
    each = 1 - (1 - confidence) / (1 + len(kinds))
    scores = (score(fresh[0]), score(fresh[1]))
    measurement = measure(scores, claimed=claimed, delta=delta, confidence=each, names=names)
    for own, pick in kinds:
        picked = np.flatnonzero(pick(fresh[own]))
        hits = int(picked.size), int(np.count_nonzero(pick(fresh[1 - own])))
        example = repr(drawn[own][learned + int(picked[0])])[:_LONGEST] if show and picked.size else ""
        apart = OneSided(first=names[own], second=names[1 - own], hits=hits, trials=size - learned, example=example)
        measurement = with_one_sided(measurement, apart, confidence=each)
    epsilon, for_a_lie = replace(measurement.epsilon, confidence=confidence), measurement.for_a_lie / (1 - _LEARNED)
    listed = one_input_only(drawn)[:_SHOWN] if show else []
    rare = tuple((repr(report)[:_LONGEST], names[own], count) for report, own, count in listed)
    return replace(measurement, epsilon=epsilon, for_a_lie=for_a_lie, rare=rare)


def _shuffled(reports: Sequence[Any] | npt.NDArray[Any]) -> Sequence[Any] | npt.NDArray[Any]:
    """Return the reports in a random order, because a table of reports may be sorted or may drift over time."""
    order = secure().permutation(len(reports))
    return reports[order] if isinstance(reports, np.ndarray) else [reports[place] for place in order.tolist()]


def audit_sampler(
    sampler: Sampler,
    values: tuple[int, int],
    *,
    claimed: float,
    trials: int = 100_000,
    delta: float = 0.0,
    confidence: float = 0.95,
    names: tuple[str, str] | None = None,
) -> Measurement:
    """Return a measured lower bound on epsilon for any sampler of reports, run on two values.

    Raises:
        InvalidInputError: for the reasons of `audit_reports`, or if the sampler does not return one report per value.

    >>> rng = np.random.default_rng(1)
    >>> lies = lambda values: np.where(rng.random(values.size) < 0.25, 1 - values, values)
    >>> audit_sampler(lies, (0, 1), claimed=1.0).refuted
    True
    """
    half = _checks.integer("trials", trials, low=8) // 2
    reports = [sampler(np.full(half, value, dtype=np.int64)) for value in values]
    for batch in reports:
        if len(batch) != half:
            rule = f"a function that returns one report for each of {half} values"
            _checks.reject("sampler", rule, f"<{len(batch)} reports>")
    shown = names or (str(values[0]), str(values[1]))
    return audit_reports(*reports, claimed=claimed, delta=delta, confidence=confidence, names=shown, show=True)


def audit_mechanism(
    mechanism: Mechanism,
    *,
    values: tuple[int, int] = (0, 1),
    trials: int = 1_000_000,
    confidence: float = 0.95,
    claimed: float | None = None,
    rng: Randomness | None = None,
) -> Measurement:
    """Return a measured lower bound on the local epsilon of a mechanism, from the likelihood-ratio test of two values.

    The test uses the likelihood ratio of the mechanism's distribution; the reports come from its sampler. A sampler
    that reveals more than that distribution is refuted.

    Args:
        mechanism: the mechanism whose sampler is run.
        values: codes of the two values.
        trials: total number of reports; half of them are reports of each value.
        confidence: confidence of the lower bound.
        claimed: the epsilon to test; the mechanism's local epsilon by default.
        rng: the random generator; `secure()` by default.

    Raises:
        InvalidInputError: values or trials out of range.
        UnsupportedProtocolError: the likelihoods of reports cannot be computed.

    >>> from hushuffle import RandomizedResponse
    >>> from hushuffle.randomness import reproducible
    >>> result = audit_mechanism(RandomizedResponse(k=4, epsilon=1.0), trials=200_000, rng=reproducible(1))
    >>> result.refuted, result.epsilon.lower > 0.95
    (False, True)
    """
    source = secure() if rng is None else rng
    half = _checks.integer("trials", trials, low=8) // 2
    pair = _checks.codes("values", values, k=mechanism.inputs)
    scores = []
    for value in pair:
        reports = mechanism.randomize(np.full(half, value, dtype=np.int64), rng=source)
        scores.append(log_ratio(*mechanism.likelihoods(reports, pair)))
    names, bound = (str(pair[0]), str(pair[1])), mechanism.local_epsilon if claimed is None else claimed
    return measure((scores[0], scores[1]), claimed=bound, confidence=confidence, names=names, ratios=True)


def audit_protocol(
    protocol: Protocol,
    *,
    others: Sequence[int],
    values: tuple[int, int],
    claimed: float,
    delta: float,
    trials: int = 20_000,
    confidence: float = 0.95,
    rng: Randomness | None = None,
) -> Measurement:
    """Return a measured lower bound on the central epsilon, from many releases of two neighbouring datasets.

    Each dataset consists of `others` (numbers of other people by value, as in a `Witness`) and one person who holds
    one of the two `values`. The test scores every message of a release by its likelihood under that value, relative
    to the other people and dummies, and adds the scores up. This is the likelihood ratio if all others hold one value
    and there are no dummies. If only counts are released, messages of many releases are drawn at once, unshuffled.
    If the guarantee assumes that only some clients are honest, the datasets contain only the honest clients.

    Raises:
        InvalidInputError: `others` does not have n - 1 (honest) people, or an argument is out of range.

    Source: docs/how-to/audit.md.

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle
    >>> from hushuffle.randomness import reproducible
    >>> pair = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=UniformShuffle(), n=3)
    >>> result = audit_protocol(
    ...     pair, others=(2,), values=(0, 1), claimed=1.0, delta=0.0, trials=4000, rng=reproducible(1)
    ... )
    >>> result.refuted, 0.4 < result.epsilon.lower < 1.0
    (False, True)
    """
    half = _checks.integer("trials", trials, low=8) // 2
    scores = release_scores(protocol.secret, others, values, half, secure() if rng is None else rng)
    names = (str(values[0]), str(values[1]))
    return measure(scores, claimed=claimed, delta=delta, confidence=confidence, names=names, ratios=True)


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

    They are exact if all others have one value and there are no dummies; else others count as draws from their mixture.
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
        return np.array([log_ratio(*_totals(protocol, reports, 1, held, pair)[:, 0]) for reports in each])
    mechanism, dummies = protocol.randomizer, protocol.shuffler.dummies
    scores, at_once = np.empty(releases), max(1, _TOGETHER // (protocol.n + dummies))
    for start in range(0, releases, at_once):
        size = min(at_once, releases - start)
        sent = mechanism.randomize(np.tile(held, size), rng=rng)
        totals = _totals(protocol, sent, size, held, pair)
        if dummies:
            totals += _totals(protocol, mechanism.dummies(size * dummies, rng=rng), size, held, pair)
        scores[start : start + size] = log_ratio(*totals)
    return scores


def _counted(protocol: Protocol, reports: Integers, held: Integers, pair: Integers) -> float:
    """Return the log ratio of reports to holders; a report that supports both counts for the more frequent value."""
    holders = np.array([np.count_nonzero(held[:-1] == value) for value in pair])
    speaks = protocol.randomizer.supports(reports, pair)
    popular = int(holders.argmax())
    speaks[1 - popular] &= ~speaks[popular]
    return float(log_ratio(*(speaks.sum(axis=1) - holders).astype(np.float64)))


def _totals(protocol: Protocol, reports: Integers, releases: int, held: Integers, pair: Integers) -> Floats:
    """Return the sums of `_weights` over the messages of each release, shape (2, releases).

    Rounding does not depend on the unshuffled order: different reports are counted, or weights are sorted.
    """
    if (counted := tallied(reports, releases)) is None:
        weights = _weights(protocol, reports, held, pair).reshape(2, releases, -1)
        return np.asarray(np.sort(weights, axis=-1).sum(axis=-1))
    seen, counts = counted
    weights = _weights(protocol, seen, held, pair)[:, None]
    return np.asarray(np.multiply(counts, weights, out=np.zeros((2, *counts.shape)), where=counts > 0).sum(axis=-1))


def tallied(reports: Integers, releases: int = 1) -> tuple[Integers, Integers] | None:
    """Return the different reports, and how often each occurs in each release, shape (releases, different reports).

    The releases have equal sizes. None if reports are not numbers below the size of a release.

    >>> [part.tolist() for part in tallied(np.array([0, 2, 2, 0, 0, 2]), 2)]
    [[0, 2], [[1, 2], [2, 1]]]
    """
    if reports.ndim > 1 or reports.size == 0 or releases * int(reports.max()) >= reports.size:
        return None
    codes = int(reports.max()) + 1
    places = reports.reshape(releases, -1) + codes * np.arange(releases)[:, None]
    counts = np.bincount(places.ravel(), minlength=releases * codes).reshape(releases, codes)
    seen = np.flatnonzero(counts.any(axis=0))
    return seen, counts[:, seen]


def _weights(protocol: Protocol, reports: Integers, held: Integers, pair: Integers) -> Floats:
    """Return the likelihood of each message under both values, relative to other people and dummies, shape (2, m)."""
    mechanism = protocol.randomizer
    values, counts = np.unique(held[:-1], return_counts=True)
    likely = mechanism.likelihoods(reports, np.concatenate([pair, values]))
    crowd = counts @ likely[2:] if values.size else likely[:2].mean(axis=0)
    dummies = protocol.shuffler.expected_dummies
    if dummies:
        crowd = crowd + dummies * _of_dummies(protocol, reports)
    return relative(likely[:2], crowd)


def relative(likely: Floats, crowd: Floats) -> Floats:
    """Return `likely` divided by `crowd`, and 0 where both are 0."""
    weights = np.divide(likely, crowd, out=np.full_like(likely, np.inf), where=crowd > 0)
    return np.where(likely > 0, weights, 0.0)


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
