"""How much privacy is lost at least: a lower end of epsilon, measured by running a mechanism.

Two neighbouring inputs are run many times. Half of the trials choose an event that tells the two apart, the other half
count how often it happens under each; the interval of Clopper and Pearson around the two counts gives a lower end of
epsilon that holds with the stated confidence, whatever the mechanism does. A claim below it is refuted. No trial proves
a claim: what is measured may be far below what there is to find.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.attacks.measured import Measurement, measure
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.randomness import Randomness, secure

Floats: TypeAlias = npt.NDArray[np.float64]
Sampler: TypeAlias = Callable[[npt.NDArray[np.int64]], Sequence[Any] | npt.NDArray[Any]]
"""Takes values, codes 0..k-1; returns one report for each."""

_RARE: Final = 20
"""Reports that come less often than this in the training half are taken together."""
_BINS: Final = 200


def audit_reports(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    *,
    claimed: float,
    delta: float = 0.0,
    confidence: float = 0.95,
    names: tuple[str, str] = ("first", "second"),
) -> Measurement:
    """Return what reports of two values say of epsilon, whoever made them.

    `first` and `second` are independent reports of a device that holds the one and the other value: numbers, texts,
    bytes, tuples, or rows of an array. Few different reports are counted one by one; numbers are counted in 200 bins;
    of longer reports every bit or column is one piece of evidence, and the evidence is added up. The order in which
    reports are given does not matter: which of them choose the event is drawn.

    Raises:
        InvalidInputError: fewer than four reports, or reports of several kinds.

    >>> rng = np.random.default_rng(1)
    >>> yes, no = rng.random(100_000) < 0.75, rng.random(100_000) < 0.25
    >>> found = audit_reports(yes.tolist(), no.tolist(), claimed=1.0)
    >>> found.refuted, found.epsilon.lower > 1.05
    (True, True)
    """
    size = min(len(first), len(second))
    tables = tuple(_columns(_shuffled(reports), size) for reports in (first, second))
    if tables[0].shape[1] != tables[1].shape[1]:
        _checks.reject("reports", "of one kind and length", "<several lengths>")
    half = size // 2
    scores = [np.zeros(size), np.zeros(size)]
    for place in range(tables[0].shape[1]):
        columns = (tables[0][:, place], tables[1][:, place])
        scores = [score + told for score, told in zip(scores, _evidence(columns, half), strict=True)]
    return measure((scores[0], scores[1]), claimed=claimed, delta=delta, confidence=confidence, names=names)


def _shuffled(reports: Sequence[Any] | npt.NDArray[Any]) -> Sequence[Any] | npt.NDArray[Any]:
    """Return the reports in an order drawn at random: a table may be sorted, or drift."""
    order = secure().permutation(len(reports))
    return reports[order] if isinstance(reports, np.ndarray) else [reports[place] for place in order.tolist()]


def _columns(reports: Sequence[Any] | npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return reports as a table of pieces of evidence, shape (size, pieces)."""
    kept = reports[:size]
    if isinstance(kept, np.ndarray):
        return kept.reshape(size, -1)
    if kept and all(isinstance(report, bytes | bytearray) for report in kept):
        if len({len(report) for report in kept}) == 1 and len(set(kept)) > size // _RARE:
            packed = np.frombuffer(b"".join(kept), dtype=np.uint8).reshape(size, -1)
            return np.unpackbits(packed, axis=1)
        kept = [bytes(report) for report in kept]
    if kept and all(isinstance(report, int | float) for report in kept):
        return np.asarray(kept, dtype=np.float64).reshape(size, 1)
    texts: npt.NDArray[Any] = np.empty(size, dtype=object)
    for place, report in enumerate(kept):
        if not isinstance(report, Hashable):
            rule = "numbers, texts, bytes, tuples, or rows of an array"
            _checks.reject("reports", rule, f"<{type(report).__name__}>")
        texts[place] = report
    return texts.reshape(size, 1)


def _evidence(columns: tuple[npt.NDArray[Any], npt.NDArray[Any]], half: int) -> tuple[Floats, Floats]:
    """Return for every report the logarithm of how much likelier its column is under the first value.

    Learned on the first half of the trials; what is not seen there tells nothing.
    """
    codes = _codes(columns, half)
    size = int(max(code.max(initial=0) for code in codes)) + 1
    counts = [np.bincount(code[:half], minlength=size) for code in codes]
    known = counts[0] + counts[1] >= _RARE
    ratio = np.where(known, np.log((counts[0] + 0.5) / (counts[1] + 0.5)), 0.0)
    return ratio[codes[0]], ratio[codes[1]]


def _codes(
    columns: tuple[npt.NDArray[Any], npt.NDArray[Any]], half: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a column as codes: different entries, or bins of numbers where there are many."""
    both = np.concatenate(columns)
    if both.dtype == object:
        names: dict[Any, int] = {}
        found = np.array([names.setdefault(entry, len(names)) for entry in both.tolist()], dtype=np.int64)
    else:
        seen = np.unique(np.concatenate([column[:half] for column in columns]))
        if seen.size > _BINS:
            seen = np.unique(np.quantile(seen.astype(np.float64), np.linspace(0, 1, _BINS)))
            found = np.searchsorted(seen, both.astype(np.float64))
        else:
            place = np.clip(np.searchsorted(seen, both), 0, seen.size - 1)
            found = np.where(seen[place] == both, place, seen.size)
    return found[: len(columns[0])], found[len(columns[0]) :]


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
        scores.append(_log_ratio(*mechanism.likelihoods(reports, pair)))
    return measure(
        (scores[0], scores[1]),
        claimed=mechanism.local_epsilon if claimed is None else claimed,
        confidence=confidence,
        names=(str(pair[0]), str(pair[1])),
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
    one value than from the other people: the likelihood ratio where all others hold one value.

    Raises:
        InvalidInputError: others who are not n - 1 people, or an argument out of range.

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
    mechanism, source = protocol.randomizer, secure() if rng is None else rng
    counts = np.array(others, dtype=np.int64)
    if counts.sum() != protocol.n - 1 or counts.size > mechanism.inputs or bool((counts < 0).any()):
        _checks.reject("others", f"counts of n - 1 = {protocol.n - 1} people by value", f"<{int(counts.sum())} people>")
    half = _checks.integer("trials", trials, low=8) // 2
    pair = _checks.codes("values", values, k=mechanism.inputs)
    held = np.flatnonzero(counts)
    wanted, shares = np.concatenate([pair, held]), counts[held] / max(counts.sum(), 1)
    rest = np.repeat(np.arange(counts.size), counts)
    scores = []
    for value in pair:
        found = np.empty(half)
        for trial in range(half):
            transcript = protocol.collect(np.append(rest, value), rng=source)
            likely = mechanism.likelihoods(transcript.reports, wanted)
            crowd = shares @ likely[2:] if held.size else likely[:2].mean(axis=0)
            weights = np.divide(likely[:2], crowd, out=np.full_like(likely[:2], np.inf), where=crowd > 0)
            found[trial] = _log_ratio(*np.where(likely[:2] > 0, weights, 0.0).sum(axis=1))
        scores.append(found)
    return measure(
        (scores[0], scores[1]),
        claimed=claimed,
        delta=delta,
        confidence=confidence,
        names=(str(pair[0]), str(pair[1])),
    )


def _log_ratio(first: Any, second: Any) -> Any:
    """Return ln(first/second); where both are 0 or infinite, nothing is told: 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.log(first) - np.log(second), nan=0.0, posinf=np.inf, neginf=-np.inf)
