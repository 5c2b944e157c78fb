"""The Mallows shuffle, which releases reports in a random order near a public reference order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.mechanisms.shufflers import _mallows_laws
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.randomness import Randomness, secure

Distance: TypeAlias = Literal["kendall", "hamming"]

_LAWS: Final[dict[str, Callable[[int, float, int, Randomness], npt.NDArray[np.int64]]]] = {
    "kendall": _mallows_laws.kendall,
    "hamming": _mallows_laws.hamming,
}

_MOST: Final = 10**9
"""Maximum number of records for which the accuracy of the samplers is proven."""


def sample_mallows(
    n: int, *, theta: float, distance: Distance = "kendall", rng: Randomness | None = None
) -> npt.NDArray[np.int64]:
    """Draw a permutation of 0..n-1, shape (n,), from the Mallows distribution centred at the identity.

    P(tau) is proportional to e**(-theta d(tau)), where d counts the pairs in the wrong order ("kendall": inversions)
    or the displaced items ("hamming"). theta = 0 is uniform, theta = inf always the identity. Takes O(n log n)
    time. The implemented distribution is within total variation t = n (log2(n) + 1) 2**-78 of the exact one. A
    guarantee alpha (nats) of the exact one holds for the implemented one with delta = (1 + e**alpha) t.

    Args:
        n: number of items, 1 to 10**9.
        theta: dispersion, >= 0; math.inf is allowed.
        distance: "kendall" or "hamming".
        rng: the random generator; `secure()` by default.

    Raises:
        InvalidInputError: an argument is out of range, `distance` is unknown, or `rng` derives from a secret key.

    Source: docs/theory/order.md, Theorems 8 and 9; Mallows 1957; Doignon, Pekec, Regenwetter 2004 (repeated insertion).

    >>> import hushuffle as hs
    >>> hs.order.sample_mallows(12, theta=1.0, rng=hs.reproducible(1)).tolist()
    [0, 2, 1, 4, 3, 5, 6, 7, 8, 9, 10, 11]
    """
    return next(several_mallows(n, theta=theta, distance=distance, samples=1, rng=rng))


def several_mallows(
    n: int, *, theta: float, distance: Distance, samples: int, rng: Randomness | None
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield `samples` permutations as `sample_mallows` draws them; short ones are drawn together, which is faster."""
    size = _checks.integer("n", n, low=1, high=_MOST)
    level, law = dispersion(theta), _LAWS[checked_distance(distance)]
    source = secure() if rng is None else rng
    if not source.sequential:
        hint = "Use secure() for the shuffle; only the randomizer may use keyed randomness."
        _checks.reject("rng", "secure() or reproducible(seed) for a permutation", "<keyed>", hint)
    together = max(1, _mallows_laws.BLOCK // size)
    for start in range(0, samples, together):
        times = min(together, samples - start)
        still = np.tile(np.arange(size, dtype=np.int64), (times, 1))
        yield from still if level == math.inf else law(size, level, times, source)


@dataclass(frozen=True, kw_only=True, eq=False)
class MallowsShuffle(Shuffler):
    """A shuffler whose random order is near a public reference order: most reports move only a few positions.

    A permutation tau is drawn from the Mallows distribution centred at the identity (`sample_mallows`), independently
    of the reports, and position reference[i] gets the report of person reference[tau[i]]:
    z[reference[i]] = y[reference[tau[i]]].

    Privacy rests on this convention. The orders reference o tau and reference disagree on as many pairs of *people* as
    tau has inversions. So any exchange of reports within a group of people, of sensitivity Delta
    (`hushuffle.order.sensitivity`), changes the probability of a release by a factor of at most e**(theta Delta).
    Composing the indices in the other order would break the guarantee.

    Args:
        reference: `reference[rank]` is a person: a permutation of 0..n-1, shape (n,), from public data only.
        theta: dispersion, >= 0: 0 is a uniform shuffle, math.inf is no shuffle.
        distance: "kendall" (pairs of people in another order) or "hamming" (displaced people).

    Raises:
        InvalidInputError: `reference` is not a permutation, `theta` is out of range, or `distance` is unknown.

    Source: docs/theory/order.md, Theorem 1; Meehan et al. 2022, Algorithm 1 and appendix A.10 (order of indices).

    >>> import hushuffle as hs
    >>> shuffler = hs.MallowsShuffle(reference=[2, 0, 1], theta=0.5)
    >>> shuffler
    MallowsShuffle(3 people, theta=0.5, distance='kendall')
    >>> sorted(shuffler.release(np.array([7, 8, 9]), rng=hs.reproducible(1)).tolist())
    [7, 8, 9]
    """

    reference: npt.NDArray[np.int64]
    theta: float
    distance: Distance = "kendall"

    def __init__(self, *, reference: npt.ArrayLike, theta: float, distance: Distance = "kendall") -> None:
        order, level = _order(reference), dispersion(theta)
        _checks.set_fields(self, reference=order, theta=level, distance=checked_distance(distance))

    @property
    def reveals(self) -> Reveals:
        """What the release reveals: a noisy order; at theta = 0 only report counts; at theta = inf the senders."""
        if self.theta == 0:
            return Reveals.MULTISET
        return Reveals.SENDERS if self.theta == math.inf else Reveals.NOISY_ORDER

    @property
    def people(self) -> int:
        """Number of people in the reference."""
        return self.reference.size

    def check(self, *, n: int, values: int) -> None:
        """Raise an error if the number of people differs from the length of the reference order."""
        if n != self.people:
            hint = "reference[rank] is the person of that rank; every person occurs once."
            _checks.reject("reference", f"an order of the protocol's n = {n} people", f"<{self.people} people>", hint)

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        """Return `messages`, shape (n, ...), in released order.

        Raises:
            InvalidInputError: the numbers of messages and of people in the reference differ (there are no dummies), or
                `rng` derives from a secret key.
        """
        if messages.shape[0] != self.people:
            hint = "Its reference order has exactly one place for each person, and no places for dummies."
            _checks.reject("messages", f"one per person in the reference, {self.people}", messages.shape[0], hint)
        tau = sample_mallows(self.people, theta=self.theta, distance=self.distance, rng=rng)
        released = np.empty_like(messages)
        released[self.reference] = messages[self.reference[tau]]
        return released

    def describe(self) -> str:
        if self.theta == 0:
            return "a shuffler releases the reports in a uniformly random order (Mallows, theta = 0)"
        if self.theta == math.inf:
            return "the reports stay linked to their senders (Mallows, theta = infinity)"
        unit = "each pair of people" if self.distance == "kendall" else "each person"
        return (
            "a shuffler releases the reports in a random order near a public one "
            f"({self.distance.capitalize()}-Mallows, theta = {self.theta:.4g} for {unit} out of place)"
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MallowsShuffle)
            and (self.theta, self.distance) == (other.theta, other.distance)
            and np.array_equal(self.reference, other.reference)
        )

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def __repr__(self) -> str:
        return f"MallowsShuffle({self.people:,} people, theta={self.theta:g}, distance={self.distance!r})"


def dispersion(theta: float) -> float:
    """Return theta as a float >= 0, perhaps infinite."""
    return theta if theta == math.inf else _checks.non_negative("theta", theta, hint="math.inf keeps the order.")


def checked_distance(distance: str) -> Distance:
    """Return `distance` if it is the name of a distance that can be sampled, else raise an error."""
    if distance not in get_args(Distance):
        hint = "No sampler of proven accuracy exists for Spearman's distances."
        _checks.reject("distance", "'kendall' or 'hamming'", repr(distance), hint)
    return "hamming" if distance == "hamming" else "kendall"


def _order(reference: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.array(reference)
    people = _checks.codes("reference", array, k=max(array.size, 1))
    if people.size == 0:
        _checks.reject("reference", "an order of at least one person", "<empty>")
    if people.size > _MOST:
        _checks.reject("reference", f"an order of at most {_MOST} people", people.size)
    repeated = people.size - int(np.count_nonzero(np.bincount(people, minlength=people.size)))
    if repeated:
        hint = "reference[rank] is the person of that rank; every person occurs once."
        _checks.reject("reference", f"a permutation of 0..{people.size - 1}", f"<{repeated} people missing>", hint)
    people = people.copy() if people is array else people
    people.flags.writeable = False
    return people
