"""The least noise with which each known proof guarantees a target Bayes error, and the best number of buckets.

The number of buckets of local hashing is best at a fixed theta, or at a fixed Bayes error of re-identification.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import InvalidInputError
from hushuffle.estimation.readout import frequency_variance
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, ReportLaw, Symmetric
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Citation, number
from hushuffle.model.citation import BRAUN, PIE, SHANNON
from hushuffle.model.prior import Prior
from hushuffle.model.solver import Parameter, solve, verdict
from hushuffle.numerics.exact import WIDE, down, log2, to_decimal
from hushuffle.numerics.roots import farthest
from hushuffle.questions.pie.published import alpha_for_error, people_who_differ
from hushuffle.randomness import SCALE


@dataclass(frozen=True, kw_only=True)
class Route:
    """One proof of a lower bound on the Bayes error, and the least noise for which it proves the target.

    `epsilon` is the largest local epsilon in nats (`math.inf`: no noise is necessary; None: no amount of noise suffices
    for this proof). `protocol` has a randomizer with this epsilon. `bayes_error` is the target.
    """

    name: str
    source: Citation
    bayes_error: float
    epsilon: float | None
    protocol: Protocol | None

    @property
    def theta(self) -> float | None:
        """Probability that a report shows the true value (or bucket); otherwise it is drawn like a dummy's report."""
        return None if self.protocol is None else float(_told(self.protocol))

    def standard_error(self, frequency: float = 0.0) -> float:
        """Return the standard error of the estimate of a true `frequency`; inf if `protocol` is None."""
        share = _checks.probability("frequency", frequency)
        if self.protocol is None:
            return math.inf
        return math.sqrt(float(frequency_variance(self.protocol).worst(share)))

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"{self.name}: out of reach"
        noise = "no noise needed" if math.isinf(self.epsilon) else f"epsilon_0 = {number(self.epsilon, up=False)}"
        return f"{self.name}: {noise}, standard error of a rare value {number(self.standard_error(), up=True)}"


def calibrate(protocol: Protocol, *, bayes_error: float) -> tuple[Route, ...]:
    """Return the least noise for which each proof shows a Bayes error of at least `bayes_error`.

    The Bayes error is the probability that the best guess of a report's sender is wrong, for one report and a uniform
    prior on the n people. There are four proofs; the numbered theorems are those of Murakami, Takahashi 2021:

    1. the error computed by the function `pie.bayes_error` (exact; for local hashing, a lower bound),
    2. `pie.alpha`, the exact information of a report about its sender, and Fano's inequality (`pie.fano_error`),
    3. a published bound on this information (Theorem 4.2; for local hashing, 4.4), and Fano's inequality,
    4. the published bound for any local randomizer (Proposition 4.1), and Fano's inequality.

    Each proof requires at least as much noise as the previous proof; an exception is Theorem 4.4 with few buckets,
    which may require more than Proposition 4.1. The protocol's own epsilon is not used.

    Args:
        protocol: randomized response, local hashing, or another mechanism with an epsilon that reports either the
            truth or a report distributed as a dummy. Its people and dummies determine the standard error.
        bayes_error: the target.

    Raises:
        InvalidInputError: bayes_error out of range, or at least 1 - 1/n, the error of random guessing.
        UnsupportedProtocolError: the randomizer has no epsilon to choose, or reports with another distribution.

    Source: Murakami, Takahashi 2021, Corollary 3.9, Theorems 4.2 and 4.4; docs/theory/identity.md, Theorems 1, 3 and 6.

    >>> import hushuffle as hs
    >>> places = hs.RandomizedResponse(k=10_500_393, epsilon=1.0)
    >>> survey = hs.Protocol(randomizer=places, shuffler=hs.UniformShuffle(), n=1_370_637)
    >>> for route in hs.pie.calibrate(survey, bayes_error=0.92):
    ...     print(route)
    exact Bayes error: epsilon_0 = 13.72, standard error of a rare value 3.161e-06
    exact alpha* and Fano: epsilon_0 = 12.91, standard error of a rare value 6.966e-06
    Theorem 4.2 and Fano: epsilon_0 = 12.72, standard error of a rare value 8.385e-06
    Proposition 4.1 and Fano: epsilon_0 = 0.6612, standard error of a rare value 2.953
    """
    _checks.of_type("protocol", protocol, Protocol)
    wanted = _checks.probability("bayes_error", bayes_error)
    _told(protocol)  # or refuse
    n, rows = protocol.secret.n, people_who_differ(protocol)
    ways: list[tuple[str, Citation, Callable[[float], float]]] = [
        ("exact alpha*", SHANNON, partial(_by_capacity, protocol)),
        ("Proposition 4.1", PIE.at("Proposition 4.1"), lambda bits: _by_epsilon(bits, rows)),
    ]
    law = protocol.randomizer.law()
    response = law.symmetric or law.bucket
    if response is not None:
        theorem = "Theorem 4.2" if law.bucket is None else "Theorem 4.4"
        size = response.k
        ways.insert(1, (theorem, PIE.at(theorem), lambda bits: _by_theta(bits, rows, size)))
    routes = [_route("exact Bayes error", BRAUN, protocol, wanted, _by_error(protocol, wanted))]
    for name, source, largest in ways:
        try:
            route = _route(f"{name} and Fano", source, protocol, wanted, largest(alpha_for_error(wanted, n)))
        except InvalidInputError:  # more than Fano can promise, or theta < 2**-64
            route = Route(name=f"{name} and Fano", source=source, bayes_error=wanted, epsilon=None, protocol=None)
        routes.append(route)
    return tuple(routes)


