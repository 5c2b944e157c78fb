"""`hushuffle inspect`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hushuffle.cli.console import Exit, Flag, color, misused, print_json, progress, width, write_new

if TYPE_CHECKING:
    from hushuffle.tables.inspection import Inspection, Profile

_List = Parameter(negative=(), consume_multiple=False)
_PRIVATE = "This output shows true data. Only the data's owner may see it: store it where the data is."
_VALUES = 3
_MANY = 20


def inspect(
    file: str,
    /,
    *,
    column: Annotated[list[str] | None, _List] = None,
    person: str | None = None,
    out: Path | None = None,
    json: Flag = False,
) -> Exit:
    """Describe a table to its owner, and draft a specification.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle inspect examples/places.csv
      hushuffle inspect examples/places.csv --out hushuffle-out/places.toml

    Shows true data: the columns with their types, values, frequencies, missing
    and repeated values. Guesses the encoding and the separator of CSV files. Check
    the draft: assess and collect accept it only after you have replaced every "?".
    You decide to whom a row belongs, and bounds of numbers: data must not decide.

    Args:
        file: a CSV or Parquet file, or a glob of such files.
        column: column to show in detail and to use in the draft (default: a column with frequent values). Repeat
            the option for a draft of several [[columns]].
        person: column that identifies the person of each row, or "none" if every row is a different person (default:
            the draft asks for it).
        out: new file (.toml) for the draft (default: print it).
        json: print only JSON to standard output.
    """
    columns = column or []
    if len(set(columns)) < len(columns):
        misused("--column names a column twice. Give each column once.")
    if person in columns:
        misused("--person names a column of --column. Give the column that identifies people, or none.")
    if person == "?":
        misused("--person must be a column, or none. Leave the option out if you have not decided.")
    if out is not None and out.exists():
        misused(f"{out} exists and is not overwritten. Choose a new file.")
    if out is not None:
        from hushuffle.files.private_files import refuse_file  # noqa: PLC0415 - only when needed

        refuse_file(out)
    from hushuffle.specification.draft import data_name, drafted  # noqa: PLC0415 - only when needed
    from hushuffle.tables.inspection import inspect_table  # noqa: PLC0415

    ids = [] if person in (None, "none") else [person]
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        inspection = inspect_table(file, columns=[*columns, *ids] if columns else [], people=True, progress=tell)
    chosen = _chosen(inspection, columns, person)
    draft = None
    if chosen and all(each.present and each.kind != "other" for each in chosen):
        draft = drafted(inspection, *chosen, data=data_name(file, out), person=person)
    if draft is not None and out is not None:
        write_new(out, draft)
    if json:
        sys.stderr.write(f"hushuffle: {_PRIVATE}\n")
        print_json("inspection of true data", _document(inspection, [each.name for each in chosen], draft))
    else:
        _print(inspection, columns, person)
        _print_draft(draft, out, chosen[0].name if chosen and not columns else "")
    return Exit.DONE


def _chosen(inspection: Inspection, columns: Sequence[str], person: str | None) -> list[Profile]:
    """The columns of the draft, if they fit the column that identifies people."""
    from hushuffle.specification.draft import candidates, most_rows  # noqa: PLC0415 - only when needed

    if person not in (None, "none"):
        names = [column.name for column in inspection.columns]
        if person not in names:
            misused(f"--person: the table has no column {person!r}. It has {', '.join(map(repr, names))}.")
        if len(columns) > 1 and most_rows(inspection.column(person)) != 1:
            misused(
                f"Several columns need one row per person, but {person!r} has repeated, missing or too many different "
                "ids. Draft one column at a time: give --column once."
            )
    if columns:
        return [inspection.column(name) for name in columns]
    return [column for column in candidates(inspection) if column.name != person][:1]


def _print(inspection: Inspection, only: Sequence[str], person: str | None) -> None:
    from hushuffle.report.summary import item, printed, table, text  # noqa: PLC0415 - only when needed
    from hushuffle.specification.draft import repeats  # noqa: PLC0415

    shown = table(expand=False)
    for head in ("Column", "Values are", "Missing", "Different", "Records each", "Most frequent"):
        side = "left" if head in ("Column", "Values are", "Most frequent") else "right"
        shown.add_column(head, justify=side, overflow="fold")  # type: ignore[arg-type]
    columns = [column for column in inspection.columns if not only or column.name in (*only, person)]
    for column in columns:
        shown.add_row(
            text(column.name),
            f"{column.type}, not read" if column.kind == "other" else column.kind,
            f"{column.missing:,}",
            "" if column.kind == "other" else f"{'' if column.exact else 'about '}{column.distinct:,}",
            repeats(column) if column.present and column.kind != "other" else "",
            text(_frequent(column, _MANY if len(only) == 1 else _VALUES)),
        )
    heading = [text(_PRIVATE), text(""), text(_heading(inspection, len(columns))), text("")]
    notes = [text(""), *(item(note) for note in _notes(inspection, only, person))]
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


def _notes(inspection: Inspection, answers: Sequence[str], person: str | None) -> Iterator[str]:
    from hushuffle.specification.draft import repeated_ids  # noqa: PLC0415 - only when needed
    from hushuffle.tables.inspection import names_a_value  # noqa: PLC0415

    suspects = {column.name for column in repeated_ids(inspection)}

    if inspection.form is not None and (odd := [column.name for column in inspection.columns if names_a_value(column)]):
        yield (
            f"The line of column names may be missing: {', '.join(map(repr, odd[:_VALUES]))} "
            f"{'looks' if len(odd) == 1 else 'look'} like a value. If so, add a line of names above the first record."
        )
    for column in inspection.columns:
        ids = column.may_name_people and column.name not in answers
        if ids and person in (None, column.name):
            yield f"{column.name}: {_repeating(column)}{_spellings(column)}"
        elif ids and person == "none" and column.name in suspects:
            yield (
                f"{column.name}: values repeat, but with --person none each row counts as another person. If the "
                f"column identifies people, pass --person {column.name}."
            )
        elif column.unique:
            different = f"{column.name}: every record has a different value. This may be the column for `collect --id`."
            yield different + _spellings(column)
        elif column.exact and column.kind == "text":
            tidying = column.tidying
            if equal := column.distinct - column.different(tidying):
                keys = " and ".join(key for key in ("trim", "casefold") if getattr(tidying, key))
                alike = f"{equal:,} values differ from others by spaces or capital letters alone"
                yield f"{column.name}: {alike}: {keys}."
        if not ids:
            yield from _doubts(column)


def _doubts(column: Profile) -> Iterator[str]:
    from hushuffle.tables.inspection import missing_marks, typing_errors  # noqa: PLC0415 - only when needed

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
    about = f"The draft is for column {picked!r}. To choose another, pass --column NAME.\n" if picked else ""
    if draft is None:
        why = "no column has values that many records share. Choose a column with --column."
        sys.stdout.write(f"\nNo specification is drafted: {why}\n")
    elif out is None:
        sys.stdout.write(f"\nDraft of a specification (--out FILE.toml writes it):\n{about}\n{draft}")
    else:
        sys.stdout.write(f"\nWrote {out}\n{about}")


def _document(inspection: Inspection, chosen: Sequence[str], draft: str | None) -> dict[str, Any]:
    return {
        "source": inspection.source,
        "files": inspection.files,
        "records": inspection.records,
        "encoding": None if inspection.form is None else inspection.form.encoding,
        "separator": inspection.separator,
        "columns": [_column(column) for column in inspection.columns],
        "drafted_for": list(chosen) if len(chosen) > 1 else next(iter(chosen), None),
        "draft": draft,
    }


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
