"""What all fuzzers share: how inputs are changed, and what must never come of them."""

from __future__ import annotations

import copy
import random
import struct
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hushuffle.errors import HushuffleError

SECRET: Final = "zq7391xk"  # noqa: S105 - not of anything
"""Stands wherever something private is; no message may hold it."""

LONGEST: Final = 60.0
"""Seconds for one input, on a busy machine."""

NUMBERS: Final = (0, 1, 2, 255, 256, 65_535, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
FLOATS: Final = (0.0, -0.0, 1.0, float("nan"), float("inf"), 1e308, -1e308, 5e-324)


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input: what is shown if it finds something, and what is done with it."""

    content: Any
    read: Callable[[], object]


Maker = Callable[[random.Random], Input]
"""Makes an input with these coins."""

Fuzzer = Callable[[Path], Maker]
"""Makes ready what inputs are made of, in an empty folder."""


@dataclass(kw_only=True)
class Outcome:
    """How many inputs were accepted and refused, and what else came of some."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Any] = field(default_factory=dict)

    def find(self, what: str, content: Any) -> None:
        self.counts["findings"] += 1
        self.findings.setdefault(what, content)

    def __str__(self) -> str:
        return "\n".join(f"{what}\n   input: {str(content)[:1500]!r}" for what, content in self.findings.items())


def hunt(make: Maker, *, seed: int, count: int) -> Outcome:
    """Read so many inputs; anything but an answer or an error of the project, without the secret, is a finding."""
    rng, outcome = random.Random(seed), Outcome()  # noqa: S311 - the same inputs every time
    for _ in range(count):
        attempt(make, rng, outcome)
    return outcome


def attempt(make: Maker, rng: random.Random, outcome: Outcome) -> None:
    """Read one input and note what came of it."""
    one = make(rng)
    start = time.perf_counter()
    try:
        one.read()
        outcome.counts["accepted"] += 1
    except HushuffleError as error:
        outcome.counts["refused"] += 1
        if SECRET in str(error):
            outcome.find(f"the secret in {type(error).__name__}: {str(error)[:300]}", one.content)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        outcome.find(f"{type(error).__name__} at {_where(error)}: {str(error)[:200]}", one.content)
    if time.perf_counter() - start > LONGEST:
        outcome.find(f"took more than {LONGEST:g} seconds", one.content)


class Choices(random.Random):
    """Coins that are read from bytes, then all 0: whoever makes the bytes decides what input is made."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._left = data

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        taken, self._left = self._left[:size].ljust(size, b"\0"), self._left[size:]
        return int.from_bytes(taken, "big") >> (8 * size - k)

    def random(self) -> float:
        return self.getrandbits(53) / 2**53


def _where(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/hushuffle/" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def changed_bytes(content: bytes, rng: random.Random, *, most: int = 8) -> bytes:
    """Return bytes with some of them changed, removed, added, or overwritten by a number that is at an end."""
    data = bytearray(content)
    for _ in range(rng.randint(1, most)):
        place = rng.randrange(len(data)) if data else 0
        match rng.randrange(5):
            case 0 | 1 if data:
                data[place] = rng.randrange(256)
            case 2:
                del data[place : place + rng.randint(1, 40)]
            case 3:
                data[place:place] = rng.randbytes(rng.randint(1, 20))
            case _:
                data[place : place + 8] = struct.pack("<Q", rng.choice(NUMBERS))
    return bytes(data)


def changed_text(text: str, rng: random.Random, pieces: Sequence[str], *, most: int = 6) -> str:
    """Return text in which some characters have become others."""
    letters = list(text) or [""]
    for _ in range(rng.randint(1, most)):
        place = rng.randrange(len(letters))
        letters[place] = rng.choice([*pieces, letters[place] * 3])
    return "".join(letters)


def changed_tree(tree: Any, rng: random.Random, values: Sequence[Any], *, most: int = 3) -> Any:
    """Return tables and lists in which something is another value, is gone, moved, doubled or wrapped."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.randint(1, most)):
        places = [place for place in _places(tree) if place]
        if not places:
            break
        *way, last = rng.choice(places)
        parent = _at(tree, way)
        match rng.randrange(8):
            case 0 | 1 | 2 | 3:
                parent[last] = copy.deepcopy(rng.choice(values))
            case 4:
                del parent[last]
            case 5:
                parent[last] = copy.deepcopy(_at(tree, rng.choice(places)))
            case 6 if isinstance(parent, list):
                parent.append(copy.deepcopy(rng.choice([*parent, *values])))
            case _:
                parent[last] = rng.choice([[parent[last]], {"a": parent[last]}])
    return tree


def _places(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield from _places(tree[key], (*way, key))


def _at(tree: Any, way: Sequence[Any]) -> Any:
    for key in way:
        tree = tree[key]
    return tree
