"""Central DP of people with different randomizers, for an adversary that knows all other people's values.

People with the same randomizer form a group. The values of all groups are rows of one matrix of report distributions,
over classes of reports inside which all likelihood ratios of all groups are constant. A crowd is a set of groups among
which the target is hidden; the reports of all other groups are revealed.

Upper bound: every crowd gives a bound, and the smallest bound over several crowds is used. For one crowd it is the
bound of the module `pooled` with a group for each randomizer. The pool is the part that the distributions of all values
of the crowd's groups have in common. Alternatively it is the privacy blanket: each person's report is from the blanket
with the probability of the person's group. The target's own randomizer needs no noise, since its report takes the place
of another report. Lower bound: all people of a group have one value.

Source: docs/theory/pool.md, Theorem 1, Corollary 5 and Corollary 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.dataset_pair import DatasetPair
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.kinds import Others, covered_reports
from hushuffle.curves.laws.pooled import MOST
from hushuffle.curves.question import Feature, Question, Rule, Same, Solve
from hushuffle.mechanisms.randomizers import Mechanism, ValueLaws
from hushuffle.mechanisms.randomizers.value_laws import different_pairs
from hushuffle.model import Witness
from hushuffle.model.citation import BLANKET
from hushuffle.numerics.binomial import Floats

Parts = Sequence[tuple[int, Mechanism]]
"""Groups of people: the number of people, and their randomizer."""

_LARGEST: Final = 1 << 16
"""Largest number of matrix entries if randomizers of different types have no classes of reports in common."""

_BELOW: Final = 1 - 1e-12
"""Factor that rounds the common part of several distributions down."""

_ROOM: Final = 30.0
"""Expected number of reports from which on a pool is hardly ever empty."""

_TAILS: Final = np.array([1e-30, 1e-20, 1e-15, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3])
"""Tail probabilities that separate bins: numbers of blanket reports in the tails share bins between these."""

_ALIKE: Final = 1e-9
"""Relative difference up to which two distributions of dummies are taken to be equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MemberCurve(PrivacyCurve):
    """Privacy curve of one group's people: `everybody` (all groups) is the lower bound, each crowd an upper bound."""

    everybody: FiniteDivergence
    crowds: tuple[PrivacyCurve, ...]
    sources = (BLANKET,)
    proof = "pool of common reports or privacy blanket of several groups (upper bound), explicit datasets (lower bound)"

    @classmethod
    def of(cls, parts: Parts, target: int, dummies: int, alone: PrivacyCurve) -> MemberCurve:
        """The curve for the people of `parts[target]`; `alone` is the curve if all other groups are revealed.

        Raises `UnsupportedProtocolError` if reports of two randomizers cannot be compared, or dummies of groups differ.
        """
        order = [target, *(place for place in range(len(parts)) if place != target)]
        joint = _joint([parts[place][1] for place in order])
        if dummies and not all(each.one_blanket for each in joint):
            _checks.unsupported(
                "Dummies need one distribution, but the privacy blankets of the groups' randomizers differ. Remove the "
                "dummies, or use k-ary randomized response in all groups."
            )
        crowds = _Crowds(
            joint=joint,
            people=[parts[place][0] - (place == target) for place in order],
            dummies=dummies,
            pure=parts[target][1].local_epsilon,
        )
        hiding = crowds.promising()
        if all(device.law().symmetric is not None for _, device in parts):  # `hushuffle verify` has no slices here
            hiding = tuple(replace(crowd, sliced=False) for crowd in hiding)
        return cls(everybody=crowds.among(crowds.there), crowds=(alone, *hiding))

    @property
    def pure(self) -> float:
        return self.everybody.pure

    @property
    def certain(self) -> float:  # type: ignore[override]
        return self.everybody.certain

    def guess(self) -> float:
        return self.everybody.guess() or 1.0

    def upper(self, epsilon: float) -> float:
        return min(crowd.upper(epsilon) for crowd in self.crowds)

    def lower(self, epsilon: float) -> tuple[float, Witness]:
        return self.everybody.lower(epsilon)

    def lower_at(self, witness: Witness, epsilon: float) -> float:
        return self.everybody.lower_at(witness, epsilon)

    def near(self, delta: float, *, often: bool = False) -> MemberCurve:
        del often
        return replace(self, crowds=tuple(crowd.near(delta) for crowd in self.crowds))

    def contenders(self, epsilon: float) -> MemberCurve:
        best = min(self.crowds, key=lambda crowd: crowd.upper(epsilon))
        return MemberCurve(everybody=self.everybody.contenders(epsilon), crowds=(best.contenders(epsilon),))

    def datasets(self, *, log_tail: float) -> tuple[DatasetPair, ...]:
        return self.everybody.datasets(log_tail=log_tail)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Joint:
    """Report distributions whose rows are the values of all groups; the target's group comes first.

    `blankets` and `weights` describe the privacy blanket of each group. `also` has the same for the distributions in
    the groups' fields `also` (see `ValueLaws`).
    """

    law: ValueLaws
    blankets: tuple[Floats, ...]
    weights: tuple[float, ...]
    also: _Joint | None = None

    @classmethod
    def stacked(cls, parts: Sequence[ValueLaws]) -> _Joint:
        """All `parts` have the same report classes."""
        also = [part.also for part in parts if part.also is not None]
        ends = np.cumsum([0, *(part.rows.shape[0] for part in parts)]).tolist()
        law = replace(
            parts[0],
            rows=np.concatenate([part.rows for part in parts]),
            labels=tuple(label for part in parts for label in part.labels),
            groups=tuple(slice(*rows) for rows in pairwise(ends)),
            also=None,
        )
        return cls(
            law=law,
            blankets=tuple(part.blanket for part in parts),
            weights=tuple(part.weight for part in parts),
            also=cls.stacked(also) if also else None,
        )

    @property
    def one_blanket(self) -> bool:
        """Whether the dummies of all groups have the same distribution, up to rounding."""
        return all(np.allclose(each, self.blankets[0], rtol=_ALIKE, atol=0.0) for each in self.blankets)

    def behind(self, members: tuple[int, ...], *, dummies: bool) -> ValueLaws:
        """The distributions with the blanket of the groups `members`; with dummies, that of the dummies."""
        shared = [self.weights[place] * self.blankets[place] for place in members]
        if dummies:
            blanket, weight = self.blankets[0], min([1.0, *(self.weights[place] for place in members)])
        else:
            common = np.min(shared, axis=0) if shared else np.zeros_like(self.blankets[0])
            weight = float(common.sum())
            blanket = common / weight if weight > 0 else common
        also = None if self.also is None else self.also.behind(members, dummies=dummies)
        alone = tuple(each * part for each, part in zip(self.weights, self.blankets, strict=True))
        return replace(self.law, blanket=blanket, weight=weight * _BELOW, shared=alone, also=also)

    def share(self, place: int, blanket: Floats) -> float:
        """The largest weight that `blanket` can have in all report distributions of group number `place`."""
        inside = blanket > 0
        common = self.weights[place] * self.blankets[place][inside]
        return float((common / blanket[inside]).min(initial=1.0)) * _BELOW


