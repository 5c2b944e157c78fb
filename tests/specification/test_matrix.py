"""[randomizer] kind = "matrix" and "target-sampling": what is built, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, SpecificationError
from hushuffle.specification import build_protocol, load, parse
from hushuffle.specification.kinds import RANDOMIZERS

ROWS = "[[0.5, 0.25, 0.25], [0.1, 0.7, 0.2]]"


def text(randomizer: str, *, k: int = 2) -> str:
    return f"""
        population = {{ n = 900, k = {k} }}
        randomizer = {{ {randomizer} }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
    """


def matrix_of(spec: Any, k: int = 2) -> Any:
    return build_protocol(spec, n=900, k=k).randomizer.channel().matrix


def test_a_matrix_is_written_in_the_specification_or_in_a_file(tmp_path: Path) -> None:
    here = parse(text(f'kind = "matrix", matrix = {ROWS}'))
    assert matrix_of(here) == pytest.approx(np.array([[0.5, 0.25, 0.25], [0.1, 0.7, 0.2]]))
    np.savetxt(tmp_path / "own.csv", [[0.5, 0.25, 0.25], [0.1, 0.7, 0.2]], delimiter=",")
    (tmp_path / "s.toml").write_text(text('kind = "matrix", file = "own.csv"'))
    there = load(tmp_path / "s.toml")
    assert there == here
    assert "own.csv" not in there.effective()
    assert parse(there.effective()) == here


@pytest.mark.parametrize(
    ("randomizer", "message"),
    [
        ('kind = "matrix"', r"randomizer: must have either matrix or file, got neither"),
        (f'kind = "matrix", matrix = {ROWS}, file = "a.csv"', r"randomizer: must have either matrix or file, got both"),
        ('kind = "matrix", file = "absent.csv"', r"randomizer\.file: must be a file of numbers.*cannot be read"),
        ('kind = "matrix", matrix = [[1.0, 0.0]]', r"randomizer\.matrix: must"),
        ('kind = "matrix", matrix = [[0.5, 0.4], [0.1, 0.9]]', r"randomizer\.matrix: must be row-stochastic.*row 0"),
        ('kind = "matrix", matrix = [[0.5, 0.5], [1.0]]', r"randomizer\.matrix: must be rows of the same length"),
        (f'kind = "matrix", matrix = {ROWS[:-1]}, [0.0, 0.0, 1.0]]', r"matrix: must be 2 rows, one for each category"),
        ('kind = "matrix", matrix = [[0.5, "a"], [0.1, 0.9]]', r"randomizer\.matrix\[0\]\[1\]: must be"),
        ('kind = "matrix", matrix = [[1.5, -0.5], [0.1, 0.9]]', r"randomizer\.matrix\[0\]\[0\]: must be"),
        ('kind = "matrix", epsilon = 1.0', r"randomizer\.epsilon: is not a key here"),
        ('kind = "target-sampling", sigma = 0.7, convention = "exclusive"', r"randomizer\.sigma: must be at most"),
        ('kind = "target-sampling", sigma = 0.2, convention = "uniforms"', r'Did you mean "uniform"'),
        ('kind = "target-sampling", sigma = 0.2, flood = 2', r"randomizer\.flood: must be"),
    ],
)
def test_what_is_no_mechanism_is_refused(randomizer: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=r"(?s)" + message):
        parse(text(randomizer))


def test_a_matrix_that_is_too_large_is_refused() -> None:
    row = ", ".join(["0"] * 10_000 + ["1"])
    with pytest.raises(SpecificationError, match=r"randomizer\.matrix: must be at most 20,000 entries"):
        parse(text(f'kind = "matrix", matrix = [[{row}], [{row}]]'))


def test_a_file_is_read_before_anything_is_built() -> None:
    section = RANDOMIZERS["matrix"].model_validate({"kind": "matrix", "file": "own.csv"})
    with pytest.raises(InvalidInputError, match="`file` must be read first"):
        section.build(2)


def test_target_sampling_is_written_with_its_convention() -> None:
    spec = parse(text('kind = "target-sampling", sigma = 0.5, convention = "exclusive"', k=4))
    assert build_protocol(spec, n=900, k=4).randomizer == hs.TargetSampling(
        targets=4, sigma=0.5, convention="exclusive"
    )
    settled = spec.randomizer.settled(spec.randomizer.build(4))
    assert settled == {"kind": "target-sampling", "sigma": 0.5, "flood": 0, "convention": "exclusive"}
