"""`hushuffle node`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from hushuffle.cli.console import COMMON, Exit, UsageError, misused

_HELP = """Run the services of a decentralised query, and create their keys.

Examples (no files needed):
  hushuffle node keys scrambler-1 --out hushuffle-out/keys
  hushuffle node codes 100 --out hushuffle-out/codes
"""

node = App(name="node", help=_HELP, group_parameters=COMMON)


@node.command
def start(configuration: Path, /) -> Exit:
    """Run a service until it is stopped.

    Examples (to create these files, first run: hushuffle plan run --hosts):
      hushuffle node start hushuffle-out/plan-histogram-phones/relay.toml
      hushuffle node start hushuffle-out/plan-histogram-phones/scrambler-1.toml

    A service takes part in many tasks. SIGTERM and Ctrl-C end it; SIGHUP loads new
    tasks. A restarted service continues, even after it was killed. Writes one JSON
    line per event to standard error, without private values.

    Args:
        configuration: TOML file with the settings of the service.
    """
    from hushuffle_network.serve import run_service  # noqa: PLC0415 - only when needed

    run_service(configuration)
    return Exit.DONE


def _in_range(name: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        misused(f"{name} must be from 1 to {most:,}, got {number:,}.")


@node.command
def keys(names: Annotated[list[str], Parameter(negative=())], /, *, out: Path, steps: int = 1) -> Exit:
    """Create the keys of the services of a query, except the relay.

    Examples (no files needed):
      hushuffle node keys scrambler-1 --out hushuffle-out/keys
      hushuffle node keys issuer --steps 10 --out hushuffle-out/keys

    Run it on each service's own host: NAME.keys, which only its owner can read, must
    stay there, and NAME.public.json is for the author of a task. A name states the
    role: scrambler-1, target-1-1, result, issuer.

    Args:
        names: names of the services.
        out: folder to write into; keys in it are never overwritten.
        steps: only for the issuer of tickets: number of steps of the task; each step gets a key of its own.
    """
    from hushuffle_network.settings import ServiceKeys, role_named  # noqa: PLC0415 - only when needed

    _in_range("--steps", steps, 1000)
    roles = {name: role_named(name) for name in names}
    for name, role in roles.items():
        secret, public = ServiceKeys.generate(role, steps=steps).write(out, name)
        sys.stdout.write(f"Wrote {secret} and {public}\n")
    return Exit.DONE


@node.command
def codes(count: int, /, *, out: Path) -> Exit:
    """Create invitation codes, which the issuer checks before phones may answer.

    Examples (no files needed):
      hushuffle node codes 100 --out hushuffle-out/codes
      hushuffle node codes 100000 --out hushuffle-out/large

    Writes codes.txt, one code per line, each for one person, and codes.public, with
    which the issuer can check codes but cannot use them.

    Args:
        count: number of invited people.
        out: folder to write into; codes in it are never overwritten.
    """
    from hushuffle_network.issuer import write_codes  # noqa: PLC0415 - only when needed

    _in_range("COUNT", count, 10**8)
    secret, public = write_codes(count, out)
    sys.stdout.write(f"Wrote {secret} and {public}\n")
    return Exit.DONE


@node.command
def certs(names: Annotated[list[str], Parameter(negative=())], /, *, out: Path, days: float = 30.0) -> Exit:
    """Create a certificate authority, certificates and keys for trials.

    Examples (no files needed):
      hushuffle node certs relay result --out hushuffle-out/certificates
      hushuffle node certs scrambler-1 --days 7 --out hushuffle-out/certificates

    A service that ends TLS itself needs a certificate for its host name. Writes
    NAME.pem and NAME.key for each host. The authority in the folder signs them; if
    there is none, writes authority.pem and authority.key. Not for real collections.

    Args:
        names: names of the hosts.
        out: folder to write into; the files of a host in it are never overwritten.
        days: validity of the certificates, in days.
    """
    from hushuffle.errors import InvalidInputError  # noqa: PLC0415 - only when needed
    from hushuffle_network.certificates import make_certificates  # noqa: PLC0415

    try:
        written = make_certificates(names, out=out, days=days)
    except InvalidInputError as error:
        raise UsageError(str(error)) from None
    sys.stdout.write(f"Wrote {len(written):,} files into {out}\n")
    return Exit.DONE
