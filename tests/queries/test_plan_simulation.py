from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from hushuffle import report
from hushuffle.errors import DataError, SpecificationError
from hushuffle.model import Report, Table
from hushuffle_network.queries import parse_plan
from hushuffle_network.queries.simulate import simulate_plan

SETS = """
[query]
kind = "aggregate"
generated = { people = 4000, distribution = "skewed" }
columns = { age = 20, bmi = 20, sex = ["a", "b"] }
grouping_sets = [["age"], ["bmi", "sex"]]
values = ["x"]
functions = ["count", "sum", "avg", "min", "max"]
partitions = 20
"""
CLUSTERS = """
[query]
kind = "k-means"
generated = { people = 2000, seed = 11 }
centroids = 4
iterations = 4
variant = "VARIANT"
start = 2
"""
NOISE = 'noise = { kind = "gaussian", radius = 1.5, scale = 10.0 }\n'
BATCHES = "dummies = 20\nbatch = 100\n"


def study(query: str, *, sigma: float = 0.2, traffic: str = BATCHES, seed: str = "1", folder: Path = Path()) -> Report:
    text = f"run = {{ seed = {seed} }}\n{query}\n[traffic]\nsigma = {sigma}\n{traffic}\n[targets]\ndelta = 1e-6\n"
    made = simulate_plan(parse_plan(text), base_folder=folder)
    report.html(made)
    report.to_json(made)
    assert max(map(len, report.terminal(made).splitlines())) <= 80
    return made


def table(made: Report, key: str) -> Table:
    return next(one for one in made.tables if one.key == key)


def test_a_query_is_answered_nearly_right() -> None:
    made = study(SETS)
    errors = {row[0:2]: row[2:] for row in table(made, "errors").rows}
    groups, lost, error, predicted, _largest = errors["age", "count"]
    assert (groups, lost) == (20, 0)
    assert isinstance(error, float)
    assert isinstance(predicted, float)
    # 20 group counts with seeded coins: their mean square is within a factor 9 of its mean (chance below 1e-9).
    assert predicted / 3 < error < 3 * predicted
    assert predicted == pytest.approx(math.sqrt(4000 / 20 * 0.19 / 0.81))
    assert errors["age", "sum x"][3] == "-"
    result = table(made, "result-2")
    assert result.columns[:3] == ("bmi, sex", "count", "count, plan")
    assert result.rows[0][0] == "0, a"
    assert sum(int(str(row[1])) for row in result.rows) == 4000
    assert "loss" not in made.answers[0]
    assert made.answers[-1].startswith(("6,4", "6,5"))


def test_costs_are_counted_and_agree() -> None:
    for traffic in (BATCHES, "flood = 2\n"):
        made = study(SETS, traffic=traffic)
        rows = {row[0]: row[1:] for row in table(made, "costs").rows}
        for name in ("messages", "channels", "channels of the busiest node", "scramblers"):
            assert rows[name][0] == rows[name][1], name
        assert len(made.heat_maps) == (1 if traffic == BATCHES else 0)
        graph = table(made, "graph").rows
        assert graph[0][1] == ("40 scramblers" if traffic == BATCHES else "4,000 sources")
    assert made.answers[-1].endswith("6,640 were expected.")  # of 8,000, a share 0.81 + 0.19 * 2/19


def test_without_loss_the_answer_is_exact() -> None:
    made = study(SETS, sigma=0.0, traffic="")
    assert made.answers[0].startswith("The median relative error of counts is at most 0 %")
    assert {row[4] for row in table(made, "errors").rows} == {0.0}
    assert "+0.00 standard deviations" in table(made, "costs").caption


def test_groups_that_vanish_are_said() -> None:
    made = study(SETS.replace("people = 4000", "people = 60"), sigma=1.0, traffic="")
    assert "groups with records received no data" in made.answers[1]
    assert any(cell == "-" for row in table(made, "result-2").rows for cell in row)


def test_one_set_for_each_person_is_scaled_up() -> None:
    made = study(SETS + 'per_person = "one"\n')
    predicted = table(made, "errors").rows[0][5]
    assert predicted == pytest.approx(math.sqrt(4000 / 20 * (1 - 0.405) / 0.405))
    assert "of 4,000 records" in made.answers[-1]


def test_large_results_are_cut() -> None:
    query = SETS.replace("age = 20", "age = 2000").replace('["bmi", "sex"]', '["age", "sex"]')
    made = study(query, traffic="")
    assert len(table(made, "result-2").rows) == 100
    assert "The 100 largest of 4,000 groups." in table(made, "result-2").caption


