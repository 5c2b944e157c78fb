"""Rules on combinations of values. The rules read plain tables, so one broken rule does not hide another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from hushuffle.errors import DataError, InvalidInputError, Problem
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.specification._base import table_in, tables_in
from hushuffle.specification.answers import ANSWERS, answer_in, answer_problems
from hushuffle.specification.kinds import RANDOMIZERS, SHUFFLERS
from hushuffle.specification.order import order_problems, with_order_adversaries
from hushuffle.specification.population import NO_COLUMN, bin_labels
from hushuffle.specification.reach import about_reach, reach_problems
from hushuffle.tables.labels import FROM_DATA, Tidying, as_label, missing_label

_GUESSERS: Final = ("uninformed", "strong", "informed")


def broken_rules(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield every broken rule; values of the wrong type are reported elsewhere."""
    population = table_in(raw, "population")
    yield from _population(population)
    yield from _persons(raw, population)
    yield from _rounds(raw)
    yield from _memoised(raw, population)
    yield from _adversaries(raw)
    yield from _targets(raw)
    yield from reach_problems(raw)
    yield from order_problems(raw)
    yield from misfits(raw, n=None if "data" in population else _integer(population, "n"), k=_size(population))


def misfits(raw: Mapping[str, Any], *, n: int | None, k: int | None) -> Iterator[Problem]:
    """Yield settings that are impossible for n people and k categories (None: not yet known)."""
    randomizer, truthful = table_in(raw, "randomizer"), True
    kind = randomizer.get("kind")
    if isinstance(kind, str) and kind in RANDOMIZERS:
        problems = list(RANDOMIZERS[kind].mechanism.problems(randomizer, k))
        yield from problems
        mechanism = None if problems else _made(kind, randomizer, k)
        if mechanism is not None:
            law = mechanism.law().symmetric
            truthful = law is not None and law.lie == 0
            if table_in(raw, "shuffler").get("kind") == "secure-aggregation":
                yield from _sums(kind, mechanism, table_in(raw, "shuffler"))
    yield from _shuffler(table_in(raw, "shuffler"), truthful=truthful, n=n, k=k)
    for position, adversary in enumerate(tables_in(raw, "adversaries")):
        informed = _integer(adversary, "m") if adversary.get("kind") == "informed" else None
        if n is not None and informed is not None and informed > n - 1:
            rule, hint = f"must be <= n - 1 = {n - 1}", "The adversary can know at most the n - 1 other people."
            yield Problem(key=f"adversaries[{position}].m", rule=rule, value=f"{informed}", hint=hint)


def _made(kind: str, randomizer: Mapping[str, Any], k: int | None) -> Mechanism | None:
    section = RANDOMIZERS[kind]
    settings = section.given_in(randomizer)
    if k is not None and settings is not None:
        with suppress(InvalidInputError):  # what the mechanism refuses is told with its keys
            return section.mechanism.from_settings(k, settings)
    return None


def _shuffler(behind: Mapping[str, Any], *, truthful: bool, n: int | None, k: int | None) -> Iterator[Problem]:
    """Yield what the shuffler itself refuses; wrong types of single keys are reported elsewhere."""
    section = SHUFFLERS.get(str(behind.get("kind")))
    if section is None:
        return
    problems = list(section.declared().broken(behind, "shuffler"))
    yield from problems
    with suppress(ValidationError):
        written = section.model_validate(behind)
        try:
            yield from () if problems else written.build().problems(truthful=truthful, n=n, k=k)
        except InvalidInputError as error:
            yield replace(error.problem, key=f"shuffler.{error.problem.key}")


