"""PIE privacy of mechanisms: figures 4 and 12, the axioms (Theorems 3.5 and 3.6), and the bits of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from hushuffle._checks import Floats
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, MatrixRandomizer, Mechanism, RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Bound, Cell, Report, Series, Table, number
from hushuffle.model.citation import PIE
from hushuffle.questions import pie
from hushuffle.tables.published import load_checkins
from hushuffle_papers.base import Request, chart, claim, falling, study, target
from hushuffle_papers.murakami2021.datasets import DATA, ORIGINALS, visitors
from hushuffle_papers.murakami2021.frequencies import (
    BUCKETS,
    EPSILONS,
    EXPONENT,
    FIGURE_10,
    PEOPLE,
    VALUES,
    SampledPeople,
    SquaredErrors,
    crowd,
    errors,
    losses,
    zipf,
)

_PRINTED_RR: Final = ["2e-07", "3.3e-06", "0.043"]
_PRINTED_LDP: Final = ["0.014", "1.4", "14"]


_EPSILONS_FEW: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@target(
    "murakami2021/figure-10-checkins",
    "The same on real check-ins",
    data=DATA[:1],
    originals=((ORIGINALS[0][0], "one check-in of everybody, at the paper's sizes of buckets and epsilon"),),
    seconds=5,
)
def checkins(request: Request) -> Report:
    """Return figure 10 on real check-ins: one per person in the paper's data, else every check-in of one city."""
    own = visitors(request)
    if own is not None:
        traces, lacks = own.traces, own.lacks
        visited, codes = np.unique(traces.events, return_inverse=True)
        first = traces.offsets[:-1] + traces.lengths // 2
        source = f"one check-in, the first of the latter half, of {traces.n:,} people at {visited.size:,} places"
        people = crowd(codes[first], visited.size, f"{source} all over the world")
        instead = f"The paper has {lacks}." if lacks else ""
        return errors(people, repeats=FIGURE_10, g=BUCKETS, epsilons=EPSILONS, request=request, stand_in=instead)
    visits = load_checkins(request.folder("foursquare_nyc"))
    people = crowd(visits.events, visits.k, f"{visits.events.size:,} check-ins at {visits.k:,} places in New York")
    instead = f"The paper's are {PEOPLE:,} people and {VALUES:,} places of the whole world."
    return errors(people, repeats=FIGURE_10, g=2**8, epsilons=_EPSILONS_FEW, request=request, stand_in=instead)