@dataclass(frozen=True, kw_only=True, eq=False)
class _Crowds:
    """All groups, the target's first: `people` counts the others in each, and `pure` is the target's local epsilon."""

    joint: Sequence[_Joint]
    people: Sequence[int]
    dummies: int
    pure: float

    @property
    def there(self) -> tuple[int, ...]:
        return tuple(place for place, count in enumerate(self.people) if count)

    def choices(self) -> list[tuple[int, ...]]:
        """The crowds to try: the noisiest m groups, for every m; each group alone; and the dummies alone."""
        order = sorted(self.there, key=lambda place: -self.joint[0].weights[place])
        growing = [tuple(sorted(order[:size])) for size in range(len(order), 0, -1)]
        return list(dict.fromkeys([*growing, *((place,) for place in order if place), ()]))

    def promising(self) -> tuple[FiniteDivergence, ...]:
        """Up to two crowds: the largest that expects `_ROOM` blanket reports; the one with the least `_seen`."""
        crowds = [crowd for members in self.choices() if (crowd := self.among(members)).laws[0].weight > 0]
        roomy = [crowd for crowd in crowds if crowd.pool.others * MOST * crowd.laws[0].weight >= _ROOM]
        best = max(roomy, key=lambda crowd: crowd.pool.others, default=None)
        covered = min(crowds, key=_seen, default=None)
        return tuple(dict.fromkeys(crowd for crowd in (best, covered) if crowd is not None))

    def among(self, members: tuple[int, ...]) -> FiniteDivergence:
        """The privacy curve if only the groups `members` and the dummies hide the target."""
        laws = tuple(joint.behind(members, dummies=self.dummies > 0) for joint in self.joint)
        groups = []
        for place in members if all(law.weight > 0 for law in laws) else ():
            shares = [joint.share(place, law.blanket) for joint, law in zip(self.joint, laws, strict=True)]
            groups.append((self.people[place], min(shares)))
        return FiniteDivergence.among(
            laws,
            Others(tuple((self.people[place], place) for place in members)),
            dummies=self.dummies,
            local_epsilon=self.pure,
            law=(*_fewer(*covered_reports(tuple(groups), self.dummies)), 1.0),
        )


