"""Run the checker: `shuffle-certificate result.json`, or `python -m shuffle_certificate result.json`."""

from __future__ import annotations

import sys
from pathlib import Path

from .certificate import MalformedError, read
from .document import check_document
from .table import verdict_of, written


def main() -> int:
    """Check all certificates in a file, print a table of the verdicts, and return the exit code."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: shuffle-certificate FILE\n")
        return 2
    file = sys.argv[1]
    try:
        rows = list(check_document(read(Path(file).read_text(encoding="utf-8"))))
    except (MalformedError, OSError, UnicodeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(written(rows))
    return verdict_of(rows)


if __name__ == "__main__":
    sys.exit(main())