@target("murakami2021/figure-4", "Bits about the sender against epsilon", seconds=2)
def identification(request: Request) -> Report:
    request.tell("alpha at every epsilon", 0.1)
    epsilons = tuple(float(step) / 2 for step in range(1, 61))
    protocols = [at_scale(RandomizedResponse(k=VALUES, epsilon=epsilon)) for epsilon in epsilons]
    lines = {
        "any local mechanism (Proposition 4.1)": [pie.ldp_alpha(protocol).upper for protocol in protocols],
        "randomized response (Theorem 4.2)": [pie.rr_alpha(protocol).upper for protocol in protocols],
        "randomized response, exact": [pie.alpha(protocol).upper for protocol in protocols],
        "the same of order 2": [pie.alpha(protocol, order=2.0).upper for protocol in protocols],
        "the same of infinite order": [pie.alpha(protocol, order=math.inf).upper for protocol in protocols],
    }
    drawn = chart(
        "alpha",
        "Bits about the sender in one report",
        f"{PEOPLE:,} people, {VALUES:,} values.",
        ("local epsilon (nats)", "alpha (bits)"),
        [Series.through(label, epsilons, values) for label, values in lines.items()],
        log="y",
    )
    responses = [at_scale(RandomizedResponse(k=VALUES, epsilon=epsilon)) for epsilon in (0.1, 1.0, 10.0)]
    rr, ldp = ([bound(protocol).upper for protocol in responses] for bound in (pie.rr_alpha, pie.ldp_alpha))
    loose, exact = rr[1], pie.alpha(responses[1]).upper
    return study(
        "Bounds on identification from local differential privacy, and from the mechanism",
        "How many bits about its sender can one report reveal, at each local epsilon?",
        claim(
            "section 4.2, Figure 4",
            "The bound for randomized response at epsilon = 0.1, 1 and 10.",
            _printed(rr) == _PRINTED_RR,
            f"{', '.join(_printed(rr))} bits.",
            quote="in Proposition 4.1 is … respectively, whereas … in Theorem 4.2 is … 2.0 … 3.3 … 0.043",
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
        f"The exact value is lower than both bounds: at epsilon = 1 it is {exact:.3g} bits, {loose / exact:.0f} "
        "times less than the bound for randomized response.",
        "The paper's conclusion asks for the worst case, by information of a larger order. At epsilon = 0.1, 1 and 10 "
        f"it is {', '.join(_printed([pie.alpha(each, order=2.0).upper for each in responses]))} bits at order 2, and "
        f"{', '.join(_printed([pie.alpha(each, order=math.inf).upper for each in responses]))} bits at infinite order.",
        drawn,
        settings=(("people", f"{PEOPLE:,}"), ("values", f"{VALUES:,}")),
        citations=(PIE.at("figure 4"),),
    )


def _printed(values: Sequence[float]) -> list[str]:
    return [f"{value:.2g}" for value in values]


def at_scale(randomizer: RandomizedResponse | LocalHashing) -> Protocol:
    """Return the protocol with this randomizer and the paper's number of people, with one report each."""
    return Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=PEOPLE)


@target(
    "murakami2021/figure-12",
    "More buckets at the same promise",
    seconds=60,
    quick={"n": 20_000, "k": 100_000, "sweep": (2**10, 10**5)},
)
def against_buckets(
    request: Request,
    *,
    n: int = PEOPLE,
    k: int = VALUES,
    sweep: Sequence[int] = (2**10, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9, 2 * 10**9),
) -> Report:
    return losses_by_buckets(zipf(n, k, EXPONENT, request.seed), sweep, request)


def losses_by_buckets(people: SampledPeople, sweep: Sequence[int], request: Request) -> Report:
    k = people.counts.size
    measured: list[tuple[int, SquaredErrors]] = []
    for g in request.each(sweep, "{:,} buckets"):
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
    half = Protocol(randomizer=RandomizedResponse(k=k, epsilon=math.log1p(k)), shuffler=NoShuffle(), n=n)
    published = pie.fano_error(pie.rr_alpha(half).upper, n).lower
    exact = number(pie.bayes_error(half).lower, up=False, digits=8)
    return study(
        "More buckets at the same promise",
        "At theta = 1/2 (the same bound on identification), how much accuracy do more buckets add?",
        claim(
            "Theorem 4.8, Figure 12",
            "At theta = 1/2 the loss falls with every step of more buckets.",
            falling(expected),
            f"The expected loss over all values goes from {hashed[0].predicted[1]:.3g} at {sweep[0]:,} buckets to "
            f"{last.predicted[1]:.3g} at {sweep[-1]:,} (measured {last.every:.3g}); randomized response has "
            f"{plain.predicted[1]:.3g} (measured {plain.every:.3g}).",
            quote="a larger … provides better utility: … is monotonically decreasing in",
            reason="It does for any shares of the values: with g buckets the loss of a value of share p is "
            "p (1 - theta)/(n theta) + (1/theta - p)/(n theta (g - 1)).",
            data=f"Simulated: {n:,} people, {k:,} values.",
        ),
        claim(
            "Sections 4.3, 4.4 and 5.3, figure 12",
            "theta = 1/2 guarantees a Bayes error above one half.",
            n >= k + 2,
            f"{published:.4f} by the paper's inequality, exactly {exact} for randomized response: above one half from "
            f"n = k + 2 on, here n = {n:,} and k = {k:,}.",
            quote="which guarantees the Bayes error probability … to be larger than 0.5",
            printed="> 0.5",
            reason="Rounded, the exact error is one half; what the paper's inequality guarantees is less.",
        ),
        f"Over the top 100, with threshold: {last.top_kept:.3g} against {plain.top_kept:.3g}.",
        chart(
            "buckets", "Loss against buckets", "One run each.", ("buckets", "sum of squared errors"), lines, log="xy"
        ),
        settings=(
            ("population", people.source),
            ("theta", "1/2: local epsilon ln(1 + g)"),
            ("hashes", f"binary at {sweep[0]:,} buckets, affine above"),
            ("seed", str(request.seed)),
        ),
        citations=(PIE.at("figure 12 and Theorem 4.8"),),
    )


