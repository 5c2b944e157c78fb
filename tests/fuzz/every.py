"""All fuzzers by name, and where inputs are kept that found something."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fuzz import binaries, kept, phones, programs, specifications, tables
from fuzz.fuzzing import Fuzzer

CORPUS: Final = Path(__file__).parent / "corpus"

FUZZERS: Final[dict[str, tuple[Fuzzer, int, int]]] = {
    # name: what makes inputs, how many of them by default, how many in the slow set
    "specifications": (specifications.specifications, 300, 30_000),
    "plans": (specifications.plans, 300, 20_000),
    "csv tables": (tables.csv_tables, 300, 20_000),
    "parquet tables": (tables.parquet_tables, 200, 20_000),
    "check-ins": (tables.checkins, 200, 10_000),
    "ratings": (tables.ratings, 200, 10_000),
    "census": (tables.census, 200, 10_000),
    "graphs": (tables.graphs, 200, 10_000),
    "scores": (tables.scores, 200, 10_000),
    "idx": (tables.idx, 200, 10_000),
    "releases": (tables.releases, 300, 20_000),
    "views": (tables.views, 300, 20_000),
    "contents": (binaries.contents, 300, 20_000),
    "orders": (binaries.orders, 200, 20_000),
    "raw orders": (binaries.raw_orders, 200, 10_000),
    "filters": (binaries.filters, 200, 20_000),
    "score archives": (binaries.score_archives, 200, 20_000),
    "ledgers": (binaries.ledgers, 200, 10_000),
    "keys": (kept.keys, 200, 2_000),
    "budgets": (kept.budgets, 150, 10_000),
    "memories": (kept.memories, 200, 20_000),
    "test vectors": (kept.vectors, 150, 10_000),
    "certificates": (kept.certificates, 100, 5_000),
    "texts": (tables.texts, 150, 20_000),
    "matrices": (tables.matrices, 150, 20_000),
    "tasks of phones": (phones.tasks, 300, 20_000),
    "sealed requests": (phones.requests, 300, 20_000),
    "batches": (phones.batches, 300, 20_000),
    "parts": (phones.parts, 200, 20_000),
    "tokens": (phones.tokens, 20, 2_000),
    "service keys": (phones.service_keys, 30, 2_000),
    "service settings": (phones.service_settings, 300, 10_000),
    "phone hosts": (phones.phone_hosts, 300, 10_000),
    "command lines": (programs.command_lines, 15, 3_000),
}
