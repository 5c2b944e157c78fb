"""What a phone gives at most: its owner's limits, the running total, and who tries to get around them."""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.mechanisms.randomizers import TargetSampling
from hushuffle.questions.traffic import collusions, plan_guarantee
from hushuffle_network import client, limits
from hushuffle_network.client import Phone, PhoneError, Task, TryAgainError
from hushuffle_network.limits import Limits, Total, alone, check_limits, local_epsilon, read_limits
from hushuffle_network.promise import check_task
from hushuffle_network.task import TaskDocument, parse_task
from network.phone_cases import drawn, plan_text
from network.phone_stage import PhoneStage
from network.tasks import CODE, Services, services
from network.test_client import ANSWERS, KEY


def world(**changes: Any) -> Services:
    """Services of a task that costs epsilon 0.8."""
    return services(KEY, **changes)


def total_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "total.json").read_bytes())["runs"])


def spent(asked: Services) -> dict[str, Any]:
    """Return the total when one task was answered."""
    task = asked.task.id.hex()
    return {task: {"epsilon": 0.8, "delta": 1e-6, "fixed": "", "tasks": [task]}}


LITTLE = [
    (Limits(max_epsilon=0.79), "epsilon is up to 0.8 at delta = 1e-06, above max_epsilon = 0.79"),
    (Limits(max_delta=9e-7), "above max_delta = 9e-07"),
    (Limits(min_batch=4), "a batch may have 3 people, but min_batch is 4"),
    (Limits(max_epsilon_with={"issuer": 1.59}), "with the issuer colluding, epsilon is up to 1.6,"),
    (Limits(max_epsilon_with={"scramblers": 2.7}), "with the scramblers colluding, epsilon is up to 2.70805,"),
    (Limits(scramblers=("00" * 32,)), "no scrambler of the task"),
    (Limits(collectors=()), "not in the limit `collectors`"),
]


@pytest.mark.parametrize(("given", "why"), LITTLE)
def test_a_task_that_asks_for_more_gets_nothing(given: Limits, why: str, tmp_path: Path) -> None:
    """Not a byte leaves, nothing is kept, and the message names no answer."""
    asked = world()
    with pytest.raises(PhoneError, match=why) as caught:
        Phone(asked.task, tmp_path / "state", ANSWERS, limits=given, send=asked.send)
    assert not any(str(answer) in str(caught.value) for answer in ANSWERS.values())
    assert not (tmp_path / "state").exists()
    Phone(asked.task, tmp_path, ANSWERS, send=asked.send)
    with pytest.raises(PhoneError, match=why):  # what was kept before goes by the limits of today
        Phone(asked.task, tmp_path, limits=given, send=asked.send).send(CODE)
    assert asked.seen == []


def test_a_task_within_all_limits_is_answered(tmp_path: Path) -> None:
    asked = world()
    own = [asked.task.document[name] for name in ("chain", "result")]
    given = Limits(
        max_epsilon=0.8,
        max_delta=1e-6,
        budget=0.8,
        min_batch=3,
        max_epsilon_with={"issuer": 1.6, "scramblers": 2.71},
        scramblers=("00" * 32, own[0][1]["key"]),
        collectors=(own[1]["key"],),
    )
    Phone(asked.task, tmp_path, ANSWERS, limits=given, send=asked.send).send(CODE)
    assert len(asked.arrived) == 2
    assert total_of(tmp_path) == spent(asked)


@pytest.mark.parametrize(
    "figures",
    [
        {},
        {"delta": 1e-6},
        {"epsilon": math.nan, "delta": 0},
        {"epsilon": -1, "delta": 0},
        {"epsilon": True, "delta": 0},
        {"epsilon": "0", "delta": 0},
        {"epsilon": math.inf, "delta": 0},
        {"epsilon": 1.0, "delta": 1.0},
    ],
)
def test_a_task_that_says_nothing_gets_nothing(figures: Any, tmp_path: Path) -> None:
    asked = world(figures=figures)
    with pytest.raises(PhoneError, match="no valid epsilon"):
        Phone(asked.task, tmp_path, ANSWERS, send=asked.send)


