"""Memoized reports: each person draws a report once for each of its values, and sends it in every round.

The rounds in which values change, or return to an earlier value, are the same in neighbouring datasets. A round
may add fresh randomness only to a person's own report: fresh dummies or noise would average out over the rounds.

Source: docs/theory/composition.md, Theorem 11; Erlingsson, Pihur, Korolova 2014.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import combinations_with_replacement
from operator import itemgetter
from typing import Final

import numpy as np

from hushuffle.curves.base import LARGEST, Envelope, PrivacyCurve, UpperCurve, bracket
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.pairs.exact_loss import summed_pairs
from hushuffle.curves.question import Between, Feature, Memory, Question, Rule, Solve
from hushuffle.mechanisms.randomizers import MatrixRandomizer, Mechanism, ReportLaw
from hushuffle.mechanisms.randomizers.value_laws import different_pairs
from hushuffle.mechanisms.release import ReleaseGroup
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Channel, Witness
from hushuffle.numerics.binomial import EPS, Floats
from hushuffle.numerics.roots import last_above

_ROUNDED: Final = 1e-9
"""Relative rounding error of the two randomizers multiplied into one matrix, and of the probabilities of events."""

_ABOVE: Final = 1 + 1e-5
"""A probability counts only if it exceeds delta by this factor, since smaller differences lose precision."""

_FEW_DIGITS: Final = 1e-300
"""Smaller floats have lost digits, and are rounded up to this one."""

_THRESHOLDS: Final = 64
"""Number of sets of reports that are tried on each side of a change."""

_TAIL: Final = -60.0
"""Sums rarer than about e**-60 may be missing from a lower bound."""

_WIDEST: Final = 64
"""Largest number of values and of reports for which sums over all waves are computed."""

_LONGEST: Final = 400
"""Largest number of waves for which sums over all waves are computed."""

_MANY: Final = 40
_CELLS: Final = 256
"""Largest number of waves, and of values times combinations of reports, for which waves are linked."""

_ALIKE: Final = "all others alike in all waves"

_BESIDE: Final = frozenset({Feature.SENDERS, Feature.ORDER, Feature.CAP, Feature.SUMS, Feature.COLLUDING})


@dataclass(frozen=True, kw_only=True, eq=False)
class WavesSummed(PrivacyCurve):
    """Lower bounds from the sum, over all waves and people, of a score of each report. There is no upper bound.

    `permanent` and `again` are the matrices of the two randomizers. The scores of reports are -1, 0 and 1, or 0 and 1.
    All others have one value, and no value changes. Reports of one person are independent given its memoized report.
    """

    permanent: Floats
    again: Floats
    waves: int
    n: int
    pure = math.inf
    proof = "the sum of scores of all waves, for explicit datasets"

    @cached_property
    def _ways(self) -> tuple[DatasetPair, ...]:
        """The most promising datasets, in both orders."""
        _, first, second, other, scores = max(self._trials(), key=lambda trial: trial[0])
        each = np.array([[row[scores == score].sum() for score in (-1, 0, 1)] for row in self.again])
        sums = np.array([reduce(np.convolve, [law] * self.waves) for law in each])
        laws = self.permanent @ sums
        witness = Witness(family=_ALIKE, others=(0,) * other + (self.n - 1,), target=(first, second))
        pairs = summed_pairs(
            witness,
            (laws[first], laws[second]),
            (self.n - 1, laws[other]),
            np.arange(-self.waves, self.waves + 1),
            log_tail=_TAIL,
        )
        doubt = 8 * EPS * self.n * (self.waves + self.again.size)
        pairs = tuple(replace(pair, doubt=pair.doubt + doubt) for pair in pairs)
        return (*pairs, *(pair.swapped() for pair in pairs))

    def _trials(self) -> Iterator[tuple[float, int, int, int, Floats]]:
        """Yield the approximate privacy loss of pairs of values and others' values, with the scores of reports."""
        both = self.permanent @ self.again
        for first, second in different_pairs(both):
            sign = np.sign(both[first] - both[second])
            for scores in (sign, np.maximum(sign, 0.0), np.minimum(sign, 0.0)):
                mean = self.again @ scores
                apart = self.waves * float((self.permanent[first] - self.permanent[second]) @ mean)
                within = self.waves * self.permanent @ (self.again @ scores**2 - mean**2)
                between = self.waves**2 * (self.permanent @ mean**2 - (self.permanent @ mean) ** 2)
                loss = apart**2 / np.maximum(within + between, 1e-300)
                other = int(loss.argmax())
                yield float(loss[other]), first, second, other, scores

    def upper(self, epsilon: float) -> float:
        del epsilon
        return 1.0

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        none = 0.0, Witness(family=_ALIKE, others=(self.n - 1,), target=(0, 1))
        return max([none, *((pair.divergence(epsilon), pair.witness) for pair in self._ways)], key=itemgetter(0))

    def epsilon(self, delta: float) -> Bound:
        end, witness = 0.0, self.lower(0.0)[1]
        for pair in self._ways if delta > 0 else ():
            if pair.divergence(end) > delta:
                end, witness = last_above(pair.divergence, delta, high=LARGEST, guess=end or 0.1), pair.witness
        return bracket(end, math.inf, unit="nats", witness=witness)

    def pure_bound(self) -> Bound:
        return self.epsilon(0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Doubtful(UpperCurve):
    """The upper bound of `curve`, if all probabilities of its release may be wrong by factors e**-doubt to e**doubt."""

    curve: PrivacyCurve
    doubt: float
    proof = "the reports of all waves with the same sender are linked"

    @property
    def pure(self) -> float:
        return (self.curve.pure + 2 * self.doubt) * (1 + EPS)

    def upper(self, epsilon: float) -> float:
        return min(self.curve.upper(max(epsilon - 2 * self.doubt, 0.0)) * math.exp(2 * self.doubt), 1.0)

    def near(self, delta: float, *, often: bool = False) -> Doubtful:
        return replace(self, curve=self.curve.near(delta, often=often))

    def guess(self) -> float:
        return self.curve.guess()

    def contenders(self, epsilon: float) -> Doubtful:
        return replace(self, curve=self.curve.contenders(epsilon))


@dataclass(frozen=True, kw_only=True, eq=False)
class ChangesSeen(PrivacyCurve):
    """Lower bounds from the reports before and after changes of value: the rounds reveal both. There is no upper bound.

    All other people's values stay, so the multisets of two rounds differ in the target's two reports.
    """

    law: ReportLaw
    values: int
    n: int
    local_epsilon: float
    pure = math.inf
    proof = "the reports before and after a change are seen"

    @cached_property
    def _events(self) -> tuple[Floats, Floats]:
        """The probability of each event under one history of values, and the logarithm of that under the other."""
        mass: list[Floats] = []
        rare: list[Floats] = []
        for laws in self.law.pairs():
            for first, second in laws.pairs:
                rows = laws.rows[first], laws.rows[second]
                there, back = self._cumulated(*rows), self._cumulated(*rows[::-1])
                mass.append(np.outer(there[0], back[0]).ravel())
                with np.errstate(divide="ignore"):
                    rare.append(np.add.outer(np.log(there[1]), np.log(back[1])).ravel())
        alike = self.law.symmetric
        if alike is not None and alike.lie > 0:
            values = np.arange(3, min(self.values, alike.k) + 1)
            mass.append(np.asarray(float(alike.truth) ** values, dtype=np.float64))
            rare.append(np.asarray(values * math.log(float(alike.lie)), dtype=np.float64))
        return np.concatenate(mass), np.concatenate(rare)

    def _cumulated(self, first: Floats, second: Floats) -> Floats:
        """Cumulative masses under each distribution, over classes likelier under the first, by falling ratio."""
        chosen = np.flatnonzero(first > second)
        with np.errstate(divide="ignore", over="ignore"):
            order = chosen[np.argsort(-(first[chosen] / second[chosen]), kind="stable")]
        places = np.unique(np.linspace(0, order.size - 1, min(order.size, _THRESHOLDS)).astype(np.int64))
        never = (second[order] == 0) & math.isinf(self.local_epsilon)
        rare = np.where(never, 0.0, np.maximum(second[order], _FEW_DIGITS))
        return np.stack([first[order].cumsum()[places], rare.cumsum()[places]])

    def upper(self, epsilon: float) -> float:
        del epsilon
        return 1.0

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        mass, rare = self._events
        gain = mass * (1 - _ROUNDED) - np.exp(np.minimum(epsilon + rare, 0.0)) * (1 + _ROUNDED)
        return float(np.max(gain, initial=0.0)), Witness(family="changes", others=(self.n - 1,), target=(0, 1))

    def epsilon(self, delta: float) -> Bound:
        mass, rare = self._events
        seen = mass > delta * _ABOVE
        end = float(np.max(np.log(mass[seen] - delta) - rare[seen], initial=0.0))
        return bracket(max(end * (1 - _ROUNDED) - _ROUNDED, 0.0), math.inf, unit="nats")

    def pure_bound(self) -> Bound:
        return self.epsilon(0.0)


def _with_device(question: Question, device: Mechanism) -> Question:
    (group,) = question.release.groups
    return question.about(groups=(replace(group, device=device),))


def _above_one_round(question: Question, above: Question) -> Between:
    """The rounds lie above a single one, whose two randomizers are multiplied into one matrix."""
    below, again = replace(question, rounds=1, memory=None), _memory(question).again
    if again is None:
        return Between(above=above, below=below)
    return Between(above=above, below=_with_device(below, _both(question.device, again)), slack=_ROUNDED)


@lru_cache(maxsize=16)
def _both(first: Mechanism, again: Mechanism) -> MatrixRandomizer:
    return MatrixRandomizer(channel=first.channel().cascade(again.channel()))


def _memory(question: Question) -> Memory:
    assert question.memory is not None
    return question.memory


def _fresh(question: Question) -> Between:
    again = _memory(question).again
    assert again is not None
    return _above_one_round(question, replace(_with_device(question, again), memory=None))


def _with_sums(question: Question, solve: Solve) -> PrivacyCurve:
    ends, again = _fresh(question), _memory(question).again
    assert again is not None
    below = [solve(ends.below)]
    permanent, fresh = (np.asarray(each.channel().matrix, dtype=np.float64) for each in (question.device, again))
    small = max(*permanent.shape, *fresh.shape) <= _WIDEST
    plain = question.features <= {Feature.MEMORY, Feature.SUMS}
    if plain and small and 1 < question.rounds <= _LONGEST and question.release.n > 1:
        below.append(WavesSummed(permanent=permanent, again=fresh, waves=question.rounds, n=question.release.n))
    return Envelope(above=(solve(ends.above),), below=tuple(below), slack=ends.slack)


def _few(question: Question) -> bool:
    """Whether few combinations of the reports of one person are possible in all waves."""
    again, waves = _memory(question).again, question.rounds
    if again is None or not _steady(question) or waves > _MANY:
        return False
    reports = again.channel().matrix.shape[1]
    return reports <= _WIDEST and math.comb(waves + reports - 1, waves) * question.device.inputs <= _CELLS


@lru_cache(maxsize=16)
def _linked(first: Mechanism, again: Mechanism, waves: int) -> MatrixRandomizer:
    """How often each report occurs among the reports of one person in all waves."""
    fresh = again.channel().matrix
    columns = []
    for sent in combinations_with_replacement(range(fresh.shape[1]), waves):
        counts = np.bincount(sent, minlength=fresh.shape[1])
        ways = math.factorial(waves) // math.prod(math.factorial(int(count)) for count in counts)
        columns.append(ways * np.prod(np.asarray(fresh, dtype=np.float64) ** counts, axis=1))
    rows = first.channel().matrix.astype(np.float64) @ np.array(columns).T
    return MatrixRandomizer(channel=Channel(matrix=rows / rows.sum(axis=1, keepdims=True)))


def _together(question: Question) -> Between:
    again = _memory(question).again
    assert again is not None
    once = replace(question.about(view=Reveals.MULTISET), rounds=1, memory=None)
    return _above_one_round(question, _with_device(once, _linked(question.device, again, question.rounds)))


def _with_links(question: Question, solve: Solve) -> PrivacyCurve:
    ends = _together(question)
    doubt = 16 * EPS * question.release.n * (question.rounds + ends.above.device.channel().matrix.size)
    above = Doubtful(curve=solve(ends.above), doubt=doubt)
    return Envelope(above=(above,), below=(solve(ends.below),), slack=ends.slack)


def _revealed(question: Question) -> Between:
    alone = question.about(groups=(ReleaseGroup(people=1, device=question.device),), view=Reveals.SENDERS, honest=None)
    return _above_one_round(question, replace(alone, rounds=_memory(question).values, memory=None))


def _with_changes(question: Question, solve: Solve) -> PrivacyCurve:
    memory, ends = _memory(question), _revealed(question)
    below = [solve(ends.below)]
    if memory.again is None and memory.values > 1 and not _summed(question) and Feature.CAP not in question.features:
        device, n = question.device, question.release.n
        below.append(ChangesSeen(law=device.law(), values=memory.values, n=n, local_epsilon=device.local_epsilon))
    return Envelope(above=(solve(ends.above),), below=tuple(below), slack=ends.slack)


def _summed(question: Question) -> bool:
    """Whether sums hide which bits belong to one report; reports with a single 1 are counted by their sums."""
    return Feature.SUMS in question.features and question.law.one_hot is not None


def _steady(question: Question) -> bool:
    """Whether a round adds nothing fresh but the second randomizer, and values never change."""
    return _allowed(question) and _memory(question).values == 1 and Feature.ORDER not in question.features


def _allowed(question: Question) -> bool:
    """Whether each round consists of the persons' messages; a second randomizer needs reports that are not summed."""
    return not question.release.sources and not (_summed(question) and _memory(question).again is not None)


PERMANENT: Final = Rule(
    name="memoized reports shuffled once",
    statement="If values never change, all rounds are computed from one shuffle of the memoized reports.",
    page="composition.md, Theorem 11",
    on=frozenset({Feature.MEMORY}),
    beside=_BESIDE,
    partial=True,
    applies=_steady,
    reduce=lambda question: _above_one_round(question, replace(question, rounds=1, memory=None)),
)

FRESH: Final = Rule(
    name="memoized reports given",
    statement="Given all memoized reports, the rounds with fresh randomness are rounds about these reports.",
    page="composition.md, Theorem 11",
    on=frozenset({Feature.MEMORY}),
    beside=_BESIDE,
    partial=True,
    applies=lambda question: _allowed(question) and _memory(question).again is not None,
    reduce=_fresh,
    build=_with_sums,
)

LINKED: Final = Rule(
    name="waves linked",
    statement="Given which reports have the same sender, all waves are one shuffle of the persons' numbers of reports.",
    page="composition.md, Theorem 11",
    on=frozenset({Feature.MEMORY}),
    beside=frozenset({Feature.COLLUDING, Feature.SUMS}),
    partial=True,
    applies=_few,
    reduce=_together,
    build=_with_links,
)

REVEALED: Final = Rule(
    name="memoized reports revealed",
    statement="All rounds are computed from the person's memoized reports, one for each value, and other people's.",
    page="composition.md, Theorem 11",
    on=frozenset({Feature.MEMORY}),
    beside=_BESIDE,
    partial=True,
    applies=lambda question: _allowed(question) and not _steady(question),
    reduce=_revealed,
    build=_with_changes,
    limits="Memoized reports need a shuffler without dummies, and servers without random bits: an observer averages "
    "out what is fresh in every round.",
)
