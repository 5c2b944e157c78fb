"""What a guesser knows about the others, reduced to the one shape that all formulas read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.mechanisms.adversaries import Informed, Strong, Uninformed
from hushuffle.mechanisms.randomizers import HasSymmetricLaw, Symmetric, require
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
    return require(protocol.randomizer, HasSymmetricLaw, for_what=QUESTION).symmetric_law()


def knowledge(protocol: Protocol, adversary: Guesser) -> Knowledge:
    """Return what `adversary` knows when it looks at a release of `protocol`.

    Raises:
        InvalidInputError: not an adversary, more known people than others, or a histogram that
            does not count them over the k values.
        UnsupportedProtocolError: the randomizer has no symmetric law.
    """
    law, others = symmetric_law(protocol), protocol.n - 1
    known: Histogram | None
    match adversary:
        case Uninformed():
            name, m, known = "m", 0, None
        case Strong():
            name, m, known = "others", others, adversary.others
        case Informed():
            name, m, known = "known", _checks.integer("m", adversary.m, low=0, high=others), adversary.known
        case _:
            hint = "For example Strong() or Informed(m=10)."
            _checks.reject("adversary", "Uninformed, Strong or Informed", repr(adversary), hint)
    if known is not None and known.k != law.k:
        _checks.reject(name, f"a histogram of {law.k} values", f"<{known.k} values>")
    if known is not None and known.total != m:
        _checks.reject(name, f"a histogram of {m} people", f"<{known.total} people>")
    counts = None if known is None else tuple(known.counts.tolist())
    return Knowledge(law=law, m=m, known=counts, unknown=others - m + protocol.shuffler.dummies)
