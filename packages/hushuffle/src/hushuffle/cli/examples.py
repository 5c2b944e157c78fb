"""`hushuffle examples`."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import textwrap
from pathlib import Path

from hushuffle.cli.console import Exit, misused

_PACKAGE = Path(__file__).parents[1]
_PLACES = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")
"""The installed package, or the root of a source checkout."""

_OTHER_TOOLS = ("browser", "dbt")
"""Folders of examples that other tools run."""


def examples(folder: Path | None = None, /) -> Exit:
    """List the example files, or copy them into a new folder.

    Examples (no files needed):
      hushuffle examples
      hushuffle examples hushuffle-out/examples

    Args:
        folder: new folder for copies of all examples and their tables (default: list them).
    """
    place = next(place for place in _PLACES if place.is_dir())
    every = (*place.iterdir(), *(place / "notebooks").iterdir())
    files = sorted((file for file in every if file.suffix in {".toml", ".csv", ".ipynb"}), key=lambda file: file.name)
    if folder is None:
        for file in files:
            if file.suffix != ".csv":
                sys.stdout.write(f"{file.name}\n{_about(file)}\n")
        return Exit.DONE
    if folder.exists():
        misused(f"{folder} exists. Choose a new folder.")
    folder.mkdir(parents=True)
    for file in files:
        (folder / file.name).write_bytes(file.read_bytes())
    for other in _OTHER_TOOLS:
        shutil.copytree(place / other, folder / other, ignore=shutil.ignore_patterns("__pycache__"))
    sys.stdout.write(f"Wrote {sum(file.is_file() for file in folder.rglob('*'))} files into {folder}\n")
    return Exit.DONE


def _about(file: Path) -> str:
    """First paragraph of the comment at the top of an example, or of a notebook."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        summary = "".join(json.loads(text)["cells"][0]["source"]).split("\n\n")[1]
    else:
        lines = (line for line in text.splitlines() if not line.startswith("#:"))
        paragraph = itertools.takewhile(lambda line: line.startswith("# "), lines)
        summary = " ".join(line.removeprefix("# ") for line in paragraph)
    return textwrap.fill(summary, width=80, initial_indent="    ", subsequent_indent="    ")
