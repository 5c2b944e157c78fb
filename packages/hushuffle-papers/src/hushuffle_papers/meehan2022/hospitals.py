"""Figure 4 (a, c) on generated hospitals, since the paper's discharge records (PUDF) may not be shipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushuffle import _checks
from hushuffle._checks import Floats, Integers
from hushuffle.attacks.inference import ATTACK
from hushuffle.model import Report, Warned
from hushuffle.model.report import software
from hushuffle.questions import order
from hushuffle_papers.base import Request, claim, study, target
from hushuffle_papers.meehan2022 import runs
from hushuffle_papers.meehan2022.attack import SPANS, alpha_verdict, spans
from hushuffle_papers.meehan2022.runs import ALPHA, EXACT, LOCAL, PUBLISHED, TREES, Case

METHODS: Final = ("private insurance", "Medicaid", "Medicare", "charity")

_PEOPLE: Final = 29_000
_ATTACK: Final = 25
"""The radius r* in km. The paper does not state its value."""

_SIDE: Final = 1000.0
_TOWNS: Final = 40
_HOSPITALS: Final = 120
_WITHIN: Final = 8.0  # km from the centre of a town, standard deviation
_SHARES: Final = (0.35, 0.25, 0.25, 0.15)
_ALIKE: Final = (6.0, 20.0)  # larger: means of towns, and of hospitals in a town, differ less
_LOG_AMOUNTS: Final = (9.2, 8.6, 9.0, 7.8)
_SPREAD: Final = 0.5
_PRINTED: Final = 2.7
_STAND_IN: Final = (
    "This study generated the hospitals: the paper's records are not available, and the paper gives neither r* nor "
    "its map."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Patients:
    """n patients: `places` of their hospitals in km, shape (n, 2), paid `amounts`, and private codes `methods`."""

    places: Floats
    amounts: Floats
    methods: Integers


def patients(n: int, *, seed: int) -> Patients:
    """Return generated patients of 120 hospitals in 40 towns, on a square of 1,000 km; n < 1 is an error.

    >>> made = patients(1000, seed=1)
    >>> made.places.shape, len(np.unique(made.places, axis=0)) <= 120, int(made.methods.max())
    ((1000, 2), True, 3)
    """
    people, rng = _checks.integer("n", n, low=1), np.random.default_rng(seed)
    centres = rng.uniform(0, _SIDE, (_TOWNS, 2))
    town = rng.choice(_TOWNS, _HOSPITALS, p=_weights(rng, _TOWNS))
    where = centres[town] + rng.normal(0, _WITHIN, (_HOSPITALS, 2))
    towns = rng.dirichlet(_ALIKE[0] * np.array(_SHARES), _TOWNS)
    mixes = np.array([rng.dirichlet(_ALIKE[1] * towns[each] + 1e-3) for each in town])
    hospital = rng.choice(_HOSPITALS, people, p=_weights(rng, _HOSPITALS))
    methods = (rng.random(people)[:, np.newaxis] > np.cumsum(mixes[hospital], axis=1)[:, :-1]).sum(axis=1)
    amounts = np.exp(np.array(_LOG_AMOUNTS)[methods] + _SPREAD * rng.normal(size=people))
    return Patients(places=where[hospital], amounts=amounts, methods=methods.astype(np.int64))


def _weights(rng: np.random.Generator, size: int) -> Floats:
    weights = rng.lognormal(0.0, 1.0, size)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


@target(
    "meehan2022/figure-4-hospitals",
    "inference attack and learnability on generated hospitals",
    quick={"people": 1500, "radii": (0, 400), "alphas": (1e2, 1e6), "repetitions": 1, "trees": 4},
    seconds=120,
)
def hospital_study(
    request: Request,
    *,
    people: int = _PEOPLE,
    radii: Sequence[int] = (0, _ATTACK, 50, 150, 400),
    alphas: Sequence[float] = (1e3, 1e4, 1e5, 1e6),
    repetitions: int = 3,
    trees: int = TREES,
) -> Report:
    generated = patients(people, seed=request.seed)
    case = Case(
        name="Generated hospitals",
        values=generated.methods,
        labels=METHODS,
        near=order.radius_groups(generated.places, _ATTACK),
        within=f"{_ATTACK} km",
        features=generated.places,
        privileged=np.log(generated.amounts)[:, np.newaxis],
    )
    steps: list[runs.ShuffleStep] = []
    for radius in radii:
        groups = order.radius_groups(generated.places, radius)
        published = order.reference_order(groups, method="bfs")
        steps += runs.both(radius, groups, published, order.reference_order(groups, generated.places))
    groups = order.radius_groups(generated.places, 0)
    best = order.reference_order(groups, generated.places)
    weaker = [runs.step(alpha, groups, best, alpha=alpha, basis="exact", label="one hospital") for alpha in alphas]
    scores = runs.scored(case, (*steps, *weaker), repetitions, trees, request)
    near = min((each for each in steps if each.basis == PUBLISHED), key=lambda each: abs(each.x - _ATTACK))
    factor = scores[LOCAL].rho.mean / max(scores[near.label].rho.mean, 1 / people)
    sizes = np.unique(generated.places, axis=0, return_counts=True)[1]
    data = f"Generated: {people:,} patients of {sizes.size} hospitals."
    return study(
        "Generated hospitals: inference attack and learnability",
        "As distances grow, do results of an order-private shuffle move from no shuffle to a uniform one?",
        *spans(steps, scores, PUBLISHED, figures=("4a", "4c"), data=data, stand_in=_STAND_IN, repeats=SPANS),
        *spans(steps, scores, EXACT, figures=("4a", "4c"), data=data, stand_in=_STAND_IN, repeats=SPANS),
        claim(
            "section 5.1, Figure 4a",
            "On PUDF the share of vulnerable people falls by a factor of 2.7 at r = r*.",
            None,
            f"The share falls by a factor of {factor:.2f} at r = {near.x:g} km, r* = {_ATTACK} km, on generated "
            "patients.",
            quote="is reduced by 2.7X … at the attack distance threshold … for PUDF",
            printed=f"{_PRINTED:g}",
            reason=_STAND_IN,
            data=data,
        ),
        f"The largest hospital has {sizes.max():,} patients. At alpha = {ALPHA:g} theta is so small for a group of "
        "that size that the shuffle is nearly uniform at every radius.",
        alpha_verdict(weaker, scores),
        runs.table("radii", "At alpha = 4", case, "r (km)", steps, scores),
        runs.table("alphas", "Groups of one hospital at larger alpha", case, "alpha", weaker, scores),
        runs.attack_chart(
            "attack", "Vulnerable people against r, generated hospitals", "r (km)", steps, scores, log=""
        ),
        runs.learner_chart(
            "learnability",
            "Error of the learner against the radius r, generated hospitals",
            "r (km)",
            steps,
            scores,
            log="",
        ),
        runs.learner_chart(
            "learnability-alpha", "Error of the learner against alpha, groups of one hospital", "alpha", weaker, scores
        ),
        Warned(
            key="generated-data",
            sentence="The patients are generated, so no figure of this study describes real patients.",
            advice="Use these figures only to illustrate the method.",
        ),
        settings=(
            *runs.settings(case, repetitions=repetitions, seed=request.seed, trees=trees),
            ("data", "generated, none of it real: 40 towns on a square of 1,000 km, 120 hospitals"),
            ("groups", "patients of hospitals within r km"),
            ("privileged", "the amount paid"),
        ),
        citations=(ATTACK.at("figure 4 (a, c)"),),
        software=software("scikit-learn"),
    )
