"""What peers say, and what nodes keep: frames, sealed contents, states, arrays, keys, certificates."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from fuzz.fuzzing import FLOATS, NUMBERS, SECRET, Fuzzer, Input, Maker, changed_bytes, changed_text, changed_tree
from hushuffle.collection.ledger import Candidate, begin, opened
from hushuffle.collection.order import load_reference
from hushuffle.collection.record_tags import Tags, TagSorter
from hushuffle.files.secret_keys import key_folder, key_in_file
from hushuffle.mechanisms.sketches import BloomEncoder
from hushuffle.network.check import Odometer, Spending, _check_authority
from hushuffle.network.nodes import source as sources
from hushuffle.network.nodes.connections import Connection, Control, Kind
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.intake import ToldCodec
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.seals import PublicSealKey, SealKey
from hushuffle.network.setup import read_prepared, write_prepared
from hushuffle.network.specification import Policy
from hushuffle.papers.murakami2021.sources import load_scores
from hushuffle.plans import GroupingQuery, GroupingSet
from hushuffle.queries import Aggregate, KMeans
from hushuffle.tables.sketch_files import load_filter, save_filter
from network.network_tools import deployed, held, plan_text

_SETS: Final = GroupingQuery(
    grouping_sets=(GroupingSet(columns=("age", "sex"), sizes=(6, 3)),),
    values=("x",),
    functions=("sum", "avg", "min", "max", "count"),
    partitions=3,
)
_VALUES: Final[list[Any]] = [
    0,
    -1,
    2**64,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "inf",
    "9" * 5000,
    [],
    {},
    None,
]
_CLUSTERS: Final = KMeans(initial=((0.0, 0.0), (1.0, 1.0)))


def frames(_folder: Path) -> Maker:
    """Say things to a node: frames in any order, with odd numbers, cut off."""
    made, sockets = deployed(plan_text())
    sockets.close()
    layout = made.document.layout
    message = struct.Struct("<BBHII4x")

    def make(rng: random.Random) -> Input:
        said = layout.pack(layout.hello) if rng.random() < 0.9 else b""
        for _ in range(rng.randint(1, 5)):
            kind, step = rng.choice([*Kind, 0, 99, 255]), rng.choice(NUMBERS) % 65_536
            said += message.pack(rng.choice([2, 2, 2, 1, 3]), kind, step, *(rng.choice(NUMBERS) % 2**32 for _ in "ab"))
            said += rng.randbytes(rng.choice([0, 48, 48, layout.sealed, layout.sealed, rng.randint(0, 100)]))
        connection: Any = Connection("x", None, None, layout=layout, patience=1.0)  # type: ignore[arg-type]
        connection._block = said

        def listen() -> None:
            while (frame := connection._next()) is not None:
                if isinstance(frame, Control):
                    Journal.read(frame)

        return Input(content=said, read=listen)

    return make


def contents(_folder: Path) -> Maker:
    """Open seals with odd records, parts, points and centroids in them."""
    made, sockets = deployed(plan_text())
    sockets.close()
    key, seals = SealKey.generate(), made.document.seals(1)
    record, point, codec = Aggregate.of(_SETS), _CLUSTERS, ToldCodec(made.document)

    def floats(rng: random.Random, count: int) -> bytes:
        return struct.pack(f"<{count}d", *(rng.choice(FLOATS) for _ in range(count)))

    def whole_numbers(data: bytes, count: int) -> Any:
        """Return so many numbers: what has another length is refused before."""
        return np.frombuffer(data[: 8 * count].ljust(8 * count, b"\0"))

    def make(rng: random.Random) -> Input:
        node = rng.randrange(3)
        groups = (rng.choice([0, 1, 5, 6, -1, 2**31 - 1, -(2**31)]) for _ in "ab")
        numbers = struct.pack("<4Q", *(rng.choice(NUMBERS) for _ in range(4)))
        own = struct.pack("<ii", *groups) + floats(rng, 1)
        whole = (numbers + floats(rng, codec.size(1) // 8))[: codec.size(1)]
        two, four = floats(rng, 2), floats(rng, 4)

        def read_part() -> None:
            codec.unpack((1, node), [whole[start : start + 200] for start in range(0, len(whole), 200)])
            told = np.frombuffer(floats(rng, record.width(1)))
            part = record.part(1, node, told)
            record.statistics(1, record.combine(1, [part, part])).scaled(2.0).results(_SETS)

        def read_record() -> None:
            record.check(1, node, own)
            record.merge(1, record.empty(1), [own, own], [True, False])

        def read_point() -> None:
            point.check(1, 0, two)
            point.merge(1, point.empty(1), [two], [True])

        def opened() -> None:
            seals.open(changed_bytes(seals.seal(own, key.public, target="a"), rng), key, target="a")

        content, read = rng.choice(
            [
                (own, read_record),
                (whole, read_part),
                (two, read_point),
                (two, lambda: point.part(1, 0, whole_numbers(two, 2))),
                (four, lambda: point.own(1, np.array([[0.3, 0.4]]), point.known(whole_numbers(four, 4)))),
                (b"", opened),
            ]
        )
        if rng.random() < 0.2:
            own, whole, two, four = (changed_bytes(data, rng, most=2) for data in (own, whole, two, four))
        return Input(content=content, read=read)

    return make


def source_states(folder: Path) -> Maker:
    """Change what a source keeps of what it sends."""
    made, sockets = deployed(plan_text())
    sockets.close()
    document, name = made.document, next(iter(made.people))
    entries = held(made)[name]
    path = folder / "state"
    sources._write(path, document, sources.deliveries(document, entries, bytes(32)))
    whole = path.read_bytes()

    def make(rng: random.Random) -> Input:
        changed = changed_bytes(whole, rng)
        path.write_bytes(document.digest + changed[32:] if rng.random() < 0.8 else changed)
        return Input(content=path.read_bytes(), read=lambda: sources._read(path, document))

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


def prepared(folder: Path) -> Maker:
    """Change the records that are prepared for source nodes."""
    made, sockets = deployed(plan_text())
    sockets.close()
    fuzzer = _array(
        lambda path: write_prepared(path, made.people), "held.npz", lambda path: read_prepared(path, made.document)
    )
    return fuzzer(folder)


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


def odometers(folder: Path) -> Maker:
    """Change what is remembered of the privacy that a key has spent."""
    odometer = Odometer(folder=folder)
    odometer.begin()
    odometer.spend(Spending(run="monday", epsilon=0.5, use="a"))
    path = odometer._path
    tree = json.loads(path.read_bytes())

    def read() -> None:
        odometer.total()
        odometer.spend(Spending(run="tuesday", epsilon=0.1), max_epsilon=1.0)

    def make(rng: random.Random) -> Input:
        content = json.dumps(changed_tree(tree, rng, _VALUES)).encode()
        path.write_bytes(changed_bytes(content, rng) if rng.random() < 0.2 else content)
        return Input(content=path.read_bytes(), read=read)

    return make


def keys(folder: Path) -> Maker:
    """Change certificates, private keys, seal keys and keys of coins; no message may show a private one."""
    authority = Authority(days=1)
    good = authority.issue("a")
    seal = SealKey.generate()
    path = folder / "my.key"
    path.touch(mode=0o600)

    def changed(pem: str, rng: random.Random) -> str:
        return changed_bytes(pem.encode(), rng, most=3).decode("latin-1")

    def own(rng: random.Random) -> str:
        return changed(good.key, rng).replace("-----END", f"{SECRET}\n-----END") if rng.random() < 0.3 else good.key

    def make(rng: random.Random) -> Input:
        identity = Identity(
            name="a",
            certificate=changed(good.certificate, rng) if rng.random() < 0.5 else good.certificate,
            authority=changed(good.authority, rng) if rng.random() < 0.5 else good.authority,
            key=own(rng),
        )
        issuer = changed(authority.key, rng)
        text = changed_text(seal.text + SECRET, rng, ("", "0", "é", " "))
        path.write_text(text, encoding="utf-8")
        ways: list[tuple[Any, Callable[[], object]]] = [
            (identity, identity.server),
            (identity, identity.client),
            (issuer, lambda: Authority.read(certificate=authority.certificate, key=issuer)),
            (identity.certificate, lambda: Authority.read(certificate=identity.authority, key=authority.key)),
            (text, lambda: SealKey.of(text)),
            (text, lambda: PublicSealKey.of(text.replace(SECRET, ""))),
            (text, lambda: key_in_file(path)),
            (identity.authority, lambda: _check_authority(Policy(authorities=("0" * 64,)), identity)),
        ]
        content, read = rng.choice(ways)
        return Input(content=content, read=read)

    return make
