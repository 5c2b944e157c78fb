"""TOML files: descriptions of collections and plans, hosts, nodes; and the documents of runs."""

from __future__ import annotations

import copy
import datetime as dt
import json
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import tomli_w

from fuzz.fuzzing import Fuzzer, Input, Maker, changed_text, changed_tree
from hushuffle.network.check import check_policy, check_promise
from hushuffle.network.nodes.document import RunDocument, read_document
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.setup import held_records
from hushuffle.network.specification import NodeConfiguration, Policy, load_hosts, load_node
from hushuffle.queries import parse_plan
from hushuffle.specification import CountedPopulation, DataPopulation
from hushuffle.specification.reading import parse_collection
from hushuffle.specification.sums import is_sum, parse_sum
from network.network_tools import deployed, plan_text

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
HOSTS: Final = """
seals = "identities"
sources = ["ann", "ben"]
[servers]
result = "a:1"
compute-1-1 = "b:2"
"""
NODE: Final = """
document = "run.json"
nodes = ["a"]
identities = "i"
[records]
data = "a.csv"
coins = "c"
state = "s"
[listen]
a = "fd:3"
[policy]
max_epsilon = 1.0
min_batch = 3
authorities = ["ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB"]
"""
POINTS: Final = """
[query]
kind = "k-means"
generated = { people = 12, dimensions = 2, seed = 1 }
centroids = 2
iterations = 2
variant = "public-centroids"
[traffic]
sigma = 0.3
dummies = 3
batch = 6
min_batch = 4
[targets]
delta = 1e-6
"""
_PIECES: Final = ("", "\0", "]", "[", '"', "'", "=", "{", "}", "\n", "é", "9", "9" * 5000, "-", "#")
_ANY: Final[list[Any]] = [
    *(0, -1, 1, 2, 3, 10, 1000, 2**31, 2**53, 2**63 - 1, 10**400, True, False, 1e-320, 1e-6, 0.5, -0.0, 1e308),
    *(float("inf"), float("-inf"), float("nan"), [], [[]], {}, [{}], ["a", "a"], {"a": "== 1"}, {"": "== 1"}),
    *("", "\0", "\u202e", "é" * 100, "a" * 10_000, "uniform", "mallows", "none", "from-data", "drop", "refuse"),
    *("k-means", "aggregate", "infinity", "nan", "1e5", "../x", "*", "[", "== ", ">= 1 and", "!= 'a'"),
    *("source-01", "compute-1-1", "result", "scrambler-1-1", "0" * 64, "f" * 64, "exclusive", "laplace"),
    *("host:99999", "host:0", ":1", "[::1]:5", "a:b:c:1"),
]
_TOML: Final = [*_ANY, dt.date(2020, 1, 1), dt.time(1, 2), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]
_JSON: Final = [*_ANY, None, 2**64, 10**30]
_PLAN_VALUES: Final = ("1000000", "1e-300", "0", "-1", "nan", "inf", "[]", "[[1]]", '[[["age"]]]', "'x'", "{}", "true")


def _toml(text: str, rng: random.Random) -> str:
    """Return another text, most often one of valid TOML."""
    if rng.random() < 0.25:
        return changed_text(text, rng, _PIECES)
    return tomli_w.dumps(changed_tree(tomllib.loads(text), rng, _TOML))


def specifications(_folder: Path) -> Maker:
    """Change the examples: collections of one column or several, orders, reach studies."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.toml"))}
    chosen = sorted(name for name in texts if not _is_plan(texts[name]))

    def make(rng: random.Random) -> Input:
        text = _toml(texts[rng.choice(chosen)], rng)
        return Input(content=text, read=lambda: _use(text))

    return make


def _is_plan(text: str) -> bool:
    return "kind" in tomllib.loads(text).get("query", {})


def _use(text: str) -> None:
    if is_sum(text):
        found_sum = parse_sum(text)
        found_sum.effective()
        found_sum.build(50)
        return
    found = parse_collection(text)
    for column in found.columns.values():
        column.effective()
        if isinstance(column.population, CountedPopulation | DataPopulation):
            column.randomizer.build(4)


def plans(_folder: Path) -> Maker:
    """Change the examples of plans, and draw up what is left of them."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.toml"))]
    texts = [text for text in texts if _is_plan(text)] + [plan_text(), POINTS]

    def use(text: str) -> None:
        found = parse_plan(text)
        found.effective()
        found.plan(50)

    def make(rng: random.Random) -> Input:
        text = _toml(rng.choice(texts), rng)
        return Input(content=text, read=lambda: use(text))

    return make


def _file(text: str, load: Callable[[Path], object]) -> Fuzzer:
    def fuzzer(folder: Path) -> Maker:
        def make(rng: random.Random) -> Input:
            content = _toml(text, rng)
            (folder / "file.toml").write_text(content, encoding="utf-8", errors="replace")
            return Input(content=content, read=lambda: load(folder / "file.toml"))

        return make

    return fuzzer


hosts = _file(HOSTS, load_hosts)
nodes = _file(NODE, load_node)


def documents(folder: Path) -> Maker:
    """Change the documents of runs, and do with them what nodes do."""
    texts = [plan_text(), plan_text(traffic="flood = 1"), POINTS]
    texts.append(plan_text(sets='[["age"], ["sex"]]', more='per_person = "all"'))
    trees = []
    for text in texts:
        made, sockets = deployed(text)
        sockets.close()
        trees.append(json.loads(made.document.text))

    def make(rng: random.Random) -> Input:
        tree, coin = copy.deepcopy(rng.choice(trees)), rng.random()
        if coin < 0.7:  # the document, its plan, or both
            tree = changed_tree(tree, rng, _JSON)
        if coin > 0.5 and isinstance(tree, dict) and isinstance(tree.get("plan"), str):
            lines = tree["plan"].split("\n")
            place = rng.randrange(len(lines))
            lines[place] = lines[place].split("=")[0] + "= " + rng.choice(_PLAN_VALUES)
            tree["plan"] = "\n".join(lines)
        text = json.dumps(tree, indent=1, ensure_ascii=True, sort_keys=True) + "\n"
        (folder / "run.json").write_text(text, encoding="utf-8")
        (folder / "own.csv").write_text("age,sex\n" + "1,a\n" * rng.choice([1, 1, 2, 3]), encoding="utf-8")
        share = rng.random()
        return Input(content=text, read=lambda: _take_part(folder, share))

    return make


def _take_part(folder: Path, share: float) -> None:
    document = read_document(folder / "run.json")
    _look(document)
    names = sorted(document.places)
    name = names[int(share * len(names))]
    records = {"data": "own.csv", "coins": "c", "state": "s"}
    raw = {"document": "run.json", "nodes": [name], "identities": "i", "records": records}
    promise = check_promise(document)
    identity = Identity(name=name, certificate="", authority="", key="")
    check_policy(Policy(), promise, document, identity)
    held_records(NodeConfiguration.model_validate(raw), document, promise.specification.query, folder)


def _look(document: RunDocument) -> None:
    """Read everything that nodes read of a document."""
    _ = document.digest, document.layout, document.drawn, document.result_deadline
    for name, server in document.servers.items():
        _ = server.place, document.batches_of(name), document.target_of(name)
        if server.seal is not None:
            document.seal_key(name)
    for number in range(1, len(document.steps) + 1):
        step = document.step(number)
        _ = step.sampling, step.traffic.scrambler(3), document.deadline(number), document.target_deadline(number)
        _ = document.seals(number).room
