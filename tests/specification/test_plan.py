from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hushuffle.errors import SpecificationError
from hushuffle_network.queries import AggregateQuery, KMeansQuery, PlanSpecification, load_plan, parse_plan
from hushuffle_network.queries.columns import Intervals

ROOT = Path(__file__).parents[2]
TRAFFIC = "[traffic]\nsigma = 0.2\n"
TARGETS = "[targets]\ndelta = 1e-6\n"
SETS = """
[query]
kind = "aggregate"
generated = { people = 1000 }
columns = { age = 20, bmi = { low = 10, high = 50, intervals = 20 } }
grouping_sets = [["age"], ["bmi"]]
partitions = 20
"""
CLUSTERS = """
[query]
kind = "k-means"
generated = { people = 1000 }
centroids = 4
iterations = 2
variant = "hidden"
"""


def problems(text: str) -> list[str]:
    with pytest.raises(SpecificationError) as caught:
        parse_plan(text, file="here.toml")
    assert str(caught.value).startswith("here.toml: ")
    return [str(problem) for problem in caught.value.problems]


def test_defaults_and_plans() -> None:
    spec = parse_plan(SETS + TRAFFIC + TARGETS)
    assert isinstance(spec.query, AggregateQuery)
    assert (spec.title, spec.run.seed, spec.query.functions, spec.query.per_person) == (
        None,
        "secure",
        ("count",),
        "all",
    )
    plan = spec.plan(1000)
    assert [cluster.name for cluster in plan.reachable("people")] == ["send by age", "send by bmi"]
    assert plan.cluster("send by age").scramblers == 0
    one = parse_plan(SETS + 'per_person = "one"\n' + TRAFFIC + "batch = 100\n" + TARGETS).plan(1000)
    assert len(one.data) == 2
    assert one.cluster("send by bmi").scramblers == 5


def test_variants_of_k_means() -> None:
    hidden = parse_plan(CLUSTERS + TRAFFIC + TARGETS)
    assert isinstance(hidden.query, KMeansQuery)
    assert hidden.query.centroid_noise() is None
    assert not hidden.plan(1000).applies
    noise = 'noise = { kind = "laplace", radius = 1.0, scale = 8 }\n'
    private = parse_plan(CLUSTERS.replace("hidden", "private-centroids") + noise + TRAFFIC + TARGETS)
    assert [release.epsilon for release in private.plan(10).releases] == [0.5, 0.5]


@pytest.mark.parametrize("name", ["aggregate", "aggregate-private", "kmeans"])
def test_examples_load_and_read_back_the_same(name: str) -> None:
    spec = load_plan(ROOT / "examples" / f"{name}.toml")
    assert parse_plan(spec.effective()) == spec
    assert tomllib.loads(spec.effective())["targets"]["delta"] == 1e-6


def test_intervals_are_conditions() -> None:
    assert Intervals(low=-1, high=1, intervals=2).conditions() == {"below 0": "< 0", "0 and more": ">= 0"}
    assert list(Intervals(low=0, high=1, intervals=4).conditions()) == [
        "below 0.25",
        "0.25 to 0.5",
        "0.5 to 0.75",
        "0.75 and more",
    ]


def test_groups_of_every_shape() -> None:
    text = SETS.replace("age = 20", 'age = [1, "two"], sex = { a = "== 1", b = "!= 1" }').replace(
        '[["age"]', '[["age", "sex"]'
    )
    query = parse_plan(text.replace("partitions = 20", "partitions = 2") + TRAFFIC + TARGETS).query
    assert isinstance(query, AggregateQuery)
    assert [one.sizes for one in query.query().grouping_sets] == [(2, 2), (20,)]
    assert query.categories()["age"] == ("1", "two")
    assert set(query.categories()["sex"]) == {"a", "b"}


