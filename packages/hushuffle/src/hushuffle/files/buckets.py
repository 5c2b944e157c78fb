"""Store pieces of arrays in numbered buckets: in memory as long as they fit, then in files of a private folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Piece = TypeVar("Piece", bound=npt.NDArray[Any])

_READ: Final = 1 << 20
"""Number of rows that are read from a file at once."""


class Buckets(Generic[Piece]):
    """Stores pieces of arrays in `count` buckets; each bucket returns its pieces once, in their order of arrival.

    Nothing is written into the private `folder` while the pieces fit into `memory` bytes. A row of several numbers has
    a dtype with a shape, as in `("<u8", (2,))`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     buckets = Buckets(Path(folder), dtype=("<u8", (2,)), count=2, memory=0)
    ...     buckets.add(1, np.array([[1, 2], [3, 4]], dtype="<u8"))
    ...     buckets.spill()
    ...     [piece.tolist() for piece in buckets.pieces(1)]
    [[[1, 2], [3, 4]]]
    """

    def __init__(self, folder: Path, *, dtype: npt.DTypeLike, count: int, memory: int) -> None:
        self._folder, self._dtype, self._memory = folder, np.dtype(dtype), memory
        self._held: list[list[Piece]] = [[] for _ in range(count)]
        self._bytes = 0

    def add(self, bucket: int, piece: Piece) -> None:
        self._held[bucket].append(piece)
        self._bytes += piece.nbytes

    def make_room(self) -> None:
        """Write all pieces into the folder if more than `memory` bytes are in memory."""
        if self._bytes > self._memory:
            self.spill()

    def spill(self) -> None:
        for bucket, pieces in enumerate(self._held):
            if pieces:
                with self._path(bucket).open("ab") as file:
                    for piece in pieces:
                        file.write(piece.tobytes())
            self._held[bucket] = []
        self._bytes = 0

    def pieces(self, bucket: int) -> Iterator[Piece]:
        """Yield the pieces of a bucket, about a million rows at a time; afterwards the bucket is empty."""
        path = self._path(bucket)
        if path.exists():
            left = path.stat().st_size // self._dtype.itemsize
            with path.open("rb") as file:
                while left:
                    piece = np.fromfile(file, dtype=self._dtype, count=min(left, _READ))
                    left -= len(piece)
                    yield piece  # type: ignore[misc]
            path.unlink()
        held, self._held[bucket] = self._held[bucket], []
        yield from held

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{bucket:03}.bucket"
