"""The page that compares one message with several: some rows computed anew, and what is said of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import script

ROOT = Path(__file__).parent.parent
messages = script("benchmarks/messages")
PAGE = (ROOT / "docs" / "reference" / "estimation-benchmark.md").read_text(encoding="utf-8")


def table(name: str) -> str:
    """What the benchmark wrote under a name."""
    return PAGE.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]


def rows(name: str) -> list[str]:
    return re.findall(r"^\| [\d,]+ \|.*$", table(name), flags=re.MULTILINE)


SUMS, LINES, MANY = rows("summed"), rows("compared"), rows("many")


def cells(n: int, k: int, name: str) -> list[str]:
    (line,) = [line for line in LINES if line.startswith(f"| {n:,} | {k:,} | {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][3:]


def test_sums_are_what_the_benchmark_prints() -> None:
    assert all(messages.split_number(n) in SUMS for n in (10**4, 10**6))
    assert all(float(row.split("|")[3]) < 1.1 for row in SUMS if "split" in row)
    assert all(float(row.split("|")[3]) > 2 for row in SUMS if "noisy" in row)


@pytest.mark.slow
def test_the_mean_from_noisy_reports_is_what_the_benchmark_prints() -> None:
    assert messages.one_number(10**4) in SUMS


def test_every_protocol_has_its_rows() -> None:
    assert len(LINES) == len(messages.GRID) * len(messages.PROTOCOLS)


@pytest.mark.parametrize("name", messages.PROTOCOLS)
def test_rows_are_what_the_benchmark_prints(name: str) -> None:
    for n, k in ((10**6, 1_000), (10**4, 100)):
        assert messages.row(name, n, k) in LINES


def test_further_messages_come_near_the_central_mechanism() -> None:
    """At 1.2 messages of each person, or fewer, within 1.5 times of it: a million people and 1,000 values."""
    rare, common, number, *_ = map(float, cells(10**6, 1_000, "blanket messages")[:3])
    assert max(rare, common) < 1.1
    assert number < 1.05


def test_the_error_of_one_message_grows_with_the_value() -> None:
    for n, k in messages.GRID:
        rare, common = map(float, cells(n, k, "one noisy message")[:2])
        assert common > 3 * rare or k == 2 or common > 2 * rare
        same = cells(n, k, "blanket messages")
        assert same[0] == same[1]


def test_some_forty_messages_hide_each_value_whatever_the_number_of_people() -> None:
    for n, k in messages.GRID:
        if k > 2:
            besides = (float(cells(n, k, "blanket messages")[2]) - 1) * n / k
            assert 38 < besides < 46


@pytest.mark.parametrize(("place", "most"), [(0, 1.1), (1, 1.6)])
def test_what_was_collected_is_as_accurate_as_predicted(place: int, most: float) -> None:
    cells = re.findall(r"([\d.]+) people \| ([\d.]+) people \|$", table("collected"), flags=re.MULTILINE)
    predicted, measured, central = (float(pair[place]) for pair in cells)
    assert abs(measured / predicted - 1) < 0.15
    assert predicted < most * central


def many(n: int, k: int, name: str) -> tuple[float, float, float]:
    """The errors of a rare value and of a tenth, and the messages."""
    (line,) = [line for line in MANY if line.startswith(f"| {n:,} | {k:,} | {name} |")]
    rare, common, messages = (float(cell.replace(",", "")) for cell in line.split("|")[5:8])
    return rare, common, messages


def test_hashes_are_what_the_benchmark_prints() -> None:
    assert len(MANY) == len(messages.LARGE) * len(messages.HASHED)
    n, k = messages.LARGE[0]
    for name in ("one noisy message, hashed", "hashed, one additional"):
        assert messages.many_row(name, n, k) in MANY


def test_a_few_messages_do_for_very_many_values() -> None:
    for n, k in messages.LARGE:
        every = many(n, k, "blanket messages")
        assert every[2] > 40
        for besides, name in ((1.0, "one additional"), (4.0, "four additional")):
            rare, common, number = many(n, k, f"hashed, {name}")
            assert abs(number - 1 - besides) < 0.02
            assert rare == pytest.approx(every[0] * (1 + 1 / besides) ** 0.5, rel=0.02)
            assert common == pytest.approx(rare, rel=0.06)
        assert many(n, k, "one noisy message, hashed")[1] > 2 * many(n, k, "hashed, one additional")[1]
