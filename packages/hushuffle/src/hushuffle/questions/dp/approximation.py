"""A fast approximation of central epsilon, for sliders and first drafts; it is never a guarantee."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle._checks import unsupported
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Matrix, ReportLaw, Symmetric, ValueLaws
from hushuffle.mechanisms.randomizers.report_law import LARGEST_MATRIX
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound
from hushuffle.numerics.normal_pair import level_between
from hushuffle.questions.dp.composition import Rounds, merged
from hushuffle.questions.dp.curve import GDP

WORST: Final = 0.1
"""The approximation is refused if one report changes the loss by more than this fraction of mu**2/epsilon."""

_HINT: Final = "Use dp.epsilon (or dp.compose) for a certified bound."


def information(protocol: Protocol) -> float:
    """Return mu**2 = I*/n, where the curve of mu-GDP approximates the worst-case privacy curve for large n.

    I* = max over values a, b of the target and x of all others of sum_y (Q_a - Q_b)(y)**2/Q_x(y), with Q_x the report
    distribution. Dummies count like reports; the adversary knows their number and distribution. The result is infinite
    if no other person or dummy ever sends a report that distinguishes a from b.

    Raises:
        UnsupportedProtocolError: no analysis for this randomizer, or for this shuffler.

    Source: docs/theory/curves.md, Remark 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> round(hs.dp.information(survey) ** 0.5, 6)
    0.014738
    """
    _checks.of_type("protocol", protocol, Protocol)
    return _information(protocol)[0]


def approximate(rounds: Protocol | Rounds, *, delta: float) -> Bound:
    """Return an approximation of the smallest epsilon (nats) within milliseconds: the epsilon of a pair of Gaussians.

    It can be above or below the true epsilon, so it is not a guarantee, and `Guarantee` does not accept it. In all
    tested cases it was within 4 % of the certified epsilon, and within 0.1 % in most cases with n = 100,000.

    Args:
        rounds: a protocol, or a list of protocols or pairs (protocol, times), as for `dp.compose`.
        delta: in (0, 1).

    Raises:
        InvalidInputError: no rounds, times < 1, or delta out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler; or the approximation fails. It fails if one
            value can cause a report that another value cannot, and no other person can send this report. It also fails
            if n is tiny or the local epsilon about ln n: one report then changes the privacy loss by more than
            0.1 * `dp.information(protocol)` / epsilon.

    Source: docs/theory/curves.md, Remark 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.approximate(survey, delta=1e-6))
    0.05113 nats (approximation, never a guarantee)
    """
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    parts = []
    for item, times in merged(rounds):
        if not isinstance(item, Protocol):
            what = "not several randomizers, imported distributions or several reports of a person"
            unsupported(f"The approximation supports only shuffled reports of one randomizer, {what}. {_HINT}")
        parts.append((*_information(item), item, times))
    total = math.fsum(times * square for square, _, _, times in parts)
    largest = max(step for _, step, _, _ in parts)
    if not math.isfinite(total):
        unsupported(
            "The approximation does not apply: for any number of people, some report proves that its sender does not "
            f"have a certain value. {_HINT}"
        )
    mu = math.sqrt(total)
    value = level_between(mu, level) if mu else 0.0
    if largest * max(value, mu) > WORST * total:
        unsupported(
            f"The approximation is too inaccurate: a single report changes the privacy loss by up to {largest:.3g} "
            f"nats, and the standard deviation of the total loss is {mu:.3g} nats. Too few reports are equal. {_HINT}"
        )
    pure = math.fsum(times * protocol.randomizer.local_epsilon for _, _, protocol, times in parts)
    value = min(value, pure)
    return Bound(lower=value, upper=value, kind="approximation", unit="nats", sources=(GDP,))


def _information(protocol: Protocol) -> tuple[float, float]:
    """Return mu**2, and the largest change of the loss by a single report (nats)."""
    protocol = protocol.secret
    if protocol.reveals is not Reveals.MULTISET:
        unsupported(f"The approximation supports only shuffled reports; here {protocol.shuffler.describe()}. {_HINT}")
    n, dummies = protocol.n, protocol.shuffler.dummies
    both = n * dummies / (n + dummies)
    best = 0.0, 0.0
    for law in _laws(protocol.randomizer.law()):
        differ = np.stack([law.rows[a] - law.rows[b] for a, b in law.pairs])
        for row in law.rows:
            reports = n * row + dummies * law.blanket
            seen = reports > 0
            if bool(np.any(differ[:, ~seen])):
                return math.inf, math.inf
            gain, apart = differ[:, seen], (row - law.blanket)[seen]
            share = gain / reports[seen]
            # The numbers of people and of dummies are known, so their mixture varies less than its mean law.
            shared = share @ apart
            spread = float(apart @ (apart / reports[seen]))
            information = (gain * share).sum(axis=1) + both * shared**2 / (1 - both * spread)
            place = int(information.argmax())
            if information[place] > best[0]:
                best = float(information[place]), float(np.abs(share[place]).max())
    return best


def _laws(law: ReportLaw) -> tuple[ValueLaws, ...]:
    """Report distributions of pairs, over classes with constant ratios also to other people's values."""
    if law.bucket is not None:
        return (_hashed(law.bucket),)
    pairs = law.pairs()
    if law.symmetric is not None or all(each.complete for each in pairs):
        return pairs
    try:
        table = law.channel()
    except UnsupportedProtocolError:  # bits: in the worst case all others have one of the pair's values
        return pairs
    return Matrix(table=table).pairs() if table.matrix.size <= LARGEST_MATRIX else pairs


def _hashed(bucket: Symmetric) -> ValueLaws:
    """Report distributions of a pair's two values and a third value, hashed independently."""
    g, truth, lie = bucket.k, float(bucket.truth), float(bucket.lie)
    rows, blanket = [np.array([[1.0 / g]] * 3)], [np.array([1.0 / g])]  # the pair shares a bucket
    for places, weight in (((0, 1, 2), (g - 2) / g), ((0, 1, 0), 1 / g), ((0, 1, 1), 1 / g)):
        taken = len(set(places))
        if g >= taken:
            sizes = np.array([1.0] * taken + [g - taken]) * weight * (1 - 1 / g)
            own = np.arange(taken + 1) == np.array(places)[:, None]
            rows.append(sizes * np.where(own, truth, lie))
            blanket.append(sizes / g)
    table, shared = np.hstack(rows), np.concatenate(blanket)
    return ValueLaws(rows=table, labels=(0, 1, 2), blanket=shared, weight=float(bucket.gamma), pairs=((0, 1), (1, 0)))
