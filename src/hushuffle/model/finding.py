"""`Finding`, `Unanswered`: one row of a report, and one that says why it has no figure."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle.model.bound import Bound


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one adversary learns: the question, one plain sentence, and the figure behind it.

    `question` is a short stable name ("central-dp", "vulnerability", "re-identification", ...);
    `adversary` names who asks it in plain words; `proof` names the theorem or argument.
    The sources of `bound` are the citations.
    """

    question: str
    adversary: str
    sentence: str
    bound: Bound
    proof: str


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """A question, or a figure of a report, that has no answer for this mechanism.

    `question` is the name that the finding or chart would have had; `topic` says in plain words who asked, or what is
    missing; `reason` is the message of what refused.
    """

    question: str
    topic: str
    reason: str
