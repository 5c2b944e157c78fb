from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle.errors import DataError
from hushuffle.mechanisms.sketches import BloomEncoder, BloomFilter
from hushuffle.tables.sketch_files import identifier_columns, load_filter, save_filter

KEY = bytes(range(32))
MANIFEST = {
    "format": "hushuffle bloom filter",
    "version": 1,
    "bits": 8,
    "hashes": 1,
    "key_check": "0" * 16,
    "threshold": "0",
}


def written(path: Path, manifest: Any) -> Path:
    text = np.frombuffer(json.dumps(manifest).encode(), dtype=np.uint8)
    np.savez(path, manifest=text, packed=np.zeros(1, dtype=np.uint8))
    return path


@pytest.mark.parametrize("flipped", [False, True])
def test_a_filter_comes_back_as_it_was(tmp_path: Path, flipped: bool) -> None:
    sketch = BloomEncoder(bits=1001, key=KEY, hashes=3).encode(np.arange(200))
    if flipped:
        sketch = sketch.flip(randomizer=hs.BitFlipping(width=1, p=1 / 3), rng=hs.reproducible(1))
    path = tmp_path / "publisher.npz"
    save_filter(path, sketch)
    save_filter(str(path), sketch)  # over the old one
    back = BloomFilter(**load_filter(path))
    assert np.array_equal(back.packed, sketch.packed)
    assert (back.design, back.threshold) == (sketch.design, sketch.threshold)
    assert [each.name for each in tmp_path.iterdir()] == ["publisher.npz"]
    assert KEY not in path.read_bytes()


def test_what_cannot_be_written_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = BloomEncoder(bits=100, key=KEY).encode(["a"])
    path = tmp_path / "publisher.npz"
    path.write_bytes(b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        save_filter(path, sketch)
    assert [each.name for each in tmp_path.iterdir()] == ["publisher.npz"]
    assert path.read_bytes() == b"old"


def test_files_that_are_no_filters(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    with pytest.raises(DataError, match=r"some.npz does not exist"):
        load_filter(path)
    with pytest.raises(DataError, match=r"must end in \.npz"):
        load_filter(tmp_path / "some.csv")
    for content in (b"", b"text", b"PK\x03\x04 cut off"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="truncated or damaged"):
            load_filter(path)
    np.savez(path, other=np.zeros(1))
    with pytest.raises(DataError, match="truncated or damaged"):
        load_filter(path)
    np.save(tmp_path / "array.npy", np.zeros(1))
    (tmp_path / "array.npy").replace(path)
    with pytest.raises(DataError, match="truncated or damaged"):
        load_filter(path)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ([], "is not a Bloom filter of hushuffle"),
        ({"format": "other"}, "is not a Bloom filter of hushuffle"),
        (MANIFEST | {"version": 2}, "has another version than 1, which this program supports"),
        (MANIFEST | {"bits": "8"}, "lacks bits"),
        (MANIFEST | {"threshold": "-1"}, "lacks a whole threshold"),
    ],
)
def test_bad_manifests(tmp_path: Path, manifest: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_filter(written(tmp_path / "some.npz", manifest))


def test_a_damaged_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    save_filter(path, BloomEncoder(bits=8000, key=KEY).encode(["a"]))
    content = bytearray(path.read_bytes())
    content[len(content) - 700] ^= 1  # within the packed bits
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="truncated or damaged"):
        load_filter(path)


def test_columns_of_identifiers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,age\n007,30\n8,\n,40\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("user,age\n9,30\n", encoding="utf-8")
    found = [part.to_list() for part in identifier_columns("*.csv", column="user", base_folder=tmp_path)]
    assert found == [["007", "8", None], ["9"]]
    pl.DataFrame({"user": [1, None, 3]}).write_parquet(tmp_path / "c.parquet")
    (whole,) = identifier_columns(str(tmp_path / "c.parquet"), column="user")
    encoder = BloomEncoder(bits=1000, key=KEY)
    assert np.array_equal(encoder.encode(whole.drop_nulls()).packed, encoder.encode(["1", "3"]).packed)
    with pytest.raises(DataError, match=r"has no column 'id'"):
        list(identifier_columns("a.csv", column="id", base_folder=tmp_path))
