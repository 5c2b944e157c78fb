"""Several messages of the same person: the traffic paper's figures 8e, 8f (iterations) and 9 (grouping sets)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from hushuffle.model import Bound, Chart, Claim, Report, Series, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.papers.base import Request, Target, claim, every, falling, flattening
from hushuffle.papers.ladjel2021.tradeoffs import LOAD_OF_A_NODE, OWN_SETTINGS, USED, Setting, grouped
from hushuffle.papers.ladjel2021.traffic import BENNETT, BENNETT_STUDY, DELTA, K_MEANS, TARGETS_OF, as_printed, drawn
from hushuffle.plans import Plan, cluster_costs, k_means, plan_costs
from hushuffle.questions import traffic

ITERATIONS: Final = 10
_NATS: Final = "epsilon (nats) at delta = 1e-4"

_WAYS: Final = {
    "losses composed": " Certified.",
    "sum over the sets": " Certified: the paper's Theorem 1, corrected.",
    "printed formula": " No bound.",
}

Figures = dict[tuple[int, float, int], tuple[Plan, Bound, Bound, float]]
Lines = dict[float, list[tuple[int, float, int]]]


def iteration_study(
    request: Request,
    *,
    people: int = USED,
    rates: Sequence[float] = (0.5, 0.8, 0.9),
    rounds: int = ITERATIONS,
    dummies: Sequence[int] = (0, 50, 200, 500),
    batches: Sequence[int] = (20, 50, 100, 300, 600),
) -> Report:
    """Return figures 8e and 8f, if centroids are public: each of `people` points takes part in every round."""
    load = {s: [(100, s, d) for d in dummies] for s in rates}
    node = {s: [(n, s, 50) for n in batches] for s in rates}
    figures: Figures = {}
    common: dict[str, Any] = {"people": people, "centroids": TARGETS_OF, "iterations": rounds}
    cases = [case for line in (*load.values(), *node.values()) for case in line]
    for place, (n, s, d) in enumerate(cases):
        request.tell(f"n = {n}, sigma = {s:g}, d = {d}", place / len(cases))
        plan = k_means(variant="public-centroids", sigma=s, dummies=d, batch=n, **common)
        total = traffic.plan_guarantee(plan, delta=DELTA).epsilon
        simple = traffic.theorem_one(plan, delta=DELTA)
        seed = rounds * as_printed(plan.clusters[0].smallest, s, d, DELTA / rounds)
        figures[n, s, d] = (plan, total, simple, seed)
    hidden = k_means(variant="hidden", sigma=0.9, dummies=50, batch=100, **common)
    gain = [figures[case][2].upper / figures[case][1].upper for case in cases]
    rows = [(*case, plan_costs(figures[case][0]).messages) for case in cases]
    return Report(
        key="ladjel2021/figure-8-k-means",
        title=f"K-means, {rounds} iterations: epsilon against network load and against the load of a node",
        question="What do the messages of ten iterations reveal, if the centroids are public?",
        claims=(
            claim(
                "section V",
                f"K-means has the guarantee of I = {ITERATIONS} times one message.",
                hidden.applies,
                f"{hidden.refusals()[0].split('. ')[0]}.",
                quote=K_MEANS,
                reason="All other figures of this study are conditional on public centroids, and do not count what the "
                "centroids reveal.",
            ),
            _within(figures, load),
            _batches_matter(figures, node),
        ),
        answers=(
            f"Composing the losses of {rounds} rounds gives {min(gain):.1f} to {max(gain):.1f} times less than the sum "
            "of the rounds' epsilons at equal shares of delta (the paper's Theorem 1).",
        ),
        settings=(
            ("people", f"{people:,}"),
            ("centroids", "20"),
            ("iterations", str(rounds)),
            ("delta", "1e-4 in all"),
            ("assumption", "public centroids"),
        ),
        tables=(
            Table(
                key="rounds",
                title=f"{rounds} rounds, conditional on public centroids",
                caption="Composed: certified. Sum: Theorem 1 with certified figures. Printed: the same sum with the "
                "printed formula, no bound.",
                columns=("n", "sigma", "d", "messages", "composed", "sum", "printed (no bound)"),
                rows=tuple((*row, *figures[case][1:]) for row, case in zip(rows, cases, strict=True)),
            ),
        ),
        charts=(
            *_rounds_charts("network-load", "Network load (figure 8e)", "messages in all", load, figures, _messages),
            *_rounds_charts("individual-load", "Load of a scrambler (figure 8f)", "channels", node, figures, _channels),
        ),
        citations=(LADJEL.at("Figure 8, e and f"), LADJEL.at("Theorem 1, corrected")),
    )


def _messages(plan: Plan) -> float:
    return float(plan_costs(plan).messages)


def _channels(plan: Plan) -> float:
    return float(cluster_costs(plan.clusters[0]).busiest)


def _rounds_charts(
    key: str, title: str, x_label: str, lines: Lines, figures: Figures, x: Callable[[Plan], float]
) -> Iterator[Chart]:
    for s, cases in lines.items():
        at = [x(figures[case][0]) for case in cases]
        yield Chart(
            key=f"{key}-{s:g}",
            title=f"{title}, sigma = {s:g}",
            caption="Conditional on public centroids. Composed: certified; the lower bound is that of one round.",
            x_label=x_label,
            y_label=_NATS,
            series=tuple(
                drawn(name, at, [figures[case][1:][place] for case in cases])
                for place, name in enumerate(("composed", "sum", "printed (no bound)"))
            ),
            y_log=True,
        )


def _within(figures: Figures, load: Lines) -> Claim:
    rate = max(load)
    line = [figures[case][1].upper for case in load[rate]]
    start, end = line[0], line[-1]
    return claim(
        "Figure 8e",
        "At high sampling rates epsilon <= 1 is reached at little load.",
        every([start <= 1, falling(line)]),
        f"With sigma = {rate:g} epsilon is {number(start)} without dummies, and {number(end)} with {load[rate][-1][2]} "
        "dummies for each scrambler.",
        quote="Configurations with good privacy … and acceptable network load can be achieved.",
        stand_in=OWN_SETTINGS,
    )


def _batches_matter(figures: Figures, node: Lines) -> Claim:
    rate = max(node)
    sizes, line = [case[0] for case in node[rate]], [figures[case][1].upper for case in node[rate]]
    return claim(
        "Figure 8f",
        "Larger batches help, less and less.",
        every([falling(line), flattening(sizes, line)]),
        f"With sigma = {rate:g} and 50 dummies for each scrambler, epsilon is "
        + ", ".join(f"{number(value)} for n = {n}" for n, value in zip(sizes, line, strict=True))
        + ".",
        quote=LOAD_OF_A_NODE,
        stand_in=OWN_SETTINGS,
    )


def grouping_study(
    request: Request,
    *,
    used: int = USED,
    n: int = 500,
    sigma: float = 0.2,
    dummies: Sequence[int] = (0, 50, 150, 400, 1000),
    most: int = 4,
) -> Report:
    """Return figure 9: plans of 1 to `most` grouping sets, with `used` arriving records per set and batches of `n`."""
    rows, ratios, low = [], [], 0
    lines: dict[str, list[Series]] = {name: [] for name in _WAYS}
    for sets in range(1, most + 1):
        for place, d in enumerate(dummies):
            request.tell(f"{sets} grouping sets, d = {d}", (sets - 1 + place / len(dummies)) / most)
            setting = Setting.for_used(used, n=n, sigma=sigma, dummies=d)
            plan = grouped(setting, sets)
            total = traffic.plan_guarantee(plan, delta=DELTA).epsilon
            simple = traffic.theorem_one(plan, delta=DELTA)
            claimed = sets * as_printed(setting.batch, sigma, d, DELTA / sets)
            messages = plan_costs(plan).messages
            low += sets == 1 and claimed < total.lower
            rows.append((sets, d, messages, total, simple, claimed))
            if sets > 1:
                ratios.append(simple.upper / total.upper)
        _, _, at, *ways = zip(*rows[-len(dummies) :], strict=True)
        for name, figures in zip(_WAYS, ways, strict=True):
            lines[name].append(drawn(f"G = {sets}", at, figures))
    return Report(
        key="ladjel2021/figure-9",
        title="Aggregate over several grouping sets: epsilon against network load",
        question="What epsilon has a person who answers G grouping sets, against the number of all messages?",
        claims=(
            claim(
                "Figure 9",
                "The printed curve of one grouping set is a bound.",
                low == 0,
                f"At {low} of {len(dummies)} numbers of dummies it lies below the certified lower bound.",
                quote=BENNETT,
                repeats=BENNETT_STUDY,
            ),
        ),
        answers=(
            "The sum over grouping sets (Theorem 1, corrected: over all clusters that an item reaches) holds, but is "
            f"{min(ratios):.1f} to {max(ratios):.1f} times what composing the losses gives.",
            "If each person answers one grouping set only, chosen without looking at the data, the line of G = 1 holds "
            "for all, at the batches that are then smaller in number.",
        ),
        settings=(
            ("targets", "20"),
            ("sources of a scrambler", str(n)),
            ("sigma", f"{sigma:g}"),
            ("tuples used by each set", f"{used:,}"),
        ),
        tables=(
            Table(
                key="sets",
                title="Grouping sets",
                caption="Total delta = 1e-4. The lower bound of a composed epsilon is that of one grouping set.",
                columns=("G", "d", "messages", "composed", "sum", "printed (no bound)"),
                rows=tuple(rows),
            ),
        ),
        charts=tuple(
            Chart(
                key=f"load-{place}",
                title=f"Epsilon by grouping sets and network load, {name} (figure 9)",
                caption=f"n = {n}, sigma = {sigma:g}.{_WAYS[name]}",
                x_label="messages in all",
                y_label=_NATS,
                series=tuple(series),
                y_log=True,
            )
            for place, (name, series) in enumerate(lines.items(), 1)
        ),
        citations=(LADJEL.at("Figure 9"), LADJEL.at("Theorem 1, corrected")),
    )


TARGETS: Final = (
    Target(
        name="ladjel2021/figure-8-k-means",
        title="K-means with public centroids: privacy against network load and load of a node",
        build=iteration_study,
        quick=partial(iteration_study, people=600, rates=(0.9,), rounds=2, dummies=(0, 50), batches=(100, 300)),
        seconds=60.0,
    ),
    Target(
        name="ladjel2021/figure-9",
        title="Aggregate over 1 to 4 grouping sets: privacy against network load",
        build=grouping_study,
        quick=partial(grouping_study, used=1000, n=200, dummies=(0, 400), most=2),
        seconds=60.0,
    ),
)
