"""The commands `collect` and `estimate` for reach studies with views of columns."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hushuffle.cli.console import Exit, misused, print_lines
from hushuffle.cli.options import json_text

if TYPE_CHECKING:
    from hushuffle.collection.request import Request
    from hushuffle.specification import Collection


def collect(file: Collection, out: Path, request: Request) -> Exit:
    """Collect the publishers' files, and print what was released."""
    from hushuffle.collection.column_views import collect_views  # noqa: PLC0415 - only when needed

    released = collect_views(file.whole, out=out, request=request)
    design = released.design
    cells = sum(view.cells for view in design.views)
    lines = [
        f"Counted {design.columns:,} columns of {design.publishers} publishers in {len(design.views):,} views.",
        f"Released {cells:,} counts with {design.dummies:,.6g} dummies on average.",
        f"Central epsilon {released.central} at delta = {released.delta:g}, for one person added or removed.",
        "Another release of the same people costs as much again. Estimates from this release cost nothing.",
    ]
    print_lines([*lines, "", f"Wrote {released.file}"])
    return Exit.DONE


def estimate(folder: Path, *, out: Path | None, confidence: float, as_json: bool) -> Exit:
    """Print the reach, overlaps and contacts that a folder holds, or write them to a file."""
    from hushuffle.collection.column_views import estimate_views  # noqa: PLC0415 - only when needed
    from hushuffle.tables.value_files import save_text  # noqa: PLC0415

    if out is not None and out.suffix != ".json":
        misused(f"--out must be a .json file for a reach study, got {out.name}.")
    released = estimate_views(folder)
    rows, lines = [], [released.title or "A reach study"]
    for question, answer in released.answers.items():
        interval = answer.interval(confidence)
        names = [released.names[place] for place in question.publishers]
        rows.append(
            {
                "label": question.label,
                "question": question.question,
                "publishers": names,
                **({"contacts": question.contacts} if question.contacts else {}),
                "people": answer.estimate,
                "standard_error": answer.standard_error,
                "low": interval.lower,
                "high": interval.upper,
            }
        )
        ends = f"{100 * confidence:g} % interval {interval.lower:,.0f} to {interval.upper:,.0f}"
        lines.append(f"{question.label}: {answer.estimate:,.0f} people ({ends})")
    lines += [f"{question.label}: no estimate. {reason}" for question, reason in released.refused.items()]
    text = json_text("estimate of reach", {"confidence": confidence, "answers": rows})
    if out is not None:
        save_text(out, text)
    if as_json:
        sys.stdout.write(text)
        return Exit.DONE
    print_lines([*lines, *([] if out is None else ["", f"Wrote {out}"])])
    return Exit.DONE
