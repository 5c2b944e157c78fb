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
from .bits import Sums
from .certificate import Certificate, NotCheckedError, Plain
from .composed import Effort, Ends, Event, composed
from .derivation import WrongStepError, replay
from .ends import Law, alone, ball, blanket_above, pair_below
from .few import MOST, PATIENT, FewAbove, FewAlike, FewBelow
from .named import common_part, different_pairs, events_of, finite, named_rows, widened
from .pool import Pool
from .response import FEW, Response

AGREES, NOT_SHOWN, CONTRADICTED, NOT_CHECKED = "agrees", "not shown", "contradicted", "not checked"

_BITS = 256
_SECONDS = 60.0
"""Seconds of processor time after which a check stops."""

_COARSE, _PLAIN, _TABLE, _FINER = 20.0, 60.0, 90.0, (240.0, 2000.0, 10_000.0)
"""The standard deviation of the added normal noise is 1/t divided by these factors: coarse, plain, for tables, finer.
"""

_LIFTS = (0.5, -0.5, 0.2, -0.2)
"""Shifts of a sum of scores, in the unit of `pair_below`, if the other people differ in their values."""

_SPARE = (8.0, 6.0, 4.0)
"""For each s of these numbers, a pool is tried that is empty with probability about e**-s delta."""

_TIGHT = 2 + len(_SPARE)
"""Number of attempts at a bound that need not decide, but must be tight."""

_FACTORS = (1.0, 0.97, 0.94)
"""Factors on the tilts of pools in sequence, which are chosen for sums of normal scores."""

_ROOM = 300
"""Expected number of reports with a common distribution from which pools in sequence are not tried."""

_LOST = 0.1
"""The largest part of delta that the steps of tables of losses may cost."""

_FEWEST = 5000
"""Largest number of histograms that are enumerated for each point of a table."""

_WIDE = 0.06
"""Step of losses in a table if each bound needs a pool of reports."""

_ROUGH, _TABLED = 12, 24
"""Numbers of bins of pool sizes, for a rough bound and for a table."""

_CHOSEN, _CLOSE = 40, 1.0001
"""The method for a table is chosen again after this many points; the first that is so close to the best is taken."""

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
    replayed = [(replay(part, _ends_of), 1) for part in (certificate, *certificate.further)]
    ends = composed(replayed, f"{len(replayed):,} releases")
    effort = Effort(ball(certificate.delta), until)
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
            value = ends.bound(upper)(growth, level)
            bound = float(value.upper() if upper else arb.max(value, arb(0)).lower())
            if value <= delta if upper else value >= delta:
                return bound, AGREES, ""
            other = delta if thorough else ends.bound(not upper)(growth, level)
        except NotCheckedError as error:
            return bound, NOT_CHECKED, str(error)
        if other > delta if upper else other < delta:
            return bound, CONTRADICTED, f"delta is {'larger' if upper else 'smaller'} there"
    share = 0.0 if bound is None else bound / float(delta)
    if ends.tabulated and upper and share < 1 + _LOST:
        return bound, NOT_CHECKED, "the tables of losses are too coarse to decide"
    if ends.tabulated and not upper and share > 1 - _LOST:
        return bound, AGREES, f"attained up to the step of the tables of losses, with {100 * share:.1f} % of delta"
    return bound, NOT_SHOWN, "no available theorem proves it" if upper else "the named pair does not attain it"


class _Law:
    """A plain release, with functions that bound delta."""

    def __init__(self, plain: Plain) -> None:
        self.given = plain
        self.people, self.dummies = plain.n - 1, plain.dummies
        self.ends = Ends(self.least, self.most, ((self.named, 1),), plain.randomizer.pure)

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

    def named(self, growth: Any, effort: Effort) -> tuple[Sequence[Event], Any]:
        """Return events of the certificate's datasets, and the probability that they lack in the second one."""
        if not self.given.named:
            return [Event(0.0, arb(1), arb(1))], arb(0)
        first, second = (self.law_of(x) for x in self.given.target)
        return events_of((first, second), self.crowd(), self.given.reports, growth, effort)

    def crowd(self) -> list[tuple[int, Law]]:
        """Return the number and the report distribution of the other people of each value, and of the dummies."""
        if not self.given.shuffled:
            return []
        dummies = [(self.dummies, self.law_of(None))] if self.dummies else []
        return [*((count, self.law_of(x)) for x, count in self.given.others), *dummies]

    def law_of(self, value: int | None) -> Law:
        """Return the report distribution of a value, or of a dummy."""
        raise NotImplementedError

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

    def law_of(self, value: int | None) -> Law:
        assert value is not None
        return self.rows[value]

    def below(self) -> Attempts:
        first, second = (self.rows[x] for x in self.given.target)
        yield lambda growth: alone(first, second, growth)

    def above(self, delta: float) -> Iterator[Attempts]:
        del delta
        for a, b in self.pairs:
            yield iter([partial(alone, self.rows[a], self.rows[b])])


