"""The success rate in guessing one person's value after noise, shuffle, and both: the paper's figures 2 to 5."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

from hushuffle.mechanisms.adversaries import Strong
from hushuffle.model import Bound, Chart, Claim, Histogram, Report, Series, Table, number
from hushuffle.model.citation import QIF
from hushuffle.questions import qif
from hushuffle_papers.base import Request, chart, claim, deployment, first_below, guessed, said, sizes, study, target
from hushuffle_papers.jurado2023.relations import SHUFFLE

_TRUTHS: Final = (1.0, 0.9, 0.8, 0.7, 0.6)
_OTHERS: Final = 200
_RIGHT: Final = "probability of a right guess"


@target(
    "jurado2023/figure-2", "Success of the uninformed adversary with two possible values, against the number of people"
)
def against_people(request: Request) -> Report:
    small, many = range(1, 51), sizes(1, 10**6, 4)
    request.tell("lines", 0.1)
    people = list(small)
    noise = tuple(Series.through(f"noise alone, p = {p:g}", people, [p] * len(people)) for p in (0.9, 0.8, 0.7, 0.6))
    charts = (
        _noise_and_shuffle(2, list(small), "few"),
        _noise_and_shuffle(2, many, "many", log="x"),
        chart(
            "shuffle-against-noise",
            "Shuffle alone against noise alone",
            "If the curve of the shuffle is below a horizontal line, shuffling protects more than this noise.",
            ("people", _RIGHT),
            (Series.through("shuffle alone", people, [guessed(2, 1.0, n) for n in people]), *noise),
        ),
    )
    request.tell("tables", 0.7)
    shuffle = [guessed(2, 1.0, n).upper for n in small]
    steps = [(guessed(2, p, 2 * m).upper, guessed(2, p, 2 * m + 1).upper) for p in _TRUTHS for m in range(1, 25)]
    pairs = all(math.isclose(even, odd, rel_tol=1e-12) for even, odd in steps)
    never_worse = all(
        guessed(2, p, n).upper <= min(p, alone) for p in _TRUTHS for n, alone in zip(small, shuffle, strict=True)
    )
    excess = [guessed(2, 0.8, 10**power).upper - 0.5 for power in range(1, 7)]
    slopes = [math.log10(later / earlier) for earlier, later in pairwise(excess)]
    two, apart = guessed(2, 0.8, 2).upper, guessed(2, 1.0, 10**6).upper - guessed(2, 0.6, 10**6).upper
    return study(
        "Success of the uninformed adversary with noise and shuffling, for two possible values (k = 2)",
        "How often does the uninformed adversary guess one person's answer right, by the number of people?",
        claim(
            "Figure 2",
            "For many values of p shuffling alone does more than noise alone.",
            first_below(0.6, 2) <= 50,
            f"With 50 people and a shuffle without noise the success rate is {number(shuffle[-1])}. From "
            f"{first_below(0.6, 2)} people on it is below that of noise alone with p = 0.6.",
            quote="for many values of … shuffling alone is more effective in reducing vulnerability than simply adding "
            "noise",
        ),
        claim(
            "section IV-B",
            "Shuffling noisy data exponentially decreases the vulnerability.",
            min(slopes) < -1,
            f"The excess over 1/2 falls like n^(-1/2): the exponent in each decade from 10 to 1,000,000 people is "
            f"{min(slopes):.3f} to {max(slopes):.3f}.",
            quote="shuffling noisy data exponentially decreases the vulnerability",
            reason="By Theorem 19 the excess is (2p - 1) binom(n - 1, floor(n/2)) / 2^n, of the order of n^(-1/2). "
            "Read as 'fast', the claim holds: of the excess of noise alone, 0.3 at p = 0.8, 10 people leave "
            f"{number(excess[0], digits=2)}.",
        ),
        claim(
            "section IV-B",
            "With two people and p = 0.8, noise and shuffle leave less than noise alone.",
            two < 0.8,
            f"The success rate is {number(two)}; with noise alone it is 0.8.",
            quote="either guess has an equal probability of being correct, decreasing the total vulnerability",
            reason="Our copy of the text has lost the printed numbers, p among them.",
        ),
        claim(
            "Figure 2",
            "The lines fall in steps: 2m and 2m + 1 people give the same success rate.",
            pairs,
            "This holds for every p and for m up to 24.",
            quote="every two consecutive values of … have the same vulnerability because of the floor function",
        ),
        claim(
            "Theorem 4, Figure 2",
            "Adding noise to the shuffle, or the shuffle to noise, never helps the adversary.",
            never_worse,
            "This holds for every p and up to 50 people.",
            quote=SHUFFLE.quote,
            repeats=SHUFFLE.study,
        ),
        f"The lines for different p never meet but converge: at 1,000,000 people p = 1 and p = 0.6 differ by "
        f"{number(apart)}.",
        _grid(2, _TRUTHS),
        _crossings(2, (0.9, 0.8, 0.7, 0.6, 0.55, 0.51, 0.501)),
        *charts,
        settings=(("values", "2"), ("probability of the truth p", ", ".join(f"{p:g}" for p in _TRUTHS))),
        citations=(QIF.at("Figure 2"), QIF.at("Theorem 17"), QIF.at("Theorem 19")),
    )


@target(
    "jurado2023/figure-3",
    "Success of the strong adversary for two possible values, by the values of the 200 other people",
)
def strong_against_composition(request: Request) -> Report:
    truths, held = (1.0, 0.99, 0.9, 0.8, 0.7, 0.6), list(range(0, _OTHERS + 1, 5))
    figures = {p: [_strong(p, count) for count in held] for p in request.each(truths, "p = {:g}")}
    edge, middle = _strong(0.8, 0).upper, _strong(0.8, 100).upper
    spread = {p: max(b.upper for b in row) - min(b.upper for b in row) for p, row in figures.items()}
    protects = all(bound.upper < p for p, row in figures.items() if p < 1 for bound in row)
    useless = all(bound.upper == 1.0 for bound in figures[1.0])
    agree = f"{edge:.5f}" == "0.52111" and f"{middle:.5f}" == "0.52116"
    listed = ", ".join(f"{p:g}" for p in truths)
    return study(
        "Two values: the strong adversary",
        "201 people answer yes or no. How often does an adversary who knows the 200 other answers guess the "
        "last one right, by the number of others who answer a?",
        claim(
            "section V, Figure 3",
            "The success rate at p = 0.8 if all other people hold one value, and if half of them do.",
            agree,
            f"{edge:.5f} and {middle:.5f}.",
            quote="the ABO vulnerability is approx. 0.52111. … but only to approx. 0.52116",
            printed="0.52111 and 0.52116",
            reason="Our copy of the text has lost p; 0.8 gives both numbers.",
        ),
        claim(
            "section V",
            "The shuffle alone does not protect against the strong adversary.",
            useless,
            f"With p = 1 the adversary is {'' if useless else 'not '}always right.",
            quote="does not affect vulnerability—the adversary can guess the last person with perfect confidence",
        ),
        claim(
            "section V",
            "Noise and shuffle together leave less than noise alone.",
            protects,
            f"At p = 0.8 the success rate is at most {number(middle)}. It is below p for every p < 1 tried.",
            quote="when noise is introduced, the vulnerability decreases below",
        ),
        claim(
            "section V",
            "The values of the other people change the vulnerability only marginally.",
            spread[0.8] < 0.001,
            f"The other values change the success rate by {number(spread[0.8])} at p = 0.8, the paper's example.",
            quote="Changing the prior distribution affects the ABO vulnerability, but only marginally.",
            reason="The change can be larger: at p = 0.99 the success rate goes from "
            f"{number(min(b.upper for b in figures[0.99]))} to {number(max(b.upper for b in figures[0.99]))}.",
        ),
        "The success rate is 1/2 + (p - 1/2) times the largest probability of any count among the others' reports. "
        "The variance of that count is 200 p(1 - p) for all values of these people. Only its shape differs, which "
        "matters when the variance is small.",
        Table(
            key="composition",
            title="Success rate against the number of other people with value a",
            caption="Probability of a right guess; by symmetry, it is the same for a and 200 - a other people.",
            columns=("a among the others", *(f"p = {p:g}" for p in truths)),
            rows=tuple((count, *(figures[p][count // 5] for p in truths)) for count in (0, 10, 25, 50, 75, 100)),
        ),
        _by_composition("all", "Several noises", held, {p: figures[p] for p in truths}),
        _by_composition("closer", "Closer: p = 0.8", held, {0.8: figures[0.8]}),
        _by_composition("little-noise", "Closer: p = 0.99", held, {0.99: figures[0.99]}),
        settings=(("people", "201"), ("values", "2"), ("probability of the truth p", listed)),
        citations=(QIF.at("Figure 3"), QIF.at("section V")),
    )


@target("jurado2023/figure-4", "5 and 10 values: noise, shuffle and both against the number of people", seconds=3.0)
def more_values(request: Request) -> Report:
    truths, small = {5: (1.0, 0.9, 0.7, 0.5, 0.3), 10: (1.0, 0.9, 0.7, 0.5, 0.2)}, [*range(1, 21), *range(22, 51, 2)]
    charts, tables = [], []
    claims: list[Claim] = []
    for k, levels in request.each(truths.items(), "{} values"):
        charts += [
            _noise_and_shuffle(k, small, f"few-{k}", truths=levels),
            _noise_and_shuffle(k, sizes(1, 10**6, 3), f"many-{k}", truths=levels, log="x"),
        ]
        near = (0.9, 0.7, 0.5, 0.3, *((0.25, 0.21) if k == 5 else (0.2, 0.11)))
        tables += [_grid(k, levels), _crossings(k, near)]
        alone = guessed(k, 1.0, 50).upper
        beaten = max(p for p in near if p >= alone or p == near[-1])
        comparison = claim(
            "Figure 4",
            f"With {k} values, too, shuffling alone does more than noise alone in most cases.",
            alone < 0.5 <= beaten,
            f"With 50 people the success rate of the shuffle alone is {number(alone)} (1/k is {1 / k:g}), below "
            f"0.5 of noise alone with p = 0.5. It is below {near[-1]:g}, with noise that hides almost all, only "
            f"from {first_below(near[-1], k):,} people on.",
            quote="shuffle alone is a highly effective sanitization mechanism, significantly outperforming … leakage "
            "guarantees in most cases",
            reason="Our copy of the text has lost the number of values of the figure.",
            repeats="jurado2023/figure-4" if claims else "",
        )
        claims.append(comparison)
    return study(
        "Success of the uninformed adversary with noise and shuffling, for 5 and for 10 possible values",
        "Does shuffling alone remain better than noise alone with 5 and with 10 values?",
        *claims,
        "Beyond the figure: the exact lines go on to 1,000,000 people, where every p is within "
        f"{number(guessed(10, 1.0, 10**6).upper - 0.1)} of 1/10 with 10 values.",
        *tables,
        *charts,
        settings=tuple(
            (f"probability of the truth p, {k} values", ", ".join(f"{p:g}" for p in levels))
            for k, levels in truths.items()
        ),
        citations=(QIF.at("Figure 4"), QIF.at("Propositions 20 and 21")),
    )


@target("jurado2023/figure-5", "The shuffle alone, 2 to 100 values, against the number of people", seconds=2.0)
def shuffle_alone(request: Request) -> Report:
    values, within, beyond = (2, 5, 10, 20, 50, 100), sizes(10, 1000, 8), sizes(10, 10**6, 3)
    figures = {k: {n: guessed(k, 1.0, n) for n in {*within, *beyond}} for k in request.each(values, "{} values")}
    rates = [[row[n].upper for n in sorted(row)] for row in figures.values()]
    falling = all(later <= earlier for row in rates for earlier, later in pairwise(row))
    columns = (10, 100, 1000, 10**4, 10**6)
    return study(
        "Success of the uninformed adversary with the shuffle alone",
        "How does the success rate under the shuffle alone change with the number of people and of values?",
        claim(
            "Figure 5",
            "Under the shuffle alone the success rate falls towards 1/k with the number of people.",
            falling,
            f"This holds for every tested k; with 1,000,000 people and 10 values it is {said(figures[10][10**6])}.",
            quote="We see that posterior vulnerability decreases with … and approaches the prior vulnerability",
        ),
        f"With 1,000 people it is {said(figures[10][1000])} for 10 values and {said(figures[100][1000])} for 100: "
        f"the more values, the further above 1/k in proportion ({10 * figures[10][1000].upper:.2f} times and "
        f"{100 * figures[100][1000].upper:.2f} times).",
        "Beyond the figure: the paper calls exact values expensive; here they are exact to twelve digits in "
        f"milliseconds, for example {said(guessed(1000, 1.0, 10**6))} for 1,000 values and 1,000,000 people.",
        Table(
            key="people",
            title="Success rate by number of values and number of people",
            caption="Probability of a right guess: the expected share of the most frequent value.",
            columns=("values", *(f"{n:,} people" for n in columns), "1/k"),
            rows=tuple((k, *(guessed(k, 1.0, n) for n in columns), 1 / k) for k in values),
        ),
        *(
            chart(
                key,
                title,
                "Success rate with the shuffle and without noise; each curve falls towards 1/k.",
                ("people", _RIGHT),
                [Series.through(f"{k} values", at, [figures[k][n] for n in at]) for k in values],
                log="xy",
            )
            for key, title, at in (
                ("within", "Success rate for 10 to 1,000 people, as in the paper", within),
                ("beyond", "Beyond: up to 1,000,000 people", beyond),
            )
        ),
        settings=(("values", ", ".join(map(str, values))), ("noise", "none")),
        citations=(QIF.at("Figure 5"), QIF.at("Proposition 20"), QIF.at("appendix B")),
    )


def _strong(p: float, held: int) -> Bound:
    others = Strong(others=Histogram(counts=[held, _OTHERS - held]))
    return qif.vulnerability(deployment(2, p, _OTHERS + 1), adversary=others)


def _by_composition(key: str, title: str, held: list[int], figures: dict[float, list[Bound]]) -> Chart:
    return chart(
        key,
        title,
        "Strong adversary, who knows the 200 other answers; p is the probability of a truthful report.",
        ("number of the 200 other people with value a", _RIGHT),
        [Series.through(_named(p), held, row) for p, row in figures.items()],
    )


def _noise_and_shuffle(
    k: int, people: list[int], key: str, *, truths: tuple[float, ...] = _TRUTHS, log: str = ""
) -> Chart:
    """Return a chart with a line for each p; at one person, each line starts at the success rate with noise alone."""
    return chart(
        f"noise-and-shuffle-{key}",
        f"{k} values, up to {people[-1]:,} people",
        "Success with noise and shuffle. For one person it is p, the success with noise alone for any number "
        "of people.",
        ("people", _RIGHT),
        [Series.through(_named(p), people, [guessed(k, p, n) for n in people]) for p in truths],
        log=log,
    )


def _named(p: float) -> str:
    return f"p = {p:g}" if p < 1 else "p = 1, shuffle alone"


def _grid(k: int, truths: tuple[float, ...]) -> Table:
    people = (1, 2, 10, 50, 1000, 10**6)
    return Table(
        key=f"noise-and-shuffle-{k}",
        title=f"Noise and shuffle, {k} values",
        caption="Probability of a right guess by the uninformed adversary. One person: noise alone.",
        columns=("p", *(f"{n:,} people" if n > 1 else "1 person" for n in people)),
        rows=tuple((p, *(guessed(k, p, n) for n in people)) for p in truths),
    )


def _crossings(k: int, truths: tuple[float, ...]) -> Table:
    return Table(
        key=f"crossings-{k}",
        title=f"Smallest number of people for which shuffling protects more than noise, {k} values",
        caption="The smallest number of people at which the adversary's success rate without noise is below p.",
        columns=("p of the noise alone", "people"),
        rows=tuple((p, first_below(p, k)) for p in truths),
    )
