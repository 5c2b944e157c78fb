"""What a collection is asked for besides its specification; what all collections with one key say together."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import MEMORY
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
from hushuffle.questions.dp.composition import Round
from hushuffle.specification import Specification, parse
from hushuffle.specification.sums import is_sum, parse_sum
from hushuffle.tables.categories import Answers
from hushuffle.tables.csv_form import CsvForm

REPORTS: Final = "reports.parquet"
SUMS: Final = "sums.json"
"""What lies in the folder of a release instead of reports where only their sums leave."""

MANIFEST: Final = "manifest.json"


class TooFewPeople(DataError):  # noqa: N818 - what is the case
    """There are fewer people than a batch must have."""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Where coins come from that are repeated for the same record: a key in a file, a round, a column of ids.

    `new`: the key was never used. If there is no file, one is made; the key's ledger is begun. A key that is not said
    to be new, and has no ledger, is refused.
    """

    file: Path
    ids: str
    round: int = 0
    new: bool = False

    def __post_init__(self) -> None:
        _checks.integer("round", self.round, low=0, high=2**63 - 1)

    def begin(self) -> bytes:
        """Return the key, which has a ledger then."""
        if self.new and not self.file.exists():
            make_key(self.file)
        key = key_in_file(self.file, advice="If a key is to be made, say --new-key.")
        begin(key, self.file, new=self.new)
        return key


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked besides a specification; see `hushuffle.collection.collect.collect`.

    `called`: what messages call sources, as they were given. `master`: the address of a Spark cluster that randomizes
    and shuffles; None: this machine alone. `budget`: a file with what may be released of the same people over time.
    """

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
        """Say how far it is."""
        if self.progress is not None:
            self.progress(what, share)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which column of which files is collected, and what its values mean; relative files start at `base_folder`.

    Messages name a file as `called` says, if it does. Where `person` says whose a record is, `most` of each are kept.
    Where reports are `memoised` a record is a person's, and `ids` says whose.
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
    memoised: bool = False

    def __post_init__(self) -> None:
        if self.ids == self.column:
            fail(f"The id of a record cannot be its private column {self.column!r}.")

    @classmethod
    def of(cls, specification: Specification, request: Request) -> Asked:
        """Return what a specification and a request say."""
        sources = request.sources
        population = specification.population
        found = population.answered(request.column, given=bool(sources))
        return cls(
            files=sources or ([] if population.files is None else [population.files]),
            column=found.column,
            answers=found.answers,
            form=found.form,
            ids=None if request.keys is None else request.keys.ids,
            base_folder=Path() if sources else request.base_folder,
            called=request.called,
            person=None if specification.memoised else found.person,
            most=found.most,
            memoised=specification.memoised is True,
        )

    def mechanism(self, kernel: Kernel) -> str:
        """Return what the ledger is told of how values become reports."""
        return "\n".join([repr(kernel.randomizer), repr(self.column), *map(repr, self.answers.labels)])


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Everybody's reports, made by an engine and not released yet; `dropped` records were missing.

    `reports` were made; where a column says whose records are, of so many `persons`, and `beyond` others were too many
    of one person, who had so many at most: `largest`. `clipped` numbers were outside their bounds.
    `blocks` gives them, shuffled, with the dummies of a shuffler and of a key of this batch (None: fresh ones); once.
    `entries`, where records have ids, what the ledger would hold of them; once.
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
        """How many people they are of: a report is one's, where nothing else is said."""
        return self.reports if self.persons is None else self.persons


_DISTINCT: Final = 4  # protocols of different n that are composed as they are: each takes a second or more


