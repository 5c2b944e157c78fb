"""Tables of people, CSV and Parquet, whose every cell is a secret; public data sets; what collections leave."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from fuzz.fuzzing import SECRET, Fuzzer, Input, Maker, changed_bytes, changed_text, changed_tree
from hushuffle.attacks.attack import load_traces
from hushuffle.collection.batch_state import Arrival, BatchState
from hushuffle.collection.collect import collect
from hushuffle.collection.column_views import collect_views, estimate_views
from hushuffle.collection.estimate import tally_reports
from hushuffle.collection.record_tags import Tags, record_numbers
from hushuffle.collection.released import columns_in, counts_text, read_counts, read_manifest, read_reports
from hushuffle.collection.request import Request
from hushuffle.mechanisms.sketches import BloomEncoder
from hushuffle.model.report_layout import ReportLayout
from hushuffle.specification import parse
from hushuffle.tables.categories import Answers
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.inspection import inspect_table
from hushuffle.tables.labels import Bins, Tidying
from hushuffle.tables.private import ColumnBatches, load_column, load_table
from hushuffle.tables.published import (
    load_attributes,
    load_checkins,
    load_codes,
    load_edges,
    load_labels,
    load_numbers,
    load_ratings,
    load_texts,
    read_idx,
)
from hushuffle.tables.sketch_files import identifier_columns, save_filter
from hushuffle.tables.value_files import load_labels_file, load_matrix
from hushuffle_papers.meehan2022.data import load_census, load_graph
from hushuffle_papers.murakami2021.sources import load_scores

LABELS: Final = [f"{SECRET}{letter}" for letter in "abc"]
_ROWS: Final = 60
_CODES: Final = np.array([place % 3 for place in range(_ROWS)])
_PIECES: Final = (
    *('"', '""', ",", "\n", "\r\n", "\r", "\0", "\ufeff", "NaN", "1e999", "-", "0x10", " 7", "7.0", "'", ";", "\t"),
    *("=cmd|' /C calc'!A0", ""),
)
_VALUES: Final[list[Any]] = [
    *(0, -1, 1, 2, 2**31, 2**53, 2**63, 2**64, 10**30, 1e-320, 1e308, float("nan"), 0.5, True, None),
    *("", "\0", "a" * 1000, [], [[]], {}, ["a"], "../x", "/etc", "infinity"),
]
_REPORTS: Final = ReportLayout(names=("report",), limits=(3,))
_SPECIFICATION: Final = """
population = { data = "people.csv", column = "ans", categories = ["a", "b", "c"] }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""

_STUDY: Final = """
population.people = 99
population.bits = 128
population.audiences = { tv = 20, web = 9 }
population.views = [{ shows = "union" }, { shows = "pairs" }]
randomizer = { kind = "randomized-response", epsilon = "inf" }
shuffler = { kind = "augmented", trusted = true, each = { kind = "discrete-gaussian", center = 9, sigma = 1.5 } }
targets = { delta = 1e-6 }
"""


def people() -> pl.DataFrame:
    """Return a table with an id, an answer, a number, and a column that nobody asks for."""
    return pl.DataFrame(
        {
            "id": [f"{SECRET}{row}" for row in range(_ROWS)],
            "ans": [LABELS[code] for code in _CODES],
            "x": [f"{row}.5" for row in range(_ROWS)],
            "other": [SECRET] * _ROWS,
        }
    )


def _readers(source: str, rng: random.Random) -> Callable[[], object]:
    """Return one of the ways to read a table of people."""
    missing, ids = rng.choice(["refuse", "drop", "none"]), rng.choice([None, "id"])
    chosen: dict[str, Any] = {"categories": rng.choice([LABELS, {"one": f"== '{LABELS[0]}'", "two": "!= 'z'"}])}

    def batches() -> None:
        tags = Tags(key=bytes(32), round_number=0, mechanism="")
        for batch in ColumnBatches([source], column="ans", answers=Answers.of(**chosen, missing=missing), ids=ids):
            if batch.ids is not None:
                tags.of(record_numbers(batch.ids, key=bytes(32)), batch.values)

    tidying = Tidying(trim=rng.random() < 0.5, casefold=rng.random() < 0.5)
    form = CsvForm(encoding=rng.choice(["latin-1", "utf-16", "cp1252"]), separator=rng.choice([None, ";"]))
    ways: Sequence[Callable[[], object]] = [
        batches,
        lambda: load_column(source, column="ans", missing=missing, tidying=tidying, form=form, **chosen),
        lambda: load_column(source, column="ans", missing=missing, otherwise="rest", tidying=tidying, **chosen),
        lambda: load_column(source, column="x", missing=missing, categories=Bins(edges=(0, 9, 99))),
        lambda: load_labels_file(source, base_folder=Path()),
        batches,
        lambda: load_column(source, column="ans", missing=missing, **chosen),
        lambda: load_column(source, column="ans", categories="from-data", allow_categories_from_data=True),
        lambda: load_table(source, categories={"ans": LABELS}, numbers=["x"], missing=rng.choice(["refuse", "drop"])),
        lambda: load_numbers(source, ["x"], n=_ROWS),
        lambda: load_labels(source, "ans", n=_ROWS),
        lambda: load_codes(source, "ans", n=_ROWS),
        lambda: load_attributes(source, "ans", n=_ROWS),
        lambda: load_edges(source, n=_ROWS, names=people()["id"].to_numpy().astype(np.str_)),
        lambda: list(identifier_columns(source, column="id")),
    ]
    return rng.choice(ways)


