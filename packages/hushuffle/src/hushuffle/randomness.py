"""Random words for privacy mechanisms: cryptographic, in bulk, with exact integer thresholds.

All randomness in hushuffle comes from 64-bit words of a stream cipher:

- `secure()`: AES-256 in counter mode under a key from the operating system (the default);
- `reproducible(seed)`: the same cipher under a key derived from the seed, for tests and simulation;
- `keyed(key=..., records=..., round=...)`: one stream per record, so that an engine that
  executes a record twice draws the same random bits and repeats the same report.

A Bernoulli trial of probability T / 2**64 is `word < T` for an integer threshold T, so its probability is
exact; uniform integers are drawn by rejection, so they are exactly uniform.
"""

from __future__ import annotations

import hashlib
import importlib
import mmap
import os
import sys
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.errors import InvalidInputError, MissingDependencyError, Problem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

SCALE: Final = 2**64
"""Thresholds are integers from 0 to SCALE; a Bernoulli trial with threshold T succeeds with probability T / SCALE."""

_CHUNK: Final = 1 << 16  # words per call of the cipher, which stay in the processor's cache
_ZEROS: Final = bytes(8 * _CHUNK)
_MADV_WIPEONFORK: Final = 18
"""The Linux constant MADV_WIPEONFORK (memory reads as zeros in a child), which Python 3.11 does not define."""

_PRECISION: Final = Context(prec=60)

_ALWAYS: Final = 200.0
"""From this epsilon on, every allowed k gives the largest threshold below 2**64, the least noise possible."""


class Randomness(ABC):
    """A source of independent uniform words, with methods that draw trials, integers and permutations from them.

    `size` is the number of records; position i of every result belongs to record i.
    """

    sequential: ClassVar[bool] = True
    """Whether a draw may be split into several calls (False for a keyed stream)."""

    def __copy__(self) -> NoReturn:
        message = f"{type(self).__name__} cannot be copied or pickled: two copies would repeat the same random bits"
        raise TypeError(message)

    __getstate__ = __copy__

    @abstractmethod
    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        """Return fresh uniform 64-bit words: one for each of `size` records, or only for the records `at`."""

    def coins(self, threshold: int, size: int) -> npt.NDArray[np.bool_]:
        """Return `size` Bernoulli trials, shape (size,), each True with probability threshold / 2**64 exactly."""
        limit = _checks.integer("threshold", threshold, low=0, high=SCALE)
        if limit == SCALE:
            return np.ones(size, dtype=np.bool_)
        return self.words(size) < np.uint64(limit)

    def integers(self, high: int, size: int) -> npt.NDArray[np.int64]:
        """Return `size` exactly uniform integers from 0 to high - 1, shape (size,); 1 <= high <= 2**63."""
        limit = _checks.integer("high", high, low=1, high=2**63)
        if limit == 1:
            return np.zeros(size, dtype=np.int64)
        if limit & (limit - 1) == 0:
            shift = np.uint64(64 - (limit.bit_length() - 1))
            return (self.words(size) >> shift).astype(np.int64)
        if limit <= 2**32:
            return self._by_multiplication(limit, size)
        return self._by_masking(limit, size)

    def permutation(self, size: int) -> npt.NDArray[np.int64]:
        """Return a uniform permutation of 0..size-1, shape (size,): items sorted by random keys, ties in random order.

        An item's key is the top bits of a random word; the item's number replaces the low bits, so that one sort of
        words orders keys and items. Items with equal keys are then put in a uniform order among themselves.

        All orders are equally likely. Given the keys, the result is uniform on the orders in which the keys ascend. The
        keys are independent and identically distributed, so renaming the items changes no probability, and any order
        is a renaming of any other order.
        """
        low = np.uint64(max(size - 1, 0).bit_length())
        numbers = np.uint64((1 << int(low)) - 1)
        ranked = self.words(size) & ~numbers
        ranked |= np.arange(size, dtype=np.uint64)
        ranked.sort()
        after = (ranked[1:] ^ ranked[:-1]) <= numbers  # the item has the same key as its predecessor
        ranked &= numbers
        order = ranked.view(np.int64)
        if bool(after.any()):
            self._untie(order, after)
        return order

    def _untie(self, order: npt.NDArray[np.int64], after: npt.NDArray[np.bool_]) -> None:
        """Put every run of tied items in a uniform order; `after[i]` says whether item i + 1 is tied with item i."""
        inside = np.zeros(order.size, dtype=np.bool_)
        inside[1:] = after
        inside[:-1] |= after
        places = np.flatnonzero(inside)
        runs = np.cumsum(~after[places - 1] | (places == 0))  # the number of the run of each place
        drawn = self.permutation(places.size)
        # A uniform order of all tied items, cut into runs, is an independent uniform order of each run.
        order[places] = order[places[drawn[np.argsort(runs[drawn], kind="stable")]]]

    def _by_multiplication(self, high: int, size: int) -> npt.NDArray[np.int64]:
        """Lemire (2019): the high half of a 32 x 32 bit product, rejecting the few biased low halves."""
        factor, low_half = np.uint64(high), np.uint64(0xFFFFFFFF)
        floor = np.uint64((2**32 - high) % high)
        products = (self.words(size) & low_half) * factor
        again = np.flatnonzero((products & low_half) < floor)
        while again.size:
            redrawn = (self.words(size, at=again) & low_half) * factor
            products[again] = redrawn
            again = again[(redrawn & low_half) < floor]
        return (products >> np.uint64(32)).astype(np.int64)

    def _by_masking(self, high: int, size: int) -> npt.NDArray[np.int64]:
        """Take as many top bits of a word as `high` has, and redraw numbers that are too large."""
        shift, limit = np.uint64(64 - high.bit_length()), np.uint64(high)
        values = self.words(size) >> shift
        again = np.flatnonzero(values >= limit)
        while again.size:
            redrawn = self.words(size, at=again) >> shift
            values[again] = redrawn
            again = again[redrawn >= limit]
        return values.astype(np.int64)


