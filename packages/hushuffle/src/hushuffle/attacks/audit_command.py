"""Reports of a program that reads values and writes reports, one a line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Any, Final

from hushuffle.errors import DataError

_SECONDS: Final = 600


def of_command(program: Sequence[str], pair: tuple[str, str]) -> Callable[[Any], list[str]]:
    """Return a sampler that gives the program one of two values per line, and reads one report per line.

    Raises:
        DataError: when it is run: there is no such program, it failed, or it did not write one line for each value.

    >>> import numpy as np
    >>> of_command(["cat"], ("no", "yes"))(np.array([0, 1]))
    ['no', 'yes']
    """

    def sample(codes: Any) -> list[str]:
        text = "".join(f"{pair[code]}\n" for code in codes.tolist())
        try:
            done = subprocess.run(  # noqa: S603 - the program that the user names, without a shell
                program, input=text, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except FileNotFoundError:
            message = f"--command: there is no program {program[0]}."
            raise DataError(message) from None
        except subprocess.TimeoutExpired:
            message = f"--command: {program[0]} did not end within {_SECONDS} seconds. Use fewer --trials."
            raise DataError(message) from None
        lines = done.stdout.splitlines()
        if done.returncode or len(lines) != len(codes):
            message = (
                f"--command: {program[0]} ended with exit code {done.returncode} and wrote {len(lines):,} lines for "
                f"{len(codes):,} values. For each line with a value it must write one line with a report."
            )
            raise DataError(message)
        return lines

    return sample
