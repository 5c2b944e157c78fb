"""A map of each person's value, inferred from the released values nearby with a Gaussian process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Floats, Integers
from hushuffle.attacks.inference import ATTACK, library, one_thread
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle, Shuffler, UniformShuffle
from hushuffle.model import Claim, Panel, PointMap, Report, Table
from hushuffle.model.report import software
from hushuffle.questions import order
from hushuffle.randomness import reproducible
from hushuffle_papers.base import Request, claim, study, target
from hushuffle_papers.meehan2022.data import LABELS, coarse
from hushuffle_papers.meehan2022.runs import LOCAL, UNIFORM, ShuffleStep, step, syn

_MOST: Final = 4000
"""Largest number of people: time grows with the cube of their number, memory with the square."""


def smoothed_guess(points: npt.ArrayLike, released: npt.ArrayLike, *, k: int, seed: int = 1) -> Integers:
    """Return the value with the largest posterior mean of a Gaussian process, shape (n,), for n <= 4,000.

    The indicator of each value has covariance c exp(-d**2 / (2 l**2)) plus noise, fitted by marginal likelihood.

    Source: C. E. Rasmussen, C. K. I. Williams 2006, chapter 2; Meehan et al. 2022, figure 1.

    >>> places = np.arange(30.0)[:, np.newaxis]
    >>> reports = [0, 0, 1, 0, 0] * 3 + [1, 1, 1, 0, 1] * 3
    >>> guesses = smoothed_guess(places, reports, k=2)
    >>> guesses[:12].tolist(), guesses[18:].tolist()
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    """
    seen = _checks.codes("released", released, k=_checks.integer("k", k, low=2))
    where = np.asarray(points, dtype=np.float64)
    if where.ndim != 2 or len(where) != seen.size or not 0 < seen.size <= _MOST:
        rule = f"shape ({seen.size}, d), of at most {_MOST:,} people"
        _checks.reject("points", rule, f"<shape {where.shape}>", "Draw a sample of the people.")
    process, kernels = library("sklearn.gaussian_process"), library("sklearn.gaussian_process.kernels")
    indicators = (seen[:, np.newaxis] == np.arange(k)) - np.bincount(seen, minlength=k) / seen.size
    spread = float(np.std(where)) or 1.0
    shape = kernels.ConstantKernel(0.05, (1e-4, 1e1)) * kernels.RBF(spread / 4, (spread / 100, spread * 100))
    kernel = shape + kernels.WhiteKernel(0.1, (1e-4, 1e1))
    model = process.GaussianProcessRegressor(kernel=kernel, random_state=seed)
    with one_thread(), warnings.catch_warnings():
        # The warning that a parameter is at its bound is ignored: the fit then has no structure.
        warnings.simplefilter("ignore", library("sklearn.exceptions").ConvergenceWarning)
        mean = model.fit(where, indicators).predict(where)
    # The mean shares are added back: without information, the guess is the most frequent value.
    return np.asarray((mean + np.bincount(seen, minlength=k) / seen.size).argmax(axis=1), dtype=np.int64)


EPSILON: Final = 2.55
ALPHA: Final = 1.0

_WIDE: Final = 0.4


@target("meehan2022/figure-1", "inference from a released map of people", seconds=30, quick={"people": 200})
def map_study(
    request: Request, *, people: int = 800, radii: tuple[float, float] = (0.04, 0.12), wide: float = _WIDE
) -> Report:
    case, places, _ = syn(people, seed=request.seed)
    common = order.reference_order(order.radius_groups(places, wide), places)
    groups = [order.radius_groups(places, radius) for radius in radii]
    orders = [order.reference_order(each, method="bfs") for each in groups]
    steps = [
        *(step(r, each, common, alpha=ALPHA, basis="exact") for r, each in zip(radii, groups, strict=True)),
        *(
            step(r, each, own, alpha=ALPHA, basis="published")
            for r, each, own in zip(radii, groups, orders, strict=True)
        ),
    ]
    names = [f"{kind}, r = {radius:g}" for kind in ("best order, exact", "as published") for radius in radii]
    own = list(zip(names, (each.shuffler for each in steps), strict=True))
    shufflers: dict[str, Shuffler] = {LOCAL: NoShuffle(), **dict(own[:2]), UNIFORM: UniformShuffle(), **dict(own[2:])}
    rng = reproducible(request.seed)
    reports = RandomizedResponse(k=case.k, epsilon=EPSILON).randomize(case.values, rng=rng)
    released = {name: shuffler.release(reports, rng=rng) for name, shuffler in shufflers.items()}
    each = request.each(released.items(), "Gaussian process: {}")
    guesses = {name: smoothed_guess(places, values, k=case.k) for name, values in each}
    right = {
        name: tuple(float(np.mean(coarse(guess, ways) == coarse(case.values, ways))) for ways in (8, 4, 2))
        for name, guess in guesses.items()
    }
    return study(
        "Inference from a released map of people",
        "Does shuffling within a radius prevent inference at a chosen granularity?",
        *_claims(right, radii, people),
        _table(steps, names, released, right, case.values),
        _map("released", "What is released", places, {"true values": case.values, **released}),
        _map("guessed", "What the attacker guesses", places, guesses),
        settings=(
            ("people", f"{people:,}, generated: two clusters of two crescents of two halves"),
            ("local epsilon, alpha", f"{EPSILON:g}, {ALPHA:g}"),
            ("as published", "groups within r; their breadth-first order; sensitivity w(w+1)/2"),
            ("best order, exact", f"groups within r; one order, the best for groups within {wide:g}"),
            ("attack", "Gaussian process, squared exponential covariance, fitted by marginal likelihood"),
            ("seed", str(request.seed)),
        ),
        citations=(ATTACK.at("figure 1"),),
        software=software("scikit-learn"),
    )


def _claims(right: Mapping[str, tuple[float, ...]], radii: tuple[float, float], people: int) -> tuple[Claim, ...]:
    local, *exact, uniform, small, large = right.values()
    data, stand_in = f"Generated: {people:,} people.", "The paper gives no distribution of its data."
    tested = partial(claim, "section 1, Figure 1", data=data, stand_in=stand_in)
    return (
        tested(
            "Without a shuffle the attacker reads almost the whole map.",
            local[0] >= 0.9,
            f"The attacker guesses {local[0]:.1%} of the values right.",
            quote="LDP reveals almost the entire dataset",
        ),
        tested(
            "After a uniform shuffle the attacker reads nothing.",
            uniform[2] <= 0.65,
            f"The attacker guesses {uniform[0]:.1%} of the values and {uniform[2]:.1%} of the clusters right.",
            quote="uniform shuffling prevents all classification",
        ),
        _granularity(tested, "as published", (small, large), radii),
        _granularity(tested, "one best order, exact sensitivity", exact, radii, repeats="meehan2022/figure-1"),
    )


def _granularity(
    tested: Callable[..., Claim],
    how: str,
    right: Sequence[tuple[float, ...]],
    radii: tuple[float, float],
    *,
    repeats: str = "",
) -> Claim:
    """Return the claim that the small radius reveals the crescents, and the large one only the clusters."""
    small, large = right
    holds = small[1] >= 0.8 > large[1] and large[2] >= 0.8
    return tested(
        f"The radius sets the granularity ({how}).",
        holds,
        f"With r = {radii[0]:g} the attacker guesses {small[0]:.1%} of the values, {small[1]:.1%} of the crescents and "
        f"{small[2]:.1%} of the clusters right; with r = {radii[1]:g} it guesses {large[0]:.1%}, {large[1]:.1%} and "
        f"{large[2]:.1%} right.",
        quote="the granularity can be controlled with our scheme",
        reason="The result depends on the draw of the shuffle."
        if repeats
        else ""
        if holds
        else "The breadth-first order is so wide that both radii shuffle nearly uniformly. The paper gives no "
        "distribution of its data, and this study chose the radii.",
        repeats=repeats,
    )


def _table(
    steps: list[ShuffleStep],
    names: list[str],
    released: Mapping[str, Integers],
    right: Mapping[str, tuple[float, ...]],
    values: Integers,
) -> Table:
    classes = ("8 values", "4 crescents", "2 clusters")
    sensitivities = {
        name: (f"{each.exact:,}", f"{each.published:,}", f"{each.shuffler.theta:.3g}")
        for name, each in zip(names, steps, strict=True)
    }
    return Table(
        key="guesses",
        title="Share of people whose released value or guessed class is correct",
        caption="Released: the value at a person's place is the person's own. Guessed: among 8, 4 or 2 classes.",
        columns=("shuffle", "sensitivity", "published one", "theta", "released", *classes),
        rows=tuple(
            (name, *sensitivities.get(name, ("", "", "")), float(np.mean(released[name] == values)), *right[name])
            for name in right
        ),
    )


def _map(key: str, title: str, places: Floats, panels: Mapping[str, Integers]) -> PointMap:
    x, y = (tuple(places[:, axis].round(4).tolist()) for axis in (0, 1))
    return PointMap(
        key=key,
        title=title,
        caption="Positions are public; colours show private values.",
        x_label="x",
        y_label="y",
        labels=LABELS,
        families=tuple("warm" if label.startswith("warm") else "cool" for label in LABELS),
        panels=tuple(Panel(label=name, x=x, y=y, values=tuple(values.tolist())) for name, values in panels.items()),
    )
