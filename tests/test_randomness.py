from __future__ import annotations

import copy
import ctypes
import itertools
import math
import os
import pickle
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.ciphers import CipherContext

import hushuffle as hs
from hushuffle import randomness
from hushuffle.errors import InvalidInputError
from hushuffle.randomness import SCALE, Randomness, epsilon_of_threshold, threshold_for_truth
from oracles import tied_sort
from oracles.rr_statistics import chi_square_excess
from oracles.rr_thresholds import epsilon_excess, threshold

KEY = bytes(range(32))


class Scripted(Randomness):
    """Plays back given words, and counts what is asked for."""

    def __init__(self, words: Sequence[int]) -> None:
        self.waiting = list(words)
        self.asked: list[int] = []

    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        wanted = size if at is None else at.size
        self.asked.append(wanted)
        drawn, self.waiting = self.waiting[:wanted], self.waiting[wanted:]
        return np.array(drawn, dtype=np.uint64)


def drawn(high: int, word: int) -> int | None:
    """The integer below `high` that `word` gives, or None if it is rejected (then 0-words follow until accepted)."""
    spare = [2**64 - 2**40 - 1, 2**31, 12345 << 45, 3 << 20]  # for every `high` here one of them is accepted
    source = Scripted([word, *spare])
    result = int(source.integers(high, 1)[0])
    return result if len(source.asked) == 1 else None


# Thresholds.

SIZES = [2, 3, 10, 1000, 2**40]
EPSILONS = [1e-12, 1e-6, 0.1, 1.0, math.log(3), 2.0, 10.0, 30.0, 44.0, 50.0, 100.0, 130.0]


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("epsilon", [1e-18, *EPSILONS])
def test_threshold_is_the_floor_of_the_exact_value(k: int, epsilon: float) -> None:
    assert threshold_for_truth(k, epsilon) == threshold(k, epsilon)


@pytest.mark.parametrize("epsilon", [138.0, 1e3, 1e6])
def test_a_finite_epsilon_is_never_no_noise(epsilon: float) -> None:
    assert threshold_for_truth(2, epsilon) == threshold(2, epsilon) == SCALE - 1


def test_an_enormous_epsilon_is_a_number_too() -> None:
    assert hs.RandomizedResponse(k=2, epsilon=1e7).threshold == SCALE - 1


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_published_epsilon_is_just_above_the_exact_one(k: int, epsilon: float) -> None:
    coin = max(threshold(k, epsilon), 1)
    published = epsilon_of_threshold(k, coin)
    assert 0 <= epsilon_excess(k, coin, published) <= math.ulp(published)
    if coin == threshold(k, epsilon):
        assert published <= math.nextafter(epsilon, math.inf)
    if coin > 1 and epsilon < 40:
        assert published == pytest.approx(epsilon, rel=2.0 * k / (SCALE * math.expm1(epsilon)) + 1e-8)


@pytest.mark.parametrize("coin", [1, 2**20 + 1, 2**63, SCALE - 1])
@pytest.mark.parametrize("k", SIZES)
def test_published_epsilon_at_any_threshold(k: int, coin: int) -> None:
    published = epsilon_of_threshold(k, coin)
    assert 0 <= epsilon_excess(k, coin, published) <= math.ulp(published)


def test_full_scale_is_no_noise() -> None:
    assert epsilon_of_threshold(3, SCALE) == math.inf


# Coins and integers.


def test_a_coin_is_a_comparison_with_its_threshold() -> None:
    for limit in (1, 2**32, 2**63 + 5, SCALE - 1):
        coins = Scripted([limit - 1, limit, 0, SCALE - 1]).coins(limit, 4)
        assert coins.tolist() == [True, False, True, False]
    assert not Scripted([0, 0]).coins(0, 2).any()


def test_a_certain_coin_needs_no_words() -> None:
    source = Scripted([])
    assert source.coins(SCALE, 3).tolist() == [True, True, True]
    assert source.asked == []


