"""Order privacy in a specification: the Mallows shuffle, its groups, and the adversary that sees the order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NoReturn, TypeAlias

from pydantic import ConfigDict, Field

from hushuffle._checks import unsupported
from hushuffle.errors import Problem
from hushuffle.mechanisms import shufflers
from hushuffle.mechanisms.shufflers.base import Reveals
from hushuffle.specification._base import Section, ShufflerSection, either, table_in, tables_in

_KEYS: Final = ("columns", "column", "edges")
_GOES_WITH: Final = {"radius": "columns", "nearest": "columns", "metric": "columns", "steps": "edges", "id": "edges"}
_Text: TypeAlias = Annotated[str, Field(min_length=1)]


class Groups(Section):
    """Groups of people whose records may be exchanged."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in _KEYS]})

    columns: Annotated[tuple[_Text, ...], Field(strict=False, min_length=1)] | None = None
    """Public columns of numbers, such as latitude and longitude; with radius, or nearest."""
    radius: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """All people within this distance are in a person's group (in km with the great-circle metric)."""
    nearest: Annotated[int, Field(ge=2)] | None = None
    """Number of people in each person's group, the person included."""
    metric: Literal["euclidean", "great-circle"] | None = None
    """Distance between people: "euclidean" by default; "great-circle" for latitude and longitude in degrees."""
    column: _Text | None = None
    """A public column: people with the same entry are in the same group."""
    edges: _Text | None = None
    """A CSV or Parquet file of a graph: the first two columns are the two people of an edge; with steps."""
    id: _Text | None = None
    """The column of the data whose ids the edges use; if left out, edges use record numbers, from 0."""
    steps: Annotated[int, Field(ge=1)] | None = None
    """All people at most this number of steps away in the graph are in a person's group."""

    @property
    def public(self) -> tuple[str, ...]:
        return tuple(name for name in (*(self.columns or ()), self.column, self.id) if name is not None)


class MallowsShuffle(ShufflerSection):
    """Reports leave in a random order near a public order: people with similar public data exchange records."""

    model_config = ConfigDict(json_schema_extra=either("alpha", "theta"))

    kind: Literal["mallows"]
    alpha: Annotated[float, Field(gt=0, le=700)] | None = None
    """Order privacy in nats: an exchange of records inside a group changes no probability by more than a factor
    e^alpha."""
    theta: Annotated[float, Field(gt=0, le=700)] | None = None
    """Instead of alpha: dispersion of the random order, alpha divided by the sensitivity. A larger theta keeps the
    order nearer to the public order."""
    distance: Literal["kendall", "hamming"] = "kendall"
    """Distance from the public order: the number of reversed pairs ("kendall") or of displaced people ("hamming")."""
    reference: Literal["bfs", "rcm", "sweep", "best"] = "best"
    """Method that computes the public order from the groups ("sweep" needs columns); "best" takes the order with the
    smallest sensitivity."""
    groups: Groups
    """Groups of people whose records may be exchanged."""

    @property
    def reveals(self) -> Reveals:
        return Reveals.NOISY_ORDER

    def build(self) -> NoReturn:
        """Raise UnsupportedProtocolError, because the shuffler depends on public columns of the data."""
        unsupported(
            "A Mallows shuffle is computed from public columns of the data, and this command reads no data. "
            'Use `hushuffle assess`, or set kind = "uniform" in [shuffler].'
        )

    def shuffler(self, reference: Any, theta: float) -> shufflers.MallowsShuffle:
        """Return the Mallows shuffler about a reference order of the people, shape (n,)."""
        return shufflers.MallowsShuffle(reference=reference, theta=theta, distance=self.distance)


class OrderAttack(Section):
    """An attack to run on the data: the 25 most similar people in the neighbourhood vote on each person's value."""

    column: _Text | None = None
    """The adversary's knowledge beyond public data: a column of numbers or labels of the data; none if left out."""
    radius: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Radius of a person's neighbourhood; the person's group if left out."""


class Order(Section):
    """Adversary that sees the order: it knows the public data and guesses whose report is at which place."""

    kind: Literal["order"]
    household: Annotated[int, Field(ge=1)] = 1
    """Number of people whose reports the adversary looks for together."""
    attack: OrderAttack | None = None
    """If this table is given, even empty, an attack runs on the data, and a learner that predicts values from places
    in the released order. Only for randomized response."""

    def guesser(self) -> None:
        """Return None: this adversary guesses places, not values."""


def with_order_adversaries(raw: Any) -> Any:
    """Return the tables of a specification; add default adversaries to a Mallows shuffle without adversaries."""
    mallows = isinstance(raw, dict) and table_in(raw, "shuffler").get("kind") == "mallows"
    if not mallows or "adversaries" in raw:
        return raw
    return {**raw, "adversaries": [{"kind": "order"}, {"kind": "linker"}]}


def order_problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield every broken rule about order privacy; values of the wrong type are reported elsewhere."""
    shuffler, population = table_in(raw, "shuffler"), table_in(raw, "population")
    mallows = shuffler.get("kind") == "mallows"
    if mallows:
        yield from _shuffle(shuffler, population)
    readers = [place for place, table in enumerate(tables_in(raw, "adversaries")) if table.get("kind") == "order"]
    for place in readers[:1]:
        yield from _adversary(tables_in(raw, "adversaries")[place], raw, f"adversaries[{place}]")
    for place in readers[1:]:
        hint = "One adversary of this kind covers all people."
        yield Problem(key=f"adversaries[{place}].kind", rule="must be listed once", value='"order" again', hint=hint)
    if table_in(raw, "run").get("show_people") is True:
        yield from _map(raw)


