"""What a collection is asked for besides its specification, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hushuffle import _checks
from hushuffle.collection.engines.external_shuffle import MEMORY
from hushuffle.collection.key_rounds import KeyRounds
from hushuffle.collection.ledger import begin
from hushuffle.collection.manifest import Manifest
from hushuffle.collection.record_tags import Entries
from hushuffle.errors import DataError
from hushuffle.files.secret_keys import derived, key_in_file, make_key
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound

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
        """Return the key, which has a ledger then.

        Raises:
            DataError: the file holds no key, or others can read it; the key has no ledger and is not new, or has one
                and is.
        """
        if self.new and not self.file.exists():
            make_key(self.file)
        key = key_in_file(self.file, advice="If a key is to be made, say --new-key.")
        begin(key, self.file, new=self.new)
        return key


def column_key(key: bytes, column: str) -> bytes:
    """Return the key of one of several columns: it says nothing about those of the others."""
    return derived(key, f"column 1, {column}")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked besides a specification; see `hushuffle.collection.collect.collect`.

    `called`: what messages call sources instead of their names, which may be private where they were found and not
    given. `one_of_several`: this is one column of a collection of several, whose coins are its own. `master`: the
    address of a Spark cluster that randomizes and shuffles; None: this machine alone.
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
    one_of_several: bool = False
    master: str | None = None

    def __post_init__(self) -> None:
        _checks.integer("min_batch", self.min_batch, low=1)

    def tell(self, what: str, share: float) -> None:
        """Say how far it is."""
        if self.progress is not None:
            self.progress(what, share)


@dataclass(frozen=True, kw_only=True)
class Release:
    """One column's reports, written but not released yet; `dropped` records were missing (this is not released).

    With a key: `key` is all of it, `entries` are for its ledger.
    """

    manifest: Manifest
    protocol: Protocol
    central: Bound
    dropped: int
    entries: Entries | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What was released, and where; `dropped` records were missing (this is not released).

    `rounds` is what everything that was collected with this key says together; None: without a key.
    """

    manifest: Manifest
    central: Bound
    local_epsilon: float
    deployment: str
    files: tuple[Path, ...]
    dropped: int
    repeated: bool = False
    rounds: KeyRounds | None = None
