"""The commands `collect` and `estimate` for sums in which each client sends several messages, and for reach studies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushuffle.cli.console import Exit, json_text, misused, print_lines

if TYPE_CHECKING:
    from hushuffle.collection.request import Request
    from hushuffle.collection.sums import CollectedSum
    from hushuffle.estimation.sums import SumEstimate
    from hushuffle.specification import Collection


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

    _check_out(out, "a sum")
    specification, estimated = estimate_folder(folder)
    facts = _facts(estimated, confidence)
    lines = [
        specification.title or "A sum by several messages",
        f"{estimated.people:,} people",
        *(_line(name, facts[name], confidence) for name in ("sum", "mean")),
        facts["fake_users"]["in_words"],
    ]
    return _given(json_text("estimate of a sum", facts), lines, out, as_json=as_json)


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


def collect_reach(file: Collection, out: Path, request: Request) -> Exit:
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


def estimate_reach(folder: Path, *, out: Path | None, confidence: float, as_json: bool) -> Exit:
    """Print the reach, overlaps and contacts that a folder holds, or write them to a file."""
    from hushuffle.collection.column_views import estimate_views  # noqa: PLC0415 - only when needed

    _check_out(out, "a reach study")
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
    return _given(text, lines, out, as_json=as_json)


def _check_out(out: Path | None, what: str) -> None:
    if out is not None and out.suffix != ".json":
        misused(f"--out must be a .json file for {what}, got {out.name}.")


def _given(text: str, lines: list[str], out: Path | None, *, as_json: bool) -> Exit:
    """Write the JSON document `text` to `out`, if given, and print it or the lines."""
    from hushuffle.tables.value_files import save_text  # noqa: PLC0415 - only when needed

    if out is not None:
        save_text(out, text)
        lines = [*lines, "", f"Wrote {out}"]
    if as_json:
        sys.stdout.write(text)
    else:
        print_lines(lines)
    return Exit.DONE
