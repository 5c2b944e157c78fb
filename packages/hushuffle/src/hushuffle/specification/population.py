"""[population]: the people who are asked, either from data or only as a number of people."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import numpy as np
import numpy.typing as npt
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from hushuffle.errors import InvalidInputError
from hushuffle.model import Population, Warned
from hushuffle.specification._base import (
    ConditionText,
    Encoding,
    Label,
    Name,
    Section,
    Separator,
    WithoutFiles,
    checked,
    refuse,
    unfit,
)
from hushuffle.specification.answers import AnswerKeys
from hushuffle.specification.reach import AudiencePopulation, PublisherPopulation
from hushuffle.tables.csv_form import UTF8, CsvForm
from hushuffle.tables.labels import FROM_DATA, Bins, Edge, Tidying

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness
    from hushuffle.tables.categories import Answers, Categories

ReportsPerPerson = Annotated[int, Field(ge=1, le=10**6)]

PERSON: Final = "set population.person = {}"
ONE_RECORD: Final = "keep one record of each person in the file"
ONE_NUMBER: Final = "add up the numbers of each person first"
"""The remedies if {} identifies people; several columns and sums have no key for the person of a record."""

ONE_ROW: Final = "one row is taken for one person"
"""The assumption if no column identifies the person of a record."""

NO_COLUMN: Final = "none"
"""Value of `person`: every row belongs to a different person."""

ASKED: Final = "?"
"""Value of `person`: the owner has not yet stated whose record a row is."""

_SHAPES = 'must be a table of conditions, a list of labels, or "from-data"'
_EDGES = "must be numbers or dates, such as [0, 18, 65, inf] or [2024-01-01, 2024-07-01, 2025-01-01]"


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """The people who are asked: the public part, and the private `values`, shape (n,), codes 0..k-1, if there are data.

    `kept`, shape (records,), marks the records of the data that these people gave; None: all records.
    """

    population: Population
    values: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    kept: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    warnings: tuple[Warned, ...] = ()

    @property
    def n(self) -> int:
        """Number of people, or of reports if each person may give several."""
        return self.population.n

    @property
    def k(self) -> int:
        """Number of categories."""
        return len(self.population.labels)


def relation(most: int) -> str:
    """Return the neighbouring relation, in words, if one person gives at most `most` reports.

    >>> relation(1)
    "replace one person's value, n fixed"
    """
    if most == 1:
        return "replace one person's value, n fixed"
    return f"replace all reports of one person (at most {most:,}); the number of reports stays the same"


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The `column` of answers, the meaning of its values, and the form of CSV files.

    `person` is the column that identifies people, if any; at most `most` records of each person are used.
    """

    column: str
    answers: Answers
    form: CsvForm | None
    person: str | None = None
    most: int = 1


def _shape(value: Any) -> str | None:
    if isinstance(value, dict):
        return "<table>"
    if isinstance(value, list | tuple):
        return "<list>"
    return "<word>" if isinstance(value, str) else None


Listed = Annotated[tuple[Label, ...], Field(strict=False)]
AnyCategories = Annotated[
    Annotated[dict[Label, ConditionText], Tag("<table>")]
    | Annotated[Listed, Tag("<list>")]
    | Annotated[
        Literal["from-data"],
        BeforeValidator(lambda value: value if value == FROM_DATA else refuse(_SHAPES)),
        Tag("<word>"),
    ],
    Discriminator(_shape, custom_error_type="rule", custom_error_message=_SHAPES),
]


def _answered(person: str) -> str:
    if person == ASKED:
        refuse(
            f'must be the column that identifies the person of each row, or "{NO_COLUMN}"',
            f'With "{NO_COLUMN}", each row is a different person. `hushuffle inspect` lists columns with repeated '
            "values.",
        )
    return person


def _edge(value: Any) -> Edge:
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            refuse(_EDGES)
    if isinstance(value, bool) or type(value) not in (int, float, date):
        refuse(_EDGES)
    edge: Edge = value
    return edge


def bin_labels(edges: Any) -> list[str] | None:
    """Return the labels of bins with the edges in a file; None if the edges are invalid."""
    if not isinstance(edges, list | tuple):
        return None
    try:
        return list(Bins(edges=tuple(_edge(edge) for edge in edges)).labels)
    except (InvalidInputError, PydanticCustomError):
        return None


