"""A privacy budget over time: a file with the limit for one group of people, and with all releases about them.

The operator creates the file, with `epsilon` and `delta`, for one group of people. Every collection that names it adds
up all entries and itself, as rounds with the same people. If the total would exceed the limit, an error is raised
before anything is released. An entry is written before its release, and counts even if the run then fails.

Source: docs/theory/composition.md, Theorem 3.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import tomli_w

from hushuffle._checks import fail
from hushuffle.collection.request import Released, failures, fewer, protocol_of, together
from hushuffle.errors import SpecificationError
from hushuffle.files.causes import cause, failing
from hushuffle.files.private_files import lock, remove_unfinished, write_private

_OTHERS: Final = 0o022  # writable by the group, or by every user
_BEGUN: Final = "To create a budget for a group of people, write a file with two lines: epsilon = 1.0 and delta = 1e-6."
_KNOWN: Final = ("epsilon", "delta", "people", "released")


@dataclass(frozen=True, kw_only=True)
class Part:
    specification: str
    reports: int

    @property
    def released(self) -> Released:
        return protocol_of(self.specification, self.reports)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A budget's entry for one collection; `coins` identifies keyed randomness, or is "secure" for fresh randomness."""

    date: str
    coins: str
    parts: tuple[Part, ...]

    @classmethod
    def now(cls, parts: Sequence[Part], *, coins: Sequence[bytes]) -> Entry:
        named = f"keyed, {hashlib.sha256(b''.join(coins)).hexdigest()}" if coins else "secure"
        date = datetime.now(tz=UTC).isoformat(timespec="seconds")
        return cls(date=date, coins=named, parts=tuple(parts))

    def repeats(self, other: Entry) -> bool:
        """Return whether both entries released the same reports, by the same keyed randomness and mechanism."""
        return self.coins != "secure" and (self.coins, self.parts) == (other.coins, other.parts)


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The used part of a budget: `epsilon` (nats, an upper bound) out of `limit`, at `delta`."""

    epsilon: float
    limit: float
    delta: float
    collections: int


@dataclass(frozen=True, kw_only=True)
class Budget:
    path: Path
    text: str
    epsilon: float
    delta: float
    entries: tuple[Entry, ...]

    @classmethod
    def read(cls, path: Path) -> Budget:
        try:
            mode, text = path.stat().st_mode, path.read_bytes().decode("utf-8")
            raw = tomllib.loads(text)
        except FileNotFoundError:
            fail(f"the budget {path} does not exist. {_BEGUN}")
        except OSError as error:
            fail(f"the budget {path} cannot be read: {cause(error)}.")
        except (ValueError, RecursionError):
            _no_budget(path, "it is not valid TOML")
        if os.name == "posix" and mode & _OTHERS:
            fail(f"other users of this machine can write the budget {path}. Run: chmod 600 {path.name}")
        entries = _entries(raw.get("released", []))
        problems = [f"{key} is no key of a budget (keys: {', '.join(_KNOWN)})" for key in raw if key not in _KNOWN]
        if not _is_number(raw.get("epsilon")) or raw["epsilon"] <= 0:
            problems.append("epsilon must be a number above 0")
        if not _is_number(raw.get("delta")) or not 0 < raw["delta"] < 1:
            problems.append("delta must be a number above 0 and below 1")
        if entries is None:
            problems.append("the list of releases is truncated or was changed: restore it from a backup")
        if entries is None or problems:
            _no_budget(path, "; ".join(problems))
        epsilon, delta = float(raw["epsilon"]), float(raw["delta"])
        return cls(path=path, text=text, epsilon=epsilon, delta=delta, entries=entries)

    def with_entry(self, entry: Entry) -> tuple[Spent, bool]:
        """The used budget including `entry`, and whether the entry is new; a repetition costs nothing."""
        new = not any(entry.repeats(other) for other in self.entries)
        before, after = self.spent(), self.spent(entry) if new else self.spent()
        if after.epsilon > self.epsilon:
            failing = math.fsum(failures(_released([*self.entries, entry])))
            if math.isinf(after.epsilon) and failing > self.delta:
                fail(
                    f"The budget {self.path} allows delta = {self.delta:g}. With this collection, the "
                    f"failure probability of sums by several messages is up to {failing:.4g} in total, so no epsilon "
                    "holds: nothing was released. Choose a smaller sum.delta."
                )
            fail(
                f"The budget {self.path} allows central epsilon {self.epsilon:g} for one person, at delta = "
                f"{self.delta:g}. {before.epsilon:.4g} is used; with this collection it would be {after.epsilon:.4g}: "
                "nothing was released. Collect from more people, or choose smaller local epsilons."
            )
        return after, new

    def spent(self, *more: Entry) -> Spent:
        """Return the joint guarantee of all collections in the file and of `more`, for a person in every collection."""
        entries = (*self.entries, *more)
        rounds = fewer(_released(entries))
        return Spent(
            epsilon=together(rounds, self.delta), limit=self.epsilon, delta=self.delta, collections=len(entries)
        )

    def note(self, entry: Entry, spent: Spent) -> None:
        """Append `entry` and the used budget `spent` to the file, flushed to the disk."""
        table = {
            "date": entry.date,
            "coins": entry.coins,
            "total": spent.epsilon,
            "parts": [{"reports": part.reports, "specification": part.specification} for part in entry.parts],
        }
        content = f"{self.text.rstrip()}\n\n{tomli_w.dumps({'released': [table]})}"
        with failing(f"the budget {self.path} cannot be written", " Nothing was released."):
            remove_unfinished(self.path)
            write_private(self.path, content.encode())


@contextmanager
def opened(path: Path) -> Iterator[Budget]:
    """Lock the budget and follow symbolic links; refuse hard links, since each name would become a separate budget."""
    place = path.resolve()
    with failing(f"the folder of the budget {path} cannot be written"):
        number = os.open(place.with_name(f".{place.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(number)
        budget = Budget.read(place)
        if (names := place.stat().st_nlink) > 1:
            fail(
                f"the budget {path} has {names} names (hard links), and each would become a separate budget. Delete "
                "all names but one, or replace them by symbolic links (ln -s). Nothing was released."
            )
        yield budget
    finally:
        os.close(number)


@contextmanager
def charged(
    path: Path | None, parts: Sequence[Part], coins: Sequence[bytes]
) -> Iterator[tuple[Spent | None, Callable[[], None]]]:
    """Lock the budget, if any; yield the used budget including these releases, and a function that records them."""
    if path is None:
        yield None, lambda: None
        return
    entry = Entry.now(parts, coins=coins)
    with opened(path) as budget:
        spent, new = budget.with_entry(entry)
        yield spent, partial(budget.note, entry, spent) if new else lambda: None


def refuse_used_up(path: Path | None) -> None:
    """Raise an error before any work is done if nothing of the budget is left."""
    if path is None:
        return
    with opened(path) as budget:
        spent = budget.spent()
    if spent.epsilon >= budget.epsilon:
        fail(
            f"The budget {path} is used up: central epsilon {spent.epsilon:.4g} of {budget.epsilon:g} at delta = "
            f"{budget.delta:g}. No data were read."
        )


def _released(entries: Iterable[Entry]) -> Iterator[Released]:
    return (part.released for entry in entries for part in entry.parts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _entries(listed: Any) -> tuple[Entry, ...] | None:
    try:
        entries = tuple(
            Entry(
                date=str(entry["date"]), coins=str(entry["coins"]), parts=tuple(_part(part) for part in entry["parts"])
            )
            for entry in listed
        )
        for entry in entries:
            for part in entry.parts:
                _ = part.released
    except (KeyError, TypeError, ValueError, SpecificationError):
        return None
    return entries


def _part(part: Any) -> Part:
    if not isinstance(part["specification"], str) or not isinstance(part["reports"], int) or part["reports"] < 1:
        raise TypeError
    return Part(specification=part["specification"], reports=part["reports"])


def _no_budget(path: Path, why: str) -> NoReturn:
    fail(f"{path} is no budget: {why}. {_BEGUN}")
