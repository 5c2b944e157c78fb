"""`Bound`, `Bounds`, `Guarantee`, `Witness`: figures that state whether they are exact, proven bounds or estimates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import notebook
from hushuffle.model.citation import Citation

Kind = Literal["exact", "bracket", "upper", "lower", "estimate", "approximation"]
KINDS: tuple[Kind, ...] = get_args(Kind)


_ROUNDED = 1e-9
"""Probability bounds within this distance of 0 or 1, or outside [0, 1], are set to 0 or 1."""

_TINY = 1e-9
"""Percentages below this value are written with an exponent."""


@dataclass(frozen=True, kw_only=True)
class Witness:
    """An explicit pair of neighbouring datasets at which a lower bound is attained.

    `others` counts the other people by value, without trailing zeros. For an informed adversary it counts only people
    with known values. The target's value is `target[0]` in the first dataset and `target[1]` in the second.
    """

    family: str
    others: tuple[int, ...]
    target: tuple[int, int]

    def __post_init__(self) -> None:
        last = max((value for value, count in enumerate(self.others) if count), default=-1)
        object.__setattr__(self, "others", tuple(self.others[: last + 1]))

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} at {value}" for value, count in enumerate(self.others) if count)
        return f"{self.family} (others: {counts or 'none'}; target {self.target[0]} against {self.target[1]})"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A figure with its certainty: the true value lies in [lower, upper] (for an estimate, with `confidence`).

    `kind` is `exact` (lower == upper up to the floating-point error stated where it is computed), `bracket` (both
    bounds are proven), `upper` or `lower` (the other bound is trivial), `estimate` (an interval that holds with
    probability `confidence`), or `approximation` (lower == upper, but the true value may be smaller or larger). `unit`
    is "nats", "bits", "probability", or another plain word. `sources` cite the formula or proof.

    Raises:
        InvalidInputError: the bounds are out of order or nan; an exact or approximate figure has two different
            bounds; or an estimate has no confidence, or another kind has one.

    Source: docs/explanation/kinds-of-figures.md.

    >>> import hushuffle as hs
    >>> print(hs.Bound(lower=0.25, upper=0.26, kind="bracket", unit="nats"))
    0.2500 to 0.2600 nats (certified bracket)
    """

    lower: float
    upper: float
    kind: Kind
    unit: str
    sources: tuple[Citation, ...] = ()
    witness: Witness | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.unit == "probability":
            object.__setattr__(self, "lower", _a_probability(self.lower))
            object.__setattr__(self, "upper", _a_probability(self.upper))
        if self.kind not in KINDS:
            _checks.reject("kind", f"one of {', '.join(KINDS)}", self.kind)
        if math.isnan(self.lower) or math.isnan(self.upper) or self.lower > self.upper:
            _checks.reject("lower, upper", "two numbers in order", (self.lower, self.upper))
        if self.kind in ("exact", "approximation") and self.lower != self.upper:
            _checks.reject("lower, upper", f"equal when kind is {self.kind}", (self.lower, self.upper))
        if (self.kind == "estimate") != (self.confidence is not None):
            _checks.reject("confidence", "given exactly when kind is estimate", self.confidence)
        if self.confidence is not None:
            _checks.probability("confidence", self.confidence, low_open=True, high_open=True)

    @classmethod
    def exact(
        cls, value: float, *, unit: str, sources: tuple[Citation, ...] = (), witness: Witness | None = None
    ) -> Self:
        """Return the exact bound at `value`."""
        return cls(lower=value, upper=value, kind="exact", unit=unit, sources=sources, witness=witness)

    @property
    def width(self) -> float:
        """The width, upper - lower; it is 0 if both bounds are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def complement(self) -> Self:
        """The figure 1 - p for a probability p; for example, the success rate for an error rate.

        >>> print(Bound(lower=0.75, upper=1.0, kind="lower", unit="probability").complement)
        at most 0.2500 (upper bound)
        """
        turned: dict[Kind, Kind] = {"lower": "upper", "upper": "lower"}
        kind = turned.get(self.kind, self.kind)
        return replace(self, lower=1 - self.upper, upper=1 - self.lower, kind=kind)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        unit = {"probability": "", "": ""}.get(self.unit, f" {self.unit}")
        match self.kind:
            case "exact":
                people = self.unit == "people"  # people are counted in whole numbers
                return f"{f'{self.upper:,.0f}' if people else number(self.upper)}{unit} (exact)"
            case "upper":
                return f"at most {number(self.upper, up=True)}{unit} (upper bound)"
            case "lower":
                return f"at least {number(self.lower, up=False)}{unit} (lower bound)"
            case "approximation":
                return f"{number(self.upper)}{unit} (approximation, never a guarantee)"
            case "bracket":
                return f"{_pair(self.lower, self.upper)}{unit} (certified bracket)"
            case _:
                assert self.confidence is not None
                return f"{_pair(self.lower, self.upper)}{unit} ({100 * self.confidence:.6g}% interval)"

    def _repr_html_(self) -> str:
        figure, _, kind = str(self).rpartition(" (")
        return notebook.line(figure, kind.removesuffix(")"))

    def as_dict(self) -> dict[str, Any]:
        """Return the figure as a mapping for JSON: bounds (infinity as text), kind, unit, sources, confidence, witness.

        >>> import json
        >>> print(json.dumps(Bound(lower=1.0, upper=math.inf, kind="lower", unit="nats").as_dict()))
        {"lower": 1.0, "upper": "infinity", "kind": "lower", "unit": "nats", "sources": []}
        """
        fields: dict[str, Any] = {"lower": json_number(self.lower), "upper": json_number(self.upper)}
        fields |= {"kind": self.kind, "unit": self.unit}
        fields["sources"] = [f"{source.text} {source.where}".strip() for source in self.sources]
        if self.confidence is not None:
            fields["confidence"] = self.confidence
        if self.witness is not None:
            fields["witness"] = asdict(self.witness)
        return fields


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds:
    """An array of figures; each true value lies between the entries of `lower` and `upper`, which have one shape.

    `bounds[i]` is a `Bound`. `kind` is "exact" if every figure is exact, "upper" if all lower bounds are trivial,
    "lower" if all upper bounds are trivial, else "bracket".

    Raises:
        InvalidInputError: `lower` and `upper` differ in shape, or bounds are out of order.

    >>> import hushuffle as hs
    >>> print(hs.Bounds(lower=np.array([0.25]), upper=np.array([0.26]), kind="bracket", unit="nats")[0])
    0.2500 to 0.2600 nats (certified bracket)
    """

    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    kind: Kind
    unit: str
    sources: tuple[Citation, ...] = ()

    def __post_init__(self) -> None:
        if self.lower.shape != self.upper.shape or not bool(np.all(self.lower <= self.upper)):
            shapes = f"<shapes {self.lower.shape} and {self.upper.shape}>"
            _checks.reject("lower, upper", "two arrays of the same shape, with lower <= upper", shapes)
        for ends in (self.lower, self.upper):
            ends.setflags(write=False)

    def __getitem__(self, index: Any) -> Any:
        """Return the figure at `index` as a `Bound`; if `index` selects several figures, return them as `Bounds`."""
        lower, upper = self.lower[index], self.upper[index]
        if np.ndim(lower):
            return Bounds(lower=lower, upper=upper, kind=self.kind, unit=self.unit, sources=self.sources)
        kind: Kind = "upper" if self.kind == "bracket" and lower == 0 else self.kind
        return Bound(lower=float(lower), upper=float(upper), kind=kind, unit=self.unit, sources=self.sources)

    def __len__(self) -> int:
        return len(self.lower)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A guarantee of (epsilon, delta)-differential privacy for one relation between datasets.

    `epsilon` is a `Bound` in nats, computed at `delta`. `per` is the unit of protection: neighbouring
    datasets differ in one "person", "column" or "message".
    """

    epsilon: Bound
    delta: float
    relation: str = "replace one person's value, n fixed"
    per: str = "person"

    def __post_init__(self) -> None:
        _checks.probability("delta", self.delta, high_open=True)
        if self.epsilon.unit != "nats":
            _checks.reject("epsilon", "a Bound in nats", self.epsilon.unit)
        if self.epsilon.kind == "approximation":
            hint = "An estimate may be below the true value: compute a certified bound instead."
            _checks.reject("epsilon", "exact, a bound or an estimate", self.epsilon.kind, hint)

    @property
    def lower(self) -> float:
        """The lower bound of epsilon (nats)."""
        return self.epsilon.lower

    @property
    def upper(self) -> float:
        """The upper bound of epsilon (nats), which is the value that is guaranteed."""
        return self.epsilon.upper

    def __str__(self) -> str:
        return f"epsilon {self.epsilon} at delta = {self.delta:g}, per {self.per} ({self.relation})"


