"""The document of a run: the same bytes everywhere, and every rule broken once."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hushuffle.errors import DataError
from hushuffle.network.nodes.connections import HEAD
from hushuffle.network.nodes.document import RunDocument, read_document
from hushuffle.queries import KMeans
from runtime_cases import case, holders, seal_key, step


def made(**changes: Any) -> RunDocument:
    with case(step(1, [holders(3), holders(2, start=3)]), step(2, [holders(5)]), **changes) as one:
        return one.document


DOCUMENT = made()


def plain(*, without: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DOCUMENT.text)
    found.pop(without, None)
    return found


def test_a_document_comes_back_from_a_file_with_the_same_digest(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(DOCUMENT.text, encoding="utf-8")
    again = read_document(path)
    assert again == DOCUMENT
    assert again.digest == DOCUMENT.digest == hashlib.sha256(path.read_bytes()).digest()
    assert read_document(path).text == DOCUMENT.text


def test_every_change_changes_the_digest() -> None:
    changes: list[dict[str, Any]] = [{"people": 9}, {"plan": "other"}, {"patience": 31.0}]
    changed = [RunDocument.model_validate(plain() | change) for change in changes]
    assert len({one.digest for one in (DOCUMENT, *changed)}) == 4
    runs = {RunDocument.model_validate(plain(without="run")).run for _ in range(3)}
    assert len(runs) == 3


def test_who_is_where() -> None:
    assert DOCUMENT.places["source-4"] == ((1, 1, 1), (2, 0, 4))
    assert [(number, batch.holders) for number, batch in DOCUMENT.batches_of("scrambler-1-2")] == [
        (1, ("source-3", "source-4"))
    ]
    assert DOCUMENT.batches_of("nobody") == ()
    assert DOCUMENT.target_of("compute-2-3") == (2, 2)
    assert DOCUMENT.target_of("result") is None
    assert (DOCUMENT.step(1).sources, DOCUMENT.step(2).sampling.targets) == (5, 3)
    assert DOCUMENT.layout.sealed == 256 - HEAD == DOCUMENT.seals(1).size
    assert DOCUMENT.seals(2).digest == DOCUMENT.digest
    assert DOCUMENT.seal_key("compute-1-1").text == seal_key("compute-1-1").public.text
    server = DOCUMENT.servers["result"].model_copy(update={"address": "[::1]:99"})
    assert server.place == ("::1", 99)


def change(table: Any, path: str, value: Any) -> None:
    *before, last = path.split(".")
    for key in before:
        table = table[int(key)] if isinstance(table, list) else table[key]
    if value is ...:
        del table[last]
    elif isinstance(table, list):
        table[int(last)] = value
    else:
        table[last] = value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run": "1"}, "run: "),
        ({"people": 0}, "people: "),
        ({"schema_version": 1}, "schema_version: "),
        ({"odd": 1}, "a key that no document has: Extra inputs are not permitted"),
        ({"message": 255}, "message: "),
        ({"message": 16_385}, "message: "),
        ({"collect": 0.0}, "collect: "),
        ({"patience": 86_401.0}, "patience: "),
        ({"least": 0.0}, "least: "),
        ({"steps": []}, "steps: "),
        ({"steps.0.sigma": 1.5}, "steps.0.sigma: "),
        ({"steps.0.convention": "odd"}, "steps.0.convention: "),
        ({"steps.0.computes.0": "Compute 1"}, "steps.0.computes.0: "),
        ({"servers.result.address": "nowhere"}, "address: "),
        ({"servers.result.seal": "12"}, "seal: "),
        ({"query.partitions": 7}, "`partitions` must be an integer from 1 to 6"),
        ({"steps.0.convention": "exclusive", "steps.0.sigma": 0.9}, "`sigma` must be at most (T - 1)/T"),
        ({"query.grouping_sets.1": ...}, "steps must be 1, as the query requires"),
        ({"steps.0.computes.2": ...}, "computes of 'step 1' must be 3 different nodes, one for each partition"),
        ({"steps.0.computes.2": "compute-1-1"}, "computes of 'step 1' must be 3 different nodes"),
        ({"servers.compute-1-3": ...}, "servers must have an address and a seal key for compute-1-3"),
        ({"servers.compute-1-3.seal": None}, "servers must have an address and a seal key for compute-1-3"),
        ({"servers.result": ...}, "servers must have an address and a seal key for result"),
        ({"servers.scrambler-1-1": ...}, "servers must have an address for scrambler-1-1"),
        ({"steps.0.batches.1.scrambler": None}, "batches of 'step 1' must all have scramblers, or be one without"),
        ({"steps.0.batches.0.scrambler": None, "steps.0.batches.1.scrambler": None}, "must all have scramblers"),
        ({"steps.0.batches.1.scrambler": "scrambler-1-1"}, "each batch of 'step 1' must have a separate scrambler"),
        ({"steps.0.batches.1.holders": []}, "steps.0.batches.1.holders: "),
        ({"steps.0.flood": 1}, "flood of 'step 1' must be 0 with scramblers"),
        ({"steps.1.batches.0.scrambler": None}, "dummies of 'step 2' must be 0 without scramblers"),
        (
            {"steps.1.batches.0.scrambler": None, "steps.1.dummies": 0, "steps.1.capped": True},
            "dummies of 'step 2' must be 0 without scramblers",
        ),
        (
            {"steps.1.batches.0.scrambler": None, "steps.1.dummies": 0, "steps.1.min_batch": 2},
            "min_batch of 'step 2' must be 1 without scramblers",
        ),
        ({"steps.0.min_batch": 3}, "batches of 'step 1' must have 3 sources or more"),
        (
            {"steps.0.min_batch": 2, "steps.0.capped": True},
            "min_batch of 'step 1' must be the size of every batch if capped",
        ),
        (
            {"steps.1.capped": True, "steps.1.min_batch": 5, "steps.1.dummies": 11},
            "dummies of 'step 2' must not exceed the cap",
        ),
        ({"result": "compute-1-1"}, "holders must be different nodes, and each compute in one"),
        ({"steps.1.computes.0": "compute-1-1"}, "holders must be different nodes, and each compute in one"),
        ({"steps.1.batches.0.scrambler": "compute-1-1"}, "must be different nodes"),
        ({"steps.0.batches.1.holders.0": "scrambler-1-1"}, "must be different nodes"),
    ],
)
def test_every_rule_broken_once(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    table = plain()
    for path, value in changes.items():
        if value is ... and path.split(".")[-1].isdigit():
            *before, last = path.split(".")
            whole: Any = table
            for key in before:
                whole = whole[int(key)] if isinstance(whole, list) else whole[key]
            del whole[int(last)]
        else:
            change(table, path, value)
    file = tmp_path / "run.json"
    file.write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_document(file)
    assert str(caught.value).startswith(f"{file} is not the document of a run:\n")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text", [DOCUMENT.text.rstrip(), json.dumps(json.loads(DOCUMENT.text)), DOCUMENT.text.replace("\n", "\r\n")]
)
def test_other_bytes_with_the_same_meaning_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(text.encode())
    with pytest.raises(DataError, match="all nodes need exactly the same file"):
        read_document(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_document(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read: not text"):
        read_document(tmp_path / "bytes.json")
    (tmp_path / "junk.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="is not the document of a run:\n  document: Invalid JSON"):
        read_document(tmp_path / "junk.json")


def test_a_document_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        DOCUMENT.people = 3


@given(st.floats(min_value=0.001, max_value=80_000.0), st.floats(min_value=1e-9, max_value=1.0))
def test_numbers_keep_their_bytes(patience: float, least: float) -> None:
    document = RunDocument.model_validate(plain() | {"patience": patience, "least": least})
    assert RunDocument.model_validate_json(document.text).text == document.text


# ---- k-means


def clustering() -> dict[str, Any]:
    """Return a document of two iterations on three centroids, as a table."""
    table = plain()
    first = table["steps"][1]
    second = json.loads(json.dumps(first).replace("scrambler-2-1", "scrambler-1-1"))
    for one in (first, second):
        one["computes"] = ["compute-1-1", "compute-1-2", "compute-1-3"]
        one["only_on_purpose"] = True
    table["steps"] = [first, second]
    table["query"] = {
        "kind": "k-means",
        "initial": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        "noise": {"kind": "gaussian", "radius": 1.0, "scale": 2.0},
    }
    return table


def test_iterations_have_one_set_of_nodes_and_follow_each_other() -> None:
    document = RunDocument.model_validate(clustering())
    assert isinstance(document.query, KMeans)
    assert (document.query.dimensions, document.step(2).sources) == (2, 5)
    assert document.query.noise is not None
    assert document.query.noise.build().radius == 1.0
    assert (document.stages, DOCUMENT.stages) == (((1,), (2,)), ((1, 2),))
    assert document.target_of("compute-1-2") == (1, 1)
    assert document.deadline(1) == DOCUMENT.deadline(1) == DOCUMENT.deadline(2) == document.collect
    assert document.deadline(2) > document.deadline(1) + document.collect
    assert document.text == RunDocument.model_validate_json(document.text).text
    public = clustering()
    public["query"]["noise"] = None
    assert not RunDocument.model_validate(public).query.noisy


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query.initial.0": [0.0]}, "initial centroids must have the same number of coordinates"),
        ({"query.initial.0.0": float("nan")}, "initial"),
        ({"steps.1.computes.0": "compute-2-1"}, "computes must be the same nodes in every iteration"),
        ({"steps.1.batches.0.holders.0": "source-9"}, "holders must be the same in every iteration"),
        ({"steps.1.only_on_purpose": False}, "only_on_purpose must be true if centroids are released with noise"),
        ({"query.noise.radius": 0.0}, "radius"),
        ({"query.initial": [[0.0, 0.0], [1.0, 0.0]]}, "must be 2 different nodes"),
        ({"result": "compute-1-1"}, "must be different nodes"),
    ],
)
def test_rules_of_k_means_broken_once(changes: dict[str, Any], message: str) -> None:
    table = clustering()
    for path, value in changes.items():
        change(table, path, value)
    with pytest.raises(ValidationError, match=message):
        RunDocument.model_validate(table)


def test_times_are_counted_from_one_moment() -> None:
    document = DOCUMENT.starting(dt.datetime(2026, 5, 1, 10, tzinfo=dt.UTC))
    assert (document.start, document.starts) == ("2026-05-01T10:00:00.000Z", 1777629600.0)
    assert document.drawn == DOCUMENT.drawn  # the same coins
    assert document.digest != DOCUMENT.digest


@pytest.mark.parametrize(
    "start", ["tomorrow", "2026-05-01T10:00:00", "2026-13-01T10:00:00Z", "2026-05-01T10:00:00+02:00"]
)
def test_a_start_is_a_moment(start: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(DOCUMENT.text.replace(DOCUMENT.start, start), encoding="utf-8")
    with pytest.raises(DataError, match="start"):
        read_document(path)
