"""`Claim`: what a paper says, what came out here, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hushuffle import _checks

Verdict = Literal["confirmed", "contradicted", "differs on other data", "not testable here"]
VERDICTS: tuple[Verdict, ...] = ("confirmed", "contradicted", "differs on other data", "not testable here")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim of a paper, held against what was computed.

    `place` is where the paper says it, `sentence` what it says, `printed` its number ("" if it prints none), `ours`
    what came out here, `reason` why the verdict is what it is where that is not plain, `data` what it was tested on
    and how much of it ("" for a formula), `target` the study that tests it.

    `contradicted` is a claim tested as the paper makes it: by a formula, or on data like the paper's. Where the data
    are others, a claim that does not hold on them `differs on other data`; what the data cannot decide is `not testable
    here`.

    Raises:
        InvalidInputError: an unknown verdict, or no word of why a claim does not hold or is not tested.

    >>> claim = Claim(place="Figure 5", sentence="A is below B.", ours="A is 2, B is 3.", verdict="confirmed")
    >>> count([claim, claim])
    '2 claims: 2 confirmed.'
    """

    place: str
    sentence: str
    ours: str
    verdict: Verdict
    printed: str = ""
    reason: str = ""
    data: str = ""
    target: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            _checks.reject("verdict", f"one of {', '.join(VERDICTS)}", self.verdict)
        if self.verdict in ("differs on other data", "not testable here") and not self.reason:
            _checks.reject("reason", f'given for a claim that is "{self.verdict}"', self.reason)


def count(claims: Sequence[Claim]) -> str:
    """Return how many claims have which verdict, in one sentence."""
    if not claims:
        return "No claim of the paper is tested here."
    parts = [(sum(claim.verdict == verdict for claim in claims), verdict) for verdict in VERDICTS]
    counts = ", ".join(f"{number} {verdict}" for number, verdict in parts if number)
    return f"{len(claims)} claim{'s' if len(claims) != 1 else ''}: {counts}."
