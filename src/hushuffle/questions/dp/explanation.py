"""`explain`: the theorems by which a central figure follows from the description of a release."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hushuffle import _checks
from hushuffle.curves.question import Question
from hushuffle.curves.search import solve, step
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.split_and_mix import SplitAndMix

if TYPE_CHECKING:
    from hushuffle.model import Bound

_WIDTH: Final = 100


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One step of a proof: a release, the rule or law that treats it, and the steps for the simpler releases.

    Args:
        release: the release in words.
        name: the rule, or the law if there are no further `parts`.
        statement: the theorem in one sentence.
        page: page and number of its proof in docs/theory.
        relation: how the epsilon of the release compares with the parts: "=", "<=", "mean", "rounds", "between" (the
            first part is an upper bound, the second one a lower bound), "largest", or "" for a law.
        epsilon: the bracket of epsilon at the requested delta; None if none was requested.
        parts: the steps for the simpler releases.
    """

    release: str
    name: str
    statement: str
    page: str
    relation: str = ""
    epsilon: Bound | None = None
    parts: tuple[Explanation, ...] = ()

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the lines of the explanation, indented by `depth` steps."""
        figure = "" if self.epsilon is None else f": epsilon {self.epsilon}"
        sign = f"{self.relation} " if self.relation else ""
        texts = (f"{self.release}{figure}", f"{sign}{self.name} ({self.page}): {self.statement}")
        for text, begin in zip(texts, ("", "  "), strict=True):
            indent = "    " * depth
            yield from textwrap.wrap(
                text, _WIDTH, initial_indent=indent + begin, subsequent_indent=indent + begin + "  "
            )
        for part in self.parts:
            yield from part.lines(depth + 1)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(
    protocol: Protocol | MixedProtocol | SplitAndMix, *, reports_per_person: int = 1, delta: float | None = None
) -> Explanation:
    """Return the rules and the laws from which `epsilon` and `delta` compute their upper bounds, as a tree.

    Args:
        protocol: the collection.
        reports_per_person: the largest number of the n reports from one person, as for `epsilon`.
        delta: in [0, 1): each step then has its bracket of epsilon (nats). None: no figures, which is fast.

    Raises:
        InvalidInputError: delta or reports_per_person out of range.
        UnsupportedProtocolError: no rule and no law is known for this release.

    Source: docs/theory/index.md.

    >>> import hushuffle as hs
    >>> response, scrambler = hs.RandomizedResponse(k=5, epsilon=2.0), hs.Scrambler(dummies=500)
    >>> print(hs.dp.explain(hs.Protocol(randomizer=response, shuffler=scrambler, n=33_000), delta=1e-6))
    33,000 reports; 500 dummies; seen: multiset: epsilon 0.05019 to 0.05022 nats (certified bracket)
      k-ary randomized response, shuffled (blanket.md, Theorem 1): The privacy blanket bounds epsilon
        from above, explicit neighbouring datasets from below.
    """
    _checks.of_type("protocol", protocol, Protocol, MixedProtocol, SplitAndMix)
    reports = _checks.integer("reports_per_person", reports_per_person, low=1)
    level = None if delta is None else _checks.probability("delta", delta, high_open=True)
    return _explained(Question.of(protocol, reports), level)


def _explained(question: Question, delta: float | None) -> Explanation:
    answer = step(question)
    relation, parts = answer.relation(question)
    return Explanation(
        release=question.describe(),
        name=answer.name,
        statement=answer.statement,
        page=answer.page,
        relation=relation,
        epsilon=None if delta is None else solve(question).epsilon(delta),
        parts=tuple(_explained(part, delta) for part in parts),
    )