def test_every_problem_at_once() -> None:
    text = """
        titel = "x"
        [query]
        kind = "aggregate"
        data = "a.csv"
        generated = { people = 0, dimensions = 3 }
        columns = { age = 20, bmi = [1], x = "y", z = { a = "> 0" }, w = { low = 2, high = 1, intervals = 3 } }
        grouping_sets = [["age", "age"], [], ["zip"], ["age", "age"]]
        functions = ["count", "median", "avg"]
        partitions = 1
        per_person = "some"
        centroids = 3
        [traffic]
        sigma = 2
        flood = 3
        dummies = 5
        capped = 1
        [targets]
        delta = 1
    """
    assert problems(text) == [
        'titel: is not a key here, got "x". Did you mean title?',
        "query.generated.people: must be greater than or equal to 1, got 0.",
        'query.generated.dimensions: is not a key here, got 3. This key needs kind = "k-means".',
        "query.columns.x: must be a list of labels, a table of conditions, a table with low, high and intervals, "
        'or a number of groups, got "y".',
        'query.functions[1]: must be "count", "sum", "avg", "min" or "max", got "median". Did you mean "min"?',
        "query.partitions: must be greater than or equal to 2, got 1.",
        'query.per_person: must be "all" or "one", got "some".',
        'query.centroids: is not a key here, got 3. This key needs kind = "k-means".',
        "query: must have either data or generated, got both.",
        "query.columns.age: must define the values of each group if there are data, got 20. "
        "Use a list of labels, a table of conditions, or { low, high, intervals }.",
        "query.columns.bmi: must be two or more different labels, got 1.",
        "query.columns.z: must be two or more groups, got 1.",
        "query.columns.w: must have low < high, got 2 and 1.",
        "query.grouping_sets[0]: must be one or more different columns, got age, age.",
        "query.grouping_sets[1]: must be one or more different columns, got none.",
        'query.grouping_sets[2]: must name columns of query.columns, got "zip". '
        "Define in [query.columns] how the values of each grouping column are assigned to groups.",
        "query.grouping_sets[3]: must be one or more different columns, got age, age.",
        "query.grouping_sets[3]: must not be repeated, got age, age.",
        "query.values: must be a list of columns for median, avg, got nothing.",
        "traffic.sigma: must be less than or equal to 1, got 2.",
        "traffic.capped: must be true or false, got 1.",
        "traffic.flood: must be 0 with scramblers, got 3. Let the scramblers add more dummies instead.",
        "targets.delta: must be less than 1, got 1.",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            SETS.replace("partitions = 20", "partitions = 21"),
            "query.partitions: must be at most 20, the number of groups of the smallest grouping set, got 21.",
        ),
        (SETS + 'values = ["x", "x"]\n', "query.values: must be different columns, got x, x."),
        (
            SETS + 'values = ["x"]\nranges = { y = [0, 1] }\n',
            "query.ranges: must have only columns that are in query.values, got y.",
        ),
        (
            SETS + 'values = ["x"]\nranges = { x = [1, 0] }\n',
            "query.ranges.x: must be [low, high], low first, got [1, 0].",
        ),
        (SETS + 'values = ["x"]\nranges = { x = 3 }\n', "query.ranges.x: must be [low, high], two numbers, got 3."),
        (
            SETS + 'values = ["age"]\n',
            "query.values: must differ from the grouping columns, got age. "
            "A column cannot be both a grouping column and a value. Copy it under another name.",
        ),
        (
            CLUSTERS.replace("hidden", "private-centroids"),
            "query.noise: must be given with private centroids, got nothing. "
            'For example noise = { kind = "gaussian", radius = 1.5, scale = 20.0 }.',
        ),
        (
            CLUSTERS + 'noise = { kind = "gaussian", radius = 1, scale = 2 }\n',
            "query.noise: is allowed only with private centroids, got a table.",
        ),
        (
            CLUSTERS.replace("hidden", "private-centroids") + 'noise = { kind = "gausian", radius = 1, scale = 2 }\n',
            'query.noise.kind: must be "gaussian" or "laplace", got "gausian".',
        ),
        (CLUSTERS + "columns = { x = [0, 1] }\n", "query.columns: must come with data, got no data."),
        (
            CLUSTERS.replace("generated = { people = 1000 }", 'data = "a.csv"') + "columns = { x = [1, 0] }\n",
            "query.columns.x: must be [low, high], low first, got [1, 0].",
        ),
        (
            CLUSTERS.replace("generated = { people = 1000 }", 'data = "a.csv"') + "columns = { x = [1, true] }\n",
            "query.columns.x: must be [low, high], two numbers, got [1, true].",
        ),
        (
            SETS.replace("aggregate", "agregate"),
            'query.kind: must be "aggregate", "k-means", "histogram" or "graph", got "agregate". Did you mean',
        ),
    ],
)
def test_one_problem(text: str, problem: str) -> None:
    found = problems(text + TRAFFIC + TARGETS)
    assert any(one.startswith(problem.removesuffix(".")) for one in found), found
    assert len(found) == 1


