"""What lies beside the folders of several columns: which there are, and what they say together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushuffle._version import __version__
from hushuffle.collection.manifest import SCHEMA_VERSION, number

COLUMNS: Final = "manifest of columns"


@dataclass(frozen=True, kw_only=True)
class ColumnsManifest:
    """`columns`: number of people and local epsilon, by the name of the folder; `facts` about all of them."""

    columns: Mapping[str, tuple[int, float]]
    facts: Mapping[str, Any]

    def text(self) -> str:
        """Return it as JSON."""
        document = {
            "schema_version": SCHEMA_VERSION,
            "content": COLUMNS,
            "software": {"hushuffle": __version__},
            **self.facts,
            "columns": [
                {"name": name, "people": people, "local_epsilon": number(epsilon)}
                for name, (people, epsilon) in self.columns.items()
            ],
        }
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def columns_in(path: Path) -> tuple[str, ...]:
    """Return the names of the columns that a manifest of columns lists; none if the file is something else.

    >>> columns_in(Path("not-there.json"))
    ()
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return ()
    if not isinstance(document, dict) or document.get("content") != COLUMNS:
        return ()
    listed = document.get("columns")
    names = [one.get("name") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(name for name in names if isinstance(name, str) and Path(name).name == name != "..")
