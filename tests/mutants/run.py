"""Break the product on purpose, one mutant at a time, and see whether the tests named for it notice.

Every *.toml file beside this one lists mutants: a `name`, the `file` under its package's src, the `old` text, which
occurs there once, the `new` text in its place, the `tests` of which one must fail, and in `breaks` a sentence on what
is wrong then. `python tests/mutants/run.py [part of a name ...]` runs all of them, or those with such a name; the code
is 1 where a mutant survives or says nothing, 2 where the tests fail without any.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
PRODUCT: Final = {folder.name: folder for folder in ROOT.glob("packages/*/src/*") if (folder / "__init__.py").exists()}
"""The folder of each import package."""

_PYTEST: Final = (sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--timeout=120")
_FAILED: Final = 1  # what pytest says where a test fails; other codes are mistakes in the mutant
_KILLED: Final = "killed"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change to one file, and the tests of which one must fail with it."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def occurrences(self) -> int:
        """How often the old text is in its file."""
        return (PRODUCT[self.file.partition("/")[0]].parent / self.file).read_text(encoding="utf-8").count(self.old)


def mutants() -> list[Mutant]:
    """Return all mutants, in the order of the files that list them."""
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.toml"))]
    return [Mutant(**(raw | {"tests": tuple(raw["tests"])})) for table in tables for raw in table["mutant"]]


def _tested(source: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """Run tests against the product in `source`; return pytest's code and the test that failed first."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [*_PYTEST, *tests], cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE)
    return ended.returncode, failed[1] if failed else ""


def _verdict(source: Path, mutant: Mutant) -> str:
    """Run the tests of a mutant in a copy of the product, which is as before afterwards."""
    if mutant.occurrences != 1:
        return "old text not found" if mutant.occurrences == 0 else "old text more than once"
    place = source / mutant.file
    whole = place.read_text(encoding="utf-8")
    place.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
    for compiled in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
        compiled.unlink()  # its time and size may be those of the mutant
    try:
        code, failed = _tested(source, mutant.tests)
    finally:
        place.write_text(whole, encoding="utf-8")
    if code == 0:
        return "survived"
    return f"{_KILLED} by {failed}" if code == _FAILED else f"no verdict (pytest ended with {code})"


def main(wanted: list[str]) -> int:
    """Run the mutants whose name has one of the `wanted` parts (all where there are none), and print a table."""
    chosen = [mutant for mutant in mutants() if not wanted or any(part in mutant.name for part in wanted)]
    workers, began = os.cpu_count() or 1, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(workers):
            copies.put(Path(folder, str(number)))
            for name, package in PRODUCT.items():
                shutil.copytree(package, Path(folder, str(number), name))
        first = copies.queue[0]
        code, failed = _tested(first, tuple(dict.fromkeys(test for mutant in chosen for test in mutant.tests)))
        if code:
            print(f"without any mutant {failed or 'pytest'} fails already (code {code})")
            return 2

        def row(mutant: Mutant) -> tuple[str, float]:
            source, start = copies.get(), time.monotonic()
            try:
                return _verdict(source, mutant), time.monotonic() - start
            finally:
                copies.put(source)

        killed = 0
        with ThreadPoolExecutor(workers) as pool:
            for mutant, (verdict, seconds) in zip(chosen, pool.map(row, chosen), strict=True):
                killed += verdict.startswith(_KILLED)
                print(f"{mutant.name:<58} {seconds:5.1f} s  {verdict}", flush=True)
    print(f"{killed} of {len(chosen)} mutants killed, {time.monotonic() - began:.0f} s")
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
