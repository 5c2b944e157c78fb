"""Search, for the mean of numbers, over mechanisms, noise and levels, and compare with a sum by several messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Final

import tomli_w

from hushuffle.assessment.candidates import UNIFORM, Candidate, Miss, Search, fit
from hushuffle.assessment.levels import LADDER, tried_levels
from hushuffle.assessment.message_candidates import AnswerWishes
from hushuffle.assessment.noise_candidates import REVEALING, ColumnSearch
from hushuffle.assessment.sum_candidates import SumSearch
from hushuffle.assessment.targets import Point, error_of_mean
from hushuffle.assessment.trials import error_of, no_error
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.estimation.expectations import Expectations
from hushuffle.estimation.numbers import mean_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import NumberGrid, Population, Target
from hushuffle.specification import Specification
from hushuffle.specification._base import table_in
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.specification import Responsible
from hushuffle.specification.sums import SumSpecification, parse_sum

_MOST_LEVELS: Final = 64
"""The largest number of levels that is tried for mechanisms whose privacy takes a matrix of all levels."""
_ENOUGH: Final = 1.01
"""Of all numbers of levels with at most this multiple of the smallest error, the smallest is chosen."""
_BEGIN: Final = 8
"""The first number of levels that is tried."""
_FIRST: Final = 1.0
"""The first local epsilon that is tried."""
_TRIES: Final = 4
_COARSE: Final = 1e-3
"""Relative resolution of a local epsilon that only ranks numbers of levels."""

_ABOUT_LEVELS: Final = ("standard_error", "guessing", "reidentification")
"""Targets of a file for numbers that are about single levels, so that other numbers of levels change their meaning."""
_OF_SUMS: Final = ("epsilon", "delta", "people")
_NO_SUM: Final = {
    "local_epsilon": "The messages add up to the number: without the shuffler there is no local epsilon.",
    "standard_error": "A sum gives no share of a level, but targets.standard_error limits the error of a share.",
    "guessing": "Guessing a number from a sum has no figure, so targets.guessing cannot be checked.",
    "reidentification": "Naming a sender from a sum has no figure, so targets.reidentification cannot be checked.",
}


@dataclass(frozen=True, kw_only=True)
class NumberWishes(AnswerWishes):
    """The request for the mean of numbers; the accuracy target of such a file limits the error of a level's share."""

    error_name: ClassVar[str] = "standard error of the mean"
    error_words: ClassVar[str] = "the error is that of the mean for the worst numbers, in the unit of the numbers"
    wanted_words: ClassVar[str] = "standard error of a level's share"

    @property
    def on_levels(self) -> str:
        return f" ({self.k:,} levels)"

    @property
    def grid(self) -> NumberGrid:
        """The levels of the numbers."""
        low, high, levels = (self.tables["population"][key] for key in ("low", "high", "levels"))
        return NumberGrid(low=low, high=high, levels=levels)

    def about(self, population: Population) -> str:  # noqa: ARG002 - others count values
        return f"numbers from {self.grid.low:g} to {self.grid.high:g}"

    @property
    def levels_chosen(self) -> bool:
        """Whether the number of levels is chosen, because no target is about single levels."""
        return all(getattr(self.targets, key) is None for key in _ABOUT_LEVELS)

    @property
    def notes(self) -> tuple[str, ...]:
        if self.levels_chosen:
            return ("Levels are chosen for noisy reports and the sum; true reports keep the levels of the file.",)
        return ("A target is about single levels, so all deployments have the levels of the file.",)

    def remarks(self, errors: Mapping[str, float]) -> Any:  # noqa: ARG002 - a mean has no even share
        return iter(())

    def at(self, levels: int) -> NumberWishes:
        """Return the request with another number of levels."""
        population = {**self.tables["population"], "levels": levels}
        return replace(self, tables={**self.tables, "population": population}, k=levels)

    def suits(self, mechanism: type[Mechanism]) -> bool:
        """Return whether means can be estimated from the mechanism's reports."""
        try:
            Expectations.of(mechanism.from_settings(_BEGIN, {"epsilon": 1.0}))
        except UnsupportedProtocolError:
            return False
        return True

    def search(self, kind: str, beside: Mapping[str, Any], shuffler: Mapping[str, Any]) -> Search:
        """Return the search for the noise and, if they may be chosen, the levels of one mechanism."""
        how = LevelSearch if self.levels_chosen else ColumnSearch
        return how(wishes=self, kind=kind, beside=beside, shuffler=shuffler)

    def error(self, protocol: Protocol) -> float:
        """Return the error of the mean, by which candidates are compared."""
        return mean_error(protocol, grid=self.grid)

    def point(self, protocol: Protocol, local: float, exposure: Exposure) -> Point:
        return replace(super().point(protocol, local, exposure), standard_error=self.error(protocol))

    def held(
        self, specification: Specification, protocol: Protocol, exposure: Exposure, point: Point
    ) -> tuple[Target, ...]:
        return super().held(specification, protocol, exposure, replace(point, standard_error=error_of(protocol)))

    def searches(self) -> tuple[list[Search], list[Miss]]:
        """Return the searches for one column of answers, and that for a sum by several messages."""
        fitting, misfits = super().searches()
        sums, others = fit(
            SumSearch(wishes=self, kind="sum", beside={}, shuffler=UNIFORM, written=written)
            for written in self.sums_written
        )
        return [*fitting, *sums], [*misfits, *others]

    @property
    def sums_written(self) -> tuple[bool, ...]:
        """Which sums are candidates: the calibrated one (False), that of the file (True)."""
        return (False,)

    @property
    def no_sum(self) -> str:
        """The reason why no sum by several messages meets the targets; "" if one may."""
        return " ".join(why for key, why in _NO_SUM.items() if getattr(self.targets, key) is not None)

    @property
    def sum_tables(self) -> dict[str, Any]:
        """The tables of a sum by several messages of the same people, with the same targets."""
        targets, rounds = table_in(self.tables, "targets"), self.tables.get("rounds", 1)
        return {
            **_shared(self.tables),
            "sum": {"epsilon": 1.0, "delta": self.delta / rounds, "honest": self.honest},
            "targets": {key: targets[key] for key in _OF_SUMS if key in targets},
        }


