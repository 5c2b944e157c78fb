"""Every remainder finds room in a batch; one bad message costs one batch at most."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from hushuffle.errors import DataError
from hushuffle_network.batches import Onions, held_back, last_sizes, lost_answer, lost_in
from hushuffle_network.queries import load_plan, parse_plan
from hushuffle_network.queries.analyse import analyse_plan
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.target import Target
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage

EXAMPLES = Path(__file__).parents[2] / "examples"
ONE = plan_text(sets='[["age"]]')


@pytest.mark.parametrize(("batch", "least"), [(500, 400), (490, 400), (8, 5), (8, 7), (10, 1), (3, 2), (100, 60)])
def test_from_what_is_held_back_on_every_number_of_messages_finds_room(batch: int, least: int) -> None:
    held = held_back(batch, least)
    for waiting in range(held, held + 3 * batch):
        sizes = last_sizes(waiting, batch, least)
        assert sum(sizes) == waiting
        assert all(least <= size <= batch for size in sizes)


@pytest.mark.parametrize(("batch", "least"), [(8, 8), (8, 5), (500, 499), (1, 1)])
def test_what_finds_no_room_is_less_than_a_batch_may_have(batch: int, least: int) -> None:
    for waiting in range(4 * batch):
        sizes = last_sizes(waiting, batch, least)
        assert all(least <= size <= batch for size in sizes)
        assert waiting - sum(sizes) < max(least, 1)


PLANS = [path for path in sorted(EXAMPLES.glob("*.toml")) if "[query]" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_no_example_has_sizes_that_lose_people(path: Path) -> None:
    """6,366 people in batches of 500, of at least 400: 366 found no room."""
    specification = load_plan(path)
    plan = specification.plan(specification.query.records(path.parent).n)
    for cluster in plan.clusters:
        if not cluster.reads or cluster.batch is None:
            continue
        waiting, batch, least = cluster.sources, cluster.batch, cluster.min_batch or cluster.batch
        while waiting >= batch + held_back(batch, least):
            waiting -= batch
        assert sum(last_sizes(waiting, batch, least)) == waiting, (cluster.name, cluster.sources, batch, least)


async def _sources(stage: PhoneStage) -> list[int]:
    scrambler = stage.services["scrambler-1"]
    asked = "SELECT sources FROM released WHERE batch > 0 ORDER BY batch"
    return [one for (one,) in await scrambler.store.do(lambda db: db.execute(asked).fetchall())]


def test_when_all_have_come_the_step_ends_also_if_the_last_batch_is_smaller(tmp_path: Path) -> None:
    """23 people, batches of 8 and of 7: the last 7 once waited for the deadline."""

    async def run() -> None:
        async with PhoneStage(tmp_path, ONE.replace("people = 24", "people = 23"), people=23) as stage:
            await stage.start_all()
            await stage.phones().send(stage.sendings())
            (answer,) = (await stage.result(30.0))["answers"]
            assert (answer["sources"], answer["lost_batches"]) == (23, 0)
            assert await _sources(stage) == [8, 8, 7]

    asyncio.run(run())


def test_who_came_before_the_deadline_is_in_a_batch_though_not_all_came(tmp_path: Path) -> None:
    """12 people of 24: two batches of 6 where one of 8 has left 4 behind."""

    async def run() -> None:
        async with PhoneStage(tmp_path, ONE) as stage:
            await stage.start_all()
            scrambler = stage.services["scrambler-1"]
            assert isinstance(scrambler, Scrambler)
            await stage.phones().send(stage.sendings()[:12])
            await scrambler._release_full(scrambler.tasks[stage.document.id], 1, last=True)  # as at the deadline
            (answer,) = (await stage.result())["answers"]
            assert (answer["sources"], answer["lost_batches"]) == (12, 0)
            assert await _sources(stage) == [6, 6]
            assert stage.meters["scrambler-1"].of("batches", "given_up") == 0

    asyncio.run(run())


@pytest.mark.parametrize(("least", "came"), [("min_batch = 8\n", (16, 1, 0)), ("", (23, 0, 1))])
def test_one_phone_without_a_token_costs_one_batch_at_most(
    least: str, came: tuple[int, int, int], tmp_path: Path
) -> None:
    """Where a batch needs all of its people it is lost, and the others are published; by default it does not."""

    async def run() -> None:
        async with PhoneStage(tmp_path, ONE.replace("min_batch = 5\n", least)) as stage:
            await stage.start_all()
            sent, phones = stage.sendings(), stage.phones()
            async with ClientSession() as session:
                ticket = await phones.ticket(session, sent[0])
                message = Onions(stage.document, 1).message(0, None, None)
                assert await phones.post(session, 1, message, ticket) == "taken"
            await phones.send(sent[1:])
            (answer,) = (await stage.result())["answers"]
            assert (answer["sources"], answer["lost_batches"], answer["without_token"]) == came
            if came[1]:
                assert sum(answer["received"]) <= 16

    asyncio.run(run())


def test_a_plan_that_needs_everybody_of_a_batch_is_warned_of() -> None:
    def keys(text: str) -> set[str]:
        return {one.key for one in analyse_plan(parse_plan(text)).study.warnings}

    assert "no-one-may-be-missing" in keys(ONE.replace("min_batch = 5", "min_batch = 8"))
    assert "no-one-may-be-missing" not in keys(ONE.replace("min_batch = 5\n", ""))


def test_a_result_that_calls_nearly_all_batches_lost_gets_no_numbers(tmp_path: Path) -> None:
    """Else it could have the sums of a few people published, or take them from those of all."""

    async def run() -> None:
        async with PhoneStage(tmp_path, ONE) as stage:
            await stage.start_all("result")
            await stage.phones().send(stage.sendings())
            target = stage.services["target-1-1"]
            assert isinstance(target, Target)
            await target._all[stage.document.id].wait()
            task = target.tasks[stage.document.id]
            inbox, asked = target._inboxes[stage.document.id], list[Any]()

            async def deliver(_: object, __: object, path: str, body: bytes, ___: object) -> bytes:
                asked.append(path.rpartition("/")[2])
                return lost_answer(body, [1, 2], stage.keys["result"].sign)

            target.deliver = deliver  # type: ignore[method-assign, assignment]
            with pytest.raises(DataError, match="so many batches lost that too few people remain"):
                await target._told(task, inbox)
            assert set(asked) == {"counts"}

    asyncio.run(run())


def test_what_is_lost_is_signed_by_the_result_for_what_it_was_told(tmp_path: Path) -> None:
    with_keys = PhoneStage(tmp_path, ONE)
    place, sign = with_keys.document.result, with_keys.keys["result"].sign
    answer = lost_answer(b"counts", [3, 5], sign)
    assert lost_in(answer, b"counts", place) == {3, 5}
    for wrong, body in ((answer, b"other counts"), (answer.replace(b"3", b"4"), b"counts"), (b"", b"counts")):
        with pytest.raises(DataError, match="list of lost batches is not signed"):
            lost_in(wrong, body, place)
    for one in with_keys.sockets.values():
        one.close()
