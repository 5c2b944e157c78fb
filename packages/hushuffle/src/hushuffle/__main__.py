"""Run the program `hushuffle` by `python -m hushuffle`."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the program and return its exit code. Ctrl-C ends the program without a traceback, also during imports."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # a background process may ignore it
    if usual:
        signal.signal(signal.SIGINT, _interrupted)
    try:
        from hushuffle.cli import main as run  # noqa: PLC0415 - Ctrl-C is handled during this import
    except ModuleNotFoundError as missing:
        from hushuffle.errors import MissingDependencyError  # noqa: PLC0415

        sys.stderr.write(f"hushuffle: {MissingDependencyError.of_program(missing)}\n")
        return 1

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """End the process at once; no work has started yet."""
    sys.stderr.write("\nhushuffle: interrupted; no file is incomplete.\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
