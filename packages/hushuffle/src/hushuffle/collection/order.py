"""Release reports near a public order: read the order, build the Mallows shuffle, describe both in the manifest."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail, unsupported
from hushuffle.collection.request import Asked, Request
from hushuffle.files.causes import refused
from hushuffle.model import Population, json_number
from hushuffle.specification import People, Specification
from hushuffle.specification.order_setup import Arrangement, Source, arrangement

_BLOCK: Final = 1 << 20
_RAW: Final = np.dtype("<i8")


def load_reference(path: Path, *, n: int) -> npt.NDArray[np.integer[Any]]:
    """Return the public order in a file (.npy of integers, else raw 64-bit little-endian); shape (n,).

    `reference[rank]` is the number of a record, counted from 0. The array is mapped from the file, not read into
    memory; a check in n bytes of memory ensures a permutation.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "order.npy"), [2, 0, 1])
    ...     load_reference(Path(folder, "order.npy"), n=3).tolist()
    [2, 0, 1]
    """
    order = _mapped(path)
    if order.ndim != 1 or not np.issubdtype(order.dtype, np.integer):
        fail(f"{path} holds an array of shape {order.shape}; it must hold one list of integers.")
    if order.size != n:
        fail(f"{path} orders {order.size:,} records, but there are {n:,} people. Each person must occur once.")
    seen = np.zeros(n, dtype=np.bool_)
    for start in range(0, n, _BLOCK):
        block = order[start : start + _BLOCK]
        if int(block.min()) < 0 or int(block.max()) >= n:
            fail(f"{path} must hold record numbers from 0 to {n - 1:,}.")
        seen[block] = True
    missing = n - int(np.count_nonzero(seen))
    if missing:
        fail(f"{path} is not an order of all records: {missing:,} do not occur, and others occur twice.")
    return order


def _mapped(path: Path) -> npt.NDArray[Any]:
    raw = path.suffix != ".npy"
    with refused(path, f"{path} is not a NumPy file with an array, or it is empty or truncated."):
        whole = path.stat().st_size % _RAW.itemsize == 0
        mapped: npt.NDArray[Any] = (
            np.memmap(path, dtype=_RAW if whole else np.uint8, mode="r")
            if raw
            else np.load(path, mmap_mode="r", allow_pickle=False)
        )
    if raw and not whole:
        fail(f"{path} is not a whole number of 64-bit integers: it may be truncated.")
    return mapped


_RELATION = "permute the values of the people in one group; which record is whose is public"


def refuse_order(request: Request) -> None:
    if request.keys is not None:
        unsupported(
            "A Mallows shuffle supports no key: a repetition would draw a second order of the same reports, and two "
            "orders reveal more than one. Collect once, without a key."
        )
    if len(request.sources) > 1 or any(Path(source).is_dir() for source in request.sources):
        fail("A public order covers the records of one file or one glob: pass a single `--input`.")


def order_shuffler(
    specification: Specification, request: Request, asked: Asked, *, n: int, dropped: int
) -> Arrangement:
    """Return the Mallows shuffle of n people around the order in `request.reference`, or around a computed order.

    Source: docs/theory/order.md, Theorem 1.
    """
    if dropped:
        fail(
            "Answers are missing. Without them, the other reports no longer match the public order, and their places "
            "would identify people. Add a category for missing answers (missing = ...)."
        )
    people = People(population=Population(n=n, labels=asked.answers.labels, source=asked.files[0]))
    source = Source(people=people, data=asked.files[0], base_folder=asked.base_folder, form=asked.form)
    given = None if request.reference is None else partial(load_reference, request.reference, n=n)
    return arrangement(specification.shuffler, source, given)


def order_facts(arrangement: Arrangement) -> dict[str, Any]:
    shuffler, alpha = arrangement.shuffler, replace(arrangement.alpha, witness=None)
    return {
        "order": {
            "alpha": alpha.as_dict(),
            "relation": _RELATION,
            "distance": shuffler.distance,
            "theta": json_number(shuffler.theta),
            "sensitivity": arrangement.sensitivity,
            "public_columns": list(arrangement.names),
            "rows": "Row r of the reports has the place of record r of the public data, counted from 0.",
        }
    }
