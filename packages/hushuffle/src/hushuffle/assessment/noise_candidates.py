"""Search, for one mechanism and one shuffler, for the local epsilon that meets the targets of a request."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from typing import Any, Final

import tomli_w

from hushuffle.assessment.calibrate import held, learned, point_at
from hushuffle.assessment.candidates import (
    APART,
    UNIFORM,
    Candidate,
    Miss,
    Search,
    Wishes,
    apart,
    fit,
    reasons,
    rounded,
)
from hushuffle.assessment.findings import compared_reports
from hushuffle.assessment.messages import messages_of
from hushuffle.assessment.targets import GUESSES, Point
from hushuffle.assessment.trials import FINE, error_of, least_accurate, no_error
from hushuffle.errors import InvalidInputError, SpecificationError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism, RandomizedResponse, SquareWave, SubsetSelection
from hushuffle.mechanisms.settings import Setting
from hushuffle.model import Population, Table, Target, number
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, excess
from hushuffle.specification import Specification, parse
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.kinds import RANDOMIZERS

_FINE: Final = 3e-4
"""Relative resolution of a local epsilon that meets privacy targets."""
_STEP: Final = 1.05
"""The factor between the first local epsilons that are tried, if one near the solution is given."""
_HAIR: Final = 1e-3
_LOOSE: Final = 0.2
"""Excess below minus this: estimates were too large, and a certified search finds less noise."""
_SMALL: Final = 1e-3
"""The smallest local epsilon that is tried if there is no accuracy target."""

REVEALING: Final = f"No local epsilon of {_SMALL:g} or more meets the privacy targets."


@dataclass(frozen=True, kw_only=True)
class NoiseSearch(Search):
    """Searches for the local epsilon of one mechanism, with all other settings fixed, behind one shuffler."""

    @property
    @abstractmethod
    def reports(self) -> float:
        """The number of reports of one person whose local epsilons add up."""

    @abstractmethod
    def protocol(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Any:
        """Return what is released with this local epsilon."""

    @abstractmethod
    def local_of(self, local: float) -> float:
        """Return the local epsilon of all reports of one person if a mechanism has this local epsilon."""

    @abstractmethod
    def limited(self, local: float) -> float:
        """Return the error that the accuracy target limits; infinite if no protocol has this local epsilon."""

    @abstractmethod
    def short(self, protocol: Any, *, rough: bool = False) -> float:
        """Return the largest excess of a privacy figure over its target; an approximation if `rough`."""

    def _found(self) -> Candidate | Miss:
        if self.wishes.wanted is None:
            most = self.largest()
            if most is None:
                return self.miss(REVEALING)
            # Settings that depend on epsilon, like a number of buckets, make the error jump: less may be better.
            less = (rounded(share * most, up=False, digits=self.wishes.digits) for share in (0.95, 0.9))
            return self.judged(min(most, *less, key=self.limited))
        local = self.accurate()
        if local is None:
            least = number(self.limited(LARGEST_LOCAL), up=False)
            return self.miss(f"Its {self.wishes.error_name} is at least {least} for every local epsilon.")
        limit = self.wishes.local_limit
        if limit is not None and (took := self.local_of(local)) > limit:
            reason = f"Accuracy needs a local epsilon of {number(took, up=True)}; targets.local_epsilon is {limit:g}."
            return self.miss(reason, local=local)
        return self.judged(local)

    def largest(self) -> float | None:
        """Return the local epsilon for targets of privacy alone; None if none of those tried meets them."""
        return self.private()

    def accurate(self, fine: float = FINE) -> float | None:
        """Return the smallest local epsilon that meets the accuracy target, rounded up; None if there is none."""
        wanted = self.wishes.wanted
        assert wanted is not None
        least = least_accurate(self.limited, wanted, fine=fine)
        return None if least is None else min(rounded(least, up=True, digits=self.wishes.digits), LARGEST_LOCAL)

    def private(self, near: float | None = None, *, stride: float = _STEP) -> float | None:
        """Return the largest local epsilon that meets the privacy targets; None if none of those tried does.

        If a local epsilon `near` is given, the search begins there, and moves by factors of `stride`. The result of a
        search among estimates suffices if certified figures meet the targets there.
        """
        epsilon, most = self.wishes.targets.epsilon, self._most_local()
        # A local epsilon of at most the target for central epsilon meets this target for any number of people.
        least = _SMALL if epsilon is None else min(epsilon / self.reports, most) * (1 - _HAIR)
        noise = Parameter(
            name="local epsilon",
            apply=float,
            easiest=min(_SMALL, most),
            hardest=most,
            start=least if near is None else min(near, most),
            stride=math.inf if near is None else stride,
            resolution=_FINE,
        )
        excess = cache(lambda local: self.short(self.protocol(local)))
        estimate = cache(lambda local: self.short(self.protocol(local), rough=True))
        for certified in (False, True):
            requirement = Requirement[float](excess=estimate)
            if certified:
                requirement = Requirement(excess=excess, estimate=estimate)
            local = None if (solution := solve(noise, requirement)) is None else solution.value
            if local is not None and local < most:
                local = rounded(local * (1 - _HAIR), up=False, digits=self.wishes.digits)
            if not certified and local is not None and -_LOOSE < excess(local) <= 0:
                break
        return local

    def _most_local(self) -> float:
        """Return the largest local epsilon that meets targets.local_epsilon, the limit if the shuffler fails."""
        limit = self.wishes.local_limit
        if limit is None:
            return LARGEST_LOCAL
        digits = self.wishes.digits
        most = max(rounded(limit / self.reports, up=False, digits=digits), _SMALL)
        # The local epsilon of the implemented probabilities is rounded up.
        return rounded(most * (1 - _HAIR), up=False, digits=digits) if self.local_of(most) > limit else most


@dataclass(frozen=True, kw_only=True)
class ColumnWishes(Wishes):
    """The request for a deployment of one column: [randomizer] and [shuffler] are left out of `tables`."""

    def text(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> str:
        """Return the complete specification with this randomizer and shuffler, as TOML."""
        return tomli_w.dumps({**self.tables, "randomizer": dict(randomizer), "shuffler": dict(shuffler)})

    def specification(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> Specification:
        """Return the complete specification with this randomizer and shuffler; SpecificationError if it is invalid."""
        return parse(self.text(randomizer, shuffler), file=self.file, base_folder=self.folder)

    @cached_property
    def whole(self) -> Any:
        return self.specification({"kind": "randomized-response", "epsilon": 1.0}, UNIFORM)

    def read(self) -> tuple[Wishes, Population]:
        people = self.whole.population.read(self.folder)
        return replace(self, n=people.n, k=people.k, people=people.population.least_people), people.population

    @property
    def exposure(self) -> Exposure:
        return Exposure.of(self.whole, k=self.k)

    def suits(self, mechanism: type[Mechanism]) -> bool:
        """Return whether the mechanism is one for the answers of this column."""
        return mechanism.table is not None and not mechanism.table.numbers

    def search(self, kind: str, beside: Mapping[str, Any], shuffler: Mapping[str, Any]) -> Search:
        """Return the search for the noise of one mechanism behind one shuffler."""
        return ColumnSearch(wishes=self, kind=kind, beside=beside, shuffler=shuffler)

    def limited(self, protocol: Protocol) -> float:
        """Return the error that the accuracy target limits."""
        return error_of(protocol)

    def point(self, protocol: Protocol, local: float, exposure: Exposure) -> Point:
        """Return the figures of a protocol with this local epsilon."""
        return point_at(protocol, local, self.delta, exposure)

    def held(
        self, specification: Specification, protocol: Protocol, exposure: Exposure, point: Point
    ) -> tuple[Target, ...]:
        """Return all targets, each with the figure of the protocol."""
        return held(specification, protocol, exposure, point, self.people)


@dataclass(frozen=True, kw_only=True)
class ColumnSearch(NoiseSearch):
    """Searches for the local epsilon of one mechanism in one column."""

    wishes: ColumnWishes

    @property
    def mechanism(self) -> str:
        return super().mechanism + self.wishes.on_levels

    @cached_property
    def specification(self) -> Specification:
        """The specification with an arbitrary valid local epsilon."""
        return self.wishes.specification(self._randomizer(1.0), self.shuffler)

    @cached_property
    def exposure(self) -> Exposure:
        """The exposure of one person."""
        return Exposure.of(self.specification, k=self.wishes.k)

    @property
    def reports(self) -> float:
        return self.exposure.total

    def with_epsilon(self, epsilon: float) -> ColumnSearch:
        """Return the same search with another target for central epsilon."""
        tables = {**self.wishes.tables, "targets": {**self.wishes.tables["targets"], "epsilon": epsilon}}
        return replace(self, wishes=replace(self.wishes, tables=tables))

    def _randomizer(self, local: float) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": "inf" if math.isinf(local) else local, **self.beside}

    def protocol(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Protocol:
        """Return the protocol with this local epsilon; settings that depend on epsilon are computed from it."""
        settings = {**self.beside, "epsilon": local}
        randomizer = RANDOMIZERS[self.kind].mechanism.from_settings(self.wishes.k, settings)
        changed = {} if shuffler is None or shuffler == self.shuffler else dict(shuffler)
        built = self.specification.shuffler.model_copy(update=changed).build()
        return Protocol(randomizer=randomizer, shuffler=built, n=self.wishes.n)

    def misfit(self) -> str:
        try:
            self.specification  # noqa: B018 - evaluated for its validation
            self.protocol(LARGEST_LOCAL)
        except SpecificationError as error:
            return reasons(error) or APART
        except InvalidInputError as error:
            return apart(error)
        return ""

    def candidate(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate:
        written = shuffler or self.shuffler
        protocol = self.protocol(local, written)
        point = self.wishes.point(protocol, local, self.exposure)
        messages, behind = messages_of(protocol), self.behind_of(written)
        noise = "no local epsilon" if math.isinf(local) else f"local epsilon {local:g}"
        return Candidate(
            sentence=f"{self.mechanism} with {noise}, {behind}",
            mechanism=self.mechanism,
            shuffler=behind,
            point=point,
            bits=messages * protocol.randomizer.layout.bits,
            dummies=protocol.shuffler.added_dummies,
            shuffled=written["kind"] != "none",
            targets=self.wishes.held(self.specification, protocol, self.exposure, point),
            specification=self.wishes.text(self._randomizer(local), written),
            protocol=simplest(protocol),
            search=self,
            messages=messages,
            all_reports=None if self.exposure.total == 1 else self.exposure.local(protocol),
        )

    def repeated(self, candidate: Candidate) -> tuple[Table, ...]:
        return compared_reports(candidate.protocol, delta=self.wishes.delta, exposure=self.exposure)

    def local_of(self, local: float) -> float:
        return self.exposure.local(self.protocol(local)).upper

    def limited(self, local: float) -> float:
        return no_error(lambda: self.wishes.limited(self.protocol(local)))

    def short(self, protocol: Protocol, *, rough: bool = False) -> float:
        targets, exposure, short = self.specification.targets, self.exposure, -math.inf
        if targets.epsilon is not None and exposure.drawn_again:
            short = exposure.epsilon(protocol, delta=targets.delta).upper - targets.epsilon
        elif targets.epsilon is not None:
            repeated = {"reports_per_person": exposure.reports, "rounds": exposure.composed}
            short = excess(protocol, targets.epsilon, targets.delta, **repeated, rough=rough)
        if short > 0:
            return short
        limits = dict.fromkeys(GUESSES, targets.guessing) | {"re-identification": targets.reidentification}
        rows = [] if exposure.total > 1 else learned(self.specification, protocol)
        return max([short, *(log_excess(row.figure.upper, limits[row.question] or 0) for row in rows)])


def searches(wishes: ColumnWishes) -> tuple[list[Search], list[Miss]]:
    """Return a search for each usable pair of mechanism and shuffler of the request, and a `Miss` for other pairs."""
    pairs = product(mechanisms(wishes), wishes.shufflers)
    return fit(wishes.search(kind, beside, shuffler) for (kind, beside), shuffler in pairs)


def mechanisms(wishes: ColumnWishes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each mechanism for the answers whose local epsilon can be chosen, with all other settings to try."""
    for kind, section in RANDOMIZERS.items():
        table = section.mechanism.table
        if table is not None and "epsilon" in table.settings and wishes.suits(section.mechanism):
            yield from ((kind, beside) for beside in _variants(table.settings, wishes.k))


def _variants(settings: Mapping[str, Setting], k: int) -> Iterator[dict[str, Any]]:
    """Yield the settings to try in addition to epsilon: the defaults, every named choice, and promising numbers."""
    names = [name for name in settings if name != "epsilon"]
    options: list[tuple[Any, ...]] = [
        settings[name].choices or (None, *(tried for tried in settings[name].tried if tried < k)) for name in names
    ]
    for values in product(*options):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def simplest(protocol: Protocol) -> Protocol:
    """Return the simplest equivalent protocol: with one value or no width, a mechanism is randomized response."""
    randomizer = protocol.randomizer
    if isinstance(randomizer, SubsetSelection) and randomizer.w == 1:
        return replace(protocol, randomizer=RandomizedResponse(k=randomizer.k, epsilon=randomizer.epsilon))
    if isinstance(randomizer, SquareWave) and randomizer.width == 0:
        return replace(protocol, randomizer=RandomizedResponse(k=randomizer.bins, epsilon=randomizer.epsilon))
    return protocol
