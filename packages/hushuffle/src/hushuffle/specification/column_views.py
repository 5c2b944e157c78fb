"""[[population.views]] of a reach study: what the shuffler counts of the columns, and with which dummies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from hushuffle.errors import InvalidInputError, Problem
from hushuffle.mechanisms.column_views import MOST_CONTACTS, MOST_PUBLISHERS, ColumnView, ColumnViews
from hushuffle.specification._base import Name, Section, table_in, tables_in, unfit
from hushuffle.specification.kinds import EndlessOrNot

if TYPE_CHECKING:
    from hushuffle.mechanisms.shufflers import DummyLaw, GeometricDummies

LAWS: Final = ("each", "empty", "single")
"""The keys of a view with distributions of dummies."""

MOST_PATTERNS: Final = 10
"""Largest number of publishers whose bit patterns are counted."""


class View(Section):
    """What the shuffler counts of the columns; it adds dummies to each count."""

    shows: Literal["union", "pairs", "patterns", "contacts"]
    """"union": columns with an entry of at least one publisher. "pairs": for each publisher the columns with its entry,
    and for each two those with an entry of exactly one; this gives their unions and overlaps. "patterns": columns with
    each bit pattern of up to 10 publishers. "contacts": columns by the sum of their entries."""
    publishers: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    """The publishers of the view (default: all)."""
    sets_of: Annotated[int, Field(ge=1, le=MOST_PUBLISHERS)] | None = None
    """One view for each set of this many of the publishers (default: one view of all of them)."""
    most: Annotated[int, Field(ge=1, le=MOST_CONTACTS)] | None = None
    """Only with "contacts": largest number of contacts; more count as this number."""
    each: EndlessOrNot | None = None
    """Distribution of the number of dummies in each count of this view (default: `each` of [shuffler])."""
    empty: EndlessOrNot | None = None
    """Only with "patterns": dummies of the count of columns without entry, which gives the union (default: `each`)."""
    single: EndlessOrNot | None = None
    """Only with "pairs": dummies of the counts of a single publisher (default: `each`)."""

    def built(self, names: Sequence[str], each: DummyLaw | GeometricDummies) -> Iterator[ColumnView]:
        """Yield the views for publishers `names`; `each` is used if the view has no distribution of its own."""
        chosen = [names.index(name) for name in self.publishers or names]
        own = {key: table.law() for key in LAWS if (table := getattr(self, key)) is not None}
        for group in combinations(chosen, self.sets_of or len(chosen)):
            yield ColumnView(publishers=group, shows=self.shows, most=self.most, **{"each": each, **own})


def build_views(
    views: Sequence[View] | None, *, names: Sequence[str], bits: int, hashes: int, each: DummyLaw | GeometricDummies
) -> ColumnViews:
    """Return the views of a study; without [[population.views]], the bit patterns of all publishers.

    Raises:
        SpecificationError: the views cannot be counted together.
    """
    listed = views or (View(shows="patterns"),)
    try:
        shown = tuple(view for each_view in listed for view in each_view.built(names, each))
        return ColumnViews(publishers=len(names), columns=bits, views=shown, hashes=hashes)
    except InvalidInputError as error:
        unfit("population.views", error.problem.rule, error.problem.value, error.problem.hint)


def view_problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield conflicts between the views and the other keys of a reach study."""
    population = table_in(raw, "population")
    publishers = population.get("audiences", population.get("publishers"))
    names = list(publishers) if isinstance(publishers, dict) else []
    if "views" not in population:
        if len(names) > MOST_PATTERNS:
            hint = "Set population.views, with the unions or contacts to count."
            rule = f"must have at most {MOST_PATTERNS} publishers if all their bit patterns are released"
            yield Problem(key="population", rule=rule, value=f"{len(names)}", hint=hint)
        return
    kind = table_in(raw, "shuffler").get("kind")
    if isinstance(kind, str) and kind != "augmented":
        hint = "The shuffler counts the columns without flips and adds dummies."
        yield Problem(
            key="shuffler.kind", rule='must be "augmented" with population.views', value=f'"{kind}"', hint=hint
        )
    tables = tables_in(population, "views")
    if tables and all("each" in table for table in tables):
        hint = "Remove `each` from the views that use the distribution of [shuffler]."
        rule = "must be left out of at least one view, or `each` of [shuffler] has no effect"
        yield Problem(key="population.views.each", rule=rule, value="given in all views", hint=hint)
    contacts = [table for table in tables if table.get("shows") == "contacts"]
    if len(contacts) > 1 or any("sets_of" in table for table in contacts):
        hint = "Remove `sets_of` and further views of contacts."
        yield Problem(key="population.views", rule="must have at most one view of contacts", value="several", hint=hint)
    for place, table in enumerate(tables):
        yield from _view(table, f"population.views[{place}]", names, read="publishers" in population)


def _view(table: Mapping[str, Any], key: str, names: list[str], *, read: bool) -> Iterator[Problem]:
    listed = table.get("publishers", names)
    chosen = list(listed) if isinstance(listed, list | tuple) else []
    if names and (unknown := [name for name in chosen if isinstance(name, str) and name not in names]):
        hint = f"The publishers are {', '.join(names)}."
        rule, value = "must be publishers of this study", ", ".join(unknown)
        yield Problem(key=f"{key}.publishers", rule=rule, value=value, hint=hint)
    if len(set(map(str, chosen))) < len(chosen):
        yield Problem(key=f"{key}.publishers", rule="must be different publishers", value=", ".join(map(str, chosen)))
    size = table.get("sets_of", len(chosen))
    if isinstance(size, int) and chosen and size > len(chosen):
        rule = f"must be at most {len(chosen)}, the number of publishers of the view"
        yield Problem(key=f"{key}.sets_of", rule=rule, value=f"{size}")
    if table.get("shows") == "patterns" and isinstance(size, int) and size > MOST_PATTERNS:
        hint = 'Name fewer publishers, or use shows = "union" with sets_of.'
        rule = f'must be at most {MOST_PATTERNS} publishers for shows = "patterns"'
        yield Problem(key=f"{key}.publishers", rule=rule, value=f"{size}", hint=hint)
    for law, shows in (("empty", "patterns"), ("single", "pairs")):
        if law in table and table.get("shows") != shows:
            rule = f'is allowed only with shows = "{shows}"'
            yield Problem(key=f"{key}.{law}", rule=rule, value="a table")
    contacts = table.get("shows") == "contacts"
    if contacts != ("most" in table) and isinstance(table.get("shows"), str):
        rule = "must be given" if contacts else 'is allowed only with shows = "contacts"'
        hint = "For example most = 10; more contacts count as 10." if contacts else ""
        yield Problem(key=f"{key}.most", rule=rule, value="nothing" if contacts else f"{table['most']}", hint=hint)
    if contacts and read:
        hint = "Plan with `audiences`, and collect from the publishers' numbers of contacts."
        rule = 'must be "union", "pairs" or "patterns" with files of identifiers, whose filters hold bits'
        yield Problem(key=f"{key}.shows", rule=rule, value='"contacts"', hint=hint)
