"""Estimate the reach and overlaps of audiences from flipped and shuffled Bloom filters, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.errors import NumericalError
from hushuffle.estimation.logos import Reports, flipping, inverse, marginal
from hushuffle.mechanisms.sketches import per_bit
from hushuffle.mechanisms.sketches.filters import MOST_HASHES
from hushuffle.model import Bound, Citation

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

Question = Literal["reach", "overlap", "exclusive"]
QUESTIONS: Final[tuple[Question, ...]] = ("reach", "overlap", "exclusive")

WHANG: Final = Citation(
    key="whang1990",
    text="K.-Y. Whang, B. T. Vander-Zanden, H. M. Taylor, A linear-time probabilistic counting algorithm for "
    "database applications, ACM Transactions on Database Systems 15 (1990)",
)
_SOURCES: Final = (
    WHANG,
    Citation(key="reach", text="Reach from flipped filters", where="docs/theory/estimation.md, Theorem 7"),
)
_WEAKEST: Final = 5.0  # standard errors that the share of empty columns must be above 0
_AVOIDS: Final = np.array([[1.0, 1.0], [1.0, 0.0]])  # entry (S, i): 1 if the sets S and i have no common element
_MOST_PLANNED: Final = 10


@dataclass(frozen=True, kw_only=True)
class Reach:
    """An estimated number of people, with its standard error.

    `question` is "reach" (in the audience of at least one of `publishers`), "overlap" (in all of them), "exclusive" (in
    all of them and in no other audience of the study), "condition" (a condition on them that the analyst gave, see
    `hushuffle.estimation.column_views`) or "contacts" (with a number of contacts). The standard error is over the flips
    and the hash functions (collisions in the filters), with the people fixed. The estimate is not clipped.
    """

    estimate: float
    standard_error: float
    question: Question | Literal["condition", "contacts"]
    publishers: tuple[int, ...]

    def interval(self, confidence: float = 0.95) -> Bound:
        """Return the interval from estimate - z to estimate + z standard errors; the lower bound is at least 0.

        It is a normal approximation. If a figure rests on few columns (a small overlap among many publishers),
        the interval is inaccurate.

        Raises:
            InvalidInputError: the confidence is outside (0, 1).
        """
        level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        low, high = (max(self.estimate + side * half, 0.0) for side in (-1, 1))
        return Bound(lower=low, upper=high, kind="estimate", unit="people", sources=_SOURCES, confidence=level)

    def __str__(self) -> str:
        who = ", ".join(str(each) for each in self.publishers)
        return f"{self.question} of {who}: {round(self.estimate):,} people (standard error {self.standard_error:,.0f})"


def reach(reports: Reports, *, protocol: Protocol, publishers: Sequence[int] | None = None, hashes: int = 1) -> Reach:
    """Return how many people are in the audience of at least one of `publishers` (all publishers, if None).

    Linear counting: -(m/h) ln(z/m), where z is the unbiased estimate of the number of columns in which all of these
    filters are 0. Its bias is below a tenth of the standard error; other cases raise `NumericalError`.

    Args:
        reports: a `Transcript`, its reports as an array of bit patterns, shape (m,), or their counts (a `Histogram`
            of 2**k values, for example `hushuffle.mechanisms.sketches.logo_counts(filters)`).
        protocol: the protocol that produced them: `BitFlipping(width=k, p=p)`, n = m columns.
        publishers: which filters, 0..k-1 in the order in which they were aligned, at most 20.
        hashes: number h of hash functions of the filters.

    Raises:
        InvalidInputError: publishers are out of range or repeated, or there are not n reports.
        NumericalError: the filters are too full, or too noisy, for an estimate; the message says what to change.
        UnsupportedProtocolError: the protocol has another randomizer or dummies, or there are more than 20 publishers.

    Source: Whang, Vander-Zanden, Taylor 1990; docs/theory/estimation.md, Theorem 7.

    >>> import hushuffle as hs
    >>> columns = hs.Protocol(randomizer=hs.BitFlipping(width=1, p=0.1), shuffler=hs.UniformShuffle(), n=10_000)
    >>> found = reach(hs.Histogram(counts=[7400, 2600]), protocol=columns)
    >>> print(found)
    reach of 0: 2,231 people (standard error 50)
    >>> print(found.interval(0.95))
    2134 to 2329 people (95% interval)
    """
    return _ask("reach", reports, protocol, publishers, hashes)


def overlap(reports: Reports, *, protocol: Protocol, publishers: Sequence[int] | None = None, hashes: int = 1) -> Reach:
    """Return how many people are in the audience of every one of `publishers` (all publishers, if None).

    The estimate follows from the reach of every subset by inclusion and exclusion. For independent columns, it is the
    maximum-likelihood estimate without assumptions about the audiences. Arguments and errors are those of `reach`.

    Source: docs/theory/estimation.md, Theorem 7.
    """
    return _ask("overlap", reports, protocol, publishers, hashes)


def exclusive(
    reports: Reports, *, protocol: Protocol, publishers: Sequence[int] | None = None, hashes: int = 1
) -> Reach:
    """Return how many people are in the audience of every one of `publishers`, and in no other audience of the study.

    For one publisher, this is the reach that the study would lose without this publisher. The study may have at most 20
    publishers. Arguments and errors are those of `reach`.

    Source: docs/theory/estimation.md, Theorem 7.
    """
    return _ask("exclusive", reports, protocol, publishers, hashes)


def planned(
    people: npt.ArrayLike,
    *,
    protocol: Protocol,
    question: Question = "reach",
    publishers: Sequence[int] | None = None,
    hashes: int = 1,
) -> Reach:
    """Return the true figure of a planned study, with the standard error that its estimate will have.

    Args:
        people: people[i] people are in exactly the audiences whose bits are set in i, shape (2**k,); k <= 10.
        protocol: `BitFlipping(width=k, p=p)`, n = m columns.
        question: "reach", "overlap" or "exclusive".
        publishers: as for `reach`.
        hashes: number h of hash functions.

    Raises:
        InvalidInputError: an argument is out of range.
        NumericalError: the filters would be too full, or too noisy.

    Source: docs/theory/estimation.md, Theorem 7.

    >>> import hushuffle as hs
    >>> columns = hs.Protocol(randomizer=hs.BitFlipping(width=2, p=0.1), shuffler=hs.UniformShuffle(), n=100_000)
    >>> print(planned([0, 30_000, 20_000, 10_000], protocol=columns, question="overlap"))
    overlap of 0, 1: 10,000 people (standard error 188)
    """
    randomizer = flipping(protocol)
    width = _checks.integer("width", randomizer.width, low=1, high=_MOST_PLANNED, hint="Plan for fewer publishers.")
    sizes = np.asarray(people, dtype=np.float64)
    if sizes.shape != (1 << width,) or not np.all((sizes >= 0) & np.isfinite(sizes)):
        _checks.reject("people", f"2**{width} finite numbers >= 0", f"<shape {sizes.shape}>")
    members = np.concatenate([[0.0], sizes[1:]])
    missed = per_bit(_AVOIDS, members)  # for each set S: people in none of the audiences of S
    empty = np.exp(-_hashes(hashes) * (members.sum() - missed) / protocol.n)
    truth = protocol.n * per_bit([[0.0, 1.0], [1.0, -1.0]], empty)
    flip = float(randomizer.flip)
    released = per_bit([[1 - flip, flip], [flip, 1 - flip]], truth)
    chosen = _publishers(publishers, width)
    if question not in QUESTIONS:
        _checks.reject("question", f"one of {', '.join(QUESTIONS)}", question)
    return _answer(question, released, chosen, width=width, flip=flip, hashes=hashes)


def _ask(
    question: Question, reports: Reports, protocol: Protocol, publishers: Sequence[int] | None, hashes: int
) -> Reach:
    randomizer = flipping(protocol)
    chosen = _publishers(publishers, randomizer.width)
    # Only "exclusive" needs the other publishers: fewer filters take less work.
    seen = tuple(range(randomizer.width)) if question == "exclusive" else chosen
    counts = marginal(reports, protocol=protocol, publishers=seen).astype(np.float64)
    local = tuple(seen.index(each) for each in chosen)
    answer = _answer(question, counts, local, width=len(seen), flip=float(randomizer.flip), hashes=_hashes(hashes))
    return Reach(estimate=answer.estimate, standard_error=answer.standard_error, question=question, publishers=chosen)


def _answer(
    question: Question, counts: Floats, publishers: tuple[int, ...], *, width: int, flip: float, hashes: int
) -> Reach:
    weights = inclusion_exclusion(question, publishers, width)
    back = inverse(flip)
    empty = per_bit(_AVOIDS @ back, counts)  # by S: unbiased count of columns in which all filters of S were 0
    used = np.flatnonzero(weights)
    widest = int(used[np.argmax(np.bitwise_count(used))])
    _refuse_full(counts, float(empty[used].min()), widest, back)
    m = float(counts.sum())
    estimate = -m / hashes * float(weights[used] @ np.log(empty[used] / m))
    slopes = np.zeros_like(weights)
    slopes[used] = -m / hashes * weights[used] / empty[used]
    spread = _spread(counts, per_bit(back @ _AVOIDS, slopes))
    # Independent columns would mean a Poisson number of people; the actual number is fixed.
    variance = spread - max(estimate, 0.0) / hashes
    if not variance > 0:
        message = "There are too few distinct columns for a standard error. Use more bits."
        raise NumericalError(message)
    return Reach(estimate=estimate, standard_error=math.sqrt(variance), question=question, publishers=publishers)


def _spread(counts: Floats, influence: Floats) -> float:
    """Return m times the variance of `influence` over the m columns."""
    m = counts.sum()
    centred = influence - counts @ influence / m
    return float(counts @ centred**2)


def _refuse_full(counts: Floats, empty: float, widest: int, back: Floats) -> None:
    """Raise `NumericalError` unless `empty` columns are significantly many, given the noise of the union `widest`."""
    unit = np.zeros_like(counts)
    unit[widest] = 1.0
    error = math.sqrt(_spread(counts, per_bit(back @ _AVOIDS, unit)))
    if not empty > _WEAKEST * error:
        message = (
            f"An estimated {empty:,.0f} of {counts.sum():,.0f} columns are empty in all {widest.bit_count()} filters, "
            f"with standard error {error:,.0f}: too few for linear counting. "
            "Use more bits, fewer hash functions, a smaller flip probability, or fewer publishers at a time."
        )
        raise NumericalError(message)


def inclusion_exclusion(question: Question, publishers: tuple[int, ...], width: int) -> Floats:
    """Return the weight of the reach of each set S of publishers in the answer to `question`, shape (2**width,)."""
    everyone, chosen = (1 << width) - 1, sum(1 << each for each in publishers)
    weights = np.zeros(1 << width)
    sets = np.arange(1 << width)
    if question == "reach":
        weights[chosen] = 1.0
        return weights
    signs = 1.0 - 2.0 * (np.bitwise_count(sets) & 1)
    inside = sets & ~chosen == 0
    if question == "overlap":
        weights[inside] = -signs[inside]
    else:
        # Number of people in all of T and no other: sum over A in T of (-1)**|T - A| (people in no audience outside A).
        parts = sets[inside]
        weights[everyone ^ parts] -= signs[chosen ^ parts]
    weights[0] = 0.0  # the reach of no publisher is 0
    return weights


def _publishers(publishers: Sequence[int] | None, width: int) -> tuple[int, ...]:
    if publishers is None:
        return tuple(range(width))
    chosen = tuple(_checks.integer("publishers", each, low=0, high=width - 1) for each in publishers)
    if not chosen or len(set(chosen)) < len(chosen):
        _checks.reject("publishers", "one or more, each once", chosen)
    return chosen


def _hashes(hashes: int) -> int:
    return _checks.integer("hashes", hashes, low=1, high=MOST_HASHES)
