"""Figures 6 and 7: the paper's approximation for many people; and adversaries who know none, some or all values."""

from __future__ import annotations

import math
from typing import Final

from scipy.integrate import quad
from scipy.special import ndtr

from hushuffle.mechanisms.adversaries import Informed, Strong, Uninformed
from hushuffle.model import Bound, Cell, Chart, Finding, Report, Series, Table, Warned, number
from hushuffle.model.citation import QIF, Citation
from hushuffle.questions import qif
from hushuffle_papers.base import Request, chart, claim, deployment, guessed, said, sizes, study, target

_VALUES: Final = (2, 10, 100)
_RIGHT: Final = "probability of a right guess"
_RAAB: Final = Citation(
    key="raab1998",
    text='M. Raab, A. Steger, "Balls into bins": a simple and tight analysis, RANDOM (1998)',
    where="Theorem 1",
)


@target("jurado2023/figure-6", "Shuffle without noise: approximate and exact success rates", seconds=2.0)
def shuffle_limit(request: Request) -> Report:
    people = sizes(10, 1000, 8)
    request.tell("lines", 0.1)
    many, truths = sizes(10, 10**6, 2), (1.0, 0.8, 0.6)
    grid = {(k, p, n): _ratio(k, p, n) for k in (*_VALUES, 1000) for p in truths for n in many}
    close = [ratio for (k, _, n), ratio in grid.items() if n >= k * math.log(k)]
    far = {k: max(abs(_approximate(k, 1.0, n) - guessed(k, 1.0, n).upper) for n in people) for k in _VALUES}
    return study(
        "Shuffle without noise: approximate and exact success rates",
        "How close is 1/k + sqrt(2 ln k/(n k)) to the success rate of the uninformed adversary?",
        claim(
            "Figure 6",
            "From 10 to 1,000 people the approximation is indistinguishable from the exact figure, but for an offset "
            "at one of three numbers of values.",
            None,
            f"It differs by at most {far[100]:.3f} for 100 values and {far[10]:.3f} for 10, but its ratio is "
            f"{_off(people, 100)} and {_off(people, 10)}; for 2 values there is an offset of up to {far[2]:.3f}.",
            quote="has a slight offset from the approximation, but the violet and blue lines … are visually "
            "indistinguishable from the value provided by the asymptotic bounds",
            reason="Our copy of the text lacks the picture and its numbers of values: 2, 10 and 100 are this study's. "
            "Whether lines look equal depends on the picture: their differences are small, but their ratios are not.",
        ),
        claim(
            "Theorem 22",
            "With noise and without, the formulas are of the right order (Theta): off by a constant factor at most.",
            min(close) > 0.5 and max(close) < 2,
            f"For p = 1, 0.8, 0.6, 2 to 1,000 values, 10 to 1,000,000 people {min(close):.2f} to {max(close):.2f} "
            f"times the exact figure with k ln k people or more, down to {min(grid.values()):.2f} times with fewer.",
            quote="Posterior single-target vulnerability for a general … has the following asymptotic bounds",
            reason="The constant is not 1, so the formulas are no bounds. Raab and Steger (1998) prove the order for "
            "many people.",
        ),
        "The offset does not go away with more people. What the release adds to 1/k is overstated by a factor that "
        f"tends to sqrt(2 ln k)/m_k, m_k the mean of the largest of k normal variables: {_factor(2):.2f} for 2 "
        f"values, {_factor(10):.2f} for 10, {_factor(100):.2f} for 100. At 1,000,000 people it is "
        f"{_excess(2, 10**6):.2f}, {_excess(10, 10**6):.2f} and {_excess(100, 10**6):.2f}.",
        "Beyond the figure: 1/k + m_k/sqrt(n k) costs the same and its excess is right in the limit; at 1,000 "
        f"people it is off by {100 * _better_error(2):.2g} % for 2, {100 * _better_error(10):.2g} % "
        f"for 10 and {100 * _better_error(100):.2g} % for 100 values.",
        _ratios(1.0),
        _both("exact-and-approximate", "Exact and approximate", people, 1.0),
        chart(
            "ratio",
            "Approximate divided by exact value of V - 1/k",
            "Each line tends to a constant above 1: for many people, the approximation overstates V - 1/k.",
            ("people", "ratio of V - 1/k"),
            [
                Series.through(f"{k} values", sizes(10, 10**6, 4), [_excess(k, n) for n in sizes(10, 10**6, 4)])
                for k in _VALUES
            ],
            log="x",
        ),
        _NO_BOUND,
        settings=(("values", ", ".join(map(str, _VALUES))), ("noise", "none"), ("exact values", "certified to 1e-12")),
        citations=(QIF.at("Figure 6"), QIF.at("section VI-C"), _RAAB),
    )


