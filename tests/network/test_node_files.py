"""The configuration of a process that runs nodes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from hushuffle.errors import SpecificationError
from hushuffle.network.specification import NodeConfiguration, Policy, load_node

BEGIN = """
document = "run.json"
nodes = ["source-1"]
identities = "identities"
"""
RECORDS = """
[records]
data = "me.csv"
coins = "coins.key"
state = "state"
"""


def problems(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "node.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecificationError) as caught:
        load_node(path)
    assert str(caught.value).startswith(f"{path}: ")
    return [str(problem) for problem in caught.value.problems]


def test_a_configuration_and_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(BEGIN + RECORDS, encoding="utf-8")
    found = load_node(path)
    assert (found.document, found.nodes, found.identities) == ("run.json", ("source-1",), "identities")
    assert (found.keys, found.seals, found.listen, found.addresses) == ({}, {}, {}, {})
    assert (found.status, found.result) == (None, None)
    assert found.records is not None
    assert (found.records.data, found.records.prepared) == ("me.csv", None)
    more = 'status = "s.json"\nkeys = { source-1 = "env:KEY" }\nlisten = { source-1 = "127.0.0.1:99" }\n'
    path.write_text(BEGIN + more, encoding="utf-8")
    assert load_node(path).keys == {"source-1": "env:KEY"}
    assert load_node(path).records is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BEGIN.replace('document = "run.json"', ""), "document: must be given"),
        (BEGIN.replace('"run.json"', '""'), "document: "),
        (BEGIN.replace('["source-1"]', "[]"), "nodes: "),
        (BEGIN.replace('["source-1"]', '["a", "b", "a"]'), "nodes: must be different names, got a, b, a"),
        (BEGIN.replace("identities =", "identitys ="), "identities: "),
        (BEGIN + "nodes_ = 3\n", "nodes_: "),
        (BEGIN + "keys = { source-1 = 3 }\n", "keys.source-1: "),
        (BEGIN + RECORDS.replace('data = "me.csv"', ""), "records: must have either data or prepared, got neither"),
        (BEGIN + RECORDS + 'prepared = "p.npz"\n', "records: must have either data or prepared, got both"),
        (BEGIN + RECORDS.replace('coins = "coins.key"', ""), "records.coins: "),
        (BEGIN + RECORDS.replace('state = "state"', ""), "records.state: "),
        (BEGIN + RECORDS + "seed = 1\n", "records.seed: "),
    ],
)
def test_one_problem(tmp_path: Path, text: str, problem: str) -> None:
    found = problems(tmp_path, text)
    assert any(one.startswith(problem) for one in found), found


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="must exist"):
        load_node(tmp_path / "none.toml")


def test_the_model_itself_keeps_the_rules() -> None:
    with pytest.raises(ValidationError, match="must be different names"):
        NodeConfiguration(document="d", nodes=("a", "a"), identities="i")


def test_the_policy_on_the_page_is_that_of_the_program(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/explanation/network-security.md").read_text("utf-8")
    (block,) = re.findall(r"^```toml\n(\[policy\].*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    given = tomllib.loads(block)["policy"]
    assert given.pop("authorities") == ["ab:cd:..."]
    assert given == Policy().model_dump(exclude_none=True)
    path = tmp_path / "node.toml"
    colons = ":".join(["AB"] * 32)
    path.write_text(f'{BEGIN}{RECORDS}[policy]\nbudget = 3.0\nauthorities = ["{colons}"]\n', encoding="utf-8")
    assert load_node(path).policy == Policy(budget=3.0, authorities=("ab" * 32,))
    path.write_text(f'{BEGIN}{RECORDS}[policy]\nbudget = 0\nmin_batch = 0\nauthorities = ["ab"]\n', encoding="utf-8")
    with pytest.raises(SpecificationError) as caught:
        load_node(path)
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"policy.budget", "policy.min_batch", "policy.authorities[0]"}
