from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.collection.record_tags import (
    PAIR,
    Entries,
    Tags,
    TagSorter,
    read_pairs,
    record_numbers,
    written_normally,
)
from hushuffle.errors import DataError
from hushuffle.files.secret_keys import derived

KEY = bytes(range(32))


def pairs_of(
    records: list[int], values: list[int], *, key: bytes = KEY, round_number: int = 0, mechanism: str = "m"
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    tags = Tags(key=key, round_number=round_number, mechanism=mechanism)
    return tags.of(np.array(records, dtype=np.uint64), np.array(values, dtype=np.int64))


def test_tags_say_nothing_without_their_key() -> None:
    """The same records under another key or round have nothing in common; equal values do not show."""
    pairs = pairs_of([1, 2, 3], [0, 1, 0])
    for other in (pairs_of([1, 2, 3], [0, 1, 0], key=bytes(32)), pairs_of([1, 2, 3], [0, 1, 0], round_number=1)):
        assert not set(pairs.ravel().tolist()) & set(other.ravel().tolist())
    assert pairs[:, 0].tolist() == pairs_of([1, 2, 3], [1, 1, 1])[:, 0].tolist()
    assert not set(pairs[:, 1].tolist()) & set(pairs_of([1, 2, 3], [0, 1, 0], mechanism="n")[:, 1].tolist())
    assert len(set(pairs[:, 1].tolist())) == 3
    scopes = {
        Tags(key=key, round_number=number, mechanism=mechanism).scope
        for key in (KEY, bytes(32))
        for number in (0, 1)
        for mechanism in ("m", "n")
    }
    assert len(scopes) == 4


def test_the_digest_of_a_batch_stays_what_it_was() -> None:
    """Dummies come from it: what it is must never change."""
    pairs = pairs_of([1, 2, 3], [0, 1, 0])
    pairs = pairs[np.argsort(pairs[:, 0])]
    assert hashlib.sha256(pairs.tobytes()).hexdigest()[:16] == "146214956f5e8f33"


@pytest.mark.parametrize("memory", [0, 5000, 1 << 26])
def test_sorted_as_if_in_memory(tmp_path: Path, memory: int) -> None:
    n = 20_000
    records = np.random.default_rng(1).permutation(n)
    pairs = pairs_of(records.tolist(), (records % 5).tolist())
    sorter = TagSorter(tmp_path, scope="s", memory=memory)
    for part in np.array_split(pairs, 7):
        sorter.add(part)
    entries = sorter.entries()
    expected = pairs[np.argsort(pairs[:, 0])]
    assert np.array_equal(read_pairs(entries.file), expected)
    assert np.array_equal(read_pairs(entries.file, 10, 3), expected[10:13])
    assert entries.digest == hashlib.sha256(expected.tobytes()).digest()
    assert (entries.people, entries.scope) == (n, "s")
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [n * PAIR]
    assert repr(entries) == "Entries(20000 records)"


@pytest.mark.parametrize("parts", [[[1, 1]], [[1, 2], [1]]])
@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_an_id_twice(tmp_path: Path, parts: list[list[int]], memory: int) -> None:
    sorter = TagSorter(tmp_path, scope="s", memory=memory)

    def collected() -> Entries:
        for part in parts:
            sorter.add(pairs_of(part, [0] * len(part)))
        return sorter.entries()

    with pytest.raises(DataError, match="records have the same id"):
        collected()


def test_numbers_of_ids() -> None:
    ids = pl.Series(["7", "8.5", "-1", "seven", "18446744073709551615", "9223372036854775807", "9223372036854775808"])
    numbers = record_numbers(ids, key=KEY)
    assert numbers[0] == 7
    assert numbers[5] == 2**63 - 1
    assert all(int(number) >= 2**63 for number in numbers[[1, 2, 3, 4, 6]])
    assert np.unique(numbers).size == 7
    assert np.array_equal(record_numbers(ids.reverse(), key=KEY), numbers[::-1])
    assert record_numbers(ids, key=bytes(32))[3] != numbers[3]
    assert derived(KEY, "a") != derived(KEY, "b")


def test_spellings_of_one_id_are_one_record() -> None:
    alike = pl.Series(["7", "0007", "+7", "7.0", "7.", " 7", "7\u00a0", "\uff17", "\u200e7"])
    assert set(record_numbers(alike, key=KEY).tolist()) == {7}
    for spellings in (["U17", "u17", " U17"], ["Zoë", "ZOË", "Zoe\u0308"], ["0", "000", "0.0"]):
        assert np.unique(record_numbers(pl.Series(spellings), key=KEY)).size == 1
    others = pl.Series(["7", "70", "7.5", "-7", "7,0", "0x7", "u7", "1e0"])
    assert np.unique(record_numbers(others, key=KEY)).size == len(others)
    assert not written_normally(alike)
    assert written_normally(others)


def test_text_ids_have_63_bits_each() -> None:
    """Among 20,000 of them no two share their coins, and every bit below the highest is random.

    False alarms: 20,000**2 / 2**64 < 3e-11; each bit is set 10,000 times, with a deviation of 71, so that 500 more or
    less have a probability below 2e-12. The numbers of a key must never change: coins come from them.
    """
    numbers = record_numbers(pl.Series([f"person {one}" for one in range(20_000)]), key=KEY)
    assert np.unique(numbers).size == 20_000
    assert bool(np.all(numbers >> np.uint64(63) == 1))
    set_bits = np.array([np.count_nonzero(numbers >> np.uint64(bit) & np.uint64(1)) for bit in range(63)])
    assert int(np.abs(set_bits - 10_000).max()) < 500
    assert numbers[:2].tolist() == [10870967691109821563, 17197010933251502960]


_SORTING = """
import sys, tracemalloc
from pathlib import Path
import numpy as np
from hushuffle.collection import ledger
from hushuffle.collection.record_tags import TagSorter

ledger._CHUNK = 1 << 13
rng, files = np.random.default_rng(5), []
tracemalloc.start()
for number in range(2):
    folder = Path(sys.argv[1]) / str(number)
    folder.mkdir()
    sorter = TagSorter(folder, scope="s", memory=1 << 19)
    for _ in range(32):
        sorter.add(rng.integers(0, 2**64, (1 << 14, 2), dtype=np.uint64))
    files.append(sorter.entries().file)
assert ledger._in_both(*files) == (0, 0)
peak = tracemalloc.get_traced_memory()[1]
assert sum(path.stat().st_size for path in files) == 2 << 23
print(peak)
"""


def test_memory_stays_flat(tmp_path: Path) -> None:
    """Two batches of 8 MB of tags each are sorted, and compared, in less than 4 MB: in a process of its own, where
    nothing that other tests left behind is counted."""
    program = [sys.executable, "-c", _SORTING, str(tmp_path)]
    shown = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    peak = int(shown)
    assert peak < 4 << 20
