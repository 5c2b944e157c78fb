"""The commands `collect` and `estimate` for sums in which each client sends several messages."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushuffle.cli.console import Exit, misused, print_lines
from hushuffle.cli.options import json_text

if TYPE_CHECKING:
    from hushuffle.collection.sums import CollectedSum
    from hushuffle.estimation.sums import SumEstimate


def refuse(options: Mapping[str, object], what: str) -> None:
    """Raise an error that names the options that were given but have no effect on sums."""
    given = [name for name, value in options.items() if value]
    if given:
        misused(f"{', '.join(given)}: {what}")


def described(made: CollectedSum) -> list[str]:
    """Return lines of text that describe the release."""
    protocol = made.protocol
    lines = [
        protocol.describe(),
        f"Local epsilon infinity; central epsilon {made.central} at delta = {protocol.delta:g}.",
        f"Each person sent {protocol.messages_per_person:,} messages, {protocol.bits_per_person / 8:g} bytes.",
        f"Each row counts as one person: {made.protocol.n:,} rows, {made.protocol.n:,} people.",
    ]
    if made.total is not None:
        times, epsilon, delta = made.total
        lines.append(f"All {times:,} rounds together: central epsilon {epsilon} at delta = {delta:g}.")
    if made.dropped:
        lines.append(f"Dropped {made.dropped:,} records without an answer (the files do not record this number).")
    if made.clipped:
        percent = 100 * made.clipped / protocol.n
        lines.append(
            f"{percent:.3g} % of the numbers were outside the bounds and replaced by the nearer bound (the files do "
            "not record this share)."
        )
    if made.repeated:
        lines.append("This sum was collected before: the same messages, in another order.")
    return lines


def estimate(folder: Path, *, out: Path | None, confidence: float, as_json: bool) -> Exit:
    """Print the estimate of the sum that a folder holds, or write it to a file."""
    from hushuffle.collection.sums import estimate_folder  # noqa: PLC0415 - only when needed
    from hushuffle.tables.value_files import save_text  # noqa: PLC0415

    if out is not None and out.suffix != ".json":
        misused(f"--out must be a .json file for a sum, got {out.name}.")
    specification, estimated = estimate_folder(folder)
    facts = _facts(estimated, confidence)
    text = json_text("estimate of a sum", facts)
    if out is not None:
        save_text(out, text)
    if as_json:
        sys.stdout.write(text)
        return Exit.DONE
    lines = [
        specification.title or "A sum by several messages",
        f"{estimated.people:,} people",
        *(_line(name, facts[name], confidence) for name in ("sum", "mean")),
        facts["fake_users"]["in_words"],
        *([] if out is None else ["", f"Wrote {out}"]),
    ]
    print_lines(lines)
    return Exit.DONE


def _line(name: str, figure: Mapping[str, float], confidence: float) -> str:
    ends = f"{figure['low']:.10g} to {figure['high']:.10g}"
    error = f"standard error {figure['standard_error']:.4g}"
    return f"{name}: {figure['value']:.10g} ({error}; {100 * confidence:g} % interval {ends})"


def _facts(estimated: SumEstimate, confidence: float) -> dict[str, Any]:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    low, high = estimated.interval(confidence)[0].tolist()
    figures = {
        name: {
            "value": float(estimated.total[0]) / parts,
            "standard_error": estimated.standard_error / parts,
            "low": low / parts,
            "high": high / parts,
        }
        for name, parts in (("sum", 1), ("mean", estimated.people))
    }
    far = number(estimated.moved(1), up=True)
    words = f"A single Sybil client could have changed the sum by up to {far}, to any possible sum."
    return {
        "people": estimated.people,
        "confidence": confidence,
        **figures,
        "fake_users": {"fakes": 1, "moved": estimated.moved(1), "in_words": words},
    }
