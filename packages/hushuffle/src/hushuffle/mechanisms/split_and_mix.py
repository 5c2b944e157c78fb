"""Split-and-mix sums: each client adds a share of the noise to its number and splits the result into messages.

A shuffler mixes all clients' messages, and the analyst adds them.

Source: Ishai, Kushilevitz, Ostrovsky, Sahai 2006; Balle, Bell, Gascon, Nissim 2020; docs/theory/split-and-mix.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle._checks import Integers
from hushuffle.mechanisms.polya_law import SCALE, PolyaLaw, ratio_of
from hushuffle.model import NumberGrid
from hushuffle.model.number_grid import PARTS
from hushuffle.numerics.exact import log_upwards
from hushuffle.randomness import secure

if TYPE_CHECKING:
    from hushuffle.randomness import Randomness


MOST_PEOPLE: Final = 10**9
MOST_COORDINATES: Final = 1024

LARGEST_EPSILON: Final = 40.0
"""Largest allowed epsilon, at which e**40 times the rounding error of the noise tables is still negligible."""

_MOST_MESSAGES: Final = 64
"""Largest number of messages per person that the design tries."""

_FAR: Final = 1 << 62
"""Larger unsigned numbers are replaced by this number; no bound reaches it, since residues are below 2**51."""

WRAP: Final = 2.0**-40
"""Upper bound on the probability that a sum's noise exceeds the modulus."""

_EPS: Final = 2.0**-52
_BELOW: Final = 1 - 4 * _EPS
"""Factor that rounds a float down to a lower bound on the exact number."""

_TRIED: Final = 200
_NOT_WHOLE: Final = "For numbers that are not integers, set levels."


