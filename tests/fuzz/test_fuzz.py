"""Whatever a file or a peer says, one of the project's own errors comes of it, and nothing private is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from fuzz import binaries, specifications, tables
from fuzz.fuzzing import Fuzzer, hunt

FUZZERS: Final[dict[str, tuple[Fuzzer, int, int]]] = {
    # name: what makes inputs, how many of them by default, how many in the slow set
    "specifications": (specifications.specifications, 300, 30_000),
    "plans": (specifications.plans, 300, 20_000),
    "hosts": (specifications.hosts, 300, 5_000),
    "nodes": (specifications.nodes, 300, 5_000),
    "documents": (specifications.documents, 300, 30_000),
    "csv tables": (tables.csv_tables, 300, 20_000),
    "parquet tables": (tables.parquet_tables, 200, 20_000),
    "check-ins": (tables.checkins, 200, 10_000),
    "ratings": (tables.ratings, 200, 10_000),
    "census": (tables.census, 200, 10_000),
    "graphs": (tables.graphs, 200, 10_000),
    "scores": (tables.scores, 200, 10_000),
    "idx": (tables.idx, 200, 10_000),
    "releases": (tables.releases, 300, 20_000),
    "frames": (binaries.frames, 300, 20_000),
    "contents": (binaries.contents, 300, 20_000),
    "source states": (binaries.source_states, 200, 10_000),
    "prepared records": (binaries.prepared, 200, 20_000),
    "orders": (binaries.orders, 200, 20_000),
    "raw orders": (binaries.raw_orders, 200, 10_000),
    "filters": (binaries.filters, 200, 20_000),
    "score archives": (binaries.score_archives, 200, 20_000),
    "ledgers": (binaries.ledgers, 200, 10_000),
    "odometers": (binaries.odometers, 200, 10_000),
    "keys": (binaries.keys, 300, 20_000),
}


@pytest.mark.parametrize("name", FUZZERS)
def test_some_inputs(name: str, tmp_path: Path) -> None:
    fuzzer, count, _ = FUZZERS[name]
    outcome = hunt(fuzzer(tmp_path), seed=1, count=count)
    assert not outcome.findings, f"\n{outcome}"
    assert outcome.counts["refused"] > count // 10


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_many_inputs(name: str, tmp_path: Path) -> None:
    fuzzer, _, count = FUZZERS[name]
    outcome = hunt(fuzzer(tmp_path), seed=2, count=count)
    print(name, dict(outcome.counts))
    assert not outcome.findings, f"\n{outcome}"
