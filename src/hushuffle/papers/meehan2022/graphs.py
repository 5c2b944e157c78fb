"""Social graphs with an attribute of each person: the Twitch graphs of MUSAE."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle._checks import fail
from hushuffle.tables.published import find, table, whole


@dataclass(frozen=True, kw_only=True, eq=False)
class SocialGraph:
    """An undirected graph of n people: `edges`, shape (m, 2), people 0..n-1; `mature`, shape (n,), one bit each."""

    name: str
    edges: npt.NDArray[np.int64] = field(repr=False)
    mature: npt.NDArray[np.bool_] = field(repr=False)

    @property
    def n(self) -> int:
        """Number of people."""
        return self.mature.size


def load_graph(folder: str | Path, *, language: str = "DE") -> SocialGraph:
    r"""Return the Twitch graph of one language: who follows whom (either way), and who streams mature content.

    Formats: edges.parquet (columns lang, src, dst) with targets.parquet (lang, new_id, mature); or the published
    musae_DE_edges.csv (from, to) with musae_DE_target.csv (new_id, mature), also without "musae_" in front. People
    are the numbers 0..n-1 in new_id; a person who is there twice with the same attribute counts once. Edges are
    as in the file: each once there, without loops.

    Raises:
        DataError: a file is missing or cannot be read, has no such language, or edges and people do not fit.

    Source: Rozemberczki, Allen, Sarkar 2021 (data).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edges = Path(folder, "musae_DE_edges.csv").write_text("from,to\n0,1\n2,1\n")
    ...     target = Path(folder, "musae_DE_target.csv").write_text("new_id,mature\n1,True\n0,False\n2,True\n")
    ...     graph = load_graph(folder)
    >>> graph.n, graph.edges.tolist(), graph.mature.tolist()
    (3, [[0, 1], [2, 1]], [False, True, True])
    """
    edges_path = find(folder, ("edges.parquet", f"musae_{language}_edges.csv", f"{language}_edges.csv"))
    targets_path = find(folder, ("targets.parquet", f"musae_{language}_target.csv", f"{language}_target.csv"))
    ends = ("src", "dst") if edges_path.suffix == ".parquet" else ("from", "to")
    edges = _rows(edges_path, {end: pl.col(end).cast(pl.Int64, strict=False) for end in ends}, language)
    bits = pl.col("mature").cast(pl.String).str.to_lowercase()
    wanted = {
        "new_id": pl.col("new_id").cast(pl.Int64, strict=False),
        "mature": pl.when(bits.is_in(["true", "false"])).then(bits == "true"),
    }
    people = _rows(targets_path, wanted, language).unique().sort("new_id")
    if people["new_id"].to_list() != list(range(people.height)):
        fail(f"{targets_path}: column 'new_id' must number the people from 0, each with one attribute.")
    pairs = edges.to_numpy().astype(np.int64, copy=False)
    outside = int(np.count_nonzero((pairs < 0) | (pairs >= people.height)))
    if outside:
        fail(f"{edges_path}: {outside:,} ends of edges are not among the {people.height:,} people.")
    return SocialGraph(name=f"Twitch {language}", edges=pairs, mature=people["mature"].to_numpy())


def _rows(path: Path, wanted: dict[str, pl.Expr], language: str) -> pl.DataFrame:
    """Return the columns `wanted` of one language; a CSV file holds one language only."""
    part = table(path)
    if path.suffix != ".parquet":
        return whole(part, wanted, "as published")
    frame = whole(part, {"lang": pl.col("lang").cast(pl.String), **wanted}, "as published")
    frame = frame.filter(pl.col("lang") == language).drop("lang")
    if not frame.height:
        fail(f"{path}: no records of the language {language!r}.")
    return frame
