"""What a guesser knows about the others, reduced to the one shape that all formulas read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.mechanisms import randomizers
from hushuffle.mechanisms.adversaries import Guesser, Informed
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Histogram

if TYPE_CHECKING:
    from hushuffle.mechanisms.adversaries import Guesser
    from hushuffle.mechanisms.protocol import Protocol

QUESTION = "The vulnerability to a guess"


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """m others with known values, `unknown` further reports that are uniform over the k values.

    `known` counts the m values, shape (k,); None is the worst case over all of them. A person whose
    value is uniform sends a uniform report, and so does a dummy: both are among the unknown.
    """

    law: Symmetric
    m: int
    known: tuple[int, ...] | None
    unknown: int

    @property
    def others(self) -> int:
        """Number of released reports that are not the target's."""
        return self.m + self.unknown


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The rate G at which a truthful target is guessed, V = nu + theta G, between two ends (equal: exact).

    `known` are known values, counted by value, at which the lower bound is attained, if they were asked for.
    """

    lower: float
    upper: float
    known: tuple[int, ...] | None = None


def symmetric_law(protocol: Protocol) -> Symmetric:
    """Return mu, nu and k of the protocol's randomizer.

    Raises:
        UnsupportedProtocolError: it treats the values differently, or its law is not known.
    """
    return randomizers.symmetric_law(protocol.randomizer, for_what=QUESTION)


def against(protocol: Protocol, adversary: Guesser) -> tuple[Protocol, Guesser]:
    """Return what is left of `protocol` to a guesser who works with all but the honest people, and what it knows there.

    Who knows m of the others, in the worst case, knows as many honest ones, or all of these.

    Raises:
        InvalidInputError: more known people than others.
    """
    honest = protocol.secret
    if honest is protocol or not isinstance(adversary, Guesser):
        return honest, adversary
    m, known = adversary.knows(protocol.n - 1)
    return honest, adversary if known is not None or m < honest.n else Informed(m=honest.n - 1)


def knowledge(protocol: Protocol, adversary: Guesser) -> Knowledge:
    """Return what `adversary` knows when it looks at a release of `protocol`.

    Raises:
        InvalidInputError: as `known_others`.
        UnsupportedProtocolError: the randomizer has no symmetric law.
    """
    law = symmetric_law(protocol)
    m, known = known_others(protocol, adversary)
    counts = None if known is None else tuple(known.counts.tolist())
    return Knowledge(law=law, m=m, known=counts, unknown=protocol.n - 1 - m + protocol.shuffler.dummies)


def known_others(protocol: Protocol, adversary: Guesser) -> tuple[int, Histogram | None]:
    """Return how many others `adversary` knows, and their values if they are given.

    Raises:
        InvalidInputError: not an adversary, more known people than others, or a histogram that
            does not count them over the k values.
    """
    k, others = protocol.randomizer.inputs, protocol.n - 1
    if not isinstance(adversary, Guesser):
        hint = "For example Strong() or Informed(m=10)."
        _checks.reject("adversary", "Uninformed, Strong or Informed", repr(adversary), hint)
    name = adversary.argument
    m, known = adversary.knows(others)
    if known is not None and known.k != k:
        _checks.reject(name, f"a histogram of {k} values", f"<{known.k} values>")
    if known is not None and known.total != m:
        _checks.reject(name, f"a histogram of {m} people", f"<{known.total} people>")
    return m, known