def test_capped_needs_scramblers() -> None:
    assert problems(SETS + TRAFFIC + "capped = true\n" + TARGETS) == [
        "traffic.capped: is allowed only with scramblers, got true. Set batch and dummies."
    ]


@pytest.mark.parametrize("broken", ["query = 3\n", "query = { kind = 3 }\n", "traffic = 3\n", ""])
def test_tables_of_the_wrong_type_are_problems_not_crashes(broken: str) -> None:
    assert problems(broken + TARGETS)
    odd = SETS.replace("[[", "[3, [").replace("columns = {", "columns = { odd = true,") + 'functions = "count"\n'
    assert problems(odd + TRAFFIC + TARGETS)


def test_what_does_not_fit_so_many_people_is_a_problem_of_the_file() -> None:
    spec = parse_plan(SETS + TRAFFIC + "batch = 300\ndummies = 5\ncapped = true\n" + TARGETS)
    with pytest.raises(
        SpecificationError, match=r"for 1,001 people: 1 problem\n  traffic.batch: must be equal for all"
    ):
        spec.plan(1001)
    one = parse_plan(SETS + 'per_person = "one"\n' + TRAFFIC + TARGETS)
    with pytest.raises(SpecificationError, match=r"people: must be an integer >= 2, got 1"):
        one.plan(1)


def test_the_model_itself_keeps_the_rules() -> None:
    raw: dict[str, Any] = tomllib.loads(SETS + TRAFFIC + TARGETS)
    assert PlanSpecification.model_validate(raw).plain()["query"]["partitions"] == 20
    raw["query"]["partitions"] = 21
    with pytest.raises(ValidationError, match="must be at most 20, the number of groups"):
        PlanSpecification.model_validate(raw)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="must exist"):
        load_plan(tmp_path / "no.toml")