_PEOPLE: Final = 6
_K: Final = 4
_EPSILON: Final = 2.0
_WEIGHTS: Final = tuple(step / 10 for step in range(11))
_TRIALS: Final = 40
_SLACK: Final = 1e-9
_THETA: Final = 0.5
_BUCKETS: Final = (2, 4, 1024, 2**16, 10**6, 10**8)


@target("murakami2021/theorem-3-5", "Post-processing and mixtures", seconds=3)
def axioms(request: Request) -> Report:
    plain = _response(_EPSILON)
    before = alpha(plain)
    rng = np.random.default_rng(request.seed)
    trials = request.each(range(_TRIALS), "post-processings", end=0.5)
    after = [alpha(plain @ rng.dirichlet(np.full(1 + trial % 6, 0.4), size=_K)) for trial in trials]
    turned = np.roll(plain, 1, axis=1)  # each value has one report, as in `plain`, but another report
    weaker = _response(_EPSILON / 2)
    hidden = [alpha(w * plain + (1 - w) * turned) for w in _WEIGHTS]
    shown = [alpha(np.hstack([w * plain, (1 - w) * turned])) for w in _WEIGHTS]
    unequal = [alpha(np.hstack([w * plain, (1 - w) * weaker])) for w in _WEIGHTS]
    least = alpha(weaker)
    means = [w * before.upper + (1 - w) * least.upper for w in _WEIGHTS]
    return study(
        "Bits about the sender after post-processing and in mixtures",
        "Does PIE privacy survive post-processing, and a random choice among mechanisms?",
        claim(
            "Theorem 3.5",
            "Whatever is done to a report afterwards, alpha does not grow.",
            all(bound.lower <= before.upper + _SLACK for bound in after),
            f"{_TRIALS} random post-processings leave {number(min(bound.upper for bound in after), digits=3)} to "
            f"{number(max(bound.upper for bound in after), digits=3)} of {number(before.upper)} bits.",
            quote="guarantees that post-processing, which can be performed by a data collector or an adversary, "
            "cannot break",
            reason="This is the data-processing inequality.",
        ),
        claim(
            "Theorem 3.6",
            "A random choice between two mechanisms with alpha has alpha.",
            all(bound.lower <= before.upper + _SLACK for bound in (*hidden, *shown)),
            f"With a hidden choice, alpha is as low as {number(min(bound.upper for bound in hidden), digits=3)} "
            f"bits of {number(before.upper)}, with a public choice {number(max(bound.upper for bound in shown))}.",
            quote="allows users to randomly choose which obfuscation mechanism to use",
            reason="Mutual information is convex in the mechanism.",
        ),
        "If the two alphas differ, the mixture has no more than their mean, even if the choice is public: "
        f"{number(unequal[5].upper)} bits at one half, between {number(least.upper)} and {number(before.upper)}. "
        "The theorem's alpha is the larger of the two.",
        chart(
            "mixtures",
            "Bits about the sender in a random mixture of two mechanisms",
            "Two mechanisms of equal alpha, and two of different alpha; capacities, certified.",
            ("probability of the first mechanism", "alpha (bits)"),
            (
                Series.through("equal, public choice", _WEIGHTS, [bound.upper for bound in shown]),
                Series.through("equal, hidden choice", _WEIGHTS, [bound.upper for bound in hidden]),
                Series.through("different, public choice", _WEIGHTS, [bound.upper for bound in unequal]),
                Series.through("mean of the two alphas", _WEIGHTS, means),
            ),
        ),
        Table(
            key="mixtures",
            title="Mixtures",
            caption="Bits about the sender: the largest over all distributions of values.",
            columns=("weight", "equal, public choice", "equal, hidden choice", "different, public choice", "mean"),
            rows=tuple(zip(_WEIGHTS, shown, hidden, unequal, means, strict=True)),
        ),
        settings=(
            ("people, values", f"{_PEOPLE}, {_K}"),
            (
                "mechanisms",
                f"randomized response, epsilon = {_EPSILON:g}; the same with other names for the reports; the one of "
                f"different alpha: epsilon = {_EPSILON / 2:g}",
            ),
            ("seed", str(request.seed)),
        ),
        citations=(PIE.at("Theorems 3.5 and 3.6"),),
    )


