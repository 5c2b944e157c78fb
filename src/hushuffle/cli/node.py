"""`hushuffle node`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from hushuffle.cli.console import Exit, UsageError

node = App(name="node", help="Run the nodes of a decentralised query, and make certificates to try them.")
"""The verb with its commands."""


@node.command
def start(configuration: Path, /) -> Exit:
    """Run one node, or several, of one run to the end; or a service for phones until it is told to stop.

    A file with the key `role` is for a service: relay, scrambler, target, result or
    issuer. It stays up for many tasks; SIGTERM and Ctrl-C end it, SIGHUP lets it look
    for new tasks.

    Writes one line of JSON for each event to standard error, and no private value
    anywhere. SIGTERM, SIGHUP and Ctrl-C let a node finish what it has begun to send,
    and give up the rest. Ends with exit code 1 if a node failed or refuses the run:
    its document does not keep its plan, the [policy] of a source does not allow it,
    or nobody took anything from a source.

    Args:
        configuration: the TOML file that names the nodes, the run's document, and where keys are; or that of a service.
    """
    from hushuffle.specification.reading import read_text  # noqa: PLC0415 - only when needed

    if re.search("^role *=", read_text(configuration), flags=re.MULTILINE):
        needs_http()
        from hushuffle.network.phones.serve import run_service  # noqa: PLC0415

        run_service(configuration)
        return Exit.DONE
    from hushuffle.network.node import run_nodes  # noqa: PLC0415 - only when needed

    ran = run_nodes(configuration)
    for name, why in ran.failures.items():
        sys.stderr.write(f"hushuffle: {name}: {why}\n")
    for name, counters in ran.counters.items():
        if (lost := counters.get("undelivered")) and name not in ran.failures:
            reasons = ", ".join(counters["rejected"])
            sys.stderr.write(
                f"hushuffle: {name}: {lost:,} of its {lost + counters['sent']:,} messages were not taken ({reasons}).\n"
            )
    return Exit.FAILED if ran.failures else Exit.DONE


def needs_http() -> None:
    """Say what is missing where services for phones cannot run."""
    from importlib.util import find_spec  # noqa: PLC0415 - only when needed

    from hushuffle.errors import MissingDependencyError  # noqa: PLC0415

    if find_spec("aiohttp") is None:
        message = 'services for phones need aiohttp: pip install "hushuffle[phones]"'
        raise MissingDependencyError(message)


def _in_range(name: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        message = f"{name} must be from 1 to {most:,}, got {number:,}."
        raise UsageError(message)


@node.command
def keys(
    names: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    out: Path,
    steps: int = 1,
) -> Exit:
    """Make the keys of services for phones, where they are used.

    Writes NAME.keys, which only its owner can read and which stays on its host, and
    NAME.public.json, for whoever draws up a task. A name says the role: scrambler-1,
    target-1-1, result, issuer.

    Args:
        names: of the services.
        out: the folder; keys in it are never overwritten.
        steps: for an issuer, for how many steps: every step of every task takes keys of its own.
    """
    from hushuffle.network.phones.keys import ServiceKeys, role_named  # noqa: PLC0415 - only when needed

    _in_range("--steps", steps, 1000)
    roles = {name: role_named(name) for name in names}
    for name, role in roles.items():
        secret, public = ServiceKeys.generate(role, steps=steps).write(out, name)
        sys.stdout.write(f"Wrote {secret} and {public}\n")
    return Exit.DONE


@node.command
def codes(count: int, /, *, out: Path) -> Exit:
    """Make codes of invitations, for an issuer of tokens.

    Writes codes.txt, one code on a line, to be handed out, each to one person; and
    codes.public, for the issuer, which can check codes with it and use none.

    Args:
        count: how many people are invited.
        out: the folder; codes in it are never overwritten.
    """
    needs_http()
    from hushuffle.network.phones.issuer import write_codes  # noqa: PLC0415 - only when needed

    _in_range("COUNT", count, 10**8)
    secret, public = write_codes(count, out)
    sys.stdout.write(f"Wrote {secret} and {public}\n")
    return Exit.DONE


@node.command
def certs(
    names: Annotated[list[str] | None, Parameter(negative=())] = None,
    /,
    *,
    out: Path,
    document: Path | None = None,
    days: float = 30.0,
) -> Exit:
    """Make an authority, certificates and keys for trials.

    Writes NAME.pem, NAME.key, NAME.seal and NAME.seal.pub for each node, and
    authority.pem and authority.key, or uses the authority that is there already.
    For anything but trials use an authority of your own: NAME.pem and NAME.key may
    come from anywhere.

    Args:
        names: of the nodes.
        out: the folder; a node's files in it are never overwritten.
        document: a run's document, for all nodes in it.
        days: how long the certificates are valid.
    """
    from hushuffle.errors import InvalidInputError  # noqa: PLC0415 - only when needed
    from hushuffle.network.hosts import make_certificates  # noqa: PLC0415
    from hushuffle.network.nodes.document import read_document  # noqa: PLC0415

    wanted = dict.fromkeys(names or ())
    if document is not None:
        run = read_document(document)
        wanted |= dict.fromkeys([*run.servers, *run.places])
    if not wanted:
        message = "name one node or more, or a run's --document."
        raise UsageError(message)
    try:
        made = make_certificates(list(wanted), out=out, days=days)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None
    sys.stdout.write(f"Wrote {len(made):,} files for {len(wanted):,} nodes into {out}\n")
    return Exit.DONE


@node.command
def health(configuration: Path, /) -> Exit:
    """Ask the nodes of a configuration how they are.

    Connects to each with its own certificate, so it needs the node's key. Prints one
    line of JSON for each; ends with exit code 1 if one does not answer.

    Args:
        configuration: the TOML file that the nodes were started with.
    """
    from hushuffle.network.node import ask_health  # noqa: PLC0415 - only when needed

    answers = ask_health(configuration)
    for name, answer in answers.items():
        sys.stdout.write(json.dumps({"node": name, **answer}) + "\n")
    return Exit.FAILED if any("failure" in answer for answer in answers.values()) else Exit.DONE
