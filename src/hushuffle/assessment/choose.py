"""Choose deployments: try every mechanism behind every shuffler, and rank those that meet the targets."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from hushuffle import _checks
from hushuffle.assessment.advice import Advice, advise
from hushuffle.assessment.candidates import Candidate, Miss, Search, Wishes, apart, searches, with_dummies
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.memoised import compared_reports
from hushuffle.assessment.message_candidates import message_searches
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse, SubsetSelection
from hushuffle.model import Population, Progress, Table, notebook, number, silent
from hushuffle.model.solver import Parameter, solve, verdict
from hushuffle.specification import ReachPopulation, Specification, parse
from hushuffle.specification._base import unfit
from hushuffle.specification.reading import read_text, text_of

_FACTOR: Final = 4
"""Numbers of dummies are tried in powers of this factor: 1, 4, 16, ..."""

_MOST_DUMMIES: Final = 10**9
_SUMS: Final = "secure-aggregation"
_ASKED: Final = ("standard_error", "epsilon", "local_epsilon", "guessing")


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The result of `choose`: the deployments that meet the targets, and the reasons why others do not.

    `rows` are the deployments that meet all targets, Pareto-optimal deployments first, then by central epsilon.
    `missed` are the other candidates with the reasons, those nearest to the targets first. If no deployment meets the
    targets, each change in `advice` suffices. `rounds` is the number of rounds, and `reports` says whether reports are
    fresh or memoized. `repeated` compares fresh and memoized reports for the first row (empty for one round).
    """

    title: str
    population: Population
    asked: str
    rows: tuple[Candidate, ...]
    missed: tuple[Miss, ...]
    advice: tuple[Advice, ...] = ()
    rounds: int = 1
    reports: str = ""
    repeated: tuple[Table, ...] = ()

    def _repr_html_(self) -> str:
        if not self.rows:
            return notebook.table(("change that suffices",), [(advice.sentence,) for advice in self.advice])
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
        columns = ("deployment", "Pareto-optimal", "central epsilon", "local epsilon", "standard error")
        return notebook.table(columns, shown, more=self.asked)


