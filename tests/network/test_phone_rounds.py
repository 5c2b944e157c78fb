"""K-means asked of phones: each iteration a task of its own, one after the other, spent once."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from hushuffle.errors import DataError
from hushuffle.plans import CentroidNoise
from hushuffle.plans.centroids import means, nearest, sums_and_counts
from hushuffle.questions.traffic import plan_guarantee
from hushuffle.randomness import reproducible
from hushuffle_network import client, service
from hushuffle_network.choices import point_of
from hushuffle_network.client import Phone, PhoneError, Task, TryAgainError
from hushuffle_network.fields import utc_text
from hushuffle_network.formats import spki_of
from hushuffle_network.limits import Limits, Total, alone, local_epsilon
from hushuffle_network.promise import after, check_task, draw_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.queries.k_means_run import run_k_means
from hushuffle_network.rehearse import rehearse
from hushuffle_network.study import phone_study
from hushuffle_network.task import MOST, TaskDocument, parse_task
from network.phone_cases import services
from network.phone_stage import PhoneStage
from network.tasks import CODE

NOISE = 'noise = { kind = "gaussian", radius = 1.5, scale = 20.0 }'


def text(*, variant: str = "public-centroids", noise: str = "", people: int = 24, rounds: int = 3) -> str:
    return f"""
