"""Traces as the attacker knows them (`scene`), the randomized events (`randomize`), and how often a match is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats, Integers
from hushuffle.attacks.detection import BINOMIAL, rate_interval
from hushuffle.mechanisms.randomizers import Mechanism, symmetric_law
from hushuffle.model import Bound, Citation
from hushuffle.model.citation import PIE
from hushuffle.model.traces import Traces
from hushuffle.randomness import Randomness, secure

Knowledge = Literal["partial", "maximum"]
Split = Literal["half", "none"]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """`training` are the events of each user that the attacker knows; `reported` are randomized and sent."""

    training: Traces
    reported: Traces


def scene(
    traces: Traces,
    *,
    knowledge: Knowledge = "partial",
    split: Split = "half",
    training: int | None = None,
    events: int | None = 1,
) -> Scene:
    """Divide every trace into the events that the attacker knows and the events that are reported.

    The personal data X of a user are the latter half of the trace (`split="half"`: both halves have half the events,
    rounded down, an odd last event belongs to neither) or the whole trace ("none"). The first `events` events of X
    are reported (None: all).

    An attacker with "partial" knowledge knows the first half or, without a split, the first `training` events of the
    whole trace. An attacker with "maximum" knowledge knows X. `training` limits either to the first `training` events;
    None: no limit.

    Murakami, Takahashi 2021 use halves for check-ins. For ratings they use no split and the first 1 to 5 events,
    because no user rates a movie twice.

    Raises:
        InvalidInputError: an argument is out of range, a trace is too short to be divided, or knowledge is "partial"
            although there is no split and no `training`, which would be maximum knowledge.

    Source: Murakami, Takahashi 2021, sections 3.1 and 5.1.

    >>> there = scene(Traces.of([[0, 1, 0, 2, 1], [1, 2]], k=3))
    >>> there.training.trace(0).tolist(), there.reported.trace(0).tolist()
    ([0, 1], [0])
    """
    for name, value, choices in (("knowledge", knowledge, Knowledge), ("split", split, Split)):
        if value not in get_args(choices):
            _checks.reject(name, " or ".join(get_args(choices)), value)
    if split == "none" and knowledge == "partial" and training is None:
        hint = "Set training to the number of events that the attacker knows of each person, or use maximum knowledge."
        _checks.reject("training", "a number if knowledge is partial and split is none", None, hint)
    least = 2 if split == "half" else 1
    if bool(np.any(traces.lengths < least)):
        short = int(np.count_nonzero(traces.lengths < least))
        hint = f"Exclude people with fewer events: traces.select(traces.lengths >= {least})."
        _checks.reject("traces", f"traces of at least {least} events each", f"<{short} of {traces.n} shorter>", hint)
    former, personal = traces, traces
    if split == "half":
        half = traces.lengths // 2
        former, rest = traces.split(half)
        personal = rest.split(half)[0]
    background = personal if knowledge == "maximum" else former
    return Scene(training=_first("training", background, training), reported=_first("events", personal, events))


def _first(name: str, traces: Traces, number: int | None) -> Traces:
    return traces if number is None else traces.first(_checks.integer(name, number, low=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceReports:
    """Randomized events of n people, in order; the reports of person i are `reports[offsets[i]:offsets[i + 1]]`.

    The collector knows which reports belong to one person (a pseudonym). `reports` has shape (total,), or
    (total, columns) if a report has several columns; see `randomize`.
    """

    reports: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    randomizer: Mechanism

    @property
    def n(self) -> int:
        """Number of people."""
        return self.offsets.size - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of reports of each person, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def k(self) -> int:
        """Number of values an event can have."""
        return self.randomizer.inputs

    def __repr__(self) -> str:
        return f"TraceReports(n={self.n}, randomizer={self.randomizer!r})"

    def likelihoods(
        self, at: npt.NDArray[np.int64], values: npt.NDArray[np.int64], *, believed: bool
    ) -> npt.NDArray[np.float64]:
        """Return Q(report at[i] | x), shape (values.size, at.size), up to a factor that depends only on the report.

        With `believed`, noise is ignored: the likelihood is 1 if the report supports x, else 0.
        """
        rows = self.reports[at]
        if believed:
            return self.randomizer.supports(rows, values).astype(np.float64)
        return self.randomizer.likelihoods(rows, values)

    def totals(self, *, believed: bool) -> npt.NDArray[np.float64]:
        """Return the sums of `likelihoods` over all k values, shape (total,)."""
        if believed:
            return self.randomizer.supported(self.reports).astype(np.float64)
        return self.randomizer.likelihood_totals(self.reports)

    def as_traces(self) -> Traces:
        """Return the reported values as if they were events (randomized response only).

        Raises:
            UnsupportedProtocolError: the reports are not values.
        """
        symmetric_law(self.randomizer, for_what="To read reports as events")
        return Traces(events=self.reports, offsets=self.offsets, k=self.k)


def randomize(traces: Traces, *, randomizer: Mechanism, rng: Randomness | None = None) -> TraceReports:
    """Return the reports of people who randomize every event of their traces independently.

    Raises:
        InvalidInputError: the randomizer and the traces are over different numbers of values.

    Source: Murakami, Takahashi 2021, sections 4.2 to 4.4.

    >>> import hushuffle as hs
    >>> walks = Traces.of([[0, 1, 0, 2], [1, 1]], k=3)
    >>> silent = randomize(walks, randomizer=hs.RandomizedResponse(k=3, epsilon=float("inf")))
    >>> silent.reports.tolist()
    [0, 1, 0, 2, 1, 1]
    """
    if randomizer.inputs != traces.k:
        _checks.reject("randomizer", f"a mechanism over the same {traces.k} values as the traces", randomizer.inputs)
    reports = randomizer.randomize(traces.events, rng=secure() if rng is None else rng)
    return TraceReports(reports=reports, offsets=traces.offsets, randomizer=randomizer)


UNLIKE_TRIALS = Citation(
    key="hoeffding1956",
    text="W. Hoeffding, On the distribution of the number of successes in independent trials, "
    "Annals of Mathematical Statistics 27 (1956)",
)


def ranks(scores: npt.ArrayLike, *, rng: Randomness | None = None) -> Integers:
    """Return the rank of the right user among all users for each report, shape (n,); rank 1 is an identification.

    `scores[i, j]` says how well the reports of user i fit user j, shape (n, n); a larger score is better. Users with
    equal scores are ranked in a random order.

    Raises:
        InvalidInputError: scores are not a square matrix of numbers.

    Source: Murakami, Takahashi 2021, section 3.1 (best score rule).

    >>> ranks([[3.0, 1.0, 2.0], [5.0, 4.0, 0.0], [0.0, 1.0, 9.0]]).tolist()
    [1, 2, 1]
    """
    table = _square(scores)
    right = np.diagonal(table)[:, None]
    return _placed(np.count_nonzero(table > right, axis=1), np.count_nonzero(table == right, axis=1), rng)


def _placed(better: Integers, tied: Integers, rng: Randomness | None) -> Integers:
    """Return ranks below `better` other users, at a random place among `tied` users with the right user's score."""
    source = secure() if rng is None else rng
    # The share of the interval [0, 1) that a 64-bit word falls into: equal shares up to 2**-53.
    share = (source.words(tied.size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    reached: Integers = 1 + better + np.floor(share * tied).astype(np.int64)
    return reached


ATTACKED: Final = 2_000
"""Number of people whose reports are attacked if there are more; each report is compared with all people."""

_BLOCK: Final = 1 << 13


def attacked(n: int, *, rng: Randomness) -> Integers:
    """Return the positions of n people, or of `ATTACKED` of them drawn at random without replacement, ascending.

    >>> attacked(3, rng=secure()).tolist(), attacked(10**6, rng=secure()).size
    ([0, 1, 2], 2000)
    """
    return np.arange(n) if n <= ATTACKED else np.sort(rng.permutation(n)[:ATTACKED])


def ranks_among(
    n: int, users: Integers, score: Callable[[Integers], Floats], *, rng: Randomness | None = None
) -> tuple[Integers, Floats]:
    """Return the ranks (as `ranks`) of the right users among n users, and the square matrix of scores of `users`.

    `score(positions)` returns how well the reports of each of the m `users` fit the users at these positions, shape
    (m, positions.size). It is called for blocks of users, so that memory does not grow with n.

    Raises:
        InvalidInputError: scores are not a matrix of numbers.

    Source: docs/theory/identity.md, Lemma 10.

    >>> table = np.array([[3.0, 1.0, 2.0], [5.0, 4.0, 0.0], [0.0, 1.0, 9.0]])
    >>> users = np.array([1, 2])
    >>> [part.tolist() for part in ranks_among(3, users, lambda positions: table[np.ix_(users, positions)])]
    [[2, 1], [[4.0, 0.0], [1.0, 9.0]]]
    """
    square = _square(score(users))
    if users.size == n:
        return ranks(square, rng=rng), square
    right = np.diagonal(square)[:, None]
    better, tied = np.zeros((2, users.size), dtype=np.int64)
    for start in range(0, n, _BLOCK):
        scores = score(np.arange(start, min(start + _BLOCK, n)))
        better += np.count_nonzero(scores > right, axis=1)
        tied += np.count_nonzero(scores == right, axis=1)
    return _placed(better, tied, rng), square


def candidates(scores: npt.ArrayLike, *, top: int) -> npt.NDArray[np.int64]:
    """Return the positions of the `top` users with the best scores for each report, best first, shape (m, top).

    Among users with equal scores, those with the smaller positions are listed.

    Raises:
        InvalidInputError: scores are not a matrix, or top is not from 1 to the number of users.

    >>> candidates([[3.0, 1.0, 2.0], [5.0, 4.0, 9.0]], top=2).tolist()
    [[0, 2], [2, 0]]
    """
    table = _matrix(scores)
    wanted = _checks.integer("top", top, low=1, high=table.shape[1])
    return np.argsort(-table, axis=1, kind="stable")[:, :wanted].astype(np.int64)


def hit_rate(places: npt.ArrayLike, *, top: int, confidence: float = 0.95) -> Bound:
    """Return a Clopper-Pearson interval for the rate at which the right user is among the `top` best scores.

    `places` are the `ranks` of independent trials. The trials' success probabilities may differ; the interval is for
    their mean, over the mechanism's randomness and random tie-breaking, for these users. If they are drawn by
    `attacked`, it is for the mean over all users.

    Raises:
        InvalidInputError: places are not integers >= 1, top < 1, or confidence is not in (0, 1).

    Source: Clopper, Pearson 1934; Hoeffding 1956 (unequal probabilities lower the variance); docs/theory/identity.md,
    Lemma 10.

    >>> print(hit_rate([1, 3, 1, 1, 7, 1, 1, 1, 2, 1], top=1))
    0.3475 to 0.9333 (95% interval)
    """
    reached = _places(places)
    hits = int(np.count_nonzero(reached <= _checks.integer("top", top, low=1)))
    return rate_interval(hits, reached.size, confidence, BINOMIAL, UNLIKE_TRIALS)


def miss_rate(places: npt.ArrayLike, *, confidence: float = 0.95) -> Bound:
    """Return a Clopper-Pearson interval for the rate at which another user has the best score (1 - `hit_rate`).

    `hushuffle.attacks.detection.identification_error` is the same for one matrix of scores, but averages over ties.

    Raises:
        InvalidInputError: the reasons are those of `hit_rate`.

    Source: Murakami, Takahashi 2021, section 5.3 (identification error rate); Clopper, Pearson 1934.

    >>> print(miss_rate([1, 3, 1, 1, 7, 1, 1, 1, 2, 1]))
    0.06673 to 0.6525 (95% interval)
    """
    reached = _places(places)
    misses, sources = int(np.count_nonzero(reached > 1)), (PIE.at("Section 5.3"), BINOMIAL, UNLIKE_TRIALS)
    return rate_interval(misses, reached.size, confidence, *sources)


def genuine_scores(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the scores of each user's reports against the same user, shape (n,).

    >>> genuine_scores([[3.0, 1.0], [5.0, 4.0]]).tolist()
    [3.0, 4.0]
    """
    return np.diagonal(_square(scores)).copy()


def impostor_scores(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the scores of each user's reports against all other users, row by row, shape (n (n - 1),).

    >>> impostor_scores([[3.0, 1.0], [5.0, 4.0]]).tolist()
    [1.0, 5.0]
    """
    table = _square(scores)
    return table[~np.eye(table.shape[0], dtype=np.bool_)]


def _matrix(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or bool(np.isnan(table).any()):
        _checks.reject("scores", "a matrix of numbers", f"<shape {table.shape}>")
    return table


def _square(scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    table = _matrix(scores)
    if table.shape[0] != table.shape[1]:
        _checks.reject("scores", "a square matrix with a row and a column for each user", f"<shape {table.shape}>")
    return table


def _places(places: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(places)
    if array.ndim != 1 or not array.size or not np.issubdtype(array.dtype, np.integer) or int(array.min()) < 1:
        _checks.reject("places", "an array of integers >= 1, one for each trial", f"<shape {array.shape}>")
    return array.astype(np.int64, copy=False)
