from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.errors import DataError
from hushuffle.io import ledger as ledger_module
from hushuffle.io.ledger import Entries, Tags, _alone, admit, admit_all, ledger_of, record_numbers
from hushuffle.io.secret_keys import derived

KEY = bytes(range(32))


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "my.key"
    path.write_text(KEY.hex(), encoding="ascii")
    return path


def batch(records: list[int], values: list[int], *, round_number: int = 0, mechanism: str = "m") -> Entries:
    tags = Tags(key=KEY, round_number=round_number, mechanism=mechanism)
    for start in range(0, len(records), 2):
        part = np.array(records[start : start + 2], dtype=np.uint64)
        tags.add(part, np.array(values[start : start + 2], dtype=np.int64))
    return tags.entries()


def test_a_batch_may_be_repeated_and_others_follow(key_file: Path) -> None:
    assert admit(key_file, batch([1, 2, 3], [0, 1, 0]))
    before = ledger_of(key_file).read_bytes()
    assert not admit(key_file, batch([3, 1, 2], [0, 0, 1]))  # in another order
    assert ledger_of(key_file).read_bytes() == before
    assert admit(key_file, batch([4, 5], [0, 1]))
    assert not admit(key_file, batch([1, 2, 3], [0, 1, 0]))
    assert admit(key_file, batch([1, 2, 3], [1, 1, 1], round_number=1))
    assert ledger_of(key_file).stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in key_file.parent.iterdir()) == ["my.key", "my.key.ledger"]


@pytest.mark.parametrize(
    ("again", "message"),
    [
        (batch([1, 2, 3], [0, 1, 1]), "^1 people have reported .* with other values"),
        (batch([1, 2, 3], [0, 1, 0], mechanism="other"), "^3 people have reported"),
        (batch([1, 2], [0, 1]), "^2 people are in an earlier batch"),
        (batch([1, 2, 3, 4], [0, 1, 0, 0]), "^3 people are in an earlier batch"),
    ],
)
def test_coins_that_are_used_up(key_file: Path, again: Entries, message: str) -> None:
    assert admit(key_file, batch([1, 2, 3], [0, 1, 0]))
    before = ledger_of(key_file).read_bytes()
    with pytest.raises(DataError, match=message):
        admit(key_file, again)
    assert ledger_of(key_file).read_bytes() == before


def test_its_name_is_on_the_disk_too(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[Path, bool]] = []
    path = ledger_of(key_file)
    monkeypatch.setattr(ledger_module, "flush_folder", lambda folder: flushed.append((folder, path.exists())))
    admit(key_file, batch([1], [0]))
    assert flushed == [(path.parent, True)]


@pytest.mark.parametrize("records", [[1, 1], [1, 2, 1]])
def test_an_id_twice(records: list[int]) -> None:
    with pytest.raises(DataError, match="an id is there twice"):
        batch(records, [0] * len(records))


def test_ledgers_that_cannot_be_used(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, entries = ledger_of(key_file), batch([1], [0])
    aborts = (Path(__file__).parents[1] / "fuzz" / "corpus" / "aborts.parquet").read_bytes()
    for damage in (
        lambda: ledger.write_bytes(b"PAR1"),
        lambda: pl.DataFrame({"a": [1]}).write_parquet(ledger),
        lambda: ledger.write_bytes(aborts),
    ):
        damage()
        with pytest.raises(DataError, match="is damaged"):
            admit(key_file, entries)

    ledger.unlink()
    ledger.mkdir()
    with pytest.raises(DataError, match=r"the ledger .* cannot be read: Is a directory"):
        admit(key_file, entries)
    ledger.rmdir()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match=r"cannot be written: No space left on device\. Nothing was released"):
        admit(key_file, entries)
    assert [path.name for path in key_file.parent.iterdir()] == ["my.key"]
    monkeypatch.undo()
    monkeypatch.setattr(os, "name", "nt")  # where files cannot be locked in this way
    with _alone(key_file):
        pass
    monkeypatch.undo()
    assert repr(entries) == "Entries(1 records)"


def test_a_ledger_says_nothing_without_its_key() -> None:
    """The same records under another key, round or mechanism have nothing in common."""
    one = batch([1, 2, 3], [0, 1, 0]).table
    other = Tags(key=bytes(32), round_number=0, mechanism="m")
    other.add(np.array([1, 2, 3], dtype=np.uint64), np.array([0, 1, 0]))
    assert not set(one["record"]) & set(other.entries().table["record"])
    assert set(one["record"]) == set(batch([1, 2, 3], [1, 1, 1]).table["record"])
    assert not set(one["value"]) & set(batch([1, 2, 3], [0, 1, 0], mechanism="n").table["value"])
    assert one["value"].n_unique() == 3  # equal values do not show


def test_numbers_of_ids() -> None:
    ids = pl.Series(["7", "07", "-1", "seven", "18446744073709551615", "9223372036854775807", "9223372036854775808"])
    numbers = record_numbers(ids, key=KEY)
    assert numbers[0] == 7
    assert numbers[5] == 2**63 - 1
    assert all(int(number) >= 2**63 for number in numbers[[1, 2, 3, 4, 6]])
    assert np.unique(numbers).size == 7
    assert np.array_equal(record_numbers(ids.reverse(), key=KEY), numbers[::-1])
    assert record_numbers(ids, key=bytes(32))[3] != numbers[3]
    assert derived(KEY, "a") != derived(KEY, "b")


def test_several_columns_are_admitted_together_or_not(key_file: Path) -> None:
    first = batch([1, 2], [0, 1])
    other = Tags(key=derived(KEY, "another column"), round_number=0, mechanism="m")
    other.add(np.array([1, 2], dtype=np.uint64), np.array([0, 1]))
    assert admit_all(key_file, [first]) == (True,)
    assert admit_all(key_file, [first, other.entries()]) == (False, True)
    before = ledger_of(key_file).read_bytes()
    assert admit_all(key_file, [first, other.entries()]) == (False, False)
    with pytest.raises(DataError, match="with other values"):
        admit_all(key_file, [batch([8], [0]), batch([1, 2], [1, 1])])
    assert ledger_of(key_file).read_bytes() == before