[query]
kind = "k-means"
generated = {{ people = {people}, dimensions = 2, seed = 3 }}
centroids = 3
iterations = {rounds}
variant = "{variant}"
{noise}
[traffic]
sigma = 0.5
dummies = 9
batch = 8
min_batch = 5
scramblers = 2
[targets]
delta = 1e-4
[network]
collect = 60.0
patience = 5.0
least = 0.5
[run]
seed = 7
"""


TABLE = text().replace(
    "generated = { people = 24, dimensions = 2, seed = 3 }",
    'data = "people.csv"\ncolumns = { x = [0, 10], y = [-1, 1] }',
)


def keys(rounds: int) -> Any:
    """Return services whose issuer has two keys for each iteration."""
    made = services(1)
    spare = [base64.b64encode(spki_of(2**2047 + 2 * number + 1)).decode() for number in range(2 * rounds)]
    return replace(made, token_keys=tuple(zip(spare[::2], spare[1::2], strict=True)))


def first(plan: str = TABLE, *, people: int = 24, rounds: int = 3) -> TaskDocument:
    return draw_task(parse_plan(plan), people, keys(rounds))


def result(*centroids: list[float], start: str = "2026-05-01T10:00:00.000Z") -> dict[str, Any]:
    return {"iterations": [{"centroids": list(centroids)}], "next_start": start}


MOVED = ([0.1, 0.2], [0.5, 0.5], [-1.0, 0.0])


def following(document: TaskDocument, *centroids: list[float]) -> TaskDocument:
    found = after(document, result(*(centroids or MOVED)))
    assert found is not None
    return found


def chain() -> list[TaskDocument]:
    """Return three iterations, another second one, another third one, and a second one with other figures."""
    one = first()
    two = following(one)
    fork = following(one, *MOVED[::-1])
    raw = json.loads(two.content)
    raw["people"] += 1
    return [one, two, following(two), fork, following(fork), TaskDocument.model_validate_json(json.dumps(raw))]


# Where a point goes


def test_a_point_goes_to_its_nearest_centroid_and_is_one_that_targets_take() -> None:
    """As the query itself computes it, whatever its length."""
    rng = np.random.default_rng(1)
    for kind in ("gaussian", "laplace", None):
        noise = None if kind is None else f'noise = {{ kind = "{kind}", radius = 0.7, scale = 20.0 }}'
        plan = (
            TABLE
            if noise is None
            else TABLE.replace("public-centroids", "private-centroids").replace("[traffic]", noise + "\n[traffic]")
        )
        document = first(plan)
        task, raw = check_task(document).task, json.loads(document.content)
        for x, y in [
            (0.0, -1.0),
            (10.0, 1.0),
            (5.0, 0.0),
            (99.0, -99.0),
            *rng.uniform([0, -1], [10, 1], (200, 2)).tolist(),
        ]:
            scaled = np.clip(np.array([[2 * x / 10 - 1, y]]), -1, 1)
            held = scaled if kind is None else CentroidNoise(kind=kind, radius=0.7, scale=20.0).shorten(scaled)
            found = point_of(raw, {"x": x, "y": y})
            assert found is not None
            own, record = found
            assert task.start is not None
            assert np.frombuffer(record) == pytest.approx(held[0], abs=1e-8)
            assert own == nearest(held, task.start)[0]
            task.check(1, own, record)
        assert point_of(raw, {"x": None, "y": 1}) is None
        assert point_of(raw, {"x": "1", "y": 1}) is None


# One document after the other


def test_every_document_keeps_the_plan_and_names_the_one_before() -> None:
    one, two, three, *_ = chain()
    for number, document in enumerate((one, two, three), 1):
        promise = check_task(parse_task(document.content))
        about = document.round
        assert about is not None
        assert (about.number, about.rounds, document.steps[0].name) == (number, 3, f"assign {number}")
        assert promise.task.start is not None
        assert about.centroids == tuple(map(tuple, promise.task.start.tolist()))
        assert document.figures.epsilon is not None
        assert document.figures.epsilon == pytest.approx(plan_guarantee(promise.plan, delta=1e-4).upper, abs=2e-4)
    assert one.round is not None
    assert two.round is not None
    assert three.round is not None
    assert (one.round.former, two.round.former, three.round.former) == (None, one.id.hex(), two.id.hex())
    assert two.round.run == three.round.run == one.id.hex()
    assert len({document.steps[0].token_key for document in (one, two, three)}) == 3
    assert following(one).content == two.content  # everybody makes the same
    assert after(three, result(*MOVED)) is None
    assert after(one, {"failed": "nobody came"}) is None
    assert local_epsilon(json.loads(two.content)) == pytest.approx(3 * np.log(1 + 3 * 0.5 / 0.5))


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 4},
        {"number": 4},
        {"number": 2, "run": "00" * 32, "former": "00" * 32},
        {"scaled": False},
        {"norm": "laplace", "radius": 1.0},
        {"centroids": ([0.0, 0.0],) * 3},
        {"centroids": ([0.0, 0.0],) * 2},
        {"centroids": ([0.0],) * 3},
        {"centroids": ([float("nan"), 0.0],) * 3},
        {"run": "00" * 32},
        {"former": "00" * 32},
    ],
)
def test_an_iteration_that_is_not_of_its_plan_is_refused(change: dict[str, Any]) -> None:
    raw = first().model_dump()
    with pytest.raises(
        (DataError, ValueError),
        match=r"differ from|one coordinate|at most rounds|keys of this|all iterations except|target for|finite",
    ):
        check_task(TaskDocument.model_validate(raw | {"round": raw["round"] | change}))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"iterations": []},
        result([0.0, 1.0]),
        result([0.0], [1.0], [2.0]),
        result([0.0, float("inf")], [1.0, 0.0], [2.0, 0.0]),
        result(*MOVED, start="soon"),
        {"iterations": [{"centroids": "abc"}], "next_start": "2026-05-01T10:00:00.000Z"},
    ],
)
def test_a_result_that_nothing_starts_from_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="the result of this iteration cannot start another iteration"):
        after(first(), wrong)


def test_no_iteration_is_larger_than_a_document_may_be() -> None:
    with pytest.raises(DataError, match="choose fewer centroids, columns or iterations"):
        first(TABLE.replace("iterations = 3", "iterations = 20"), rounds=20)
    document = first(TABLE.replace("iterations = 3", "iterations = 9"), rounds=9)
    worst = following(document, *([-1.2345678901234567e-100] * 2,) * 3)
    assert len(worst.content) <= MOST


def test_the_plan_on_the_page_is_asked_of_phones_and_has_room_for_ten_iterations() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "run-for-phones.md").read_text("utf-8")
    (query,) = re.findall(r"^```toml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    rest = TABLE[TABLE.index("[traffic]") :]
    for rounds in (3, 10):
        made = keys(rounds)
        made = replace(made, targets=(services(1, partitions=4).targets[0],))
        plan = parse_plan(query.replace("iterations = 3", f"iterations = {rounds}") + rest)
        document = draw_task(plan, 24, made)
        assert document.round is not None
        assert document.round.rounds == rounds


# What a phone answers


def spend(folder: Path, document: TaskDocument, *, budget: float = 1e3) -> None:
    raw = json.loads(document.content)
    with alone(str(folder)):
        Total(str(folder)).spend(document.id.hex(), raw, (1.0, 1e-4), Limits(budget=budget))


def test_all_iterations_cost_what_the_run_costs_from_the_start(tmp_path: Path) -> None:
    one, two, three, *_ = chain()
    for document in (one, one, two, one, two, three, three, one):
        spend(tmp_path, document, budget=1.0)
    with alone(str(tmp_path)):
        total = Total(str(tmp_path))
    assert total.sums() == (1.0, 1e-4)
    (run,) = total.runs.values()
    assert run["tasks"] == [document.id.hex() for document in (one, two, three)]


def test_each_iteration_is_answered_once_one_after_the_other(tmp_path: Path) -> None:
    """Whoever shows a phone other centroids than the rest asks it a question of its own: it answers one of them."""
    one, two, three, fork, late, more = chain()
    spend(tmp_path, one)
    with pytest.raises(PhoneError, match="more than the centroids has changed"):
        spend(tmp_path, more)
    spend(tmp_path, two)
    with pytest.raises(PhoneError, match="answered another document of this iteration"):
        spend(tmp_path, fork)
    with pytest.raises(PhoneError, match="does not follow from the iteration that this phone answered"):
        spend(tmp_path, late)
    spend(tmp_path, three)
    with pytest.raises(PhoneError, match="or a later iteration"):
        spend(tmp_path, late)


def test_a_phone_that_missed_an_iteration_pays_for_all_and_goes_on(tmp_path: Path) -> None:
    one, two, three, *_ = chain()
    spend(tmp_path, two, budget=1.0)
    with pytest.raises(PhoneError, match="or a later iteration"):
        spend(tmp_path, one, budget=1.0)
    spend(tmp_path, three, budget=1.0)
    with alone(str(tmp_path)):
        assert Total(str(tmp_path)).sums()[0] == 1.0


def test_no_more_iterations_than_the_first_document_says(tmp_path: Path) -> None:
    *_, three, _, _, _ = chain()
    raw = json.loads(three.content)
    for change in (
        {"number": 4},
        {"number": 4, "rounds": 4},
        {"number": 0},
        {"number": 4, "rounds": 4, "keys": [*raw["round"]["keys"], raw["round"]["keys"][2]]},
    ):
        document = raw | {"round": raw["round"] | change}
        spend(tmp_path, three)
        with (
            alone(str(tmp_path)),
            pytest.raises(PhoneError, match=r"has no keys for|more than the centroids has changed"),
        ):
            Total(str(tmp_path)).spend("ab" * 32, document, (1.0, 0.0), Limits())


# Services and phones


def answers_of(stage: PhoneStage, person: int) -> dict[str, Any]:
    x, y = stage.records.rows[person].tolist()
    return {"x1": x, "x2": y}


@pytest.mark.slow
def test_phones_answer_every_iteration_and_services_go_on_when_started_again(tmp_path: Path) -> None:
    """The result is that of what phones have drawn; the phone has answered, and paid, once."""

    async def run() -> None:
        async with PhoneStage(tmp_path, text(rounds=2)) as stage:
            await stage.start_all()
            centroids, task = stage.records.start, Task(stage.document.content, stage.document.id)
            assert centroids is not None
            for number in (1, 2):

                def person(who: int, task: Task = task, number: int = number) -> Phone:
                    given = answers_of(stage, who) if number == 1 else None
                    phone = Phone(task, tmp_path / f"phone-{who}", given, limits=Limits(max_epsilon=20, budget=20))
                    phone.send(stage.codes[who])
                    return phone

                phones = list(await asyncio.gather(*(asyncio.to_thread(person, who) for who in range(24))))
                found = await stage.result(of=task.id)
                (answer,) = found["iterations"]
                parts = [part for phone in phones for part in phone.parts]
                own = nearest(stage.records.rows, centroids)
                assert all(part.content is None or part.target == own[who] for who, part in enumerate(parts))
                used = np.array([part.content is not None for part in parts])
                sums, counts = sums_and_counts(stage.records.rows, own, 3, used=used)
                centroids = means(sums, counts, centroids)
                assert np.array(answer["centroids"]) == pytest.approx(centroids, rel=1e-12)
                assert await asyncio.to_thread(list, phones[0].passed()) == [(1, True)]
                if number == 1:
                    await stage.stop("scrambler-2", "target-1-2", "issuer")
                    await stage.start("scrambler-2", "target-1-2", "issuer")
                    task = Task(await _following(tmp_path))
                    await asyncio.wait_for(_all_have(stage, task.id), 20)
            total = json.loads((tmp_path / "phone-0" / "total.json").read_bytes())["runs"]
            assert list(total) == [stage.document.id.hex()]
            assert len(total[stage.document.id.hex()]["tasks"]) == 2

    asyncio.run(run())


async def _all_have(stage: PhoneStage, task: bytes) -> None:
    """Services look once a second."""
    for each in stage.services.values():
        for _ in range(400):
            if task in each.tasks:
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail(f"{each.name} takes no part")


async def _following(folder: Path) -> bytes:
    """Return the next document, as the program of a phone fetches it."""
    (folder / "task.json").write_bytes((folder / "tasks" / "task.json").read_bytes())
    command = [str(folder / "task.json"), "--state", str(folder / "phone-0"), "--next", str(folder / "next.json")]
    for _ in range(200):
        code = await asyncio.to_thread(client.main, command)
        assert code in (0, 75)
        if code == 0:
            return (folder / "next.json").read_bytes()
        assert not (folder / "next.json").exists()
        await asyncio.sleep(0.1)
    pytest.fail("there is no next iteration")


def test_what_is_not_the_next_iteration_is_refused(tmp_path: Path) -> None:
    one, two, three, *_ = chain()
    folder, answers = tmp_path / "state", {"x": 1, "y": 0}
    shown = [(404, b"not yet"), (200, three.content), (200, one.content), (200, two.content)]
    phone = Phone(Task(one.content), folder, answers, limits=Limits(max_epsilon=20), send=lambda *_: shown.pop(0))
    with pytest.raises(TryAgainError):
        phone.following()
    for _ in range(2):
        with pytest.raises(PhoneError, match="did not answer with the next iteration"):
            phone.following()
    assert phone.following() == two.content


def disguised(one: TaskDocument, about: dict[str, Any]) -> bytes:
    """Return another question, with places of somebody else's, that says it follows from the first iteration."""
    other = json.loads(first(TABLE.replace("sigma = 0.5", "sigma = 0.9").replace("[0, 10]", "[2.9, 3.1]")).content)
    other["round"] |= {"former": one.id.hex()} | about
    other["chain"], other["relay"] = other["chain"][:1], "https://elsewhere.example"
    other["figures"] = {"epsilon": 0, "delta": 0}
    keys_of_step = other["round"]["keys"][other["round"]["number"] - 1]
    other["steps"][0]["token_key"], other["steps"][0]["ticket_key"] = keys_of_step
    return json.dumps(other).encode()


