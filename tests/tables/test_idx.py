"""IDX files: small ones of every type, damaged ones, and the real digits."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.tables.published import load_digits, read_idx

IMAGES = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255])
LABELS = bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 0])


def write(folder: Path, images: bytes = IMAGES, labels: bytes = LABELS) -> None:
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    (folder / "train-labels-idx1-ubyte").write_bytes(labels)


def test_digits_are_rows_of_pixels(tmp_path: Path) -> None:
    write(tmp_path)
    digits = load_digits(tmp_path)
    assert digits.images.tolist() == [[1, 2, 3], [4, 5, 255]]
    assert (digits.labels.tolist(), digits.n) == ([7, 0], 2)


@pytest.mark.parametrize(
    ("code", "kind"), [(0x08, "u1"), (0x09, "i1"), (0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"), (0x0E, ">f8")]
)
def test_every_type_of_number_is_read(tmp_path: Path, code: int, kind: str) -> None:
    values = np.array([[1, 2, 3], [4, 5, 6]], dtype=kind)
    path = tmp_path / "numbers"
    path.write_bytes(bytes([0, 0, code, 2, 0, 0, 0, 2, 0, 0, 0, 3]) + values.tobytes())
    read = read_idx(path)
    assert read.tolist() == values.tolist()
    assert read.dtype == np.dtype(kind).newbyteorder("=")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x08", "not an IDX file"),
        (b"\1\0\x08\1\0\0\0\0", "not an IDX file"),
        (b"\0\0\x07\1\0\0\0\0", "not an IDX file"),
        (b"\0\0\x08\2\0\0\0\0", "not an IDX file"),
        (LABELS[:-1], "has 1 bytes of values, but its header declares 2"),
        (LABELS + b"\0", "has 3 bytes of values, but its header declares 2"),
        (gzip.compress(LABELS, mtime=0)[:-9], "cannot be read"),
        (b"\x1f\x8b\x08\0" + b"\xff" * 30, "cannot be read"),
    ],
)
def test_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_idx(path)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has none of the files train-images"):
        load_digits(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (LABELS, LABELS),
        (IMAGES, bytes([0, 0, 8, 1, 0, 0, 0, 1, 7])),
        (IMAGES[:2] + b"\x09" + IMAGES[3:], LABELS),
        (IMAGES, LABELS[:2] + b"\x09" + LABELS[3:]),
    ],
)
def test_images_and_labels_that_do_not_fit(tmp_path: Path, images: bytes, labels: bytes) -> None:
    write(tmp_path, images, labels)
    with pytest.raises(DataError, match="do not match"):
        load_digits(tmp_path)


@pytest.mark.data
@pytest.mark.skipif("HUSHUFFLE_DATA" not in os.environ, reason="HUSHUFFLE_DATA does not name a folder of data sets")
def test_the_real_digits() -> None:
    folder = Path(os.environ["HUSHUFFLE_DATA"], "mnist")
    train, test = load_digits(folder), load_digits(folder, part="t10k")
    assert (train.images.shape, test.images.shape) == ((60_000, 784), (10_000, 784))
    assert np.bincount(train.labels).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    published = "6bbc9ace898e44ae57da46a324031adb"  # md5 of train-images-idx3-ubyte
    header = bytes([0, 0, 8, 3]) + np.array([60_000, 28, 28], dtype=">u4").tobytes()
    assert hashlib.md5(header + train.images.tobytes(), usedforsecurity=False).hexdigest() == published
