"""The papers' tables and figures, recomputed: `targets` lists all of them, `reproduce` computes one."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hushuffle import _checks
from hushuffle.model import VERDICTS, Claim, Report, Table, Verdict
from hushuffle.model.claim import distinct
from hushuffle.model.report import software
from hushuffle.report.document import INDEX
from hushuffle_papers.base import TARGETS, Request, Target

__all__ = ["Request", "Target", "find", "overview", "reproduce", "targets"]

_MODULES: Final = {
    "jurado2023": ("guessing", "channels", "limits", "relations"),
    "buffling": ("bloom", "simulation"),
    "murakami2021": ("attempts", "buckets", "frameworks", "frequencies", "linkage", "noise"),
    "meehan2022": ("attack", "exact", "example", "hospitals", "map", "preservation"),
    "ladjel2021": ("traffic", "deltas", "rounds", "runs", "savings", "tradeoffs"),
}
"""The modules of each paper that have targets."""


def targets() -> dict[str, Target]:
    """Return all targets by name, sorted: figure-2 before figure-10.

    >>> list(targets())[0]
    'buffling/figure-1'
    """
    for paper, names in _MODULES.items():
        for name in names:
            importlib.import_module(f"{__package__}.{paper}.{name}")
    return {target.name: target for target in sorted(TARGETS.values(), key=lambda target: target.order)}


def find(name: str) -> tuple[Target, ...]:
    """Return the target `name`, or all targets of the paper `name`.

    Raises:
        InvalidInputError: there is no such target; the message lists targets with similar names.

    >>> len(find("jurado2023/figure-2")), len(find("jurado2023")) > 5
    (1, True)
    """
    every = targets()
    if name in every:
        return (every[name],)
    paper = tuple(target for target in every.values() if target.paper == name)
    if paper:
        return paper
    ends = [other for other in every if other.partition("/")[2] == name]
    papers = sorted({target.paper for target in every.values()})
    meant = ends or difflib.get_close_matches(name, [*every, *papers])
    hint = f"Did you mean {', '.join(meant[:-1])}{' or ' if meant[1:] else ''}{meant[-1]}?" if meant else ""
    return _checks.reject("name", "a target or a paper", f'"{name}"', hint)


def reproduce(name: str, request: Request, *, quick: bool = False) -> Report:
    """Return the study of the target `name`.

    With `quick`, the study has small sizes; it tests the same claims, but neither confirms nor contradicts them.

    Raises:
        InvalidInputError: there is no target of this name.
        DataError: the data set of the target is missing.

    >>> reproduce("jurado2023/table-1", Request()).key
    'jurado2023/table-1'
    """
    every = targets()
    if name not in every:
        find(name)
        _checks.reject("name", "one target", f'"{name}", a paper')
    target = every[name]
    small = target.quick if quick else None
    study = (small or target.build)(request)
    claims = tuple(replace(_small(claim) if small else claim, target=name) for claim in study.claims)
    settings = (*study.settings, *((("sizes", "small, for a quick look"),) if small else ()))
    return replace(study, claims=claims, settings=settings, software=study.software or software())


def _small(claim: Claim) -> Claim:
    """Return a claim as tested at small sizes, that is, on other data than the paper's."""
    verdict = _AT_SMALL_SIZES.get(claim.verdict)
    if verdict is None:
        return claim
    return replace(claim, verdict=verdict, reason=f"{_SMALL} {claim.reason}".strip())


_AT_SMALL_SIZES: Final[dict[Verdict, Verdict]] = {
    "confirmed": "holds on other data",
    "contradicted": "differs on other data",
}
_SMALL: Final = "This quick run used small sizes."


def overview(studies: Sequence[Report], skipped: Mapping[str, str] | None = None) -> Report:
    """Return a report of the claims of `studies` by paper; `skipped` maps targets that did not run to the reason.

    >>> overview([], {"meehan2022/figure-8": "no data"}).answers
    ('Not run: meehan2022/figure-8 (no data).',)
    """
    papers = list(dict.fromkeys(study.key.partition("/")[0] for study in studies))
    every = [claim for study in studies for claim in study.claims]
    own = {paper: [claim for claim in distinct(every) if claim.target.startswith(f"{paper}/")] for paper in papers}
    counts = {
        paper: [sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS]
        for paper, claims in own.items()
    }
    return Report(
        key=INDEX,
        title="Claims of the papers, and their verdicts",
        question="Which claims of the papers hold?",
        claims=tuple(every),
        answers=tuple(f"Not run: {name} ({reason})." for name, reason in (skipped or {}).items()),
        tables=(
            Table(
                key="verdicts",
                title="Verdicts by paper",
                caption="Confirmed and contradicted: on the paper's own data, or by proof. Repeated claims count once.",
                columns=("paper", "studies", "claims", *VERDICTS),
                rows=tuple(
                    (paper, sum(study.key.partition("/")[0] == paper for study in studies), sum(numbers), *numbers)
                    for paper, numbers in counts.items()
                ),
            ),
            Table(
                key="studies",
                title="Studies",
                caption="The folder of this page has one folder for each study.",
                columns=("study", "title", "claims"),
                rows=tuple((study.key, study.title, len(study.claims)) for study in studies),
            ),
        ),
        software=software(),
    )