@target("jurado2023/figure-7", "Noise and shuffle: approximate and exact success rates", seconds=2.0)
def noise_limit(request: Request) -> Report:
    people, truths = sizes(10, 1000, 8), (0.8, 0.6)
    request.tell("lines", 0.1)
    ratios = {(k, p): [_ratio(k, p, n) for n in people] for k in _VALUES for p in truths}
    rows = [ratios[k, p] for k in (2, 10) for p in truths]
    holds = all(ratio > 1 for row in rows for ratio in row) and all(row[-1] < row[0] for row in rows)
    return study(
        "Noise and shuffle: approximate and exact success rates",
        "How close is the approximation to the success rate, if reports are also noisy?",
        claim(
            "Figure 7",
            "With noise, too, the approximation starts above the exact figure and comes closer with more people.",
            None,
            f"With p = 0.8 its ratio to the exact figure falls from {ratios[2, 0.8][0]:.3f} at 10 people to "
            f"{ratios[2, 0.8][-1]:.3f} at 1,000 for 2 values, and from {ratios[10, 0.8][0]:.3f} to "
            f"{ratios[10, 0.8][-1]:.3f} for 10. With 100 values it starts below, at {ratios[100, 0.8][0]:.3f}, and "
            f"is {ratios[100, 0.8][-1]:.3f} at 1,000 people.",
            quote="is slightly above the straight yellow line representing the exact value for small values of … "
            "As … increases, the two lines converge. This is seen again for",
            reason=f"{'True' if holds else 'Not true'} for 2 and 10 values, not for 100. Our copy of the text has "
            "lost p and the numbers of values that the paper draws.",
        ),
        "The lines meet because both go to 1/k. What the release adds to 1/k is off by the same factor as without "
        f"noise, since noise multiplies both by (kp - 1)/(k - 1): {_excess(2, 1000):.2f}, "
        f"{_excess(10, 1000):.2f} and {_excess(100, 1000):.2f} at 1,000 people.",
        *(_ratios(p) for p in truths),
        *(_both(f"exact-and-approximate-{p:g}", f"Exact and approximate, p = {p:g}", people, p) for p in truths),
        _NO_BOUND,
        settings=(
            ("values", ", ".join(map(str, _VALUES))),
            ("probability of the truth p", ", ".join(f"{p:g}" for p in truths)),
        ),
        citations=(QIF.at("Figure 7"), QIF.at("Theorem 22"), _RAAB),
    )


_NO_BOUND: Final = Warned(
    key="approximation",
    sentence="The approximation is not a bound: it can be too large or too small.",
    advice="Use qif.vulnerability, which is exact and equally fast.",
)


def normal_maximum(k: int) -> float:
    """Return the mean of the largest of k independent standard normal variables.

    >>> round(normal_maximum(2), 6)
    0.56419
    """
    above, _ = quad(lambda x: -math.expm1(k * math.log(ndtr(x))), 0, 12)
    below, _ = quad(lambda x: ndtr(x) ** k, -12, 0)
    return float(above - below)


def _approximate(k: int, p: float, n: int) -> float:
    return qif.asymptotic_vulnerability(deployment(k, p, n))


def _off(people: list[int], k: int) -> str:
    ratios = [_ratio(k, 1.0, n) for n in people]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _ratio(k: int, p: float, n: int) -> float:
    return _approximate(k, p, n) / guessed(k, p, n).upper


def _excess(k: int, n: int) -> float:
    """Return the approximate value of V - 1/k divided by the exact value; it is the same for every p."""
    return (_approximate(k, 1.0, n) - 1 / k) / (guessed(k, 1.0, n).upper - 1 / k)


def _factor(k: int) -> float:
    return math.sqrt(2 * math.log(k)) / normal_maximum(k)


def _better_error(k: int) -> float:
    better = 1 / k + normal_maximum(k) / math.sqrt(1000 * k)
    return abs(better / guessed(k, 1.0, 1000).upper - 1)


def _both(key: str, title: str, people: list[int], p: float) -> Chart:
    return chart(
        key,
        title,
        "The uninformed adversary guesses one person's answer.",
        ("people", _RIGHT),
        [
            Series.through(f"{k} values, {how}", people, [figure(k, p, n) for n in people])
            for k in _VALUES
            for how, figure in (("exact", guessed), ("approximate", _approximate))
        ],
        log="xy",
    )