@pytest.mark.parametrize(
    "about", [{"run": "cd" * 32}, {}, {"run": "cd" * 32, "number": 2}, {"run": None, "number": 2}, {"number": 2}]
)
def test_another_question_does_not_get_the_answers_of_the_first(about: dict[str, Any], tmp_path: Path) -> None:
    one, sent = first(), list[str]()
    about = about if about.get("run", "") is not None else {**about, "run": one.id.hex()}
    shown = disguised(one, about)

    def send(url: str, *_: Any) -> tuple[int, bytes]:
        sent.append(url)
        return (200, shown) if url.endswith("/next") else (503, b"")

    def phone(document: bytes, answers: Any = None) -> Phone:
        return Phone(Task(document), tmp_path, answers, limits=Limits(max_epsilon=100, budget=1e3), send=send)

    with pytest.raises(TryAgainError):
        phone(one.content, {"x": 3.0, "y": 0.5}).send(CODE)
    with pytest.raises(PhoneError, match="did not answer with the next iteration"):
        phone(one.content).following()
    sent.clear()
    with pytest.raises(
        PhoneError, match=r"does not follow from the iteration that this phone answered|has no keys for"
    ):
        phone(shown)
    assert sent == []


def test_all_rounds_count_whatever_a_document_says_of_persons() -> None:
    raw = json.loads(first().content)
    assert local_epsilon(raw) == pytest.approx(4.159, abs=1e-3)
    assert local_epsilon(raw | {"per_person": "one"}) == pytest.approx(4.159, abs=1e-3)