@dataclass(frozen=True, kw_only=True)
class SplitAndMix(_checks.ByName):
    """Noisy sum of n people's numbers: each sends several messages; the error is as small as with a trusted server.

    A number becomes a code 0, 1, ..., `top`. Each client adds a share of the noise (the difference of two Polya
    numbers), splits the result into `messages` residues modulo `modulus`, uniform given their sum, and sends them. A
    shuffler mixes all messages; the analyst adds them up. `needed` people (the fraction `honest` of n, rounded up) must
    answer honestly. The total noise of so many people is exactly discrete Laplace; further people only add noise. The
    release is (epsilon, delta)-differentially private if one person's number (all its coordinates) is replaced, even if
    all but the `needed` people collude with the analyst.

    A compromised shuffler reveals each number: the messages have no local privacy. A single Sybil client can move the
    sum to any possible value (`hs.estimate_sum`).

    Args:
        low: the smallest number; public. It must be an integer if `levels` is None.
        high: the largest number; public. It must be an integer if `levels` is None.
        n: number of people, 2 to 10**9.
        epsilon: epsilon in nats for all of one person's numbers together; up to 40.
        delta: the delta of the guarantee, in (0, 1).
        levels: number of equally spaced levels for unbiased stochastic rounding; None: the numbers are integers.
        honest: the fraction of the n people that answer, follow the protocol and do not collude, in (0, 1].
        coordinates: how many numbers each person has, 1 to 1,024. Each coordinate has its own sum and messages.
        l1: maximum total by which a person's numbers exceed `low`. The device scales larger totals down (`encode`), so
            that less noise is needed than without a limit. None: coordinates * (high - low).

    Raises:
        InvalidInputError: an argument is out of range, the noise is too wide for the tables (take fewer levels), or
            `delta` needs more than 64 messages per person.

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
    targets: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        _checks.set_fields(self, n=_checks.integer("n", self.n, low=2, high=MOST_PEOPLE))
        _checks.set_fields(self, epsilon=_checks.positive("epsilon", self.epsilon))
        if self.epsilon > LARGEST_EPSILON:
            hint = "A larger epsilon adds almost no noise."
            _checks.reject("epsilon", f"at most {LARGEST_EPSILON:g}", self.epsilon, hint)
        _checks.set_fields(self, delta=_checks.probability("delta", self.delta, low_open=True, high_open=True))
        _checks.set_fields(self, honest=_checks.probability("honest", self.honest, low_open=True))
        coordinates = _checks.integer("coordinates", self.coordinates, low=1, high=MOST_COORDINATES)
        _checks.set_fields(self, coordinates=coordinates)
        whole = partial(_checks.integer, low=-(2**53), high=2**53, hint=_NOT_WHOLE)
        for name in ("low", "high"):
            check: Any = whole if self.levels is None else _checks.finite
            _checks.set_fields(self, **{name: check(name, getattr(self, name))})
        if not self.low < self.high:
            _checks.reject("high", f"above low = {self.low:g}", f"{self.high:g}")
        if self.levels is not None:
            _checks.set_fields(self, levels=self.grid.levels)
        if self.l1 is not None:
            _checks.set_fields(self, l1=_checks.positive("l1", self.l1))
            if self.coordinates == 1:
                _checks.reject("l1", "left out for one coordinate", self.l1, "Take a smaller high.")
            if not 1 <= self.l1 / self.step < 2**61 / self.top:
                _checks.reject("l1", f"at least one step, {self.step:g}, and small enough to be counted", self.l1)
        if self.needed < 2:
            rule = "large enough that at least 2 people are honest"
            _checks.reject("honest", rule, self.honest, "A single person has no crowd.")
        _checks.set_fields(self, noise=PolyaLaw.of(shares=self.needed, ratio=ratio_of(self.epsilon, self.distance)))
        # A power of two that every noisy sum is below.
        _checks.set_fields(self, modulus=1 << (self.n * self.top + 2 * self.noise_reach(self.n)).bit_length())
        rest = self.delta - (1 + math.exp(self.epsilon)) * self.rounding
        messages, slack = _fewest(self.needed, self.modulus, rest / (self.coordinates * self.changes) * (1 - 8 * _EPS))
        _checks.set_fields(self, messages=messages, slack=slack)

    @property
    def shared(self) -> SplitAndMix:
        """This protocol itself, since the distribution of a single report does not describe its release."""
        return self

    @property
    def kind(self) -> str:
        """Description of the design without its number of people."""
        parts = (self.low, self.high, self.levels, self.epsilon, self.delta, self.honest, self.coordinates, self.l1)
        return f"SplitAndMix{parts}"

    @property
    def grid(self) -> NumberGrid:
        """The grid of levels to which numbers are rounded.

        Raises:
            InvalidInputError: `levels` is None (numbers are integers).
        """
        if self.levels is None:
            _checks.reject("levels", "given, where levels are asked for", None)
        return NumberGrid(low=self.low, high=self.high, levels=self.levels)

    @property
    def top(self) -> int:
        """The code of the largest number, `high`."""
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
        """The largest sum of a person's codes: `l1` in steps, rounded up if numbers are rounded to levels."""
        most = self.coordinates * self.top
        if self.l1 is None:
            return most
        steps = self.l1 / self.step
        return min(math.floor(steps * (1 + 1e-12)) if self.levels is None else math.ceil(steps * (1 - 1e-12)), most)

    @cached_property
    def farthest_pair(self) -> tuple[int, int]:
        """The sums of codes of two people at the largest L1 distance, who have no positive coordinate in common."""
        pairs = [
            (min(self.cap, used * self.top), min(self.cap, (self.coordinates - used) * self.top))
            for used in range(self.coordinates, self.coordinates // 2 - 1, -1)
        ]
        return max(pairs, key=sum)

    @property
    def needed(self) -> int:
        """Number of people who must answer, follow the protocol and not collude."""
        return people_needed(self.honest, self.n)

    @property
    def changes(self) -> float:
        """Upper bound on the mean number of people, the target included, whose noise shares the proof changes."""
        mean = self.noise.chance / (1 - self.noise.chance)
        return min(float(self.needed), 1.0 + self.top, 2.0 + math.log(self.top + mean)) * (1 + 8 * _EPS)

    @property
    def rounding(self) -> float:
        """Upper bound on the total variation distance between the implemented noise and the exact noise."""
        return 2 * self.coordinates * self.needed * self.noise.distance * (1 + 8 * _EPS)

    @property
    def pure_part(self) -> float:
        """The epsilon (nats, rounded up) that the noise gives at delta = 0; never above `epsilon`."""
        return min(log_upwards(Fraction(SCALE, self.noise.ratio), times=self.distance), self.epsilon)

    @property
    def failure(self) -> float:
        """The certified delta at epsilon `pure_part`: what all messages reveal beyond their sum; at most `delta`."""
        drawn = (1 + math.exp(self.pure_part)) * self.rounding
        return min(self.coordinates * self.changes * self.slack * (1 + 8 * _EPS) + drawn, self.delta)

    def noise_reach(self, people: int) -> int:
        """Return a bound (codes) that the noise of `people` clients exceeds with probability at most 2**-40.

        Chernoff: E e**(t noise) = ((1 - ratio)**2 / ((1 - ratio e**t) (1 - ratio e**-t)))**groups for e**t < 1/ratio.
        """
        ratio, groups = self.noise.chance, people / self.needed
        tilts = -math.log(ratio) * (np.arange(1, _TRIED) / _TRIED)
        grown = -np.log1p(-ratio * np.expm1(tilts) / (1 - ratio)) - np.log1p(-ratio * np.expm1(-tilts) / (1 - ratio))
        reached = (math.log(2 / WRAP) + groups * grown) / tilts
        return math.ceil(float(reached.min()) * (1 + 1e-9)) + 1

    @property
    def margin(self) -> int:
        """Largest size of a negative sum: a residue stands for a sum from -margin to modulus - margin - 1."""
        return (self.modulus - self.n * self.top) // 2

    @property
    def farthest(self) -> float:
        """The largest change of the sum that a single Sybil client can cause, in the unit of the numbers."""
        return self.step * (self.n * self.top + self.noise_reach(self.n))

    @property
    def bits_per_message(self) -> int:
        """Bits of a message: a residue and, if there are several coordinates, the coordinate's number."""
        return self.modulus.bit_length() - 1 + (self.coordinates - 1).bit_length()

    @property
    def messages_per_person(self) -> int:
        """Number of messages that each person sends for all coordinates together."""
        return self.messages * self.coordinates

    @property
    def bits_per_person(self) -> int:
        """Bits of all messages of one person, without the overhead of encryption."""
        return self.messages_per_person * self.bits_per_message

    def standard_error(self, people: int | None = None) -> float:
        """Return an upper bound on the standard error of the sum of one coordinate, in the unit of the numbers.

        The bound covers the noise of the `people` who answer (default: n) and, with `levels`, the worst rounding.
        """
        count = self.n if people is None else self.answers(people)
        rounded = 0.0 if self.levels is None else count / 4
        return self.step * math.sqrt(2 * self.noise.variance * count + rounded)

    def answers(self, people: int) -> int:
        """Return `people`, the number who answered, after checking that the guarantee holds for that many.

        Raises:
            InvalidInputError: fewer than `needed`, or more than n.
        """
        missing = "With fewer people the noise is too small for the guarantee. Release nothing."
        many = "The modulus supports n people. Remove duplicate answers, or build the protocol for more people."
        answered = _checks.integer("people", people, low=0)
        return _checks.integer(
            "people", answered, low=self.needed, high=self.n, hint=missing if answered < self.n else many
        )

    def encode(self, values: npt.ArrayLike, *, rng: Randomness) -> Integers:
        """Return the codes of people's numbers, of the same shape: (people,) or (people, coordinates).

        Numbers outside the bounds become the nearer bound. With `levels`, numbers are rounded stochastically without
        bias. If a person's numbers exceed `low` by more than `cap` steps in total, they are first scaled down to that
        total; numbers within `l1` are not scaled. The codes of a person add up to at most `cap`.

        Raises:
            InvalidInputError: values that are not finite, no integers although `levels` is None, or of another shape.

        Source: docs/theory/split-and-mix.md, Lemma 12.

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
            positions = np.stack([self.grid.inside(self.grid.positions(column)) for column in columns.T], axis=1)
            total, most = positions.sum(axis=1, keepdims=True), self.cap * PARTS
            shorter = np.floor(positions * (most / np.maximum(total, 1) * _BELOW)).astype(np.int64)
            below = np.cumsum(np.where(total > most, shorter, positions), axis=1)
            bounds = (below + rng.integers(PARTS, len(below))[:, None]) // PARTS
            return np.asarray(np.diff(bounds, axis=1, prepend=0))
        codes = np.stack([self._column(column, rng) for column in columns.T], axis=1)
        total = codes.sum(axis=1, keepdims=True)
        return np.where(total > self.cap, codes * self.cap // np.maximum(total, 1), codes).reshape(array.shape)

    def _column(self, numbers: npt.NDArray[Any], rng: Randomness) -> Integers:
        if self.levels is not None:
            return self.grid.encode(numbers, rng=rng)
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            _checks.reject("values", "an array of integers", f"<{numbers.dtype}>", _NOT_WHOLE)
        if numbers.dtype == np.uint64:
            numbers = np.minimum(numbers, np.uint64(_FAR))
        codes: Integers = np.clip(numbers.astype(np.int64), int(self.low), int(self.high)) - int(self.low)
        return codes

    def shares(self, codes: Integers, *, rng: Randomness) -> Integers:
        """Return each client's messages, shape (messages, people); with keyed randomness, always the same messages."""
        noise = self.noise.draw(rng, codes.size) - self.noise.draw(rng, codes.size)
        return self.split(codes + noise, rng=rng)

    def split(self, numbers: Integers, *, rng: Randomness) -> Integers:
        """Return residues, shape (messages, people): column i adds up to number i and is otherwise uniform."""
        mask = self.modulus - 1
        shares = np.empty((self.messages, numbers.size), dtype=np.int64)
        last = numbers.copy()
        for place in range(self.messages - 1):
            shares[place] = rng.integers(self.modulus, numbers.size)
            last -= shares[place]
            last &= mask
        shares[-1] = last & mask
        return shares

    def collect(self, values: npt.ArrayLike, *, rng: Randomness | None = None) -> Integers:
        """Run the collection on people's numbers and return the mixed messages, shape (coordinates, messages * people).

        Args:
            values: the numbers of the people who answer, shape (people,), or (people, coordinates) if several.
            rng: the random generator; `secure()` by default.

        Raises:
            InvalidInputError: fewer people than `needed`, more than n, or values that are not numbers.
        """
        source = secure() if rng is None else rng
        codes = self.encode(values, rng=source).reshape(-1, self.coordinates)
        self.answers(codes.shape[0])
        messages = np.empty((self.coordinates, self.messages * codes.shape[0]), dtype=np.int64)
        for row, column in zip(messages, codes.T, strict=True):
            sent = self.shares(column, rng=source).ravel()
            row[:] = sent[source.permutation(sent.size)]
        return messages

    def describe(self) -> str:
        """Return a one-sentence description of the protocol."""
        several = f"{self.coordinates:,} numbers" if self.coordinates > 1 else "a number"
        several += "" if self.l1 is None else f" (in total at most {self.l1:g} above {self.low:g})"
        rounded = "integers" if self.levels is None else f"rounded to {self.levels:,} levels"
        return (
            f"{self.n:,} people: each has {several} from {self.low:g} to {self.high:g} ({rounded}), adds a share of "
            f"discrete Laplace noise and sends {self.messages_per_person:,} messages of {self.bits_per_message} bits, "
            f"uniform except for their sum; a shuffler mixes all messages; {self.needed:,} people must answer and be "
            "honest."
        )


def people_needed(honest: float, n: int) -> int:
    """Return the number of honest people, the fraction `honest` of n, rounded up.

    >>> people_needed(0.1, 30)
    3
    """
    return math.ceil(Fraction(repr(honest)) * n)


@lru_cache(maxsize=256)
def _fewest(people: int, modulus: int, most: float) -> tuple[int, float]:
    """Return the fewest messages with total variation distance per changed person <= `most`, and that distance."""
    from hushuffle.numerics.random_pairing import colourings  # noqa: PLC0415 - loads scipy

    for messages in range(3, _MOST_MESSAGES + 1):
        seen = colourings(people, messages, modulus, near=True) * modulus / (2 * (modulus - 2))
        distance = math.sqrt(seen) * (1 + 8 * _EPS)
        if distance <= most:
            break
    else:
        hint = f"{_MOST_MESSAGES} messages per person are not enough for this number of people. Use a larger delta."
        _checks.reject("delta", "larger for this number of people", f"<too small for {people:,} people>", hint)
    return messages, distance
