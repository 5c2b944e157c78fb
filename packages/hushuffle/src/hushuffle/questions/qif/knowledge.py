"""The adversary's knowledge about other people's values, as numbers of known and unknown reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.mechanisms import randomizers
from hushuffle.mechanisms.adversaries import Guesser, Informed
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Histogram

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

QUESTION = "The vulnerability to a guess"


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """`known` counts m people's values, shape (k,) (None: worst case); `unknown` reports are uniform over k values."""

    law: Symmetric
    m: int
    known: tuple[int, ...] | None
    unknown: int

    @property
    def others(self) -> int:
        return self.m + self.unknown


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Bounds on G, where V = nu + theta G; `known` are the counts that attain the lower bound, if requested."""

    lower: float
    upper: float
    known: tuple[int, ...] | None = None


def symmetric_law(protocol: Protocol) -> Symmetric:
    """Return k, mu and nu; a randomizer that does not treat all values alike is an `UnsupportedProtocolError`."""
    return randomizers.symmetric_law(protocol.randomizer, for_what=QUESTION)


def against(protocol: Protocol, adversary: Guesser) -> tuple[Protocol, Guesser]:
    """Return the protocol among honest people; the m known people are honest, or all honest people (worst case)."""
    honest = protocol.secret
    if honest is protocol or not isinstance(adversary, Guesser):
        return honest, adversary
    m, composition = adversary.knows(protocol.n - 1)
    return honest, adversary if composition is not None or m < honest.n else Informed(m=honest.n - 1)


def knowledge(protocol: Protocol, adversary: Guesser) -> Knowledge:
    law = symmetric_law(protocol)
    m, composition = known_others(protocol, adversary)
    counts = None if composition is None else tuple(composition.counts.tolist())
    return Knowledge(law=law, m=m, known=counts, unknown=protocol.n - 1 - m + protocol.shuffler.dummies)


def known_others(protocol: Protocol, adversary: Guesser) -> tuple[int, Histogram | None]:
    """Return the number of other people whose values `adversary` knows, and the counts of these values if given."""
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