def _by_error(protocol: Protocol, wanted: float) -> float:
    """Return the largest epsilon_0 with a Bayes error of at least `wanted`."""
    n = protocol.secret.n
    law, uniform = protocol.randomizer.law(), Prior.of(n)
    if law.symmetric is not None or law.bucket is not None:
        buckets = None if law.bucket is None else law.bucket.k
        return epsilon_for_error(wanted, n=n, k=law.values, g=buckets)
    return largest_epsilon(protocol, lambda law: 1 - law.bayes(uniform)[0] >= Fraction(wanted), bayes_error=wanted)


def _by_capacity(protocol: Protocol, bits: float) -> float:
    """Return the largest epsilon_0 with an alpha* of at most `bits`."""
    law, n = protocol.randomizer.law(), protocol.secret.n
    if law.symmetric is not None or law.bucket is not None:
        return epsilon_for_alpha(bits, n=n, k=law.values, g=None if law.bucket is None else law.bucket.k)
    return largest_epsilon(protocol, lambda law: law.capacity(n)[1] <= to_decimal(Fraction(bits)), alpha_bits=bits)


def _by_theta(bits: float, rows: int, size: int) -> float:
    """Return the largest epsilon_0 with theta log2(rows) <= bits."""
    with localcontext(WIDE) as context:
        wanted, most = to_decimal(Fraction(bits)), log2(Fraction(rows))
        if most <= wanted:
            return math.inf
        theta = wanted / most
        return down(context.ln(1 + size * theta / (1 - theta)))


def _by_epsilon(bits: float, rows: int) -> float:
    """Return the largest epsilon_0 with min(epsilon_0, epsilon_0**2) log2(e) <= bits, or no noise for few values."""
    with localcontext(WIDE) as context:
        wanted = to_decimal(Fraction(bits))
        if log2(Fraction(rows)) <= wanted:
            return math.inf
        nats = wanted * context.ln(2)
        return down(max(nats, nats.sqrt()))


def _route(name: str, source: Citation, protocol: Protocol, wanted: float, epsilon: float) -> Route:
    chosen = dataclasses.replace(protocol, randomizer=protocol.randomizer.with_epsilon(epsilon))
    return Route(name=name, source=source, bayes_error=wanted, epsilon=epsilon, protocol=chosen)


def _told(protocol: Protocol) -> Fraction:
    """Return theta, the probability of a truthful value (or bucket)."""
    randomizer = protocol.randomizer
    if randomizer.chosen_epsilon is None:
        _checks.unsupported(f"{type(randomizer).__name__} has no `epsilon`. Use randomized response or local hashing.")
    truthful = randomizer.law().told
    if truthful is None:
        _checks.unsupported(
            f"The report of {type(randomizer).__name__} is not a mixture of the true value and a dummy's report."
        )
    return truthful


_SMALLEST: Final = 1e-12
_LARGEST: Final = 200.0
_CLOSE: Final = 1e-14


