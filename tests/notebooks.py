"""The notebooks under examples/notebooks, executed: `python tests/notebooks.py` writes their outputs anew.

No notebook server is needed: the cells of a notebook are run one after the other, as Jupyter would, what they print and
the value of a last expression are kept.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"


def executed(notebook: Path) -> dict[str, Any]:
    """Return a notebook with the outputs that its cells have now; they run beside it."""
    document: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(notebook.parent):
        cells = (cell for cell in document["cells"] if cell["cell_type"] == "code")
        for count, cell in enumerate(cells, start=1):
            cell["execution_count"], cell["outputs"] = count, _run("".join(cell["source"]), names, count)
    return document


def _run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - our own notebooks
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(re.sub(" at 0x[0-9a-f]+", "", repr(value)))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": _lines(value._repr_html_()), **data}
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(document: dict[str, Any]) -> str:
    """Return a notebook as Jupyter writes it."""
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    for path in [Path(name).resolve() for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        path.write_text(written(executed(path)), encoding="utf-8")