class _Coins(_Law):
    """Binary randomized response, shuffled."""

    def __init__(self, plain: Plain) -> None:
        super().__init__(plain)
        self.ends = self.ends._replace(many=self.many)

    def _at(self, growth: Any, ones: int, zeros: int) -> Any:
        truth = self.given.randomizer.truth
        assert truth is not None
        group = [(ones, truth), (zeros, 1 - truth), (self.dummies, Fraction(1, 2))]
        return coins.divergence(group, truth, growth)

    def below(self) -> Attempts:
        ones = dict(self.given.others).get(1, 0)
        ones = ones if self.given.target == (1, 0) else self.people - ones
        yield lambda growth: self._at(growth, ones, self.people - ones)

    def law_of(self, value: int | None) -> Law:
        truth = self.given.randomizer.truth or Fraction(1)
        return [Fraction(1, 2)] * 2 if value is None else [1 - truth, truth][:: 1 if value else -1]

    def many(self, growths: Sequence[Any], effort: Effort) -> Sequence[Any]:
        truth = self.given.randomizer.truth or Fraction(1)
        return coins.tabulated(self.people, self.dummies, (truth, 1 - truth), growths, effort)

    def most(self, growth: Any, effort: Effort) -> Any:
        if effort.table:
            return self.many([growth], effort)[0]
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
        if plain.randomizer.rows is not None:
            self.ends = self.ends._replace(step=_WIDE)
        self._chosen: dict[int, tuple[int, Any]] = {}

    def law_of(self, value: int | None) -> Law:
        return self.dummy if value is None else self.rows[value]

    def most(self, growth: Any, effort: Effort) -> Any:
        if not effort.table:
            return super().most(growth, effort)
        # For all pairs, each by the method that was best at a point before.
        largest = arb(0)
        for place, (a, b) in enumerate(self.pairs):
            effort.check("a table of the reports of all pairs of values")
            pair = self.rows[a], self.rows[b]
            best = alone(*pair, growth)
            for quick in self.quick(pair, float(effort.delta)) if place else ():
                if best <= largest:
                    break
                best = arb.min(best, finite(quick, growth))
            if not best <= largest:
                best = arb.min(best, self._method(place, pair, growth, float(effort.delta)))
            largest = arb.max(largest, best)
        return largest

    def _blanket(self, pair: tuple[Law, Law], fineness: float) -> Callable[[Any], Any]:
        return partial(blanket_above, pair, self.common, people=self.people, dummies=self.dummies, fineness=fineness)

    def _method(self, place: int, pair: tuple[Law, Law], growth: Any, delta: float) -> Any:
        """Return the bound for a pair by the method of its last choice; 1 if there is none."""
        times, method = self._chosen.get(place, (0, None))
        if times % _CHOSEN == 0:
            values = [(finite(method, growth), method) for method in self.tables(pair, delta)]
            least = min(float(value) for value, _ in values)
            value, method = next(each for each in values if float(each[0]) <= least * _CLOSE)
        else:
            value = finite(method, growth)
        self._chosen[place] = times + 1, method
        return value

    def quick(self, pair: tuple[Law, Law], delta: float) -> Iterator[Callable[[Any], Any]]:
        """Yield fast functions of e**epsilon for upper bounds."""
        yield self._blanket(pair, _COARSE)
        if self.given.randomizer.rows is not None:
            yield partial(self._pool(pair).above, delta=delta, fineness=_COARSE, spare=_SPARE[-1], sizes=_ROUGH)

    def _pool(self, pair: tuple[Law, Law]) -> Pool:
        return Pool(pair, list(self.rows.values()), self.common, self.people, self.dummies, self.dummy)

    def tables(self, pair: tuple[Law, Law], delta: float) -> Iterator[Callable[[Any], Any]]:
        """Yield functions of e**epsilon with small relative error for upper bounds, the fastest first."""
        yield self._blanket(pair, _TABLE)
        counting = FewAbove(pair, self.common, people=self.people, dummies=self.dummies)
        if counting.counts <= _FEWEST:
            yield counting
        for spare in _SPARE if self.given.randomizer.rows is not None else ():
            yield partial(self._pool(pair).above, delta=delta, fineness=_PLAIN, spare=spare, sizes=_TABLED)

    def below(self) -> Attempts:
        pair = self.rows[self.given.target[0]], self.rows[self.given.target[1]]
        others = self.crowd()
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
        pool = self._pool(pair)
        for fineness in (_COARSE, _PLAIN):
            yield counting if counting.counts <= MOST else partial(blanket, fineness=fineness)
            yield partial(alone, *pair)
            if self.given.randomizer.rows is not None and self.people * sum(self.common) < _ROOM:
                for factor in _FACTORS if fineness == _PLAIN else (1.0,):
                    yield partial(replace(pool, factor=factor).sliced, delta=delta, fineness=fineness)
            for spare in _SPARE if self.given.randomizer.rows is not None else ():
                yield partial(pool.above, delta=delta, fineness=fineness, spare=spare)
        yield None
        if MOST < counting.counts <= PATIENT:
            yield counting
        for fineness in () if counting.counts <= PATIENT else _FINER:
            yield partial(blanket, fineness=fineness)


