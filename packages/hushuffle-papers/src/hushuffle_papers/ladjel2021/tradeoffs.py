"""The traffic paper's figures 8a to 8d: privacy against network load, load of a node, consents and utility."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.model import Bound, Chart, Claim, Report, Series, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.plans import Costs, GroupingQuery, GroupingSet, Plan, aggregate, cluster_costs, sources_needed
from hushuffle_papers.base import Request, chart, claim, every, falling, flattening, study, target
from hushuffle_papers.ladjel2021 import traffic as scrambler
from hushuffle_papers.ladjel2021.traffic import TARGETS_OF, drawn, printed_form

USED: Final = 10_000
ACCEPTABLE: Final = "The paper does not say which load is acceptable: only epsilon is tested."
OWN_SETTINGS: Final = "The paper does not give the settings of its curves: ours lie within its Table I."
LOAD_OF_A_NODE: Final = (
    "increasing individual load on scramblers yields better privacy, however this effect also diminishes when "
    "individual load increases"
)
_NATS: Final = "epsilon (nats) at delta = 1e-4"
_DUMMIES: Final = (0, 10, 25, 50, 100, 200, 400, 700, 1000)
_BATCHES: Final = (10, 20, 50, 100, 200, 300, 400, 600)


@dataclass(frozen=True, kw_only=True)
class ClusterSetting:
    """One cluster of an aggregate: `sources` in batches of up to `n`, with a sampling rate and dummies."""

    sources: int
    n: int
    sigma: float
    dummies: int

    @classmethod
    def for_used(cls, used: int, *, n: int, sigma: float, dummies: int) -> ClusterSetting:
        """Return the setting with enough sources that `used` records arrive in expectation."""
        sources = sources_needed(used, TargetSampling(targets=TARGETS_OF, sigma=sigma))
        return cls(sources=sources, n=n, sigma=sigma, dummies=dummies)

    @property
    def plan(self) -> Plan:
        return grouped(self, 1)

    @property
    def costs(self) -> Costs:
        return cluster_costs(next(cluster for cluster in self.plan.clusters if not cluster.fixed))

    @property
    def batch(self) -> int:
        """Number of sources in the smallest batch."""
        return self.plan.clusters[0].smallest

    @property
    def exact(self) -> Bound:
        return scrambler.certified(self.batch, self.sigma, self.dummies)

    @property
    def formula(self) -> Bound:
        """Epsilon by Theorem 4 with Bennett's inequality, corrected: an upper bound."""
        return scrambler.bennett(self.batch, self.sigma, self.dummies)

    @property
    def printed(self) -> float:
        """Epsilon by Theorem 4 with Bennett's inequality, as printed: no bound."""
        return scrambler.as_printed(self.batch, self.sigma, self.dummies)


@lru_cache(maxsize=2048)
def grouped(setting: ClusterSetting, sets: int) -> Plan:
    """Return the plan of an aggregate over the first `sets` grouping sets, with 20 compute nodes each."""
    columns = tuple(GroupingSet(columns=(name,), sizes=(20,)) for name in "abcd"[:sets])
    query = GroupingQuery(grouping_sets=columns, partitions=TARGETS_OF)
    people, batch = setting.sources, min(setting.n, setting.sources)
    return aggregate(query, people=people, sigma=setting.sigma, dummies=setting.dummies, batch=batch)


