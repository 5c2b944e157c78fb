"""Flipped and shuffled Bloom filters: the paper's figures on the signal-to-noise ratio, and where its claim fails."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from hushuffle._checks import Floats
from hushuffle.model import Cell, HeatMap, Report, Series, Table, number
from hushuffle.questions.bloom import transition as snr
from hushuffle.questions.bloom.transition import BUFFLING
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.diagram import LabelRelation, drawn

_BITS: Final = 1000
_SKEWS: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_SHOWN: Final = (0.0, 0.5, 0.9, 1.0)
_NOISES: Final = (0.02, 0.05, 0.1, 0.2, 0.3)
_SAME: Final = 1e-9
_CLOSE: Final = 0.9
"""Coefficients count as a pattern if their correlation with the pattern is at least this value."""
_FAMILY: Final = "The study generates its own inputs, because the paper prints neither inputs nor flip probabilities."
_SETTINGS: Final = (
    ("bits", f"{_BITS:,}: the ratio is proportional to 1/bits, so that nothing here depends on it"),
    (
        "inputs",
        "columns with |i| ones in proportion to (1 - s)**|i|: s = 0 uniform, s = 1 all empty; the paper's own family "
        "is in a document it does not print",
    ),
    ("ratio", "squared shift of the mean over the variance; the paper writes standard deviation for the variance"),
)


@target("buffling/figure-1", "Organization of the package")
def figure_1(_request: Request) -> Report:
    parts = (
        ("part I", "signal_to_noise_ratio", "questions.bloom.snr", "figures 2 to 4"),
        ("part II", "privacy", "questions.bloom.evaluate_privacy_for_one_bloom_filter", "part-2"),
        ("part III", "privacy", "questions.bloom.evaluate_privacy_for_bloom_filter, estimate_flip_prob", "part-3"),
    )
    return study(
        "Organization of the package",
        "Which part of the package uses which?",
        "The figure has no numbers. Part I chooses the pair of datasets of part III, which generalizes part II.",
        drawn(
            "parts",
            "Parts of the package",
            "",
            {"part I": (0.0, 0.0), "part II": (0.0, 1.0), "part III": (2.0, 0.5)},
            (
                LabelRelation("part I", "part III", "arrow", "worst pair"),
                LabelRelation("part II", "part III", "arrow", "generalizes to"),
            ),
        ),
        Table(
            key="parts",
            title="Parts",
            caption="The modules of the paper's package, the functions here, and the studies that recompute them.",
            columns=("part", "module", "here", "studies"),
            rows=parts,
        ),
        citations=(BUFFLING,),
    )


@target(
    "buffling/figure-2", "Signal-to-noise ratio of one changed column, against the skewness of the input", seconds=2
)
def figure_2(request: Request, *, publishers: Sequence[int] = (2, 3, 4, 5)) -> Report:
    request.tell("ratios", 0.1)
    grows = {(k, p): _grows([_largest(k, p, s).ratio for s in _SKEWS]) for k in publishers for p in _NOISES}
    k = 3 if 3 in publishers else publishers[0]
    closed = max(abs(_largest(k, p, 1.0).ratio / snr.ratio_from_empty(k, bits=_BITS, p=p) - 1) for p in _NOISES)
    return study(
        "Signal-to-noise ratio against the skewness of the input",
        "Is one changed column more visible if the input is more skewed?",
        claim(
            "Observation 1",
            "The more skewed the input, the larger the ratio of the most visible change.",
            all(grows.values()),
            f"The ratio increases at every computed step of s, for {', '.join(map(str, publishers))} filters and "
            f"flip probabilities from {_NOISES[0]:g} to {_NOISES[-1]:g}.",
            quote="The SNR is increasing in the skewness of input logo-counts",
            stand_in=_FAMILY,
        ),
        f"From uniform to empty filters it grows by a factor of {number(_growth(k, 0.3), digits=2)} with p = 0.3, "
        f"and of {number(_growth(k, 0.02), digits=2)} with p = 0.02, for {k} filters.",
        f"For empty filters it is ((p^2/q + q^2/p)^k - 1)/m: closed form and linear system "
        f"{'agree to nine digits' if closed < _SAME else 'differ'}.",
        Table(
            key="growth",
            title="Largest ratio by filters, noise and skewness",
            caption=f"For {_BITS:,} columns.",
            columns=("Filters", "p", *(f"s = {s:g}" for s in _SHOWN)),
            rows=tuple((k, p, *(_largest(k, p, s).ratio for s in _SHOWN)) for k in publishers for p in _NOISES),
        ),
        chart(
            "skewness",
            f"Largest ratio over all changes, {k} filters",
            f"For {_BITS:,} columns; a ratio above 1 means a shift of more than one standard deviation.",
            ("skewness s of the input", "signal-to-noise ratio"),
            [Series.through(f"p = {p:g}", _SKEWS, [_largest(k, p, s).ratio for s in _SKEWS]) for p in _NOISES],
            log="y",
        ),
        settings=_SETTINGS,
        citations=(BUFFLING,),
    )


@target("buffling/figure-3", "Signal-to-noise ratio of any change of one column", seconds=2.5)
def figure_3(request: Request, *, publishers: Sequence[int] = (2, 3, 4, 5)) -> Report:
    request.tell("heat maps", 0.1)
    places = {(k, p): [s for s in _SKEWS if not _at_ends(k, p, s)] for k in publishers for p in _NOISES}
    elsewhere = [(k, p) for k, p in places if places[k, p]]
    costs = {(k, p): max(_excess(k, p, s) for s in _SKEWS) for k, p in elsewhere}
    three = {p: [s for s in _SKEWS if not _at_ends(3, p, s)] for p in _NOISES}
    held = [p for p, wrong in three.items() if not wrong]
    missed = {p: [f"{s:g}" for s in dict.fromkeys((wrong[0], wrong[-1]))] for p, wrong in three.items() if wrong}
    plain = all(_at_ends(k, p, s) for k, p in places for s in (0.0, 1.0))
    from_others = all(
        after == (1 << k) - 1 for k, p in elsewhere for s in places[k, p] for _, after in _largest(k, p, s).changes
    )
    settings = [(3, 0.1, s) for s in (0.0, 0.5, 0.9, 1.0)] + [(3, 0.02, 0.7), (4, 0.05, 0.8)]
    return study(
        "Signal-to-noise ratio of any change of one column",
        "Is the change from 0...0 to 1...1 always the most visible one?",
        claim(
            "Observation 2",
            "For three filters and a given input the change from 0...0 to 1...1 is the most visible one.",
            len(held) == len(three) or (None if held else False),
            "That change is the most visible one at every tested skewness with p = "
            + ", ".join(f"{p:g}" for p in held)
            + "".join(f"; with p = {p:g} it is not at skewness {' to '.join(ends)}" for p, ends in missed.items())
            + ".",
            quote="Fixing the input logo-counts D as described above, the SNR is maximized at the incremental change",
            reason="It depends on the flip probability, and the paper does not print its own."
            if held and missed
            else "",
            stand_in=_FAMILY,
        ),
        claim(
            "part I, conclusion",
            "The largest ratio of all is that of empty filters, changed from 0...0 to 1...1.",
            plain and all(_grows([_largest(k, p, s).ratio for s in _SKEWS]) for k, p in places),
            "Of the inputs of this study it is largest if all filters are empty, for "
            f"{', '.join(map(str, publishers))} filters.",
            quote="The maximal SNR occurs for the following two differentiate sets",
            reason="It holds for every input and flip probability: the ratio is convex in the input, so that it is "
            "largest where all columns are equal, and there the change to the opposite column is the most visible one.",
        ),
        "The change from 0...0 to 1...1 is not always the most visible one. For skewed inputs between uniform and "
        f"empty ones another change is more visible in {len(elsewhere)} of the {len(places)} combinations of "
        f"filters and noise.{' That change also ends at 1...1, but starts elsewhere.' if from_others else ''}",
        *(
            f"The difference is small: the largest ratio is at most {number(most, up=True)} times that of 0...0 to "
            f"1...1 in these cases (reached by {k} filters with p = {p:g})."
            for (k, p), most in sorted(costs.items(), key=lambda item: -item[1])[:1]
        ),
        "The paper concludes from this figure that the pair of datasets (all empty; one column full) is the worst. "
        "Privacy is another question than this ratio: see buffling/figure-3-worst-pairs.",
        _places_table(publishers),
        *(_heat_map(*each) for each in settings),
        settings=_SETTINGS,
        citations=(BUFFLING,),
    )


@target("buffling/figure-4", "Coefficients that read one changed column best", seconds=1)
def figure_4(request: Request) -> Report:
    request.tell("coefficients", 0.1)
    k, p = 3, 0.1
    logos = range(1 << k)
    coefficients = {s: _coefficients(k, p, s) for s in _SHOWN}
    closed = np.array([((1 - p) / p) ** (2 * logo.bit_count() - k) for logo in logos])
    centred = closed - closed.mean()
    off = float(np.abs(coefficients[1.0] - centred / np.linalg.norm(centred)).max())
    alike = {s: [_likeness(k, noise, s) for noise in _NOISES] for s in (1.0, 0.5, 0.0)}
    close = [min(line) > _CLOSE for line in alike.values()]
    return study(
        "Coefficients that read one changed column best",
        "Do the best coefficients concentrate at 1...1, in proportion to (s, ..., s, -1)?",
        claim(
            "Observation 3",
            "For a given input the best coefficients concentrate at 1...1, in proportion to (s, ..., s, -1).",
            all(close) or (None if any(close) else False),
            f"From p = {_NOISES[0]:g} to {_NOISES[-1]:g} their correlation with that pattern falls "
            + ", ".join(f"from {line[0]:.3f} to {line[-1]:.3f} at skewness {s:g}" for s, line in alike.items())
            + ". At skewness 1 all filters are empty, at 0 the input is uniform.",
            reason=f"A correlation of {_CLOSE:g} counts as the pattern: this study's mark. The input decides.",
            quote='the SNR maximizing coefficient c "concentrates" proportional to (s, s, ..., s, -1)',
            stand_in=_FAMILY,
        ),
        "For a uniform input the coefficients of 0...0 and 1...1 are equal and opposite, by symmetry.",
        "For empty filters the best coefficients are (q/p)^(2|i| - k) plus a constant, |i| being the ones in i "
        f"({'checked to nine digits' if off < _SAME else 'not found here'}): a factor of (q/p)^2 for each further "
        "one, which the pattern rounds to all or nothing.",
        Table(
            key="coefficients",
            title=f"Best coefficients of the statistic by column, {k} filters, p = {p:g}",
            caption="Each is defined up to a factor and a constant; signs are those of the change 0...0 to 1...1.",
            columns=("Column", *(f"s = {s:g}" for s in _SHOWN)),
            rows=tuple((_bits(logo, k), *(round(float(coefficients[s][logo]), 4) for s in _SHOWN)) for logo in logos),
        ),
        Table(
            key="likeness",
            title="Correlation of the best coefficients with (s, ..., s, -1)",
            caption="1 is the pattern itself.",
            columns=("Skewness", *(f"p = {noise:g}" for noise in _NOISES)),
            rows=tuple(
                (s, *(round(_likeness(k, noise, s), 4) for noise in _NOISES)) for s in (0.0, 0.5, 0.9, 0.99, 1.0)
            ),
        ),
        chart(
            "coefficients",
            f"Best coefficients, {k} filters, p = {p:g}",
            "The axis shows a column as a number: 0 is 000, 7 is 111.",
            ("column", "coefficient"),
            [Series.through(f"s = {s:g}", logos, coefficients[s].tolist()) for s in _SHOWN],
        ),
        settings=(*_SETTINGS, ("filters, p", f"{k}, {p:g} unless stated"), ("scale", "sum 0, length 1")),
        citations=(BUFFLING,),
    )


def _largest(k: int, p: float, s: float) -> snr.LargestRatio:
    return snr.largest(snr.skewed_counts(k, bits=_BITS, skewness=s), p=p)


def _grows(values: Sequence[float]) -> bool:
    return all(after > before * (1 + _SAME) for before, after in pairwise(values))


def _growth(k: int, p: float) -> float:
    return _largest(k, p, 1.0).ratio / _largest(k, p, 0.0).ratio


def _at_ends(k: int, p: float, s: float) -> bool:
    """Return whether the change from 0...0 to 1...1 has the largest ratio, or a ratio equal to it."""
    return (0, (1 << k) - 1) in _largest(k, p, s).changes


def _ratios(k: int, p: float, s: float) -> Floats:
    return snr.ratios(snr.skewed_counts(k, bits=_BITS, skewness=s), p=p)


def _excess(k: int, p: float, s: float) -> float:
    table = _ratios(k, p, s)
    return float(table.max() / table[0, -1])


def _coefficients(k: int, p: float, s: float) -> Floats:
    return snr.coefficients(snr.skewed_counts(k, bits=_BITS, skewness=s), p=p, change=(0, (1 << k) - 1))


def _likeness(k: int, p: float, s: float) -> float:
    """Return the correlation of the best coefficients with the indicator of 1...1."""
    pattern = np.zeros(1 << k)
    pattern[-1] = 1.0
    return float(np.corrcoef(_coefficients(k, p, s), pattern)[0, 1])


def _bits(logo: int, k: int) -> str:
    return format(logo, f"0{k}b")


def _places_table(publishers: Sequence[int]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for k in publishers:
        for p in _NOISES:
            wrong = [s for s in _SKEWS if not _at_ends(k, p, s)]
            worst = max(_SKEWS, key=lambda s, k=k, p=p: _excess(k, p, s))  # type: ignore[misc]
            before, after = _largest(k, p, worst).changes[0]
            where = f"s = {wrong[0]:g} to {wrong[-1]:g}" if wrong else "nowhere"
            change = f"{_bits(before, k)} to {_bits(after, k)}" if wrong else ""
            rows.append((k, p, where, change, _excess(k, p, worst)))
    return Table(
        key="places",
        title="Settings in which another change than 0...0 to 1...1 has the largest ratio",
        caption="Last column: the largest ratio divided by that of 0...0 to 1...1, over all tested skewness values.",
        columns=("Filters", "p", "Elsewhere for", "For example", "Ratio of ratios"),
        rows=tuple(rows),
    )


def _heat_map(k: int, p: float, s: float) -> HeatMap:
    names = tuple(_bits(logo, k) for logo in range(1 << k))
    change = " and ".join(f"{_bits(before, k)} to {_bits(after, k)}" for before, after in _largest(k, p, s).changes[:2])
    return HeatMap(
        key=f"k{k}-p{p:g}-s{s:g}",
        title=f"{k} filters, p = {p:g}, skewness s = {s:g}",
        caption=f"Largest at {change}, and back.",
        x_label="column after",
        y_label="column before",
        x=names,
        y=names,
        values=tuple(map(tuple, _ratios(k, p, s).tolist())),
    )
