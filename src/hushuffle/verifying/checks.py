"""Check certificates: the lower and the upper bound on epsilon at delta, in ball arithmetic."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from flint import arb, ctx

from . import coins
from .certificate import Certificate, NotCheckedError, Plain, different_pairs, widened
from .derivation import Effort, Ends, WrongStepError, replay
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

_TIGHT = 2 + len(_SPARE)
"""Number of attempts at a bound that need not decide, but must be tight."""

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
        row = _checked(Certificate.of(given), question, start + _SECONDS)
    except NotCheckedError as error:
        row = Row(question, NOT_CHECKED, str(error))
    except WrongStepError as error:
        row = Row(question, CONTRADICTED, str(error))
    return Row(**{**vars(row), "seconds": time.process_time() - start})


def _checked(certificate: Certificate, question: str, until: float) -> Row:
    low, high = widened(certificate)
    ends, effort = replay(certificate, lambda plain: _law_of(plain).ends), Effort(ball(certificate.delta), until)
    at_lower, lower, doubt = (None, AGREES, "") if not low else _shown(ends, ball(low).exp(), effort, upper=False)
    at_upper, upper, why = (None, AGREES, "") if high is None else _shown(ends, ball(high).exp(), effort, upper=True)
    reasons = [f"lower bound: {doubt}"] * bool(doubt) + [f"upper bound: {why}"] * bool(why)
    verdict = next(word for word in (CONTRADICTED, NOT_SHOWN, NOT_CHECKED, AGREES) if word in (lower, upper))
    claimed = float(certificate.lower), float("inf") if certificate.upper is None else float(certificate.upper)
    return Row(question, verdict, "; ".join(reasons), claimed, float(certificate.delta), at_lower, at_upper)


def _shown(ends: Ends, growth: Any, effort: Effort, *, upper: bool) -> tuple[float | None, str, str]:
    """Return a bound on delta at a claimed epsilon (`growth` = e**epsilon), a verdict on the claim, and its reason.

    A claimed upper bound agrees if delta is at most that of the certificate there, a lower bound if it is at least.
    """
    bound, delta = None, effort.delta
    for thorough in (False, True):
        level = replace(effort, thorough=thorough)
        try:
            value = ends[upper](growth, level)
            bound = float(value.upper() if upper else arb.max(value, arb(0)).lower())
            if value <= delta if upper else value >= delta:
                return bound, AGREES, ""
            other = delta if thorough else ends[not upper](growth, level)
        except NotCheckedError as error:
            return bound, NOT_CHECKED, str(error)
        if other > delta if upper else other < delta:
            return bound, CONTRADICTED, f"delta is {'larger' if upper else 'smaller'} there"
    return bound, NOT_SHOWN, "no available theorem proves it" if upper else "the named pair does not attain it"


class _Law:
    """A plain release, with functions that bound delta."""

    def __init__(self, plain: Plain) -> None:
        self.given = plain
        self.people, self.dummies = plain.n - 1, plain.dummies
        self.ends = Ends(self.least, self.most)

    def least(self, growth: Any, effort: Effort) -> Any:
        best = arb(0)
        for value in self._values(self.below(), growth, effort) if self.given.named else ():
            best = arb.max(best, value)
            if effort.decides and best > effort.delta:
                break
        return best

    def most(self, growth: Any, effort: Effort) -> Any:
        """Return an upper bound for all pairs, or for the pairs up to the first that decides."""
        largest = arb(0)
        for attempts in self.above(float(effort.delta)):
            best = arb(1)
            for value in self._values(attempts, growth, effort):
                best = arb.min(best, value)
                if best < effort.delta if effort.decides else best <= largest:
                    break
            largest = arb.max(largest, best)
            if effort.decides and not best <= effort.delta:
                break
        return largest

    def _values(self, attempts: Attempts, growth: Any, effort: Effort) -> Iterator[Any]:
        left = math.inf if effort.decides else _TIGHT if effort.thorough else 1
        for attempt in attempts:
            if time.process_time() > effort.until or (attempt is None and not effort.thorough) or not left:
                return
            if attempt is not None:
                with suppress(OverflowError):  # too many nodes
                    value = attempt(growth)
                    if value.is_finite():
                        left -= 1
                        yield value

    def below(self) -> Attempts:
        """Yield functions of e**epsilon for lower bounds on delta for the certificate's datasets, the fastest first."""
        raise NotImplementedError

    def above(self, delta: float) -> Iterator[Attempts]:
        """Yield for each pair of values functions of e**epsilon for upper bounds on delta, the fastest first."""
        raise NotImplementedError


class _Senders(_Law):
    """Reports that are released with their senders."""

    def __init__(self, plain: Plain, rows: Mapping[int, Law], pairs: list[tuple[int, int]]) -> None:
        super().__init__(plain)
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

    def _at(self, growth: Any, ones: int, zeros: int) -> Any:
        truth = self.given.randomizer.truth
        assert truth is not None
        group = [(ones, truth), (zeros, 1 - truth), (self.dummies, Fraction(1, 2))]
        return coins.divergence(group, truth, growth)

    def below(self) -> Attempts:
        ones = dict(self.given.others).get(1, 0)
        ones = ones if self.given.target == (1, 0) else self.people - ones
        yield lambda growth: self._at(growth, ones, self.people - ones)

    def most(self, growth: Any, effort: Effort) -> Any:
        level = effort.delta if effort.decides else None
        if time.process_time() > effort.until:
            return arb(1)
        return coins.largest(self.people, partial(self._at, growth), level)


