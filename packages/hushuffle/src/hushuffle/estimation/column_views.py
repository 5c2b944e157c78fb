"""People in audiences, for any condition on publishers, from views of columns with dummies.

Let z_U be the number of columns without an entry of a set U of publishers. Each view that shows z_U estimates it
without bias, with known noise; several views are averaged with weights inverse to their variances. Linear counting
turns z_U into people, and inclusion and exclusion turns the reach of sets of publishers into any condition.

Source: docs/theory/estimation.md, Theorem 7; docs/theory/histograms.md, Corollary 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.estimation.reach import QUESTIONS, Question, Reach, inclusion_exclusion
from hushuffle.mechanisms.column_views import ColumnCounts, ColumnView, ColumnViews
from hushuffle.mechanisms.sketches import per_bit

Condition = Callable[..., npt.NDArray[np.bool_]]
"""A condition on publishers: from a Boolean array for each publisher to a Boolean array of the same shape."""

_AVOIDS: Final = np.array([[1.0, 1.0], [1.0, 0.0]])
_MOST_JOINT: Final = 10
WEAKEST: Final = 5.0
_LEAST_NOISE: Final = 1e-9


def people(
    counts: ColumnCounts, question: Question | Condition = "reach", *, publishers: Sequence[int] | None = None
) -> Reach:
    """Return how many people satisfy a condition on publishers, with the standard error.

    Args:
        counts: the release.
        question: "reach" (in an audience of at least one of `publishers`), "overlap" (of all of them), "exclusive" (of
            all of them and of no other publisher), or a function from one Boolean array per publisher (is the person in
            the audience?) to a Boolean array, for example `lambda a, b, c: a & (b | ~c)`.
        publishers: the publishers of the question, at most 10; None: all.

    Raises:
        InvalidInputError: a publisher or condition is not valid, or people in no audience satisfy the condition.
        UnsupportedProtocolError: no released view shows a set of publishers that the answer needs, or the question
            needs more than 10 publishers.
        NumericalError: too few columns are empty, or the noise is too large.

    Source: docs/theory/estimation.md, Theorem 7; docs/theory/histograms.md, Corollary 10.

    >>> import hushuffle as hs
    >>> law = hs.DummyLaw.discrete_gaussian(center=80, sigma=8.0)
    >>> view = hs.ColumnView(publishers=(0, 1), shows="patterns", each=law)
    >>> design = hs.ColumnViews(publishers=2, columns=10_000, views=(view,))
    >>> seen = hs.ColumnCounts(design=design, counts=(np.array([7480, 1080, 1080, 680]),))
    >>> print(people(seen, lambda a, b: a & ~b))
    condition of 0, 1: 1,268 people (standard error 20)
    """
    needed = _Needed.of(counts.design, question, publishers)
    return needed.answer(needed.empty(counts))


def planned_people(
    design: ColumnViews,
    question: Question | Condition = "reach",
    *,
    reach: Callable[[tuple[int, ...]], float],
    publishers: Sequence[int] | None = None,
) -> Reach:
    """Return the true answer and the standard error that `people` will have, before anything is collected.

    Args:
        design: the planned views.
        question: as for `people`.
        reach: the assumed number of people in the union of some publishers' audiences, for example `assumed_reach`.
        publishers: as for `people`.

    Raises:
        InvalidInputError, UnsupportedProtocolError, NumericalError: the reasons are those of `people`.

    >>> import hushuffle as hs
    >>> law = hs.DummyLaw.discrete_laplace(center=24_000, scale=600.0)
    >>> view = hs.ColumnView(publishers=tuple(range(10)), shows="patterns", each=law)
    >>> design = hs.ColumnViews(publishers=10, columns=10**7, views=(view,))
    >>> print(planned_people(design, reach=lambda _: 5e6))
    reach of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9: 5,000,000 people (standard error 1,855)
    """
    needed = _Needed.of(design, question, publishers)
    m, h = design.columns, design.hashes
    return needed.answer({mask: m * math.exp(-h * reach(needed.named(mask)) / m) for mask in needed.masks})


def answers_question(design: ColumnViews, question: Question, publishers: Sequence[int]) -> bool:
    """Return whether the released views show all that a question needs.

    >>> import hushuffle as hs
    >>> view = hs.ColumnView(publishers=(0, 1), each=hs.DummyLaw.of({0: 1.0}))
    >>> design = hs.ColumnViews(publishers=2, columns=100, views=(view,))
    >>> answers_question(design, "reach", (0, 1)), answers_question(design, "overlap", (0, 1))
    (True, False)
    """
    try:
        _Needed.of(design, question, publishers)
    except UnsupportedProtocolError:
        return False
    return True


def assumed_reach(people: int, audiences: Sequence[float]) -> Callable[[tuple[int, ...]], float]:
    """Return a function from publishers to the number of people in their union, in a model of the audiences.

    In this model each person visits publishers at rates proportional to a personal activity, exponential with mean 1.

    Source: G. J. Goerg, Estimating reach curves from one data point (2014).

    >>> round(assumed_reach(1000, [300, 200])((0, 1)))
    404
    """
    n = _checks.integer("people", people, low=1)
    shares = [_checks.probability("audiences", size / n, high_open=True) for size in audiences]

    def union(publishers: tuple[int, ...]) -> float:
        return n * (1 - 1 / (1 + sum(shares[each] / (1 - shares[each]) for each in publishers)))

    return union


def consistent(reaches: Sequence[Reach]) -> tuple[Reach, ...]:
    """Return estimated unions changed so that no union is smaller than a union of some of its publishers.

    Each estimate becomes the mean of the largest estimate of a part of the union and the smallest one of a union that
    contains it. Consistent estimates stay as they are, and the largest error does not grow.

    Raises:
        InvalidInputError: an answer is not a "reach".

    >>> small, large = (
    ...     Reach(estimate=size, standard_error=9.0, question="reach", publishers=who)
    ...     for size, who in ((110.0, (0,)), (100.0, (0, 1)))
    ... )
    >>> [answer.estimate for answer in consistent([small, large])]
    [105.0, 105.0]
    """
    if any(answer.question != "reach" for answer in reaches):
        _checks.reject("reaches", 'answers to "reach" only', "another question")
    masks = np.array([sum(1 << each for each in answer.publishers) for answer in reaches])
    values = np.maximum([answer.estimate for answer in reaches], 0.0)
    inside = masks[None, :] & ~masks[:, None] == 0  # [i, j]: union j is a part of union i
    below = np.where(inside, values[None, :], -np.inf).max(axis=1)
    above = np.where(inside.T, values[None, :], np.inf).min(axis=1)
    return tuple(
        replace(answer, estimate=float(value)) for answer, value in zip(reaches, (below + above) / 2, strict=True)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shows:
    """What one view shows of z_U for some sets U (`masks`): `rows` weigh its counts, whose noise has `variances`.

    `shares` are the parts of the known sum of all counts in each estimate, shape (sets,).
    """

    masks: tuple[int, ...]
    rows: Floats
    variances: Floats
    shares: Floats

    @classmethod
    def of(cls, view: ColumnView, publishers: tuple[int, ...], needed: Sequence[int]) -> _Shows:
        """A set is given by the bits of its publishers' places in `publishers`; only `needed` sets are shown."""
        own = [publishers.index(each) for each in view.publishers if each in publishers]
        whole = sum(1 << place for place in own)
        if view.shows == "patterns":
            masks = tuple(mask for mask in needed if mask & ~whole == 0)
            sets = np.array(
                [sum((mask >> place & 1) << bit for bit, place in enumerate(own)) for mask in masks], dtype=int
            )
            avoids = (sets[:, None] & np.arange(1 << len(own))[None, :] == 0).astype(np.float64)
            # The sum of all counts is known, so only deviations from the mean of a row carry noise.
            noise = cls._merged(view, view.variances, publishers)
            shares = avoids @ _parts(noise)
            return cls(masks=masks, rows=avoids - shares[:, None], variances=noise, shares=shares)
        if view.shows == "pairs":
            inside = [chosen for chosen in view.sets if set(chosen) <= set(publishers)]
            unions = {sum(1 << publishers.index(each) for each in chosen): chosen for chosen in inside}
            masks = tuple(mask for mask in needed if mask in unions)
            # The union of two publishers is half the sum of three counts: those of each, and of exactly one of them.
            halves = [[set(each) <= set(unions[mask]) for each in view.sets] for mask in masks]
            rows = np.array([np.array(row) / -len(unions[mask]) for mask, row in zip(masks, halves, strict=True)])
            return cls(masks=masks, rows=rows, variances=view.variances, shares=np.ones(len(masks)))
        share = 1.0 if view.shows == "union" else 1 - 1 / view.cells
        masks = (whole,) if whole in needed and len(own) == len(view.publishers) else ()
        variances = np.array([view.each.variance * share])
        return cls(masks=masks, rows=np.ones((len(masks), 1)), variances=variances, shares=np.zeros(len(masks)))

    @staticmethod
    def _merged(view: ColumnView, cells: Floats, publishers: tuple[int, ...]) -> Floats:
        """Return the sums of the values of all bit patterns that agree on `publishers`."""
        width = len(view.publishers)
        away = tuple(width - 1 - bit for bit, each in enumerate(view.publishers) if each not in publishers)
        merged: Floats = cells.reshape((2,) * width).sum(axis=away).reshape(-1)
        return merged

    def read(self, view: ColumnView, counts: Floats, publishers: tuple[int, ...], columns: int) -> Floats:
        """Return the estimates of z_U, shape (sets,)."""
        cells: Floats = counts - view.means
        if view.shows == "union":
            return columns - cells[: len(self.masks)]
        if view.shows == "contacts":
            cells -= (cells.sum() - columns) / cells.size
            return cells[: len(self.masks)]
        merged = cells if view.shows == "pairs" else self._merged(view, cells, publishers)
        values: Floats = self.rows @ merged + columns * self.shares
        return values


