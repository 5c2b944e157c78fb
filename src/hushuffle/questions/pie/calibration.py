"""The other way round: the weakest noise that keeps a re-identification promise, one report."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import ReportLaw, Symmetric
from hushuffle.numerics.exact import WIDE, down, log2, to_decimal
from hushuffle.numerics.roots import farthest
from hushuffle.randomness import SCALE

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

_SMALLEST: Final = 1e-12
_LARGEST: Final = 200.0
_CLOSE: Final = 1e-14


def epsilon_for_error(bayes_error: float, *, n: int, k: int, g: int | None = None) -> float:
    """Return the largest epsilon_0 of k-ary randomized response whose exact `bayes_error` is at least this.

    In nats, rounded down; math.inf if no noise is needed: few values (or buckets) cannot tell many people apart.
    With g, that of local hashing with g buckets whose lower bound of the error is at least this.

    Raises:
        InvalidInputError: an argument out of range, or an error of 1 - 1/n or more, which guessing at random beats.

    Source: docs/theory/identity.md, Theorem 3, solved for epsilon_0.

    >>> round(epsilon_for_error(0.5, n=100, k=1000), 4), epsilon_for_error(0.9, n=100, k=5)
    (6.8886, inf)
    """
    wanted = Fraction(_checks.probability("bayes_error", bayes_error))
    people, j, values = _sizes(n, k, g)
    allowed = people * (1 - wanted)  # j mu + (k-j) nu must not exceed `allowed`
    if allowed >= j:
        return math.inf
    if allowed <= 1:
        hint = "Guessing without any report is right once in n times."
        _checks.reject("bayes_error", f"below 1 - 1/n = {1 - 1 / people:.10g}", float(wanted), hint)
    growth = (allowed * (values - 1) - values + j) / (j - allowed)
    return down(WIDE.ln(to_decimal(growth)))


def epsilon_for_alpha(alpha_bits: float, *, n: int, k: int, g: int | None = None) -> float:
    """Return the largest epsilon_0 of k-ary randomized response whose exact `alpha` is at most `alpha_bits`.

    In nats, rounded down; math.inf if no noise is needed. With g, that of local hashing with g buckets whose upper
    bound of alpha is at most this.

    Raises:
        InvalidInputError: an argument out of range, or an alpha so small that theta < 2**-64.

    Source: docs/theory/identity.md, Theorem 1, by bisection over the thresholds that can be implemented.

    >>> round(epsilon_for_alpha(1.0, n=1_370_637, k=10_500_393), 4)
    13.3611
    """
    wanted = to_decimal(Fraction(_checks.non_negative("alpha_bits", alpha_bits)))
    _, j, values = _sizes(n, k, g)
    if float(log2(Fraction(j))) <= alpha_bits:
        return math.inf
    low = farthest(lambda threshold: _law(values, threshold).capacity(j)[1] <= wanted, good=0, bad=SCALE)
    if low == 0:
        _checks.reject("alpha_bits", f"large enough for theta >= 2**-64 at k={values}", alpha_bits)
    with localcontext(WIDE) as context:
        return down(context.ln(1 + to_decimal(Fraction(values * low, SCALE - low))))


def largest_epsilon(protocol: Protocol, meets: Callable[[ReportLaw], bool], **wanted: float) -> float:
    """Return the largest epsilon_0 of the mechanism whose law `meets` what is wanted, rounded down; it meets any below.

    Raises:
        InvalidInputError: none does; the message names what was `wanted`.
    """

    def there(epsilon: float) -> bool:
        return meets(protocol.randomizer.with_epsilon(epsilon).law())

    if there(math.inf):
        return math.inf
    low, high = _SMALLEST, _LARGEST
    if not there(low):
        name, value = next(iter(wanted.items()))
        _checks.reject(name, "a promise that some noise keeps", value)
    while high > math.nextafter(low, math.inf) and high - low > _CLOSE * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if there(middle) else (low, middle)
    return low


def _sizes(n: int, k: int, g: int | None) -> tuple[int, int, int]:
    """Return n, how many values (or buckets) n people can hold at once, and how many there are."""
    people, values = _checks.integer("n", n, low=1), _checks.integer("k", k, low=2, high=2**40)
    size = values if g is None else _checks.integer("g", g, low=2, high=2**40)
    return people, min(people, values, size), size


def _law(k: int, threshold: int) -> Symmetric:
    lie = Fraction(SCALE - threshold, SCALE * k)
    return Symmetric(k=k, truth=1 - (k - 1) * lie, lie=lie)
