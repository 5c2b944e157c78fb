"""Measure what people wait for: processor seconds and memory of every verb on every example and on larger settings.

    python benchmarks/verbs.py [part of a name ...] [--json FILE] [--profile]

The unit is the time of sorting 10^7 floats in the same run. `--profile` prints the ten functions in which the dearest
three runs spend their own time. A verb that refuses a file is left out.
"""

from __future__ import annotations

import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = ROOT / "examples"
_REFUSED: Final = 2

VERBS: Final[dict[str, tuple[str, ...]]] = {
    "assess": ("--overwrite",),
    "calibrate": ("--json",),
    "choose": ("--json",),
    "explore": (),
    "compare": ("--json",),
    "minimum-batch": ("--json",),
    "audit": ("--overwrite",),
}
"""Verbs that take a specification, with the options of the run."""

_SURVEY: Final = """title = "{name}"
population = {{ {population} }}
shuffler = {{ {shuffler} }}
targets = {{ epsilon = 1.0, delta = 1e-6, standard_error = 0.05 }}
[randomizer]
{randomizer}
"""
_RR: Final = 'kind = "randomized-response"\nepsilon = 2.0'
_UNIFORM: Final = 'kind = "uniform"'
LARGER: Final[dict[str, dict[str, str]]] = {
    "k=5,n=50_000": {"population": "n = 50_000, k = 5", "randomizer": _RR},
    "k=100,n=100_000": {"population": "n = 100_000, k = 100", "randomizer": _RR},
    "k=5,n=10^9": {"population": "n = 1_000_000_000, k = 5", "randomizer": _RR},
    "k=5,n=300": {"population": "n = 300, k = 5", "randomizer": _RR},
    "one-hot,k=100": {
        "population": "n = 100_000, k = 100",
        "randomizer": 'kind = "unary-encoding"\nepsilon = 2.0',
    },
    "hadamard,k=64": {"population": "n = 20_000, k = 64", "randomizer": 'kind = "hadamard"\nepsilon = 2.0'},
    "hashing,k=1000": {
        "population": "n = 20_000, k = 1_000",
        "randomizer": 'kind = "local-hashing"\nepsilon = 2.0\nbuckets = 8',
    },
    "subset,k=20": {"population": "n = 20_000, k = 20", "randomizer": 'kind = "subset-selection"\nepsilon = 2.0'},
    "square-wave,k=12": {
        "population": "n = 20_000, k = 12",
        "randomizer": 'kind = "square-wave"\nepsilon = 1.0',
    },
    "dummies,k=5": {
        "population": "n = 20_000, k = 5",
        "randomizer": _RR,
        "shuffler": 'kind = "scrambler", dummies = 10_000',
    },
    "random-dummies,k=5": {
        "population": "n = 20_000, k = 5",
        "randomizer": _RR,
        "shuffler": 'kind = "scrambler", dummies = { kind = "binomial", trials = 20_000, p = 0.5 }',
    },
    "sums,k=10": {
        "population": "n = 20_000, k = 10",
        "randomizer": 'kind = "unary-encoding"\nepsilon = 2.0',
        "shuffler": 'kind = "secure-aggregation"',
    },
}
"""Settings larger than the examples: tables of a specification, with a uniform shuffle where none is given."""


class Run(NamedTuple):
    """One run of a verb on a file."""

    name: str
    verb: str
    seconds: float
    megabytes: float
    code: int
    words: tuple[str, ...]


def files(folder: Path) -> list[Path]:
    """Return the examples that need no data of a package, and the larger settings, written into a folder."""
    subprocess.run(
        [sys.executable, "-m", "hushuffle", "examples", "examples"], cwd=folder, check=True, capture_output=True
    )
    for name, tables in LARGER.items():
        text = _SURVEY.format(name=name, **{"shuffler": _UNIFORM} | tables)
        (folder / "examples" / f"{name}.toml").write_text(text, encoding="utf-8")
    return sorted((folder / "examples").glob("*.toml"))


def run(words: tuple[str, ...], folder: Path, *, profile: str = "") -> tuple[float, float, int]:
    """Return processor seconds, memory in megabytes, and the exit code of one run of the program."""
    start = [sys.executable, *(("-m", "cProfile", "-o", profile) if profile else ()), "-m", "hushuffle", *words]
    with subprocess.Popen(start, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode


def measured(folder: Path, wanted: list[str]) -> list[Run]:
    """Return the runs of every verb on every file whose "verb file" has one of the wanted parts."""
    runs = []
    for verb, options in VERBS.items():
        for file in (
            files(folder) if not (folder / "examples").exists() else sorted((folder / "examples").glob("*.toml"))
        ):
            if wanted and not any(part in f"{verb} {file.stem}" for part in wanted):
                continue
            name = str(file.relative_to(folder))
            words = (verb, name, name, *options) if verb == "compare" else (verb, name, *options)
            seconds, megabytes, code = run(words, folder)
            if code != _REFUSED:
                runs.append(Run(file.stem, verb, seconds, megabytes, code, words))
                print(f"{verb:<14} {file.stem:<22} {seconds:7.2f} s {megabytes:7.0f} MB  {code}", flush=True)
    return runs


def main() -> None:
    """Print the runs, the dearest last."""
    wanted = [word for word in sys.argv[1:] if not word.startswith("--")]
    floats = np.random.default_rng(1).random(10**7)
    began = time.process_time()
    np.sort(floats)
    unit = time.process_time() - began
    print(f"unit: {unit:.3f} s (10^7 floats)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = sorted(measured(folder, wanted), key=lambda each: each.seconds)
        print("\ndearest")
        for each in runs[-20:]:
            print(f"{each.verb:<14} {each.name:<22} {each.seconds:7.2f} s {each.seconds / unit:7.1f} u")
        for verb in VERBS:
            times = [each.seconds for each in runs if each.verb == verb]
            if times:
                print(f"{verb:<14} median {np.median(times):6.2f} s, largest {max(times):6.2f} s of {len(times)}")
        if "--profile" in sys.argv:
            for each in runs[-3:]:
                run(each.words, folder, profile=str(folder / "profile"))
                print(f"\n{each.verb} {each.name}")
                pstats.Stats(str(folder / "profile")).sort_stats("tottime").print_stats(10)
        if "--json" in sys.argv:
            print(json.dumps([each._asdict() for each in runs]))


if __name__ == "__main__":
    main()
