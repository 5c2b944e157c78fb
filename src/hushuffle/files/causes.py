"""Why the system refused a file: in its own words, and with the name that the user knows."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NUMBER: Final = re.compile(r"\(os error (\d+)\)")


def cause(error: OSError, otherwise: str = "an error") -> str:
    """Return what the system says, `otherwise` if it is not known; never a library's own words, which may quote data.

    >>> cause(OSError("cannot write 'ann': No space left on device (os error 28)"))
    'No space left on device'
    """
    if error.errno is not None and error.strerror:
        return error.strerror
    number = _NUMBER.search(str(error))
    return os.strerror(int(number[1])) if number else otherwise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the system name `path`, which was asked for, and not a temporary file beside it.

    Raises:
        OSError: as inside, with the cause and `path`.
    """
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or errno.EIO, cause(error), str(path)) from None
