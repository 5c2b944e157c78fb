"""What programs read from us: the keys of documents and schemas, exit codes, and the reports that a key gives."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

import hushuffle as hs
from contracts.examples import RANDOMIZERS
from hushuffle.cli import main
from hushuffle.errors import HushuffleError
from hushuffle.report import json_schema
from scripts import script

support: Final = script("docs/support")

_KEY: Final = bytes(range(32))
_ROOMS: Final = ("dp", "qif", "pie", "pse", "order", "bloom", "traffic", "plans")

_COLLECTION: Final = """
title = "A town"
[population]
data = "people.csv"
column = "answer"
categories = ["no", "perhaps", "yes"]
missing = "drop"
[randomizer]
kind = "randomized-response"
epsilon = 2.0
[shuffler]
kind = "uniform"
[[adversaries]]
kind = "strong"
[[adversaries]]
kind = "linker"
[targets]
delta = 1e-4
standard_error = 0.2
[run]
repetitions = 3
seed = 1
"""
_PLAN: Final = """
[query]
kind = "aggregate"
generated = { people = 200 }
columns = { age = 4 }
grouping_sets = [["age"]]
partitions = 4
[traffic]
sigma = 0.2
dummies = 5
batch = 50
[targets]
delta = 1e-4
[run]
seed = 1
"""


def key_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every key in a document, with its type; the members of a list share one path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from key_paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from key_paths(inner, f"{path}[]")
    else:
        kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        yield f"{path}: {kind}"


def _paths(text: str) -> list[str]:
    return sorted(set(key_paths(json.loads(text))))


def documents(folder: Path) -> dict[str, list[str]]:
    """Run the program in an empty folder, and return the key paths of what it writes for programs."""
    answers = (["yes", "no", "no", "perhaps"] * 75) + [""]
    pl.DataFrame({"id": range(301), "answer": answers}).write_csv(folder / "people.csv")
    (folder / "town.toml").write_text(_COLLECTION, encoding="utf-8")
    (folder / "plan.toml").write_text(_PLAN, encoding="utf-8")
    town, plan = str(folder / "town.toml"), str(folder / "plan.toml")
    for verb, out in (
        (["assess", town], "report"),
        (["collect", town], "reports"),
        (["plan", "analyse", plan], "plan"),
    ):
        assert main([*verb, "--out", str(folder / out)]) == 0, verb
    return {
        "result.json": _paths((folder / "report" / "result.json").read_text(encoding="utf-8")),
        "manifest.json": _paths((folder / "reports" / "manifest.json").read_text(encoding="utf-8")),
        "study.json": _paths((folder / "plan" / "study.json").read_text(encoding="utf-8")),
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()),
    }


def schemas() -> dict[str, list[str]]:
    """Return the names that the published schemas define."""

    def names(schema: Any) -> set[str]:
        if isinstance(schema, list):
            return set().union(*map(names, schema))
        if not isinstance(schema, dict):
            return set()
        own = set(schema.get("properties", ()))
        return own.union(*(names(inner) for inner in schema.values()))

    specification = json.loads((Path(__file__).parents[2] / "docs" / "specification.schema.json").read_text("utf-8"))
    given = {"result.json": json_schema(), "study.json": json_schema("study"), "specification": specification}
    return {name: sorted(names(schema)) for name, schema in given.items()}


def keyed_reports() -> dict[str, str]:
    """Return the digest of what each randomizer makes of the same records under the same key, in rounds 0 and 7."""
    digests = {}
    for mechanisms in RANDOMIZERS.values():
        for mechanism in mechanisms:
            values = np.arange(500) % mechanism.inputs
            for number in (0, 7):
                rng = hs.keyed(key=_KEY, records=np.arange(500) * 3 + 1, round=number)
                reports = np.ascontiguousarray(mechanism.randomize(values, rng=rng))
                text = f"{reports.dtype} {reports.shape} ".encode() + reports.tobytes()
                digests[f"{mechanism} round {number}"] = hashlib.sha256(text).hexdigest()
    return digests


def brackets() -> dict[str, list[float] | str]:
    """Return central epsilon of every mechanism behind every shuffler: lower and upper bound, or "refused"."""
    made: dict[str, list[float] | str] = {}
    for mechanism, _ in support.MECHANISMS:
        for title, shuffler, _ in support.SHUFFLERS:
            name = f"{type(mechanism).__name__}({mechanism.local_epsilon:.3g}) | {title}"
            try:
                protocol = hs.Protocol(randomizer=mechanism, shuffler=shuffler, n=support.PEOPLE)
                bound = hs.dp.epsilon(protocol, delta=support.DELTA)
            except HushuffleError:
                made[name] = "refused"
            else:
                made[name] = [bound.lower, bound.upper]
    return made


def public_names() -> list[str]:
    """Return every public name with the names of its arguments."""
    rooms = {"hushuffle": hs} | {f"hushuffle.{room}": getattr(hs, room) for room in _ROOMS}
    names = []
    for room, module in rooms.items():
        for name in sorted(module.__all__):
            value = getattr(module, name)
            described = inspect.isfunction(value) or is_dataclass(value)
            names.append(
                f"{room}.{name}" + (f"({', '.join(inspect.signature(value).parameters)})" if described else "")
            )
    return names
