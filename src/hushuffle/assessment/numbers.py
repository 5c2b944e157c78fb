"""How accurate the mean of numbers will be, and what bounds and levels do to it."""

from __future__ import annotations

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import NumberGrid, Table, number


def described(
    protocol: Protocol, grid: NumberGrid | None, *, error: float | None = None, reports_per_person: int = 1
) -> str:
    """Return the deployment in plain sentences; of numbers also how they become values, and the error of their mean.

    `error` is that of `mean_error`, where it is known.

    >>> from hushuffle import RandomizedResponse, UniformShuffle
    >>> survey = Protocol(randomizer=RandomizedResponse(k=11, epsilon=3.0), shuffler=UniformShuffle(), n=10_000)
    >>> print(described(survey, NumberGrid(low=0, high=100, levels=11), error=0.4848).split("; ")[2])
    numbers outside count as the nearer bound. Standard error of the mean: at most 0.4848.
    """
    sentence = protocol.describe(reports_per_person=reports_per_person)
    if grid is None:
        return sentence
    of_mean = "" if error is None else f" Standard error of the mean: at most {number(error, up=True)}."
    return (
        f"{sentence} Values are {grid.levels:,} levels, {grid.step:.4g} apart, to which a coin rounds numbers from "
        f"{grid.low:g} to {grid.high:g}; numbers outside count as the nearer bound.{of_mean}"
    )


def number_table(error: float, grid: NumberGrid) -> Table:
    """Return the expected error of the mean of numbers on a grid, in their unit and relative to the bounds.

    `error` is that of `mean_error`.

    >>> number_table(0.5, NumberGrid(low=0, high=100, levels=11)).rows[0]
    ('standard error of the mean, at most', 0.5)
    """
    return Table(
        key="mean-of-numbers",
        title="The mean of the numbers",
        caption=(
            f"Numbers from {grid.low:g} to {grid.high:g}, rounded by a coin to one of {grid.levels:,} levels. Bounds "
            "twice as far apart make the error twice as large; numbers outside count as the nearer bound, which moves "
            "the mean."
        ),
        columns=("figure", "value"),
        rows=(
            ("standard error of the mean, at most", error),
            ("the same, relative to the distance of the bounds", error / (grid.high - grid.low)),
            ("step between two levels", grid.step),
        ),
    )
