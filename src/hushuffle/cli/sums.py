"""What `hushuffle collect` and `hushuffle estimate` do with a sum by several messages."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushuffle.cli.console import Exit, UsageError, width

if TYPE_CHECKING:
    from hushuffle.collection.sums import CollectedSum
    from hushuffle.estimation.sums import SumEstimate


def refuse(options: Mapping[str, object], what: str) -> None:
    """Refuse options that were given and mean nothing here."""
    given = [name for name, value in options.items() if value]
    if given:
        message = f"{', '.join(given)}: {what}"
        raise UsageError(message)


def described(made: CollectedSum) -> list[str]:
    """Return what was released, in lines."""
    protocol = made.protocol
    lines = [
        protocol.describe(),
        f"Local epsilon infinity; central epsilon {made.central} at delta = {protocol.delta:g}.",
        f"Each person sent {protocol.messages_per_person:,} messages, {protocol.bits_per_person / 8:g} bytes.",
        "One row is taken for one person.",
    ]
    if made.dropped:
        lines.append(f"Dropped {made.dropped:,} records without an answer (the files do not record this number).")
    if made.clipped:
        percent = 100 * made.clipped / protocol.n
        lines.append(
            f"{percent:.3g} % of the numbers were outside the bounds and taken for the nearer one (the files do not "
            "record this share)."
        )
    if made.repeated:
        lines.append("This sum was collected before: the same messages, in another order.")
    return lines


def estimate(folder: Path, *, out: Path | None, confidence: float, as_json: bool) -> Exit:
    """Print the sum in a folder, or write it to a file."""
    from hushuffle.collection.sums import estimate_folder  # noqa: PLC0415 - only when needed
    from hushuffle.tables.frequency_files import save_text  # noqa: PLC0415

    if out is not None and out.suffix != ".json":
        message = f"--out must be a .json file for a sum, got {out.name}."
        raise UsageError(message)
    specification, found = estimate_folder(folder)
    facts = _facts(found, confidence)
    text = json.dumps(facts, indent=2, allow_nan=False) + "\n"
    if out is not None:
        save_text(out, text)
    if as_json:
        sys.stdout.write(text)
        return Exit.DONE
    lines = [
        specification.title or "A sum by several messages",
        f"{found.people:,} people",
        *(_line(name, facts[name], confidence) for name in ("sum", "mean")),
        facts["fake_users"]["in_words"],
        *([] if out is None else ["", f"Wrote {out}"]),
    ]
    _print(lines)
    return Exit.DONE


def _print(lines: Sequence[str]) -> None:
    """Print lines, folded to the terminal; the name of a file stays whole."""
    for line in lines:
        whole = line.startswith("Wrote ") or not line
        parts = [line] if whole else textwrap.wrap(line, width(), break_long_words=False, break_on_hyphens=False)
        sys.stdout.write("".join(f"{part}\n" for part in parts))


def _line(name: str, figure: Mapping[str, float], confidence: float) -> str:
    ends = f"{figure['low']:.10g} to {figure['high']:.10g}"
    error = f"standard error {figure['standard_error']:.4g}"
    return f"{name}: {figure['value']:.10g} ({error}; {100 * confidence:g} % interval {ends})"


def _facts(found: SumEstimate, confidence: float) -> dict[str, Any]:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    low, high = found.interval(confidence)[0].tolist()
    figures = {
        name: {
            "value": float(found.total[0]) / parts,
            "standard_error": found.standard_error / parts,
            "low": low / parts,
            "high": high / parts,
        }
        for name, parts in (("sum", 1), ("mean", found.people))
    }
    far = number(found.moved(1), up=True)
    words = f"A single fake person could have moved the sum by up to {far}: to any that people could have."
    return {
        "people": found.people,
        "confidence": confidence,
        **figures,
        "fake_users": {"fakes": 1, "moved": found.moved(1), "in_words": words},
    }
