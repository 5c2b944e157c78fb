"""Compute the accuracy of a reach study (with Bloom filters): estimates, and predicted and measured errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.assessment.reach.privacy import Design
from hushuffle.assessment.trials import deviation
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.estimation.column_views import planned_people
from hushuffle.estimation.contacts import planned_frequencies
from hushuffle.estimation.reach import Reach, exclusive, overlap, planned, reach
from hushuffle.estimation.reach_questions import ReachQuestion, answered, people_with, questions_of
from hushuffle.mechanisms.column_views import ColumnCounts, ColumnViews
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.sketches import align, logo_counts
from hushuffle.model import Cell, Histogram, Table, number
from hushuffle.randomness import Randomness, reproducible, secure
from hushuffle.specification import Audiences
from hushuffle.specification.specification import Run

_ASK: Final = {"reach": reach, "overlap": overlap, "exclusive": exclusive}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The results for one question, in people.

    `predicted`: standard error of the estimate. `refused`: the reason if no estimate is possible, else "". `estimate`:
    that of the shown run. `measured`: root mean square error over all runs, and `z` its difference from the prediction
    in standard deviations (None: the study was not run, or a run gave no answer).
    """

    asked: ReachQuestion
    truth: float
    predicted: float
    refused: str = ""
    estimate: Reach | None = None
    measured: float | None = None
    z: float | None = None


def figures(audiences: Audiences, design: Design, *, run: Run, progress: Callable[[float], None]) -> tuple[Figure, ...]:
    """The results for every question, from a single run or `run.repetitions` runs of the study.

    Every run draws new uniform hash positions for the people and new flips, so measured and predicted errors are both
    over hash functions and flips. If the publishers' files are given, the run that the report shows uses their filters.
    """
    plan = planned_figures(audiences, design, questions_of(design.names, design.views))
    answerable = [figure.asked for figure in plan if not figure.refused]
    rng: Randomness = secure() if run.seed == "secure" else reproducible(int(run.seed))
    shown = None if audiences.filters is None else _answers(_observed(audiences, design, rng), answerable, design)
    runs = []
    for done in range(run.repetitions):
        runs.append(_answers(released(audiences.people, design, rng), answerable, design))
        progress((done + 1) / run.repetitions)
    shown = shown or (runs[0] if runs else {})
    return tuple(
        _with_runs(figure, shown.get(figure.asked), [each.get(figure.asked) for each in runs]) for figure in plan
    )


def released(people: npt.NDArray[np.int64], design: Design, rng: Randomness) -> Histogram | ColumnCounts:
    """Column counts of one simulated study, in which each person sets bits at uniform positions."""
    sets = np.repeat(np.arange(people.size), people * design.hashes)
    positions = rng.integers(design.bits, sets.size)
    if design.views is not None and any(view.shows == "contacts" for view in design.views.views):
        counts = (np.bincount(positions[sets >> bit & 1 == 1], minlength=design.bits) for bit in range(design.filters))
        return design.views.release(np.stack([each.astype(np.uint16) for each in counts], axis=1), rng=rng)
    patterns = np.zeros(design.bits, dtype=np.int64)
    np.bitwise_or.at(patterns, positions, sets)
    if design.views is not None:
        return design.views.release(patterns, rng=rng)
    # Counts do not depend on the order of the columns, so the columns are not shuffled.
    flipped = design.protocol.randomizer.randomize(patterns, rng=rng)
    return Histogram(counts=np.bincount(flipped, minlength=people.size))


