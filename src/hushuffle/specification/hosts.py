"""The TOML file that says on which hosts a plan is run: addresses, public seal keys, the names of the sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from hushuffle.errors import Problem
from hushuffle.specification._base import Name, Section
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary

Text = Annotated[str, Field(min_length=1)]


class Hosts(Section):
    """Who takes part in a run, and where."""

    servers: dict[Name, Text]
    """Host and port of each node that others connect to."""
    seals: Text
    """A folder with NAME.seal.pub for the result and every compute node."""
    sources: Annotated[tuple[Name, ...], Field(strict=False)] = ()
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
