"""`hushuffle audit`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from hushuffle.cli.console import Exit, Flag, deliver, misused, progress, refuse_file
from hushuffle.errors import DataError

if TYPE_CHECKING:
    from hushuffle.cli.console import Tell
    from hushuffle.model import Report

_OtherCode = Parameter(group=Group("Audit other code", sort_key=2))


def audit(
    specification: Path | None = None,
    /,
    *,
    command: Annotated[str | None, _OtherCode] = None,
    url: Annotated[str | None, _OtherCode] = None,
    reports: Annotated[Path | None, _OtherCode] = None,
    value: Annotated[str, _OtherCode] = "value",
    report: Annotated[str, _OtherCode] = "report",
    values: Annotated[str | None, _OtherCode] = None,
    epsilon: Annotated[float | None, _OtherCode] = None,
    delta: float | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
    out: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
) -> Exit:
    """Test a privacy claim by trials.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle audit examples/affairs.toml --trials 20000
      hushuffle audit --url http://127.0.0.1:8000/report --values no,yes --epsilon 1

    Given a specification, audits the local randomizer and the release on the
    worst-case pair of datasets, and plays attack games. Given a plan, plays a game
    against its traffic. Other code is audited as a command that reads one value
    and writes one report per line, as an HTTP address of this machine that does
    so, or as a table of values and reports. Ends with exit code 3 if a claim is
    refuted.

    Args:
        specification: the TOML file of a deployment or of a plan.
        command: program to audit, with its options; no shell is involved (default: none).
        url: HTTP address of this machine; values are posted and reports returned, one per line (default: none).
        reports: table (CSV, Parquet) of values and reports, one report per row (default: none).
        value: with --reports, its column of values.
        report: with --reports, its column of reports.
        values: two values whose reports are compared: A,B (default for a table: the two most frequent).
        epsilon: claimed epsilon of other code, in nats; required for other code (default: none).
        delta: claimed delta (default: targets.delta of the specification; 0 for other code).
        trials: number of reports per claim of a local epsilon (default: 1,000,000, or 100,000 with --url), and of
            releases per claim of a central epsilon (default: at most 1,000,000, fewer if simulation is slow).
        confidence: a true claim is refuted with probability at most 1 - confidence.
        seed: seed of the mechanisms' randomness (default: cryptographically secure randomness).
        out: folder for study.html and study.json (default: hushuffle-out/audit-NAME, where NAME is that of the
            specification, of the table, or of the command's first file).
        overwrite: replace the study of an earlier run in that folder.
        json: print only study.json, no summary, to standard output.
    """
    given = [source for source in (specification, command, url, reports) if source is not None]
    if len(given) != 1:
        misused("audit needs exactly one of these: a specification, --command, --url or --reports.")
    if specification is None and epsilon is None:
        misused("--epsilon is missing. Set it to the claimed epsilon (nats).")
    if specification is not None and epsilon is not None:
        misused("--epsilon is only for --command, --url and --reports. With a specification, remove it.")
    program = shlex.split(command or "")
    script = next((word for word in program[1:] if Path(word).is_file()), "".join(program[:1]))
    name = script or ("url" if url else str(given[0]))
    folder = Path("hushuffle-out") / f"audit-{Path(name).name.partition('.')[0]}" if out is None else out
    refuse_file(folder, earlier=() if overwrite else ("study.html", "study.json"))
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        if specification is not None:
            study = _deployment(specification, delta, trials, confidence, seed, tell)
        elif reports is None:
            study = _program(command, url or "", values, float(epsilon or 0), delta or 0.0, trials, confidence)
        else:
            study = _table(reports, (value, report), values, float(epsilon or 0), delta or 0.0, confidence)
    deliver(study, folder, json=json)
    cells = {cell for table in study.tables for row in table.rows for cell in row if isinstance(cell, str)}
    return Exit.MISSED if "refuted" in cells else Exit.DONE


def _deployment(
    path: Path, delta: float | None, trials: int | None, confidence: float, seed: int | None, tell: Tell | None
) -> Report:
    from hushuffle.extensions import AUDITS, PACKAGES, extension  # noqa: PLC0415
    from hushuffle.randomness import reproducible  # noqa: PLC0415 - only when needed
    from hushuffle.specification.reading import read_text, tables_of  # noqa: PLC0415

    rng = None if seed is None else reproducible(seed)
    for table in PACKAGES.keys() & tables_of(read_text(path)).keys():
        audited = extension(AUDITS, table)
        study: Report = audited(path, delta=delta, trials=trials, confidence=confidence, rng=rng, progress=tell)
        return study
    from hushuffle.assessment.deployment import opened  # noqa: PLC0415

    return opened(path).audit(delta=delta, trials=trials, confidence=confidence, rng=rng, progress=tell)


def _pair(values: str | None) -> tuple[str, str]:
    parts = [] if values is None else values.split(",")
    if len(parts) != 2 or parts[0] == parts[1]:
        misused(f"--values must be two different values, separated by a comma, got {values or 'nothing'}.")
    return parts[0], parts[1]


def _program(
    command: str | None,
    url: str,
    values: str | None,
    epsilon: float,
    delta: float,
    trials: int | None,
    confidence: float,
) -> Report:
    from hushuffle.attacks.audit_command import of_command  # noqa: PLC0415 - only when needed
    from hushuffle.attacks.audit_study import audit_foreign  # noqa: PLC0415
    from hushuffle.cli.audit_url import posted  # noqa: PLC0415

    pair, program = _pair(values), shlex.split(command or "")
    number = trials or (100_000 if command is None else 1_000_000)
    name = "A service on this machine, with" if command is None else f"The command `{shlex.join(program)}`,"
    return audit_foreign(
        posted(url, pair) if command is None else of_command(program, pair),
        pair,
        claimed=epsilon,
        delta=delta,
        trials=number,
        confidence=confidence,
        about=f"{name} {number:,} trials. Its claim: epsilon = {epsilon:g}.",
    )


def _table(
    path: Path, columns: tuple[str, str], values: str | None, epsilon: float, delta: float, confidence: float
) -> Report:
    from hushuffle.attacks.audit import audit_reports  # noqa: PLC0415 - only when needed
    from hushuffle.attacks.audit_study import study_of  # noqa: PLC0415
    from hushuffle.tables.published import load_texts  # noqa: PLC0415

    held, sent = load_texts(str(path.absolute()), columns)
    pair = _pair(values) if values is not None else _two(held, path, columns[0])
    groups = [[report for value, report in zip(held, sent, strict=True) if value == one] for one in pair]
    for entry, group in zip(pair, groups, strict=True):
        if not group:
            message = f"{path}: no row of column {columns[0]} has the value {entry}."
            raise DataError(message)
    measurement = audit_reports(groups[0], groups[1], claimed=epsilon, delta=delta, confidence=confidence, names=pair)
    return study_of(
        measurement, confidence=confidence, about=f"The reports in {path.name}, with epsilon = {epsilon:g}."
    )


def _two(held: list[str], path: Path, column: str) -> tuple[str, str]:
    from collections import Counter  # noqa: PLC0415 - only here

    most = [value for value, _ in Counter(held).most_common(2)]
    if len(most) < 2:
        message = f"{path}: {column} must have at least two different values."
        raise DataError(message)
    return most[0], most[1]
