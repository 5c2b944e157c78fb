"""The options of a collection that no specification has, and the joint guarantee of all collections with one key."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import MEMORY
from hushuffle.collection.kept import FRESH, FreshReports, KeyRounds
from hushuffle.collection.ledger import LedgerBatch, begin
from hushuffle.collection.record_tags import Entries
from hushuffle.errors import DataError, NumericalError, UnsupportedProtocolError
from hushuffle.files.secret_keys import key_in_file, make_key
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound, Progress
from hushuffle.model.report_layout import Packed
from hushuffle.questions import dp
from hushuffle.questions.dp.central import Round
from hushuffle.specification import Specification, parse
from hushuffle.specification.population import AnyPopulation
from hushuffle.specification.sums import is_sum, parse_sum
from hushuffle.tables.categories import Answers
from hushuffle.tables.csv_form import CsvForm

REPORTS: Final = "reports.parquet"
SUMS: Final = "sums.json"
"""The file with the sums in a release folder, if sums are released instead of reports."""

MANIFEST: Final = "manifest.json"


class TooFewPeople(DataError):  # noqa: N818 - what is the case
    """There are fewer people than the minimum of a batch."""


def refuse_few(people: int, batch: int, target: int | None, *others: tuple[int, str]) -> None:
    """Raise an error if there are fewer people than the targets, the batch, or `others` with their sources require."""
    for least, source in (*others, (target or 1, "targets.people"), (batch, "--min-batch")):
        if people < least:
            message = f"{people:,} people are fewer than the {least:,} that {source} requires: nothing was released."
            raise TooFewPeople(message)


def part_of(progress: Progress | None, name: str, place: int, columns: int) -> Progress | None:
    if progress is None or not name:
        return progress
    return lambda what, share: progress(f"{name}: {what}", (place + share) / columns)


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Repeatable randomness: a key, a round, and a column of ids; a key without a ledger must be declared `new`."""

    file: Path
    ids: str
    round: int = 0
    new: bool = False

    def __post_init__(self) -> None:
        _checks.integer("round", self.round, low=0, high=2**63 - 1)

    def begin(self) -> bytes:
        if self.new and not self.file.exists():
            make_key(self.file)
        key = key_in_file(self.file, advice="To create a key, pass `--new-key`.")
        begin(key, self.file, new=self.new)
        return key


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a collection in addition to its specification; see `hushuffle.collection.collect.collect`."""

    sources: Sequence[str] = ()
    called: Mapping[str, str] = field(default_factory=dict)
    column: str | None = None
    keys: Keys | None = None
    min_batch: int = 1
    base_folder: Path = Path()
    memory: int = MEMORY
    reference: Path | None = None
    progress: Progress | None = None
    master: str | None = None
    budget: Path | None = None

    def __post_init__(self) -> None:
        _checks.integer("min_batch", self.min_batch, low=1)

    def tell(self, what: str, share: float) -> None:
        if self.progress is not None:
            self.progress(what, share)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The column to collect, its files, and the meaning of its values; relative files start at `base_folder`.

    `called` has the names that messages use for files. If the column `person` identifies people, at most `most` records
    per person are used. The column `ids` identifies records, and people if `reports` are memoized.
    """

    files: Sequence[str]
    column: str
    answers: Answers
    form: CsvForm | None
    ids: str | None
    base_folder: Path
    called: Mapping[str, str]
    person: str | None = None
    most: int = 1
    reports: FreshReports = FRESH

    def __post_init__(self) -> None:
        if self.ids == self.column:
            fail(f"The id of a record cannot be its private column {self.column!r}: choose another column.")

    @classmethod
    def of(cls, specification: Specification, request: Request) -> Asked:
        return cls.about(specification.population, request, reports=FreshReports.of(specification))

    @classmethod
    def about(cls, population: AnyPopulation, request: Request, *, reports: FreshReports = FRESH) -> Asked:
        sources = request.sources
        columns = population.answered(request.column, given=bool(sources))
        return cls(
            files=sources or ([] if population.files is None else [population.files]),
            column=columns.column,
            answers=columns.answers,
            form=columns.form,
            ids=None if request.keys is None else request.keys.ids,
            base_folder=Path() if sources else request.base_folder,
            called=request.called,
            person=reports.person(columns.person),
            most=columns.most,
            reports=reports,
        )

    def mechanism(self, kernel: Kernel) -> str:
        """Return the text that identifies in the ledger how values become reports."""
        return "\n".join([repr(kernel.randomizer), repr(self.column), *map(repr, self.answers.labels)])


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """All reports of an engine before their release. The values of `dropped` records were missing.

    `persons` is the number of people, if a column identifies them. `beyond` further records exceeded the limit per
    person, and one person had up to `largest` records. `clipped` numbers were outside their bounds. `blocks` yields the
    shuffled reports and the dummies of a shuffler, drawn by a key of this batch (None: fresh). If records have ids,
    `entries` returns the ledger's entries. Both can be called only once.
    """

    reports: int
    dropped: int
    blocks: Callable[[Shuffler, bytes | None], Iterator[Packed]]
    entries: Callable[[], Entries] | None = None
    persons: int | None = None
    beyond: int = 0
    largest: int = 1
    clipped: int = 0

    @property
    def people(self) -> int:
        return self.reports if self.persons is None else self.persons


