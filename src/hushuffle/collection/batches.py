"""Files that keep arriving, collected in batches: each file once, never fewer people than asked for.

A batch is claimed in the state file before it is released, and released by one renaming of a folder. If a run ends
between the two for good (the machine is switched off), nobody can tell whether the batch was seen: the same
records would be randomized a second time, with other coins. So the next run stops and asks, unless it has the key,
the round and the ids of the claim, whose coins repeat the same reports: a digest of them is in the claim.
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
from hushuffle.collection.collect import Collected, Prepared, charged, prepare
from hushuffle.collection.release import batches_of
from hushuffle.collection.request import Asked, Request, TooFewPeople
from hushuffle.errors import DataError
from hushuffle.files.private_files import publish, remove_abandoned, remove_unfinished, workplace
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.specification import Collection
from hushuffle.tables.parquet import UnreadableFile
from hushuffle.tables.private import WrongRecords
from hushuffle.tables.sources import files_of

Late: TypeAlias = Literal["next", "drop", "refuse"]
"""What becomes of a file whose name comes before one that a batch has taken: it goes into the next batch, is left out
for good, or stops the run."""

Interrupted: TypeAlias = Literal["repeat", "skip"]
"""What becomes of a batch that was claimed and is not there: its files are collected again, or never."""


class _OtherCoins(Exception):  # noqa: N818 - what is the case
    """A claimed batch would not be released as it was."""


@dataclass(frozen=True, kw_only=True)
class BatchRun:
    """What one run did: the `number` of the batch it released and what was `collected`, or None: too few people yet.

    `files` went into the batch, or wait; `dropped` came too late and are left out for good; `damaged` says of each
    file that could not be read, or has records that do not fit, why, and that the next run will try it again;
    `unnoted` says why the state beside the batches does not know yet that the batch is released: the next run will note
    it. `people` were counted in all batches so far: somebody who is in two of them counts twice.
    """

    number: int | None
    collected: Collected | None
    files: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    unnoted: str | None = None
    people: int = 0


def collect_batch(
    collection: Collection,
    *,
    out: Path,
    request: Request,
    late: Late = "next",
    interrupted: Interrupted | None = None,
) -> BatchRun:
    """Release the files that no batch has taken as the next folder in `out`: batch-0001, batch-0002, ...

    Too few people (`request.min_batch`, in every column): nothing leaves, and the files wait for the next run. A file
    that cannot be read (cut off, damaged, not of its kind) is set aside, and so is one with a
    record that does not fit, if others are left: the batch is made of the others. That the
    people of different batches are different is for the caller to see to; with a key the ledger does, and a budget adds
    all batches up as if they had the same people.

    Args:
        collection: the deployment, of one column or several.
        out: the folder of all batches. Beside it is a private file, `out`.state.json, with the files of each batch:
            their names and digests of their content.
        request: what is asked besides.
        late: see `Late`.
        interrupted: see `Interrupted`; None: the run stops with an error that says so. Not asked for where key, round
            and ids are those of the interrupted run: the batch is repeated as it was.
    """
    if collection.whole.memoised:
        fail("Where reports are kept (memoised) a round is collected at once, and not in batches: say --round.")
    if collection.shuffler.reveals is Reveals.NOISY_ORDER:
        fail("A public order is one of all people: with a Mallows shuffle there are no batches.")
    if request.budget is not None:
        refuse_used_up(request.budget)  # before the work
    notebook = out.absolute().with_name(f"{out.absolute().name}.state.json")
    with alone(out):
        with suppress(OSError):  # what killed runs have left
            remove_unfinished(notebook)
            remove_abandoned(out)
        state = BatchState.load(notebook)
        _refuse_lost(state, out, notebook)
        if state.claimed is not None:
            again = _repeated(collection, request, out, notebook, state, state.claimed)
            if again is not None:
                return again
            state = _settled(state, state.claimed, interrupted, out)
            state.save(notebook)
        names = _found(collection, request)
        new = _new(state, names)
        kept, dropped = _in_time(new, state, late, names)
        if dropped:
            state = state.with_files(dropped, 0)
            state.save(notebook)
        run = _release_readable(collection, request, out, notebook, state, kept, names)
    return replace(run, dropped=tuple(file.path for file in dropped))


def _release_readable(
    collection: Collection,
    request: Request,
    out: Path,
    notebook: Path,
    state: BatchState,
    files: Sequence[Arrival],
    names: Mapping[Path, str],
) -> BatchRun:
    """Release those of the files that can be read, if they are of enough people."""
    # Those that were damaged come first: if they still are, nothing is read in vain.
    left = sorted(files, key=lambda file: file.digest not in state.damaged)
    state = replace(state, damaged=tuple(file.digest for file in left if file.digest in state.damaged))
    messages: list[str] = []
    while left:
        try:
            asked = _with(request, left, names)
            run = _release(collection, asked, out, notebook, state, left, state.last + 1)
        except TooFewPeople:
            break
        except UnreadableFile as error:
            place = next((place for place, file in enumerate(left) if file.path == str(error.path)), None)
            if place is None:
                raise
            messages.append(str(error))
            state = _set_aside(state, [left.pop(place)], notebook)
        except WrongRecords:
            wrong = {} if request.master is not None else _wrong(collection, request, left, names)
            if len(wrong) in (0, len(left)):
                raise
            messages += wrong.values()
            state = _set_aside(state, [file for file in left if file.path in wrong], notebook)
            left = [file for file in left if file.path not in wrong]
        else:
            return replace(run, damaged=tuple(messages))
    waiting = tuple(file.path for file in left)
    return BatchRun(number=None, collected=None, files=waiting, damaged=tuple(messages))


def _set_aside(state: BatchState, files: Sequence[Arrival], notebook: Path) -> BatchState:
    """Return the state that knows of further files that no batch can be made of yet."""
    digests = dict.fromkeys(file.digest for file in files if file.digest not in state.damaged)
    if not digests:
        return state
    state = replace(state, damaged=(*state.damaged, *digests))
    state.save(notebook)
    return state


def _wrong(
    collection: Collection, request: Request, files: Sequence[Arrival], names: Mapping[Path, str]
) -> dict[str, str]:
    """Return the files that have records which do not fit, with what is wrong; each is read by itself."""
    found: dict[str, list[str]] = {}
    for file in files:
        for specification in collection.columns.values():
            try:
                batches_of(Asked.of(specification, _with(request, [file], names))).check()
            except WrongRecords as error:
                found.setdefault(file.path, []).append(str(error))
    return {path: "\n".join(messages) for path, messages in found.items()}


def _repeated(
    collection: Collection,
    request: Request,
    out: Path,
    notebook: Path,
    state: BatchState,
    number: int,
) -> BatchRun | None:
    """Release a claimed batch as it was; return None if it is there, or would have other coins or values."""
    if request.keys is None or state.coins is None or _folder(out, number).exists():
        return None
    files = state.of_batch(number)
    names = {Path(file.path): file.path for file in files}
    asked = _with(request, files, names)
    _refuse_changed(files, asked)
    try:
        return _release(collection, asked, out, notebook, state.without(number), files, number, state.coins)
    except _OtherCoins:
        return None


def _release(
    collection: Collection,
    request: Request,
    out: Path,
    notebook: Path,
    state: BatchState,
    files: Sequence[Arrival],
    number: int,
    repeats: str | None = None,
) -> BatchRun:
    """Collect files as a batch: claim it, release it, note that it is released. `state` has nothing of it.

    The sources of the `request` are the `files`. `repeats` is the digest of the coins that the batch must have, because
    somebody may have seen it.
    """
    target = _folder(out, number)
    with workplace(target) as place:
        made = prepare(collection, request, place)
        _refuse_changed(files, request)
        coins = _coins(made)
        if repeats not in {None, coins}:
            raise _OtherCoins
        people = max(one.people for one in made.releases.values())
        claim = replace(state.with_files(files, number, people=people), claimed=number, coins=coins)
        with charged(made, request) as (spent, note):
            claim.save(notebook)
            try:
                made = made.admitted(request)
            except DataError:
                if repeats is None:
                    state.save(notebook)  # nothing was admitted, and nothing released, now or before
                raise
            try:
                note()
                publish(made.folder, target)
            except BaseException:
                # As long as it is in the private folder, nobody has seen it (whether it is at `target` says less: it
                # may have been moved on). With a key the ledger has it, so that this batch has to be repeated as it is.
                if request.keys is None and made.folder.exists():
                    state.save(notebook)
                raise
    unnoted = None
    try:
        claim.settled().save(notebook)
    except DataError as error:
        unnoted = str(error)  # the next run sees the folder, and notes it
    request.tell("done", 1.0)
    collected = replace(made, spent=spent).collected(target)
    made_of = tuple(request.sources)
    return BatchRun(number=number, collected=collected, files=made_of, unnoted=unnoted, people=claim.counted)


def _coins(made: Prepared) -> str | None:
    """Return a digest of whose coins go with which values and dummies, under the key; None without a key."""
    parts = [
        one.entries.digest + hashlib.sha256(repr(one.protocol.shuffler).encode()).digest()
        for one in made.releases.values()
        if one.entries is not None
    ]
    return hashlib.sha256(b"".join(sorted(parts))).hexdigest() if parts else None


def _found(collection: Collection, request: Request) -> dict[Path, str]:
    """Return the files that there are now, with what messages call them."""
    if request.sources:
        return files_of(request.sources)
    if collection.data is None:
        fail("Batches need files: say --input, a folder or a glob, or give the specification data.")
    return files_of([collection.data], base_folder=request.base_folder)


def _new(state: BatchState, names: Mapping[Path, str]) -> tuple[Arrival, ...]:
    """Return the files that no batch has taken; a taken file is known by its content, under any name."""
    taken = {file.path: file for file in state.files}
    digests = {file.digest for file in state.files}
    new: dict[str, Arrival] = {}
    for path, name in names.items():
        before = taken.get(str(path))
        if before is not None and before.same_place(path):
            continue
        found = arrival(path, name)
        if before is not None and before.digest != found.digest:
            when = f"batch {before.batch} took it" if before.batch else "it was left out"
            fail(
                f"{name} has changed since {when}: its people would report again. Put it back as it was, and give "
                "what is new in a file of its own."
            )
        if found.digest in new:
            other = names[Path(new[found.digest].path)]
            fail(f"{name} has the same content as {other}: its people would report twice.")
        if found.digest not in digests:
            new[found.digest] = found
    return tuple(new.values())


def _in_time(
    new: Sequence[Arrival], state: BatchState, late: Late, names: Mapping[Path, str]
) -> tuple[tuple[Arrival, ...], tuple[Arrival, ...]]:
    """Return the files for the next batch, and those that are left out; what could not be read before came in time."""
    behind = tuple(file for file in new if file.path < state.latest and file.digest not in state.damaged)
    if not behind or late == "next":
        return tuple(new), ()
    if late == "refuse":
        fail(
            f"{len(behind):,} of {len(new):,} new files are late: their names come before one that has been collected "
            f"(the first is {names[Path(behind[0].path)]}). Say --late next to collect them with the others, or --late "
            "drop to leave them out."
        )
    return tuple(file for file in new if file not in behind), behind


def _settled(state: BatchState, number: int, interrupted: Interrupted | None, out: Path) -> BatchState:
    """Return the state after an interrupted batch was found, or somebody has decided about it."""
    if _folder(out, number).exists():
        return state.settled()
    if interrupted is None:
        keyed = (
            " It was made with a key, and this run would randomize answers with other coins: with the same key, round, "
            "id column, categories, randomizer and shuffler it would be repeated as it was."
        )
        fail(
            f"Batch {number} was about to be released when a run ended, and {_folder(out, number)} is not there."
            f"{keyed if state.coins else ''} If somebody may have seen or moved it, collecting its files again would "
            "let them compare two reports of everybody: say --interrupted skip, and they are never collected again. If "
            "it was certainly never released, say --interrupted repeat."
        )
    return state.without(number) if interrupted == "repeat" else state.settled()


def _refuse_lost(state: BatchState, out: Path, notebook: Path) -> None:
    """Refuse to go on if there are batches of which the state knows nothing."""
    found = [path for path in out.glob("batch-*") if path.name.removeprefix("batch-").isdecimal()]
    unknown = [path for path in found if int(path.name.removeprefix("batch-")) > state.last]
    if unknown:
        fail(
            f"{out} holds {unknown[0].name}, of which {notebook} knows nothing: without it files would be collected "
            "twice. Put it back, or name another folder and give files that no batch has taken."
        )


def _with(request: Request, files: Sequence[Arrival], names: Mapping[Path, str]) -> Request:
    """Return the request for just these files; messages use their `names`."""
    called = {file.path: names[Path(file.path)] for file in files}
    return replace(request, sources=tuple(called), called=called)


def _refuse_changed(files: Sequence[Arrival], request: Request) -> None:
    """Refuse files that are no longer what they were."""
    for file in files:
        path, name = Path(file.path), request.called[file.path]
        if not path.exists() or (not file.same_place(path) and arrival(path, name).digest != file.digest):
            fail(f"{name} has changed since it was looked at, or is gone: nothing leaves.")


def _folder(out: Path, number: int) -> Path:
    return out / f"batch-{number:04}"
