"""`Mechanism`: a local randomizer, defined by a sampler, the layout of its reports and a report's distribution."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Flags, Integers
from hushuffle.errors import InvalidInputError, Problem
from hushuffle.mechanisms.settings import SettingsTable, refused
from hushuffle.model import Citation, Histogram
from hushuffle.randomness import SCALE, threshold_for_truth

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers.report_law import ReportLaw, Support, Symmetric
    from hushuffle.model import Channel
    from hushuffle.model.report_layout import ReportLayout
    from hushuffle.randomness import Randomness


_BLOCK: Final = 1 << 16  # records per step: the working arrays stay in the processor's cache
_CELLS: Final = 1 << 22  # (value, report) pairs processed in one step


class Mechanism(_checks.ByName, ABC):
    """A local randomizer, which maps one person's value (0..k-1) to a random report.

    A new mechanism is a subclass in its own file. It implements the abstract methods, and `supports` if frequencies
    can be estimated from the number of reports that support each value. Analyses, estimates and files use `law` and
    `layout`. If analyses are slow, or the matrix is too large, override the closed forms of `ReportLaw`.
    """

    sources: tuple[Citation, ...] = ()
    """Publications that introduced the mechanism and its estimator."""

    table: ClassVar[SettingsTable | None] = None
    """The keys of the mechanism in a specification; None if a specification cannot describe it."""

    besides_epsilon: str = ""
    """Name of the parameter that stays fixed while epsilon varies, such as "number of buckets"."""

    sized: ClassVar[str] = "k"
    """Name of the field that gets the number k of categories of a specification."""

    def __init_subclass__(cls) -> None:
        names = {name for each in cls.__mro__ for name in (*vars(each), *vars(each).get("__annotations__", ()))}
        base = any(getattr(getattr(cls, key), "__isabstractmethod__", False) for key in Mechanism.__abstractmethods__)
        if not base and cls.inputs is Mechanism.inputs and cls.sized not in names:
            message = f"{cls.__name__} needs a field `{cls.sized}`, its number of values; `sized` may name another."
            raise TypeError(message)

    @property
    def inputs(self) -> int:
        """Number k of values that a person may have."""
        size: int = getattr(self, self.sized)
        return size

    @property
    @abstractmethod
    def local_epsilon(self) -> float:
        """The local epsilon (nats) of the implemented mechanism, rounded up; math.inf without noise."""

    @property
    @abstractmethod
    def layout(self) -> ReportLayout:
        """The layout of a report: its columns and their limits."""

    @abstractmethod
    def law(self) -> ReportLaw:
        """Return the distribution of a report given the value, with the closed forms that analyses use."""

    @abstractmethod
    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        """Draw a report for each of the n values, shape (n,) or (n, columns), in the order of the values."""

    @abstractmethod
    def dummies(self, count: int, *, rng: Randomness) -> Integers:
        """Return `count` reports drawn from the privacy blanket, independent of every person."""

    @abstractmethod
    def describe(self) -> str:
        """Return a short description of the mechanism in plain words."""

    @property
    def is_vector(self) -> bool:
        """Whether reports can be added up: one-hot bits, or one number that stands for a vector with a single 1."""
        law = self.law()
        return law.one_hot is not None or (len(self.layout.names) == 1 and law.flipped is None)

    def channel(self) -> Channel:
        """Return Q(y|x) in floats, shape (inputs, outputs).

        Raises:
            UnsupportedProtocolError: the matrix is too large.
        """
        return self.law().channel()

    def supports(self, reports: Integers, values: Integers) -> Flags:
        """Return whether each report counts towards (supports) each value, shape (values.size, reports.shape[0]).

        Raises:
            UnsupportedProtocolError: this mechanism does not define which values a report supports.
        """
        _refuse(self, for_what="An estimate of frequencies", needs="reports that support values")

    def supported(self, reports: Integers) -> Integers:
        """Return the number of values that each report supports, shape (reports,)."""
        counts = np.zeros(reports.shape[0], dtype=np.int64)
        together = max(1, _CELLS // max(counts.size, 1))
        for start in range(0, self.inputs, together):
            counts += self.supports(reports, np.arange(start, min(start + together, self.inputs))).sum(axis=0)
        return counts

    @property
    def counted(self) -> int:
        """Length of the array that `counts` returns."""
        return self.inputs if self.law().support is not None else self.channel().matrix.shape[1]

    def counts(self, reports: Integers) -> Histogram:
        """Return how many reports support each value, shape (`counted`,); counts of several batches can be added.

        For a randomizer whose reports have no notion of support, return how often each possible report occurs.
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
        """Return Q(report | value), up to one unknown factor per report, shape (values.size, reports.shape[0])."""
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
    def from_settings(cls, k: int, settings: Mapping[str, Any]) -> Self:
        """Return the mechanism for k values that the `settings` of a specification describe.

        Raises:
            InvalidInputError: the settings do not fit k.
        """
        build: Any = cls
        randomizer: Self = build(**{cls.sized: k}, **settings)
        return randomizer

    @classmethod
    def problems(cls, raw: Mapping[str, Any], k: int | None) -> Iterator[Problem]:
        """Yield the problems of the mechanism's table in a specification.

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
        """The local epsilon (nats) by which the mechanism was chosen; None if it has another parameter instead."""
        described = dataclasses.is_dataclass(self) and "epsilon" in {field.name for field in dataclasses.fields(self)}
        return getattr(self, "epsilon") if described else None  # noqa: B009 - a field of some subclasses

    def with_epsilon(self, epsilon: float) -> Self:
        """Return the mechanism with this local epsilon (nats).

        Raises:
            UnsupportedProtocolError: the mechanism has no parameter epsilon.
        """
        if self.chosen_epsilon is None:
            _checks.unsupported(f"{type(self).__name__} has no parameter `epsilon`, unlike randomized response.")
        changed: Any = dataclasses.replace(self, epsilon=epsilon)  # type: ignore[type-var]
        return changed  # type: ignore[no-any-return]


def symmetric_law(mechanism: Mechanism, *, for_what: str) -> Symmetric:
    """Return the report distribution of a symmetric mechanism, which treats all values and all reports alike.

    Raises:
        UnsupportedProtocolError: the mechanism is not symmetric.
    """
    law = mechanism.law().symmetric
    if law is None:
        _refuse(mechanism, for_what=for_what, needs="randomized response, which treats all values alike")
    return law


def support_law(mechanism: Mechanism, *, for_what: str) -> Support:
    """Return the probabilities by which frequencies are estimated from counts of supporting reports.

    Raises:
        UnsupportedProtocolError: the mechanism's reports do not support values.
    """
    law = mechanism.law().support
    if law is None:
        _refuse(mechanism, for_what=for_what, needs="reports that support values")
    return law


def truth_threshold(k: int, epsilon: float, where: str = "", *, size: int = 1) -> int:
    """Return the threshold of the Bernoulli trial that selects the true value (`threshold_for_truth`); SCALE: no noise.

    Raises:
        InvalidInputError: `epsilon` is too small; `where` names the settings.
    """
    threshold = SCALE if math.isinf(epsilon) else threshold_for_truth(k, epsilon, size=size)
    if threshold == 0:
        hint = "With this epsilon, reports would not depend on the values at all."
        _checks.reject("epsilon", f"large enough that a report depends on the value{where}", epsilon, hint)
    return threshold


def in_blocks(step: Callable[[Integers, Randomness], Integers], values: Integers, rng: Randomness) -> Integers:
    """Draw a report for each value by applying `step` to blocks of values, or to all at once if `rng` is keyed."""
    if not rng.sequential:
        return step(values, rng)
    reports = np.empty_like(values)
    for start in range(0, values.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        reports[block] = step(values[block], rng)
    return reports


def _places(reports: Integers, outputs: tuple[Hashable, ...]) -> Integers:
    """Return the matrix column of each report, shape (reports,); `outputs` are the labels of the columns."""
    if reports.ndim == 1 and outputs == tuple(range(len(outputs))):
        return _checks.codes("reports", reports, k=len(outputs))
    columns: dict[Hashable, int] = {label: place for place, label in enumerate(outputs)}
    labels = reports.tolist() if reports.ndim == 1 else map(tuple, reports.tolist())
    try:
        return np.array([columns[label] for label in labels], dtype=np.int64)
    except KeyError:
        _checks.reject("reports", "possible reports of the mechanism", "<another>")


def _refuse(mechanism: Mechanism, *, for_what: str, needs: str) -> NoReturn:
    _checks.unsupported(f"{for_what} needs {needs}, but the mechanism is {type(mechanism).__name__}.")
