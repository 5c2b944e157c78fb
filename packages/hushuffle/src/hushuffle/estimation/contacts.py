"""How often people were reached, from the view of columns that counts contacts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Floats
from hushuffle.errors import NumericalError
from hushuffle.estimation.column_views import WEAKEST
from hushuffle.mechanisms.column_views import ColumnCounts, ColumnView, ColumnViews


@dataclass(frozen=True, kw_only=True, eq=False)
class Frequencies:
    """Estimated numbers of people with 1, 2, ..., `most` contacts (the last: `most` or more), with standard errors.

    Estimates and errors have shape (most,). Estimates are not clipped.
    """

    estimates: Floats
    standard_errors: Floats
    publishers: tuple[int, ...]


def frequencies(counts: ColumnCounts) -> Frequencies:
    """Return how many people had 1, 2, ... contacts, from the view "contacts" with the largest number of contacts.

    Entries of people with one column add up. The people of each column are about Poisson, so the generating function of
    the columns' contacts is e**(rate (phi(x) - 1)), phi that of a person; its logarithm gives the people.

    Raises:
        UnsupportedProtocolError: no released view shows contacts.
        NumericalError: too few columns are empty, or the noise is too large.

    Source: docs/theory/histograms.md, Corollary 11.

    >>> import hushuffle as hs
    >>> view = hs.ColumnView(publishers=(0,), shows="contacts", most=2, each=hs.DummyLaw.of({0: 1.0}))
    >>> design = hs.ColumnViews(publishers=1, columns=1000, views=(view,))
    >>> frequencies(hs.ColumnCounts(design=design, counts=(np.array([800, 100, 100]),))).estimates.round(1).tolist()
    [125.0, 98.1]
    """
    place = _contacts(counts.design)
    view = counts.design.views[place]
    cells = counts.counts[place] - view.each.mean
    return _frequencies(counts.design, view, cells - (cells.sum() - counts.design.columns) / cells.size)


def planned_frequencies(design: ColumnViews, people: Sequence[float]) -> Frequencies:
    """Return the standard errors of `frequencies` if people[i] people have i + 1 contacts (the last entry: or more).

    Raises:
        InvalidInputError, UnsupportedProtocolError, NumericalError: see `frequencies`; or `people` has another length.
    """
    view = design.views[_contacts(design)]
    sizes = np.asarray(people, dtype=np.float64)
    if sizes.shape != (view.cells - 1,):
        _checks.reject("people", f"numbers of people with 1 to {view.cells - 1} contacts", f"<shape {sizes.shape}>")
    rates = np.append(0.0, sizes * design.hashes / design.columns)
    chances = np.zeros(view.cells)
    chances[0] = math.exp(-rates.sum())
    for total in range(1, view.cells - 1):
        parts = np.arange(1, total + 1)
        chances[total] = float(parts * rates[parts] @ chances[total - parts]) / total
    chances[-1] = 1 - chances[:-1].sum()
    return _frequencies(design, view, design.columns * chances)


def _contacts(design: ColumnViews) -> int:
    shown = [place for place, view in enumerate(design.views) if view.shows == "contacts"]
    if not shown:
        _checks.unsupported('No released view shows contacts. Plan a ColumnView with shows="contacts".')
    return max(shown, key=lambda place: design.views[place].cells)


def _frequencies(design: ColumnViews, view: ColumnView, cells: Floats) -> Frequencies:
    """Return the frequencies from estimated counts of columns by their contacts, which sum to the columns."""
    m, size = design.columns, cells.size
    q = cells / m
    error = math.sqrt(view.each.variance * (1 - 1 / size) + max(cells[0] * (1 - q[0]), 0.0))
    if not cells[0] > WEAKEST * error:
        message = (
            f"An estimated {cells[0]:,.0f} of {m:,} columns have no contact, with standard error {error:,.0f}: too "
            "few. Use more columns or less noise."
        )
        raise NumericalError(message)
    inverse, logs = np.zeros(size - 1), np.zeros(size - 1)
    inverse[0], logs[0] = 1 / q[0], math.log(q[0])
    for total in range(1, size - 1):
        parts = np.arange(1, total + 1)
        inverse[total] = -float(q[parts] @ inverse[total - parts]) / q[0]
        earlier = np.arange(1, total)
        logs[total] = (q[total] - float(earlier * logs[earlier] @ q[total - earlier]) / total) / q[0]
    slopes = np.zeros((size, size))  # of the logarithm's coefficients, by q; the last cell has none
    for total in range(size - 1):
        slopes[total, : total + 1] = inverse[total::-1]
    turned = np.eye(size)[1:]
    turned[-1] = -1.0  # most or more: all people without those who have 1 to most - 1 contacts
    scale = m / design.hashes
    estimates, by_cell = scale * turned @ np.append(logs, 0.0), turned @ slopes / design.hashes
    mean = by_cell @ q
    collisions = (by_cell**2 @ cells) - m * mean**2 - np.maximum(estimates, 0.0) / design.hashes
    noise = view.each.variance * ((by_cell**2).sum(axis=1) - by_cell.sum(axis=1) ** 2 / size)
    errors = np.sqrt(np.maximum(collisions, 0.0) + noise)
    return Frequencies(estimates=estimates, standard_errors=errors, publishers=view.publishers)
