"""Read, check and write the TOML file of a plan: query, traffic and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_args

from pydantic import Field

from hushuffle import plans
from hushuffle.errors import InvalidInputError, Problem, SpecificationError
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.specification._base import File, Name, Section, Seed
from hushuffle.specification.reading import parsed, read_text, refuse_other_kind
from hushuffle.specification.wording import Vocabulary
from hushuffle_network.queries.aggregate import AggregateQuery
from hushuffle_network.queries.histogram import HistogramQuery
from hushuffle_network.queries.k_means import KMeansQuery
from hushuffle_network.queries.operator_query import OperatorQuery
from hushuffle_network.queries.query import Query, table

AnyQuery: TypeAlias = Annotated[
    AggregateQuery | KMeansQuery | HistogramQuery | OperatorQuery, Field(discriminator="kind")
]
QUERIES: Final[tuple[type[Query], ...]] = (AggregateQuery, KMeansQuery, HistogramQuery, OperatorQuery)
"""All types of queries, in the order in which messages list them."""
_RESULT_PATIENCE: Final = 3
"""The result waits this many times `patience` after the deadline, which covers start-up and sending."""


class Traffic(Section):
    """[traffic]: how the targets of messages are hidden; see `hushuffle.plans.Traffic`."""

    sigma: Annotated[float, Field(ge=0, le=1)]
    """Probability that a message goes to a random target instead of its own."""
    convention: Convention = "uniform"
    """The random target is drawn among all targets ("uniform"), or among all but its own ("exclusive")."""
    flood: Annotated[int, Field(ge=0)] = 0
    """Additional messages of each source to distinct other targets; only without scramblers."""
    dummies: Annotated[int, Field(ge=0, le=10**7)] | None = None
    """Number of dummies that each scrambler adds to a batch. Without `dummies` and `batch` there are no scramblers."""
    batch: Annotated[int, Field(ge=1)] | None = None
    """The largest number of sources of one scrambler (default: one scrambler serves all)."""
    min_batch: Annotated[int, Field(ge=1)] | None = None
    """Minimum number of sources in a batch that a scrambler releases; the guarantee is for this number. A node with
    several messages in a batch counts as one source.

    Default: four fifths of the smallest batch, rounded up; with a cap, the whole batch.
    """
    scramblers: Annotated[int, Field(ge=1, le=plans.MOST_SCRAMBLERS)] | None = None
    """Number of scramblers, of different parties, that each batch passes; each adds its dummies (default: 1). The
    guarantee holds if one is honest. Not with a cap."""
    capped: bool = False
    """Whether a target receives at most as many messages from a scrambler as this scrambler has sources; needs
    batches of one size."""

    def build(self) -> plans.Traffic:
        return plans.Traffic(**self.model_dump(exclude_none=True))


class PlanTargets(Section):
    """The targets of the plan."""

    delta: Annotated[float, Field(ge=0, lt=1)]
    """The delta of (epsilon, delta)-differential privacy; 0 asks for pure differential privacy."""
    epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON)] | None = None
    """Largest epsilon at this delta; `plan run` and every node refuse a plan that misses it."""
    people: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """The smallest number of people that must take part."""
    tuples: Annotated[float, Field(gt=0, le=1)] | None = None
    """The smallest share of the records that must reach their targets, on average."""
    seconds: Annotated[float, Field(gt=0)] | None = None
    """The longest acceptable time in seconds until a run on real nodes has a result; [network] sets the waits."""


class PlanRun(Section):
    """The source of randomness."""

    seed: Seed = "secure"
    """"secure", or an integer for a repeatable run (its randomness is predictable: for tests only)."""


class Network(Section):
    """[network]: common settings of a run on real nodes."""

    message: Annotated[int, Field(ge=256, le=16_384)] = 1024
    """Bytes of every message."""
    collect: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """Seconds during which a scrambler waits for messages of its sources."""
    patience: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds that a node waits on a connection for another node."""
    least: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The share of the sources below which there is no result."""

    def longest(self, stages: int) -> float:
        """Return the seconds that the result of a run with this many stages waits for the targets."""
        return stages * (self.collect + _RESULT_PATIENCE * self.patience)


class PlanSpecification(File):
    """The specification of an execution plan: query, traffic and targets; see `load_plan` and `parse_plan`."""

    title: Name | None = None
    """Title of the report (default: the computation)."""
    query: AnyQuery
    """The computation and its data."""
    traffic: Traffic
    """How messages are hidden."""
    targets: PlanTargets
    """The targets."""
    run: PlanRun = PlanRun()
    """The source of randomness."""
    network: Network | None = None
    """Settings of a run on real nodes."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        query = table(raw, "query")
        for kind in QUERIES:
            if query.get("kind") in _names(kind):
                yield from kind.problems(query)
        yield from _traffic_problems(table(raw, "traffic"))

    def plan(self, people: int) -> plans.Plan:
        """Return the plan for this number of people.

        Raises:
            SpecificationError: the specification does not fit this number of people, or contradicts itself.

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
            return self.query.plan(people, self.traffic.build())
        except InvalidInputError as error:
            where = f"specification, for {people:,} people"
            problem = error.problem
            key = f"traffic.{problem.key}" if problem.key in Traffic.model_fields else problem.key
            raise SpecificationError(where, (replace(problem, key=key),)) from error


def load_plan(path: str | Path) -> PlanSpecification:
    """Return the plan's specification in the TOML file `path`.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parse_plan(read_text(path), file=str(path))


