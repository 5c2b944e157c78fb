"""Describe the accuracy of an estimated mean of numbers, and how bounds and levels affect it."""

from __future__ import annotations

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import NumberGrid, Table, number


def described(
    protocol: Protocol, grid: NumberGrid | None, *, error: float | None = None, reports_per_person: int = 1
) -> str:
    """The deployment in words; for numbers, with the rounding to levels and the standard error of the mean.

    `error` is the result of `mean_error`, if known.

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
        f"{sentence} Numbers from {grid.low:g} to {grid.high:g} are rounded stochastically to {grid.levels:,} levels, "
        f"{grid.step:.4g} apart; numbers outside count as the nearer bound.{of_mean}"
    )


def number_table(error: float, grid: NumberGrid) -> Table:
    """Standard error of the mean, `error` from `mean_error`, in its unit and relative to the bounds.

    >>> number_table(0.5, NumberGrid(low=0, high=100, levels=11)).rows[0]
    ('standard error of the mean, at most', 0.5)
    """
    return Table(
        key="mean-of-numbers",
        title="The mean of the numbers",
        caption=(
            f"Numbers from {grid.low:g} to {grid.high:g} are rounded stochastically to {grid.levels:,} levels. "
            "Doubling the distance doubles the error. Numbers outside count as the nearer bound and bias the mean."
        ),
        columns=("figure", "value"),
        rows=(
            ("standard error of the mean, at most", error),
            ("standard error of the mean, divided by the distance between the bounds", error / (grid.high - grid.low)),
            ("step between two levels", grid.step),
        ),
    )
