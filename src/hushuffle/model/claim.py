"""`Claim`: what a paper says, what was tested and found here, and whether it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hushuffle import _checks

Verdict = Literal["confirmed", "contradicted", "holds on other data", "differs on other data", "not testable"]
VERDICTS: tuple[Verdict, ...] = (
    "confirmed",
    "contradicted",
    "holds on other data",
    "differs on other data",
    "not testable",
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim of a paper, compared with what was computed.

    `place` is where the paper says it, `quote` the paper's own words (… stands for words or formulas left out),
    `sentence` what was tested, in our words, `printed` the paper's number ("" if it prints none), `ours` the result,
    `reason` why the verdict is what it is where that is not plain, `data` what it was tested on ("" for a formula),
    `target` the study that tests it. `repeats` names the study whose claim this one repeats, on other data or in a
    variant; it may be the study itself.

    `confirmed` and `contradicted` need the paper's own data, or a proof or an exact computation. On other data a claim
    `holds on other data` or `differs on other data`. What the data or the paper's text leave open is `not testable`.

    Raises:
        InvalidInputError: an unknown verdict, or no reason for "differs on other data" or "not testable".

    >>> claim = Claim(place="Figure 5", quote="", sentence="A is below B.", ours="A is 2, B is 3.", verdict="confirmed")
    >>> count([claim])
    '1 claim: 1 confirmed.'
    """

    place: str
    quote: str
    sentence: str
    ours: str
    verdict: Verdict
    printed: str = ""
    reason: str = ""
    data: str = ""
    target: str = ""
    repeats: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            _checks.reject("verdict", f"one of {', '.join(VERDICTS)}", self.verdict)
        if self.verdict in ("differs on other data", "not testable") and not self.reason:
            _checks.reject("reason", f'given for a claim that is "{self.verdict}"', self.reason)


def distinct(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims without those that repeat a claim of a study among them."""
    studies = {claim.target for claim in claims}
    return [claim for claim in claims if not claim.repeats or claim.repeats not in studies]


def count(claims: Sequence[Claim]) -> str:
    """Return how many claims have which verdict, in one sentence; repeated claims are not counted again."""
    if not claims:
        return "No claim of the paper is tested here."
    once = distinct(claims)
    parts = [(sum(claim.verdict == verdict for claim in once), verdict) for verdict in VERDICTS]
    counts = ", ".join(f"{number} {verdict}" for number, verdict in parts if number)
    again = len(claims) - len(once)
    repeated = f" {again} more repeat{'s' * (again == 1)} one of them." if again else ""
    return f"{len(once)} claim{'s' if len(once) != 1 else ''}: {counts}.{repeated}"
