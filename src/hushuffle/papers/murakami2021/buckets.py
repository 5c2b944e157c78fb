"""The same promise about identification, by mechanism and by number of buckets (002, figures 4 and 12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Report, Series
from hushuffle.model.citation import PIE
from hushuffle.papers.base import Request, Target
from hushuffle.papers.murakami2021.frequencies import EXPONENT, PEOPLE, VALUES, Crowd, Losses, chart, losses, zipf
from hushuffle.questions import pie

_SWEEP: Final = (2**10, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9, 2 * 10**9)


def identification(request: Request) -> Report:
    """Return figure 4: what LDP alone, the published bound, and the exact capacity say about alpha."""
    request.tell("alpha at every epsilon", 0.1)
    epsilons = tuple(float(step) / 2 for step in range(1, 61))
    protocols = [at_scale(RandomizedResponse(k=VALUES, epsilon=epsilon)) for epsilon in epsilons]
    lines = {
        "any local mechanism (Proposition 4.1)": [pie.ldp_alpha(protocol).upper for protocol in protocols],
        "randomized response (Theorem 4.2)": [pie.rr_alpha(protocol).upper for protocol in protocols],
        "randomized response, exact": [pie.alpha(protocol).upper for protocol in protocols],
    }
    drawn = chart(
        "alpha",
        "Bits about the sender in one report",
        f"{PEOPLE:,} people, {VALUES:,} values.",
        ("local epsilon (nats)", "alpha (bits)"),
        [Series.through(label, epsilons, values) for label, values in lines.items()],
    )
    one = at_scale(RandomizedResponse(k=VALUES, epsilon=1.0))
    loose, exact = pie.rr_alpha(one).upper, pie.alpha(one).upper
    return Report(
        key="murakami2021/figure-4",
        title="What local differential privacy says about identification, and what the mechanism says",
        question="How many bits about who sent it can one report carry, at each local epsilon?",
        answers=(
            f"Confirmed: at epsilon = 1 the bound for randomized response is {loose:.3g} bits, the one for any local "
            f"mechanism {pie.ldp_alpha(one).upper:.3g} bits.",
            f"The exact value is lower still: {exact:.3g} bits, {loose / exact:.0f} times less.",
        ),
        settings=(("people", f"{PEOPLE:,}"), ("values", f"{VALUES:,}")),
        charts=(drawn,),
        citations=(PIE.at("figure 4"),),
    )


def at_scale(randomizer: RandomizedResponse) -> Protocol:
    """Return the paper's collection: its people, one report each."""
    return Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=PEOPLE)


def against_buckets(request: Request) -> Report:
    """Return figure 12: local hashing with ever more buckets at theta = 1/2, beside randomized response."""
    return losses_by_buckets(zipf(PEOPLE, VALUES, EXPONENT, request.seed), _SWEEP, request)


def losses_by_buckets(people: Crowd, sweep: Sequence[int], request: Request) -> Report:
    """Return the losses of local hashing at each number of buckets of `sweep`, theta = 1/2."""
    k = people.counts.size
    found: list[tuple[int, Losses]] = []
    for position, g in enumerate(sweep):
        request.tell(f"{g:,} buckets", position / len(sweep))
        found.append((g, losses(people, _at_half(k, g), request.seed)))
    plain = losses(people, RandomizedResponse(k=k, epsilon=math.log1p(k)), request.seed)
    buckets = [float(g) for g, _ in found]
    hashed = [loss for _, loss in found]
    lines = [
        Series.through("local hashing, top 100, kept", buckets, [loss.top_kept for loss in hashed]),
        Series.through("local hashing, all values", buckets, [loss.every for loss in hashed]),
        Series.through("local hashing, all values, kept", buckets, [loss.every_kept for loss in hashed]),
        Series.through("randomized response, top 100, kept", buckets, [plain.top_kept] * len(buckets)),
        Series.through("randomized response, all values", buckets, [plain.every] * len(buckets)),
        Series.through("randomized response, all values, kept", buckets, [plain.every_kept] * len(buckets)),
    ]
    last = hashed[-1]
    expected = [loss.predicted[1] for loss in hashed]
    falls = expected == sorted(expected, reverse=True)
    verdict = "Confirmed: it falls with every step," if falls else "Contradicted: it does not fall with every step,"
    return Report(
        key="murakami2021/figure-12",
        title="More buckets at the same promise",
        question="At theta = 1/2 (the same bound on identification), what do more buckets buy?",
        answers=(
            f"{verdict} the expected loss over all values, from {hashed[0].predicted[1]:.3g} at "
            f"{sweep[0]:,} buckets to {last.predicted[1]:.3g} at {sweep[-1]:,} (measured {last.every:.3g}); "
            f"randomized response has {plain.predicted[1]:.3g} (measured {plain.every:.3g}).",
            f"Over the top 100, with threshold: {last.top_kept:.3g} against {plain.top_kept:.3g}.",
        ),
        settings=(
            ("population", people.source),
            ("theta", "1/2: local epsilon ln(1 + g)"),
            ("hashes", f"binary at {sweep[0]:,} buckets, affine above"),
            ("seed", str(request.seed)),
        ),
        charts=(
            chart("buckets", "Loss against buckets", "One run each.", ("buckets", "sum of squared errors"), lines),
        ),
        citations=(PIE.at("figure 12 and Theorem 4.8"),),
    )


def _at_half(k: int, g: int) -> LocalHashing:
    return LocalHashing(k=k, g=g, epsilon=math.log1p(g), family="binary" if g <= 2**10 else "affine")


TARGETS: Final = (
    Target(
        name="murakami2021/figure-4", title="Bits about the sender against epsilon", build=identification, seconds=2
    ),
    Target(name="murakami2021/figure-12", title="More buckets at the same promise", build=against_buckets, seconds=60),
)
