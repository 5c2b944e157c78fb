"""The TOML file of groups of people with different randomizers and one shuffler: `[[groups]]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import tomli_w
from pydantic import Field

from hushuffle._checks import fail
from hushuffle.errors import InvalidInputError, Problem
from hushuffle.mechanisms.mixed_protocol import MOST_GROUPS, MixedProtocol
from hushuffle.specification._base import File, Name, Section, table_in, tables_in, unfit
from hushuffle.specification.kinds import AnyRandomizer, AnyShuffler
from hushuffle.specification.population import NO_COLUMN, ONE_RECORD, AnyPopulation
from hushuffle.specification.reading import Collection, parse_collection, parsed, read_text, tables_of
from hushuffle.specification.rules import broken_rules, with_files
from hushuffle.specification.specification import Specification, StatementSection, Targets
from hushuffle.specification.sums import SumSpecification, parse_sum
from hushuffle.specification.wording import COLLECTION, Vocabulary, shown

Integers = npt.NDArray[np.int64]


class Group(Section):
    """One of the groups of people, with its randomizer."""

    name: Name
    """Name of the group: its entry in the column `group_column`."""
    people: Annotated[int, Field(ge=0, le=10**15)] | None = None
    """Number of people in the group; only without data."""
    randomizer: AnyRandomizer
    """The local randomizer on each person's device. Groups differ in `epsilon` only."""