def _refuse_labels_file(file: str) -> NoReturn:
    rule = "must be replaced by the labels in that file before the data are read"
    hint = "Load the specification from its file, which also reads the labels, or give `categories`."
    unfit("population.categories_file", rule, file, hint)


_EDGE_SCHEMA: Final = {"anyOf": [{"type": "number"}, {"type": "string", "format": "date"}]}
AnyEdge = Annotated[Any, PlainValidator(_edge), WithJsonSchema(_EDGE_SCHEMA)]
_check_bins = partial(checked, check=lambda edges: Bins(edges=edges))


class DataPopulation(AnswerKeys):
    """People whose answers are one column of a data set."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [key]} for key in ("categories", "categories_file", "bins", "kind")]}
    )

    data: Annotated[str, Field(min_length=1)]
    """A CSV (.csv, .tsv, or with .gz) or Parquet file, a glob, or statsmodels:NAME. Relative to this file's folder."""
    encoding: Encoding = UTF8
    """The encoding of CSV files, such as "windows-1252" or "latin-1"."""
    separator: Separator | None = None
    """Separator of the fields of CSV files, such as ";" or "\\t"; a comma, or a tab in .tsv files, if left out."""
    column: Annotated[str, Field(min_length=1)]
    """The name of the column of answers; other columns of answers are not read."""
    categories: AnyCategories | None = None
    """A table with the condition of each category, labels, or "from-data". Give this, `categories_file` or `bins`."""
    categories_file: Annotated[str, Field(min_length=1)] | None = None
    """A file of labels, one on each line, or the first column of a CSV file. Relative to this file's folder."""
    bins: Annotated[tuple[AnyEdge, ...], Field(strict=False), AfterValidator(_check_bins)] | None = None
    """Edges of intervals of numbers or dates, such as [0, 18, 65, inf]; an interval includes its lower edge."""
    trim: bool = False
    """Whether spaces around values are ignored."""
    casefold: bool = False
    """Whether values that differ only in capital letters are equal. `trim` and `casefold` do not apply to ids: two
    spellings of an id in `person` (capital letters, spaces) are always refused, since they may be the same person."""
    otherwise: Name | None = None
    """The category of values that match no other category; if left out, such values are refused."""
    missing: Name = "refuse"
    """Treatment of missing values (empty, or NaN): "refuse", "drop", or the name of a category."""
    allow_categories_from_data: bool = False
    """Whether categories = "from-data" is allowed. The existence of a category then reveals that a record has it."""
    bad_rows: Literal["refuse", "quarantine"] = "refuse"
    """"refuse": records that do not fit are an error. "quarantine": they are set aside, and `collect` lists their
    lines, never their values, in the private file OUT.refused.csv."""
    bad_rows_at_most: Annotated[float, Field(gt=0, le=50)] = 1.0
    """With "quarantine": largest percentage of records that are set aside; more are an error."""
    person: Annotated[str, Field(min_length=1), AfterValidator(_answered)] | None = None
    """The column that identifies people, or "none" if no two records are of one person (default: "none" is assumed).
    With [[columns]] and [sum] only "none". A draft has "?", which is refused."""
    reports_per_person: ReportsPerPerson | None = None
    """Largest number of records of one person that are used, chosen at random (default: 1)."""

    @property
    def most(self) -> int:
        """Largest number of reports of one person."""
        return self.reports_per_person or 1

    @property
    def person_known(self) -> bool:
        """Whether `person` states the person of each row."""
        return self.person is not None

    @property
    def whose(self) -> str | None:
        """The column that identifies people, if there is one."""
        return None if self.person == NO_COLUMN else self.person

    @property
    def form(self) -> CsvForm:
        """The form of CSV files."""
        return CsvForm(encoding=self.encoding, separator=self.separator)

    @property
    def quarantine(self) -> float | None:
        """Largest percentage of records that may be set aside; None: records that do not fit are an error."""
        return self.bad_rows_at_most if self.bad_rows == "quarantine" else None

    @property
    def _tidying(self) -> Tidying:
        return Tidying(trim=self.trim, casefold=self.casefold)

    @property
    def _meant(self) -> Categories:
        if (coded := self.answer.coded) is not None:
            return coded
        if self.bins is not None:
            return Bins(edges=self.bins)
        if self.categories_file is not None:
            _refuse_labels_file(self.categories_file)
        assert self.categories is not None  # a rule of the specification
        return self.categories

    def read(self, base_folder: Path, *, rng: Randomness | None = None) -> People:
        """Return the people in the data; `rng` (`secure()` by default) chooses which records of a person are used."""
        from hushuffle.tables.private import load_column  # noqa: PLC0415 - a mistake in the file shows without Polars

        column = load_column(
            self.data,
            column=self.column,
            categories=self._meant,
            missing=self.missing,
            otherwise=self.otherwise,
            tidying=self._tidying,
            form=self.form,
            base_folder=base_folder,
            allow_categories_from_data=self.allow_categories_from_data,
            person=self.whose,
            reports_per_person=self.most,
            rng=rng,
            quarantine=self.quarantine,
        )
        population = replace(column.population(), reports_per_person=self.most)
        return People(population=population, values=column.values, kept=column.kept, warnings=column.warnings)

    @property
    def files(self) -> str | None:
        """The file or files of the people; None if the section names no file."""
        return self.data

    def answered(self, column: str | None, *, given: bool) -> Answered:  # noqa: ARG002 - others need files
        """Return the answers in the data; a requested `column` must be the column of this population."""
        if column not in (None, self.column):
            unfit("population.column", "must be the same column as --column", self.column)
        from hushuffle.tables.categories import Answers  # noqa: PLC0415 - a mistake in the file shows without Polars

        answers = Answers.of(self._meant, self.missing, otherwise=self.otherwise, tidying=self._tidying)
        answers = replace(answers, quarantine=self.quarantine)
        return Answered(column=self.column, answers=answers, form=self.form, person=self.whose, most=self.most)


