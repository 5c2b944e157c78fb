"""The paper's data: the Adult census extract, social graphs, and the synthetic data of its examples."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.tables.published import complete, find, table, whole

_COLUMNS: Final = {
    "age": pl.Int64,
    "workclass": pl.String,
    "fnlwgt": pl.Int64,
    "education": pl.String,
    "education_num": pl.Int64,
    "marital_status": pl.String,
    "occupation": pl.String,
    "relationship": pl.String,
    "race": pl.String,
    "sex": pl.String,
    "capital_gain": pl.Int64,
    "capital_loss": pl.Int64,
    "hours_per_week": pl.Int64,
    "native_country": pl.String,
    "income": pl.String,
    "split": pl.String,
}
_PARTS: Final = (("train", "adult.data"), ("test", "adult.test"))


def load_census(folder: str | Path) -> pl.DataFrame:
    """Return the people of the Adult census extract, one row each, in the order of the files.

    Columns: age, workclass, fnlwgt, education, education_num, marital_status, occupation, relationship, race, sex,
    capital_gain, capital_loss, hours_per_week, native_country, income ("<=50K" or ">50K") and split ("train" or
    "test"); numbers are 64-bit integers, all other columns are text. "?" (unknown) is not changed. Spaces around a
    field and the full stop after the test set's incomes are removed.

    Args:
        folder: contains adult.parquet, or adult.data and adult.test (each also .gz).

    Raises:
        DataError: a file is missing or cannot be read; the message names file, record and column, but no value.

    Source: Kohavi, Becker 1996 (data).

    >>> import tempfile
    >>> row = "39, ?, 1, HS, 13, Single, Sales, Child, White, Male, 0, 0, 40, Peru, <=50K"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, end in (("adult.data", ""), ("adult.test", ".")):
    ...         written = Path(folder, name).write_text(row + end)
    ...     load_census(folder).select("age", "income", "split").rows()
    [(39, '<=50K', 'train'), (39, '<=50K', 'test')]
    """
    where = Path(folder).expanduser()
    if (where / "adult.parquet").is_file():
        wanted = {name: pl.col(name).cast(dtype, strict=False) for name, dtype in _COLUMNS.items()}
        return whole(table(where / "adult.parquet"), wanted, "not in the published format")
    return pl.concat([_published(where, name, split) for split, name in _PARTS])


def _published(folder: Path, name: str, split: str) -> pl.DataFrame:
    """Return one published file: 15 fields separated by a comma and a space, perhaps a comment and blank lines."""
    path = find(folder, (name, f"{name}.gz")) if folder.is_dir() else find(folder / name, ())
    try:
        text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode("ascii")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        fail(f"{path} cannot be read: it may be truncated or damaged.")
    records = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [field.strip() for field in line.split(",")]
        if fields == [""] or line.startswith("|"):
            continue
        if len(fields) != len(_COLUMNS) - 1:
            fail(f"{path}: line {number:,} has {len(fields)} fields, not {len(_COLUMNS) - 1}.")
        records.append([*fields[:-1], fields[-1].removesuffix("."), split])
    frame = pl.DataFrame(records, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
    frame = frame.select(pl.col(column).cast(dtype, strict=False) for column, dtype in _COLUMNS.items())
    complete(frame, str(path), "no integer")
    return frame


@dataclass(frozen=True, kw_only=True, eq=False)
class SocialGraph:
    """An undirected graph of people 0..n-1: `edges`, shape (m, 2); `mature`, shape (n,), one private bit per person."""

    name: str
    edges: npt.NDArray[np.int64] = field(repr=False)
    mature: npt.NDArray[np.bool_] = field(repr=False)

    @property
    def n(self) -> int:
        """Number of people."""
        return self.mature.size


def load_graph(folder: str | Path, *, language: str = "DE") -> SocialGraph:
    r"""Return the Twitch graph of one language: pairs of followers, and the people who stream mature content.

    Formats: edges.parquet (columns lang, src, dst) with targets.parquet (lang, new_id, mature); or the published
    musae_DE_edges.csv (from, to) with musae_DE_target.csv (new_id, mature), also without "musae_" in front. People
    are the numbers 0..n-1 in new_id; a person listed twice with the same attribute counts once. Edges are those of
    the file, which lists each edge once and no loops.

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
        fail(f"{edges_path}: {outside:,} endpoints of edges are not among the {people.height:,} people.")
    return SocialGraph(name=f"Twitch {language}", edges=pairs, mature=people["mature"].to_numpy())


