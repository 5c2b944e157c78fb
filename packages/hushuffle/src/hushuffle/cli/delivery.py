"""Deliver a report: write its files, and print a summary or its JSON document on standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hushuffle.cli.console import Exit, color, misused, width

if TYPE_CHECKING:
    from hushuffle.model import Report, Target


_UNWRITTEN: Final = "No file was written. Use --out DIR to write the page and all figures to DIR."


def refuse_file(folder: Path, *, earlier: Sequence[str] = ()) -> None:
    """Raise an error before the work starts if --out is a file, cannot be written, or holds a file named `earlier`."""
    if folder.exists() and not folder.is_dir():
        misused(f"--out must be a folder, but {folder} is a file.")
    if held := next((name for name in earlier if (folder / name).exists()), ""):
        misused(f"{folder} holds {held} already. Choose another --out, or pass --overwrite to replace it.")
    from hushuffle.files.private_files import refuse_folder  # noqa: PLC0415 - only when needed

    refuse_folder(folder)


def deliver(made: Report, folder: Path | None, *, json: bool, beside: Mapping[str, str] | None = None) -> None:
    """Write the report's files, and the texts `beside`, by file name, into `folder` (None: write nothing).

    With `json`, print only the report's JSON document; else print its summary and the names of the files.
    """
    from hushuffle import report  # noqa: PLC0415 - only when needed

    if folder is None:
        text = report.to_json(made) if json else report.terminal(made, width=width(), color=color())
        sys.stdout.write(text.rstrip("\n") + "\n" + ("" if json else f"\n{_UNWRITTEN}\n"))
        return
    files = report.write(made, folder, beside=beside)
    sys.stdout.write(document(files) if json else summary(made, files))


def judged(targets: Sequence[Target], *, strict: bool) -> Exit:
    """Print the targets that are not met on standard error, and return the exit code of the run."""
    missed = [target for target in targets if not target.met]
    sys.stderr.write("".join(f"hushuffle: target not met: {target.sentence}\n" for target in missed))
    return Exit.MISSED if missed and strict else Exit.DONE


def verdicts(targets: Sequence[Target]) -> list[dict[str, Any]]:
    return [
        {"key": target.key, "rule": target.rule, "asked": target.asked, "met": target.met, "sentence": target.sentence}
        for target in targets
    ]


def document(files: Sequence[Path]) -> str:
    return next(file for file in files if file.suffix == ".json").read_text(encoding="utf-8")


def summary(made: Report, files: Sequence[Path]) -> str:
    from hushuffle import report  # noqa: PLC0415 - only when needed

    text = report.terminal(made, width=width(), color=color()).rstrip("\n")
    return "\n".join([text, "", *(f"Wrote {file}" for file in files), ""])
