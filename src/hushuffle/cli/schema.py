"""`hushuffle schema`."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter


def schema(*, sum: Annotated[bool, Parameter(negative=(), show_default=False)] = False) -> None:  # noqa: A002 - its name
    """Print the JSON schema of specifications.

    Examples (no files needed):
      hushuffle schema
      hushuffle schema --sum

    Editors use the schema to complete and check TOML files.

    Args:
        sum: print the schema of files with [sum].
    """
    from hushuffle.specification import schema_text  # noqa: PLC0415 - only when needed
    from hushuffle.specification.sums import sum_schema  # noqa: PLC0415

    sys.stdout.write(schema_text(sum_schema() if sum else None))
