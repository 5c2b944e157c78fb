"""Read TOML text as the specification of one column or of several columns, or report every problem."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, TypeVar

import tomli_w
from pydantic import ValidationError

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import Problem, SpecificationError
from hushuffle.files.causes import cause
from hushuffle.specification._base import File, table_in, unfit
from hushuffle.specification.answers import ANSWER_KEYS
from hushuffle.specification.kinds import AnyShuffler
from hushuffle.specification.population import ASKED, NO_COLUMN, ONE_RECORD, PERSON
from hushuffle.specification.rules import with_files
from hushuffle.specification.specification import Specification
from hushuffle.specification.wording import COLLECTION, Vocabulary, problem, shown

_PLACE: Final = re.compile(r"(.*?)(?: \(at (?:line (\d+), column (\d+)|end of document)\))?", re.DOTALL)
_UNNAMED: Final = "specification"
AnyFile = TypeVar("AnyFile", bound=File)
"""A class that describes a complete specification file."""


def load(path: str | Path) -> Specification:
    """Return the specification in the TOML file `path`."""
    return parse(read_text(path), file=str(path), base_folder=Path(path).parent)


def read_text(path: str | Path) -> str:
    file = Path(path)
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        unfit("file", "must exist", "no such file", where=str(file))
    except OSError as error:
        unfit("file", "must be a file that can be read", cause(error), where=str(file))
    except UnicodeDecodeError as error:
        unfit("file", "must be UTF-8 text", f"something else at byte {error.start}", where=str(file))


def parse(text: str, *, file: str = _UNNAMED, base_folder: Path = Path()) -> Specification:
    """Return the specification in TOML `text`; file names in the text are relative to `base_folder`."""
    hint = "This command takes a file of one column: write one file per column."
    refuse_other_kind(text, "columns", "several columns", hint, file=file)
    refuse_other_kind(
        text, "query", "the plan of a query", "A file with a plan is for hushuffle plan and audit.", file=file
    )
    hint = "This command takes a file of shares or of numbers, with [randomizer] and [shuffler]."
    refuse_other_kind(text, "sum", "a sum by several messages", hint, file=file)
    hint = "Only assess, collect, compare and estimate accept groups. Write one file per group for other commands."
    refuse_other_kind(text, "groups", "groups of people with different randomizers", hint, file=file)
    prepare = partial(with_files, base_folder=base_folder)
    return parsed(text, Specification, file=file, words=COLLECTION, prepare=prepare)


def tables_of(text: str) -> dict[str, Any]:
    """Return the tables of TOML text; no tables if the text is invalid (`parsed` reports why)."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def text_of(name: str, tables: Mapping[str, Any]) -> str:
    r"""Return tables of Python values as TOML.

    >>> text_of("deployment", {"population": {"n": 9}})
    '[population]\nn = 9\n'
    """
    try:
        return tomli_w.dumps(tables)
    except (TypeError, ValueError, AttributeError, RecursionError):
        hint = "None is not a value: remove the key."
        _checks.reject(name, "tables of strings, numbers, dates, booleans and lists of these", "<another value>", hint)


def refuse_other_kind(text: str, key: str, what: str, hint: str, *, file: str) -> None:
    """Refuse a file of another type, recognized by its top-level key `key`, and state its purpose."""
    if key in tables_of(text):
        unfit(key, "must be left out here", what, hint, where=file)


