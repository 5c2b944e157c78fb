"""Runs on hosts of their own: what is written for whom, and what is refused."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

from hushuffle.errors import DataError, SpecificationError, UnsupportedProtocolError
from hushuffle.network.node import ask_health
from hushuffle.network.nodes.document import read_document
from hushuffle.network.nodes.seals import SealKey
from hushuffle.network.setup import Prepared, make_certificates, prepare
from hushuffle.network.specification import load_node
from hushuffle.queries import KMeans, KMeansQuery, PlanSpecification, parse_plan

PLAN = """
[query]
kind = "aggregate"
generated = { people = 1000 }
columns = { age = 4 }
grouping_sets = [["age"]]
partitions = 2
[traffic]
sigma = 0.2
batch = 3
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
AGGREGATE = ("result", "compute-1-1", "compute-1-2", "scrambler-1-1", "scrambler-1-2")
CLUSTERS = ("result", "compute-1", "compute-2")
SIX = tuple(f"person-{number}" for number in range(6))


def hosts(
    folder: Path, servers: tuple[str, ...] = AGGREGATE, sources: tuple[str, ...] = SIX, *, names: str | None = None
) -> Path:
    """Write a file of hosts with seal keys beside it; `names`: the sources in a file of their own."""
    make_certificates(servers, out=folder / "keys")
    given = f"sources = {list(sources)}" if names is None else 'sources_file = "names.txt"'
    if names is not None:
        (folder / "names.txt").write_text(names, encoding="utf-8")
    places = "\n".join(f'{name} = "{name}.example.org:{9000 + place}"' for place, name in enumerate(servers))
    path = folder / "hosts.toml"
    path.write_text(f'seals = "keys"\n{given}\n[servers]\n{places}\n'.replace("'", '"'), encoding="utf-8")
    return path


def made(folder: Path, text: str, path: Path) -> Prepared:
    return prepare(parse_plan(text), path, out=folder / "out")


def clusters() -> PlanSpecification:
    return parse_plan(POINTS)


def test_every_node_gets_a_configuration(tmp_path: Path) -> None:
    prepared = made(tmp_path, PLAN, hosts(tmp_path))
    out = tmp_path / "out"
    document = read_document(prepared.document)
    assert document.people == 6
    assert set(document.places) == set(SIX)
    assert set(document.servers) == set(AGGREGATE)
    assert document.servers["compute-1-2"].place == ("compute-1-2.example.org", 9002)
    secret = SealKey.of((tmp_path / "keys" / "compute-1-2.seal").read_text())
    assert document.servers["compute-1-2"].seal == secret.public.text
    assert document.servers["scrambler-1-1"].seal is None
    names = [*AGGREGATE, *document.places]
    assert prepared.commands == tuple(f"hushuffle node start {name}.toml" for name in names)
    assert {path.name for path in out.iterdir()} == {"run.json", *(f"{name}.toml" for name in names)}
    for name in names:
        config = load_node(out / f"{name}.toml")
        assert config.nodes == (name,)
        assert (config.records is not None) == (name in SIX)
        assert config.result == ("result.json" if name == "result" else None)
    everything = "".join(path.read_text() for path in out.iterdir())
    for path in [*(tmp_path / "keys").glob("*.seal"), *(tmp_path / "keys").glob("*.key")]:
        body = path.read_text().splitlines()
        assert body[min(1, len(body) - 1)] not in everything


def test_the_identities_go_beside_the_configuration(tmp_path: Path) -> None:
    made(tmp_path, PLAN, hosts(tmp_path))
    make_certificates(["source-extra"], out=tmp_path / "keys")
    (tmp_path / "keys").rename(tmp_path / "out" / "identities")
    path = tmp_path / "out" / "run.json"
    path.write_text(path.read_text())
    assert ask_health(tmp_path / "out" / "person-1.toml") == {}  # nobody connects to a source


