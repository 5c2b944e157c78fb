"""Records of source nodes: prepared ones, and tables of their own."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushuffle.errors import DataError
from hushuffle.network.check import check_promise
from hushuffle.network.nodes.document import RunDocument, Server
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.nodes.source import Entry, Person, entries_of
from hushuffle.network.setup import Deployment, deploy, draw_up, held_records, read_prepared, write_prepared
from hushuffle.network.specification import NodeConfiguration
from hushuffle.queries import Aggregate, parse_plan
from hushuffle.queries.analyse import analyse_plan
from hushuffle.queries.query import Records
from hushuffle.randomness import reproducible

AGES = """
[query]
kind = "aggregate"
data = "people.csv"
columns = { age = { low = 0, high = 90, intervals = 3 }, sex = ["f", "m"] }
grouping_sets = [["age"], ["sex"]]
values = ["income"]
functions = ["count", "sum"]
partitions = 2
per_person = "all"
[traffic]
sigma = 0.2
[targets]
delta = 0
"""
POINTS = """
[query]
kind = "k-means"
data = "points.csv"
columns = { x = [0, 10], y = [-5, 5] }
centroids = 2
iterations = 2
variant = "public-centroids"
[traffic]
sigma = 0.2
[targets]
delta = 0
"""
MADE_UP = """
[query]
kind = "{kind}"
generated = {{ people = 9 }}
{more}
[traffic]
sigma = 0.2
[targets]
delta = 0
"""
GROUPS = 'columns = { age = 4 }\ngrouping_sets = [["age"]]\npartitions = 2'
CLUSTERS = 'centroids = 2\niterations = 3\nvariant = "public-centroids"'


def deployed(kind: str, more: str) -> Deployment:
    specification = parse_plan(MADE_UP.format(kind=kind, more=more))
    records = specification.query.records(Path())
    return deploy(specification, specification.plan(9), records, address=lambda name: f"{name}:1", rng=reproducible(1))


def drawn(text: str, holders: Sequence[str]) -> RunDocument:
    """Return the document of a run whose sources bring tables."""
    specification = parse_plan(text)
    seal = SealKey.generate().public.text
    return draw_up(
        specification,
        specification.plan(len(holders)),
        holders,
        server=lambda name: Server(address=f"{name}:1", seal=seal),
        records=Records(n=len(holders), source="", start=np.array([[0.0, 0.0], [1.0, 1.0]])),
        rng=reproducible(2),
    )


def config(records: Mapping[str, str] | None, *nodes: str) -> NodeConfiguration:
    more: dict[str, Any] = {} if records is None else {"records": {"coins": "c", "state": "s", **records}}
    return NodeConfiguration.model_validate(
        {"document": "run.json", "nodes": list(nodes), "identities": "identities", **more}
    )


def own_records(config: NodeConfiguration, document: RunDocument, folder: Path) -> Mapping[str, Sequence[Person]]:
    return held_records(config, document, parse_plan(document.plan).query, folder)


def plain(held: Mapping[str, Sequence[Person]]) -> dict[str, list[Any]]:
    """Return records as what can be compared."""
    return {name: [(one.record, dict(one.places), one.row.tolist()) for one in own] for name, own in held.items()}


@pytest.mark.parametrize(("kind", "more"), [("aggregate", GROUPS), ("k-means", CLUSTERS)])
def test_the_time_that_targets_are_held_against_is_that_of_the_run(kind: str, more: str) -> None:
    specification = parse_plan(MADE_UP.format(kind=kind, more=more).replace("delta = 0", "delta = 0\nseconds = 1.0"))
    (asked,) = analyse_plan(specification).study.targets
    assert asked.got is not None
    assert asked.got.upper == deployed(kind, more).document.result_deadline


@pytest.mark.parametrize(("kind", "more"), [("aggregate", GROUPS), ("k-means", CLUSTERS)])
def test_prepared_records_come_back(kind: str, more: str, tmp_path: Path) -> None:
    made, path = deployed(kind, more), tmp_path / "records.npz"
    write_prepared(path, made.people)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert plain(read_prepared(path, made.document)) == plain(made.people)
    found = own_records(config({"prepared": "records.npz"}, *made.people), made.document, tmp_path)
    assert plain(found) == plain(made.people)


@pytest.mark.parametrize("kind", ["aggregate", "k-means"])
def test_damaged_files_are_said_to_be_so(kind: str, tmp_path: Path) -> None:
    made, path = deployed(kind, GROUPS if kind == "aggregate" else CLUSTERS), tmp_path / "records.npz"
    write_prepared(path, made.people)
    whole = path.read_bytes()
    np.save(tmp_path / "array.npy", np.arange(3))
    np.savez(tmp_path / "other.npz", names=np.array(["source-1"]))
    strangers = {f"stranger{name}": own for name, own in made.people.items()}
    contents = [b"", b"text", whole[:100], whole[: len(whole) // 2], whole[:-10], (tmp_path / "array.npy").read_bytes()]
    contents += [(tmp_path / "other.npz").read_bytes()]
    if kind == "k-means":
        write_prepared(tmp_path / "strangers.npz", strangers)
        contents.append((tmp_path / "strangers.npz").read_bytes())
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(DataError, match="`hushuffle plan run` did not write it, or it is damaged"):
            read_prepared(path, made.document)
    path.unlink()
    with pytest.raises(DataError, match="does not exist"):
        read_prepared(path, made.document)


def entries(document: RunDocument, people: Sequence[Person]) -> list[Entry]:
    """Return what people have to say in all steps."""
    return entries_of(document, people, range(1, len(document.steps) + 1), None)


def test_a_table_fills_the_places_of_its_node(tmp_path: Path) -> None:
    document = drawn(AGES, ["ann", "bob", "ann", "cara", "ann"])
    (tmp_path / "own.csv").write_text("age,sex,income\n10,f,1.5\n50,m,2.5\n70,f,3.5\n")
    held = own_records(config({"data": "own.csv"}, "ann"), document, tmp_path)
    (name,) = held
    assert name == "ann"
    said = entries(document, held["ann"])
    assert {(one.step, one.batch, one.slot) for one in said} == set(document.places["ann"])
    assert len(said) == 6
    task = document.query
    assert isinstance(task, Aggregate)
    for number, column, groups in ((1, "age", [0, 1, 2]), (2, "sex", [0, 1, 0])):
        own = said[3 * number - 3 : 3 * number]
        rows = np.array([[0, 0, 1.5], [1, 1, 2.5], [2, 0, 3.5]])
        assert [one.content for one in own] == task.pack(number, rows)
        assert [one.own for one in own] == task.own(number, rows, None).tolist()
        assert [one.record for one in own] == [0, 1, 2]
        merged = task.merge(number, task.empty(number), [one.content for one in own], [True] * 3)
        assert merged[0].tolist() == np.bincount(groups, minlength=3 if column == "age" else 2).tolist()


def test_values_outside_their_ranges_are_moved_to_their_ends(tmp_path: Path) -> None:
    text = AGES.replace("[query]", "[query]\nranges = { income = [2, 3] }")
    document = drawn(text, ["ann", "bob", "ann", "cara", "ann"])
    assert isinstance(document.query, Aggregate)
    assert document.query.query.ends == {"income": (2.0, 3.0)}
    (tmp_path / "own.csv").write_text("age,sex,income\n10,f,-1e308\n50,m,2.5\n70,f,1e308\n")
    held = own_records(config({"data": "own.csv"}, "ann"), document, tmp_path)["ann"]
    assert [np.frombuffer(one.content[-8:])[0] for one in entries(document, held)] == [2.0, 2.5, 3.0] * 2


def test_a_table_for_one_set_each_is_used_once(tmp_path: Path) -> None:
    document = drawn(AGES.replace('"all"', '"one"'), ["ann"] * 5)
    (tmp_path / "own.csv").write_text("age,sex,income\n" + "".join(f"10,f,{row}.5\n" for row in range(5)))
    held = own_records(config({"data": "own.csv"}, "ann"), document, tmp_path)["ann"]
    said = entries(document, held)
    assert sorted(one.record for one in said) == [0, 1, 2, 3, 4]
    assert {one.step for one in said} == {1, 2}
    assert len({one.content[-8:] for one in said}) == 5


def test_points_from_a_table_are_scaled(tmp_path: Path) -> None:
    document = drawn(POINTS, ["ann", "bob", "ann"])
    (tmp_path / "own.csv").write_text("x,y\n0,5\n7.5,-99\n")
    held = own_records(config({"data": "own.csv"}, "ann"), document, tmp_path)["ann"]
    own = list(held)
    assert [one.row.tolist() for one in own] == [[-1.0, 1.0], [0.5, -1.0]]
    assert [one.record for one in own] == [0, 1]
    places = {(step, *place) for one in own for step, place in one.places.items()}
    assert places == set(document.places["ann"])


@pytest.mark.parametrize(
    ("text", "records", "nodes", "words"),
    [
        (AGES, None, ("ann",), r"needs \[records\]"),
        (AGES, {"data": "own.csv"}, ("ann", "bob"), "belongs to one source node"),
        (AGES, {"data": "none.csv"}, ("ann",), "none.csv"),
        (AGES, {"data": "own.csv"}, ("ann",), "own.csv has 3 records, but the run's document lists 2 of ann"),
        (POINTS, {"data": "points.csv"}, ("bob",), "points.csv has 3 records, but the run's document lists 1 of bob"),
    ],
)
def test_records_that_do_not_fit(
    text: str, records: dict[str, str] | None, nodes: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    (tmp_path / "own.csv").write_text("age,sex,income\n10,f,1.5\n50,m,2.5\n70,f,3.5\n")
    (tmp_path / "points.csv").write_text("x,y\n1,2\n3,4\n5,6\n")
    with pytest.raises(DataError, match=words) as caught:
        own_records(config(records, *nodes), drawn(text, ["ann", "bob", "ann"]), tmp_path)
    assert "2.5" not in str(caught.value)


def test_points_need_public_ranges(tmp_path: Path) -> None:
    document = deployed("k-means", CLUSTERS).document
    with pytest.raises(DataError, match=r"the plan needs \[query.columns\]"):
        own_records(config({"data": "own.csv"}, "source-1"), document, tmp_path)


SCRAMBLED = AGES.replace("sigma = 0.2", "sigma = 0.2\ndummies = 2\nbatch = 5")
NOISY = POINTS.replace("public-centroids", "private-centroids").replace(
    "[traffic]", 'noise = { kind = "gaussian", radius = 2.0, scale = 4.0 }\n[traffic]'
)


def changed(document: RunDocument, path: str, value: Any) -> RunDocument:
    """Return the document with another value at a place."""
    whole = document.model_dump()
    *before, last = path.split(".")
    part: Any = whole
    for key in before:
        part = part[int(key)] if isinstance(part, list | tuple) else part[key]
    part[last] = value
    return RunDocument.model_validate(whole)


@pytest.mark.parametrize("text", [AGES, SCRAMBLED, POINTS, NOISY])
def test_a_document_that_was_drawn_up_keeps_its_plan(text: str) -> None:
    document = drawn(text, ["ann", "bob", "cara", "dan", "eve"])
    assert check_promise(document).specification.effective() == document.plan


@pytest.mark.parametrize(
    ("text", "path", "value", "why"),
    [
        (AGES, "steps.0.sigma", 0.0, "sigma of the step 'send by age'"),
        (AGES, "steps.1.convention", "exclusive", "convention of the step 'send by sex'"),
        (AGES, "steps.0.flood", 1, "flood of the step"),
        (AGES, "people", 7, "sources of the step"),
        (AGES, "query.ranges", ((0.0, 1e308),), "the query of the document differs from that of the plan"),
        (POINTS, "query.largest", 2.0, "the query of the document differs from that of the plan"),
        (AGES, "query.functions", ("count",), "the query of the document differs from that of the plan"),
        (SCRAMBLED, "steps.0.dummies", 0, "dummies of the step"),
        (SCRAMBLED, "steps.0.min_batch", 1, "min_batch of the step"),
        (NOISY, "query.noise.scale", 0.1, "the query of the document differs from that of the plan"),
        (SCRAMBLED, "steps.0.batches.0.holders", ("ann", *["mallory"] * 4), "2 different holders, fewer than .* = 4"),
        (SCRAMBLED, "plan", SCRAMBLED.replace("delta = 0", "delta = 0\nepsilon = 0.01"), r"above targets\.eps"),
        (POINTS, "steps.0.only_on_purpose", True, "only_on_purpose of the step"),
        (
            POINTS,
            "plan",
            POINTS.replace("iterations = 2", "iterations = 3"),
            "the plan has 3 steps, but the document has 2",
        ),
        (POINTS, "plan", POINTS.replace("public-centroids", "hidden"), "the traffic of the plan has no guarantee"),
    ],
)
def test_nobody_takes_part_where_a_document_breaks_its_plan(text: str, path: str, value: Any, why: str) -> None:
    document = changed(drawn(text, ["ann", "bob", "cara", "dan", "eve"]), path, value)
    with pytest.raises(DataError, match=f"does not match its plan: .*{why}"):
        check_promise(document)


def test_a_changed_document_has_other_coins() -> None:
    document = drawn(AGES, ["ann", "bob", "cara", "dan", "eve"])
    for path, value in (
        ("steps.0.sigma", 0.9),
        ("query.functions", ("count",)),
        ("plan", SCRAMBLED),
        ("run", "0" * 32),
    ):
        assert changed(document, path, value).drawn != document.drawn
    assert changed(document, "patience", 5.0).drawn == document.drawn


@pytest.mark.parametrize(
    ("name", "message"),
    [("ann", "must list ann equally often in every step"), ("zoe", "lists 0 of zoe")],
)
def test_a_node_that_steps_list_unevenly_is_refused(name: str, message: str, tmp_path: Path) -> None:
    document = drawn(AGES, ["ann", "bob", "ann", "cara", "ann"])
    second = document.steps[1]
    holders = tuple("bob" if holder == "ann" else holder for holder in second.batches[0].holders)
    batch = second.batches[0].model_copy(update={"holders": holders})
    steps = (document.steps[0], second.model_copy(update={"batches": (batch,)}))
    uneven = RunDocument.model_validate({**document.model_dump(), "steps": [step.model_dump() for step in steps]})
    (tmp_path / "own.csv").write_text("age,sex,income\n10,f,1.5\n")
    with pytest.raises(DataError, match=message):
        own_records(config({"data": "own.csv"}, name), uneven, tmp_path)


def test_an_archive_that_numpy_cannot_unpack_is_said_to_be_damaged(tmp_path: Path) -> None:
    made, path = deployed("aggregate", GROUPS), tmp_path / "records.npz"
    write_prepared(path, made.people)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 10] = 99  # a way of compression that nobody knows: NotImplementedError
    path.write_bytes(content)
    with pytest.raises(DataError, match="is damaged"):
        read_prepared(path, made.document)