class CountedPopulation(WithoutFiles, AnswerKeys):
    """A number of people without answers: a survey that is being planned."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [key]} for key in ("k", "categories", "categories_file", "kind")]}
    )

    n: Annotated[int, Field(ge=1, le=10**15)]
    """Number of people, or of reports if each person may give several."""
    k: Annotated[int, Field(ge=2, le=10**7)] | None = None
    """Number of categories, if the categories have no names."""
    categories: Listed | None = None
    """The categories; this, `categories_file` or `k`."""
    categories_file: Annotated[str, Field(min_length=1)] | None = None
    """A file of labels, one on each line, or the first column of a CSV file. Relative to this file's folder."""
    reports_per_person: ReportsPerPerson | None = None
    """Largest number of the n reports that one person sends (default: 1). The guarantee covers all of them."""

    @property
    def most(self) -> int:
        """Largest number of reports of one person."""
        return self.reports_per_person or 1

    def read(self, base_folder: Path, *, rng: Randomness | None = None) -> People:  # noqa: ARG002 - others read files
        """Return the people, without values."""
        if self.categories_file is not None:
            _refuse_labels_file(self.categories_file)
        labels = tuple(map(str, range(self.k))) if self.categories is None and self.k else self.categories
        labels = self.answer.labels or labels
        assert labels is not None
        return People(population=Population(n=self.n, labels=labels, source="no data", reports_per_person=self.most))

    def answered(self, column: str | None, *, given: bool) -> Answered:
        """Return the meaning of the answers in `column`; the files must be `given` outside the specification."""
        if column is None or not given:
            hint = "Pass `--input` and `--column`, or set data and column in [population]."
            unfit("population", "must have data and column for a collection", "a number of people", hint)
        if self.most > 1:
            hint = "Write [population] with data, column, categories and person: the column that identifies people."
            unfit("population.reports_per_person", "needs population.person for a collection", f"{self.most}", hint)
        categories = self.answer.coded or (self.categories if self.k is None else self.k)
        assert categories is not None
        from hushuffle.tables.categories import Answers  # noqa: PLC0415 - a mistake in the file shows without Polars

        return Answered(column=column, answers=Answers.of(categories, "refuse"), form=self.form)


def _kind(value: Any) -> str | None:
    if not isinstance(value, dict):
        return _TAGS.get(type(value))
    if "publishers" in value or "audiences" in value:
        return "<publishers>" if "publishers" in value else "<audiences>"
    if "data" in value or ("column" in value and "n" not in value):
        return "<data>"
    return "<counted>" if "n" in value else None


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
        custom_error_message="must be a table with data, n, publishers or audiences",
        custom_error_context={
            "hint": "For example data, column and categories; n and k; n and categories; in a reach study, publishers."
        },
    ),
]
