"""A public order of people in a file: computed once, beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.files.array_files import refused

_BLOCK: Final = 1 << 20
_RAW: Final = np.dtype("<i8")


def load_reference(path: Path, *, n: int) -> npt.NDArray[np.integer[Any]]:
    """Return the order in a file, `reference[rank]` = number of the record, counted from 0, shape (n,).

    The array is mapped from the file, not read into memory; that it is a permutation is checked with n bytes.

    Args:
        path: NumPy's .npy with integers, or any other name for raw 64-bit little-endian integers.
        n: number of people.

    Raises:
        DataError: the file cannot be read, has another number of entries, or is no permutation of 0..n-1.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "order.npy"), [2, 0, 1])
    ...     load_reference(Path(folder, "order.npy"), n=3).tolist()
    [2, 0, 1]
    """
    order = _mapped(path)
    if order.ndim != 1 or not np.issubdtype(order.dtype, np.integer):
        fail(f"{path} holds an array of shape {order.shape}: one list of integers is expected.")
    if order.size != n:
        fail(f"{path} orders {order.size:,} records, but there are {n:,} people. Everybody occurs once.")
    seen = np.zeros(n, dtype=np.bool_)
    for start in range(0, n, _BLOCK):
        block = order[start : start + _BLOCK]
        if int(block.min()) < 0 or int(block.max()) >= n:
            fail(f"{path} must hold record numbers from 0 to {n - 1:,}.")
        seen[block] = True
    missing = n - int(np.count_nonzero(seen))
    if missing:
        fail(f"{path} is no order of all records: {missing:,} do not occur, others occur twice.")
    return order


def _mapped(path: Path) -> npt.NDArray[Any]:
    raw = path.suffix != ".npy"
    with refused(path, f"{path} is no file of NumPy with an array, or it is empty or cut off."):
        whole = path.stat().st_size % _RAW.itemsize == 0
        found: npt.NDArray[Any] = (
            np.memmap(path, dtype=_RAW if whole else np.uint8, mode="r")
            if raw
            else np.load(path, mmap_mode="r", allow_pickle=False)
        )
    if raw and not whole:
        fail(f"{path} is not a whole number of 64-bit integers: it may be cut off.")
    return found
