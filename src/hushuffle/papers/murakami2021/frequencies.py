"""How well frequencies are estimated at a promise of the paper, for made-up and for real places."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.estimation import estimate, heavy_hitters
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, Mechanism, RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Chart, Report, Series, Table
from hushuffle.model.citation import PIE
from hushuffle.papers.base import Request, Target
from hushuffle.questions import pie
from hushuffle.randomness import reproducible
from hushuffle.tables.published import load_checkins

PEOPLE: Final = 1_370_637
VALUES: Final = 10_500_393
EXPONENT: Final = 0.8
_TOP: Final = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """n people with one value each, `counts` by value, shape (k,); `top` are the most frequent values, first first."""

    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    top: npt.NDArray[np.int64]
    source: str

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """True frequencies, shape (k,)."""
        return np.asarray(self.counts / self.values.size, dtype=np.float64)


def crowd(values: npt.NDArray[np.int64], k: int, source: str) -> Crowd:
    """Return the people who hold `values`, codes 0..k-1."""
    counts = np.bincount(values, minlength=k)
    return Crowd(values=values, counts=counts, top=np.argsort(-counts, kind="stable")[:_TOP], source=source)


def zipf(n: int, k: int, exponent: float, seed: int) -> Crowd:
    """Return n people who draw from k values, the x-th with probability proportional to x**-exponent.

    >>> zipf(1000, 50, 1.0, seed=1).counts.sum()
    np.int64(1000)
    """
    weights = np.cumsum(np.arange(1, k + 1, dtype=np.float64) ** -exponent)
    draws = np.random.default_rng(seed).random(n) * weights[-1]
    values = np.minimum(np.searchsorted(weights, draws, side="right"), k - 1).astype(np.int64)
    return crowd(values, k, f"simulated: {n:,} people, {k:,} values, the x-th proportional to x**-{exponent:g}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Losses:
    """Sums of squared errors of one run, over the top values and over all, as estimated and above the threshold.

    `predicted` are the exact expectations of the first two; `shares` what is left of the top values above the
    threshold.
    """

    top: float
    every: float
    top_kept: float
    every_kept: float
    predicted: tuple[float, float]
    shares: npt.NDArray[np.float64]


def losses(people: Crowd, randomizer: Mechanism, seed: int) -> Losses:
    """Return what one collection from `people` estimates wrong."""
    protocol = Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=people.values.size)
    # Counting does not look at the order: shuffling would change nothing here.
    found = estimate(protocol.collect(people.values, rng=reproducible(seed)), protocol=protocol)
    significant = heavy_hitters(found, protocol=protocol)
    kept = np.zeros(found.k)
    kept[significant.values] = significant.frequencies
    shares, top = people.shares, people.top
    wrong, wrong_kept = (found.frequencies - shares) ** 2, (kept - shares) ** 2
    variance = found.variance_intercept + found.variance_slope * shares
    return Losses(
        top=float(wrong[top].sum()),
        every=float(wrong.sum()),
        top_kept=float(wrong_kept[top].sum()),
        every_kept=float(wrong_kept.sum()),
        predicted=(float(variance[top].sum()), float(variance.sum())),
        shares=kept[top],
    )


def chart(key: str, title: str, caption: str, axes: tuple[str, str], series: Sequence[Series]) -> Chart:
    """Return a chart with a logarithmic y axis; x is logarithmic if it counts buckets."""
    return Chart(
        key=key,
        title=title,
        caption=caption,
        x_label=axes[0],
        y_label=axes[1],
        series=tuple(series),
        x_log=axes[0] == "buckets",
        y_log=True,
    )


BUCKETS: Final = 10**8
PROMISED: Final = 0.92
_EPSILONS: Final = (4.0, 8.0, 10.0, 11.0, 12.0, 13.0, 14.0, 16.0, 18.0, 20.0)
_EPSILONS_FEW: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def against_epsilon(request: Request) -> Report:
    """Return figure 10: errors at each epsilon and at each promised error of identification, simulated check-ins."""
    people = zipf(PEOPLE, VALUES, EXPONENT, request.seed)
    return errors(people, key="murakami2021/figure-10", g=BUCKETS, epsilons=_EPSILONS, request=request)


def checkins(request: Request) -> Report:
    """Return figure 10 on the real check-ins of one city: each check-in reported once."""
    visits = load_checkins(request.folder("foursquare_nyc"))
    people = crowd(visits.events, visits.k, f"{visits.events.size:,} check-ins at {visits.k:,} places in New York")
    return errors(people, key="murakami2021/figure-10-checkins", g=2**8, epsilons=_EPSILONS_FEW, request=request)


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One mechanism at one epsilon: what it gets wrong, and which error of identification is promised."""

    name: str
    epsilon: float
    loss: Losses
    published: float
    exact: float