def epsilon_for_error(bayes_error: float, *, n: int, k: int, g: int | None = None) -> float:
    """Return the largest local epsilon (nats) of randomized response with a Bayes error of at least `bayes_error`.

    The Bayes error is the probability that the best guess of a report's sender, one of n people, is wrong. The result
    is rounded down; math.inf: no noise is necessary, since k values (or g buckets) distinguish too few people. With g,
    the mechanism is local hashing with g buckets, and a lower bound on its Bayes error must reach `bayes_error`.

    Raises:
        InvalidInputError: an argument out of range, or an error of at least 1 - 1/n, the error of random guessing.

    Source: docs/theory/identity.md, Theorem 3, solved for epsilon_0.

    >>> import hushuffle as hs
    >>> round(hs.pie.epsilon_for_error(0.5, n=100, k=1000), 4), hs.pie.epsilon_for_error(0.9, n=100, k=5)
    (6.8886, inf)
    """
    wanted = Fraction(_checks.probability("bayes_error", bayes_error))
    people, j, values = _sizes(n, k, g)
    allowed = people * (1 - wanted)  # j mu + (k-j) nu must not exceed `allowed`
    if allowed >= j:
        return math.inf
    if allowed <= 1:
        hint = "A guess without any report is right with probability 1/n."
        _checks.reject("bayes_error", f"below 1 - 1/n = {1 - 1 / people:.10g}", float(wanted), hint)
    growth = (allowed * (values - 1) - values + j) / (j - allowed)
    return down(WIDE.ln(to_decimal(growth)))


def epsilon_for_alpha(alpha_bits: float, *, n: int, k: int, g: int | None = None) -> float:
    """Return the largest local epsilon (nats) of k-ary randomized response for which `alpha` is at most `alpha_bits`.

    `alpha` is the most information, in bits, that a report reveals about its sender, one of n people. The result is
    rounded down; math.inf: no noise is necessary. With g, it is for local hashing with g buckets (by a bound).

    Raises:
        InvalidInputError: an argument out of range, or an `alpha_bits` that needs a truth probability below 2**-64.

    Source: docs/theory/identity.md, Theorem 1, by bisection over the probabilities that can be implemented.

    >>> import hushuffle as hs
    >>> round(hs.pie.epsilon_for_alpha(1.0, n=1_370_637, k=10_500_393), 4)
    13.3611
    """
    wanted = to_decimal(Fraction(_checks.non_negative("alpha_bits", alpha_bits)))
    _, j, values = _sizes(n, k, g)
    if float(log2(Fraction(j))) <= alpha_bits:
        return math.inf
    low = farthest(lambda threshold: _law(values, threshold).capacity(j)[1] <= wanted, good=0, bad=SCALE)
    if low == 0:
        _checks.reject("alpha_bits", f"large enough that a report depends on the value at k={values}", alpha_bits)
    with localcontext(WIDE) as context:
        return down(context.ln(1 + to_decimal(Fraction(values * low, SCALE - low))))


def largest_epsilon(protocol: Protocol, meets: Callable[[ReportLaw], bool], **wanted: float) -> float:
    """Return the largest epsilon_0 (rounded down) for which `meets` is True; it must be True for all smaller ones.

    Raises:
        InvalidInputError: `meets` is never True; the message contains `wanted`.
    """

    def there(epsilon: float) -> bool:
        return meets(protocol.randomizer.with_epsilon(epsilon).law())

    if there(math.inf):
        return math.inf
    noise = Parameter(name="epsilon", apply=float, easiest=_SMALLEST, hardest=_LARGEST, resolution=_CLOSE)
    solution = solve(noise, verdict(there))
    if solution is None:
        name, value = next(iter(wanted.items()))
        _checks.reject(name, "an error that some amount of noise guarantees", value)
    return solution.value


def _sizes(n: int, k: int, g: int | None) -> tuple[int, int, int]:
    """Return n, how many values (or buckets) n people can hold at once, and how many there are."""
    people, values = _checks.integer("n", n, low=1), _checks.integer("k", k, low=2, high=2**40)
    size = values if g is None else _checks.integer("g", g, low=2, high=2**40)
    return people, min(people, values, size), size


def _law(k: int, threshold: int) -> Symmetric:
    lie = Fraction(SCALE - threshold, SCALE * k)
    return Symmetric(k=k, truth=1 - (k - 1) * lie, lie=lie)


LARGEST: Final = 2 * 10**9
"""Maximum number of buckets of local hashing."""

_STEPS: Final = 8
"""Numbers of buckets tried for each doubling."""


