"""Choose deployments: try every mechanism behind every shuffler, and rank those that meet the targets."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from hushuffle import _checks
from hushuffle.assessment.advice import Advice, advise
from hushuffle.assessment.candidates import UNIFORM, Candidate, Miss, Search, Wishes, apart, with_dummies
from hushuffle.assessment.column_candidates import CollectionWishes
from hushuffle.assessment.message_candidates import AnswerWishes
from hushuffle.assessment.number_candidates import NumberWishes, SumWishes
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.model import Population, Progress, Table, notebook, number, silent
from hushuffle.model.solver import Parameter, solve, verdict
from hushuffle.specification import parse
from hushuffle.specification._base import table_in, unfit
from hushuffle.specification.reading import read_text, text_of

_FACTOR: Final = 4
"""Numbers of dummies are tried in powers of this factor: 1, 4, 16, ..."""

_MOST_DUMMIES: Final = 10**9
_SUMS: Final = "secure-aggregation"
_CENTRAL: Final = "central epsilon"
_KEPT: Final = ("scrambler", "augmented")
"""The shufflers whose settings in the file are kept as one more candidate."""
_ASKED: Final = ("standard_error", "epsilon", "local_epsilon", "guessing")


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The result of `choose`: the deployments that meet the targets, and the reasons why others do not.

    `rows` are the deployments that meet all targets, Pareto-optimal deployments first, then by `order`: by central
    epsilon or, without an accuracy target, by the error. `missed` are the other candidates with the reasons, those
    nearest to the targets first. If no deployment meets the targets, each change in `advice` suffices. `rounds` is the
    number of rounds, and `reports` says whether reports are fresh or memoized. `repeated` compares fresh and memoized
    reports for the first row (empty for one round). `wishes` is the request.
    """

    title: str
    population: Population
    wishes: Wishes = field(repr=False)
    order: str
    asked: str
    rows: tuple[Candidate, ...]
    missed: tuple[Miss, ...]
    advice: tuple[Advice, ...] = ()
    rounds: int = 1
    reports: str = ""
    repeated: tuple[Table, ...] = ()

    @property
    def again(self) -> str:
        """The rounds and their reports, as the end of a sentence; "" for one round."""
        return f", {self.rounds:,} rounds with {self.reports}" if self.rounds > 1 else ""

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
        columns = ("deployment", "Pareto-optimal", "central epsilon", "local epsilon", self.wishes.error_name)
        return notebook.table(columns, shown, more=self.asked)


