"""[population]: who is asked, from data or as a number."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from hushuffle.model import Domain, Population, Warned
from hushuffle.specification._base import ConditionText, Label, Name, Section, either, refuse, unfit
from hushuffle.specification.reach import AudiencePopulation, PublisherPopulation
from hushuffle.tables.labels import FROM_DATA

if TYPE_CHECKING:
    from hushuffle.tables.categories import Answers

_SHAPES = 'must be a table of conditions, a list of labels, or "from-data"'


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Who is asked: the public part, and the private `values`, shape (n,), codes 0..k-1, if there is data.

    `kept`, shape (records,), says which records of the data they are; None: all of them.
    """

    population: Population
    values: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    kept: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    warnings: tuple[Warned, ...] = ()

    @property
    def n(self) -> int:
        """Number of people."""
        return self.population.n

    @property
    def k(self) -> int:
        """Number of categories."""
        return len(self.population.labels)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """Which `column` holds answers, and what they mean."""

    column: str
    answers: Answers


def _shape(value: Any) -> str | None:
    if isinstance(value, dict):
        return "<table>"
    if isinstance(value, list | tuple):
        return "<list>"
    return "<word>" if isinstance(value, str) else None


def _word(value: str) -> str:
    return value if value == FROM_DATA else refuse(_SHAPES)


Listed = Annotated[tuple[Label, ...], Field(strict=False)]
AnyCategories = Annotated[
    Annotated[dict[Label, ConditionText], Tag("<table>")]
    | Annotated[Listed, Tag("<list>")]
    | Annotated[Literal["from-data"], BeforeValidator(_word), Tag("<word>")],
    Discriminator(_shape, custom_error_type="rule", custom_error_message=_SHAPES),
]


class DataPopulation(Section):
    """People whose answers are one column of a data set."""

    data: Annotated[str, Field(min_length=1)]
    """A CSV (.csv, .csv.gz) or Parquet file, a glob, or statsmodels:NAME. Relative to this file's folder."""
    column: Annotated[str, Field(min_length=1)]
    """The name of the column; no other is kept."""
    categories: AnyCategories
    """A table of conditions by category, a list of labels, or "from-data"."""
    missing: Name = "refuse"
    """What becomes of missing values (empty, or NaN): "refuse", "drop", or the name of a category."""
    allow_categories_from_data: bool = False
    """Whether categories = "from-data" is allowed: that a category exists says that somebody is in it."""

    def read(self, base_folder: Path) -> People:
        """Return the people in the data."""
        from hushuffle.tables.private import load_column  # noqa: PLC0415 - a mistake in the file shows without Polars

        column = load_column(
            self.data,
            column=self.column,
            categories=self.categories,
            missing=self.missing,
            base_folder=base_folder,
            allow_categories_from_data=self.allow_categories_from_data,
        )
        return People(population=column.population(), values=column.values, kept=column.kept, warnings=column.warnings)

    @property
    def files(self) -> str | None:
        """The file or files of the people; None if it names none."""
        return self.data

    def answered(self, column: str | None, *, given: bool) -> Answered:  # noqa: ARG002 - others need files
        """Return the answers in the data; a `column` that is asked for must be theirs."""
        if column not in (None, self.column):
            unfit("population.column", "must be the column that is asked for", self.column)
        from hushuffle.tables.categories import Answers  # noqa: PLC0415 - a mistake in the file shows without Polars

        return Answered(column=self.column, answers=Answers.of(self.categories, self.missing))


class CountedPopulation(Section):
    """So many people, without their answers: a survey that is being planned."""

    model_config = ConfigDict(json_schema_extra=either("k", "categories"))

    n: Annotated[int, Field(ge=1, le=10**15)]
    """Number of people."""
    k: Annotated[int, Field(ge=2, le=10**7)] | None = None
    """Number of categories, if they have no names."""
    categories: Listed | None = None
    """The categories; this or `k`."""

    def read(self, base_folder: Path) -> People:  # noqa: ARG002 - the other kind of population reads files
        """Return the people, without values."""
        labels = Domain.of_size(self.k).labels if self.categories is None and self.k else self.categories
        assert labels is not None
        return People(population=Population(n=self.n, labels=labels, source="no data"))

    @property
    def files(self) -> str | None:
        """The file or files of the people: none."""
        return None

    def answered(self, column: str | None, *, given: bool) -> Answered:
        """Return what the answers in `column` of files that are `given` elsewhere mean."""
        if column is None or not given:
            hint = "Or say --input and --column."
            unfit("population", "must have data and column, to be collected", "a number of people", hint)
        categories = self.categories if self.k is None else self.k
        assert categories is not None
        from hushuffle.tables.categories import Answers  # noqa: PLC0415 - a mistake in the file shows without Polars

        return Answered(column=column, answers=Answers.of(categories, "refuse"))


def _kind(value: Any) -> str | None:
    if not isinstance(value, dict):
        return _TAGS.get(type(value))
    if "publishers" in value or "audiences" in value:
        return "<publishers>" if "publishers" in value else "<audiences>"
    return "<data>" if {"data", "column"} & value.keys() else "<counted>" if "n" in value else None


_TAGS: Final[dict[type[Section], str]] = {
    DataPopulation: "<data>",
    CountedPopulation: "<counted>",
    PublisherPopulation: "<publishers>",
    AudiencePopulation: "<audiences>",
}
AnyPopulation = Annotated[
    Annotated[DataPopulation, Tag("<data>")]
    | Annotated[CountedPopulation, Tag("<counted>")]
    | Annotated[PublisherPopulation, Tag("<publishers>")]
    | Annotated[AudiencePopulation, Tag("<audiences>")],
    Discriminator(
        _kind,
        custom_error_type="rule",
        custom_error_message=(
            "must be a table with data, column and categories, with n and k or categories, "
            "or of a reach study with publishers or audiences"
        ),
    ),
]
