"""The adversary's knowledge about other people's values, in the form that all formulas use."""

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
    """The adversary knows the values of m other people; `unknown` further reports are uniform over the k values.

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
    """Bounds on the rate G at which a truthful target is guessed, V = nu + theta G (equal bounds: exact).

    `known`: counts by value of known people's values that attain the lower bound, if requested.
    """

    lower: float
    upper: float
    known: tuple[int, ...] | None = None


def symmetric_law(protocol: Protocol) -> Symmetric:
    """Return mu, nu and k of the protocol's randomizer.

    Raises:
        UnsupportedProtocolError: the randomizer does not treat all values alike.
    """
    return randomizers.symmetric_law(protocol.randomizer, for_what=QUESTION)


def against(protocol: Protocol, adversary: Guesser) -> tuple[Protocol, Guesser]:
    """Return the residual protocol against an adversary who colludes with all dishonest people, and its knowledge.

    In the worst case, an adversary who knows m of the others knows m honest people, or all of them.

    Raises:
        InvalidInputError: more known people than others.
    """
    honest = protocol.secret
    if honest is protocol or not isinstance(adversary, Guesser):
        return honest, adversary
    m, composition = adversary.knows(protocol.n - 1)
    return honest, adversary if composition is not None or m < honest.n else Informed(m=honest.n - 1)


def knowledge(protocol: Protocol, adversary: Guesser) -> Knowledge:
    """Return the `Knowledge` of `adversary` about a release of `protocol`.

    Raises:
        InvalidInputError: as `known_others`.
        UnsupportedProtocolError: the randomizer has no symmetric law.
    """
    law = symmetric_law(protocol)
    m, composition = known_others(protocol, adversary)
    counts = None if composition is None else tuple(composition.counts.tolist())
    return Knowledge(law=law, m=m, known=counts, unknown=protocol.n - 1 - m + protocol.shuffler.dummies)


def known_others(protocol: Protocol, adversary: Guesser) -> tuple[int, Histogram | None]:
    """Return the number of other people whose values `adversary` knows, and the counts of these values if given.

    Raises:
        InvalidInputError: not an adversary, more known people than others, or a histogram that
            does not count them over the k values.
    """
    k, others = protocol.randomizer.inputs, protocol.n - 1
    if not isinstance(adversary, Guesser):
        hint = "For example Strong() or Informed(m=10)."
        _checks.reject("adversary", "Uninformed, Strong or Informed", repr(adversary), hint)
    name = adversary.argument
    m, composition = adversary.knows(others)
    if composition is not None and composition.k != k:
        _checks.reject(name, f"a histogram of {k} values", f"<{composition.k} values>")
    if composition is not None and composition.total != m:
        _checks.reject(name, f"a histogram of {m} people", f"<{composition.total} people>")
    return m, composition
