"""`hushuffle compare`."""

from __future__ import annotations

import sys
from pathlib import Path

from hushuffle.cli.console import Exit, Flag, deliver, judged, misused, progress, refuse_file


def compare(*specifications: Path, out: Path | None = None, json: Flag = False, strict: Flag = False) -> Exit:
    """Compare deployments side by side: figures, differences and targets.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle compare examples/hashing.toml examples/hadamard.toml
      hushuffle compare examples/hashing.toml examples/subset.toml --json

    Computes the figures of each deployment like assess, but runs no collection.
    With --out, also writes study.html and study.json.

    Args:
        specifications: two TOML files or more, each a deployment as for assess.
        out: folder to write into (default: nothing is written).
        json: print only study.json, no summary, to standard output.
        strict: end with exit code 3 if a deployment misses a target.
    """
    if len(specifications) < 2:
        misused("compare takes two specifications or more.")
    if out is not None:
        refuse_file(out)
    # Imported here, so that `hushuffle --help` does not wait for numerics.
    from hushuffle.assessment.compare import compare as run  # noqa: PLC0415
    from hushuffle.assessment.compare import comparison_report  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        compared = run(specifications, progress=tell)
    deliver(comparison_report(compared), out, json=json)
    return judged([target for one in compared for target in one.report.targets], strict=strict)
