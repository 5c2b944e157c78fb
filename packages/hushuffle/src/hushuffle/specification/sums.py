"""The TOML file of a sum by several messages: the population and the guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import Field

from hushuffle.errors import InvalidInputError, Problem
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.mechanisms.split_and_mix import MOST_COORDINATES, SplitAndMix
from hushuffle.specification._base import File, Name, Probability, Section, table_in, unfit
from hushuffle.specification.answers import answer_problems
from hushuffle.specification.population import ASKED, NO_COLUMN, AnyPopulation, CountedPopulation, DataPopulation
from hushuffle.specification.reading import parsed, tables_of
from hushuffle.specification.specification import Responsible, Vouched, Voucher
from hushuffle.specification.wording import COLLECTION, Vocabulary

_KEYS: Final = ("epsilon", "delta", "honest", "coordinates", "l1")


class Sum(Section):
    """[sum]: the guarantee, and the fraction of honest clients that it assumes."""

    epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON)]
    """Central epsilon of a round, in nats; it determines the noise."""
    delta: Probability
    """Central delta of a round; it determines the number of messages per client."""
    honest: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Fraction of clients that answer, follow the protocol and do not collude; they supply all the noise."""
    coordinates: Annotated[int, Field(ge=1, le=MOST_COORDINATES)] | None = None
    """How many numbers each person has, each between `low` and `high` and with a sum of its own (default: 1). With
    several, only without data: `collect` and `audit` take one number of each person."""
    l1: Annotated[float, Field(gt=0)] | None = None
    """With several `coordinates`: the largest total by which a person's numbers exceed `low`. Devices scale larger
    totals down, so less noise is needed (default: `coordinates` times `high` - `low`)."""


