"""`hushuffle calibrate`."""

from __future__ import annotations

import json as json_text
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hushuffle.cli.console import Exit, progress, warn
from hushuffle.cli.delivery import judged, verdicts

if TYPE_CHECKING:
    from hushuffle.assessment.calibrate import Choice, Point
    from hushuffle.assessment.messages import MessageChoice, MessagePoint
    from hushuffle.assessment.shared_noise import ColumnPoint, SharedChoice

_Flag = Parameter(negative=(), show_default=False)
_WIDTH = 80
_ROW = "{:<34} {:>9}  {:>20} {:>10}"
_NAME = 34
SCHEMA_VERSION = 1


def calibrate(
    specification: Path, /, *, json: Annotated[bool, _Flag] = False, strict: Annotated[bool, _Flag] = False
) -> Exit:
    """Find the noise that meets the targets of a deployment.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle calibrate examples/calibrate.toml
      hushuffle calibrate examples/sum.toml --json

    Prints the largest local epsilon that meets targets.epsilon and all other
    privacy targets, and the smallest that meets targets.standard_error. If no
    noise meets all targets, prints how many people are needed. For [[columns]],
    multiplies all local epsilons by one factor. For blanket messages, finds their
    smallest rate. For a [sum], finds levels, noise and messages. Writes no file.

    Args:
        specification: the TOML file of the deployment, with targets.epsilon.
        json: print only JSON to standard output.
        strict: end with exit code 3 if the proposal misses a target.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics.
    from hushuffle.specification.sums import SumSpecification, load_deployment  # noqa: PLC0415

    collection = load_deployment(specification)
    if isinstance(collection, SumSpecification):
        from hushuffle.cli.sums import calibrate_file  # noqa: PLC0415

        return calibrate_file(collection, specification.parent, as_json=json, strict=strict)
    from hushuffle.assessment.calibrate import calibrate as run  # noqa: PLC0415
    from hushuffle.assessment.messages import calibrate_messages, has_messages_to_choose  # noqa: PLC0415
    from hushuffle.assessment.shared_noise import calibrate_columns  # noqa: PLC0415

    folder = specification.parent
    if collection.several:
        with progress(enabled=not json and sys.stderr.isatty()) as tell:
            shared = calibrate_columns(collection, base_folder=folder, progress=tell)
        sys.stdout.write(_text(_of_columns(shared)) if json else "\n".join(_lines_of_columns(shared)) + "\n")
        return judged(shared.targets, strict=strict)
    if has_messages_to_choose(collection.columns[""]):
        messages = calibrate_messages(collection.columns[""], base_folder=folder)
        sys.stdout.write(_text(_of_messages(messages)) if json else "\n".join(_lines_of_messages(messages)) + "\n")
        return judged(messages.targets, strict=strict)
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        choice = run(collection.columns[""], base_folder=folder, progress=tell)
    sys.stdout.write(_text(_of_one(choice)) if json else "\n".join(_lines(choice)) + "\n")
    warn({"": choice.warnings})
    return judged(choice.targets, strict=strict)


def _lines(choice: Choice) -> Iterator[str]:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    wanted = choice.standard_error
    accuracy = "" if wanted is None else f", standard error of a share at most {wanted:g}"
    yield from _wrapped(choice.title)
    yield from _wrapped(f"As written: {choice.deployment}")
    yield from _wrapped(f"Targets: central epsilon at most {choice.epsilon:g} at delta = {choice.delta:g}{accuracy}.")
    yield ""
    yield _ROW.format("", "local", "central", "standard")
    yield _ROW.format("", "epsilon", "epsilon", "error")
    yield _row("largest that meets the privacy", choice.most, number(choice.most.local_epsilon, up=False))
    if choice.least is not None:
        yield _row("smallest that meets the accuracy", choice.least, number(choice.least.local_epsilon, up=True))
    yield _row("as written", choice.written, number(float(f"{choice.written.local_epsilon:.9g}")))
    yield ""
    yield from _wrapped(_verdict(choice))
    if choice.binding != "epsilon":
        yield from _wrapped(f"More is not allowed by targets.{choice.binding}.")
    if choice.reports > 1:
        yield from _wrapped(
            f"Local epsilons in the table cover one report. A person gives up to {choice.reports:,}; "
            "targets.local_epsilon covers all of them together."
        )
    for target in choice.targets:
        if target.key not in ("epsilon", "standard_error"):
            yield from _wrapped(f"{target.word.upper()} {target.sentence}")
    yield ""
    yield from _wrapped(
        "Central epsilon (nats) is certified for every dataset. The standard error is the error of an estimated share, "
        "at the worst true share. The answers were not read."
    )


def _verdict(choice: Choice) -> str:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    most, least, people = number(choice.most.local_epsilon, up=False), choice.least, choice.people
    if choice.standard_error is None:
        return f"The privacy target is met by every local epsilon up to {most}."
    if choice.most.standard_error <= choice.standard_error:
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


def _row(name: str, point: Point | ColumnPoint | MessagePoint, local: str) -> str:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    central = str(point.central).rpartition(" (")[0].removesuffix(" nats")
    return _ROW.format(name, local, central, number(point.standard_error, up=True))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, width=_WIDTH)


def _text(document: dict[str, Any]) -> str:
    return json_text.dumps(document, indent=2, allow_nan=False) + "\n"


def _asked(choice: Choice | MessageChoice) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "title": choice.title,
        "deployment": choice.deployment,
        "population": {"n": choice.population.n, "k": len(choice.population.labels)},
        "targets": {"epsilon": choice.epsilon, "delta": choice.delta, "standard_error": choice.standard_error},
    }


def _of_one(choice: Choice) -> dict[str, Any]:
    return {
        **_asked(choice),
        "written": _point(choice.written),
        "largest_for_privacy": _point(choice.most),
        "smallest_for_accuracy": None if choice.least is None else _point(choice.least),
        "met": choice.met,
        "binding": choice.binding,
        "verdict": verdicts(choice.targets),
        "people_needed": choice.people,
        "warnings": [asdict(warned) for warned in choice.warnings],
    }


def _lines_of_columns(choice: SharedChoice) -> Iterator[str]:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    rounds = f" in all {choice.rounds:,} rounds" if choice.rounds > 1 else ""
    yield from _wrapped(choice.title)
    yield from _wrapped(
        f"Target: central epsilon of all columns together{rounds} at most {choice.epsilon:g} at delta = "
        f"{choice.delta:g}."
    )
    yield ""
    yield _ROW.format("column", "local", "central", "standard")
    yield _ROW.format("", "epsilon", "epsilon", "error")
    for column in choice.columns:
        yield _row(column.name[:_NAME], column, number(column.local_epsilon, up=False))
    yield ""
    yield from _wrapped(
        f"The local epsilons of all columns can be multiplied by at most {number(choice.factor, up=False)}: "
        f"{choice.central} for all of them."
    )
    for target in choice.targets:
        yield from _wrapped(f"{target.word.upper()} {target.sentence}")


def _of_columns(choice: SharedChoice) -> dict[str, Any]:
    from hushuffle.model import json_number  # noqa: PLC0415 - only when needed

    return {
        "schema_version": SCHEMA_VERSION,
        "title": choice.title,
        "targets": {"epsilon": choice.epsilon, "delta": choice.delta},
        "rounds": choice.rounds,
        "factor": choice.factor,
        "central_epsilon": choice.central.as_dict(),
        "columns": [
            {
                "name": column.name,
                "written_local_epsilon": column.written,
                "local_epsilon": column.local_epsilon,
                "central_epsilon": column.central.as_dict(),
                "standard_error": json_number(column.standard_error),
            }
            for column in choice.columns
        ],
        "met": choice.met,
        "verdict": verdicts(choice.targets),
    }


def _point(point: Point) -> dict[str, Any]:
    from hushuffle.model import json_number  # noqa: PLC0415 - only when needed

    return {
        "local_epsilon": json_number(point.local_epsilon),
        "central_epsilon": point.central.as_dict(),
        "standard_error": json_number(point.standard_error),
    }


def _lines_of_messages(choice: MessageChoice) -> Iterator[str]:
    from hushuffle.model import number  # noqa: PLC0415 - only when needed

    yield from _wrapped(choice.title)
    yield from _wrapped(f"As written: {choice.deployment}")
    yield from _wrapped(f"Targets: central epsilon at most {choice.epsilon:g} at delta = {choice.delta:g}.")
    yield ""
    yield _ROW.format("", "messages", "central", "standard")
    yield _ROW.format("", "besides", "epsilon", "error")
    yield _row("fewest that meet the privacy", choice.least, number(choice.least.messages, up=True))
    yield _row("as written", choice.written, number(choice.written.messages))
    yield ""
    yield from _wrapped(
        f"Each person sends {number(1 + choice.least.messages, up=True)} messages on average: p = "
        f"{choice.least.p:.9g} meets the privacy target."
    )
    for target in choice.targets:
        if target.key != "epsilon":
            yield from _wrapped(f"{target.word.upper()} {target.sentence}")
    yield ""
    yield from _wrapped(
        "Central epsilon (nats) is certified for every dataset. The standard error is the error of an estimated share. "
        "The answers were not read."
    )


def _of_messages(choice: MessageChoice) -> dict[str, Any]:
    from hushuffle.model import json_number  # noqa: PLC0415 - only when needed

    def point(one: MessagePoint) -> dict[str, Any]:
        return {
            "messages": one.messages,
            "p": one.p,
            "central_epsilon": one.central.as_dict(),
            "standard_error": json_number(one.standard_error),
        }

    return {
        **_asked(choice),
        "written": point(choice.written),
        "fewest_for_privacy": point(choice.least),
        "met": choice.met,
        "verdict": verdicts(choice.targets),
    }