def test_figures_of_no_form_are_no_document() -> None:
    wrong: list[Any] = [[], 3, None]
    for figures in wrong:
        with pytest.raises(PhoneError, match="no task document of version 2"):
            _ = world(figures=figures).task


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": []},
        {"chain": []},
        {"steps": [{"targets": []}]},
        {"round": None},
        {"round": []},
        {"round": {"number": 1, "rounds": 10**400}},
        {"round": {"number": 1, "rounds": -3}},
        {"figures": {"epsilon": 10**400, "delta": 0}},
        {},
    ],
    ids=str,
)
def test_documents_of_no_form_are_one_clear_error(changes: dict[str, Any], tmp_path: Path) -> None:
    asked = world()
    steps = {"steps": [json.loads(asked.content)["steps"][0] | {"min_batch": math.nan}]}
    content = json.dumps(json.loads(asked.content) | (changes or steps)).encode()
    with pytest.raises(PhoneError, match=r"no task document of version 2|no valid epsilon|min_batch is 3"):
        Phone(Task(content), tmp_path, ANSWERS, limits=Limits(min_batch=3), send=asked.send)
    assert asked.seen == []


def test_the_defaults_hold_without_a_file(tmp_path: Path) -> None:
    asked = world(figures={"epsilon": 5.1, "delta": 1e-6})
    with pytest.raises(PhoneError, match="above max_epsilon = 5"):
        Phone(asked.task, tmp_path, ANSWERS, send=asked.send)
    for number in range(2):
        asked = world(figures={"epsilon": 5, "delta": 1e-6}, people=number)
        Phone(asked.task, tmp_path, ANSWERS, send=asked.send).send(CODE)
    asked = world(figures={"epsilon": 0.01, "delta": 1e-6})
    with pytest.raises(
        PhoneError, match="earlier tasks spent epsilon 10 and delta 2e-06, and the limits for all tasks are budget = 10"
    ):
        Phone(asked.task, tmp_path, ANSWERS, send=asked.send).send(CODE)
    assert asked.seen == []


def test_a_file_of_limits() -> None:
    given = read_limits(b'{"max_epsilon_with": {"issuer": 2}, "collectors": ["%s"], "recompute": true}' % (b"a" * 64))
    assert given == Limits(max_epsilon_with={"issuer": 2}, collectors=("a" * 64,), recompute=True)
    for text in (
        '{"epsilon": 1}',
        '{"budget": -1}',
        '{"budget": NaN}',
        '{"budget": true}',
        '{"max_epsilon": "1"}',
        '{"max_epsilon_with": {"targets": 1}}',
        '{"max_epsilon_with": 3}',
        '{"collectors": "a"}',
        '{"scramblers": ["a"]}',
        '{"recompute": 1}',
        "[]",
        "{",
    ):
        with pytest.raises(PhoneError, match="invalid names or values"):
            read_limits(text.encode())


@pytest.mark.parametrize("convention", ["uniform", "exclusive"])
@pytest.mark.parametrize(("targets", "sigma"), [(2, 0.3), (5, 0.3), (4, 0.75), (3, 0.6), (4, 0.0)])
def test_what_scramblers_learn_together_is_that_of_the_mechanism(convention: Any, targets: int, sigma: float) -> None:
    step = {"sigma": sigma, "convention": convention, "targets": [{}] * targets}
    matrix = TargetSampling(targets=targets, sigma=sigma, convention=convention).channel().matrix
    with np.errstate(divide="ignore"):
        expected = float(np.log((matrix.max(axis=0) / matrix.min(axis=0)).max()))
    found = local_epsilon({"per_person": "one", "steps": [step]})
    assert found == pytest.approx(expected, abs=1e-12)
    twice = local_epsilon({"per_person": "all", "steps": [step, step]})
    assert twice == pytest.approx(2 * expected)


# The running total


