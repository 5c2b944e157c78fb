"""Numbered references: each work once, with the places in it that were used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hushuffle.model import Citation
from hushuffle.report.formatting import plain


@dataclass(frozen=True, kw_only=True)
class Reference:
    """One numbered work: its text and the places in it that were used."""

    number: int
    text: str
    places: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Mention:
    """A reference to a work at one place in it ("" if the work as a whole)."""

    number: int
    where: str


def references(citations: Iterable[Citation]) -> tuple[Reference, ...]:
    """Return the works of `citations`, numbered from 1 in order of use."""
    places: dict[tuple[str, str], dict[str, None]] = {}
    for citation in citations:
        places.setdefault(_work(citation), {})[plain(citation.where)] = None
    return tuple(
        Reference(number=number, text=plain(text), places=tuple(place for place in used if place))
        for number, ((_, text), used) in enumerate(places.items(), 1)
    )


def mentions(citations: Iterable[Citation], sources: Iterable[Citation]) -> tuple[Mention, ...]:
    """Return where `sources` stand among `references(citations)`, each once."""
    works = list(dict.fromkeys(_work(citation) for citation in citations))
    found = (Mention(number=works.index(_work(source)) + 1, where=plain(source.where)) for source in sources)
    return tuple(dict.fromkeys(found))


def _work(citation: Citation) -> tuple[str, str]:
    return citation.key, citation.text
