"""A process of nodes: what stays when its answer cannot be written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hushuffle.errors import DataError
from hushuffle.network import node as network_node
from hushuffle.network.node import Ran, run_nodes
from hushuffle.network.nodes.journal import Journal
from runtime_cases import case

CONFIGURATION = """
document = "run.json"
nodes = ["result"]
identities = "identities"
result = "out/result.json"
status = "status.json"
"""


class Kept:
    """A node that has ended, and keeps what its answer is made of."""

    name = "result"
    journal = Journal(node="result")

    def __init__(self) -> None:
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1


def test_an_answer_that_cannot_be_written_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, in_the_way, out = Kept(), [True], tmp_path / "out"
    (tmp_path / "result.toml").write_text(CONFIGURATION, encoding="utf-8")

    async def ran(*_: Any, **__: Any) -> Ran:
        assert [path.name for path in out.iterdir()] == [".result.json.room"]
        if in_the_way:
            shutil.rmtree(out)
            out.write_text("")
        answer: Any = object()
        return Ran(counters={}, failures={}, result=answer)

    with case() as one:
        (tmp_path / "run.json").write_text(one.document.text, encoding="utf-8")
        for name, instead in (
            ("check_promise", lambda *_: None),
            ("_nodes", lambda *_: [node]),
            ("_run", ran),
            ("result_table", lambda *_: {"answers": []}),
        ):
            monkeypatch.setattr(network_node, name, instead)
        with pytest.raises(DataError, match=r"result\.json cannot be written: Not a directory\. The sealed reports"):
            run_nodes(tmp_path / "result.toml")
        assert node.forgotten == 0
        in_the_way.clear()
        out.unlink()
        run_nodes(tmp_path / "result.toml")
    assert node.forgotten == 1
    assert json.loads((out / "result.json").read_bytes()) == {"answers": []}
    assert [path.name for path in out.iterdir()] == ["result.json"]
