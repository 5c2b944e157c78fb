"""How identifying are traces without noise, beside a face and a fingerprint? The paper's figures 5 and 6."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from hushuffle.attacks import linkage
from hushuffle.model import Chart, Report, Series
from hushuffle.model.citation import PIE
from hushuffle.model.traces import Traces
from hushuffle.papers.base import Request, Target, said
from hushuffle.papers.murakami2021 import attempts as linkage_detection
from hushuffle.papers.murakami2021 import noise as linkage_noise
from hushuffle.papers.murakami2021.sources import (
    CHECKINS,
    DATA,
    LIKELIHOOD,
    PER_EVENT,
    RATINGS,
    Measured,
    Source,
    biometrics,
    checkins,
    judged,
    level,
    matched,
    matrices,
    measure,
    ratings,
    settings,
    table,
    unsettled,
)

_SENT: Final = (1, 2, 3, 4, 5)
_PLACES_KNOWN: Final = (5, 10, 20, 30, 40, 50)
_MOVIES_KNOWN: Final = (1, 2, 3, 4, 5)
_BITS: Final = "D(genuine || impostor), bits"
_ESTIMATE: Final = "Points are the estimate for this number of people, settled or not."


def maximum(request: Request) -> Report:
    """Return figure 5: the attacker was trained on the very events; all of them are sent, or the first few."""
    places, movies, scores = checkins(request), ratings(request), matrices(request)
    sent = _firsts(places, movies)
    sources = [*biometrics(scores), *_whole(places, movies), *sent]
    found = {one.label: one for one in measure(sources, request)}
    finger = found["fingerprint"]
    lines = {name: [found[f"{name}, first {m}"] for m in _SENT] for name in ("check-ins", "ratings")}
    people = finger.trend.sizes[-1]
    chart = Chart(
        key="first",
        title="The first events",
        caption=f"{_ESTIMATE} {people:,} people of each source.",
        x_label="events sent",
        y_label=_BITS,
        series=(
            *(Series.through(name, _SENT, [one.compared for one in line]) for name, line in lines.items()),
            *(level(name, _SENT, found[name].compared) for name in ("face", "fingerprint")),
        ),
    )
    return Report(
        key="murakami2021/figure-5",
        title="Traces, ratings, a face, a fingerprint: an attacker who knows everything",
        question="How identifying are unprotected traces, if the attacker was trained on these very events?",
        answers=_maximum_answers(found, lines, people),
        settings=settings(request, places=places, movies=movies, scores=scores),
        tables=(table(list(found.values()), key="maximum", title="Maximum knowledge"),),
        charts=(chart, _trends([*list(found.values())[:2], *(found[name] for name in _names(_whole(places, movies)))])),
        warnings=unsettled(list(found.values())),
        citations=(PIE.at("figure 5"),),
    )


def _firsts(places: Traces, movies: Traces) -> list[Source]:
    of_places = [linkage.scene(places, knowledge="maximum", events=m) for m in _SENT]
    of_movies = [linkage.scene(movies, knowledge="maximum", split="none", events=m) for m in _SENT]
    return [
        matched(f"{name}, first {m}", scene)
        for name, scenes in (("check-ins", of_places), ("ratings", of_movies))
        for m, scene in zip(_SENT, scenes, strict=True)
    ]


def _whole(places: Traces, movies: Traces) -> list[Source]:
    of_places = linkage.scene(places, knowledge="maximum", events=None)
    of_movies = linkage.scene(movies, knowledge="maximum", split="none", events=None)
    return [
        matched(f"{name}, all, {how}", scene, per_event=how == PER_EVENT)
        for name, scene in (("check-ins", of_places), ("ratings", of_movies))
        for how in (LIKELIHOOD, PER_EVENT)
    ]


def _names(sources: Sequence[Source]) -> list[str]:
    return [source.label for source in sources]


def _maximum_answers(found: dict[str, Measured], lines: dict[str, list[Measured]], people: int) -> tuple[str, ...]:
    finger = found["fingerprint"].compared
    whole = {name: found[f"{name}, all, {LIKELIHOOD}"].compared for name in lines}
    needed = {
        name: next((m for m, one in zip(_SENT, line, strict=True) if one.compared >= finger), None)
        for name, line in lines.items()
    }
    places, movies = needed["check-ins"], needed["ratings"]
    moving = sum(one.moving for one in found.values())
    by_counts = {how: found[f"check-ins, all, {how}"].counts for how in (LIKELIHOOD, PER_EVENT)}
    least = {name: _least(value) for name, value in needed.items()}
    return (
        f"{judged(holds=places is not None and places <= 3)}: three places identify like a fingerprint. At {people:,} "
        f"people D is {finger:.1f} bits for the fingerprint, and "
        f"{', '.join(f'{one.compared:.1f}' for one in lines['check-ins'][:3])} bits for the first one, two and three "
        f"check-ins; {least['check-ins']} reach the fingerprint.",
        f"{judged(holds=_later(places, movies))}: ratings need more events; {least['ratings']} reach the fingerprint "
        f"({', '.join(f'{one.compared:.1f}' for one in lines['ratings'])} bits for the first one to five).",
        f"{judged(holds=min(whole.values()) >= finger)} as estimated by nearest neighbours: whole traces identify no "
        f"less than a fingerprint; {whole['check-ins']:.1f} bits for check-ins and {whole['ratings']:.1f} for ratings. "
        f"From merged counts, which can only lose, check-ins have {said(by_counts[LIKELIHOOD], 3)} with the paper's "
        f"score, {said(by_counts[PER_EVENT], 3)} with the likelihood per event, and the fingerprint "
        f"{said(found['fingerprint'].counts, 3)} bits: with the paper's score the estimator decides.",
        f"Contradicted at these sizes: that the estimate converges as people are added. {moving} of {len(found)} "
        "have not settled; where genuine and impostor scores hardly overlap, a sample of people shows only that D is "
        "large. Among these people PSE is at most log2 of their number, whatever D.",
    )


def _least(needed: int | None) -> str:
    return f"no number up to {_SENT[-1]} of them" if needed is None else f"{needed} of them"


def _later(places: int | None, movies: int | None) -> bool:
    """Return whether ratings reach a level later than places do."""
    return places is not None and (movies is None or movies > places)


def _trends(found: Sequence[Measured]) -> Chart:
    return Chart(
        key="people",
        title="The estimate as people are added",
        caption="Means over disjoint samples of people. A line that still rises has not settled.",
        x_label="people",
        y_label=_BITS,
        series=tuple(Series.through(one.label, one.trend.sizes, one.trend.bits) for one in found),
        x_log=True,
    )


def compared(request: Request) -> Report:
    """Return one chart of all sources: the attacker knows everything, or past events only."""
    places, movies, scores = checkins(request, CHECKINS), ratings(request, RATINGS), matrices(request)
    first = [matched(f"check-ins, first {m}, all known", _known_places(places, m)) for m in (1, 3)]
    past = [
        matched(
            f"check-ins, all, {_PLACES_KNOWN[-1]} earlier ones known, {how}",
            _partial(places),
            per_event=how == PER_EVENT,
        )
        for how in (LIKELIHOOD, PER_EVENT)
    ]
    liked = [matched("ratings, first 3, all known", linkage.scene(movies, knowledge="maximum", split="none", events=3))]
    found = measure([*biometrics(scores), *first, *liked, *past], request)
    order = sorted(found, key=lambda one: -one.compared)
    people = found[0].trend.sizes[-1]
    listed = "; ".join(f"{one.label} {one.compared:.1f}" for one in order)
    return Report(
        key="murakami2021/figure-5-sources",
        title="Identifiability across sources, in one unit",
        question="Which of these identifies people most: where they go, what they like, their face, their finger?",
        answers=(f"At {people:,} people of each source, the most identifying first (bits): {listed}.", *_ranked(found)),
        settings=settings(request, places=places, movies=movies, scores=scores),
        tables=(table(order, key="sources", title="All sources"),),
        charts=(_trends(order),),
        warnings=unsettled(found),
        citations=(PIE.at("figures 5 and 6"),),
    )


def _known_places(places: Traces, events: int) -> linkage.Scene:
    return linkage.scene(places, knowledge="maximum", events=events)


def _partial(places: Traces) -> linkage.Scene:
    return linkage.scene(places, training=_PLACES_KNOWN[-1], events=None)


def _ranked(found: Sequence[Measured]) -> tuple[str, ...]:
    """Say whether error rates rank the sources as bits do."""
    by_bits = [one.label for one in sorted(found, key=lambda one: -one.compared)]
    by_error = [one.label for one in sorted(found, key=lambda one: one.equal_error)]
    if by_bits == by_error:
        return ("The equal error rates rank them in the same order.",)
    listed = "; ".join(f"{one.label} {one.equal_error:.3g}" for one in sorted(found, key=lambda one: one.equal_error))
    return (f"The equal error rates rank them differently, the least first: {listed}.",)


def partial(request: Request) -> Report:
    """Return figure 6: the attacker knows earlier check-ins only, or the first ratings."""
    places, movies, scores = checkins(request, CHECKINS), ratings(request, RATINGS), matrices(request)
    sweeps = {"check-ins": _PLACES_KNOWN, "ratings": _MOVIES_KNOWN}
    sources = [
        matched(f"{name}, {known} known, {how}", _sweep(name, places, movies, known), per_event=how == PER_EVENT)
        for name, sizes in sweeps.items()
        for known in sizes
        for how in (LIKELIHOOD, PER_EVENT)
    ]
    found = {one.label: one for one in measure([*biometrics(scores), *sources], request)}
    people = found["face"].trend.sizes[-1]
    charts = tuple(
        Chart(
            key=name,
            title=f"{name.capitalize()} known to the attacker",
            caption=f"{_ESTIMATE} {people:,} people of each source; all events are sent.",
            x_label="events known of each person",
            y_label=_BITS,
            series=(
                *(
                    Series.through(how, sizes, [found[f"{name}, {known} known, {how}"].compared for known in sizes])
                    for how in (LIKELIHOOD, PER_EVENT)
                ),
                *(level(other, sizes, found[other].compared) for other in ("face", "fingerprint")),
            ),
        )
        for name, sizes in sweeps.items()
    )
    answers = [_grows(found, name, sizes, how) for name, sizes in sweeps.items() for how in (LIKELIHOOD, PER_EVENT)]
    return Report(
        key="murakami2021/figure-6",
        title="Traces, ratings, a face, a fingerprint: an attacker who knows some events",
        question="How identifying are unprotected traces, if the attacker knows only some events of each person?",
        answers=(*answers, _score_matters(found)),
        settings=settings(request, places=places, movies=movies, scores=scores),
        tables=(table(list(found.values()), key="partial", title="Partial knowledge"),),
        charts=charts,
        warnings=unsettled(list(found.values())),
        citations=(PIE.at("figure 6"),),
    )


def _sweep(name: str, places: Traces, movies: Traces, known: int) -> linkage.Scene:
    if name == "check-ins":
        return linkage.scene(places, training=known, events=None)
    return linkage.scene(movies, split="none", training=known, events=None)


def _grows(found: dict[str, Measured], name: str, sizes: Sequence[int], how: str) -> str:
    """Say whether bits grow with what is known, and when they pass the face."""
    bits = [found[f"{name}, {known} known, {how}"].compared for known in sizes]
    face = found["face"].compared
    growing = all(after > before for before, after in itertools.pairwise(bits))
    passed = next((known for known, value in zip(sizes, bits, strict=True) if value >= face), None)
    return (
        f"{name.capitalize()}, score: {how}. {judged(holds=growing)}: D grows with every step of what is known "
        f"({', '.join(f'{value:.1f}' for value in bits)} bits). {judged(holds=passed is not None)}: it passes the face "
        f"({face:.1f} bits){'.' if passed is None else f' at {passed} events known.'}"
    )


def _score_matters(found: dict[str, Measured]) -> str:
    raw, mean = (found[f"check-ins, {_PLACES_KNOWN[-1]} known, {how}"] for how in (LIKELIHOOD, PER_EVENT))
    return (
        "What the paper does not say: on traces of unequal length the likelihood is mostly a measure of length. With "
        f"{_PLACES_KNOWN[-1]} check-ins known its equal error rate is {raw.equal_error:.2f}, after division by the "
        f"number of events {mean.equal_error:.3f}, while both name the same person (error {mean.wrong:.3f}): the order "
        "within a row stays. D of the likelihood is therefore not what the scores of all people tell together, for "
        "these are not independent, as Theorem 3.2 asks."
    )


TARGETS: Final = (
    Target(
        name="murakami2021/figure-5",
        title="identifiability without noise, everything known",
        build=maximum,
        data=DATA,
        seconds=7,
    ),
    Target(
        name="murakami2021/figure-5-sources",
        title="check-ins, ratings, faces and fingers in one chart",
        build=compared,
        data=DATA,
        seconds=4,
    ),
    Target(
        name="murakami2021/figure-6",
        title="identifiability by what the attacker knows",
        build=partial,
        data=DATA,
        seconds=7,
    ),
    Target(
        name="murakami2021/figure-7",
        title="false accepts against false rejects",
        build=linkage_detection.detection,
        data=(DATA[0], DATA[2]),
        seconds=12,
    ),
    *linkage_noise.TARGETS,
)
