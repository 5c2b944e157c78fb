"""Cleans up after a run on this machine, even if the program that started the run was killed.

This file is a program of its own. Its standard input ends when its parent is killed. Then it ends all processes of the
run and removes the folder with all keys and records.
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
"""Number of seconds during which the removal of a folder is tried again."""


@contextmanager
def watched(folder: Path, *files: Path) -> Iterator[int]:
    """Yield the process group that a run's processes must join; on exit, they end, and folder and files are removed."""
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
    """Wait for the end of standard input, then end the processes of this group, and remove a folder and files."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a killed parent causes SIGHUP in a group with stopped processes
    with suppress(OSError):  # the parent no longer reads
        os.write(sys.stdout.fileno(), b"1")
    os.read(sys.stdin.fileno(), 1)
    group = os.getpgid(0)
    child = os.fork()
    if child:
        os.waitpid(child, 0)  # unless this process is killed with its group
        return
    os.setpgid(0, 0)
    end, alive = time.monotonic() + _PATIENCE, True
    while time.monotonic() < end:
        if alive:
            try:
                os.killpg(group, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                alive = False  # the system may have reused the group's number
        for file in files:
            with suppress(OSError):
                Path(file).unlink()
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(0.05)  # processes that are being killed may still write


if __name__ == "__main__":
    clean_up(*sys.argv[1:])
