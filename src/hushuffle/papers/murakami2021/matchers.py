"""Other matching algorithms on the same check-ins: cosine and TF-IDF, compared with the Markov model (section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.attacks import linkage
from hushuffle.attacks.detection import detection_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Cell, Chart, Report, Series, Table
from hushuffle.model.citation import PIE
from hushuffle.model.traces import Traces
from hushuffle.papers.base import Request, Target, claim
from hushuffle.papers.murakami2021.datasets import DATA, ORIGINALS, STAND_IN, checkins
from hushuffle.questions import pie
from hushuffle.randomness import reproducible

Floats = npt.NDArray[np.float64]

MARKOV: Final = "Markov model"
SHARED_OUT: Final = "Markov model, per event"
NAMING: Final = (MARKOV, *linkage.SIMILARITIES)
"""Scores that may identify different people: dividing a score by the number of events does not change the ranking."""

SCORES: Final = (*NAMING, SHARED_OUT)

_EVENTS: Final = (1, 2, 5, 10, 20, None)
_EPSILONS: Final = (8.0, 12.0)


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
    return Report(
        key="murakami2021/section-3-matchers",
        title="Other matching algorithms on the same check-ins",
        question="Does comparing visits identify people as well as the Markov model does?",
        claims=(
            claim(
                "Proposition 3.7",
                "For any matching algorithm, the identification error is at least the bound of PIE privacy.",
                held,
                f"No score has an error below the exact bound at epsilon = {_EPSILONS[0]:g} and {_EPSILONS[-1]:g}, as "
                "far as chance can tell.",
                quote="are the lowest possible identification error probabilities for any classifier",
                stand_in=STAND_IN if drawn.lacks else "",
                data=f"{places.n:,} people, one check-in each, randomized response.",
            ),
        ),
        answers=(
            f"The errors with the whole second half of each trace are {_listed(errors, -1)}; with one check-in, "
            f"{_listed(errors, 0)}. With the whole half, {best} has the smallest error.",
        ),
        settings=(
            ("location traces", drawn.source),
            ("attacker", "knows the first half of every person's check-ins"),
            ("seed", str(request.seed)),
        ),
        charts=(
            Chart(
                key="errors",
                title="Identification error against the number of check-ins sent, by score",
                caption="Without noise. The last point is the whole second half of each trace, at its median length.",
                x_label="check-ins sent",
                y_label="identification error",
                series=tuple(Series.through(score, sizes, errors[score]) for score in NAMING),
                x_log=True,
            ),
        ),
        tables=(
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
    for epsilon in _EPSILONS:
        request.tell(
            f"randomized response, epsilon = {epsilon:g}", 0.7 + 0.3 * _EPSILONS.index(epsilon) / len(_EPSILONS)
        )
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


TARGETS: Final[Sequence[Target]] = (
    Target(
        name="murakami2021/section-3-matchers",
        title="Identification errors of cosine, TF-IDF and the Markov model",
        build=matchers,
        data=DATA[:1],
        originals=ORIGINALS[:1],
        seconds=10,
    ),
)