def _seen(curve: FiniteDivergence) -> float:
    """Rough estimate of the blanket's leakage: mean square score over the mean number of reports."""
    scores = [0.0]
    for law in curve.laws:
        first, second = (law.rows[[pair[side] for pair in law.pairs]] for side in (0, 1))
        least = np.where(law.blanket > 0, law.blanket, 1e-300)
        scores.append(float(((first - second) ** 2 @ (1 / least)).max()))
    return max(scores) / float(curve.plain.counts.mean())


def _fewer(counts: Floats, weights: Floats, missing: float) -> tuple[Floats, Floats, float]:
    """The distribution of N on fewer numbers: in both tails a bin counts as its smallest number."""
    mass = counts * weights
    below, above = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    far = np.searchsorted(_TAILS, below) + np.where(above < _TAILS[-1], -1, 0)
    middle = (below >= _TAILS[-1]) & (above >= _TAILS[-1])
    place = np.cumsum(np.append(True, (np.diff(far) != 0) | middle[1:])) - 1
    starts = np.flatnonzero(np.append(True, np.diff(place) > 0))
    return counts[starts], np.add.reduceat(mass, starts) / counts[starts], missing


def _joint(randomizers: Sequence[Mechanism]) -> list[_Joint]:
    """The report distributions of all groups over the same classes, with the pairs of the first group."""
    laws = [randomizer.law() for randomizer in randomizers]
    if laws[0].classes is not None and all(law.classes == laws[0].classes for law in laws):
        return [_Joint.stacked(parts) for parts in zip(*(law.pairs() for law in laws), strict=True)]
    for randomizer in randomizers:
        size = randomizer.inputs * math.prod(randomizer.layout.limits)
        if size > _LARGEST:
            _checks.unsupported(
                f"{type(randomizer).__name__} with another randomizer needs a matrix of {size:,} probabilities, more "
                f"than {_LARGEST:,}. Use randomizers of one type that differ only in their noise: they need no matrix."
            )
    channels = [law.channel() for law in laws]
    first, *others = [np.asarray(channel.matrix, dtype=np.float64) for channel in channels]
    pairs = different_pairs(first, *others, symmetries=laws[0].symmetries)
    return [_Joint.stacked([_by_report(matrix, pairs) for matrix in (first, *others)])]


def _by_report(matrix: Floats, pairs: tuple[tuple[int, int], ...]) -> ValueLaws:
    """One class per report."""
    shared = matrix.min(axis=0)
    weight = float(shared.sum())
    return ValueLaws(
        rows=matrix,
        labels=tuple(range(matrix.shape[0])),
        blanket=shared / weight if weight > 0 else shared,
        weight=weight,
        pairs=pairs,
        complete=True,
    )


def _build(question: Question, solve: Solve) -> PrivacyCurve:
    question.certify()
    (target,), release = question.targets, question.release
    parts = [(group.people, group.device) for group in release.groups]
    return MemberCurve.of(parts, target, release.dummies, solve(question.alone()))


RULE: Final = Rule(
    name="some groups revealed",
    statement="If the adversary is given the reports of some groups, the people of the others still hide the target.",
    page="pool.md, Corollary 7",
    on=frozenset({Feature.GROUPS}),
    reduce=lambda question: Same(question=question.alone()),
    build=_build,
    exact=False,
    limits="People with different randomizers need a shuffler that mixes all reports, without a cap and without people "
    "who collude.",
)