def errors(people: Crowd, *, key: str, g: int, epsilons: Sequence[float], request: Request) -> Report:
    """Return the errors of randomized response and local hashing (g buckets) at each epsilon."""
    n, k = people.values.size, people.counts.size
    kinds: tuple[tuple[str, float, Mechanism], ...] = tuple(
        pair
        for epsilon in epsilons
        for pair in (
            ("randomized response", epsilon, RandomizedResponse(k=k, epsilon=epsilon)),
            ("local hashing", epsilon, LocalHashing(k=k, g=g, epsilon=epsilon)),
        )
    )
    rows = []
    for position, (name, epsilon, randomizer) in enumerate(kinds):
        request.tell(f"{name}, epsilon {epsilon:.3g}", position / len(kinds))
        published, exact = promised(Protocol(randomizer=randomizer, shuffler=NoShuffle(), n=n))
        loss = losses(people, randomizer, request.seed)
        rows.append(Row(name=name, epsilon=epsilon, loss=loss, published=published, exact=exact))
    top = [row.loss.top / row.loss.predicted[0] for row in rows]
    every = [row.loss.every / row.loss.predicted[1] for row in rows]
    return Report(
        key=key,
        title="Accuracy of frequencies at each local epsilon and at each promised error of identification",
        question="What does accuracy cost under local differential privacy, and under a promise about identification?",
        answers=(
            _cheapest([row for row in rows if row.name == "randomized response"]),
            "At the same loss the exact Bayes error promises more than Theorem 4.2 with Fano's inequality.",
            f"Measured over predicted sum of squared errors: {min(every):.3f} to {max(every):.3f} over all values, "
            f"{min(top):.2f} to {max(top):.2f} over the top 100, a noisier sum.",
        ),
        settings=(("population", people.source), ("buckets", f"{g:,}"), ("seed", str(request.seed))),
        tables=(_table(rows),),
        charts=_charts(rows),
        citations=(PIE.at("figure 10"),),
    )


def _table(rows: Sequence[Row]) -> Table:
    columns = (
        "mechanism",
        "local epsilon",
        "top 100",
        "predicted",
        "top 100, kept",
        "all values",
        "predicted, all",
        "all values, kept",
        "error promised (published)",
        "error promised (exact)",
    )
    return Table(
        key="errors",
        title="Sums of squared errors, one run each",
        caption="Predicted is the exact expectation; kept: estimates below the significance threshold set to 0.",
        columns=columns,
        rows=tuple(
            (
                row.name,
                row.epsilon,
                row.loss.top,
                row.loss.predicted[0],
                row.loss.top_kept,
                row.loss.every,
                row.loss.predicted[1],
                row.loss.every_kept,
                row.published,
                row.exact,
            )
            for row in rows
        ),
    )


def promised(protocol: Protocol) -> tuple[float, float]:
    """Return the error of identification that is promised by the published bounds, and by the exact Bayes error."""
    fano = pie.fano_error(pie.published_alpha(protocol).upper, protocol.n)
    return fano.lower, pie.bayes_error(protocol).lower


def _cheapest(rows: Sequence[Row]) -> str:
    """Say where a loss of 1e-6 over the top values is reached, and what is promised there."""
    reached = next((row for row in rows if row.loss.top_kept <= 1e-6), None)
    if reached is None:
        return "No epsilon tried reaches a loss of 1e-6 over the top 100."
    return (
        f"A loss of 1e-6 over the top 100 is first reached at epsilon = {reached.epsilon:.4g} "
        f"({reached.loss.top_kept:.2g}), where local differential privacy says nothing; identification still fails "
        f"with probability {reached.published:.3f} at least (published bound), {reached.exact:.3f} (exact bound)."
    )


