"""A sum by several messages as a candidate for the mean of numbers, calibrated or as written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from hushuffle.assessment.candidates import Candidate, Miss, Search, reasons
from hushuffle.assessment.targets import Point
from hushuffle.assessment.total import Total
from hushuffle.errors import SpecificationError
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound
from hushuffle.specification.sums import parse_sum


@dataclass(frozen=True, kw_only=True)
class SumSearch(Search):
    """Searches for a sum by several messages with the fewest levels that suffice; or judges that of the file."""

    wishes: Any
    """The `NumberWishes` that list this search."""
    written: bool = False

    @property
    def mechanism(self) -> str:
        return "sum by several messages" + (" as written" if self.written else "")

    @cached_property
    def total(self) -> Total:
        """The sum of the same number of people, without data."""
        tables, n = self.wishes.sum_tables, self.wishes.n
        counted = {"n": n, **{key: tables["population"][key] for key in ("kind", "low", "high", "levels")}}
        return Total(parse_sum(tomli_w.dumps({**tables, "population": counted}), file=self.wishes.file), Path())

    def misfit(self) -> str:
        if self.wishes.no_sum:
            return str(self.wishes.no_sum)
        try:
            parse_sum(tomli_w.dumps(self.wishes.sum_tables), file=self.wishes.file)
        except SpecificationError as error:
            return reasons(error)
        return ""

    def _found(self) -> Candidate | Miss:
        try:
            protocol = self._sum()
        except SpecificationError as error:
            return self.miss(reasons(error))
        if protocol is None:
            return self.miss(f"No sum has a standard error of {self.wishes.wanted:g} or less.")
        candidate = self._candidate(protocol)
        if candidate.met:
            return candidate
        return self.miss(" ".join(target.sentence for target in candidate.unmet), candidate=candidate)

    def _sum(self) -> SplitAndMix | None:
        """Return the sum as calibrated or as written; None if no sum is accurate enough."""
        if self.written:
            return self.total.protocol
        choice = self.total.calibrate()
        point = choice.private if self.wishes.wanted is None else choice.accurate
        return None if point is None else point.protocol

    def candidate(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate:  # noqa: ARG002
        """Return the sum as calibrated or as written; it has no local epsilon."""
        protocol = self._sum()
        assert protocol is not None
        return self._candidate(protocol)

    def _candidate(self, protocol: SplitAndMix) -> Candidate:
        assert protocol.levels is not None
        altered, tables = self.total.altered(protocol), self.wishes.sum_tables
        population = {**tables["population"], "levels": protocol.levels}
        table = {**tables["sum"], "epsilon": protocol.epsilon, "delta": protocol.delta}
        words = f"{self.mechanism} ({protocol.levels:,} levels)"
        return Candidate(
            sentence=f"{words} with central epsilon {protocol.epsilon:g} and no local epsilon, {self.behind}",
            mechanism=words,
            shuffler=self.behind,
            point=Point(
                settings={"local_epsilon": math.inf},
                central=altered.central(protocol, delta=self.wishes.delta),
                standard_error=protocol.standard_error() / protocol.n,
                protocol=protocol,
            ),
            bits=float(protocol.bits_per_person),
            dummies=0.0,
            shuffled=True,
            targets=tuple(altered.held(protocol)),
            specification=tomli_w.dumps({**tables, "population": population, "sum": table}),
            protocol=protocol,
            search=self,
            messages=float(protocol.messages),
            all_reports=None if self.wishes.exposure.total == 1 else Bound.exact(math.inf, unit="nats"),
        )
