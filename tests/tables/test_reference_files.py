from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.collection.order import load_reference
from hushuffle.errors import DataError


def test_both_kinds_of_files(tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(1000)
    order.astype("<i8").tofile(tmp_path / "order.bin")
    np.save(tmp_path / "order.npy", order.astype(np.int32))
    for name in ("order.bin", "order.npy"):
        found = load_reference(tmp_path / name, n=1000)
        assert np.array_equal(found, order)
        assert isinstance(found, np.memmap)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.array([0, 1]), "orders 2 records, but there are 3 people"),
        (np.array([0, 1, 3]), "must hold record numbers from 0 to 2"),
        (np.array([0, 1, -1]), "must hold record numbers from 0 to 2"),
        (np.array([0, 1, 1]), "is not an order of all records: 1 do not occur"),
        (np.array([0.0, 1.0, 2.0]), "must hold one list of integers"),
        (np.array([[0, 1, 2]]), "must hold one list of integers"),
    ],
)
def test_no_orders(content: Any, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "order.npy", content)
    with pytest.raises(DataError, match=message):
        load_reference(tmp_path / "order.npy", n=3)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"order.bin does not exist"):
        load_reference(tmp_path / "order.bin", n=3)
    (tmp_path / "order.bin").write_bytes(b"1234567")
    with pytest.raises(DataError, match="not a whole number of 64-bit integers"):
        load_reference(tmp_path / "order.bin", n=3)
    (tmp_path / "order.bin").write_bytes(b"")
    with pytest.raises(DataError, match="is not a NumPy file with an array, or it is empty"):
        load_reference(tmp_path / "order.bin", n=3)
    (tmp_path / "order.npy").write_bytes(b"something else")
    with pytest.raises(DataError, match="is not a NumPy file"):
        load_reference(tmp_path / "order.npy", n=3)
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        load_reference(tmp_path, n=3)


def test_a_header_that_is_no_python_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "order.npy"
    np.save(path, np.arange(5))
    content = path.read_bytes()
    path.write_bytes(content.replace(b"'fortran_order': False", b"'fortran_order': (((((").replace(b"}", b" "))
    with pytest.raises(DataError, match="not a NumPy file"):
        load_reference(path, n=5)
