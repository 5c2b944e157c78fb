"""`hushuffle verify`."""

from __future__ import annotations

import sys
from pathlib import Path

from hushuffle.cli.console import Exit, Flag, misused
from hushuffle.errors import MissingDependencyError


def verify(file: Path, /, *, json: Flag = False) -> Exit:
    """Check the certificates of a result with an independent program.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle assess examples/affairs.toml
      hushuffle verify hushuffle-out/affairs/result.json

    Recomputes both bounds of each epsilon in ball arithmetic, from the
    distribution of one report and the worst-case datasets in the file, by code
    independent of the code that wrote it. Compares the verdict, the statement,
    charts and tables with these. Ends with exit code 3 if a figure is
    contradicted or not confirmed, with 1 if there is nothing to check. Needs
    the package shuffle-certificate.

    Args:
        file: result.json of assess, a certificate, or a list of certificates.
        json: print only JSON, with one object per figure and a summary, to standard output.
    """
    try:
        from shuffle_certificate import certificate, document, table  # noqa: PLC0415 - another package
    except ImportError as missing:
        message = "`verify` needs the package shuffle-certificate. Install it with: pip install shuffle-certificate"
        raise MissingDependencyError(message) from missing

    try:
        rows = list(document.check_document(certificate.read(file.read_text(encoding="utf-8"))))
    except UnicodeDecodeError:
        misused(f"{file} is not a text file in UTF-8. Pass result.json of assess, or a certificate.")
    except certificate.MalformedError as error:
        misused(f"{file}: {error}")
    sys.stdout.write(table.as_json(rows) if json else table.written(rows))
    return Exit(table.verdict_of(rows))
