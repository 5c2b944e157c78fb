"""A de Finetti attack on shuffled reports (appendix A.3), with beliefs by enumeration, and Properties 1 and 2."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.attacks.inference import ATTACK
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.model import Chart, Report, Series, Table
from hushuffle.papers.base import Request, Target, claim
from hushuffle.questions import order

Floats = npt.NDArray[np.float64]

CLASSES: Final = (0, 0, 0, 1, 1, 1)
"""Public information t about each person."""

_EPSILON: Final = 2.0
_RATES: Final = tuple(rate / 10 for rate in range(1, 10))
_ALPHAS: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_PRIORS: Final = (0.5, 0.1, 0.01, 1e-4, 1e-8)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """`right`: share of right guesses; `moved` (nats): largest |ln| of P[sender | release] / P[sender | multiset]."""

    right: float
    moved: float


def beliefs(_request: Request) -> Report:
    n, half = len(CLASSES), len(CLASSES) // 2
    whole, parts = [list(range(n))], [list(range(half)), list(range(half, n))]
    reference = list(range(n))
    channel: Floats = RandomizedResponse(k=2, epsilon=_EPSILON).channel().matrix.astype(np.float64)
    thetas = {
        "everybody": [order.theta_for_alpha(alpha, reference=reference, groups=whole) for alpha in _ALPHAS],
        "own class": [order.theta_for_alpha(alpha, reference=reference, groups=parts) for alpha in _ALPHAS],
    }
    results = {name: [attack(CLASSES, theta, channel) for theta in each] for name, each in thetas.items()}
    ends = attack(CLASSES, 0.0, channel), attack(CLASSES, math.inf, channel)
    moved = [each.moved for each in results["everybody"]]
    held = all(most <= alpha + 1e-9 for most, alpha in zip(moved, _ALPHAS, strict=True))
    broken = _largest([each.moved for each in results["own class"]])
    theta = order.theta_for_alpha(1.0, reference=reference, groups=whole)
    shifts = [shift(theta, n, prior) for prior in _PRIORS]
    return Report(
        key="meehan2022/property-1",
        title="A de Finetti attack on shuffled reports",
        question=(
            "What does the order of reports reveal to an adversary who infers from it how values depend on a class?"
        ),
        claims=(
            claim(
                "Appendix A.3, Property 1",
                "If one group holds all people, no belief about their values moves by more than a factor of e^alpha.",
                held,
                f"The attacker's beliefs move by at most {_largest(moved):.2f} alpha, alpha from {_ALPHAS[1]:g} to "
                f"{_ALPHAS[-1]:g}.",
                quote="is sufficient for thwarting any de Finetti attack … on individuals",
                data=f"{n} people, two classes, every release enumerated.",
            ),
            claim(
                "Appendix A.3, Property 2",
                "Without that group some belief moves further.",
                broken > 1,
                f"With groups of one class each, beliefs move by up to {broken:.2f} alpha.",
                quote="is necessary to block all de Finetti attacks",
                data=f"{n} people, two classes, every release enumerated.",
            ),
            claim(
                "Appendix A.3, proof of Property 2",
                "A prior of one half on each of two orders violates (7): some belief moves by e^alpha.",
                shifts[0] > 1 - 1e-9,
                f"A belief moves by e^{shifts[0]:.3f} at most at alpha = 1; a prior of {_PRIORS[-1]:g} on one of them "
                f"moves it by e^{shifts[-1]:.3f}, so that the property holds.",
                quote="failing to prevent de Finetti attacks against this bimodal prior",
            ),
        ),
        answers=(
            f"From reports with their senders, the adversary names {ends[1].right:.3f} of the values right, from the "
            f"bag of reports and the classes alone {ends[0].right:.3f}. The order of a shuffle with alpha = "
            f"{_ALPHAS[2]:g} for everybody adds {results['everybody'][2].right - ends[0].right:.4f}, with the same "
            f"alpha for each class {results['own class'][2].right - ends[0].right:.4f}.",
        ),
        settings=(
            ("people", f"{n}, in the order of reference: {half} of one class, then {n - half} of another"),
            ("values", "two; values are independent with an unknown rate for each class, uniform over 0.1 ... 0.9"),
            ("reports", f"randomized response, epsilon = {_EPSILON:g}"),
            ("attacker", "knows classes, rates' prior, mechanism, sees the release; the best guess of each value"),
        ),
        charts=(
            Chart(
                key="right",
                title="Share of values guessed right",
                caption="The best adversary, by enumeration; horizontal lines: the uniform shuffle, and no shuffle.",
                x_label="alpha (nats)",
                y_label="share of values named right",
                series=(
                    *(
                        Series.through(f"groups: {name}", _ALPHAS, [each.right for each in attacks])
                        for name, attacks in results.items()
                    ),
                    Series.through("uniform shuffle", _ALPHAS, [ends[0].right] * len(_ALPHAS)),
                    Series.through("no shuffle", _ALPHAS, [ends[1].right] * len(_ALPHAS)),
                ),
            ),
        ),
        tables=(
            Table(
                key="beliefs",
                title="Largest change of a belief by the release",
                caption="The largest |ln| of the ratio of beliefs about a sender after and before the release (nats).",
                columns=("alpha", "right, everybody", "moved, everybody", "right, own class", "moved, own class"),
                rows=tuple(
                    (alpha, shared.right, shared.moved, separate.right, separate.moved)
                    for alpha, shared, separate in zip(_ALPHAS, results["everybody"], results["own class"], strict=True)
                ),
            ),
            Table(
                key="priors",
                title="Largest change of a belief with two possible orders",
                caption="Change of ln of a belief at alpha = 1 if only an order and its reverse are possible, in nats.",
                columns=("prior of one order", "a belief moves by"),
                rows=tuple(zip(_PRIORS, shifts, strict=True)),
            ),
        ),
        citations=(ATTACK.at("appendix A.3, Properties 1 and 2"),),
    )


def _largest(moved: Sequence[float]) -> float:
    return max(most / alpha for most, alpha in zip(moved, _ALPHAS, strict=True) if alpha)


def attack(classes: Sequence[int], theta: float, channel: Floats) -> Attack:
    """Return the attacker's success against a Mallows shuffle about the order of the people, by enumeration.

    >>> attack((0, 1), 0.0, np.eye(2)).moved  # a uniform shuffle says no more than the bag of reports
    0.0
    """
    n = len(classes)
    if theta == math.inf:
        orders, chances = np.arange(n)[np.newaxis], np.ones(1)
    else:
        orders, chances = order.mallows_law(range(n), theta=theta)
    values = _prior(classes)
    reports = _reported(values, channel)
    right, moved = 0.0, 0.0
    for person in range(n):
        seen = _released(np.stack([_with(reports, person, y) for y in (0, 1)]), orders, chances)
        moved = max(moved, _moved(seen))
        joint = np.stack([_reported(_with(values, person, x), channel) for x in (0, 1)])
        right += float(_released(joint, orders, chances).max(axis=0).sum()) / n
    return Attack(right=right, moved=moved)


def shift(theta: float, n: int, prior: float) -> float:
    """Return the largest change of a log belief (nats) for two orders: one of probability `prior`, and its reverse.

    >>> round(shift(0.1, 3, 0.5), 4), round(shift(0.1, 3, 1e-9), 4)
    (0.1612, 0.3)
    """
    growth = math.exp(theta * n * (n - 1) / 2)
    return max(
        abs(math.log(odds / (1 + belief * (odds - 1))))
        for belief in (prior, 1 - prior)
        for odds in (growth, 1 / growth)
    )


def _prior(classes: Sequence[int]) -> Floats:
    """Return the joint distribution of the values, shape (2,) * n: each class has its own rate, uniform."""
    n = len(classes)
    law = np.ones((2,) * n)
    for values in itertools.product((0, 1), repeat=n):
        for name in set(classes):
            ones = [value for value, each in zip(values, classes, strict=True) if each == name]
            law[values] *= math.fsum(math.prod(r if v else 1 - r for v in ones) for r in _RATES) / len(_RATES)
    return law


def _with(law: Floats, person: int, value: int) -> Floats:
    part = np.zeros_like(law)
    np.moveaxis(part, person, 0)[value] = np.moveaxis(law, person, 0)[value]
    return part


def _reported(law: Floats, channel: Floats) -> Floats:
    for person in range(law.ndim):
        law = np.moveaxis(np.tensordot(law, channel, axes=(person, 0)), -1, person)
    return law


def _released(tables: Floats, orders: npt.NDArray[np.int64], chances: Floats) -> Floats:
    """Return the distribution of the release for each of the `tables` of reports: z[j] = y[order[j]]."""
    total = np.zeros_like(tables)
    for each, chance in zip(orders, chances, strict=True):
        total += chance * np.transpose(tables, (0, *(each + 1)))
    return total


def _moved(seen: Floats) -> float:
    """Return the largest |ln| of P[y | release] divided by P[y | bag], from seen[y, release]."""
    ones = np.indices(seen.shape[1:]).sum(axis=0)
    worst = 0.0
    for bag in range(seen.ndim):
        inside = seen[:, ones == bag]
        before = inside.sum(axis=1) / inside.sum()
        after = inside / inside.sum(axis=0)
        for belief, earlier in zip(after, before, strict=True):
            if earlier > 0:
                with np.errstate(divide="ignore"):
                    worst = max(worst, float(np.abs(np.log(belief / earlier)).max()))
    return worst if worst > 1e-12 else 0.0


TARGETS: Final = (Target(name="meehan2022/property-1", title="A de Finetti attack", build=beliefs, seconds=2),)
