"""`hushuffle schema`."""

from __future__ import annotations

import sys


def schema() -> None:
    """Print the JSON schema of specifications.

    Examples (no files needed):
      hushuffle schema
      hushuffle schema > hushuffle-out/specification.schema.json

    Editors use the schema to complete and check TOML files: those of one column,
    of several [[columns]], of [[groups]], of a study of reach, and of a [sum].
    """
    from hushuffle.specification import schema_text  # noqa: PLC0415 - only when needed

    sys.stdout.write(schema_text())