@dataclass(frozen=True, kw_only=True, eq=False)
class _Needed:
    """The sets U whose z_U a question needs, with their weights, and what each view shows of them."""

    design: ColumnViews
    name: str
    publishers: tuple[int, ...]
    joint: tuple[int, ...]
    masks: tuple[int, ...]
    weights: Floats
    shows: Mapping[int, _Shows]

    @classmethod
    def of(cls, design: ColumnViews, question: Question | Condition, publishers: Sequence[int] | None) -> _Needed:
        chosen = range(design.publishers) if publishers is None else publishers
        own = tuple(_checks.integer("publishers", each, low=0, high=design.publishers - 1) for each in chosen)
        if not own or len(set(own)) < len(own):
            _checks.reject("publishers", "one or more, each once", own)
        if question == "reach":
            masks, weights = ((1 << len(own)) - 1,), np.ones(1)
            return cls._with(design, "reach", own, own, masks, weights)
        others = tuple(each for each in range(design.publishers) if each not in own)
        joint = own + others if question == "exclusive" else own
        if len(joint) > _MOST_JOINT:
            _checks.unsupported(
                f"This question needs {len(joint)} publishers together, at most {_MOST_JOINT} are possible."
            )
        if callable(question):
            every = _weights_of(question, len(joint))
        elif question in QUESTIONS:
            every = inclusion_exclusion(question, tuple(range(len(own))), len(joint))
        else:
            _checks.reject("question", f"one of {', '.join(QUESTIONS)}, or a function", question)
        used = np.flatnonzero(every)
        name = "condition" if callable(question) else str(question)
        return cls._with(design, name, own, joint, tuple(used.tolist()), every[used])

    @classmethod
    def _with(cls, design: ColumnViews, name: str, own: Any, joint: Any, masks: Any, weights: Floats) -> _Needed:
        closed = {first | second for first in masks for second in masks}
        seen = {place: _Shows.of(view, joint, sorted(closed)) for place, view in enumerate(design.views)}
        shows = {place: part for place, part in seen.items() if part.masks}
        shown = {mask for part in shows.values() for mask in part.masks}
        if missing := sorted(closed - shown):
            who = [joint[bit] for bit in range(len(joint)) if missing[0] >> bit & 1]
            _checks.unsupported(f"No released view shows the union of the publishers {who}. Plan a view that does.")
        whole = dict(zip(masks, weights.tolist(), strict=True))
        order = tuple(sorted(closed))
        weights = np.array([whole.get(mask, 0.0) for mask in order])
        return cls(design=design, name=name, publishers=own, joint=joint, masks=order, weights=weights, shows=shows)

    def named(self, mask: int) -> tuple[int, ...]:
        return tuple(each for bit, each in enumerate(self.joint) if mask >> bit & 1)

    @cached_property
    def _shares(self) -> dict[int, Floats]:
        """For each view, its share in the estimate of each of `masks`, inverse to its variance, shape (sets,)."""
        precision = {place: 1 / np.maximum(noise, _LEAST_NOISE) for place, noise in self._noises.items()}
        total = sum(precision.values())
        return {place: each / total for place, each in precision.items()}

    @cached_property
    def _noises(self) -> dict[int, Floats]:
        """For each view, the variance of its estimate of each of `masks` (infinite: not shown), shape (sets,)."""
        return {
            place: self._placed(part, part.rows**2 @ part.variances, missing=math.inf)
            for place, part in self.shows.items()
        }

    def _placed(self, part: _Shows, values: Floats, *, missing: float) -> Floats:
        own = dict(zip(part.masks, values.tolist(), strict=True))
        return np.array([own.get(mask, missing) for mask in self.masks])

    def empty(self, counts: ColumnCounts) -> dict[int, float]:
        """Return the estimate of z_U for each of `masks`."""
        total = np.zeros(len(self.masks))
        for place, part in self.shows.items():
            view, seen = self.design.views[place], counts.counts[place].astype(np.float64)
            values = part.read(view, seen, self.joint, self.design.columns)
            total += self._shares[place] * self._placed(part, values, missing=0.0)
        return dict(zip(self.masks, total.tolist(), strict=True))

    def answer(self, empty: Mapping[int, float]) -> Reach:
        m, h = self.design.columns, self.design.hashes
        z = np.array([empty[mask] for mask in self.masks])
        used = self.weights != 0
        noise = sum(
            self._shares[place] ** 2 * np.where(self._shares[place] > 0, self._noises[place], 0.0)
            for place in self.shows
        )
        error = np.sqrt(noise + np.maximum(z * (1 - z / m), 0.0))
        weakest = int(np.argmin(z - WEAKEST * error))
        if not z[weakest] > WEAKEST * error[weakest]:
            message = (
                f"An estimated {z[weakest]:,.0f} of {m:,} columns are empty for the publishers "
                f"{list(self.named(self.masks[weakest]))}, with standard error {error[weakest]:,.0f}: too few for "
                "linear counting. Use more columns, less noise, or fewer publishers at a time."
            )
            raise NumericalError(message)
        estimate = -m / h * float(self.weights[used] @ np.log(z[used] / m))
        slopes = np.where(used, -m / h * self.weights / z, 0.0)
        masks = np.array(self.masks)
        both = np.array([[empty[int(mask)] for mask in row] for row in masks[:, None] | masks[None, :]])
        collisions = float(slopes @ (both - np.outer(z, z) / m) @ slopes) - max(estimate, 0.0) / h
        variance = max(collisions, 0.0) + self._noise(slopes)
        return Reach(
            estimate=estimate,
            standard_error=math.sqrt(variance),
            question=self.name,  # type: ignore[arg-type]
            publishers=self.publishers,
        )

    def _noise(self, slopes: Floats) -> float:
        """Return the variance of the sum of `slopes` times the estimates of z_U, over the dummies."""
        total = 0.0
        for place, part in self.shows.items():
            own = dict(zip(self.masks, (slopes * self._shares[place]).tolist(), strict=True))
            total += float((np.array([own[mask] for mask in part.masks]) @ part.rows) ** 2 @ part.variances)
        return total


def _parts(variances: Floats) -> Floats:
    """Return the shares of the variances in their sum; equal shares without any noise."""
    total = variances.sum()
    return variances / total if total > 0 else np.full(variances.size, 1 / variances.size)


def _weights_of(condition: Condition, width: int) -> Floats:
    """Return the weight of the reach of each set of publishers in the number of people who satisfy a condition."""
    sets = np.arange(1 << width)
    holds = np.asarray(condition(*(sets >> bit & 1 == 1 for bit in range(width))))
    if holds.shape != sets.shape or holds.dtype != np.bool_:
        _checks.reject("question", "a function of Boolean arrays that returns such an array", f"<{holds.dtype}>")
    if holds[0]:
        hint = "For example lambda a, b: a & ~b."
        _checks.reject("question", "false for people in no audience, who are not counted", "true", hint)
    weights = -per_bit([[0.0, 1.0], [1.0, -1.0]], holds.astype(np.float64))
    weights[0] = 0.0
    return weights
