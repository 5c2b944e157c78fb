"""Collect: read one private column, randomize it, shuffle, release reports and how they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hushuffle.collection.admission import Admitted, admit
from hushuffle.collection.engines.external_shuffle import MEMORY
from hushuffle.collection.key_rounds import KeyRounds
from hushuffle.collection.release import release
from hushuffle.collection.request import MANIFEST, REPORTS, Collected, Keys, Progress, Release, Request, TooFewPeople
from hushuffle.files.new_folder import publish, workplace
from hushuffle.specification import Specification

__all__ = ["MANIFEST", "REPORTS", "Collected", "Keys", "Progress", "Request", "TooFewPeople", "collect"]


def collect(
    specification: Specification,
    *,
    out: Path,
    sources: Sequence[str] = (),
    column: str | None = None,
    keys: Keys | None = None,
    min_batch: int = 1,
    base_folder: Path = Path(),
    memory: int = MEMORY,
    reference: Path | None = None,
    progress: Progress | None = None,
    master: str | None = None,
) -> Collected:
    """Run a collection on the people in files, and write `reports.parquet` and `manifest.json` into the folder `out`.

    The folder appears when both are whole, or not at all. What is in it depends on nothing but the multiset of the
    reports, their number, the specification, and the coins of the shuffle (with a Mallows shuffle: on the reports in
    the order in which it releases them).

    Args:
        specification: the deployment; its n, if it has one, is replaced by the number of people there are.
        out: a folder that is not there yet, or empty.
        sources: files, folders, globs, relative to the current folder; the data of the specification if none.
        column: the private column, where the specification has no data: labels, or the codes 0..k-1.
        keys: None: every report has fresh cryptographic coins.
        min_batch: fewer people are refused.
        base_folder: the folder of the specification.
        memory: bytes of reports to hold before they are spilled to the disk beside `out`.
        reference: with a Mallows shuffle, a file with its public order (`load_reference`); None: it is computed.
        progress: told what is going on.
        master: the address of a Spark cluster, whose files `sources` are then; None: this machine alone.

    Raises:
        DataError: data, key, ledger, reference or folder cannot be used; fewer people than `min_batch`
            (`TooFewPeople`), or too few for targets.epsilon.
        SpecificationError: the population has no column to read.
        UnsupportedProtocolError: the shuffler does not hide who sent what, or reports have no columns.
    """
    request = Request(
        sources=sources,
        column=column,
        keys=keys,
        min_batch=min_batch,
        base_folder=base_folder,
        memory=memory,
        reference=reference,
        progress=progress,
        master=master,
    )
    return run(specification, out=out, request=request)


def run(specification: Specification, *, out: Path, request: Request) -> Collected:
    """Do what `collect` does, with its options in one value."""
    with workplace(out) as place:
        made = prepare(specification, request, place)
        admitted = made.admit(request)
        publish(made.folder, out)
    request.tell("done", 1.0)
    return made.collected(out, admitted)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A release in a `folder` that nobody has seen yet."""

    release: Release
    folder: Path

    def admit(self, request: Request) -> Admitted:
        """Write the batch into the ledger of the key, if there is one, and what its rounds add up to into the manifest.

        Raises:
            DataError: coins would be used again, or the ledger cannot be used.
        """
        delta = float(self.release.manifest.facts["central"]["delta"])

        def note(rounds: KeyRounds) -> None:
            manifest = self.folder / MANIFEST
            manifest.write_text(_with_rounds(self.release, rounds).manifest.text(), encoding="utf-8")

        return admit(request, [self.release], delta=delta, note=note)

    def collected(self, out: Path, admitted: Admitted) -> Collected:
        """Return what was released at `out`."""
        made = self.release if admitted.rounds is None else _with_rounds(self.release, admitted.rounds)
        return replace(collected(made, out, repeated=not admitted.fresh[0]), rounds=admitted.rounds)


def _with_rounds(made: Release, rounds: KeyRounds) -> Release:
    return replace(made, manifest=replace(made.manifest, facts={**made.manifest.facts, "key": rounds.facts()}))


def prepare(specification: Specification, request: Request, place: Path) -> Prepared:
    """Write a release into a new folder inside the private folder `place`.

    Raises:
        DataError, SpecificationError, UnsupportedProtocolError: as `collect`.
    """
    spill, folder = place / "spill", place / "release"
    spill.mkdir(mode=0o700)
    folder.mkdir()
    return Prepared(release=release(specification, request, spill=spill, target=folder), folder=folder)


def collected(made: Release, out: Path, *, repeated: bool) -> Collected:
    """Return what was released at `out`."""
    return Collected(
        manifest=made.manifest,
        central=made.central,
        local_epsilon=made.protocol.randomizer.local_epsilon,
        deployment=made.protocol.describe(),
        files=(out / REPORTS, out / MANIFEST),
        dropped=made.dropped,
        repeated=repeated,
    )
