"""Compute nodes that release results with noise: nothing exact leaves them, and the noise is drawn once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from hushuffle.errors import DataError
from hushuffle.network.node import result_table
from hushuffle.network.nodes.compute import ComputeNode
from hushuffle.network.nodes.connections import ConnectionLostError, Reason
from hushuffle.network.nodes.intake import ToldCodec
from hushuffle.queries import Aggregate
from network.network_tools import plan_text, stage
from runtime_cases import Case, aggregate_of, bounded, case, holders, identity, query, seal_key, step

NAME = "compute-1-1"
NOISY = replace(query(), functions=("count", "avg"), ranges=((0.0, 10.0),))


@contextmanager
def noisy(**changes: Any) -> Iterator[Case]:
    task = Aggregate.of(NOISY, epsilon=0.5)
    with case(step(1, [holders(3)], only_on_purpose=True), **({"query": task} | changes)) as one:
        yield one


async def released(one: Case, told: list[list[bytes]], state: Path, *, dies: bool = False, keeps: bool = True) -> None:
    """Run a node that adds what it tells to `told`, from five records of its first group."""
    node = ComputeNode(
        one.document, identity(NAME), one.sockets[NAME], key=seal_key(NAME), journal=one.journal(NAME), state=state
    )
    keep = node.keep

    async def at_once(*_: object) -> None:
        await asyncio.sleep(0)

    async def report(contents: list[bytes], **_: object) -> None:
        told.append(contents)
        if dies:
            raise ConnectionLostError(Reason.SLOW, NAME)

    async def kept(spool: Any, records: Any) -> bool:
        return keeps and await keep(spool, records)

    for what, instead in (("_listening", nullcontext), ("_wait", at_once), ("_report", report), ("keep", kept)):
        setattr(node, what, instead)
    node._merge(1, [aggregate_of(one.document).sample(1, 0)] * 5, [True] * 5)
    await node.run()


def test_noisy_results_are_the_same_after_a_new_start(tmp_path: Path) -> None:
    """Released anew they would have other noise, and the mean of many tells the truth."""
    with noisy() as one:
        told: list[list[bytes]] = []
        with pytest.raises(ConnectionLostError):
            bounded(released(one, told, tmp_path, dies=True))
        bounded(released(one, told, tmp_path))
        assert told[0] == told[1]
        bounded(released(one, told, tmp_path / "another"))
        assert told[2] != told[0]
        with pytest.raises(DataError, match=r"cannot store its noisy numbers, .* Nothing was released"):
            bounded(released(one, told, tmp_path / "third", keeps=False))
        assert len(told) == 3
        numbers = ToldCodec(one.document).unpack((1, 0), told[0]).numbers
        assert np.isfinite(numbers[:2, :2]).all()
        assert np.isnan(numbers[2:]).all()  # nothing of the least and greatest leaves the node


def test_a_document_with_noise_must_keep_lucky_messages_empty_and_bound_what_a_person_changes() -> None:
    with noisy() as one:
        whole = one.document.model_dump()
        whole["steps"][0]["only_on_purpose"] = False
        with pytest.raises(ValidationError, match="only_on_purpose must be true"):
            type(one.document).model_validate(whole)
    with pytest.raises(ValidationError, match="functions"):
        Aggregate.of(query(), epsilon=0.5)
    with noisy() as one:
        text = one.document.text
        assert '"epsilon": 0.5' in text
        assert type(one.document).model_validate_json(text) == one.document
    with case() as one:
        assert '"epsilon"' not in one.document.text


def test_a_run_with_noise_counts_what_was_sent_on_purpose_and_scales_for_that(tmp_path: Path) -> None:
    async def scenes() -> None:
        async with stage(plan_text(people=24, more="noise = { epsilon = 40.0 }"), tmp_path) as scene:
            scene.start_servers()
            scene.start(*scene.sources)
            result = await scene.result()
            (own,) = result.steps
            assert own.only_on_purpose
            assert own.scale() == pytest.approx(1 / 0.7)  # 0.7 of the messages are sent on purpose; 0.8 arrive
            assert own.combined[0].sum() <= 24
            table = result_table(scene.document, result)
            assert table["answers"][0]["noise"]["epsilon"] == 40.0
            assert table["answers"][0]["estimates"]["count"] == pytest.approx((own.combined[0] / 0.7).tolist())

    bounded(scenes())
