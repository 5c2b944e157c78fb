"""Check certificates: the lower and the upper bound on epsilon at delta, in ball arithmetic."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from flint import arb, ctx

from . import coins
from .certificate import Certificate, NotCheckedError, different_pairs, widened
from .ends import Law, alone, ball, blanket_above, pair_below
from .few import MOST, PATIENT, FewAbove, FewAlike, FewBelow
from .pool import Pool
from .response import FEW, Response

AGREES, NOT_SHOWN, CONTRADICTED, NOT_CHECKED = "agrees", "not shown", "contradicted", "not checked"

_BITS = 256
_SECONDS = 60.0
"""Seconds of processor time after which a check stops."""

_COARSE, _PLAIN, _FINER = 20.0, 60.0, (240.0, 2000.0, 10_000.0)
"""The standard deviation of the added normal noise is 1/t divided by these factors: coarse, plain, and finer ones."""

_LIFTS = (0.5, -0.5, 0.2, -0.2)
"""Shifts of a sum of scores, in the unit of `pair_below`, if the other people differ in their values."""

_SPARE = (8.0, 6.0, 4.0)
"""For each s of these numbers, a pool is tried that is empty with probability about e**-s delta."""

Attempts = Iterator[Callable[[Any], Any] | None]
"""Functions that compute a bound, in order of speed; None separates fast functions from slow functions."""


@dataclass(frozen=True)
class Row:
    """The result for one certificate; `at_lower` and `at_upper` are proven bounds on delta at the claimed epsilons."""

    question: str
    verdict: str
    reason: str = ""
    claimed: tuple[float, float] | None = None
    delta: float | None = None
    at_lower: float | None = None
    at_upper: float | None = None
    seconds: float = 0.0


def check(given: Any, *, question: str) -> Row:
    """Return the result for one certificate.

    Raises:
        MalformedError: `given` is not a certificate.
    """
    ctx.prec = _BITS
    start = time.process_time()
    try:
        certificate = Certificate.of(given)
        row = _checked(certificate, question, start + _SECONDS)
    except NotCheckedError as error:
        row = Row(question, NOT_CHECKED, str(error))
    return Row(**{**vars(row), "seconds": time.process_time() - start})


def _checked(certificate: Certificate, question: str, until: float) -> Row:
    low, high = widened(certificate)
    ends = _Ends(_law_of(certificate), ball(certificate.delta), until)
    reasons, verdicts = [], []
    at_lower, lower_word = (None, AGREES) if not low else ends.lower(ball(low).exp())
    at_upper, upper_word = (None, AGREES) if high is None else ends.upper(ball(high).exp())
    for word, end, doubt in (
        (lower_word, "lower bound: ", ("delta is smaller there", "the named pair does not attain it")),
        (upper_word, "upper bound: ", ("delta is larger there", "no available theorem proves it")),
    ):
        if word != AGREES:
            verdicts.append(word)
            reasons.append(end + doubt[word != CONTRADICTED])
    verdict = CONTRADICTED if CONTRADICTED in verdicts else NOT_SHOWN if verdicts else AGREES
    claimed = float(certificate.lower), float("inf") if certificate.upper is None else float(certificate.upper)
    return Row(question, verdict, "; ".join(reasons), claimed, float(certificate.delta), at_lower, at_upper)


class _Ends:
    """Computes bounds on delta at a claimed epsilon (`growth` = e**epsilon), each with a verdict on the claim."""

    def __init__(self, law: _Law, delta: Any, until: float) -> None:
        self.law, self.delta, self.until = law, delta, until

    def lower(self, growth: Any) -> tuple[float, str]:
        """Return a lower bound on delta at the claimed lower epsilon, and a verdict: agrees if it is >= `delta`."""
        for thorough in (False, True):
            best = self._at_least(growth, thorough=thorough)
            if best >= self.delta:
                return float(best.lower()), AGREES
            if not thorough and self._at_most(growth, thorough=False) < self.delta:
                return float(best.lower()), CONTRADICTED
        return float(best.lower()), NOT_SHOWN

    def upper(self, growth: Any) -> tuple[float, str]:
        """Return an upper bound on delta at the claimed upper epsilon, and a verdict: agrees if it is <= `delta`."""
        for thorough in (False, True):
            largest = self._at_most(growth, thorough=thorough)
            if largest <= self.delta:
                return float(largest.upper()), AGREES
            if not thorough and self._at_least(growth, thorough=False) > self.delta:
                return float(largest.upper()), CONTRADICTED
        return float(largest.upper()), NOT_SHOWN

    def _at_least(self, growth: Any, *, thorough: bool) -> Any:
        """Return the largest proven lower bound on delta at the certificate's pair; slow attempts only if needed."""
        best = arb(0)
        for value in self._values(self.law.below(), growth, thorough=thorough):
            best = arb.max(best, value)
            if best > self.delta:
                break
        return best

    def _at_most(self, growth: Any, *, thorough: bool) -> Any:
        """Return an upper bound on delta over all pairs, or over the pairs up to the first that may exceed `delta`."""
        largest = arb(0)
        for attempts in self.law.above(float(self.delta)):
            best = arb(1)
            for value in self._values(attempts, growth, thorough=thorough):
                best = arb.min(best, value)
                if best < self.delta:
                    break
            largest = arb.max(largest, best)
            if not best <= self.delta:
                break
        return largest

    def _values(self, attempts: Attempts, growth: Any, *, thorough: bool) -> Iterator[Any]:
        for attempt in attempts:
            if time.process_time() > self.until or (attempt is None and not thorough):
                return
            if attempt is not None:
                with suppress(OverflowError):  # too many nodes
                    value = attempt(growth)
                    if value.is_finite():
                        yield value


