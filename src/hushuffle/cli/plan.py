"""`hushuffle plan`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from hushuffle.cli.exits import Exit, UsageError
from hushuffle.cli.progress import progress
from hushuffle.cli.terminal import color, width

if TYPE_CHECKING:
    from hushuffle.model import Study

_Flag = Parameter(negative=(), show_default=False)
_ROOT = Path("hushuffle-out")

plan = App(name="plan", help="Say what the traffic of a decentralised query reveals and costs, and try it.")
"""The verb with its commands."""


@plan.command
def analyse(
    specification: Path,
    /,
    *,
    out: Path | None = None,
    json: Annotated[bool, _Flag] = False,
    strict: Annotated[bool, _Flag] = False,
) -> Exit:
    """Say what somebody who watches all messages of a plan learns about one person.

    Draws the plan, states the guarantee of each cluster and in total, its costs,
    and what other settings would give. Of the data it only counts the records.
    Writes study.html and study.json into one folder, both or neither.
    Where no guarantee can be stated it says why, and ends with exit code 1.

    Args:
        specification: the TOML file that describes the plan.
        out: the folder to write into; hushuffle-out/plan-NAME by default, NAME that of the specification.
        json: print study.json instead of the summary, and nothing else, to standard output.
        strict: end with exit code 3 if the epsilon asked for is not certified.
    """
    # Imported here, so that `hushuffle --help` does not wait for numerics, tables and templates.
    from hushuffle.specification import load_plan  # noqa: PLC0415
    from hushuffle.workflows.plan_study import analyse_plan  # noqa: PLC0415

    spec = load_plan(specification)
    folder = _folder(out, f"plan-{specification.stem}")
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        analysis = analyse_plan(spec, base_folder=specification.parent, progress=tell)
    _write(analysis.study, folder, json=json)
    if analysis.refusals:
        sys.stderr.write("hushuffle: no guarantee can be stated for this plan.\n")
        return Exit.FAILED
    if analysis.met is False:
        sys.stderr.write("hushuffle: the epsilon asked for is not certified.\n")
        return Exit.MISSED if strict else Exit.DONE
    return Exit.DONE


@plan.command
def simulate(
    specification: Path,
    /,
    *,
    out: Path | None = None,
    json: Annotated[bool, _Flag] = False,
) -> Exit:
    """Run a plan on its data once, as a simulation on this machine.

    Shows the result, true and under the plan, how many tuples were used, the
    costs counted against their formulas, and what a watcher sees.
    Writes study.html and study.json into one folder, both or neither.

    Args:
        specification: the TOML file that describes the plan.
        out: the folder to write into; hushuffle-out/plan-NAME-run by default, NAME that of the specification.
        json: print study.json instead of the summary, and nothing else, to standard output.
    """
    # Imported here, so that `hushuffle --help` does not wait for numerics, tables and templates.
    from hushuffle.specification import load_plan  # noqa: PLC0415
    from hushuffle.workflows.plan_simulation import simulate_plan  # noqa: PLC0415

    spec = load_plan(specification)
    folder = _folder(out, f"plan-{specification.stem}-run")
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        study = simulate_plan(spec, base_folder=specification.parent, progress=tell)
    _write(study, folder, json=json)
    return Exit.DONE


def _folder(out: Path | None, name: str) -> Path:
    """Return the folder to write into; complain before the work starts, not after it."""
    folder = _ROOT / name if out is None else out
    if folder.exists() and not folder.is_dir():
        message = f"--out must be a folder, {folder} is a file."
        raise UsageError(message)
    return folder


def _write(study: Study, folder: Path, *, json: bool) -> None:
    from hushuffle import report  # noqa: PLC0415 - only when needed

    files = report.write_study(study, folder)
    if json:
        sys.stdout.write(report.study_json(study).rstrip("\n") + "\n")
        return
    sys.stdout.write(report.study_terminal(study, width=width(), color=color()).rstrip("\n") + "\n\n")
    for file in files:
        sys.stdout.write(f"Wrote {file}\n")
