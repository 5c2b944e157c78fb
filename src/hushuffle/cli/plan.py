"""`hushuffle plan`."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from hushuffle.cli.console import Exit, UsageError, progress
from hushuffle.cli.delivery import deliver, judged, refuse_file
from hushuffle.files.interrupts import heard

if TYPE_CHECKING:
    from hushuffle.queries import PlanSpecification

_Flag = Parameter(negative=(), show_default=False)
_ROOT = Path("hushuffle-out")
_MOST_COMMANDS = 40

plan = App(name="plan", help="Say what the traffic of a decentralised query reveals and costs, and try it.")
"""The verb with its commands."""


@plan.command
def analyse(
    specification: Path,
    /,
    *,
    out: Path | None = None,
    people: int | None = None,
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
        out: the folder to write into; hushuffle-out/plan-NAME by default, with the name of the specification.
        people: how many people take part, where phones bring the records: no data are read.
        json: print study.json instead of the summary, and nothing else, to standard output.
        strict: end with exit code 3 if one of the targets is missed, or not known to be met.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle.queries import load_plan  # noqa: PLC0415

    spec = load_plan(specification)
    folder = _folder(out, f"plan-{specification.stem}")
    from hushuffle.queries.analyse import analyse_plan  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        analysis = analyse_plan(spec, base_folder=specification.parent, people=people, progress=tell)
    deliver(analysis.study, folder, json=json)
    if analysis.refusals:
        sys.stderr.write("hushuffle: no guarantee can be stated for this plan.\n")
        return Exit.FAILED
    return judged(analysis.study.targets, strict=strict)


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
        out: the folder to write into; hushuffle-out/plan-NAME-run by default, with the name of the specification.
        json: print study.json instead of the summary, and nothing else, to standard output.
    """
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle.queries import load_plan  # noqa: PLC0415

    spec = load_plan(specification)
    folder = _folder(out, f"plan-{specification.stem}-run")
    from hushuffle.queries.simulate import simulate_plan  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        study = simulate_plan(spec, base_folder=specification.parent, progress=tell)
    deliver(study, folder, json=json)
    return Exit.DONE


@plan.command
def run(
    specification: Path,
    /,
    *,
    network: Annotated[bool, _Flag] = False,
    phones: Annotated[bool, _Flag] = False,
    hosts: Path | None = None,
    bundle: Annotated[bool, _Flag] = False,
    out: Path | None = None,
    trace: Path | None = None,
    start: str | None = None,
    json: Annotated[bool, _Flag] = False,
) -> Exit:
    """Run a plan with real nodes that talk TLS to each other.

    With --network all nodes run on this machine, each with a certificate and an
    address of its own on the loopback interface, watched as an adversary would.
    Writes result.json, run.json, trace.parquet (sender, receiver, bytes, order),
    and study.html and study.json.
    Without it, --hosts says which hosts take part: writes the run's document and
    a configuration for each node, and prints the command for each host.
    With --phones it is a task for phones, over HTTP, through a relay and one
    scrambler after the other: everything here and now, or with --hosts the
    document of the task and the settings of each service.

    Args:
        specification: the TOML file that describes the plan.
        network: run everything here and now.
        phones: a task for phones instead of nodes with certificates.
        hosts: a TOML file with the nodes' addresses, public seal keys and sources.
        bundle: with --phones and --hosts, a folder for each service, to be copied to its host, with its own keys.
        out: the folder to write into; hushuffle-out/plan-NAME-network (or -phones) by default, with the name of the
            specification.
        trace: another file for what was seen on the wire.
        start: with --hosts, the moment from which all times of the run are counted, with its time zone, such as
            2026-05-01T10:00Z; a quarter of an hour from now by default.
        json: print study.json instead of the summary, and nothing else, to standard output.
    """
    if phones:
        _check_phones(network=network, hosts=hosts, bundle=bundle, trace=trace, start=start)
    elif bundle:
        message = "--bundle goes with --phones and --hosts."
        raise UsageError(message)
    elif network == (hosts is not None):
        message = "say either --network, to run everything on this machine, or --hosts FILE, to prepare it for others."
        raise UsageError(message)
    # Imported here, so that `hushuffle --help` and a mistyped key do not wait for numerics, tables and templates.
    from hushuffle.queries import load_plan  # noqa: PLC0415

    spec = load_plan(specification)
    if phones:
        folder = _folder(out, f"plan-{specification.stem.removesuffix('-network')}-phones")
        if hosts is not None:
            return _prepare_task(spec, hosts, folder, _moment(start), bundle=bundle)
        return _rehearse(spec, folder, specification.parent, json=json)
    folder = _folder(out, f"plan-{specification.stem.removesuffix('-network')}-network")
    if hosts is not None:
        return _prepare(spec, hosts, folder, _moment(start))
    if start is not None:
        message = "--start goes with --hosts: on this machine a run starts at once."
        raise UsageError(message)
    from hushuffle.network.run import run_on_network  # noqa: PLC0415
    from hushuffle.network.study import network_study  # noqa: PLC0415

    with heard(), progress(enabled=not json and sys.stderr.isatty()) as tell:
        ran = run_on_network(spec, out=folder, base_folder=specification.parent, trace=trace, progress=tell)
        study = network_study(spec, ran)
    deliver(study, folder, json=json)
    if not json:
        for file in ran.files:
            sys.stdout.write(f"Wrote {file}\n")
    return Exit.DONE