def test_real_data_warn_and_a_secure_seed_does_not(tmp_path: Path) -> None:
    rows = [f"{age},{age / 2}" for age in (20, 30, 40) * 50]
    (tmp_path / "a.csv").write_text("\n".join(["age,x", *rows]) + "\n", encoding="utf-8")
    query = """
        [query]
        kind = "aggregate"
        data = "a.csv"
        columns = { age = { low = 15, high = 45, intervals = 3 } }
        grouping_sets = [["age"]]
        values = ["x"]
        functions = ["avg"]
        partitions = 3
    """
    made = study(query, seed='"secure"', traffic="", folder=tmp_path)
    assert [warned.key for warned in made.warnings] == ["true-values-shown", "no-ranges"]
    bounded = query.replace("[query]", "[query]\nranges = { x = [0, 100] }")
    made = study(bounded, seed='"secure"', traffic="", folder=tmp_path)
    assert [warned.key for warned in made.warnings] == ["true-values-shown"]
    name, *averages = table(made, "result-1").rows[1]
    assert name == "25 to 35"
    assert averages == [pytest.approx(15), pytest.approx(15)]
    assert table(made, "errors").rows[0][5] == "-"


def test_clusters_like_those_of_plain_k_means() -> None:
    made = study(CLUSTERS.replace("VARIANT", "public-centroids"))
    rows = table(made, "iterations").rows
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0][4] == 1.0
    assert float(str(rows[-1][4])) > 0.99
    assert float(str(rows[-1][6])) > 0.98
    assert float(str(rows[-1][2])) == pytest.approx(float(str(rows[-1][3])), rel=0.01)
    assert [chart.key for chart in made.charts] == ["distance", "rand-index"]
    assert len(made.charts[1].series) == 3
    assert [warned.key for warned in made.warnings] == ["fixed-seed"]


def test_noise_and_no_guarantee() -> None:
    private = study(CLUSTERS.replace("VARIANT", "private-centroids") + NOISE)
    assert private.answers[-1].split(" of ")[0] < "6,6"  # about 0.8 of 8,000
    hidden = study(CLUSTERS.replace("VARIANT", "hidden"))
    assert [warned.key for warned in hidden.warnings] == ["no-guarantee", "fixed-seed"]


def test_a_table_of_points(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    x = np.concatenate([generator.normal(20, 2, 200), generator.normal(60, 2, 200), [1e9]])
    rows = [f"{a:.3f},{b:.3f}" for a, b in zip(x, x / 10, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["x,y", *rows]) + "\n", encoding="utf-8")
    query = """
        [query]
        kind = "k-means"
        data = "a.csv"
        columns = { x = [0, 100], y = [0, 10.0] }
        centroids = 2
        iterations = 3
        variant = "public-centroids"
    """
    made = study(query, traffic="", folder=tmp_path)
    assert len(table(made, "iterations").columns) == 5
    assert len(made.answers) == 3
    assert len(made.charts[1].series) == 1


FORMS = (
    'kind = "k-means"\ncolumns = { "größe" = [0, 9] }\ncentroids = 2\niterations = 1\nvariant = "hidden"',
    'kind = "aggregate"\ncolumns = { "größe" = { low = 0, high = 9, intervals = 3 } }\n'
    'grouping_sets = [["größe"]]\npartitions = 2',
    'kind = "histogram"\npartitions = 2\n'
    'columns = { "größe" = { low = 0, high = 9, intervals = 3 }, x = { low = 0, high = 9, intervals = 3 } }',
)


@pytest.mark.parametrize("query", FORMS)
def test_tables_in_other_encodings(query: str, tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("größe,x\n1.5,2\n4,8\n7,1\n", encoding="utf-8")
    (tmp_path / "office.csv").write_text("größe;x\n1.5;2\n4;8\n7;1\n", encoding="windows-1252")
    head = "[run]\nseed = 1\n[traffic]\nsigma = 0.0\n[targets]\ndelta = 1e-6\n[query]\n"
    plain = parse_plan(f'{head}data = "plain.csv"\n{query}\n')
    office = parse_plan(f'{head}data = "office.csv"\nencoding = "windows-1252"\nseparator = ";"\n{query}\n')
    assert "encoding" not in plain.effective()
    assert parse_plan(office.effective()) == office
    assert (office.query.records(tmp_path).rows == plain.query.records(tmp_path).rows).all()
    with pytest.raises(SpecificationError, match=r"query\.encoding: must be the name of an encoding"):
        parse_plan(f'{head}data = "office.csv"\nencoding = "latin-99"\n{query}\n')


def write_idx(path: Path, array: npt.NDArray[np.uint8]) -> None:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))


def test_a_folder_of_images(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    for part, size in (("train", 300), ("t10k", 100)):
        labels = generator.integers(3, size=size, dtype=np.uint8)
        images = (80 * labels[:, None, None] + generator.integers(9, size=(size, 2, 2))).astype(np.uint8)
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", images)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", labels)
    query = CLUSTERS.replace("VARIANT", "public-centroids").replace(
        "generated = { people = 2000, seed = 11 }", 'data = "."'
    )
    query = query.replace("centroids = 4", "centroids = 3")
    made = study(query, traffic="", folder=tmp_path)
    assert "the digits of 100 test images" in made.answers[1]
    assert dict(made.settings)["people"] == "300"
    with pytest.raises(DataError, match="fewer than the 200 first centroids"):
        study(query.replace("centroids = 3", "centroids = 200"), traffic="", folder=tmp_path)
    with pytest.raises(DataError, match="is not a folder of IDX images"):
        study(query.replace('"."', '"no"'), traffic="", folder=tmp_path)