@pytest.mark.parametrize("high", [3, 5, 6, 7, 100, 1000, 2**31 - 1, 2**31 + 1, 2**32 - 1, 3 * 2**30])
def test_small_integers_come_from_equally_many_words(high: int) -> None:
    # Result r owns an interval of low halves: check its ends, and that every interval has the same length.
    share = 2**32 // high
    top = (SCALE - 1) ^ 0xFFFFFFFF  # the high half of a word must not matter
    for result in {0, 1, 2, high // 2, high - 2, high - 1}:
        last = -(-((result + 1) * 2**32) // high) - 1
        first = last - share + 1
        for word in (first, last, first | top, last | top):
            assert drawn(high, word) == result
        for word in (first - 1, last + 1):
            assert drawn(high, word % 2**32) != result
    rejected = 2**32 - share * high
    assert 0 <= rejected < high


@pytest.mark.parametrize("high", [2**32 + 1, 2**33 - 1, 10**12, 2**62 + 1, 2**63 - 1])
def test_large_integers_come_from_equally_many_words(high: int) -> None:
    shift = 64 - high.bit_length()
    for result in (0, 1, high // 3, high - 1):
        assert drawn(high, result << shift) == result
        assert drawn(high, (result << shift) + 2**shift - 1) == result
    assert drawn(high, high << shift) is None
    assert drawn(high, SCALE - 1) is None


@pytest.mark.parametrize("bits", [1, 2, 31, 32, 33, 63])
def test_powers_of_two_take_the_top_bits(bits: int) -> None:
    for result in (0, 1, 2**bits - 1):
        for low in (0, 2 ** (64 - bits) - 1):
            assert drawn(2**bits, (result << (64 - bits)) + low) == result


def test_one_value_needs_no_words() -> None:
    source = Scripted([])
    assert source.integers(1, 4).tolist() == [0, 0, 0, 0]
    assert source.asked == []


@pytest.mark.parametrize(("high", "bad", "good"), [(3, 0, pow(3, -1, 2**32)), (2**40 + 1, (2**40 + 1) << 23, 5 << 23)])
def test_rejected_positions_alone_are_drawn_again_until_accepted(high: int, bad: int, good: int) -> None:
    source = Scripted([good, bad, bad, good, bad, good, good])
    result = source.integers(high, 4)
    assert source.asked == [4, 2, 1]
    assert len(set(result.tolist())) == 1
    assert source.waiting == []


@pytest.mark.parametrize("high", [2, 3, 7, 2**32 + 1])
def test_integers_are_uniform(high: int) -> None:
    cells = min(high, 7)
    values = hs.reproducible(11).integers(high, 70_000)
    assert values.dtype == np.int64
    seen = np.bincount((values.astype(object) * cells // high).astype(np.int64), minlength=cells)
    edges = [-(-cell * high // cells) for cell in range(cells + 1)]
    assert chi_square_excess(seen, 70_000 * np.diff(np.array(edges, dtype=float)) / high) < 0


@pytest.mark.parametrize(
    ("name", "value"), [("high", 0), ("high", 2**63 + 1), ("high", 2.0), ("threshold", -1), ("threshold", SCALE + 1)]
)
def test_limits_are_checked(name: str, value: int) -> None:
    draw = hs.reproducible(0).integers if name == "high" else hs.reproducible(0).coins
    with pytest.raises(InvalidInputError, match=rf"`{name}` must be an integer from [01] to"):
        draw(value, 3)


def test_a_permutation_sorts_words_and_draws_again_for_those_that_tie() -> None:
    source = Scripted([5, 9, 6, 30, 10])  # of three items, the two lowest bits do not count: 5 and 6 are the same
    assert source.permutation(3).tolist() == [2, 0, 1]
    assert source.asked == [3, 2]
    assert hs.reproducible(0).permutation(0).tolist() == []
    assert hs.reproducible(0).permutation(1).tolist() == [0]


class FewKeys(Scripted):
    """Keys as given; then every order of those that tie, one for each `turn`."""

    def __init__(self, words: Sequence[int], turn: int) -> None:
        super().__init__(words)
        self.turn, self.orders = turn, 1

    def permutation(self, size: int) -> npt.NDArray[np.int64]:
        if not self.asked:
            return super().permutation(size)
        every = list(itertools.permutations(range(size)))
        self.orders = len(every)
        return np.array(every[self.turn])


@pytest.mark.parametrize(("n", "keys"), [(2, 2), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2)])
def test_all_orders_are_equally_likely_in_spite_of_ties(n: int, keys: int) -> None:
    """Every choice of few keys, every order of the tied ones: the law of the product, exactly."""
    law: Counter[tuple[int, ...]] = Counter()
    for chosen in itertools.product(range(keys), repeat=n):
        turn, orders = 0, 1
        while turn < orders:
            source = FewKeys([key << 60 for key in chosen], turn)
            order = tuple(source.permutation(n).tolist())
            orders = source.orders
            law[order] += Fraction(1, keys**n * orders)  # type: ignore[assignment]
            turn += 1
    assert law == tied_sort.orders(n, keys)
    assert set(law.values()) == {Fraction(1, math.factorial(n))}


class Coarse(randomness.ReproducibleRandomness):
    """Words with few random bits only, so that there are ties."""

    bits = 3

    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        return super().words(size, at=at) & ~np.uint64((1 << (64 - self.bits)) - 1)


@pytest.mark.parametrize("kind", [randomness.ReproducibleRandomness, Coarse])
def test_orders_drawn_are_uniform(kind: type[Randomness]) -> None:
    """A chi-square test of all 24 orders of four items, seed fixed: false alarm 1e-6 for each."""
    source = kind(5)  # type: ignore[call-arg]
    seen = Counter(tuple(source.permutation(4).tolist()) for _ in range(4800))
    assert (
        chi_square_excess(np.array([seen[order] for order in itertools.permutations(range(4))]), np.full(24, 200.0)) < 0
    )


def test_a_long_permutation_with_ties() -> None:
    source = Coarse(6)
    source.bits = 16
    order = source.permutation(10_000)
    assert np.array_equal(np.sort(order), np.arange(10_000))
    assert abs(np.corrcoef(order, np.arange(10_000))[0, 1]) < 0.05  # five standard errors: false alarm 6e-7
    assert np.count_nonzero(np.diff(order) == 1) < 12  # about one on average: false alarm 1e-9


# Streams.


def test_golden_words_never_change() -> None:
    assert hs.reproducible(0).words(4).tolist() == [
        0xFD6BCB56F5C71E7E,
        0x3ED87695ECC2F183,
        0x7890CA0C0172DF9E,
        0x2F84268696CC171B,
    ]
    assert hs.reproducible(2026).words(2).tolist() == [0xDC9A71F99EA8C76C, 0x9A44702D8D72AF3F]
    stream = hs.keyed(key=KEY, records=[0, 1, 2**40])
    assert stream.words(3).tolist() == [0xFA5183A32E8F1ED5, 0x6684B60239BCBFD4, 0xF91F8D07063758D4]
    assert stream.words(3).tolist() == [0x735C23215B41E6DF, 0xB5F4B2F62B88CA78, 0xCB1DA68F3CB5FFFF]
    later = hs.keyed(key=KEY, records=[0, 1, 2**40], round=1)
    assert later.words(3).tolist() == [0x73363B5093BD0549, 0xD1F294521992CFAD, 0x8D727B49B1B51774]


def test_golden_draws_never_change() -> None:
    assert hs.reproducible(1).integers(6, 8).tolist() == [1, 5, 5, 1, 3, 5, 5, 2]
    assert hs.reproducible(1).integers(2**40 + 1, 2).tolist() == [478579985504, 955547978170]
    assert hs.reproducible(1).permutation(6).tolist() == [0, 4, 1, 5, 2, 3]


def test_a_stream_may_be_split_anywhere() -> None:
    total = 2 * randomness._CHUNK + 9
    whole = hs.reproducible(3).words(total)
    parts = hs.reproducible(3)
    sizes = [0, 1, 7, randomness._CHUNK, randomness._CHUNK + 1]
    assert np.array_equal(np.concatenate([parts.words(size) for size in sizes]), whole)
    assert np.array_equal(hs.reproducible(3).words(99, at=np.array([4, 50])), whole[:2])


def test_words_are_bits_of_a_fair_coin() -> None:
    for source in (hs.reproducible(4), hs.keyed(key=KEY, records=np.arange(20_000))):
        bits = np.unpackbits(source.words(20_000).view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
        z = (bits - 10_000) / math.sqrt(5_000)
        assert np.abs(z).max() < 6.2  # 64 bits, two-sided: 4e-8


def test_seeds_are_streams_apart() -> None:
    firsts = {int(hs.reproducible(seed).words(1)[0]) for seed in range(200)}
    assert len(firsts) == 200
    with pytest.raises(InvalidInputError, match=r"`seed` must be an integer >= 0, got seed=-1"):
        hs.reproducible(-1)


def test_secure_streams_do_not_repeat() -> None:
    assert len({int(hs.secure().words(1)[0]) for _ in range(100)}) == 100


@pytest.mark.parametrize("source", [hs.secure(), hs.reproducible(1)], ids=["secure", "reproducible"])
def test_streams_cannot_be_copied(source: Randomness) -> None:
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(
            TypeError, match=r"cannot be copied or pickled: two copies would repeat the same random bits"
        ):
            duplicate(source)


def test_keyed_streams_do_not_travel() -> None:
    stream = hs.keyed(key=KEY, records=[1])
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            duplicate(stream)


def test_representations_show_no_key() -> None:
    assert repr(hs.keyed(key=KEY, records=[1, 2])) == "KeyedRandomness(2 records)"
    assert repr(hs.secure()).startswith("<hushuffle.randomness.SecureRandomness object at")
    for source in (hs.secure(), hs.reproducible(7), hs.keyed(key=KEY, records=[1])):
        assert not [value for value in vars(source).values() if isinstance(value, bytes) and len(value) in (16, 32)]


def words_of_a_fork(source: Randomness, fork: Callable[[], int] = os.fork) -> tuple[bytes, bytes]:
    """Four words of a forked child, and four that the parent draws afterwards."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of numpy: the child only draws and leaves
        child = fork()
    if child == 0:  # pragma: no cover - another process
        os.write(write, source.words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 33)
    os.close(read)
    os.close(write)
    return theirs, source.words(4).tobytes()


def test_a_forked_process_draws_other_words() -> None:
    source = hs.secure()
    source.words(3)
    theirs, ours = words_of_a_fork(source)
    assert len(theirs) == 32
    assert theirs != ours


def test_a_forked_process_draws_other_words_under_the_same_process_id(monkeypatch: pytest.MonkeyPatch) -> None:
    # Ids come round again, and the first process of every container has number 1.
    monkeypatch.setattr(os, "getpid", lambda: 1)
    source = hs.secure()
    source.words(3)
    theirs, ours = words_of_a_fork(source)
    assert len(theirs) == 32
    assert theirs != ours


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a fork behind Python's back goes unseen")
def test_a_fork_behind_pythons_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    source = hs.secure()
    source.words(3)
    theirs, ours = words_of_a_fork(source, ctypes.PyDLL(None).fork)
    assert len(theirs) == 32
    assert theirs != ours


def test_a_fork_in_the_middle_of_a_draw_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_before: list[npt.NDArray[np.uint64]] = []
    plain = randomness._next_words

    def forked_meanwhile(encryptor: CipherContext, count: int) -> npt.NDArray[np.uint64]:
        words = plain(encryptor, count)
        if not drawn_before:
            randomness._FORKS._forked()  # as in the child of a signal handler that forks
        drawn_before.append(words)
        return words

    source = hs.secure()
    monkeypatch.setattr(randomness, "_next_words", forked_meanwhile)
    words = source.words(3)
    assert len(drawn_before) == 2
    assert not np.intersect1d(words, drawn_before[0]).size


def test_threads_share_a_secure_generator_and_repeat_nothing() -> None:
    source, drawn_by_all = hs.secure(), list[npt.NDArray[np.uint64]]()

    def draw() -> None:
        drawn_by_all.extend(source.words(70_000) for _ in range(20))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(drawn_by_all)
    assert words.size == 4 * 20 * 70_000
    words.sort()
    assert np.all(words[1:] > words[:-1])  # a repeat by chance: 1 in a million


@pytest.mark.parametrize("make", [lambda: hs.reproducible(1), lambda: hs.keyed(key=KEY, records=[1])])
def test_two_threads_do_not_draw_from_one_stream_at_once(make: Callable[[], Any]) -> None:
    source = make()
    with (
        source._one_thread,
        pytest.raises(InvalidInputError, match="`rng` must be a generator that no other thread draws from"),
    ):
        source.words(1)
    assert source.words(1)[0] == make().words(1)[0]  # the refused call drew nothing


def test_a_key_is_dropped_after_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes | bytearray] = []
    plain = randomness._encryptor

    def remembered(key: bytes | bytearray) -> CipherContext:
        keys.append(key)
        return plain(key)

    monkeypatch.setattr(randomness, "_encryptor", remembered)
    monkeypatch.setattr(os, "urandom", lambda size: b"k" * size)
    source = hs.secure()
    words = [source.words(2) for _ in range(3)]
    # Each call takes its words, then the next key, from one stream; what lies in memory afterwards is the next key's.
    expected, key = [], b"k" * 32
    for _ in range(3):
        stream = plain(key).update(bytes(48))
        expected.append(stream[:16])
        key = stream[16:]
    assert [drawn_words.tobytes() for drawn_words in words] == expected
    assert keys == [b"k" * 32, *[bytes(32)] * 3]


# Keyed streams.


def test_a_record_has_its_words_whatever_the_batch() -> None:
    records = np.array([9, 2, 2**63 - 1, 5])
    whole = hs.keyed(key=KEY, records=records)
    expected = np.stack([whole.words(4) for _ in range(3)])
    for place, record in enumerate(records):
        alone = hs.keyed(key=KEY, records=[record])
        assert [int(alone.words(1)[0]) for _ in range(3)] == expected[:, place].tolist()


def test_a_redrawn_record_moves_on_alone() -> None:
    stream, twin = hs.keyed(key=KEY, records=[1, 2, 3]), hs.keyed(key=KEY, records=[1, 2, 3])
    plain = np.stack([twin.words(3) for _ in range(3)])
    assert np.unique(plain).size == plain.size
    assert np.array_equal(stream.words(3), plain[0])
    assert stream.words(3, at=np.array([1])).tolist() == [plain[1, 1]]
    assert stream.words(3).tolist() == [plain[1, 0], plain[2, 1], plain[1, 2]]


def test_key_and_round_change_every_word() -> None:
    records = np.arange(50)
    streams = [hs.keyed(key=key, records=records, round=r).words(50) for key in (KEY, bytes(32)) for r in (0, 1, 10)]
    assert len(np.unique(np.concatenate(streams))) == 300


def test_unsigned_and_signed_records_agree() -> None:
    signed = hs.keyed(key=KEY, records=np.array([3, 4], dtype=np.int32)).words(2)
    assert np.array_equal(signed, hs.keyed(key=KEY, records=np.array([3, 4], dtype=np.uint64)).words(2))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (bytes(31), r"`key` must be at least 32 secret bytes, got key=<31 bytes>. Make one with os.urandom\(32\)."),
        ("secret" * 9, r"`key` must be at least 32 secret bytes, got key=<str>"),
    ],
)
def test_short_keys_are_refused_and_not_shown(key: bytes, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        hs.keyed(key=key, records=[1])
    assert "secretsecret" not in str(caught.value)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([[1, 2]], r"`records` must be a one-dimensional array of integers"),
        ([1.0, 2.0], r"`records` must be a one-dimensional array of integers, got records=<float64>"),
        (
            [7, 8, 7],
            r"`records` must be distinct, got records=<repeated record>. Two records would share their randomness.",
        ),
    ],
)
def test_bad_records(records: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        hs.keyed(key=KEY, records=records)


def test_negative_records_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"`records`"):
        hs.keyed(key=KEY, records=[-1])


def test_keyed_streams_serve_their_records_only() -> None:
    stream = hs.keyed(key=KEY, records=[1, 2])
    with pytest.raises(InvalidInputError, match=r"`size` must be the number of records, 2, got size=3"):
        stream.words(3)
    with pytest.raises(InvalidInputError, match=r"`round` must be an integer >= 0, got round=-1"):
        hs.keyed(key=KEY, records=[1], round=-1)
    with pytest.raises(InvalidInputError, match=r"`rng` must be secure\(\) or reproducible\(seed\) for a permutation"):
        stream.permutation(2)
    nobody = hs.keyed(key=KEY, records=np.array([], dtype=np.int64))
    assert nobody.words(0).size == 0


def test_coin_probabilities_are_exact_rationals() -> None:
    # What the mechanism claims is what its words give: T of 2**64 words are below T.
    randomizer = hs.RandomizedResponse(k=2, epsilon=1.0)
    assert Fraction(randomizer.threshold, SCALE) == randomizer.law().theta
