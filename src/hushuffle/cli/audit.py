"""`hushuffle audit`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hushuffle.cli.console import Exit, UsageError, progress
from hushuffle.cli.delivery import deliver, refuse_file
from hushuffle.errors import DataError

if TYPE_CHECKING:
    from hushuffle.cli.console import Tell
    from hushuffle.model import Report

_Flag = Parameter(negative=(), show_default=False)
_SECONDS = 600


def audit(
    specification: Path | None = None,
    /,
    *,
    command: str | None = None,
    url: str | None = None,
    reports: Path | None = None,
    value: str = "value",
    report: str = "report",
    values: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
    out: Path | None = None,
    json: Annotated[bool, _Flag] = False,
) -> Exit:
    """Run a mechanism many times, and say whether what is claimed of it survives.

    Of a specification: its device, and its releases at the worst pair of
    datasets that is known; and games, in which attackers play against it. Of
    the plan of a query: a game against its traffic. Of somebody else's code: a
    command that reads one value on each line and writes one report on each, an
    HTTP address of this machine that does, or a table of values and reports.
    Ends with exit code 3 if a claim is refuted.

    Args:
        specification: the TOML file that describes the deployment, or the plan.
        command: a program to audit, with its options; no shell is involved.
        url: an HTTP address of this machine, to which values are posted, one on each line; reports come back likewise.
        reports: a table (CSV, Parquet) of values and reports, one device's report on each row.
        value: of a table: the column of values.
        report: of a table: the column of reports.
        values: two values to tell apart, separated by a comma; of a table the two most frequent by default.
        epsilon: of somebody else's code: the epsilon (nats) that is claimed.
        delta: that of the specification's targets by default; 0 for somebody else's code.
        trials: of each claim; by default 1,000,000 reports (100,000 with --url), or 20,000 releases.
        confidence: an honest mechanism is accused with probability 1 - confidence at most.
        seed: of the coins of a specification's mechanisms; cryptographic coins by default.
        out: the folder to write study.html and study.json into; hushuffle-out/ and audit-NAME by default.
        json: print study.json instead of the summary, and nothing else, to standard output.
    """
    given = [source for source in (specification, command, url, reports) if source is not None]
    if len(given) != 1:
        message = "audit takes one of: a specification, --command, --url, --reports."
        raise UsageError(message)
    if specification is None and epsilon is None:
        message = "--epsilon must be given: the epsilon (nats) that is claimed."
        raise UsageError(message)
    if specification is not None and epsilon is not None:
        message = "--epsilon goes with --command, --url and --reports; a specification's claims follow from itself."
        raise UsageError(message)
    name = shlex.split(command)[0] if command else "url" if url else str(given[0])
    folder = Path("hushuffle-out") / f"audit-{Path(name).name.partition('.')[0]}" if out is None else out
    refuse_file(folder)
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        if specification is not None:
            made = _deployment(specification, delta, trials, confidence, seed, tell)
        elif command is not None:
            made = _command(command, values, float(epsilon or 0), delta or 0.0, trials or 1_000_000, confidence)
        elif url is not None:
            made = _service(url, values, float(epsilon or 0), delta or 0.0, trials or 100_000, confidence)
        else:
            assert reports is not None
            made = _table(reports, (value, report), values, float(epsilon or 0), delta or 0.0, confidence)
    deliver(made, folder, json=json)
    cells = {cell for table in made.tables for row in table.rows for cell in row if isinstance(cell, str)}
    return Exit.MISSED if "refuted" in cells else Exit.DONE


def _deployment(
    path: Path, delta: float | None, trials: int | None, confidence: float, seed: int | None, tell: Tell | None
) -> Report:
    from hushuffle.queries.specification import describes_plan  # noqa: PLC0415
    from hushuffle.randomness import reproducible  # noqa: PLC0415 - only when needed

    rng = None if seed is None else reproducible(seed)
    if describes_plan(path):
        if delta is not None:
            message = "--delta goes with claims; the game against a plan is held against its figure at epsilon = 0."
            raise UsageError(message)
        from hushuffle.queries import load_plan  # noqa: PLC0415
        from hushuffle.queries.audit import audit_plan  # noqa: PLC0415

        return audit_plan(
            load_plan(path), base_folder=path.parent, trials=trials, confidence=confidence, rng=rng, progress=tell
        )
    from hushuffle.specification.sums import SumSpecification, load_deployment  # noqa: PLC0415

    collection = load_deployment(path)
    if isinstance(collection, SumSpecification):
        from hushuffle.attacks.sum_audit import audit_sum  # noqa: PLC0415

        return audit_sum(
            collection,
            base_folder=path.parent,
            delta=delta,
            trials=trials,
            confidence=confidence,
            rng=rng,
            progress=tell,
        )
    if collection.several:
        message = "audit takes a specification of one column: give one for each."
        raise UsageError(message)
    from hushuffle.attacks.audit_specification import audit_specification  # noqa: PLC0415

    return audit_specification(
        collection.columns[""],
        base_folder=path.parent,
        delta=delta,
        trials=trials,
        confidence=confidence,
        rng=rng,
        progress=tell,
    )


def _pair(values: str | None) -> tuple[str, str]:
    parts = [] if values is None else values.split(",")
    if len(parts) != 2 or parts[0] == parts[1]:
        message = f"--values must be two different values, separated by a comma, got {values or 'nothing'}."
        raise UsageError(message)
    return parts[0], parts[1]


def _command(command: str, values: str | None, epsilon: float, delta: float, trials: int, confidence: float) -> Report:
    from hushuffle.attacks.audit_study import audit_foreign  # noqa: PLC0415 - only when needed

    pair = _pair(values)
    return audit_foreign(
        _lines(shlex.split(command), pair),
        pair,
        claimed=epsilon,
        delta=delta,
        trials=trials,
        confidence=confidence,
        about=f"The command `{shlex.join(shlex.split(command))}`, {trials:,} trials. Its claim: epsilon = {epsilon:g}.",
    )


def _service(url: str, values: str | None, epsilon: float, delta: float, trials: int, confidence: float) -> Report:
    from hushuffle.attacks.audit_study import audit_foreign  # noqa: PLC0415 - only when needed
    from hushuffle.cli.audit_url import posted  # noqa: PLC0415

    pair = _pair(values)
    return audit_foreign(
        posted(url, pair),
        pair,
        claimed=epsilon,
        delta=delta,
        trials=trials,
        confidence=confidence,
        about=f"A service on this machine in {trials:,} trials; it claims epsilon = {epsilon:g}.",
    )


def _lines(program: list[str], pair: tuple[str, str]) -> Callable[[Any], list[str]]:
    """Return what gives the program one value on each line, and reads one report from each."""

    def sample(codes: Any) -> list[str]:
        text = "".join(f"{pair[code]}\n" for code in codes.tolist())
        try:
            done = subprocess.run(  # noqa: S603 - the program that the user names, without a shell
                program, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except FileNotFoundError:
            message = f"--command: there is no program {program[0]}."
            raise DataError(message) from None
        except subprocess.TimeoutExpired:
            message = f"--command: {program[0]} did not end within {_SECONDS} seconds; ask for fewer --trials."
            raise DataError(message) from None
        found = done.stdout.splitlines()
        if done.returncode or len(found) != len(codes):
            message = (
                f"--command: {program[0]} ended with exit code {done.returncode} and wrote {len(found):,} lines for "
                f"{len(codes):,} values. It must read one value from each line and write one report on each."
            )
            raise DataError(message)
        return found

    return sample


def _table(
    path: Path, columns: tuple[str, str], values: str | None, epsilon: float, delta: float, confidence: float
) -> Report:
    from hushuffle.attacks.audit import audit_reports  # noqa: PLC0415 - only when needed
    from hushuffle.attacks.audit_study import study_of  # noqa: PLC0415
    from hushuffle.tables.public_columns import load_texts  # noqa: PLC0415

    held, sent = load_texts(str(path.absolute()), columns)
    pair = _pair(values) if values is not None else _two(held, path, columns[0])
    groups = [[report for value, report in zip(held, sent, strict=True) if value == one] for one in pair]
    for one, group in zip(pair, groups, strict=True):
        if not group:
            message = f"{path}: no row of {columns[0]} holds {one}."
            raise DataError(message)
    found = audit_reports(groups[0], groups[1], claimed=epsilon, delta=delta, confidence=confidence, names=pair)
    return study_of(found, confidence=confidence, about=f"The reports in {path.name}, with epsilon = {epsilon:g}.")


def _two(held: list[str], path: Path, column: str) -> tuple[str, str]:
    """Return the two values that most rows hold."""
    from collections import Counter  # noqa: PLC0415 - only here

    most = [value for value, _ in Counter(held).most_common(2)]
    if len(most) < 2:
        message = f"{path}: {column} must hold two different values, to be told apart."
        raise DataError(message)
    return most[0], most[1]
