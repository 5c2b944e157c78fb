"""The paper's figures 5 and 6: how identifying traces without noise are, compared with a face and a fingerprint."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from hushuffle.attacks import linkage
from hushuffle.model import Chart, Claim, Report, Series
from hushuffle.model.citation import PIE
from hushuffle_papers.base import Request, chart, claim, said, study, target
from hushuffle_papers.murakami2021 import datasets
from hushuffle_papers.murakami2021 import sources as estimates
from hushuffle_papers.murakami2021.datasets import DATA, ORIGINALS, SCORED, Events, Matcher, Used
from hushuffle_papers.murakami2021.sources import (
    LIKELIHOOD,
    PER_EVENT,
    MeasuredDivergence,
    Source,
    below,
    decided,
    matched,
)

_SENT: Final = (1, 2, 3, 4, 5)
_THREE: Final = 3
_RULES: Final = (LIKELIHOOD, PER_EVENT)
_ALMOST: Final = 0.2
"""Numbers of bits with a smaller relative difference count as almost the same."""

_FACE_FROM: Final = {"check-ins": 200, "ratings": 3}
"""According to the paper, traces with at least this number of known events are more identifying than the face."""
_BITS: Final = "D(genuine || impostor), bits"
_PARTIAL: Final = (
    "The paper's attacker knows 100 to 500 check-ins of people with 1,000 or more, and its people rate 500 films or "
    "more."
)
_ESTIMATE: Final = "Points are the estimate for this number of people, settled or not."


@target(
    "murakami2021/figure-5",
    "identifiability without noise, everything known",
    seconds=7,
    data=DATA,
    originals=ORIGINALS,
)
def maximum(request: Request) -> Report:
    places, movies, scores = datasets.everything(request)
    sent, whole = _all_known(places, movies)
    sources = [*datasets.biometrics(scores), *whole, *sent]
    measured = estimates.measure(sources, request)
    by_label = {one.label: one for one in measured}
    finger = by_label["fingerprint"]
    lines = {name: [by_label[f"{name}, first {m}"] for m in _SENT] for name in ("check-ins", "ratings")}
    people = finger.trend.sizes[-1]
    first_events = chart(
        "first",
        "The first events",
        f"{_ESTIMATE} {people:,} people of each source.",
        ("events sent", _BITS),
        (
            *(Series.through(name, _SENT, [one.compared for one in line]) for name, line in lines.items()),
            *(estimates.level(name, _SENT, by_label[name].compared) for name in ("face", "fingerprint")),
        ),
    )
    return study(
        "Identifiability of traces, ratings, faces and fingerprints by an attacker with maximum knowledge",
        "How identifying are unprotected traces, if the attacker was trained on the same events?",
        *_maximum_claims(by_label, lines, places, movies, scores),
        "Among these people PSE is at most log2 of their number, whatever D.",
        estimates.table(measured, key="maximum", title="Maximum knowledge"),
        first_events,
        _trends([*measured[:2], *(by_label[source.label] for source in whole)]),
        *estimates.unsettled(measured),
        settings=datasets.settings(request, places=places, movies=movies, scores=scores),
        citations=(PIE.at("figure 5"),),
    )


def _all_known(places: Events, movies: Events) -> tuple[list[Source], list[Source]]:
    """Return the first events of the traces, and the whole traces, if the attacker knows all of them."""
    first: list[Source] = []
    whole: list[Source] = []
    kinds: tuple[tuple[str, Events, linkage.Split], ...] = (("check-ins", places, "half"), ("ratings", movies, "none"))
    for name, events, split in kinds:
        scenes = {m: linkage.scene(events.traces, knowledge="maximum", split=split, events=m) for m in (*_SENT, None)}
        first += [matched(f"{name}, first {m}", scenes[m]) for m in _SENT]
        whole += [matched(f"{name}, all, {how}", scenes[None], per_event=how == PER_EVENT) for how in _RULES]
    return first, whole


def _maximum_claims(
    by_label: dict[str, MeasuredDivergence],
    lines: dict[str, list[MeasuredDivergence]],
    places: Events,
    movies: Events,
    scores: Sequence[Matcher],
) -> tuple[Claim, ...]:
    fingerprint, finger = [by_label["fingerprint"]], by_label["fingerprint"].compared
    fingers = [one for one in scores if one.label == "fingerprint"]
    data = f"{places.n:,} people of {places.where}, {movies.n:,} people who rate."
    used: list[Used] = [places, movies, *scores]
    to_places, to_all = datasets.stand_in([places, *fingers], used), datasets.stand_in([places, movies, *fingers], used)
    whole = {name: by_label[f"{name}, all, {LIKELIHOOD}"] for name in lines}
    needed = {
        name: next((m for m, one in zip(_SENT, line, strict=True) if one.compared >= finger), None)
        for name, line in lines.items()
    }
    first, liked = needed["check-ins"], needed["ratings"]
    moving, people = sum(one.moving for one in by_label.values()), by_label["fingerprint"].trend.sizes[-1]
    least = {name: value or "no tested number of" for name, value in needed.items()}
    return (
        decided(
            "Three places identify a person like a fingerprint.",
            first is not None and first <= _THREE,
            f"At {people:,} people D is {finger:.1f} bits for the fingerprint, and "
            f"{', '.join(f'{one.compared:.1f}' for one in lines['check-ins'][:3])} bits for the first one, two and "
            f"three check-ins. With {least['check-ins']} check-ins D reaches that of the fingerprint.",
            quote="only three locations are enough to have almost the same identifiability as a fingerprint",
            printed="3",
            data=data,
            stand_in=to_places,
            sure=below(lines["check-ins"][:_THREE], fingerprint),
        ),
        decided(
            "Ratings need more events than places.",
            later(first, liked),
            f"D is {', '.join(f'{one.compared:.1f}' for one in lines['ratings'])} bits for the first one to five "
            f"ratings. With {least['ratings']} ratings D reaches that of the fingerprint ({finger:.1f}), with "
            f"{least['check-ins']} check-ins already.",
            quote="in the maximum-knowledge model (ratings need more events)",
            data=data,
            stand_in=to_all,
            sure=below(lines["check-ins"], fingerprint) and below(fingerprint, lines["ratings"][-1:]),
        ),
        decided(
            "Whole traces identify almost as much as a fingerprint, neither much less nor much more.",
            all(abs(one.compared - finger) <= _ALMOST * finger for one in whole.values()),
            f"D is {whole['check-ins'].compared:.1f} bits for check-ins and {whole['ratings'].compared:.1f} for "
            f"ratings, as estimated by nearest neighbours, {finger:.1f} for the fingerprint.",
            quote="LT and RH have almost the same identifiability as the commercial fingerprint matcher (FP) in the "
            "maximum-knowledge model",
            data=data,
            stand_in=to_all,
            reason="The result depends on the estimator. Merging scores into cells can only lower D; the estimate from "
            f"these merged counts is for check-ins {said(whole['check-ins'].counts, 3)} bits and for the fingerprint "
            f"{said(by_label['fingerprint'].counts, 3)}.",
            sure=any(below([one], fingerprint) or below(fingerprint, [one]) for one in whole.values()),
        ),
        claim(
            "section 5.1",
            "The estimate of D converges as people are added.",
            None if moving else True,
            f"{moving} of {len(by_label)} estimates have not settled at {people:,} people. Where genuine and impostor "
            "scores hardly overlap, a sample of people shows only that D is large.",
            quote="We also confirmed that for each dataset … converges as the number of users increases.",
            reason="With more people they may settle." if moving else "",
            data=data,
            stand_in=to_all or f"At most {SCORED:,} people are scored.",
        ),
    )


def later(places: int | None, movies: int | None) -> bool:
    """Whether ratings need more events than places to reach a level (None: they do not reach it)."""
    return places is not None and (movies is None or movies > places)


def _trends(measured: Sequence[MeasuredDivergence]) -> Chart:
    return chart(
        "people",
        "The estimate as people are added",
        "Means over disjoint samples of people. A rising curve has not converged.",
        ("people", _BITS),
        [Series.through(one.label, one.trend.sizes, one.trend.bits) for one in measured],
        log="x",
    )


@target(
    "murakami2021/figure-5-sources",
    "identifiability of check-ins, ratings, faces and fingerprints in one chart",
    seconds=4,
    data=DATA,
    originals=ORIGINALS,
)
def compared(request: Request) -> Report:
    places, movies, scores = datasets.everything(request, long=True)
    first = [
        matched(f"check-ins, first {m}, all known", linkage.scene(places.traces, knowledge="maximum", events=m))
        for m in (1, 3)
    ]
    scene = linkage.scene(places.traces, training=places.known[-1], events=None)
    label = f"check-ins, all, {places.known[-1]} earlier ones known"
    past = [matched(f"{label}, {how}", scene, per_event=how == PER_EVENT) for how in _RULES]
    liked = linkage.scene(movies.traces, knowledge="maximum", split="none", events=3)
    measured = estimates.measure(
        [*datasets.biometrics(scores), *first, matched("ratings, first 3, all known", liked), *past], request
    )
    order = sorted(measured, key=lambda one: -one.compared)
    people = measured[0].trend.sizes[-1]
    listed = "; ".join(f"{one.label} {one.compared:.1f}" for one in order)
    return study(
        "Identifiability across sources, in one unit",
        "What identifies people most: their check-ins, ratings, faces or fingerprints?",
        f"At {people:,} people of each source, the most identifying first (bits): {listed}.",
        _ranked(order),
        estimates.table(order, key="sources", title="All sources"),
        _trends(order),
        *estimates.unsettled(measured),
        settings=datasets.settings(request, places=places, movies=movies, scores=scores),
        citations=(PIE.at("figures 5 and 6"),),
    )


def _ranked(order: Sequence[MeasuredDivergence]) -> str:
    """Return whether the equal error rates rank the sources in this order, by decreasing bits, too."""
    by_error = sorted(order, key=lambda one: one.equal_error)
    if [one.label for one in by_error] == [one.label for one in order]:
        return "The equal error rates rank them in the same order."
    listed = "; ".join(f"{one.label} {one.equal_error:.3g}" for one in by_error)
    return f"The equal error rates rank them differently, the least first: {listed}."


@target(
    "murakami2021/figure-6", "identifiability by what the attacker knows", seconds=7, data=DATA, originals=ORIGINALS
)
def partial(request: Request) -> Report:
    places, movies, scores = datasets.everything(request, long=True)
    sweeps = {"check-ins": places, "ratings": movies}
    sources: list[Source] = []
    for name, events in sweeps.items():
        split: linkage.Split = "half" if name == "check-ins" else "none"
        for number in events.known:
            scene = linkage.scene(events.traces, split=split, training=number, events=None)
            label = f"{name}, {number} known"
            sources += [matched(f"{label}, {how}", scene, per_event=how == PER_EVENT) for how in _RULES]
    measured = estimates.measure([*datasets.biometrics(scores), *sources], request)
    by_label = {one.label: one for one in measured}
    people = by_label["face"].trend.sizes[-1]
    lines = {
        (name, how): [by_label[f"{name}, {known} known, {how}"].compared for known in events.known]
        for name, events in sweeps.items()
        for how in _RULES
    }
    charts = tuple(
        chart(
            name,
            f"{name.capitalize()} known to the attacker",
            f"{_ESTIMATE} {people:,} people of each source; all events are sent.",
            ("events known of each person", _BITS),
            (
                *(Series.through(how, events.known, lines[name, how]) for how in _RULES),
                *(estimates.level(other, events.known, by_label[other].compared) for other in ("face", "fingerprint")),
            ),
        )
        for name, events in sweeps.items()
    )
    return study(
        "Identifiability of traces, ratings, faces and fingerprints by an attacker who knows some events",
        "How identifying are unprotected traces, if the attacker knows only some events of each person?",
        *(
            claim
            for name, how in lines
            for claim in _grows(by_label, name, sweeps[name], how, (places, movies), scores)
        ),
        _score_matters(by_label, places.known[-1]),
        estimates.table(measured, key="partial", title="Partial knowledge"),
        *charts,
        *estimates.unsettled(measured),
        settings=datasets.settings(request, places=places, movies=movies, scores=scores),
        citations=(PIE.at("figure 6"),),
    )


_NOISE: Final = " A divergence is never negative: an estimate below 0 is the error of the estimator."


def _grows(
    by_label: dict[str, MeasuredDivergence],
    name: str,
    events: Events,
    how: str,
    both: Sequence[Used],
    scores: Sequence[Matcher],
) -> tuple[Claim, Claim]:
    sizes = events.known
    steps = [by_label[f"{name}, {known} known, {how}"] for known in sizes]
    bits = [one.compared for one in steps]
    faces = [one for one in scores if one.label == "face"]
    needs = (datasets.stand_in([events, *more], [*both, *scores]) for more in ([], faces))
    alone, beside = (" ".join(filter(None, (text, _PARTIAL * events.short))) for text in needs)
    face = by_label["face"].compared
    growing = all(after > before for before, after in itertools.pairwise(bits))
    wanted = [step for known, step in zip(sizes, steps, strict=True) if known >= _FACE_FROM[name]] or steps[-1:]
    above, far = below([by_label["face"]], wanted), sizes[-1] < _FACE_FROM[name]
    lower = _below_the_face(name, sizes, steps, by_label["face"])
    when = next((f"reach at {m} known events" for m, b in zip(sizes, bits, strict=True) if b >= face), "never reach")
    score, repeats = ("the paper's score", "") if how == LIKELIHOOD else (how, "murakami2021/figure-6")
    where, people = f"{name.capitalize()}, {score}", f"{events.n:,} people with {events.at_least:,} or more"
    data = f"The attacker knows {sizes[0]} to {sizes[-1]} events of each of {people}."
    return (
        decided(
            f"{where}: D grows with the number of events that the attacker knows.",
            growing,
            f"D is {', '.join(f'{value:.1f}' for value in bits)} bits.{_NOISE if min(bits) < 0 else ''}",
            quote="In both LT and RH, the PSE increases with increase in the number of training events.",
            repeats=repeats,
            data=data,
            stand_in=alone,
            sure=any(below([after], [before]) for before, after in itertools.pairwise(steps)),
            figure=6,
        ),
        decided(
            f"{where}: with {_FACE_FROM[name]} or more known events D exceeds that of the face.",
            above,
            f"The face has D = {face:.1f} bits, which the {name} {when}.",
            quote="The PSE of LT (resp. RH) is larger than that of the face matcher in [61] when the number of "
            "training events is larger than or equal to 200 … (resp. 3",
            printed=str(_FACE_FROM[name]),
            repeats=repeats,
            data=data,
            stand_in=beside,
            reason="The people have too few events for an attacker who knows as many as the claim says."
            if far and not above
            else lower,
            sure=bool(lower),
            figure=6,
        ),
    )


def _below_the_face(
    name: str, sizes: Sequence[int], steps: Sequence[MeasuredDivergence], face: MeasuredDivergence
) -> str:
    """Return a sentence on the first step with enough known events whose interval is below the face's, or ""."""
    for number, step in zip(sizes, steps, strict=True):
        if number >= _FACE_FROM[name] and below([step], [face]):
            return (
                f"With {number} known {name} the interval of D is {said(step.interval, 3)} bits, that of the face "
                f"starts at {face.interval.lower:.1f}."
            )
    return ""


def _score_matters(by_label: dict[str, MeasuredDivergence], most: int) -> str:
    raw, mean = (by_label[f"check-ins, {most} known, {how}"] for how in _RULES)
    return (
        "What the paper does not say: on traces of unequal length the likelihood is mostly a measure of length. With "
        f"{most} check-ins known its equal error rate is {raw.equal_error:.2f}, after division by the "
        f"number of events {mean.equal_error:.3f}, while both name the same person (error {mean.wrong:.3f}): the order "
        "within a row stays. D of the likelihood is therefore not what the scores of all people tell together, for "
        "these are not independent, as Theorem 3.2 asks."
    )