class _Mixed(_Reports):
    """Shuffled randomized response of groups with different noise: the noisiest groups hide the target."""

    def __init__(self, plain: Plain) -> None:
        people, k = [(plain.n - 1, plain.randomizer), *plain.groups], plain.randomizer.k
        truths = [each.truth for _, each in people if each.truth is not None and each.k == k > 2]
        if len(truths) < len(people):
            message = "shuffled groups, except of randomized response with three or more values"
            raise NotCheckedError(message)
        tables = [named_rows(plain, truth) for truth in truths]
        super().__init__(plain, tables[0][0], [plain.target], tables[0][1])
        named = len(self.common) - 1
        self.dummy = [*[Fraction(1, k)] * named, Fraction(k - named, k)]
        crowds = [
            (k * (1 - t) / (k - 1), n, rows) for t, (n, _), (rows, _) in zip(truths, people, tables, strict=True) if n
        ]
        self.crowds = sorted(crowds, key=lambda crowd: -crowd[0])

    def crowd(self) -> list[tuple[int, Law]]:
        ((value, _),) = self.given.others
        return [*((n, rows[value]) for _, n, rows in self.crowds), *[(self.dummies, self.dummy)] * bool(self.dummies)]

    def _attempts(self, pair: tuple[Law, Law], delta: float) -> Attempts:
        del delta
        blanket = partial(blanket_above, pair, self.dummy, people=0, dummies=self.dummies)
        for fineness in (_COARSE, _PLAIN, None, *_FINER):
            if fineness is None:
                yield None
            for size in range(len(self.crowds), 0, -1) if fineness else ():
                groups = [(n, weight) for weight, n, _ in self.crowds[:size]]
                yield partial(blanket, fineness=fineness, groups=groups)


class _Response(_Reports):
    """Randomized response with three or more values: sums over all counts if there are few reports."""

    def _few(self) -> Response | None:
        k, truth = self.given.randomizer.k, self.given.randomizer.truth
        if self.people + self.dummies > FEW or truth is None or truth == 1:
            return None
        return Response(k=k, truth=truth, people=self.people, dummies=self.dummies)

    def tables(self, pair: tuple[Law, Law], delta: float) -> Iterator[Callable[[Any], Any]]:
        yield from super().tables(pair, delta)
        counting = self._few()
        if counting is not None:
            yield counting.above

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


def _ends_of(plain: Plain) -> Ends:
    return Sums(plain).ends if plain.randomizer.bits is not None else _law_of(plain).ends


def _law_of(plain: Plain) -> _Law:
    randomizer = plain.randomizer
    if plain.groups:
        return _Mixed(plain)
    if randomizer.rows is not None:
        common = common_part(randomizer.rows, randomizer.dummy if plain.dummies else None)
        rows = dict(enumerate(randomizer.rows))
        pairs = different_pairs(randomizer.rows, common)
        pairs.sort(key=lambda pair: sum(abs(a - b) for a, b in zip(rows[pair[0]], rows[pair[1]], strict=True)))
        pairs.reverse()  # the largest delta is mostly that of the first pair
        return _Reports(plain, rows, pairs, common) if plain.shuffled else _Senders(plain, rows, pairs)
    assert randomizer.truth is not None
    if randomizer.k == 2 and plain.shuffled:
        return _Coins(plain)
    named, least = named_rows(plain, randomizer.truth)
    pairs = [plain.target]  # all pairs are equivalent
    return _Response(plain, named, pairs, least) if plain.shuffled else _Senders(plain, named, pairs)
