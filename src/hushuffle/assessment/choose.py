"""From what people know to deployments: every mechanism behind every shuffler that meets the targets, ranked."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hushuffle import _checks
from hushuffle.assessment.advice import Advice, advise
from hushuffle.assessment.candidates import Candidate, Miss, Search, Wishes, apart, searches, with_dummies
from hushuffle.assessment.message_candidates import message_searches
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.model import Population, Progress, notebook, number, silent
from hushuffle.numerics.roots import farthest
from hushuffle.specification import ReachPopulation, Specification, parse
from hushuffle.specification._base import unfit
from hushuffle.specification.reading import read_text, text_of

_FACTOR: Final = 4
"""Numbers of dummies that are tried: 1, and each this many times the one before."""

_MOST_DUMMIES: Final = 10**9
_ASKED: Final = ("standard_error", "epsilon", "local_epsilon", "guessing")


@dataclass(frozen=True, kw_only=True)
class Choices:
    """`rows` meet all targets, those that nothing else beats first, then by central epsilon.

    `missed` are the others, those that come nearest first, each with why. `advice`: what would have to change, where
    nothing meets the targets; each by itself is enough.
    """

    title: str
    population: Population
    asked: str
    rows: tuple[Candidate, ...]
    missed: tuple[Miss, ...]
    advice: tuple[Advice, ...] = ()

    def _repr_html_(self) -> str:
        if not self.rows:
            return notebook.table(("what would do",), [(advice.sentence,) for advice in self.advice])
        shown = [
            (
                f"{row.mechanism}, {row.shuffler}",
                "yes" if row.best else "",
                str(row.point.central),
                "none" if math.isinf(row.point.local_epsilon) else number(row.point.local_epsilon, up=True),
                number(row.point.standard_error, up=True),
            )
            for row in self.rows
        ]
        columns = ("deployment", "beaten by no other", "central epsilon", "local epsilon", "standard error")
        return notebook.table(columns, shown, more=self.asked)


def choose(
    wishes: str | os.PathLike[str] | Mapping[str, Any],
    *,
    most_dummies: int = 0,
    most_messages: float = 1.0,
    most_bits: float = math.inf,
    honest: float = 1.0,
    base_folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Choices:
    """Return the deployments that meet what people know they need: an accuracy, a privacy, a crowd.

    `wishes` is a specification in which [randomizer] and [shuffler] may be left out; they are not looked at. With
    `targets.standard_error` every mechanism gets the smallest local epsilon that is accurate enough; with targets of
    privacy alone the largest that they allow. Further messages of people (`BlanketMessages`, `FakesPerValue`), or of a
    scrambler, beside true reports are as few as meet the targets of privacy; with `targets.local_epsilon` blanket
    messages go with reports as noisy as it demands. Values in the data are not looked at.

    Args:
        wishes: the name of a TOML file, or its tables.
        most_dummies: how many dummy reports a scrambler may add, at most; the fewest of 1, 4, 16, ... that will do,
            and the fewest of all where reports are true.
        most_messages: how many messages a person may send on average, the report among them.
        most_bits: how many bits a person may send on average.
        honest: the share of people who keep their further messages to themselves, as in `BlanketMessages`.
        base_folder: the folder that relative paths of data are relative to; that of the file by default.
        progress: told what is going on.

    Raises:
        SpecificationError: the file is wrong, or asks for neither accuracy nor privacy, is about numbers or reach, or
            for something that no mechanism changes: more people than there are, a delta of 1/n or more.
        DataError, MissingDependencyError: the data cannot be used.
        InvalidInputError: `wishes` is neither, or a limit out of range: `most_dummies` is a whole number from 0 to
            10**9, `most_messages` 1 or more, `most_bits` above 0, `honest` in (0, 1].

    >>> found = choose({
    ...     "population": {"n": 50_000, "k": 5},
    ...     "targets": {"delta": 1e-6, "standard_error": 0.005, "epsilon": 0.1, "local_epsilon": 2.5},
    ... })
    >>> found.rows[0].sentence
    'unary encoding (symmetric) with local epsilon 1.735, secure aggregation'
    >>> all(target.met for row in found.rows for target in row.targets)
    True
    >>> many = {"population": {"n": 10**6, "k": 1000}, "targets": {"delta": 1e-7, "standard_error": 1e-4, "epsilon": 1}}
    >>> choose(many, most_messages=1.1).rows[1].sentence
    'true reports with no local epsilon, blanket messages, 0.05229 of each person besides'
    """
    _checks.integer("most_dummies", most_dummies, low=0, high=_MOST_DUMMIES)
    if _checks.positive("most_messages", most_messages, allow_infinite=True) < 1:
        _checks.reject("most_messages", "1 or more", most_messages, "The report is a message.")
    _checks.positive("most_bits", most_bits, allow_infinite=True)
    _checks.probability("honest", honest, low_open=True)
    tell = progress or silent
    tables, folder, file = _read(wishes, base_folder)
    tell("counting people", 0.0)
    asked = Wishes(tables=tables, n=1, k=2, people=1, file=file, folder=folder)
    first = asked.specification({"kind": "randomized-response", "epsilon": 1.0}, {"kind": "uniform"})
    _refuse(first, file)
    people = first.population.read(folder)
    asked = replace(
        asked,
        n=people.n,
        k=people.k,
        people=people.population.least_people,
        most_dummies=most_dummies,
        most_messages=most_messages,
        most_bits=most_bits,
        honest=honest,
    )
    _refuse_hopeless(first, asked.people, file)
    rows, missed = _tried(asked, tell)
    tell("what would have to change", 0.9)
    return Choices(
        title=first.title or "A choice of deployments",
        population=people.population,
        asked=_asked(first),
        rows=_ranked(rows),
        missed=tuple(sorted(missed, key=_lack)),
        advice=() if rows else tuple(advise(asked, sorted(missed, key=_lack))),
    )


def _read(
    wishes: str | os.PathLike[str] | Mapping[str, Any], base_folder: str | os.PathLike[str] | None
) -> tuple[dict[str, Any], Path, str]:
    if isinstance(wishes, Mapping):
        text_of("wishes", wishes)  # or refused
        return dict(wishes), Path(base_folder or "."), "wishes"
    _checks.of_type("wishes", wishes, str, os.PathLike, Mapping)
    path = Path(wishes)
    text = read_text(path)
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        parse(text, file=str(path))  # says where
        raise
    return tables, path.parent if base_folder is None else Path(base_folder), str(path)


def _refuse(first: Specification, file: str) -> None:
    """Complain about wishes that no choice among mechanisms for categories answers."""
    targets = first.targets
    if all(getattr(targets, key) is None for key in _ASKED):
        hint = "For example standard_error = 0.01, or epsilon = 0.5."
        unfit("targets", f"must ask for one of {', '.join(_ASKED)}", "none of them", hint, where=file)
    if isinstance(first.population, ReachPopulation) or first.population.grid is not None:
        hint = "hs.best_levels compares the mechanisms for numbers."
        unfit("population.kind", "must be categories to choose among mechanisms", "another", hint, where=file)


def _refuse_hopeless(first: Specification, people: int, file: str) -> None:
    """Complain about targets that are missed whatever the mechanism is."""
    if first.targets.delta >= 1 / people:
        hint = "Commonly it is well below."
        rule = f"must be below one over the number of people, {people:,}, to be met"
        unfit("targets.delta", rule, f"{first.targets.delta:g}", hint, where=file)
    if first.targets.people is not None and first.targets.people > people:
        rule = f"must be at most the number of people, {people:,}, to be met"
        unfit("targets.people", rule, f"{first.targets.people:,}", where=file)


def _asked(first: Specification) -> str:
    """Return what is asked, in one sentence."""
    targets = first.targets
    wanted = [
        (targets.standard_error, "standard error of a share at most {:g}"),
        (targets.epsilon, f"central epsilon at most {{:g}} at delta = {targets.delta:g}"),
        (targets.local_epsilon, "local epsilon at most {:g}"),
        (targets.guessing, "an answer guessed with probability at most {:g}"),
        (targets.reidentification, "a sender named with probability at most {:g}"),
        (targets.people, "at least {:,} people"),
    ]
    return f"Asked: {'; '.join(words.format(limit) for limit, words in wanted if limit is not None)}."


def _tried(wishes: Wishes, tell: Progress) -> tuple[list[Candidate], list[Miss]]:
    """Return every candidate that meets the targets, and the misses."""
    (noisy, missed), (several, misfits) = searches(wishes), message_searches(wishes)
    most_dummies, waiting, missed = wishes.most_dummies, [*noisy, *several], [*missed, *misfits]
    rows: list[Candidate] = []
    for place, search in enumerate(waiting):
        tell(search.name, 0.9 * place / len(waiting))
        found = _run(search)
        if most_dummies and isinstance(found, Miss) and search.shuffler["kind"] == "uniform" and _central_alone(found):
            missed.append(found)
            found = _scrambled(search, most_dummies)
        if isinstance(found, Miss):
            missed.append(found)
            continue
        # What a mechanism chooses by itself may be what is tried by name as well.
        same = next((at for at, row in enumerate(rows) if row.protocol == found.protocol), None)
        if same is None:
            rows.append(found)
        else:
            rows[same] = replace(rows[same], also=(*rows[same].also, found.mechanism))
    return rows, missed


def _run(search: Search) -> Candidate | Miss:
    try:
        return search.run()
    except (UnsupportedProtocolError, InvalidInputError, NumericalError) as error:
        return Miss(search=search, reason=apart(error))


def _central_alone(miss: Miss) -> bool:
    """Return whether nothing but the central target is missed: more dummies may help."""
    return miss.candidate is not None and {target.key for target in miss.candidate.unmet} == {"epsilon"}


def _scrambled(search: Search, most: int) -> Candidate | Miss:
    """Return the same mechanism with the fewest dummies that will do."""
    powers = [power for power in range(most.bit_length()) if _FACTOR**power <= most]
    found: dict[int, Candidate | Miss] = {}

    def enough(power: int) -> bool:
        found[power] = one = _run(with_dummies(search, _FACTOR**power))
        return isinstance(one, Candidate) or not _central_alone(one)

    return found[farthest(enough, good=powers[-1], bad=-1)] if enough(powers[-1]) else found[powers[-1]]


def _ranked(found: list[Candidate]) -> tuple[Candidate, ...]:
    marked = [replace(one, best=not any(_beats(other, one) for other in found)) for one in found]
    return tuple(sorted(marked, key=lambda one: (not one.best, one.costs)))


def _beats(other: Candidate, one: Candidate) -> bool:
    pairs = list(zip(other.costs, one.costs, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _lack(one: Miss) -> tuple[int, int, float]:
    """Return how far a miss is from the targets: whether it was tried, how many it misses, and by how much."""
    if one.candidate is None:
        return (2 if one.local is None else 1, 0, one.local or 0.0)
    if one.over:
        return 0, 0, one.candidate.messages
    ratios = [target.got.upper / target.asked for target in one.candidate.unmet if target.got is not None]
    return 0, len(one.candidate.unmet), max(ratios, default=float("inf"))
