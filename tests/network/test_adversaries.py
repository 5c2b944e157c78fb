"""Services and phones that cheat: what each is refused with, what reaches the result; every record is told apart.

The values are different powers of two, so that the sum that is published says which records are in it, and how often.
docs/reference/phone-services.md has the table.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientSession

from hushuffle.randomness import secure
from hushuffle_network import batches
from hushuffle_network.batches import Onions
from hushuffle_network.crowd import Phones, Sending
from hushuffle_network.formats import blind, decode_response, encapsulate, token_challenge
from hushuffle_network.relay import REQUEST
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.target import Target
from hushuffle_network.tokens import IssuerKey
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage, shown

PEOPLE = 16
PLAN = (
    plan_text(sets='[["sex"]]')
    .replace("people = 24", f"people = {PEOPLE}")
    .replace("pay = [0, 100]", f"pay = [0, {2**PEOPLE}]")
)


class Cheating(PhoneStage):
    """One step, two batches of eight; the pay of phone number i is 2 to the i."""

    def __init__(self, folder: Path, *, least: float = 0.5) -> None:
        super().__init__(folder, PLAN.replace("least = 0.5", f"least = {least}"), people=PEOPLE)
        rows = self.records.rows.copy()
        rows[:, -1] = 2.0 ** np.arange(PEOPLE)
        self.records = type(self.records)(n=PEOPLE, source="test", rows=rows)

    def counted(self, result: dict[str, Any], sent: list[Sending]) -> set[int]:
        """Return whose records are in the published sums; each at most once, or this fails."""
        (answer,) = result["answers"]
        scale = self.document.people / (answer["sources"] * (1 - 0.3 * 2 / 3))
        total = sum(answer["estimates"]["sum(pay)"]) / scale
        assert abs(total - round(total)) < 1e-3
        whose = {number for number in range(PEOPLE) if round(total) >> number & 1}
        carried = {int(np.log2(np.frombuffer(one.record[-8:])[0])) for one in sent if one.record is not None}
        assert whose <= carried
        assert len(whose) == sum(answer["received"])
        return whose


def everybody(sent: list[Sending]) -> set[int]:
    return {int(np.log2(np.frombuffer(one.record[-8:])[0])) for one in sent if one.record is not None}


async def run_all(stage: Cheating, sent: list[Sending], *, until: str = "") -> dict[str, Any]:
    """Return the result; `until`: the reason whose count ends the waiting for a batch that will not come."""
    await stage.phones().send(sent)
    while until and not refused(stage)[until]:  # noqa: ASYNC110 - a counter has no event
        await asyncio.sleep(0.02)
    if until:
        await asyncio.sleep(0.5)
        for service in stage.services.values():
            if isinstance(service, Target):
                service._all[stage.document.id].set()
    return await stage.result()


def refused(stage: PhoneStage, *names: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for name in names or stage.meters:
        for (metric, reason), count in stage.meters[name]._counts.items():
            if metric == "hushuffle_refused_total":
                found[reason] += count
    return found


async def token_for(session: ClientSession, stage: PhoneStage, sending: Sending, target: int) -> bytes:
    document = stage.document
    name = document.step(1).targets[target].name
    spki = document.token_key(1)
    blinded = blind(spki, token_challenge("issuer.example", document.context(1, name), ""))
    url = f"{stage.url('issuer')}/tasks/{document.id.hex()}/steps/1/token"
    headers = shown(document, sending.code, blinded.request)
    async with session.post(url, data=blinded.request, headers=headers) as answer:
        return blinded.finalize(await answer.read())


def test_a_relay_that_sends_requests_again_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            sent = stage.sendings()
            phones, gateway = Phones(stage.document), stage.url("scrambler-1") + "/gateway"
            async with ClientSession() as session:
                first = sent[0]
                token = await token_for(session, stage, first, first.target)
                onion = Onions(stage.document, 1).message(first.target, token, first.record)
                ticket = await phones.ticket(session, first)
                sealed, opened = encapsulate(phones._gateway, stage.document.request(1, onion, ticket))
                for _ in range(3):
                    async with session.post(gateway, data=sealed, headers={"Content-Type": REQUEST}) as answer:
                        assert decode_response(opened(await answer.read()))[2].strip() == b"taken"
            assert (stage.meters["scrambler-1"].of("messages"), stage.meters["scrambler-1"].of("repeated")) == (1, 2)
            await stage.phones().send(sent[1:])
            assert stage.counted(await stage.result(), sent) == everybody(sent)

    asyncio.run(run())


def test_a_token_opens_one_target_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            sent, phones = stage.sendings(), stage.phones()
            onions = Onions(stage.document, 1)
            async with ClientSession() as session:
                token = await token_for(session, stage, sent[0], 0)
                record = stage.promise.task.sample(1, 2)
                four = ((0, token, None), (0, token, None), (1, token, None), (2, None, record))
                for person, (target, shown, content) in zip(sent, four, strict=False):
                    ticket = await phones.ticket(session, person)
                    assert await phones.post(session, 1, onions.message(target, shown, content), ticket) == "taken"
            await phones.send(sent[4:])
            result = await stage.result()
            assert result["answers"][0]["without_token"] == 3
            reasons = refused(stage, "target-1-1", "target-1-2", "target-1-3")
            assert (reasons["token used"], reasons["no valid token"]) == (1, 1)
            assert stage.counted(result, sent) <= everybody(sent[4:])

    asyncio.run(run())


Change = Callable[[list[bytes]], list[bytes]]


def cheat(stage: PhoneStage, name: str, change: Change, *, honest: bool = False) -> None:
    """Let a running scrambler change what leaves it in the first batch; `honest`: its counts say what it sends."""
    service = stage.services[name]
    assert isinstance(service, Scrambler)
    right = service._shuffled

    def wrong(
        document: Any, number: int, batch: int, messages: list[bytes], trail: Any, sources: int
    ) -> dict[str, bytes]:
        if batch != 1:
            return right(document, number, batch, messages, trail, sources)
        if honest:
            return right(document, number, batch, change(messages), trail, sources)
        sign, hop = stage.keys[name].sign, service._hop(document)
        onions = Onions(document, number)
        whole = messages + onions.dummies(onions.step.dummies, hop=hop, rng=secure())
        link = batches.Link.signed(sign, document.id, number, batch, name, len(messages), sources, len(whole))
        changed = change(whole)
        parts = [changed] if hop == 0 else [[m[2:] for m in changed if m[1] == t] for t in range(3)]
        found = {}
        for receiver, part in zip(service._receivers(document, number), parts, strict=True):
            head = batches.head_of(document, number, batch, name, receiver.name, part, trail=(*trail, link))
            found[receiver.name] = batches.pack(head, part, sign)
        return found

    service._shuffled = wrong  # type: ignore[method-assign]


def dummies(stage: PhoneStage, count: int, hop: int) -> list[bytes]:
    return Onions(stage.document, 1).dummies(count, hop=hop, rng=secure())


def test_a_first_scrambler_that_drops_messages_is_refused_by_the_next(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            cheat(stage, "scrambler-1", lambda messages: messages[1:])
            sent = stage.sendings()
            result = await run_all(stage, sent, until="not a batch")
            assert refused(stage, "scrambler-2")["not a batch"] == 1
            assert result["answers"][0]["lost_batches"] == 1
            assert len(stage.counted(result, sent)) <= 8

    asyncio.run(run())


def test_a_first_scrambler_that_sends_one_twice_has_it_replaced(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            cheat(stage, "scrambler-1", lambda messages: [*messages[1:], messages[1]])
            sent = stage.sendings()
            result = await run_all(stage, sent)
            assert refused(stage, "scrambler-2")["replaced"] == 1
            assert stage.counted(result, sent) < everybody(sent) or result["answers"][0]["without_token"] == 0

    asyncio.run(run())


@pytest.mark.parametrize("name", ["scrambler-1", "scrambler-2"])
def test_a_scrambler_that_replaces_all_but_one_loses_the_batch(name: str, tmp_path: Path) -> None:
    """The record that it has left alone is published with no other batch, and with none if too few people are left."""

    async def run(folder: Path, least: float) -> tuple[dict[str, Any], set[int]]:
        async with Cheating(folder, least=least) as stage:
            await stage.start_all()
            hop = int(name[-1]) - 1
            cheat(stage, name, lambda messages: [messages[0], *dummies(stage, len(messages) - 1, hop)], honest=hop == 0)
            sent = stage.sendings()
            result = await run_all(stage, sent)
            return result, set() if "failed" in result else stage.counted(result, sent)

    (tmp_path / "half").mkdir()
    (tmp_path / "more").mkdir()
    result, whose = asyncio.run(run(tmp_path / "half", 0.5))
    (answer,) = result["answers"]
    assert (answer["sources"], answer["lost_batches"], answer["without_token"]) == (8, 1, 0)
    assert len(whose) <= 8
    result, _ = asyncio.run(run(tmp_path / "more", 0.6))
    assert "only 8 of 16 sources came through" in result["failed"]
    assert "valid tokens for 8 sources, at least 5 are required; messages were replaced" in result["failed"]


def test_a_last_scrambler_that_drops_messages_is_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            cheat(stage, "scrambler-2", lambda messages: messages[2:])
            result = await run_all(stage, stage.sendings())
            assert "scrambler-2 has sent 14 messages, but targets have 12" in result["failed"]

    asyncio.run(run())


def test_a_last_scrambler_that_sends_one_twice_is_refused_by_the_target(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            cheat(stage, "scrambler-2", lambda messages: [*messages[1:], messages[1]])
            result = await run_all(stage, stage.sendings(), until="not a batch")
            assert refused(stage, "target-1-1", "target-1-2", "target-1-3")["not a batch"] == 1
            assert "batch 1 arrived at 2 of 3 targets" in result["failed"]

    asyncio.run(run())


def test_whoever_loses_messages_and_says_so_is_seen_by_the_phones(tmp_path: Path) -> None:
    """A first scrambler may say that fewer came, down to min_batch: then phones miss their entries."""

    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            scrambler = stage.services["scrambler-1"]
            assert isinstance(scrambler, Scrambler)
            right = scrambler._shuffled

            def fewer(document: Any, number: int, batch: int, messages: list[bytes], *rest: Any) -> dict[str, bytes]:
                return right(document, number, batch, messages[2:], rest[0], rest[1] - 2)

            scrambler._shuffled = fewer  # type: ignore[method-assign,assignment]
            phones = stage.phones()
            await phones.send(stage.sendings())
            result = await stage.result()
            assert result["answers"][0]["sources"] == PEOPLE - 4
            assert await phones.passed() == (PEOPLE, PEOPLE - 4)

    asyncio.run(run())


def test_an_issuer_that_signs_for_somebody_more_is_not_noticed(tmp_path: Path) -> None:
    """The security page says so: whoever signs tokens can make people up."""

    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start_all()
            sent = stage.sendings()
            document, key = stage.document, stage.keys["issuer"].tokens[0]
            assert isinstance(key, IssuerKey)
            name = document.step(1).targets[0].name
            blinded = blind(key.spki, token_challenge("issuer.example", document.context(1, name), ""))
            token = blinded.finalize(key.sign(blinded.request))
            more = blind(document.ticket_key(1), document.ticket_challenge(1))
            ticket = more.finalize(stage.keys["issuer"].tokens[1].sign(more.request))
            async with ClientSession() as session:
                message = Onions(document, 1).message(0, token, None)
                assert await stage.phones().post(session, 1, message, ticket) == "taken"
            await stage.phones().send(sent[1:])
            result = await stage.result()
            assert (result["answers"][0]["sources"], result["answers"][0]["without_token"]) == (PEOPLE, 0)

    asyncio.run(run())


def test_a_batch_of_somebody_else_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with Cheating(tmp_path) as stage:
            await stage.start("scrambler-2", "target-1-1")
            document, wrong = stage.document, stage.keys["relay"].sign
            messages = dummies(stage, 11, 0)
            link = batches.Link.signed(wrong, document.id, 1, 1, "scrambler-1", 8, 8, 11)
            head = batches.head_of(document, 1, 1, "scrambler-1", "scrambler-2", messages, trail=(link,))
            right = stage.keys["scrambler-1"].sign
            bodies = [batches.pack(head, messages, wrong), batches.pack(head, messages, right)]
            link = batches.Link.signed(right, document.id, 1, 1, "scrambler-1", 8, 8, 11)
            other = batches.head_of(document, 1, 1, "scrambler-1", "target-1-1", messages, trail=(link,))
            bodies += [batches.pack(other, messages, right), b"", b"\0" * 100, b"\xff" * 100]
            url = f"{stage.url('scrambler-2')}/tasks/{document.id.hex()}/batches"
            async with ClientSession() as session:
                for body in bodies:
                    async with session.post(url, data=body) as answer:
                        assert (answer.status, await answer.text()) == (400, "not a batch\n")
            assert refused(stage)["not a batch"] == len(bodies)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((8, 8, 12), "got 8 messages, sent 12, and should add 3 dummies"),
        ((9, 9, 12), "reports 9 sources for 9 messages"),
        ((4, 4, 7), "reports 4 sources for 4 messages"),
        ((9, 8, 12), "reports 8 sources for 9 messages"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int], why: str, tmp_path: Path) -> None:
    stage = Cheating(tmp_path)
    document, (came, sources, sent) = stage.document, counts
    link = batches.Link.signed(stage.keys["scrambler-1"].sign, document.id, 1, 1, "scrambler-1", came, sources, sent)
    head = batches.head_of(document, 1, 1, "scrambler-1", "scrambler-2", [], trail=(link,))
    with pytest.raises(ValueError, match=why):
        batches.check_trail(document, head, hops=1)
    for one in stage.sockets.values():
        one.close()


def test_a_loss_between_two_scramblers_names_both(tmp_path: Path) -> None:
    stage = Cheating(tmp_path)
    document, trail = stage.document, []
    for name, came, sources, sent in (("scrambler-1", 8, 8, 11), ("scrambler-2", 10, 8, 13)):
        trail.append(batches.Link.signed(stage.keys[name].sign, document.id, 1, 1, name, came, sources, sent))
    head = batches.head_of(document, 1, 1, "scrambler-2", "target-1-1", [], trail=tuple(trail))
    with pytest.raises(ValueError, match="between scrambler-1 and scrambler-2: 11 messages of 8 sources were sent, 10"):
        batches.check_trail(document, head, hops=2)
    with pytest.raises(ValueError, match="passed 1 scramblers, but has the counts of 2"):
        batches.check_trail(document, head, hops=1)
    for one in stage.sockets.values():
        one.close()
