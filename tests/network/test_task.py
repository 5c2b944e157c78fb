"""The document of a task: its size, its bytes, its number, and whether it keeps its plan."""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hushuffle as hs
from hushuffle.errors import DataError, HushuffleError, SpecificationError, UnsupportedProtocolError
from hushuffle.randomness import reproducible
from hushuffle_network.batches import Onions, target_of
from hushuffle_network.promise import check_task, draw_task
from hushuffle_network.queries import load_plan, parse_plan
from hushuffle_network.queries.analyse import analyse_plan
from hushuffle_network.service import FORGET
from hushuffle_network.task import MOST, TaskDocument, parse_task, read_task
from network.phone_cases import drawn, plan_text, services

EXAMPLE = Path(__file__).parents[2] / "examples" / "aggregate-network.toml"


def changed(document: TaskDocument, change: dict[str, Any]) -> TaskDocument:
    return TaskDocument.model_validate({**document.model_dump(), **change})


def test_its_size_does_not_depend_on_people() -> None:
    text = plan_text(traffic="dummies = 3\nbatch = 2000\nmin_batch = 1000\nscramblers = 2", sets='[["age"]]')
    sizes = {len(drawn(text, people=people, steps=1).content) for people in (10_000, 90_000)}
    assert len(sizes) == 1
    few, many = (len(drawn(text, people=people, steps=1).content) for people in (10_000, 10_000_000))
    assert many - few == 2 * len("000")  # digits of people and of sources


def test_the_example_takes_less_than_20_kb() -> None:
    specification = load_plan(EXAMPLE)
    document = draw_task(specification, 6_366, services(2, chain=1))
    assert len(document.content) < 10_000 < MOST


def test_a_document_that_would_be_too_large_is_refused() -> None:
    text = plan_text(sets='[["age", "sex"], ["sex", "age"]]', partitions=18, more="# " + "x" * 100)
    assert len(drawn(text, partitions=18).content) < MOST
    many = plan_text(sets='[["age"]]', partitions=90).replace("intervals = 6", "intervals = 90")
    with pytest.raises(DataError, match="at most 20,000 are allowed: choose fewer partitions"):
        drawn(many, steps=1, partitions=90)


def test_its_bytes_are_canonical_and_its_id_is_their_digest(tmp_path: Path) -> None:
    document = drawn()
    assert document.content == json.dumps(json.loads(document.content), sort_keys=True, separators=(",", ":")).encode()
    assert document.id == hashlib.sha256(document.content).digest()
    path = tmp_path / "task.json"
    path.write_bytes(document.content)
    assert read_task(path) == document
    assert read_task(path).id == document.id


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "is not the document of a task"),
        (b"[]", "is not the document of a task"),
        (b"{}", "Field required"),
        (b"x" * (MOST + 1), "larger than 20,000 bytes"),
        (b" ", "is not the document of a task"),
    ],
)
def test_bytes_that_are_no_document_are_refused(bad: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "task.json").write_bytes(bad)
    with pytest.raises(DataError, match=why):
        read_task(tmp_path / "task.json")


def test_a_document_laid_out_anew_is_refused(tmp_path: Path) -> None:
    content = json.dumps(json.loads(drawn().content), indent=1).encode()
    with pytest.raises(DataError, match="was reformatted"):
        parse_task(content)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_task(tmp_path / "none.json")


def test_every_value_is_bound_in_its_id() -> None:
    document = drawn()
    raw = document.model_dump()
    others = {document.id}
    for change in (
        {"relay": "http://127.0.0.1:9"},
        {"people": 25},
        {"collect": 61.0},
        {"number": "0" * 32},
        {"chain": (*raw["chain"][::-1],)},
    ):
        others.add(changed(document, change).id)
    assert len(others) == 6


def test_seals_and_tokens_are_bound_to_task_step_and_name() -> None:
    document, other = drawn(), drawn()
    cases = list(itertools.product((document, other), (1, 2), ("scrambler-1", "target-1-1")))
    assert len({task.info(step, name) for task, step, name in cases}) == len(cases)
    assert len({task.context(step, name) for task, step, name in cases}) == len(cases)


def test_sizes_of_a_message_on_its_way() -> None:
    document = drawn()
    assert [document.at(hop) for hop in (0, 1, 2)] == [1024, 976, 928]
    assert document.inner == 926
    assert document.room == 926 - 48 - 354 - 2