def _a_probability(value: float) -> float:
    """Return 0 or 1 if rounding errors put `value` slightly outside [0, 1], else `value`."""
    return min(max(value, 0.0), 1.0) if -_ROUNDED <= value <= 1 + _ROUNDED else value


def json_number(value: float) -> float | str:
    """Return a number for JSON, in which infinity is the text "infinity".

    >>> json_number(2.0), json_number(math.inf)
    (2.0, 'infinity')
    """
    return value if math.isfinite(value) else "infinity"


def number(value: float, *, up: bool | None = None, digits: int = 4) -> str:
    """Format `value` with `digits` significant digits: rounded up if `up`, down if not `up`, to nearest if None.

    Values near 1 get additional digits, so that a probability below 1 is never shown as 1.

    >>> number(0.52111, up=True), number(0.52111, up=False), number(1234567.0), number(0.9999999842)
    ('0.5212', '0.5211', '1,234,567', '0.99999998')
    """
    value = float(value)
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if value == 0:
        return "0"
    if value.is_integer() and 10**digits <= abs(value) < 1e12:
        return f"{value:,.0f}"
    exact = Decimal(repr(value))
    places = digits - 1 - exact.adjusted()
    if Decimal("1e-9") <= 1 - exact < Decimal(10) ** -places:
        places = -(1 - exact).adjusted()
    rounding = ROUND_HALF_UP if up is None else ROUND_CEILING if up else ROUND_FLOOR
    rounded = exact.quantize(Decimal(1).scaleb(-places), rounding=rounding)
    if 10**digits <= abs(rounded) < 10**12:
        return f"{int(rounded):,}"
    if Decimal("0.001") <= abs(rounded) < 10**digits:
        return f"{rounded:f}"
    return f"{float(rounded):.{digits - 1}e}"


def _pair(lower: float, upper: float) -> str:
    """Format two bounds, rounded outward; bounds that agree to six digits become one number, rounded up."""
    if lower == upper or (math.isfinite(upper) and upper - lower <= 1e-6 * abs(upper)):
        return number(upper, up=True)
    return f"{number(lower, up=False)} to {number(upper, up=True)}"


def percent(share: float, *, up: bool | None = None) -> str:
    """Format a probability as a percentage: rounded up if `up`, down if not `up`, to nearest if None.

    >>> percent(0.521112, up=True), percent(1 / 3), percent(1.0), percent(0.00000482241, up=True)
    ('52.12 %', '33.33 %', '100 %', '0.000483 %')
    """
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    digits = 4 if share >= 0.1 else 3
    if share > 0.999:  # enough digits to distinguish it from 100 %
        return f"{100 * (1 - float(number(1 - share, up=None if up is None else not up, digits=2))):.12g} %"
    written = number(float(100 * Decimal(repr(share))), up=up, digits=digits)
    return f"{Decimal(written):f} %" if _TINY <= share < 1 else f"{written} %"


def as_bound(cell: object) -> Bound | None:
    """Return the cell of a table if it is a bound, else None."""
    return cell if isinstance(cell, Bound) else None