def _rows(path: Path, wanted: dict[str, pl.Expr], language: str) -> pl.DataFrame:
    """Return the columns `wanted` of one language; a CSV file holds one language only."""
    part = table(path)
    if path.suffix != ".parquet":
        return whole(part, wanted, "not in the published format")
    frame = whole(part, {"lang": pl.col("lang").cast(pl.String), **wanted}, "not in the published format")
    frame = frame.filter(pl.col("lang") == language).drop("lang")
    if not frame.height:
        fail(f"{path}: no records of the language {language!r}.")
    return frame


LABELS: Final = tuple(
    f"{cluster}, {crescent} crescent, {side}"
    for cluster in ("warm", "cool")
    for crescent in ("upper", "lower")
    for side in ("left", "right")
)

_APART: Final = 4.5  # between the centres of the clusters
_DROP: Final = 0.4  # place of the lower crescent relative to the upper
_BAND: Final = 0.15  # half the thickness of a crescent
_CUT: Final = 0.06  # half the angle between the halves of a crescent


@dataclass(frozen=True, kw_only=True, eq=False)
class Crescents:
    """n people: `points`, shape (n, 2), are public; `labels`, shape (n,), codes 0..7, are private."""

    points: npt.NDArray[np.float64] = field(repr=False)
    labels: npt.NDArray[np.int64] = field(repr=False)

    def coarse(self, ways: int) -> npt.NDArray[np.int64]:
        """Return the labels at 8, 4 (crescents) or 2 (clusters) classes, shape (n,)."""
        return coarse(self.labels, ways)


def crescents(n: int, *, seed: int = 1) -> Crescents:
    """Return n people with uniformly random labels; each person's point is uniform in its label's half of a crescent.

    Crescents are half circles of radius 1 and thickness 0.3; in each cluster the lower crescent is rotated and reaches
    into the upper crescent. Clusters are 4.5 apart.

    Raises:
        InvalidInputError: n < 1.

    Source: Meehan et al. 2022, figure 1 and section 5 (only a picture; the distribution is a choice of this library).

    >>> people = crescents(1000)
    >>> people.points.shape, np.unique(people.coarse(4)).tolist()
    ((1000, 2), [0, 1, 2, 3])
    """
    size = _checks.integer("n", n, low=1)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 8, size)
    half, lower, cool = labels % 2, labels // 2 % 2, labels // 4
    # Left halves of an upper crescent are at angles above pi/2; the lower crescent is turned by pi.
    first = np.where(half == lower, np.pi / 2 + _CUT, 0.0)
    angle = first + rng.random(size) * (np.pi / 2 - _CUT)
    radius = 1 + _BAND * (2 * rng.random(size) - 1)
    turn = np.where(lower == 1, -1.0, 1.0)
    x = _APART * cool + lower + turn * radius * np.cos(angle)
    y = _DROP * lower + turn * radius * np.sin(angle)
    return Crescents(points=np.column_stack([x, y]), labels=labels)


def coarse(labels: npt.ArrayLike, ways: int) -> npt.NDArray[np.int64]:
    """Return labels 0..7 merged into 8, 4 or 2 classes.

    Raises:
        InvalidInputError: another number of classes, or labels outside 0..7.

    >>> coarse([0, 3, 5], 4).tolist(), coarse([0, 3, 5], 2).tolist()
    ([0, 1, 2], [0, 0, 1])
    """
    if ways not in {2, 4, 8}:
        _checks.reject("ways", "2, 4 or 8", ways)
    return _checks.codes("labels", labels, k=8) // (8 // ways)