def test_the_plan_of_the_guide_loads() -> None:
    page = (ROOT / "docs" / "how-to" / "plan-a-query.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml(?: title=.*?)?\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    (whole,) = [block for block in blocks if "[targets]" in block]
    noise, query = [block for block in blocks if block.startswith("[query")]
    assert parse_plan(whole).plan(20_000).applies
    assert [one.epsilon for one in parse_plan(whole + noise).plan(20_000).releases] == [1.0]
    assert parse_plan(query + whole[whole.index("[traffic]") :]).plan(20_000).applies


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("min_batch = 5\n", "traffic.min_batch: is allowed only with scramblers, got 5. Set batch and dummies."),
        ("batch = 20\nmin_batch = 21\n", "traffic.min_batch: must be at most batch = 20, got 21."),
        ("batch = 20\nmin_batch = 0\n", "traffic.min_batch: must be greater than or equal to 1, got 0."),
        ("scramblers = 2\n", "traffic.scramblers: must be 1 without dummies and batch, got 2. Set batch and dummies."),
        (
            "batch = 100\ncapped = true\nscramblers = 2\n",
            "traffic.scramblers: must be 1 under a cap, got 2. Only the last scrambler knows the targets.",
        ),
        ("batch = 20\nscramblers = 11\n", "traffic.scramblers: must be less than or equal to 10, got 11."),
        ("batch = 20\n[network]\nmessage = 255\n", "network.message: must be greater than or equal to 256, got 255."),
        (
            "batch = 20\n[network]\nmessage = 16385\n",
            "network.message: must be less than or equal to 16384, got 16385.",
        ),
        ("batch = 20\n[network]\nleast = 0\n", "network.least: must be greater than 0, got 0."),
        ("batch = 20\n[network]\nleast = 1.5\n", "network.least: must be less than or equal to 1, got 1.5."),
        ("batch = 20\n[network]\ncollect = 0\n", "network.collect: must be greater than 0, got 0."),
        ("batch = 20\n[network]\npatience = -1\n", "network.patience: must be greater than 0, got -1."),
        ("batch = 20\n[network]\ncolect = 3\n", "network.colect: "),
        ("network = 3\n", "traffic.network: "),
    ],
)
def test_one_problem_of_how_a_plan_is_run(more: str, problem: str) -> None:
    (found,) = problems(SETS + TRAFFIC + more + TARGETS)
    assert found.startswith(problem.removesuffix("."))


def test_fewest_sources_and_the_network_come_through() -> None:
    text = SETS + TRAFFIC + "batch = 100\nmin_batch = 80\n" + TARGETS
    spec = parse_plan(text)
    assert spec.network is None
    assert "network" not in spec.plain()
    assert {cluster.protocol.n for cluster in spec.plan(1000).clusters if cluster.reads} == {80}
    again = parse_plan(text + "[network]\ncollect = 5\n")
    assert again.network is not None
    assert again.network.model_dump() == {"message": 1024, "collect": 5.0, "patience": 30.0, "least": 0.9}
    assert parse_plan(again.effective()) == again
    with pytest.raises(SpecificationError, match=r"traffic.min_batch: must be an integer from 1 to 75, got 80"):
        spec.plan(150)


def test_the_network_example_loads() -> None:
    spec = load_plan(ROOT / "examples" / "aggregate-network.toml")
    assert spec.network is not None
    assert {cluster.protocol.n for cluster in spec.plan(6366).clusters if cluster.reads} == {750}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("partitions = 20", "partitions = 20\nvalues = 10", "query.values: must be a list"),
        ('[["age"], ["bmi"]]', '[[["age"]]]', "query.grouping_sets[0]: must name columns of query.columns, got"),
        ('[["age"], ["bmi"]]', "[[{ age = 1 }]]", "query.grouping_sets[0]: must name columns of query.columns"),
    ],
)
def test_lists_of_another_form_are_problems(old: str, new: str, problem: str) -> None:
    found = problems(SETS.replace(old, new) + TRAFFIC + TARGETS)
    assert any(line.startswith(problem) for line in found), found


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("ranges = { x = [0, 1" + "0" * 400 + "] }", "two numbers that a float can hold"),
        ("ranges = { x = [0, 1] }\nnoise = { epsilon = 1.0 }\nvalues = [['x']]", "query.values"),
    ],
)
def test_odd_ranges_and_values_are_refused_in_words(more: str, message: str) -> None:
    text = f"""
    traffic = {{ sigma = 0.2 }}
    targets = {{ delta = 0.0 }}
    [query]
    kind = "aggregate"
    functions = ["sum"]
    {"" if "values" in more else 'values = ["x"]'}
    generated = {{ people = 1000 }}
    columns = {{ age = 20 }}
    grouping_sets = [["age"]]
    partitions = 20
    {more}
    """
    with pytest.raises(SpecificationError, match=message):
        parse_plan(text)