@dataclass(frozen=True, kw_only=True)
class KeyRounds:
    """What a key was used for: `collections` (a column in a round is one), and their central epsilon at `delta`.

    `unknown` batches were collected by an earlier version, which did not note how: the figure leaves them out.
    Where reports are kept, `kept` people have sent the same one in all rounds, and `changed` of this one gave
    another answer in another.
    """

    collections: int
    epsilon: Bound
    delta: float
    unknown: int = 0
    kept: int | None = None
    changed: int = 0

    def facts(self) -> dict[str, Any]:
        """Return it for a manifest."""
        return {
            "collections": self.collections,
            "epsilon": self.epsilon.as_dict(),
            "delta": self.delta,
            "unknown": self.unknown,
        }


def rounds_of(batches: Sequence[LedgerBatch], *, delta: float) -> KeyRounds:
    """Return what the batches in a ledger say together, for people who are in one batch of each collection.

    At `delta`, and at what sums by several messages may fail with besides: there is no epsilon for less.

    Within a collection batches have different people. The figure is an upper end: of batches made alike the smallest
    counts, and where there are many sizes, smaller ones stand for larger ones. That is sound: with more people, a
    release is less about each of them.
    """
    known = [batch for batch in batches if batch.specification is not None]
    smallest: dict[tuple[str | None, str], LedgerBatch] = {}
    for batch in known:
        place = (batch.scope, _likeness(batch))
        if place not in smallest or batch.people < smallest[place].people:
            smallest[place] = batch
    rounds = fewer([protocol_of(batch.specification or "", batch.people) for batch in smallest.values()])
    failing = failures(rounds)
    others = delta if len(failing) < len(rounds) else 0.0
    delta = max(delta, min(others + math.fsum(failing), 0.5))
    return KeyRounds(
        collections=len({batch.scope for batch in known}),
        epsilon=Bound(lower=0.0, upper=together(rounds, delta), kind="upper", unit="nats"),
        delta=delta,
        unknown=len(batches) - len(known),
    )


def _likeness(batch: LedgerBatch) -> str:
    """Return what batches that were made alike have in common."""
    plain = tomllib.loads(batch.specification or "")
    plain["population"].pop("n", None)
    return json.dumps([plain["population"], plain.get("randomizer", plain.get("sum")), batch.shuffler], sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Released:
    """A collection that was released: its protocol, and how many reports of one person are in it, at most."""

    protocol: Protocol | SplitAndMix
    reports: int

    @property
    def kind(self) -> str:
        """What collections with other numbers of reports have in common with it."""
        if self.protocol.shared is not None:
            return self.protocol.shared.kind
        return repr((self.protocol.randomizer, self.protocol.shuffler, self.reports))

    @property
    def round(self) -> Round:
        """It as a round for `dp.compose`."""
        return self.protocol if self.reports == 1 else dp.per_person(self.protocol, reports=self.reports)


def protocol_of(text: str, reports: int) -> Released:
    """Return what the specification in a manifest describes, of so many reports."""
    if is_sum(text):
        return Released(protocol=parse_sum(text, file="a specification in the ledger").build(reports), reports=1)
    specification: Specification = parse(text, file="a specification in the ledger")
    k = specification.population.read(Path()).k
    protocol = Protocol(
        randomizer=specification.randomizer.build(k), shuffler=specification.shuffler.build(), n=reports
    )
    return Released(protocol=protocol, reports=specification.population.most)


def fewer(released: Iterable[Released]) -> list[Released]:
    """Return as many collections, a few different ones at most: fewer people stand for more."""
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
    """Return the delta of each sum by several messages: with less there is no epsilon, however large."""
    return [one.protocol.shared.delta for one in released if one.protocol.shared is not None]


def together(released: Sequence[Released], delta: float) -> float:
    """Return an upper end of epsilon (nats) of all of them together."""
    rounds: list[Round] = []
    for place, one in enumerate(released):
        first = released.index(one)
        rounds.append(rounds[first] if first < place else one.round)
    if not rounds:
        return 0.0
    try:
        return dp.compose(rounds, delta=delta).upper
    except (UnsupportedProtocolError, NumericalError):
        # What a report says about its sender is all that it can say, and adds up.
        return sum(dp.local_epsilon(one.protocol, reports_per_person=one.reports).upper for one in released)
