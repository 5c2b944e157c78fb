"""`hushuffle inspect`."""

from __future__ import annotations

import json as json_text
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hushuffle.cli.console import Exit, color, misused, progress, width

if TYPE_CHECKING:
    from hushuffle.tables.inspection import Inspection, Profile

_Flag = Parameter(negative=(), show_default=False)
_PRIVATE = "This output shows true data. Only the data's owner may see it: store it where the data is."
_VALUES = 3
_MANY = 20
SCHEMA_VERSION = 1


def inspect(
    file: str, /, *, column: str | None = None, out: Path | None = None, json: Annotated[bool, _Flag] = False
) -> Exit:
    """Show the owner of a table its contents, and draft a specification.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle inspect examples/places.csv
      hushuffle inspect examples/places.csv --out hushuffle-out/places.toml

    Shows true data: the columns with their types, values, frequencies, missing
    and repeated values. Guesses the encoding and the separator of CSV files. Check
    the draft: assess and collect accept it only after you have written in
    population.person to whom a row belongs.

    Args:
        file: a CSV or Parquet file, or a glob of such files.
        column: column to show in detail and to use in the draft (default: one whose values many records share).
        out: new file (.toml) for the draft (default: print it).
        json: print only JSON to standard output.
    """
    if out is not None and out.exists():
        misused(f"{out} exists and is not overwritten. Choose a new file.")
    if out is not None:
        from hushuffle.files.private_files import refuse_file  # noqa: PLC0415 - only when needed

        refuse_file(out)
    from hushuffle.specification.draft import candidates, data_name, drafted  # noqa: PLC0415 - only when needed
    from hushuffle.tables.inspection import inspect_table  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        inspection = inspect_table(file, columns=[] if column is None else [column], people=True, progress=tell)
    chosen = inspection.column(column) if column is not None else next(iter(candidates(inspection)), None)
    draft = None
    if chosen is not None and chosen.present and chosen.kind != "other":
        draft = drafted(inspection, chosen, data=data_name(file, out))
    if draft is not None and out is not None:
        _write(out, draft)
    if json:
        sys.stderr.write(f"hushuffle: {_PRIVATE}\n")
        sys.stdout.write(_as_json(inspection, None if chosen is None else chosen.name, draft))
    else:
        _print(inspection, column)
        _print_draft(draft, out, "" if chosen is None or column is not None else chosen.name)
    return Exit.DONE


def _write(out: Path, draft: str) -> None:
    """Writes a draft to a new file, completely or not at all; raises an error if the file exists."""
    from hushuffle.files.causes import naming  # noqa: PLC0415
    from hushuffle.files.private_files import private_file  # noqa: PLC0415 - only when needed

    with naming(out), private_file(out, first=True) as file:
        file.write(draft.encode())


def _print(inspection: Inspection, only: str | None) -> None:
    from hushuffle.report.summary import item, printed, table, text  # noqa: PLC0415 - only when needed
    from hushuffle.specification.draft import repeats  # noqa: PLC0415

    shown = table(expand=False)
    for head in ("Column", "Values are", "Missing", "Different", "Records each", "Most frequent"):
        side = "left" if head in ("Column", "Values are", "Most frequent") else "right"
        shown.add_column(head, justify=side, overflow="fold")  # type: ignore[arg-type]
    columns = [column for column in inspection.columns if only in (None, column.name)]
    for column in columns:
        shown.add_row(
            text(column.name),
            f"{column.type}, not read" if column.kind == "other" else column.kind,
            f"{column.missing:,}",
            "" if column.kind == "other" else f"{'' if column.exact else 'about '}{column.distinct:,}",
            repeats(column) if column.present and column.kind != "other" else "",
            text(_frequent(column, _VALUES if only is None else _MANY)),
        )
    heading = [text(_PRIVATE), text(""), text(_heading(inspection, len(columns))), text("")]
    notes = [text(""), *(item(note) for note in _notes(inspection))]
    sys.stdout.write(printed([*heading, shown, *(notes if len(notes) > 1 else [])], width(), color=color()))


def _heading(inspection: Inspection, columns: int) -> str:
    where = inspection.source if inspection.files == 1 else f"{inspection.source} ({inspection.files:,} files)"
    form = ""
    if inspection.form is not None and inspection.separator is not None:
        from hushuffle.tables.csv_form import separator_name  # noqa: PLC0415 - only when needed

        form = (
            f" It seems to be {inspection.form.encoding}, with {separator_name(inspection.separator)} between fields."
        )
    shown = "1 column" if columns == 1 else f"{columns:,} columns"
    return f"{where}: {inspection.records:,} records, {shown} shown.{form}"


