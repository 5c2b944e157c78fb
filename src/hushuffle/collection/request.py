"""What a collection is asked for besides its specification, and what one column of it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel
from hushuffle.collection.engines.local import MEMORY
from hushuffle.collection.ledger import begin
from hushuffle.collection.record_tags import Entries
from hushuffle.errors import DataError
from hushuffle.files.secret_keys import key_in_file, make_key
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.model.report_layout import Packed
from hushuffle.specification import Specification
from hushuffle.tables.categories import Answers

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of all work done so far, in [0, 1]."""

REPORTS: Final = "reports.parquet"
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

    `called`: what messages call sources instead of their names, which may be private where they were found and not
    given. `master`: the address of a Spark cluster that randomizes and shuffles; None: this machine alone.
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

    def __post_init__(self) -> None:
        _checks.integer("min_batch", self.min_batch, low=1)

    def tell(self, what: str, share: float) -> None:
        """Say how far it is."""
        if self.progress is not None:
            self.progress(what, share)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which column of which files is collected, and what its values mean; relative files start at `base_folder`.

    Messages name a file as `called` says, if it does.
    """

    files: Sequence[str]
    column: str
    answers: Answers
    ids: str | None
    base_folder: Path
    called: Mapping[str, str]

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
            ids=None if request.keys is None else request.keys.ids,
            base_folder=Path() if sources else request.base_folder,
            called=request.called,
        )

    def mechanism(self, kernel: Kernel) -> str:
        """Return what the ledger is told of how values become reports."""
        return "\n".join([repr(kernel.randomizer), repr(self.column), *map(repr, self.answers.labels)])


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Everybody's reports, made by an engine and not released yet; `dropped` records were missing.

    `blocks` gives them, shuffled, with the dummies of a shuffler and of a key of this batch (None: fresh ones); once.
    `entries`, where records have ids, what the ledger would hold of them; once.
    """

    people: int
    dropped: int
    blocks: Callable[[Shuffler, bytes | None], Iterator[Packed]]
    entries: Callable[[], Entries] | None = None
