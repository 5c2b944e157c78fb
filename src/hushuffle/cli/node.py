"""`hushuffle node`."""

from __future__ import annotations

import sys
from pathlib import Path

from cyclopts import App

from hushuffle.cli.exits import Exit

node = App(name="node", help="Run the nodes of a decentralised query, and make certificates to try them.")
"""The verb with its commands."""


@node.command
def start(configuration: Path, /) -> Exit:
    """Run one node, or several, of one run to the end.

    Writes one line of JSON for each event to standard error, and no private value
    anywhere. SIGTERM and Ctrl-C let a node finish what it has begun to send, and
    give up the rest.

    Args:
        configuration: the TOML file that names the nodes, the run's document, and where keys are.
    """
    from hushuffle.workflows.network_node import run_nodes  # noqa: PLC0415 - only when needed

    ran = run_nodes(configuration)
    for name, why in ran.failures.items():
        sys.stderr.write(f"hushuffle: {name}: {why}\n")
    return Exit.FAILED if ran.failures else Exit.DONE
