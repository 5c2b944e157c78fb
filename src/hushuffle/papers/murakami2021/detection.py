"""Detection error tradeoffs of traces, a face and a fingerprint: the paper's figure 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hushuffle.attacks import linkage
from hushuffle.attacks.detection import Detection, matrix_equal_error_rate
from hushuffle.model import Bound, Chart, Report, Series, Table
from hushuffle.model.citation import PIE
from hushuffle.papers.base import Request
from hushuffle.papers.murakami2021.sources import (
    CHECKINS,
    LIKELIHOOD,
    PER_EVENT,
    Source,
    biometrics,
    checkins,
    judged,
    matched,
    matrices,
    settings,
)

PLACES: Final = 50
"""Check-ins known to the attacker."""

_EQUAL: Final = f"first {PLACES} sent, likelihood"
_ALLOWED: Final = (0.001, 0.01, 0.1)
_AWARDED: Final = {0.01: 0.15, 0.1: 0.1}
"""False rejects at false accepts of the best matcher of the Face Recognition Prize Challenge, as the paper says."""

_POINTS: Final = 60


def detection(request: Request) -> Report:
    """Return figure 7: detection error tradeoffs with partial knowledge, and those of the face and the finger."""
    places, scores = checkins(request, CHECKINS), matrices(request)
    scene = linkage.scene(places, training=PLACES, events=None)
    equal = linkage.scene(places, training=PLACES, events=PLACES)
    sources = [
        *biometrics(scores),
        *(matched(f"check-ins, {how}", scene, per_event=how == PER_EVENT) for how in (LIKELIHOOD, PER_EVENT)),
        matched(f"check-ins, {_EQUAL}", equal),
    ]
    curves: dict[str, Detection] = {}
    rates: dict[str, Bound] = {}
    for done, source in enumerate(sources):
        request.tell(f"detection error tradeoff, {source.label}", done / len(sources))
        curves[source.label] = source.detection()
        rates[source.label] = matrix_equal_error_rate(source.scores, seed=request.seed)
    return Report(
        key="murakami2021/figure-7",
        title="Detection error tradeoff: check-ins, a face, a fingerprint",
        question="At the same rate of false accepts, which matcher misses fewer: one of traces, faces or fingers?",
        answers=_detection_answers(curves),
        settings=(
            ("check-ins known", f"{PLACES} of the former half of the trace; all of the latter are sent"),
            *settings(request, places=places, scores=scores),
        ),
        tables=(_rates(sources, curves, rates),),
        charts=(_curves(curves),),
        citations=(PIE.at("figure 7"),),
    )


def _detection_answers(curves: dict[str, Detection]) -> tuple[str, ...]:
    face, finger = curves["face"], curves["fingerprint"]
    raw, mean, equal = (curves[f"check-ins, {how}"] for how in (LIKELIHOOD, PER_EVENT, _EQUAL))

    def below(curve: Detection) -> bool:
        return all(curve.reject_at(allowed) <= face.reject_at(allowed) for allowed in _ALLOWED)

    def listed(curve: Detection) -> str:
        return ", ".join(f"{curve.reject_at(allowed):.3f}" for allowed in _ALLOWED)

    return (
        f"{judged(holds=below(raw))} with the paper's score: a trace with {PLACES} places known is told "
        f"better than a face. False rejects at false accepts of {', '.join(f'{rate:g}' for rate in _ALLOWED)}: "
        f"{listed(raw)}, the face {listed(face)}.",
        f"{judged(holds=below(mean))} with the likelihood per event, which takes the length of the trace out: "
        f"{listed(mean)}. Which person has the best score is the same for both. If everybody sends "
        f"{PLACES} places, so that there is no length to tell, the paper's score has {listed(equal)}.",
        f"{judged(holds=face.equal_error < finger.equal_error)}: the fingerprint has more errors than the face, with "
        f"equal error rates of {finger.equal_error:.3f} and {face.equal_error:.3f}.",
        f"{judged(holds=_awarded(mean))} per event, {judged(holds=_awarded(raw)).lower()} with the paper's score: "
        "the trace beats the best matcher of the Face Recognition Prize Challenge 2017, whose false rejects were "
        "about 0.15 and 0.1 at false accepts of 0.01 and 0.1 (as the paper says).",
    )


def _awarded(curve: Detection) -> bool:
    return all(curve.reject_at(rate) <= other for rate, other in _AWARDED.items())


def _rates(sources: Sequence[Source], curves: dict[str, Detection], rates: dict[str, Bound]) -> Table:
    return Table(
        key="rates",
        title="Error rates",
        caption="Intervals by drawing people anew.",
        columns=(
            "what is matched",
            "people",
            *(f"false rejects at {allowed:g}" for allowed in _ALLOWED),
            "equal error rate",
            "interval",
        ),
        rows=tuple(
            (
                source.label,
                source.n,
                *(curves[source.label].reject_at(allowed) for allowed in _ALLOWED),
                curves[source.label].equal_error,
                rates[source.label],
            )
            for source in sources
        ),
    )


def _curves(curves: dict[str, Detection]) -> Chart:
    series: list[Series] = []
    for label, curve in curves.items():
        accept, reject = curve.false_accept, curve.false_reject
        shown = np.flatnonzero((accept > 0) & (reject > 0))
        if not shown.size:
            continue
        wanted = np.geomspace(accept[shown[0]], accept[shown[-1]], _POINTS)
        shown = np.unique(np.searchsorted(accept[: shown[-1] + 1], wanted, side="right") - 1)
        series.append(Series.through(label, accept[shown].tolist(), reject[shown].tolist()))
    return Chart(
        key="detection",
        title="False accepts against false rejects",
        caption="Lower and further left: better told apart. A line ends where no false reject is left.",
        x_label="false accept rate",
        y_label="false reject rate",
        series=tuple(series),
        x_log=True,
        y_log=True,
    )
