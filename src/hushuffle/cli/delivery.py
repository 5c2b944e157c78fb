"""What becomes of a report: its files, and the summary or the document on standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushuffle.cli.console import Exit, UsageError, color, width

if TYPE_CHECKING:
    from hushuffle.model import Report, Target


_UNWRITTEN: Final = "Nothing was written. --out DIR writes the page and all figures into a folder."


def refuse_file(folder: Path) -> None:
    """Complain about an --out that is a file, or cannot be written, before the work starts, not after it."""
    if folder.exists() and not folder.is_dir():
        message = f"--out must be a folder, {folder} is a file."
        raise UsageError(message)
    from hushuffle.files import outputs  # noqa: PLC0415 - only when needed

    outputs.refuse_folder(folder)


def deliver(made: Report, folder: Path | None, *, json: bool, beside: Mapping[str, str] | None = None) -> None:
    """Write the files of `made` and the texts `beside` it; print its document alone, or its summary and their names.

    Without a `folder` nothing is written.
    """
    from hushuffle import report  # noqa: PLC0415 - only when needed

    if folder is None:
        text = report.to_json(made) if json else report.terminal(made, width=width(), color=color())
        sys.stdout.write(text.rstrip("\n") + "\n" + ("" if json else f"\n{_UNWRITTEN}\n"))
        return
    files = report.write(made, folder, beside=beside)
    sys.stdout.write(document(files) if json else summary(made, files))


def judged(targets: Sequence[Target], *, strict: bool) -> Exit:
    """Say on standard error which targets are not met; return how the run ends."""
    missed = [target for target in targets if not target.met]
    sys.stderr.write("".join(f"hushuffle: target not met: {target.sentence}\n" for target in missed))
    return Exit.MISSED if missed and strict else Exit.DONE


def document(files: Sequence[Path]) -> str:
    """Return the document among the files of a report."""
    return next(file for file in files if file.suffix == ".json").read_text(encoding="utf-8")


def summary(made: Report, files: Sequence[Path]) -> str:
    """Return the summary of the report `made`, followed by the names of the files that were written."""
    from hushuffle import report  # noqa: PLC0415 - only when needed

    text = report.terminal(made, width=width(), color=color()).rstrip("\n")
    return "\n".join([text, "", *(f"Wrote {file}" for file in files), ""])