def test_a_task_that_is_sent_again_costs_nothing_more(tmp_path: Path) -> None:
    """Spent even if nobody is reached; once, by the same object, by a new one, and after all was sent."""
    asked, given = world(), Limits(budget=0.8)

    def nobody(*_: object) -> tuple[int, bytes]:
        assert total_of(tmp_path) == spent(asked)
        message = "nobody there"
        raise TryAgainError(message)

    for _ in range(2):
        phone = Phone(asked.task, tmp_path, ANSWERS, limits=given, send=nobody)
        for _ in range(2):
            with pytest.raises(TryAgainError):
                phone.send(CODE)
    Phone(asked.task, tmp_path, limits=given, send=asked.send).send(CODE)
    assert len(asked.arrived) == 2
    assert Total(str(tmp_path)).sums() == (0.8, 1e-6)


def test_a_document_that_changes_after_consent_is_another_task(tmp_path: Path) -> None:
    """Its id is not the one that was agreed to; without an id it is one more task, and costs as much again."""
    first, changed = world(), world(people=11)
    with pytest.raises(PhoneError, match="expected id"):
        Task(changed.content, first.task.id)
    Phone(first.task, tmp_path, ANSWERS, limits=Limits(budget=1.0), send=first.send).send(CODE)
    phone = Phone(changed.task, tmp_path, ANSWERS, limits=Limits(budget=1.0), send=changed.send)
    with pytest.raises(PhoneError, match=r"the task would spend epsilon 0\.8"):
        phone.send(CODE)
    assert changed.seen == []
    Phone(changed.task, tmp_path, limits=Limits(budget=1.6), send=changed.send).send(CODE)
    assert Total(str(tmp_path)).sums() == (1.6, 2e-6)


def test_a_copied_state_sends_nothing(tmp_path: Path) -> None:
    """Two phones that go on from one total would spend twice of it; an old total that is put back has forgotten."""
    state, copy, old = tmp_path / "state", tmp_path / "copy", tmp_path / "old.json"
    first, second = world(), world(people=11)
    Phone(first.task, state, ANSWERS, send=first.send).send(CODE)
    shutil.copytree(state, copy)
    with pytest.raises(PhoneError, match="is a copy, or was restored"):
        Phone(second.task, copy, ANSWERS, send=second.send)
    with pytest.raises(PhoneError, match="is a copy, or was restored"):
        Phone(first.task, copy, send=first.send).send(CODE)
    shutil.copy(state / "total.json", old)
    Phone(second.task, state, ANSWERS, send=second.send).send(CODE)
    third = world(people=12)
    shutil.copy(old, state / "total.json")
    with pytest.raises(PhoneError, match="is a copy, or was restored"):
        Phone(third.task, state, ANSWERS, send=third.send)
    assert third.seen == []
    Phone(third.task, copy, ANSWERS, moved=True, send=third.send).send(CODE)  # the owner says so
    Phone(third.task, copy, send=third.send).send(CODE)
    assert len(total_of(copy)) == 2


def test_a_copy_that_shares_its_files_sends_nothing(tmp_path: Path) -> None:
    """As `cp -al`, rsnapshot and ostree copy: the number in the file system is the same."""
    state, copy = tmp_path / "state", tmp_path / "copy"
    first, second = world(), world(people=11)
    Phone(first.task, state, ANSWERS, send=first.send).send(CODE)
    shutil.copytree(state, copy, copy_function=os.link)
    for folder in (copy, state):
        with pytest.raises(PhoneError, match=r"has 2 names \(hard links\)"):
            Phone(second.task, folder, ANSWERS, send=second.send)
    assert second.seen == []
    shutil.rmtree(copy)
    Phone(second.task, state, ANSWERS, send=second.send).send(CODE)


@pytest.mark.parametrize("what", ["device", "nonce"])
def test_a_copy_with_the_same_number_in_another_file_system_sends_nothing(what: str, tmp_path: Path) -> None:
    asked, path = world(), tmp_path / "total.json"
    Phone(asked.task, tmp_path, ANSWERS, send=asked.send).send(CODE)
    about = json.loads(path.read_bytes())
    assert about["file"] == path.stat().st_ino
    assert about["device"] == path.stat().st_dev
    other = about["device"] + 1 if what == "device" else "0" * 32
    path.write_text(json.dumps(about | {what: other}))  # the same file
    with pytest.raises(PhoneError, match="is a copy, or was restored"):
        Phone(asked.task, tmp_path, send=asked.send).send(CODE)
    Phone(asked.task, tmp_path, moved=True, send=asked.send).send(CODE)
    Phone(asked.task, tmp_path, send=asked.send).send(CODE)