def parsed(
    text: str,
    model: type[AnyFile],
    *,
    file: str,
    words: Vocabulary,
    prepare: Callable[[Mapping[str, Any]], tuple[Mapping[str, Any], tuple[Problem, ...]]] | None = None,
) -> AnyFile:
    """Return the `model` in TOML `text`; `prepare` reads the files that the text names, and returns their problems."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecificationError(file, (_syntax(str(error), text, file),)) from None
    except RecursionError:
        unfit("file", "must not nest so deeply", "hundreds of brackets", where=file)
    except ValueError:  # of Python, about integers
        unfit("file", "must have numbers of fewer digits", "thousands of digits", where=file)
    tables, unread = (raw, ()) if prepare is None else prepare(raw)
    broken, problems = [*unread, *model.problems(tables)], []
    try:
        specification = model.model_validate(tables)
    except ValidationError as error:
        # What the model says about the whole (no location) are the broken rules once more.
        problems = [problem(one, tables, words) for one in error.errors(include_url=False) if one["loc"] or not broken]
    problems = [each for each in problems if each.key not in {rule.key for rule in broken}]
    no_tables = tuple(f"{each.key}." for each in problems if each.rule == "must be a table")
    broken = [each for each in broken if not each.key.startswith(no_tables)]
    if problems or broken:
        raise SpecificationError(file, tuple(_in_order([*problems, *broken], list(model.model_fields))))
    return specification


def _syntax(message: str, text: str, file: str) -> Problem:
    """Return the place of a TOML error. A line is shown only from a .toml file, because others may hold data."""
    place = _PLACE.fullmatch(message)
    assert place is not None  # the place is optional
    lines = text.rstrip().split("\n")
    line, column = int(place[2] or len(lines)), int(place[3] or len(lines[-1]) + 1)
    key = f"line {line}, column {column}"
    if not file.endswith((".toml", _UNNAMED)):
        hint = "Check that this file is the specification. Lines are shown only for files whose names end in .toml."
        return Problem(key=key, rule="must be valid TOML", value="something else", hint=hint)
    return Problem(key=key, rule=f"must be valid TOML ({place[1]})", value=shown(text.split("\n")[line - 1].strip()))


def _in_order(problems: Sequence[Problem], sections: Sequence[str]) -> Iterator[Problem]:
    """Yield each problem once, section by section, the top of the file first."""

    def rank(one: Problem) -> int:
        name = re.split(r"[.\[]", one.key)[0]
        return sections.index(name) if name in sections else -1

    yield from sorted(dict.fromkeys(problems), key=rank)


_SECTIONS: Final = ("title", "rounds", "population", "columns", "shuffler", "targets", "statement")
_NAME: Final = re.compile(r"\w[\w-]{0,99}")
SHARED: Final = ("data", "n", "encoding", "separator", "person")
"""The keys of [population] that all [[columns]] share."""
_OF_COLUMNS: Final = (
    *("column", "categories", "categories_file", "k", "bins", *ANSWER_KEYS, "trim", "casefold"),
    *("otherwise", "missing", "allow_categories_from_data", "name", "randomizer"),
)
_ELSEWHERE: Final = {
    "randomizer": "Set it in each of [[columns]].",
    "adversaries": "Columns have the default adversaries. For others, write one file per column.",
    "run": "Several columns support only the default here. For another value, write one file per column.",
    **dict.fromkeys(("memoised", "changes"), "Memoized reports need one file per column."),
}
_OF_PERSONS: Final = ("person", "reports_per_person")
_BESIDES: Final = ("name", "randomizer", *SHARED, *_OF_PERSONS)
_ONE_ROW: Final = (
    "Several columns need one row per person. If a person has several rows, write one file per column. If each row is "
    f'a different person, set person = "{NO_COLUMN}" in [population].'
)
_NOT_OF_COLUMNS: Final = {
    **dict.fromkeys(SHARED, "It belongs to [population]."),
    **dict.fromkeys(_OF_PERSONS, _ONE_ROW),
    **dict.fromkeys(("population", "shuffler", "targets"), "Move it to the top of the file, above all tables."),
}


@dataclass(frozen=True, kw_only=True)
class Collection:
    """Columns of the same people that are collected together; in this class a single column, whose name is "".

    `columns` maps the name of each column's folder to the column's specification. `epsilon` is the largest acceptable
    central epsilon of all columns together, in all `rounds`, at `delta`.
    """

    title: str | None
    columns: Mapping[str, Specification]
    delta: float
    epsilon: float | None
    rounds: int = 1
    remedy: ClassVar[str] = PERSON
    """What to do about several records of a person."""

    @classmethod
    def of(cls, specification: Specification) -> Collection:
        """Return the collection of one column."""
        targets = specification.targets
        return cls(
            title=specification.title,
            columns={"": specification},
            delta=targets.delta,
            epsilon=targets.epsilon,
            rounds=specification.rounds or 1,
        )

    @property
    def kind_of_deployment(self) -> str:
        return self.columns[""].kind_of_deployment

    @property
    def deployed(self) -> Specification | Collection:
        """What a deployment is built from: the single column, or the collection of several."""
        return self.columns[""]

    def single(self, command: str, hint: str, *, file: str) -> Specification:  # noqa: ARG002 - if there are several
        """Return the single column, or raise an error if there are several."""
        return self.columns[""]

    def check_column(self, column: str | None) -> None:
        """Raise an error if a column of the data is chosen for a specification that names its columns."""

    @property
    def shuffler(self) -> AnyShuffler:
        """The shuffler that all columns share."""
        return next(iter(self.columns.values())).shuffler

    @property
    def data(self) -> str | None:
        """The files of the people; None if the specification names no files."""
        return next(iter(self.columns.values())).population.files

    @property
    def whole(self) -> Specification:
        """The specification of the first column, with the targets for all columns together."""
        plain = next(iter(self.columns.values())).plain()
        target = {} if self.epsilon is None else {"epsilon": self.epsilon}
        return Specification.model_validate({**plain, "targets": {**plain["targets"], **target}})

    def effective(self) -> str:
        """Return TOML text with all defaults written out, for `parse_collection`."""
        return self.whole.effective()

    def plain(self) -> dict[str, Any]:
        """Return the tables of `effective`, with several columns by name."""
        return tomllib.loads(self.effective())


class Columns(Collection):
    """Several columns, each with a folder of its name."""

    remedy: ClassVar[str] = ONE_RECORD

    @property
    def kind_of_deployment(self) -> str:
        return "columns"

    @property
    def deployed(self) -> Collection:
        return self

    def single(self, command: str, hint: str, *, file: str) -> NoReturn:
        unfit("columns", f"must not be several to {command}", f"{len(self.columns)}", hint, where=file)

    def check_column(self, column: str | None) -> None:
        if column is not None:
            fail("`--column` is for specifications of one column without data: this specification has [[columns]].")

    def effective(self) -> str:
        whole = self.whole.plain()
        shared = ("title", "rounds", "shuffler", "targets", "statement")
        tables: dict[str, Any] = {key: whole[key] for key in shared if key in whole}
        tables["population"] = {key: whole["population"][key] for key in SHARED if key in whole["population"]}
        tables["columns"] = [_column(name, one.plain()) for name, one in self.columns.items()]
        return tomli_w.dumps(tables)

    def plain(self) -> dict[str, Any]:
        plain = super().plain()
        return {**plain, "columns": {column["name"]: column for column in plain["columns"]}}


def _column(name: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    answers = {key: value for key, value in plain["population"].items() if key not in SHARED}
    return {"name": name, **answers, "randomizer": plain["randomizer"]}


def load_collection(path: str | Path) -> Collection:
    """Return the collection of one column, or of several (`[[columns]]`), in the TOML file `path`."""
    return parse_collection(read_text(path), file=str(path), base_folder=Path(path).parent)


def parse_collection(text: str, *, file: str = "specification", base_folder: Path = Path()) -> Collection:
    """Return the collection of one or several columns in TOML `text`; messages call the text `file`.

    The function reads the files of labels that the text names, relative to `base_folder`.

    >>> found = parse_collection('''
    ...     population = { data = "people.csv" }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-6 }
    ...     [[columns]]
    ...     column = "smokes"
    ...     categories = ["no", "yes"]
    ...     randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ... ''')
    >>> list(found.columns)
    ['smokes']
    """
    raw = tables_of(text)
    if "columns" not in raw:
        return Collection.of(parse(text, file=file, base_folder=base_folder))
    problems = [*_top(raw), *_columns(raw)]
    specifications: dict[str, Specification] = {}
    for position, column in _tables(raw):
        try:
            specifications[_name(column)] = parse(_alone(raw, column), base_folder=base_folder)
        except SpecificationError as error:
            problems += [_placed(problem, position) for problem in error.problems]
    if problems:
        raise SpecificationError(file, tuple(_in_order(problems, _SECTIONS)))
    whole = next(iter(specifications.values()))
    return Columns(
        title=whole.title,
        columns={name: _without_target(one) for name, one in specifications.items()},
        delta=whole.targets.delta,
        epsilon=whole.targets.epsilon,
        rounds=whole.rounds or 1,
    )


def _top(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems with the shared keys of all columns that the check of a single column does not report."""
    for key in raw:
        if key not in _SECTIONS:
            hint = _ELSEWHERE.get(key, f"Allowed keys: {', '.join(_SECTIONS)}.")
            yield Problem(key=key, rule="is not a key here", value=shown(raw[key]), hint=hint)
    population = raw.get("population")
    if not isinstance(population, dict):
        hint = 'Set it, for example population = { data = "people.parquet" }.'
        value = "nothing" if population is None else shown(population)
        yield Problem(key="population", rule="must be a table with data", value=value, hint=hint)
    else:
        if "data" not in population and "n" not in population:
            hint = "Or set n, the number of people, to plan without data."
            yield Problem(key="population.data", rule="must be given", value="nothing", hint=hint)
        if "data" in population and "n" in population:
            yield Problem(key="population.n", rule="is not allowed together with data", value=shown(population["n"]))
        named = population.get("person") not in (NO_COLUMN, ASKED)
        for key in (key for key in population if key not in SHARED or (key == "person" and named)):
            allowed = _ONE_ROW if key in _OF_PERSONS else f"Allowed keys: {', '.join(SHARED)}."
            hint = "Set it in each of [[columns]]." if key in _OF_COLUMNS else allowed
            yield Problem(key=f"population.{key}", rule="is not a key here", value=shown(population[key]), hint=hint)
    if _keeps_order(raw):
        hint = "An order of release, even a noisy one, would link the reports of a person in two columns."
        rule = "must be a shuffler without an order for several columns"
        yield Problem(key="shuffler.kind", rule=rule, value=shown(raw["shuffler"]["kind"]), hint=hint)


