"""[population] of a reach study: publishers, each with an audience and a Bloom filter of that audience."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NoReturn

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field

from hushuffle._checks import fail, unsupported
from hushuffle.answers.base import SHARES, Answer
from hushuffle.errors import InvalidInputError, Problem
from hushuffle.files.secret_keys import key_in_environment, key_in_file
from hushuffle.mechanisms.column_views import MOST_PUBLISHERS, ColumnViews
from hushuffle.mechanisms.sketches import BloomEncoder, BloomFilter, per_bit
from hushuffle.model import Population
from hushuffle.specification._base import CsvKeys, Name, Section, WithoutFiles, either, table_in, tables_in, unfit
from hushuffle.specification.column_views import MOST_PATTERNS, View, build_views, view_problems

if TYPE_CHECKING:
    import polars as pl

    from hushuffle.mechanisms.shufflers import DummyLaw, GeometricDummies
    from hushuffle.randomness import Randomness

_KEYS: Final = ("publishers", "audiences")


@dataclass(frozen=True, kw_only=True, eq=False)
class Audiences:
    """The audiences of a reach study: the public part, and the number of people in each combination (private).

    `people[i]`, shape (2**k,), counts the people who are in exactly the audiences of the set bits of i; `people[0]` is
    0. `filters` are the publishers' unflipped Bloom filters (None: the audiences are assumed).
    """

    population: Population
    people: npt.NDArray[np.int64]
    filters: tuple[BloomFilter, ...] | None = None

    def __post_init__(self) -> None:
        if not self.people.any():
            fail("all audiences are empty, so there is no reach to measure.")


class ReachPopulation(WithoutFiles, Section):
    """Publishers with audiences, and the number of bits and hash functions of their Bloom filters."""

    kind_of_deployment: ClassVar[str] = "reach"
    most: ClassVar[int] = 1
    grid: ClassVar[None] = None
    answer: ClassVar[Answer] = SHARES
    bits: Annotated[int, Field(ge=100, le=2**31 - 1)]
    """Bits of each filter."""
    hashes: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of hash functions: columns that one person sets. More hash functions cost privacy and gain little."""
    views: Annotated[tuple[View, ...], Field(strict=False, min_length=1)] | None = None
    """With [shuffler] kind = "augmented": what the shuffler counts (default: the bit patterns of all publishers). More
    than 10 publishers need views of unions or contacts."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The publishers' names."""

    @abstractmethod
    def meet(self, base_folder: Path) -> Audiences:
        """Return the audiences."""

    def shown(self, each: DummyLaw | GeometricDummies) -> ColumnViews:
        """Return the released views of the columns; `each` is the distribution of the dummies in [shuffler].

        Raises:
            SpecificationError: the views cannot be counted together.
        """
        return build_views(self.views, names=self.names, bits=self.bits, hashes=self.hashes, each=each)

    def flips(self, randomizer: Any, targets: Any) -> float:
        """Return the flip probability: that of [randomizer], or the smallest that satisfies targets.epsilon."""
        p = randomizer.given().get("p")
        return self.fewest_flips(targets) if p is None else float(p)

    def fewest_flips(self, targets: Any) -> float:
        """Return the smallest flip probability that satisfies targets.epsilon."""
        from hushuffle.questions import bloom  # noqa: PLC0415 - only when needed

        estimate = bloom.estimate_flip_prob(
            filters=len(self.names), bits=self.bits, epsilon=targets.epsilon, delta=targets.delta, hashes=self.hashes
        )
        return estimate.p

    def read(self, base_folder: Path, *, rng: Randomness | None = None) -> NoReturn:  # noqa: ARG002 - as of the others
        """Raise UnsupportedProtocolError, because people of a reach study give no answers."""
        unsupported(
            "This is a reach study, in which people are in audiences and give no answers. Use `hushuffle assess`; "
            "without p it finds the smallest p for targets.epsilon."
        )

    def explored(self) -> NoReturn:
        """Raise SpecificationError, because `explore` varies people with one value each."""
        hint = "Run assess for the charts of a reach study."
        unfit("population", "must be people with one value each for explore", "a study of reach", hint)

    def answered(self, column: str | None, *, given: bool) -> NoReturn:  # noqa: ARG002 - as the other kinds
        """Raise SpecificationError, because a reach study has no answers to collect."""
        hint = "Run assess to rehearse the study. Publishers flip their filters with `hs.BloomFilter.flip`."
        unfit("population", "must be people with one value each for a collection", "a reach study", hint)