def test_an_older_total_is_noticed_though_its_file_has_the_same_number(tmp_path: Path) -> None:
    first, second, third = world(), world(people=11), world(people=12)
    Phone(first.task, tmp_path, ANSWERS, send=first.send).send(CODE)
    path = tmp_path / "total.json"
    old = json.loads(path.read_bytes())
    Phone(second.task, tmp_path, ANSWERS, send=second.send).send(CODE)
    path.write_text(json.dumps(old | {"file": path.stat().st_ino}))
    with pytest.raises(PhoneError, match="is a copy, or was restored"):
        Phone(third.task, tmp_path, ANSWERS, send=third.send)


def test_a_folder_that_was_moved_goes_on(tmp_path: Path) -> None:
    asked = world()
    Phone(asked.task, tmp_path / "a", ANSWERS, send=asked.send).send(CODE)
    (tmp_path / "a").rename(tmp_path / "b")
    Phone(asked.task, tmp_path / "b", send=asked.send).send(CODE)


def test_a_total_or_a_state_that_is_gone_sends_nothing(tmp_path: Path) -> None:
    first, second = world(), world(people=11)
    Phone(first.task, tmp_path, ANSWERS, send=first.send).send(CODE)
    (tmp_path / f"{first.task.id.hex()}.json").unlink()
    with pytest.raises(PhoneError, match="what this task has sent is unknown"):
        Phone(first.task, tmp_path, ANSWERS, send=first.send)
    Phone(second.task, tmp_path, ANSWERS, send=second.send).send(CODE)
    (tmp_path / "total.json").unlink()
    for task, answers in ((first.task, ANSWERS), (second.task, None)):
        with pytest.raises(PhoneError, match="the total privacy loss is unknown"):
            Phone(task, tmp_path, answers, send=second.send).send(CODE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"file": 1, "runs": []}',
        '{"file": 1, "runs": {"a": {"epsilon": 1, "delta": 0}}}',
        '{"file": 1, "runs": {"a": {"epsilon": 1, "delta": 0, "fixed": "", "tasks": {}}}}',
        '{"file": 1, "runs": {"a": {"epsilon": -1, "delta": 0, "fixed": "", "tasks": []}}}',
    ],
)
def test_a_damaged_total_sends_nothing(text: str, tmp_path: Path) -> None:
    asked = world()
    (tmp_path / "total.json").write_text(text)
    with pytest.raises(PhoneError, match="damaged"):
        Phone(asked.task, tmp_path, ANSWERS, send=asked.send)


