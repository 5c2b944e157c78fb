"""The bytes of a run over the network as they were at the freeze: its document, what sources send, what nodes tell.

Seals are random; in their place stands a digest of what is sealed, for whom, in which step of which run.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.intake import Told, ToldCodec
from hushuffle.network.nodes.seals import PublicSealKey, SealKey, Seals
from hushuffle.network.nodes.source import deliveries, entries_of
from hushuffle.network.setup import deploy
from hushuffle.queries import parse_plan
from hushuffle.randomness import reproducible

_AGGREGATE: Final = """
kind = "aggregate"
generated = {{ people = 60 }}
columns = {{ age = 6, sex = ["a", "b", "c"] }}
grouping_sets = [["age"], ["sex", "age"]]
values = ["x", "y"]
ranges = {{ x = [0, 200] }}
functions = ["count", "sum", "avg", "min", "max"]
partitions = 3
per_person = "{}"
"""
_K_MEANS: Final = """
kind = "k-means"
generated = {{ people = 60, dimensions = 3 }}
centroids = 4
iterations = 2
variant = "{}"
"""
_QUERIES: Final = {
    "all": _AGGREGATE.format("all"),
    "one": _AGGREGATE.format("one"),
    "public": _K_MEANS.format("public-centroids"),
    "private": _K_MEANS.format("private-centroids") + 'noise = { kind = "gaussian", radius = 1.0, scale = 4.0 }',
}
_TRAFFIC: Final = {
    "scr": "dummies = 3\nbatch = 20",
    "cap": "dummies = 3\nbatch = 20\ncapped = true",
    "flood": "flood = 1",
}
FROZEN: Final = {
    "all/scr": ("a21823d8a0f07241", "93c2780837b936d7", "1f45c8570065ad75"),
    "all/cap": ("fbe85909a3729b98", "711e1989a2d018e5", "1f45c8570065ad75"),
    "all/flood": ("a778b20203fe59f2", "63f9b524cd87d5b2", "2965e3f501994081"),
    "one/scr": ("0b63520b20bb978c", "45ec19ac700554ac", "6f5ffb176adf7bbe"),
    "one/cap": ("17822a057a7965af", "f1f5bd72d410fff8", "6f5ffb176adf7bbe"),
    "one/flood": ("5ab606dbcb0bd308", "05ac1adb470e5b5d", "2965e3f501994081"),
    "public/scr": ("601cedccbebaae23", "61c5762125cf9dbc", "c81a01e196a62084"),
    "public/cap": ("dd53a553fb75cad7", "0493496544650941", "c81a01e196a62084"),
    "public/flood": ("d6b689a9c465d94c", "1b86bd3c47dca96e", "ec61c714acb2aebd"),
    "private/scr": ("67b7508d4dc10da4", "3833f812bb96b03e", "6656055dd745586f"),
    "private/cap": ("8a11d4cd8c3767fe", "05aaff4896e21b36", "6656055dd745586f"),
    "private/flood": ("5719dcdf20403579", "00b227489faa09a1", "c9f8bb6e9e45c04b"),
}
"""Digests of the document, of the messages, and of the parts."""


def _digest(what: object) -> str:
    text = what if isinstance(what, str) else repr(what)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _written(
    query: str, traffic: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[RunDocument, list[object], list[bytes]]:
    """Return the document of a run, the messages of all sources in it, and what nodes tell of made-up records."""

    def seal(self: Seals, content: bytes | None, _key: PublicSealKey, *, target: str) -> bytes:
        return hashlib.sha256(self._info(target) + (content or b"none") + bytes([content is None])).digest()

    key = SealKey.of(hashlib.sha256(b"k").hexdigest())
    monkeypatch.setattr(SealKey, "generate", lambda: key)
    monkeypatch.setattr(Seals, "seal", seal)
    text = f"[query]\n{query}\n[traffic]\nsigma = 0.3\n{traffic}\n[targets]\ndelta = 1e-6\n"
    specification = parse_plan(text)
    records = specification.query.records(Path())
    plan = specification.plan(records.n)
    made = deploy(specification, plan, records, address=lambda name: f"{name}:1", rng=reproducible(1))
    fixed = {"run": "ab" * 16, "start": "2026-05-01T10:00:00.000Z"}
    document = RunDocument.model_validate({**made.document.model_dump(), **fixed})
    steps, task = range(1, len(document.steps) + 1), document.query
    messages: list[object] = [
        (name, delivery.to, one.step, one.slot, one.target, one.sealed.hex())
        for name, people in made.people.items()
        for delivery in deliveries(document, entries_of(document, people, steps, task.start), bytes(32))
        for one in delivery.messages
    ]
    parts: list[bytes] = []
    for step in steps:
        own, contents = task.own(step, records.rows, task.start).tolist(), task.pack(step, records.rows)
        for node in range(task.targets):
            mine = [content for content, other in zip(contents, own, strict=True) if other == node]
            if task.rounds:
                mine = [np.array(point).tobytes() for point in ([0.5, 0.25, 0.125], [0.25, 0.5, 0.0])]
            merged = task.merge(step, task.empty(step), mine, [True] * len(mine))
            numbers = task.tell(step, node, merged, None, reproducible(node))
            counts = tuple((5, 7) for _ in document.step(step).batches)
            parts += ToldCodec(document).pack(Told(step=step, counts=counts, numbers=numbers))
    return document, messages, parts


@pytest.mark.parametrize("name", FROZEN)
def test_the_bytes_of_a_run_are_those_of_the_freeze(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, _, traffic = name.partition("/")
    document, messages, parts = _written(_QUERIES[query], _TRAFFIC[traffic], monkeypatch)
    assert (_digest(document.text), _digest(sorted(messages, key=repr)), _digest(parts)) == FROZEN[name]
