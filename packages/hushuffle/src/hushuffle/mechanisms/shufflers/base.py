"""`Shuffler`: the base class of shufflers, with the uniform shuffle, and the local model without a shuffle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.errors import Problem
from hushuffle.mechanisms.settings import SettingsTable

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
    from hushuffle.mechanisms.shufflers.source import GeometricDummies, LaplaceNoise, Source
    from hushuffle.randomness import Randomness


class Reveals(Enum):
    """What the release reveals about the senders of the reports."""

    SENDERS = "senders"
    """Position i is person i's report."""
    MULTISET = "multiset"
    """The release reveals only how often each report occurs; its order is uniformly random."""
    CAPPED_MULTISET = "capped multiset"
    """The release reveals how often each report occurs; dummies were added only to reports below a cap."""
    NOISY_ORDER = "noisy order"
    """The release has a random order near a public reference order."""
    SUMS = "sums"
    """The release is only the sum of all people's vectors, without reports."""


class Shuffler(_checks.ByName, ABC):
    """A shuffler takes the reports in the senders' order, adds dummies, and releases all messages in another order."""

    table: ClassVar[SettingsTable | None] = None
    """The keys of [shuffler] in a specification; None if a specification cannot name this shuffler."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Shuffler:
        """Return the shuffler that the `settings` of a specification describe."""
        return cls(**settings)

    def problems(self, *, truthful: bool, n: int | None, k: int | None) -> Iterator[Problem]:
        """Yield problems of the settings for n people, k values (None: unknown); `truthful`: reports lack noise."""
        yield from ()

    @property
    def assumed(self) -> Mapping[str, str]:
        """Sentences to add to the assumptions of a report, by the key of the assumption."""
        return {}

    @property
    @abstractmethod
    def reveals(self) -> Reveals:
        """What the release reveals about the senders of the reports."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of messages that are independent of all values and secret, if all people are honest."""
        return ()

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
        return next((source.table for source in self.sources if not source.each and source.random), None)

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
    def sum_noise(self) -> LaplaceNoise | None:
        """The discrete Laplace noise that all servers together add to each sum; None: no such noise."""
        return None

    def noisy(self, sums: Integers, *, rng: Randomness) -> Integers:
        """Return sums of reports, shape (k,), with fresh noise of the servers added."""
        return sums

    def with_dummies(self, dummies: int) -> Shuffler:
        """Return the shuffler with its random number of dummies fixed to `dummies`."""
        _checks.integer("dummies", dummies, low=self.dummies, high=self.dummies)
        return self

    def drawn(self, rng: Randomness) -> Shuffler:
        """Return the shuffler for a single release: its random number of dummies is drawn and then fixed."""
        law = self.dummy_law
        return self if law is None else self.with_dummies(law.draw(rng))

    @property
    def value_law(self) -> DummyLaw | GeometricDummies | None:
        """The distribution of each value's number of dummies if the shuffler draws it for each value, else None."""
        each = (source.law for source in self.sources if source.each)
        return None if self.reveals is Reveals.SUMS else next(each, None)

    @property
    def kept(self) -> float:
        """The probability that the shuffler keeps a report."""
        return 1.0

    def thinned(self, reports: npt.NDArray[Any], *, rng: Randomness) -> npt.NDArray[Any]:
        """Return a random sample of the reports: each report is kept with probability `kept`."""
        return reports

    @property
    def most_dummies(self) -> int | None:
        """The largest accepted number of dummies if clients add them; None: the maximum of their distribution.

        Clients may deviate from the protocol and add any number of dummies up to this limit.
        """
        return None

    @property
    def placed(self) -> Integers | None:
        """The dummies, shape (dummies,), if the shuffler has drawn them; None: they are drawn from the blanket."""
        return None

    @property
    def tossed(self) -> tuple[int, float] | None:
        """Number of all clients' Bernoulli trials, and their probability; each success adds one dummy.

        None: clients add no dummies. If dummies are drawn for each value, the number is that of one value's trials.
        """
        own = (source.trials for source in self.sources if source.from_people)
        return next(((trials.number, trials.p) for trials in own), None)

    @property
    def own_messages(self) -> float:
        """Mean number of messages that a person sends in addition to the report."""
        return 0.0

    @property
    def added_dummies(self) -> float:
        """The mean number of dummies that the shuffler itself adds, without the messages of people."""
        return 0.0 if self.own_messages else self.expected_dummies

    @property
    def most_own_messages(self) -> int:
        """Upper limit of `own_messages`."""
        return 0

    @property
    def best_own_messages(self) -> float:
        """The largest mean number of a person's additional messages up to which more messages improve privacy."""
        return self.most_own_messages

    @property
    def most_messages(self) -> int:
        """Maximum number of messages that the shuffler accepts from a person in addition to the report."""
        return 0

    def with_own_messages(self, number: float) -> Shuffler:
        """Return this shuffler changed so that each person sends `number` additional messages on average.

        Raises:
            UnsupportedProtocolError: people send no additional messages.
        """
        _checks.unsupported(
            f"{type(self).__name__} supports one message per person. Use BlanketMessages for additional messages."
        )

    def secret(self, n: int) -> tuple[int, Shuffler]:
        """Return the number of honest people among n, and the shuffler with only the honest people's messages."""
        return n, self

    def check(self, *, n: int, values: int) -> None:
        """Raise an error if the number of people or of values does not fit this shuffler."""

    def fitted(self, *, n: int, values: int) -> Shuffler:
        """Return the shuffler for n people and `values` values, or raise an error if they do not fit."""
        self.check(n=n, values=values)
        return self

    def complete(self, reports: Integers, *, draw: Callable[[int], Integers]) -> Integers:
        """Return `reports` followed by the dummies; `draw(count)` returns `count` fresh dummies."""
        return np.concatenate([reports, draw(self.dummies)]) if self.dummies else reports

    def release(self, messages: Integers, *, rng: Randomness) -> Integers:
        """Return `messages` in released order; `messages` has the n reports followed by the dummies."""
        return messages[rng.permutation(messages.shape[0])]

    def _with(self, **known: object) -> Self:
        shuffler = object.__new__(type(self))
        for name, value in {**vars(self), **known}.items():
            object.__setattr__(shuffler, name, value)
        return shuffler

    @abstractmethod
    def describe(self) -> str:
        """Return a short description of the shuffler in plain words."""


