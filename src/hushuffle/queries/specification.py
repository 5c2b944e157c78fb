"""The TOML file of a plan: the query, what hides its traffic, what is wanted; read, checked, written out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, get_args

from pydantic import Field

from hushuffle import plans
from hushuffle.errors import InvalidInputError, Problem, SpecificationError
from hushuffle.mechanisms.randomizers.settings import LARGEST_EPSILON
from hushuffle.mechanisms.randomizers.target_sampling import Convention
from hushuffle.queries.kinds import QUERIES, AnyQuery
from hushuffle.queries.query import table
from hushuffle.specification._base import File, Name, Section, Seed
from hushuffle.specification.reading import parsed, read_text, refuse_other_kind, tables_of
from hushuffle.specification.wording import Vocabulary

RESULT_PATIENCE: Final = 3
"""How many times `patience` the result waits longer than a scrambler, for start-up and for sending."""

_REJECTED: Final = re.compile(r"`([^`]+)` (must be .+), got [^=]*=(.*?)\.(?: (.*))?", re.DOTALL)


class Traffic(Section):
    """What hides where messages go: `hushuffle.plans.Traffic`, as a file gives it."""

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
    """Sources without which a scrambler releases nothing, and for which the guarantee is stated.

    Left out: four fifths of the smallest batch, rounded up; all of it under a cap."""
    scramblers: Annotated[int, Field(ge=1, le=plans.MOST_SCRAMBLERS)] | None = None
    """How many scramblers each batch passes one after the other, each with its dummies; left out, one."""
    capped: bool = False
    """Whether no target gets more messages from a scrambler than it has sources."""

    def build(self) -> plans.Traffic:
        """Return it for the builders of plans."""
        return plans.Traffic(**self.model_dump(exclude_none=True))


class PlanTargets(Section):
    """What is asked of the plan."""

    delta: Annotated[float, Field(ge=0, lt=1)]
    """The delta of (epsilon, delta)-differential privacy; 0 asks for the pure figure."""
    epsilon: Annotated[float, Field(gt=0, le=LARGEST_EPSILON)] | None = None
    """The largest epsilon that is acceptable at this delta."""
    people: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """The fewest people that must take part."""
    tuples: Annotated[float, Field(gt=0, le=1)] | None = None
    """The smallest share of the tuples that must reach their targets, on average."""
    seconds: Annotated[float, Field(gt=0)] | None = None
    """The longest that a run by real nodes may take until there is a result; [network] says how long they wait."""


class PlanRun(Section):
    """Where coins come from."""

    seed: Seed = "secure"
    """"secure", or an integer for a run that can be repeated (and predicted: for tests only)."""


class Network(Section):
    """How the plan is run by real nodes: what they have in common besides the plan."""

    message: Annotated[int, Field(ge=256, le=16_384)] = 1024
    """Bytes of every message."""
    collect: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """Seconds that a scrambler waits for its sources."""
    patience: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds that a node waits for another one on a connection."""
    least: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The share of the sources without which there is no result."""
    processes: Annotated[int, Field(ge=1, le=64)] = 2
    """With `--network`: processes for the sources, and as many for scramblers and for compute nodes."""

    def longest(self, stages: int) -> float:
        """Return the seconds from the start of a run of so many stages in which the result waits for the targets."""
        return stages * (self.collect + RESULT_PATIENCE * self.patience)


class PlanSpecification(File):
    """One execution plan: query, traffic, targets; see `load_plan`, `parse_plan`."""

    title: Name | None = None
    """What the report is called."""
    query: AnyQuery
    """What is computed, on which data."""
    traffic: Traffic
    """What hides where messages go."""
    targets: PlanTargets
    """What is wanted."""
    run: PlanRun = PlanRun()
    """Where coins come from."""
    network: Network | None = None
    """How the plan is run by real nodes."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        query = table(raw, "query")
        for kind in QUERIES:
            if query.get("kind") in _names(kind):
                yield from kind.problems(query)
        yield from _traffic_problems(table(raw, "traffic"))

    def plan(self, people: int) -> plans.Plan:
        """Return the plan for so many people.

        Raises:
            SpecificationError: the specification does not fit so many people, or its own values not each other.

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
            raise SpecificationError(where, (_problem(str(error)),)) from error


def load_plan(path: str | Path) -> PlanSpecification:
    """Return the plan's specification in the TOML file `path`.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parse_plan(read_text(path), file=str(path))


