"""What the order of release says: one finding for each question, and what the shuffle does to groups."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.assessment import findings
from hushuffle.assessment.odds import factor
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import MallowsShuffle, NoShuffle, UniformShuffle
from hushuffle.model import Bound, Finding, Table, number
from hushuffle.model.bound import percent
from hushuffle.model.citation import BRAUN, SHANNON
from hushuffle.questions import order, pie, qif
from hushuffle.questions.order.displacement import Displacement
from hushuffle.randomness import Randomness
from hushuffle.specification.order_setup import Arrangement

DELTA: Final = 0.01
"""Groups keep their share but for one release in a hundred: the published choice."""

_READERS: Final = {
    "order-inference": "Somebody who knows all but the order inside your group",
    "order-reidentification": "Somebody who knows everybody's true answer",
}
_DRAWS: Final = 600
_MOST_RECORDS: Final = 60_000_000
_SAFE: Final = 1 + 1e-8
_MANY_PEOPLE: Final = 10**9


def central(found: Finding) -> Finding:
    """Return the central guarantee with the word that the order is another question."""
    addition = (
        " The figure lies between that of a uniform shuffle and that of none; what the order says about who sent what "
        "is another question."
    )
    return replace(found, sentence=found.sentence + addition)


def guesser(protocol: Protocol, adversary: Guesser) -> Finding:
    """Return how often one guesser is right: no less than after a uniform shuffle, no more than without any."""
    found = findings.guesser(replace(protocol, shuffler=NoShuffle()), adversary)
    hidden = qif.vulnerability(replace(protocol, shuffler=UniformShuffle()), adversary=adversary)
    upper = found.bound.upper
    least = min(hidden.lower, upper)
    bound = Bound(lower=least, upper=upper, kind="bracket", unit="probability", sources=found.bound.sources)
    proof = f"{found.proof}; between a uniform shuffle, which says less, and none, which says more"
    return replace(found, bound=bound, proof=proof)


def identified(protocol: Protocol) -> Finding:
    """Return how often one report and its place name the sender."""
    n, most = protocol.n, likeliest(protocol)
    content = 1 - pie.bayes_error(replace(protocol, shuffler=NoShuffle())).lower
    right = min(1.0, n * most * content * _SAFE)
    error = Bound(lower=1 - right, upper=1 - 1 / n, kind="lower", unit="probability", sources=(BRAUN,))
    return Finding(
        question="re-identification",
        adversary=findings.LINKER,
        sentence=(
            f"From a report and its place in the release, names the sender correctly at most "
            f"{percent(right, up=True)} of the time, even if each answer told as much as can be about its owner; "
            f"{percent(1 / n)} by blind guessing."
        ),
        bound=error,
        shown=error.complement,
        proof="lower bound on the Bayes error: the likeliest sender of any place, times what the report alone can add",
    )


def identity_information(protocol: Protocol) -> Finding:
    """Return how many bits one report and its place say about who sent it."""
    n, most = protocol.n, likeliest(protocol)
    carried = pie.alpha(replace(protocol, shuffler=NoShuffle(), n=max(n, _MANY_PEOPLE))).upper
    bits = min(math.log2(n), max(0.0, math.log2(n * most)) + carried) * _SAFE
    return Finding(
        question="identity-information",
        adversary=findings.LINKER,
        sentence=(
            f"Learns at most {number(bits, up=True)} bits about who sent a report, from it and its place; "
            f"{number(math.log2(n))} bits name one person."
        ),
        bound=Bound(lower=0.0, upper=bits, kind="upper", unit="bits", sources=(SHANNON,)),
        proof="the bits of the place (at most log2 of n times its likeliest sender) and the capacity of one report",
    )


def likeliest(protocol: Protocol) -> float:
    """Return the largest probability that a given place holds a given person's report, rounded up.

    Kendall: (1 - q) / (1 - q**n), q = e**-theta. Given the order of all others, the places of one person cost numbers
    of inversions that change by one from place to place: if c is the least of them, the weights add up to
    q**c (1 + q + ... + q**(n-1)) or more, so that no place has more than q**c over that. The first person attains it at
    the first place. Hamming: to stay where one is.

    Source: argued above; docs/theory/order.md, Theorem 1.

    >>> from hushuffle.mechanisms.randomizers import RandomizedResponse
    >>> shuffler = MallowsShuffle(reference=range(3), theta=math.log(2))
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=1.0), shuffler=shuffler, n=3)
    >>> round(likeliest(survey), 6)
    0.571429
    """
    shuffler = protocol.shuffler
    assert isinstance(shuffler, MallowsShuffle)
    n, theta = protocol.n, shuffler.theta
    if shuffler.distance == "hamming":
        stays = float(order.displacement(n=n, theta=theta, distance="hamming").law[0])
        return min(1.0, max(stays, 1 / n) * _SAFE)
    return min(1.0, math.expm1(-theta) / math.expm1(-theta * n) * _SAFE)


def reader(arrangement: Arrangement, *, local_epsilon: float, household: int, moved: Displacement) -> list[Finding]:
    """Return what somebody learns who knows the public data and reads the order."""
    alpha = arrangement.alpha.upper
    told = "The order of release may say everything about who of a group sent which report."
    if factor(alpha):
        times = number(math.exp(alpha), up=True)
        told = f"Exchanging the reports of people in one group makes no release more than {times} times as likely."
    sizes = arrangement.groups.sizes
    # The weakest promise is that of the smallest group that the theorem reads.
    smallest = int(min(sizes[sizes > 2 * household], default=1))
    rows = order.findings(alpha, epsilon=local_epsilon, group=smallest, wanted=household)
    mean, uniform = moved.mean, uniform_mean(arrangement.n)
    return [
        Finding(
            question="order-privacy",
            adversary="Somebody who reads the order of release",
            sentence=told,
            bound=arrangement.alpha,
            proof=_proof(arrangement),
        ),
        *(replace(row, adversary=_READERS[row.question]) for row in rows),
        Finding(
            question="order-displacement",
            adversary="Somebody who looks for a report near its sender's rank",
            sentence=(
                f"A report moves {_between(mean)} places on average, 95 % of the reports at most "
                f"{moved.quantile(0.95):,}; after a uniform shuffle {number(uniform)} on average."
            ),
            bound=mean,
            proof="exact law of the displacement" if mean.kind == "exact" else "simulated orders, Student's interval",
        ),
    ]


def uniform_mean(n: int) -> float:
    """Return by how many places a report moves on average in a uniform shuffle of n: (n**2 - 1) / (3 n).

    >>> uniform_mean(2)
    0.5
    """
    return (n * n - 1) / (3 * n)


def groups_table(arrangement: Arrangement, *, confidence: float, rng: Randomness) -> Table:
    """Return what is left of groups, the smallest to the largest, and of stretches of the public order."""
    sets = _sets(arrangement)
    shares = order.preserved_share(
        arrangement.shuffler,
        list(sets.values()),
        delta=DELTA,
        samples=max(30, min(_DRAWS, _MOST_RECORDS // arrangement.n)),
        confidence=confidence,
        rng=rng,
    )
    return Table(
        key="order-preservation",
        title="What stays together",
        caption=(
            f"In {1 - DELTA:.0%} of the releases at least this share of the places of a set hold reports of "
            "the set: what is true of the set can be learned as far as it is preserved."
        ),
        columns=("set of people", "people", "share preserved", "after a uniform shuffle, mean"),
        rows=tuple(
            (name, members.size, share, members.size / arrangement.n)
            for (name, members), share in zip(sets.items(), shares, strict=True)
        ),
    )


def _sets(arrangement: Arrangement) -> dict[str, npt.NDArray[np.int64]]:
    """Return groups by size (one of each size), and stretches from the middle of the public order."""
    sizes, n = arrangement.groups.sizes, arrangement.n
    by_size = np.argsort(sizes, kind="stable")
    found = {}
    for name, place in (("largest", sizes.size - 1), ("middle", sizes.size // 2), ("smallest", 0)):
        group = int(by_size[place])
        found[int(sizes[group])] = (f"{name} group", arrangement.groups[group])
    sets = {name if len(found) > 1 else "a group": members for _, (name, members) in sorted(found.items())}
    for name, parts in (("a tenth of the public order", 10), ("half of the public order", 2)):
        start, count = (n - n // parts) // 2, n // parts
        if count:
            sets[name] = arrangement.shuffler.reference[start : start + count]
    return sets


def _proof(arrangement: Arrangement) -> str:
    distance = arrangement.shuffler.distance.capitalize()
    text = (
        f"theta times the exact sensitivity of the {distance} distance, {arrangement.sensitivity:,}; the widest group "
        f"spans {arrangement.width + 1:,} ranks of the public order"
    )
    if arrangement.published is None:
        return text
    return (
        f"{text}; with the published bound of the sensitivity, {arrangement.published:,}, it would be "
        f"{number(arrangement.shuffler.theta * arrangement.published, up=True)} nats"
    )


def _between(bound: Bound) -> str:
    if bound.kind == "exact":
        return number(bound.upper)
    return f"{number(bound.lower, up=False)} to {number(bound.upper, up=True)}"
