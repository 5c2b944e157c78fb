"""`hushuffle estimate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hushuffle.cli.exits import Exit, UsageError
from hushuffle.cli.progress import progress
from hushuffle.cli.terminal import color, width
from hushuffle.errors import InvalidInputError

if TYPE_CHECKING:
    import polars as pl

    from hushuffle.workflows.estimate_reports import Tally

_Flag = Parameter(negative=(), show_default=False)
_SHOWN = 20


def estimate(
    reports: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    manifest: Path | None = None,
    out: Path | None = None,
    confidence: float = 0.95,
    counts_only: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
) -> Exit:
    """Estimate how many people hold each value, from collected reports.

    Several collections of different people with the same randomizer and
    categories are added up. Prints the most frequent values.

    Args:
        reports: folders that collect wrote, files of reports, or files of counts (.json).
        manifest: how all files of reports together were made; manifest.json beside each by default.
        out: write all values to this file: .csv, .parquet or .json.
        confidence: of each interval.
        counts_only: write support counts to --out (.json), to be added up elsewhere, and estimate nothing.
        json: print all values as JSON, and nothing else, to standard output.
    """
    if not 0 < confidence < 1:
        message = f"--confidence must be between 0 and 1, got {confidence}."
        raise UsageError(message)
    if counts_only and (json or out is None or out.suffix != ".json"):
        message = "--counts-only needs --out FILE.json and prints nothing else."
        raise UsageError(message)
    from hushuffle.io.frequency_files import check_kind, frequency_table, save_frequencies, save_text  # noqa: PLC0415
    from hushuffle.io.manifest import counts_text  # noqa: PLC0415 - only when needed
    from hushuffle.workflows.estimate_reports import tally_reports  # noqa: PLC0415

    try:
        if out is not None:
            check_kind(out)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        tally = tally_reports(reports, manifest=manifest, progress=tell)
    if counts_only and out is not None:
        save_text(out, counts_text(tally.manifest, tally.counts.counts))
        sys.stdout.write(f"Wrote {out}\n")
        return Exit.DONE
    table = frequency_table(tally.estimate(), tally.labels, confidence=confidence)
    facts = _facts(tally, confidence)
    if out is not None:
        save_frequencies(out, table, facts)
    _print(table, facts, out, json=json)
    return Exit.DONE


def _facts(tally: Tally, confidence: float) -> dict[str, Any]:
    return {"people": tally.manifest.people, "dummies": tally.manifest.dummies, "confidence": confidence}


def _print(table: pl.DataFrame, facts: dict[str, Any], out: Path | None, *, json: bool) -> None:
    if json:
        from hushuffle.io.frequency_files import frequency_text  # noqa: PLC0415 - only when needed

        sys.stdout.write(frequency_text(table, facts))
        return
    from hushuffle.report.printing import item, printed, text  # noqa: PLC0415 - only when needed
    from hushuffle.report.printing import table as grid  # noqa: PLC0415

    shown = grid(expand=False)
    for name in ("Value", "Share", "Standard error", f"{100 * facts['confidence']:g}% interval"):
        shown.add_column(name, justify="left" if name == "Value" else "right", overflow="fold")
    top = table.sort("frequency", descending=True).head(_SHOWN)
    for value, frequency, error, low, high in top.iter_rows():
        shown.add_row(text(value), f"{frequency:.4f}", f"{error:.4f}", f"{low:.4f} to {high:.4f}")
    rest = table.height - top.height
    parts = [shown, *([item(f"{rest:,} more values are not shown; --out writes all.")] if rest else [])]
    sys.stdout.write(f"{facts['people']:,} people, {facts['dummies']:,} dummies.\n\n")
    sys.stdout.write(printed(parts, width(), color=color()))
    if out is not None:
        sys.stdout.write(f"\nWrote {out}\n")