def csv_tables(folder: Path) -> Maker:
    """Change characters, most often those that mean something, or bytes; sometimes of an archive."""
    text = people().write_csv()

    def make(rng: random.Random) -> Input:
        changed = changed_text(text, rng, (*_PIECES, SECRET), most=4).encode()
        content = changed if rng.random() < 0.7 else changed_bytes(text.encode(), rng)
        name = "people.csv"
        if rng.random() < 0.1:
            name, packed = "people.csv.gz", gzip.compress(content, compresslevel=1, mtime=0)
            content = changed_bytes(packed, rng, most=2) if rng.random() < 0.7 else packed
        (folder / name).write_bytes(content)
        return Input(content=content, read=_readers(str(folder / name), rng))

    return make


def parquet_tables(folder: Path) -> Maker:
    """Change bytes of tables in several encodings."""
    files = []
    for number, options in enumerate(
        ({}, {"compression": "uncompressed"}, {"statistics": False, "row_group_size": 20})
    ):
        people().write_parquet(folder / f"{number}.parquet", **options)  # type: ignore[arg-type]
        files.append((folder / f"{number}.parquet").read_bytes())
    pl.DataFrame({"report": _CODES.astype(np.uint8)}).write_parquet(folder / "r.parquet")
    reports = (folder / "r.parquet").read_bytes()
    path = folder / "people.parquet"

    def make(rng: random.Random) -> Input:
        if rng.random() < 0.2:
            content = changed_bytes(reports, rng, most=3)
            path.write_bytes(content)
            return Input(content=content, read=lambda: list(read_reports(path, layout=_REPORTS)))
        content = changed_bytes(rng.choice(files), rng, most=3)
        path.write_bytes(content)
        return Input(content=content, read=_readers(str(path), rng))

    return make


def _public(content: bytes, name: str, load: Callable[[Path], object]) -> Fuzzer:
    def fuzzer(folder: Path) -> Maker:
        def make(rng: random.Random) -> Input:
            if rng.random() < 0.5:
                changed = changed_bytes(content, rng)
            else:
                changed = changed_text(content.decode("latin-1"), rng, _PIECES, most=4).encode("utf-8", "replace")
            (folder / name).write_bytes(changed)
            return Input(content=changed, read=lambda: load(folder / name))

        return make

    return fuzzer


_VISITS: Final = "".join(f"{row}\tcafe{row}\tTue Apr 03 18:00:09 +0000 2012\t-240\n" for row in range(5)).encode()
_ADULT: Final = b"39, ?, 1, HS, 13, Single, Sales, Child, White, Male, 0, 0, 40, Peru, <=50K\n" * 3
_RATINGS: Final = b"userId,movieId,rating,timestamp\n1,50,5.0,20\n1,3,4.5,10\n2,3,1.0,15\n"

checkins = _public(_VISITS, "visits.txt", load_checkins)
ratings = _public(_RATINGS, "ratings.csv", load_ratings)
scores = _public(b"0.9,0.1,0.2\n0.1,0.8,0.3\n0.2,0.3,0.7\n", "scores.csv", load_scores)
idx = _public(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6]), "x.idx", read_idx)


def census(folder: Path) -> Maker:
    """Change one of the two published files."""
    (folder / "adult.test").write_bytes(_ADULT)
    return _public(_ADULT, "adult.data", lambda _: load_census(folder))(folder)


def graphs(folder: Path) -> Maker:
    """Change the people of a graph."""
    (folder / "musae_DE_edges.csv").write_text("from,to\n0,1\n2,1\n", encoding="utf-8")
    people_of = b"new_id,mature\n1,True\n0,False\n2,True\n"
    return _public(people_of, "musae_DE_target.csv", lambda _: load_graph(folder))(folder)


def texts(folder: Path) -> Maker:
    """Change tables that other verbs read: pairs to audit, traces, tables to look into, matrices."""
    text = people().write_csv()
    people().write_parquet(folder / "p.parquet")
    table = (folder / "p.parquet").read_bytes()
    ways: Sequence[Callable[[str], object]] = [
        lambda file: load_texts(file, ["ans", "x"]),
        lambda file: load_traces(file, user="id", item="ans"),
        lambda file: load_traces(file, user="id", item="ans", time="x"),
        inspect_table,
        lambda file: inspect_table(file, columns=["ans"]),
    ]

    def make(rng: random.Random) -> Input:
        name, content = "t.parquet", table
        if rng.random() < 0.7:
            name, content = "t.csv", changed_text(text, rng, (*_PIECES, SECRET), most=3).encode()
        if name == "t.parquet" or rng.random() < 0.3:
            content = changed_bytes(content, rng, most=3)
        (folder / name).write_bytes(content)
        read = rng.choice(ways)
        return Input(content=content, read=lambda: read(str(folder / name)))

    return make


