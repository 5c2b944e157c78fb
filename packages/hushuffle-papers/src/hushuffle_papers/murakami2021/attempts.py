"""Each person sends one randomized place: the guarantees, the attack's success, and the divergence of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.attacks import linkage
from hushuffle.attacks.detection import Detection, matrix_equal_error_rate
from hushuffle.attacks.results import Ranked
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, RandomizedResponse, Symmetric
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Bound, Cell, Chart, Claim, Report, Series, Table
from hushuffle.model.citation import PIE
from hushuffle.model.traces import Traces
from hushuffle.questions import pie, pse
from hushuffle.randomness import Randomness, reproducible
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.murakami2021.datasets import (
    DATA,
    ORIGINALS,
    Events,
    Matcher,
    biometrics,
    checkins,
    matrices,
    settings,
)
from hushuffle_papers.murakami2021.sources import LIKELIHOOD, PER_EVENT, matched

EPSILONS: Final = (2.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 14.0)
ROUNDS: Final = 4
BUCKETS_PER_VALUE: Final = 10
"""Ten buckets per value, about as in the paper: 10^8 for 10,500,393 places."""

MECHANISMS: Final = ("randomized response", "local hashing")

_RESOLUTION: Final = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class Attempt(Ranked):
    """One mechanism at one epsilon: the guarantees for one report, and the results of the paper's attack.

    In bits: `general` (Proposition 4.1), `published` (Theorem 4.2 or 4.4), `exact` (alpha*), `here` (I(U;Y) for these
    people's places), and `divergence`, the mean over all rounds. The error `least` is a lower bound for any people, and
    `least_here` for these people.
    """

    mechanism: str
    epsilon: float
    n: int
    general: float
    published: float
    exact: Bound
    here: float
    divergence: float
    interval: Bound
    least_here: float

    def fano(self, bits: float) -> float:
        """Return the lower bound on the error by Fano's inequality, given mutual information of `bits` bits."""
        return pie.fano_error(max(bits, 0.0), self.n).lower + 0.0  # avoids -0.0

    @property
    def clear(self) -> bool:
        """Whether the divergence is estimated well enough to compare: its lower bound exceeds half of the estimate."""
        return self.interval.lower > self.divergence / 2

    @property
    def floor(self) -> float:
        """The certified error for these people."""
        return max(self.least.lower, self.least_here)


def attempts(
    request: Request, people: Traces, *, epsilons: Sequence[float] = EPSILONS, rounds: int = ROUNDS
) -> list[Attempt]:
    """Return the attack on each mechanism at each epsilon; people send the first place of their traces' second half.

    With more than 2,000 people, each round attacks the reports of 2,000 drawn at random, among all people.
    """
    coins, results = reproducible(request.seed), list[Attempt]()
    for epsilon in epsilons:
        randomizers: tuple[RandomizedResponse | LocalHashing, ...] = (
            RandomizedResponse(k=people.k, epsilon=epsilon),
            LocalHashing(k=people.k, g=BUCKETS_PER_VALUE * people.k, epsilon=epsilon),
        )
        for name, randomizer in zip(MECHANISMS, randomizers, strict=True):
            request.tell(f"{name} at epsilon {epsilon:g}", len(results) / (2 * len(epsilons)))
            results.append(_attempt(name, epsilon, randomizer, people, rounds, coins))
    return results


def _attempt(
    name: str,
    epsilon: float,
    randomizer: RandomizedResponse | LocalHashing,
    people: Traces,
    rounds: int,
    coins: Randomness,
) -> Attempt:
    """Return the guarantees, and the attack in several rounds, which models reports as in the paper."""
    n = people.n
    protocol = Protocol(randomizer=randomizer, shuffler=UniformShuffle(), n=n)
    of_values, of_buckets = randomizer.law().symmetric, randomizer.law().bucket
    law = of_values or of_buckets
    assert law is not None
    sent = [
        (drawn, linkage.randomize(linkage.scene(people.select(drawn)).reported, randomizer=randomizer, rng=coins))
        for drawn in (linkage.attacked(n, rng=coins) for _ in range(rounds))
    ]
    ranks, scores = zip(
        *(
            linkage.ranks_among(
                n, drawn, partial(linkage.scores_against, people, linkage.scene, reports, how="plain"), rng=coins
            )
            for drawn, reports in sent
        ),
        strict=True,
    )
    # With more buckets than the prime of the hashes, every value has its own bucket, and the result is exact.
    published = pie.rr_alpha(protocol) if of_buckets is None else pie.hashing_alpha(protocol)
    first = people.events[people.offsets[:-1] + people.lengths // 2]
    shares = np.unique(first, return_counts=True)[1] / n
    sizes = len(scores[0]) // 2, len(scores[0])
    bits = [pse.matrix_trend(one, sizes, resolution=_RESOLUTION).bits[-1] for one in scores]
    return Attempt(
        mechanism=name,
        epsilon=epsilon,
        n=n,
        general=pie.ldp_alpha(protocol).upper,
        published=published.upper,
        exact=pie.alpha(protocol),
        here=information(law, shares),
        divergence=float(np.mean(bits)),
        interval=pse.from_matrix(scores[-1], resolution=_RESOLUTION),
        places=np.concatenate(ranks),
        least=pie.bayes_error(protocol),
        least_here=1 - float(shares.size * law.truth + (law.k - shares.size) * law.lie) / n,
    )


def information(law: Symmetric, shares: npt.NDArray[np.float64]) -> float:
    """Return I(X;Y) in bits if only these values occur; equals I(U;Y) if each person's value is fixed.

    >>> from fractions import Fraction
    >>> round(information(Symmetric(k=2, truth=Fraction(3, 4), lie=Fraction(1, 4)), np.array([0.5, 0.5])), 4)
    0.1887
    """
    truth, lie = float(law.truth), float(law.lie)
    outputs = lie + (truth - lie) * shares
    information = float(shares @ (truth * np.log2(truth / outputs)))
    others = float(np.log2(lie / outputs).sum() - shares @ np.log2(lie / outputs))
    # Outputs that no person has as a value have probability `lie` for all senders, so they reveal nothing.
    return information + lie * others


_ALLOWED: Final = (0.001, 0.01, 0.1)
_WHOLE: Final = tuple(np.geomspace(1e-3, 0.5, 55).tolist())
"""Rates of false accepts at which complete curves are compared."""
_AWARDED: Final = {0.01: 0.15, 0.1: 0.1}
"""False reject rates by false accept rate of the best matcher of the Face Recognition Prize Challenge (paper)."""

_FEWER_KNOWN: Final = "The paper's attacker knows 500 check-ins of 1,896 people with 1,000 or more."


@target(
    "murakami2021/figure-7",
    "false accepts against false rejects",
    data=(DATA[0], DATA[2]),
    originals=(ORIGINALS[0], ORIGINALS[2]),
    seconds=12,
)
def detection(request: Request) -> Report:
    places, scores = checkins(request, long=True), matrices(request)
    number = places.known[-1]
    scene = linkage.scene(places.traces, training=number, events=None)
    equal = linkage.scene(places.traces, training=number, events=number)
    sources = [
        *biometrics(scores),
        *(matched(f"check-ins, {how}", scene, per_event=how == PER_EVENT) for how in (LIKELIHOOD, PER_EVENT)),
        matched(f"check-ins, first {number} sent, likelihood", equal),
    ]
    curves: dict[str, Detection] = {}
    rows: list[tuple[Cell, ...]] = []
    for source in request.each(sources, "detection error tradeoff, {.label}"):
        curve = curves[source.label] = source.detection()
        rejected = (curve.reject_at(allowed) for allowed in _ALLOWED)
        interval = matrix_equal_error_rate(source.scores, seed=request.seed)
        rows.append((source.label, source.n, *rejected, curve.equal_error, interval))
    rejects = (f"false rejects at {allowed:g}" for allowed in _ALLOWED)
    equal_places = _listed(curves[f"check-ins, first {number} sent, likelihood"])
    return study(
        "Detection error tradeoff of check-ins, faces and fingerprints",
        "At the same rate of false accepts, which matcher misses fewer: one of traces, faces or fingers?",
        *_detection_claims(curves, places, scores),
        "Which person has the best score is the same for the likelihood and the likelihood per event. If everybody "
        f"sends {number} places, so that the length reveals nothing, the paper's score has {equal_places}.",
        Table(
            key="rates",
            title="Error rates",
            caption="Intervals by bootstrap over people.",
            columns=("what is matched", "people", *rejects, "equal error rate", "interval"),
            rows=tuple(rows),
        ),
        _curves(curves),
        settings=(
            ("check-ins known", f"{number} of the former half of the trace; all of the latter are sent"),
            *settings(request, places=places, scores=scores),
        ),
        citations=(PIE.at("figure 7"),),
    )


def _detection_claims(curves: dict[str, Detection], places: Events, scores: Sequence[Matcher]) -> tuple[Claim, ...]:
    data = f"{places.n:,} people of {places.where}, {places.known[-1]} check-ins known."
    traces = _FEWER_KNOWN if places.short or places.lacks else ""
    others = "Other matchers than the paper's." if any(one.lacks for one in scores) else ""
    face, finger = curves["face"], curves["fingerprint"]
    raw, mean = (curves[f"check-ins, {how}"] for how in (LIKELIHOOD, PER_EVENT))

    def above(curve: Detection) -> list[float]:
        return [rate for rate in _WHOLE if curve.reject_at(rate) > face.reject_at(rate)]

    def beats(curve: Detection) -> bool:
        return all(curve.reject_at(rate) <= other for rate, other in _AWARDED.items())

    crossed = " The trace has more false rejects at false accept rates from {:.2g} on."
    scored = (("with the paper's score", raw, ""), ("with the likelihood per event", mean, "murakami2021/figure-7"))
    heading = f"At false accept rates of {', '.join(f'{rate:g}' for rate in _ALLOWED)} the"
    return (
        *(
            claim(
                "section 5.2, Figure 7",
                f"A trace is better recognized than a face, {how}.",
                None if above(curve) and places.short else not above(curve),
                f"{heading} false reject rates are {_listed(face)} for the face, and {_listed(curve)} for the trace."
                + "".join(map(crossed.format, above(curve)[:1])),
                quote="LT provides smaller FAR and FRR than the face",
                repeats=repeats,
                reason="This score, not the paper's, takes the length of the trace out."
                + " The curves cross; if 500 check-ins are known, they may not." * (places.short and bool(above(curve)))
                if curve is mean
                else traces * bool(above(curve)),
                data=data,
                stand_in=traces or others,
            )
            for how, curve, repeats in scored
        ),
        claim(
            "section 5.2, Figure 7",
            "The fingerprint has a high false reject rate, above that of the face.",
            all(finger.reject_at(rate) > face.reject_at(rate) for rate in _ALLOWED),
            f"{heading} false reject rates are {_listed(finger)} for the fingerprint and {_listed(face)} for the face.",
            quote="FRR of FP is high (even using the commercial fingerprint matcher)",
            reason="High is above the face at these rates: this study's mark."
            + " The paper's cause, fingers rotated and pressed, is one of its own images." * bool(others),
            stand_in=others,
        ),
        *(
            claim(
                "section 5.2",
                f"A trace beats the best matcher of the Face Recognition Prize Challenge 2017, {how}.",
                beats(curve) or (None if places.short else False),
                f"{heading} trace has false reject rates of {_listed(curve)}.",
                quote="has higher identifiability than the face matcher in [11] and the best face matcher in the "
                "FRPC 2017",
                printed="0.15 and 0.1 at 0.01 and 0.1",
                repeats=repeats,
                reason="" if beats(curve) else traces,
                data=data,
                stand_in=traces,
            )
            for how, curve, repeats in scored
        ),
    )


def _listed(curve: Detection) -> str:
    return ", ".join(f"{curve.reject_at(allowed):.3f}" for allowed in _ALLOWED)


def _curves(curves: dict[str, Detection]) -> Chart:
    series: list[Series] = []
    for label, curve in curves.items():
        accept, reject = curve.false_accept, curve.false_reject
        shown = np.flatnonzero((accept > 0) & (reject > 0))
        if not shown.size:
            continue
        wanted = np.geomspace(accept[shown[0]], accept[shown[-1]], 60)
        end = accept[min(shown[-1] + 1, accept.size - 1)]  # false rejects stay constant up to here
        shown = np.unique(np.searchsorted(accept[: shown[-1] + 1], wanted, side="right") - 1)
        series.append(Series.through(label, [*accept[shown], end], [*reject[shown], reject[shown[-1]]]))
    return chart(
        "detection",
        "False accepts against false rejects",
        "A lower curve separates people better. A curve ends if its sample has no more false rejects.",
        ("false accept rate", "false reject rate"),
        series,
        log="xy",
    )
