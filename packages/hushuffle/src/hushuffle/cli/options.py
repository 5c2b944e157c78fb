"""The options that several commands share, and the envelope of what --json prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

FLAG: Final = Parameter(negative=(), show_default=False)
Flag: TypeAlias = Annotated[bool, FLAG]
"""An option without a value, which is off by default."""

SCHEMA_VERSION: Final = 1


def json_text(content: str, fields: Mapping[str, Any]) -> str:
    """Return a JSON document: the version of its keys, what its `content` is, and its own keys."""
    document = {"schema_version": SCHEMA_VERSION, "content": content, **fields}
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def print_json(content: str, fields: Mapping[str, Any]) -> None:
    sys.stdout.write(json_text(content, fields))
