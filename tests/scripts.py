"""Programs in docs/ and benchmarks/, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]


def script(name: str) -> Any:
    """Return a program, by its path in the repository without the suffix, loaded anew."""
    place = importlib.util.spec_from_file_location(name.replace("/", "_"), ROOT / f"{name}.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    sys.modules[module.__name__] = module  # its dataclasses look there
    place.loader.exec_module(module)
    return module