def _ratios(p: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for k in (*_VALUES, 1000):
        for n in (10, 100, 1000, 10**6):
            exact, close = guessed(k, p, n), _approximate(k, p, n)
            excess = (close - 1 / k) / (exact.upper - 1 / k)
            rows.append((k, n, exact, close, f"{_ratio(k, p, n):.4f}", f"{excess:.3f}"))
    return Table(
        key=f"ratios-{p:g}",
        title=f"Approximate against exact, {f'p = {p:g}' if p < 1 else 'no noise'}",
        caption="Ratio: approximate success rate V divided by exact. Ratio of the gain: the same for V - 1/k.",
        columns=("values", "people", "exact", "approximate", "ratio", "ratio of the gain"),
        rows=tuple(rows),
    )


_CASES: Final = ((2, 0.8), (5, 0.9), (5, 0.5), (20, 0.5))
_PEOPLE: Final = 201


@target(
    "jurado2023/figure-3-knowledge",
    "Success of adversaries who know none, some or all of the other values, 2 to 20 values",
    seconds=8.0,
)
def by_knowledge(request: Request) -> Report:
    charts = [_against_people(k, p) for k, p in request.each(_CASES, "{} values, p = {:g}", end=0.8)]
    request.tell("some of the others known", 0.8)
    adversaries = (
        ("Uninformed adversary", Uninformed()),
        ("Adversary who knows 100 of the 200 others", Informed(m=100)),
        ("Strong adversary, who knows all 200 others", Strong()),
    )
    bounds = [(name, qif.vulnerability(deployment(5, 0.9, _PEOPLE), adversary=other)) for name, other in adversaries]
    learned = tuple(
        Finding(
            question="vulnerability",
            adversary=name,
            sentence=f"The adversary guesses right at most {number(100 * bound.upper, up=True)} % of the time; "
            "20 % without a release.",
            bound=bound,
            proof="expected success of the best guess; 5 values, p = 0.9, the worst case over the known people",
        )
        for name, bound in bounds
    )
    numbers = (0, 20, 100, 180, 200)
    nobody, half, everybody = (finding.bound for finding in learned)
    bare, bare_known = _known(5, 1.0, _PEOPLE, 0), _known(5, 1.0, _PEOPLE, _PEOPLE - 1)
    return study(
        "Success of adversaries who know none, some or all of the other values",
        "For which adversaries is shuffling alone enough, and for which is noise necessary?",
        "The answer depends on the adversary's knowledge. With 201 people, 5 values and no noise, the uninformed "
        f"adversary is right with probability {said(bare)}, the strong one with {said(bare_known)}.",
        f"A little noise (p = 0.9) changes little for the uninformed adversary ({said(nobody)}) and much for the "
        f"strong one ({said(everybody)}): noise protects against an adversary who knows the other values, and the "
        f"shuffle makes little noise sufficient.",
        f"Between these two the success rate grows slowly: with 100 of 200 known values it is {said(half)}. Each known "
        "value removes one report from the crowd that hides the target, but its noise still hides the target a little.",
        "Beyond the paper, which treats the strong adversary for two values only: the worst case over all values "
        "of the known people, for more than two values, as certified brackets.",
        *learned,
        Table(
            key="known",
            title=f"{_PEOPLE} people: success rate by the number of known values",
            caption="Probability of a right guess, in the worst case over the known values. p = 1: shuffle alone.",
            columns=("values", "p", *(f"knows {m}" for m in numbers)),
            rows=tuple((k, p, *(_known(k, p, _PEOPLE, m) for m in numbers)) for k, p in ((2, 1.0), (5, 1.0), *_CASES)),
        ),
        *charts,
        _against_share(),
        settings=(("values and p", "; ".join(f"{k} values, p = {p:g}" for k, p in _CASES)), ("people", f"{_PEOPLE}")),
        citations=(QIF.at("section V"), QIF.at("Figure 3")),
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
    return chart(
        f"people-{k}-{p:g}",
        f"{k} values, p = {p:g}",
        "Success rate in the worst case over the known values. Bands are certified.",
        ("people", _RIGHT),
        [
            Series.through(label, people, [_known(k, p, n, int(share * (n - 1))) for n in people])
            for label, share in shares
        ],
        log="x",
    )


def _against_share() -> Chart:
    numbers = [0, 25, 50, 100, 150, 175, 190, 196, 199, 200]
    return chart(
        "share",
        f"{_PEOPLE} people: success rate against the number of known values",
        "Success rate in the worst case over the known values. Bands are certified.",
        ("number of the 200 others that the adversary knows", _RIGHT),
        [
            Series.through(f"{k} values, p = {p:g}", numbers, [_known(k, p, _PEOPLE, m) for m in numbers])
            for k, p in ((2, 1.0), *_CASES)
        ],
    )