class MixedSpecification(File):
    """Groups of people with different randomizers, who answer one question, behind one shuffler."""

    kind_of_deployment: ClassVar[str] = "groups"
    remedy: ClassVar[str] = ONE_RECORD
    title: Name | None = None
    """Title of the report."""
    group_column: Name | None = None
    """With data: the public column with each person's group. The group must not depend on the person's answer."""
    population: AnyPopulation
    """The people who are asked."""
    groups: Annotated[tuple[Group, ...], Field(strict=False, min_length=1, max_length=MOST_GROUPS)]
    """Groups of people, each with its randomizer."""
    shuffler: AnyShuffler
    """The shuffler of all groups: "uniform", or "scrambler" with a fixed number of dummies."""
    targets: Targets
    """Requirements that assess checks."""
    statement: StatementSection = StatementSection()
    """Names of responsible people, and who confirms each assumption: words for the first page of the report."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        yield from _top(raw)
        yield from _groups(raw)
        for place, group in enumerate(tables_in(raw, "groups")):
            alone = {key: raw[key] for key in raw if key not in ("group_column", "groups")}
            for problem in broken_rules({**alone, "randomizer": group.get("randomizer")}):
                placed = problem.key.startswith("randomizer")
                yield replace(problem, key=f"groups[{place}].{problem.key}") if placed else problem

    @property
    def shared(self) -> Specification:
        """The specification of the group with the largest `epsilon`; groups share all but the randomizer."""
        plain = self.plain()
        most = max(plain.pop("groups"), key=lambda group: float(group["randomizer"].get("epsilon", 0.0)))
        plain.pop("group_column", None)
        return Specification.model_validate({**plain, "randomizer": most["randomizer"]})

    def build(self, people: Sequence[int], k: int) -> MixedProtocol:
        """Return the protocol with these numbers of people in the groups and k categories."""
        where, randomizers = f"specification, for k = {k:,} categories", []
        for place, group in enumerate(self.groups):
            try:
                randomizers.append(group.randomizer.build(k))
            except InvalidInputError as error:
                problem = error.problem
                unfit(f"groups[{place}].randomizer.{problem.key}", problem.rule, problem.value, where=where)
            if randomizers[-1].law().support is None:
                rule = "must be a randomizer whose reports support values"
                hint = 'For example "randomized-response" or "unary-encoding".'
                unfit(f"groups[{place}].randomizer.kind", rule, shown(group.randomizer.kind), hint, where=where)
        try:
            groups = list(zip(people, randomizers, strict=True))
            return MixedProtocol(groups=groups, shuffler=self.shuffler.build())
        except InvalidInputError as error:
            unfit("groups", error.problem.rule, error.problem.value, error.problem.hint, where=where)

    def counted(self, people: Sequence[int], tables: Mapping[str, Any], n: int) -> MixedSpecification:
        """Return the specification of a release of n people, without files; `tables` describe the categories."""
        plain = {key: value for key, value in self.plain().items() if key != "group_column"}
        plain["population"] = {"n": n, **tables}
        plain["groups"] = [{**one, "people": count} for one, count in zip(plain["groups"], people, strict=True)]
        return parse_mixed(tomli_w.dumps(plain))


def _top(raw: Mapping[str, Any]) -> Iterator[Problem]:
    population, shuffler, targets = (table_in(raw, key) for key in ("population", "shuffler", "targets"))
    column, data = raw.get("group_column"), "data" in population
    if data and column in (None, population.get("column")):
        hint, value = "This column has the name of each person's group.", "nothing" if column is None else shown(column)
        yield Problem(key="group_column", rule="must be a public column of the data", value=value, hint=hint)
    elif not data and column is not None:
        hint = "Without data, `people` of each group is the number of its people."
        yield Problem(key="group_column", rule="is allowed only with data", value=shown(column), hint=hint)
    for key, allowed in (("kind", None), ("person", NO_COLUMN), ("reports_per_person", 1), ("bad_rows", "refuse")):
        if key in population and population[key] != allowed:
            hint = "Groups with different randomizers answer a question with categories, once per person."
            rule = (
                "must be left out with [[groups]]" if allowed is None else f"must be {shown(allowed)} with [[groups]]"
            )
            yield Problem(key=f"population.{key}", rule=rule, value=shown(population[key]), hint=hint)
    if shuffler and (shuffler.get("kind") not in ("uniform", "scrambler") or isinstance(shuffler.get("dummies"), dict)):
        rule = 'must be "uniform" or, with a fixed number of dummies, "scrambler" for [[groups]]'
        yield Problem(key="shuffler.kind", rule=rule, value=shown(shuffler.get("kind")))
    for key in targets.keys() & {"guessing", "reidentification"}:
        hint = "Guessing and naming senders are analysed for one randomizer."
        yield Problem(key=f"targets.{key}", rule="is not a key here", value=shown(targets[key]), hint=hint)


def _groups(raw: Mapping[str, Any]) -> Iterator[Problem]:
    groups, population = tables_in(raw, "groups"), table_in(raw, "population")
    names = [group.get("name") for group in groups]
    counts = [group["people"] for group in groups if isinstance(group.get("people"), int)]
    for place, group in enumerate(groups):
        here, people = f"groups[{place}]", group.get("people")
        if names[place] in names[:place]:
            yield Problem(key=f"{here}.name", rule="must be distinct", value=shown(names[place]))
        if ("data" in population) == (people is not None):
            hint = "With data, the column `group_column` has the group of each person."
            rule = "is not allowed together with data" if "data" in population else "must be given if there is no data"
            value = "nothing" if people is None else shown(people)
            yield Problem(key=f"{here}.people", rule=rule, value=value, hint=hint)
        first, own = _settings(groups[0]), _settings(group)
        if differing := [key for key in {**first, **own} if first.get(key) != own.get(key)]:
            hint = "Otherwise a report would reveal the group, or mean different values in different groups."
            rule = "may differ from the randomizer of the first group only in `epsilon`"
            yield Problem(key=f"{here}.randomizer", rule=rule, value=f"another {' and '.join(differing)}", hint=hint)
    if "data" not in population and len(counts) == len(groups) > 0 and sum(counts) != population.get("n"):
        rule = "must be the sum of `people` of all groups"
        yield Problem(
            key="population.n", rule=rule, value=shown(population.get("n")), hint=f"Their sum is {sum(counts):,}."
        )


def _settings(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table_in(group, "randomizer").items() if key != "epsilon"}


_ONE_ROUND: Final = "Groups with different randomizers have one round, one column and the default adversaries and runs."
_OTHERS: Final = ("rounds", "memoised", "changes", "columns", "adversaries", "run")
_WORDS: Final = Vocabulary(
    sections={
        **COLLECTION.sections,
        "": (MixedSpecification,),
        "groups": (Group,),
        "groups.randomizer": COLLECTION.sections["randomizer"],
    },
    goes_with=COLLECTION.goes_with,
    elsewhere={"randomizer": "Set it in each of [[groups]].", **dict.fromkeys(_OTHERS, _ONE_ROUND)},
)


def is_mixed(text: str) -> bool:
    """Return whether TOML text describes groups of people with different randomizers."""
    return "groups" in tables_of(text)


def parse_mixed(text: str, *, file: str = "specification", base_folder: Path = Path()) -> MixedSpecification:
    """Return the specification of groups in TOML `text`; messages call the text `file`."""
    prepare = partial(with_files, base_folder=base_folder)
    return parsed(text, MixedSpecification, file=file, words=_WORDS, prepare=prepare)


AnyFile = Collection | SumSpecification | MixedSpecification
_PARSERS: Final[Mapping[str, Callable[..., AnyFile]]] = {"groups": parse_mixed, "sum": parse_sum}
"""What parses a file that has this key."""


def load_deployment(path: str | Path) -> AnyFile:
    return parse_deployment(read_text(path), file=str(path), base_folder=Path(path).parent)


def parse_deployment(text: str, *, file: str, base_folder: Path) -> AnyFile:
    """Return what TOML `text` describes: groups, a sum, or a collection of columns; messages call the text `file`."""
    tables = tables_of(text)
    parse = next((parser for key, parser in _PARSERS.items() if key in tables), parse_collection)
    return parse(text, file=file, base_folder=base_folder)


class GroupBatches:
    """The values and the groups of the people in the data, in blocks; afterwards `people` has the size of each group.

    `sources` and `answers` are those of a collection. `dropped` records have no value.
    """

    def __init__(
        self,
        specification: MixedSpecification,
        folder: Path,
        *,
        sources: Sequence[str] = (),
        answers: str | None = None,
    ) -> None:
        from hushuffle.tables.private import ColumnBatches  # noqa: PLC0415 - a mistake in the file shows without Polars

        population = specification.shared.population
        selection = population.answered(answers, given=bool(sources))
        if specification.group_column is None:
            hint = "It is the public column that has the name of each person's group."
            unfit("group_column", "must be given for a collection", "nothing", hint)
        self._column, self._names = specification.group_column, [group.name for group in specification.groups]
        self._batches = ColumnBatches(
            sources or [str(population.files)],
            column=selection.column,
            answers=selection.answers,
            ids=self._column,
            form=selection.form,
            base_folder=Path() if sources else folder,
        )
        self.answers, self.people, self.dropped = selection.answers, [0] * len(self._names), 0

    def __iter__(self) -> Iterator[tuple[Integers, Integers]]:
        unnamed = total = 0
        places = {name: place for place, name in enumerate(self._names)}
        for batch in self._batches:
            assert batch.ids is not None
            groups = np.array([places.get(name, -1) for name in batch.ids.to_list()], dtype=np.int64)
            unnamed, total = unnamed + int(np.count_nonzero(groups < 0)), total + groups.size
            self.dropped += batch.dropped
            if not unnamed:
                self.people = [count + int(np.count_nonzero(groups == g)) for g, count in enumerate(self.people)]
                yield batch.values, groups
        if unnamed:
            fail(
                f"{unnamed:,} of {total:,} records have a group in column {self._column!r} that no [[groups]] table "
                "names. Add a table for it. Capital letters and spaces matter."
            )