class PublisherPopulation(CsvKeys, ReachPopulation):
    """Audiences from the publishers' files of identifiers, for an assessment that may read all of these files."""

    model_config = ConfigDict(json_schema_extra=either("key_file", "key_variable"))

    publishers: Annotated[dict[Name, Name], Field(min_length=1, max_length=MOST_PUBLISHERS)]
    """A table of CSV or Parquet files (or globs) of identifiers by publisher, relative to this file's folder."""
    column: Annotated[str, Field(min_length=1)]
    """The column of identifiers; it has the same name in all files."""
    missing: Literal["refuse", "drop"] = "refuse"
    """Treatment of records without identifier: "refuse" or "drop"."""
    key_file: Annotated[str, Field(min_length=1)] | None = None
    """A file with the key of the hash functions, 64 hexadecimal digits or more, that only its owner can read; this or
    key_variable."""
    key_variable: Annotated[str, Field(min_length=1)] | None = None
    """The name of an environment variable with the key; this or key_file."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.publishers)

    def meet(self, base_folder: Path) -> Audiences:
        """No message shows an identifier or the key."""
        from hushuffle.tables.sketch_files import identifier_columns  # noqa: PLC0415 - only when needed

        encoder = BloomEncoder(bits=self.bits, hashes=self.hashes, key=self._key(base_folder))
        filters, members, dropped = [], [], 0
        for name, source in self.publishers.items():
            chunks = identifier_columns(source, column=self.column, base_folder=base_folder, form=self.form)
            read = _Identifiers(chunks, drop=self.missing == "drop")
            try:
                filters.append(encoder.encode_chunks(read))
            except InvalidInputError as error:
                fail(f"{source}, the identifiers of {name}: {error}")
            members.append(read.members())
            dropped += read.dropped
        people = _exactly(members)
        population = Population(
            n=int(people.sum()),
            labels=self.names,
            source=f"column {self.column} of {', '.join(dict.fromkeys(self.publishers.values()))}",
            counts=tuple(len(each) for each in members),
            dropped=dropped,
            label_of="publisher",
        )
        return Audiences(population=population, people=people, filters=tuple(filters))

    def _key(self, base_folder: Path) -> bytes:
        if self.key_variable is not None:
            return key_in_environment(self.key_variable)
        assert self.key_file is not None
        return key_in_file(base_folder / Path(self.key_file).expanduser())


class AudiencePopulation(ReachPopulation):
    """Assumed sizes and overlaps of audiences, for a study that is being planned."""

    people: Annotated[int, Field(ge=2, le=10**9)]
    """Number of people, in an audience or in none."""
    audiences: Annotated[dict[Name, Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=MOST_PUBLISHERS)]
    """A table with the size of each publisher's audience."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.audiences)

    def meet(self, base_folder: Path) -> Audiences:  # noqa: ARG002 - the other kind of population reads files
        """Return audiences of about the assumed sizes, with the overlaps of `assumed_people`."""
        people = assumed_people(self.people, list(self.audiences.values()))
        sets = np.arange(people.size)
        population = Population(
            n=int(people.sum()),
            labels=self.names,
            source=f"assumed audiences among {self.people:,} people",
            counts=tuple(int(people[sets >> each & 1 == 1].sum()) for each in range(len(self.names))),
            label_of="publisher",
        )
        return Audiences(population=population, people=people)


def assumed_people(n: int, sizes: list[int]) -> npt.NDArray[np.int64]:
    """Return for each i, shape (2**k,), how many of n people visit exactly the publishers whose bits are 1 in i.

    In this model each person visits publishers at rates proportional to a personal activity, exponential with mean 1.
    People who visit one publisher often visit others often, so audiences overlap more than independent audiences. A
    share 1/(1 + sum of r/(1 - r)) of the people visits none of some publishers; r is each publisher's audience as a
    share of the people. Counts are rounded to whole people; for more than 10 publishers, their cumulative sums are.

    Source: G. J. Goerg, Estimating reach curves from one data point (2014).

    >>> assumed_people(1000, [300, 200]).tolist()  # independent audiences would share 60
    [0, 204, 104, 96]
    """
    shares = np.array(sizes) / n
    rates = shares / (1 - shares)
    sets = np.arange(1 << len(sizes))
    total = sum(rate * (sets >> place & 1) for place, rate in enumerate(rates))
    none_of = 1 / (1 + total)
    # In exactly T: by inclusion and exclusion over the share that is in none of the complement of T.
    inside_only = per_bit([[1.0, 0.0], [-1.0, 1.0]], none_of[::-1].copy())
    expected = np.maximum(inside_only, 0.0) * n
    expected[0] = 0.0
    if len(sizes) <= MOST_PATTERNS:
        people: npt.NDArray[np.int64] = np.rint(expected).astype(np.int64)
        return people
    # Most of so many sets have less than one person, so sums are rounded, which keeps the sizes of audiences.
    whole: npt.NDArray[np.int64] = np.diff(np.rint(np.cumsum(expected)).astype(np.int64), prepend=0)
    return whole


def about_reach(raw: Mapping[str, Any]) -> bool:
    population = raw.get("population")
    if isinstance(population, dict):
        return any(key in population for key in _KEYS)
    return isinstance(population, ReachPopulation)


