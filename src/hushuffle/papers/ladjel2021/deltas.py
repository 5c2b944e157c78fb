"""The traffic paper's figure 7: how much a scrambler reduces epsilon if delta is small but positive."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.mechanisms.shufflers import Scrambler
from hushuffle.model import Bound, Chart, Claim, Report, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.papers.base import Request, Target, claim
from hushuffle.papers.ladjel2021 import traffic as scrambler
from hushuffle.papers.ladjel2021.traffic import BENNETT, DELTA, SAMPLES, TARGETS_OF, drawn
from hushuffle.questions import traffic
from hushuffle.questions.traffic import published

Case = tuple[int, float, int]
"""Sources n of the scrambler, sigma, dummies d."""

_BATCHES: Final = (10, 20, 50, 100, 200, 300, 500, 700, 1000)
_DUMMIES: Final = (0, 10, 20, 50, 100, 200, 300, 400, 500, 700, 1000)
_RATES: Final = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_SEEDS: Final = 5
_MANY: Final = 300
_ORDER: Final = 10**0.5
"""Two numbers whose ratio is at most this factor are of the same order."""


def amplification_study(
    request: Request,
    *,
    batches: Sequence[int] = _BATCHES,
    dummies: Sequence[int] = _DUMMIES,
    rates: Sequence[float] = _RATES,
    samples: int = SAMPLES,
) -> Report:
    sweeps: tuple[tuple[str, str, Sequence[float], list[Case]], ...] = (
        ("n", "Against sources, d = 50, sigma = 0.2 (figure 7a)", batches, [(n, 0.2, 50) for n in batches]),
        ("d", "Against dummies, n = 100, sigma = 0.2 (figure 7b)", dummies, [(100, 0.2, d) for d in dummies]),
        ("sigma", "Against sampling, n = 500, d = 50 (figure 7c)", rates, [(500, s, 50) for s in rates]),
    )
    charts, rows = [], []
    for place, (key, title, x, cases) in enumerate(sweeps):
        request.tell(title, place / len(sweeps))
        computed = [_row(case, samples, request.seed) for case in cases]
        rows += computed
        charts.append(_chart(key, title, x, computed))
    understated = [row for row in rows if row[5] < row[3].lower]
    errors = _errors(samples)
    published_figures = ("certified", "Algorithm 2", "Bennett as printed", "Theorem 3 as printed")
    corrected = ("pure, with a cap", "Bennett corrected", "Hoeffding corrected")
    return Report(
        key="ladjel2021/figure-7",
        title="A scrambler at delta = 1e-4: epsilon by every formula, and certified epsilon",
        question="How much does a delta of 1e-4 reduce epsilon, and are the paper's formulas correct?",
        claims=(
            claim(
                "Theorem 4, Figure 7",
                "The refinement by Bennett's inequality, as printed, is a bound.",
                not understated,
                f"In {len(understated)} of {len(rows)} settings the printed form lies below the certified lower bound"
                f"{_example(understated)}.",
                quote=BENNETT,
            ),
            _gains(rows),
            _regime(rows),
            claim(
                "Algorithm 2",
                f"{SAMPLES:,} samples make a relative error of delta beyond 1/1000 all but impossible.",
                max(errors) < 1e-3 if samples == SAMPLES else None,
                f"At n = 500, d = 50, sigma = 0.2, epsilon = 1.6 the errors with {_SEEDS} seeds are {min(errors):.1%} "
                f"to {max(errors):.1%}.",
                quote="being larger than … is negligibly small (below 10",
                printed="1/1000, with probability 1 - 1e-30",
                reason="" if samples == SAMPLES else f"Run with {samples:,} samples.",
            ),
        ),
        answers=("The exact sum needs no samples, is as quick as Algorithm 2, and is an upper bound.",),
        settings=(("targets", "20"), ("delta", "1e-4"), ("samples", f"{samples:,}"), ("seed", str(request.seed))),
        tables=(
            Table(
                key="formulas",
                title="Epsilon by every formula",
                caption="Certified: the exact sum and a matching attack. Not bounds: simulated, as printed. Theorem 3 "
                "is for d < n; for other d the local epsilon is shown.",
                columns=("n", "sigma", "d", *published_figures, *corrected),
                rows=tuple(rows),
            ),
        ),
        charts=tuple(charts),
        citations=(LADJEL.at("Figure 7"), LADJEL.at("Theorem 4"), LADJEL.at("Algorithm 2")),
    )


Row = tuple[int, float, int, Bound, float, float, float, Bound, Bound, Bound]


def _row(case: Case, samples: int, seed: int) -> Row:
    """Return n, sigma, d; epsilon: certified, simulated, printed, Theorem 3 printed, with a cap, Bennett, Hoeffding."""
    n, sigma, d = case
    local = traffic.sampling_epsilon(TARGETS_OF, sigma).upper
    printed_pure = published.printed_capped_epsilon(TARGETS_OF, n, sigma, d) if d < n else local
    return (
        *case,
        scrambler.certified(*case),
        published.simulated_epsilon(TARGETS_OF, *case, delta=DELTA, samples=samples, seed=seed),
        scrambler.as_printed(*case),
        printed_pure,
        scrambler.capped(*case),
        scrambler.bennett(*case),
        published.theorem_four_epsilon(TARGETS_OF, *case, delta=DELTA),
    )


def _chart(key: str, title: str, x: Sequence[float], rows: Sequence[Row]) -> Chart:
    names = {
        "certified": 3,
        "Algorithm 2 (estimate)": 4,
        "Bennett as printed (no bound)": 5,
        "Theorem 3 as printed (no bound)": 6,
        "Bennett corrected": 8,
        "pure, with a cap": 7,
    }
    labels = {"n": "sources n of the scrambler", "d": "dummies d", "sigma": "sampling rate sigma"}
    return Chart(
        key=key,
        title=title,
        caption="T = 20, delta = 1e-4. The certified figure is a bracket, here a thin band; Hoeffding's form is in the "
        "table.",
        x_label=labels[key],
        y_label="epsilon (nats)",
        series=tuple(drawn(name, x, [row[place] for row in rows]) for name, place in names.items()),
    )


def _example(rows: Sequence[Row]) -> str:
    return "".join(
        f", so the promise provably fails. The error is largest at n = {n}, sigma = {sigma:g}, d = {d}: the printed "
        f"form gives {number(printed)}, the certified bracket {str(exact).rpartition(' (')[0]}"
        for n, sigma, d, exact, _, printed, *_ in sorted(rows, key=lambda row: row[5] / row[3].lower)[:1]
    )


def _gains(rows: Sequence[Row]) -> Claim:
    share = [row[3].upper / traffic.sampling_epsilon(TARGETS_OF, row[1]).upper for row in rows]
    best = [row[8].upper / row[3].upper for row in rows if row[8].upper < row[7].upper]
    return claim(
        "Figure 7",
        "A delta brings epsilon far below the pure epsilon.",
        max(share) < 1,
        f"Epsilon falls to {min(share):.0%} of the local epsilon. Where the corrected Bennett form is below the local "
        f"epsilon, it is {min(best, default=1.0):.2f} to {max(best, default=1.0):.2f} times the certified upper bound.",
        quote="we are able to obtain significant privacy amplification compared to pure",
    )


def _regime(rows: Sequence[Row]) -> Claim:
    """Return the claim about the expected number of random messages at which a formula halves the local epsilon."""

    def first(figure: Callable[[Row], float]) -> float:
        halved = [r[0] * r[1] + r[2] for r in rows if figure(r) <= traffic.sampling_epsilon(TARGETS_OF, r[1]).upper / 2]
        return min(halved, default=math.inf)

    def told(messages: float) -> str:
        return f"{messages:,.0f}" if math.isfinite(messages) else "none of these numbers"

    certified_at, printed_at = first(lambda row: row[3].upper), first(lambda row: row[5])
    corrected_at = first(lambda row: row[8].upper)
    return claim(
        "Figure 7",
        "The paper's formula improves much where sigma n + d, the expected random messages, is in the order of 300.",
        _MANY / _ORDER <= corrected_at <= _MANY * _ORDER if math.isfinite(corrected_at) else None,
        f"Half of the local epsilon is first reached at {told(corrected_at)} by the formula corrected, at "
        f"{told(printed_at)} as printed.",
        quote="in regimes where the expected number of input-independent messages in the output … is sufficiently "
        "large (in the order of 300",
        printed="300",
        reason=f"Privacy needs fewer messages: certified epsilon is halved at {told(certified_at)}.",
    )


def _errors(samples: int) -> list[float]:
    n, sigma, d, epsilon = 500, 0.2, 50, 1.6
    sampling = TargetSampling(targets=TARGETS_OF, sigma=sigma)
    exact = privacy_curve(Protocol(randomizer=sampling, shuffler=Scrambler(dummies=d), n=n)).upper(epsilon)
    estimates = (
        published.simulated_delta(TARGETS_OF, n, sigma, d, epsilon=epsilon, samples=samples, seed=seed)
        for seed in range(1, _SEEDS + 1)
    )
    return [abs(value / exact - 1) for value in estimates]


TARGETS: Final = (
    Target(
        name="ladjel2021/figure-7",
        title="A scrambler at delta = 1e-4: Theorems 3 and 4, Algorithm 2 and the certified figure",
        build=amplification_study,
        quick=partial(amplification_study, batches=(10, 400), dummies=(0, 300), rates=(0.1, 0.5), samples=500),
        seconds=40.0,
    ),
)
