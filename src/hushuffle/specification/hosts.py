"""The TOML file that says on which hosts a plan is run: addresses, public seal keys, the names of the sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from hushuffle.errors import Problem
from hushuffle.specification._base import Section, refuse
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary

_NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,62}")
_MOST: Final = 65_535


NAME_RULE: Final = "lower-case letters, digits and hyphens, at most 63, the first one no hyphen"


def is_name(text: str) -> bool:
    """Say whether a run's document takes `text` as the name of a node.

    >>> is_name("scrambler-1-02"), is_name("Alice"), is_name("a.example")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def _node(name: str) -> str:
    if not is_name(name):
        refuse(f"must be {NAME_RULE}")
    return name


def _place(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) <= _MOST:
        refuse('must be "host:port"', f"The port is a number from 1 to {_MOST}.")
    return text


Text = Annotated[str, Field(min_length=1)]
NodeName = Annotated[str, AfterValidator(_node)]


class Hosts(Section):
    """Who takes part in a run, and where."""

    servers: dict[NodeName, Annotated[str, AfterValidator(_place)]]
    """Host and port of each node that others connect to."""
    seals: Text
    """A folder with NAME.seal.pub for the result and every compute node."""
    sources: Annotated[tuple[NodeName, ...], Field(strict=False)] = ()
    """The node that speaks for each person; a name may stand there several times. This or sources_file."""
    sources_file: Text | None = None
    """The same in a file, one name on a line."""


_WORDS: Final = Vocabulary(sections={"": (Hosts,)}, goes_with={})


def load_hosts(path: Path) -> Hosts:
    """Return the hosts in a TOML file.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parsed(read_text(path), Hosts, file=str(path), rules=_problems, words=_WORDS)


def _problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    given = [key for key in ("sources", "sources_file") if key in raw]
    if len(given) != 1:
        value = "both" if given else "neither"
        yield Problem(key="sources", rule="must be there, or sources_file instead", value=value)
    if raw.get("sources") == []:
        yield Problem(key="sources", rule="must be one or more names", value="none")