def test_a_later_iteration_in_the_folder_of_tasks_is_refused(tmp_path: Path) -> None:
    """Services make it of the published result; whoever puts another one there shows phones what he likes."""

    async def run() -> None:
        async with PhoneStage(tmp_path, text()) as stage:
            later = after(stage.document, result(*MOVED, start=stage.document.start))
            assert later is not None
            (tmp_path / "tasks" / "later.json").write_bytes(later.content)
            await stage.start("scrambler-1", "target-1-1", "issuer", "result")
            for each in stage.services.values():
                assert list(each.tasks) == [stage.document.id]

    asyncio.run(run())


def test_a_service_goes_on_with_an_iteration_when_the_one_before_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started again a week after the first iteration: the second follows from what was published."""

    async def run() -> None:
        async with PhoneStage(tmp_path, text()) as stage:
            one = stage.document
            published = result(*MOVED, start=utc_text(dt.datetime.fromtimestamp(one.starts + 1000, dt.UTC)))
            two = after(one, published)
            assert two is not None
            await stage.start("result", "scrambler-1")
            content = json.dumps(published).encode()
            row = (one.id, content)
            await stage.services["result"].store.do(
                lambda db: db.execute("INSERT INTO published VALUES (?, ?)", row).rowcount
            )
            await stage.services["scrambler-1"].store.forget(one.id)
            await stage.stop("scrambler-1")
            over = one.deadline + service.FORGET * one.patience + 604_800
            monkeypatch.setattr(service, "time", SimpleNamespace(time=lambda: over + 1))
            await stage.start("scrambler-1")
            for _ in range(400):
                if two.id in stage.services["scrambler-1"].tasks:
                    break
                await asyncio.sleep(0.05)
            assert list(stage.services["scrambler-1"].tasks) == [two.id]

    asyncio.run(run())


def test_a_result_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    """Services follow no redirection, take no result that is too large, and none that is no object."""
    shown = [(302, b""), (200, b"[]"), (200, b"{"), (200, b" " * (1 << 21)), (404, b"{}"), (200, b'{"failed": "x"}')]

    answers = list[tuple[int, bytes]]()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/elsewhere":
            return web.Response(body=b'{"failed": "elsewhere"}')
        status, body = answers.pop(0) if answers else (404, b"")
        return web.Response(status=status, body=body, headers={"Location": "/elsewhere"})

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        async with PhoneStage(tmp_path, text()) as stage:
            await web.SockSite(runner, stage.sockets["result"].dup()).start()
            await stage.start("scrambler-1")
            first_one = stage.services["scrambler-1"]
            for one in [*first_one._running]:  # what looks by itself
                one.cancel()
            session = first_one.session()
            answers[:] = shown
            found = [await first_one.published(session, stage.document) for _ in shown]
            assert found == [None, None, None, None, None, {"failed": "x"}]
            await runner.cleanup()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("private", [False, True])
def test_a_rehearsal_comes_to_what_the_same_coins_come_to_in_one_process(private: bool, tmp_path: Path) -> None:
    plan = text(rounds=2) if not private else text(rounds=2, variant="private-centroids", noise=NOISE)
    specification = parse_plan(plan)
    run = rehearse(specification, out=tmp_path)
    assert len(run.answers) == 2
    assert run.passed == (48, 48)
    assert phone_study(specification, run).answers[0].startswith("48 of 48 messages")
    if private:
        return  # noise is drawn by the targets, from coins that nobody knows
    rng, points, cluster = reproducible(7), run.records.rows, run.plan.clusters[0]
    assert cluster.sampling is not None
    centroids = run.records.start
    assert centroids is not None
    once = run_k_means(run.plan, points, centroids, rng=reproducible(7))
    assert np.array(run.answers[0]["centroids"]) == pytest.approx(once.centroids[1], rel=1e-12)
    for answer in run.answers:
        own = nearest(points, centroids)
        sent, _ = cluster.sampling.sample(own, rng=rng)
        sums, counts = sums_and_counts(points, own, 3, used=sent.reshape(-1) == own)
        centroids = means(sums, counts, centroids)
        assert np.array(answer["centroids"]) == pytest.approx(centroids, rel=1e-12)
        rng.permutation(len(points))
