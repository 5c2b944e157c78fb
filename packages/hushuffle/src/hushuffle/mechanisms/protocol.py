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
    """Always None for a `Protocol`. Only `SplitAndMix`, in which a person sends no single report, sets `shared`."""

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, Mechanism):
            hint = "For example RandomizedResponse(k=2, epsilon=1.0)."
            _checks.reject("randomizer", "a Mechanism", repr(self.randomizer), hint)
        if not isinstance(self.shuffler, Shuffler):
            _checks.reject("shuffler", "a Shuffler", repr(self.shuffler), "For example UniformShuffle().")
        object.__setattr__(self, "n", _checks.integer("n", self.n, low=1))
        object.__setattr__(self, "shuffler", self.shuffler.fitted(n=self.n, values=self.randomizer.inputs))
        if self.shuffler.reveals is Reveals.SUMS and not self.randomizer.is_vector:
            hint = "Secure aggregation can add one-hot encodings and single numbers, but not hashes and sets."
            _checks.reject("shuffler", f"one that supports {type(self.randomizer).__name__}", self.shuffler, hint)

        if self.shuffler.value_law is not None and not self.truthful:
            hint = "Use RandomizedResponse(k=k, epsilon=math.inf), or BlanketMessages, which also accepts noise."
            _checks.reject("shuffler", "a shuffler that supports randomized reports", self.shuffler, hint)
        noisy = self.shuffler.all_coins or self.shuffler.sum_noise is not None
        if noisy and self.randomizer.law().one_hot is None:
            hint = "Noise of servers (`coins`, `laplace`) needs a one-hot encoding: UnaryEncoding."
            rule = f"a shuffler with `coins` = 0 and `laplace` = 0 for {type(self.randomizer).__name__}"
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
        """The protocol of the honest people alone, against an adversary that colludes with all other people."""
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
            InvalidInputError: `values` does not have n values, or a value is outside the domain.
            UnsupportedProtocolError: only sums are released, no reports.
        """
        source = secure() if rng is None else rng
        own = self.shuffler.thinned(self._reports(values, source), rng=source)
        shuffler = self.shuffler.drawn(source)
        messages = shuffler.complete(own, draw=lambda count: self.randomizer.dummies(count, rng=source))
        released = shuffler.release(messages, rng=source)
        return Transcript(reports=released, people=own.shape[0], dummies=shuffler.dummies)

    def sums(self, values: npt.ArrayLike, *, rng: Randomness | None = None) -> Histogram:
        """Run the collection on `values`, shape (n,); return how many reports support each value, shape (k,).

        `estimate` accepts these counts. Behind a shuffler, the analyst can compute them from the released reports.

        Raises:
            InvalidInputError: `values` does not have n values, or a value is outside the domain.
            UnsupportedProtocolError: the reports cannot be counted.
        """
        source = secure() if rng is None else rng
        sums = self.randomizer.counts(self._reports(values, source))
        noisy = self.shuffler.sum_noise is not None
        return Histogram(counts=self.shuffler.noisy(sums.counts, rng=source), noisy=noisy)

    def _reports(self, values: npt.ArrayLike, rng: Randomness) -> npt.NDArray[np.int64]:
        truth = _checks.codes("values", values, k=self.randomizer.inputs)
        if truth.size != self.n:
            _checks.reject("values", f"n = {self.n} values", f"<{truth.size} values>")
        return self.randomizer.randomize(truth, rng=rng)

    def with_dummies(self, dummies: int) -> Protocol:
        """Return the protocol with the random number of dummies fixed to `dummies`.

        Raises:
            InvalidInputError: the shuffler never adds this number of dummies.
        """
        return replace(self, shuffler=self.shuffler.with_dummies(dummies))

    def describe(self, *, reports_per_person: int = 1) -> str:
        """Return a one-sentence description; if each person may give several reports, n is the number of reports."""
        several = f"{self.n:,} reports, up to {reports_per_person:,} of each person"
        who = f"{self.n:,} people" if reports_per_person == 1 else several
        return f"{who}: {self.randomizer.describe()}; {self.shuffler.describe()}."
