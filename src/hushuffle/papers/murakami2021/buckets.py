"""Figures 4 and 12: mechanisms and numbers of buckets with the same bound on identification."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Claim, Report, Series, number
from hushuffle.model.citation import PIE
from hushuffle.papers.base import Request, Target, claim, falling
from hushuffle.papers.murakami2021.crowds import Crowd, Losses, losses, zipf
from hushuffle.papers.murakami2021.frequencies import EXPONENT, PEOPLE, VALUES, chart
from hushuffle.questions import pie

_PRINTED_RR: Final = ["2e-07", "3.3e-06", "0.043"]
_PRINTED_LDP: Final = ["0.014", "1.4", "14"]
_SWEEP: Final = (2**10, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9, 2 * 10**9)


def identification(request: Request) -> Report:
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
    responses = [at_scale(RandomizedResponse(k=VALUES, epsilon=epsilon)) for epsilon in (0.1, 1.0, 10.0)]
    rr, ldp = ([bound(protocol).upper for protocol in responses] for bound in (pie.rr_alpha, pie.ldp_alpha))
    loose, exact = rr[1], pie.alpha(responses[1]).upper
    return Report(
        key="murakami2021/figure-4",
        title="Bounds on identification from local differential privacy, and from the mechanism",
        question="How many bits about its sender can one report reveal, at each local epsilon?",
        claims=(
            claim(
                "section 4.2, Figure 4",
                "The bound for randomized response at epsilon = 0.1, 1 and 10.",
                _printed(rr) == _PRINTED_RR,
                f"{', '.join(_printed(rr))} bits.",
                quote="in Theorem 4.2 is … 2.0 … 3.3 … 0.043",
                printed=", ".join(_PRINTED_RR),
            ),
            claim(
                "section 4.2, Figure 4",
                "The bound for any local mechanism at epsilon = 0.1, 1 and 10.",
                _printed(ldp) == _PRINTED_LDP,
                f"{', '.join(_printed(ldp))} bits.",
                quote="in Proposition 4.1 is … 0.014 … 1.4 … 14",
                printed=", ".join(_PRINTED_LDP),
            ),
        ),
        answers=(
            f"The exact value is lower than both bounds: at epsilon = 1 it is {exact:.3g} bits, {loose / exact:.0f} "
            "times less than the bound for randomized response.",
        ),
        settings=(("people", f"{PEOPLE:,}"), ("values", f"{VALUES:,}")),
        charts=(drawn,),
        citations=(PIE.at("figure 4"),),
    )


def _printed(values: Sequence[float]) -> list[str]:
    return [f"{value:.2g}" for value in values]


def at_scale(randomizer: RandomizedResponse | LocalHashing) -> Protocol:
    """Return the protocol with this randomizer and the paper's number of people, with one report each."""
    return Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=PEOPLE)


def against_buckets(request: Request, *, n: int = PEOPLE, k: int = VALUES, sweep: Sequence[int] = _SWEEP) -> Report:
    return losses_by_buckets(zipf(n, k, EXPONENT, request.seed), sweep, request)


def losses_by_buckets(people: Crowd, sweep: Sequence[int], request: Request) -> Report:
    k = people.counts.size
    measured: list[tuple[int, Losses]] = []
    for position, g in enumerate(sweep):
        request.tell(f"{g:,} buckets", position / len(sweep))
        hashing = LocalHashing(k=k, g=g, epsilon=math.log1p(g), family="binary" if g <= 2**10 else "affine")
        measured.append((g, losses(people, hashing, request.seed)))
    plain = losses(people, RandomizedResponse(k=k, epsilon=math.log1p(k)), request.seed)
    buckets = [float(g) for g, _ in measured]
    hashed = [loss for _, loss in measured]
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
    n = people.values.size
    return Report(
        key="murakami2021/figure-12",
        title="More buckets at the same promise",
        question="At theta = 1/2 (the same bound on identification), how much accuracy do more buckets add?",
        claims=(
            claim(
                "Theorem 4.8, Figure 12",
                "At theta = 1/2 the loss falls with every step of more buckets.",
                falling(expected),
                f"The expected loss over all values goes from {hashed[0].predicted[1]:.3g} at {sweep[0]:,} buckets to "
                f"{last.predicted[1]:.3g} at {sweep[-1]:,} (measured {last.every:.3g}); randomized response has "
                f"{plain.predicted[1]:.3g} (measured {plain.every:.3g}).",
                quote="is monotonically decreasing in",
                data=f"Simulated: {n:,} people, {k:,} values.",
            ),
            _promise(n, k),
        ),
        answers=(f"Over the top 100, with threshold: {last.top_kept:.3g} against {plain.top_kept:.3g}.",),
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


def _promise(n: int, k: int) -> Claim:
    half = Protocol(randomizer=RandomizedResponse(k=k, epsilon=math.log1p(k)), shuffler=NoShuffle(), n=n)
    published = pie.fano_error(pie.rr_alpha(half).upper, n).lower
    exact = number(pie.bayes_error(half).lower, up=False, digits=8)
    return claim(
        "Sections 4.3, 4.4 and 5.3, figure 12",
        "theta = 1/2 guarantees a Bayes error above one half.",
        n >= k + 2,
        f"{published:.4f} by the paper's inequality, exactly {exact} for randomized response: above one half from "
        f"n = k + 2 on, here n = {n:,} and k = {k:,}.",
        quote="which guarantees the Bayes error probability … to be larger than 0.5",
        printed="> 0.5",
    )


TARGETS: Final = (
    Target(
        name="murakami2021/figure-4", title="Bits about the sender against epsilon", build=identification, seconds=2
    ),
    Target(
        name="murakami2021/figure-12",
        title="More buckets at the same promise",
        build=against_buckets,
        seconds=60,
        quick=partial(against_buckets, n=20_000, k=100_000, sweep=(2**10, 10**5)),
    ),
)
