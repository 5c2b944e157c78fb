"""How often lists of values told from noise are wrong, and what they miss: python benchmarks/heavy_hitters.py.

2 million people, 100,000 postcodes, epsilon 2: two in five people live in one city, the others as Zipf's law has it,
and many postcodes are held by nobody. Counts are drawn from their law: of randomized response jointly, of local
hashing value by value, as ideal hash functions have them; a few collections are made of true reports, which the law
is held against. What a list misses is compared with two thresholds: the normal one of a value that nobody holds, whose
variance is known, at the same level; and the smallest one that holds, below which all empty postcodes stay in 19 of
20 collections, found by drawing their largest count. Takes about a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

import hushuffle as hs
from hushuffle.estimation import heavy_hitters

PEOPLE, VALUES, CITY = 2_000_000, 100_000, 0.4
REPETITIONS, TRUE_REPORTS, LARGEST = 200, 3, 1000
LEVEL, EPSILON = 0.05, 2.0


def population(people: int, values: int, city: float = CITY) -> Any:
    """Return how many people hold each value, shape (values,): one city, then Zipf's law; the last are held by nobody.

    >>> held = population(2000, 100)
    >>> int(held.sum()), int(held[0]), int((held == 0).sum())
    (2000, 846, 10)
    """
    weights = np.arange(1, values) ** -1.2
    weights[-values // 10 :] = 0
    others = np.floor((1 - city) * people * weights / weights.sum()).astype(np.int64)
    return np.concatenate([[people - others.sum()], others])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A protocol, how its counts are drawn from (people by value, generator), and how many people hold each value."""

    name: str
    protocol: hs.Protocol
    draw: Callable[[Any, np.random.Generator], Any]
    held: Any

    @property
    def truth(self) -> Any:
        """The true shares, shape (values,)."""
        return self.held / self.protocol.n


def cases(people: int = PEOPLE, values: int = VALUES, epsilon: float = EPSILON, g: int = 8) -> Iterator[Case]:
    """Yield randomized response and local hashing."""
    held, uniform = population(people, values), hs.UniformShuffle()
    response = hs.RandomizedResponse(k=values, epsilon=epsilon)
    false = 1 / (np.exp(epsilon) + values - 1)

    def responses(held: Any, rng: np.random.Generator) -> Any:
        """With probability k false a report is uniform over all values, else the truth."""
        kept = rng.binomial(held, 1 - values * false)
        return kept + rng.multinomial(int((held - kept).sum()), np.full(values, 1 / values))

    def hashed(held: Any, rng: np.random.Generator) -> Any:
        """Who holds a value supports it with probability e**epsilon/(e**epsilon + g - 1), anybody else with 1/g."""
        true = np.exp(epsilon) / (np.exp(epsilon) + g - 1)
        return rng.binomial(held, true) + rng.binomial(people - held, 1 / g)

    protocol = hs.Protocol(randomizer=response, shuffler=uniform, n=people)
    yield Case(name="randomized response", protocol=protocol, draw=responses, held=held)
    hashing = hs.Protocol(randomizer=hs.LocalHashing(k=values, g=g, epsilon=epsilon), shuffler=uniform, n=people)
    yield Case(name="local hashing", protocol=hashing, draw=hashed, held=held)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Shares of collections with a wrong list, or a wrong interval in it; how many values are listed and kept.

    `kept` is the share of what a normal threshold with known variance keeps that is listed too, `best` the same of the
    smallest threshold that holds; `normal_wrong` is how often the normal threshold keeps a value held by nobody.
    """

    wrong: float
    wrong_intervals: float
    listed: float
    kept: float
    best: float
    normal_wrong: float


def study(case: Case, *, repetitions: int, seed: int, largest: int = LARGEST) -> Outcome:
    """Return what becomes of so many collections."""
    rng, protocol, truth = np.random.default_rng(seed), case.protocol, case.truth
    empty = case.held == 0
    law = protocol.randomizer.law().support
    assert law is not None
    k, n = truth.size, protocol.n
    spread = np.sqrt(law.false * (1 - law.false) / n) / (law.true - law.false)
    normal = NormalDist().inv_cdf(1 - LEVEL / k) * spread
    top = [rng.binomial(n, law.false, int(empty.sum())).max() for _ in range(largest)]
    best = (np.quantile(top, 1 - LEVEL, method="higher") / n - law.false) / (law.true - law.false)
    runs = []
    for _ in range(repetitions):
        estimate = hs.estimate(hs.Histogram(counts=case.draw(case.held, rng)), protocol=protocol)
        found = heavy_hitters(estimate, protocol=protocol, level=LEVEL)
        shown, (low, high) = found.among(k), found.intervals.T
        inside = (low <= truth[found.values]) & (truth[found.values] <= high)
        by_normal, by_best = estimate.raw > normal, estimate.raw > best
        runs.append(
            (
                np.any(shown & empty),
                not inside.all(),
                len(found),
                (shown & by_normal & ~empty).sum(),
                (by_normal & ~empty).sum(),
                (shown & by_best & ~empty).sum(),
                (by_best & ~empty).sum(),
                np.any(by_normal & empty),
            )
        )
    sums = np.array(runs, dtype=np.float64).sum(axis=0)
    return Outcome(
        wrong=sums[0] / repetitions,
        wrong_intervals=sums[1] / repetitions,
        listed=sums[2] / repetitions,
        kept=sums[3] / max(sums[4], 1),
        best=sums[5] / max(sums[6], 1),
        normal_wrong=sums[7] / repetitions,
    )


def difference(case: Case, *, collections: int, seed: int) -> float:
    """Return how far counts of true reports lie from the law that counts are drawn from, in standard errors.

    It is the largest difference of mean square deviations from the expectation, among values that few, some and many
    people hold, over so many collections.
    """
    rng, coins = np.random.default_rng(seed), hs.reproducible(seed)
    protocol, values = case.protocol, np.repeat(np.arange(case.held.size), case.held)
    law = protocol.randomizer.law().support
    assert law is not None
    expected = case.held * law.true + (protocol.n - case.held) * law.false
    variance = case.held * law.true * (1 - law.true) + (protocol.n - case.held) * law.false * (1 - law.false)
    groups = np.array_split(np.argsort(case.held), 3)

    def squares(counts: Any) -> Any:
        deviation = (counts - expected) ** 2 / variance
        return np.array([[deviation[group].mean(), np.sqrt(2 / group.size)] for group in groups])

    worst = 0.0
    for _ in range(collections):
        true = squares(protocol.randomizer.counts(protocol.collect(values, rng=coins).reports).counts)
        drawn = squares(case.draw(case.held, rng))
        worst = max(worst, float((np.abs(true - drawn)[:, 0] / (np.sqrt(2) * true[:, 1])).max()))
    return worst


def main() -> None:
    head = (
        "list with a value held by nobody",
        "list with a wrong interval",
        "values listed",
        "listed of those above the normal threshold",
        "listed of those above the best threshold",
        "normal threshold wrong",
        "true reports off, standard errors",
    )
    print("| mechanism | " + " | ".join(head) + " |")
    print("|---|" + "---:|" * len(head))
    for case in cases():
        outcome = study(case, repetitions=REPETITIONS, seed=2026)
        off = difference(case, collections=TRUE_REPORTS, seed=7)
        print(
            f"| {case.name} | {outcome.wrong:.1%} | {outcome.wrong_intervals:.1%} | {outcome.listed:.1f} | "
            f"{outcome.kept:.1%} | {outcome.best:.1%} | {outcome.normal_wrong:.1%} | {off:.1f} |"
        )


if __name__ == "__main__":
    main()