def choose(
    wishes: str | os.PathLike[str] | Mapping[str, Any],
    *,
    most_dummies: int = 0,
    most_messages: float | None = None,
    most_bits: float = math.inf,
    honest: float = 1.0,
    secure_aggregation: bool | None = None,
    base_folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Choices:
    """Return the deployments that meet targets of accuracy, privacy and population size.

    `wishes` is a specification in which [randomizer] and [shuffler] may be left out. With `targets.standard_error`,
    every mechanism gets the smallest local epsilon that meets this target. With privacy targets only, it gets the
    largest local epsilon that they allow. If true reports are hidden by additional messages of clients
    (`BlanketMessages`, `FakesPerValue`) or by dummies of a scrambler, their number is the smallest that meets the
    privacy targets. With `targets.local_epsilon`, reports get the required noise in addition to blanket messages. If
    the file has a [shuffler], its dummies or its servers' noise are tried, too. Values in the data are not used.

    For numbers, deployments are compared by the error of the mean, and a sum by several messages is tried. The
    number of levels is chosen, too, unless a target is about single levels. A file with [sum] is compared with noisy
    reports of the same guarantee. Several columns all use the same mechanism.

    Args:
        wishes: the name of a TOML file, or its tables.
        most_dummies: the largest number of dummy reports of a scrambler; 0: no scrambler is tried. The smallest number
            that meets the targets is used; for noisy reports, only 1, 4, 16, ... are tried.
        most_messages: the largest average number of messages of a person, including the report. The default is 1, or
            no limit for a file with [sum].
        most_bits: the largest average number of bits that a person sends.
        honest: the share of clients that send additional messages and do not collude, as in `BlanketMessages`. A file
            with [sum] states its own share.
        secure_aggregation: whether to try secure aggregation; by default, yes unless [shuffler] has another kind.
        base_folder: the folder against which relative paths of data are resolved; by default the folder of the file.
        progress: receives the current step and the share of the work that is done.

    Raises:
        SpecificationError: the file is invalid, has no target of accuracy or privacy, is about the reach of publishers,
            has a shuffler with a noisy order, requires more people than the data has, or has a delta of 1/n or more.
        DataError, MissingDependencyError: the data cannot be used.
        InvalidInputError: `wishes` is neither a file name nor tables, or a limit is out of range: `most_dummies` must
            be 0 to 10**9, `most_messages` 1 or more, `most_bits` above 0, `honest` in (0, 1].

    >>> import hushuffle as hs
    >>> found = hs.choose({
    ...     "population": {"n": 50_000, "k": 5},
    ...     "targets": {"delta": 1e-6, "standard_error": 0.005, "epsilon": 0.1, "local_epsilon": 2.5},
    ... })
    >>> found.rows[0].sentence
    'unary encoding (symmetric) with local epsilon 1.735, secure aggregation'
    >>> all(target.met for row in found.rows for target in row.targets)
    True
    >>> many = {"population": {"n": 10**6, "k": 1000}, "targets": {"delta": 1e-7, "standard_error": 1e-4, "epsilon": 1}}
    >>> hs.choose(many, most_messages=1.1).rows[1].sentence
    'true reports with no local epsilon, blanket messages (0.05228 per person)'
    """
    _checks.integer("most_dummies", most_dummies, low=0, high=_MOST_DUMMIES)
    if most_messages is not None and _checks.positive("most_messages", most_messages, allow_infinite=True) < 1:
        _checks.reject("most_messages", "1 or more", most_messages, "The report is a message.")
    _checks.positive("most_bits", most_bits, allow_infinite=True)
    _checks.probability("honest", honest, low_open=True)
    tables, folder, file = _read(wishes, base_folder)
    _refuse(tables, file)
    shufflers, written = _shufflers(tables, secure_aggregation=secure_aggregation)
    kind = _kind(tables)
    request = kind(
        tables=tables,
        file=file,
        folder=folder,
        most_dummies=most_dummies,
        most_messages=kind.usual_messages if most_messages is None else most_messages,
        most_bits=most_bits,
        honest=honest,
        shufflers=shufflers,
        written=written,
    )
    if all(getattr(request.targets, key, None) is None for key in _ASKED):
        hint = "For example standard_error = 0.01, or epsilon = 0.5."
        unfit("targets", f"must set at least one of {', '.join(_ASKED)}", "none of them", hint, where=request.file)
    choices = chosen(request, progress=progress)
    return replace(choices, advice=() if choices.rows else tuple(advise(choices.wishes, choices.missed)))


def chosen(
    request: Wishes, *, among: Callable[[Search], bool] = lambda _: True, progress: Progress | None = None
) -> Choices:
    """Return the deployments that meet a request, and the reasons why others do not, without advice.

    Only searches `among` those of the request are run.
    """
    tell = progress or silent
    tell("counting people", 0.0)
    request, population = request.read()
    _refuse_hopeless(request)
    tried, missed = _tried(request, among, tell)
    order = _CENTRAL if request.wanted is not None else request.error_name
    rows, exposure = _ranked(tried, by_error=request.wanted is None), request.exposure
    tell("what would have to change", 0.9)
    return Choices(
        title=request.whole.title or "A choice of deployments",
        population=population,
        wishes=request,
        order=order,
        asked=_asked(request),
        rows=rows,
        missed=tuple(sorted(missed, key=lambda miss: miss.lack)),
        rounds=exposure.rounds,
        reports=exposure.drawn,
        repeated=rows[0].search.repeated(rows[0]) if rows else (),
    )


def _kind(tables: Mapping[str, Any]) -> type[Wishes]:
    """Return the kind of request that a file is."""
    if "columns" in tables:
        return CollectionWishes
    if "sum" in tables:
        return SumWishes
    return NumberWishes if table_in(tables, "population").get("kind") == "number" else AnswerWishes


def _shufflers(
    tables: Mapping[str, Any], *, secure_aggregation: bool | None
) -> tuple[tuple[Mapping[str, Any], ...], Mapping[str, Any] | None]:
    """Return the tables of the shufflers to try, and that of the file if its dummies are kept."""
    section = table_in(tables, "shuffler")
    kind, settled = section.get("kind", "uniform" if "sum" in tables else _SUMS), len(section) > 1
    if secure_aggregation is None:
        secure_aggregation = kind == _SUMS
    sums = section if settled and kind == _SUMS else {"kind": _SUMS}
    written = section if settled and kind in _KEPT else None
    plain = (UNIFORM, *([sums] if secure_aggregation else []), {"kind": "none"})
    return (*plain, *([] if written is None else [written])), written


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


def _refuse(tables: Mapping[str, Any], file: str) -> None:
    """Raise SpecificationError for files between whose mechanisms there is nothing to choose."""
    if table_in(tables, "population").keys() & {"publishers", "audiences"}:
        hint = "A reach study has one mechanism. Run calibrate for the smallest p that meets targets.epsilon."
        unfit("population", "must be people with one value each for choose", "a study of reach", hint, where=file)
    if table_in(tables, "shuffler").get("kind") == "mallows":
        hint = "The order of release depends on the people of the file, and choose tries no orders. Run assess."
        unfit("shuffler.kind", "must be a shuffler without an order for choose", '"mallows"', hint, where=file)


def _refuse_hopeless(request: Wishes) -> None:
    """Raise SpecificationError for targets that every mechanism misses."""
    people, targets = request.people, request.targets
    if request.delta >= 1 / people:
        hint = "Choose a delta well below this limit."
        rule = f"must be below 1 divided by the number of people ({people:,}), or no mechanism meets it"
        unfit("targets.delta", rule, f"{request.delta:g}", hint, where=request.file)
    if targets.people is not None and targets.people > people:
        rule = f"must be at most the number of people ({people:,}), or no mechanism meets it"
        unfit("targets.people", rule, f"{targets.people:,}", where=request.file)


def _asked(request: Wishes) -> str:
    """Return the targets in one sentence."""
    wanted = [
        ("standard_error", f"{request.wanted_words} at most {{:g}}"),
        ("epsilon", f"central epsilon at most {{:g}} at delta = {request.delta:g}"),
        ("local_epsilon", "local epsilon at most {:g}"),
        ("guessing", "probability of guessing an answer at most {:g}"),
        ("reidentification", "probability of identifying a sender at most {:g}"),
        ("people", "at least {:,} people"),
    ]
    limits = [(getattr(request.targets, key, None), words) for key, words in wanted]
    return f"Targets: {'; '.join(words.format(limit) for limit, words in limits if limit is not None)}."


def _tried(wishes: Wishes, among: Callable[[Search], bool], tell: Progress) -> tuple[list[Candidate], list[Miss]]:
    """Return all deployments that meet the targets, and all misses."""
    searches, misfits = wishes.searches()
    waiting, missed = [*filter(among, searches)], [miss for miss in misfits if among(miss.search)]
    rows: list[Candidate] = []
    for place, search in enumerate(waiting):
        tell(search.name, 0.9 * place / len(waiting))
        trial = _run(search)
        more = wishes.most_dummies and search.shuffler["kind"] == "uniform"
        if more and isinstance(trial, Miss) and _central_alone(trial):
            missed.append(trial)
            trial = _scrambled(trial.search, wishes.most_dummies)
        if isinstance(trial, Miss):
            missed.append(trial)
            continue
        # A default setting of a mechanism may equal a setting that is also tried by name.
        same = next((at for at, row in enumerate(rows) if row.protocol == trial.protocol), None)
        if same is None:
            rows.append(trial)
        elif trial.mechanism != rows[same].mechanism:
            rows[same] = replace(rows[same], also=(*rows[same].also, trial.mechanism))
    return rows, missed


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


def _ranked(candidates: list[Candidate], *, by_error: bool) -> tuple[Candidate, ...]:
    marked = [replace(one, best=not any(_beats(other, one) for other in candidates)) for one in candidates]
    return tuple(
        sorted(marked, key=lambda one: (not one.best, one.point.standard_error if by_error else 0.0, one.costs))
    )


def _beats(other: Candidate, candidate: Candidate) -> bool:
    pairs = list(zip(other.costs, candidate.costs, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
