"""How accurate the mean of numbers will be, and what bounds and levels do to it."""

from __future__ import annotations

from hushuffle.estimation.numbers import mean_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import NumberGrid, Table


def number_table(protocol: Protocol, grid: NumberGrid) -> Table:
    """Return the expected error of the mean of n numbers on a grid, in their unit and relative to the bounds.

    Raises:
        UnsupportedProtocolError: the randomizer's reports say nothing about numbers.

    >>> from hushuffle import RandomizedResponse, UniformShuffle
    >>> survey = Protocol(randomizer=RandomizedResponse(k=11, epsilon=3.0), shuffler=UniformShuffle(), n=10_000)
    >>> number_table(survey, NumberGrid(low=0, high=100, levels=11)).rows[0][0]
    'standard error of the mean, at most'
    """
    error = mean_error(protocol, grid=grid)
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