def _sums(kind: str, mechanism: Mechanism, shuffler: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield problems of secure aggregation: reports that cannot be added, or invalid noise settings."""
    if not mechanism.is_vector:
        hint = "Secure aggregation can add one-hot encodings and single numbers, but not hashes and sets."
        rule = f'must be a shuffler that supports reports of kind "{kind}"'
        yield Problem(key="shuffler.kind", rule=rule, value='"secure-aggregation"', hint=hint)
    elif mechanism.law().one_hot is None:
        hint = "Noise of the servers needs one-hot encodings."
        yield from _noisy(shuffler, f'must be 0 with reports of kind "{kind}"', hint)


def _noisy(shuffler: Mapping[str, Any], rule: str, hint: str) -> Iterator[Problem]:
    """Yield a problem for each key that makes the servers of secure aggregation add noise."""
    for key in ("coins", "laplace") if shuffler.get("kind") == "secure-aggregation" else ():
        if isinstance(shuffler.get(key), int | float) and shuffler[key]:
            yield Problem(key=f"shuffler.{key}", rule=rule, value=f"{shuffler[key]}", hint=hint)


def _population(population: Mapping[str, Any]) -> Iterator[Problem]:
    yield from answer_problems(population)
    named = any(key in population for key in ("categories", "categories_file", "kind"))
    if "data" not in population and "n" in population and ("k" in population) == named:
        given = "both" if "k" in population else "neither"
        hint = "Set k, the number of categories, if they have no names."
        yield Problem(key="population", rule="must have either k or categories", value=given, hint=hint)
    if population.get("categories") == FROM_DATA and population.get("allow_categories_from_data") is not True:
        rule = "must be chosen before the collection, since categories from the data reveal that records have them"
        hint = "To allow it nevertheless, set allow_categories_from_data = true."
        yield Problem(key="population.categories", rule=rule, value=f'"{FROM_DATA}"', hint=hint)
    if population.get("categories") == FROM_DATA and "otherwise" in population:
        value, hint = f"{population['otherwise']!r}", "All values that occur are categories."
        yield Problem(key="population.otherwise", rule="must be left out here", value=value, hint=hint)
    yield from categories_problems(population)
    listed = _listed(population)
    if listed is None:
        return
    yield from _alike(population)
    missing = population.get("missing", "refuse")
    further = None
    if isinstance(missing, str):
        try:
            further = missing_label(missing, listed)
        except InvalidInputError as error:
            yield replace(error.problem, key="population.missing", value=f'"{missing}"')
    labels = [*listed, *([further] if further is not None and further not in listed else [])]
    twice = sorted(label for label, times in Counter(labels).items() if times > 1)
    if twice:
        yield Problem(key="population.categories", rule="must be distinct", value=f"{', '.join(twice)} twice")
    elif len(labels) < 2:
        hint = "With one category, all answers are the same."
        yield Problem(key="population.categories", rule="must be at least 2", value=f"{len(labels)}", hint=hint)


def _persons(raw: Mapping[str, Any], population: Mapping[str, Any]) -> Iterator[Problem]:
    if "data" not in population:
        return
    person, most = population.get("person"), population.get("reports_per_person")
    person = None if person == NO_COLUMN else person
    if person is None and isinstance(most, int) and most > 1:
        hint = 'For example person = "user", the column that identifies the person of a record.'
        yield Problem(key="population.reports_per_person", rule="needs the key person", value=f"{most}", hint=hint)
    if isinstance(person, str):
        key, value = "population.person", f'"{person}"'
        if person == population.get("column"):
            hint = "person is the column that identifies each record's person, not the column of answers."
            yield Problem(key=key, rule="must not be the private column", value=value, hint=hint)
        if table_in(raw, "shuffler").get("kind") == "mallows":
            hint = "A person has one place in a public order: keep one record per person before the collection."
            yield Problem(key=key, rule="must be left out with a Mallows shuffle", value=value, hint=hint)


def _rounds(raw: Mapping[str, Any]) -> Iterator[Problem]:
    rounds = raw.get("rounds")
    if isinstance(rounds, int) and rounds > 1:
        hint = "Assess one round. hushuffle.dp.compose composes rounds if their distribution is known."
        if table_in(raw, "shuffler").get("kind") == "mallows":
            rule = "must be left out with a Mallows shuffle, whose order reveals more in each round"
            yield Problem(key="rounds", rule=rule, value=f"{rounds}", hint=hint)
        if about_reach(raw):
            yield Problem(key="rounds", rule="must be left out in a reach study", value=f"{rounds}", hint=hint)


def _memoised(raw: Mapping[str, Any], population: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem if the guarantee of memoized reports is unknown, or if no report is memoized."""
    rounds, changes = _integer(raw, "rounds") or 1, _integer(raw, "changes")
    if raw.get("memoised") is not True:
        if changes is not None:
            hint = "Remove changes: fresh reports in every round hide changes, so their epsilon holds for any values."
            yield Problem(key="changes", rule="needs memoised = true", value=f"changes = {changes}", hint=hint)
        return
    if rounds < 2:
        hint = "Set how often the same people are asked, for example rounds = 12."
        yield Problem(key="memoised", rule="needs rounds = 2 or more", value="memoised = true", hint=hint)
    elif changes is not None and changes >= rounds:
        hint = "Between the rounds, a value can change at most rounds - 1 times."
        yield Problem(key="changes", rule=f"must be below rounds = {rounds}", value=f"{changes}", hint=hint)
    answer = answer_in(population)
    if answer is not None and answer.grid is not None:
        hint = "Numbers rarely stay the same. Use bins instead: then people memoize one report per bin."
        yield Problem(
            key="population.kind",
            rule="must be left out with memoised reports",
            value=f'"{population["kind"]}"',
            hint=hint,
        )
    most = _integer(population, "reports_per_person")
    if most is not None and most > 1:
        hint = "Two equal answers of a person would repeat one report."
        rule = "must be 1 with memoised reports"
        yield Problem(key="population.reports_per_person", rule=rule, value=f"{most}", hint=hint)
    shuffler, averaged = table_in(raw, "shuffler"), "Fresh randomness averages out over many rounds."
    section = SHUFFLERS.get(str(shuffler.get("kind")))
    if section is not None and section.declared().messages:
        rule = "must be a shuffler without dummies for memoised reports"
        yield Problem(key="shuffler.kind", rule=rule, value=f'"{shuffler["kind"]}"', hint=averaged)
    yield from _noisy(shuffler, "must be 0 with memoised reports", averaged)


def _adversaries(raw: Mapping[str, Any]) -> Iterator[Problem]:
    tables = tables_in(raw, "adversaries")
    if raw.get("adversaries") in ([], ()):
        hint = "Remove the key for the default: uninformed, strong and linker."
        yield Problem(key="adversaries", rule="must be at least one", value="none", hint=hint)
    for position, table in enumerate(tables):
        if table and table in tables[:position]:
            value = f'"{table.get("kind")}" twice'
            yield Problem(key=f"adversaries[{position}]", rule="must be listed once", value=value)


def _targets(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield targets for which the adversary is missing."""
    targets, adversaries = table_in(raw, "targets"), raw.get("adversaries")
    kinds = {str(table.get("kind")) for table in tables_in(with_order_adversaries(raw), "adversaries")}
    if adversaries is None and about_reach(raw):
        kinds = {"strong"}
    elif adversaries is None and not kinds:
        return
    for key, who in (("guessing", _GUESSERS), ("reidentification", ("linker",))):
        if key in targets and not kinds & {*who}:
            hint = "In a reach study, columns have no senders." if about_reach(raw) else "Add one to adversaries."
            rule = f"is allowed only with an adversary of kind {' or '.join(who)}"
            yield Problem(key=f"targets.{key}", rule=rule, value=f"{targets[key]}", hint=hint)


def _size(population: Mapping[str, Any]) -> int | None:
    """Return the number of categories; None if it depends on the data."""
    listed = _listed(population)
    if str(population.get("kind")) in ANSWERS:
        answer = answer_in(population)
        return None if answer is None or answer.labels is None else len(answer.labels)
    if listed is None:
        size = _integer(population, "k")
        return None if size is None or size < 2 else size
    missing = population.get("missing", "refuse")
    more = isinstance(missing, str) and missing not in ("refuse", "drop", *listed)
    return max(2, len(listed) + more)


def _listed(population: Mapping[str, Any]) -> list[str] | None:
    """Return the categories, without the category of missing values; None if they depend on the data."""
    labels, categories = None, population.get("categories")
    if isinstance(categories, dict | list | tuple):
        labels = [as_label(label) if isinstance(label, int) else str(label) for label in categories]
    elif "bins" in population:
        labels = bin_labels(population["bins"])
    other = population.get("otherwise")
    more = labels is not None and isinstance(other, str) and other not in labels
    return [*labels, str(other)] if labels is not None and more else labels


def _alike(population: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield labels that are equal once spaces or capital letters are ignored."""
    tidying = Tidying(trim=population.get("trim") is True, casefold=population.get("casefold") is True)
    listed = population.get("categories")
    if tidying == Tidying() or not isinstance(listed, list | tuple):
        return
    names = [as_label(label) if isinstance(label, int) else str(label) for label in listed]
    tidy = Counter(tidying.names(tuple(dict.fromkeys(names))))
    twice = sorted(label for label, times in tidy.items() if times > 1)
    if twice:
        value = f"{', '.join(twice)} twice"
        hint = "With trim, surrounding spaces are ignored; with casefold, capital letters are ignored."
        yield Problem(key="population.categories", rule="must be distinct", value=value, hint=hint)


def _integer(table: Mapping[str, Any], key: str) -> int | None:
    entry = table.get(key)
    return entry if isinstance(entry, int) and not isinstance(entry, bool) else None


_FILE: Final = "categories_file"
Tables = Mapping[str, Any]


def with_files(raw: Tables, base_folder: Path) -> tuple[Tables, tuple[Problem, ...]]:
    """Return the tables with the contents of the files that they name, and the problems with these files.

    If the tables have both keys (`categories_file` and `categories`, or `file` and `matrix`), the file name remains, so
    that the rules report the conflict.
    """

    def labels(name: str) -> list[str]:
        from hushuffle.tables.value_files import load_labels_file  # noqa: PLC0415 - only when needed

        return list(load_labels_file(name, base_folder=base_folder))

    def matrix(name: str) -> list[list[float]]:
        from hushuffle.tables.value_files import load_matrix  # noqa: PLC0415 - only when needed

        return load_matrix(name, base_folder=base_folder)

    problems: list[Problem] = []
    twice = {"categories", "bins", "k", "kind"}
    raw = _replaced(raw, ("population", _FILE), "categories", twice, labels, "must be a file of labels", problems)
    raw = _replaced(raw, ("randomizer", "file"), "matrix", {"matrix"}, matrix, "must be a file of numbers", problems)
    return raw, tuple(problems)


def _replaced(
    raw: Tables,
    place: tuple[str, str],
    by: str,
    twice: set[str],
    load: Callable[[str], Any],
    rule: str,
    problems: list[Problem],
) -> Tables:
    """Return the tables with the key `by` in place of a file name; an unreadable file is a problem."""
    section, key = place
    table = raw.get(section)
    if not isinstance(table, dict) or not isinstance(table.get(key), str) or not table[key] or twice & table.keys():
        return raw
    try:
        read = load(table[key])
    except DataError as error:
        problems.append(Problem(key=f"{section}.{key}", rule=rule, value=f'"{table[key]}"', hint=str(error)))
        return raw
    return {**raw, section: {name: value for name, value in table.items() if name != key} | {by: read}}


def categories_problems(population: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem unless exactly one of four keys defines the categories of a population with data."""
    has_data = "data" in population or ("column" in population and "n" not in population)
    if not has_data or {"publishers", "audiences"} & population.keys():
        return
    given = [key for key in ("categories", _FILE, "bins", "kind") if key in population]
    if not given:
        hint = f'Alternatives are {_FILE}, bins, or kind = "number".'
        yield Problem(key="population.categories", rule="must be given", value="nothing", hint=hint)
    for key in given[1:]:
        yield Problem(key=f"population.{key}", rule=f"is not allowed together with {given[0]}", value="both")
