"""The TOML specification of an execution plan: the query, what hides its traffic, what is wanted."""

from __future__ import annotations

import itertools
import re
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import tomli_w
from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from hushuffle import plans
from hushuffle.errors import InvalidInputError, Problem, SpecificationError
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.plans.aggregates import Function
from hushuffle.plans.builders import PerPerson, Variant
from hushuffle.plans.centroids import Noise
from hushuffle.specification._base import LARGEST_EPSILON, ConditionText, Label, Name, Section, Seed, either, refuse
from hushuffle.specification.network import Network
from hushuffle.specification.plan_rules import plan_problems

_SHAPES: Final = (
    "must be a list of labels, a table of conditions, a table with low, high and intervals, or a number of groups"
)
_REJECTED: Final = re.compile(r"`([^`]+)` (must be .+), got [^=]*=(.*?)\.(?: (.*))?", re.DOTALL)
Names: TypeAlias = Annotated[tuple[Name, ...], Field(strict=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Intervals(Section):
    """Equal intervals of numbers; what is below the first or above the last counts in it."""

    low: Finite
    """Lower end of the first interval."""
    high: Finite
    """Upper end of the last interval."""
    intervals: Annotated[int, Field(ge=2, le=10_000)]
    """How many."""

    def conditions(self) -> dict[str, str]:
        """Return the condition of each interval by its name.

        >>> Intervals(low=0, high=30, intervals=3).conditions()
        {'below 10': '< 10', '10 to 20': '>= 10 and < 20', '20 and more': '>= 20'}
        """
        width = (self.high - self.low) / self.intervals
        cuts = [f"{self.low + place * width:.12g}" for place in range(1, self.intervals)]
        inner = {f"{a} to {b}": f">= {a} and < {b}" for a, b in itertools.pairwise(cuts)}
        return {f"below {cuts[0]}": f"< {cuts[0]}", **inner, f"{cuts[-1]} and more": f">= {cuts[-1]}"}


def _shape(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return "<number>"
    if isinstance(value, list | tuple):
        return "<list>"
    if isinstance(value, Intervals) or (isinstance(value, dict) and isinstance(value.get("intervals"), int)):
        return "<intervals>"
    return "<table>" if isinstance(value, dict) else None


def _pair(value: Any) -> Any:
    pair = isinstance(value, list | tuple) and len(value) == 2
    if not pair or not all(isinstance(end, int | float) and not isinstance(end, bool) for end in value):
        refuse("must be [low, high], two numbers")
    return tuple(float(end) for end in value)


GroupingColumn = Annotated[
    Annotated[Annotated[int, Field(ge=2, le=10_000)], Tag("<number>")]
    | Annotated[Intervals, Tag("<intervals>")]
    | Annotated[dict[Label, ConditionText], Tag("<table>")]
    | Annotated[tuple[Label, ...], Field(strict=False), Tag("<list>")],
    Discriminator(_shape, custom_error_type="rule", custom_error_message=_SHAPES),
]
"""How the records of a column fall into groups; a number of groups for generated data."""
Range = Annotated[tuple[Finite, Finite], BeforeValidator(_pair)]
"""The public ends of a column of numbers."""


class Generated(Section):
    """Made-up records: grouping columns independent, values normal around the group."""

    people: Annotated[int, Field(ge=1, le=10**7)]
    """How many people, one record each."""
    distribution: Literal["uniform", "skewed"] = "uniform"
    """"uniform": every group of a column equally likely; "skewed": group i with weight 1/(i + 1)."""
    seed: Annotated[int, Field(ge=0)] = 1
    """The same seed, the same records."""


class GeneratedPoints(Section):
    """Made-up points around as many centres as there are centroids, in the box from -1 to 1."""

    people: Annotated[int, Field(ge=1, le=10**7)]
    """How many people, one point each."""
    dimensions: Annotated[int, Field(ge=1, le=10_000)] = 2
    """Coordinates of a point."""
    spread: Positive = 0.15
    """Standard deviation of the points around their centre."""
    seed: Annotated[int, Field(ge=0)] = 1
    """The same seed, the same points."""


class AggregateQuery(Section):
    """Count, sum, average, least and greatest by grouping sets."""

    model_config = ConfigDict(json_schema_extra=either("data", "generated"))

    kind: Literal["aggregate"]
    data: Annotated[str, Field(min_length=1)] | None = None
    """A CSV or Parquet file, a glob, or statsmodels:NAME; one record for each person. This or generated."""
    generated: Generated | None = None
    """Made-up records instead of data."""
    missing: Literal["refuse", "drop"] = "refuse"
    """What becomes of records with a missing value."""
    columns: Annotated[dict[Name, GroupingColumn], Field(min_length=1)]
    """The grouping columns, and how their values fall into groups, known beforehand."""
    grouping_sets: Annotated[tuple[Names, ...], Field(strict=False, min_length=1)]
    """Lists of grouping columns: one result by each."""
    values: Names = ()
    """Columns of numbers to be summed up."""
    ranges: dict[Name, Range] | None = None
    """The public ranges [low, high] of values: what lies outside is moved to its end, and compute nodes refuse it."""
    functions: Annotated[tuple[Function, ...], Field(strict=False, min_length=1)] = ("count",)
    """What is computed: "count", "sum", "avg", "min", "max"."""
    partitions: Annotated[int, Field(ge=2)]
    """Compute nodes of each grouping set."""
    per_person: PerPerson = "all"
    """"all": every record goes to every grouping set; "one": to one, chosen without looking at data."""

    def categories(self) -> dict[str, dict[str, str] | tuple[str, ...]]:
        """Return conditions or labels of the groups of every column that is used."""
        used = dict.fromkeys(column for one in self.grouping_sets for column in one)
        return {name: _categories(self.columns[name]) for name in used}

    def query(self) -> plans.GroupingQuery:
        """Return the query."""
        sizes = {name: len(groups) for name, groups in self.categories().items()}
        sets = [
            plans.GroupingSet(columns=names, sizes=tuple(sizes[name] for name in names)) for names in self.grouping_sets
        ]
        return plans.GroupingQuery(
            grouping_sets=tuple(sets),
            values=self.values,
            functions=self.functions,
            partitions=self.partitions,
            ranges=tuple(map(self.ranges.get, self.values)) if self.ranges else (),
        )

    def plan(self, people: int, traffic: Traffic) -> plans.Plan:
        """Return the plan for so many people."""
        return plans.aggregate(self.query(), people=people, per_person=self.per_person, **traffic.plain())


class NoiseOfCentroids(Section):
    """Noise on the sums and numbers of points that each iteration releases."""

    kind: Noise
    """"gaussian" or "laplace"."""
    radius: Positive
    """Points are shortened to this length (Gaussian: Euclidean; Laplace: sum of absolute values)."""
    scale: Positive
    """Standard deviation of Gaussian noise, b of Laplace noise."""

    def build(self) -> plans.CentroidNoise:
        """Return the noise."""
        return plans.CentroidNoise(kind=self.kind, radius=self.radius, scale=self.scale)


class KMeansQuery(Section):
    """K-means: in every iteration each person's point goes to the node of its nearest centroid."""

    model_config = ConfigDict(json_schema_extra=either("data", "generated"))

    kind: Literal["k-means"]
    data: Annotated[str, Field(min_length=1)] | None = None
    """A folder of IDX images (MNIST), or a table as for "aggregate" with columns. This or generated."""
    generated: GeneratedPoints | None = None
    """Made-up points instead of data."""
    missing: Literal["refuse", "drop"] = "refuse"
    """What becomes of records of a table with a missing value."""
    columns: Annotated[dict[Name, Range], Field(min_length=1)] | None = None
    """The columns of a table and their public ranges [low, high], which become -1 and 1."""
    centroids: Annotated[int, Field(ge=2, le=10_000)]
    """K."""
    iterations: Annotated[int, Field(ge=1, le=1000)]
    """Number of iterations."""
    variant: Variant
    """"private-centroids" (with noise), "public-centroids" (a conditional guarantee) or "hidden" (none)."""
    noise: NoiseOfCentroids | None = None
    """With private centroids, and only with them."""
    start: Annotated[int, Field(ge=0)] = 1
    """Which public draw of first centroids; it never depends on the people's points."""

    def plan(self, people: int, traffic: Traffic) -> plans.Plan:
        """Return the plan for so many people."""
        return plans.k_means(
            people=people,
            centroids=self.centroids,
            iterations=self.iterations,
            variant=self.variant,
            noise=self.centroid_noise(),
            **traffic.plain(),
        )

    def centroid_noise(self) -> plans.CentroidNoise | None:
        """Return the noise of released centroids, if there is any."""
        return None if self.noise is None else self.noise.build()


class Traffic(Section):
    """What hides where messages go."""

    sigma: Annotated[float, Field(ge=0, le=1)]
    """Probability that a message goes to a random target instead of its own."""
    convention: Convention = "uniform"
    """The random target is among all ("uniform") or among the others ("exclusive")."""
    flood: Annotated[int, Field(ge=0)] = 0
    """Further messages of each source to distinct other targets; only without scramblers."""
    dummies: Annotated[int, Field(ge=0, le=10**7)] | None = None
    """Dummies of each scrambler; with neither dummies nor batch there are no scramblers."""
    batch: Annotated[int, Field(ge=1)] | None = None
    """The most sources of one scrambler; left out, one scrambler serves all."""
    min_batch: Annotated[int, Field(ge=1)] | None = None
    """Sources without which a scrambler releases nothing, and for which the guarantee is stated; left out, all."""
    capped: bool = False
    """Whether no target gets more messages from a scrambler than it has sources."""

    def plain(self) -> dict[str, Any]:
        """Return the arguments of the builders of plans."""
        return {name: getattr(self, name) for name in Traffic.model_fields}


class PlanTargets(Section):
    """What is asked of the plan."""

    delta: Annotated[float, Field(ge=0, lt=1)]
    """The delta of (epsilon, delta)-differential privacy; 0 asks for the pure figure."""
    epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON)] | None = None
    """The largest epsilon that is acceptable at this delta."""


class PlanRun(Section):
    """Where coins come from."""

    seed: Seed = "secure"
    """"secure", or an integer for a run that can be repeated (and predicted: for tests only)."""


class PlanSpecification(Section):
    """One execution plan: query, traffic, targets.

    Raises:
        pydantic.ValidationError: a value or a combination of values breaks a rule; `load_plan` and `parse_plan`
            raise a `SpecificationError` in plain words instead.
    """

    title: Name | None = None
    """What the report is called."""
    query: Annotated[AggregateQuery | KMeansQuery, Field(discriminator="kind")]
    """What is computed, on which data."""
    traffic: Traffic
    """What hides where messages go."""
    targets: PlanTargets
    """What is wanted."""
    run: PlanRun = PlanRun()
    """Where coins come from."""
    network: Network | None = None
    """How the plan is run by real nodes."""

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        problems = list(plan_problems(self.plain()))
        if problems:
            refuse("; ".join(str(problem) for problem in problems))
        return self

    def plain(self) -> dict[str, Any]:
        """Return the specification as tables, lists and values, every default spelled out."""
        return self.model_dump(exclude_none=True)

    def effective(self) -> str:
        """Return TOML text with every default spelled out."""
        return tomli_w.dumps(self.plain())

    def plan(self, people: int) -> plans.Plan:
        """Return the plan for so many people.

        Raises:
            SpecificationError: the specification does not fit so many people, or its own values not each other.

        >>> from hushuffle.specification import parse_plan
        >>> spec = parse_plan('''
        ...     traffic = { sigma = 0.2 }
        ...     targets = { delta = 0.0 }
        ...     [query]
        ...     kind = "k-means"
        ...     variant = "hidden"
        ...     generated = { people = 900 }
        ...     centroids = 4
        ...     iterations = 2
        ... ''')
        >>> spec.plan(900).name
        'k-means, 4 centroids, 2 iterations, hidden'
        """
        try:
            return self.query.plan(people, self.traffic)
        except InvalidInputError as error:
            where = f"specification, for {people:,} people"
            raise SpecificationError(where, (_problem(str(error)),)) from error


def _categories(column: int | Intervals | dict[str, str] | tuple[str, ...]) -> dict[str, str] | tuple[str, ...]:
    if isinstance(column, int):
        return tuple(str(group) for group in range(column))
    return column.conditions() if isinstance(column, Intervals) else column


def _problem(message: str) -> Problem:
    """Return what a builder of plans complains about, as a problem of the file."""
    found = _REJECTED.fullmatch(message)
    assert found is not None  # every rejected argument is worded alike
    name, rule, value, hint = found.groups()
    return Problem(
        key=f"traffic.{name}" if name in Traffic.model_fields else name, rule=rule, value=value, hint=hint or ""
    )
