"""`hushuffle calibrate`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hushuffle.cli.console import Exit, Flag, judged, print_json, progress, verdicts, warn

if TYPE_CHECKING:
    from hushuffle.assessment.targets import Choice, Point

_WIDTH = 80
_NAME = 34
_ROW = "{:<34} {:>9}  {:>20} {:>10}"
_SUM_ROW = "{:<32} {:>9} {:>9} {:>7} {:>9} {:>8}"

_POINTS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "noise": {
        "private": ("largest_for_privacy", "largest that meets the privacy"),
        "accurate": ("smallest_for_accuracy", "smallest that meets the accuracy"),
    },
    "messages": {"private": ("fewest_for_privacy", "fewest that meet the privacy")},
    "sum": {
        "private": ("most_accurate_for_privacy", "most accurate within the privacy"),
        "accurate": ("most_private_for_accuracy", "most private within the accuracy"),
    },
    "columns": {},
    "reach": {
        "private": ("fewest_flips_for_privacy", "fewest flips for the privacy"),
        "accurate": ("most_flips_for_accuracy", "most flips for the accuracy"),
    },
    "views": {
        "private": ("fewest_dummies_for_privacy", "fewest dummies for the privacy"),
        "accurate": ("most_dummies_for_accuracy", "most dummies for the accuracy"),
    },
}
"""For each kind of calibration: the JSON key, and the words in the table, of the deployments that it proposes."""

_HEADS: Final = {
    "noise": (("", "local", "central", "standard"), ("", "epsilon", "epsilon", "error")),
    "messages": (("", "extra", "central", "standard"), ("", "messages", "epsilon", "error")),
    "sum": (
        ("", "central", "error of", "", "messages", "bits of"),
        ("", "epsilon", "the mean", "levels", "of each", "each"),
    ),
    "columns": (("column", "local", "central", "standard"), ("", "epsilon", "epsilon", "error")),
    "reach": (("", "flip", "central", "error of"), ("", "share", "epsilon", "the reach")),
    "views": (("", "dummies", "central", "error of"), ("", "in all", "epsilon", "the reach")),
}
_CLOSING: Final = {
    "noise": "Central epsilon (nats) is certified for every dataset. The standard error is the error of an estimated "
    "share, at the worst true share. The answers were not read.",
    "messages": "Central epsilon (nats) is certified for every dataset. The standard error is the error of an "
    "estimated share. The answers were not read.",
    "sum": "The central epsilon (in nats) is certified for all numbers. The error is the standard error if all people "
    "answer, for the numbers with the largest rounding error. The numbers were not read.",
    "reach": "Central epsilon (nats) is certified for all audiences. The error is the relative standard error of the "
    "reach of all publishers together, for these audiences.",
}
_CHOSEN: Final = {"messages": "messages", "reach": "p", "views": "dummies"}
"""The setting in the first column of the table, where it is not the local epsilon."""
_SHOWN: Final = {"noise": ("epsilon", "standard_error"), "messages": ("epsilon",)}
"""The targets that the table already shows."""


def calibrate(specification: Path, /, *, json: Flag = False, strict: Flag = False) -> Exit:
    """Find the noise that meets the targets of a deployment.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle calibrate examples/calibrate.toml
      hushuffle calibrate examples/sum.toml --json

    Prints the largest local epsilon that meets targets.epsilon and all other
    privacy targets, and the smallest that meets targets.standard_error. If no
    noise meets all targets, prints how many people are needed. For [[columns]],
    multiplies all local epsilons by one factor. For blanket messages, finds their
    smallest rate; for a [sum], levels, noise and messages; for a study of reach,
    the flip probability, or the spread of the dummies. Writes no file.

    Args:
        specification: the TOML file of the deployment, with targets.epsilon.
        json: print only JSON to standard output.
        strict: end with exit code 3 if the proposal misses a target.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics.
    from hushuffle.assessment.deployment import opened  # noqa: PLC0415

    deployment = opened(specification)
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        choice = deployment.calibrate(tell)
    if json:
        print_json("calibration", _document(choice))
    else:
        sys.stdout.write("\n".join([*_lines(choice), ""]))
    warn({"": choice.warnings})
    return judged(choice.targets, strict=strict)


def _document(choice: Choice) -> dict[str, Any]:
    """Return the JSON form."""
    population: dict[str, Any] = {"n": choice.population.n}
    if choice.kind in ("noise", "messages"):
        population["k"] = len(choice.population.labels)
    points = {"written": choice.written} | {
        key: getattr(choice, name) for name, (key, _) in _POINTS[choice.kind].items()
    }
    document = {
        "title": choice.title,
        "deployment": choice.deployment,
        "population": population,
        "targets": {"epsilon": choice.epsilon, "delta": choice.delta, "standard_error": choice.standard_error},
        "rounds": choice.rounds,
        **{key: point and _point(point) for key, point in points.items()},
        "people_needed": choice.people,
        "met": choice.met,
        "binding": choice.binding,
        "verdict": verdicts(choice.targets),
        "warnings": [asdict(warned) for warned in choice.warnings],
    }
    if choice.columns:
        document |= {**_point(choice.proposed), "columns": [_point(column) for column in choice.columns]}
    return document if choice.specification is None else {**document, "specification": choice.specification}


def _point(point: Point) -> dict[str, Any]:
    from hushuffle.model import json_number  # noqa: PLC0415 - only when needed

    settings = {key: json_number(value) if isinstance(value, float) else value for key, value in point.settings.items()}
    error = json_number(point.standard_error)
    return {**settings, "central_epsilon": point.central.as_dict(), "standard_error": error}


