"""Figures 8 and 9: bounds on one randomized place, compared with an attack; and other matching algorithms (3.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from hushuffle._checks import Floats
from hushuffle.attacks import linkage
from hushuffle.attacks.detection import detection_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Cell, Chart, Claim, Report, Series, Table, number
from hushuffle.model.citation import PIE
from hushuffle.model.traces import Traces
from hushuffle.questions import pie
from hushuffle.randomness import reproducible
from hushuffle_papers.base import Request, chart, claim, study, tabulated, target
from hushuffle_papers.murakami2021.attempts import BUCKETS_PER_VALUE, EPSILONS, MECHANISMS, ROUNDS, Attempt, attempts
from hushuffle_papers.murakami2021.buckets import at_scale
from hushuffle_papers.murakami2021.datasets import DATA, ORIGINALS, STAND_IN, Events, checkins, settings
from hushuffle_papers.murakami2021.frequencies import BUCKETS, VALUES

_CLOSE: Final = 3.0
"""Bounds of at most this multiple of the measured value count as close."""

_EPSILONS: Final = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0)
_FANO: Final = "The proof is Fano's inequality (Han and Verdu 1994) and data processing. The exact bound is higher."
_QUICK: Final = {"epsilons": (2.0, 9.0), "rounds": 1}
_LARGE: Final = 8.0


@target(
    "murakami2021/figure-8",
    "bits about the sender of one randomized place: bounds and measurements",
    seconds=60,
    quick=_QUICK,
    data=DATA[:1],
    originals=ORIGINALS[:1],
)
def bits(request: Request, *, epsilons: Sequence[float] = EPSILONS, rounds: int = ROUNDS) -> Report:
    places = checkins(request, every=True)
    results = attempts(request, places.traces, epsilons=epsilons, rounds=rounds)
    over = sum(one.interval.lower > one.exact.upper for one in results)
    return study(
        "Bits about the sender in one randomized place: bounds and measurements",
        "How close are the bounds on PIE to the measured information?",
        *_bits_claims(results, places),
        "What keeps the divergence below alpha* is that the attacker knows only the past.",
        "The paper compares unlike things. PSE among n people is at most the smaller of log2 n and the divergence "
        "D; D is its limit for ever more people, while alpha is a promise for this n. Alpha is never below PSE; it "
        f"may well be below D. Here D is clearly above alpha* in {over} of {len(results)} settings.",
        tabulated(results, _BITS, key="bits", title="Bits about the sender", caption=_BITS_CAPTION),
        *(_bits_chart(results, name) for name in MECHANISMS),
        settings=_settings(request, places, rounds),
        citations=(PIE.at("figure 8"), PIE.at("Theorem 3.2")),
    )


def _bits_claims(results: Sequence[Attempt], places: Events) -> tuple[Claim, ...]:
    ratios = [one.published / one.divergence for one in results if one.clear]
    here = [one.here / one.exact.upper for one in results]
    responses = {epsilon: at_scale(RandomizedResponse(k=VALUES, epsilon=epsilon)) for epsilon in _EPSILONS}
    loose = {epsilon: pie.rr_alpha(each).upper / pie.alpha(each).upper for epsilon, each in responses.items()}
    at_most = max(ratio for epsilon, ratio in loose.items() if epsilon >= _LARGE)
    general = [
        [pie.ldp_alpha(each).upper / pie.rr_alpha(each).upper for each in responses.values()],
        [pie.ldp_alpha(each).upper / pie.hashing_alpha(each).upper for each in _hashings()],
    ]
    data = _tested(results, places)
    return (
        claim(
            "Theorems 4.2 and 4.4, Figure 8",
            "The bounds for the mechanism are far below the one for any local mechanism.",
            min(map(min, general)) > 2,
            f"At the paper's size and epsilon from {_EPSILONS[0]:g} to {_EPSILONS[-1]:g} Proposition 4.1 gives "
            f"{general[0][0]:,.0f} to {general[0][-1]:.1f} times the bound of Theorem 4.2, and {general[1][0]:,.0f} to "
            f"{general[1][-1]:.1f} times that of Theorem 4.4.",
            quote="in Theorems 4.2 and 4.4 are much smaller than … in Proposition 4.1",
        ),
        _closeness(ratios, len(results), data, STAND_IN if places.lacks else ""),
        claim(
            "section 5.3, Figure 8",
            "The bound for randomized response cannot be improved much.",
            max(loose.values()) <= _CLOSE,
            f"At the paper's n and |X| Theorem 4.2 is {', '.join(f'{ratio:.3g}' for ratio in loose.values())} times "
            f"the exact alpha* at epsilon = {', '.join(f'{epsilon:g}' for epsilon in loose)}.",
            quote="This indicates that our upper-bounds for the RR and GLH in Theorems 4.2 and 4.4 are fairly tight "
            "and cannot be improved much",
            reason=f"Much is by more than a factor of {_CLOSE:g}: this study's mark. Section 5.3 gives no range of "
            f"epsilon; section 4.2 names the bound at epsilon = {_EPSILONS[0]:g}, "
            f"{pie.rr_alpha(responses[_EPSILONS[0]]).upper:.2g} bits. From epsilon = {_LARGE:g} on it is fairly tight: "
            f"{at_most:.3g} times at most. The exact alpha* cannot be improved: for the people of this study, whose "
            f"places are known, I(U;Y) is {100 * min(here):.0f} to {100 * max(here):.0f} percent of it.",
            data=data,
        ),
    )


def _hashings() -> list[Protocol]:
    return [at_scale(LocalHashing(k=VALUES, g=BUCKETS, epsilon=epsilon)) for epsilon in _EPSILONS]


def _tested(results: Sequence[Attempt], places: Events) -> str:
    return f"{results[0].n:,} people with check-ins in {places.where}, {len(results)} settings."


def _closeness(ratios: Sequence[float], tried: int, data: str, stand_in: str) -> Claim:
    sentence = "The bounds for the mechanism are close to the divergence of the attack's scores."
    close = partial(
        claim, "section 5.3, Figure 8", sentence, quote="in Proposition 4.1, and are close to the PSE", data=data
    )
    if not ratios:
        nothing = "No divergence is known well enough to be compared with the bounds."
        return close(None, nothing, reason=nothing)
    return close(
        max(ratios) <= _CLOSE,
        f"The bounds are {min(ratios):.1f} to {max(ratios):.1f} times the divergence, in the {len(ratios)} of {tried} "
        "settings in which the divergence is known well enough.",
        reason=f"Close is within a factor of {_CLOSE:g}: this study's mark.",
        stand_in=stand_in,
    )


_BITS: Final[Mapping[str, Callable[[Attempt], Cell]]] = {
    "mechanism": lambda each: each.mechanism,
    "epsilon": lambda each: each.epsilon,
    "Proposition 4.1": lambda each: each.general,
    "Theorem 4.2 or 4.4": lambda each: each.published,
    "alpha*": lambda each: each.exact,
    "I(U;Y) of these people": lambda each: each.here,
    "D of the scores": lambda each: each.divergence,
    "D, interval of one round": lambda each: each.interval,
}
_BITS_CAPTION: Final = (
    "One report each. I(U;Y) of these people is exact: their places are known, the rest is the mechanism. By convexity "
    "D is at most theta times its value without noise: at small epsilon the estimate is mostly bias."
)


def _bits_chart(results: Sequence[Attempt], name: str) -> Chart:
    mine = [one for one in results if one.mechanism == name]
    x = [one.epsilon for one in mine]
    shown = [one for one in mine if one.clear]
    theorem = "Theorem 4.2" if name == MECHANISMS[0] else "Theorem 4.4"
    lines: list[Series] = [
        Series.through("any local mechanism (Proposition 4.1)", x, [one.general for one in mine]),
        Series.through(f"this mechanism ({theorem})", x, [one.published for one in mine]),
        Series.through("alpha*, exact", x, [one.exact.upper for one in mine]),
        Series.through("I(U;Y) of these people", x, [one.here for one in mine]),
        Series.through("D of the attack's scores", [one.epsilon for one in shown], [one.divergence for one in shown]),
    ]
    return chart(
        f"bits-{name.replace(' ', '-')}",
        name.capitalize(),
        "D is an estimate, shown where its interval keeps to its upper half; it is no bound on alpha.",
        ("local epsilon (nats)", "bits"),
        [line for line in lines if line.x],
        log="y",
    )


@target(
    "murakami2021/figure-9",
    "identification errors promised and found",
    seconds=60,
    quick=_QUICK,
    data=DATA[:1],
    originals=ORIGINALS[:1],
)
def errors(request: Request, *, epsilons: Sequence[float] = EPSILONS, rounds: int = ROUNDS) -> Report:
    places = checkins(request, every=True)
    results = attempts(request, places.traces, epsilons=epsilons, rounds=rounds)
    return study(
        "Identification error of one randomized place: bounds and measurements",
        "How often is the attack wrong, and how often must every attack be wrong?",
        *_error_claims(results, places),
        *_error_answers(results),
        tabulated(results, _ERRORS, key="errors", title="Identification errors", caption=_ERRORS_CAPTION),
        *(_error_chart(results, name) for name in MECHANISMS),
        settings=_settings(request, places, rounds),
        citations=(PIE.at("figure 9"), PIE.at("Corollary 3.9")),
    )


def _error_claims(results: Sequence[Attempt], places: Events) -> tuple[Claim, ...]:
    broken = sum(one.impossible for one in results)
    responses = [at_scale(RandomizedResponse(k=VALUES, epsilon=epsilon)) for epsilon in _EPSILONS]
    bounds = (pie.rr_alpha, responses), (pie.hashing_alpha, _hashings()), (pie.ldp_alpha, responses)
    promises = [[pie.fano_error(bound(each).upper, each.n).lower for each in own] for bound, own in bounds]
    tighter = all(mine > other or mine <= 0 for *both, other in zip(*promises, strict=True) for mine in both)
    listed = [", ".join(f"{max(error, 0.0):.3f}" for error in promised) for promised in promises]
    return (
        claim(
            "Corollary 3.9, Figure 9",
            "No attack is right more often than the bounds allow.",
            not broken,
            f"In {broken} of {len(results)} settings the attack was right more often than certified, by more than "
            "chance allows (with a probability of 1e-6 of a false alarm in each).",
            quote="Corollary 3.9 means that … PIE privacy provides an absolute guarantee about the posterior error "
            "probability",
            reason=_FANO,
            data=_tested(results, places),
        ),
        claim(
            "section 5.3, Figure 9",
            "Fano's inequality with Theorems 4.2 and 4.4 promises more than with Proposition 4.1.",
            tighter,
            f"At the paper's n and |X| and epsilon = {', '.join(f'{epsilon:g}' for epsilon in _EPSILONS)}, Theorem 4.2 "
            f"promises errors of {listed[0]}; Theorem 4.4 {listed[1]}; Proposition 4.1 {listed[2]}.",
            quote="the lower-bounds by Theorem 4.2 and 4.4 are much tighter than the lower-bound by Proposition 4.1",
        ),
    )


def _error_answers(results: Sequence[Attempt]) -> tuple[str, ...]:
    n = results[0].n
    gain = max(results, key=lambda one: one.least.lower - one.fano(one.published))
    order = [one.fano(one.published) <= one.fano(one.exact.upper) <= one.least.lower for one in results]
    near = [one for one in results if one.epsilon <= 6]
    return (
        f"The exact Bayes error promises more still, in {sum(order)} of {len(results)} settings at least as much as "
        f"Fano's inequality with alpha*: at epsilon = {gain.epsilon:g} ({gain.mechanism}) {gain.least.lower:.3f} "
        f"instead of {gain.fano(gain.published):.3f}; measured: {gain.wrong:.3f}.",
        f"Up to epsilon = 6 the attack is wrong {min(one.wrong for one in near):.4f} to "
        f"{max(one.wrong for one in near):.4f} of the time; blind guessing is wrong {number(1 - 1 / n)} of the time.",
        f"The most reliable attack here, at epsilon = {results[-1].epsilon:g}, is still wrong "
        f"{min(one.wrong for one in results):.3f} of the time, where nothing is promised: it knows the former half of "
        "each trace, not the place that is sent.",
    )


_ERRORS: Final[Mapping[str, Callable[[Attempt], Cell]]] = {
    "mechanism": lambda each: each.mechanism,
    "epsilon": lambda each: each.epsilon,
    "measured": lambda each: each.wrong,
    "interval": lambda each: each.error,
    "these people, at least": lambda each: each.least_here,
    "any people, at least (exact)": lambda each: each.least,
    "Fano, alpha*": lambda each: each.fano(each.exact.upper),
    "Fano, Theorem 4.2 or 4.4": lambda each: each.fano(each.published),
    "Fano, Proposition 4.1": lambda each: each.fano(each.general),
    "Fano, D": lambda each: each.fano(each.divergence),
}
_ERRORS_CAPTION: Final = (
    "All other curves are lower bounds on the measured error, but Fano with D is an estimate. The curve of these "
    "people is for an attacker who knows all their places."
)


def _error_chart(results: Sequence[Attempt], name: str) -> Chart:
    mine = [one for one in results if one.mechanism == name]
    x = tuple(one.epsilon for one in mine)
    return chart(
        f"errors-{name.replace(' ', '-')}",
        name.capitalize(),
        "Measured error with its interval. All other curves are lower bounds; the curve of D is an estimate.",
        ("local epsilon (nats)", "identification error"),
        (
            Series.through("measured", x, (one.error for one in mine)),
            Series.through("these people, all places known", x, [one.least_here for one in mine]),
            Series.through("any people, exact", x, [one.least.lower for one in mine]),
            Series.through("Fano, D of the scores", x, [one.fano(one.divergence) for one in mine]),
            Series.through("Fano, theorem for the mechanism", x, [one.fano(one.published) for one in mine]),
            Series.through("Fano, Proposition 4.1", x, [one.fano(one.general) for one in mine]),
        ),
    )


def _settings(request: Request, places: Events, rounds: int) -> tuple[tuple[str, str], ...]:
    k = places.traces.k
    return (
        ("sent", "the first place of the latter half of each trace, randomized"),
        ("known", "the former half of each trace; reports are believed, as in the paper"),
        ("buckets of local hashing", f"{BUCKETS_PER_VALUE * k:,}, ten for each value, about as in the paper"),
        ("rounds", f"{rounds}, everybody randomizing anew"),
        ("attacked", f"in each round {min(places.n, linkage.ATTACKED):,} people, each compared with all {places.n:,}"),
        *settings(request, places=places),
    )


MARKOV: Final = "Markov model"
SHARED_OUT: Final = "Markov model, per event"
NAMING: Final = (MARKOV, *linkage.SIMILARITIES)
"""Scores that may identify different people: dividing a score by the number of events does not change the ranking."""

SCORES: Final = (*NAMING, SHARED_OUT)

_EVENTS: Final = (1, 2, 5, 10, 20, None)
_NOISES: Final = (8.0, 12.0)


@target(
    "murakami2021/section-3-matchers",
    "Identification errors of cosine, TF-IDF and the Markov model",
    data=DATA[:1],
    originals=ORIGINALS[:1],
    seconds=10,
)
def matchers(request: Request) -> Report:
    drawn = checkins(request, long=True)
    places = drawn.traces
    rows: list[tuple[Cell, ...]] = []
    errors: dict[str, list[float]] = {score: [] for score in SCORES}
    for done, events in enumerate(_EVENTS):
        request.tell(f"{events or 'all'} check-ins sent", 0.7 * done / len(_EVENTS))
        scene = linkage.scene(places, events=events)
        profiles = linkage.train(scene.training)
        for score in SCORES:
            scores = scored(profiles, scene.reported, score)
            wrong = float(np.mean(linkage.ranks(scores, rng=reproducible(request.seed)) > 1))
            equal = detection_curve(linkage.genuine_scores(scores), linkage.impostor_scores(scores)).equal_error
            errors[score].append(wrong)
            rows.append(("all" if events is None else events, score, round(wrong, 4), round(equal, 4)))
    noisy, held = _under_noise(places, request)
    sizes = [float(events or np.median(places.lengths // 2)) for events in _EVENTS]
    best = min(NAMING, key=lambda score: errors[score][-1])
    return study(
        "Other matching algorithms on the same check-ins",
        "Does comparing visits identify people as well as the Markov model does?",
        claim(
            "Proposition 3.7",
            "For any matching algorithm, the identification error is at least the bound by PSE and PIE.",
            held,
            f"No score has an error below the exact bound at epsilon = {_NOISES[0]:g} and {_NOISES[-1]:g}, as "
            "far as chance can tell.",
            quote="are the lowest possible identification error probabilities for any classifier … is lower-bounded by "
            "the PSE and PIE",
            reason=_FANO,
            data=f"{places.n:,} people, one check-in each, randomized response.",
        ),
        f"The errors with the whole second half of each trace are {_listed(errors, -1)}; with one check-in, "
        f"{_listed(errors, 0)}. With the whole half, {best} has the smallest error.",
        chart(
            "errors",
            "Identification error against the number of check-ins sent, by score",
            "Without noise. The last point is the whole second half of each trace, at its median length.",
            ("check-ins sent", "identification error"),
            [Series.through(score, sizes, errors[score]) for score in NAMING],
            log="x",
        ),
        Table(
            key="errors",
            title="Without noise",
            caption="Identification error: the best score is another person's. Equal error rate over all pairs.",
            columns=("check-ins sent", "score", "identification error", "equal error rate"),
            rows=tuple(rows),
        ),
        Table(
            key="noise",
            title="One check-in, randomized response",
            caption="The smallest error is exact, over all distributions of values and all attacks on one report.",
            columns=("epsilon", "score", "identification error", "least error"),
            rows=noisy,
        ),
        settings=(
            ("location traces", drawn.source),
            ("attacker", "knows the first half of every person's check-ins"),
            ("seed", str(request.seed)),
        ),
        citations=(PIE.at("sections 3.1 and 5.1"),),
    )


def scored(profiles: linkage.MarkovProfiles, reported: Traces, score: str) -> Floats:
    for how in linkage.SIMILARITIES:
        if score == how:
            return linkage.visit_scores(profiles, reported, how=how)
    likelihood = linkage.trace_scores(profiles, reported)
    return likelihood if score == MARKOV else likelihood / reported.lengths[:, None]


def _under_noise(places: Traces, request: Request) -> tuple[tuple[tuple[Cell, ...], ...], bool]:
    """Return a row for each epsilon and score, and whether no error is below the bound."""
    scene, rows, held = linkage.scene(places, events=1), [], True
    profiles, coins = linkage.train(scene.training), reproducible(request.seed)
    for epsilon in request.each(_NOISES, "randomized response, epsilon = {:g}", start=0.7):
        randomizer = RandomizedResponse(k=places.k, epsilon=epsilon)
        least = pie.bayes_error(Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=places.n))
        reports = linkage.randomize(scene.reported, randomizer=randomizer, rng=coins).as_traces()
        for score in NAMING:
            ranks = linkage.ranks(scored(profiles, reports, score), rng=coins)
            error = linkage.miss_rate(ranks, confidence=1 - 1e-6)
            held = held and error.upper >= least.lower
            rows.append((epsilon, score, round(float(np.mean(ranks > 1)), 4), least))
    return tuple(rows), held


def _listed(errors: dict[str, list[float]], place: int) -> str:
    return ", ".join(f"{score} {found[place]:.3f}" for score, found in errors.items() if score in NAMING)