def _check_phones(*, network: bool, hosts: Path | None, bundle: bool, trace: Path | None, start: str | None) -> None:
    if network or trace is not None:
        message = "--network and --trace are for nodes with certificates: leave them out with --phones."
        raise UsageError(message)
    if hosts is None and (bundle or start is not None):
        message = "--bundle and --start go with --hosts: on this machine a task starts at once."
        raise UsageError(message)


def _rehearse(spec: PlanSpecification, folder: Path, base: Path, *, json: bool) -> Exit:
    from hushuffle.cli.node import needs_http  # noqa: PLC0415 - only when needed

    needs_http()
    from hushuffle.network.phones.rehearse import rehearse  # noqa: PLC0415
    from hushuffle.network.phones.study import phone_study  # noqa: PLC0415

    with heard(), progress(enabled=not json and sys.stderr.isatty()) as tell:
        ran = rehearse(spec, out=folder, base_folder=base, progress=tell)
        study = phone_study(spec, ran)
    deliver(study, folder, json=json)
    if not json:
        for file in ran.files:
            sys.stdout.write(f"Wrote {file}\n")
    return Exit.DONE


def _prepare_task(spec: PlanSpecification, hosts: Path, folder: Path, start: datetime | None, *, bundle: bool) -> Exit:
    from hushuffle.network.phones.bundle import prepare_task  # noqa: PLC0415 - only when needed

    prepared = prepare_task(spec, hosts, out=folder, start=start, bundle=bundle)
    lines = [f"Wrote {prepared.document}: phones and services get these bytes.", f"The task's id is {prepared.id}."]
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
        message = f"--start must be a moment with its time zone, such as 2026-05-01T10:00Z, got {text!r}."
        raise UsageError(message)
    return moment


def _prepare(spec: PlanSpecification, hosts: Path, folder: Path, start: datetime | None) -> Exit:
    from hushuffle.network.hosts import prepare  # noqa: PLC0415 - only when needed

    prepared = prepare(spec, hosts, out=folder, start=start)
    lines = [f"Wrote {prepared.document} and {len(prepared.commands):,} configurations beside it.", ""]
    lines += [f"All times are counted from {prepared.start} on.", ""]
    lines += ["Copy the document and its configuration to every host, with its keys beside them, and start there,"]
    lines += ["the sources last:", ""]
    shown = prepared.commands[:_MOST_COMMANDS]
    lines += [f"  {command}" for command in shown]
    if len(prepared.commands) > len(shown):
        lines.append(f"  ... and {len(prepared.commands) - len(shown):,} more alike")
    sys.stdout.write("\n".join(lines) + "\n")
    return Exit.DONE


def _folder(out: Path | None, name: str) -> Path:
    """Return the folder to write into; complain before the work starts, not after it."""
    folder = _ROOT / name if out is None else out
    refuse_file(folder)
    return folder
