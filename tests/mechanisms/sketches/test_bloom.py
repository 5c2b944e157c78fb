from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import hushuffle as hs
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.sketches import BloomEncoder, BloomFilter, align, logo_counts, per_bit
from hushuffle.mechanisms.sketches.encoder import _scaled

KEY = bytes(range(100, 140))
CHECK = "0123456789abcdef"


def filled(columns: list[int], **changes: Any) -> BloomFilter:
    arguments: dict[str, Any] = {"bits": len(columns), "hashes": 1, "key_check": CHECK, "packed": np.packbits(columns)}
    return BloomFilter(**(arguments | changes))


def test_all_ways_to_write_an_identifier_agree() -> None:
    encoder = BloomEncoder(bits=10**6, key=KEY, hashes=3)
    texts, numbers = ["12", "7", "99"], [12, 7, 99]
    ways: list[Any] = [
        texts,
        numbers,
        [each.encode() for each in texts],
        np.array(texts),
        np.array(numbers, dtype=np.uint16),
        np.array([each.encode() for each in texts]),
        pl.Series(texts),
        pl.Series(texts, dtype=pl.Categorical),
        pl.Series(texts, dtype=pl.Enum(["7", "12", "99"])),
        pl.Series(numbers, dtype=pl.Int128),
        pl.Series([each.encode() for each in texts]),
        tuple(texts),
    ]
    expected = encoder.positions(texts)
    assert expected.shape == (3, 3)
    for way in ways:
        assert np.array_equal(encoder.positions(way), expected)
    assert encoder.encode(["é"]).columns()[encoder.positions(["é".encode()])].all()


@pytest.mark.parametrize("hashes", [1, 3, 5, 6, 17])
def test_positions_set_the_bits(hashes: int) -> None:
    encoder = BloomEncoder(bits=997, key=KEY, hashes=hashes)
    identifiers = [f"person {i}" for i in range(150)]
    positions = encoder.positions(identifiers)
    assert positions.shape == (150, hashes)
    expected = np.zeros(997, dtype=bool)
    expected[positions.ravel()] = True
    sketch = encoder.encode(identifiers)
    assert np.array_equal(sketch.columns(), expected)
    assert sketch.ones == expected.sum()
    assert hashes == 1 or len({tuple(column) for column in positions.T}) == hashes


def test_positions_are_uniform_and_independent() -> None:
    bits, n = 20, 40_000
    positions = BloomEncoder(bits=bits, key=KEY, hashes=6).positions(np.arange(n))
    alarm = stats.chi2.isf(1e-8, bits - 1)
    for column in positions.T:
        assert stats.chisquare(np.bincount(column, minlength=bits)).statistic < alarm
    for first, other in [(0, 1), (0, 5), (4, 5)]:
        pairs = np.bincount(positions[:, first] * bits + positions[:, other], minlength=bits**2)
        assert stats.chisquare(pairs).statistic < stats.chi2.isf(1e-8, bits**2 - 1)


@pytest.mark.parametrize("bits", [1, 3, 1000, 10**7, 2**31 - 1])
def test_scaling_in_whole_numbers(bits: int) -> None:
    words = np.random.default_rng(1).integers(2**32, size=(50, 2, 3), dtype=np.uint32, endpoint=False)
    words[0], words[1] = 0, 2**32 - 1
    found = _scaled(words, bits)
    for row in range(50):
        for place in range(2):
            number = sum(int(words[row, place, i]) << (32 * i) for i in range(3))
            assert found[row, place] == number * bits >> 96


def test_chunks_and_unions_are_the_whole() -> None:
    encoder = BloomEncoder(bits=5003, key=KEY, hashes=2)
    whole = encoder.encode(np.arange(1000))
    assert np.array_equal(encoder.encode_chunks(np.array_split(np.arange(1000), 7)).packed, whole.packed)
    joined = encoder.encode(np.arange(600)) | encoder.encode(np.arange(500, 1000))
    assert np.array_equal(joined.packed, whole.packed)
    assert joined.design == whole.design
    assert encoder.encode([]).ones == encoder.encode_chunks([]).ones == 0
    assert encoder.positions([]).shape == (0, 2)


def test_the_key_decides_and_never_shows() -> None:
    one, two = BloomEncoder(bits=1000, key=KEY), BloomEncoder(bits=1000, key=KEY[::-1])
    assert one.key_check != two.key_check
    assert one.key_check == BloomEncoder(bits=77, key=KEY, hashes=4).key_check
    assert not np.array_equal(one.positions(range(20)), two.positions(range(20)))
    # Another size or number of hash functions is another family.
    assert not np.array_equal(
        one.positions(range(20))[:, 0], BloomEncoder(bits=1000, key=KEY, hashes=2).positions(range(20))[:, 0]
    )
    for shown in (repr(one), str(one), repr(one.encode(["a"]))):
        assert str(KEY[:4])[2:-1] not in shown
        assert KEY.hex()[:8] not in shown
    assert "ones" not in repr(one.encode(["a"]))
    with pytest.raises(InvalidInputError, match="different keys") as raised:
        _ = one.encode(["a"]) | two.encode(["a"])
    assert one.key_check not in str(raised.value)


@pytest.mark.parametrize("key", [b"", bytes(31), "x" * 40, None])
def test_bad_keys(key: Any) -> None:
    with pytest.raises(InvalidInputError, match="`key` must be at least 32 secret bytes, got key=<") as raised:
        BloomEncoder(bits=10, key=key)
    assert "xx" not in str(raised.value)


