"""`Shuffler`: the base class of shufflers, which release reports and dummies in a random order."""

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
    """What the release reveals about the senders of the reports."""

    SENDERS = "senders"
    """Position i is person i's report."""
    MULTISET = "multiset"
    """Only how often each report occurs; the order is uniformly random."""
    CAPPED_MULTISET = "capped multiset"
    """How often each report occurs; dummies were added only to reports below a cap."""
    NOISY_ORDER = "noisy order"
    """A random order that stays close to a public reference order."""
    SUMS = "sums"
    """Only the sum of all people's vectors; no report is released."""


class Shuffler(_checks.ByName, ABC):
    """Takes the reports in the senders' order, adds dummies, and releases all messages in another order."""

    @property
    @abstractmethod
    def reveals(self) -> Reveals:
        """What the release reveals about the senders of the reports."""

    @property
    def dummies(self) -> int:
        """Number of dummy reports that the shuffler adds, drawn from the randomizer's blanket.

        Raises:
            UnsupportedProtocolError: the number is random (see `dummy_law`).
        """
        return 0

    @property
    def dummy_law(self) -> DummyLaw | None:
        """The distribution of the number of dummies if it is random, else None."""
        return None

    @property
    def expected_dummies(self) -> float:
        """The mean number of dummies."""
        law = self.dummy_law
        return self.dummies if law is None else law.mean

    @property
    def all_coins(self) -> int:
        """Number of fair random bits that all servers add to each sum, if only sums are released."""
        return 0

    @property
    def secret_coins(self) -> int:
        """Number of the added random bits (`all_coins`) that no adversary knows."""
        return 0

    def noisy(self, sums: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return sums of reports, shape (k,), with fresh random bits added."""
        del rng
        return sums

    def with_dummies(self, dummies: int) -> Shuffler:
        """Return the shuffler with its random number of dummies replaced by `dummies`."""
        _checks.integer("dummies", dummies, low=self.dummies, high=self.dummies)
        return self

    def drawn(self, rng: Randomness) -> Shuffler:
        """Return the shuffler of a single release, with its random number of dummies drawn."""
        law = self.dummy_law
        return self if law is None else self.with_dummies(law.draw(rng))

    @property
    def value_law(self) -> DummyLaw | GeometricDummies | None:
        """The distribution of the number of dummies of a value if it is drawn per value, else None."""
        return None

    @property
    def kept(self) -> float:
        """The probability that the shuffler keeps a report."""
        return 1.0

    def thinned(self, reports: npt.NDArray[Any], *, rng: Randomness) -> npt.NDArray[Any]:
        """Return the sample of reports that the shuffler keeps, shape (n,) or packed."""
        del rng
        return reports

    @property
    def most_dummies(self) -> int | None:
        """The largest accepted number of dummies if clients add them; None: the maximum of their distribution.

        Clients may deviate from the protocol and add any number of dummies up to this limit.
        """
        return None

    @property
    def placed(self) -> npt.NDArray[np.int64] | None:
        """The dummies, shape (dummies,), if the shuffler has drawn them; None: dummies are drawn from the blanket."""
        return None

    @property
    def tossed(self) -> tuple[int, float] | None:
        """Number of the clients' Bernoulli trials for dummies (per value, if drawn by value), and their probability.

        None: clients add no dummies. Each success adds one dummy, so many clients protect even truthful reports.
        """
        return None

    @property
    def own_messages(self) -> float:
        """Mean number of messages that a person sends in addition to the report."""
        return 0.0

    @property
    def most_own_messages(self) -> int:
        """Upper limit of `own_messages`."""
        return 0

    @property
    def best_own_messages(self) -> float:
        """The largest `own_messages` up to which additional messages improve privacy."""
        return self.most_own_messages

    @property
    def most_messages(self) -> int:
        """Maximum number of messages that a person may send in addition to the report; more are refused."""
        return 0

    def with_own_messages(self, number: float) -> Shuffler:
        """Return the shuffler with a mean of `number` additional messages of each person.

        Raises:
            UnsupportedProtocolError: people send no additional messages.
        """
        del number
        message = f"With {type(self).__name__} people send one report each; BlanketMessages makes them send more."
        raise UnsupportedProtocolError(message)

    def divided(self, batches: int) -> Shuffler:
        """Return the shuffler for one of `batches` batches, whose releases together form the release of all reports.

        Each batch has an equal share (rounded down) of the dummies or random bits that the shuffler adds.

        Raises:
            UnsupportedProtocolError: its randomness cannot be divided.
        """
        del batches
        message = f"There is no bound for several reports of one person where {self.describe()}."
        raise UnsupportedProtocolError(message)

    def secret(self, n: int) -> tuple[int, Shuffler]:
        """Return the number of honest people among n, and the shuffler with only the honest people's messages."""
        return n, self

    def check(self, *, n: int, values: int) -> None:
        """Refuse numbers of people and values that do not fit this shuffler."""

    def fitted(self, *, n: int, values: int) -> Shuffler:
        """Return the shuffler for n people and `values` values, or refuse them."""
        self.check(n=n, values=values)
        return self

    def complete(
        self, reports: npt.NDArray[np.int64], *, draw: Callable[[int], npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64]:
        """Return `reports` followed by the dummies; `draw(count)` returns `count` fresh dummies."""
        return np.concatenate([reports, draw(self.dummies)]) if self.dummies else reports

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return `messages`, the n reports followed by the dummies, in released order, same shape."""
        return messages[rng.permutation(messages.shape[0])]

    def _with(self, **known: object) -> Self:
        """Return a copy with attributes set that are not constructor arguments."""
        shuffler = object.__new__(type(self))
        for name, value in {**vars(self), **known}.items():
            object.__setattr__(shuffler, name, value)
        return shuffler

    @abstractmethod
    def describe(self) -> str:
        """Return a short description of the shuffler in plain words."""
