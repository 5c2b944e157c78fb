"""`hushuffle assess`."""

from __future__ import annotations

import sys
from pathlib import Path

from hushuffle.cli.console import Exit, Flag, deliver, judged, misused, progress, refuse_file

_FILES = ("report.html", "result.json", "specification.toml", "dpia.md")


def assess(
    specification: Path,
    /,
    *,
    out: Path | None = None,
    overwrite: Flag = False,
    json: Flag = False,
    strict: Flag = False,
) -> Exit:
    """Compute what each adversary can learn, and how accurate the results are.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle assess examples/affairs.toml
      hushuffle assess examples/commute.toml --strict --out hushuffle-out/trips

    Prints a summary. Writes report.html, result.json, dpia.md (the first page for
    an impact assessment) and the complete specification.toml; on errors, no file.
    If the specification names data, also simulates collections on the data. For
    several [[columns]], the report begins with the joint figures.

    Args:
        specification: the TOML file that describes the deployment.
        out: folder to write into (default: hushuffle-out/NAME, where NAME is that of the specification).
        overwrite: replace the report of an earlier run in that folder.
        json: print only result.json, no summary, to standard output.
        strict: end with exit code 3 if a target is missed, or is not shown to be met.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle.specification.mixed import load_deployment  # noqa: PLC0415

    parsed = load_deployment(specification)
    folder = Path("hushuffle-out") / specification.stem if out is None else out
    written = folder / "specification.toml"
    if written.exists() and written.samefile(specification):
        misused(f"--out {folder} would overwrite {specification}. Choose another --out.")
    refuse_file(folder, earlier=() if overwrite else _FILES)
    from hushuffle.assessment.deployment import assess as run  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        report = run(parsed, base_folder=specification.parent, progress=tell)
    deliver(report, folder, json=json)
    return judged(report.targets, strict=strict)