def test_a_total_that_cannot_be_written_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = world()
    phone = Phone(asked.task, tmp_path, ANSWERS, send=asked.send)

    def full(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(limits, "write_new", full)
    with pytest.raises(PhoneError, match="cannot be written"):
        phone.send(CODE)
    assert asked.seen == []


@pytest.mark.parametrize("at", ["write_new", "settle"])
def test_a_phone_that_is_killed_between_its_files_goes_on(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each write that it makes, once: then the same command sends one message, and spends once."""
    for when in range(5):
        asked, calls, real = world(), [0], getattr(limits, at)
        folder = tmp_path / f"{at}{when}"

        def killed(*given: Any, calls: list[int] = calls, when: int = when, real: Any = real) -> Any:
            found = real(*given)
            calls[0] += 1
            if calls[0] == when + 1:
                raise KeyboardInterrupt
            return found

        monkeypatch.setattr(limits, at, killed)
        with pytest.raises(KeyboardInterrupt):
            Phone(asked.task, folder, ANSWERS, limits=Limits(budget=0.8), send=asked.send).send(CODE)
        assert asked.seen == []
        monkeypatch.setattr(limits, at, real)
        Phone(asked.task, folder, ANSWERS, limits=Limits(budget=0.8), send=asked.send).send(CODE)
        assert len(asked.arrived) == 2
        assert len(total_of(folder)) == 1


def _spend(folder: str, number: int) -> None:
    with alone(folder):
        Total(folder).spend(f"{number:064x}", {}, (1.0, 0.0), Limits(budget=3))


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_programs_at_once_spend_no_more_than_there_is(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_spend, args=(str(tmp_path), number)) for number in range(8)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(60)
    assert sum(one.exitcode == 0 for one in processes) == 3
    assert Total(str(tmp_path)).sums()[0] == 3.0


def test_a_clock_that_is_set_back_gives_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of the total is ever forgotten: the phone does not look at the clock."""
    first, second = world(), world(people=11)
    Phone(first.task, tmp_path, ANSWERS, limits=Limits(budget=1), send=first.send).send(CODE)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    with pytest.raises(PhoneError, match="the task would spend"):
        Phone(second.task, tmp_path, ANSWERS, limits=Limits(budget=1), send=second.send).send(CODE)
    assert not any(hasattr(module, name) for module in (client, limits) for name in ("time", "datetime"))


def test_sums_are_those_of_the_figures_as_they_are_written(tmp_path: Path) -> None:
    with alone(str(tmp_path)):
        total = Total(str(tmp_path))
        for number in range(3):
            total.spend(str(number), {}, (0.1, 0.0), Limits(budget=0.3))
        with pytest.raises(PhoneError, match=r"earlier tasks spent epsilon 0\.3 "):
            total.spend("3", {}, (1e-4, 0.0), Limits(budget=0.3))


# What a document says of itself


def changed(document: TaskDocument, **figures: Any) -> bytes:
    """Return a document that states other figures."""
    stated = document.figures.model_dump() | figures
    return TaskDocument.model_validate(document.model_dump() | {"figures": stated}).content


def test_the_figures_are_those_of_the_plan_rounded_up() -> None:
    document = drawn()
    promise = check_task(document)
    plan, figures = promise.plan, document.figures
    exact = (plan_guarantee(plan, delta=1e-6).upper, collusions(plan, delta=1e-6)[-2].active.upper)
    for stated, figure in zip((figures.epsilon, figures.issuer), exact, strict=True):
        assert stated is not None
        assert figure < stated < figure + 2e-4
    assert figures.delta == 1e-6


@pytest.mark.parametrize("lie", [{"epsilon": 0.1}, {"issuer": 0.1}, {"delta": 1e-9}, {"epsilon": 4.15}])
def test_a_figure_that_is_too_small_is_refused_by_everybody_who_computes(lie: dict[str, float]) -> None:
    data = changed(drawn(), **lie)
    with pytest.raises(DataError, match="more than the figures in the document"):
        check_task(parse_task(data))
    document = json.loads(data)
    check_limits(Limits(), document, data)
    with pytest.raises(PhoneError, match="more than the figures in the document"):
        check_limits(Limits(recompute=True), document, data)


def test_figures_that_cannot_be_computed_again_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    document = drawn()
    check_limits(Limits(recompute=True), json.loads(document.content), document.content)
    monkeypatch.setitem(sys.modules, "hushuffle_network.promise", None)
    with pytest.raises(PhoneError, match="needs hushuffle"):
        check_limits(Limits(recompute=True), json.loads(document.content), document.content)


def test_a_plan_without_a_promise_says_so() -> None:
    document = drawn(plan_text().replace("sigma = 0.3", "sigma = 0.0"))
    assert document.figures.epsilon is None
    with pytest.raises(PhoneError, match="no valid epsilon"):
        check_limits(Limits(), json.loads(document.content))


def test_no_scrambler_opens_what_was_sent_for_a_figure_that_is_too_small(tmp_path: Path) -> None:
    """A phone that believes it loses nothing: its message stays sealed for a scrambler that refuses the task."""

    async def run() -> None:
        async with PhoneStage(tmp_path) as stage:
            data = changed(stage.document, epsilon=0.1)
            (tmp_path / "tasks" / "task.json").write_bytes(data)
            await stage.start("scrambler-1", "scrambler-2", "target-1-1", "result")
            assert all(not service.tasks for service in stage.services.values())
            (tmp_path / "tasks" / "task.json").write_bytes(stage.document.content)
            for service in stage.services.values():
                await service.again()
            assert all(len(service.tasks) == 1 for service in stage.services.values())

    asyncio.run(run())
