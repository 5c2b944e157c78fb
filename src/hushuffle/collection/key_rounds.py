"""What all collections with one key say together about a person who is in all of them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushuffle.collection.ledger import LedgerBatch
from hushuffle.collection.released import figure
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification import Specification, parse

_DISTINCT: Final = 4  # protocols of different n that are composed as they are: each takes a second or more


@dataclass(frozen=True, kw_only=True)
class KeyRounds:
    """What a key was used for: `collections` (a column in a round is one), and their central epsilon at `delta`.

    `unknown` batches were collected by an earlier version, which did not note how: the figure leaves them out.
    """

    collections: int
    epsilon: Bound
    delta: float
    unknown: int = 0

    def facts(self) -> dict[str, Any]:
        """Return it for a manifest."""
        return {
            "collections": self.collections,
            "epsilon": figure(self.epsilon),
            "delta": self.delta,
            "unknown": self.unknown,
        }


def rounds_of(batches: Sequence[LedgerBatch], *, delta: float) -> KeyRounds:
    """Return what the batches in a ledger say together, for people who are in one batch of each collection.

    Within a collection batches have different people. The figure is an upper end: of batches made alike the smallest
    counts, and where there are many sizes, smaller ones stand for larger ones. That is sound: with more people, a
    release is less about each of them.
    """
    known = [batch for batch in batches if batch.specification is not None]
    smallest: dict[tuple[str | None, str], LedgerBatch] = {}
    for batch in known:
        place = (batch.scope, _likeness(batch))
        if place not in smallest or batch.people < smallest[place].people:
            smallest[place] = batch
    rounds = _fewer([_protocol(batch) for batch in smallest.values()])
    return KeyRounds(
        collections=len({batch.scope for batch in known}),
        epsilon=Bound(lower=0.0, upper=_upper(rounds, delta), kind="upper", unit="nats"),
        delta=delta,
        unknown=len(batches) - len(known),
    )


def _likeness(batch: LedgerBatch) -> str:
    """Return what batches that were made alike have in common."""
    plain = tomllib.loads(batch.specification or "")
    plain["population"].pop("n", None)
    return json.dumps([plain["population"], plain["randomizer"], batch.shuffler], sort_keys=True)


def _protocol(batch: LedgerBatch) -> Protocol:
    specification: Specification = parse(batch.specification or "", file="a specification in the ledger")
    k = specification.population.read(Path()).k
    return Protocol(
        randomizer=specification.randomizer.build(k), shuffler=specification.shuffler.build(), n=batch.people
    )


def _fewer(protocols: Iterable[Protocol]) -> list[Protocol]:
    """Return as many protocols, a few different ones at most: fewer people stand for more."""
    rounds = sorted(protocols, key=lambda protocol: (_kind(protocol), protocol.n))
    while len({(_kind(protocol), protocol.n) for protocol in rounds}) > _DISTINCT:
        steps = [
            (rounds[place].n / rounds[place - 1].n, place)
            for place in range(1, len(rounds))
            if _kind(rounds[place]) == _kind(rounds[place - 1]) and rounds[place].n > rounds[place - 1].n
        ]
        if not steps:
            break
        smaller, larger = rounds[min(steps)[1] - 1], rounds[min(steps)[1]]
        rounds = [smaller if protocol == larger else protocol for protocol in rounds]
    return rounds


def _kind(protocol: Protocol) -> str:
    return repr((protocol.randomizer, protocol.shuffler))


def _upper(rounds: Sequence[Protocol], delta: float) -> float:
    if not rounds:
        return 0.0
    try:
        return dp.compose(rounds, delta=delta).upper
    except (UnsupportedProtocolError, NumericalError):
        # What a report says about its sender is all that it can say, and adds up.
        return sum(protocol.randomizer.local_epsilon for protocol in rounds)