def _frequent(column: Profile, most: int) -> str:
    if not column.exact or column.unique:
        return ""
    parts = [f"{value} ({count:,})" for value, count in column.counts.head(most).iter_rows()]
    return ", ".join(parts) + (", ..." if column.counts.height > most else "")


def _notes(inspection: Inspection) -> Iterator[str]:
    from hushuffle.tables.doubts import names_a_value  # noqa: PLC0415 - only when needed

    if inspection.form is not None and (odd := [column.name for column in inspection.columns if names_a_value(column)]):
        yield (
            f"The line of column names may be missing: {', '.join(map(repr, odd[:_VALUES]))} "
            f"{'looks' if len(odd) == 1 else 'look'} like a value. If so, add a line of names above the first record."
        )
    for column in inspection.columns:
        if column.may_name_people:
            yield f"{column.name}: {_repeating(column)}{_spellings(column)}"
        elif column.unique:
            different = f"{column.name}: every record has a different value. This may be the column for `collect --id`."
            yield different + _spellings(column)
        elif column.exact and column.kind == "text":
            tidying = column.tidying
            if equal := column.distinct - column.different(tidying):
                keys = " and ".join(key for key in ("trim", "casefold") if getattr(tidying, key))
                alike = f"{equal:,} values differ from others by spaces or capital letters alone"
                yield f"{column.name}: {alike}: {keys}."
        if not column.may_name_people:
            yield from _doubts(column)


def _doubts(column: Profile) -> Iterator[str]:
    from hushuffle.tables.doubts import missing_marks, typing_errors  # noqa: PLC0415 - only when needed

    if marks := missing_marks(column):
        named = ", ".join(f"{doubt.value!r} ({doubt.records:,})" for doubt in marks[:_MANY])
        yield f"{column.name}: these values look like missing answers: {named}. Only empty fields count as missing."
    if errors := typing_errors(column):
        named = ", ".join(f"{doubt.value!r} ({doubt.records:,}) of {doubt.meant!r}" for doubt in errors[:_MANY])
        yield f"{column.name}: these values look like typing errors: {named}."


def _repeating(column: Profile) -> str:
    """How often values occur, and what this means if values are ids of people."""
    from hushuffle.specification.draft import repeats  # noqa: PLC0415 - only when needed

    people = f"If the column identifies the person of each row, these {column.present:,} rows belong to"
    if column.repeated is None:
        return f"about {column.distinct:,} different values, too many to count repeats. {people} about as many people."
    return (
        f"{column.repeated:,} of {column.distinct:,} values occur more than once, {repeats(column)} rows each on "
        f"average. {people} {column.distinct:,} people."
    )


def _spellings(column: Profile) -> str:
    """How many ids are other spellings of the same id; "" if there are none."""
    if not column.other_spellings:
        return ""
    return (
        f" {column.other_spellings:,} values differ from others only by spaces, capital letters or how a number is "
        "written: as ids they are rejected, because they may identify the same people."
    )


def _print_draft(draft: str | None, out: Path | None, picked: str) -> None:
    column = f"The draft is for column {picked!r}. To choose another, pass --column NAME.\n" if picked else ""
    if draft is None:
        why = "no column has values that many records share. Choose a column with --column."
        sys.stdout.write(f"\nNo specification is drafted: {why}\n")
    elif out is None:
        sys.stdout.write(f"\nDraft of a specification (--out FILE.toml writes it):\n{column}\n{draft}")
    else:
        sys.stdout.write(f"\nWrote {out}\n{column}")


def _as_json(inspection: Inspection, chosen: str | None, draft: str | None) -> str:
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "content": "inspection of true data",
        "source": inspection.source,
        "files": inspection.files,
        "records": inspection.records,
        "encoding": None if inspection.form is None else inspection.form.encoding,
        "separator": inspection.separator,
        "columns": [_column(column) for column in inspection.columns],
        "drafted_for": chosen,
        "draft": draft,
    }
    return json_text.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _column(column: Profile) -> dict[str, Any]:
    values = column.counts.head(_MANY) if column.exact and not column.unique else column.counts.head(0)
    return {
        "name": column.name,
        "kind": column.kind,
        "type": column.type,
        "missing": column.missing,
        "distinct": column.distinct,
        "distinct_is_exact": column.exact,
        "records_each": column.repeats,
        "occur_more_than_once": column.repeated,
        "may_name_people": column.may_name_people,
        "values": [{"value": value, "records": count} for value, count in values.iter_rows()],
    }