def variance_by_buckets(
    theta: float, *, k: int, n: int, buckets: npt.ArrayLike, frequency: float = 0.0
) -> npt.NDArray[np.float64]:
    """Return the variance of an estimated frequency for each number of buckets of local hashing, shape (m,).

    With more buckets, the variance falls towards frequency (1 - theta)/(n theta). The bound `hashing_alpha` on what a
    report reveals about its sender stays the same: it depends only on theta, n and k.

    Args:
        theta: the probability that a report shows the true bucket; otherwise the bucket is uniform. 0 < theta <= 1.
        k: number of values.
        n: number of people.
        buckets: numbers of buckets, shape (m,), from 2 to 2 * 10**9.
        frequency: the true frequency of the value.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Murakami, Takahashi 2021, Proposition 4.7 and Theorem 4.8, for the collision probability of the hashes
    actually used; docs/theory/estimation.md, Theorem 2.

    >>> import hushuffle as hs
    >>> hs.pie.variance_by_buckets(0.5, k=1000, n=100, buckets=[2, 16, 128], frequency=0.1).round(4).tolist()
    [0.039, 0.0035, 0.0013]
    """
    share, sizes = _checks.probability("frequency", frequency), np.atleast_1d(np.asarray(buckets)).tolist()
    hashings = [LocalHashing.from_theta(k=k, g=g, theta=theta) for g in sizes]
    return np.array([_variance(hashing, n, share) for hashing in hashings])


def best_hashing_for_theta(
    theta: float, *, k: int, n: int, frequency: float = 0.0, largest: int = LARGEST
) -> LocalHashing:
    """Return the local hashing of least variance that shows the true bucket with probability `theta`.

    Otherwise the bucket is uniform. The variance is that of the estimated share of a value with true share `frequency`
    among n people. It falls as g, the number of buckets, grows, except where the hash family of a larger g has more
    collisions among the k values. The search tries about eight g per factor of two, at most `largest`.

    Raises:
        InvalidInputError: an argument out of range.

    Source: Murakami, Takahashi 2021, Theorem 4.8.

    >>> import hushuffle as hs
    >>> hs.pie.best_hashing_for_theta(0.5, k=1000, n=10_000, largest=10**6).g
    1000000
    """
    most, share = _limits(largest, frequency)
    return _best(_numbers_of_buckets(most), lambda g: LocalHashing.from_theta(k=k, g=g, theta=theta), n, share)


def best_hashing_for_error(
    bayes_error: float, *, k: int, n: int, frequency: float, largest: int = LARGEST
) -> LocalHashing:
    """Return the local hashing of least variance with a Bayes error of at least `bayes_error`.

    The Bayes error is the probability that the best guess of a report's sender, one of n people, is wrong. A report
    shows the true one of g buckets with probability theta; otherwise the bucket is uniform. For each g up to `largest`,
    theta is the largest with j theta + 1 - theta <= n (1 - bayes_error), j = min(n, k, g), for k values. If
    g <= n (1 - bayes_error), no noise is necessary (theta = 1): g buckets distinguish at most g people. The true bucket
    is then visible (local epsilon math.inf), but which of the about k/g values in it is the true one stays hidden.

    The variance is that of the estimated share of a value with true share `frequency`. For frequent values, few buckets
    without noise are best; for rare values, many buckets with noise.

    Raises:
        InvalidInputError: an argument out of range, or an error of 1 - 1/n or more.

    Source: docs/theory/identity.md, Theorem 3; docs/theory/estimation.md, Theorem 2.

    >>> import hushuffle as hs
    >>> hs.pie.best_hashing_for_error(0.92, k=10_500_393, n=1_370_637, frequency=1e-3).g
    109650
    """
    most, share = _limits(largest, frequency)
    k, n = _checks.integer("k", k, low=2), _checks.integer("n", n, low=1)
    allowed = math.floor(n * (1 - Fraction(_checks.probability("bayes_error", bayes_error))))
    candidates = {*_numbers_of_buckets(most), *(g for g in (allowed, allowed + 1, min(n, k)) if 2 <= g <= most)}

    def build(g: int) -> LocalHashing:
        return LocalHashing(k=k, g=g, epsilon=epsilon_for_error(bayes_error, n=n, k=k, g=g))

    return _best(candidates, build, n, share)


def _limits(largest: int, frequency: float) -> tuple[int, float]:
    return _checks.integer("largest", largest, low=2, high=LARGEST), _checks.probability("frequency", frequency)


def _numbers_of_buckets(most: int) -> set[int]:
    """Return 2, ..., most, about eight for each doubling, the powers of two among them."""
    steps = math.ceil(_STEPS * math.log2(most))
    return {most, *(min(round(2 ** (step / _STEPS)), most) for step in range(_STEPS, steps))}


def _best(sizes: Iterable[int], build: Callable[[int], LocalHashing], n: int, frequency: float) -> LocalHashing:
    return min((build(g) for g in sorted(sizes)), key=lambda hashing: _variance(hashing, n, frequency))


def _variance(hashing: LocalHashing, n: int, frequency: float) -> float:
    return float(frequency_variance(Protocol(randomizer=hashing, shuffler=UniformShuffle(), n=n)).worst(frequency))
