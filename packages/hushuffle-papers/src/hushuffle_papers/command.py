"""`hushuffle reproduce`."""

from __future__ import annotations

import json as json_text
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hushuffle.cli.console import Exit, Flag, Tell, document, misused, progress, refuse_file, summary
from hushuffle.errors import DataError, InvalidInputError

if TYPE_CHECKING:
    from hushuffle.model import Report
    from hushuffle_papers.registry import Request, Target

_ROOT = Path("hushuffle-out") / "reproduce"
_ALL = "all"
_WIDTH = 80
_INDENT = 4


def reproduce(
    name: str | None = None,
    /,
    *,
    out: Path | None = None,
    data: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    seed: int = 1,
    quick: Flag = False,
    json: Flag = False,
    list_: Annotated[bool, Parameter(name="--list", negative=(), show_default=False)] = False,
) -> Exit:
    """Recompute tables and figures of papers, and check their claims.

    Examples (no files needed):
      hushuffle reproduce --list
      hushuffle reproduce jurado2023/figure-2 --quick

    Writes study.html and study.json, every picture as SVG and PNG, and all numbers
    as CSV and Parquet, and prints a summary. For a paper, or for all, also writes
    index.html and verdicts.json with the verdict on each claim.

    Args:
        name: target such as jurado2023/figure-2, jurado2023 for all targets of that paper, or all (default: list them).
        out: folder to write into; several targets get one folder each in it (default: hushuffle-out/reproduce/NAME).
        data: folder of the data sets, or NAME=FOLDER for one data set; may be repeated (default: HUSHUFFLE_DATA).
        seed: seed of simulations; the same seed gives the same numbers.
        quick: compute at small sizes, in seconds; no claim is confirmed or contradicted.
        json: print only study.json, no summary; for several targets, the study.json of each, and verdicts.json.
        list_: list the targets with their data sets and running times.
    """
    # Imported here, so that `hushuffle --help` does not wait for numerics, tables and templates.
    from hushuffle_papers.registry import Request, find, targets  # noqa: PLC0415

    if seed < 0:
        misused(f"--seed must be a whole number >= 0, got {seed}.")
    try:
        chosen = tuple(targets().values()) if name in (None, _ALL) else find(str(name))
    except InvalidInputError as error:
        hint = error.problem.hint or "`hushuffle reproduce` lists all of them."
        misused(f"There is no target {error.problem.value}. {hint}")
    if list_ or name is None:
        sys.stdout.write(_listed_json(chosen) if json else "\n".join(_listed(chosen)) + "\n")
        return Exit.DONE
    folder, named = _data(data, targets().values())
    request = Request(data=folder, named=named, seed=seed)
    where = out or _ROOT / name.replace("/", "-")
    refuse_file(where)
    if chosen[0].name == name:
        return _single(chosen[0], where, request, quick=quick, json=json)
    return _several(chosen, where, request, quick=quick, json=json)


def _data(given: Sequence[str], targets: Iterable[Target]) -> tuple[Path | None, dict[str, Path]]:
    """The folder of the data sets, and the folders of data sets elsewhere, by the name of the data set."""
    names = sorted({name for target in targets for name in (*target.data, *dict(target.originals))})
    folder, named = os.environ.get("HUSHUFFLE_DATA"), dict[str, Path]()
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).is_dir():
            folder = text
            continue
        if name not in names:
            misused(
                f"--data: {name or 'an empty name'} is no data set of these targets. Use one of {', '.join(names)}."
            )
        if not Path(path).is_dir():
            misused(f"--data: {name} must be a folder, but {path or 'nothing'} is not a folder.")
        named[name] = Path(path)
    return (Path(folder) if folder else None), named


def _single(target: Target, folder: Path, request: Request, *, quick: bool, json: bool) -> Exit:
    from hushuffle import report  # noqa: PLC0415

    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        study = _computed(target, request, _part(tell, target, start=0.0, size=1.0), quick=quick)
        files = report.write(study, folder, figures=True)
    sys.stdout.write(document(files) if json else summary(study, [*files[:2], folder]))
    return Exit.DONE


def _several(chosen: Sequence[Target], folder: Path, request: Request, *, quick: bool, json: bool) -> Exit:
    """Writes one target after the other, then all claims; skips targets whose data are missing."""
    from hushuffle import report  # noqa: PLC0415
    from hushuffle.model.claim import count  # noqa: PLC0415
    from hushuffle_papers.registry import overview  # noqa: PLC0415

    documents, studies, skipped = [], [], {}
    total = sum(target.seconds for target in chosen)
    for place, target in enumerate(chosen):
        before = sum(done.seconds for done in chosen[:place])
        with progress(enabled=not json and sys.stderr.isatty()) as tell:
            part = _part(tell, target, start=before / total, size=target.seconds / total)
            try:
                study = _computed(target, request, part, quick=quick)
            except DataError as error:
                sys.stderr.write(f"hushuffle: skipped {target.name}: {error}\n")
                skipped[target.name] = str(error).rstrip(".")
                continue
            files = report.write(study, folder / report.folder_of(target.name), figures=True)
        studies.append(study)
        if json:
            documents.append(json_text.loads(document(files)))
        else:
            sys.stdout.write(f"{target.name}: {count(study.claims)}\n")
    summary = overview(studies, skipped)
    files = report.write(summary, folder)
    if json:
        sys.stdout.write(_enveloped("studies", studies=documents, summary=json_text.loads(document(files))))
    else:
        lines = ["", count(summary.claims), *(f"Wrote {file}" for file in files), ""]
        sys.stdout.write("\n".join(lines))
    return Exit.FAILED if skipped else Exit.DONE


def _computed(target: Target, request: Request, tell: Tell, *, quick: bool) -> Report:
    from hushuffle_papers import registry as tools  # noqa: PLC0415 - only when needed

    return tools.reproduce(target.name, replace(request, tell=tell), quick=quick)


def _part(tell: Tell | None, target: Target, *, start: float, size: float) -> Tell:
    """Moves the progress bar within one target's part of the bar."""

    def told(what: str, share: float) -> None:
        if tell is not None:
            tell(f"{target.name}: {what}", start + size * share)

    told("starting", 0.0)
    return told


def _listed(chosen: Sequence[Target]) -> Iterator[str]:
    for target in chosen:
        data = f", needs {', '.join(target.data)}" if target.data else ""
        time = f"{max(round(target.seconds), 1)} s" if target.seconds < 100 else f"{round(target.seconds / 60)} min"
        yield f"{target.name}  (about {time}{data})"
        more = (f"With --data {name}=FOLDER: {tested}." for name, tested in target.originals)
        for text in (target.title, *more):
            yield from textwrap.wrap(text, width=_WIDTH, initial_indent=" " * _INDENT, subsequent_indent=" " * _INDENT)


def _listed_json(chosen: Sequence[Target]) -> str:
    rows = [
        {
            "name": target.name,
            "title": target.title,
            "data": list(target.data),
            "originals": dict(target.originals),
            "seconds": target.seconds,
        }
        for target in chosen
    ]
    return _enveloped("targets of papers", targets=rows)


def _enveloped(content: str, **keys: Any) -> str:
    from hushuffle.report import SCHEMA_VERSION  # noqa: PLC0415 - only when needed

    whole = {"schema_version": SCHEMA_VERSION, "content": content, **keys}
    return json_text.dumps(whole, indent=2, allow_nan=False) + "\n"
