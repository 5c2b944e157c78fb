"""Table I: how many dummies (or how much sampling) the exact sum saves, for epsilon <= 1 at delta = 1e-4."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.model import Bound, Cell, Chart, Report, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.plans import Costs, cluster_costs, messages, sources_needed
from hushuffle.questions.traffic import published
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.ladjel2021 import traffic as scrambler
from hushuffle_papers.ladjel2021.traffic import DELTA, SAMPLES, TARGETS_OF, drawn, least, printed_form

WANTED: Final = 1.0
USED: Final = 10_000
_STEPS: Final = 1000
"""Sampling rates are searched in steps of one thousandth."""

_BATCHES: Final = (10, 50, 100, 300, 600)
_RATES: Final = (0.0, 0.1, 0.2, 0.5)
_DUMMIES: Final = (0, 50, 200, 400)


@dataclass(frozen=True, kw_only=True)
class Needed:
    """The least number of dummies (or thousandths of sigma) by each method; infinite if none in the range suffices."""

    exact: float
    bennett: float
    hoeffding: float
    printed: float
    simulated: float


_METHODS: Final = {
    "exact": "exact sum",
    "bennett": "Bennett, corrected",
    "hoeffding": "Hoeffding, corrected",
    "simulated": "Algorithm 2",
    "printed": "Bennett, printed",
}
"""The columns of tables: the fields of `Needed` with their headings."""


def needed(case: Callable[[int], tuple[int, float, int]], most: int, *, samples: int, seed: int) -> Needed:
    """Return the least x with epsilon <= 1 at delta = 1e-4; "printed" and "simulated" numbers are no guarantees."""

    def simulated(x: int) -> bool:
        delta = published.simulated_delta(TARGETS_OF, *case(x), epsilon=WANTED, samples=samples, seed=seed)
        return delta <= DELTA

    def first(holds: Callable[[int], bool]) -> float:
        smallest = least(holds, most)
        return math.inf if smallest is None else smallest

    return Needed(
        exact=first(lambda x: scrambler.meets(*case(x), epsilon=WANTED)),
        bennett=first(lambda x: scrambler.bennett(*case(x)).upper <= WANTED),
        hoeffding=first(lambda x: published.theorem_four_epsilon(TARGETS_OF, *case(x), delta=DELTA).upper <= WANTED),
        printed=first(lambda x: scrambler.as_printed(*case(x)) <= WANTED),
        simulated=first(simulated),
    )


@target(
    "ladjel2021/table-1-savings",
    "Dummies or sampling needed for epsilon <= 1 at delta = 1e-4: exact sum against the paper's formulas",
    quick={"batches": (10,), "rates": (0.0,), "dummies": (0, 400), "samples": 300},
    seconds=150.0,
)
def savings_study(
    request: Request,
    *,
    batches: Sequence[int] = _BATCHES,
    rates: Sequence[float] = _RATES,
    dummies: Sequence[int] = _DUMMIES,
    samples: int = SAMPLES,
) -> Report:
    find = partial(needed, samples=samples, seed=request.seed)
    cells = [(n, s) for n in batches for s in rates]
    each = request.each(cells, "dummies needed, n = {}, sigma = {:g}", end=0.6)
    by_dummies = {(n, sigma): find(partial(lambda n, sigma, x: (n, sigma, x), n, sigma), 200_000) for n, sigma in each}
    others = [(n, d) for n in batches for d in dummies]
    by_rate = {
        (n, d): find(partial(lambda n, d, x: (n, x / _STEPS, d), n, d), _STEPS - 1)
        for n, d in request.each(others, "sampling, n = {}, d = {}", start=0.6)
    }
    ratios = [c.exact / c.bennett for c in by_dummies.values() if c.bennett] or [1.0]
    share = [costs(*key, c.exact).messages / costs(*key, c.bennett).messages for key, c in by_dummies.items()]
    short = [(key, c) for key, c in by_dummies.items() if scrambler.certified(*key, int(c.printed)).lower > WANTED]
    hoeffding, simulated = (_to_exact(by_dummies, method) for method in ("hoeffding", "simulated"))
    return study(
        "Dummies or sampling needed for epsilon <= 1 at delta = 1e-4",
        "Over the ranges of Table I, how many dummies or how much sampling does the exact calculation save?",
        printed_form(
            "Theorem 4, Table I",
            not short,
            f"In {len(short)} of {len(by_dummies)} settings this form needs so few dummies that epsilon is "
            f"provably above 1; {_worst(short)}",
        ),
        f"Against the paper's best formula that holds (Theorem 4 with Bennett's inequality, corrected) the exact "
        f"sum needs {min(ratios):.0%} to {max(ratios):.0%} of the dummies, and {min(share):.0%} to "
        f"{max(share):.0%} of all messages for {USED:,} used tuples. Hoeffding's form, as in the "
        f"theorem, needs {min(hoeffding):.0f} to {max(hoeffding):.0f} times the dummies.",
        f"Algorithm 2 asks for {min(simulated):.0%} to {max(simulated):.0%} of the dummies of the exact sum, which "
        f"it estimates: too few in {sum(c.simulated < c.exact for c in by_dummies.values())} of {len(by_dummies)} "
        "settings.",
        _rates_answer(by_rate),
        _dummy_table(by_dummies),
        _rate_table(by_rate),
        _chart(batches, rates, by_dummies),
        settings=(
            ("targets", "20"),
            ("epsilon, delta", "1, 1e-4"),
            ("samples of Algorithm 2", f"{samples:,}"),
            ("seed", str(request.seed)),
        ),
        citations=(LADJEL.at("Table I"), LADJEL.at("Theorem 4"), LADJEL.at("Algorithm 2")),
    )


def _worst(short: Sequence[tuple[tuple[int, float], Needed]]) -> str:
    if not short:
        return "none."
    (n, sigma), cell = max(short, key=lambda item: scrambler.certified(*item[0], int(item[1].printed)).lower)
    there = scrambler.certified(n, sigma, int(cell.printed))
    return f"most at n = {n}, sigma = {sigma:g}, d = {cell.printed:,}, where epsilon is {there}."


def _to_exact(cells: dict[tuple[int, float], Needed], method: str) -> list[float]:
    """Return the ratios of the numbers by `method` to those of the exact sum, where these are positive, or [1.0]."""
    return [getattr(cell, method) / cell.exact for cell in cells.values() if cell.exact] or [1.0]


def _rates_answer(cells: dict[tuple[int, int], Needed]) -> str:
    pairs = [(c.exact / _STEPS, c.bennett / _STEPS) for c in cells.values() if c.exact and math.isfinite(c.bennett)]
    if not pairs:
        return "Where dummies suffice no sampling is needed."
    used = [[1 - sigma * (1 - 1 / TARGETS_OF) for sigma in pair] for pair in pairs]
    most = max((exact - other, exact, other) for exact, other in used)
    return (
        f"Where sampling is needed, the exact sum needs less of it: at best {most[1]:.0%} of the tuples are used in "
        f"place of {most[2]:.0%}."
    )


def costs(n: int, sigma: float, dummies: float) -> Costs:
    size: dict[str, Any] = {"sources": _sources(sigma), "targets": TARGETS_OF, "dummies": int(dummies), "batch": n}
    return cluster_costs(messages("send", sigma=sigma, reads=("p",), **size))


def _dummy_table(cells: dict[tuple[int, float], Needed]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    costed = ("epsilon at those", "messages, exact sum", "messages, Bennett corrected")
    for (n, sigma), cell in cells.items():
        counts = (int(getattr(cell, method)) for method in _METHODS)
        sent = (costs(n, sigma, dummies).messages for dummies in (cell.exact, cell.bennett))
        rows.append((n, sigma, *counts, scrambler.certified(n, sigma, int(cell.printed)), *sent))
    return Table(
        key="dummies",
        title="Dummies of each scrambler for epsilon <= 1 at delta = 1e-4",
        caption=f"20 targets. The first three methods are guarantees. Messages: total for {USED:,} used tuples.",
        columns=("n", "sigma", *_METHODS.values(), *costed),
        rows=tuple(rows),
    )


def _rate_table(cells: dict[tuple[int, int], Needed]) -> Table:
    def rate(value: float) -> Cell:
        return "none below 1" if math.isinf(value) else value / _STEPS

    return Table(
        key="sampling",
        title="Sampling rate for epsilon <= 1 at delta = 1e-4",
        caption="20 targets, in thousandths; 0: dummies alone suffice.",
        columns=("n", "dummies", *_METHODS.values()),
        rows=tuple((n, d, *(rate(getattr(cell, method)) for method in _METHODS)) for (n, d), cell in cells.items()),
    )


def _chart(batches: Sequence[int], rates: Sequence[float], cells: dict[tuple[int, float], Needed]) -> Chart:
    names = {"exact": "exact sum", "bennett": "Bennett corrected", "printed": "Bennett as printed (no bound)"}
    return chart(
        "dummies",
        "Dummies of each scrambler for epsilon <= 1 at delta = 1e-4",
        "20 targets.",
        ("sources n of the scrambler", "dummies d"),
        [
            drawn(f"{label}, sigma = {s:g}", batches, [getattr(cells[n, s], name) for n in batches])
            for s in dict.fromkeys((rates[0], rates[-1]))
            for name, label in names.items()
        ],
    )


@target("ladjel2021/table-1", "Epsilon and costs at the extreme settings of the evaluation", seconds=2.0)
def ranges(request: Request) -> Report:
    request.tell("corners", 0.1)
    corners = [(n, s, d) for n in (10, 600) for s in (0.0, 0.2, 0.9) for d in (0, 1000)]
    rows: list[tuple[Cell, ...]] = []
    figures: list[Bound] = []
    for n, sigma, d in corners:
        cost = costs(n, sigma, d)
        figures.append(scrambler.certified(n, sigma, d))
        rows.append((n, sigma, d, figures[-1], cost.scramblers, cost.messages, cost.busiest, _sources(sigma)))
    outside = sum(figure.lower > 5 for figure in figures)
    return study(
        "The ranges of the evaluation",
        "Which epsilon and costs have the extreme settings of the parameter ranges?",
        claim(
            "section III-C",
            "S used tuples take S/(1 - sigma) sources.",
            _sources(0.9) == USED * 10,
            f"At sigma = 0.9 {_sources(0.9):,} are enough: S/(1 - sigma (1 - 1/T)).",
            quote="the total number of source nodes must be … with also an impact on efficiency",
            printed=f"the formula gives {USED * 10:,} at sigma = 0.9",
            reason="By footnote 5 a random target may be the true one, and then gets the true message. The error is on "
            "the safe side; the formula is right in the convention of Theorem 3.",
        ),
        f"The corners of the ranges reach from epsilon {number(min(f.upper for f in figures))} to no guarantee at all "
        f"(neither sampling nor dummies); {outside} of {len(figures)} lie above 5, the end of the range of epsilon.",
        f"20 to 100 scramblers for {USED:,} to 20,000 sources are batches of 100 to 1,000; the smallest batch of "
        f"the range, n = 10, takes {costs(10, 0.0, 0).scramblers:,} scramblers for {USED:,} sources.",
        Table(
            key="corners",
            title="Corners of the ranges",
            caption="Figures are for one cluster (one grouping set, one iteration).",
            columns=("n", "sigma", "d", "epsilon", "scramblers", "messages", "channels of a scrambler", "sources"),
            rows=tuple(rows),
        ),
        settings=(("targets", "20"), ("delta", "1e-4"), ("used tuples", f"{USED:,}")),
        citations=(LADJEL.at("Table I"),),
    )


def _sources(sigma: float) -> int:
    return sources_needed(USED, TargetSampling(targets=TARGETS_OF, sigma=sigma))
