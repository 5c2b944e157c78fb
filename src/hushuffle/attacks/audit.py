"""How much privacy is lost at least: a lower end of epsilon, measured by running a mechanism.

Two neighbouring inputs are run many times. Some of the trials choose an event that tells the two apart, the others
count how often it happens under each; the two counts give a lower end of epsilon that holds with the stated confidence,
whatever the mechanism does. A claim below it is refuted. No trial proves a claim: what is measured may be far below
what there is to find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.attacks.learned import one_sided, scorer
from hushuffle.attacks.measured import Measurement, OneSided, measure, with_one_sided
from hushuffle.attacks.releases import log_ratio, release_scores
from hushuffle.attacks.reports import codes_of, columns_of
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.randomness import Randomness, secure

Sampler: TypeAlias = Callable[[npt.NDArray[np.int64]], Sequence[Any] | npt.NDArray[Any]]
"""Takes values, codes 0..k-1; returns one report for each."""

_LEARNED: Final = 0.25
"""Share of the trials from which it is learned what a report speaks for; the others choose the event and count it."""


def audit_reports(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    *,
    claimed: float,
    delta: float = 0.0,
    confidence: float = 0.95,
    names: tuple[str, str] = ("first", "second"),
    classify: bool | None = None,
) -> Measurement:
    """Return what reports of two values say of epsilon, whoever made them.

    `first` and `second` are independent reports of a device that holds the one and the other value: numbers, texts,
    bytes, tuples, or rows of an array. Few different reports are counted one by one; numbers are counted in 200 bins.
    Of others every bit, character, entry or column is one piece of evidence; the pieces are added up, or a classifier
    sees them together, whichever tells more. Reports of a kind that comes for one value alone are an event of their
    own, however rare they are. The order in which reports are given does not matter: which of them
    choose the event is drawn.

    Args:
        first: reports of the first value.
        second: reports of the second value.
        claimed: the epsilon (nats) that is claimed.
        delta: of the claim.
        confidence: with which the lower end holds.
        names: of the two values.
        classify: whether a classifier is tried; None: if scikit-learn is there and reports have several pieces.

    Raises:
        InvalidInputError: fewer than four reports, or reports of several kinds.
        MissingDependencyError: a classifier is wanted, and scikit-learn is not installed.

    >>> rng = np.random.default_rng(1)
    >>> yes, no = rng.random(100_000) < 0.75, rng.random(100_000) < 0.25
    >>> found = audit_reports(yes.tolist(), no.tolist(), claimed=1.0)
    >>> found.refuted, found.epsilon.lower > 1.05
    (True, True)
    """
    size = min(len(first), len(second))
    pieces = columns_of([_shuffled(reports)[:size] for reports in (first, second)])
    learned = max(1, int(size * _LEARNED))
    codes = codes_of(pieces, size, learned)
    score = scorer(
        codes[0][:learned],
        codes[1][:learned],
        trials=size - learned,
        delta=delta,
        confidence=confidence,
        classify=classify,
    )
    known, fresh = [each[:learned] for each in codes], [each[learned:] for each in codes]
    kinds = [(own, pick) for own in range(2) if (pick := one_sided(known[own], known[1 - own])) is not None]
    # All events share the probability of a false alarm. Whether there are any was decided on other reports.
    each = 1 - (1 - confidence) / (1 + len(kinds))
    found = measure((score(fresh[0]), score(fresh[1])), claimed=claimed, delta=delta, confidence=each, names=names)
    for own, pick in kinds:
        hits = int(np.count_nonzero(pick(fresh[own]))), int(np.count_nonzero(pick(fresh[1 - own])))
        apart = OneSided(first=names[own], second=names[1 - own], hits=hits, trials=size - learned)
        found = with_one_sided(found, apart, confidence=each)
    epsilon = replace(found.epsilon, confidence=confidence)
    return replace(found, epsilon=epsilon, for_a_lie=found.for_a_lie / (1 - _LEARNED))


def _shuffled(reports: Sequence[Any] | npt.NDArray[Any]) -> Sequence[Any] | npt.NDArray[Any]:
    """Return the reports in an order drawn at random: a table may be sorted, or drift."""
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
    """Return what somebody else's randomizer shows on two values; `sampler` takes codes and returns reports.

    Raises:
        InvalidInputError: as `audit_reports`, or not one report for each value.

    >>> rng = np.random.default_rng(1)
    >>> lies = lambda values: np.where(rng.random(values.size) < 0.25, 1 - values, values)
    >>> audit_sampler(lies, (0, 1), claimed=1.0).refuted
    True
    """
    half = _checks.integer("trials", trials, low=8) // 2
    reports = [sampler(np.full(half, value, dtype=np.int64)) for value in values]
    for made in reports:
        if len(made) != half:
            _checks.reject("sampler", f"one report for each of {half} values", f"<{len(made)} reports>")
    shown = names or (str(values[0]), str(values[1]))
    return audit_reports(reports[0], reports[1], claimed=claimed, delta=delta, confidence=confidence, names=shown)


def audit_mechanism(
    mechanism: Mechanism,
    *,
    values: tuple[int, int] = (0, 1),
    trials: int = 1_000_000,
    confidence: float = 0.95,
    claimed: float | None = None,
    rng: Randomness | None = None,
) -> Measurement:
    """Return what the reports of one device show of its local epsilon: the best test of two values, run.

    The test is the likelihood ratio of the law; the reports come from the sampler. A sampler that tells more than its
    law is refuted.

    Args:
        mechanism: whose sampler is run.
        values: the two values, codes.
        trials: in all, half of them for either value.
        confidence: of the lower end.
        claimed: the epsilon to hold against it; the mechanism's own local epsilon by default.
        rng: `secure()` by default.

    Raises:
        InvalidInputError: values or trials out of range.
        UnsupportedProtocolError: the law has no likelihoods that can be computed.

    >>> from hushuffle import RandomizedResponse
    >>> from hushuffle.randomness import reproducible
    >>> found = audit_mechanism(RandomizedResponse(k=4, epsilon=1.0), trials=200_000, rng=reproducible(1))
    >>> found.refuted, found.epsilon.lower > 0.95
    (False, True)
    """
    source = secure() if rng is None else rng
    half = _checks.integer("trials", trials, low=8) // 2
    pair = _checks.codes("values", values, k=mechanism.inputs)
    scores = []
    for value in pair:
        reports = mechanism.randomize(np.full(half, value, dtype=np.int64), rng=source)
        scores.append(log_ratio(*mechanism.likelihoods(reports, pair)))
    return measure(
        (scores[0], scores[1]),
        claimed=mechanism.local_epsilon if claimed is None else claimed,
        confidence=confidence,
        names=(str(pair[0]), str(pair[1])),
        ratios=True,
    )


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
    """Return what shuffled releases show of the central epsilon: two neighbouring datasets, collected many times.

    The datasets are `others` (how many of the other people hold each value, as in a `Witness`) and one person with the
    one or the other of `values`. The test adds up, over the messages of a release, how much likelier each is from the
    one value than from the other people and dummies: the likelihood ratio where all others hold one value, and nobody
    adds dummies. Where only counts are released, messages of many releases are drawn in one call and not shuffled.
    Where only so many people are honest, the datasets and the releases are those of these: figures count on them alone.

    Raises:
        InvalidInputError: others who are not n - 1 (honest) people, or an argument out of range.

    Source: docs/how-to/audit.md.

    >>> from hushuffle import Protocol, RandomizedResponse, UniformShuffle
    >>> from hushuffle.randomness import reproducible
    >>> pair = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=UniformShuffle(), n=3)
    >>> found = audit_protocol(
    ...     pair, others=(2,), values=(0, 1), claimed=1.0, delta=0.0, trials=4000, rng=reproducible(1)
    ... )
    >>> found.refuted, 0.4 < found.epsilon.lower < 1.0
    (False, True)
    """
    half = _checks.integer("trials", trials, low=8) // 2
    scores = release_scores(protocol.secret, others, values, half, secure() if rng is None else rng)
    return measure(
        scores,
        claimed=claimed,
        delta=delta,
        confidence=confidence,
        names=(str(values[0]), str(values[1])),
        ratios=True,
    )
