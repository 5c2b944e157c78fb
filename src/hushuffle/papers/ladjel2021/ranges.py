"""The ranges of the traffic paper's evaluation (Table I): what their corners give and cost."""

from __future__ import annotations

from typing import Final

from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.model import Bound, Cell, Report, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.papers.base import Request, Target
from hushuffle.papers.ladjel2021.parts import TARGETS_OF, certified
from hushuffle.papers.ladjel2021.savings import USED, costs
from hushuffle.plans import k_means, sources_needed


def ranges(request: Request) -> Report:
    """Return Table I: the corners of its ranges, with what they give and cost."""
    request.tell("corners", 0.1)
    corners = [(n, s, d) for n in (10, 600) for s in (0.0, 0.2, 0.9) for d in (0, 1000)]
    rows: list[tuple[Cell, ...]] = []
    for n, sigma, d in corners:
        cost = costs(n, sigma, d)
        figure = certified(n, sigma, d)
        rows.append((n, sigma, d, figure, cost.scramblers, cost.messages, cost.busiest, _sources(sigma)))
    figures = [row[3] for row in rows if isinstance(row[3], Bound)]
    outside = sum(figure.lower > 5 for figure in figures)
    hidden = k_means(people=USED, centroids=20, iterations=10, variant="hidden", sigma=0.9, dummies=50, batch=100)
    return Report(
        key="ladjel2021/table-1",
        title="The ranges of the evaluation",
        question="What do the corners of the parameter ranges give, and what do they cost?",
        answers=(
            f"The corners reach from epsilon {number(min(f.upper for f in figures))} to no guarantee at all (neither "
            f"sampling nor dummies); {outside} of {len(figures)} lie above the paper's range 0 to 5.",
            f"20 to 100 scramblers for {USED:,} to 20,000 sources are batches of 100 to 1,000; the smallest batch of "
            f"the range, n = 10, takes {costs(10, 0.0, 0).scramblers:,} scramblers for {USED:,} sources.",
            "The paper needs S/(1 - sigma) sources; with lucky draws it is S/(1 - sigma (1 - 1/T)): at sigma = 0.9 "
            f"{_sources(0.9):,} in place of {USED * 10:,}.",
            f"K-means as published, with I = 10, gets no guarantee. {hidden.refusals()[0].split(':')[0]}.",
        ),
        settings=(("targets", "20"), ("delta", "1e-4"), ("used tuples", f"{USED:,}")),
        tables=(
            Table(
                key="corners",
                title="Corners of the ranges",
                caption="One cluster (one grouping set, one iteration).",
                columns=("n", "sigma", "d", "epsilon", "scramblers", "messages", "channels of a scrambler", "sources"),
                rows=tuple(rows),
            ),
        ),
        citations=(LADJEL.at("Table I"),),
    )


def _sources(sigma: float) -> int:
    return sources_needed(USED, TargetSampling(targets=TARGETS_OF, sigma=sigma))


TARGETS: Final = (
    Target(
        name="ladjel2021/table-1",
        title="The ranges of the evaluation and what their corners give",
        build=ranges,
        seconds=2.0,
    ),
)
