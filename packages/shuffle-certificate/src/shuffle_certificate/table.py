"""Write the results of checks as a table of plain text or as JSON, and determine the exit code."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence

from .checks import AGREES, CONTRADICTED, NOT_CHECKED, NOT_SHOWN, Row

DONE, FAILED, REFUTED = 0, 1, 3
_WORDS = (CONTRADICTED, NOT_SHOWN, AGREES, NOT_CHECKED)


def verdict_of(rows: Sequence[Row]) -> int:
    """Return the exit code: 3 if a claim is contradicted or not proven, 1 if no claim was checked, else 0."""
    verdicts = {row.verdict for row in rows}
    if verdicts & {CONTRADICTED, NOT_SHOWN}:
        return REFUTED
    return DONE if AGREES in verdicts else FAILED


def written(rows: Sequence[Row]) -> str:
    """Return the results of checks as a table of plain text."""
    heads = (
        "figure",
        "claimed epsilon",
        "at delta",
        "delta shown at lower bound",
        "at upper bound",
        "verdict",
        "seconds",
    )
    cells = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    for place, row in enumerate(rows, 1):
        if row.reason:
            lines[place] += f"\n    {row.reason}"
    counted = [f"{word}: {count}" for word in _WORDS if (count := sum(row.verdict == word for row in rows))]
    return "\n".join([*lines, "", ", ".join(counted) or "there is no figure", summary(rows), ""])


def as_json(rows: Sequence[Row]) -> str:
    """Return the results of checks as a JSON document with one object per figure; infinity is the text "infinity"."""

    def plain(value: object) -> object:
        if isinstance(value, tuple):
            return [plain(part) for part in value]
        return "infinity" if isinstance(value, float) and math.isinf(value) else value

    worst = next((word for word in _WORDS if any(row.verdict == word for row in rows)), NOT_CHECKED)
    checked = sum(row.verdict != NOT_CHECKED for row in rows)
    document = {
        "schema_version": 1,
        "content": "checks of figures",
        "checks": [{key: plain(value) for key, value in vars(row).items()} for row in rows],
        "summary": {"verdict": worst, "reason": summary(rows), "figures": len(rows), "checked": checked},
    }
    return json.dumps(document, indent=2) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    if row.claimed is None or row.delta is None:
        return row.question, "", "", "", "", row.verdict, ""
    at_least = "" if row.at_lower is None else f">= {row.at_lower:.9g}"
    at_most = "" if row.at_upper is None else f"<= {row.at_upper:.9g}"
    claimed = f"{row.claimed[0]:.7g} to {row.claimed[1]:.7g}"
    return row.question, claimed, f"{row.delta:g}", at_least, at_most, row.verdict, f"{row.seconds:.2f}"


def summary(rows: Sequence[Row]) -> str:
    """Return how many figures were checked, and why the others were not."""
    reasons = Counter(row.reason for row in rows if row.verdict == NOT_CHECKED)
    checked = f"{len(rows) - reasons.total()} of {len(rows)} figures checked"
    why = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
    return f"{checked}; {reasons.total()} not checked: {why}." if reasons else f"{checked}."
