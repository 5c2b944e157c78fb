"""TOML files: descriptions of collections and plans."""

from __future__ import annotations

import datetime as dt
import random
import tomllib
from pathlib import Path
from typing import Any, Final

import tomli_w

from fuzz.fuzzing import Input, Maker, changed_text, changed_tree
from hushuffle.specification import CountedPopulation, DataPopulation
from hushuffle.specification.mixed import is_mixed, parse_mixed
from hushuffle.specification.reading import parse_collection
from hushuffle.specification.sums import is_sum, parse_sum
from hushuffle_network.queries import parse_plan
from network.phone_cases import plan_text

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
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
    if is_mixed(text):
        groups = parse_mixed(text)
        groups.effective()
        groups.build([1] * len(groups.groups), 4)
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
