"""That a key was used, noted in two places besides its ledger; and the ledgers that earlier versions kept beside keys.

A mark lies in the folder of all memory, another beside the key file. So a ledger that was deleted is missed, and so
is a folder of memory that was, as long as the key file lies where it was.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from hushuffle._checks import fail
from hushuffle.collection.record_tags import Words
from hushuffle.files.private_files import flush_folder, mark_once, write_private
from hushuffle.files.secret_keys import damaged, fingerprint, key_folder, state_folder
from hushuffle.tables.parquet import UnreadableFile, read_parquet

_OLD: Final = {"record": pl.UInt64, "value": pl.UInt64, "batch": pl.UInt64}


def leave_traces(key: bytes, key_file: Path) -> None:
    """Note that a key is in use, where it can be noted: a folder of keys may be read-only."""
    mark_once(_mark(key))
    text = f"The key {fingerprint(key)} is in use. What it was used for is in {key_folder(key)}: keep both.\n"
    with suppress(OSError):
        write_private(_mark_beside(key, key_file), text.encode())


def refuse_traces(key: bytes, key_file: Path) -> None:
    """Refuse a key without a ledger that was in use."""
    for mark in (_mark(key), _mark_beside(key, key_file)):
        if mark.exists():
            fail(
                f"{key_file} was used before, says {mark}, and its ledger is not at {key_folder(key)}: nobody knows "
                "whose coins are used up. Put the ledger back (or name its place by HUSHUFFLE_STATE), or take a new "
                "key."
            )


def old_ledgers(key_file: Path) -> tuple[Path, ...]:
    """Return the ledgers of earlier versions beside a key file, or beside the one that it is a link to."""
    places = {path.with_name(f"{path.name}.ledger") for path in (key_file.absolute(), key_file.resolve())}
    return tuple(sorted(place for place in places if place.exists()))


def tags_of_old(place: Path) -> tuple[Words, str]:
    """Return the tags in a ledger of an earlier version, shape (n, 2), sorted by record, and a digest of them."""
    try:
        tables = list(read_parquet(pl.scan_parquet(place.absolute(), glob=False), place, name=str(place)))
    except UnreadableFile:
        damaged(place)
    if dict(tables[0].schema) != _OLD:
        damaged(place)
    pairs = pl.concat(tables).select("record", "value").to_numpy().astype("<u8")
    pairs = np.ascontiguousarray(pairs[np.argsort(pairs[:, 0])])
    return pairs, hashlib.sha256(pairs.tobytes()).hexdigest()


def put_away(place: Path) -> None:
    """Give a ledger that was taken over another name: it is never read again."""
    place.replace(place.with_name(f"{place.name}.imported"))
    flush_folder(place.parent)


def _mark(key: bytes) -> Path:
    return state_folder() / "used" / fingerprint(key)


def _mark_beside(key: bytes, key_file: Path) -> Path:
    return key_file.resolve().with_name(f"hushuffle-{fingerprint(key)[:8]}.used")
