from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hushuffle.cli.console import Exit

MISTYPED = """
population = { n = 50000, k = 5 }
randomizer = { kind = "randomized-response", epsilom = 2.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""
PLAN = """
[query]
kind = "aggregate"
[targets]
deltaa = 1e-4
"""
LIBRARIES = "import cyclopts, numpy; from pydantic import BaseModel"


def _seconds(*arguments: str) -> float:
    """Return the processor time that Python takes with `arguments`: the least of three."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "OPENBLAS_THREAD_TIMEOUT": "4"}
        subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    return min(once() for _ in range(3))


@pytest.mark.parametrize(
    ("verb", "text"),
    [(["assess"], MISTYPED), (["calibrate"], MISTYPED), (["collect", "--out=new"], MISTYPED), (["plan", "run"], PLAN)],
)
def test_a_mistyped_key_waits_for_nothing_heavy(verb: list[str], text: str, tmp_path: Path) -> None:
    (tmp_path / "mistyped.toml").write_text(text)
    heavy = (
        "polars",
        "scipy.special",
        "scipy.optimize",
        "vl_convert",
        "rich",
        "hushuffle.questions",
        "hushuffle_network.rehearse",
    )
    code = f"""
import sys
from hushuffle.cli import main
code = main({[*verb, "mistyped.toml"]})
print([name for name in {heavy} if name in sys.modules])
sys.exit(code)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (Exit.USAGE, "[]"), ended.stderr
    assert "is not a key here" in ended.stderr


def test_a_mistyped_key_and_help_take_less_than_a_second(tmp_path: Path) -> None:
    specification = tmp_path / "mistyped.toml"
    specification.write_text(MISTYPED)
    start = _seconds("-c", LIBRARIES)  # 0.29 s on the machine where a mistyped key takes 0.79 s and help 0.26 s
    assert _seconds("-m", "hushuffle", "assess", str(specification)) < 4 * start  # 2.5 to 2.8 there
    assert _seconds("-m", "hushuffle", "--help") < 1.7 * start