@target(
    "ladjel2021/figure-8",
    "Aggregate: epsilon against network load, load of a node, consents and utility",
    quick={"used": 1000, "batches": (20, 50, 100, 200), "dummies": (200, 700), "steps": 3},
    seconds=60.0,
)
def aggregate_study(
    request: Request,
    *,
    used: int = USED,
    batches: Sequence[int] = _BATCHES,
    dummies: Sequence[int] = _DUMMIES,
    steps: int = 9,
) -> Report:
    """Return figures 8a to 8d: four trade-offs for one grouping set, if `used` records arrive in expectation."""
    smallest, many = 100, max(batches)
    request.tell("network load", 0.0)
    load = {
        (n, s): [ClusterSetting.for_used(used, n=n, sigma=s, dummies=d) for d in dummies]
        for n in (smallest, many)
        for s in (0.0, 0.2)
    }
    request.tell("load of a node", 0.3)
    node = {
        (share, s): [ClusterSetting.for_used(used, n=n, sigma=s, dummies=round(share * n)) for n in batches]
        for share in (0.5, 1.0)
        for s in (0.0, 0.2)
    }
    request.tell("consents", 0.5)
    consents = {
        (n, budget): _at_fixed_load(used, n, budget, steps) for n in (smallest, many) for budget in (3 * used, 4 * used)
    }
    request.tell("utility", 0.8)
    rates = [round(0.9 * step / (steps - 1), 4) for step in range(steps)]
    utility = {d: [ClusterSetting(sources=used, n=smallest, sigma=s, dummies=d) for s in rates] for d in (10, 50, 200)}
    points = [setting for line in (*load.values(), *node.values(), *utility.values()) for setting in line]
    below = [setting for setting in points if setting.printed < setting.exact.lower]
    rows = tuple(
        (n, s, p.dummies, p.costs.scramblers, p.costs.messages, p.sources, p.exact, p.formula, p.printed)
        for (n, s), line in load.items()
        for p in line
    )
    columns = ("n", "sigma", "d", "scramblers", "messages", "sources", "certified", "Bennett corrected", "printed")
    return study(
        "Aggregate: epsilon against network load, load of a node, consents and utility",
        f"How many messages, channels, consents or records does epsilon cost, if {used:,} records are used?",
        _load_claim(load),
        _node_claim(node),
        _consents_claim(smallest, consents, "with few messages per scrambler."),
        _consents_claim(many, consents, "with many messages per scrambler, too."),
        _utility_claim(utility),
        printed_form(
            "Figure 8, a, b and d",
            not below,
            f"In {len(below)} of {len(points)} points this epsilon lies below the certified lower bound.",
        ),
        Table(key="load", title="Network load, one grouping set", caption="", columns=columns, rows=rows),
        _consents_table(consents),
        *(
            _chart(
                f"network-load-{size}",
                f"Network load, n = {size} (figure 8a)",
                "messages added by the protection, in all",
                _by_sigma(load.items(), size, lambda p: p.costs.messages - used),
            )
            for size in (smallest, many)
        ),
        *(
            _chart(
                f"individual-load-{each:g}",
                f"Load of a scrambler, d = {each:g} n (figure 8b)",
                "channels of a scrambler",
                _by_sigma(node.items(), each, lambda p: p.costs.busiest),
            )
            for each in (0.5, 1.0)
        ),
        _chart(
            "consents",
            "Epsilon against the number of consents at a fixed network load (figure 8c)",
            "sources in all",
            [
                drawn(f"{budget:,} messages, n = {n}", [p.sources for p in line], [p.exact for p in line])
                for (n, budget), line in consents.items()
            ],
        ),
        *(
            _chart(
                f"utility-{d}",
                f"Tuples used by {used:,} sources, d = {d} (figure 8d)",
                "tuples used, in expectation",
                _three("", settings, lambda p: p.costs.used),
            )
            for d, settings in utility.items()
        ),
        settings=(
            ("targets", "20"),
            ("delta", "1e-4"),
            ("tuples used", f"{used:,}"),
            ("what the paper does not give", "batches and rates of the curves; chosen within Table I"),
        ),
        citations=(LADJEL.at("Figure 8, a to d"),),
    )


def _at_fixed_load(used: int, n: int, budget: int, steps: int) -> list[ClusterSetting]:
    """Return settings with `used` to twice as many sources, and as many dummies as `budget` messages allow."""
    settings = []
    for step in range(steps):
        sources = used + round(used * step / (steps - 1))
        sigma = (1 - used / sources) * TARGETS_OF / (TARGETS_OF - 1)
        room = (budget - 2 * sources) // -(-sources // n)
        if room >= 0:
            settings.append(ClusterSetting(sources=sources, n=n, sigma=sigma, dummies=room))
    return settings


def _three(name: str, settings: Sequence[ClusterSetting], x: Callable[[ClusterSetting], float]) -> list[Series]:
    at, start = [x(setting) for setting in settings], f"{name}: " if name else ""
    return [
        drawn(f"{start}certified", at, [setting.exact for setting in settings]),
        drawn(f"{start}printed (no bound)", at, [setting.printed for setting in settings]),
        drawn(f"{start}Bennett corrected", at, [setting.formula for setting in settings]),
    ]


def _by_sigma(
    lines: Iterable[tuple[tuple[float, float], Sequence[ClusterSetting]]],
    wanted: float,
    x: Callable[[ClusterSetting], float],
) -> list[Series]:
    """Return the lines of the `wanted` batch or share at each sampling rate."""
    mine = [(s, settings) for (at, s), settings in lines if at == wanted]
    return [line for s, settings in mine for line in _three(f"sigma = {s:g}", settings, x)]


def _chart(key: str, title: str, x_label: str, series: Sequence[Series]) -> Chart:
    caption = "T = 20. Certified: the exact sum and a matching attack. Printed: Bennett's form, no bound."
    return chart(key, title, caption, (x_label, _NATS), series, log="y")