def table(figures: tuple[Figure, ...], design: Design, *, target: float | None, confidence: float) -> Table:
    """True and estimated numbers with their errors, for the questions that have an estimate."""
    rows = [figure for figure in figures if not figure.refused]
    columns: list[tuple[str, list[Cell]]] = [
        ("Audience", [figure.asked.label for figure in rows]),
        ("True", [round(figure.truth) for figure in rows]),
    ]
    if any(figure.estimate is not None for figure in rows):
        estimates = [figure.estimate for figure in rows]
        columns += [
            ("Estimate", ["" if one is None else round(one.estimate) for one in estimates]),
            ("Interval", ["" if one is None else replace(one.interval(confidence), unit="") for one in estimates]),
        ]
    columns.append(("Predicted error", [_rough(figure.predicted) for figure in rows]))
    if any(figure.measured is not None for figure in rows):
        columns += [
            ("Measured error", ["" if figure.measured is None else _rough(figure.measured) for figure in rows]),
            ("z", ["" if figure.z is None else f"{figure.z:.2f}" for figure in rows]),
        ]
    several = (
        'Rows with "alone" count people in only this audience; rows with "and" count people in all of these. '
        if design.filters > 1
        else ""
    )
    return Table(
        key="reach",
        title="Reach and overlaps, in people",
        caption=(
            f"{verdict(figures, target)}{several}Errors are standard errors over hash functions and noise; z is the "
            "difference of the measured and the predicted mean square error, in standard deviations."
        ),
        columns=tuple(heading for heading, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
    )


def relative_error(figures: tuple[Figure, ...]) -> float | None:
    """Predicted standard error of total reach, divided by total reach; None if there is no estimate."""
    return None if figures[0].refused else figures[0].predicted / figures[0].truth


def verdict(figures: tuple[Figure, ...], target: float | None) -> str:
    """A sentence on whether the accuracy target is met ("" without a target)."""
    if target is None:
        return ""
    relative = relative_error(figures)
    size = "unknown" if relative is None else number(relative)
    met = relative is not None and relative <= target
    word = "met" if met else "missed"
    return f"Target {word}: the predicted error of the total reach is {size} of the reach; the target is {target:g}. "


def planned_figures(audiences: Audiences, design: Design, queries: Sequence[ReachQuestion]) -> tuple[Figure, ...]:
    """The predicted results for questions, without a run of the study."""
    people, sets = audiences.people, np.flatnonzero(audiences.people)
    held = people[sets]

    @cache
    def union(publishers: tuple[int, ...]) -> float:
        return float(held[sets & sum(1 << each for each in publishers) != 0].sum())

    def answer(query: ReachQuestion) -> Reach:
        question, who = query.question, query.publishers
        if question == "contacts":
            return people_with(planned_frequencies(_views(design), _by_contacts(sets, held, design)), query)
        if design.views is None:
            return planned(people, protocol=design.protocol, question=question, publishers=who, hashes=design.hashes)
        return planned_people(design.views, question, reach=union, publishers=who)

    results = []
    for query in queries:
        try:
            plan = answer(query)
        except (NumericalError, UnsupportedProtocolError) as error:
            results.append(Figure(asked=query, truth=0.0, predicted=0.0, refused=str(error)))
            continue
        results.append(Figure(asked=query, truth=plan.estimate, predicted=plan.standard_error))
    return tuple(results)


def _by_contacts(sets: npt.NDArray[np.int64], held: npt.NDArray[np.int64], design: Design) -> list[float]:
    """Return how many people have 1, 2, ... contacts (the last: that many or more): each audience is one contact."""
    view = next(view for view in _views(design).views if view.most is not None)
    numbers = np.minimum(np.bitwise_count(sets & sum(1 << each for each in view.publishers)), view.cells - 1)
    return [float(count) for count in np.bincount(numbers, weights=held, minlength=view.cells)[1:]]


def _views(design: Design) -> ColumnViews:
    assert design.views is not None  # only views show contacts
    return design.views


def _answers(
    counts: Histogram | ColumnCounts, wanted: list[ReachQuestion], design: Design
) -> dict[ReachQuestion, Reach]:
    """The estimates by question; questions without an estimate in this run are left out."""
    answers: dict[ReachQuestion, Reach] = {}
    for each in wanted:
        with suppress(NumericalError):
            if isinstance(counts, ColumnCounts):
                answers[each] = answered(counts, each)
            elif each.question != "contacts":
                ask = _ASK[each.question]
                answers[each] = ask(counts, protocol=design.protocol, publishers=each.publishers, hashes=design.hashes)
    return answers


def _observed(audiences: Audiences, design: Design, rng: Randomness) -> Histogram | ColumnCounts:
    """Return the column counts of the publishers' filters: with dummies, or after each filter is flipped once."""
    assert audiences.filters is not None
    if design.views is not None:
        return design.views.release(align(audiences.filters), rng=rng)
    flips = BitFlipping(width=1, p=design.p)
    return logo_counts([each.flip(randomizer=flips, rng=rng) for each in audiences.filters])


def _with_runs(figure: Figure, shown: Reach | None, runs: list[Reach | None]) -> Figure:
    answered = [each.estimate for each in runs if each is not None]
    if not answered or len(answered) < len(runs):
        return replace(figure, estimate=shown)
    squares = np.array([np.sum((np.array(answered) - figure.truth) ** 2)])
    z = deviation(squares, np.array([figure.predicted]), len(answered))
    return replace(figure, estimate=shown, measured=float(np.sqrt(squares[0] / len(answered))), z=float(z[0]))


def _rough(value: float) -> float:
    """Return `value` with three significant digits."""
    return float(f"{value:.3g}")
