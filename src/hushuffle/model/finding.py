"""`Finding`: one line of a report."""

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
