from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushuffle.errors import InvalidInputError
from hushuffle.model import Bound, Citation, Guarantee, Witness, number
from hushuffle.model.citation import WARNER


def read(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"kind": "guess"},
            r"`kind` must be one of exact, bracket, upper, lower, estimate, approximation, got kind=guess",
        ),
        ({"lower": 0.3, "upper": 0.2}, r"`lower, upper` must be two numbers in order, got .*\(0.3, 0.2\)"),
        ({"lower": math.nan}, r"`lower, upper` must be two numbers in order"),
        ({"upper": math.nan}, r"`lower, upper` must be two numbers in order"),
        ({"kind": "exact"}, r"`lower, upper` must be equal when kind is exact, got .*\(0.1, 0.2\)"),
        ({"kind": "approximation"}, r"`lower, upper` must be equal when kind is approximation"),
        ({"kind": "estimate"}, r"`confidence` must be given exactly when kind is estimate, got confidence=None"),
        ({"confidence": 0.9}, r"`confidence` must be given exactly when kind is estimate, got confidence=0.9"),
        ({"kind": "estimate", "confidence": 1.0}, r"`confidence` must be in \(0, 1\), got confidence=1.0"),
    ],
)
def test_a_bound_that_exists_is_valid(fields: dict[str, Any], message: str) -> None:
    good = {"lower": 0.1, "upper": 0.2, "kind": "bracket", "unit": "nats"}
    with pytest.raises(InvalidInputError, match=message):
        Bound(**{**good, **fields})


@pytest.mark.parametrize(
    ("bound", "printed"),
    [
        (Bound.exact(0.52111, unit="probability"), "0.5211 (exact)"),
        (Bound.exact(2, unit="bits"), "2.000 bits (exact)"),
        (Bound.exact(0.0, unit=""), "0 (exact)"),
        (Bound(lower=0, upper=0.52111, kind="upper", unit="nats"), "at most 0.5212 nats (upper bound)"),
        (Bound(lower=0.52119, upper=1, kind="lower", unit="probability"), "at least 0.5211 (lower bound)"),
        (Bound(lower=0.31234, upper=0.31236, kind="bracket", unit="nats"), "0.3123 to 0.3124 nats (certified bracket)"),
        (Bound(lower=0.5, upper=0.5, kind="bracket", unit="nats"), "0.5000 nats (certified bracket)"),
        (
            Bound(lower=1.25, upper=1.75, kind="estimate", unit="bits", confidence=0.95),
            "1.250 to 1.750 bits (95% interval)",
        ),
    ],
)
def test_a_bound_prints_as_a_number_with_its_kind(bound: Bound, printed: str) -> None:
    assert str(bound) == printed


def test_two_nearly_equal_ends_are_shown_as_one_rounded_up() -> None:
    near = Bound(lower=0.52111, upper=0.521110001, kind="bracket", unit="nats")
    assert str(near) == "0.5212 nats (certified bracket)"


def test_a_bracket_open_above_shows_its_lower_end() -> None:
    open_above = Bound(lower=2.0, upper=math.inf, kind="bracket", unit="nats")
    assert str(open_above) == "2.000 to infinity nats (certified bracket)"


def test_a_bracket_at_infinity_is_one_number() -> None:
    assert str(Bound(lower=math.inf, upper=math.inf, kind="bracket", unit="nats")).startswith("infinity nats")


def test_width_and_membership() -> None:
    bracket = Bound(lower=0.25, upper=0.75, kind="bracket", unit="nats")
    assert bracket.width == 0.5
    assert 0.25 in bracket
    assert 0.75 in bracket
    assert 0.76 not in bracket
    assert Bound.exact(math.inf, unit="nats").width == 0.0
    assert Bound(lower=1.0, upper=math.inf, kind="lower", unit="nats").width == math.inf


def test_a_bound_is_a_frozen_value() -> None:
    first = Bound.exact(1.0, unit="nats", sources=(WARNER,))
    assert first == Bound.exact(1.0, unit="nats", sources=(WARNER,))
    assert hash(first) == hash(Bound.exact(1.0, unit="nats", sources=(WARNER,)))
    with pytest.raises(FrozenInstanceError):
        first.upper = 0.5  # type: ignore[misc]


