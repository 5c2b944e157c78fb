"""The program `hushuffle`: one short file for each command; heavy modules are imported when a command runs."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from cyclopts import App, CycloptsError

from hushuffle._version import __version__
from hushuffle.cli.assess import assess
from hushuffle.cli.attack import attack
from hushuffle.cli.audit import audit
from hushuffle.cli.calibrate import calibrate
from hushuffle.cli.choose import choose
from hushuffle.cli.collect import collect
from hushuffle.cli.compare import compare
from hushuffle.cli.console import COMMON, Exit, UsageError, erase, starting, visible, visibly
from hushuffle.cli.estimate import estimate
from hushuffle.cli.examples import examples
from hushuffle.cli.explore import explore
from hushuffle.cli.init import init
from hushuffle.cli.inspect import inspect
from hushuffle.cli.minimum_batch import minimum_batch
from hushuffle.cli.schema import schema
from hushuffle.cli.verify import verify
from hushuffle.errors import HushuffleError, SpecificationError
from hushuffle.extensions import COMMANDS, PACKAGES, extension, extensions

__all__ = ["main"]

_LONG = ("assess", "calibrate", "choose", "collect", "compare", "estimate", "explore", "inspect", "minimum-batch")
"""Commands that show their progress before they print a result."""

_COMMANDS: tuple[Callable[..., object] | App, ...] = (
    *(assess, attack, audit, calibrate, choose, collect, compare, estimate),
    *(examples, explore, init, inspect, minimum_batch, schema, verify),
)
_SHORT = {"--json", "--help", "-h"}
_KNOWN = (CycloptsError, UsageError, HushuffleError, OSError, MemoryError, KeyboardInterrupt)
_OURS = re.compile(r".*/((?:hushuffle(?:_[a-z]+)?|shuffle_certificate)/.*\.py)$")
_WHOLE = "HUSHUFFLE_TRACEBACK"
_EXITS = "Exit codes:\n" + "\n".join(f"{code.value:>5}  {code.meaning}" for code in Exit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program on `arguments` (default: those of the process); errors are plain lines on standard error."""
    # Threads of linear algebra that wait for work would keep a processor busy for a tenth of a second at every start.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # Once 16 MB are freed, glibc reuses large arrays and does not ask the system for new pages: up to a third of a run.
    bytes(1 << 24)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Greek letters is no reason to fail
    given = sys.argv[1:] if arguments is None else list(arguments)
    with visibly():
        return _run(given)


def _run(given: Sequence[str]) -> int:
    if given[:1] and given[0] in _LONG and not _SHORT & set(given):
        starting()
    try:
        code = _app(next(iter(given), "--help"))(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of standard output has closed it; Python would complain once more when it flushes at the end.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except SystemExit:
        raise
    except BaseException as error:  # what libraries raise may quote data, and is not all Exception
        if not isinstance(error, _KNOWN) and os.environ.get(_WHOLE):
            raise
        message, code = _explained(error, given)
        erase()
        with suppress(BrokenPipeError):
            sys.stderr.write(f"hushuffle: {visible(message)}\n")
    return Exit.DONE if code is None else code


def _explained(error: BaseException, given: Sequence[str]) -> tuple[str, Exit]:
    match error:
        case CycloptsError() | UsageError():
            return f"{error} (`hushuffle COMMAND --help` lists all options.)", Exit.USAGE
        case HushuffleError():
            return _placed(error, given), Exit.USAGE if isinstance(error, SpecificationError) else Exit.FAILED
        case OSError():
            return _refused(error, given), Exit.FAILED
        case MemoryError():
            return "there is not enough memory.", Exit.FAILED
        case KeyboardInterrupt():
            return "interrupted; no file is incomplete.", Exit.INTERRUPTED
        case _:
            return _unexpected(error), Exit.FAILED


def _placed(error: HushuffleError, given: Sequence[str]) -> str:
    """The message; problems of a specification name its file, if the command line names a single one."""
    files = {word for word in given if word.endswith(".toml") and Path(word).is_file()}
    if not isinstance(error, SpecificationError) or len(files) != 1 or not error.file.startswith("specification"):
        return str(error)
    return str(SpecificationError(error.file.replace("specification", files.pop(), 1), error.problems))


def _refused(error: OSError, given: Sequence[str]) -> str:
    """The operating system's error, after the longest path on the command line that contains the failed file.

    The failed file's own name is not shown, since it may contain an id, or belong to a temporary file.
    """
    from hushuffle.files.causes import cause  # noqa: PLC0415 - only when needed

    words = [word.rpartition("=")[2] if word.startswith("-") else word for word in (*given, "hushuffle-out")]
    place = Path(os.fsdecode(error.filename)).absolute() if isinstance(error.filename, str | bytes) else None
    names = [word for word in words if word and place is not None and place.is_relative_to(Path(word).absolute())]
    name = f"{max(names, key=lambda word: len(Path(word).absolute().parts))}: " if names else ""
    return f"{name}{cause(error, type(error).__name__)}."


def _unexpected(error: BaseException) -> str:
    """The place of an error of the program, without the error's text, which may quote data."""
    files = ((_OURS.match(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__))
    places = [f"{name[1]}:{line}" for name, line in files if name]
    return (
        f"an unexpected error ({type(error).__name__}) at {', '.join(places[1:])}. Its text is not shown, because it "
        f"may quote data. Set {_WHOLE}=1 in the environment to see it. Please report this."
    )


def _app(first: str = "--help") -> App:
    """The program; commands of other packages are loaded if the first word is no other command."""
    app = App(
        name="hushuffle",
        version=f"hushuffle {__version__}",
        version_format="plaintext",
        help="Design, run and audit shuffle-model privacy.",
        help_epilogue=_EXITS,
        help_format="plaintext",
        group_parameters=COMMON,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )
    for own in _COMMANDS:
        app.command(own)
    if first in {"--help", "-h"} or first not in app:
        for name, command in extensions(COMMANDS).items():
            app.command(command, name=name)
        if first in PACKAGES and first not in app:
            extension(COMMANDS, first)
    return app
