"""Search, for several columns of the same people, for the noise of one mechanism in all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import tomli_w

from hushuffle.assessment import findings
from hushuffle.assessment.candidates import UNIFORM, Candidate, Miss, Search, Wishes, fit, rounded
from hushuffle.assessment.columns import all_central, all_excess, guarantees
from hushuffle.assessment.message_candidates import AnswerWishes
from hushuffle.assessment.messages import messages_of
from hushuffle.assessment.noise_candidates import ColumnSearch, NoiseSearch, mechanisms, simplest
from hushuffle.assessment.targets import Point, targets
from hushuffle.assessment.trials import error_of
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Population
from hushuffle.numerics.exact import sum_upwards, times_upwards
from hushuffle.specification import Collection
from hushuffle.specification._base import table_in, tables_in
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.reading import parse_collection

_HAIR: Final = 1e-9
"""A local epsilon of four digits is rounded to itself, whatever the last bit of a product of floats is."""
_FIRST: Final = 1.0
_STEP: Final = 1.25
_FEW: Final = 4
"""The local epsilons of up to this number of columns are listed."""
_RESPONSE: Final[Mapping[str, Any]] = {"kind": "randomized-response", "epsilon": 1.0}


@dataclass(frozen=True, kw_only=True)
class CollectionWishes(Wishes):
    """The request for several columns of the same people: all use one mechanism and one shuffler.

    The central epsilon is that of all columns together. With an accuracy target, every column has the smallest local
    epsilon that meets it; else the local epsilons keep their ratios in the file (equal, without [columns.randomizer]).
    `sizes` are the people and the values of each column.
    """

    sizes: tuple[tuple[int, int], ...] = ()
    error_words: ClassVar[str] = (
        "the error is the standard error of a share at the worst true share, the largest of all columns"
    )

    @cached_property
    def whole(self) -> Collection:
        return self.collection([_RESPONSE] * len(tables_in(self.tables, "columns")), UNIFORM)

    def text(self, randomizers: Sequence[Mapping[str, Any]], shuffler: Mapping[str, Any]) -> str:
        """Return the complete specification with these randomizers and this shuffler, as TOML."""
        columns = self.tables["columns"]
        if isinstance(columns, list) and all(isinstance(column, dict) for column in columns):
            columns = [{**column, "randomizer": dict(own)} for column, own in zip(columns, randomizers, strict=True)]
        return tomli_w.dumps({**self.tables, "shuffler": dict(shuffler), "columns": columns})

    def collection(self, randomizers: Sequence[Mapping[str, Any]], shuffler: Mapping[str, Any]) -> Collection:
        """Return the collection with these randomizers and this shuffler."""
        return parse_collection(self.text(randomizers, shuffler), file=self.file, base_folder=self.folder)

    def read(self) -> tuple[CollectionWishes, Population]:
        people = [column.population.read(self.folder) for column in self.whole.columns.values()]
        n = max(each.n for each in people)
        population = Population(
            n=n, labels=tuple(self.whole.columns), source=self.whole.data or "no data", label_of="column"
        )
        sizes = tuple((each.n, each.k) for each in people)
        # An order links the reports of a person in two columns, so there is no candidate without a shuffler.
        hiding = tuple(table for table in self.shufflers if table["kind"] != "none")
        largest = max(each.k for each in people)
        return replace(self, n=n, k=largest, people=n, sizes=sizes, shufflers=hiding), population

    @cached_property
    def parts(self) -> tuple[AnswerWishes, ...]:
        """The request for each column alone."""
        plain = [column.plain() for column in self.whole.columns.values()]
        alone = [{key: tables[key] for key in tables if key not in ("randomizer", "shuffler")} for tables in plain]
        return tuple(
            AnswerWishes(tables=tables, n=n, k=k, people=n, file=self.file, folder=self.folder, digits=self.digits)
            for tables, (n, k) in zip(alone, self.sizes, strict=True)
        )

    @property
    def written_epsilons(self) -> tuple[float, ...]:
        """The local epsilons in the file, or ones if it has none."""
        given = [table_in(column, "randomizer").get("epsilon", 1.0) for column in tables_in(self.tables, "columns")]
        usable = all(isinstance(epsilon, int | float) and 0 < epsilon < float("inf") for epsilon in given)
        return tuple(map(float, given)) if usable else (1.0,) * len(given)

    @property
    def targets(self) -> Any:
        return self.whole.whole.targets

    @property
    def exposure(self) -> Exposure:
        return Exposure(rounds=self.whole.rounds)

    @property
    def notes(self) -> tuple[str, ...]:
        ratio = "the smallest local epsilon that meets the accuracy target"
        if self.wanted is None:
            ratio = "local epsilons in the ratio of the file, or equal local epsilons if the file has none"
        return (
            f"All columns use the same mechanism and shuffler, with {ratio}.",
            "Central epsilon covers all columns together; the local epsilon of one report is the largest.",
        )

    def about(self, population: Population) -> str:
        return f"{len(population.labels):,} columns"

    def searches(self) -> tuple[list[Search], list[Miss]]:
        """Return a search for each mechanism in all columns, behind each shuffler."""
        fewest = replace(self.parts[0], k=min(k for _, k in self.sizes))
        return fit(
            CollectionSearch(wishes=self, kind=kind, beside=beside, shuffler=shuffler)
            for kind, beside in mechanisms(fewest)
            for shuffler in self.shufflers
        )


@dataclass(frozen=True, kw_only=True)
class CollectionSearch(NoiseSearch):
    """Searches for the largest local epsilon of one mechanism in several columns; the others are in proportion."""

    wishes: CollectionWishes

    @cached_property
    def parts(self) -> tuple[ColumnSearch, ...]:
        """The same search in each column alone."""
        return tuple(
            ColumnSearch(wishes=part, kind=self.kind, beside=self.beside, shuffler=self.shuffler)
            for part in self.wishes.parts
        )

    @cached_property
    def _least(self) -> tuple[float | None, ...]:
        """The smallest local epsilon of each column that meets the accuracy target; None: there is none."""
        return tuple(part.accurate() for part in self.parts)

    @cached_property
    def _weights(self) -> tuple[float, ...]:
        """The local epsilon of each column, divided by the largest."""
        weights = self.wishes.written_epsilons
        if self.wishes.wanted is not None:
            weights = tuple(1.0 if least is None else least for least in self._least)
        return tuple(weight / max(weights) for weight in weights)

    def locals(self, local: float) -> list[float]:
        """Return the local epsilon of each column if `local` is the largest."""
        digits = self.wishes.digits
        return [rounded(weight * local * (1 + _HAIR), up=False, digits=digits) for weight in self._weights]

    @property
    def reports(self) -> float:
        return self.wishes.exposure.total * sum(self._weights)

    def misfit(self) -> str:
        return next((why for why in (part.misfit() for part in self.parts) if why), "")

    def protocol(self, local: float, shuffler: Mapping[str, Any] | None = None) -> list[Protocol]:
        return [
            simplest(part.protocol(own, shuffler)) for part, own in zip(self.parts, self.locals(local), strict=True)
        ]

    def local_of(self, local: float) -> float:
        own = [protocol.randomizer.local_epsilon for protocol in self.protocol(local)]
        return times_upwards(sum_upwards(own), self.wishes.whole.rounds)

    def limited(self, local: float) -> float:
        return max(part.limited(own) for part, own in zip(self.parts, self.locals(local), strict=True))

    def accurate(self, fine: float = 0.0) -> float | None:  # noqa: ARG002 - each column has its own search
        least = [local for local in self._least if local is not None]
        return max(least) if len(least) == len(self._least) else None

    def largest(self) -> float | None:
        # The composition of columns takes longer than one column, whose local epsilon is a good first guess.
        epsilon, guess = self.wishes.targets.epsilon, None
        if epsilon is not None:
            alone = self.parts[-1].with_epsilon(epsilon / math.sqrt(len(self.parts)))
            guess = alone.private(_FIRST, stride=4.0)
        return self.private(_FIRST if guess is None else guess, stride=_STEP)

    def short(self, protocol: list[Protocol], *, rough: bool = False) -> float:
        epsilon = self.wishes.targets.epsilon
        return -float("inf") if epsilon is None else all_excess(self.wishes.whole, protocol, epsilon, rough=rough)

    def candidate(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate:
        written, chosen = shuffler or self.shuffler, self.locals(local)
        protocols = self.protocol(local, written)
        central = all_central(self.wishes.whole, protocols)
        rows = guarantees(self.wishes.whole, protocols, central=central)
        error, guessing = max(map(error_of, protocols)), self.wishes.targets.guessing is not None
        guesses = [
            findings.guessed(each, central=rows[0], delta=self.wishes.delta, what="an answer", source="all columns")
            for each in protocols
            if guessing
        ]
        messages, behind = messages_of(protocols[0]), self.behind_of(written)
        noise = f"local epsilons {', '.join(f'{each:g}' for each in chosen)}"
        if len(chosen) > _FEW:
            noise = f"local epsilons from {min(chosen):g} to {max(chosen):g}"
        randomizers = [{"kind": self.kind, "epsilon": each, **self.beside} for each in chosen]
        return Candidate(
            sentence=f"{self.mechanism} in all columns with {noise}, {behind}",
            mechanism=self.mechanism,
            shuffler=behind,
            point=Point(settings={"local_epsilon": max(chosen)}, central=central, standard_error=error),
            bits=sum(messages * protocol.randomizer.layout.bits for protocol in protocols),
            dummies=sum(protocol.shuffler.added_dummies for protocol in protocols),
            shuffled=True,
            targets=targets(
                self.wishes.whole.whole,
                people=self.wishes.people,
                findings=(*rows, *guesses),
                unanswered=(),
                error=Bound.exact(error, unit=""),
                alone=False,
            ),
            specification=self.wishes.text(randomizers, written),
            protocol=tuple(protocols),
            search=self,
            messages=messages,
            all_reports=rows[-1].bound,
        )
