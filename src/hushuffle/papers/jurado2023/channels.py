"""The channels of three people and two values, in exact rationals (tables I to V), and limits for many people."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from scipy.integrate import quad
from scipy.special import ndtr

from hushuffle.model import Cell, Channel, Chart, Claim, HeatMap, Report, Series, Table, Warned
from hushuffle.model.citation import QIF, Citation
from hushuffle.papers.base import Request, Target, claim, deployment, guessed, sizes
from hushuffle.questions import qif

_N: Final = 3
_K: Final = 2
_TRUTH: Final = Fraction(4, 5)
_ROMAN: Final = ("I", "II", "III", "IV", "V")
_SETTINGS: Final = (("people", "3"), ("values", "2, named a and b"), ("probability of the truth p", str(_TRUTH)))


def single(_request: Request) -> Report:
    """Return table I: noise N, shuffle S, reduced shuffle S^r."""
    noise, shuffle, reduced = qif.noise(_N, _K, _TRUTH), qif.shuffle(_N, _K), qif.reduced_shuffle(_N, _K)
    merged = qif.merge_proportional_columns(shuffle) == reduced
    return _study(
        1,
        "Noise, shuffle and reduced shuffle as channels",
        "What do noise and shuffle do to each data set of three people?",
        (
            claim(
                "Proposition 9",
                "The shuffle and the reduced shuffle leak the same, for every prior and gain.",
                merged,
                "Merging the columns of S that are multiples of each other gives the reduced shuffle.",
            ),
            _pattern(1, noise, 4, "one for each number of answers that differ"),
        ),
        (("N", noise), ("S", shuffle), ("S^r", reduced)),
        "Definitions 7, 8 and 10, Proposition 9",
    )


def combined(_request: Request) -> Report:
    """Return table II: NS, which is SN."""
    first, second = qif.noise_then_shuffle(_N, _K, _TRUTH), qif.shuffle_then_noise(_N, _K, _TRUTH)
    finer = qif.refines(qif.noise(_N, _K, _TRUTH), first)
    return _study(
        2,
        "Noise then shuffle, which is shuffle then noise",
        "Does it matter whether noise or shuffle comes first?",
        (
            claim("Proposition 11", "Noise and shuffle commute.", first == second, "NS and SN agree in every entry."),
            _pattern(2, first, 6, "in the printed pattern"),
            claim(
                "Theorem 4",
                "NS refines N: the shuffle after the noise never leaks more, for any prior and gain.",
                bool(finer),
                "Linear programming finds a post-processing that turns N into NS.",
            ),
        ),
        (("NS = SN", first),),
        "Proposition 11, Theorem 4",
    )


def reduced_cascade(_request: Request) -> Report:
    """Return table III: NS^r."""
    channel = qif.noise_then_reduced_shuffle(_N, _K, _TRUTH)
    same = qif.equivalent(qif.noise_then_shuffle(_N, _K, _TRUTH), channel)
    return _study(
        3,
        "Noise, then reduced shuffle",
        "What remains when only the histogram of the noisy answers is kept?",
        (
            claim("Proposition 12", "NS^r and NS are equivalent.", same, _BOTH_WAYS),
            _pattern(3, channel, 8, "as printed"),
        ),
        (("NS^r", channel),),
        "Proposition 12",
    )


def reduced_noise(_request: Request) -> Report:
    """Return table IV: N^r."""
    reduced, cascade = qif.reduced_noise(_N, _K, _TRUTH), qif.noise_then_reduced_shuffle(_N, _K, _TRUTH)
    ends = bool((reduced.matrix[0] == cascade.matrix[0]).all() and (reduced.matrix[-1] == cascade.matrix[-1]).all())
    return _study(
        4,
        "Noise on histograms",
        "What does the noise do to a histogram, all data sets with that histogram being equally likely?",
        (
            claim(
                "Example 24, Table IV",
                "The first and the last row are those of NS^r.",
                ends,
                "Equal in every entry: only one data set has that histogram.",
            ),
        ),
        (("N^r", reduced),),
        "Definition 23, Example 24",
        answers=(
            f"N and N^r cannot be compared: N takes {len(qif.datasets(_N, _K))} data sets, N^r takes "
            f"{len(qif.histograms(_N, _K))} histograms.",
        ),
    )


def commuting(_request: Request) -> Report:
    """Return table V: NS^r, which is S^r N^r."""
    direct = qif.noise_then_reduced_shuffle(_N, _K, _TRUTH)
    cascade = qif.reduced_shuffle(_N, _K).cascade(qif.reduced_noise(_N, _K, _TRUTH))
    same = qif.equivalent(qif.shuffle_then_noise(_N, _K, _TRUTH), cascade)
    return _study(
        5,
        "Noise and reduced shuffle commute",
        "Do noise and reduced shuffle commute, if the noise is reduced as well?",
        (
            claim(
                "Proposition 26", "Reduced noise and reduced shuffle commute.", direct == cascade, "All entries equal."
            ),
            claim("Proposition 28", "S^r N^r and SN are equivalent.", same, _BOTH_WAYS),
        ),
        (("NS^r = S^r N^r", direct),),
        "Propositions 26 and 28",
    )


def _study(
    number: int,
    title: str,
    question: str,
    claims: tuple[Claim, ...],
    channels: tuple[tuple[str, Channel], ...],
    where: str,
    *,
    answers: tuple[str, ...] = (),
) -> Report:
    return Report(
        key=f"jurado2023/table-{number}",
        title=title,
        question=question,
        claims=claims,
        answers=answers,
        settings=_SETTINGS,
        tables=tuple(_table(name, channel) for name, channel in channels),
        heat_maps=tuple(_picture(name, channel) for name, channel in channels),
        citations=(QIF.at(f"Table {_ROMAN[number - 1]}"), QIF.at(where)),
    )


_BOTH_WAYS: Final = "Linear programming finds a post-processing from each to the other."


def _pattern(number: int, channel: Channel, entries: int, which: str) -> Claim:
    """Return the claim that the channel has as many different entries as its printed table."""
    return claim(
        f"Table {_ROMAN[number - 1]}",
        "The entries of the table.",
        _different(channel) == entries,
        f"{_different(channel)} different entries, {which}.",
        printed=f"{entries} different entries",
    )


def _table(name: str, channel: Channel) -> Table:
    return Table(
        key=name,
        title=f"The channel {name}",
        caption=f"Probability of each output (column) for each input (row), p = {_TRUTH}, exact.",
        columns=("input", *map(_label, channel.outputs)),
        rows=tuple(
            (_label(label), *map(str, row)) for label, row in zip(channel.inputs, channel.matrix.tolist(), strict=True)
        ),
    )


def _picture(name: str, channel: Channel) -> HeatMap:
    return HeatMap(
        key=name,
        title=f"The channel {name}",
        caption=f"Probability of each output for each input, p = {_TRUTH}.",
        x_label="output",
        y_label="input",
        x=tuple(map(_label, channel.outputs)),
        y=tuple(map(_label, channel.inputs)),
        values=tuple(tuple(float(entry) for entry in row) for row in channel.matrix.tolist()),
    )


def _label(label: object) -> str:
    """Return aab for a data set, a:2, b:1 for a histogram: a data set has three entries, a histogram two."""
    assert isinstance(label, tuple)
    if len(label) == _N:
        return "".join("ab"[value] for value in label)
    return ", ".join(f"{value}:{count}" for value, count in zip("ab", label, strict=True))


def _different(channel: Channel) -> int:
    return len({entry for row in channel.matrix.tolist() for entry in row})


_ABOUT: Final = (
    (single, "Three people, two values: noise, shuffle and reduced shuffle in exact rationals"),
    (combined, "Three people, two values: noise then shuffle, which is shuffle then noise"),
    (reduced_cascade, "Three people, two values: noise, then reduced shuffle"),
    (reduced_noise, "Three people, two values: noise on histograms"),
    (commuting, "Three people, two values: noise and reduced shuffle commute"),
)

_CHANNELS: Final = tuple(
    Target(name=f"jurado2023/table-{number}", title=title, build=build)
    for number, (build, title) in enumerate(_ABOUT, 1)
)


_VALUES: Final = (2, 10, 100)
_RIGHT: Final = "probability of a right guess"
_RAAB: Final = Citation(
    key="raab1998",
    text='M. Raab, A. Steger, "Balls into bins": a simple and tight analysis, RANDOM (1998)',
    where="Theorem 1",
)


def shuffle_limit(request: Request) -> Report:
    """Return figure 6: the shuffle alone, exact and by the approximation."""
    people = sizes(10, 1000, 8)
    request.tell("lines", 0.1)
    far = {k: max(abs(_approximate(k, 1.0, n) - guessed(k, 1.0, n).upper) for n in people) for k in _VALUES}
    return Report(
        key="jurado2023/figure-6",
        title="The shuffle alone: the approximation for many people against exact values",
        question="How close is 1/k + sqrt(2 ln k/(n k)) to what somebody who knows nobody can guess?",
        claims=(
            claim(
                "Figure 6",
                "The approximation is close to the exact figure from 10 to 1,000 people.",
                far[100] < 0.05 and far[10] < 0.1,
                f"Within {far[100]:.3f} of it for 100 values and {far[10]:.3f} for 10; for 2 values there is an offset "
                f"of up to {far[2]:.3f}.",
                reason="To the eye: the closeness owes most to the 1/k that both contain.",
            ),
            claim(
                "Theorem 22",
                "The formulas are asymptotic bounds.",
                _ratio(100, 1.0, 10) >= 1,
                "No bound on either side: above the exact figure for many people, below it where people are few "
                f"compared with k ln k: {_ratio(100, 1.0, 10):.2f} of it with 100 values and 10 people, "
                f"{_ratio(1000, 1.0, 1000):.2f} with 1,000 and 1,000.",
            ),
        ),
        answers=(
            "The offset does not go away with more people. What the release adds to 1/k is overstated by a factor that "
            f"tends to sqrt(2 ln k)/m_k, m_k the mean of the largest of k normal variables: {_factor(2):.2f} for 2 "
            f"values, {_factor(10):.2f} for 10, {_factor(100):.2f} for 100. At 1,000,000 people it is "
            f"{_excess(2, 10**6):.2f}, {_excess(10, 10**6):.2f} and {_excess(100, 10**6):.2f}.",
            "Beyond the figure: 1/k + m_k/sqrt(n k) costs the same and its excess is right in the limit; at 1,000 "
            f"people it is off by {100 * _better_error(2, 1000):.2g} % for 2, {100 * _better_error(10, 1000):.2g} % "
            f"for 10 and {100 * _better_error(100, 1000):.2g} % for 100 values.",
        ),
        settings=(("values", ", ".join(map(str, _VALUES))), ("noise", "none"), ("exact values", "certified to 1e-12")),
        tables=(_ratios(1.0),),
        charts=(
            _both("exact-and-approximate", "Exact and approximate", people, dict.fromkeys(_VALUES, 1.0)),
            Chart(
                key="ratio",
                title="Approximate divided by exact: what the release adds to 1/k",
                caption="Each line goes to a constant above 1: the approximation overstates the gain in the end.",
                x_label="people",
                y_label="ratio of V - 1/k",
                series=tuple(
                    Series.through(f"{k} values", sizes(10, 10**6, 4), [_excess(k, n) for n in sizes(10, 10**6, 4)])
                    for k in _VALUES
                ),
                x_log=True,
            ),
        ),
        warnings=(_NO_BOUND,),
        citations=(QIF.at("Figure 6"), QIF.at("section VI-C"), _RAAB),
    )


def noise_limit(request: Request) -> Report:
    """Return figure 7: noise and shuffle, exact and by the approximation, for several p."""
    people, truths = sizes(10, 1000, 8), (0.8, 0.6)
    request.tell("lines", 0.1)
    ratios = {(k, p): [_ratio(k, p, n) for n in people] for k in _VALUES for p in truths}
    few = [ratios[k, p] for k in (2, 10) for p in truths]
    holds = all(ratio > 1 for row in few for ratio in row) and all(row[-1] < row[0] for row in few)
    return Report(
        key="jurado2023/figure-7",
        title="Noise and shuffle: the approximation for many people against exact values",
        question="How close is the approximation when the reports are noisy as well?",
        claims=(
            claim(
                "Figure 7",
                "With noise, too, the approximation comes closer with more people.",
                holds,
                f"With p = 0.8 its ratio to the exact figure falls from {ratios[2, 0.8][0]:.3f} at 10 people to "
                f"{ratios[2, 0.8][-1]:.3f} at 1,000 for 2 values, and from {ratios[10, 0.8][0]:.3f} to "
                f"{ratios[10, 0.8][-1]:.3f} for 10. With 100 values it starts below, at {ratios[100, 0.8][0]:.3f}, and "
                f"is {ratios[100, 0.8][-1]:.3f} at 1,000 people.",
                reason="True for 2 and 10 values.",
            ),
        ),
        answers=(
            "The lines meet because both go to 1/k. What the release adds to 1/k is off by the same factor as without "
            f"noise, since noise multiplies both by (kp - 1)/(k - 1): {_excess(2, 1000):.2f}, "
            f"{_excess(10, 1000):.2f} and {_excess(100, 1000):.2f} at 1,000 people.",
        ),
        settings=(
            ("values", ", ".join(map(str, _VALUES))),
            ("probability of the truth p", ", ".join(f"{p:g}" for p in truths)),
        ),
        tables=tuple(_ratios(p) for p in truths),
        charts=tuple(
            _both(
                f"exact-and-approximate-{p:g}", f"Exact and approximate, p = {p:g}", people, dict.fromkeys(_VALUES, p)
            )
            for p in truths
        ),
        warnings=(_NO_BOUND,),
        citations=(QIF.at("Figure 7"), QIF.at("Theorem 22"), _RAAB),
    )


_NO_BOUND: Final = Warned(
    key="approximation",
    sentence="The approximation is no bound: it errs to either side.",
    advice="Use qif.vulnerability, which is exact and as fast, wherever a figure matters.",
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


def _ratio(k: int, p: float, n: int) -> float:
    return _approximate(k, p, n) / guessed(k, p, n).upper


def _excess(k: int, n: int) -> float:
    """Return approximate over exact V - 1/k; the same for every p."""
    return (_approximate(k, 1.0, n) - 1 / k) / (guessed(k, 1.0, n).upper - 1 / k)


def _factor(k: int) -> float:
    return math.sqrt(2 * math.log(k)) / normal_maximum(k)


def _better(k: int, n: int) -> float:
    return 1 / k + normal_maximum(k) / math.sqrt(n * k)


def _better_error(k: int, n: int) -> float:
    exact = guessed(k, 1.0, n).upper
    return abs(_better(k, n) / exact - 1)


def _both(key: str, title: str, people: list[int], truths: dict[int, float]) -> Chart:
    pairs = [
        (
            Series.through(f"{k} values, exact", people, [guessed(k, p, n) for n in people]),
            Series.through(f"{k} values, approximate", people, [_approximate(k, p, n) for n in people]),
        )
        for k, p in truths.items()
    ]
    return Chart(
        key=key,
        title=title,
        caption="Somebody who knows nobody guesses one person's answer.",
        x_label="people",
        y_label=_RIGHT,
        series=tuple(series for pair in pairs for series in pair),
        x_log=True,
        y_log=True,
    )


def _ratios(p: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for k in (*_VALUES, 1000):
        for n in (10, 100, 1000, 10**6):
            exact = guessed(k, p, n)
            excess = (_approximate(k, p, n) - 1 / k) / (exact.upper - 1 / k)
            cells = (exact, _approximate(k, p, n), f"{_ratio(k, p, n):.4f}", f"{excess:.3f}")
            rows.append((k, n, *cells))
    return Table(
        key=f"ratios-{p:g}",
        title=f"Approximate against exact, {f'p = {p:g}' if p < 1 else 'no noise'}",
        caption="Ratio: approximate divided by exact. Ratio of the gain: the same for V - 1/k.",
        columns=("values", "people", "exact", "approximate", "ratio", "ratio of the gain"),
        rows=tuple(rows),
    )


_LIMITS: Final = (
    Target(
        name="jurado2023/figure-6",
        title="The shuffle alone: the approximation for many people against exact values",
        build=shuffle_limit,
        seconds=2.0,
    ),
    Target(
        name="jurado2023/figure-7",
        title="Noise and shuffle: the approximation for many people against exact values",
        build=noise_limit,
        seconds=2.0,
    ),
)


TARGETS: Final = (*_CHANNELS, *_LIMITS)
