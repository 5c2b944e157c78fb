"""`hushuffle plan`."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Group, Parameter

from hushuffle.cli.console import COMMON, Exit, Flag, deliver, judged, misused, progress, refuse_file
from hushuffle.errors import DataError

if TYPE_CHECKING:
    from hushuffle.model import Report
    from hushuffle_network.queries import PlanSpecification

_Hosts = Parameter(group=Group("Several hosts", sort_key=2))
_ROOT = Path("hushuffle-out")
_HELP = """Analyse, simulate and run the plan of a decentralised query.

Examples (to create these files, first run: hushuffle examples ./examples):
  hushuffle plan analyse examples/aggregate.toml
  hushuffle plan run examples/aggregate-network.toml
"""

plan = App(name="plan", help=_HELP, group_parameters=COMMON)


def audit(path: Path, *, delta: float | None, **options: Any) -> Report:
    """Return the audit of a plan's traffic, for `hushuffle audit`; `options` are those of `audit_plan`."""
    if delta is not None:
        misused("--delta is not for plans: the game against a plan is checked at epsilon = 0. Remove it.")
    from hushuffle_network.queries import load_plan  # noqa: PLC0415
    from hushuffle_network.queries.audit import audit_plan  # noqa: PLC0415 - only when needed

    return audit_plan(load_plan(path), base_folder=path.parent, **options)


@plan.command
def analyse(
    specification: Path,
    /,
    *,
    out: Path | None = None,
    people: int | None = None,
    json: Flag = False,
    strict: Flag = False,
) -> Exit:
    """Bound what the traffic of a query plan reveals about one person.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle plan analyse examples/aggregate.toml
      hushuffle plan analyse examples/histogram.toml --strict --json

    The adversary observes all messages. States the guarantee of each cluster and
    in total, the costs, and the effect of other settings. Of the data, reads only
    the number of records. Writes study.html and study.json. If no guarantee can be
    stated, explains why and ends with exit code 1.

    Args:
        specification: the TOML file that describes the plan.
        out: folder to write into (default: hushuffle-out/plan-NAME).
        people: number of people if phones supply the records (default: count the data).
        json: print only study.json, no summary, to standard output.
        strict: end with exit code 3 if a target is missed, or is not shown to be met.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle_network.queries import load_plan  # noqa: PLC0415

    spec = load_plan(specification)
    folder = _folder(out, f"plan-{specification.stem}")
    from hushuffle_network.queries.analyse import analyse_plan  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        try:
            analysis = analyse_plan(spec, base_folder=specification.parent, people=people, progress=tell)
        except DataError as error:
            message = f"{error} If phones supply the records, pass --people N: then no data are read."
            raise DataError(message) from error
    deliver(analysis.study, folder, json=json)
    if analysis.refusals:
        sys.stderr.write("hushuffle: this plan has no privacy guarantee.\n")
        return Exit.FAILED
    return judged(analysis.study.targets, strict=strict)


@plan.command
def simulate(specification: Path, /, *, out: Path | None = None, json: Flag = False) -> Exit:
    """Simulate a plan on its data, once, on this machine.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle plan simulate examples/aggregate.toml
      hushuffle plan simulate examples/kmeans.toml --out hushuffle-out/clusters

    Shows the true result and the plan's result, how many records reach their
    targets, the costs compared with their formulas, and the traffic that an
    adversary observes. Writes study.html and study.json.

    Args:
        specification: the TOML file that describes the plan.
        out: folder to write into (default: hushuffle-out/plan-NAME-run).
        json: print only study.json, no summary, to standard output.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle_network.queries import load_plan  # noqa: PLC0415

    spec = load_plan(specification)
    folder = _folder(out, f"plan-{specification.stem}-run")
    from hushuffle_network.queries.simulate import simulate_plan  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        study = simulate_plan(spec, base_folder=specification.parent, progress=tell)
    deliver(study, folder, json=json)
    return Exit.DONE


@plan.command
def run(
    specification: Path,
    /,
    *,
    hosts: Annotated[Path | None, _Hosts] = None,
    bundle: Annotated[Flag, _Hosts] = False,
    out: Path | None = None,
    trace: Path | None = None,
    start: Annotated[str | None, _Hosts] = None,
    json: Flag = False,
) -> Exit:
    """Run a plan with phones and services, or prepare its services for several hosts.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle plan run examples/aggregate-network.toml
      hushuffle plan run examples/histogram.toml --trace hushuffle-out/trace.parquet

    Starts each service as a process on this machine, with temporary keys, and lets
    a phone for each record send its messages over HTTP, through a relay and the
    plan's scramblers. Records the traffic that an adversary observes. Writes
    result.json, task.json, trace.parquet (order, sender, receiver, step, batch,
    bytes, messages), study.html and study.json.

    --hosts runs nothing: it writes the document of the task and the settings of
    each service, and prints the command for each host.

    Args:
        specification: the TOML file that describes the plan.
        out: folder to write into (default: hushuffle-out/plan-NAME-phones).
        json: print only study.json, no summary, to standard output.
        hosts: TOML file with the addresses and public keys of the services (default: run on this machine).
        bundle: with --hosts, write one folder per service, with its keys, to copy to its host.
        start: with --hosts, start time of the task, for example 2026-05-01T10:00Z (default: in 15 minutes).
        trace: file for the observed traffic (default: trace.parquet in --out).
    """
    if hosts is None and (bundle or start is not None):
        misused("--bundle and --start need --hosts: on this machine a task starts at once.")
    if hosts is not None and trace is not None:
        misused("--trace records a run on this machine, but --hosts runs nothing.")
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle_network.queries import load_plan  # noqa: PLC0415

    spec = load_plan(specification)
    folder = _folder(out, f"plan-{specification.stem.removesuffix('-network')}-phones")
    if hosts is not None:
        return _prepare(spec, hosts, folder, _moment(start), bundle=bundle)
    from hushuffle.files.causes import heard  # noqa: PLC0415 - only when needed
    from hushuffle_network.rehearse import rehearse  # noqa: PLC0415
    from hushuffle_network.study import phone_study  # noqa: PLC0415

    with heard(), progress(enabled=not json and sys.stderr.isatty()) as tell:
        ran = rehearse(spec, out=folder, base_folder=specification.parent, trace=trace, progress=tell)
        study = phone_study(spec, ran)
    deliver(study, folder, json=json)
    if not json:
        for file in ran.files:
            sys.stdout.write(f"Wrote {file}\n")
    return Exit.DONE


def _prepare(spec: PlanSpecification, hosts: Path, folder: Path, start: datetime | None, *, bundle: bool) -> Exit:
    from hushuffle_network.bundle import prepare_task  # noqa: PLC0415 - only when needed

    prepared = prepare_task(spec, hosts, out=folder, start=start, bundle=bundle)
    lines = [f"Wrote {prepared.document}: phones and services need it unchanged.", f"The task's id is {prepared.id}."]
    lines += [*prepared.promise, ""]
    lines += [f"All times are counted from {prepared.start} on. Start on each host:", ""]
    lines += [f"  {command}" for command in prepared.commands]
    sys.stdout.write("\n".join(lines) + "\n")
    return Exit.DONE


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        misused(f"--start must be a time with a time zone, such as 2026-05-01T10:00Z, got {text!r}.")
    return moment


def _folder(out: Path | None, name: str) -> Path:
    """Raises an error before the work starts if the folder cannot be written."""
    folder = _ROOT / name if out is None else out
    refuse_file(folder)
    return folder