def reach_problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield conflicts between the keys of a reach study, or a bit-flipping randomizer outside a reach study."""
    randomizer, shuffler, targets = (table_in(raw, key) for key in ("randomizer", "shuffler", "targets"))
    flips = randomizer.get("kind") == "bit-flipping"
    if not about_reach(raw):
        if flips:
            hint = "For people with one answer each, use randomized-response or local-hashing."
            rule = 'must have publishers or audiences for kind = "bit-flipping"'
            yield Problem(key="population", rule=rule, value="neither", hint=hint)
        return
    yield from view_problems(raw)
    if with_dummies(shuffler):
        yield from _dummies(randomizer, shuffler)
    elif isinstance(randomizer.get("kind"), str) and not flips:
        value = f'"{randomizer["kind"]}"'
        hint = 'Or protect bits without flips by dummies: [shuffler] kind = "augmented".'
        yield Problem(key="randomizer.kind", rule='must be "bit-flipping" in a reach study', value=value, hint=hint)
    elif isinstance(shuffler.get("kind"), str) and shuffler["kind"] != "uniform":
        hint = "The estimates use counts of columns, which have no order."
        yield Problem(
            key="shuffler.kind", rule='must be "uniform" with flips', value=f'"{shuffler["kind"]}"', hint=hint
        )
    if flips and "p" not in randomizer and "epsilon" not in targets:
        hint = "With targets.epsilon, assess uses the smallest p that meets it."
        yield Problem(key="randomizer.p", rule="must be given, or else targets.epsilon", value="neither", hint=hint)
    yield from _adversaries(raw)
    yield from _population(table_in(raw, "population"))


def with_dummies(shuffler: Mapping[str, Any]) -> bool:
    """Return whether the shuffler gets columns without flips and adds dummies of each bit pattern."""
    return shuffler.get("kind") == "augmented"


def _dummies(randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> Iterator[Problem]:
    for key, only in (("kind", "randomized-response"), ("epsilon", "inf")):
        if (value := f"{randomizer.get(key, 'nothing')}") != only:
            hint = "With epsilon = inf, publishers send their true bits; the shuffler's dummies protect people."
            rule = f'must be "{only}" with a shuffler of kind "augmented"'
            yield Problem(key=f"randomizer.{key}", rule=rule, value=value, hint=hint)
    for key in ("pure_epsilon", "kept"):
        if key in shuffler:
            hint = "Give the distribution of the dummies of each bit pattern in `each`."
            yield Problem(key=f"shuffler.{key}", rule="must be left out in a reach study", value="a number", hint=hint)


def _adversaries(raw: Mapping[str, Any]) -> Iterator[Problem]:
    for position, table in enumerate(tables_in(raw, "adversaries")):
        kind, key = table.get("kind"), f"adversaries[{position}].kind"
        if isinstance(kind, str) and kind != "strong":
            hint = "A column has no sender and no single answer. Use strong, which is the worst case."
            yield Problem(key=key, rule='must be "strong" in a reach study', value=f'"{kind}"', hint=hint)


def _population(population: Mapping[str, Any]) -> Iterator[Problem]:
    if "publishers" in population and ("key_file" in population) == ("key_variable" in population):
        given = "both" if "key_file" in population else "neither"
        hint = "The key is secret: store it in a separate file or in the environment, never in this file."
        yield Problem(key="population", rule="must have either key_file or key_variable", value=given, hint=hint)
    people, audiences = population.get("people"), population.get("audiences")
    if isinstance(people, int) and isinstance(audiences, dict):
        for name, size in audiences.items():
            if isinstance(size, int) and size >= people:
                rule = f"must be fewer than all {people:,} people"
                yield Problem(key=f"population.audiences.{name}", rule=rule, value=f"{size}")


class _Identifiers:
    """One publisher's identifiers: read in chunks, then held as a set of people."""

    def __init__(self, chunks: Iterator[pl.Series], *, drop: bool) -> None:
        self._chunks, self._drop = chunks, drop
        self._seen: list[pl.Series] = []
        self.dropped = 0

    def __iter__(self) -> Iterator[pl.Series]:
        import polars as pl  # noqa: PLC0415 - only when needed

        for chunk in self._chunks:
            texts = chunk.drop_nulls() if self._drop else chunk
            self.dropped += len(chunk) - len(texts)
            yield texts
            # The encoder has taken it: text, bytes or integers.
            text = texts if texts.dtype == pl.Binary else texts.cast(pl.String).cast(pl.Binary)
            self._seen.append(text.alias("identifier").unique())

    def members(self) -> pl.Series:
        import polars as pl  # noqa: PLC0415 - only when needed

        return pl.concat(self._seen).unique()


def _exactly(members: list[pl.Series]) -> npt.NDArray[np.int64]:
    """Return how many people are in exactly the audiences of set bits i, shape (2**k,)."""
    import polars as pl  # noqa: PLC0415 - only when needed

    tables = [
        pl.DataFrame({"identifier": each, "bit": np.full(len(each), 1 << place)}) for place, each in enumerate(members)
    ]
    sets = pl.concat(tables).group_by("identifier").agg(pl.col("bit").sum())["bit"].to_numpy()
    return np.bincount(sets, minlength=1 << len(members)).astype(np.int64)