def _lines(choice: Choice) -> Iterator[str]:
    """Yield the lines on the terminal."""
    yield from _wrapped(choice.title)
    if choice.deployment:
        yield from _wrapped(f"As written: {choice.deployment}")
    yield from _wrapped(f"Target{'' if choice.columns else 's'}: {', '.join(_wanted(choice))}.")
    yield ""
    rows = [(str(point.settings["name"])[:_NAME], point, False) for point in choice.columns]
    for name, (_, words) in _POINTS[choice.kind].items():
        if (point := getattr(choice, name)) is not None:
            rows.append((words, point, (name == "private") == (choice.kind in _CHOSEN)))
    yield from (_row(cells) for cells in _HEADS[choice.kind])
    yield from (_row((words, *_cells(choice.kind, point, up=up))) for words, point, up in rows)
    if choice.written is not None:
        yield _row(("as written", *_cells(choice.kind, choice.written, up=None)))
    yield ""
    for sentence in _sentences(choice):
        yield from _wrapped(sentence)
    for target in choice.targets:
        if target.key not in _SHOWN.get(choice.kind, ()):
            yield from _wrapped(f"{target.word.upper()} {target.sentence}")
    if (closing := _CLOSING.get("reach" if choice.kind == "views" else choice.kind)) is not None:
        yield from ("", *_wrapped(closing))


def _wanted(choice: Choice) -> Iterator[str]:
    if choice.epsilon is not None:
        of = " of all columns together" if choice.columns else ""
        rounds = f" in all {choice.rounds:,} rounds" if choice.columns and choice.rounds > 1 else ""
        yield f"central epsilon{of}{rounds} at most {choice.epsilon:g} at delta = {choice.delta:g}"
    if choice.standard_error is not None and choice.kind != "messages":
        what = {"sum": "the mean", "reach": "the reach", "views": "the reach"}.get(choice.kind, "a share")
        yield f"standard error of {what} at most {choice.standard_error:g}"


def _row(cells: tuple[str, ...]) -> str:
    return (_ROW if len(cells) == 4 else _SUM_ROW).format(*cells)


def _cells(kind: str, point: Point, *, up: bool | None) -> tuple[str, ...]:
    """Return the figures of a row; what the calibration chose is rounded `up` or down (None: to nearest)."""
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    error = number(point.standard_error, up=True)
    if kind == "sum":
        protocol, central = point.protocol, number(point.central.upper, up=True)
        return central, error, f"{protocol.levels:,}", str(protocol.messages), str(protocol.bits_per_person)
    chosen = point.settings[_CHOSEN.get(kind, "local_epsilon")]
    if up is None and kind != "messages":
        chosen = float(f"{chosen:.9g}")
    return number(chosen, up=up), str(point.central).rpartition(" (")[0].removesuffix(" nats"), error


def _sentences(choice: Choice) -> Iterator[str]:
    """Yield what the calibration found, in sentences."""
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    proposed = choice.proposed
    if choice.kind == "messages":
        each, p = number(1 + proposed.settings["messages"], up=True), proposed.settings["p"]
        yield f"Each person sends {each} messages on average: p = {p:.9g} meets the privacy target."
    elif choice.kind == "columns":
        factor = number(proposed.settings["factor"], up=False)
        yield (
            f"The local epsilons of all columns can be multiplied by at most {factor}: all columns together then have "
            f"central epsilon {proposed.central}."
        )
    elif choice.kind == "reach":
        yield f"Proposed: randomizer.p = {proposed.settings['p']!r}."
    elif choice.kind == "views":
        yield from _verdict_on_views(choice)
    elif choice.kind == "sum":
        yield _verdict_on_sum(choice)
        protocol = proposed.protocol
        yield (
            f"Proposed: population.levels = {protocol.levels}, sum.epsilon = {protocol.epsilon!r}, sum.delta = "
            f"{protocol.delta!r}. Noise: discrete Laplace, P(k) proportional to {protocol.noise.chance:.9g}^|k|, in "
            f"steps of {protocol.step:.6g}; messages modulo 2^{protocol.modulus.bit_length() - 1}."
        )
    else:
        yield _verdict(choice)
        if choice.binding != "epsilon":
            yield f"The limit is targets.{choice.binding}."
        if choice.reports > 1:
            yield (
                f"Local epsilons in the table cover one report. A person gives up to {choice.reports:,}; "
                "targets.local_epsilon covers all of them together."
            )


def _verdict(choice: Choice) -> str:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    most, least, people = number(choice.proposed.local_epsilon, up=False), choice.accurate, choice.people
    if choice.standard_error is None:
        return f"The privacy target is met by every local epsilon up to {most}."
    if choice.proposed.standard_error <= choice.standard_error:
        start = most if least is None else number(least.local_epsilon, up=True)
        return f"Both targets are met by every local epsilon from {start} to {most}."
    here = f"No local epsilon meets both targets with {choice.population.n:,} people"
    if choice.binding not in ("epsilon", "local_epsilon"):
        return f"{here}."
    return (
        f"{here}: at least {people:,} are needed to meet both."
        if people
        else f"{here}, or with any number up to 1,000,000,000."
    )


def _verdict_on_sum(choice: Choice) -> str:
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


def _verdict_on_views(choice: Choice) -> Iterator[str]:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    settings = choice.proposed.settings
    for key, law in settings["laws"].items():
        table = ", ".join(
            f'{name} = "{value}"' if name == "kind" else f"{name} = {value}" for name, value in law.items()
        )
        yield f"Proposed: {key} = {{ {table} }}."
    yield f"The spread of the dummies is {settings['factor']:.6g} times that in the file."
    if "next_epsilon" in settings:
        missed = number(settings["next_epsilon"], up=True)
        yield f"With {settings['next_factor']:.6g} times, central epsilon is up to {missed}, above the target."


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, width=_WIDTH)
