"""Sums by shares: everybody's number, with a share of the noise, is split up; all messages are mixed and added.

Source: Ishai, Kushilevitz, Ostrovsky, Sahai 2006; Balle, Bell, Gascon, Nissim 2020; docs/theory/split-and-mix.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.polya_law import SCALE, PolyaLaw, ratio_of
from hushuffle.model import NumberGrid
from hushuffle.model.number_grid import PARTS
from hushuffle.numerics.exact import log_upwards
from hushuffle.randomness import secure

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness

Integers = npt.NDArray[np.int64]

MOST_PEOPLE: Final = 10**9
MOST_COORDINATES: Final = 1024

LARGEST_EPSILON: Final = 40.0
"""e**40 times what drawing from tables loses is still next to nothing."""

_MOST_MESSAGES: Final = 64
"""More messages of each person are not tried."""

_FAR: Final = 1 << 62
"""No bound is above it. Tables of the noise and n keep residues below 2**51."""

WRAP: Final = 2.0**-40
"""The chance that the noise in a sum is too large for the modulus is at most this."""

_EPS: Final = 2.0**-52
_BELOW: Final = 1 - 4 * _EPS
"""Floats times this are rounded down."""

_TRIED: Final = 200


@dataclass(frozen=True, kw_only=True)
class SplitAndMix(_checks.ByName):
    """The noisy sum of n people's numbers, by several messages of each; as accurate as if one party computed it.

    A number becomes a code 0, 1, ..., `top`. Everybody adds a share of the noise (the difference of two Polya numbers),
    splits the result into `messages` residues modulo `modulus`, uniform but for their sum, and sends them. A shuffler
    mixes all messages; whoever reads them adds them up. The noise of `needed` people is exactly discrete Laplace; more
    people only add to it. Against a reader who works with all others the release is (epsilon, delta)-differentially
    private: replace one person's number (all coordinates of it).

    A shuffler that gives away who sent what gives away the number: there is no local privacy behind it. A single fake
    person can move the sum to any that people could have (`hs.estimate_sum`).

    Args:
        low: the smallest number; public. Without `levels` an integer.
        high: the largest number; public. Without `levels` an integer.
        n: number of people, 2 to 10**9.
        epsilon: in nats, of one person's numbers all together; up to 40.
        delta: in (0, 1).
        levels: numbers are rounded to so many equally spaced levels by a coin, without bias; None: they are integers.
        honest: the share of the n people who answer and follow the protocol and do not work with the reader, in (0, 1].
        coordinates: numbers of each person, 1 to 1,024. Each has its own sum, and messages of its own.
        l1: how far a person's numbers are above `low`, all together, at most. A person with more has them scaled down
            on the device (`encode`), and less noise is enough. None: as far as they can be.

    Raises:
        InvalidInputError: an argument out of range; noise too wide for the tables (take fewer levels); a delta that 64
            messages of each person do not reach.

    Source: docs/theory/split-and-mix.md, Theorem 7, Theorem 9 and Theorem 10.

    >>> import hushuffle as hs
    >>> steps = hs.SplitAndMix(low=0, high=1000, n=10_000, epsilon=1.0, delta=1e-9)
    >>> steps.messages, steps.modulus == 2**24, steps.bits_per_person
    (7, True, 168)
    >>> messages = steps.collect([250] * 10_000, rng=hs.reproducible(1))
    >>> messages.shape, hs.estimate_sum(messages, protocol=steps).total.tolist()
    ((1, 70000), [2496035.0])
    """

    low: float
    high: float
    n: int
    epsilon: float
    delta: float
    levels: int | None = None
    honest: float = 1.0
    coordinates: int = 1
    l1: float | None = None
    noise: PolyaLaw = field(init=False, repr=False, compare=False)
    messages: int = field(init=False, repr=False, compare=False)
    modulus: int = field(init=False, repr=False, compare=False)
    slack: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._set("n", _checks.integer("n", self.n, low=2, high=MOST_PEOPLE))
        self._set("epsilon", _checks.positive("epsilon", self.epsilon))
        if self.epsilon > LARGEST_EPSILON:
            _checks.reject("epsilon", f"at most {LARGEST_EPSILON:g}", self.epsilon, "More is hardly any noise.")
        self._set("delta", _checks.probability("delta", self.delta, low_open=True, high_open=True))
        self._set("honest", _checks.probability("honest", self.honest, low_open=True))
        self._set("coordinates", _checks.integer("coordinates", self.coordinates, low=1, high=MOST_COORDINATES))
        for name in ("low", "high"):
            self._set(name, self._end(name))
        if not self.low < self.high:
            _checks.reject("high", f"above low = {self.low:g}", f"{self.high:g}")
        if self.levels is not None:
            self._set("levels", self.grid.levels)
        if self.l1 is not None:
            self._set("l1", _checks.positive("l1", self.l1))
            if self.coordinates == 1:
                _checks.reject("l1", "left out for one coordinate", self.l1, "Take a smaller high.")
            if not 1 <= self.l1 / self.step < 2**61 / self.top:
                _checks.reject("l1", f"at least one step, {self.step:g}, and not too large to be counted", self.l1)
        if self.needed < 2:
            _checks.reject("honest", "so large that at least 2 people are", self.honest, "One person hides in nobody.")
        self._set("noise", PolyaLaw.of(shares=self.needed, ratio=ratio_of(self.epsilon, self.distance)))
        self._set("modulus", 1 << self._bits())
        rest = self.delta - (1 + math.exp(self.epsilon)) * self.rounding
        messages, slack = _fewest(self.needed, self.modulus, rest / (self.coordinates * self.changes) * (1 - 8 * _EPS))
        self._set("messages", messages)
        self._set("slack", slack)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _end(self, name: str) -> float:
        if self.levels is not None:
            return _checks.finite(name, getattr(self, name))
        hint = "For other numbers say how many levels they are rounded to."
        return _checks.integer(name, getattr(self, name), low=-(2**53), high=2**53, hint=hint)

    def _bits(self) -> int:
        """Return how many bits hold every sum with its noise."""
        return (self.n * self.top + 2 * self.noise_reach(self.n)).bit_length()

    @property
    def shared(self) -> SplitAndMix:
        """Itself: there is no law of one report that tells what the release says."""
        return self

    @property
    def kind(self) -> str:
        """What it has in common with the same for another number of people."""
        parts = (self.low, self.high, self.levels, self.epsilon, self.delta, self.honest, self.coordinates, self.l1)
        return f"SplitAndMix{parts}"

    @property
    def grid(self) -> NumberGrid:
        """The levels, if there are any.

        Raises:
            InvalidInputError: numbers are integers.
        """
        if self.levels is None:
            _checks.reject("levels", "given, where levels are asked for", None)
        return NumberGrid(low=self.low, high=self.high, levels=self.levels)

    @property
    def top(self) -> int:
        """The largest code."""
        return int(self.high - self.low) if self.levels is None else self.levels - 1

    @property
    def step(self) -> float:
        """The distance between neighbouring codes, in the unit of the numbers."""
        return (self.high - self.low) / self.top

    @property
    def distance(self) -> int:
        """The sensitivity: the largest L1 distance between two people's codes, all coordinates together."""
        return sum(self.farthest_pair)

    @property
    def cap(self) -> int:
        """The largest sum of a person's codes: `l1` in steps, rounded up where numbers are rounded to levels."""
        most = self.coordinates * self.top
        if self.l1 is None:
            return most
        steps = self.l1 / self.step
        return min(math.floor(steps * (1 + 1e-12)) if self.levels is None else math.ceil(steps * (1 - 1e-12)), most)

    @cached_property
    def farthest_pair(self) -> tuple[int, int]:
        """The sums of codes of two people who are farthest apart: they have no coordinate above 0 in common."""
        pairs = [
            (min(self.cap, used * self.top), min(self.cap, (self.coordinates - used) * self.top))
            for used in range(self.coordinates, self.coordinates // 2 - 1, -1)
        ]
        return max(pairs, key=sum)

    @property
    def needed(self) -> int:
        """How many people must answer, be honest and not work with the reader."""
        return people_needed(self.honest, self.n)

    @property
    def changes(self) -> float:
        """An upper bound of how many people's shares of a coordinate change on average, one person's among them."""
        mean = self.noise.chance / (1 - self.noise.chance)
        return min(float(self.needed), 1.0 + self.top, 2.0 + math.log(self.top + mean)) * (1 + 8 * _EPS)

    @property
    def rounding(self) -> float:
        """An upper bound of the total variation between all noise as it is drawn and as it should be."""
        return 2 * self.coordinates * self.needed * self.noise.distance * (1 + 8 * _EPS)

    @property
    def pure_part(self) -> float:
        """The epsilon (nats, rounded up) that the noise alone gives; never above `epsilon`."""
        return min(log_upwards(Fraction(SCALE, self.noise.ratio), times=self.distance), self.epsilon)

    @property
    def failure(self) -> float:
        """The delta that is certified at `pure_part`: what the messages say beyond their sum; at most `delta`."""
        drawn = (1 + math.exp(self.pure_part)) * self.rounding
        return min(self.coordinates * self.changes * self.slack * (1 + 8 * _EPS) + drawn, self.delta)

    def noise_reach(self, people: int) -> int:
        """Return a number of codes that the noise of so many people exceeds with a chance of at most 2**-40."""
        return _reach(self.noise.chance, people / self.needed)

    @property
    def margin(self) -> int:
        """Sums of codes from -margin to modulus - margin - 1 are told apart."""
        return (self.modulus - self.n * self.top) // 2

    @property
    def farthest(self) -> float:
        """How far one fake person can move a sum that is not refused, in the unit of the numbers."""
        return self.step * (self.n * self.top + self.noise_reach(self.n))

    @property
    def bits_per_message(self) -> int:
        """A residue; with several coordinates also the coordinate's number."""
        return self.modulus.bit_length() - 1 + (self.coordinates - 1).bit_length()

    @property
    def messages_per_person(self) -> int:
        """Messages of all coordinates."""
        return self.messages * self.coordinates

    @property
    def bits_per_person(self) -> int:
        """Bits of all messages, without what encryption adds to each."""
        return self.messages_per_person * self.bits_per_message

    def standard_error(self, people: int | None = None) -> float:
        """Return the standard error of the sum of one coordinate over all coins, at most, in the unit of the numbers.

        That of the noise, and where there are `levels` of rounding for the worst numbers; `people` who answer, or n.
        """
        count = self.n if people is None else self.answers(people)
        rounded = 0.0 if self.levels is None else count / 4
        return self.step * math.sqrt(2 * self.noise.variance * count + rounded)

    def answers(self, people: int) -> int:
        """Return the number of people who answered, if the guarantee holds for so few.

        Raises:
            InvalidInputError: fewer than `needed`, or more than n.
        """
        few = "The noise of fewer people is too small: nothing may be released."
        many = "The modulus is made for n people: somebody answered twice, or build the protocol for more."
        answered = _checks.integer("people", people, low=0)
        return _checks.integer(
            "people", answered, low=self.needed, high=self.n, hint=few if answered < self.n else many
        )

    def encode(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        """Return the codes of people's numbers, of the same shape: (people,), or (people, coordinates) of several.

        Numbers outside the bounds become the nearer bound. With `levels` they are rounded stochastically: the expected
        code is the number. A person whose numbers are more than `cap` steps above `low`, all together, has them scaled
        down to that first; numbers within `l1` are not scaled. The codes of a person add up to at most `cap`.

        Raises:
            InvalidInputError: values that are no finite numbers, no integers where no levels are given, or of another
                shape.

        Source: docs/theory/split-and-mix.md, Lemma 13.

        >>> short = SplitAndMix(low=0, high=9, n=100, epsilon=1.0, delta=1e-6, coordinates=3, l1=10)
        >>> short.encode([[9, 1, 0], [9, 9, 2]], rng=secure()).tolist(), short.distance
        ([[9, 1, 0], [4, 4, 1]], 19)
        """
        try:
            array = np.asarray(values)
        except ValueError:
            _checks.reject("values", "an array of numbers", "<ragged>")
        columns = array[:, None] if array.ndim == 1 else array
        if columns.ndim != 2 or columns.shape[1] != self.coordinates:
            rule = f"of shape (people, {self.coordinates})" if self.coordinates > 1 else "one-dimensional"
            _checks.reject("values", rule, f"<shape {array.shape}>")
        if self.levels is not None and self.l1 is not None:
            return self._rounded_together(columns, rng)
        codes = np.stack([self._column(column, rng) for column in columns.T], axis=1)
        total = codes.sum(axis=1, keepdims=True)
        return np.where(total > self.cap, codes * self.cap // np.maximum(total, 1), codes).reshape(array.shape)

    def _rounded_together(self, columns: npt.NDArray[Any], rng: Randomness) -> Integers:
        """Round each person's numbers by one draw (systematic sampling): the sum of codes is at most rounded up too."""
        positions = np.stack([self.grid.inside(self.grid.positions(column)) for column in columns.T], axis=1)
        total, most = positions.sum(axis=1, keepdims=True), self.cap * PARTS
        shorter = np.floor(positions * (most / np.maximum(total, 1) * _BELOW)).astype(np.int64)
        below = np.cumsum(np.where(total > most, shorter, positions), axis=1)
        bounds = (below + rng.integers(PARTS, len(below))[:, None]) // PARTS
        codes: Integers = np.diff(bounds, axis=1, prepend=0)
        return codes

    def _column(self, numbers: npt.NDArray[Any], rng: Randomness) -> Integers:
        if self.levels is not None:
            return self.grid.encode(numbers, rng=rng)
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            hint = "For other numbers say how many levels they are rounded to."
            _checks.reject("values", "an array of integers", f"<{numbers.dtype}>", hint)
        if numbers.dtype == np.uint64:
            numbers = np.minimum(numbers, np.uint64(_FAR))
        codes: Integers = np.clip(numbers.astype(np.int64), int(self.low), int(self.high)) - int(self.low)
        return codes

    def shares(self, codes: Integers, *, rng: Randomness) -> Integers:
        """Return the messages of people with these codes, shape (messages, people): what each device sends.

        Keyed coins repeat them.
        """
        noise = self.noise.draw(rng, codes.size) - self.noise.draw(rng, codes.size)
        return self.split(codes + noise, rng=rng)

    def split(self, numbers: Integers, *, rng: Randomness) -> Integers:
        """Return residues, shape (messages, people), each column uniform but for its sum, which is the number."""
        mask = self.modulus - 1
        found = np.empty((self.messages, numbers.size), dtype=np.int64)
        last = numbers.copy()
        for place in range(self.messages - 1):
            found[place] = rng.integers(self.modulus, numbers.size)
            last -= found[place]
            last &= mask
        found[-1] = last & mask
        return found

    def collect(self, values: npt.ArrayLike, *, rng: Randomness | None = None) -> Integers:
        """Run the collection on people's numbers and return the mixed messages, shape (coordinates, messages * people).

        Args:
            values: shape (people,), or (people, coordinates) where there are several; as many people as answer.
            rng: defaults to `secure()`.

        Raises:
            InvalidInputError: fewer people than `needed`, more than n, or values that are no numbers.
        """
        source = secure() if rng is None else rng
        codes = self.encode(values, rng=source).reshape(-1, self.coordinates)
        self.answers(codes.shape[0])
        found = np.empty((self.coordinates, self.messages * codes.shape[0]), dtype=np.int64)
        for row, column in zip(found, codes.T, strict=True):
            sent = self.shares(column, rng=source).ravel()
            row[:] = sent[source.permutation(sent.size)]
        return found

    def describe(self) -> str:
        """Return the deployment in one sentence."""
        several = f"{self.coordinates:,} numbers" if self.coordinates > 1 else "a number"
        several += "" if self.l1 is None else f" (in all at most {self.l1:g} above {self.low:g})"
        rounded = "integers" if self.levels is None else f"rounded to {self.levels:,} levels"
        return (
            f"{self.n:,} people: each has {several} from {self.low:g} to {self.high:g} ({rounded}), adds a share of "
            f"discrete Laplace noise and sends {self.messages_per_person:,} messages of {self.bits_per_message} bits, "
            "uniform but for their sum; a shuffler mixes all messages; "
            f"{self.needed:,} people must answer and be honest."
        )


def people_needed(honest: float, n: int) -> int:
    """Return how many people this share of n is, rounded up.

    >>> people_needed(0.1, 30)
    3
    """
    return math.ceil(Fraction(repr(honest)) * n)


def _reach(ratio: float, groups: float) -> int:
    """Return a number that the noise of `groups` times the people needed exceeds with chance at most WRAP, both signs.

    Chernoff: E e**(t noise) = ((1 - ratio)**2 / ((1 - ratio e**t) (1 - ratio e**-t)))**groups for e**t < 1/ratio.
    """
    tilts = -math.log(ratio) * (np.arange(1, _TRIED) / _TRIED)
    grown = -np.log1p(-ratio * np.expm1(tilts) / (1 - ratio)) - np.log1p(-ratio * np.expm1(-tilts) / (1 - ratio))
    reached = (math.log(2 / WRAP) + groups * grown) / tilts
    return math.ceil(float(reached.min()) * (1 + 1e-9)) + 1


@lru_cache(maxsize=256)
def _fewest(people: int, modulus: int, most: float) -> tuple[int, float]:
    """Return the fewest messages whose distance for each changed person is at most `most`, and that distance."""
    from hushuffle.numerics.random_pairing import colourings  # noqa: PLC0415 - loads scipy

    for messages in range(3, _MOST_MESSAGES + 1):
        seen = colourings(people, messages, modulus, near=True) * modulus / (2 * (modulus - 2))
        distance = math.sqrt(seen) * (1 + 8 * _EPS)
        if distance <= most:
            break
    else:
        hint = f"{_MOST_MESSAGES} messages of each person are not enough for so few people. Take a larger delta."
        _checks.reject("delta", "one that can be reached", f"<too small for {people:,} people>", hint)
    return messages, distance
