"""Load public data: numbers, labels and edges about the people of a private column, and published data sets."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from hushuffle import _checks
from hushuffle._checks import Flags, Floats, fail
from hushuffle.files.causes import cause
from hushuffle.model.traces import Traces
from hushuffle.tables.categories import MISSING, NUMBER, TEXT, Rule, given, nulls
from hushuffle.tables.csv_form import CsvForm
from hushuffle.tables.reader import Faults, Part, TableReader, open_source


def find(source: str | Path, names: tuple[str, ...]) -> Path:
    """Return the file `source`, or the first of `names` in the folder `source`; without one, raise `DataError`."""
    path = Path(source).expanduser()
    if path.is_file():
        return path
    if not path.is_dir():
        fail(f"{source} does not exist.")
    held = [path / name for name in names if (path / name).is_file()]
    if not held:
        fail(f"{source} has none of the files {', '.join(names)}.")
    return held[0]


def table(path: Path) -> Part:
    """Return the CSV or Parquet file `path`, opened lazily."""
    return open_source(str(path), base_folder=Path())[0]


def whole(part: Part, wanted: Mapping[str, pl.Expr], what: str) -> pl.DataFrame:
    """Return a table with the results of the expressions `wanted`, each on the column of its name.

    A file without records, a column that is absent, and a result that is null (not `what`) raise `DataError`.
    """
    frame = TableReader([part], {column: (column, given(expr)) for column, expr in wanted.items()}).whole()
    complete(frame, part.name, what)
    return frame


def complete(frame: pl.DataFrame, name: str, what: str) -> None:
    """Raise `DataError` if the table `frame`, read from the file `name`, has no records or contains a null."""
    if not frame.height:
        fail(f"{name}: no records.")
    records = f"{{count}} of {frame.height:,} records"
    sentence = f": in {records}, the field is missing or {what}. The first is record {{first}}, counted from 1."
    for column in frame.iter_columns():
        faults = Faults()
        faults.note(nulls(column))
        faults.refuse(MISSING, f"{name}: column {column.name!r}", sentence)


_CHECKINS: Final = (
    "checkins.parquet",
    "dataset_TSMC2014_NYC.txt",
    "raw_Checkins_anonymized.txt",
    "dataset_WWW_Checkins_anonymized.txt",
    "dataset_TIST2015_Checkins.txt",
)
_COLUMNS: Final = {
    4: ("user", "venue", "time", "offset"),
    8: ("user", "venue", "category_id", "category", "latitude", "longitude", "offset", "time"),
}
_CLOCK, _EXAMPLE = "%a %b %d %H:%M:%S %z %Y", "Tue Apr 03 18:00:09 +0000 2012"


def load_checkins(source: str | Path) -> Traces:
    r"""Return the check-ins of a file as traces of venues, in order of time.

    The file is Parquet with the integer columns user, poi and minute, or tab-separated text of Foursquare's published
    data, without a line of names. The text has 8 columns (user, venue, category id, category, latitude, longitude, time
    zone offset, UTC time: "dataset_TSMC2014_NYC.txt") or 4 (user, venue, UTC time, time zone offset: the global data of
    2015 and 2019). Venues are coded in order of their ids. Duplicate rows count twice. Events of one user at the same
    time keep the order of the rows.

    Args:
        source: the file, or a folder with checkins.parquet, dataset_TSMC2014_NYC.txt, raw_Checkins_anonymized.txt
            (all of 2019's), dataset_WWW_Checkins_anonymized.txt or dataset_TIST2015_Checkins.txt: the first of them.

    Raises:
        DataError: the file is missing or has another format, or a record is unreadable; the message shows no value.

    Source: Yang, Zhang, Zheng, Yu 2015; Yang, Zhang, Qu 2016; Yang, Qu, Yang, Cudre-Mauroux 2019 (data).

    >>> import tempfile
    >>> rows = "1\tcafe\tTue Apr 03 18:00:09 +0000 2012\t-240\n1\tbar\tTue Apr 03 17:00:09 +0000 2012\t-240\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "checkins.txt")
    ...     written = path.write_text(rows)
    ...     walks = load_checkins(path)
    >>> [walks.labels[code] for code in walks.trace(0)]
    ['bar', 'cafe']
    """
    path = find(source, _CHECKINS)
    if path.suffix == ".parquet":
        wanted = {column: pl.col(column).cast(pl.Int64, strict=False) for column in ("user", "poi", "minute")}
        return _traces(whole(table(path), wanted, "no integer"))
    with path.open("rb") as stream:
        fields = stream.readline().count(b"\t") + 1
    if fields not in _COLUMNS:
        fail(f"{path}: line 1 has {fields} fields separated by tabs, not 4 or 8 as published check-ins have.")
    try:
        frame = pl.read_csv(
            path,
            separator="\t",
            has_header=False,
            quote_char=None,
            infer_schema=False,
            encoding="utf8-lossy",
            new_columns=list(_COLUMNS[fields]),
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        fail(f"{path} cannot be read: a line has more than {fields} fields separated by tabs.")
    frame = frame.select(
        pl.col("user").cast(pl.Int64, strict=False),
        pl.col("venue"),
        pl.col("time").str.to_datetime(_CLOCK, time_unit="ms", strict=False),
    )
    complete(frame, str(path), f"not in Foursquare's format (example of a time: {_EXAMPLE})")
    return _traces(frame)


def _traces(frame: pl.DataFrame) -> Traces:
    """Return traces of items, which are coded in order, given columns of users, items and times."""
    items = frame.drop_in_place(frame.columns[1])
    names, codes = items.unique().sort(), (items.rank("dense").cast(pl.Int64) - 1).to_numpy()
    users, times = (column.to_physical().to_numpy() for column in frame)
    traces = Traces.from_table(users, codes, times, k=names.len())
    del frame, items, codes, users, times  # tens of millions of records
    return replace(traces, labels=tuple(names.cast(pl.String).to_list()))


_RATINGS: Final = ("ratings.csv", "ratings.csv.gz", "ratings.parquet")


def load_ratings(source: str | Path, *, least: float = 0.0) -> Traces:
    r"""Return the ratings of a file as traces of movies: the movies that each user rated, in order of time.

    The format is MovieLens' ratings.csv (also .csv.gz, .parquet): columns userId, movieId, rating, timestamp.
    The rated movies are coded in order of their ids; the numbers of stars are not stored. Ratings
    of one user in the same second keep the order of the rows, which in MovieLens is by movie.

    Args:
        source: the file, or a folder with ratings.csv, ratings.csv.gz or ratings.parquet.
        least: ratings below this many stars are left out (4 keeps what the users liked).

    Raises:
        DataError: the file is missing or is not in this format, a record cannot be read, or no rating has at least
            `least` stars; the message shows no value of a record.
        InvalidInputError: least is not finite and >= 0.

    Source: Harper, Konstan 2015 (data); Murakami, Takahashi 2021, section 5.1 (4 stars or more).

    >>> import tempfile
    >>> rows = "userId,movieId,rating,timestamp\n1,50,5.0,20\n1,3,4.5,10\n2,3,1.0,15\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "ratings.csv").write_text(rows)
    ...     histories = load_ratings(folder, least=4)
    >>> histories, [histories.labels[code] for code in histories.trace(0)]
    (Traces(k=2, n=1), ['3', '50'])
    """
    stars = _checks.non_negative("least", least)
    part = table(find(source, _RATINGS))
    wanted = {column: pl.col(column).cast(pl.Int64, strict=False) for column in ("userId", "movieId", "timestamp")}
    wanted["rating"] = pl.col("rating").cast(pl.Float64, strict=False)
    frame = whole(part, wanted, "no number").filter(pl.col("rating") >= stars)
    if not frame.height:
        fail(f"{part.name}: no rating has at least {stars:g} stars.")
    return _traces(frame.select("userId", "movieId", "timestamp"))


_TYPES: Final = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Digits:
    """Labelled images: `images`, shape (n, pixels), grey values 0..255; `labels`, shape (n,)."""

    images: npt.NDArray[np.uint8] = field(repr=False)
    labels: npt.NDArray[np.uint8] = field(repr=False)

    @property
    def n(self) -> int:
        """Number of images."""
        return len(self.labels)


def read_idx(path: str | Path) -> npt.NDArray[Any]:
    """Return the array of an IDX file, in the machine's byte order; gzipped or not.

    Raises:
        DataError: the file cannot be read, is no IDX file, or has a length that differs from its header.

    Source: LeCun, Cortes, Burges (format).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = Path(folder, "x.idx").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    ...     read_idx(Path(folder, "x.idx")).tolist()
    [7, 9]
    """
    file, damaged = Path(path).expanduser(), "it may be truncated or damaged"
    try:
        data = file.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        fail(f"{file} cannot be read: {cause(error, damaged) if isinstance(error, OSError) else damaged}.")
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES or len(data) < 4 + 4 * data[3]:
        fail(f"{path}: not an IDX file (its first four bytes must be 0, 0, type, number of dimensions).")
    start = 4 + 4 * data[3]
    shape = tuple(np.frombuffer(data[4:start], dtype=">u4").astype(int).tolist())
    kind = np.dtype(_TYPES[data[2]])
    wanted = math.prod(shape) * kind.itemsize
    if len(data) - start != wanted:
        fail(f"{path}: has {len(data) - start:,} bytes of values, but its header declares {wanted:,}.")
    return np.frombuffer(data[start:], dtype=kind).reshape(shape).astype(kind.newbyteorder("="))


def load_digits(folder: str | Path, *, part: str = "train") -> Digits:
    """Return MNIST's training images (`part` "train", 60,000) or test images ("t10k", 10,000) as rows of pixels.

    Files: train-images-idx3-ubyte and train-labels-idx1-ubyte, with or without .gz; t10k likewise.

    Raises:
        DataError: a file is missing or damaged, or images and labels do not fit.

    Source: LeCun, Cortes, Burges (data).
    """
    images, labels = (
        read_idx(find(folder, tuple(f"{part}-{stem}{end}" for end in (".gz", ""))))
        for stem in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    if images.ndim != 3 or labels.shape != images.shape[:1] or images.dtype != np.uint8 or labels.dtype != np.uint8:
        fail(f"{folder}: images of shape {images.shape} and labels of shape {labels.shape} do not match.")
    return Digits(images=images.reshape(len(images), -1), labels=labels)


_MOST_LABELS: Final = 100


class Where(TypedDict, total=False):
    """The records that are people: `kept`, shape (records,), marks them, as `Column.kept` does; None: all records."""

    kept: Flags | None
    base_folder: Path | None
    form: CsvForm | None


def load_numbers(source: str, columns: Sequence[str], *, n: int, **where: Unpack[Where]) -> Floats:
    """Return public columns of numbers, shape (n, d), one row for each of the n people.

    `source` is as for `load_column`. A missing or non-finite number of a person is an error.

    >>> load_numbers("statsmodels:fair", ["age", "educ"], n=6366)[0].tolist()
    [32.0, 17.0]
    """
    table = _read(source, columns, NUMBER, "lack a finite number", n=n, **where)
    return np.column_stack([column.to_numpy() for column in table.iter_columns()])


def load_labels(source: str, column: str, *, n: int, **where: Unpack[Where]) -> npt.NDArray[np.str_]:
    """Return a public column as text, shape (n,), one entry for each person.

    >>> load_labels("statsmodels:fair", "children", n=6366)[:3].tolist()
    ['3', '3', '0']
    """
    return np.asarray(_read(source, [column], TEXT, n=n, **where).to_series().to_list(), dtype=np.str_)


def load_texts(source: str, columns: Sequence[str], *, base_folder: Path | None = None) -> list[list[str]]:
    """Return all rows of public columns as text; a missing field is an error.

    >>> [column[:2] for column in load_texts("statsmodels:fair", ["children", "religious"])]
    [['3', '3'], ['3', '1']]
    """
    return [column.to_list() for column in _read(source, columns, TEXT, base_folder=base_folder)]


def load_codes(source: str, column: str, *, n: int, **where: Unpack[Where]) -> npt.NDArray[np.int64]:
    """Return a public column as codes, shape (n,): equal text has equal codes. It is fast for very many people.

    >>> load_codes("statsmodels:fair", "children", n=6366)[:3].tolist()
    [0, 0, 1]
    """
    texts = _read(source, [column], TEXT, n=n, **where).to_series()
    return (texts.cast(pl.Categorical).to_physical().rank("dense").cast(pl.Int64) - 1).to_numpy()


def load_attributes(source: str, column: str, *, n: int, **where: Unpack[Where]) -> Floats:
    """Return an adversary's background knowledge, shape (n, d): numbers, or one column of 0 and 1 per label.

    More than 100 different labels are an error.

    >>> load_attributes("statsmodels:fair", "religious", n=6366).shape
    (6366, 1)
    """
    texts = load_labels(source, column, n=n, **where)
    numbers = _read(source, [column], NUMBER, "", n=n, **where).to_numpy()
    if np.isfinite(numbers).all():
        return numbers
    labels, codes = np.unique(texts, return_inverse=True)
    if labels.size > _MOST_LABELS:
        fail(f"{_quoted([column])} of {source}: more than {_MOST_LABELS} different labels. Give numbers, or fewer.")
    return np.eye(labels.size)[codes]


def load_edges(
    source: str,
    *,
    n: int,
    names: npt.NDArray[np.str_] | None = None,
    kept: Flags | None = None,
    base_folder: Path | None = None,
) -> npt.NDArray[np.int64]:
    """Return the edges of a public graph, shape (m, 2), people 0..n-1: the first two columns of a file.

    Edges outside `kept` are omitted. `names`, shape (records,), are distinct; None: records are numbered from 0.
    """
    records = n if kept is None else kept.size
    people = np.full(records, -1, dtype=np.int64)
    people[slice(None) if kept is None else kept] = np.arange(n)
    labels = np.arange(records).astype(np.str_) if names is None else names
    order = np.argsort(labels, kind="stable")
    ranked = labels[order]
    if bool(np.any(ranked[1:] == ranked[:-1])):
        fail(f"{source}: two records have the same name, so edges do not identify people.")
    edges = np.concatenate([_ends(part) for part in open_source(source, base_folder=base_folder or Path())])
    places = np.minimum(np.searchsorted(ranked, edges), records - 1)
    unknown = int(np.count_nonzero(ranked[places] != edges))
    if unknown:
        advice = "Records are counted from 0." if names is None else "Names are compared as text, exactly."
        fail(f"{source}: {unknown:,} of {edges.size:,} entries of the edges name no record of the data. {advice}")
    pairs = people[order[places]]
    return pairs[(pairs >= 0).all(axis=1)]


def _ends(part: Part) -> npt.NDArray[np.str_]:
    """Return the first two columns of a file as text, shape (m, 2)."""
    if len(part.schema()) < 2:
        fail(f"{part.name} must have two columns: the two people of each edge.")
    # The user did not request these names, and they may be a record: messages give the column's number.
    table = TableReader([part], {"first": (1, TEXT), "second": (2, TEXT)}).whole()
    if any(column.null_count() for column in table.iter_columns()):
        fail(f"{part.name}: a person of an edge is missing.")
    return np.column_stack([np.asarray(column.to_list(), dtype=np.str_) for column in table.iter_columns()])


def _read(
    source: str,
    columns: Sequence[str],
    rule: Rule,
    what: str = "are missing",
    *,
    n: int | None = None,
    **where: Unpack[Where],
) -> pl.DataFrame:
    """Return public columns of n people; refuse records without a value, whose fault is `what` ("": refuse none)."""
    wanted = {f"{place}": (column, rule) for place, column in enumerate(columns)}
    parts = open_source(source, base_folder=where.get("base_folder") or Path(), form=where.get("form"))
    table, mask = TableReader(parts, wanted).whole(), where.get("kept")
    if table.height != (table.height if n is None else n if mask is None else mask.size):
        fail(f"{source} has changed while it was read: {table.height:,} records now.")
    people = table if mask is None else table.filter(pl.Series(mask))
    if what:
        wrong = np.logical_or.reduce([rule.marks(column) < 0 for column in table.iter_columns()])
        faults, sentence = Faults(), f": {{count}} of {people.height:,} records {what} ({{numbers}})."
        faults.note(np.where(wrong if mask is None else wrong & mask, MISSING, 0))
        faults.refuse(MISSING, f"{_quoted(columns)} of {source}", sentence)
    return people


def _quoted(columns: Sequence[str]) -> str:
    return f"public column{'s' if len(columns) > 1 else ''} {', '.join(repr(column) for column in columns)}"