class _Law:
    """Functions that bound delta: from below for the certificate's datasets, from above for each pair of values."""

    def __init__(self, certificate: Certificate) -> None:
        self.given = certificate
        self.people, self.dummies = certificate.n - 1, certificate.dummies

    def below(self) -> Attempts:
        """Yield functions of e**epsilon for lower bounds on delta for the certificate's datasets, the fastest first."""
        raise NotImplementedError

    def above(self, delta: float) -> Iterator[Attempts]:
        """Yield for each pair of values functions of e**epsilon for upper bounds on delta, the fastest first."""
        raise NotImplementedError


class _Senders(_Law):
    """Reports that are released with their senders."""

    def __init__(self, certificate: Certificate, rows: Mapping[int, Law], pairs: list[tuple[int, int]]) -> None:
        super().__init__(certificate)
        self.rows, self.pairs = rows, pairs

    def below(self) -> Attempts:
        first, second = (self.rows[x] for x in self.given.target)
        yield lambda growth: alone(first, second, growth)

    def above(self, delta: float) -> Iterator[Attempts]:
        del delta
        for a, b in self.pairs:
            yield iter([partial(alone, self.rows[a], self.rows[b])])


class _Coins(_Law):
    """Binary randomized response, shuffled."""

    def _at(self, ones: int, zeros: int) -> Callable[[Any], Any]:
        truth = self.given.truth
        assert truth is not None
        group = [(ones, truth), (zeros, 1 - truth), (self.dummies, Fraction(1, 2))]
        return lambda growth: coins.divergence(group, truth, growth)

    def below(self) -> Attempts:
        ones = dict(self.given.others).get(1, 0)
        yield self._at(*((ones, self.people - ones) if self.given.target == (1, 0) else (self.people - ones, ones)))

    def above(self, delta: float) -> Iterator[Attempts]:
        del delta
        for ones, zeros in coins.compositions(self.people):
            inside = range(ones, self.people - zeros + 1)
            yield iter([self._at(ones, zeros), None, partial(self._every, inside)])

    def _every(self, inside: range, growth: Any) -> Any:
        """Return the largest divergence if the number of ones among the other people is in `inside`."""
        largest = arb(0)
        for ones in inside:
            largest = arb.max(largest, self._at(ones, self.people - ones)(growth))
        return largest


