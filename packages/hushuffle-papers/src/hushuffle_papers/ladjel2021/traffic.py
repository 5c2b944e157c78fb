"""The epsilon of one scrambler by every formula, and common functions of the studies on traffic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Convention, TargetSampling
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.model import Bound, Chart, Claim, Report, Series, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.numerics.roots import farthest
from hushuffle.questions import traffic
from hushuffle.questions.traffic import published
from hushuffle_papers.base import Request, chart, claim, every, falling, study, target

TARGETS_OF: Final = 20

BENNETT: Final = "If furthermore we have … then by Bennett's inequality"
PRINTED: Final = "The form of Bennett's inequality that refines Theorem 4, as printed, is a bound."

DELTA: Final = 1e-4
SAMPLES: Final = 5000


@lru_cache(maxsize=4096)
def certified(n: int, sigma: float, dummies: int, delta: float = DELTA) -> Bound:
    """Return certified bounds on the epsilon of one uncapped scrambler with 20 targets."""
    return traffic.scrambler_epsilon(TARGETS_OF, n, sigma, dummies, delta=delta)


@lru_cache(maxsize=4096)
def capped(n: int, sigma: float, dummies: int, convention: Convention = "uniform") -> Bound:
    """Return the pure epsilon of one scrambler with a cap; an upper bound for `dummies` >= n."""
    return traffic.scrambler_epsilon(TARGETS_OF, n, sigma, dummies, cap=n, convention=convention)


@lru_cache(maxsize=4096)
def bennett(n: int, sigma: float, dummies: int, delta: float = DELTA) -> Bound:
    """Return epsilon by Theorem 4 refined by Bennett's inequality, corrected."""
    return published.theorem_four_epsilon(TARGETS_OF, n, sigma, dummies, delta=delta, inequality="bennett")


@lru_cache(maxsize=4096)
def as_printed(n: int, sigma: float, dummies: int, delta: float = DELTA) -> float:
    """Return epsilon by Theorem 4 refined by Bennett's inequality, as printed; it is not a bound."""
    return published.printed_bennett_epsilon(TARGETS_OF, n, sigma, dummies, delta=delta)


def meets(n: int, sigma: float, dummies: int, *, epsilon: float) -> bool:
    """Return whether the certified delta of a scrambler at `epsilon` is at most 1e-4."""
    sampling = TargetSampling(targets=TARGETS_OF, sigma=sigma)
    law = privacy_curve(Protocol(randomizer=sampling, shuffler=Scrambler(dummies=dummies), n=n))
    return law.near(DELTA).upper(epsilon * (1 - 1e-6)) <= DELTA


def printed_form(place: str, holds: bool, ours: str) -> Claim:  # noqa: FBT001 - what the claim turns on
    """Return the claim of figure 7 about the printed form of Bennett's inequality, tested at another place."""
    return claim(place, PRINTED, holds, ours, quote=BENNETT, repeats="ladjel2021/figure-7")


def drawn(label: str, x: Sequence[float], figures: Iterable[Bound | float]) -> Series:
    """Return the line of a chart through bounds or plain numbers, without infinite points.

    >>> drawn("line", [1, 2], [0.5, math.inf]).x
    (1.0,)
    """
    ends = [(figure, figure.upper if isinstance(figure, Bound) else figure) for figure in figures]
    finite = [(at, figure) for at, (figure, end) in zip(x, ends, strict=True) if math.isfinite(end)]
    return Series.through(label, (at for at, _ in finite), (figure for _, figure in finite))