def _load_claim(load: dict[tuple[int, float], list[ClusterSetting]]) -> Claim:
    good = {key: next((p for p in line if p.exact.upper <= 1), None) for key, line in load.items()}
    by_formula = {key: next((p for p in line if p.formula.upper <= 1), None) for key, line in load.items()}
    sentences = [
        f"for n = {n} and sigma = {s:g}, {p.costs.messages:,} messages with {p.dummies} dummies"
        + ("" if other is None else f" (corrected formula: {other.costs.messages:,})")
        for ((n, s), p), other in zip(good.items(), by_formula.values(), strict=True)
        if p is not None
    ]
    return claim(
        "Figure 8a",
        "Epsilon <= 1 is possible at an acceptable load of the network.",
        bool(sentences),
        f"These tested settings have epsilon <= 1 with the fewest dummies: {'; '.join(sentences) or 'none'}.",
        quote="Configurations with good privacy … and acceptable network load can be achieved.",
        reason=ACCEPTABLE,
        stand_in=OWN_SETTINGS,
    )


def _node_claim(node: dict[tuple[float, float], list[ClusterSetting]]) -> Claim:
    line = node[1.0, 0.2]
    shown = line[0], line[min(3, len(line) - 1)], line[-1]
    finite = [[p for p in settings if math.isfinite(p.exact.upper)] for settings in node.values()]
    bent = [
        ([p.costs.busiest for p in points], [p.exact.upper for p in points]) for points in finite if len(points) > 2
    ]
    falls = [falling(p.exact.upper for p in settings) for settings in node.values()]
    return claim(
        "Figure 8b",
        "More load on each scrambler gives better privacy, less and less so.",
        every([*falls, *(flattening(at, ends) for at, ends in bent)]) if bent else None,
        "With one dummy for each source and sigma = 0.2, epsilon is "
        + ", ".join(f"{number(p.exact.upper)} with {p.costs.busiest} channels" for p in shown)
        + ". The total number of messages is the same.",
        quote=LOAD_OF_A_NODE,
        stand_in=OWN_SETTINGS,
    )


def _consents_claim(n: int, consents: dict[tuple[int, int], list[ClusterSetting]], where: str) -> Claim:
    lines = {budget: line for (size, budget), line in consents.items() if size == n}
    held = [falling(setting.exact.upper for setting in line) for line in lines.values()]
    gain = max(1 - min(p.exact.upper for p in line) / line[0].exact.upper for line in lines.values())
    parts = [
        f"from {line[0].sources:,} to {line[-1].sources:,} sources and {budget:,} messages, "
        + ", ".join(number(setting.exact.upper, digits=3) for setting in line)
        for budget, line in lines.items()
    ]
    return claim(
        "Figure 8c",
        f"At a fixed network load it is better to ask more people than to add dummies, {where}",
        every(held),
        f"With n = {n} epsilon is, {'; '.join(parts)}.",
        quote="We observe that it is more privacy efficient to increase … (users' consents) than to increase … "
        "especially with few messages per scrambler",
        reason=f"With n = {n}, this study's choice, a small sampling rate lowers epsilon by at most {gain:.0%}, and a "
        "larger one costs more than the dummies that it replaces."
        if False in held
        else "",
        stand_in=OWN_SETTINGS,
    )


def _utility_claim(utility: dict[int, list[ClusterSetting]]) -> Claim:
    """Return the claim about figure 8d, whose axis shows epsilon: differences decide, and ratios are named."""
    steps = {d: [(a.exact.upper, b.exact.upper) for a, b in pairwise(line[1:])] for d, line in utility.items()}
    falls = {d: [before - after for before, after in line] for d, line in steps.items()}
    ratios = {d: line[1].exact.upper / line[-1].exact.upper for d, line in utility.items()}
    line = next(iter(utility.values()))
    return claim(
        "Figure 8d",
        "Sampling has a drastic effect, most with few dummies.",
        every(map(falling, zip(*falls.values(), strict=True))),
        "From one sampling rate to the next ("
        + ", ".join(f"{setting.sigma:g}" for setting in line[1:])
        + ") epsilon falls by "
        + "; by ".join(f"{', '.join(f'{fall:.2f}' for fall in found)} at d = {d}" for d, found in falls.items())
        + ". Over all these rates it is divided by "
        + ", ".join(f"{ratio:.0f} at d = {d}" for d, ratio in ratios.items())
        + ": as a ratio, the effect depends little on the dummies.",
        quote="sampling has a drastic effect on privacy, especially with fewer dummies",
        stand_in=OWN_SETTINGS,
    )


def _consents_table(consents: dict[tuple[int, int], list[ClusterSetting]]) -> Table:
    rows = tuple(
        (budget, n, p.sources, p.sigma, p.dummies, p.exact) for (n, budget), line in consents.items() for p in line
    )
    columns = ("messages at most", "n", "sources", "sigma", "d", "certified")
    return Table(key="consents", title="Consents at a fixed load", caption="", columns=columns, rows=rows)
