"""The simulation notices what it is for: each of these breaks the code on purpose, and some seed shows it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from hushuffle.files.private_files import private_file
from hushuffle.network.nodes.connections import Layout, Reason
from hushuffle.network.nodes.document import Step
from hushuffle.network.nodes.intake import Intake
from hushuffle.network.nodes.node import Node
from hushuffle.network.nodes.scrambler import Gathering, ScramblerNode
from hushuffle.network.nodes.seals import Once
from hushuffle.plans import Traffic
from network.simulation.simulate import simulate

MOST: Final = 600
"""Seeds within which a defect must show."""

Change = Callable[[pytest.MonkeyPatch], None]


def _below_minimum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gathering, "people", property(lambda _self: 10**6))


def _forgets_the_release(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ScramblerNode, "_remember", lambda _self, _number: Reason.NONE)


def _counts_again(patch: pytest.MonkeyPatch) -> None:
    def first(self: Once, sealed: bytes) -> bool:
        del self, sealed
        return True

    end = Intake.end

    def again(self: Intake, *more: Any) -> Any:
        self._ended.discard(more[0])
        return end(self, *more)

    patch.setattr(Once, "first", first)
    patch.setattr(Intake, "end", again)


def _any_document(patch: pytest.MonkeyPatch) -> None:
    made = Layout.__post_init__

    def post_init(self: Layout) -> None:
        digest = self.digest
        object.__setattr__(self, "digest", bytes(32))
        made(self)
        object.__setattr__(self, "digest", digest)

    patch.setattr(Layout, "__post_init__", post_init)


def _one_dummy_less(patch: pytest.MonkeyPatch) -> None:
    scrambler = Traffic.scrambler

    def less(self: Traffic, sources: int) -> Any:
        return scrambler(replace(self, dummies=max((self.dummies or 0) - 1, 0)), sources)

    patch.setattr(Traffic, "scrambler", less)


def _second_message(patch: pytest.MonkeyPatch) -> None:
    add = Gathering.add

    def replaced(self: Gathering, peer: str, message: Any) -> Reason:
        if not self.closed and self.messages.get(message.slot, message) != message:
            del self.messages[message.slot]
        return add(self, peer, message)

    patch.setattr(Gathering, "add", replaced)


def _any_place(patch: pytest.MonkeyPatch) -> None:
    add = Gathering.add

    def anybody(self: Gathering, peer: str, message: Any) -> Reason:
        own = 0 <= message.slot < len(self.batch.holders)
        return add(self, self.batch.holders[message.slot] if own else peer, message)

    patch.setattr(Gathering, "add", anybody)


def _last_to_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hushuffle.network.nodes.source.private_file", lambda path, **_options: private_file(path))


def _no_sum_of_messages(patch: pytest.MonkeyPatch) -> None:
    def sources(_step: Step, _batch: Any, told: Any) -> int:
        return int(max(count for count, _messages in told))

    patch.setattr("hushuffle.network.nodes.intake._sources", sources)


def _waits_too_long(patch: pytest.MonkeyPatch) -> None:
    wait = Node._wait
    patch.setattr(Node, "_wait", lambda self, event, seconds: wait(self, event, 2 * seconds + 60))


def _no_second_try(patch: pytest.MonkeyPatch) -> None:
    deliver = Node._deliver

    async def once(self: Node, name: str, messages: Any, **options: Any) -> Any:
        return await deliver(self, name, messages, **(options | {"until": 0.0}))

    patch.setattr(Node, "_deliver", once)


def _wrong_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hushuffle.network.nodes.result.use_chance", lambda _sampling: 1.0)


def _dummies_count(patch: pytest.MonkeyPatch) -> None:
    open_ = Intake.open

    def counted(self: Intake, message: Any, arrived: Any) -> None:
        open_(self, message, arrived)
        held = arrived.get(message.sealed[:32])
        if held is not None and not held[1]:
            arrived[message.sealed[:32]] = held[0], True  # a dummy counts

    patch.setattr(Intake, "open", counted)


CHANGES: Final[dict[str, tuple[Change, set[str]]]] = {
    "a batch below its minimum is released": (_below_minimum, {"releases"}),
    "a release is forgotten": (_forgets_the_release, {"releases"}),
    "a batch counts again": (_counts_again, {"answers", "counters"}),
    "any document will do": (_any_document, {"releases"}),
    "one dummy less": (_one_dummy_less, {"releases"}),
    "a second message takes a place": (_second_message, {"releases"}),
    "anybody may fill a place": (_any_place, {"releases"}),
    "the last process of a source to write decides": (_last_to_write, {"one_message_for_a_record"}),
    "messages are not added up": (_no_sum_of_messages, {"lies_show"}),
    "nodes wait too long": (_waits_too_long, {"in_time"}),
    "no second try": (_no_second_try, {"others_count"}),
    "estimates have a wrong scale": (_wrong_scale, {"answers"}),
    "dummies count": (_dummies_count, {"answers"}),
}


def noticed(change: Change, rules: set[str], most: int = MOST) -> int | None:
    """Return how many seeds it takes until a rule notices a change; None if none does."""
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        for seed in itertools.islice(itertools.count(20_000), most):
            if any(words.split(":")[0] in rules for words in simulate(seed).problems):
                return seed - 20_000 + 1
    return None


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_a_defect_shows(what: str) -> None:
    change, rules = CHANGES[what]
    seeds = noticed(change, rules)
    print(f"{what}: {seeds} seeds")
    assert seeds is not None