def least(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest integer in 0..most at and above which `holds` is true; None if there is none.

    >>> least(lambda n: n * n >= 10, 50), least(lambda n: n > 50, 50)
    (4, None)
    """
    if holds(0):
        return 0
    low, high = 0, 1
    while not holds(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    return farthest(holds, good=high, bad=low)


_RATES: Final = tuple(round(0.05 * step, 2) for step in range(1, 20))
_NATS: Final = "epsilon (nats, pure)"
_CONVENTIONS: Final[tuple[Convention, ...]] = ("exclusive", "uniform")


@target("ladjel2021/figure-3", "Sampling and flooding alone: epsilon against the sampling rate and further messages")
def sampling_and_flooding(request: Request) -> Report:
    request.tell("lines", 0.5)
    targets, floods, rates = (5, 10, 20, 50, 100), range(19), (0.1, 0.2, 0.5, 0.8)
    needed = {t: t / (t + 2) for t in targets}  # (1 - sigma) T / sigma = e**epsilon - 1 = 2
    drops = {s: [traffic.sampling_epsilon(20, s, d).upper for d in floods] for s in rates}
    bulk = min((line[0] - line[4]) / (line[0] - line[-1]) for line in drops.values())
    in_all = min(1 - line[4] / line[0] for line in drops.values())
    shares = {s: line[1] / line[0] for s, line in drops.items()}
    faster = all(drops[a][d] / drops[a][0] > drops[b][d] / drops[b][0] for a, b in pairwise(rates) for d in floods[1:])
    uniform, exclusive = (traffic.sampling_epsilon(20, 0.2, convention=c).upper for c in ("uniform", "exclusive"))
    return study(
        "Sampling and flooding without scramblers",
        "What epsilon do random targets and additional messages give, if an observer sees the senders?",
        claim(
            "Figure 3a",
            "Sampling alone gives epsilon <= ln 3 only at a sigma that is typically larger than 0.9.",
            all(s > 0.9 for t, s in needed.items() if t >= 20),
            "It takes sigma >= T/(T + 2): " + ", ".join(f"{s:.3f} for T = {t}" for t, s in needed.items()) + ".",
            quote="achieving reasonable values of … requires a large … (typically larger than",
            printed="0.9",
            reason="From 20 targets on, the number of figure 3b.",
        ),
        claim(
            "Figure 3b",
            "The first dummies do most.",
            bulk > 0.5,
            f"The first 4 of 18 dummies lower epsilon by at least {bulk:.0%} of the decrease by all 18.",
            quote="the bulk of the gains in privacy come from the first dummies",
            reason="'The first' are four here, and the bulk is more than half: this study's choice. The 19th, which "
            f"makes a broadcast with epsilon = 0, is not counted; with it the first 4 have at least {in_all:.0%}.",
        ),
        claim(
            "Figure 3b",
            "The larger sigma, the faster epsilon falls with the dummies, as a share of epsilon.",
            faster,
            "With the first dummy epsilon is "
            + ", ".join(f"{share:.0%} at sigma = {s:g}" for s, share in shares.items())
            + f" of that without dummies; up to {floods[-1]} dummies, the order is the same.",
            quote="We also see that the bigger … the faster the decrease of",
            reason="In nats the first dummy lowers epsilon by "
            + ", ".join(f"{drops[s][0] - drops[s][1]:.2f} at sigma = {s:g}" for s in rates)
            + ".",
        ),
        "The paper's formula (Theorem 2) is exact: the curves are the paper's.",
        f"The two conventions differ: sigma = 0.2, T = 20 is {number(uniform)} if the random target may be the "
        f"true one (the algorithm), {number(exclusive)} if not (the paper's Theorem 3).",
        Table(
            key="needed",
            title="Sampling needed for epsilon <= ln 3, no flooding",
            caption="The share of tuples that arrive is 1 - sigma + sigma/T.",
            columns=("targets", "sigma", "share of tuples used"),
            rows=tuple((t, s, 1 - s + s / t) for t, s in needed.items()),
        ),
        chart(
            "sampling",
            "Sampling alone (figure 3a)",
            "Exact, uniform convention.",
            ("sampling rate sigma", _NATS),
            [drawn(f"T = {t}", _RATES, [traffic.sampling_epsilon(t, s) for s in _RATES]) for t in targets],
        ),
        chart(
            "flooding",
            "Epsilon with flooding, T = 20 (figure 3b)",
            "Exact epsilon, uniform convention; d = 19 is a broadcast with epsilon = 0.",
            ("further messages d of each source", _NATS),
            [drawn(f"sigma = {s:g}", list(floods), drops[s]) for s in rates],
        ),
        settings=(("targets", ", ".join(map(str, targets))), ("convention", "uniform")),
        citations=(LADJEL.at("Figure 3"), LADJEL.at("Theorem 2")),
    )


@target("ladjel2021/figure-5", "A scrambler with a cap: the printed pure epsilon and the exact one", seconds=5.0)
def cap_study(
    request: Request,
    *,
    n: int = 100,
    rates: Sequence[float] = _RATES,
    dummies: Sequence[int] = (0, 1, 2, 5, 10, 20, 30, 50, 60, 70, 80, 90, 95, 99),
    batches: Sequence[int] = (51, 60, 80, 100, 150, 200, 300, 500, 700, 1000),
) -> Report:
    """Return figure 5: pure epsilon of a capped scrambler, for `n` sources (a, b); by `batches` for 50 dummies (c)."""
    request.tell("against sigma", 0.0)
    middle, most = dummies[len(dummies) // 2], dummies[-1]
    by_sigma = {d: _three_lines("", rates, [(n, s, d) for s in rates]) for d in (middle, most)}
    local = drawn("no scrambler, no dummies", rates, [traffic.sampling_epsilon(TARGETS_OF, s) for s in rates])
    one_each = drawn(f"no scrambler, {n} dummies in all", rates, [_one_each(s) for s in rates])
    request.tell("against dummies", 0.3)
    shown = (0.2, 0.5, 0.8)
    by_dummies = {s: _three_lines("", dummies, [(n, s, d) for d in dummies]) for s in shown}
    request.tell("against batches", 0.6)
    fixed = batches[0] - 1
    by_batch = [_three_lines(f"sigma = {s:g}, ", batches, [(m, s, fixed) for m in batches]) for s in (0.2, 0.5)]
    rows = tuple(_row(n, s, d) for s in shown for d in (dummies[1], middle, most))
    return study(
        "A scrambler with a cap: the printed and the exact pure epsilon",
        "What pure epsilon has a scrambler whose targets get at most n messages?",
        *_cap_claims(n, dummies, shown, batches),
        "Pure epsilon is the wrong question for a scrambler: see ladjel2021/figure-7 for what a delta of 1e-4 changes.",
        Table(
            key="cap",
            title=f"{n} sources behind a scrambler with a cap",
            caption="Printed: Theorem 3. Exact: proven, and equal to enumeration where enumeration is possible.",
            columns=("sigma", "dummies", "printed", "exact, its convention", "exact, the algorithm's", "local"),
            rows=rows,
        ),
        *(
            _chart(
                f"sigma-{d}",
                f"Epsilon against the sampling rate, n = {n}, d = {d} (figure 5a)",
                "sampling rate sigma",
                [*lines, local, one_each],
            )
            for d, lines in by_sigma.items()
        ),
        *(
            _chart(
                f"dummies-{s:g}",
                f"Epsilon against the number of dummies, n = {n}, sigma = {s:g} (figure 5b)",
                "dummies d of the scrambler",
                lines,
            )
            for s, lines in by_dummies.items()
        ),
        _chart(
            "batch",
            f"Epsilon against the number of sources, d = {fixed} (figure 5c)",
            "sources n of the scrambler",
            [s for lines in by_batch for s in lines],
        ),
        settings=(("targets", "20"), ("sources of a scrambler", f"{n} unless said")),
        citations=(LADJEL.at("Figure 5"), LADJEL.at("Theorem 3, refuted")),
    )


def _cap_claims(n: int, dummies: Sequence[int], rates: Sequence[float], batches: Sequence[int]) -> tuple[Claim, ...]:
    d, fixed = dummies[-1], batches[0] - 1
    truth = {s: capped(n, s, d).upper for s in rates}
    own = {s: capped(n, s, d, "exclusive").upper for s in rates}
    printed = {s: published.printed_capped_epsilon(TARGETS_OF, n, s, d) for s in rates}
    low = all(printed[s] < min(own[s], truth[s]) for s in rates)
    better = all(truth[s] < _one_each(s).upper for s in rates)
    claimed = all(printed[s] < _one_each(s).upper for s in rates)
    falls = every(
        [
            *(falling([capped(n, s, few).upper for few in dummies]) for s in rates),
            *(falling([capped(n, s, few).upper for s in rates]) for few in dummies),
        ]
    )
    sized = {s: [capped(m, s, fixed).upper for m in batches] for s in rates}
    return (
        claim(
            "Theorem 3",
            "The formula is a guarantee.",
            not low,
            f"With {d} dummies the exact epsilon is, in the theorem's convention, "
            + ", ".join(f"{number(own[s])} at sigma = {s:g}" for s in rates)
            + "; in the algorithm's "
            + ", ".join(number(truth[s]) for s in rates)
            + ".",
            quote="Theorem 3. Let … The algorithm … satisfies … differential privacy with",
            printed="the formula gives " + ", ".join(number(printed[s]) for s in rates),
        ),
        claim(
            "Figure 5",
            "At the same sigma and number of dummies the scrambler is more private than local flooding.",
            better,
            f"With {d} dummies, the most that Theorem 3 allows, the scrambler's exact epsilon is "
            + ", ".join(f"{number(truth[s])} at sigma = {s:g}" for s in rates)
            + f". One further message of each source ({n} dummies in all) gives "
            + ", ".join(number(_one_each(s).upper) for s in rates)
            + (", which only the printed formula undercuts." if claimed and not better else "."),
            quote="provides stronger privacy than the local algorithm … when compared at equal sampling rate … and "
            "total number of dummies",
        ),
        claim(
            "Figure 5, a and b",
            "Epsilon falls with sigma and with the number of dummies.",
            falls,
            f"But dummies hardly lower epsilon: with {d} dummies, "
            f"{min(truth[s] / traffic.sampling_epsilon(TARGETS_OF, s).upper for s in rates):.0%} of the local epsilon "
            "or more remains.",
            quote="increase with the local sampling rate … and the number of dummies … added by the scrambler",
        ),
        claim(
            "Figure 5c",
            "The number of sources has no significant impact: a fifth at most.",
            all(max(line) <= 1.2 * min(line) for line in sized.values()),
            f"From n = {batches[0]} to {batches[-1]}: "
            + "; ".join(f"{number(min(line))} to {number(max(line))} at sigma = {s:g}" for s, line in sized.items())
            + ".",
            quote="given as input to the scrambler does not have a significant impact on the privacy guarantee",
            reason="A fifth is this study's mark.",
        ),
    )


def _one_each(sigma: float) -> Bound:
    return traffic.sampling_epsilon(TARGETS_OF, sigma, 1)


def _row(n: int, sigma: float, d: int) -> tuple[float | Bound, ...]:
    local = traffic.sampling_epsilon(TARGETS_OF, sigma)
    exact = [capped(n, sigma, d, convention) for convention in _CONVENTIONS]
    return sigma, d, published.printed_capped_epsilon(TARGETS_OF, n, sigma, d), *exact, local


def _three_lines(name: str, x: Sequence[float], cases: Sequence[tuple[int, float, int]]) -> list[Series]:
    fits = [(at, case) for at, case in zip(x, cases, strict=True) if case[1] < (TARGETS_OF - 1) / TARGETS_OF]
    at = [place for place, _ in fits]
    printed = [published.printed_capped_epsilon(TARGETS_OF, *case) for _, case in fits]
    exact = [
        drawn(f"{name}{convention}", at, [capped(*case, convention) for _, case in fits]) for convention in _CONVENTIONS
    ]
    return [drawn(f"{name}printed", at, printed), *exact]


def _chart(key: str, title: str, x_label: str, series: Sequence[Series]) -> Chart:
    return chart(
        key,
        title,
        "Printed: Theorem 3, too small. Exclusive: random targets exclude the true one. Uniform: they do not.",
        (x_label, _NATS),
        series,
    )
