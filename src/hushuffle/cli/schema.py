"""`hushuffle schema`."""

from __future__ import annotations

import sys


def schema() -> None:
    """Print the JSON schema of specifications, for editors that complete and check TOML files."""
    from hushuffle.specification import schema_text  # noqa: PLC0415 - only when needed

    sys.stdout.write(schema_text())
