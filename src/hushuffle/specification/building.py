"""From a specification to the objects it describes."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle.errors import SpecificationError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Shuffler
from hushuffle.specification.kinds import Linker
from hushuffle.specification.order import Order
from hushuffle.specification.rules import misfits
from hushuffle.specification.specification import Specification


@dataclass(frozen=True, kw_only=True)
class Adversaries:
    """Who looks: `guessers` want one person's answer, `linker` says whether one wants to know who sent a report.

    `order` is who reads the order of release, if anybody does.
    """

    guessers: tuple[Guesser, ...]
    linker: bool
    order: Order | None = None


def build_protocol(spec: Specification, n: int, k: int, *, shuffler: Shuffler | None = None) -> Protocol:
    """Return the protocol for n people and k categories.

    `shuffler` is the one that [shuffler] describes where it depends on the data: a Mallows shuffle.

    Raises:
        SpecificationError: the specification does not fit n or k, where they were not known before.
        UnsupportedProtocolError: a Mallows shuffle, and none is given.

    >>> from hushuffle.specification import parse
    >>> spec = parse('''
    ...     population = { n = 900, k = 3 }
    ...     randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-6 }
    ... ''')
    >>> build_protocol(spec, n=900, k=3).randomizer.local_epsilon
    1.0
    """
    problems = tuple(misfits(spec.plain(), n=n, k=k))
    if problems:
        where = f"specification, for n = {n:,} people and k = {k:,} categories"
        raise SpecificationError(where, problems)
    return Protocol(randomizer=spec.randomizer.build(k), shuffler=shuffler or spec.shuffler.build(), n=n)


def build_adversaries(spec: Specification) -> Adversaries:
    """Return the adversaries, in the order of the specification."""
    guessers = [adversary.guesser() for adversary in spec.adversaries]
    return Adversaries(
        guessers=tuple(guesser for guesser in guessers if guesser is not None),
        linker=any(isinstance(adversary, Linker) for adversary in spec.adversaries),
        order=next((adversary for adversary in spec.adversaries if isinstance(adversary, Order)), None),
    )
