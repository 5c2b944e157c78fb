"""`hushuffle verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hushuffle.cli.console import Exit, UsageError
from hushuffle.errors import MissingDependencyError

_Flag = Parameter(negative=(), show_default=False)


def verify(file: Path, /, *, json: Annotated[bool, _Flag] = False) -> Exit:
    """Check the certificates in a result by a second program, in ball arithmetic.

    Both ends of epsilon are computed again from the law of one report and the
    worst-case datasets that stand in the file, by code that shares nothing with
    what wrote it. Ends with exit code 3 if a figure is contradicted or cannot be
    shown, with 1 if there is nothing to check. Needs python-flint:
    pip install "hushuffle[verify]".

    Args:
        file: the result.json of `assess`, or a certificate, or a list of certificates.
        json: print one object for each figure, and nothing else, to standard output.
    """
    try:
        import flint  # noqa: F401, PLC0415 - an extra
    except ImportError as missing:
        message = 'Checking certificates needs python-flint: pip install "hushuffle[verify]".'
        raise MissingDependencyError(message) from missing
    from hushuffle.verifying import certificate, checks, table  # noqa: PLC0415 - needs flint

    try:
        rows = list(checks.check_document(certificate.read(file.read_text(encoding="utf-8"))))
    except UnicodeDecodeError:
        message = f"{file}: not a text in UTF-8."
        raise UsageError(message) from None
    except certificate.MalformedError as error:
        message = f"{file}: {error}"
        raise UsageError(message) from None
    sys.stdout.write(table.as_json(rows) if json else table.written(rows))
    return Exit(table.verdict_of(rows))
