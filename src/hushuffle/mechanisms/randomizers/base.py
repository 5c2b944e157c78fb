"""`Mechanism`: what one person's device does. A sampler, the columns of its reports, and the law of one report."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import InvalidInputError, Problem, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers.settings import Table, refused
from hushuffle.model import Citation, Histogram

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers.report_law import ReportLaw, Support, Symmetric
    from hushuffle.model import Channel
    from hushuffle.model.report_layout import ReportLayout
    from hushuffle.randomness import Randomness

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BLOCK: Final = 1 << 16  # records per step: the working arrays stay in the processor's cache
_CELLS: Final = 1 << 22  # pairs of value and report looked at together


class Mechanism(_checks.ByName, ABC):
    """A local randomizer: from one person's value (0..k-1) to one report.

    A new mechanism is one file with a subclass: what is abstract here, and `supports` where frequencies can be
    estimated from how many reports support each value. Analyses, estimates and files then follow from `law` and
    `layout`; where they are slow, or a matrix would be too large, the law has closed forms to override.
    """

    sources: tuple[Citation, ...] = ()
    """Where the mechanism and its estimator come from."""

    table: ClassVar[Table | None] = None
    """How it is written in a specification; None if it cannot be."""

    besides_epsilon: str = ""
    """What else was chosen, and stays the same where another epsilon is tried: "number of buckets"."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Number of values a person may hold."""

    @property
    @abstractmethod
    def local_epsilon(self) -> float:
        """epsilon_0 in nats of the mechanism as implemented, rounded up; math.inf for no noise."""

    @property
    @abstractmethod
    def layout(self) -> ReportLayout:
        """The columns of its reports."""

    @abstractmethod
    def law(self) -> ReportLaw:
        """Return the law of one report."""

    @abstractmethod
    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        """Return one report for each value, shape (n,) or (n, columns), in the same order."""

    @abstractmethod
    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        """Return `count` reports drawn from the blanket, independent of every person."""

    @abstractmethod
    def describe(self) -> str:
        """Return the mechanism in a few plain words."""

    @property
    def is_vector(self) -> bool:
        """Whether reports can be added up: one-hot bits, or one number that stands for a vector with a single 1."""
        law = self.law()
        return law.one_hot is not None or (len(self.layout.names) == 1 and law.flipped is None)

    def channel(self) -> Channel:
        """Return Q(y|x) in floats, shape (inputs, outputs).

        Raises:
            UnsupportedProtocolError: it is too large.
        """
        return self.law().channel()

    def supports(self, reports: Integers, values: Integers) -> Flags:
        """Return whether each report speaks for each value, shape (values.size, reports.shape[0]).

        Raises:
            UnsupportedProtocolError: reports do not support values.
        """
        del reports, values
        _refuse(self, for_what="An estimate of frequencies", needs="reports that support values")

    def supported(self, reports: Integers) -> Integers:
        """Return how many of the values each report supports, shape (reports,)."""
        found = np.zeros(reports.shape[0], dtype=np.int64)
        together = max(1, _CELLS // max(found.size, 1))
        for start in range(0, self.inputs, together):
            found += self.supports(reports, np.arange(start, min(start + together, self.inputs))).sum(axis=0)
        return found

    @property
    def counted(self) -> int:
        """How many numbers `counts` returns."""
        return self.inputs if self.law().support is not None else self.channel().matrix.shape[1]

    def counts(self, reports: Integers) -> Histogram:
        """Return how many reports support each value, shape (counted,); counts of disjoint reports add up.

        Where reports do not support values it is how often each report of the matrix occurs.
        """
        if self.law().support is None:
            outputs = self.channel().outputs
            return Histogram(counts=np.bincount(_places(reports, outputs), minlength=len(outputs)))
        counts, values = np.zeros(self.inputs, dtype=np.int64), np.arange(self.inputs)
        together = max(1, _CELLS // self.inputs)
        for start in range(0, reports.shape[0], together):
            counts += self.supports(reports[start : start + together], values).sum(axis=1)
        return Histogram(counts=counts)

    def likelihoods(self, reports: Integers, values: Integers) -> npt.NDArray[np.float64]:
        """Return Q(report | value) up to a factor of each report, shape (values.size, reports.shape[0])."""
        support = self.law().support
        if support is not None:
            return np.where(self.supports(reports, values), support.inside, support.outside).astype(np.float64)
        channel = self.channel()
        return np.asarray(channel.matrix, dtype=np.float64)[np.ix_(values, _places(reports, channel.outputs))]

    def likelihood_totals(self, reports: Integers) -> npt.NDArray[np.float64]:
        """Return the sums of `likelihoods` over all values, shape (reports,)."""
        support = self.law().support
        if support is not None:
            return np.asarray(
                support.outside * self.inputs + (support.inside - support.outside) * self.supported(reports)
            )
        return np.asarray(self.likelihoods(reports, np.arange(self.inputs)).sum(axis=0))

    @classmethod
    def from_settings(cls, k: int, settings: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism for k values that the `settings` of a specification describe.

        Raises:
            InvalidInputError: they do not fit k.
        """
        build: Any = cls
        made: Mechanism = build(k=k, **settings)
        return made

    @classmethod
    def problems(cls, raw: Mapping[str, Any], k: int | None) -> Iterator[Problem]:
        """Yield what is wrong with a `table` as it is read, beyond types and limits of single values.

        `k` is None while the number of values is not known.
        """
        if cls.table is not None:
            yield from cls.table.broken(raw)
            settings = cls.table.given(raw)
            if k is not None and settings is not None:
                try:
                    cls.from_settings(k, settings)
                except InvalidInputError as error:
                    yield refused(error, cls.table)

    @property
    def chosen_epsilon(self) -> float | None:
        """The local epsilon (nats) that describes the mechanism; None if it is described by something else."""
        described = dataclasses.is_dataclass(self) and "epsilon" in {field.name for field in dataclasses.fields(self)}
        return getattr(self, "epsilon") if described else None  # noqa: B009 - a field of some subclasses

    def with_epsilon(self, epsilon: float) -> Self:
        """Return the mechanism with this local epsilon (nats).

        Raises:
            UnsupportedProtocolError: it is not described by an epsilon.
        """
        if self.chosen_epsilon is None:
            message = f"{type(self).__name__} has no `epsilon` to choose; randomized response has one."
            raise UnsupportedProtocolError(message)
        changed: Any = dataclasses.replace(self, epsilon=epsilon)  # type: ignore[type-var]
        return changed  # type: ignore[no-any-return]


def symmetric_law(mechanism: Mechanism, *, for_what: str) -> Symmetric:
    """Return the law of a mechanism that treats all values and all reports alike.

    Raises:
        UnsupportedProtocolError: it does not.
    """
    law = mechanism.law().symmetric
    if law is None:
        _refuse(mechanism, for_what=for_what, needs="randomized response, which treats all values alike")
    return law


def support_law(mechanism: Mechanism, *, for_what: str) -> Support:
    """Return the probabilities that link counts of supporting reports to frequencies.

    Raises:
        UnsupportedProtocolError: its reports do not support values.
    """
    law = mechanism.law().support
    if law is None:
        _refuse(mechanism, for_what=for_what, needs="reports that support values")
    return law


def in_blocks(step: Callable[[Integers, Randomness], Integers], values: Integers, rng: Randomness) -> Integers:
    """Return one report for each value, `step` applied to blocks of them (to all at once under a keyed stream)."""
    if not rng.sequential:
        return step(values, rng)
    reports = np.empty_like(values)
    for start in range(0, values.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        reports[block] = step(values[block], rng)
    return reports


def _places(reports: Integers, outputs: tuple[Hashable, ...]) -> Integers:
    """Return the column of the matrix of each report, shape (reports,); `outputs` are the columns' labels."""
    if reports.ndim == 1 and outputs == tuple(range(len(outputs))):
        return _checks.codes("reports", reports, k=len(outputs))
    columns: dict[Hashable, int] = {label: place for place, label in enumerate(outputs)}
    labels = reports.tolist() if reports.ndim == 1 else map(tuple, reports.tolist())
    try:
        return np.array([columns[label] for label in labels], dtype=np.int64)
    except KeyError:
        _checks.reject("reports", "reports that the mechanism makes", "<another>")


def _refuse(mechanism: Mechanism, *, for_what: str, needs: str) -> NoReturn:
    message = f"{for_what} needs {needs}, which {type(mechanism).__name__} does not offer."
    raise UnsupportedProtocolError(message)