def describes_plan(path: str | Path) -> bool:
    """Return whether a TOML file is one of the plan of a query; what is wrong with it is said by whoever loads it."""
    return "query" in tables_of(read_text(path))


def parse_plan(text: str, *, file: str = "specification") -> PlanSpecification:
    """Return the plan's specification that TOML `text` states; `file` is for messages.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    hint = "Such a file is for hushuffle assess, calibrate and collect."
    refuse_other_kind(text, "randomizer", "a survey", hint, file=file)
    return parsed(text, PlanSpecification, file=file, words=_words())


def _traffic_problems(traffic: Mapping[str, Any]) -> Iterator[Problem]:
    scramblers = [key for key in ("dummies", "batch") if key in traffic]
    flood = traffic.get("flood", 0)
    if scramblers and isinstance(flood, int) and flood > 0:
        hint = "Let the scramblers add more dummies instead."
        yield Problem(key="traffic.flood", rule="must be 0 behind scramblers", value=f"{flood}", hint=hint)
    batch, least = traffic.get("batch"), traffic.get("min_batch")
    if least is not None and not scramblers:
        hint = "Give batch and dummies."
        yield Problem(key="traffic.min_batch", rule="must be left out without scramblers", value=f"{least}", hint=hint)
    if isinstance(batch, int) and isinstance(least, int) and least > batch:
        yield Problem(key="traffic.min_batch", rule=f"must be at most batch = {batch}", value=f"{least}")
    chained = traffic.get("scramblers")
    if isinstance(chained, int) and chained > 1 and (not scramblers or traffic.get("capped") is True):
        rule = "must be 1 under a cap" if scramblers else "must be 1 without dummies and batch"
        hint = "Only the last scrambler knows the targets." if scramblers else "Give batch and dummies."
        yield Problem(key="traffic.scramblers", rule=rule, value=f"{chained}", hint=hint)
    if traffic.get("capped") is True and not scramblers:
        hint = "Give batch and dummies."
        yield Problem(key="traffic.capped", rule="must be false without scramblers", value="true", hint=hint)


def _names(kind: type[Section]) -> tuple[str, ...]:
    return get_args(kind.model_fields["kind"].annotation)


def _words() -> Vocabulary:
    """Return the tables of a plan's file, with those that a kind of query has for itself."""
    inner: dict[str, list[type[Section]]] = {}
    owners: dict[type[Section], list[str]] = {}
    for kind in QUERIES:
        for name, section in kind.tables.items():
            inner.setdefault(f"query.{name}", []).append(section)
            owners.setdefault(section, []).extend(f'"{word}"' for word in _names(kind))
    return Vocabulary(
        sections={
            "": (PlanSpecification,),
            "query": QUERIES,
            **{name: tuple(dict.fromkeys(sections)) for name, sections in inner.items()},
            "traffic": (Traffic,),
            "targets": (PlanTargets,),
            "run": (PlanRun,),
            "network": (Network,),
        },
        goes_with={
            section: f"It goes with kind = {' or '.join(names)}."
            for section, names in owners.items()
            if "kind" not in section.model_fields
        },
    )


def _problem(message: str) -> Problem:
    """Return what a builder of plans complains about, as a problem of the file."""
    found = _REJECTED.fullmatch(message)
    assert found is not None  # every rejected argument is worded alike
    name, rule, value, hint = found.groups()
    return Problem(
        key=f"traffic.{name}" if name in Traffic.model_fields else name, rule=rule, value=value, hint=hint or ""
    )
