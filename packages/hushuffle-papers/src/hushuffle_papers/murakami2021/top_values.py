"""The paper's figure 11: the 20 most frequent values, at guarantees of privacy and of an error of identification."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.model import Report, Series, Table
from hushuffle.model.citation import PIE
from hushuffle.questions import pie
from hushuffle_papers.base import Request, chart, claim, study, target
from hushuffle_papers.murakami2021.frequencies import (
    EXPONENT,
    FLATTER,
    PEOPLE,
    PROMISED,
    SIMULATED,
    VALUES,
    SampledPeople,
    assumed,
    losses,
    zipf,
)

_LARGE: Final = 1.0
_SMALL: Final = 0.15


@target("murakami2021/figure-11", "The 20 most frequent values", seconds=15, quick={"n": 20_000, "k": 100_000})
def most_frequent(request: Request, *, n: int = PEOPLE, k: int = VALUES) -> Report:
    people = zipf(n, k, EXPONENT, request.seed)
    others = {exponent: zipf(n, k, exponent, request.seed) for exponent in FLATTER}
    return shares_of_the_top(people, {"epsilon = 10": 10.0, **epsilons_for(PROMISED)}, request, others)


def shares_of_the_top(
    people: SampledPeople,
    choices: Mapping[str, float],
    request: Request,
    others: Mapping[float, SampledPeople] | None = None,
) -> Report:
    rows, k = [], people.counts.size
    estimates: dict[str, npt.NDArray[np.float64]] = {}
    truth = people.shares[people.top][:20]
    for position, (name, epsilon) in enumerate(choices.items()):
        request.tell(name, position / len(choices))
        estimates[name] = losses(people, RandomizedResponse(k=k, epsilon=epsilon), request.seed).shares[:20]
        rows.append((name, epsilon, _relative(estimates[name], truth)))
    return study(
        "The 20 most frequent values",
        f"How accurate are the 20 most frequent values where an error above {PROMISED} is promised?",
        *(
            claim(
                "section 5.3, Figure 11",
                sentence,
                holds(error),
                f"The mean relative error is {error:.3f}, at epsilon = {epsilon:.4g}.",
                quote=quote,
                printed=printed,
                reason=assumed(
                    {a: f"{_top_error(o, epsilon, request.seed):.3f}" for a, o in (others or {}).items()}, "."
                ),
                data=f"{people.source[0].upper()}{people.source[1:]}.",
                stand_in=SIMULATED,
            )
            for (sentence, quote, printed, holds), (_, epsilon, error) in zip(_SHARES, rows, strict=False)
        ),
        *(
            f"{name} (epsilon {epsilon:.4g}): mean relative error {error:.3f}."
            for name, epsilon, error in rows[len(_SHARES) :]
        ),
        chart(
            "shares",
            "Shares of the 20 most frequent values",
            "One run. Estimates below the significance threshold are set to 0.",
            ("rank", "share of people"),
            (
                Series.through("true share", range(1, 21), truth.tolist()),
                *(Series.through(name, range(1, 21), shares.tolist()) for name, shares in estimates.items()),
            ),
        ),
        Table(
            key="shares",
            title="Shares of the 20 most frequent values",
            caption="Estimates below the significance threshold are set to 0.",
            columns=("rank", "true share", *estimates),
            rows=tuple(
                (rank + 1, float(truth[rank]), *(float(shares[rank]) for shares in estimates.values()))
                for rank in range(20)
            ),
        ),
        settings=(("population", people.source), ("seed", str(request.seed))),
        citations=(PIE.at("figure 11"),),
    )


def _relative(estimates: npt.NDArray[np.float64], truth: npt.NDArray[np.float64]) -> float:
    return float(np.mean(np.abs(estimates - truth) / truth))


def _top_error(people: SampledPeople, epsilon: float, seed: int) -> float:
    randomizer = RandomizedResponse(k=people.counts.size, epsilon=epsilon)
    return _relative(losses(people, randomizer, seed).shares[:20], people.shares[people.top][:20])


_SHARES: Final[tuple[tuple[str, str, str, Callable[[float], bool]], ...]] = (
    (
        "At epsilon = 10 the mean relative error of the 20 most frequent values is above 1.",
        "for each of the top … POIs was on average 1.05",
        "1.05 (> 1)",
        lambda error: error > _LARGE,
    ),
    (
        f"Where the published bound promises an error of identification above {PROMISED} it is small.",
        "The relative error of the RR in this case was 0.10",
        "0.10",
        lambda error: error < _SMALL,
    ),
)
"""The claims of figure 11: the sentence, the paper's words, the printed error, and a test of the error."""


def epsilons_for(error: float) -> dict[str, float]:
    """Return the epsilon_0 of randomized response at which each bound still guarantees `error`.

    >>> {name: round(value, 2) for name, value in epsilons_for(0.92).items()}
    {'promised by the published bound': 12.72, 'promised by the exact bound': 13.72}
    """
    theta = pie.alpha_for_error(error, PEOPLE) / math.log2(min(PEOPLE, VALUES))
    return {
        "promised by the published bound": math.log1p(VALUES * theta / (1 - theta)),
        "promised by the exact bound": pie.epsilon_for_error(error, n=PEOPLE, k=VALUES),
    }