def _columns(raw: Mapping[str, Any]) -> Iterator[Problem]:
    columns = raw["columns"]
    if not isinstance(columns, list) or not columns:
        value = "none" if columns == [] else shown(columns)
        yield Problem(key="columns", rule="must be one or more [[columns]] tables", value=value)
        return
    for position, column in enumerate(columns):
        if not isinstance(column, dict):
            yield Problem(key=f"columns[{position}]", rule="must be a table", value=shown(column))
    before: list[Mapping[str, Any]] = []
    for position, column in _tables(raw):
        here, name = f"columns[{position}]", _name(column)
        for key in column.keys() & _NOT_OF_COLUMNS.keys():
            value, hint = shown(column[key]), _NOT_OF_COLUMNS[key]
            yield Problem(key=f"{here}.{key}", rule="is not a key here", value=value, hint=hint)
        if "column" in column and any(column["column"] == other.get("column") for other in before):
            hint = "Each person reports each answer once."
            yield Problem(key=f"{here}.column", rule="must be distinct", value=shown(column.get("column")), hint=hint)
        elif name and name.casefold() in {_name(other).casefold() for other in before}:
            hint = "The reports go to folders with these names, and some systems ignore capital letters in names."
            yield Problem(key=f"{here}.name", rule="must be distinct", value=shown(name), hint=hint)
        if "name" in column or "column" in column:
            yield from _folder(name, f"{here}.name")
        elif _counted(raw):
            yield Problem(key=f"{here}.name", rule="must be given", value="nothing")
        before.append(column)


