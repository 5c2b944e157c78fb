"""Read broken inputs for a while: FUZZ_SECONDS=600 python tests/fuzz/run.py [part of a name ...].

An input is made of choices: bytes, drawn at random. Each fuzzer runs in a process of its own, with a limit on memory
and on the time for one input. Choices that find something are kept under corpus/, which the tests read again
from then on; the code is 1 then. `run.py --atheris NAME [options of libFuzzer]` lets coverage lead the choices instead
(make fuzz).
"""

from __future__ import annotations

import faulthandler
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

SECONDS = float(os.environ.get("FUZZ_SECONDS", "600"))
SIZE = 1024
"""Bytes of choices."""
MEMORY = 4 << 30
"""Bytes that a process may take."""


def one(name: str, seconds: float, last: Path) -> int:
    """Read inputs of one fuzzer; the choices of the last one are in a file, whatever becomes of the process."""
    from fuzz.every import FUZZERS  # noqa: PLC0415 - the process that starts this one does without
    from fuzz.fuzzing import LONGEST, Choices, Outcome, attempt  # noqa: PLC0415

    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - is not everywhere

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcome, end = Outcome(), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        os.environ["HUSHUFFLE_STATE"] = state  # what keys remember: not that of whoever runs this
        make = FUZZERS[name][0](Path(folder))
        while time.monotonic() < end and not outcome.findings:
            last.write_bytes(choices := os.urandom(SIZE))
            faulthandler.dump_traceback_later(2 * LONGEST, exit=True)
            attempt(make, Choices(choices), outcome)
    faulthandler.cancel_dump_traceback_later()
    print(f"{name:<20} {dict(outcome.counts)}", flush=True)
    if outcome.findings:
        print(outcome)
    return 1 if outcome.findings else 0


def guided(name: str, options: list[str]) -> None:
    """Let coverage lead the choices, until something is found."""
    import atheris  # noqa: PLC0415 - an extra

    with atheris.instrument_imports(include=["hushuffle"]):
        from fuzz.every import CORPUS, FUZZERS  # noqa: PLC0415 - instrumented
        from fuzz.fuzzing import Choices, Outcome, attempt  # noqa: PLC0415
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as grown:
        os.environ["HUSHUFFLE_STATE"] = str(Path(grown, "state"))
        make = FUZZERS[name][0](Path(folder))
        for path in CORPUS.glob(f"{name.replace(' ', '_')}_*.choices"):
            Path(grown, path.name).write_bytes(path.read_bytes())

        def test(choices: bytes) -> None:
            outcome = Outcome()
            attempt(make, Choices(choices), outcome)
            assert not outcome.findings, str(outcome)

        atheris.Setup([sys.argv[0], f"-max_len={SIZE}", *options, grown], test)
        atheris.Fuzz()


def main(parts: list[str]) -> int:
    """Run all fuzzers, or those with such a name, one after the other."""
    from fuzz.every import CORPUS, FUZZERS  # noqa: PLC0415

    chosen = [name for name in FUZZERS if not parts or any(part in name for part in parts)]
    found = 0
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            last = Path(folder, "choices")
            line = [sys.executable, __file__, "--one", name, str(SECONDS / len(chosen)), str(last)]
            code = subprocess.run(line, check=False).returncode
            if code and last.exists():
                choices = last.read_bytes()
                kept = CORPUS / f"{name.replace(' ', '_')}_{hashlib.sha256(choices).hexdigest()[:8]}.choices"
                kept.write_bytes(choices)
                print(f"{name}: ended with code {code}; kept {kept}", flush=True)
            found += bool(code)
    print(f"{len(chosen) - found} of {len(chosen)} fuzzers found nothing")
    return 1 if found else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--one", name, seconds, last]:
            sys.exit(one(name, float(seconds), Path(last)))
        case ["--atheris", name, *options]:
            guided(name, options)
        case parts:
            sys.exit(main(parts))
