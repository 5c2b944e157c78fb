"""`hushuffle assess`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hushuffle.cli.console import Exit, UsageError, progress
from hushuffle.cli.delivery import deliver, judged, refuse_file

_Flag = Parameter(negative=(), show_default=False)
_FILES = ("report.html", "result.json", "specification.toml", "dpia.md")


def assess(
    specification: Path,
    /,
    *,
    out: Path | None = None,
    overwrite: Annotated[bool, _Flag] = False,
    json: Annotated[bool, _Flag] = False,
    strict: Annotated[bool, _Flag] = False,
) -> Exit:
    """Compute what each adversary can learn from a deployment, and its accuracy.

    Examples (hushuffle examples examples writes these files):
      hushuffle assess examples/affairs.toml
      hushuffle assess examples/commute.toml --strict --out hushuffle-out/trips

    Prints a summary, and writes report.html, result.json, dpia.md (the first page
    for an impact assessment) and the effective specification.toml: all or none.
    If the specification names data, also runs the collection on them. For several
    [[columns]], states the joint figures first.

    Args:
        specification: the TOML file that describes the deployment.
        out: folder to write into (default: hushuffle-out/NAME, NAME being that of the specification).
        overwrite: replace the report of an earlier run in that folder.
        json: print only result.json, no summary, to standard output.
        strict: end with exit code 3 if a target is missed, or is not shown to be met.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle.specification.sums import load_deployment  # noqa: PLC0415

    deployment = load_deployment(specification)
    folder = Path("hushuffle-out") / specification.stem if out is None else out
    _refuse_folder(folder, specification, overwrite=overwrite)
    from hushuffle.assessment.deployment import assess as run  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        report = run(deployment, base_folder=specification.parent, progress=tell)
    deliver(report, folder, json=json)
    return judged(report.targets, strict=strict)


def _refuse_folder(folder: Path, specification: Path, *, overwrite: bool) -> None:
    """Complain before the work starts, not after it."""
    refuse_file(folder)
    written = folder / "specification.toml"
    if written.exists() and written.samefile(specification):
        message = f"--out {folder} would overwrite {specification} with the effective specification."
        raise UsageError(message)
    earlier = next((name for name in _FILES if (folder / name).exists()), None)
    if earlier is not None and not overwrite:
        message = f"{folder} holds {earlier} already. Name another folder by --out, or say --overwrite to replace it."
        raise UsageError(message)