class _Reports(_Senders):
    """Shuffled reports with finitely many values: `rows` maps each value to check to its report distribution."""

    def __init__(self, plain: Plain, rows: Mapping[int, Law], pairs: list[tuple[int, int]], common: Law) -> None:
        super().__init__(plain, rows, pairs)
        self.common, self.weight = common, sum(common, Fraction(0))
        alike = [part / self.weight for part in common] if self.weight else common
        if plain.dummies and plain.randomizer.dummy is None and not self.weight:
            message = "no distribution of dummies"
            raise NotCheckedError(message)
        self.dummy = plain.randomizer.dummy or alike

    def below(self) -> Attempts:
        pair = self.rows[self.given.target[0]], self.rows[self.given.target[1]]
        others = [(count, self.rows[x]) for x, count in self.given.others]
        others += [(self.dummies, self.dummy)] * bool(self.dummies)
        yield from (few for few in (FewBelow(pair, others), FewAlike(pair, others)) if few.feasible)
        tests = [(_PLAIN, 0.0), (_COARSE, 0.0), (2 * _COARSE, 0.0), *((_PLAIN, lift) for lift in _LIFTS)]
        for fineness, lift in tests:
            yield partial(pair_below, pair, others, fineness=fineness, lift=lift)
        yield None
        for fineness in _FINER:
            yield partial(pair_below, pair, others, fineness=fineness)

    def above(self, delta: float) -> Iterator[Attempts]:
        for a, b in self.pairs:
            yield self._attempts((self.rows[a], self.rows[b]), delta)

    def _attempts(self, pair: tuple[Law, Law], delta: float) -> Attempts:
        counting = FewAbove(pair, self.common, people=self.people, dummies=self.dummies)
        blanket = partial(blanket_above, pair, self.common, people=self.people, dummies=self.dummies)
        pool = Pool(pair, list(self.rows.values()), self.common, self.people, self.dummies, self.dummy)
        for fineness in (_COARSE, _PLAIN):
            yield counting if counting.counts <= MOST else partial(blanket, fineness=fineness)
            yield partial(alone, *pair)
            for spare in _SPARE if self.given.randomizer.rows is not None else ():
                yield partial(pool.above, delta=delta, fineness=fineness, spare=spare)
        yield None
        if MOST < counting.counts <= PATIENT:
            yield counting
        for fineness in () if counting.counts <= PATIENT else _FINER:
            yield partial(blanket, fineness=fineness)


class _Response(_Reports):
    """Randomized response with three or more values: sums over all counts if there are few reports."""

    def _few(self) -> Response | None:
        k, truth = self.given.randomizer.k, self.given.randomizer.truth
        if self.people + self.dummies > FEW or truth is None or truth == 1:
            return None
        return Response(k=k, truth=truth, people=self.people, dummies=self.dummies)

    def below(self) -> Attempts:
        counting, held, target = self._few(), [x for x, _ in self.given.others], self.given.target
        attempts = super().below()
        yield next(attempts)
        if counting is not None and len(held) == 1:
            third = held[0] not in target
            yield lambda growth: counting.below(growth, third=third, swapped=held[0] == target[1])
        yield from attempts

    def _attempts(self, pair: tuple[Law, Law], delta: float) -> Attempts:
        counting, attempts = self._few(), super()._attempts(pair, delta)
        yield next(attempts)
        if counting is not None:
            yield counting.above
        yield from attempts


def _law_of(plain: Plain) -> _Law:
    randomizer = plain.randomizer
    if randomizer.rows is not None:
        common = _common(randomizer.rows, randomizer.dummy if plain.dummies else None)
        rows = dict(enumerate(randomizer.rows))
        pairs = different_pairs(randomizer.rows, common)
        pairs.sort(key=lambda pair: sum(abs(a - b) for a, b in zip(rows[pair[0]], rows[pair[1]], strict=True)))
        pairs.reverse()  # the largest delta is mostly that of the first pair
        return _Reports(plain, rows, pairs, common) if plain.shuffled else _Senders(plain, rows, pairs)
    assert randomizer.truth is not None
    if randomizer.k == 2 and plain.shuffled:
        return _Coins(plain)
    named, least = _classes(plain, randomizer.truth)
    pairs = [plain.target]  # all pairs are equivalent
    return _Response(plain, named, pairs, least) if plain.shuffled else _Senders(plain, named, pairs)


def _common(rows: Sequence[Law], dummy: Law | None) -> Law:
    """Return the common part of all values' report distributions; with dummies, a multiple of the dummies' one."""
    least = [min(column) for column in zip(*rows, strict=True)]
    if dummy is None:
        return least
    weight = min(part / given for part, given in zip(least, dummy, strict=True) if given)
    return [weight * given for given in dummy]


def _classes(plain: Plain, truth: Fraction) -> tuple[Mapping[int, Law], Law]:
    """Return the report distributions of the datasets' values, all other reports merged, and their common part."""
    named = sorted({*plain.target, *(x for x, _ in plain.others)})
    if len(named) > 16:
        message = "others at more than 16 values"
        raise NotCheckedError(message)
    lie, k = (1 - truth) / (plain.randomizer.k - 1), plain.randomizer.k
    least = [*[lie] * len(named), (k - len(named)) * lie]
    rows: dict[int, Law] = {
        x: [truth if y == place else part for y, part in enumerate(least)] for place, x in enumerate(named)
    }
    return rows, least
