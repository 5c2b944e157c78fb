"""`explain`: the theorems by which a central figure follows from the description of a release."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.question import Law, Question, Rule
from hushuffle.curves.rules.simple import ROUNDS
from hushuffle.curves.search import solve, steps
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.questions.dp.central import Round, round_curve
from hushuffle.questions.dp.composition import Rounds, compose, merged, wave_question

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.model import Bound

_WIDTH: Final = 100


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One step of a proof: a release, and a rule (reduces it to simpler releases) or a law (a formula for its figures).

    Args:
        release: the release in words.
        name: the rule, or the law if there are no further `parts`.
        statement: the theorem in one sentence.
        page: page and number of its proof in docs/theory.
        relation: how the epsilon of the release compares with the parts: "=", "<=", "<= 12 times:", "mean:", "between:"
            (the first part is an upper bound, the second one a lower bound), "largest:", or "" for a law.
        epsilon: the bracket of epsilon at the requested delta; None if none was requested.
        parts: the steps for the simpler releases.
        beside: further theorems about this release; `epsilon` uses the smallest upper and the largest lower bound.
    """

    release: str
    name: str
    statement: str
    page: str
    relation: str = ""
    epsilon: Bound | None = None
    parts: tuple[Explanation, ...] = ()
    beside: tuple[Explanation, ...] = ()

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the lines of the explanation, indented by `depth` steps."""
        figure = "" if self.epsilon is None else f": epsilon {self.epsilon}"
        yield from _wrapped(f"{self.release}{figure}", "    " * depth)
        for step in (self, *self.beside):
            sign = f"{step.relation} " if step.relation else ""
            yield from _wrapped(f"{sign}{step.name} ({step.page}): {step.statement}", "    " * depth + "  ")
            for part in step.parts:
                yield from part.lines(depth + 1)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(
    rounds: Round | Rounds,
    *,
    reports_per_person: int = 1,
    delta: float | None = None,
    waves: int | None = None,
    instantaneous: Mechanism | None = None,
    changes: int = 0,
) -> Explanation:
    """Return the theorems (rules and laws, see `Explanation`) from which the central figures follow, as a tree.

    The figures are those of `dp.epsilon`; with `waves`, of `dp.waves`; for several rounds, of `dp.compose`. In the
    printed tree, "<= 12 times:" says that epsilon is at most 12 times the epsilon of the part that is indented below.

    Args:
        rounds: a protocol; or a list of protocols or pairs (protocol, times), as for `dp.compose`.
        reports_per_person: the largest number of reports from one person in each round, as for `dp.epsilon`.
        delta: in [0, 1): each step then has its bracket of epsilon (nats). None: no figures, which is fast.
        waves: number of collections with memoized reports, as for `dp.waves`, of a single protocol.
        instantaneous: with `waves`, the randomizer that each wave applies to the memoized report.
        changes: with `waves`, the largest number of changes of one person's value.

    Raises:
        InvalidInputError: an argument is out of range, or `waves` is given for several rounds or several reports.
        UnsupportedProtocolError: no theorem is known for this release.

    Source: docs/theory/index.md.

    >>> import hushuffle as hs
    >>> response, scrambler = hs.RandomizedResponse(k=5, epsilon=2.0), hs.Scrambler(dummies=500)
    >>> survey = hs.Protocol(randomizer=response, shuffler=scrambler, n=33_000)
    >>> print(hs.dp.explain([(survey, 12)], delta=1e-6))
    33,000 reports; 500 dummies; seen: multiset; 12 rounds: epsilon 0.1899 to 0.1901 nats (certified
      bracket)
      <= 12 times: rounds composed (composition.md, Theorem 3): The losses of rounds with fresh
        randomness add up, even if values depend on earlier releases.
        33,000 reports; 500 dummies; seen: multiset: epsilon 0.05019 to 0.05021 nats (certified bracket)
          k-ary randomized response, shuffled (blanket.md, Theorem 1): The privacy blanket bounds
            epsilon from above, explicit neighbouring datasets from below.
    """
    level = None if delta is None else _checks.probability("delta", delta, high_open=True)
    reports = _checks.integer("reports_per_person", reports_per_person, low=1)
    given = merged(rounds)
    if waves is not None:
        if len(given) > 1 or given[0][1] > 1 or reports > 1:
            _checks.reject("waves", "None, except for a single protocol with one report of each person", f"{waves}")
        question = wave_question(cast("Protocol", given[0][0]), waves, instantaneous=instantaneous, changes=changes)
        return _explained(question, level)
    parts = tuple(_of_round(each, reports, times, level) for each, times in given)
    if len(parts) == 1:
        return parts[0]
    curves = [(round_curve(each, reports), number) for each, number in given]
    return Explanation(
        release="; then ".join(part.release for part in parts),
        name=ROUNDS.name,
        statement=ROUNDS.statement,
        page=ROUNDS.page,
        relation="<=",
        epsilon=None if level is None else compose(curves, delta=level),
        parts=parts,
    )


def _of_round(given: Round, reports: int, times: int, delta: float | None) -> Explanation:
    if not isinstance(given, PrivacyCurve):
        return _explained(Question.of(given, reports, rounds=times), delta)
    return Explanation(
        release=f"a given privacy curve; {times:,} rounds" if times > 1 else "a given privacy curve",
        name="given",
        statement=f"{given.proof[:1].upper()}{given.proof[1:]}.",
        page=ROUNDS.page,
        epsilon=None if delta is None else compose([(given, times)], delta=delta),
    )


def _explained(question: Question, delta: float | None) -> Explanation:
    first, *further = (_step(step, question, delta) for step in steps(question))
    figure = None if delta is None else solve(question).epsilon(delta)
    return replace(first, epsilon=figure, beside=tuple(further))


def _step(step: Law | Rule, question: Question, delta: float | None) -> Explanation:
    relation, parts = step.relation(question)
    return Explanation(
        release=question.describe(),
        name=step.name,
        statement=step.statement,
        page=step.page,
        relation=relation,
        parts=tuple(_explained(part, delta) for part in parts),
    )


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
