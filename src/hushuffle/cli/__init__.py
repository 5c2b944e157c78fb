"""The program `hushuffle`: one thin file for each verb; heavy modules are imported when a verb runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from cyclopts import App, CycloptsError

from hushuffle._version import __version__
from hushuffle.cli.assess import assess
from hushuffle.cli.attack import attack
from hushuffle.cli.calibrate import calibrate
from hushuffle.cli.collect import collect
from hushuffle.cli.estimate import estimate
from hushuffle.cli.exits import Exit, UsageError
from hushuffle.cli.node import node
from hushuffle.cli.plan import plan
from hushuffle.cli.reproduce import reproduce
from hushuffle.cli.schema import schema
from hushuffle.errors import HushuffleError, SpecificationError

__all__ = ["main"]

_EXITS = "Exit codes:\n" + "\n".join(f"{code.value:>5}  {code.meaning}" for code in Exit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program on `arguments` (those of the process by default) and return its exit code.

    What goes wrong is said in plain lines on standard error.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters is no reason to fail
    try:
        code = _app()(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read standard output has left; Python would complain once more when it flushes at the end.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except (CycloptsError, UsageError, HushuffleError, OSError, MemoryError, KeyboardInterrupt) as error:
        message, code = _explained(error)
        with suppress(BrokenPipeError):
            sys.stderr.write(f"hushuffle: {message}\n")
    return Exit.DONE if code is None else code


def _explained(error: BaseException) -> tuple[str, Exit]:
    match error:
        case CycloptsError() | UsageError():
            return f"{error} (`hushuffle --help` says more.)", Exit.USAGE
        case SpecificationError():
            return str(error), Exit.USAGE
        case HushuffleError():
            return str(error), Exit.FAILED
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return f"{place}{error.strerror or type(error).__name__}.", Exit.FAILED
        case MemoryError():
            return "there is not enough memory.", Exit.FAILED
        case _:
            return "interrupted; nothing is half written.", Exit.INTERRUPTED


def _app() -> App:
    app = App(
        name="hushuffle",
        version=f"hushuffle {__version__}",
        version_format="plaintext",
        help="Design, run and audit shuffle-model privacy.",
        help_epilogue=_EXITS,
        help_format="plaintext",
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    app.command(assess)
    app.command(attack)
    app.command(calibrate)
    app.command(collect)
    app.command(estimate)
    app.command(node)
    app.command(plan)
    app.command(reproduce)
    app.command(schema)
    return app
