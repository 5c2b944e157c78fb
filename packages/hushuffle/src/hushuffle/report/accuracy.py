"""The predicted and the measured error, in words and as a table, with the same content in every output format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hushuffle.model import Population, Utility, number
from hushuffle.report.formatting import decimals, fixed, plain, plural, short

MOST_ROWS = 30
# The probability, over all values together, that some z exceeds its threshold by chance.
_FALSE_ALARM = 0.01


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table: a heading, a short heading for narrow output, and the text of the cells."""

    heading: str
    short: str
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Texts and table on utility: `rows` are the codes of the values shown, `more` the number of those not shown."""

    sentences: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[int, ...]
    more: int
    order: str


def accuracy(population: Population, utility: Utility, *, most: int = MOST_ROWS) -> Accuracy:
    rows, order = _rows(population, utility, most)
    columns = _columns(population, utility, rows)
    return Accuracy(
        sentences=tuple(_sentences(population, utility)),
        columns=columns,
        rows=tuple(rows) if columns else (),
        more=len(population.labels) - len(rows) if columns else 0,
        order=order,
    )


def true_shares(population: Population) -> npt.NDArray[np.float64] | None:
    """Return the true frequencies, shape (k,); None without data."""
    return None if population.counts is None else np.array(population.counts) / population.n


def _rows(population: Population, utility: Utility, most: int) -> tuple[list[int], str]:
    """Return the codes of the values to show, and a description in words of their selection and order."""
    k = len(population.labels)
    shares = true_shares(population)
    if k <= most:
        return list(range(k)), ""
    if shares is not None:
        weight, order = shares, "the most frequent ones"
    elif utility.estimate is not None:
        weight, order = utility.estimate.frequencies, "the values with the largest estimates"
    else:
        weight, order = utility.predicted, "the values with the largest predicted errors"
    return np.argsort(-weight, kind="stable")[:most].tolist(), order


def _columns(population: Population, utility: Utility, rows: list[int]) -> tuple[Column, ...]:
    shares, estimate, predicted = true_shares(population), utility.estimate, utility.predicted
    if shares is None and estimate is None and utility.measured is None and np.ptp(predicted) == 0:
        return ()
    places = decimals(predicted)

    def numbers(heading: str, short: str, values: npt.NDArray[np.float64] | None) -> list[Column]:
        if values is None:
            return []
        return [Column(heading=heading, short=short, cells=tuple(fixed(float(values[row]), places) for row in rows))]

    columns = [Column(heading="Value", short="Value", cells=tuple(plain(population.labels[row]) for row in rows))]
    columns += numbers("True share", "True\nshare", shares)
    if estimate is not None:
        ends = estimate.interval(utility.confidence)
        cells = tuple(f"{fixed(ends[row, 0], places)} to {fixed(ends[row, 1], places)}" for row in rows)
        columns += numbers("Estimate", "Estimate", estimate.frequencies)
        columns += [Column(heading=f"{utility.confidence:.0%} interval", short="Interval", cells=cells)]
    columns += numbers("Predicted error", "Standard error\npredicted", predicted)
    columns += numbers("Measured error", "Standard error\nmeasured", utility.measured)
    if utility.z is not None:
        columns += [Column(heading="z", short="Deviation\nz", cells=tuple(fixed(z, 2) for z in utility.z[rows]))]
    return tuple(columns)


def _sentences(population: Population, utility: Utility) -> Iterator[str]:
    """Yield the predicted and the measured error, whether chance explains their difference, and remarks."""
    where = "at the shares in the data" if population.counts is not None else "at the worst possible share"
    size = _range(utility.predicted, ", depending on the value")
    yield f"The predicted standard error of an estimated share, {where}, is {size}."
    if utility.measured is not None:
        runs = plural(utility.repetitions, "run")
        yield f"The measured error (root mean square over {runs}) is {_range(utility.measured)}."
    if utility.z is not None:
        worst, k = int(np.argmax(np.abs(utility.z))), utility.z.size
        largest, threshold = float(utility.z[worst]), NormalDist().inv_cdf(1 - _FALSE_ALARM / (2 * k))
        agree = "Measured and predicted errors agree"
        if abs(largest) > threshold:
            agree = "Measured and predicted errors differ significantly: do not rely on the predicted errors"
        yield (
            f"{agree}. The largest deviation z is {fixed(largest, 2)} (for {_quoted(population, worst)}): the "
            "difference of measured and predicted mean square error, in standard deviations. By chance, one in a "
            f"hundred assessments of {plural(k, 'value')} exceeds {threshold:.1f}."
        )
    shares, estimate = true_shares(population), utility.estimate
    if estimate is not None and shares is not None:
        errors = np.abs(estimate.frequencies - shares)
        worst = int(np.argmax(errors))
        yield (
            f"In the run shown, the largest error of an estimated share is {number(float(errors[worst]), up=True)} "
            f"(for {_quoted(population, worst)})."
        )
    if estimate is not None and estimate.postprocessing:
        done = ", then ".join(plain(step) for step in estimate.postprocessing)
        yield f"The estimates were post-processed ({done}); the intervals are not."
    if estimate is not None and estimate.postprocessing == () and float(estimate.frequencies.min()) < 0:
        yield "An unbiased estimate of a small share may be below 0."
    if population.counts is not None:
        yield (
            "The true shares come from the data and are not protected: "
            "show this report only to those who may see the data."
        )


def _range(errors: npt.NDArray[np.float64], end: str = "") -> str:
    low, high = number(float(errors.min())), number(float(errors.max()))
    return low if low == high else f"{low} to {high}{end}"


def _quoted(population: Population, value: int) -> str:
    return f'"{short(population.labels[value])}"'