def choose(
    wishes: str | os.PathLike[str] | Mapping[str, Any],
    *,
    most_dummies: int = 0,
    most_messages: float = 1.0,
    most_bits: float = math.inf,
    honest: float = 1.0,
    secure_aggregation: bool | None = None,
    base_folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Choices:
    """Return the deployments that meet targets of accuracy, privacy and population size.

    `wishes` is a specification in which [randomizer] and [shuffler] may be left out. If [shuffler] is
    present, only its `kind` is used (see `secure_aggregation`). With `targets.standard_error`, every mechanism gets the
    smallest local epsilon that meets this target. With privacy targets only, it gets the largest that they allow.
    Where true reports are hidden by additional messages, of people (`BlanketMessages`, `FakesPerValue`) or of a
    scrambler, the fewest messages that meet the privacy targets are chosen. With `targets.local_epsilon`, blanket
    messages accompany reports with the required noise. Values in the data are not used.

    Args:
        wishes: the name of a TOML file, or its tables.
        most_dummies: the largest number of dummy reports of a scrambler. For noisy reports, the fewest of 1, 4, 16, ...
            that suffice are chosen; for true reports, the fewest that suffice.
        most_messages: the largest average number of messages of a person, including the report.
        most_bits: the largest average number of bits that a person sends.
        honest: the share of clients that send additional messages and do not collude, as in `BlanketMessages`.
        secure_aggregation: whether to try secure aggregation; by default, yes unless [shuffler] has another kind.
        base_folder: the folder against which relative paths of data are resolved; that of the file by default.
        progress: receives the current step and the share of the work that is done.

    Raises:
        SpecificationError: the file is invalid, has no target of accuracy or privacy, is about numbers or reach, or has
            a target that no mechanism can meet: more people than the data has, or a delta of 1/n or more.
        DataError, MissingDependencyError: the data cannot be used.
        InvalidInputError: `wishes` is neither a file name nor tables, or a limit is out of range: `most_dummies` must
            be 0 to 10**9, `most_messages` 1 or more, `most_bits` above 0, `honest` in (0, 1].

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
    'true reports with no local epsilon, blanket messages (0.05229 per person)'
    """
    _checks.integer("most_dummies", most_dummies, low=0, high=_MOST_DUMMIES)
    if _checks.positive("most_messages", most_messages, allow_infinite=True) < 1:
        _checks.reject("most_messages", "1 or more", most_messages, "The report is a message.")
    _checks.positive("most_bits", most_bits, allow_infinite=True)
    _checks.probability("honest", honest, low_open=True)
    tell = progress or silent
    tables, folder, file = _read(wishes, base_folder)
    tell("counting people", 0.0)
    request = Wishes(tables=tables, n=1, k=2, people=1, file=file, folder=folder)
    first = request.specification({"kind": "randomized-response", "epsilon": 1.0}, {"kind": "uniform"})
    _refuse(first, file)
    people = first.population.read(folder)
    request = replace(
        request,
        n=people.n,
        k=people.k,
        people=people.population.least_people,
        most_dummies=most_dummies,
        most_messages=most_messages,
        most_bits=most_bits,
        honest=honest,
        shufflers=_shufflers(tables, secure_aggregation=secure_aggregation),
    )
    _refuse_hopeless(first, request.people, file)
    tried, missed = _tried(request, tell)
    rows, exposure = _ranked(tried), Exposure.of(first, k=people.k)
    tell("what would have to change", 0.9)
    return Choices(
        title=first.title or "A choice of deployments",
        population=people.population,
        asked=_asked(first),
        rows=rows,
        missed=tuple(sorted(missed, key=_lack)),
        advice=() if rows else tuple(advise(request, sorted(missed, key=_lack))),
        rounds=exposure.rounds,
        reports=_reports(exposure),
        repeated=compared_reports(rows[0].protocol, delta=first.targets.delta, exposure=exposure) if rows else (),
    )


def _shufflers(tables: Mapping[str, Any], *, secure_aggregation: bool | None) -> tuple[str, ...]:
    """Return the names of the shufflers without dummies that are tried."""
    if secure_aggregation is None:
        section = tables.get("shuffler")
        kind = section.get("kind", _SUMS) if isinstance(section, Mapping) else _SUMS
        secure_aggregation = kind == _SUMS
    return ("uniform", *([_SUMS] if secure_aggregation else []), "none")


def _reports(exposure: Exposure) -> str:
    """Return in words whether reports are fresh in every round or memoized; "" for one round."""
    if exposure.rounds == 1:
        return ""
    if exposure.memoised:
        return f"memoized reports, for people whose value {exposure.stays}"
    return "fresh reports in every round"


def _read(
    wishes: str | os.PathLike[str] | Mapping[str, Any], base_folder: str | os.PathLike[str] | None
) -> tuple[dict[str, Any], Path, str]:
    if isinstance(wishes, Mapping):
        text_of("wishes", wishes)  # raises InvalidInputError for other types
        return dict(wishes), Path(base_folder or "."), "wishes"
    _checks.of_type("wishes", wishes, str, os.PathLike, Mapping)
    path = Path(wishes)
    text = read_text(path)
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        parse(text, file=str(path))  # raises an error that names the line
        raise
    return tables, path.parent if base_folder is None else Path(base_folder), str(path)


def _refuse(first: Specification, file: str) -> None:
    """Raise SpecificationError for a request that is not about one column of categories, or has no targets."""
    targets = first.targets
    if all(getattr(targets, key) is None for key in _ASKED):
        hint = "For example standard_error = 0.01, or epsilon = 0.5."
        unfit("targets", f"must set at least one of {', '.join(_ASKED)}", "none of them", hint, where=file)
    if isinstance(first.population, ReachPopulation) or first.population.grid is not None:
        hint = "hs.best_levels compares the mechanisms for numbers."
        unfit("population.kind", "must be categories to compare mechanisms", "numbers", hint, where=file)


def _refuse_hopeless(first: Specification, people: int, file: str) -> None:
    """Raise SpecificationError for targets that every mechanism misses."""
    if first.targets.delta >= 1 / people:
        hint = "Choose a delta well below it."
        rule = f"must be below 1 divided by the number of people ({people:,}), or no mechanism meets it"
        unfit("targets.delta", rule, f"{first.targets.delta:g}", hint, where=file)
    if first.targets.people is not None and first.targets.people > people:
        rule = f"must be at most the number of people ({people:,}), or no mechanism meets it"
        unfit("targets.people", rule, f"{first.targets.people:,}", where=file)


def _asked(first: Specification) -> str:
    """Return the targets in one sentence."""
    targets = first.targets
    wanted = [
        (targets.standard_error, "standard error of a share at most {:g}"),
        (targets.epsilon, f"central epsilon at most {{:g}} at delta = {targets.delta:g}"),
        (targets.local_epsilon, "local epsilon at most {:g}"),
        (targets.guessing, "probability of guessing an answer at most {:g}"),
        (targets.reidentification, "probability of identifying a sender at most {:g}"),
        (targets.people, "at least {:,} people"),
    ]
    return f"Targets: {'; '.join(words.format(limit) for limit, words in wanted if limit is not None)}."


def _tried(wishes: Wishes, tell: Progress) -> tuple[list[Candidate], list[Miss]]:
    """Return all deployments that meet the targets, and all misses."""
    (noisy, missed), (several, misfits) = searches(wishes), message_searches(wishes)
    most_dummies, waiting, missed = wishes.most_dummies, [*noisy, *several], [*missed, *misfits]
    rows: list[Candidate] = []
    for place, search in enumerate(waiting):
        tell(search.name, 0.9 * place / len(waiting))
        trial = _run(search)
        if most_dummies and isinstance(trial, Miss) and search.shuffler["kind"] == "uniform" and _central_alone(trial):
            missed.append(trial)
            trial = _scrambled(search, most_dummies)
        if isinstance(trial, Miss):
            missed.append(trial)
            continue
        # A default setting of a mechanism may equal a setting that is also tried by name.
        same = next((at for at, row in enumerate(rows) if _plain(row) == _plain(trial)), None)
        if same is None:
            rows.append(trial)
        else:
            rows[same] = replace(rows[same], also=(*rows[same].also, trial.mechanism))
    return rows, missed


def _plain(row: Candidate) -> Protocol:
    """Return the simplest equivalent protocol: subset selection with one value is randomized response."""
    protocol, randomizer = row.protocol, row.protocol.randomizer
    if isinstance(randomizer, SubsetSelection) and randomizer.w == 1:
        return replace(protocol, randomizer=RandomizedResponse(k=randomizer.k, epsilon=randomizer.epsilon))
    return protocol


def _run(search: Search) -> Candidate | Miss:
    try:
        return search.run()
    except (UnsupportedProtocolError, InvalidInputError, NumericalError) as error:
        return Miss(search=search, reason=apart(error))


def _central_alone(miss: Miss) -> bool:
    """Return whether the target for central epsilon is the only one missed, so that more dummies may help."""
    return miss.candidate is not None and {target.key for target in miss.candidate.unmet} == {"epsilon"}


def _scrambled(search: Search, most: int) -> Candidate | Miss:
    """Return the deployment of the same mechanism with the fewest sufficient dummies (up to `most`), or a `Miss`."""
    last = max(power for power in range(most.bit_length()) if _FACTOR**power <= most)
    result = cache(lambda power: _run(with_dummies(search, _FACTOR ** int(power))))
    powers = Parameter(name="power", apply=result, easiest=last, hardest=0, start=last, whole=True, resolution=0)
    solution = solve(powers, verdict(lambda tried: isinstance(tried, Candidate) or not _central_alone(tried)))
    return result(last if solution is None else solution.value)


def _ranked(candidates: list[Candidate]) -> tuple[Candidate, ...]:
    marked = [replace(one, best=not any(_beats(other, one) for other in candidates)) for one in candidates]
    return tuple(sorted(marked, key=lambda one: (not one.best, one.costs)))


def _beats(other: Candidate, candidate: Candidate) -> bool:
    pairs = list(zip(other.costs, candidate.costs, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def _lack(miss: Miss) -> tuple[int, int, float]:
    """Return a sort key, smaller if nearer to the targets: whether figures exist, number of missed targets, excess."""
    if miss.candidate is None:
        return (2 if miss.local is None else 1, 0, miss.local or 0.0)
    if miss.over:
        return 0, 0, miss.candidate.messages
    ratios = [target.got.upper / target.asked for target in miss.candidate.unmet if target.got is not None]
    return 0, len(miss.candidate.unmet), max(ratios, default=float("inf"))
