"""The commands `collect`, `estimate` and `calibrate` for sums in which each client sends several messages."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushuffle.cli.console import Exit, misused, print_lines
from hushuffle.cli.delivery import judged, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hushuffle.assessment.sum_calibration import SumChoice, SumPoint
    from hushuffle.collection.sums import CollectedSum
    from hushuffle.estimation.sums import SumEstimate
    from hushuffle.specification.sums import SumSpecification

_ROW = "{:<32} {:>9} {:>9} {:>7} {:>9} {:>8}"
_WIDTH = 80


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
    from hushuffle.tables.frequency_files import save_text  # noqa: PLC0415

    if out is not None and out.suffix != ".json":
        misused(f"--out must be a .json file for a sum, got {out.name}.")
    specification, estimated = estimate_folder(folder)
    facts = _facts(estimated, confidence)
    text = json.dumps(facts, indent=2, allow_nan=False) + "\n"
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


def calibrate_file(specification: SumSpecification, folder: Path, *, as_json: bool, strict: bool) -> Exit:
    """Print the levels, noise and messages that meet the targets of a sum."""
    from hushuffle.assessment.sum_calibration import calibrate_sum  # noqa: PLC0415 - only when needed

    choice = calibrate_sum(specification, base_folder=folder)
    text = json.dumps(_choice(choice), indent=2, allow_nan=False) if as_json else "\n".join(_lines(choice))
    sys.stdout.write(f"{text}\n")
    return judged(choice.targets, strict=strict)


def _lines(choice: SumChoice) -> Iterator[str]:
    wanted = (
        [] if choice.epsilon is None else [f"central epsilon at most {choice.epsilon:g} at delta = {choice.delta:g}"]
    )
    if choice.standard_error is not None:
        wanted.append(f"standard error of the mean at most {choice.standard_error:g}")
    yield from _wrapped(choice.title)
    yield from _wrapped(f"As written: {choice.written.protocol.describe()}")
    yield from _wrapped(f"Targets: {', '.join(wanted)}.")
    yield ""
    yield _ROW.format("", "central", "error of", "", "messages", "bits of")
    yield _ROW.format("", "epsilon", "the mean", "levels", "of each", "each")
    for name, point in (
        ("most accurate within the privacy", choice.private),
        ("most private within the accuracy", choice.accurate),
        ("as written", choice.written),
    ):
        if point is not None:
            yield _row(name, point)
    yield ""
    yield from _wrapped(_verdict(choice))
    protocol = choice.proposed.protocol
    noise = protocol.noise
    yield from _wrapped(
        f"Proposed: population.levels = {protocol.levels}, sum.epsilon = {protocol.epsilon!r}, sum.delta = "
        f"{protocol.delta!r}. Noise: discrete Laplace, P(k) proportional to {noise.chance:.9g}^|k|, in steps of "
        f"{protocol.step:.6g}; messages modulo 2^{protocol.modulus.bit_length() - 1}."
    )
    for target in choice.targets:
        yield from _wrapped(f"{target.word.upper()} {target.sentence}")
    yield ""
    yield from _wrapped(
        "The central epsilon (in nats) is certified for all numbers. The error is the standard error if all people "
        "answer, for the numbers with the largest rounding error. The numbers were not read."
    )


def _verdict(choice: SumChoice) -> str:
    if choice.met:
        return "All targets are met."
    if choice.people is not None:
        return (
            f"With {choice.population.n:,} people no settings meet both privacy and accuracy: at least "
            f"{choice.people:,} people are needed."
        )
    if choice.private is not None and choice.accurate is None and choice.standard_error is not None:
        return f"No epsilon up to 40 meets the accuracy target with {choice.population.n:,} people."
    missed = ", ".join(f"targets.{target.key}" for target in choice.targets if not target.met)
    return f"The proposal misses these targets: {missed}."


def _row(name: str, point: SumPoint) -> str:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    protocol, central = point.protocol, number(point.central.upper, up=True)
    error = number(point.error, up=True)
    return _ROW.format(name, central, error, f"{protocol.levels:,}", protocol.messages, protocol.bits_per_person)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, width=_WIDTH)


def _choice(choice: SumChoice) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "title": choice.title,
        "deployment": choice.written.protocol.describe(),
        "population": {"n": choice.population.n},
        "targets": {"epsilon": choice.epsilon, "delta": choice.delta, "standard_error": choice.standard_error},
        "written": _point(choice.written),
        "most_accurate_for_privacy": None if choice.private is None else _point(choice.private),
        "most_private_for_accuracy": None if choice.accurate is None else _point(choice.accurate),
        "people_needed": choice.people,
        "met": choice.met,
        "verdict": verdicts(choice.targets),
        "specification": choice.specification.effective(),
    }


def _point(point: SumPoint) -> dict[str, Any]:
    protocol = point.protocol
    return {
        "epsilon": protocol.epsilon,
        "levels": protocol.levels,
        "step": protocol.step,
        "noise": {"law": "discrete Laplace, of the people needed", "ratio": protocol.noise.chance},
        "messages": protocol.messages,
        "modulus": protocol.modulus,
        "bits_per_person": protocol.bits_per_person,
        "people_needed_honest": protocol.needed,
        "central_epsilon": point.central.as_dict(),
        "standard_error": point.error,
    }
