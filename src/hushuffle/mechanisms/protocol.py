"""`Protocol`: one description of a collection, read by every analysis and every engine."""

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
    """n people, one randomizer on each one's device, one shuffler.

    Args:
        randomizer: what each device does with its value.
        shuffler: what hides who sent what.
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
    """A `SplitAndMix` is not made of one report of each person."""

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
            hint = "One-hot encodings can be added up, and reports of a single number; hashes and sets cannot."
            _checks.reject("shuffler", f"another for reports of {type(self.randomizer).__name__}", self.shuffler, hint)

        if self.shuffler.value_law is not None and not self.truthful:
            hint = "RandomizedResponse(k=k, epsilon=math.inf) reports truthfully; BlanketMessages goes with noise too."
            _checks.reject("shuffler", "another where reports are not the values themselves", self.shuffler, hint)
        if self.shuffler.all_coins and self.randomizer.law().one_hot is None:
            hint = "Coins of servers are understood for one-hot encodings: UnaryEncoding."
            _checks.reject("shuffler", f"one without coins for {type(self.randomizer).__name__}", self.shuffler, hint)

    @property
    def truthful(self) -> bool:
        """Whether reports are the values themselves."""
        law = self.randomizer.law().symmetric
        return law is not None and law.lie == 0

    @property
    def hashed(self) -> bool:
        """Whether reports are the values' buckets, as they are, by public hashes of their own."""
        bucket = self.randomizer.law().bucket
        return bucket is not None and bucket.lie == 0

    @property
    def reveals(self) -> Reveals:
        """What the release says of the reports: sums of vectors with a single 1 are how often each report occurs."""
        counts = self.shuffler.reveals is Reveals.SUMS and self.randomizer.law().one_hot is None
        return Reveals.MULTISET if counts else self.shuffler.reveals

    @property
    def secret(self) -> Protocol:
        """What is left of it to somebody who works together with everybody but the honest people."""
        people, shuffler = self.shuffler.secret(self.n)
        return self if shuffler == self.shuffler and people == self.n else replace(self, n=people, shuffler=shuffler)

    @property
    def parts(self) -> tuple[tuple[int, Mechanism], ...]:
        """How many people have which randomizer: all of them this one."""
        return ((self.n, self.randomizer),)

    @property
    def targets(self) -> tuple[int, ...]:
        """Which of `parts` figures are for."""
        return (0,)

    def collect(self, values: npt.ArrayLike, *, rng: Randomness | None = None) -> Transcript:
        """Run the collection on `values`, shape (n,), integers 0..k-1; `rng` defaults to `secure()`.

        Raises:
            InvalidInputError: not n values, or a value outside the domain.
            UnsupportedProtocolError: no report leaves, only sums.
        """
        source = secure() if rng is None else rng
        own = self.shuffler.thinned(self._reports(values, source), rng=source)
        shuffler = self.shuffler.drawn(source)
        messages = shuffler.complete(own, draw=lambda count: self.randomizer.dummies(count, rng=source))
        released = shuffler.release(messages, rng=source)
        return Transcript(reports=released, people=own.shape[0], dummies=shuffler.dummies)

    def sums(self, values: npt.ArrayLike, *, rng: Randomness | None = None) -> Histogram:
        """Return the sums of the reports on `values`, shape (n,): counts by value, shape (k,).

        Where they are all that leaves, `estimate` reads them; behind a shuffler they can be counted in the release.

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
        """Return what it is once so many dummies have been drawn: everybody who sees the release can count them.

        Raises:
            InvalidInputError: a number that the shuffler never adds.
        """
        return replace(self, shuffler=self.shuffler.with_dummies(dummies))

    def describe(self, *, reports_per_person: int = 1) -> str:
        """Return the deployment in one sentence; n are reports where each person may give several."""
        several = f"{self.n:,} reports, up to {reports_per_person:,} of each person"
        who = f"{self.n:,} people" if reports_per_person == 1 else several
        return f"{who}: {self.randomizer.describe()}; {self.shuffler.describe()}."
