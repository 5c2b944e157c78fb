from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hushuffle.collection.released import COLUMNS, ColumnsManifest, columns_in


def test_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    manifest = ColumnsManifest(columns={"a": (3, 1.0), "b": (4, math.inf)}, facts={"local_epsilon": "infinity"})
    path.write_text(manifest.text(), encoding="utf-8")
    assert columns_in(path) == ("a", "b")
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["columns"][1] == {"name": "b", "people": 4, "local_epsilon": "infinity"}
    assert document["local_epsilon"] == "infinity"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"content": "manifest"}',
        json.dumps({"content": COLUMNS}),
        json.dumps({"content": COLUMNS, "columns": [3, {"name": 3}, {"name": "../other"}, {"name": ".."}]}),
    ],
)
def test_other_files(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    assert columns_in(tmp_path / "manifest.json") == ()
