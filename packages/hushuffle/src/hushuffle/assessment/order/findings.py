"""Findings on the order of a Mallows shuffle's release, and a table of the places that each group's reports keep."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from hushuffle.assessment import findings
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import MallowsShuffle, NoShuffle, UniformShuffle
from hushuffle.model import Bound, Finding, Groups, Table, number
from hushuffle.model.bound import percent
from hushuffle.model.citation import BRAUN, SHANNON
from hushuffle.questions import order, pie, qif
from hushuffle.questions.order.displacement import Displacement
from hushuffle.randomness import Randomness
from hushuffle.specification.exposure import factor
from hushuffle.specification.order_setup import Arrangement

DELTA: Final = 0.01
"""The probability that fewer reports of a group stay among the group's places than stated, as in the paper."""

_READERS: Final = {
    "order-inference": "An adversary who knows everything except the order within your group",
    "order-reidentification": "An adversary who knows all true answers",
}
_DRAWS: Final = 600
_MOST_RECORDS: Final = 60_000_000
_SAFE: Final = 1 + 1e-8
_MANY_PEOPLE: Final = 10**9


def central(finding: Finding) -> Finding:
    """The finding with the remark that the central guarantee does not cover the order."""
    addition = (
        " The bound lies between those of a uniform shuffle and of no shuffle. It does not cover what the order "
        "reveals about senders."
    )
    return replace(finding, sentence=finding.sentence + addition)


def guesser(protocol: Protocol, adversary: Guesser) -> Finding:
    """Bounds on one adversary's success, from a uniform shuffle and from no shuffle."""
    unshuffled = qif.vulnerability(replace(protocol, shuffler=NoShuffle()), adversary=adversary)
    hidden = qif.vulnerability(replace(protocol, shuffler=UniformShuffle()), adversary=adversary)
    bound = replace(unshuffled, lower=min(hidden.lower, unshuffled.upper), kind="bracket", witness=None)
    finding = findings.guesser(protocol, adversary, bound=bound)
    return replace(finding, proof=f"{finding.proof}; a uniform shuffle reveals less, and no shuffle reveals more")


def identified(protocol: Protocol) -> Finding:
    """The probability to name the sender from a report and its place."""
    n, most = protocol.n, likeliest(protocol)
    content = 1 - pie.bayes_error(replace(protocol, shuffler=NoShuffle())).lower
    right = min(1.0, n * most * content * _SAFE)
    error = Bound(lower=1 - right, upper=1 - 1 / n, kind="lower", unit="probability", sources=(BRAUN,))
    return Finding(
        question="re-identification",
        adversary=findings.LINKER,
        sentence=(
            f"From a report and its place in the release, the adversary names the sender correctly at most "
            f"{percent(right, up=True)} of the time, {percent(1 / n)} by blind guessing. This holds for any relation "
            "between people and answers."
        ),
        bound=error,
        shown=error.complement,
        proof="lower bound on the Bayes error, from the likeliest sender of any place and the capacity of the report",
    )


def identity_information(protocol: Protocol) -> Finding:
    """The information (bits) that a report and its place reveal about the sender."""
    n, most = protocol.n, likeliest(protocol)
    carried = pie.alpha(replace(protocol, shuffler=NoShuffle(), n=max(n, _MANY_PEOPLE))).upper
    bits = min(math.log2(n), max(0.0, math.log2(n * most)) + carried) * _SAFE
    return Finding(
        question="identity-information",
        adversary=findings.LINKER,
        sentence=(
            f"A report and its place reveal at most {number(bits, up=True)} bits about the sender; identifying one of "
            f"{n:,} people takes {number(math.log2(n))} bits."
        ),
        bound=Bound(lower=0.0, upper=bits, kind="upper", unit="bits", sources=(SHANNON,)),
        proof="sum of bits: from the place, at most log2 of n times its likeliest sender's probability, and from the "
        "report",
    )


def likeliest(protocol: Protocol) -> float:
    """Return the largest probability that a given place holds a given person's report, rounded up.

    Kendall distance: (1 - q) / (1 - q**n), q = e**-theta. Fix the order of all other people. The number of inversions
    then changes by one from each place of the person to the next. If c is the least number, the weights add up to
    q**c (1 + q + ... + q**(n-1)) or more, so no place has a probability above q**c over that sum. The first person
    attains this bound at the first place. Hamming distance: a person's most probable place is the unchanged one.

    Source: argued above; docs/theory/order.md, Theorem 1.

    >>> from hushuffle.mechanisms.randomizers import RandomizedResponse
    >>> shuffler = MallowsShuffle(reference=range(3), theta=math.log(2))
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=shuffler, n=3)
    >>> round(likeliest(survey), 6)
    0.571429
    """
    shuffler = cast("MallowsShuffle", protocol.shuffler)
    n, theta = protocol.n, shuffler.theta
    if shuffler.distance == "hamming":
        stays = float(order.displacement(n=n, theta=theta, distance="hamming").law[0])
        return min(1.0, max(stays, 1 / n) * _SAFE)
    return min(1.0, math.expm1(-theta) / math.expm1(-theta * n) * _SAFE)


