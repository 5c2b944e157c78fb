"""`hushuffle choose`."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hushuffle.cli.console import Exit, UsageError, progress
from hushuffle.cli.delivery import deliver, refuse_file

_Flag = Parameter(negative=(), show_default=False)
_NUMBERED = re.compile(r"[0-9]+-[a-z-]+\.toml")


def choose(
    wishes: Path,
    /,
    *,
    most_dummies: int = 0,
    most_messages: float = 1.0,
    most_bits: float = math.inf,
    honest: float = 1.0,
    out: Path | None = None,
    json: Annotated[bool, _Flag] = False,
    strict: Annotated[bool, _Flag] = False,
) -> Exit:
    """Say which mechanism behind which shuffler meets the targets, the best first.

    Of each the smallest local epsilon that is accurate enough, or without a
    target of accuracy the largest that is private enough. Where nothing meets
    the targets it says what would have to change. Never looks at values.
    Writes study.html, study.json and a specification of each deployment that
    meets them, ready for assess, into one folder: all of them or none.

    Args:
        wishes: a TOML file as for assess; [randomizer] and [shuffler] may be left out, and are not looked at.
        most_dummies: try scramblers too, with so many dummy reports at most.
        most_messages: so many messages a person may send on average, the report among them.
        most_bits: so many bits a person may send on average.
        honest: the share of people who keep what they send besides to themselves.
        out: the new folder to write into; hushuffle-out/ and choose-NAME by default.
        json: print study.json instead of the summary, and nothing else, to standard output.
        strict: end with exit code 3 if nothing meets all targets.
    """
    folder = Path("hushuffle-out") / f"choose-{wishes.stem}" if out is None else out
    rules = (
        ("--most-dummies", most_dummies, "0 or more", most_dummies >= 0),
        ("--most-messages", most_messages, "1 or more", most_messages >= 1),
        ("--most-bits", most_bits, "above 0", most_bits > 0),
        ("--honest", honest, "above 0 and at most 1", 0 < honest <= 1),
    )
    for name, value, rule, kept in rules:
        if not kept:
            message = f"{name} must be {rule}, got {value:g}."
            raise UsageError(message)
    refuse_file(folder)
    earlier = sorted(path.name for path in folder.glob("*.toml") if _NUMBERED.fullmatch(path.name))
    if earlier:
        message = f"{folder} holds {earlier[0]} already. Name another folder by --out, or remove it."
        raise UsageError(message)
    # Imported here, so that `hushuffle --help` does not wait for numerics.
    from hushuffle.assessment.choice_report import choice_report, specifications  # noqa: PLC0415
    from hushuffle.assessment.choose import choose as run  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        choices = run(
            wishes,
            most_dummies=most_dummies,
            most_messages=most_messages,
            most_bits=most_bits,
            honest=honest,
            progress=tell,
        )
    deliver(choice_report(choices), folder, json=json, beside=specifications(choices))
    if not choices.rows:
        sys.stderr.write("hushuffle: nothing meets all targets.\n")
    return Exit.MISSED if strict and not choices.rows else Exit.DONE
