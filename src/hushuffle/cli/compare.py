"""`hushuffle compare`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hushuffle.cli.console import Exit, UsageError, progress
from hushuffle.cli.delivery import deliver, judged, refuse_file

_Flag = Parameter(negative=(), show_default=False)


def compare(
    *specifications: Path,
    out: Path | None = None,
    json: Annotated[bool, _Flag] = False,
    strict: Annotated[bool, _Flag] = False,
) -> Exit:
    """Put deployments side by side: what each gives, what differs, which targets each meets.

    Each is assessed as by assess, without running the collection. Writes
    study.html and study.json into one folder: both or neither.

    Args:
        specifications: two TOML files or more, each a deployment of one column, or a [sum].
        out: the folder to write into; hushuffle-out/compare by default.
        json: print study.json instead of the summary, and nothing else, to standard output.
        strict: end with exit code 3 if one of them misses a target.
    """
    if len(specifications) < 2:
        message = "compare takes two specifications or more."
        raise UsageError(message)
    folder = Path("hushuffle-out") / "compare" if out is None else out
    refuse_file(folder)
    # Imported here, so that `hushuffle --help` does not wait for numerics.
    from hushuffle.assessment.compare import compare as run  # noqa: PLC0415
    from hushuffle.assessment.compare import comparison_report  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        compared = run(specifications, progress=tell)
    deliver(comparison_report(compared), folder, json=json)
    return judged([target for one in compared for target in one.report.targets], strict=strict)
