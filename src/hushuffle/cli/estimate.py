"""`hushuffle estimate`."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from hushuffle.cli.console import Exit, UsageError, color, master_of, progress, width
from hushuffle.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from hushuffle.collection.estimate import Count, Tally
    from hushuffle.estimation import HeavyHitters
    from hushuffle.model import Estimate

_Flag = Parameter(negative=(), show_default=False)
_SHOWN = 20
_CHARTS = (".svg", ".html")


def estimate(
    reports: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    manifest: Path | None = None,
    out: Path | None = None,
    chart: Path | None = None,
    confidence: float = 0.95,
    every: Annotated[bool, Parameter(name="--all", negative=(), show_default=False)] = False,
    counts_only: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
    engine: Literal["local", "spark"] = "local",
    master: str | None = None,
) -> Exit:
    """Estimate how many people hold each value, from collected reports.

    Several collections of different people with the same randomizer and
    categories are added up, column by column. Prints the most frequent of the
    values that are told from noise: that one which nobody holds is among them
    happens in at most 1 of 20 collections. Files hold all values.

    Args:
        reports: folders that collect wrote, files of reports, or files of counts (.json).
        manifest: how all files of reports together were made; manifest.json beside each by default.
        out: write all values to this file: .csv, .parquet or .json.
        chart: draw the shares with their intervals (if there are more than 30 values, the largest that are told from
            noise): .svg or .html.
        confidence: of all that is printed together, 0.95 by default; in files and with --all of each interval.
        every: print all values, also those that cannot be told from noise.
        counts_only: write support counts to --out (.json), to be added up elsewhere, and estimate nothing.
        json: print all values as JSON, and nothing else, to standard output.
        engine: spark counts on a cluster that reads the same files as this machine.
        master: with --engine spark, the address of the cluster; this machine by default.
    """
    cluster = master_of(engine, master)
    _check_options(out, chart, confidence, counts_only=counts_only, json=json)
    from hushuffle.collection.estimate import tally_columns  # noqa: PLC0415 - only when needed

    with progress(enabled=not json and sys.stderr.isatty()) as tell, _counting(cluster) as count:
        tallies = tally_columns(reports, manifest=manifest, progress=tell, count=count)
    if counts_only and out is not None:
        return _save_counts(tallies, out)
    estimates = {name: tally.estimate() for name, tally in tallies.items()}
    from hushuffle.collection.estimate import noise_warning  # noqa: PLC0415
    from hushuffle.tables.frequency_files import frequency_table, save_columns, save_frequencies  # noqa: PLC0415

    shown = {name: tallies[name].told_from_noise(made, confidence=confidence) for name, made in estimates.items()}
    tables = {
        name: frequency_table(made, tallies[name].labels, confidence=confidence, above=shown[name].among(made.k))
        for name, made in estimates.items()
    }
    facts = {name: {**_facts(tally, confidence), "threshold": shown[name].threshold} for name, tally in tallies.items()}
    several = "" not in tables
    if out is not None and several:
        save_columns(out, tables, facts)
    elif out is not None:
        save_frequencies(out, tables[""], facts[""])
    if chart is not None:
        _draw(chart, tallies, estimates, {} if every else shown, confidence)
    if json:
        _print_json(tables, facts)
    else:
        _print(tables, facts, shown, every=every)
    for name, made in estimates.items():
        for sentence in noise_warning(made, shown[name]):
            sys.stderr.write(f"hushuffle: warning: {name}{': ' * bool(name)}{sentence}\n")
    if not json and (out is not None or chart is not None):
        sys.stdout.write("\n" + "".join(f"Wrote {file}\n" for file in (out, chart) if file is not None))
    return Exit.DONE


@contextmanager
def _counting(master: str | None) -> Iterator[Count | None]:
    if master is None:
        yield None
        return
    from hushuffle.collection.estimate import counting_on  # noqa: PLC0415 - only when needed

    with counting_on(master) as count:
        yield count


def _check_options(out: Path | None, chart: Path | None, confidence: float, *, counts_only: bool, json: bool) -> None:
    if not 0 < confidence < 1:
        message = f"--confidence must be between 0 and 1, got {confidence}."
        raise UsageError(message)
    if counts_only and (json or chart is not None or out is None or out.suffix != ".json"):
        message = "--counts-only needs --out FILE.json and prints or draws nothing else."
        raise UsageError(message)
    if chart is not None and chart.suffix not in _CHARTS:
        message = f"--chart must be a file of these kinds: {', '.join(_CHARTS)}, got {chart.name}."
        raise UsageError(message)
    from hushuffle.tables.frequency_files import check_kind  # noqa: PLC0415 - only when needed

    try:
        if out is not None:
            check_kind(out)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None


def _save_counts(tallies: Mapping[str, Tally], out: Path) -> Exit:
    from hushuffle.collection.released import counts_text  # noqa: PLC0415
    from hushuffle.tables.frequency_files import save_text  # noqa: PLC0415 - only when needed

    if "" not in tallies:
        message = f"Counts are of one column: give FOLDER/NAME, NAME one of {', '.join(tallies)}."
        raise UsageError(message)
    tally = tallies[""]
    save_text(out, counts_text(tally.manifest, tally.counts.counts))
    sys.stdout.write(f"Wrote {out}\n")
    return Exit.DONE


def _facts(tally: Tally, confidence: float) -> dict[str, Any]:
    return {"people": tally.manifest.people, "dummies": tally.manifest.dummies, "confidence": confidence}


def _draw(
    chart: Path,
    tallies: Mapping[str, Tally],
    estimates: Mapping[str, Estimate],
    shown: Mapping[str, HeavyHitters],
    confidence: float,
) -> None:
    from hushuffle.report.frequency_chart import Frequencies, frequency_html, frequency_svg  # noqa: PLC0415
    from hushuffle.tables.frequency_files import save_text  # noqa: PLC0415 - only when needed

    parts = [
        Frequencies(
            title=name or tally.specification.title or "Estimated shares",
            estimate=estimates[name],
            labels=tally.labels,
            confidence=confidence,
            people=tally.manifest.people,
            above=shown[name].among(estimates[name].k) if name in shown else None,
        )
        for name, tally in tallies.items()
    ]
    save_text(chart, frequency_svg(parts) if chart.suffix == ".svg" else frequency_html(parts))


def _print_json(tables: Mapping[str, pl.DataFrame], facts: Mapping[str, dict[str, Any]]) -> None:
    from hushuffle.tables.frequency_files import columns_text, frequency_text  # noqa: PLC0415 - only when needed

    several = "" not in tables
    sys.stdout.write(columns_text(tables, facts) if several else frequency_text(tables[""], facts[""]))


def _print(
    tables: Mapping[str, pl.DataFrame],
    facts: Mapping[str, dict[str, Any]],
    shown: Mapping[str, HeavyHitters],
    *,
    every: bool,
) -> None:
    for position, (name, table) in enumerate(tables.items()):
        sys.stdout.write("\n" * bool(position) + (f"{name}: " if name else ""))
        sys.stdout.write(f"{facts[name]['people']:,} people, {facts[name]['dummies']:,} dummies.\n\n")
        if every:
            _print_rows(table, facts[name], "each")
        else:
            _print_significant(table, facts[name], shown[name])


def _print_significant(table: pl.DataFrame, facts: dict[str, Any], shown: HeavyHitters) -> None:
    """Print the most frequent values that are told from noise, and say what the others are."""
    import polars as pl  # noqa: PLC0415 - only when needed

    low, high = (pl.Series(shown.intervals[:, end]) for end in (0, 1))
    rows = table[shown.values].with_columns(low=low, high=high)
    notes = []
    if rows.height > _SHOWN:
        notes.append(f"{rows.height - _SHOWN:,} more values are told from noise; --out writes all.")
    below = table.height - rows.height
    if below:
        people = math.ceil(max(shown.threshold, 0.0) * facts["people"])
        few = f"; one that fewer than about {people:,} people hold mostly does not show" * (people <= facts["people"])
        notes.append(
            f"{below:,} of {table.height:,} values are not shown: their estimates cannot be told from noise. Nobody "
            f"may hold them{few}. --all prints them."
        )
    _print_rows(rows.head(_SHOWN), facts, "all at once", notes)


def _print_rows(table: pl.DataFrame, facts: dict[str, Any], meant: str, notes: Sequence[str] = ()) -> None:
    from hushuffle.report.printing import item, printed, text  # noqa: PLC0415 - only when needed
    from hushuffle.report.printing import table as grid  # noqa: PLC0415

    shown = grid(expand=False)
    for name in ("Value", "Share", "Standard error", f"{100 * facts['confidence']:g}% interval, {meant}"):
        shown.add_column(name, justify="left" if name == "Value" else "right", overflow="fold")
    rows = table.sort("frequency", descending=True)
    for value, frequency, error, low, high in rows.drop("above_threshold").iter_rows():
        shown.add_row(text(value), f"{frequency:.4f}", f"{error:.4f}", f"{low:.4f} to {high:.4f}")
    parts = [*([shown] if rows.height else []), *(item(note) for note in notes)]
    sys.stdout.write(printed(parts, width(), color=color()))