class _Forks:
    """Counts the forks since the module was imported; on Linux also those that Python does not report.

    The kernel wipes a page of memory in every child.
    """

    def __init__(self) -> None:
        self._count = 0
        self._page = _wiped_on_fork()
        self._forked()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._count += 1
        self._page[0] = 1

    @property
    def count(self) -> int:
        """Return a number that differs between a process and every process forked from it."""
        if not self._page[0]:
            self._forked()
        return self._count


def _wiped_on_fork() -> mmap.mmap | bytearray:
    """Return memory that reads as zeros in a forked child, or ordinary memory if the system cannot wipe on fork."""
    if sys.platform == "linux":
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # Linux kernels before 4.14 cannot wipe on fork
            page.madvise(_MADV_WIPEONFORK)
        return page
    return bytearray(1)  # pragma: no cover - not on Linux


_FORKS: Final = _Forks()


@cache
def _primitives(name: str) -> Any:
    """A module of cryptography, which the extra `program` installs."""
    try:
        return importlib.import_module(f"cryptography.hazmat.primitives.{name}")
    except ModuleNotFoundError as missing:
        raise MissingDependencyError.of_program(missing) from missing


def _encryptor(key: bytes | bytearray, *, counts: bool = True) -> CipherContext:
    """AES in counter mode, or of single blocks."""
    parts = _primitives("ciphers")
    mode = parts.modes.CTR(bytes(16)) if counts else parts.modes.ECB()
    context: CipherContext = parts.Cipher(parts.algorithms.AES(key), mode).encryptor()
    return context


def derived(key: bytes, info: bytes, length: int = 32) -> bytes:
    """Return `length` bytes derived from a secret key by HKDF-SHA256 (RFC 5869), independent for each `info`."""
    kdf, sha = _primitives("kdf.hkdf"), _primitives("hashes").SHA256()
    return bytes(kdf.HKDF(algorithm=sha, length=length, salt=None, info=info).derive(key))