def test_names_may_be_in_a_file_and_one_node_may_speak_for_several(tmp_path: Path) -> None:
    plan = PLAN.replace("batch = 3", "batch = 3\nmin_batch = 1")
    prepared = made(tmp_path, plan, hosts(tmp_path, names="ann\nbob ann\n\nann\ncara\nann\n"))
    document = read_document(prepared.document)
    assert {name: len(places) for name, places in document.places.items()} == {"ann": 4, "bob": 1, "cara": 1}
    assert len(prepared.commands) == 5 + 3


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        (PLAN, ("ann", "ann", "ann", "ann", "bob", "cara"), "different holders, fewer than its min_batch = 3"),
        (PLAN.replace("delta = 0", "delta = 0\nepsilon = 0.1"), SIX, r"above targets\.epsilon = 0\.1"),
    ],
)
def test_what_every_node_would_refuse_is_not_handed_out(
    text: str, names: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=words):
        made(tmp_path, text, hosts(tmp_path, sources=names))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("names", ["", "Ann", "ann\nann.example\n"])
def test_names_in_a_file_must_be_names(names: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"names\.txt must hold one name on each line, of lower-case letters"):
        made(tmp_path, PLAN, hosts(tmp_path, names=names))


def test_a_file_of_names_that_cannot_be_read(tmp_path: Path) -> None:
    path = hosts(tmp_path, names="ann")
    (tmp_path / "names.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(DataError, match=r"names\.txt cannot be read: not text"):
        made(tmp_path, PLAN, path)
    (tmp_path / "names.txt").unlink()
    with pytest.raises(DataError, match=r"names\.txt cannot be read: No such file"):
        made(tmp_path, PLAN, path)


def test_servers_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=re.escape("2 missing. Host and port of each: compute-1-2, scra")):
        made(tmp_path, PLAN, hosts(tmp_path, ("result", "compute-1-1", "scrambler-1-2")))
    assert not (tmp_path / "out").exists()


def test_a_source_is_no_server(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=r"must be nodes that are not servers, got compute-1-1, result\."):
        made(tmp_path, PLAN, hosts(tmp_path, sources=("result", "compute-1-1", *SIX[:4])))


@pytest.mark.parametrize("content", [None, "00", "\u00e4"])
def test_a_seal_key_that_is_missing_or_none(content: str | None, tmp_path: Path) -> None:
    path = hosts(tmp_path)
    public = tmp_path / "keys" / "compute-1-1.seal.pub"
    if content is None:
        public.unlink()
    else:
        public.write_text(content)
    words = "64 hexadecimal digits" if content == "00" else r"`hushuffle node certs` creates seal keys"
    with pytest.raises(DataError, match=words):
        made(tmp_path, PLAN, path)


def test_nothing_is_written_into_a_folder_that_is_in_use(tmp_path: Path) -> None:
    path, out = hosts(tmp_path), tmp_path / "out"
    out.mkdir()
    made(tmp_path, PLAN, path)  # an empty one will do
    before = {one.name: one.read_bytes() for one in out.iterdir()}
    with pytest.raises(DataError, match="exists and is not empty"):
        made(tmp_path, PLAN, path)
    assert {one.name: one.read_bytes() for one in out.iterdir()} == before


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(DataError, match="out cannot be written: Not a directory"):
        made(tmp_path, PLAN, hosts(tmp_path))


def test_first_centroids_are_public_and_the_same_for_all(tmp_path: Path) -> None:
    document = read_document(made(tmp_path, POINTS, hosts(tmp_path, CLUSTERS)).document)
    assert isinstance(document.query, KMeans)
    query = clusters().query
    assert isinstance(query, KMeansQuery)
    assert [list(one) for one in document.query.initial] == query.first_centroids(2).tolist()
    assert len(document.steps) == 2


def test_points_must_come_from_tables(tmp_path: Path) -> None:
    text = POINTS.replace('data = "points.csv"\ncolumns = { x = [0, 10], y = [-5, 5] }', "generated = { people = 9 }")
    with pytest.raises(UnsupportedProtocolError, match=r"needs \[query.columns\]"):
        made(tmp_path, text, hosts(tmp_path, CLUSTERS))


def test_a_run_starts_when_its_operator_says(tmp_path: Path) -> None:
    start = dt.datetime(2026, 5, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    prepared = prepare(parse_plan(PLAN), hosts(tmp_path), out=tmp_path / "out", start=start)
    assert prepared.start == "2026-05-01T10:00:00.000Z"
    document = read_document(prepared.document)
    assert (document.start, document.starts) == (prepared.start, start.timestamp())


def test_a_run_starts_in_a_quarter_of_an_hour(tmp_path: Path) -> None:
    document = read_document(made(tmp_path, PLAN, hosts(tmp_path)).document)
    assert 14 * 60 < document.starts - dt.datetime.now(dt.UTC).timestamp() <= 15 * 60
