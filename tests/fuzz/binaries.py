"""Records and parts of queries, arrays in files, and what a key remembers."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from fuzz.fuzzing import FLOATS, SECRET, Fuzzer, Input, Maker, changed_bytes, changed_text
from hushuffle.collection.ledger import Candidate, begin, opened
from hushuffle.collection.order import load_reference
from hushuffle.collection.record_tags import Tags, TagSorter
from hushuffle.files.secret_keys import key_folder
from hushuffle.mechanisms.sketches import BloomEncoder
from hushuffle.plans import GroupingQuery, GroupingSet
from hushuffle.tables.sketch_files import load_filter, save_filter
from hushuffle_network.queries import Aggregate, KMeans
from hushuffle_papers.murakami2021.sources import load_scores

_SETS: Final = GroupingQuery(
    grouping_sets=(GroupingSet(columns=("age", "sex"), sizes=(6, 3)),),
    values=("x",),
    functions=("sum", "avg", "min", "max", "count"),
    partitions=3,
)
_CLUSTERS: Final = KMeans(initial=((0.0, 0.0), (1.0, 1.0)))


def contents(_folder: Path) -> Maker:
    """Read odd records, parts, points and centroids."""
    record, point = Aggregate.of(_SETS), _CLUSTERS

    def floats(rng: random.Random, count: int) -> bytes:
        return struct.pack(f"<{count}d", *(rng.choice(FLOATS) for _ in range(count)))

    def whole_numbers(data: bytes, count: int) -> Any:
        """Return so many numbers: what has another length is refused before."""
        return np.frombuffer(data[: 8 * count].ljust(8 * count, b"\0"))

    def make(rng: random.Random) -> Input:
        node = rng.randrange(3)
        groups = (rng.choice([0, 1, 5, 6, -1, 2**31 - 1, -(2**31)]) for _ in "ab")
        own, whole, two = struct.pack("<ii", *groups) + floats(rng, 1), floats(rng, record.width(1)), floats(rng, 2)

        def read_part() -> None:
            part = record.part(1, node, whole_numbers(whole, record.width(1)))
            record.statistics(1, record.combine(1, [part, part])).scaled(2.0).results(_SETS)

        def read_record() -> None:
            record.check(1, node, own)
            record.merge(1, record.empty(1), [own, own], [True, False])

        def read_point() -> None:
            point.check(1, 0, two)
            point.merge(1, point.empty(1), [two], [True])

        content, read = rng.choice(
            [
                (own, read_record),
                (whole, read_part),
                (two, read_point),
                (two, lambda: point.part(1, 0, whole_numbers(two, 2))),
            ]
        )
        if rng.random() < 0.2:
            own, whole, two = (changed_bytes(data, rng, most=2) for data in (own, whole, two))
        return Input(content=content, read=read)

    return make


def _array(write: Callable[[Path], object], name: str, load: Callable[[Path], object]) -> Fuzzer:
    def fuzzer(folder: Path) -> Maker:
        write(folder / name)
        whole = (folder / name).read_bytes()

        def make(rng: random.Random) -> Input:
            changed = changed_bytes(whole, rng, most=4)
            if rng.random() < 0.3:  # the header of an array is text
                changed = changed_text(whole.decode("latin-1"), rng, ("(", "'", "{", "9", ",", "[")).encode("latin-1")
            (folder / name).write_bytes(changed)
            return Input(content=changed, read=lambda: load(folder / name))

        return make

    return fuzzer


def _filter() -> Any:
    return BloomEncoder(bits=64, hashes=2, key=bytes(32)).encode([SECRET])


orders = _array(lambda path: np.save(path, np.arange(50)[::-1]), "order.npy", lambda path: load_reference(path, n=50))
raw_orders = _array(lambda path: np.arange(50).tofile(path), "order.raw", lambda path: load_reference(path, n=50))
filters = _array(lambda path: save_filter(path, _filter()), "filter.npz", load_filter)
score_archives = _array(lambda path: np.savez_compressed(path, C=np.eye(3)), "scores.npz", load_scores)


def ledgers(folder: Path) -> Maker:
    """Change what a key remembers of its coins: the list of batches, or the tags of one."""
    key, key_file = bytes.fromhex("5e" * 32), folder / "my.key"
    begin(key, key_file, new=True)
    tags = Tags(key=key, round_number=0, mechanism="x")
    sorter = TagSorter(folder, scope=tags.scope)
    sorter.add(tags.of(np.arange(50, dtype=np.uint64), np.arange(50)))
    candidate = Candidate(entries=sorter.entries(), shuffler="x", specification="x")
    with opened(key, key_file) as ledger:
        ledger.admit([candidate])
    whole = {path: path.read_bytes() for path in key_folder(key).iterdir() if path.name != "lock"}

    def make(rng: random.Random) -> Input:
        for path, content in whole.items():
            path.write_bytes(content)
        path = rng.choice(sorted(whole))
        changed = changed_bytes(whole[path], rng, most=3)
        path.write_bytes(changed)
        return Input(content=changed, read=read)

    def read() -> None:
        with opened(key, key_file) as ledger:
            ledger.check([candidate])

    return make