def parse_plan(text: str, *, file: str = "specification") -> PlanSpecification:
    """Return the plan's specification in TOML `text`; messages call the text `file`.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    hint = "A file with [randomizer] is for hushuffle assess, calibrate and collect."
    refuse_other_kind(text, "randomizer", "a file for a collection", hint, file=file)
    return parsed(text, PlanSpecification, file=file, words=_words())


def _traffic_problems(traffic: Mapping[str, Any]) -> Iterator[Problem]:
    scramblers = [key for key in ("dummies", "batch") if key in traffic]
    flood = traffic.get("flood", 0)
    if scramblers and isinstance(flood, int) and flood > 0:
        hint = "Let the scramblers add more dummies instead."
        yield Problem(key="traffic.flood", rule="must be 0 with scramblers", value=f"{flood}", hint=hint)
    batch, least = traffic.get("batch"), traffic.get("min_batch")
    if least is not None and not scramblers:
        hint = "Set batch and dummies."
        yield Problem(key="traffic.min_batch", rule="is allowed only with scramblers", value=f"{least}", hint=hint)
    if isinstance(batch, int) and isinstance(least, int) and least > batch:
        yield Problem(key="traffic.min_batch", rule=f"must be at most batch = {batch}", value=f"{least}")
    chained = traffic.get("scramblers")
    if isinstance(chained, int) and chained > 1 and (not scramblers or traffic.get("capped") is True):
        rule = "must be 1 under a cap" if scramblers else "must be 1 without dummies and batch"
        hint = "Only the last scrambler knows the targets." if scramblers else "Set batch and dummies."
        yield Problem(key="traffic.scramblers", rule=rule, value=f"{chained}", hint=hint)
    if traffic.get("capped") is True and not scramblers:
        hint = "Set batch and dummies."
        yield Problem(key="traffic.capped", rule="is allowed only with scramblers", value="true", hint=hint)


def _names(kind: type[Section]) -> tuple[str, ...]:
    return get_args(kind.model_fields["kind"].annotation)


def _words() -> Vocabulary:
    inner: dict[str, list[type[Section]]] = {}
    owners: dict[type[Section], list[str]] = {}
    for kind in QUERIES:
        for name, section in ((name, one) for name, tables in kind.tables.items() for one in tables):
            inner.setdefault(f"query.{name}", []).append(section)
            owners.setdefault(section, []).extend(f'"{word}"' for word in _names(kind))
    sections: dict[str, tuple[type[Section], ...]] = {"": (PlanSpecification,), "query": QUERIES}
    sections |= {name: tuple(dict.fromkeys(tables)) for name, tables in inner.items()}
    sections |= {"traffic": (Traffic,), "targets": (PlanTargets,), "run": (PlanRun,), "network": (Network,)}
    goes_with = {
        section: f"This key needs kind = {' or '.join(names)}."
        for section, names in owners.items()
        if "kind" not in section.model_fields
    }
    return Vocabulary(sections=sections, goes_with=goes_with)
