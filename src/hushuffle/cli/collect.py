"""`hushuffle collect`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from hushuffle.cli import sums
from hushuffle.cli.console import Exit, UsageError, master_of, progress, visible, warn, width
from hushuffle.errors import InvalidInputError
from hushuffle.files.interrupts import heard

if TYPE_CHECKING:
    from hushuffle.collection.batches import BatchRun
    from hushuffle.collection.budget import Spent
    from hushuffle.collection.collect import Collected
    from hushuffle.collection.release import Release
    from hushuffle.collection.request import KeyRounds, Keys
    from hushuffle.model import Bound
    from hushuffle.specification.sums import SumSpecification

_Flag = Parameter(negative=(), show_default=False)


def collect(
    specification: Path,
    /,
    *,
    out: Path,
    sources: Annotated[list[str] | None, Parameter(name="--input", consume_multiple=True, negative=())] = None,
    column: str | None = None,
    key_file: Path | None = None,
    round_number: Annotated[int | None, Parameter(name="--round")] = None,
    ids: Annotated[str | None, Parameter(name="--id")] = None,
    new_key: Annotated[bool, _Flag] = False,
    min_batch: int = 1,
    reference: Path | None = None,
    batches: Annotated[bool, _Flag] = False,
    late: Literal["next", "drop", "refuse"] | None = None,
    interrupted: Literal["repeat", "skip"] | None = None,
    engine: Literal["local", "spark"] = "local",
    master: str | None = None,
    budget: Path | None = None,
) -> Exit:
    """Run a collection: randomize a column, shuffle, write reports that say nothing about who sent which.

    Writes reports.parquet and manifest.json into a new folder: both or neither.
    With secure aggregation only their sums leave: sums.json. No other column
    leaves, and no order. A specification with several [[columns]] gets a
    folder for each, shuffled independently. Of a [sum] messages.parquet is written.

    Args:
        specification: the TOML file that describes the deployment.
        out: the folder to make; reports are never overwritten.
        sources: files (CSV, Parquet), folders or globs; the data of the specification by default.
        column: the private column, if the specification has no data.
        key_file: a secret key; every record's coins are then repeated when the collection is.
        round_number: of the key, 0 by default; a new one whenever values may have changed.
        ids: with a key: the column that says which record is whose.
        new_key: the key was never used: its ledger is begun (and the key made, if there is no such file).
        min_batch: fewer people are refused; with --batches they wait.
        reference: with a Mallows shuffle, a file with its public order (.npy, or 64-bit integers).
        batches: files keep arriving: collect those that were not yet as the next folder in --out.
        late: with --batches, files whose names come before collected ones: next (the default), drop or refuse.
        interrupted: with --batches, what becomes of a batch that a run left behind: repeat or skip.
        engine: spark reads Parquet files where a cluster has them; local serves one machine best.
        master: with --engine spark, the address of the cluster; this machine by default.
        budget: a file with epsilon and delta that all collections of the same people together must keep;
            each that is released is added to it.
    """
    cluster = master_of(engine, master)
    _check_options(batches=batches, files=late or interrupted)
    from hushuffle.specification.sums import SumSpecification, load_deployment  # noqa: PLC0415 - only when needed

    collection = load_deployment(specification)
    if isinstance(collection, SumSpecification):
        sums.refuse(
            {"--reference": reference, "--batches": batches},
            "a sum by several messages is collected at once, and its messages are in no order.",
        )
        asked: dict[str, Any] = {"sources": tuple(sources or ()), "column": column, "min_batch": min_batch}
        asked |= {"base_folder": specification.parent, "budget": budget, "master": cluster}
        return _sum(collection, out, asked, keys=_keys(key_file, ids, round_number, new=new_key))
    if key_file is not None and ids is None and collection.whole.memoised:
        ids = collection.whole.population.whose
    keys, warnings = _keys(key_file, ids, round_number, new=new_key), list[str]()
    from hushuffle.collection.collect import run  # noqa: PLC0415 - a mistake in the file shows before
    from hushuffle.collection.request import Request  # noqa: PLC0415

    with heard(), progress(enabled=sys.stderr.isatty()) as tell:
        try:
            request = Request(
                sources=tuple(sources or ()),
                column=column,
                keys=keys,
                min_batch=min_batch,
                base_folder=specification.parent,
                reference=reference,
                progress=tell,
                master=cluster,
                budget=budget,
            )
            if batches:
                from hushuffle.collection.batches import collect_batch  # noqa: PLC0415 - only when needed

                when = late or "next"
                batch = collect_batch(collection, out=out, request=request, late=when, interrupted=interrupted)
                lines, released = _of_batch(batch, min_batch), batch.collected
                warnings = [f"set aside until the next run: {message}" for message in batch.damaged]
                if released is not None and keys is None and budget is None:
                    warnings.append(_each_once(batch, released))
                if batch.unnoted is not None:
                    warnings.append(f"batch {batch.number} is released; the next run will note it: {batch.unnoted}")
            else:
                released = run(collection, out=out, request=request)
                lines = _of_any(released)
        except InvalidInputError as error:  # options, or categories that cannot be collected
            raise UsageError(str(error)) from None
    for warning in warnings:
        sys.stderr.write(f"hushuffle: {visible(warning)}\n")
    sys.stdout.write("".join(f"{part}\n" for line in lines for part in _folded(line)))
    if released is not None:
        from hushuffle.specification.warnings import deployment_warnings, total_warnings  # noqa: PLC0415 - when needed

        columns = released.columns.items()
        warn({name: deployment_warnings(made.protocol, delta=collection.delta) for name, made in columns})
        if collection.several:
            warn({"": total_warnings([made.protocol for _, made in columns], rounds=collection.rounds)})
    return Exit.DONE


def _sum(specification: SumSpecification, out: Path, asked: dict[str, Any], *, keys: Keys | None) -> Exit:
    """Collect a sum by several messages, and print what was released."""
    from hushuffle.collection.request import Request  # noqa: PLC0415 - a mistake in the file shows before
    from hushuffle.collection.sums import collect_sum  # noqa: PLC0415

    with heard(), progress(enabled=sys.stderr.isatty()) as tell:
        try:
            request = Request(**asked, keys=keys, progress=tell)
        except InvalidInputError as error:
            raise UsageError(str(error)) from None
        made = collect_sum(specification, out=out, request=request)
    lines = [*sums.described(made), *_of_key(made.rounds), *_of_budget(made.spent), ""]
    lines += [f"Wrote {file}" for file in made.files]
    sys.stdout.write("".join(f"{part}\n" for line in lines for part in _folded(line)))
    return Exit.DONE


def _check_options(*, batches: bool, files: str | None) -> None:
    if not batches and files is not None:
        message = "--late and --interrupted go with --batches."
        raise UsageError(message)


def _keys(file: Path | None, ids: str | None, round_number: int | None, *, new: bool) -> Keys | None:
    if file is None:
        if ids is not None or round_number is not None or new:
            message = "--id, --round and --new-key go with --key-file."
            raise UsageError(message)
        return None
    if str(file).startswith("env:"):
        message = (
            f"--key-file {file}: here a key is read from a file. Only the services for phones read one from an "
            "environment variable. Write the key into a file that only you can read (chmod 600)."
        )
        raise UsageError(message)
    if ids is None:
        message = "--key-file needs --id, the column that says which record is whose."
        raise UsageError(message)
    from hushuffle.collection.request import Keys  # noqa: PLC0415 - only when needed

    try:
        return Keys(file=file, ids=ids, round=round_number or 0, new=new)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None


def _folded(line: str) -> list[str]:
    """Return a line in as many as fit on the terminal; the name of a file stays whole."""
    whole = line.startswith("Wrote ") or not line
    return [line] if whole else textwrap.wrap(line, width=width(), break_long_words=False, break_on_hyphens=False)


def _of_any(collected: Collected) -> list[str]:
    made = _of_columns(collected) if collected.several else _of_one(collected.columns[""])
    return [
        *made,
        *_of_key(collected.rounds),
        *_of_budget(collected.spent),
        "",
        *(f"Wrote {file}" for file in collected.files),
    ]


def _of_one(made: Release) -> list[str]:
    from hushuffle.collection.request import REPORTS  # noqa: PLC0415 - only when needed

    lines = [made.protocol.describe(reports_per_person=made.reports)]
    lines.append(_epsilons("Local", made.local_of_person, made.central))
    if made.total is not None:
        kept = made.protocol.n if made.manifest.facts["central"]["rounds"].get("memoised") else None
        stay = "" if kept is None else f", as long as {kept:,} people take part in all of them with the same value"
        lines.append(f"All rounds together: central epsilon {made.total}{stay}.")
    lines.append(_rows(made))
    if made.beyond:
        lines.append(
            f"{made.beyond:,} records were too many of one person and left out (the files do not record this number)."
        )
    if made.dropped:
        records = "1 record" if made.dropped == 1 else f"{made.dropped:,} records"
        lines.append(f"Dropped {records} without an answer (the files do not record this number).")
    if made.clipped:
        percent = 100 * made.clipped / max(made.protocol.n, 1)
        lines.append(
            f"{percent:.3g} % of the numbers were outside the bounds and taken for the nearer one (the files do not "
            "record this share)."
        )
    if made.repeated:
        again = "the same reports, in another order" if made.content == REPORTS else "the same sums"
        lines.append(f"This batch was collected before: {again}.")
    return lines


def _rows(made: Release) -> str:
    """Say how many rows there are of a person."""
    if made.persons is None:
        n, ask = made.protocol.n, "" if made.person_known else " If not, say whose a row is: population.person."
        return f"One row is taken for one person: {n:,} rows, {n:,} people.{ask}"
    rows = made.protocol.n + made.beyond
    each = f"{rows / max(made.persons, 1):,.2f} on average, {made.largest:,} at most (the files do not record this)"
    return f"These reports are of {made.persons:,} people: the guarantee is for a person. Rows of a person: {each}."


def _of_key(rounds: KeyRounds | None) -> list[str]:
    if rounds is None:
        return []
    if rounds.kept is not None:
        return _of_kept(rounds, rounds.kept)
    what = "1 collection" if rounds.collections == 1 else f"all {rounds.collections:,} collections"
    lines = [
        f"With this key so far, {what} (rounds, columns) together: central epsilon {rounds.epsilon} at delta = "
        f"{rounds.delta:g}."
    ]
    if rounds.unknown:
        lines.append(
            "That leaves out what an earlier version of hushuffle collected with this key: it noted no figures."
        )
    return lines


def _of_kept(rounds: KeyRounds, kept: int) -> list[str]:
    if rounds.collections == 1:
        return ["With this key so far, 1 round of reports that are kept."]
    lines = [
        f"With this key so far, {rounds.collections:,} rounds of reports that are kept: {kept:,} people have sent the "
        f"same one in all of them (the files do not record this number). Central epsilon for them: {rounds.epsilon}."
    ]
    if rounds.changed:
        lines.append(
            f"{rounds.changed:,} people gave another answer in an earlier round: of a person each answer counts with "
            "its local epsilon (the files do not record this number)."
        )
    return lines


def _of_budget(spent: Spent | None) -> list[str]:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    if spent is None:
        return []
    what = "1 collection" if spent.collections == 1 else f"{spent.collections:,} collections"
    used = f"central epsilon {number(spent.epsilon, up=True)} of {spent.limit:g}"
    return [f"Budget: {what}, {used} used at delta = {spent.delta:g}."]


def _of_columns(collected: Collected) -> list[str]:
    lines = [f"{name}: {line}" for name, one in collected.columns.items() for line in _of_one(one)]
    if collected.dropped:
        lines.append("How many are missing shows where columns have different numbers of people; who does not.")
    together = _epsilons("All columns together: local", collected.local_epsilon, collected.central)
    rounds = [] if collected.total is None else [f"All rounds together: central epsilon {collected.total}."]
    return [*lines, together, *rounds]


def _of_batch(run: BatchRun, least: int) -> list[str]:
    lines = [f"{_files(run.dropped)} came too late: left out for good."] if run.dropped else []
    if run.collected is not None:
        return [*lines, f"Batch {run.number}, made of {_files(run.files)}.", *_of_any(run.collected)]
    if not run.files:
        return [*lines, f"No batch: there are no {'other ' if run.damaged else ''}new files."]
    wait = "which waits" if len(run.files) == 1 else "which wait"
    return [*lines, f"No batch: there are fewer than {least:,} people in {_files(run.files)}, {wait} for more."]


def _each_once(run: BatchRun, made: Collected) -> str:
    """Say loudly what nobody checks."""
    known = all(one.persons is not None for one in made.columns.values())
    people = f"{run.people:,} {'people' if known else 'rows, each taken for another person,'}"
    batches = "1 batch" if run.number == 1 else f"{run.number:,} batches"
    return (
        f"warning: each person must be in one batch only, and nobody checks that they are: {people} were counted in "
        f"{batches} so far. If the same people come again, say --budget, which adds up all batches, or --key-file, "
        "which refuses them."
    )


def _files(files: Sequence[str]) -> str:
    return "1 file" if len(files) == 1 else f"{len(files):,} files"


def _epsilons(what: str, local: float, central: Bound) -> str:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    return f"{what} epsilon {number(local, up=True)}; central epsilon {central}."
