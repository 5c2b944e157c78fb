"""The accountant in a browser: it needs numpy and scipy alone, its scripts parse, and its wheel loads in Pyodide."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "examples" / "browser"
NODE = shutil.which("node")

ALONE = """
import sys
from importlib.abc import MetaPathFinder

class Nothing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.partition(".")[0]
        if top in ("hushuffle", "numpy", "scipy", "figure") or top in sys.stdlib_module_names or top.startswith("_"):
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
import figure
print(figure.figure(10, 10_000, 2.0, 1e-6))
"""

LOADS = """
import { readFileSync } from "node:fs";
const [folder, script, wheel, source, whole] = JSON.parse(process.argv[2]);
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const { accountant } = await import(script);
const pyodide = await loadPyodide();
if (!whole) pyodide.loadPackage = async () => {};
const bytes = new Uint8Array(readFileSync(wheel));
const figure = await accountant(pyodide, bytes, readFileSync(source, "utf8"));
try {
  console.log(figure(10, 10000, 2.0, 1e-6));
} catch (error) {
  console.log(error.message.trim().split("\\n").at(-1));
}
"""


def test_the_figure_needs_numpy_and_scipy_alone() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=PAGE, capture_output=True, text=True, check=True)
    assert done.stdout == "0.07980 to 0.07981 nats (certified bracket)\n"


@pytest.mark.skipif(NODE is None, reason="there is no Node")
def test_the_scripts_of_the_page_parse(tmp_path: Path) -> None:
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    (tmp_path / "page.mjs").write_text(page.partition('<script type="module">')[2].partition("</script>")[0])
    for script in (PAGE / "accountant.mjs", tmp_path / "page.mjs"):
        subprocess.run([str(NODE), "--check", script], check=True)
    assert all(f'name="{name}"' in page for name in ("k", "n", "epsilon", "delta"))


@pytest.mark.skipif("HUSHUFFLE_PYODIDE" not in os.environ, reason="HUSHUFFLE_PYODIDE names no folder of Pyodide")
def test_the_wheel_loads_in_pyodide(tmp_path: Path) -> None:
    """Without the wheel of numpy in the folder of pyodide.mjs, the library says what is missing."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT / "packages" / "hushuffle"],
        check=True,
    )
    (wheel,) = tmp_path.glob("*-py3-none-any.whl")
    folder = Path(os.environ["HUSHUFFLE_PYODIDE"])
    whole = any(folder.glob("numpy-*.whl"))
    given = [str(folder), str(PAGE / "accountant.mjs"), str(wheel), str(PAGE / "figure.py"), whole]
    (tmp_path / "load.mjs").write_text(LOADS)
    done = subprocess.run(
        [str(NODE), "load.mjs", json.dumps(given)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    expected = "0.07980 to 0.07981 nats (certified bracket)" if whole else "numpy is not installed."
    assert expected in done.stdout
