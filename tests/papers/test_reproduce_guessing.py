"""Points of the recomputed figures against oracles that share no code with the product."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import Bound, Chart, Claim, Report
from hushuffle_papers.base import claim, falling, first_below, said, sizes
from hushuffle_papers.jurado2023.limits import normal_maximum
from hushuffle_papers.registry import Request, reproduce
from oracles.qif_guessing import channel, histogram_law, success
from oracles.qif_max_load import by_partitions


@cache
def study(name: str) -> Report:
    return reproduce(name, Request())


def at(chart: Chart, label: str, x: float) -> tuple[float, float]:
    (line,) = (series for series in chart.series if series.label == label)
    place = line.x.index(x)
    return line.lower[place], line.upper[place]


def chart(made: Report, key: str) -> Chart:
    (found,) = (one for one in made.charts if one.key == key)
    return found


def after_both(k: int, p: Fraction, n: int) -> float:
    """Return p V + (1 - p)/(k - 1) (1 - V), V the expected share of the fullest cell, in exact rationals."""
    share = by_partitions(n, k) / n
    return float(p * share + (1 - p) / (k - 1) * (1 - share))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 50])
@pytest.mark.parametrize("p", [Fraction(1), Fraction(4, 5), Fraction(3, 5)])
def test_figure_2(n: int, p: Fraction) -> None:
    label = f"p = {float(p):g}" if p < 1 else "p = 1, shuffle alone"
    exact = after_both(2, p, n)
    for value in at(chart(study("jurado2023/figure-2"), "noise-and-shuffle-few"), label, n):
        assert value == pytest.approx(exact, rel=1e-12)


def test_figure_2_by_enumeration() -> None:
    for n in (1, 2, 4):
        exact = float(success([None] * (n - 1), channel(2, Fraction(4, 5))))
        value, _ = at(chart(study("jurado2023/figure-2"), "noise-and-shuffle-few"), "p = 0.8", n)
        assert value == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("held", [0, 10, 100])
@pytest.mark.parametrize("p", [Fraction(4, 5), Fraction(99, 100)])
def test_figure_3(held: int, p: Fraction) -> None:
    others = [[math.comb(count, a) * float(p) ** a * float(1 - p) ** (count - a) for a in range(count + 1)]
              for count in (held, 200 - held)]  # fmt: skip
    second = others[1][::-1]
    law = [
        sum(others[0][i] * second[a - i] for i in range(max(0, a - 200 + held), min(a, held) + 1)) for a in range(201)
    ]
    exact = 0.5 + (float(p) - 0.5) * max(law)
    assert at(chart(study("jurado2023/figure-3"), "all"), f"p = {float(p):g}", held)[1] == pytest.approx(
        exact, rel=1e-9
    )


def test_the_law_behind_that_check() -> None:
    """The same formula where every histogram can be enumerated: 3 others say a, 2 say b."""
    p = Fraction(4, 5)
    matrix = channel(2, p)
    best = max(histogram_law([0, 0, 0, 1, 1], matrix).values())
    assert success([0, 0, 0, 1, 1], matrix) == Fraction(1, 2) + (p - Fraction(1, 2)) * best


def test_figure_3_says_what_the_paper_says() -> None:
    first, *others = study("jurado2023/figure-3").claims
    assert (first.printed, first.ours) == ("0.52111 and 0.52116", "0.52111 and 0.52116.")
    assert {claim.verdict for claim in (first, *others)} == {"confirmed"}
    assert "at p = 0.99 the success rate goes from 0.6333" in others[-1].reason


def test_the_fall_is_not_exponential() -> None:
    (claim,) = (one for one in study("jurado2023/figure-2").claims if "exponentially" in one.sentence)
    assert (claim.verdict, claim.place) == ("contradicted", "section IV-B")


@pytest.mark.parametrize(("k", "p", "n"), [(5, 0.7, 8), (5, 1.0, 30), (10, 0.5, 12), (10, 0.2, 20)])
def test_figure_4(k: int, p: float, n: int) -> None:
    label = f"p = {p:g}" if p < 1 else "p = 1, shuffle alone"
    value, _ = at(chart(study("jurado2023/figure-4"), f"noise-and-shuffle-few-{k}"), label, n)
    assert value == pytest.approx(after_both(k, Fraction(p).limit_denominator(10), n), rel=1e-12)


@pytest.mark.parametrize(("k", "n"), [(2, 100), (5, 42), (10, 32), (20, 18), (100, 10)])
def test_figure_5(k: int, n: int) -> None:
    value, _ = at(chart(study("jurado2023/figure-5"), "within"), f"{k} values", n)
    assert value == pytest.approx(after_both(k, Fraction(1), n), rel=1e-12)


def test_figure_6_and_7_show_the_formula_next_to_the_exact_figure() -> None:
    for name, key, p in (
        ("jurado2023/figure-6", "exact-and-approximate", Fraction(1)),
        ("jurado2023/figure-7", "exact-and-approximate-0.8", Fraction(4, 5)),
    ):
        made = chart(study(name), key)
        for k, n in ((2, 100), (10, 32), (100, 10)):
            lie = (1 - float(p)) / (k - 1)
            share = 1 / k + math.sqrt(2 * math.log(k) / (n * k))
            formula = float(p) * share + lie * (1 - share)
            assert at(made, f"{k} values, approximate", n)[0] == pytest.approx(formula, rel=1e-12)
            assert at(made, f"{k} values, exact", n)[0] == pytest.approx(after_both(k, p, n), rel=1e-12)


def test_the_constant_of_figure_6() -> None:
    assert normal_maximum(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-9)
    assert normal_maximum(3) == pytest.approx(1.5 / math.sqrt(math.pi), rel=1e-9)
    (ratios,) = (one for one in study("jurado2023/figure-6").charts if one.key == "ratio")
    for series, k in zip(ratios.series, (2, 10, 100), strict=True):
        assert series.upper[-1] == pytest.approx(math.sqrt(2 * math.log(k)) / normal_maximum(k), rel=5e-3)


@pytest.mark.parametrize("number", range(1, 6))
def test_tables_are_channels_and_everything_printed_is_confirmed(number: int) -> None:
    made = study(f"jurado2023/table-{number}")
    for table, picture in zip(made.tables, made.heat_maps, strict=True):
        for row, values in zip(table.rows, picture.values, strict=True):
            entries = [Fraction(str(cell)) for cell in row[1:]]
            assert sum(entries) == 1
            assert [float(entry) for entry in entries] == list(values)
    lost = number == 4  # the text of the paper has no entries of this table
    assert {claim.verdict for claim in made.claims} == {"not testable" if lost else "confirmed"}


def test_table_3_against_enumeration() -> None:
    (table,) = study("jurado2023/table-3").tables
    matrix = channel(2, Fraction(4, 5))
    for row in table.rows:
        law = histogram_law(["ab".index(letter) for letter in str(row[0])], matrix)
        assert [Fraction(str(cell)) for cell in row[1:]] == [law[3 - b, b] for b in range(4)]


def test_knowing_more_never_helps_less() -> None:
    made = study("jurado2023/figure-3-knowledge")
    for row in made.tables[0].rows:
        figures = [cell for cell in row[2:] if isinstance(cell, Bound)]
        assert len(figures) == 5
        assert all(a.lower <= b.upper for a, b in pairwise(figures))
        assert figures[0].kind == "exact"
    assert [finding.bound.kind for finding in made.findings] == ["exact", "bracket", "bracket"]


@pytest.mark.parametrize(("p", "k"), [(0.9, 2), (0.6, 2), (0.5, 5), (0.3, 10)])
def test_where_the_shuffle_passes_below_noise(p: float, k: int) -> None:
    n = first_below(p, k)
    assert float(by_partitions(n, k) / n) < p
    assert float(by_partitions(n - 1, k) / (n - 1)) >= p


def test_words() -> None:
    yes, no = (True, False)
    assert claim("Figure 1", "A.", yes, "B.", quote="a").verdict == "confirmed"
    assert claim("Figure 1", "A.", no, "B.", quote="a").verdict == "contradicted"
    elsewhere = claim("Figure 1", "A.", no, "B.", quote="a", data="9 people.", stand_in="Another city.")
    assert (elsewhere.verdict, elsewhere.reason, elsewhere.data) == (
        "differs on other data",
        "Another city.",
        "9 people.",
    )
    held = claim("Figure 1", "A.", yes, "B.", quote="a", data="9 people.", stand_in="Another city.")
    assert (held.verdict, held.data) == ("holds on other data", "9 people. Another city.")
    assert claim("Figure 1", "A.", None, "B.", quote="a", reason="Too few.").verdict == "not testable"
    reason = "The curve has too few points to confirm or contradict the claim."
    assert claim("Figure 1", "A.", falling([2.0]), "B.", quote="a").reason == reason
    with pytest.raises(InvalidInputError, match="must be one of confirmed"):
        Claim(place="", quote="", sentence="", ours="", verdict="sort of")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="must be set"):
        Claim(place="", quote="", sentence="", ours="", verdict="not testable")
    assert said(Bound(lower=0.25, upper=0.26, kind="bracket", unit="")) == "0.2500 to 0.2600"
    assert said(Bound.exact(0.25, unit="")) == "0.2500"
    assert sizes(10, 10, 3) == [10]