def test_a_witness_reads_as_a_dataset() -> None:
    witness = Witness(family="one value", others=(0, 1234, 3), target=(0, 2))
    assert str(witness) == "one value (others: 1,234 at 1, 3 at 2; target 0 against 2)"
    assert str(Witness(family="alone", others=(0, 0), target=(0, 1))) == "alone (others: none; target 0 against 1)"
    assert Bound.exact(1.0, unit="nats", witness=witness).witness == witness


def test_a_guarantee_says_everything() -> None:
    epsilon = Bound(lower=0.0, upper=0.25, kind="upper", unit="nats")
    said = str(Guarantee(epsilon=epsilon, delta=1e-6))
    assert said == (
        "epsilon at most 0.2500 nats (upper bound) at delta = 1e-06, per person (replace one person's value, n fixed)"
    )
    with pytest.raises(InvalidInputError, match=r"`delta` must be in \[0, 1\), got delta=1.0"):
        Guarantee(epsilon=epsilon, delta=1.0)
    with pytest.raises(InvalidInputError, match=r"`epsilon` must be a Bound in nats, got epsilon=bits"):
        Guarantee(epsilon=Bound.exact(1.0, unit="bits"), delta=0.0)


def test_a_citation_reads_as_a_reference() -> None:
    source = Citation(key="a", text="A. Author, A title (2020)")
    assert str(source) == "A. Author, A title (2020)"
    assert str(source.at("Theorem 1")) == "A. Author, A title (2020), Theorem 1"
    assert source.at("Theorem 1").key == "a"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.0, "0"),
        (math.inf, "infinity"),
        (-math.inf, "-infinity"),
        (0.12345, "0.1235"),
        (1.0, "1.000"),
        (12.5, "12.50"),
        (1234.0, "1234"),
        (12345.0, "12,345"),
        (12345.6, "12,350"),
        (1e12, "1.000e+12"),
        (0.00012345, "1.235e-04"),
        (-0.5, "-0.5000"),
    ],
)
def test_numbers_as_text(value: float, printed: str) -> None:
    assert number(value) == printed


@pytest.mark.parametrize(
    ("value", "floor", "ceiling"),
    [
        (0.1, "0.1000", "0.1000"),
        (0.123412, "0.1234", "0.1235"),
        (0.99999, "0.99999", "0.99999"),
        (9999.6, "9999", "10,000"),
        (0.00099999, "9.999e-04", "0.0010000"),
        (-0.123412, "-0.1235", "-0.1234"),
        (1.37e-7, "1.370e-07", "1.370e-07"),
        (123456.7, "123,400", "123,500"),
    ],
)
def test_numbers_rounded_outward(value: float, floor: str, ceiling: str) -> None:
    assert (number(value, up=False), number(value, up=True)) == (floor, ceiling)


@given(st.floats(1e-290, 1e290) | st.floats(-1e290, -1e-290), st.integers(2, 8))
def test_outward_text_is_outward_but_for_a_billionth(value: float, digits: int) -> None:
    slack = 2e-9 * abs(value)
    assert read(number(value, up=True, digits=digits)) >= value - slack
    assert read(number(value, up=False, digits=digits)) <= value + slack
    assert abs(read(number(value, digits=digits)) - value) <= abs(value) * 10.0 ** (1 - digits)


def test_outward_text_is_outward() -> None:
    assert read(number(0.50000000001, up=True)) >= 0.50000000001


def test_the_smallest_number_has_a_text() -> None:
    assert read(number(5e-324, up=True)) > 0


def test_a_probability_just_below_one_is_not_printed_as_one() -> None:
    assert read(str(Bound.exact(0.99999995, unit="probability")).split()[0]) < 1


def test_high_confidence_is_not_certainty() -> None:
    bound = Bound(lower=0.0, upper=1.0, kind="estimate", unit="bits", confidence=0.999)
    assert "99.9%" in str(bound)


def test_a_probability_stays_in_its_range() -> None:
    rounded = Bound(lower=-1e-17, upper=1.0000000000000009, kind="bracket", unit="probability")
    assert (rounded.lower, rounded.upper) == (0.0, 1.0)
    assert Bound.exact(1 + 1e-12, unit="nats").upper > 1