def matrices(folder: Path) -> Maker:
    """Change matrices in all forms."""
    rows = [[0.75, 0.25], [0.25, 0.75]]
    np.save(folder / "m.npy", np.array(rows))
    pl.DataFrame(rows, orient="row").write_parquet(folder / "m.parquet")
    (folder / "m.csv").write_text("0.75,0.25\n0.25,0.75\n", encoding="utf-8")
    forms = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def make(rng: random.Random) -> Input:
        name = rng.choice(list(forms))
        content = changed_bytes(forms[name], rng, most=3)
        if rng.random() < 0.5:
            pieces = (*_PIECES, "nan", "1e999", "-0", "9" * 5000, "(", "'", "}")
            content = changed_text(forms[name].decode("latin-1"), rng, pieces, most=3).encode("latin-1", "replace")
        (folder / name).write_bytes(content)
        return Input(content=content, read=lambda: load_matrix(name, base_folder=folder))

    return make


def views(folder: Path) -> Maker:
    """Change the release of a reach study, or what its publishers send: contacts or filters."""
    study, names = parse(_STUDY), ("tv", "web")
    np.save(folder / "tv.npy", np.arange(128, dtype=np.uint8) % 3)
    save_filter(folder / "web.npz", BloomEncoder(bits=128, key=bytes(32)).encode([SECRET]))
    files = [folder / "tv.npy", folder / "web.npz"]
    request = Request(sources=[f"{name}={file}" for name, file in zip(names, files, strict=True)])
    collect_views(study, out=folder / "out", request=request)
    manifest, whole = folder / "out" / "manifest.json", [file.read_bytes() for file in files]
    tree = json.loads(manifest.read_bytes())

    def counted() -> None:
        try:
            collect_views(study, out=folder / "again", request=request)
        finally:
            shutil.rmtree(folder / "again", ignore_errors=True)

    def make(rng: random.Random) -> Input:
        for file, content in zip(files, whole, strict=True):
            file.write_bytes(content)
        if rng.random() < 0.5:
            changed = changed_tree(tree, rng, _VALUES, most=2)
            if isinstance(changed, dict) and isinstance(changed.get("specification"), str) and rng.random() < 0.5:
                changed["specification"] = changed_text(changed["specification"], rng, _PIECES)
            content = json.dumps(changed).encode()
            manifest.write_bytes(changed_bytes(content, rng) if rng.random() < 0.2 else content)
            return Input(content=manifest.read_bytes(), read=lambda: estimate_views(folder / "out"))
        place = rng.randrange(len(files))
        content = changed_bytes(whole[place], rng, most=4)
        if rng.random() < 0.5:  # the header of an array is text
            content = changed_text(content.decode("latin-1"), rng, ("(", "'", "{", "9", ",", "<u2")).encode("latin-1")
        files[place].write_bytes(content)
        return Input(content=content, read=counted)

    return make


def releases(folder: Path) -> Maker:
    """Change what collections leave: manifests, counts, the state of batches, reports."""
    table = people().with_columns(pl.col("ans").str.strip_prefix(SECRET))
    table.write_csv(folder / "people.csv")
    collect(parse(_SPECIFICATION), out=folder / "out", base_folder=folder)
    manifest, reports = folder / "out" / "manifest.json", (folder / "out" / "reports.parquet").read_bytes()
    whole = json.loads(manifest.read_bytes())
    counts = json.loads(counts_text(read_manifest(manifest), np.array([20, 20, 20])))
    columns = {"schema_version": 1, "content": "columns", "columns": [{"name": "a", "people": 3, "local_epsilon": 1}]}
    path = folder / "state.json"
    taken = (Arrival(path="a", digest="d", size=1, modified=2, batch=1),)
    BatchState(files=taken, claimed=1, coins="c", damaged=("d",)).save(path)
    state = json.loads(path.read_bytes())

    def read_state() -> None:
        found = BatchState.load(path)
        _ = found.last, found.latest, found.without(1), found.of_batch(1)

    def make(rng: random.Random) -> Input:
        tree, file, read = rng.choice(
            [
                (whole, manifest, lambda: tally_reports([folder / "out"]).estimate()),
                (whole, manifest, lambda: read_manifest(manifest)),
                (counts, folder / "counts.json", lambda: tally_reports([folder / "counts.json"]).estimate()),
                (counts, folder / "counts.json", lambda: read_counts(folder / "counts.json")),
                (columns, folder / "columns.json", lambda: columns_in(folder / "columns.json")),
                (state, path, read_state),
            ]
        )
        changed = changed_tree(tree, rng, _VALUES, most=2)
        if isinstance(changed, dict) and isinstance(changed.get("specification"), str) and rng.random() < 0.5:
            changed["specification"] = changed_text(changed["specification"], rng, _PIECES)
        content = json.dumps(changed).encode()
        file.write_bytes(changed_bytes(content, rng) if rng.random() < 0.2 else content)
        (folder / "out" / "reports.parquet").write_bytes(reports)
        return Input(content=file.read_bytes(), read=read)

    return make