class SumTargets(Section):
    """Requirements on the sum that assess checks."""

    epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON)] | None = None
    """Largest central epsilon, in nats, for all rounds together; `hushuffle calibrate` chooses the noise for it."""
    delta: Probability | None = None
    """The delta of `targets.epsilon` (default: `sum.delta` times `rounds`)."""
    standard_error: Annotated[float, Field(gt=0)] | None = None
    """Largest standard error of the mean, in the unit of the numbers."""
    bits: Annotated[int, Field(ge=1)] | None = None
    """Most bits that one client sends."""
    people: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Minimum number of people; `hushuffle collect` releases nothing if fewer take part."""


class SumVouched(Vouched):
    """Who confirms each assumption, and how."""

    honest: Voucher | None = None
    """The fraction `sum.honest` answers, follows the protocol and does not collude with the analyst."""
    withheld: Voucher | None = None
    """The shuffler withholds all messages if fewer honest people answer."""


class SumStatement(Responsible):
    """Texts of the operator for the first page of the report."""

    vouched: SumVouched = SumVouched()
    """Who confirms each assumption, and how."""


class SumSpecification(File):
    """The specification of a sum and a mean of people's numbers, for which each person sends several messages."""

    kind_of_deployment: ClassVar[str] = "sum"
    title: Name | None = None
    """Title of the report."""
    rounds: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """Number of rounds with the same people, with fresh randomness (default: 1). The claim covers all together."""
    population: AnyPopulation
    """The people and their numbers: kind = "number", with `low`, `high` and `levels`."""
    sum: Sum
    """The guarantee of the sum."""
    targets: SumTargets = SumTargets()
    """Requirements that assess checks."""
    statement: SumStatement = SumStatement()
    """Who runs each part, and who confirms each assumption."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        population = raw.get("population")
        if not isinstance(population, dict):
            return
        if population.get("kind") != "number":
            hint = 'For example kind = "number", low = 0, high = 100, levels = 1001.'
            value = "nothing" if "kind" not in population else f'"{population["kind"]}"'
            yield Problem(key="population.kind", rule='must be "number"', value=value, hint=hint)
            return
        yield from answer_problems(population)
        coordinates = table_in(raw, "sum").get("coordinates")
        if "data" in population and coordinates not in (None, 1):
            hint = "Data have one number of each person, in `column`. Plan several numbers with n instead."
            yield Problem(key="sum.coordinates", rule="must be 1 with data", value=f"{coordinates}", hint=hint)
        for key in ("person", "reports_per_person"):
            if key in population and population[key] not in (NO_COLUMN, ASKED):
                hint = "Each person gives one number. Add up the numbers of a person first."
                yield Problem(key=f"population.{key}", rule="must be left out", value=str(population[key]), hint=hint)

    @property
    def times(self) -> int:
        return self.rounds or 1

    @property
    def delta(self) -> float:
        return min(self.sum.delta * self.times, 1.0)

    @property
    def wanted_delta(self) -> float:
        return self.delta if self.targets.delta is None else self.targets.delta

    def altered(self, *, epsilon: float, delta: float, levels: int) -> SumSpecification:
        plain = self.plain()
        changed = {
            "population": {**plain["population"], "levels": levels},
            "sum": {**plain["sum"], "epsilon": epsilon, "delta": delta},
        }
        return SumSpecification.model_validate({**plain, **changed})

    @property
    def asked(self) -> DataPopulation | CountedPopulation:
        """A reach study has no such population and is an error."""
        return cast("DataPopulation | CountedPopulation", self.population)  # a rule

    def one_number(self, command: str) -> None:
        """Refuse several numbers of each person, which only plans have."""
        several = self.sum.coordinates or 1
        if several > 1:
            hint = "The files have one number of each person, in one column. Use `hs.SplitAndMix` for several numbers."
            unfit("sum.coordinates", f"must be 1 for {command}", f"{several}", hint)

    def build(self, n: int) -> SplitAndMix:
        grid = self.asked.grid
        assert grid is not None  # a rule
        given = {key: value for key in _KEYS if (value := getattr(self.sum, key)) is not None}
        try:
            return SplitAndMix(low=grid.low, high=grid.high, levels=grid.levels, n=n, **given)
        except InvalidInputError as error:
            problem = error.problem
            key = f"sum.{problem.key}" if problem.key in _KEYS else f"population.{problem.key}"
            unfit(key, problem.rule, problem.value, problem.hint, where=f"specification, for n = {n:,} people")


_WORDS: Final = Vocabulary(
    sections={
        "": (SumSpecification,),
        "population": (DataPopulation, CountedPopulation),
        "sum": (Sum,),
        "targets": (SumTargets,),
        "statement": (SumStatement,),
        "statement.vouched": (SumVouched,),
    },
    goes_with=COLLECTION.goes_with,
    elsewhere={
        "randomizer": "A sum by several messages draws its own noise. Remove this table, or else [sum].",
        "shuffler": "A sum by several messages needs a uniform shuffle. Remove this table, or else [sum].",
        "adversaries": "The report on a sum by several messages covers all adversaries. Remove the key.",
        "run": "No collection of a sum by several messages is simulated. Remove this table.",
        "columns": "A sum by several messages has one column. Write one file per column.",
        **dict.fromkeys(("memoised", "changes"), "A sum by several messages has fresh noise in every round."),
    },
)


def is_sum(text: str) -> bool:
    """Return whether TOML text specifies a sum by several messages."""
    return "sum" in tables_of(text)


def parse_sum(text: str, *, file: str = "specification", base_folder: Path = Path()) -> SumSpecification:  # noqa: ARG001
    """Return the specification of a sum in TOML `text`; messages call the text `file`.

    >>> found = parse_sum('''
    ...     population = { n = 10_000, kind = "number", low = 0, high = 100, levels = 101 }
    ...     sum = { epsilon = 1.0, delta = 1e-9 }
    ... ''')
    >>> found.build(10_000).messages
    6
    """
    return parsed(text, SumSpecification, file=file, words=_WORDS)
