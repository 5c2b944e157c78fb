"""Tests with random faults: every rule of `checks` holds, and each wrong version of the services breaks a rule."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

import numpy as np
import pytest

from hushuffle.randomness import Randomness, secure
from hushuffle_network import batches, parts, scrambler, target
from hushuffle_network.scrambler import Gathering, Scrambler
from hushuffle_network.service import Service
from hushuffle_network.store import Store
from network.virtual.checks import head_in
from network.virtual.faults import Run, Wrong
from network.virtual.scene import SCENES, scene
from network.virtual.world import Disk, Links, World

SEEDS: Final = 20
MOST: Final = 200
"""Number of seeds among which each wrong version must break a rule."""


def test_a_run_without_faults_publishes_the_answer() -> None:
    for seed in range(len(SCENES)):
        run = Run(seed, faultless=True)
        assert not run.problems, str(run)
        assert "answers" in run.world.content


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_rule_holds(seed: int) -> None:
    run = Run(seed)
    assert not run.problems, str(run)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + 500, 50))
def test_every_rule_holds_for_many_seeds(first: int) -> None:
    broken = [run for run in map(Run, range(first, first + 50)) if run.problems]
    assert not broken, "\n".join(map(str, broken))


def test_a_seed_determines_the_run() -> None:
    assert [Run(seed).digest for seed in range(2)] == [Run(seed).digest for seed in range(2)]


def test_a_scrambler_whose_receivers_never_answer_has_no_work_left_after_the_task() -> None:
    world = World(scene(0), 0, Links(quiet=0.0))
    world.run(lambda _: world.start("scrambler-1"), nullcontext())
    assert world.trace[0].endswith("scrambler-1 starts")
    assert world.tasks == []


# Wrong versions of the services


def _rewrite(old: str, new: str, *starts: str) -> Wrong:
    """Replace `old` by `new` in statements that start so."""
    others = {start: start.replace(old, new) for start in starts}
    return lambda patch: patch.setattr(Disk, "rewrites", Disk.rewrites | others)


def _blind(module: Any, name: str, words: str) -> Wrong:
    """Leave out the refusals whose reason contains `words`."""
    true: Callable[..., None] = getattr(module, name)

    def fail(*reasons: Any) -> None:
        if not any(words in str(reason) for reason in reasons):
            true(*reasons)

    return lambda patch: patch.setattr(module, name, fail)


def _all(*wrongs: Wrong) -> Wrong:
    return lambda patch: [wrong(patch) for wrong in wrongs]


def _set(where: Any, name: str, value: Any) -> Wrong:
    return lambda patch: patch.setattr(where, name, value)


async def _nothing_before(*_: Any) -> None:
    return None


async def _not_compared(self: Scrambler, task: Any, number: int) -> None:
    self._gatherings[task.document.id, number].asked.set()


def _nothing_waits(db: sqlite3.Connection, key: tuple[bytes, int], *, true: Any = scrambler._restored) -> Gathering:
    state: Gathering = true(db, key)
    state.waiting = 0
    return state


def _small(waiting: int, batch: int, least: int, *, true: Any = batches.last_sizes) -> list[int]:
    sizes: list[int] = true(waiting, batch, min(least, 1))
    return sizes


def _uncapped(self: batches.Onions, messages: list[bytes], *, hop: int, rng: Randomness) -> list[bytes]:
    return messages + self.dummies(self.step.dummies, hop=hop, rng=rng)


def _unmixed(patch: pytest.MonkeyPatch) -> None:
    true: Any = vars(scrambler)["secure"]

    class Unmixed:
        def __init__(self) -> None:
            self._rng = true()

        def __getattr__(self, name: str) -> Any:
            return np.arange if name == "permutation" else getattr(self._rng, name)

    patch.setattr(scrambler, "secure", Unmixed)


def _every_repeat_is_new(patch: pytest.MonkeyPatch) -> None:
    class Empty(set[bytes]):
        def __contains__(self, _: object) -> bool:
            return False

    true: Any = Scrambler._reshuffled
    patch.setattr(Scrambler, "_reshuffled", lambda *facts: true(*facts[:-1], Empty()))


def _uncommitted(patch: pytest.MonkeyPatch) -> None:
    true, counts = Disk.execute, dict[int, int]()

    def execute(self: Disk, statement: str, values: Any = ()) -> sqlite3.Cursor:
        if statement == "COMMIT":
            counts[id(self)] = counts.get(id(self), 0) + 1
        if statement.startswith("PRAGMA") and self.in_transaction:
            true(self, "COMMIT")
        late = statement == "COMMIT" and counts[id(self)] > 1 and counts[id(self)] % 4
        if late or (statement == "BEGIN IMMEDIATE" and self.in_transaction):
            return true(self, "SELECT 1")
        return true(self, statement, values)

    patch.setattr(Disk, "execute", execute)


async def _delivered_anew(
    self: Service, session: Any, receiver: Any, path: str, body: bytes, task: Any, *, true: Any = Service.deliver
) -> Any:
    if path.endswith("/batches"):
        head = head_in(body)
        part = batches.messages_of(body, head, size=None)
        mixed = [part[place] for place in secure().permutation(len(part)).tolist()]
        facts = (task.document, head.step, head.batch, self.name, receiver.name, mixed)
        head = batches.head_of(*facts, trail=head.trail, closed=head.closed)
        body = batches.pack(head, mixed, self.secret.sign)
    return await true(self, session, receiver, path, body, task)


async def _unforgotten(self: Store, task: bytes, *, but: Any = ()) -> None:
    del self, task, but


_NEW: Final = ("INSERT INTO outgoing", "INSERT INTO merged", "INSERT INTO passage")
WRONG: Final[dict[str, tuple[int, Wrong]]] = {
    "a receiver forgets which batches it took": (
        6,
        _all(
            _set(Service, "answer_before", _nothing_before),
            _rewrite("OR IGNORE", "OR REPLACE", "INSERT OR IGNORE INTO came"),
            _rewrite("INSERT", "INSERT OR REPLACE", *_NEW),
        ),
    ),
    "a scrambler with an older state sends": (14, _set(Scrambler, "_compare", _not_compared)),
    "a restarted scrambler does not count waiting messages": (67, _set(scrambler, "_restored", _nothing_waits)),
    "a restarted scrambler does not send stored batches": (
        188,
        _rewrite("WHERE", "WHERE 0 AND", "SELECT step, batch, receiver FROM outgoing WHERE"),
    ),
    "a released message stays and is released again": (
        0,
        _rewrite("WHERE", "WHERE 0 AND", "DELETE FROM message WHERE number"),
    ),
    "a batch may be as small as one message": (6, _set(batches, "last_sizes", _small)),
    "a scrambler does not shuffle": (2, _unmixed),
    "a scrambler adds no dummies": (0, _set(batches.Onions, "completed", lambda _, messages, **__: messages)),
    "a scrambler ignores the cap": (30, _set(batches.Onions, "completed", _uncapped)),
    "a later scrambler passes repeated messages on": (105, _every_repeat_is_new),
    "a ticket is not spent": (5, _set(scrambler, "spend", lambda *_: True)),
    "a token is not spent": (5, _set(target, "spend", lambda *_: True)),
    "the issuer signs another request": (5, _rewrite("OR IGNORE", "OR REPLACE", "INSERT OR IGNORE INTO issued")),
    "a person answers two steps of one": (
        20,
        _rewrite("WHERE", "WHERE 0 AND", "SELECT 1 FROM issued WHERE task = ? AND step !="),
    ),
    "a target draws a new report for every try": (20, _set(target, "_once", lambda _db, _task, _kind, draw: draw())),
    "a target accepts batches after its report": (170, _rewrite("WHERE", "WHERE 0 AND", "SELECT 1 FROM told WHERE")),
    "a target counts lost batches": (3, _set(target, "lost_in", lambda *_: frozenset())),
    "the result does not compare messages": (4, _blind(parts, "_fail", "has sent")),
    "the result does not compare tokens with sources": (48, _blind(parts, "_fail", "valid tokens for")),
    "the result accepts another number of batches": (13, _blind(parts, "_fail", "different numbers of batches")),
    "the result and targets accept fewer people than `least`": (
        38,
        _all(_blind(parts, "_fail", "sources came through"), _blind(target, "fail", "too few people")),
    ),
    "the disk has acknowledged data only later": (66, _uncommitted),
    "a service deletes nothing": (0, _set(Store, "forget", _unforgotten)),
    "a restarted scrambler shuffles a stored batch anew": (69, _set(Service, "deliver", _delivered_anew)),
}
"""Wrong versions, and for each version the first seed whose run breaks a rule."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_version_breaks_a_rule(name: str) -> None:
    first, wrong = WRONG[name]
    assert any(Run(seed, wrong=wrong).problems for seed in (first, *range(MOST))), f"no rule noticed in {MOST} runs"
