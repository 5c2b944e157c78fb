"""Repeated collections among the same people with memoised reports."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hushuffle import _checks
from hushuffle.curves.base import bracket
from hushuffle.curves.question import Memory, Question
from hushuffle.curves.search import solve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.report_law import Symmetric
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound


def waves(
    protocol: Protocol, *, waves: int, delta: float, instantaneous: Mechanism | None = None, changes: int = 0
) -> Bound:
    """Return a bracket of epsilon (nats) of several waves of collection together, with memoised reports.

    Every client draws a permanent report once and reuses it while its value stays. In every wave it sends this report,
    or a fresh randomization of it, and each wave is shuffled separately. Relation: replace one person's values in all
    waves. The waves at which the values change (at most `changes` times), or return to an earlier value whose report
    is reused, are the same in the two datasets. Without changes, epsilon of all waves is that of one shuffle of the
    permanent reports. A change draws a new report. As other people's reports stay the same, two waves reveal the old
    and the new report (`change_shows`), unless each wave adds fresh randomness. With fresh reports in every wave,
    epsilon is `dp.compose([(protocol, waves)])`, which grows without limit.

    Args:
        protocol: the permanent reports: randomizer, shuffler (without dummies or random bits of servers) and n, the
            people who take part in every wave with a constant value. Other participants are not counted.
        waves: number of collections.
        delta: in [0, 1); at 0 epsilon is that of a compromised shuffler.
        instantaneous: the randomizer that each wave applies to the permanent report; None sends this report itself.
        changes: largest number of changes of one person's value; each draws a new permanent report, or reuses that of
            an earlier value.

    Raises:
        InvalidInputError: fewer than one wave, a negative number of changes, delta out of range, or an instantaneous
            randomizer for another number of reports.
        UnsupportedProtocolError: dummies, random bits of servers, an instantaneous randomizer where only sums are
            released, or no bound for this randomizer and shuffler.

    Source: docs/theory/composition.md, Theorem 11 and Remark 12; Erlingsson, Pihur, Korolova 2014 (both randomizers).

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(waves(survey, waves=365, delta=1e-6))
    0.3234 nats (certified bracket)
    >>> print(hs.dp.compose([(survey, 365)], delta=1e-6))
    7.386 to 7.518 nats (certified bracket)
    """
    level = _checks.probability("delta", delta, high_open=True)
    return solve(wave_question(protocol, waves, instantaneous=instantaneous, changes=changes)).epsilon(level)


def wave_question(
    protocol: Protocol, waves: int, *, instantaneous: Mechanism | None = None, changes: int = 0
) -> Question:
    """The question that `waves` answers, after checks of its arguments."""
    _checks.of_type("protocol", protocol, Protocol)
    times = _checks.integer("waves", waves, low=1)
    changed = min(_checks.integer("changes", changes, low=0), times - 1)
    if instantaneous is not None:
        _checks.of_type("instantaneous", instantaneous, Mechanism)
        if protocol.reveals is Reveals.SUMS:
            _checks.unsupported(
                "An instantaneous randomizer needs reports of one number: on one-hot reports it reveals more than sums."
            )
        reports = protocol.randomizer.channel().matrix.shape[1]
        if instantaneous.inputs != reports:
            _checks.reject("instantaneous", f"for {reports} permanent reports", f"<{instantaneous.inputs} values>")
    return Question.of(protocol, rounds=times, memory=Memory(values=changed + 1, again=instantaneous))


def change_shows(protocol: Protocol) -> Bound:
    """Return the probability that a change of one person's value is visible in two waves of memoised reports.

    Both waves send the permanent reports, and no other person's report changes. The releases then differ if and only if
    the person's old and new reports differ. The result is for the two values whose reports differ most often. For local
    hashing, it is a bracket from the probability of another bucket to 1.

    Raises:
        UnsupportedProtocolError: the mechanism has too many reports for a matrix, and no closed form.

    Source: docs/theory/composition.md, Remark 13.

    >>> import hushuffle as hs
    >>> coin = hs.RandomizedResponse.from_truth_probability(k=2, p=0.75)
    >>> print(change_shows(hs.Protocol(randomizer=coin, shuffler=hs.UniformShuffle(), n=1000)))
    0.6250 (exact)
    """
    _checks.of_type("protocol", protocol, Protocol)
    law = protocol.randomizer.law()
    if law.symmetric is not None:
        return Bound.exact(float(1 - _same(law.symmetric)), unit="probability")
    if law.bucket is not None:
        bucket = law.bucket
        together = bucket.truth**2 + (bucket.k - 1) * bucket.lie**2  # the two values share the bucket
        return bracket(float(1 - max(together, _same(bucket))), 1.0, unit="probability", sources=())
    if law.one_hot is not None:
        truth, noise = law.one_hot.kept, law.one_hot.raised
        own, other = truth * noise + (1 - truth) * (1 - noise), noise**2 + (1 - noise) ** 2
        return Bound.exact(float(1 - own**2 * other ** (law.one_hot.k - 2)), unit="probability")
    matrix = np.asarray(law.channel().matrix, dtype=np.float64)
    alike = (matrix @ matrix.T)[~np.eye(matrix.shape[0], dtype=np.bool_)]
    return Bound.exact(float(1 - alike.min()), unit="probability")


def _same(law: Symmetric) -> Fraction:
    """Probability that independent reports of two different values are equal."""
    return 2 * law.truth * law.lie + (law.k - 2) * law.lie**2
