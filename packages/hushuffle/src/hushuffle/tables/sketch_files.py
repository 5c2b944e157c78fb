"""Write and read Bloom filters in files, and read columns of identifiers for Bloom filters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import fail
from hushuffle.files.causes import refused
from hushuffle.files.private_files import whole_file
from hushuffle.tables.categories import given
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.reader import TableReader, open_source

_FORMAT: Final = "hushuffle bloom filter"
_VERSION: Final = 1
_KEYS: Final = {"bits": int, "hashes": int, "key_check": str, "threshold": str}


class StoredFilter(TypedDict):
    """The contents of a file with a Bloom filter: the arguments of `BloomFilter`."""

    bits: int
    hashes: int
    key_check: str
    packed: npt.NDArray[np.uint8]
    threshold: int


class SavesAsFilter(Protocol):
    """The attributes that `save_filter` needs; `BloomFilter` has them."""

    @property
    def bits(self) -> int:
        """Number of bits."""

    @property
    def hashes(self) -> int:
        """Number of hash functions."""

    @property
    def key_check(self) -> str:
        """A public fingerprint of the key."""

    @property
    def packed(self) -> npt.NDArray[np.uint8]:
        """The bits, eight to a byte."""

    @property
    def threshold(self) -> int:
        """Every bit was flipped with probability threshold / 2**64 (0: not flipped)."""


def save_filter(path: Path | str, sketch: SavesAsFilter) -> None:
    """Write a filter to `path` (NumPy's .npz: the packed bits, and a manifest in JSON), whole or not at all.

    The manifest contains the number of bits and of hash functions, a fingerprint of the key and the flip threshold, but
    not the key. The file of an unflipped filter is private.

    Raises:
        DataError: `path` does not end in .npz.
        OSError: the file cannot be written; an existing file stays unchanged.
    """
    target = _named(path)
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "bits": sketch.bits,
        "hashes": sketch.hashes,
        "key_check": sketch.key_check,
        "threshold": str(sketch.threshold),  # more digits than a number in JSON is sure to keep
    }
    text = np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8)
    with whole_file(target) as file:
        np.savez(file, manifest=text, packed=sketch.packed)


def load_filter(path: Path | str) -> StoredFilter:
    """Return the contents of a file of `save_filter`; `BloomFilter(**load_filter(path))` is the filter.

    Raises:
        DataError: the file is missing, cut off, damaged, no Bloom filter of hushuffle, or of a later version.
    """
    source = _named(path)
    with (
        refused(source, f"{source} is not a Bloom filter of hushuffle, or it is truncated or damaged. Write it again."),
        source.open("rb") as raw,
        np.load(raw, allow_pickle=False) as file,
    ):
        manifest, packed = json.loads(file["manifest"].tobytes()), file["packed"]
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        fail(f"{source} is not a Bloom filter of hushuffle.")
    if manifest.get("version") != _VERSION:
        fail(f"{source} has another version than {_VERSION}, which this program supports. Upgrade hushuffle.")
    wrong = [key for key, kind in _KEYS.items() if type(manifest.get(key)) is not kind]
    if wrong or not manifest["threshold"].isdecimal():
        fail(f"{source}: the manifest lacks {', '.join(wrong) or 'a whole threshold'}, or has it in another form.")
    return StoredFilter(
        bits=manifest["bits"],
        hashes=manifest["hashes"],
        key_check=manifest["key_check"],
        packed=packed,
        threshold=int(manifest["threshold"]),
    )


def identifier_columns(
    source: str, *, column: str, base_folder: Path | None = None, form: CsvForm | None = None
) -> Iterator[pl.Series]:
    """Yield the column of identifiers of each file of `source`, one file in memory at a time.

    Missing identifiers are null. Encoders refuse them; `.drop_nulls()` removes them.

    Args:
        source: a CSV file (all fields are text), a Parquet file, or a glob of them.
        column: the name of the column.
        base_folder: where a relative `source` starts; the current folder if None.
        form: encoding and separator of CSV files.

    Raises:
        DataError: a file or the column is missing, or a file cannot be read.
    """
    for part in open_source(source, base_folder=base_folder or Path(), form=form):
        yield TableReader([part], {column: (column, given(pl.col(column)))}).whole()[column]


def _named(path: Path | str) -> Path:
    if Path(path).suffix != ".npz":
        fail(f"{path}: the name of a file with a Bloom filter must end in .npz.")
    return Path(path)