def alpha(matrix: Floats) -> Bound:
    """Return alpha of the channel `matrix`, shape (values, reports), for `_PEOPLE` people, in bits."""
    return pie.alpha(Protocol(randomizer=MatrixRandomizer(matrix), shuffler=NoShuffle(), n=_PEOPLE))


def _response(epsilon: float) -> Floats:
    matrix: Floats = RandomizedResponse(k=_K, epsilon=epsilon).channel().matrix.astype(np.float64)
    return matrix


@target("murakami2021/section-4-bits", "What a report costs to send")
def cost(_request: Request) -> Report:
    response = RandomizedResponse(k=VALUES, epsilon=math.log1p(VALUES))
    hashed = {g: LocalHashing(k=VALUES, g=g, epsilon=math.log1p(g)) for g in _BUCKETS}
    plain = response.layout.bits
    whole = {g: mechanism.layout.bits for g, mechanism in hashed.items()}
    larger = [g for g in _BUCKETS if g > VALUES]
    return study(
        "What a report costs to send",
        "How many bits does a report take, by mechanism?",
        claim(
            "Section 4.4",
            "Randomized response costs O(log k) bits, local hashing O(log g).",
            min(whole.values()) < plain,
            f"Randomized response takes {plain:.1f} bits. Local hashing into {_BUCKETS[0]} buckets takes "
            f"{whole[_BUCKETS[0]]:.1f}: the bucket is one of them, the hash function the others.",
            quote="the communication cost of the RR and GLH can be expressed as … respectively",
            reason="The report is (h, y) by (3), and where two values collide with probability 1/g at most there "
            "are k/g functions or more (Stinson 1994). With a public function for each person log g holds: y alone "
            f"takes {math.log2(_BUCKETS[0]):.0f}.",
        ),
        claim(
            "Section 4.4",
            "If k < g, randomized response is cheaper than local hashing.",
            all(whole[g] > plain for g in larger),
            f"With g = {larger[0]:,}: {plain:.1f} against {whole[larger[0]]:.1f} bits, and against "
            f"{math.log2(larger[0]):.1f} for the bucket alone.",
            quote="the RR is better than the GLH in terms of the communication cost",
        ),
        Table(
            key="bits",
            title="Bits of one report",
            caption="Bits of a packed report: the logarithm of the number of possible values of its columns.",
            columns=("mechanism", "buckets", "bits of the hash", "bits of the value or bucket", "bits"),
            rows=(
                _row("randomized response", "", response),
                *(_row("local hashing", g, mechanism) for g, mechanism in hashed.items()),
            ),
        ),
        settings=(("values", f"{VALUES:,}"), ("theta", f"{_THETA:g}: local epsilon ln(1 + g)")),
        citations=(PIE.at("section 4.4"),),
    )


def _row(name: str, buckets: str | int, mechanism: Mechanism) -> tuple[Cell, ...]:
    layout = mechanism.layout
    last = math.log2(layout.limits[-1])
    return name, buckets, round(layout.bits - last, 1), round(last, 1), round(layout.bits, 1)