def _shuffle(shuffler: Mapping[str, Any], population: Mapping[str, Any]) -> Iterator[Problem]:
    if population and "data" not in population:
        hint = "The order is computed from public columns of the data: set data and column instead of n."
        yield Problem(key="population", rule="must have data for a Mallows shuffle", value="no data", hint=hint)
    given = [key for key in ("alpha", "theta") if key in shuffler]
    if len(given) != 1:
        hint = (
            "alpha limits what the order reveals, theta = alpha / sensitivity." if given else "For example alpha = 4.0."
        )
        value = "both" if given else "neither"
        yield Problem(key="shuffler", rule="must have either alpha or theta", value=value, hint=hint)
    groups = shuffler.get("groups")
    if isinstance(groups, dict):
        yield from _groups(groups, population)
        if shuffler.get("reference") == "sweep" and "columns" not in groups:
            rule, hint = "needs groups from columns of numbers", 'Use "best", "rcm" or "bfs".'
            yield Problem(key="shuffler.reference", rule=rule, value='"sweep"', hint=hint)


def _groups(groups: Mapping[str, Any], population: Mapping[str, Any]) -> Iterator[Problem]:
    here = "shuffler.groups"
    sources = [key for key in _KEYS if key in groups]
    if len(sources) != 1:
        value = " and ".join(sources) or "none of them"
        yield Problem(key=here, rule="must have one of columns, column or edges", value=value)
    for key, partner in _GOES_WITH.items():
        if key in groups and partner not in groups:
            yield Problem(key=f"{here}.{key}", rule=f"must come with {partner}", value=f"no {partner}")
    if "columns" in groups and ("radius" in groups) == ("nearest" in groups):
        value = "both" if "radius" in groups else "neither"
        yield Problem(key=here, rule="must have either radius or nearest with columns", value=value)
    if "edges" in groups and "steps" not in groups:
        yield Problem(key=f"{here}.steps", rule="must be given with edges", value="nothing", hint="For example 1.")
    columns = _columns(groups)
    if groups.get("metric") == "great-circle" and columns and len(columns) != 2:
        hint = "The first column is the latitude, the second the longitude, in degrees."
        rule = "must list two columns for the great-circle metric"
        yield Problem(key=f"{here}.columns", rule=rule, value=f"{len(columns)}", hint=hint)
    if len(set(columns)) < len(columns):
        yield Problem(key=f"{here}.columns", rule="must be distinct", value="one twice")
    private = population.get("column")
    for key, names in (("columns", columns), ("column", [groups.get("column")]), ("id", [groups.get("id")])):
        if private is not None and private in names:
            hint = "The order is public, and would reveal the values of this column."
            rule = "must be public, and not the private column"
            yield Problem(key=f"{here}.{key}", rule=rule, value=f'"{private}"', hint=hint)


def _adversary(adversary: Mapping[str, Any], raw: Mapping[str, Any], here: str) -> Iterator[Problem]:
    shuffler, population = table_in(raw, "shuffler"), table_in(raw, "population")
    if shuffler.get("kind") != "mallows":
        rule = 'is allowed only if [shuffler] kind = "mallows"'
        hint = "Other shufflers reveal nothing about the order, or reveal it completely."
        yield Problem(key=f"{here}.kind", rule=rule, value='"order"', hint=hint)
        return
    attack = adversary.get("attack")
    if not isinstance(attack, dict):
        return
    if "radius" in attack and "columns" not in table_in(shuffler, "groups"):
        hint = "Without columns of numbers, the neighbourhood of a person is the person's group."
        rule = "is allowed only if groups are made from columns of numbers"
        yield Problem(key=f"{here}.attack.radius", rule=rule, value=f"{attack['radius']}", hint=hint)
    private = population.get("column")
    if private is not None and attack.get("column") == private:
        rule = "must be a column other than the private column"
        yield Problem(key=f"{here}.attack.column", rule=rule, value=f'"{private}"')
    if not _reports_values(raw):
        rule = 'is allowed only if [randomizer] kind = "randomized-response"'
        hint = "The attack takes a majority vote of the values that people report."
        yield Problem(key=f"{here}.attack", rule=rule, value="a table", hint=hint)


def _map(raw: Mapping[str, Any]) -> Iterator[Problem]:
    shuffler = table_in(raw, "shuffler")
    drawn = len(_columns(table_in(shuffler, "groups"))) == 2
    if shuffler.get("kind") != "mallows" or not drawn or not _reports_values(raw):
        rule = "is allowed only with randomized response and a Mallows shuffle whose groups come from two columns"
        yield Problem(key="run.show_people", rule=rule, value="true")


def _reports_values(raw: Mapping[str, Any]) -> bool:
    return table_in(raw, "randomizer").get("kind") == "randomized-response"


def _columns(groups: Mapping[str, Any]) -> list[Any]:
    columns = groups.get("columns")
    return [name for name in columns if isinstance(name, str)] if isinstance(columns, list | tuple) else []