def reader(arrangement: Arrangement, *, local_epsilon: float, household: int, moved: Displacement) -> list[Finding]:
    """Findings on an adversary who combines public data with the order of release."""
    alpha, groups = arrangement.alpha, arrangement.groups
    sentence = "The order of release may fully reveal which member of a group sent which report."
    if factor(alpha.upper):
        times = number(math.exp(alpha.upper), up=True)
        sentence = f"Exchanging the reports of people in one group makes no release more than {times} times as likely."
    # The guarantee is weakest for the smallest group to which the theorem applies.
    smallest = int(min(groups.sizes[groups.sizes > 2 * household], default=1))
    rows = order.findings(alpha.upper, epsilon=local_epsilon, group=smallest, wanted=household)
    mean, uniform = moved.mean, uniform_mean(groups.n)
    between = f"{number(mean.lower, up=False)} to {number(mean.upper, up=True)}"
    between = number(mean.upper) if mean.kind == "exact" else between
    return [
        Finding(
            question="order-privacy",
            adversary="An adversary who sees the order of release",
            sentence=sentence,
            bound=alpha,
            proof=_proof(arrangement),
        ),
        *(replace(row, adversary=_READERS[row.question]) for row in rows),
        Finding(
            question="order-displacement",
            adversary="An adversary who looks for a report near its sender's rank",
            sentence=(
                f"A report moves {between} places on average, and 95 % of the reports move at most "
                f"{moved.quantile(0.95):,}. In a uniform shuffle the average is {number(uniform)}."
            ),
            bound=mean,
            proof="exact distribution of the displacement"
            if mean.kind == "exact"
            else "simulated orders, Student's interval",
        ),
    ]


def uniform_mean(n: int) -> float:
    """Mean number of places by which a uniform shuffle of n reports moves a report: (n**2 - 1) / (3 n).

    >>> uniform_mean(2)
    0.5
    """
    return (n * n - 1) / (3 * n)


def groups_table(arrangement: Arrangement, *, confidence: float, rng: Randomness) -> Table:
    """The share of places whose report still belongs to the same group or part of the order."""
    shuffler, n = arrangement.shuffler, arrangement.n
    sets, samples = _sets(arrangement.groups, shuffler.reference), max(30, min(_DRAWS, _MOST_RECORDS // n))
    shares = order.preserved_share(
        shuffler, list(sets.values()), delta=DELTA, samples=samples, confidence=confidence, rng=rng
    )
    return Table(
        key="order-preservation",
        title="Share of reports that stay within a set of people",
        caption=(
            f"With probability {1 - DELTA:.0%}, at least this share of a set's places hold reports of the set. A "
            "larger share lets the analyst learn more about the set."
        ),
        columns=("set of people", "people", f"at least, with probability {1 - DELTA:.0%}", "mean, uniform shuffle"),
        rows=tuple(
            (name, people.size, share, people.size / n)
            for (name, people), share in zip(sets.items(), shares, strict=True)
        ),
    )


def _sets(groups: Groups, reference: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.int64]]:
    """Sets of people by name: one group of each size, and stretches from the middle of the public order."""
    sizes, n = groups.sizes, groups.n
    by_size = np.argsort(sizes, kind="stable")
    named = {}
    for name, place in (("largest", sizes.size - 1), ("middle", sizes.size // 2), ("smallest", 0)):
        group = int(by_size[place])
        named[int(sizes[group])] = (f"{name} group", groups[group])
    sets = {name if len(named) > 1 else "a group": members for _, (name, members) in sorted(named.items())}
    for name, parts in (("a tenth of the public order", 10), ("half of the public order", 2)):
        start, count = (n - n // parts) // 2, n // parts
        if count:
            sets[name] = reference[start : start + count]
    return sets


def _proof(arrangement: Arrangement) -> str:
    shuffler, published = arrangement.shuffler, arrangement.published
    text = (
        f"theta times the exact sensitivity of the {shuffler.distance.capitalize()} distance, which is "
        f"{arrangement.sensitivity:,}; the widest group spans {arrangement.width + 1:,} ranks of the public order"
    )
    if published is None:
        return text
    return (
        f"{text}; with the published sensitivity bound, {published:,}, alpha would be "
        f"{number(shuffler.theta * published, up=True)} nats"
    )