_DISTINCT: Final = 4  # number of protocols of different n that are composed exactly: each takes a second or more


def rounds_of(batches: Sequence[LedgerBatch], *, delta: float) -> KeyRounds:
    """Return the joint guarantee of the batches in a ledger, for people who are in one batch of each collection.

    Its delta is `delta` plus the failure probability of sums by several messages; no epsilon holds at a smaller delta.

    Within a collection, batches have different people. Epsilon is an upper bound: of batches with the same mechanism,
    only the smallest counts, and smaller sizes replace larger sizes. This is valid, since a release reveals less about
    each person if there are more people.
    """
    described = [batch for batch in batches if batch.specification is not None]
    smallest: dict[tuple[str | None, str], LedgerBatch] = {}
    for batch in described:
        place = (batch.scope, _likeness(batch))
        if place not in smallest or batch.people < smallest[place].people:
            smallest[place] = batch
    rounds = fewer([protocol_of(batch.specification or "", batch.people) for batch in smallest.values()])
    failing = failures(rounds)
    others = delta if len(failing) < len(rounds) else 0.0
    delta = max(delta, min(others + math.fsum(failing), 0.5))
    return KeyRounds(
        collections=len({batch.scope for batch in described}),
        epsilon=Bound(lower=0.0, upper=together(rounds, delta), kind="upper", unit="nats"),
        delta=delta,
        unknown=len(batches) - len(described),
    )


def _likeness(batch: LedgerBatch) -> str:
    """Return a text that is equal for batches of the same mechanism."""
    plain = tomllib.loads(batch.specification or "")
    plain["population"].pop("n", None)
    return json.dumps([plain["population"], plain.get("randomizer", plain.get("sum")), batch.shuffler], sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Released:
    protocol: Protocol | SplitAndMix
    reports: int

    @property
    def kind(self) -> str:
        """A text that is equal for collections that differ only in their number of reports."""
        if self.protocol.shared is not None:
            return self.protocol.shared.kind
        return repr((self.protocol.randomizer, self.protocol.shuffler, self.reports))

    @property
    def round(self) -> Round:
        return self.protocol if self.reports == 1 else dp.per_person(self.protocol, reports=self.reports)


def protocol_of(text: str, reports: int) -> Released:
    if is_sum(text):
        return Released(protocol=parse_sum(text, file="a specification in the ledger").build(reports), reports=1)
    specification: Specification = parse(text, file="a specification in the ledger")
    k = specification.population.read(Path()).k
    protocol = Protocol(
        randomizer=specification.randomizer.build(k), shuffler=specification.shuffler.build(), n=reports
    )
    return Released(protocol=protocol, reports=specification.population.most)


def fewer(released: Iterable[Released]) -> list[Released]:
    """Return the collections with at most `_DISTINCT` sizes; larger numbers of people are replaced by smaller ones."""
    rounds = sorted(released, key=lambda one: (one.kind, one.protocol.n))
    while len({(one.kind, one.protocol.n) for one in rounds}) > _DISTINCT:
        steps = [
            (after.protocol.n / before.protocol.n, place)
            for place, (before, after) in enumerate(pairwise(rounds))
            if after.kind == before.kind and after.protocol.n > before.protocol.n
        ]
        if not steps:
            break
        place = min(steps)[1]
        smaller, larger = rounds[place], rounds[place + 1]
        rounds = [smaller if one == larger else one for one in rounds]
    return rounds


def failures(released: Iterable[Released]) -> list[float]:
    """Return the delta of each sum by several messages; at a smaller delta, no finite epsilon holds."""
    return [one.protocol.shared.delta for one in released if one.protocol.shared is not None]


def together(released: Sequence[Released], delta: float) -> float:
    """Return an upper bound on the joint epsilon (nats) of the `released` collections at `delta`."""
    rounds: list[Round] = []
    for place, release in enumerate(released):
        first = released.index(release)
        rounds.append(rounds[first] if first < place else release.round)
    if not rounds:
        return 0.0
    try:
        return dp.compose(rounds, delta=delta).upper
    except (UnsupportedProtocolError, NumericalError):
        # A report's local epsilon bounds all that it reveals about its sender, and local epsilons add up.
        return sum(dp.local_epsilon(one.protocol, reports_per_person=one.reports).upper for one in released)
