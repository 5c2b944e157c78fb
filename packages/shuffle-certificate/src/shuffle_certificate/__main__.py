"""Run the checker alone: call `python -m verifying result.json` in a folder that contains a copy of this package."""

from __future__ import annotations

import sys
from pathlib import Path

from .certificate import MalformedError, read
from .document import check_document
from .table import verdict_of, written


def main(file: str) -> int:
    """Check all certificates in a file, print a table of the verdicts, and return the exit code."""
    try:
        rows = list(check_document(read(Path(file).read_text(encoding="utf-8"))))
    except (MalformedError, OSError, UnicodeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(written(rows))
    return verdict_of(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: python -m verifying FILE")
