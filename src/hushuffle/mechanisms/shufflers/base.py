"""What a shuffler is: a law over orderings of the messages, dummies included."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
    from hushuffle.mechanisms.shufflers.geometric_dummies import GeometricDummies
    from hushuffle.randomness import Randomness


class Reveals(Enum):
    """What the released order says about who sent what."""

    SENDERS = "senders"
    """Position i is person i's report."""
    MULTISET = "multiset"
    """Nothing: only how often each report occurs."""
    CAPPED_MULTISET = "capped multiset"
    """How often each report occurs; dummies were added only to reports that did not occur too often."""
    NOISY_ORDER = "noisy order"
    """A random order that stays close to a public reference order."""
    SUMS = "sums"
    """No report: only the sum of everybody's vectors."""


class Shuffler(_checks.ByName, ABC):
    """Takes the reports in the senders' order and releases them, with dummies, in another."""

    @property
    @abstractmethod
    def reveals(self) -> Reveals:
        """What the released order says."""

    @property
    def dummies(self) -> int:
        """Number of dummy reports it adds, drawn from the randomizer's blanket.

        Raises:
            UnsupportedProtocolError: it is random: see `dummy_law`.
        """
        return 0

    @property
    def dummy_law(self) -> DummyLaw | None:
        """The law of the number of dummies where it is random, else None."""
        return None

    @property
    def expected_dummies(self) -> float:
        """The mean number of dummies."""
        law = self.dummy_law
        return self.dummies if law is None else law.mean

    @property
    def all_coins(self) -> int:
        """How many fair coins' heads are added to each sum, where only sums leave."""
        return 0

    @property
    def secret_coins(self) -> int:
        """How many of these nobody else knows."""
        return 0

    def noisy(self, sums: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return sums of reports, shape (k,), with the heads of these coins, thrown anew."""
        del rng
        return sums

    def with_dummies(self, dummies: int) -> Shuffler:
        """Return what it is once so many dummies have been drawn."""
        _checks.integer("dummies", dummies, low=self.dummies, high=self.dummies)
        return self

    def drawn(self, rng: Randomness) -> Shuffler:
        """Return what it is for one release, with a number of dummies that is drawn if it is random."""
        law = self.dummy_law
        return self if law is None else self.with_dummies(law.draw(rng))

    @property
    def value_law(self) -> DummyLaw | GeometricDummies | None:
        """The law of the number of dummies of each value where each value gets its own, else None."""
        return None

    @property
    def kept(self) -> float:
        """The probability that a report is kept."""
        return 1.0

    def thinned(self, reports: npt.NDArray[Any], *, rng: Randomness) -> npt.NDArray[Any]:
        """Return the reports that are kept, of shape (n,) or packed."""
        del rng
        return reports

    @property
    def most_dummies(self) -> int | None:
        """How many dummies a release may have, from 0 on, whichever coins people throw; None: as its laws say.

        Coins of people are theirs: some may throw none, others may send whatever is not refused.
        """
        return None

    @property
    def placed(self) -> npt.NDArray[np.int64] | None:
        """The dummies themselves, shape (dummies,), where they have been drawn; else they come from the blanket."""
        return None

    @property
    def tossed(self) -> tuple[int, float] | None:
        """How many coins people throw for dummies, or for those of one value, and the probability of heads.

        None: they throw none. Each head is one dummy, so that a crowd protects even where reports are true.
        """
        return None

    @property
    def own_messages(self) -> float:
        """How many messages a person sends beside the report, on average."""
        return 0.0

    @property
    def most_own_messages(self) -> int:
        """How large `own_messages` may be made."""
        return 0

    @property
    def best_own_messages(self) -> float:
        """The most `own_messages` up to which more of them hide more."""
        return self.most_own_messages

    @property
    def most_messages(self) -> int:
        """How many messages a person may send beside the report: more than that are refused."""
        return 0

    def with_own_messages(self, number: float) -> Shuffler:
        """Return the same with so many messages of each person beside the report, on average.

        Raises:
            UnsupportedProtocolError: people send none.
        """
        del number
        message = f"With {type(self).__name__} people send one report each; BlanketMessages makes them send more."
        raise UnsupportedProtocolError(message)

    def divided(self, batches: int) -> Shuffler:
        """Return what may shuffle one of so many batches, so that all batches' releases together give the whole one.

        Each batch has its share of the shuffler's own randomness, rounded down; a shuffler that adds any must say how.

        Raises:
            UnsupportedProtocolError: its randomness cannot be divided.
        """
        del batches
        message = f"No figures are known for several reports of one person where {self.describe()}."
        raise UnsupportedProtocolError(message)

    def secret(self, n: int) -> tuple[int, Shuffler]:
        """Return how many of n people are honest, and what it is among them: what hides anything from all others."""
        return n, self

    def check(self, *, n: int, values: int) -> None:
        """Refuse a protocol of n people and so many values that this shuffler does not fit."""

    def fitted(self, *, n: int, values: int) -> Shuffler:
        """Return what it is for n people and so many values, or refuse them."""
        self.check(n=n, values=values)
        return self

    def complete(
        self, reports: npt.NDArray[np.int64], *, draw: Callable[[int], npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64]:
        """Return `reports` followed by the dummies; `draw(count)` gives so many fresh ones."""
        return np.concatenate([reports, draw(self.dummies)]) if self.dummies else reports

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return `messages`, the n reports followed by the dummies, in released order, same shape; uniform here."""
        return messages[rng.permutation(messages.shape[0])]

    def _with(self, **known: object) -> Self:
        """Return the same, knowing more: values of attributes that are no choice of who made it."""
        made = object.__new__(type(self))
        for name, value in {**vars(self), **known}.items():
            object.__setattr__(made, name, value)
        return made

    @abstractmethod
    def describe(self) -> str:
        """Return what it does in a few plain words."""