class _Reports(_Senders):
    """Shuffled reports with finitely many values: `rows` maps each value to check to its report distribution."""

    def __init__(
        self, certificate: Certificate, rows: Mapping[int, Law], pairs: list[tuple[int, int]], common: Law
    ) -> None:
        super().__init__(certificate, rows, pairs)
        self.common, self.weight = common, sum(common, Fraction(0))
        alike = [part / self.weight for part in common] if self.weight else common
        self.dummy = alike if certificate.dummy is None else certificate.dummy

    def below(self) -> Attempts:
        pair = self.rows[self.given.target[0]], self.rows[self.given.target[1]]
        others = [(count, self.rows[x]) for x, count in self.given.others]
        others += [(self.dummies, self.dummy)] * bool(self.dummies)
        yield from (few for few in (FewBelow(pair, others), FewAlike(pair, others)) if few.feasible)
        for fineness in (_PLAIN, _COARSE, 2 * _COARSE):
            yield partial(_below, pair, others, fineness)
        for lift in _LIFTS:
            yield partial(_below, pair, others, _PLAIN, lift=lift)
        yield None
        for fineness in _FINER:
            yield partial(_below, pair, others, fineness)

    def above(self, delta: float) -> Iterator[Attempts]:
        for a, b in self.pairs:
            yield self._attempts((self.rows[a], self.rows[b]), delta)

    def _attempts(self, pair: tuple[Law, Law], delta: float) -> Attempts:
        yield partial(alone, *pair)
        counting = FewAbove(pair, self.common, people=self.people, dummies=self.dummies)
        if counting.counts <= MOST:
            yield counting
        else:
            yield self._blanket(pair, _PLAIN)
        if self.given.rows is not None:
            pool = Pool(pair, list(self.rows.values()), self.common, self.people, self.dummies, self.dummy)
            for fineness, spare in itertools.product((_COARSE, _PLAIN), _SPARE):
                yield partial(pool.above, delta=delta, fineness=fineness, spare=spare)
        yield None
        if MOST < counting.counts <= PATIENT:
            yield counting
        for fineness in () if counting.counts <= PATIENT else _FINER:
            yield self._blanket(pair, fineness)

    def _blanket(self, pair: tuple[Law, Law], fineness: float) -> Callable[[Any], Any]:
        return lambda growth: blanket_above(
            pair, self.common, people=self.people, dummies=self.dummies, growth=growth, fineness=fineness
        )


def _below(
    pair: tuple[Law, Law], others: list[tuple[int, Law]], fineness: float, growth: Any, *, lift: float = 0.0
) -> Any:
    return pair_below(pair, others, growth=growth, fineness=fineness, lift=lift)


class _Response(_Reports):
    """Randomized response with three or more values: sums over all counts if there are few reports."""

    def _few(self) -> Response | None:
        if self.people + self.dummies > FEW or self.given.truth is None or self.given.truth == 1:
            return None
        return Response(k=self.given.k, truth=self.given.truth, people=self.people, dummies=self.dummies)

    def below(self) -> Attempts:
        counting, held, target = self._few(), [x for x, _ in self.given.others], self.given.target
        if counting is not None and len(held) == 1:
            third = held[0] not in target
            yield lambda growth: counting.below(growth, third=third, swapped=held[0] == target[1])
        yield from super().below()

    def _attempts(self, pair: tuple[Law, Law], delta: float) -> Attempts:
        counting = self._few()
        if counting is not None:
            yield counting.above
        yield from super()._attempts(pair, delta)


def _law_of(certificate: Certificate) -> _Law:
    shuffled = certificate.release == "shuffled"
    if certificate.rows is not None:
        common = _common(certificate.rows, certificate.dummy)
        rows = dict(enumerate(certificate.rows))
        pairs = different_pairs(certificate.rows, common)
        return _Reports(certificate, rows, pairs, common) if shuffled else _Senders(certificate, rows, pairs)
    assert certificate.truth is not None
    if certificate.k == 2 and shuffled:
        return _Coins(certificate)
    named, least = _classes(certificate, certificate.truth)
    pairs = [certificate.target]  # all pairs are equivalent
    return _Response(certificate, named, pairs, least) if shuffled else _Senders(certificate, named, pairs)


def _common(rows: Sequence[Law], dummy: Law | None) -> Law:
    """Return the common part of all values' report distributions; with dummies, a multiple of the dummies' one."""
    least = [min(column) for column in zip(*rows, strict=True)]
    if dummy is None:
        return least
    weight = min(part / given for part, given in zip(least, dummy, strict=True) if given)
    return [weight * given for given in dummy]


def _classes(certificate: Certificate, truth: Fraction) -> tuple[Mapping[int, Law], Law]:
    """Return the report distributions of the certificate's values, all other reports merged, and their common part."""
    named = sorted({*certificate.target, *(x for x, _ in certificate.others)})
    if len(named) > 16:
        message = "others at more than 16 values"
        raise NotCheckedError(message)
    lie = (1 - truth) / (certificate.k - 1)
    least = [*[lie] * len(named), (certificate.k - len(named)) * lie]
    rows: dict[int, Law] = {
        x: [truth if y == place else part for y, part in enumerate(least)] for place, x in enumerate(named)
    }
    return rows, least
