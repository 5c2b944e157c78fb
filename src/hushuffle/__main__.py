"""`python -m hushuffle` is the program `hushuffle`."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the program. Ctrl-C ends it quietly from the start, also while modules are being imported."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # in the background it may be ignored
    if usual:
        signal.signal(signal.SIGINT, _interrupted)
    from hushuffle.cli import main as run  # noqa: PLC0415 - Ctrl-C is heard while it loads

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """End at once: nothing has been begun."""
    sys.stderr.write("\nhushuffle: interrupted; nothing is half written.\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
