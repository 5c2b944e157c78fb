from __future__ import annotations

import math
import typing

import pytest

from hushuffle.model import Bound, Kind, Population, Witness
from hushuffle.report.formatting import (
    KINDS_EXPLAINED,
    asked,
    attained,
    block,
    columns,
    decimals,
    figure,
    fixed,
    plain,
    plural,
    short,
)

ENDS: dict[Kind, tuple[float, float, float | None]] = {
    "exact": (0.5, 0.5, None),
    "bracket": (0.25, 0.26, None),
    "upper": (0.0, 0.3, None),
    "lower": (0.3, 1.0, None),
    "estimate": (0.4, 0.5, 0.95),
    "approximation": (0.5, 0.5, None),
}


@pytest.mark.parametrize("kind", typing.get_args(Kind))
def test_figure_and_kind_are_the_two_pieces_of_the_bound(kind: Kind) -> None:
    lower, upper, confidence = ENDS[kind]
    for unit in ("nats", "probability"):
        bound = Bound(lower=lower, upper=upper, kind=kind, unit=unit, confidence=confidence)
        shown = figure(bound)
        assert f"{shown.value} ({shown.kind})" == str(bound)
        explained = [word for word, _ in KINDS_EXPLAINED]
        assert shown.kind in explained or ("interval" in shown.kind and kind == "estimate")


def test_an_infinite_figure_is_a_word() -> None:
    assert figure(Bound.exact(math.inf, unit="nats")).value == "infinity nats"


@pytest.mark.parametrize("hidden", ["\x00", "\x1b", "\x9b", "\u202e", "\u2066", "\ud800"])
def test_controls_never_reach_a_page_or_a_terminal(hidden: str) -> None:
    assert plain(f"a{hidden}b") == "a\N{REPLACEMENT CHARACTER}b"
    assert block(f"a{hidden}\n\tb") == "a\N{REPLACEMENT CHARACTER}\n\tb"


def test_text_of_all_scripts_stays() -> None:
    for text in ("naïve", "日本語", "שלום", "👩‍🔬", "a\u200fb"):
        assert plain(text) == text


def test_columns_count_wide_and_combining_characters() -> None:
    assert columns("abc") == 3
    assert columns("日本") == 4
    assert columns("e\u0301") == 1


@pytest.mark.parametrize("text", ["short", "x" * 200, "日本語" * 30, "two words " * 20])
@pytest.mark.parametrize("most", [5, 18, 40])
def test_short_text_fits(text: str, most: int) -> None:
    shown = short(text, most)
    assert columns(shown) <= most
    assert shown == text or shown.endswith("…")


def test_decimals_show_three_digits_of_the_smallest_error() -> None:
    assert decimals([0.00533, 0.021]) == 5
    assert decimals([0.3]) == 3
    assert decimals([1e-12]) == 8
    assert decimals([0.0, math.inf]) == 4
    assert decimals([]) == 4


def test_fixed_numbers() -> None:
    assert fixed(-0.0001, 2) == "0.00"
    assert fixed(-0.1, 2) == "-0.10"
    assert fixed(math.inf, 2) == "infinity"
    assert fixed(-math.inf, 2) == "-infinity"


def test_plural() -> None:
    assert plural(1, "run") == "1 run"
    assert plural(0, "run") == "0 runs"
    assert plural(2, "person", "people") == "2 people"


def test_witness_names_values_by_their_labels_and_counts_out_six() -> None:
    witness = Witness(family="spread", others=(1,) * 9, target=(0, 8))
    labels = tuple("abcdefghi")
    expected = '1 at "a", 1 at "b", 1 at "c", 1 at "d", 1 at "e", 1 at "f", and 3 more values; target "a" against "i"'
    assert attained(witness, labels) == f"spread (others: {expected})"


def test_witness_over_other_values_than_the_labels_names_codes() -> None:
    witness = Witness(family="alone", others=(0, 0, 0), target=(0, 2))
    assert attained(witness, ("no", "yes")) == 'alone (others: none; target "0" against "2")'


def test_population_in_one_sentence() -> None:
    people = Population(n=1, labels=("no", "yes"), source="n given")
    assert asked(people) == "Population: 1 person, 2 values; n given."
