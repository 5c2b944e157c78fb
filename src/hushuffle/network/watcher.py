"""Cleans up after a run on this machine, also if the program that started it was killed.

A program of its own, which needs nothing of the project: it waits until its standard input ends, as that of a killed
parent does, then ends all processes of the run and removes the folder with everybody's keys and records.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_PATIENCE: Final = 300.0
"""Seconds in which a folder is tried again that cannot be removed."""


@contextmanager
def watched(folder: Path, *files: Path) -> Iterator[int]:
    """Yield the process group that processes of a run are to join.

    Afterwards nothing is left of it, nor of the folder, nor of the files: who cleans up is ready before anything else
    is started.
    """
    command = [sys.executable, "-I", "-S", __file__, *(str(one.absolute()) for one in (folder, *files))]
    watcher = subprocess.Popen(  # noqa: S603 - this very file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0
    )
    try:
        if not watcher.stdout or not watcher.stdout.read(1):
            message = f"{sys.executable} ended before it could watch the run"
            raise ChildProcessError(message)
        yield watcher.pid
    finally:
        watcher.communicate()


def clean_up(folder: str, *files: str) -> None:
    """Wait for the end of standard input, then end the processes of this group and remove a folder, and files."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a parent that is killed hangs up on a group with stopped processes
    with suppress(OSError):  # nobody listens any more
        os.write(sys.stdout.fileno(), b"1")
    os.read(sys.stdin.fileno(), 1)
    group = os.getpgid(0)
    child = os.fork()
    if child:
        os.waitpid(child, 0)  # unless it is ended with the others
        return
    os.setpgid(0, 0)
    end, alive = time.monotonic() + _PATIENCE, True
    while time.monotonic() < end:
        if alive:
            try:
                os.killpg(group, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                alive = False  # the number may be somebody else's by now
        for file in files:
            with suppress(OSError):
                Path(file).unlink()
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(0.05)  # who is being killed may still write


if __name__ == "__main__":
    clean_up(*sys.argv[1:])
