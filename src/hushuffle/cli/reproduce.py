"""`hushuffle reproduce`."""

from __future__ import annotations

import json as json_text
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hushuffle.cli.console import Exit, Tell, UsageError, progress
from hushuffle.cli.delivery import document, refuse_file, summary
from hushuffle.errors import DataError, InvalidInputError

if TYPE_CHECKING:
    from hushuffle.model import Report
    from hushuffle.papers import Target

_Flag = Parameter(negative=(), show_default=False)
_ROOT = Path("hushuffle-out") / "reproduce"
_WIDTH = 80
_INDENT = 4


def reproduce(
    name: str | None = None,
    /,
    *,
    out: Path | None = None,
    data: Annotated[Path | None, Parameter(env_var="HUSHUFFLE_DATA")] = None,
    seed: int = 1,
    json: Annotated[bool, _Flag] = False,
    list_: Annotated[bool, Parameter(name="--list", negative=(), show_default=False)] = False,
) -> Exit:
    """Recompute a table or figure of a paper, and say whether it holds.

    Writes study.html and study.json into one folder, both or neither, and
    prints a summary. Without a name it lists what there is.

    Args:
        name: a target such as jurado2023/figure-2, or jurado2023 for all targets of that paper.
        out: the folder to write into (for a whole paper, one folder in it for each target); by default
            hushuffle-out/reproduce/ and the name of the target.
        data: the folder of the data sets, each in a folder of its own.
        seed: for what is simulated; the same seed, the same numbers.
        json: print study.json instead of the summary, and nothing else; for a whole paper, a list of them.
        list_: list the targets, with the data sets they need and about how long they take.
    """
    # Imported here, so that `hushuffle --help` does not wait for numerics, tables and templates.
    from hushuffle.papers import find, targets, today  # noqa: PLC0415

    if seed < 0:
        message = f"--seed must be a whole number >= 0, got {seed}."
        raise UsageError(message)
    try:
        chosen = tuple(targets().values()) if name is None else find(name)
    except InvalidInputError as error:
        message = f"{error} `hushuffle reproduce` lists all of them."
        raise UsageError(message) from None
    if name is not None and today(name) != name:
        sys.stderr.write(f"hushuffle: {name} is now called {today(name)}; the old name still works.\n")
        name = today(name)
    if list_ or name is None:
        sys.stdout.write(_listed_json(chosen) if json else "\n".join(_listed(chosen)) + "\n")
        return Exit.DONE
    single = chosen[0].name == name
    folders = [_folder(target, out, single=single) for target in chosen]
    for folder in folders:
        refuse_file(folder)
    return _run(chosen, folders, data=data, seed=seed, json=json, single=single)


def _run(
    chosen: Sequence[Target], folders: Sequence[Path], *, data: Path | None, seed: int, json: bool, single: bool
) -> Exit:
    """Compute and write one target after the other; those of a paper whose data are missing are skipped."""
    from hushuffle import report  # noqa: PLC0415

    texts, skipped = [], False
    total = sum(target.seconds for target in chosen)
    for place, (target, folder) in enumerate(zip(chosen, folders, strict=True)):
        before = sum(done.seconds for done in chosen[:place])
        with progress(enabled=not json and sys.stderr.isatty()) as tell:
            part = _part(tell, target, start=before / total, size=target.seconds / total)
            try:
                study = _computed(target, data, seed, part)
            except DataError as error:
                if single:
                    raise
                sys.stderr.write(f"hushuffle: skipped {target.name}: {error}\n")
                skipped = True
                continue
            files = report.write(study, folder)
        if json:
            texts.append(document(files).rstrip("\n"))
        else:
            sys.stdout.write(("\n" if place else "") + summary(study, files))
    if json:
        sys.stdout.write((texts[0] if single else "[" + ",\n".join(texts) + "]") + "\n")
    return Exit.FAILED if skipped else Exit.DONE


def _computed(target: Target, data: Path | None, seed: int, tell: Tell) -> Report:
    from hushuffle import papers as tools  # noqa: PLC0415 - only when needed

    return tools.reproduce(target.name, tools.Request(data=data, seed=seed, tell=tell))


def _part(tell: Tell | None, target: Target, *, start: float, size: float) -> Tell:
    """Return what moves one target's part of the bar."""

    def told(what: str, share: float) -> None:
        if tell is not None:
            tell(f"{target.name}: {what}", start + size * share)

    told("starting", 0.0)
    return told


def _folder(target: Target, out: Path | None, *, single: bool) -> Path:
    own = target.name.replace("/", "-")
    if out is None:
        return _ROOT / own
    return out if single else out / own


def _listed(chosen: Sequence[Target]) -> Iterator[str]:
    for target in chosen:
        data = f", needs {', '.join(target.data)}" if target.data else ""
        yield f"{target.name}  (about {_time(target.seconds)}{data})"
        yield from textwrap.wrap(
            target.title, width=_WIDTH, initial_indent=" " * _INDENT, subsequent_indent=" " * _INDENT
        )


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min"


def _listed_json(chosen: Sequence[Target]) -> str:
    rows = [
        {"name": target.name, "title": target.title, "data": list(target.data), "seconds": target.seconds}
        for target in chosen
    ]
    return json_text.dumps(rows, indent=2, allow_nan=False) + "\n"
