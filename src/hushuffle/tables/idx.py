"""IDX files: the arrays of MNIST and its like, plain or gzipped."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.tables import _public

_DAMAGED: Final = "it may be cut off or damaged"
_TYPES: Final = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Digits:
    """Labelled images: `images`, shape (n, pixels), grey values 0..255; `labels`, shape (n,)."""

    images: npt.NDArray[np.uint8] = field(repr=False)
    labels: npt.NDArray[np.uint8] = field(repr=False)

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.labels)


def read_idx(path: str | Path) -> npt.NDArray[Any]:
    """Return the array of an IDX file, in the machine's byte order; gzipped or not.

    Raises:
        DataError: the file cannot be read, is no IDX file, or is longer or shorter than it says.

    Source: LeCun, Cortes, Burges (format).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "x.idx").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    ...     read_idx(Path(folder, "x.idx")).tolist()
    [7, 9]
    """
    data = _read(Path(path).expanduser())
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES or len(data) < 4 + 4 * data[3]:
        fail(f"{path}: no IDX file (its first four bytes say 0, 0, type, number of dimensions).")
    start = 4 + 4 * data[3]
    shape = tuple(np.frombuffer(data[4:start], dtype=">u4").astype(int).tolist())
    kind = np.dtype(_TYPES[data[2]])
    wanted = math.prod(shape) * kind.itemsize
    if len(data) - start != wanted:
        fail(f"{path}: holds {len(data) - start:,} bytes of values, its header says {wanted:,}.")
    return np.frombuffer(data[start:], dtype=kind).reshape(shape).astype(kind.newbyteorder("="))


def load_digits(folder: str | Path, *, part: str = "train") -> Digits:
    """Return MNIST's training images (`part` "train", 60,000) or test images ("t10k", 10,000) as rows of pixels.

    Files: train-images-idx3-ubyte and train-labels-idx1-ubyte, with or without .gz; t10k
    likewise.

    Raises:
        DataError: a file is missing or damaged, or images and labels do not fit.

    Source: LeCun, Cortes, Burges (data).
    """
    images, labels = (
        read_idx(_public.find(folder, tuple(f"{part}-{stem}{end}" for end in (".gz", ""))))
        for stem in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    if images.ndim != 3 or labels.shape != images.shape[:1] or images.dtype != np.uint8 or labels.dtype != np.uint8:
        fail(f"{folder}: images of shape {images.shape} and labels of shape {labels.shape} do not fit.")
    return Digits(images=images.reshape(len(images), -1), labels=labels)


def _read(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error, _DAMAGED)}.")
    except (EOFError, zlib.error):
        fail(f"{path} cannot be read: {_DAMAGED}.")
