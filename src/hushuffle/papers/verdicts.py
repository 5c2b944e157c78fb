"""One report of the claims of several studies, the last output of `hushuffle reproduce all`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hushuffle.model import VERDICTS, Report, Table
from hushuffle.model.claim import distinct
from hushuffle.model.report import software
from hushuffle.report.document import INDEX


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
                    (paper, sum(_of(study, paper) for study in studies), sum(numbers), *numbers)
                    for paper, numbers in counts.items()
                ),
            ),
            Table(
                key="studies",
                title="Studies",
                caption="Each study is in a folder beside this page.",
                columns=("study", "title", "claims"),
                rows=tuple((study.key, study.title, len(study.claims)) for study in studies),
            ),
        ),
        software=software(),
    )


def _of(study: Report, paper: str) -> bool:
    return study.key.partition("/")[0] == paper
