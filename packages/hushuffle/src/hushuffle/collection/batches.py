"""Collect files that keep arriving, in batches: each file belongs to one batch, and each batch has enough people.

A batch is claimed in the state file before it is released; renaming one folder releases it. If a run is killed between
these two steps, it is unknown whether an observer saw the batch. A second run would randomize the same records with
other randomness. So the next run stops, unless it has the key, the round and the ids of the claimed batch. Then it
repeats the same reports, which it verifies by the digest in the claim.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from hushuffle._checks import fail
from hushuffle.collection.batch_state import Arrival, BatchState, alone, arrival
from hushuffle.collection.budget import refuse_used_up
from hushuffle.collection.collect import Collected, Prepared, prepare
from hushuffle.collection.kept import FreshReports
from hushuffle.collection.release import batches_of
from hushuffle.collection.request import Asked, Request, TooFewPeople
from hushuffle.errors import DataError
from hushuffle.files.private_files import publish, remove_abandoned, remove_unfinished, workplace
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.specification import Collection
from hushuffle.tables.csv_form import UnreadableFile
from hushuffle.tables.reader import files_of
from hushuffle.tables.refused import WrongRecords

Late: TypeAlias = Literal["next", "drop", "refuse"]
"""What to do with a file whose name sorts before a collected file: put it into the next batch, never collect it, or
stop the run."""

Interrupted: TypeAlias = Literal["repeat", "skip"]
"""What to do with a batch that was started but has no output: collect its files again, or never."""


class _OtherCoins(Exception):  # noqa: N818 - what is the case
    """Raised when a claimed batch cannot be released with the randomness and values of its claim."""


@dataclass(frozen=True, kw_only=True)
class BatchRun:
    """The `number` of the released batch, and its release `collected` (None: too few people, `files` are pending).

    `dropped` are late files that are left out for good. `damaged` gives the reason for each file that could not be read
    or has invalid records; the next run tries that file again. `unnoted` says why the state file does not yet record
    the release; the next run will record it. In `people`, a person in two batches counts twice.
    """

    number: int | None
    collected: Collected | None
    files: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    unnoted: str | None = None
    people: int = 0


@dataclass(frozen=True, kw_only=True)
class _Series:
    """The batches of one collection: the folder `out` of their releases, and the state file `notebook`."""

    collection: Collection
    out: Path
    notebook: Path


def collect_batch(
    collection: Collection, *, out: Path, request: Request, late: Late = "next", interrupted: Interrupted | None = None
) -> BatchRun:
    """Release all files that are in no batch yet as the next folder in `out`: batch-0001, batch-0002, ...

    If any column has fewer than `request.min_batch` people, nothing is released, and the files stay pending until the
    next run. Unreadable files, and files with an invalid record, are set aside; the batch consists of the other files.
    The caller ensures that different batches have different people. With a key, the ledger checks this; a budget adds
    up all batches as if they had the same people.

    The private file `out`.state.json beside `out` lists the files of each batch: their names and digests of their
    content. `interrupted` is not needed with the key, round and ids of the interrupted run, since the batch is then
    repeated as it was.
    """
    FreshReports.of(collection.whole).check_batches()
    if collection.shuffler.reveals is Reveals.NOISY_ORDER:
        fail("A Mallows shuffle has one public order of all people, so batches are impossible. Use another shuffler.")
    refuse_used_up(request.budget)
    notebook = out.absolute().with_name(f"{out.absolute().name}.state.json")
    series = _Series(collection=collection, out=out, notebook=notebook)
    with alone(out):
        with suppress(OSError):  # removes the folders that killed runs left behind
            remove_unfinished(notebook)
            remove_abandoned(out)
        state = BatchState.load(notebook)
        _refuse_lost(state, out, notebook)
        if state.claimed is not None:
            again = _repeated(series, request, state, state.claimed)
            if again is not None:
                return again
            state = _settled(state, state.claimed, interrupted, out)
            state.save(notebook)
        names = _found(collection, request)
        in_time, dropped = _in_time(_new(state, names), state, late, names)
        if dropped:
            state = state.with_files(dropped, 0)
            state.save(notebook)
        run = _release_readable(series, request, state, in_time, names)
    return replace(run, dropped=tuple(file.path for file in dropped))


def _release_readable(
    series: _Series, request: Request, state: BatchState, files: Sequence[Arrival], names: Mapping[Path, str]
) -> BatchRun:
    # Files that were damaged are checked first: if one is still damaged, no other file is read in vain.
    left = sorted(files, key=lambda file: file.digest not in state.damaged)
    state = replace(state, damaged=tuple(file.digest for file in left if file.digest in state.damaged))
    messages: list[str] = []
    while left:
        try:
            run = _release(series, _with(request, left, names), state, left, state.last + 1, repeats=None)
        except TooFewPeople:
            break
        except UnreadableFile as error:
            place = next((place for place, file in enumerate(left) if file.path == str(error.path)), None)
            if place is None:
                raise
            messages.append(str(error))
            state = _set_aside(state, [left.pop(place)], series.notebook)
        except WrongRecords:
            wrong = {} if request.master is not None else _wrong(series.collection, request, left, names)
            if len(wrong) in (0, len(left)):
                raise
            messages += wrong.values()
            state = _set_aside(state, [file for file in left if file.path in wrong], series.notebook)
            left = [file for file in left if file.path not in wrong]
        else:
            return replace(run, damaged=tuple(messages))
    waiting = tuple(file.path for file in left)
    return BatchRun(number=None, collected=None, files=waiting, damaged=tuple(messages))


def _set_aside(state: BatchState, files: Sequence[Arrival], notebook: Path) -> BatchState:
    digests = dict.fromkeys(file.digest for file in files if file.digest not in state.damaged)
    if not digests:
        return state
    state = replace(state, damaged=(*state.damaged, *digests))
    state.save(notebook)
    return state


def _wrong(
    collection: Collection, request: Request, files: Sequence[Arrival], names: Mapping[Path, str]
) -> dict[str, str]:
    """Return the files with invalid records, each with the reason; every file is read on its own."""
    errors: dict[str, list[str]] = {}
    for file in files:
        for specification in collection.columns.values():
            try:
                batches_of(Asked.of(specification, _with(request, [file], names))).check()
            except WrongRecords as error:
                errors.setdefault(file.path, []).append(str(error))
    return {path: "\n".join(messages) for path, messages in errors.items()}


def _repeated(series: _Series, request: Request, state: BatchState, number: int) -> BatchRun | None:
    """Release a claimed batch again, identically; None if it exists, or its randomness or values would differ."""
    if request.keys is None or state.coins is None or _folder(series.out, number).exists():
        return None
    files = state.of_batch(number)
    names = {Path(file.path): file.path for file in files}
    batch_request = _with(request, files, names)
    _refuse_changed(files, batch_request)
    try:
        return _release(series, batch_request, state.without(number), files, number, state.coins)
    except _OtherCoins:
        return None


def _release(
    series: _Series, request: Request, state: BatchState, files: Sequence[Arrival], number: int, repeats: str | None
) -> BatchRun:
    """Claim, release and record the batch `number`; `repeats` is the digest that its randomness must have."""
    target = _folder(series.out, number)
    with workplace(target) as place:
        prepared = prepare(series.collection, request, place)
        _refuse_changed(files, request)
        coins = _coins(prepared)
        if repeats not in {None, coins}:
            raise _OtherCoins
        people = max(one.people for one in prepared.releases.values())
        claim = replace(state.with_files(files, number, people=people), claimed=number, coins=coins)
        with prepared.charged(request) as (spent, note):
            claim.save(series.notebook)
            try:
                prepared = prepared.admitted(request)
            except DataError:
                if repeats is None:
                    state.save(series.notebook)  # nothing was admitted, and nothing was released, now or earlier
                raise
            refused = prepared.set_aside(series.out.with_name(f"{series.out.name}.refused-{number:04}.csv"))
            try:
                note()
                publish(prepared.folder, target)
            except BaseException:
                # As long as the batch is in the private folder, no observer has seen it.
                # With a key, the ledger contains the batch, so it has to be repeated identically.
                if request.keys is None and prepared.folder.exists():
                    state.save(series.notebook)
                raise
    unnoted = None
    try:
        claim.settled().save(series.notebook)
    except DataError as error:
        unnoted = str(error)  # the next run sees the folder, and records it
    request.tell("done", 1.0)
    collected = replace(prepared, spent=spent).collected(target, refused=refused)
    made_of = tuple(request.sources)
    return BatchRun(number=number, collected=collected, files=made_of, unnoted=unnoted, people=claim.counted)


def _coins(prepared: Prepared) -> str | None:
    """Return a digest of the randomness, values and dummies of a batch under the key; None without a key."""
    parts = [
        released.entries.digest + hashlib.sha256(repr(released.protocol.shuffler).encode()).digest()
        for released in prepared.releases.values()
        if released.entries is not None
    ]
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest() if parts else None


def _found(collection: Collection, request: Request) -> dict[Path, str]:
    if request.sources:
        return files_of(request.sources)
    if collection.data is None:
        fail("Batches need files: pass `--input` with a folder or a glob, or set data in the specification.")
    return files_of([collection.data], base_folder=request.base_folder)


def _new(state: BatchState, names: Mapping[Path, str]) -> tuple[Arrival, ...]:
    """Return the files that are in no batch; a collected file is recognized by its content, under any name."""
    taken = {file.path: file for file in state.files}
    digests = {file.digest for file in state.files}
    new: dict[str, Arrival] = {}
    for path, name in names.items():
        before = taken.get(str(path))
        if before is not None and before.same_place(path):
            continue
        current = arrival(path, name)
        if before is not None and before.digest != current.digest:
            when = f"batch {before.batch} was collected" if before.batch else "its exclusion"
            fail(
                f"{name} has changed since {when}, so its people would report twice. Restore it, and put new records "
                "into a new file."
            )
        if current.digest in new:
            other = names[Path(new[current.digest].path)]
            fail(f"{name} has the same content as {other}: its people would report twice.")
        if current.digest not in digests:
            new[current.digest] = current
    return tuple(new.values())


def _in_time(
    new: Sequence[Arrival], state: BatchState, late: Late, names: Mapping[Path, str]
) -> tuple[tuple[Arrival, ...], tuple[Arrival, ...]]:
    """Return the files for the next batch and the late files; a file that was unreadable earlier is never late."""
    behind = tuple(file for file in new if file.path < state.latest and file.digest not in state.damaged)
    if not behind or late == "next":
        return tuple(new), ()
    if late == "refuse":
        fail(
            f"{len(behind):,} of {len(new):,} new files are late: their names sort before a collected file "
            f"(the first is {names[Path(behind[0].path)]}). Pass `--late next` to collect them with the others, or "
            "`--late drop` to leave them out."
        )
    return tuple(file for file in new if file not in behind), behind


def _settled(state: BatchState, number: int, interrupted: Interrupted | None, out: Path) -> BatchState:
    """Return the state after an interrupted batch was located, or resolved as `interrupted` says."""
    if _folder(out, number).exists():
        return state.settled()
    if interrupted is None:
        keyed = (
            " It was collected with a key, and this run would use different randomness. To repeat it exactly, use the "
            "same key, round, id column, categories, randomizer and shuffler."
        )
        fail(
            f"A run ended while it released batch {number}, and {_folder(out, number)} does not exist."
            f"{keyed if state.coins else ''} If anyone may have seen or moved it, a second collection would release a "
            "second report of each person: pass `--interrupted skip`, and its files are never collected again. If it "
            "was certainly never released, pass `--interrupted repeat`."
        )
    return state.without(number) if interrupted == "repeat" else state.settled()


def _refuse_lost(state: BatchState, out: Path, notebook: Path) -> None:
    folders = [path for path in out.glob("batch-*") if path.name.removeprefix("batch-").isdecimal()]
    unknown = [path for path in folders if int(path.name.removeprefix("batch-")) > state.last]
    if unknown:
        fail(
            f"{out} holds {unknown[0].name}, which {notebook} does not list: files could be collected twice. Restore "
            "the state file, or choose another folder and pass only files that were never collected."
        )


def _with(request: Request, files: Sequence[Arrival], names: Mapping[Path, str]) -> Request:
    called = {file.path: names[Path(file.path)] for file in files}
    return replace(request, sources=tuple(called), called=called)


def _refuse_changed(files: Sequence[Arrival], request: Request) -> None:
    for file in files:
        path, name = Path(file.path), request.called[file.path]
        if not path.exists() or (not file.same_place(path) and arrival(path, name).digest != file.digest):
            fail(f"{name} was changed or removed while it was collected: nothing was released.")


def _folder(out: Path, number: int) -> Path:
    return out / f"batch-{number:04}"
