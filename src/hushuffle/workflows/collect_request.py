"""What a collection is asked for besides its specification, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hushuffle import _checks
from hushuffle.engines.external_shuffle import MEMORY
from hushuffle.errors import DataError
from hushuffle.io.ledger import Entries
from hushuffle.io.manifest import Manifest
from hushuffle.io.secret_keys import derived, key_in_file
from hushuffle.model import Bound
from hushuffle.protocol import Protocol

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of all work done so far, in [0, 1]."""

REPORTS: Final = "reports.parquet"
MANIFEST: Final = "manifest.json"


class TooFewPeople(DataError):  # noqa: N818 - what is the case
    """There are fewer people than a batch must have."""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Where coins come from that are repeated for the same record: a key in a file, a round, a column of ids."""

    file: Path
    ids: str
    round: int = 0

    def __post_init__(self) -> None:
        _checks.integer("round", self.round, low=0, high=2**63 - 1)

    def key(self, column: str | None = None) -> bytes:
        """Return the key; of one of several columns, a key that says nothing about those of the others.

        Raises:
            DataError: the file holds no key, or everybody can read it.
        """
        whole = key_in_file(self.file)
        return whole if column is None else derived(whole, f"column 1, {column}")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked besides a specification; see `hushuffle.workflows.collect.collect`.

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
    """One column's reports, written but not released yet; `dropped` records were missing (this is not released)."""

    manifest: Manifest
    protocol: Protocol
    central: Bound
    dropped: int
    entries: Entries | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What was released, and where; `dropped` records were missing (this is not released)."""

    manifest: Manifest
    central: Bound
    local_epsilon: float
    deployment: str
    files: tuple[Path, ...]
    dropped: int
    repeated: bool = False