def _charts(rows: Sequence[Row]) -> tuple[Chart, ...]:
    def drawn(name: str, label: str, x: str, y: str) -> Series:
        chosen = [row for row in rows if row.name == name]
        return Series.through(label, [getattr(row, x) for row in chosen], [getattr(row.loss, y) for row in chosen])

    names = tuple(dict.fromkeys(row.name for row in rows))
    loss = "sum of squared errors"

    def against_epsilon(key: str, title: str, raw: str) -> Chart:
        series = [
            drawn(name, f"{name}{how}", "epsilon", f"{raw}{which}")
            for name in names
            for how, which in (("", ""), (", kept", "_kept"))
        ]
        caption = "Kept: estimates below the significance threshold set to 0."
        return chart(key, title, caption, ("local epsilon (nats)", loss), series)

    promise = [drawn(name, f"{name}, {how} bound", how, "top_kept") for name in names for how in ("published", "exact")]
    return (
        against_epsilon("top", "The 100 most frequent values", "top"),
        against_epsilon("all", "All values", "every"),
        chart(
            "promise",
            "The 100 most frequent values, against the promised error of identification",
            "With threshold. Further right at the same height is better.",
            ("promised Bayes error of identification", loss),
            promise,
        ),
    )


def most_frequent(request: Request) -> Report:
    """Return figure 11: the 20 most frequent values at epsilon = 10 and where 0.92 is promised."""
    people = zipf(PEOPLE, VALUES, EXPONENT, request.seed)
    return shares_of_the_top(people, {"epsilon = 10": 10.0, **epsilons_for(PROMISED)}, request)


def shares_of_the_top(people: Crowd, choices: Mapping[str, float], request: Request) -> Report:
    """Return the 20 most frequent values under randomized response at each named epsilon."""
    rows, k = [], people.counts.size
    found: dict[str, npt.NDArray[np.float64]] = {}
    truth = people.shares[people.top][:20]
    for position, (name, epsilon) in enumerate(choices.items()):
        request.tell(name, position / len(choices))
        found[name] = losses(people, RandomizedResponse(k=k, epsilon=epsilon), request.seed).shares[:20]
        rows.append((name, epsilon, float(np.mean(np.abs(found[name] - truth) / truth))))
    return Report(
        key="murakami2021/figure-11",
        title="The 20 most frequent values",
        question=f"How accurate are the 20 most frequent values where an error above {PROMISED} is promised?",
        answers=tuple(
            f"{name} (epsilon {epsilon:.4g}): mean relative error {error:.3f}." for name, epsilon, error in rows
        ),
        settings=(("population", people.source), ("seed", str(request.seed))),
        tables=(
            Table(
                key="shares",
                title="Shares of the 20 most frequent values",
                caption="Estimates below the significance threshold are set to 0.",
                columns=("rank", "true share", *found),
                rows=tuple(
                    (rank + 1, float(truth[rank]), *(float(shares[rank]) for shares in found.values()))
                    for rank in range(20)
                ),
            ),
        ),
        citations=(PIE.at("figure 11"),),
    )


def epsilons_for(error: float) -> dict[str, float]:
    """Return the epsilon_0 of randomized response at which each bound still promises `error`.

    >>> {name: round(value, 2) for name, value in epsilons_for(0.92).items()}
    {'promised by the published bound': 12.72, 'promised by the exact bound': 13.72}
    """
    theta = pie.alpha_for_error(error, PEOPLE) / math.log2(min(PEOPLE, VALUES))
    return {
        "promised by the published bound": math.log1p(VALUES * theta / (1 - theta)),
        "promised by the exact bound": pie.epsilon_for_error(error, n=PEOPLE, k=VALUES),
    }


TARGETS: Final = (
    Target(
        name="murakami2021/figure-10",
        title="Accuracy against epsilon and identification",
        build=against_epsilon,
        seconds=40,
    ),
    Target(
        name="murakami2021/figure-10-checkins",
        title="The same on real check-ins",
        build=checkins,
        data=("foursquare_nyc",),
        seconds=5,
    ),
    Target(name="murakami2021/figure-11", title="The 20 most frequent values", build=most_frequent, seconds=6),
)
