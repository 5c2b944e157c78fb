from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushuffle.specification import Specification, load, parse, schema_text

ROOT = Path(__file__).parents[2]
PUBLISHED = (ROOT / "docs" / "specification.schema.json").read_text(encoding="utf-8")
SCHEMA: dict[str, Any] = json.loads(PUBLISHED)

names = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
shares = st.floats(0, 1, exclude_min=True, exclude_max=True)
numbers = st.floats(-1e6, 1e6).map(repr)
conditions = st.one_of(
    st.builds("{} {}".format, st.sampled_from(["==", "!=", "<", ">="]), numbers),
    st.builds(">= {} and < {} or == 'x'".format, numbers, numbers),
)
listed = st.lists(
    names | st.integers(0, 99) | st.booleans(), min_size=2, max_size=5, unique_by=lambda v: str(v).lower()
)
with_data = st.fixed_dictionaries(
    {"data": names, "column": names, "categories": st.dictionaries(names, conditions, min_size=2) | listed},
    optional={"missing": st.sampled_from(["refuse", "drop", "no answer at all"])},
)
from_data = st.fixed_dictionaries(
    {
        "data": names,
        "column": names,
        "categories": st.just("from-data"),
        "allow_categories_from_data": st.just(value=True),
    }
)
counted = st.one_of(
    st.fixed_dictionaries({"n": st.integers(1000, 10**15), "k": st.integers(2, 10**7)}),
    st.fixed_dictionaries({"n": st.integers(1000, 10**15), "categories": listed}),
)
kind = st.just("randomized-response")
randomizers = st.one_of(
    st.fixed_dictionaries({"kind": kind, "epsilon": st.floats(1e-3, 40) | st.integers(1, 40) | st.just(math.inf)}),
    st.fixed_dictionaries({"kind": kind, "epsilon": st.just("inf")}),
    st.fixed_dictionaries({"kind": kind, "truth_probability": st.floats(0.75, 1)}),
    st.fixed_dictionaries(
        {"kind": st.just("local-hashing"), "epsilon": st.floats(1e-3, 40)}, optional={"g": st.integers(2, 2 * 10**9)}
    ),
    st.just({"kind": "local-hashing", "epsilon": "inf", "g": 100}),
)
adversaries = st.lists(
    st.sampled_from(["uninformed", "strong", "linker"]).map(lambda name: {"kind": name})
    | st.integers(0, 900).map(lambda m: {"kind": "informed", "m": m}),
    min_size=1,
    max_size=4,
    unique_by=str,
)
runs = st.fixed_dictionaries(
    {},
    optional={
        "repetitions": st.integers(0, 1000),
        "seed": st.just("secure") | st.integers(0, 2**70),
        "confidence": shares,
    },
)
specifications: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "population": with_data | from_data | counted,
        "randomizer": randomizers,
        "shuffler": st.sampled_from(["uniform", "none"]).map(lambda name: {"kind": name}),
        "targets": st.fixed_dictionaries(
            {"delta": shares}, optional={"standard_error": shares, "epsilon": st.floats(1e-3, 40)}
        ),
    },
    optional={"title": names, "adversaries": adversaries, "run": runs},
)


@settings(max_examples=100, deadline=None)
@given(specifications)
def test_the_effective_specification_reads_back_the_same(raw: dict[str, Any]) -> None:
    spec = Specification.model_validate(raw)
    text = spec.effective()
    again = parse(text)
    assert again == spec
    assert again.effective() == text


def test_defaults_are_spelled_out() -> None:
    raw = tomllib.loads(load(ROOT / "examples" / "no-data.toml").effective())
    assert [adversary["kind"] for adversary in raw["adversaries"]] == ["uninformed", "strong", "linker"]
    assert raw["run"] == {"repetitions": 100, "seed": "secure", "confidence": 0.95, "show_people": False}


@pytest.mark.parametrize("name", ["affairs", "party", "no-data", "hashing", "order", "places"])
def test_examples_read_back_the_same(name: str) -> None:
    spec = load(ROOT / "examples" / f"{name}.toml")
    assert parse(spec.effective()) == spec


def test_specifications_are_frozen() -> None:
    spec = load(ROOT / "examples" / "affairs.toml")
    with pytest.raises(ValueError, match="frozen"):
        spec.title = "other"


def test_the_published_schema_is_current() -> None:
    assert schema_text() == PUBLISHED, "run: hushuffle schema > docs/specification.schema.json"


def test_the_schema_has_no_null_and_says_what_everything_is() -> None:
    schema = SCHEMA
    assert '"null"' not in json.dumps(schema)
    assert "default" not in schema["$defs"]["Specification"]["properties"]["title"]
    for table in (schema, *schema["$defs"].values()):
        assert table["description"]
        assert all("description" in value or "const" in value for value in table["properties"].values())


@pytest.mark.parametrize("file", sorted(ROOT.glob("examples/*.toml")), ids=lambda file: file.stem)
def test_the_schema_takes_every_example_and_names_what_is_wrong(file: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    if "schema ../docs/specification" not in file.read_text(encoding="utf-8"):
        pytest.skip("another kind of file")
    checker = jsonschema.Draft202012Validator(SCHEMA)
    checker.validate(tables)
    for section in tables:
        assert not checker.is_valid({**tables, section: 7.5}), section
    assert not checker.is_valid({**tables, "colunms": []})
    for place in ("columns", "sum"):
        if place in tables:
            assert not checker.is_valid({key: value for key, value in tables.items() if key != place}), place
