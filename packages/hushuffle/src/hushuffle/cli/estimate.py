"""`hushuffle estimate`."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from hushuffle.cli import sums
from hushuffle.cli.console import Exit, Flag, color, from_options, master_of, misused, progress, warn, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl

    from hushuffle.answers.base import Estimated
    from hushuffle.collection.estimate import Tally
    from hushuffle.estimation import HeavyHitters
    from hushuffle.model import Estimate

_Values = Parameter(group=Group("Values and shares", sort_key=2))
_Elsewhere = Parameter(group=Group("Counting elsewhere", sort_key=3))
_SHOWN = 20
_CHARTS = (".svg", ".html")


def estimate(
    reports: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    manifest: Annotated[Path | None, _Elsewhere] = None,
    out: Path | None = None,
    chart: Path | None = None,
    confidence: float = 0.95,
    every: Annotated[Flag, Parameter(name="--all"), _Values] = False,
    heavy_hitters: Annotated[Flag, _Values] = False,
    simplex: Annotated[Flag, _Values] = False,
    counts_only: Annotated[Flag, _Elsewhere] = False,
    json: Flag = False,
    engine: Annotated[Literal["local", "spark"], _Elsewhere] = "local",
    master: Annotated[str | None, _Elsewhere] = None,
) -> Exit:
    """Estimate how many people hold each value, from collected reports.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle collect examples/collect.toml --out hushuffle-out/collected
      hushuffle estimate hushuffle-out/collected --chart hushuffle-out/shares.svg

    Prints the most frequent statistically significant values, with simultaneous
    intervals (family-wise error rate: 1 - confidence). Output files contain all
    values, each with its own interval. Several collections of different people are
    added if they have the same randomizer and categories. For a [sum], prints the
    sum and the mean. For [[groups]], prints shares in which groups with less noise
    count more.

    Args:
        reports: folders written by `hushuffle collect`, files of reports, or files of counts (.json).
        manifest: manifest that describes all given files (default: manifest.json beside each).
        out: file for the estimates of all values: .csv, .parquet or .json (default: none).
        chart: file (.svg or .html) for a chart of the shares with intervals; of more than 30 values, it shows the
            largest significant shares (default: none).
        confidence: confidence of all printed intervals together; in files and with --all, of each interval.
        every: print all values, including those that are not significant.
        heavy_hitters: restrict --out, --chart and --json to significant values, with simultaneous intervals.
        simplex: also give nonnegative shares with sum 1; intervals remain those of the unbiased shares.
        counts_only: write only how many reports support each value, to --out (.json), to estimate elsewhere.
        json: print only JSON, with all values, to standard output.
        engine: spark counts reports on a cluster that reads the same files; local uses this machine.
        master: address of the Spark cluster (default: this machine).
    """
    cluster = master_of(engine, master)
    _check_options(out, chart, confidence, counts_only=counts_only, json=json)
    if counts_only and (every or heavy_hitters or simplex):
        misused("--counts-only makes no estimates: remove --all, --heavy-hitters and --simplex.")
    if every and heavy_hitters:
        misused("--all and --heavy-hitters exclude each other.")
    from hushuffle.collection.column_views import is_of_views  # noqa: PLC0415 - only when needed
    from hushuffle.collection.sums import is_of_sum  # noqa: PLC0415

    options: dict[str, object] = {"--manifest": manifest, "--chart": chart, "--all": every}
    options |= {"--heavy-hitters": heavy_hitters, "--simplex": simplex, "--counts-only": counts_only}
    options |= {"--engine": cluster, "more than one folder": reports[1:]}
    if any(is_of_sum(folder) for folder in reports):
        sums.refuse(options, "a [sum] has one estimate, from one folder. Pass a single folder, without these options.")
        return sums.estimate(reports[0], out=out, confidence=confidence, as_json=json)
    if any(is_of_views(folder) for folder in reports):
        sums.refuse(options, "a reach study has one release. Pass a single folder, without these options.")
        return sums.estimate_reach(reports[0], out=out, confidence=confidence, as_json=json)
    from hushuffle.collection.estimate import counting_on, tally_columns  # noqa: PLC0415 - only when needed

    counting = nullcontext(None) if cluster is None else counting_on(cluster)
    with progress(enabled=not json and sys.stderr.isatty()) as tell, counting as count:
        tallies = tally_columns(reports, manifest=manifest, progress=tell, count=count)
    if counts_only and out is not None:
        return _save_counts(tallies, out)
    estimates = {name: tally.estimate() for name, tally in tallies.items()}
    from hushuffle.estimation import project_on_simplex  # noqa: PLC0415
    from hushuffle.tables.value_files import chosen_rows, frequency_table, save_tables, tables_text  # noqa: PLC0415

    shown = {name: tallies[name].told_from_noise(made, confidence=confidence) for name, made in estimates.items()}
    projected = {name: project_on_simplex(made) for name, made in estimates.items()} if simplex else {}
    every_value = {
        name: frequency_table(
            estimated,
            tallies[name].labels,
            confidence=confidence,
            above=shown[name].among(estimated.k),
            simplex=projected.get(name),
        )
        for name, estimated in estimates.items()
    }
    significant = {
        name: chosen_rows(
            every_value[name], shown[name].values, intervals=shown[name].intervals, people=estimates[name].n
        )
        for name in estimates
    }
    tables = significant if heavy_hitters else every_value
    answers = {name: tally.estimated(confidence=confidence) for name, tally in tallies.items()}
    facts: dict[str, Any] = {
        name: _facts(tally, confidence, shown[name], answers[name], at_once=heavy_hitters, simplex=projected.get(name))
        for name, tally in tallies.items()
    }
    if out is not None:
        save_tables(out, tables, facts)
    if chart is not None:
        _draw(chart, tallies, {**estimates, **projected}, {} if every else shown, confidence, at_once=heavy_hitters)
    if json:
        sys.stdout.write(tables_text(tables, facts))
    else:
        _print(every_value if every else significant, facts, answers, every=every)
    warn({name: tally.warnings(confidence=confidence) for name, tally in tallies.items()})
    from hushuffle.specification.warnings import total_warnings  # noqa: PLC0415 - only when needed

    first = next(iter(tallies.values()))
    protocols = {name: tally.protocol for name, tally in tallies.items()}
    warn({"": total_warnings(protocols, rounds=first.specification.rounds or 1)})
    if not json and (out is not None or chart is not None):
        sys.stdout.write("\n" + "".join(f"Wrote {file}\n" for file in (out, chart) if file is not None))
    return Exit.DONE


def _check_options(out: Path | None, chart: Path | None, confidence: float, *, counts_only: bool, json: bool) -> None:
    if not 0 < confidence < 1:
        misused(f"--confidence must be between 0 and 1, got {confidence}.")
    if counts_only and (json or chart is not None or out is None or out.suffix != ".json"):
        misused("--counts-only needs --out FILE.json, and excludes options that print or draw.")
    if chart is not None and chart.suffix not in _CHARTS:
        misused(f"--chart must be a file of these kinds: {', '.join(_CHARTS)}, got {chart.name}.")
    from hushuffle.tables.value_files import check_kind  # noqa: PLC0415 - only when needed

    with from_options():
        if out is not None:
            check_kind(out)
    from hushuffle.files.private_files import refuse_file  # noqa: PLC0415 - only when needed

    for file in (out, chart):
        if file is not None:
            refuse_file(file)


def _save_counts(tallies: Mapping[str, Tally], out: Path) -> Exit:
    from hushuffle.collection.released import counts_text  # noqa: PLC0415
    from hushuffle.tables.value_files import save_text  # noqa: PLC0415 - only when needed

    tally, *others = tallies.values()
    if others:
        misused(f"--counts-only needs one column: pass FOLDER/NAME, where NAME is one of {', '.join(tallies)}.")
    save_text(out, counts_text(tally.manifest, tally.counts.counts))
    sys.stdout.write(f"Wrote {out}\n")
    return Exit.DONE


def _facts(
    tally: Tally,
    confidence: float,
    shown: HeavyHitters,
    estimated: Estimated | None,
    *,
    at_once: bool,
    simplex: Estimate | None,
) -> dict[str, Any]:
    most = tally.specification.population.most
    facts: dict[str, Any] = {
        "people": tally.manifest.people,
        "unit": "people" if most == 1 else "reports",
        "reports": tally.manifest.people,
        "reports_per_person": most,
        "dummies": tally.manifest.dummies if tally.manifest.sampled is None else None,
        **({} if tally.manifest.sampled is None else {"sampled_messages": tally.manifest.sampled}),
        "confidence": confidence,
        "threshold": shown.threshold,
        "values": tally.randomizer.inputs,
        "intervals": "all at once" if at_once else "each",
    }
    gain = tally.poisoning()
    facts["fake_users"] = {
        "fakes": gain.fakes,
        "raised": gain.raised.upper,
        "lowered": gain.lowered.upper,
        "following_the_protocol": gain.honest.upper,
        "values_at_once": gain.at_once,
        "in_words": f"If {tally.fakes.words} took part, they could move {gain.words}.",
    }
    if most > 1:
        facts["meaning"] = f"people, people_low and people_high count reports: up to {most:,} per person."
    facts |= tally.weights
    if estimated is not None:
        facts[tally.answer.estimated_as] = dict(estimated.facts)
    if simplex is not None:
        zeros = simplex.frequencies == 0
        lowered = float((simplex.raw - simplex.frequencies)[~zeros].mean())
        facts["simplex"] = {"set_to_zero": int(zeros.sum()), "others_lowered_by": lowered}
    return facts


def _draw(
    chart: Path,
    tallies: Mapping[str, Tally],
    estimates: Mapping[str, Estimate],
    shown: Mapping[str, HeavyHitters],
    confidence: float,
    *,
    at_once: bool,
) -> None:
    from hushuffle.report.frequency_chart import Frequencies, frequency_html, frequency_svg  # noqa: PLC0415
    from hushuffle.tables.value_files import save_text  # noqa: PLC0415 - only when needed

    parts = [
        Frequencies(
            title=name or tally.specification.title or "Estimated shares",
            estimate=estimates[name],
            labels=tally.labels,
            confidence=confidence,
            people=tally.manifest.people,
            above=shown[name].among(estimates[name].k) if name in shown else None,
            at_once=at_once,
        )
        for name, tally in tallies.items()
    ]
    save_text(chart, frequency_svg(parts) if chart.suffix == ".svg" else frequency_html(parts))


def _print(
    tables: Mapping[str, pl.DataFrame],
    facts: Mapping[str, dict[str, Any]],
    estimated: Mapping[str, Estimated | None],
    *,
    every: bool,
) -> None:
    for position, (name, table) in enumerate(tables.items()):
        sys.stdout.write("\n" * bool(position) + (f"{name}: " if name else ""))
        dummies, sampled = facts[name]["dummies"], facts[name].get("sampled_messages")
        more = f"{dummies:,} dummies" if sampled is None else f"{sampled:,} messages: sampled reports and dummies"
        sys.stdout.write(f"{facts[name]['people']:,} {facts[name]['unit']}, {more}.\n\n")
        _print_answer(estimated[name], facts[name]["confidence"])
        notes = [*_of_simplex(facts[name]), facts[name]["fake_users"]["in_words"]]
        if every:
            _print_rows(table.sort("frequency", descending=True), facts[name], "each by itself", notes)
        else:
            notes = [*_of_others(table, facts[name]), *notes]
            _print_rows(table.head(_SHOWN), facts[name], "all at once", notes)


def _print_answer(estimated: Estimated | None, confidence: float) -> None:
    from hushuffle.report.summary import item, printed  # noqa: PLC0415 - only when needed
    from hushuffle.report.summary import table as grid  # noqa: PLC0415

    if estimated is None:
        return
    shown = grid(expand=False)
    for name in ("", "Estimate", f"{100 * confidence:g}% interval"):
        shown.add_column(name, justify="right" if name else "left")
    for row in estimated.rows:
        shown.add_row(*row)
    parts = [*([shown] if estimated.rows else []), *(item(sentence) for sentence in estimated.notes)]
    sys.stdout.write(printed(parts, width(), color=color()) + "\n")


def _of_others(rows: pl.DataFrame, facts: dict[str, Any]) -> Iterator[str]:
    """Notes about the values that are not among the most frequent of `rows`, the significant values."""
    if rows.height > _SHOWN:
        yield f"{rows.height - _SHOWN:,} more values are statistically significant; --out writes all."
    below = facts["values"] - rows.height
    if below:
        people = math.ceil(max(facts["threshold"], 0.0) * facts["people"])
        held = "people hold" if facts["unit"] == "people" else "reports are of"
        rare = f" A value that fewer than about {people:,} {held} is usually not significant." * (
            people <= facts["people"]
        )
        yield (
            f"{below:,} of {facts['values']:,} values are not shown: they are not statistically significant, and may "
            f"have no holders.{rare} --all prints them."
        )


def _of_simplex(facts: dict[str, Any]) -> Iterator[str]:
    if "simplex" not in facts:
        return
    done, lowered = facts["simplex"], facts["simplex"]["others_lowered_by"]
    yield (
        f"Shares and people are projected to the simplex: they are nonnegative and add up to 1. Of {facts['values']:,} "
        f"values {done['set_to_zero']:,} became 0; the others are {'lower' if lowered >= 0 else 'higher'} by "
        f"{abs(lowered):.2g} than the unbiased ones. Standard errors and intervals belong to the unbiased shares."
    )


def _print_rows(rows: pl.DataFrame, facts: dict[str, Any], meant: str, notes: Iterable[str]) -> None:
    from hushuffle.report.summary import item, printed, text  # noqa: PLC0415 - only when needed
    from hushuffle.report.summary import table as grid  # noqa: PLC0415

    shown, of = grid(expand=False), "simplex_" if "simplex" in facts else ""
    interval = f"{100 * facts['confidence']:g}% interval"
    for name in ("Value", "Share", "Unbiased" if of else "Error", interval, facts["unit"].capitalize(), interval):
        of_text = name == "Value"
        shown.add_column(name, justify="left" if of_text else "right", overflow="fold", no_wrap=not of_text)
    for row in rows.iter_rows(named=True):
        shown.add_row(
            text(row["value"]),
            f"{row[f'{of}frequency']:.4f}",
            f"{row['frequency' if of else 'standard_error']:.4f}",
            f"{row['low']:.4f} to {row['high']:.4f}",
            f"{row[f'{of}people']:,.0f}",
            f"{math.floor(row['people_low']):,} to {math.ceil(row['people_high']):,}",
        )
    meaning = f"Error: standard error of a share. The intervals hold {meant}."
    parts = [*([shown] if rows.height else []), *(item(note) for note in (*([meaning] if rows.height else []), *notes))]
    sys.stdout.write(printed(parts, width(), color=color()))
