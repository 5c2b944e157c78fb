"""Blanket messages: every person sends, beside the report, messages that say nothing about the value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.mechanisms.shufflers.dummy_law import LARGEST, DummyLaw

if TYPE_CHECKING:
    pass

MOST_TRIALS = 10_000
"""Most messages that a person may send beside the report."""


@dataclass(frozen=True, kw_only=True)
class BlanketMessages(Shuffler):
    """People hide each other: each throws `trials` coins, and sends one more message for every head.

    Such a message is drawn from the randomizer's blanket, whatever the person's value: for randomized response it is
    uniform over the k values. All messages leave in a uniformly random order. A shuffler that adds nothing is enough.
    With `RandomizedResponse(k=k, epsilon=math.inf)` the report itself is the value: nothing but these messages hides
    it, and whoever sees a person's messages together reads it. `LocalHashing(k=k, g=g, epsilon=math.inf)` does for more
    values than messages of each can be sent for.

    Args:
        p: the probability of heads, in [0, 1]; trials * p is how many messages a person sends besides, on average.
        trials: coins of each person, 1 to 10,000.
        honest: the share of the n people who do so and keep it to themselves, in [0, 1]: privacy is that of an honest
            person, against all others together. How well frequencies are estimated assumes that everybody does so.

    Raises:
        InvalidInputError: a number out of range.

    Source: Luo, Wang, Yi 2022 (almost a single message); Li, Liu, Feng, Huang, Hu, Liu, Ren, Qin 2020 (dummy points,
    p = 1); docs/theory/histograms.md, Theorem 2, Corollary 3 and Theorem 9.

    >>> import hushuffle as hs
    >>> truth = hs.RandomizedResponse(k=1000, epsilon=float("inf"))
    >>> survey = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.04), n=1_000_000)
    >>> print(hs.dp.epsilon(survey, delta=1e-6))
    1.044 nats (certified bracket)
    """

    p: float
    trials: int = 1
    honest: float = 1.0
    people: int | None = field(default=None, init=False, repr=False)
    number: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _checks.probability("p", self.p))
        object.__setattr__(self, "trials", _checks.integer("trials", self.trials, low=1, high=MOST_TRIALS))
        object.__setattr__(self, "honest", _checks.probability("honest", self.honest))

    def fitted(self, *, n: int, values: int) -> Shuffler:
        del values
        if n * self.trials > LARGEST:
            _checks.reject("trials", f"at most {LARGEST:,} coins of all people", self.trials)
        return self._with(people=n)

    @property
    def reveals(self) -> Reveals:
        return Reveals.MULTISET

    @property
    def tossed(self) -> tuple[int, float]:
        return (self.coins, self.p) if self.number is None else (self.number, 1.0)

    @property
    def own_messages(self) -> float:
        return self.trials * self.p

    @property
    def most_own_messages(self) -> int:
        return min(MOST_TRIALS, LARGEST // max(self.people or 1, 1))

    @property
    def most_messages(self) -> int:
        return self.trials

    def with_own_messages(self, number: float) -> Shuffler:
        trials = max(self.trials, math.ceil(number))
        return replace(self, p=min(number / trials, 1.0), trials=trials)

    def secret(self, n: int) -> tuple[int, Shuffler]:
        if self.honest == 1:
            return n, self
        if self.number is not None:
            message = "How many of a known number of messages come from honest people is not known."
            raise UnsupportedProtocolError(message)
        return honest_people(self.honest, n), replace(self, honest=1.0)

    @property
    def coins(self) -> int:
        """How many coins all people throw.

        Raises:
            UnsupportedProtocolError: it belongs to no protocol, which says how many people there are.
        """
        if self.people is None:
            message = "How many messages there are depends on n: read it from `Protocol(...).shuffler`."
            raise UnsupportedProtocolError(message)
        return self.people * self.trials

    @property
    def _whole(self) -> DummyLaw:
        return binomial_dummies(self.coins, self.p)

    @property
    def dummies(self) -> int:
        if self.number is not None:
            return self.number
        law = self._whole
        if law.numbers.size > 1:
            message = (
                f"This needs a fixed number of dummies; here it is drawn {law.words}. Say how many there are "
                "with protocol.with_dummies(...)."
            )
            raise UnsupportedProtocolError(message)
        return int(law.numbers[0])

    @property
    def dummy_law(self) -> DummyLaw | None:
        law = self._whole if self.number is None else None
        return law if law is not None and law.numbers.size > 1 else None

    @property
    def most_dummies(self) -> int | None:
        return self.coins if self.number is None else None

    def with_dummies(self, dummies: int) -> Shuffler:
        low, high = (0, self.coins) if self.number is None else (self.number, self.number)
        return self._with(number=_checks.integer("dummies", dummies, low=low, high=high))

    def divided(self, batches: int) -> Shuffler:
        """Return the same: the people of a batch send its messages. A known number of messages is divided."""
        return self if self.number is None else self._with(number=self.number // batches)

    def describe(self) -> str:
        several = f"up to {self.trials:,} blanket messages besides, each"
        sends = "a blanket message besides" if self.trials == 1 else several
        trusted = "" if self.honest == 1 else f", and {self.honest:.4g} of them keep that to themselves"
        return (
            f"each person sends {sends} with probability {self.p:.6g}{trusted}, and a shuffler releases all messages "
            "in a uniformly random order"
        )


def honest_people(share: float, n: int) -> int:
    """Return how many of n people are honest: the person whom privacy is for, at least; rounded down.

    >>> honest_people(0.9, 1000), honest_people(0.0, 1000)
    (900, 1)
    """
    return max(1, math.floor(Fraction(str(share)) * n))


@lru_cache(maxsize=32)
def binomial_dummies(trials: int, p: float) -> DummyLaw:
    """Return the law of the number of heads, also where the coins always fall alike.

    >>> binomial_dummies(5, 1.0).mean
    5.0
    """
    if p in (0.0, 1.0):
        return DummyLaw.of({round(trials * p): 1.0})
    return DummyLaw.binomial(trials=trials, p=p)
