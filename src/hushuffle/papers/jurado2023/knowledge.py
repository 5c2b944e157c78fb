"""Extend the paper's figures 2 to 4: one deployment, and adversaries who know none, some or all other values."""

from __future__ import annotations

from typing import Final

from hushuffle.mechanisms.adversaries import Informed, Strong, Uninformed
from hushuffle.model import Bound, Chart, Finding, Report, Series, Table, number
from hushuffle.model.citation import QIF
from hushuffle.papers.base import Request, Target, deployment, guessed, said, sizes
from hushuffle.questions import qif

_CASES: Final = ((2, 0.8), (5, 0.9), (5, 0.5), (20, 0.5))
_PEOPLE: Final = 201


def by_knowledge(request: Request) -> Report:
    charts = []
    for place, (k, p) in enumerate(_CASES):
        request.tell(f"{k} values, p = {p:g}", place / (len(_CASES) + 1))
        charts.append(_against_people(k, p))
    request.tell("some of the others known", len(_CASES) / (len(_CASES) + 1))
    charts.append(_against_share())
    learned = _findings(5, 0.9)
    numbers = (0, 20, 100, 180, 200)
    nobody, half, everybody = (finding.bound for finding in learned)
    bare, bare_known = _known(5, 1.0, _PEOPLE, 0), _known(5, 1.0, _PEOPLE, _PEOPLE - 1)
    return Report(
        key="jurado2023/figure-3-knowledge",
        title="Success of adversaries who know none, some or all of the other values",
        question="For which adversaries is shuffling alone enough, and for which is noise necessary?",
        answers=(
            "The answer depends on the adversary's knowledge. With 201 people, 5 values and no noise, the uninformed "
            f"adversary is right with probability {said(bare)}, the strong one with {said(bare_known)}.",
            f"A little noise (p = 0.9) changes little for the uninformed adversary ({said(nobody)}) and much for the "
            f"strong one ({said(everybody)}): noise protects against an adversary who knows the other values, and the "
            f"shuffle makes little noise sufficient.",
            f"Between these two the success rate grows slowly: with 100 of 200 known values it is {said(half)}. Each "
            "known value removes one report from the crowd that hides the target, but its noise still hides the "
            "target a little.",
            "Beyond the paper, which treats the strong adversary for two values only: the worst case over all values "
            "of the known people, for more than two values, as certified brackets.",
        ),
        settings=(("values and p", "; ".join(f"{k} values, p = {p:g}" for k, p in _CASES)), ("people", f"{_PEOPLE}")),
        findings=learned,
        tables=(
            Table(
                key="known",
                title=f"{_PEOPLE} people: success rate by the number of known values",
                caption="Probability of a right guess, in the worst case over the known values. p = 1: shuffle alone.",
                columns=("values", "p", *(f"knows {m}" for m in numbers)),
                rows=tuple(
                    (k, p, *(_known(k, p, _PEOPLE, m) for m in numbers)) for k, p in ((2, 1.0), (5, 1.0), *_CASES)
                ),
            ),
        ),
        charts=tuple(charts),
        citations=(QIF.at("section V"), QIF.at("Figure 3")),
    )


def _findings(k: int, p: float) -> tuple[Finding, ...]:
    adversaries = (
        ("Uninformed adversary", Uninformed()),
        ("Adversary who knows 100 of the 200 others", Informed(m=100)),
        ("Strong adversary, who knows all 200 others", Strong()),
    )
    bounds = [
        (name, qif.vulnerability(deployment(k, p, _PEOPLE), adversary=adversary)) for name, adversary in adversaries
    ]
    return tuple(
        Finding(
            question="vulnerability",
            adversary=name,
            sentence=f"Guesses right at most {number(100 * bound.upper, up=True)} % of the time; "
            f"{100 / k:g} % without a release.",
            bound=bound,
            proof=f"expected success of the best guess; {k} values, p = {p:g}, the worst case over the known people",
        )
        for name, bound in bounds
    )


def _known(k: int, p: float, n: int, m: int) -> Bound:
    """Return the success rate of an adversary who knows m of the n - 1 other values, in the worst case over them."""
    if m == 0:
        return guessed(k, p, n)
    adversary = Strong() if m == n - 1 else Informed(m=m)
    return qif.quick_vulnerability(deployment(k, p, n), adversary=adversary)


def _against_people(k: int, p: float) -> Chart:
    people = sizes(10, 10**5, 1)
    shares = (("knows none", 0.0), ("knows one in ten", 0.1), ("knows half", 0.5), ("knows all others", 1.0))
    return Chart(
        key=f"people-{k}-{p:g}",
        title=f"{k} values, p = {p:g}",
        caption="Success rate in the worst case over the known values. Bands are certified.",
        x_label="people",
        y_label="probability of a right guess",
        series=tuple(
            Series.through(label, people, [_known(k, p, n, int(share * (n - 1))) for n in people])
            for label, share in shares
        ),
        x_log=True,
    )


def _against_share() -> Chart:
    numbers = [0, 25, 50, 100, 150, 175, 190, 196, 199, 200]
    return Chart(
        key="share",
        title=f"{_PEOPLE} people: success rate against the number of known values",
        caption="Success rate in the worst case over the known values. Bands are certified.",
        x_label="number of the 200 others that the adversary knows",
        y_label="probability of a right guess",
        series=tuple(
            Series.through(f"{k} values, p = {p:g}", numbers, [_known(k, p, _PEOPLE, m) for m in numbers])
            for k, p in ((2, 1.0), *_CASES)
        ),
    )


TARGETS: Final = (
    Target(
        name="jurado2023/figure-3-knowledge",
        title="Success of adversaries who know none, some or all of the other values, 2 to 20 values",
        build=by_knowledge,
        seconds=8.0,
    ),
)
