"""Replay code with equal randomness on neighbouring inputs: a deterministic test of the code around a randomizer.

A local randomizer sees one record. So if randomness is equal and one record changes, only the report of this record may
change. Any other change reveals something about this record that no randomizer has protected: a filter, a total, a
sorted order, a default taken from the data. The test has no false alarms, and knows nothing about the randomizer.

Source: Cebere, Erb, Desfontaines, Bellet, Fitzsimons 2026 (arXiv 2602.17454), record and replay of randomness.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeAlias

import numpy as np

from hushuffle import _checks
from hushuffle.randomness import Randomness, keyed, reproducible

Collect: TypeAlias = Callable[[Any, Randomness], Any]
"""Code under test: takes records and randomness; returns a report for each record, or a mapping of names to such."""

_POSITIONS: Final = 5
_SHOWN: Final = 5


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What changed in the output when the value of one record changed and randomness did not.

    `position` is the record's position. `reports` are the positions of changed reports. `parts` are the names of
    changed parts of the output that are no list of reports, or whose number of reports changed.
    """

    position: int
    reports: tuple[int, ...]
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.reports[:_SHOWN])) + ", ..." * (len(self.reports) > _SHOWN)
        changed = [f"{len(self.reports):,} reports (at places {listed})"] * bool(self.reports)
        changed += [f"the number or the value of {part!r}" for part in self.parts]
        return f"record {self.position} changed {' and '.join(changed) or 'nothing'}"


def differences(
    collect: Collect,
    records: Any,
    *,
    values: Sequence[Any] | None = None,
    positions: Sequence[int] | None = None,
    shuffled: bool = False,
    per_record: bool = True,
    keys: int = 3,
) -> Iterator[Difference]:
    """Yield what each change of one record changes in the output of `collect`, with equal randomness.

    The global generators of `random` and numpy are seeded before each run and restored afterwards.

    Args:
        collect: the code under test.
        records: a sequence or an array of records, at least two.
        values: values that replace the value of a record; by default, the different records.
        positions: the records that change; five of them, spread evenly, by default.
        shuffled: whether the output is compared without its order.
        per_record: whether randomness has one stream for each record, for code that randomizes all records at once
            (`hs.keyed`). False: one stream for all (`hs.reproducible`), for any number of draws and for shuffles. Then
            code that draws more random bits for one value than for another changes later reports, too.
        keys: the number of different keys of the randomness.

    Raises:
        InvalidInputError: fewer than two records or values, or `collect` does not repeat its output.

    >>> import hushuffle as hs
    >>> randomizer = hs.RandomizedResponse(k=2, epsilon=1.0)
    >>> def leaky(votes, rng):
    ...     return randomizer.randomize(votes, rng=rng) if votes.any() else votes
    >>> changes = differences(leaky, np.array([0, 0, 0, 1]), positions=[3])
    >>> max(len(change.reports) for change in changes) > 1
    True
    """
    size = len(records)
    if size < 2:
        _checks.reject("records", "two records or more", f"<{size} records>")
    choices = list({repr(record): record for record in records}.values()) if values is None else list(values)
    if len(choices) < 2:
        _checks.reject("values", "two different values or more", f"<{len(choices)} values>")
    places = np.unique(np.linspace(0, size - 1, _POSITIONS).astype(int)).tolist() if positions is None else positions
    for number in range(_checks.integer("keys", keys, low=1)):
        run = partial(_run, collect, number=number, per_record=per_record)
        first = run(records)
        if _changed(first, run(records), 0, shuffled=shuffled) != Difference(position=0, reports=()):
            hint = "Draw all randomness from the second argument, or from the global generators of random and numpy."
            _checks.reject("collect", "a function that repeats its output with equal randomness", "<another>", hint)
        for place in places:
            for value in choices:
                if repr(value) != repr(records[place]):
                    second = run(_neighbour(records, place, value))
                    yield _changed(first, second, place, shuffled=shuffled)


def assert_replay(collect: Collect, records: Any, *, reports_per_person: int = 1, **options: Any) -> None:
    """Assert that with equal randomness, one record's value changes at most `reports_per_person` reports.

    Args:
        collect: the code under test: takes records and a `Randomness`; returns one report for each record, or a mapping
            of names to such lists and to other parts of the output, none of which may change.
        records: a sequence or an array of records, at least two. Choose records that reach all branches.
        reports_per_person: the largest number of reports of one person.
        options: `values`, `positions`, `shuffled`, `per_record` and `keys`, as for `differences`.

    Raises:
        AssertionError: a change of one record changed more. The message has places, no values.
        InvalidInputError: as for `differences`.

    >>> import hushuffle as hs
    >>> randomizer = hs.RandomizedResponse(k=2, epsilon=1.0)
    >>> assert_replay(lambda votes, rng: randomizer.randomize(votes, rng=rng), np.array([0, 1, 1, 0]))
    """
    for change in differences(collect, records, **options):
        if len(change.reports) > reports_per_person or change.parts:
            message = (
                f"With equal randomness, the value of {change}; at most {reports_per_person} report may change. "
                "So the output reveals this value unprotected. Look for code that uses several records: a filter, a "
                "total, a minimum, a sorted order, or a branch on the data."
            )
            raise AssertionError(message)


def _neighbour(records: Any, place: int, value: Any) -> Any:
    changed = records.copy() if isinstance(records, np.ndarray) else list(records)
    changed[place] = value
    return changed


def _run(collect: Collect, records: Any, *, number: int, per_record: bool) -> dict[str, Any]:
    key = sha256(f"hushuffle replay {number}".encode()).digest()
    with _seeded(key):
        rng = keyed(key=key, records=np.arange(len(records))) if per_record else reproducible(number)
        result = collect(records, rng)
    parts = result if isinstance(result, Mapping) else {"reports": result}
    return {str(name): _listed(part) for name, part in parts.items()}


def _listed(part: Any) -> list[str] | str:
    """Return a list of reports, or a text for anything else."""
    if hasattr(part, "tolist"):
        part = part.tolist()
    return [repr(_plain(report)) for report in part] if isinstance(part, (list, tuple)) else repr(part)


def _plain(report: Any) -> Any:
    return report.tolist() if hasattr(report, "tolist") else report


def _changed(first: dict[str, Any], second: dict[str, Any], position: int, *, shuffled: bool) -> Difference:
    parts, reports = set(first.keys() ^ second.keys()), set[int]()
    for name in first.keys() & second.keys():
        own, other = first[name], second[name]
        if isinstance(own, str) or isinstance(other, str) or len(own) != len(other):
            parts |= {name} if own != other else set()
        elif shuffled:
            reports |= set(range((Counter(own) - Counter(other)).total()))
        else:
            reports |= {place for place, pair in enumerate(zip(own, other, strict=True)) if pair[0] != pair[1]}
    return Difference(position=position, reports=tuple(sorted(reports)), parts=tuple(sorted(parts)))


@contextmanager
def _seeded(key: bytes) -> Iterator[None]:
    """Seed the global generators of Python and numpy, and restore their states afterwards."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - code under test may use it
    random.seed(key)
    np.random.seed(int.from_bytes(key[:4], "big"))  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
