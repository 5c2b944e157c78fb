"""The example notebooks hold what their cells give today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import notebooks

FOUND = sorted(notebooks.FOLDER.glob("*.ipynb"))


def shown(document: dict[str, Any]) -> list[list[Any]]:
    """Return what a reader sees of each cell: what it prints, and tables; not how Python writes a value."""
    cells = [cell["outputs"] for cell in document["cells"] if cell["cell_type"] == "code"]
    return [[output.get("text") or output["data"].get("text/html") for output in outputs] for outputs in cells]


@pytest.mark.parametrize("notebook", FOUND, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_give(notebook: Path) -> None:
    kept = json.loads(notebook.read_text(encoding="utf-8"))
    assert shown(notebooks.executed(notebook)) == shown(kept)
    assert all(cell["outputs"] for cell in kept["cells"] if cell["cell_type"] == "code")
    assert notebook.read_text(encoding="utf-8") == notebooks.written(kept)


def test_there_are_two_and_the_readme_and_the_documentation_name_them() -> None:
    root = notebooks.FOLDER.parents[1]
    assert len(FOUND) == 2
    for notebook in FOUND:
        assert f"examples/notebooks/{notebook.name}" in (root / "README.md").read_text(encoding="utf-8")
