"""What coalitions of roles learn of a phone's answer, by playing the game; beside the figure that is printed for them.

This folder holds the attacks on our own services, one file for each role: `test_client.py` (phones and strangers),
`test_relay.py`, `test_scrambler.py`, `test_issuer.py`, `test_target.py`, `test_operator.py`, `test_disk_owner.py`,
`test_drawer.py` (the author of documents) and `test_file_author.py` (the author of tables and specifications). They
attack the services and phones themselves; `tests/network/nodes/test_adversaries.py` does it among nodes of a roster.
This file takes from them what each role can do, and plays a game: which of two targets is the victim's own, where
everything else is known?
People and dummies are drawn by the product: `choices.choose` and `TargetSampling.dummies`.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import binom

import hushuffle as hs
from hushuffle_network.choices import choose

PEOPLE, LEAST, OWN_PHONES, TARGETS, SIGMA, DUMMIES = 50, 30, 3, 10, 0.5, 1
GAMES: Final = 4000
FALSE_ALARM: Final = 1e-6
"""Chance that any coalition seems to be above its figure, if none is."""
STEP: Final = {"targets": [None] * TARGETS, "sigma": SIGMA, "convention": "uniform", "only_on_purpose": True}
SAMPLING: Final = hs.TargetSampling(targets=TARGETS, sigma=SIGMA)
ROLES: Final = ("relay", "first scrambler", "last scrambler", "issuer", "target", "result", "drawer", "phones")
COALITIONS: Final = (
    (),
    *((role,) for role in ROLES),
    *combinations(ROLES, 2),
    ("relay", "last scrambler", "phones"),
    ("relay", "last scrambler", "issuer"),
    ("relay", "drawer", "phones"),
    ("relay", "drawer", "last scrambler"),
    ("relay", "drawer", "last scrambler", "phones"),
)
"""All of one role and of two, everybody active; an observer of all links is always with them."""


def left(roles: tuple[str, ...]) -> tuple[int, int]:
    """Return how many people and dummies hide the victim from a coalition; one and none: only the victim's own coins.

    The drawer's document names services of others here: one that names its own has their roles, too. It may invite
    fewer people, as a relay may keep them back. An issuer makes people up; a first scrambler replaces them.
    """
    if "target" in roles or {"first scrambler", "last scrambler"} <= {*roles}:
        return 1, 0
    people = LEAST if {"relay", "drawer"} & {*roles} else PEOPLE
    people = 1 if {"first scrambler", "issuer"} & {*roles} else people - OWN_PHONES * ("phones" in roles)
    honest = 2 - len({"first scrambler", "last scrambler"} & {*roles})
    return people, 0 if "result" in roles else honest * DUMMIES  # the result counts tokens, which dummies have not


@cache
def printed(people: int, dummies: int) -> float:
    """Return the best chance that the certified figure allows: (1 + delta(0))/2."""
    protocol = hs.Protocol(randomizer=SAMPLING, shuffler=hs.Scrambler(dummies=dummies), n=people)
    return (1 + hs.dp.delta(protocol, epsilon=0.0).upper) / 2


@cache
def sent(own: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return where so many phones with this own target send, each by its own coins."""
    draw = np.random.default_rng(own).bytes
    return np.fromiter((choose(STEP, own, draw)[0] for _ in range(count)), np.int64, count)


@cache
def measured(people: int, dummies: int) -> float:
    """Return how often it is guessed which of the targets 0 and 1 is the victim's, everybody else's being 9."""
    rng = np.random.default_rng([people, dummies])
    true = rng.integers(2, size=GAMES)
    victims = np.where(true == 0, sent(0, GAMES), sent(1, GAMES))
    others = sent(9, GAMES * (PEOPLE - 1)).reshape(GAMES, PEOPLE - 1)[:, : people - 1]
    added = SAMPLING.dummies(GAMES * dummies, rng=hs.reproducible(people)).reshape(GAMES, dummies)
    seen = np.concatenate([victims[:, None], others, added], axis=1)
    more = (seen == 1).sum(axis=1) - (seen == 0).sum(axis=1)
    guess = np.where(more == 0, rng.integers(2, size=GAMES), more > 0)
    return float((guess == true).mean())


def allowed(people: int, dummies: int) -> float:
    """Return what is measured at most, if the figure holds, but for `FALSE_ALARM` in all coalitions together."""
    return float(binom.isf(FALSE_ALARM / len(COALITIONS), GAMES, printed(people, dummies))) / GAMES


@pytest.mark.parametrize("roles", COALITIONS, ids=lambda roles: " and ".join(roles) or "an observer")
def test_no_coalition_learns_more_than_its_figure(roles: tuple[str, ...]) -> None:
    hidden = left(roles)
    assert printed(*hidden) - 0.08 < measured(*hidden) <= allowed(*hidden)  # nor is the attack a weak one


def test_the_game_notices_who_opens_requests() -> None:
    """A relay that learns tickets leaves one person, and a drawer that learns codes, too."""
    assert measured(1, 2 * DUMMIES) > allowed(*left(("relay", "drawer"))) + 0.03
    assert measured(1, DUMMIES) > allowed(*left(("relay", "drawer", "last scrambler"))) + 0.03
