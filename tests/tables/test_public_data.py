"""The loaders of public data sets: small files of the published formats, and the real ones."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.model.traces import Traces
from hushuffle.tables.published import load_checkins, load_ratings
from hushuffle_papers.meehan2022.data import load_census, load_graph
from hushuffle_papers.murakami2021.sources import load_scores

real = pytest.mark.skipif(
    "HUSHUFFLE_DATA" not in os.environ, reason="HUSHUFFLE_DATA does not name a folder of data sets"
)
PRIVATE = "zebra"


def data(name: str) -> Path:
    return Path(os.environ["HUSHUFFLE_DATA"], name)


def named(traces: Traces) -> dict[int, list[str]]:
    assert traces.labels is not None
    return {
        int(user): [traces.labels[code] for code in traces.trace(position)]
        for position, user in enumerate(traces.users)
    }


def clock(hour: int) -> str:
    return f"Tue Apr 03 {hour:02}:00:09 +0000 2012"


def test_checkins_of_eight_columns(tmp_path: Path) -> None:
    rows = [
        (8, "v2", "c", "Caf\xe9", 40.7, -74.0, -240, clock(18)),
        (3, "v1", "c", 'Bar "x', 40.7, -74.0, -240, clock(9)),
        (8, "v1", "c", "Bar", 40.7, -74.0, -240, clock(7)),
    ]
    text = "\n".join("\t".join(map(str, row)) for row in rows)
    (tmp_path / "dataset_TSMC2014_NYC.txt").write_text(text, encoding="latin-1")
    assert named(load_checkins(tmp_path)) == {3: ["v1"], 8: ["v1", "v2"]}


def test_checkins_of_four_columns_and_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "checkins.txt"
    path.write_text(f"1\tb\t{clock(2)}\t60\n1\ta\t{clock(1)}\t60\n1\tc\t{clock(2)}\t60\n")
    assert named(load_checkins(path)) == {1: ["a", "b", "c"]}
    rows = pl.DataFrame({"user": [1, 1, 0], "poi": [30, 4, 4], "minute": [7, 3, 9]})
    rows.write_parquet(tmp_path / "checkins.parquet")
    traces = load_checkins(str(tmp_path))
    assert named(traces) == {0: ["4"], 1: ["4", "30"]}
    assert traces.labels == ("4", "30")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\ta\n", "line 1 has 2 fields separated by tabs, not 4 or 8"),
        ("", "line 1 has 1 fields"),
        (f"1\ta\t{clock(1)}\t60\n1\t{PRIVATE}\tyesterday\t60\n", "column 'time': in 1 of 2 records, .* record 2"),
        (f"1\ta\t{clock(1)}\t60\n{PRIVATE}\ta\t{clock(1)}\t60\n", "column 'user': in 1 of 2 records, .* record 2"),
        (f"1\ta\t{clock(1)}\t60\n1\ta\t{clock(1)}\t60\t{PRIVATE}\n", "a line has more than 4 fields"),
    ],
)
def test_damaged_checkins(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "dataset_TSMC2014_NYC.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        load_checkins(tmp_path)
    assert PRIVATE not in str(caught.value)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_checkins(tmp_path / "none")
    with pytest.raises(DataError, match=r"has none of the files checkins.parquet, dataset_TSMC2014_NYC.txt"):
        load_checkins(tmp_path)


HEADER = "userId,movieId,rating,timestamp\r\n"


def test_ratings(tmp_path: Path) -> None:
    rows = "2,10,4.0,5\r\n1,9,3.5,7\r\n1,10,5.0,6\r\n1,8,0.5,6\r\n"
    with gzip.open(tmp_path / "ratings.csv.gz", "wt", newline="") as stream:
        stream.write(HEADER + rows)
    traces = load_ratings(tmp_path)
    assert named(traces) == {1: ["10", "8", "9"], 2: ["10"]}
    assert traces.labels == ("8", "9", "10")
    assert named(load_ratings(tmp_path / "ratings.csv.gz", least=4)) == {1: ["10"], 2: ["10"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, "no records"),
        (HEADER + f"1,{PRIVATE},4.0,5\n", "column 'movieId': in 1 of 1 records, the field is missing or no number"),
        (HEADER + f"1,2,4.0,5\n1,2,{PRIVATE},5\n", "column 'rating': .* record 2, counted from 1"),
        (HEADER + "1,2,1.0,5\n", "no rating has at least 2 stars"),
        ("userId,movieId,timestamp\n1,2,3\n", "no column 'rating'"),
    ],
)
def test_damaged_ratings(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ratings.csv").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        load_ratings(tmp_path, least=2)
    assert PRIVATE not in str(caught.value)


def test_ratings_below_zero_stars(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="`least`"):
        load_ratings(tmp_path, least=-1)


PERSON = "39, State-gov, 77516, HS, 13, Single, Sales, Child, White, Male, 2174, 0, 40, ?, >50K"


def census(folder: Path, train: str, test: str) -> Path:
    (folder / "adult.data").write_text(train)
    with gzip.open(folder / "adult.test.gz", "wt") as stream:
        stream.write(test)
    return folder


def test_census(tmp_path: Path) -> None:
    people = load_census(census(tmp_path, PERSON + "\n\n", "|1x3 Cross validator\n" + PERSON + ".\n"))
    assert people.shape == (2, 16)
    assert people.select("age", "marital_status", "native_country", "income", "split").rows() == [
        (39, "Single", "?", ">50K", "train"),
        (39, "Single", "?", ">50K", "test"),
    ]
    people.write_parquet(tmp_path / "adult.parquet")
    assert load_census(tmp_path).equals(people)


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ("", "no records"),
        (PERSON + f"\n{PRIVATE}, 3\n", "line 2 has 2 fields, not 15"),
        (PERSON.replace("39", PRIVATE), "column 'age': in 1 of 1 records, the field is missing or no integer"),
        ("\xe9", "cannot be read"),
    ],
    ids=["empty", "fields", "age", "encoding"],
)
def test_damaged_census(tmp_path: Path, train: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_census(census(tmp_path, train, PERSON))
    assert PRIVATE not in str(caught.value)


def test_no_census(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_census(tmp_path / "none")
    with pytest.raises(DataError, match=r"none of the files adult.data, adult.data.gz"):
        load_census(tmp_path)
    (tmp_path / "adult.data").write_text(PERSON)
    (tmp_path / "adult.test.gz").write_bytes(gzip.compress(PERSON.encode())[:-9])
    with pytest.raises(DataError, match=r"adult.test.gz cannot be read: it may be truncated"):
        load_census(tmp_path)


def graph(folder: Path, edges: list[tuple[int, int]], people: list[tuple[int, bool]]) -> Path:
    pl.DataFrame(edges, schema=["src", "dst"], orient="row").with_columns(lang=pl.lit("DE")).write_parquet(
        folder / "edges.parquet"
    )
    pl.DataFrame(people, schema=["new_id", "mature"], orient="row").with_columns(lang=pl.lit("DE")).write_parquet(
        folder / "targets.parquet"
    )
    return folder


def test_graph(tmp_path: Path) -> None:
    found = load_graph(graph(tmp_path, [(0, 1), (2, 0)], [(2, True), (0, False), (1, False), (2, True)]))
    assert (found.n, found.name, repr(found)) == (3, "Twitch DE", "SocialGraph(name='Twitch DE')")
    assert found.edges.tolist() == [[0, 1], [2, 0]]
    assert found.mature.tolist() == [False, False, True]
    with pytest.raises(DataError, match="no records of the language 'FR'"):
        load_graph(tmp_path, language="FR")


@pytest.mark.parametrize(
    ("edges", "people", "message"),
    [
        ([(0, 2)], [(0, True), (1, False)], "1 endpoints of edges are not among the 2 people"),
        ([(0, 1)], [(0, True), (2, False)], "column 'new_id' must number the people from 0"),
        ([(0, 1)], [(0, True), (1, False), (1, True)], "each with one attribute"),
    ],
)
def test_graphs_that_do_not_fit(
    tmp_path: Path, edges: list[tuple[int, int]], people: list[tuple[int, bool]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load_graph(graph(tmp_path, edges, people))


def test_a_published_graph_with_an_unknown_attribute(tmp_path: Path) -> None:
    (tmp_path / "FR_edges.csv").write_text("from,to\n0,1\n")
    (tmp_path / "FR_target.csv").write_text(f"new_id,mature\n0,true\n1,{PRIVATE}\n")
    with pytest.raises(DataError, match=r"column 'mature': in 1 of . records, .* record 2") as caught:
        load_graph(tmp_path, language="FR")
    assert PRIVATE not in str(caught.value)


def test_scores_of_an_archive(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = rng.random((4, 4)).astype(np.float32)
    failed = table.copy()
    failed[:, 2] = -1
    failed[0] = -1
    np.savez(tmp_path / "scores.npz", whole=table, failed=failed, names=np.array(["a"]))
    found = load_scores(tmp_path / "scores.npz")
    assert list(found) == ["whole", "failed"]
    assert (found["whole"].n, found["whole"].left_out) == (4, 0)
    assert np.array_equal(found["whole"].scores, table)
    assert (found["failed"].n, found["failed"].left_out) == (2, 2)
    assert np.array_equal(found["failed"].scores, table[np.ix_([1, 3], [1, 3])])
    assert load_scores(tmp_path / "scores.npz", failed=None)["failed"].left_out == 0


@pytest.mark.parametrize("text", ["1,2.5\n\n-3,4\n", "1 2.5\n-3 4"])
def test_scores_of_a_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "face.csv").write_text(text)
    assert load_scores(str(tmp_path / "face.csv"))["face"].scores.tolist() == [[1.0, 2.5], [-3.0, 4.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be square"),
        ("1 2 3\n4 5 6\n", r"must be square, of numbers, for at least 2 people \(shape \(2, 3\)\)"),
        (f"1 2\n3 {PRIVATE}\n", "line 2 has an entry that is not a number"),
        ("1 2\n3\n", "line 2 has 1 numbers, those before it 2"),
        ("1 nan\n3 4\n", "row 1 .* has a score that is not finite"),
        ("-1 -1\n3 4\n", "fewer than 2 people are enrolled"),
        ("1 2 3\n4 5 6\n7 -1 9\n", "row 3 .* holds -1, the mark of a failure, among other scores"),
    ],
)
def test_damaged_scores(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "face.txt").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        load_scores(tmp_path / "face.txt")
    assert PRIVATE not in str(caught.value)


def test_files_that_are_no_scores(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a file"):
        load_scores(tmp_path)
    for name, message in (
        ("a.npz", "cannot be read as a NumPy archive"),
        ("a.xml", "unsupported format"),
        ("a.txt", "UTF-8"),
    ):
        (tmp_path / name).write_bytes(b"\xff\xfe")
        with pytest.raises(DataError, match=message):
            load_scores(tmp_path / name)
    np.savez(tmp_path / "b.npz", names=np.array(["a"]))
    with pytest.raises(DataError, match="holds no matrix"):
        load_scores(tmp_path / "b.npz")


@pytest.mark.data
@real
def test_the_real_traces() -> None:
    checkins, ratings = load_checkins(data("foursquare_nyc")), load_ratings(data("movielens_latest_small"))
    assert (checkins.n, checkins.k, checkins.events.size, int(checkins.lengths.min())) == (1083, 5135, 147_938, 17)
    assert (ratings.n, ratings.k, ratings.events.size, int(ratings.lengths.min())) == (610, 9724, 100_836, 20)
    assert load_ratings(data("movielens_latest_small"), least=4).events.size == 48_580


@pytest.mark.data
@real
def test_the_real_people(tmp_path: Path) -> None:
    people = load_census(data("adult"))
    assert people.shape == (48_842, 16)
    assert people["income"].value_counts(sort=True)["count"].to_list() == [37_155, 11_687]
    for name in ("adult.data.gz", "adult.test.gz"):
        (tmp_path / name).symlink_to(data("adult") / name)
    assert load_census(tmp_path).equals(people)
    german, british = (load_graph(data("twitch_musae"), language=language) for language in ("DE", "ENGB"))
    assert (german.n, len(german.edges), round(float(german.mature.mean()), 3)) == (9498, 153_138, 0.605)
    assert (british.n, len(british.edges), round(float(british.mature.mean()), 3)) == (7126, 35_324, 0.546)


@pytest.mark.data
@real
def test_the_real_scores() -> None:
    found = load_scores(data("nist_bssr1_set1") / "bssr1_set1.npz")
    assert {name: (matrix.n, matrix.left_out) for name, matrix in found.items()} == {
        "face_C": (516, 1),
        "finger_left": (517, 0),
    }
