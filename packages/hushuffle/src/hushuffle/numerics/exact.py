"""Rationals and 120-digit decimals: logarithms with all digits, directed rounding, and sparse linear equations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.numerics.binomial import Floats

DIGITS: Final = 120
"""Decimal digits of every logarithm; at most 40 of them cancel in thresholds at a scale of 2**-64."""

WIDE: Final = Context(prec=DIGITS)
"""A decimal context of this module, so that the caller's decimal settings have no effect."""

_SHORT: Final = Context(prec=60)
_RARE: Final = Decimal(10) ** -60
_SLACK: Final = Decimal(10) ** -60  # far above the error of 120-digit arithmetic, far below that of floats


def to_decimal(value: Fraction) -> Decimal:
    return WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))


def log2(value: Fraction) -> Decimal:
    """Return the base-2 logarithm of `value` > 0 to about 118 digits.

    >>> round(log2(Fraction(10)), 6)
    Decimal('3.321928')
    """
    return WIDE.divide(WIDE.ln(to_decimal(value)), WIDE.ln(Decimal(2)))


def up(value: Decimal | Fraction) -> float:
    """Return a float >= `value`: the nearest or second nearest such float.

    >>> up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    wide = _wide(value)
    raised = WIDE.add(wide, WIDE.multiply(WIDE.abs(wide), _SLACK))
    nearest = float(raised)
    return nearest if Decimal(nearest) >= raised else math.nextafter(nearest, math.inf)


def down(value: Decimal | Fraction) -> float:
    """Return a float <= `value`: the nearest or second nearest such float.

    >>> down(Fraction(1, 10)) <= Fraction(1, 10)
    True
    """
    return 0.0 - up(WIDE.minus(_wide(value)))  # the result is 0.0, not -0.0


def log_upwards(ratio: Fraction, *, times: int = 1) -> float:
    """Return times * ln(ratio), ratio >= 1, rounded up to a float.

    >>> log_upwards(Fraction(3), times=2)
    2.1972245773362196
    """
    with localcontext(_SHORT):
        value = times * (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        # One part in 10**40, and 10**-50 for ratios near 1, exceed the rounding of quotient and logarithm.
        ceiling = value * (1 + Decimal(10) ** -40) + (Decimal(10) ** -50 if ratio > 1 else 0)
        nearest = float(ceiling)
        return nearest if Decimal(nearest) >= ceiling else math.nextafter(nearest, math.inf)


def _wide(value: Decimal | Fraction) -> Decimal:
    return to_decimal(value) if isinstance(value, Fraction) else value


def hypergeometric(urn: int, marked: int, drawn: int) -> list[tuple[int, Decimal]]:
    """Return (i, probability of i marked balls among the `drawn` balls) for each i, to about 110 digits.

    >>> [(i, round(chance, 3)) for i, chance in hypergeometric(4, 2, 2)]
    [(0, Decimal('0.167')), (1, Decimal('0.667')), (2, Decimal('0.167'))]
    """
    first, last = max(0, drawn - (urn - marked)), min(drawn, marked)
    start = Fraction(math.comb(marked, first) * math.comb(urn - marked, drawn - first), math.comb(urn, drawn))
    terms = [(first, to_decimal(start))]
    with localcontext(WIDE):
        for i in range(first, last):
            step = Fraction((marked - i) * (drawn - i), (i + 1) * (urn - marked - drawn + i + 1))
            terms.append((i + 1, terms[-1][1] * to_decimal(step)))
    return terms


def binomial(trials: int, chance: Fraction) -> list[tuple[int, Decimal]]:
    """Return (i, probability of i successes) for each i, to about 110 digits; omitted i have less than 1e-60 in total.

    >>> [(i, round(mass, 3)) for i, mass in binomial(2, Fraction(1, 4))]
    [(0, Decimal('0.562')), (1, Decimal('0.375')), (2, Decimal('0.062'))]
    """
    if chance in (0, 1):
        return [(trials * int(chance), Decimal(1))]
    mode = math.floor((trials + 1) * chance)
    with localcontext(WIDE):
        odds = to_decimal(chance / (1 - chance))
        top = math.comb(trials, mode) * to_decimal(chance) ** mode * to_decimal(1 - chance) ** (trials - mode)
        rising, falling = [(mode, top)], []
        while rising[-1][0] < trials and rising[-1][1] > _RARE / trials:
            i, mass = rising[-1]
            rising.append((i + 1, mass * odds * (trials - i) / (i + 1)))
        i, mass = mode, top
        while i > 0 and mass > _RARE / trials:
            i, mass = i - 1, mass * i / (odds * (trials - i + 1))
            falling.append((i, mass))
    return falling[::-1] + rising


def sum_upwards(parts: Iterable[float]) -> float:
    """Return the smallest float that is at least the exact sum of some floats.

    >>> sum_upwards([2.0] * 4), sum_upwards([0.1] * 3)
    (8.0, 0.30000000000000004)
    """
    listed = list(parts)
    return math.inf if math.inf in listed else upwards(sum(map(Fraction, listed), start=Fraction(0)))


def times_upwards(part: float, times: int) -> float:
    """Return the smallest float >= `times` * `part`.

    >>> times_upwards(2.0, 4), times_upwards(0.1, 3)
    (8.0, 0.30000000000000004)
    """
    return part if math.isinf(part) else upwards(times * Fraction(part))


def upwards(exact: Fraction) -> float:
    """Return the smallest float >= `exact`, or infinity if `exact` is above the largest float.

    >>> Fraction(upwards(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def downwards(exact: Fraction) -> float:
    """Return the largest float <= `exact`, for `exact` from 0 to the largest float.

    >>> Fraction(downwards(Fraction(1, 3))) <= Fraction(1, 3)
    True
    """
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


Row = dict[int, Fraction]


def solve(equations: Iterable[tuple[Mapping[int, Fraction], Fraction]], *, unknowns: int) -> list[Fraction] | None:
    """Return a solution x of the equations sum_i terms[i] x_i = value, one for each (terms, value); None without any.

    Free unknowns are set to 0. The method is Gauss-Jordan elimination; hundreds of unknowns take about a second.

    >>> [str(x) for x in solve([({0: Fraction(2), 1: Fraction(1)}, Fraction(1)), ({1: Fraction(3)}, Fraction(1))],
    ...                        unknowns=2)]
    ['1/3', '1/3']
    """
    solved: dict[int, tuple[Row, Fraction]] = {}  # by pivot: the rest of its row, scaled to pivot 1, and its value
    for terms, constant in sorted(equations, key=lambda equation: len(equation[0])):
        row, value = {i: c for i, c in terms.items() if c}, constant
        for pivot in [i for i in row if i in solved]:
            factor = row.pop(pivot)
            others, offset = solved[pivot]
            _subtract(row, others, factor)
            value -= factor * offset
        if not row:
            if value:
                return None
            continue
        pivot = min(row, key=lambda i: (row[i].denominator, i))
        scale = row.pop(pivot)
        row, value = {i: c / scale for i, c in row.items()}, value / scale
        for number, (others, offset) in solved.items():
            factor = others.pop(pivot, Fraction(0))
            if factor:
                _subtract(others, row, factor)
                solved[number] = others, offset - factor * value
        solved[pivot] = row, value
    zero = (Row(), Fraction(0))
    return [solved.get(i, zero)[1] for i in range(unknowns)]


def _subtract(row: Row, other: Row, factor: Fraction) -> None:
    for i, entry in other.items():
        left = row.get(i, Fraction(0)) - factor * entry
        if left:
            row[i] = left
        else:
            row.pop(i, None)


Complex = npt.NDArray[np.complex128]


def turn_parts(angle: Floats) -> tuple[Floats, Floats]:
    """Return 1 - cos and sin of angles, each with a relative error of at most 4 EPS.

    numpy computes the tangent of half an angle on some processors in a tenth of the time of a sine.

    >>> [part.round(12).tolist() for part in turn_parts(np.array([0.0, np.pi / 2]))]
    [[0.0, 1.0], [0.0, 1.0]]
    """
    tangent = np.tan(angle / 2)
    sine = 2 * tangent / (1 + tangent * tangent)
    return tangent * sine, sine


def exponential(real: Floats | float, angle: Floats) -> Complex:
    """Return e**(real + i angle) with an error of at most 8 EPS of its modulus."""
    value, (away, sine), size = np.empty(angle.shape, dtype=np.complex128), turn_parts(angle), np.exp(real)
    value.real, value.imag = size * (1 - away), size * sine
    return value


def log1p_parts(real: Floats, imaginary: Floats) -> tuple[Floats, Floats]:
    """Return ln|1 + z| and the angle of 1 + z; at z = -1 the logarithm is about -690.

    >>> [part.tolist() for part in log1p_parts(np.array([-1.0]), np.array([1.0]))]
    [[0.0], [1.5707963267948966]]
    """
    real, imaginary = np.broadcast_arrays(real, imaginary)
    square = real * (2 + real) + imaginary**2  # |1 + z|**2 - 1
    size = np.log1p(np.maximum(square, -0.5)) / 2
    far = square <= -0.5
    if far.any():
        size = np.where(far, 0.0, size)
        size[far] = np.log(np.maximum(np.hypot(1 + real[far], imaginary[far]), 1e-300))
    return size, np.arctan2(imaginary, 1 + real)


def complex_log1p(z: Complex) -> Complex:
    size, angle = log1p_parts(z.real, z.imag)
    return np.asarray(size + 1j * angle)
