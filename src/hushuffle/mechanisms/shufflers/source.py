"""`Source`: messages that depend on no person's value, as every analysis reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from hushuffle.mechanisms.shufflers.dummy_law import binomial_dummies

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
    from hushuffle.mechanisms.shufflers.geometric_dummies import GeometricDummies


@dataclass(frozen=True, kw_only=True)
class Trials:
    """A number of messages that is the number of successes of `number` Bernoulli trials of probability `p`."""

    number: int
    p: float

    def over(self, people: int, of: int) -> Trials:
        """Return the trials of `people` of the `of` people who have equal numbers of these trials."""
        return Trials(number=self.number // of * people, p=self.p)

    @property
    def law(self) -> DummyLaw:
        """The binomial distribution, with probabilities in units of 2**-64."""
        return binomial_dummies(self.number, self.p)


Count: TypeAlias = "Trials | DummyLaw | GeometricDummies"
"""The distribution of a number of messages; a fixed number is so many trials of probability 1."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Messages that depend on no person's value.

    Args:
        count: how many messages; from the people, the total over all honest people.
        each: whether the number is drawn for each value (or, where sums are released, for each sum). Otherwise the
            messages are drawn from the privacy blanket of the reports.
        from_people: whether people send these messages and know them; otherwise the shuffler or servers add them.
    """

    count: Count
    each: bool = False
    from_people: bool = False

    @classmethod
    def dummies(cls, number: int) -> tuple[Source, ...]:
        """Return the sources of a shuffler that adds a fixed number of dummies."""
        return (cls(count=Trials(number=number, p=1.0)),) if number else ()

    @property
    def law(self) -> DummyLaw | GeometricDummies:
        """The distribution of the number of messages."""
        return self.count.law if isinstance(self.count, Trials) else self.count

    def divided(self, batches: int) -> Source:
        """Return the messages of one of `batches` batches that together hold no more than these messages.

        Each batch has an equal share (rounded down) of the trials, or of the smallest possible number of messages.
        """
        trials = self.count if isinstance(self.count, Trials) else Trials(number=self.fewest, p=1.0)
        return replace(self, count=replace(trials, number=trials.number // batches))

    @property
    def table(self) -> DummyLaw:
        """`law`, for a number of dummies from the blanket, which is never endless."""
        return cast("DummyLaw", self.law)

    @property
    def trials(self) -> Trials:
        """The Bernoulli trials whose successes are counted; only for sources that are defined by them."""
        assert isinstance(self.count, Trials), "a source of Bernoulli trials"
        return self.count

    @property
    def fewest(self) -> int:
        """The smallest possible number of messages."""
        return self.count.number if isinstance(self.count, Trials) and self.count.p == 1 else self.law.fewest

    @property
    def random(self) -> bool:
        """Whether the number of messages is random."""
        return not (isinstance(self.count, Trials) and self.count.p == 1) and self.law.random

    def describe(self) -> str:
        """Return the messages in a few words."""
        number = "a random number of"
        if isinstance(self.count, Trials):
            number = (
                f"{self.count.number:,}" if self.count.p == 1 else f"Bin({self.count.number:,}, {self.count.p:.6g})"
            )
        what = "messages of each value" if self.each else "dummies"
        return f"{number} {what}{' from the people themselves' if self.from_people else ''}"