@pytest.mark.parametrize(
    ("identifiers", "message"),
    [
        ("person", "<one str>"),
        (b"person", "<one bytes>"),
        (["secret-1", None], "<1 missing>"),
        (["secret-1", "", ""], "<2 empty>"),
        ([1.5], "<dtype Float64>"),
        ([True], "<dtype Boolean>"),
        (["secret-1", 5], "<list>. One type for all of them"),
        (7, "<int>"),
        ([None, None], "<2 missing>"),
    ],
)
def test_bad_identifiers_never_show(identifiers: Any, message: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        BloomEncoder(bits=10, key=KEY).encode(identifiers)
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bits": 0}, "`bits` must be"),
        ({"hashes": 256}, "`hashes` must be"),
        ({"threshold": 2**63 + 1}, "`threshold` must be"),
        ({"key_check": "short"}, "16 hexadecimal digits, got key_check=<5 characters>"),
        ({"key_check": "x" * 16}, "16 hexadecimal digits"),
        ({"packed": np.zeros(3, dtype=np.uint8)}, "2 bytes"),
        ({"packed": np.zeros(2)}, "2 bytes"),
        ({"packed": np.array([0, 1], dtype=np.uint8)}, "zero after the last bit"),
    ],
)
def test_bad_filters(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        filled([0] * 9, **arguments)


def test_flipping_a_filter() -> None:
    bits, p = 80_003, 0.2
    sketch = filled([1] * bits)
    flipped = sketch.flip(randomizer=hs.BitFlipping(width=4, p=p), rng=hs.reproducible(2))
    assert flipped.threshold == hs.BitFlipping(width=1, p=p).threshold
    assert abs(flipped.ones - 0.8 * bits) < 5 * math.sqrt(bits * p * (1 - p))  # 6e-7, two-sided
    assert flipped.is_flipped
    assert "probability 0.2" in repr(flipped)
    assert sketch.ones == bits
    assert filled([1] * 9).flip(randomizer=hs.BitFlipping(width=1, p=0.49)).bits == 9
    with pytest.raises(InvalidInputError, match="not flipped yet"):
        flipped.flip(randomizer=hs.BitFlipping(width=1, p=p))
    with pytest.raises(InvalidInputError, match="Join the filters first"):
        _ = sketch | flipped
    with pytest.raises(ValueError, match="read-only"):
        sketch.packed[0] = 0


def test_logos_column_by_column() -> None:
    filters = [filled(columns) for columns in ([1, 0, 1, 0, 1], [0, 0, 1, 1, 1], [1, 0, 0, 0, 1])]
    assert align(filters).tolist() == [5, 0, 3, 2, 7]
    randomizer = hs.BitFlipping(width=3, p=0.1)
    released = [each.flip(randomizer=randomizer, rng=hs.reproducible(i)) for i, each in enumerate(filters)]
    assert logo_counts(released) == hs.Histogram(counts=np.bincount(align(released), minlength=8))


def test_flipping_each_filter_is_flipping_the_columns() -> None:
    # Both ways to a release have the law of BitFlipping(width=2): two samples, one table.
    bits, truth = 200_000, np.repeat([0, 1, 2, 3], 50_000)
    randomizer = hs.BitFlipping(width=2, p=0.3)
    filters = [filled((truth >> b & 1).tolist()) for b in range(2)]
    apart = align([each.flip(randomizer=randomizer, rng=hs.reproducible(i)) for i, each in enumerate(filters)])
    columns = hs.Protocol(randomizer=randomizer, shuffler=hs.NoShuffle(), n=bits)
    together = columns.collect(align(filters), rng=hs.reproducible(9)).reports
    expected = 50_000 * randomizer.channel().matrix
    for reports in (apart, together):
        table = np.bincount(truth * 4 + reports, minlength=16)
        assert stats.chisquare(table, expected.ravel()).statistic < stats.chi2.isf(1e-8, 12)


def test_filters_that_do_not_line_up() -> None:
    one = filled([0, 1])
    mild, strong = (one.flip(randomizer=hs.BitFlipping(width=1, p=p)) for p in (0.1, 0.2))
    for filters, message in [
        ([], "1 to 62 filters"),
        ([one, filled([0, 1, 1])], "of the same design, <2 bits, 1 hashes>"),
        ([one, filled([0, 1], hashes=2)], "of the same design"),
        ([one, filled([0, 1], key_check="f" * 16)], "made with the same key"),
        ([one, mild], "flipped with the same probability"),
        ([mild, strong], "flipped with the same probability"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            align(filters)
    with pytest.raises(InvalidInputError, match="Flip each filter before"):
        logo_counts([one])
    with pytest.raises(InvalidInputError, match="at most 20 filters"):
        logo_counts([mild] * 21)
    assert align([mild] * 62).size == 2


def test_kronecker_powers() -> None:
    matrix, rng = np.array([[0.3, 2.0], [-1.0, 0.5]]), np.random.default_rng(1)
    for k in range(5):
        full = np.ones((1, 1))
        for _ in range(k):
            full = np.kron(matrix, full)
        one, many = rng.random(1 << k), rng.random((1 << k, 3))
        assert per_bit(matrix, one) == pytest.approx(full @ one, rel=1e-12)
        assert per_bit(matrix, many) == pytest.approx(full @ many, rel=1e-12)


def test_packed_flips_of_ten_million_bits_cost_less_than_a_sort() -> None:
    numbers = np.random.default_rng(0).random(10**6)
    sketch = filled([0] * 8, bits=10**7, packed=np.zeros(1_250_000, dtype=np.uint8))
    start = time.process_time()
    np.sort(numbers)
    middle = time.process_time()
    sketch.flip(randomizer=hs.BitFlipping(width=1, p=0.05))
    # Measured: about twice the sort of 1e6 numbers.
    assert time.process_time() - middle < 60 * (middle - start)
