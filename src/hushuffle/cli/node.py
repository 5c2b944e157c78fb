"""`hushuffle node`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from hushuffle.cli.console import COMMON, Exit, UsageError, misused

_HELP = """Run the nodes of a decentralised query, and create their keys.

Examples (no files needed):
  hushuffle node keys scrambler-1 --out hushuffle-out/keys
  hushuffle node certs scrambler-1 result --out hushuffle-out/certificates
"""

node = App(name="node", help=_HELP, group_parameters=COMMON)


@node.command
def start(configuration: Path, /) -> Exit:
    """Run nodes of a run to its end, or a service for phones until it is stopped.

    Examples (to create these files, first run: hushuffle plan run --hosts):
      hushuffle node start hushuffle-out/plan-aggregate-network/scrambler-1-1.toml
      hushuffle node start hushuffle-out/plan-histogram-phones/relay.toml

    A file with the key `role` starts a service for many tasks: relay, scrambler,
    target, result or issuer. SIGTERM and Ctrl-C end it; SIGHUP loads new tasks.

    Writes one JSON line per event to standard error, without private values.
    SIGTERM, SIGHUP and Ctrl-C end a node after the message that it is sending.
    Ends with exit code 1 if a node fails, if the document contradicts its plan,
    if the [policy] of a source forbids the run, or if no node accepted a source's
    messages.

    Args:
        configuration: TOML file that names the nodes, the run's document and the keys, or that is for a service.
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
                f"hushuffle: {name}: {lost:,} of its {lost + counters['sent']:,} messages were rejected ({reasons}).\n"
            )
    return Exit.FAILED if ran.failures else Exit.DONE


def needs_http() -> None:
    from importlib.util import find_spec  # noqa: PLC0415 - only when needed

    from hushuffle.errors import MissingDependencyError  # noqa: PLC0415

    if find_spec("aiohttp") is None:
        message = 'services for phones need aiohttp: pip install "hushuffle[phones]"'
        raise MissingDependencyError(message)


def _in_range(name: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        misused(f"{name} must be from 1 to {most:,}, got {number:,}.")


@node.command
def keys(names: Annotated[list[str], Parameter(negative=())], /, *, out: Path, steps: int = 1) -> Exit:
    """Create the keys of services to which phones send their messages.

    Examples (no files needed):
      hushuffle node keys scrambler-1 --out hushuffle-out/keys
      hushuffle node keys issuer --steps 10 --out hushuffle-out/keys

    Run it on each service's own host: NAME.keys, which only its owner can read, must
    stay there, and NAME.public.json is for the author of a task. A name states the
    role: scrambler-1, target-1-1, result, issuer.

    Args:
        names: names of the services.
        out: folder to write into; keys in it are never overwritten.
        steps: number of steps of an issuer; every step of every task has its own keys.
    """
    from hushuffle.network.phones.settings import ServiceKeys, role_named  # noqa: PLC0415 - only when needed

    _in_range("--steps", steps, 1000)
    roles = {name: role_named(name) for name in names}
    for name, role in roles.items():
        secret, public = ServiceKeys.generate(role, steps=steps).write(out, name)
        sys.stdout.write(f"Wrote {secret} and {public}\n")
    return Exit.DONE


@node.command
def codes(count: int, /, *, out: Path) -> Exit:
    """Create invitation codes for an issuer of tokens.

    Examples (no files needed):
      hushuffle node codes 100 --out hushuffle-out/codes
      hushuffle node codes 100000 --out hushuffle-out/large

    Writes codes.txt, one code per line, each for one person, and codes.public for
    the issuer, which can check codes but cannot use them.

    Args:
        count: number of invited people.
        out: folder to write into; codes in it are never overwritten.
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
    """Create an authority, certificates and keys for trials.

    Examples (no files needed):
      hushuffle node certs scrambler-1 result --out hushuffle-out/certificates
      hushuffle node certs scrambler-2 --days 7 --out hushuffle-out/certificates

    Writes NAME.pem, NAME.key, NAME.seal and NAME.seal.pub for each node, and
    authority.pem and authority.key, unless the folder has an authority. Outside of
    trials, use your own authority to issue NAME.pem and NAME.key.

    Args:
        names: names of the nodes (default: those of --document).
        out: folder to write into; a node's files in it are never overwritten.
        document: document of a run, all of whose nodes get files (default: none).
        days: validity of the certificates, in days.
    """
    from hushuffle.errors import InvalidInputError  # noqa: PLC0415 - only when needed
    from hushuffle.network.nodes.document import read_document  # noqa: PLC0415
    from hushuffle.network.setup import make_certificates  # noqa: PLC0415

    wanted = dict.fromkeys(names or ())
    if document is not None:
        run = read_document(document)
        wanted |= dict.fromkeys([*run.servers, *run.places])
    if not wanted:
        misused("pass the names of nodes, or the --document of a run.")
    try:
        written = make_certificates(list(wanted), out=out, days=days)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None
    sys.stdout.write(f"Wrote {len(written):,} files for {len(wanted):,} nodes into {out}\n")
    return Exit.DONE


@node.command
def health(configuration: Path, /) -> Exit:
    """Query the state of the nodes of a configuration.

    Examples (to create these files, first run: hushuffle plan run --hosts):
      hushuffle node health hushuffle-out/plan-aggregate-network/scrambler-1-1.toml
      hushuffle node health hushuffle-out/plan-aggregate-network/result.toml

    Connects to each node with the node's own certificate and key. Prints one JSON
    line per node. Ends with exit code 1 if a node does not answer.

    Args:
        configuration: the TOML file that the nodes were started with.
    """
    from hushuffle.network.node import ask_health  # noqa: PLC0415 - only when needed

    answers = ask_health(configuration)
    for name, answer in answers.items():
        sys.stdout.write(json.dumps({"node": name, **answer}) + "\n")
    return Exit.FAILED if any("failure" in answer for answer in answers.values()) else Exit.DONE
