"""Games about two rounds with the same people: guess a value, or whether it changed between the rounds."""

from __future__ import annotations

import numpy as np

from hushuffle.attacks.games import Game, Integers, Named, Terms, enough, evidence, fair, refuse, tell_apart
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.questions import dp
from hushuffle.randomness import KeyedRandomness


def round_games(protocol: Protocol, *, rounds: int, memoised: bool = False) -> list[Named]:
    """Return the game of two rounds: guess a value (fresh reports), or whether it changed (memoized reports).

    The adversary knows all other values. The certified bound is the total variation distance of two rounds for fresh
    reports, and `dp.change_shows` for memoized reports.

    >>> from hushuffle import RandomizedResponse, UniformShuffle
    >>> from hushuffle.randomness import reproducible
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=2.0), shuffler=UniformShuffle(), n=5)
    >>> for memoised in (False, True):
    ...     ((name, play),) = round_games(survey, rounds=2, memoised=memoised)
    ...     game = play(Terms(rng=reproducible(1)))
    ...     print(f"{name}: certified {game.certified.upper:.3f}, broken: {game.broken}")
    Guess a value from two rounds: certified 0.829, broken: False
    See a change between two rounds: certified 0.895, broken: False
    """
    if memoised:
        return [("See a change between two rounds", lambda terms: _change(protocol, rounds, terms))]
    return [("Guess a value from two rounds", lambda terms: _both(protocol, rounds, terms))]


def _both(protocol: Protocol, rounds: int, terms: Terms) -> Game:
    _asked_again(rounds)
    enough(terms.releases, 2 * protocol.n)
    distance = dp.compose_delta([(protocol, 2)], epsilon=0.0)
    witness = dp.delta(protocol, epsilon=0.0).witness
    if witness is None:
        refuse("The rounds were not audited: no pair of datasets is known whose epsilon attains the lower bound.")
    rest = np.repeat(np.arange(len(witness.others)), witness.others)

    def run(world: int) -> float:
        held, score = np.append(rest, witness.target[world]), 0.0
        for _ in range(2):
            reports = protocol.collect(held, rng=terms.rng).reports
            first, second = evidence(protocol, reports, witness.target, witness.others)
            with np.errstate(divide="ignore", invalid="ignore"):
                score += float(np.nan_to_num(np.log(second) - np.log(first), posinf=1e300, neginf=-1e300))
        return score

    return Game(
        what="which of two values a person reports in two rounds",
        attacker="knows all other values and both candidate values",
        success=tell_apart(run, terms),
        certified=fair(distance.upper, distance),
    )


def _change(protocol: Protocol, rounds: int, terms: Terms) -> Game:
    _asked_again(rounds)
    enough(terms.releases, 2 * protocol.n)
    if protocol.reveals is Reveals.SUMS or protocol.shuffler.expected_dummies or protocol.shuffler.all_coins:
        refuse("The game on changed values was not played: the shuffler adds reports up, or adds dummies or noise.")
    shows = dp.change_shows(protocol)
    last = protocol.randomizer.inputs - 1

    def run(world: int) -> float:
        key, held = terms.rng.words(4).tobytes(), np.zeros(protocol.n, dtype=np.int64)
        first = _kept(protocol, held, key)
        held[0] = last * world
        second = _kept(protocol, held, key)
        first, second = (protocol.shuffler.release(reports, rng=terms.rng) for reports in (first, second))
        return float(not np.array_equal(_sorted(first), _sorted(second)))

    return Game(
        what="whether one person's value changed between two rounds",
        attacker="knows that no other value changed",
        success=tell_apart(run, terms),
        certified=fair(shows.upper, shows),
    )


def _asked_again(rounds: int) -> None:
    if rounds < 2:
        refuse("Two rounds were not audited: people report once (rounds is missing or 1).")


def _kept(protocol: Protocol, held: Integers, key: bytes) -> Integers:
    """Return memoized reports: the random bits depend on a key, the person and the value."""
    people = np.arange(protocol.n, dtype=np.uint64)
    coins = KeyedRandomness(key=key, records=people, round_number=0, values=held)
    return protocol.randomizer.randomize(held, rng=coins)


def _sorted(reports: Integers) -> Integers:
    """Return sorted reports: the order reveals nothing about senders."""
    rows = reports.reshape(reports.shape[0], -1)
    return rows[np.lexsort(rows.T)]
