"""The phone's own program against real services."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hushuffle_network.client import Phone, Task
from network.phone_stage import PhoneStage


def answers_of(stage: PhoneStage, person: int) -> dict[str, Any]:
    age, sex, pay = stage.records.rows[person].tolist()
    return {"age": 10 * age + 5, "sex": "abc"[int(sex)], "pay": pay}


def test_phones_answer_a_task_and_see_that_they_passed(tmp_path: Path) -> None:
    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            await stage.start_all()
            task = Task(stage.document.content, stage.document.id)

            def person(number: int) -> Phone:
                phone = Phone(task, tmp_path / f"phone-{number}", answers_of(stage, number))
                phone.send(stage.codes[number])
                return phone

            phones = list(await asyncio.gather(*(asyncio.to_thread(person, number) for number in range(24))))
            result = await stage.result()
            assert [answer["sources"] for answer in result["answers"]] == [24, 24]
            for phone in phones[:3]:
                assert await asyncio.to_thread(list, phone.passed()) == [(1, True), (2, True)]
            parts = [part for phone in phones for part in phone.parts]
            for number, answer in enumerate(result["answers"], 1):
                assert sum(answer["received"]) == sum(one.number == number and one.content is not None for one in parts)

    asyncio.run(run())