@dataclass(frozen=True, kw_only=True)
class MeanWishes(NumberWishes):
    """The request for the mean of numbers whose targets.standard_error limits the error of the mean.

    A column of numbers has no key for this target, so its written specification leaves the target out.
    """

    levels_chosen: bool = True
    wanted_words: ClassVar[str] = "standard error of the mean"

    @property
    def wanted(self) -> float | None:
        return table_in(self.tables, "targets").get("standard_error")

    def text(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> str:
        limits = {key: limit for key, limit in table_in(self.tables, "targets").items() if key != "standard_error"}
        tables = {**self.tables, "targets": limits}
        return tomli_w.dumps({**tables, "randomizer": dict(randomizer), "shuffler": dict(shuffler)})

    def limited(self, protocol: Protocol) -> float:
        return self.error(protocol)

    def held(
        self, specification: Specification, protocol: Protocol, exposure: Exposure, point: Point
    ) -> tuple[Target, ...]:
        rows = super().held(specification, protocol, exposure, point)
        return rows if self.wanted is None else (*rows, error_of_mean(self.wanted, point.standard_error))


@dataclass(frozen=True, kw_only=True)
class SumWishes(MeanWishes):
    """The request for a sum by several messages; a column of noisy reports of the same numbers is an alternative.

    Without a target, the central epsilon of the sum as written is the target.
    """

    usual_messages: ClassVar[float] = math.inf

    @cached_property
    def whole(self) -> SumSpecification:
        return parse_sum(tomli_w.dumps(_without_shuffler(self.tables)), file=self.file)

    def read(self) -> tuple[SumWishes, Population]:
        people = self.whole.asked.read(self.folder)
        counted = replace(self, n=people.n, k=self.grid.levels, people=people.n)
        bits, tables = self.whole.targets.bits, dict(self.tables)
        tables["targets"] = {**table_in(tables, "targets"), "delta": self.delta}
        return replace(counted, tables=tables, most_bits=min(self.most_bits, bits or math.inf)), people.population

    @cached_property
    def targets(self) -> Any:
        return _SumLimits(self.whole)

    @property
    def exposure(self) -> Exposure:
        return Exposure(rounds=self.whole.times)

    @property
    def no_sum(self) -> str:
        return ""

    @property
    def spared(self) -> int:
        """The number of people who may collude with the analyst in the sum as written."""
        return self.n - self.whole.build(self.n).needed if self.n > 1 else 0

    @property
    def notes(self) -> tuple[str, ...]:
        implied = self.whole.targets.epsilon is None and self.wanted is None
        written = "The file has no target: the central epsilon of its sum is the target."
        mean = "Files of noisy reports have no target for the mean: assess prints its error in the table of the mean."
        colluding = (
            f"Central epsilon of the sum holds while {self.spared:,} people collude with the analyst; that of noisy "
            "reports holds if all people are honest. The written specifications also assess this number of colluders."
        )
        cases = ((implied, written), (self.wanted is not None, mean), (self.spared > 0, colluding))
        return (*super().notes, *(sentence for applies, sentence in cases if applies))

    @property
    def column_tables(self) -> dict[str, Any]:
        """The tables of a column of noisy reports of the same people, with the same targets of privacy."""
        targets, statement = self.targets, dict(table_in(_shared(self.tables), "statement"))
        limits = {key: getattr(targets, key) for key in _OF_SUMS if getattr(targets, key) is not None}
        if self.spared:
            statement["colluders"] = self.spared
        tables = {**_shared(self.tables), "targets": limits}
        return {**tables, "statement": statement} if statement else tables

    def text(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> str:
        return tomli_w.dumps({**self.column_tables, "randomizer": dict(randomizer), "shuffler": dict(shuffler)})

    @property
    def sums_written(self) -> tuple[bool, ...]:
        return (True, False)

    @property
    def sum_tables(self) -> dict[str, Any]:
        targets = {**table_in(self.tables, "targets")}
        if self.targets.epsilon is not None:
            targets["epsilon"] = self.targets.epsilon
        return {**_without_shuffler(self.tables), "targets": targets}


class _SumLimits:
    """The targets of a file with [sum]; without any, the central epsilon of the sum as written is the target."""

    local_epsilon = guessing = reidentification = None

    def __init__(self, whole: SumSpecification) -> None:
        limits = whole.targets
        self.standard_error, self.people, self.delta = limits.standard_error, limits.people, whole.wanted_delta
        self.epsilon = limits.epsilon
        if limits.epsilon is None and limits.standard_error is None:
            self.epsilon = whole.sum.epsilon * whole.times


def _shared(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables that files for a column of numbers and for a sum share."""
    shared = {key: tables[key] for key in ("title", "rounds", "population") if key in tables}
    responsible = {
        key: value for key, value in table_in(tables, "statement").items() if key in Responsible.model_fields
    }
    responsible.pop("vouched", None)
    return {**shared, **({"statement": responsible} if responsible else {})}


def _without_shuffler(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tables.items() if key not in ("randomizer", "shuffler")}


@dataclass(frozen=True, kw_only=True)
class LevelSearch(ColumnSearch):
    """Searches for the levels and the local epsilon of one mechanism for numbers.

    The local epsilon that meets a privacy target hardly depends on the levels. So the search takes the best levels at
    one local epsilon, then the local epsilon for these levels, until the levels stay. With an accuracy target it takes
    the levels that meet it with the smallest local epsilon. Its figures hold for the levels and noise that it returns;
    that no other levels are better is not proven.
    """

    wishes: NumberWishes

    @property
    def mechanism(self) -> str:
        return super(ColumnSearch, self).mechanism

    def at(self, levels: int) -> ColumnSearch:
        """Return the search on this number of levels."""
        return ColumnSearch(wishes=self.wishes.at(levels), kind=self.kind, beside=self.beside, shuffler=self.shuffler)

    def misfit(self) -> str:
        return self.at(_BEGIN).misfit()

    @property
    def _most(self) -> int:
        matrix = Expectations.of(self.at(_BEGIN).protocol(1.0).randomizer).matrix is not None
        return _MOST_LEVELS if matrix else LADDER[-1]

    def _found(self) -> Candidate | Miss:
        if self.wishes.wanted is not None:

            def needed(levels: int) -> float:
                return self.at(levels).accurate(_COARSE) or math.inf

            errors = tried_levels(needed, most=self._most)
            if math.isinf(min(errors.values())):
                reason = f"No number of levels up to {self._most:,} and no local epsilon meets the accuracy target."
                return Miss(search=self, reason=reason)
            return self.at(_fewest(errors)).run()
        solved: dict[int, float | None] = {}
        levels, near = _BEGIN, None
        while levels not in solved and len(solved) < _TRIES:
            search = self.at(levels)
            near = solved[levels] = search.private(_FIRST, stride=4.0) if near is None else search.private(near)
            if near is None:
                return Miss(search=self.at(levels), reason=REVEALING)
            levels = _fewest(tried_levels(partial(self._error, local=near), most=self._most))
        best = min(solved, key=lambda levels: self._error(levels, solved[levels] or 0.0))
        return self.at(best).judged(solved[best] or 0.0)

    def _error(self, levels: int, local: float) -> float:
        return no_error(lambda: self.wishes.at(levels).error(self.at(levels).protocol(local)))


def _fewest(errors: Mapping[int, float]) -> int:
    """Return the smallest number of levels whose error is nearly the smallest."""
    least = min(errors.values())
    return min(levels for levels, error in errors.items() if error <= least * _ENOUGH)
