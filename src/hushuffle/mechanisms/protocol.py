"""`Protocol`: the description of a collection that every analysis and every engine uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Reveals, Shuffler
from hushuffle.model import Histogram, Transcript
from hushuffle.randomness import secure

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class Protocol(_checks.ByName):
    """A collection from n people: each person's device runs the same randomizer, and one shuffler releases the reports.

    Args:
        randomizer: the local randomizer that each device applies to its value.
        shuffler: the shuffler that separates reports from their senders.
        n: number of people, >= 1.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=3)
    >>> len(survey.collect([0, 4, 2]).reports)
    3
    """

    randomizer: Mechanism
    shuffler: Shuffler
    n: int
    shared: ClassVar[None] = None
    """Always None here: only a `SplitAndMix` protocol, which has no single report per person, sets `shared`."""

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, Mechanism):
            hint = "For example RandomizedResponse(k=2, epsilon=1.0)."
            _checks.reject("randomizer", "a Mechanism", repr(self.randomizer), hint)
        if not isinstance(self.shuffler, Shuffler):
            _checks.reject("shuffler", "a Shuffler", repr(self.shuffler), "For example UniformShuffle().")
        object.__setattr__(self, "n", _checks.integer("n", self.n, low=1))
        fitted = self.shuffler.fitted(n=self.n, values=self.randomizer.inputs)
        object.__setattr__(self, "shuffler", fitted)
        if self.shuffler.reveals is Reveals.SUMS and not self.randomizer.is_vector:
            hint = "One-hot encodings and reports of a single number can be summed; hashes and sets cannot."
            _checks.reject("shuffler", f"another for reports of {type(self.randomizer).__name__}", self.shuffler, hint)

        if self.shuffler.value_law is not None and not self.truthful:
            hint = "Use RandomizedResponse(k=k, epsilon=math.inf), or BlanketMessages, which also accepts noise."
            _checks.reject("shuffler", "another where reports are not the values themselves", self.shuffler, hint)
        if self.shuffler.all_coins and self.randomizer.law().one_hot is None:
            hint = "Random bits of servers (`coins`) need a one-hot encoding: UnaryEncoding."
            rule = f"one with `coins` = 0 for {type(self.randomizer).__name__}"
            _checks.reject("shuffler", rule, self.shuffler, hint)

    @property
    def truthful(self) -> bool:
        """Whether each report is the person's value itself, without noise."""
        law = self.randomizer.law().symmetric
        return law is not None and law.lie == 0

    @property
    def hashed(self) -> bool:
        """Whether each report is a fresh public hash and the value's bucket under it, without noise."""
        bucket = self.randomizer.law().bucket
        return bucket is not None and bucket.lie == 0

    @property
    def reveals(self) -> Reveals:
        """What the release reveals about the reports; sums of one-hot vectors reveal the counts of the reports."""
        counts = self.shuffler.reveals is Reveals.SUMS and self.randomizer.law().one_hot is None
        return Reveals.MULTISET if counts else self.shuffler.reveals

    @property
    def secret(self) -> Protocol:
        """The residual protocol against an adversary who colludes with all people except the honest ones."""
        people, shuffler = self.shuffler.secret(self.n)
        return self if shuffler == self.shuffler and people == self.n else replace(self, n=people, shuffler=shuffler)

    @property
    def parts(self) -> tuple[tuple[int, Mechanism], ...]:
        """Pairs (number of people, randomizer): here a single pair, since all n people use the same randomizer."""
        return ((self.n, self.randomizer),)

    @property
    def targets(self) -> tuple[int, ...]:
        """Indices of the `parts` for whose people guarantees are computed."""
        return (0,)

    def collect(self, values: npt.ArrayLike, *, rng: Randomness | None = None) -> Transcript:
        """Run the collection on `values`, shape (n,), integers 0..k-1; `rng` defaults to `secure()`.

        Raises:
            InvalidInputError: not n values, or a value outside the domain.
            UnsupportedProtocolError: only sums are released, no reports.
        """
        source = secure() if rng is None else rng
        own = self.shuffler.thinned(self._reports(values, source), rng=source)
        shuffler = self.shuffler.drawn(source)
        messages = shuffler.complete(own, draw=lambda count: self.randomizer.dummies(count, rng=source))
        released = shuffler.release(messages, rng=source)
        return Transcript(reports=released, people=own.shape[0], dummies=shuffler.dummies)

    def sums(self, values: npt.ArrayLike, *, rng: Randomness | None = None) -> Histogram:
        """Return the sums of the reports on `values`, shape (n,): counts by value, shape (k,).

        `estimate` accepts these sums. Behind a shuffler, the analyst can count them from the released reports.

        Raises:
            InvalidInputError: not n values, or a value outside the domain.
            UnsupportedProtocolError: the reports cannot be counted.
        """
        source = secure() if rng is None else rng
        sums = self.randomizer.counts(self._reports(values, source))
        return Histogram(counts=self.shuffler.noisy(sums.counts, rng=source))

    def _reports(self, values: npt.ArrayLike, rng: Randomness) -> npt.NDArray[np.int64]:
        truth = _checks.codes("values", values, k=self.randomizer.inputs)
        if truth.size != self.n:
            _checks.reject("values", f"n = {self.n} values", f"<{truth.size} values>")
        return self.randomizer.randomize(truth, rng=rng)

    def with_dummies(self, dummies: int) -> Protocol:
        """Return the protocol with a random number of dummies replaced by `dummies`, which an observer can count.

        Raises:
            InvalidInputError: a number that the shuffler never adds.
        """
        return replace(self, shuffler=self.shuffler.with_dummies(dummies))

    def describe(self, *, reports_per_person: int = 1) -> str:
        """Return a one-sentence description; if each person may give several reports, n is the number of reports."""
        several = f"{self.n:,} reports, up to {reports_per_person:,} of each person"
        who = f"{self.n:,} people" if reports_per_person == 1 else several
        return f"{who}: {self.randomizer.describe()}; {self.shuffler.describe()}."
