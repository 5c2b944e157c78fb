"""hushuffle: design, run and audit shuffle-model privacy.

Submodules load when first used, so that importing the package stays fast. `__init__.pyi` lists all public names.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from hushuffle._version import __version__
from hushuffle.errors import MissingDependencyError

_IMPORT = re.compile(r"^from (hushuffle[\w.]*) import (\w+) as \2$", re.MULTILINE)
_WHERE = {name: room for room, name in _IMPORT.findall(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))}

__all__ = ["__version__", *sorted(_WHERE.keys() - {"__version__"})]  # noqa: PLE0604 - all of them are strings


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        message = f"module 'hushuffle' has no attribute {name!r}"
        raise AttributeError(message)
    try:
        room = importlib.import_module(_WHERE[name])
        value = vars(room).get(name) or importlib.import_module(f"{_WHERE[name]}.{name}")
    except ModuleNotFoundError as missing:
        raise MissingDependencyError.of_program(missing) from missing
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