def _folder(name: str, key: str) -> Iterator[Problem]:
    if _NAME.fullmatch(name) is None:
        hint = "The reports go to a folder of this name. If `name` is left out, it is the name of the data's column."
        rule = "must have at most 100 letters, digits, _ and -"
        yield Problem(key=key, rule=rule, value=shown(name), hint=hint)


def _keeps_order(raw: Mapping[str, Any]) -> bool:
    return table_in(raw, "shuffler").get("kind") in ("mallows", "none")


def _counted(raw: Mapping[str, Any]) -> bool:
    population = table_in(raw, "population")
    return "n" in population and "data" not in population


def _alone(raw: Mapping[str, Any], column: Mapping[str, Any]) -> str:
    population = table_in(raw, "population")
    shared = {key: population[key] for key in SHARED if key in population}
    answers = {key: value for key, value in column.items() if key not in _BESIDES}
    tables = {key: raw[key] for key in ("title", "rounds", "shuffler", "targets", "statement") if key in raw}
    if _counted(raw):
        answers.pop("column", None)  # it is but a name
        tables["population"] = {**answers, **shared}
    else:
        tables["population"] = {"data": "-", **answers, **{key: shared[key] for key in shared if key != "n"}}
    if _keeps_order(raw):
        tables["shuffler"] = {"kind": "uniform"}  # what is wrong with the other is said once
    if "randomizer" in column:
        tables["randomizer"] = column["randomizer"]
    return tomli_w.dumps(tables)


def _placed(problem: Problem, position: int) -> Problem:
    """Return a problem of a single column's specification, with its key in the collection's file."""
    here, key = f"columns[{position}]", problem.key
    if key.startswith("randomizer"):
        key = f"{here}.{key}"
    elif key.startswith("population.") and key.removeprefix("population.") not in SHARED:
        key = f"{here}{key.removeprefix('population')}"
    return Problem(key=key, rule=problem.rule, value=problem.value, hint=problem.hint)


def _without_target(specification: Specification) -> Specification:
    plain = specification.plain()
    plain["targets"].pop("epsilon", None)
    return Specification.model_validate(plain)


def _tables(raw: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    columns = raw["columns"] if isinstance(raw["columns"], list) else []
    return [(position, one) for position, one in enumerate(columns) if isinstance(one, dict)]


def _name(column: Mapping[str, Any]) -> str:
    return str(column.get("name", column.get("column", "")))