def _next_words(encryptor: CipherContext, count: int) -> npt.NDArray[np.uint64]:
    words = np.empty(count, dtype=np.uint64)
    out, zeros = words.data.cast("B") if count else memoryview(bytearray()), memoryview(_ZEROS)
    for start in range(0, 8 * count, 8 * _CHUNK):
        stop = min(start + 8 * _CHUNK, 8 * count)
        encryptor.update_into(zeros[: stop - start], out[start:stop])
    return words


class _OneThread:
    """Refuses draws by two threads at once, which could return equal words or words that are not repeatable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            hint = "Give every thread a generator of its own; secure() may be shared."
            rule = "must be a generator that no other thread draws from"
            raise InvalidInputError(Problem(key="rng", rule=rule, value="one in use", hint=hint))

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class SecureRandomness(Randomness):
    """Unpredictable words; safe for threads and forks.

    Every thread and every forked process takes its own key from the operating system. After each call, words of the
    stream replace the key, so earlier words cannot be recomputed from memory.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        while True:
            forks = _FORKS.count
            keyed_at, encryptor = getattr(self._local, "stream", (0, None))
            if encryptor is None or keyed_at != forks:
                encryptor = _encryptor(os.urandom(32))
            words = _next_words(encryptor, size if at is None else at.size)
            key = bytearray(32)
            encryptor.update_into(bytes(32), key)
            self._local.stream = (forks, _encryptor(key))
            key[:] = bytes(32)
            if _FORKS.count == forks:  # otherwise a signal handler forked during the call: discard
                return words


class ReproducibleRandomness(Randomness):
    """Words that are determined by a seed, for tests and simulation and never for people's data."""

    def __init__(self, seed: int) -> None:
        number = b"%d" % _checks.integer("seed", seed, low=0)
        key = hashlib.sha256(b"hushuffle reproducible randomness 1:" + number).digest()
        self._encryptor = _encryptor(key)
        self._one_thread = _OneThread()

    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        with self._one_thread:
            return _next_words(self._encryptor, size if at is None else at.size)


class KeyedRandomness(Randomness):
    """One stream of words per record, determined by (key, record, round): a retry in any process repeats it.

    Word j of record r is half of the AES-256 block of (r, j), under a key derived from the secret key and the round. An
    edited value under the same key, record and round reuses the randomness of the old value, which can reveal both. Use
    a new round, or pass `values` (integers below 2**31): then each value has its own randomness.
    """

    sequential = False

    def __init__(
        self,
        *,
        key: bytes,
        records: npt.NDArray[np.uint64],
        round_number: int,
        values: npt.NDArray[np.int64] | None = None,
    ) -> None:
        size = f"<{len(key)} bytes>" if isinstance(key, bytes) else f"<{type(key).__name__}>"
        if not isinstance(key, bytes) or len(key) < 32:
            _checks.reject("key", "at least 32 secret bytes", size, "Make one with os.urandom(32).")
        identifiers = np.asarray(records)
        if identifiers.ndim != 1 or not np.issubdtype(identifiers.dtype, np.integer):
            _checks.reject("records", "a one-dimensional array of integers", f"<{identifiers.dtype}>")
        if identifiers.size and int(identifiers.min()) < 0:
            _checks.reject("records", ">= 0", "<a negative record>")
        if not _checks.distinct(identifiers):
            hint = "Two records would share their randomness. For collect, `--id` must differ from row to row."
            _checks.reject("records", "distinct", "<repeated record>", hint)
        number = _checks.integer("round", round_number, low=0)
        # Blocks that never repeat: a pseudorandom function of (record, counter).
        self._encryptor = _encryptor(derived(key, b"hushuffle keyed records 1, round %d" % number), counts=False)
        self._records = identifiers.astype(np.uint64)
        # The words of a value are numbered from 2**32 times the value on.
        first = np.zeros(identifiers.size, dtype=np.uint64) if values is None else values.astype(np.uint64)
        self._drawn = first << np.uint64(32)
        self._one_thread = _OneThread()

    def words(self, size: int, *, at: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.uint64]:
        if size != self._records.size:
            _checks.reject("size", f"the number of records, {self._records.size}", size)
        chosen = slice(None) if at is None else at
        with self._one_thread:
            blocks = np.empty((self._records[chosen].size, 2), dtype="<u8")
            blocks[:, 0] = self._records[chosen]
            blocks[:, 1] = self._drawn[chosen]
            self._drawn[chosen] += np.uint64(1)
            stream = np.frombuffer(self._encryptor.update(blocks.tobytes()), dtype="<u8")
        return stream[::2].astype(np.uint64)

    def permutation(self, size: int) -> NoReturn:  # noqa: ARG002
        """Raise an error, because the order of release must not be a function of the records."""
        hint = "Use secure() for the shuffle; only the randomizer may use keyed randomness."
        _checks.reject("rng", "secure() or reproducible(seed) for a permutation", "<keyed>", hint)

    def __repr__(self) -> str:
        return f"KeyedRandomness({self._records.size} records)"