@dataclass(frozen=True, kw_only=True)
class UniformShuffle(Shuffler):
    """A shuffler that releases the reports in a uniformly random order: only their counts carry information."""

    reveals = Reveals.MULTISET
    table = SettingsTable(kind="uniform", about="Reports leave in a uniformly random order.", settings={})

    def describe(self) -> str:
        return "a shuffler releases the reports in a uniformly random order"


@dataclass(frozen=True, kw_only=True)
class NoShuffle(Shuffler):
    """No shuffle: the reports are released in the order of their senders, as in the local model."""

    reveals = Reveals.SENDERS
    table = SettingsTable(kind="none", about="Reports leave in the order of their senders.", settings={})

    def release(self, messages: Integers, *, rng: Randomness) -> Integers:
        return messages.copy()

    def describe(self) -> str:
        return "the reports stay linked to their senders (no shuffler)"


MOST = 1 << 31
"""Largest average number of dummies in a release."""


@dataclass(frozen=True, kw_only=True)
class PerValue(Shuffler):
    """A shuffler that adds dummies to the reports; it draws their number independently for each of the k values.

    `people` and `values` are the numbers n and k of the protocol. `counts`: the drawn numbers of dummies, shape (k,).
    """

    people: int | None = field(default=None, init=False, repr=False)
    values: int | None = field(default=None, init=False, repr=False)
    counts: Integers | None = field(default=None, init=False, repr=False, compare=False)
    reveals = Reveals.MULTISET

    def problems(self, *, truthful: bool, n: int | None, k: int | None) -> Iterator[Problem]:
        if not truthful and self.table is not None:
            hint = 'With noise, use kind = "blanket-messages".'
            rule = 'needs true reports: [randomizer] kind = "randomized-response", epsilon = "inf"'
            yield Problem(key="shuffler.kind", rule=rule, value=f'"{self.table.kind}"', hint=hint)

    def fitted(self, *, n: int, values: int) -> Shuffler:
        self.check(n=n, values=values)
        shuffler = self._with(people=n, values=values)
        if shuffler.expected_dummies > MOST:
            _checks.reject("p", f"at most {MOST:,} dummies on average", f"<{shuffler.expected_dummies:,.0f}>")
        return shuffler

    @property
    def dummies(self) -> int:
        if self.counts is None:
            _checks.unsupported(
                "This calculation needs uniformly random dummies, but this shuffler draws a separate number of dummies "
                "for each value."
            )
        return int(self.counts.sum())

    @property
    def expected_dummies(self) -> float:
        return self.known(self.values) * self.sources[0].law.mean

    def drawn(self, rng: Randomness) -> Shuffler:
        return self._with(counts=self.sources[0].law.draws(self.known(self.values), rng))

    @property
    def placed(self) -> Integers | None:
        return None if self.counts is None else np.repeat(np.arange(self.counts.size), self.counts)

    def complete(self, reports: Integers, *, draw: Callable[[int], Integers]) -> Integers:
        placed = self.placed
        assert placed is not None, "dummies are drawn before"
        return np.concatenate([reports, placed])

    def known(self, number: int | None) -> int:
        """Return `number` (n or k of the protocol); raise an error if the shuffler belongs to no protocol."""
        if number is None:
            _checks.unsupported(
                "The number of dummies depends on n and k. Use the `shuffler` of a `Protocol`, which knows both."
            )
        return number