def code_by_document(document: TaskDocument, answer: dict[str, Any], step: int) -> tuple[int, bytes]:
    """Return own target and record as the document tells a client to make them, in plain loops."""
    compare = {"==": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    codes = {}
    for column in document.columns:
        value = answer[column.name]
        (codes[column.name],) = [
            number
            for number, group in enumerate(column.groups)
            if any(all(getattr(value, compare[op])(right) is True for op, right in clauses) for clauses in group.when)
        ]
    asked = document.step(step)
    code = groups = 0
    groups = 1
    for name, size in zip(asked.columns, asked.sizes, strict=True):
        code, groups = code * size + codes[name], groups * size
    record = b"".join(struct.pack("<i", codes[name]) for name in asked.columns)
    record += b"".join(struct.pack("<d", min(max(answer[one.name], one.low), one.high)) for one in document.values)
    return code * len(asked.targets) // groups, record


def test_a_client_can_make_targets_and_records_from_the_document_alone() -> None:
    document = drawn(plan_text(sets='[["age", "sex"], ["sex"]]'))
    promise = check_task(document)
    for age, sex, pay in itertools.product((-5.0, 0.0, 9.9, 10.0, 59.0, 99.0), "abc", (-1.0, 5.5, 200.0)):
        row = np.array([[min(max(age // 10, 0), 5), "abc".index(sex), min(max(pay, 0.0), 100.0)]])
        for step in (1, 2):
            own, record = code_by_document(document, {"age": age, "sex": sex, "pay": pay}, step)
            assert own == int(promise.task.own(step, row, None)[0])
            assert [record] == promise.task.pack(step, row)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sigma": 0.1}, "sigma of the step"),
        ({"dummies": 2}, "dummies of the step"),
        ({"min_batch": 2}, "min_batch of the step"),
        ({"batch": 40}, "batch of the step"),
        ({"convention": "exclusive"}, "convention of the step"),
        ({"only_on_purpose": True}, "only_on_purpose of the step"),
    ],
)
def test_a_document_that_does_not_keep_its_plan_is_refused(change: dict[str, Any], why: str) -> None:
    document = drawn()
    steps = [{**document.steps[0].model_dump(), **change}, *document.model_dump()["steps"][1:]]
    with pytest.raises(DataError, match=why):
        check_task(changed(document, {"steps": steps}))


def test_a_chain_of_another_length_is_refused() -> None:
    with pytest.raises(DataError, match="the plan has a chain of 2 scramblers, but the document has 1"):
        draw_task(parse_plan(plan_text()), 24, services(2, chain=1))


def test_other_columns_or_ways_to_ask_are_refused() -> None:
    document = drawn()
    for change in ({"per_person": "one"}, {"values": ()}, {"columns": document.model_dump()["columns"][::-1]}):
        with pytest.raises(DataError, match="differ from the plan"):
            check_task(changed(document, change))


def test_a_plan_that_misses_its_own_epsilon_is_refused() -> None:
    with pytest.raises(DataError, match=r"above targets.epsilon = 0\.01"):
        drawn(plan_text().replace("delta = 1e-6", "delta = 1e-6\nepsilon = 0.01"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (plan_text(traffic="flood = 1"), "asks each phone for several messages"),
        (
            plan_text(network="message = 512"),
            "raise network.message from 512",
        ),
    ],
)
def test_plans_that_phones_cannot_run_are_refused(text: str, why: str) -> None:
    with pytest.raises((UnsupportedProtocolError, SpecificationError), match=why):
        drawn(text)


CAPPED = plan_text(traffic="dummies = 3\nbatch = 8\ncapped = true")


def test_a_plan_without_scramblers_states_the_local_epsilon_against_everyone() -> None:
    document = drawn(plan_text(traffic="flood = 0"), chain=1)
    figures, step = document.figures, document.steps[0]
    assert (step.dummies, step.batch, step.min_batch, step.capped) == (0, step.sources, 1, None)
    promise = check_task(document)
    assert figures.epsilon == figures.issuer == pytest.approx(promise.guarantee.upper, abs=2e-4)
    local = [cluster.protocol.randomizer.local_epsilon for cluster in promise.plan.clusters if cluster.reads]
    assert promise.guarantee.upper == pytest.approx(sum(local), abs=1e-5)  # delta = 1e-6


def test_a_cap_needs_one_scrambler_and_batches_of_one_size() -> None:
    document = drawn(CAPPED, chain=1)
    step = document.steps[0]
    assert (step.capped, step.batch, step.min_batch) == (True, 8, 8)
    check_task(document)
    raw = document.model_dump(exclude_none=True)
    uneven = {"steps": [{**one, "min_batch": 7} for one in raw["steps"]]}
    uncapped = {"steps": [{name: value for name, value in one.items() if name != "capped"} for one in raw["steps"]]}
    with pytest.raises(ValueError, match="must be left out with several scramblers or sizes"):
        changed(document, uneven)
    with pytest.raises(ValueError, match="must be left out with several scramblers or sizes"):
        changed(document, {"chain": (*raw["chain"], {**raw["chain"][0], "name": "scrambler-2"})})
    with pytest.raises(DataError, match="capped of the step 'send by age' differ from the plan"):
        check_task(changed(document, uncapped))
    assert "capped" not in json.loads(drawn().content)["steps"][0]


def test_no_target_receives_more_messages_of_a_batch_than_it_has_sources() -> None:
    """Against the exact distribution of the dummies: two sources, two targets and two dummies under a cap of two."""
    text = plan_text(traffic="dummies = 2\nbatch = 2\ncapped = true", partitions=2)
    onions, runs = Onions(drawn(text, chain=1, partitions=2), 1), 400
    for targets, chance in (((0, 0), 0.0), ((0, 1), 0.5)):
        messages = [target.to_bytes(2) + bytes(100) for target in targets]
        firsts = 0
        for seed in range(runs if chance else 20):
            added = [target_of(one) for one in onions.completed(messages, hop=0, rng=reproducible(seed))[2:]]
            assert len(added) == 2
            assert max(Counter([*targets, *added]).values()) == 2
            firsts += added[0] == 0
        assert abs(firsts - chance * runs) <= 5 * (runs * chance * (1 - chance)) ** 0.5  # false alarm: 6 in 10 million


def test_dummies_under_a_cap_have_the_distribution_of_the_analysed_scrambler() -> None:
    """Batches of any two messages stay within the cap; for one batch, the draws are compared with all sequences."""
    text = plan_text(traffic="dummies = 3\nbatch = 2\ncapped = true")
    onions, rng, cap, own = Onions(drawn(text, chain=1), 1), reproducible(3), 2, (0, 1)
    sent, analysed = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    draw = partial(onions.step.sampling.dummies, rng=rng)
    for run in range(300):
        targets = own if run % 2 else tuple(rng.integers(3, cap).tolist())
        batch = onions.completed([target.to_bytes(2) + bytes(100) for target in targets], hop=0, rng=rng)
        places = tuple(target_of(one) for one in batch)
        assert places[:2] == targets
        assert max(Counter(places).values()) <= cap
        assert len(places) == cap + 3
        if run % 2:
            sent[places[2:]] += 1
            whole = hs.Scrambler(dummies=3, cap=cap).complete(np.array(own), draw=draw)
            analysed[tuple(whole[2:].tolist())] += 1
    chances = _sequences(own, 3, targets=3, cap=cap)
    assert sum(chances.values()) == 1
    for seen in (sent, analysed):
        assert seen.keys() <= chances.keys()
        expected = [float(seen.total() * chance) for chance in chances.values()]
        assert stats.chisquare([seen[one] for one in chances], expected).pvalue > 1e-6


def _sequences(present: tuple[int, ...], dummies: int, *, targets: int, cap: int) -> dict[tuple[int, ...], Fraction]:
    """Return all sequences of dummies with their probabilities: each is uniform over the targets below the cap."""
    if not dummies:
        return {(): Fraction(1)}
    below = [target for target in range(targets) if present.count(target) < cap]
    return {
        (target, *rest): chance / len(below)
        for target in below
        for rest, chance in _sequences((*present, target), dummies - 1, targets=targets, cap=cap).items()
    }


def test_the_time_that_targets_are_compared_with_is_that_of_the_task() -> None:
    text = plan_text().replace("delta = 1e-6", "delta = 1e-6\nseconds = 1.0")
    (asked,) = analyse_plan(parse_plan(text)).study.targets
    document = drawn(text)
    assert asked.got is not None
    assert asked.got.upper == document.deadline - document.starts + FORGET * document.patience


def test_hidden_centroids_are_refused_with_a_reason() -> None:
    text = """
traffic = { sigma = 0.2, batch = 50, dummies = 5 }
targets = { delta = 1e-6 }
[query]
kind = "k-means"
variant = "hidden"
generated = { people = 900 }
centroids = 4
iterations = 2
"""
    with pytest.raises(UnsupportedProtocolError, match="every node sees the centroids"):
        draw_task(parse_plan(text), 900, services(2))


def test_rules_of_a_document_are_checked() -> None:
    document = drawn()
    raw = document.model_dump()
    for change in (
        {"chain": (raw["chain"][0], raw["chain"][0])},
        {"message": 513},
        {"start": "2026-13-01T00:00:00Z"},
        {"relay": "ftp://x.example"},
        {"steps": [{**raw["steps"][0], "columns": ("none",)}]},
        {"steps": [{**raw["steps"][0], "min_batch": 1000}]},
        {"surplus": 1},
    ):
        with pytest.raises(ValueError, match=r"validation error"):
            changed(document, change)


def test_columns_by_labels_and_conditions() -> None:
    age, sex = drawn().columns
    assert sex.groups[1].when == ((("==", "b"),),)
    assert age.groups[1].when == (((">=", 10.0), ("<", 20.0)),)


def test_nothing_private_is_in_an_error(tmp_path: Path) -> None:
    (tmp_path / "task.json").write_bytes(b'{"sekret": 1}')
    with pytest.raises(HushuffleError) as error:
        read_task(tmp_path / "task.json")
    assert "sekret" not in str(error.value) or "extra" in str(error.value).lower()