def secure() -> SecureRandomness:
    """Return a generator seeded by the operating system: unpredictable, not repeatable.

    >>> import hushuffle as hs
    >>> hs.secure().integers(6, 3).shape
    (3,)
    """
    return SecureRandomness()


def reproducible(seed: int) -> ReproducibleRandomness:
    """Return a generator that repeats for the same integer seed >= 0: for tests and simulation only.

    >>> import hushuffle as hs
    >>> hs.reproducible(1).integers(6, 8).tolist() == hs.reproducible(1).integers(6, 8).tolist()
    True
    """
    return ReproducibleRandomness(seed)


def keyed(*, key: bytes, records: npt.ArrayLike, round: int = 0) -> KeyedRandomness:  # noqa: A002 - the field's word
    """Return per-record randomness: the same key, record and round always give the same random bits.

    Args:
        key: at least 32 secret bytes; an adversary who knows them can undo the randomizer.
        records: distinct integers, shape (n,), one for each record.
        round: a new number for every collection in which values may have changed.

    >>> import hushuffle as hs
    >>> key = bytes(32)  # for this example only
    >>> first = hs.keyed(key=key, records=[7, 9]).words(2)
    >>> bool(first[1] == hs.keyed(key=key, records=[9]).words(1)[0])
    True
    """
    return KeyedRandomness(key=key, records=np.asarray(records), round_number=round)


def threshold_for_truth(k: int, epsilon: float, *, size: int = 1) -> int:
    """Return floor(2**64 theta), theta = (e**epsilon - 1)/(k/size + e**epsilon - 1); epsilon is never exceeded.

    The Bernoulli trial with this threshold chooses between the true value and a uniform draw from all k values; a
    report names `size` of them.

    >>> threshold_for_truth(2, 1.0) / 2**64
    0.46211715726000974
    """
    if epsilon >= _ALWAYS:
        return SCALE - 1
    with localcontext(_PRECISION):
        growth = size * (Decimal(epsilon).exp() - 1)
        return min(int(growth / (k + growth) * SCALE), SCALE - 1)


def epsilon_of_threshold(k: int, threshold: int) -> float:
    """Return ln(1 + k t/(1 - t)), t = threshold / 2**64, rounded upwards: the implemented epsilon_0.

    >>> epsilon_of_threshold(2, threshold_for_truth(2, 1.0))
    1.0
    """
    if threshold == SCALE:
        return float("inf")
    ratio = 1 + Fraction(k * threshold, SCALE - threshold)
    with localcontext(_PRECISION):
        value = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        # One part in 10**40 covers the rounding of the quotient and of the logarithm.
        ceiling = value * (1 + Decimal(10) ** -40)
        nearest = float(ceiling)
        return nearest if Decimal(nearest) >= ceiling else float(np.nextafter(nearest, np.inf))
