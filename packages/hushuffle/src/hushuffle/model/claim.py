"""`Claim`: a claim of a paper, how it was tested, the result of the test, and the verdict."""

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
    """One claim of a paper, compared with a result computed by this library.

    `place` names the part of the paper that states the claim. `quote` is the paper's wording (… marks omitted words
    or formulas). `sentence` states the tested claim in plain words. `printed` is the paper's number ("" if it
    prints none) and `ours` the computed result. `reason` explains a verdict that does not follow from the result
    alone. `data` names the data of the test ("" for a formula) and `target` the study that runs it. `repeats` names
    the study whose claim this claim repeats, on other data or in a variant; it may be the same study.

    The verdicts `confirmed` and `contradicted` need the paper's own data, a proof or an exact computation. On other
    data, or in settings that the paper does not give, a claim `holds on other data` or `differs on other data`. A claim
    that neither the data nor the paper's text decide is `not testable`.

    Raises:
        InvalidInputError: the verdict is unknown, or "differs on other data" or "not testable" has no reason.

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
            _checks.reject("reason", f'set for a claim whose verdict is "{self.verdict}"', self.reason)


def distinct(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims, except those that repeat a claim of a study that is also in `claims`."""
    studies = {claim.target for claim in claims}
    return [claim for claim in claims if not claim.repeats or claim.repeats not in studies]


def count(claims: Sequence[Claim]) -> str:
    """Return a sentence with the number of claims for each verdict; repeated claims are not counted again."""
    if not claims:
        return "No claim of the paper is tested in this study."
    once = distinct(claims)
    parts = [(sum(claim.verdict == verdict for claim in once), verdict) for verdict in VERDICTS]
    counts = ", ".join(f"{number} {verdict}" for number, verdict in parts if number)
    again = len(claims) - len(once)
    repeated = f" {again} other claim{'s' * (again != 1)} repeat{'s' * (again == 1)} one of these." if again else ""
    return f"{len(once)} claim{'s' if len(once) != 1 else ''}: {counts}.{repeated}"
