"""Attackers who play against a deployment win as often as they can, and never more often than certified."""

from __future__ import annotations

import numpy as np
import pytest

from hushuffle import LocalHashing, MatrixRandomizer, NoShuffle, Protocol, RandomizedResponse, UniformShuffle, qif
from hushuffle.attacks import games as module
from hushuffle.attacks.audit_study import audit_deployment
from hushuffle.attacks.games import games
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Bound
from hushuffle.randomness import reproducible

MATRIX = MatrixRandomizer([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])


def played(protocol: Protocol, **sizes: int) -> list[module.Game]:
    return [play() for _, play in games(protocol, confidence=0.9999, rng=reproducible(1), **sizes)]


@pytest.mark.parametrize(
    "mechanism",
    [RandomizedResponse(k=3, epsilon=2.0), LocalHashing(k=6, g=4, epsilon=2.0), MATRIX],
    ids=["response", "hashing", "matrix"],
)
def test_no_attacker_beats_what_is_certified(mechanism: Mechanism) -> None:
    protocol = Protocol(randomizer=mechanism, shuffler=UniformShuffle(), n=7)
    for game in played(protocol, releases=1500, reports=50_000):
        assert not game.broken, game
        assert game.success.upper > 0.7 * game.certified.upper, game


def test_the_best_attack_on_randomized_response_reaches_the_exact_figure() -> None:
    protocol = Protocol(randomizer=RandomizedResponse(k=3, epsilon=2.0), shuffler=UniformShuffle(), n=5)
    nobody, everybody, sender = played(protocol, releases=4000, reports=200_000)
    assert nobody.certified == qif.vulnerability(protocol)
    for game in (nobody, everybody, sender):
        assert game.success.lower <= game.certified.upper
        assert game.success.upper >= game.certified.lower


def test_a_certificate_that_is_too_small_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = Protocol(randomizer=RandomizedResponse(k=2, epsilon=3.0), shuffler=NoShuffle(), n=1)
    low = Bound(lower=0.0, upper=0.6, kind="upper", unit="probability")
    monkeypatch.setattr(qif, "vulnerability", lambda *_, **__: low)
    made = audit_deployment(protocol, delta=1e-3, trials=2000, rng=reproducible(1))
    assert any("The claim about a person's value is refuted" in answer for answer in made.answers)
    assert "refuted" in {row[2] for row in made.tables[1].rows}


def test_games_that_cannot_be_played_say_why() -> None:
    from hushuffle import MallowsShuffle  # noqa: PLC0415 - only here

    order = MallowsShuffle(reference=np.arange(5), theta=0.5)
    protocol = Protocol(randomizer=RandomizedResponse(k=3, epsilon=2.0), shuffler=order, n=5)
    made = audit_deployment(protocol, delta=1e-3, trials=300, rng=reproducible(1))
    assert {row.question for row in made.unanswered} >= {"game"}
