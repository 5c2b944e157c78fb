"""`hushuffle choose`."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from hushuffle.cli.console import Exit, Flag, deliver, misused, progress, refuse_file

_Search = Parameter(group=Group("Search", sort_key=2))
_NUMBERED = re.compile(r"[0-9]+-[a-z-]+\.toml")


def choose(
    wishes: Path,
    /,
    *,
    most_dummies: Annotated[int, _Search] = 0,
    most_messages: Annotated[float | None, _Search] = None,
    most_bits: Annotated[float, _Search] = math.inf,
    honest: Annotated[float, _Search] = 1.0,
    secure_aggregation: Annotated[Flag, _Search] = False,
    out: Path | None = None,
    json: Flag = False,
    strict: Flag = False,
) -> Exit:
    """Rank the mechanisms and shufflers that meet the targets of a file.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle choose examples/commute.toml
      hushuffle choose examples/commute.toml --out hushuffle-out/choices

    Gives each mechanism the smallest local epsilon that meets the accuracy target
    or, without this target, the largest that meets the privacy targets. If nothing
    meets all targets, lists changes that would help. Never reads private values.
    With --out, also writes study.html, study.json and a specification of each
    deployment that meets the targets, ready for assess.

    Args:
        wishes: a TOML file as for assess; [randomizer] and [shuffler] may be left out.
        most_dummies: also try shufflers that add dummy reports (scramblers), at most this number per release; 0: none.
        most_messages: maximum mean number of messages per client, including the report
            (default: 1; no limit for a file with [sum]).
        most_bits: maximum mean number of bits per client.
        honest: fraction of clients that follow the protocol and do not collude with the analyst.
        secure_aggregation: also try secure aggregation if [shuffler] names another shuffler.
        out: new folder to write into (default: nothing is written).
        json: print only study.json, no summary, to standard output.
        strict: end with exit code 3 if nothing meets all targets.
    """
    rules = (
        ("--most-dummies", most_dummies, "0 or more", most_dummies >= 0),
        ("--most-messages", most_messages, "1 or more", most_messages is None or most_messages >= 1),
        ("--most-bits", most_bits, "above 0", most_bits > 0),
        ("--honest", honest, "above 0 and at most 1", 0 < honest <= 1),
    )
    for name, value, rule, valid in rules:
        if not valid:
            misused(f"{name} must be {rule}, got {value:g}.")
    if out is not None:
        refuse_file(out)
        earlier = sorted(path.name for path in out.glob("*.toml") if _NUMBERED.fullmatch(path.name))
        if earlier:
            misused(f"{out} holds {earlier[0]} already. Choose another folder with --out, or remove this one.")
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
            secure_aggregation=True if secure_aggregation else None,
            progress=tell,
        )
    deliver(choice_report(choices), out, json=json, beside=specifications(choices))
    if not choices.rows:
        sys.stderr.write("hushuffle: nothing meets all targets.\n")
    return Exit.MISSED if strict and not choices.rows else Exit.DONE
