"""The page that compares mechanisms at the same central epsilon: its sentences, and some rows computed anew."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from scripts import script

ROOT = Path(__file__).parent.parent
which = script("benchmarks/which_mechanism")
PAGE = (ROOT / "docs" / "explanation" / "which-mechanism.md").read_text(encoding="utf-8")
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| [\d,]+ \|", line)
]
ROWS = {(int(n.replace(",", "")), int(k.replace(",", "")), float(e), name): rest for n, k, e, name, *rest in LINES}


def errors(name: str) -> dict[tuple[int, int, float], float]:
    return {(n, k, epsilon): float(rest[0]) for (n, k, epsilon, label), rest in ROWS.items() if label == name}


def test_every_cell_has_a_row() -> None:
    assert list(ROWS) == [(*cell, name) for cell in which.CELLS for name in which.MECHANISMS]


@pytest.mark.parametrize("name", ["randomized response", "unary encoding, optimized", "Hadamard response"])
def test_rows_are_what_the_benchmark_prints(name: str) -> None:
    cell = which.CELLS[0]
    assert " | ".join(ROWS[*cell, name]) == which.row(name, *cell).cells


def test_the_central_mechanism_has_its_exact_size() -> None:
    for epsilon in (0.1, 1.0):
        sigma = which.central_error(1, epsilon, 1e-6)
        step = math.sqrt(2)

        def tail(x: float) -> float:
            return math.erfc(x / math.sqrt(2)) / 2

        spent = tail(epsilon * sigma / step - step / (2 * sigma)) - math.exp(epsilon) * tail(
            epsilon * sigma / step + step / (2 * sigma)
        )
        assert spent == pytest.approx(1e-6, rel=1e-6)


def test_the_ranking_is_as_the_page_says() -> None:
    response, optimized = errors("randomized response"), errors("unary encoding, optimized")
    assert max(response.values()) < 1.1
    *others, last = errors("local hashing, many buckets").values()
    assert max(others) < 1.1 < last
    for cell, error in response.items():
        found = {name: errors(name)[cell] for name in which.MECHANISMS}
        assert error <= 1.1 * min(found.values())
        assert max(found, key=lambda name: found[name]) == "Hadamard response"
        assert 1.29 < optimized[cell] < math.sqrt(2)
        assert errors("unary encoding, symmetric")[cell] > optimized[cell]
        bits = {name: int(ROWS[*cell, name][2].replace(",", "")) for name in which.MECHANISMS}
        assert bits["randomized response"] == min(bits.values())


@pytest.mark.parametrize("kind", ["optimized", "symmetric"])
def test_the_factor_is_that_of_the_limit(kind: str) -> None:
    found = errors(f"unary encoding, {kind}")
    for cell in [(10_000, 10, 0.1), (1_000_000, 100, 0.1)]:
        local = float(ROWS[*cell, f"unary encoding, {kind}"][1])
        q = 1 / (math.exp(local / 2 if kind == "symmetric" else local) + 1)
        p = 1 - q if kind == "symmetric" else 0.5
        assert found[cell] == pytest.approx(math.sqrt(q * q / p + (1 - q) ** 2 / (1 - p)), rel=0.02)
