"""The names, texts and addresses in documents and settings, and the base class of what several services read."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Final, NoReturn

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hushuffle.specification._base import refuse

_NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,62}")
_MOST: Final = 65_535
NAME_RULE: Final = "lower-case letters, digits and hyphens, at most 63, the first one no hyphen"


def is_name(text: str) -> bool:
    """Return whether a document accepts `text` as the name of a service.

    >>> is_name("scrambler-1-02"), is_name("Alice"), is_name("a.example")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def _service(name: str) -> str:
    if not is_name(name):
        refuse(f"must be {NAME_RULE}")
    return name


def listening_place(text: str) -> str:
    """Return `text` if it is a listening address, "host:port" or "fd:N"; refuse any other text."""
    if re.fullmatch("fd:[0-9]{1,6}", text):
        return text
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) <= _MOST:
        refuse('must be "host:port"', f"The port must be a number from 1 to {_MOST}.")
    return text


Text = Annotated[str, Field(min_length=1)]
ServiceName = Annotated[str, AfterValidator(_service)]
"""The name of a service in a file of settings."""
Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9][a-z0-9-]*$")]
"""The name of a service in a document."""


class DocumentPart(BaseModel):
    """A part of a document that several parties read: its fields never change, and no other field is allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def refuse_field(rule: str) -> NoReturn:
    raise ValueError(rule)


def utc_text(moment: dt.datetime) -> str:
    """Return a moment as UTC text, in the format of documents.

    >>> utc_text(dt.datetime(2026, 5, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))))
    '2026-05-01T10:00:00.000Z'
    """
    return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
