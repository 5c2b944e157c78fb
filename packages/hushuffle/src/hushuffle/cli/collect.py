"""`hushuffle collect`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from cyclopts import Group, Parameter

from hushuffle.cli import sums
from hushuffle.cli.console import Exit, Flag, from_options, master_of, misused, print_lines, progress, visible, warn

if TYPE_CHECKING:
    from hushuffle.collection.batches import BatchRun
    from hushuffle.collection.budget import Spent
    from hushuffle.collection.collect import Collected
    from hushuffle.collection.kept import KeyRounds
    from hushuffle.collection.release import Release
    from hushuffle.collection.request import Asked, Keys, Request
    from hushuffle.model import Bound
    from hushuffle.specification import Collection
    from hushuffle.specification.mixed import AnyFile, MixedSpecification
    from hushuffle.specification.sums import SumSpecification

_Key = Parameter(group=Group("Repeatable randomness", sort_key=2))
_Arriving = Parameter(group=Group("Batches", sort_key=3))
_Special = Parameter(group=Group("Order and Spark", sort_key=4))


def collect(
    specification: Path,
    /,
    *,
    out: Path,
    sources: Annotated[list[str] | None, Parameter(name="--input", consume_multiple=True, negative=())] = None,
    column: str | None = None,
    key_file: Annotated[Path | None, _Key] = None,
    round_number: Annotated[int | None, Parameter(name="--round"), _Key] = None,
    ids: Annotated[str | None, Parameter(name="--id"), _Key] = None,
    new_key: Annotated[Flag, _Key] = False,
    min_batch: int = 1,
    reference: Annotated[Path | None, _Special] = None,
    batches: Annotated[Flag, _Arriving] = False,
    late: Annotated[Literal["next", "drop", "refuse"] | None, _Arriving] = None,
    interrupted: Annotated[Literal["repeat", "skip"] | None, _Arriving] = None,
    engine: Annotated[Literal["local", "spark"], _Special] = "local",
    master: Annotated[str | None, _Special] = None,
    budget: Path | None = None,
) -> Exit:
    """Randomize and shuffle a column, and write the reports without their senders.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle collect examples/collect.toml --out hushuffle-out/collected
      hushuffle collect examples/collect-columns.toml --out hushuffle-out/columns

    Writes reports.parquet and manifest.json into a new folder; on errors, no file.
    Secure aggregation writes sums.json instead of reports, and a specification
    with [sum] writes messages.parquet. [[groups]] are shuffled together, several
    [[columns]] independently, each into its own folder. Neither other columns nor
    the order of the records are released.

    Args:
        specification: the TOML file that describes the deployment.
        out: new folder to write into; nothing is overwritten.
        sources: files (CSV, Parquet), folders or globs (default: the data of the specification). In a reach study:
            NAME=FILE for each publisher: its Bloom filter without flips (.npz) or, to count contacts, for
            each bit the number of ad views of the people who set it (.npy).
        column: name of the private column (default: population.column of the specification).
        min_batch: minimum number of people; with --batches, files stay pending until there are enough people.
        budget: file with the total epsilon and delta that all collections of the same people may spend (default: none).
        key_file: file with a secret key, so that a repeated run draws the same reports (default: fresh randomness).
        ids: column that identifies each record's person; required with a key (default: none).
        round_number: with a key, number of the round; use a new number if values may have changed (default: 0).
        new_key: first use of a key: start the ledger of its uses, and generate the key if the file is missing.
        batches: collect the files that arrived since the last batch, into a new folder in --out.
        late: what to do with a new file whose name sorts before files already collected: put it into the next batch,
            drop it, or refuse to run (default: next).
        interrupted: repeat an interrupted batch, if it was certainly never released, or skip it (default: an error).
        reference: file with the public order of a Mallows shuffle, .npy or 64-bit integers (default: computed).
        engine: spark reads Parquet files on a cluster; local uses this machine.
        master: address of the Spark cluster (default: this machine).
    """
    cluster = master_of(engine, master)
    if not batches and (late or interrupted):
        misused("--late and --interrupted need --batches. Add it, or remove them.")
    from hushuffle.specification.mixed import load_deployment  # noqa: PLC0415 - only when needed

    parsed = load_deployment(specification)
    options: dict[str, Any] = {"sources": tuple(sources or ()), "column": column, "min_batch": min_batch}
    options |= {"base_folder": specification.parent, "budget": budget, "master": cluster}
    if parsed.kind_of_deployment in _OTHERS:
        keys = _keys(key_file, ids, round_number, new=new_key)
        return _other(parsed, out, {**options, "keys": keys}, reference=reference, batches=batches)
    collection = cast("Collection", parsed)
    if key_file is not None and ids is None:
        from hushuffle.collection.kept import FreshReports  # noqa: PLC0415 - only when needed

        ids = FreshReports.of(collection.whole).ids
    keys, warnings = _keys(key_file, ids, round_number, new=new_key), list[str]()
    from hushuffle.collection.collect import run  # noqa: PLC0415 - a mistake in the file shows before
    from hushuffle.collection.request import Asked, Request  # noqa: PLC0415
    from hushuffle.files.causes import heard  # noqa: PLC0415 - only when needed

    # What is refused are options, or categories that cannot be collected.
    with heard(), progress(enabled=sys.stderr.isatty()) as tell, from_options():
        request = Request(**options, keys=keys, reference=reference, progress=tell)
        if batches:
            from hushuffle.collection.batches import collect_batch  # noqa: PLC0415 - only when needed

            when = late or "next"
            batch = collect_batch(collection, out=out, request=request, late=when, interrupted=interrupted)
            lines, released = _of_batch(batch, min_batch), batch.collected
            warnings = [f"a file was left for the next run: {message}" for message in batch.damaged]
            if released is not None and keys is None and budget is None:
                warnings.append(_each_once(batch, released))
            if batch.unnoted is not None:
                warnings.append(f"batch {batch.number} is released; the next run will record it: {batch.unnoted}")
        else:
            released = run(collection, out=out, request=request)
            lines = _of_any(released)
    for warning in warnings:
        sys.stderr.write(f"hushuffle: {visible(warning)}\n")
    print_lines(lines)
    if released is not None:
        from hushuffle.specification import warnings as about  # noqa: PLC0415 - only when needed

        columns = released.columns.items()
        selected = {name: Asked.of(each, request) for name, each in collection.columns.items()}
        _warn_of_rows(tuple(selected.values()), request, collection.remedy)
        warn({name: about.label_warnings(each.answers.labels, each.answers.instead) for name, each in selected.items()})
        warn({name: about.deployment_warnings(made.protocol, delta=collection.delta) for name, made in columns})
        warn({"": about.total_warnings({name: made.protocol for name, made in columns}, rounds=collection.rounds)})
    return Exit.DONE


def _warn_of_rows(selected: Sequence[Asked], request: Request, remedy: str) -> None:
    """Warn if one person may have several rows, unless a key checks ids or the files are on a cluster."""
    from hushuffle.specification.warnings import row_warnings  # noqa: PLC0415 - only when needed

    first = selected[0]
    if request.keys is None and request.master is None and first.person is None:
        answers = {each.column for each in selected}
        form, folder = first.form, first.base_folder
        warn({"": row_warnings(first.files, answers=answers, form=form, base_folder=folder, remedy=remedy)})


def _other(file: AnyFile, out: Path, options: dict[str, Any], *, reference: Path | None, batches: bool) -> Exit:
    """Collect a sum, a reach study, or groups of randomizers; refuse options that have no meaning for them."""
    given = {"--reference": reference, "--batches": batches, "--column": options["column"]}
    given |= {"--min-batch": options["min_batch"] > 1, "--key-file": options["keys"], "--budget": options["budget"]}
    given["--engine spark"] = options["master"]
    run, refused, reason = _OTHERS[file.kind_of_deployment]
    sums.refuse({name: given[name] for name in refused or given}, f"{reason} Remove the option.")
    from hushuffle.collection.request import Request  # noqa: PLC0415 - a mistake in the file shows before
    from hushuffle.files.causes import heard  # noqa: PLC0415 - only when needed

    with heard(), progress(enabled=sys.stderr.isatty()) as tell:
        with from_options():
            request = Request(**options, progress=tell)
        return run(file, out, request)


def _sum(specification: SumSpecification, out: Path, request: Request) -> Exit:
    from hushuffle.collection.request import Asked  # noqa: PLC0415 - a mistake in the file shows before
    from hushuffle.collection.sums import collect_sum  # noqa: PLC0415

    released = collect_sum(specification, out=out, request=request)
    lines = [*sums.described(released), *_of_key(released.rounds), *_of_budget(released.spent), ""]
    lines += [f"Wrote {file}" for file in released.files]
    print_lines(lines)
    from hushuffle.specification.population import ONE_NUMBER  # noqa: PLC0415 - when needed

    _warn_of_rows([Asked.about(specification.asked, request)], request, ONE_NUMBER)
    return Exit.DONE


def _groups(specification: MixedSpecification, out: Path, request: Request) -> Exit:
    from hushuffle.collection.mixed import collect_groups  # noqa: PLC0415 - a mistake in the file shows before
    from hushuffle.collection.request import Asked  # noqa: PLC0415

    released = collect_groups(specification, out=out, request=request)
    people = released.protocol.n
    lines = [released.protocol.describe(), f"Central epsilon {released.central}, for the people of all groups."]
    lines.append(f"Each row counts as one person: {people:,} rows, {people:,} people.")
    if released.dropped:
        lines.append(f"Dropped {released.dropped:,} records without an answer (the files do not record this number).")
    print_lines([*lines, "", *(f"Wrote {file}" for file in released.files)])
    from hushuffle.specification import warnings as about  # noqa: PLC0415 - only when needed

    _warn_of_rows([Asked.about(specification.shared.population, request)], request, specification.remedy)
    warn({"": about.weighted_warnings(released.protocol)})
    return Exit.DONE


_OTHERS: Final[dict[str, tuple[Callable[[Any, Path, Request], Exit], tuple[str, ...], str]]] = {
    "reach": (
        sums.collect_reach,
        (),
        "a reach study is collected in one run on this machine. A budget counts only reports of people: compare the "
        "printed epsilon with what these people may still spend.",
    ),
    "groups": (
        _groups,
        ("--reference", "--batches", "--key-file", "--budget", "--engine spark"),
        "[[groups]] are collected in one run on this machine with fresh randomness.",
    ),
    "sum": (
        _sum,
        ("--reference", "--batches"),
        "a specification with [sum] is collected in one run, and its messages have no order.",
    ),
}
"""By kind of deployment: what collects it, the options that it refuses (none given: all), and why."""


def _keys(file: Path | None, ids: str | None, round_number: int | None, *, new: bool) -> Keys | None:
    if file is None:
        if ids is not None or round_number is not None or new:
            misused("--id, --round and --new-key need --key-file.")
        return None
    if str(file).startswith("env:"):
        misused(
            f"--key-file {file}: collect reads keys from files. Only the services for phones read them from the "
            "environment. Write the key into a file that only you can read (chmod 600)."
        )
    if ids is None:
        misused("--key-file needs --id, the column that identifies each record's person.")
    from hushuffle.collection.request import Keys  # noqa: PLC0415 - only when needed

    with from_options():
        return Keys(file=file, ids=ids, round=round_number or 0, new=new)


def _of_any(collected: Collected) -> list[str]:
    own = _of_one(collected.columns[""]) if "" in collected.columns else _of_columns(collected)
    return [
        *own,
        *_of_key(collected.rounds),
        *_of_budget(collected.spent),
        *_of_refused(collected),
        "",
        *(f"Wrote {file}" for file in collected.files),
    ]


def _of_refused(collected: Collected) -> list[str]:
    """Lines about the records that were set aside."""
    if collected.refused is None:
        return []
    counts = [made.refused.count for made in collected.columns.values() if made.refused is not None]
    records = "1 record was" if sum(counts) == 1 else f"{sum(counts):,} records were"
    return [f"{records} set aside: their lines are in the private file {collected.refused}. Do not publish it."]


def _of_one(release: Release) -> list[str]:
    from hushuffle.collection.request import REPORTS  # noqa: PLC0415 - only when needed

    lines = [release.protocol.describe(reports_per_person=release.reports)]
    lines.append(_epsilons("Local", release.local_of_person, release.central))
    if release.total is not None:
        people = release.protocol.n if release.manifest.facts["central"]["rounds"].get("memoised") else None
        stay = "" if people is None else f", if {people:,} people take part in all rounds and keep their values"
        lines.append(f"All rounds together: central epsilon {release.total}{stay}.")
    lines.append(_rows(release))
    if release.beyond:
        lines.append(
            f"Left out {release.beyond:,} records, because at most {release.reports:,} of each person are kept "
            "(population.reports_per_person). The files do not record this number."
        )
    if release.dropped:
        records = "1 record" if release.dropped == 1 else f"{release.dropped:,} records"
        lines.append(f"Dropped {records} without an answer (not recorded in the files).")
    if release.clipped:
        percent = 100 * release.clipped / max(release.protocol.n, 1)
        lines.append(
            f"{percent:.3g} % of the numbers were outside the bounds and replaced by the nearer bound (not recorded in "
            "the files)."
        )
    if release.repeated:
        again = "the same reports, in another order" if release.content == REPORTS else "the same sums"
        lines.append(f"This batch was collected before: {again}.")
    return lines


def _rows(release: Release) -> str:
    if release.persons is None:
        n, ask = release.protocol.n, "" if release.person_known else " If this is wrong, set population.person."
        return f"Each row counts as one person: {n:,} rows, {n:,} people.{ask}"
    rows = release.protocol.n + release.beyond
    each = f"{rows / max(release.persons, 1):,.2f} on average, {release.largest:,} at most (not recorded in the files)"
    return f"The guarantee is per person, for {release.persons:,} people. Rows per person: {each}."


def _of_key(rounds: KeyRounds | None) -> list[str]:
    if rounds is None:
        return []
    if rounds.kept is not None:
        return _of_kept(rounds, rounds.kept)
    what = "1 collection" if rounds.collections == 1 else f"all {rounds.collections:,} collections"
    lines = [
        f"With this key so far: {what} (rounds, columns), with central epsilon {rounds.epsilon} in total at delta = "
        f"{rounds.delta:g}."
    ]
    if rounds.unknown:
        lines.append(
            "This excludes collections with this key by earlier versions of hushuffle, which recorded no epsilons."
        )
    return lines


def _of_kept(rounds: KeyRounds, people: int) -> list[str]:
    if rounds.collections == 1:
        return ["With this key so far: 1 round of memoized reports."]
    lines = [
        f"With this key so far: {rounds.collections:,} rounds of memoized reports. {people:,} people sent the same "
        f"report in all of them (not recorded in the files). Central epsilon for them: {rounds.epsilon}."
    ]
    if rounds.changed:
        lines.append(
            f"{rounds.changed:,} people changed their answer: each of a person's answers adds its local epsilon (not "
            "recorded in the files)."
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
        lines.append("Columns with different numbers of people reveal how many answers are missing, but not whose.")
    together = _epsilons("All columns together: local", collected.local_epsilon, collected.central)
    rounds = [] if collected.total is None else [f"All rounds together: central epsilon {collected.total}."]
    return [*lines, together, *rounds]


def _of_batch(run: BatchRun, least: int) -> list[str]:
    lines = [f"{_files(run.dropped)} arrived too late and will never be collected."] if run.dropped else []
    if run.collected is not None:
        return [*lines, f"Batch {run.number}, from {_files(run.files)}.", *_of_any(run.collected)]
    if not run.files:
        return [*lines, f"No batch was released: there are no {'other ' if run.damaged else ''}new files."]
    return [*lines, f"No batch was released: fewer than {least:,} people in {_files(run.files)}. The batch is pending."]


def _each_once(run: BatchRun, collected: Collected) -> str:
    """The warning that each person must be in only one batch."""
    identified = all(one.persons is not None for one in collected.columns.values())
    people = f"{run.people:,} {'people' if identified else 'rows, each counted as another person,'}"
    batches = "1 batch" if run.number == 1 else f"{run.number:,} batches"
    return (
        f"warning: each person must be in one batch only, which hushuffle cannot check: {people} were counted in "
        f"{batches} so far. If people may answer again, pass --budget, which adds up all batches, or --key-file, which "
        "rejects their new records."
    )


def _files(files: Sequence[str]) -> str:
    return "1 file" if len(files) == 1 else f"{len(files):,} files"


def _epsilons(what: str, local: float, central: Bound) -> str:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    return f"{what} epsilon {number(local, up=True)}; central epsilon {central}."
