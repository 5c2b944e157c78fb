"""Builds a Mallows shuffle from a specification: the groups, the public order, and the shuffler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.shufflers import MallowsShuffle
from hushuffle.model import Bound, Groups
from hushuffle.questions import order
from hushuffle.questions.order.displacement import Displacement
from hushuffle.questions.order.groups import Metric
from hushuffle.randomness import Randomness, reproducible, secure
from hushuffle.specification import People, Specification
from hushuffle.specification import order as asked
from hushuffle.specification._base import ShufflerSection, unfit
from hushuffle.tables.csv_form import CsvForm

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer[Any]]

_WHERE: Final = "specification, with these data"


@dataclass(frozen=True, kw_only=True, eq=False)
class Arrangement:
    """The groups, the public order and the shuffler of a Mallows shuffle.

    `places`, shape (n, d), are the public numbers from which groups are computed; None for labels (`labelled`) and
    graphs. `names` are the public columns. `alpha` is the exact guarantee in nats. `sensitivity` is that of the
    reference order, and `published` the paper's bound on it (None: no bound for this distance). `width` is the largest
    distance in ranks inside a group.
    """

    groups: Groups
    places: Floats | None = field(repr=False)
    names: tuple[str, ...]
    metric: Metric
    shuffler: MallowsShuffle
    alpha: Bound
    sensitivity: int
    published: int | None
    width: int
    labelled: bool = False

    @property
    def n(self) -> int:
        return self.groups.n

    @property
    def features(self) -> Floats | None:
        """Public features of each person for a learner, shape (n, d): places, or label numbers; None for graphs."""
        if self.places is not None or not self.labelled:
            return self.places
        assert self.groups.group_of is not None
        return self.groups.group_of[:, np.newaxis].astype(np.float64)

    def displacement(self, theta: float | None = None, **options: Any) -> Displacement:
        """Return how far the shuffle, or one with another theta, moves a report."""
        theta = self.shuffler.theta if theta is None else theta
        return order.displacement(n=self.n, theta=theta, distance=self.shuffler.distance, **options)

    def alpha_of(self, groups: Groups) -> Bound:
        """Return the exact alpha (nats) of the shuffle for other groups."""
        theta, reference, distance = self.shuffler.theta, self.shuffler.reference, self.shuffler.distance
        return order.alpha_for_theta(theta, reference=reference, groups=groups, distance=distance)

    def nearest(self, size: int) -> Groups:
        """Return the `size` people nearest to each person; only for groups from columns of numbers."""
        assert self.places is not None
        return order.nearest_groups(self.places, size, metric=self.metric)

    def within(self, radius: float) -> Groups:
        """Return the people within a radius of each person; only for groups from columns of numbers."""
        assert self.places is not None
        return order.radius_groups(self.places, radius, metric=self.metric)


@dataclass(frozen=True, kw_only=True)
class Source:
    people: People
    data: str
    base_folder: Path
    form: CsvForm | None

    @property
    def where(self) -> dict[str, Any]:
        return {"n": self.people.n, "kept": self.people.kept, "base_folder": self.base_folder, "form": self.form}

    @classmethod
    def of(cls, specification: Specification, people: People, base_folder: Path) -> Source:
        data, form = specification.population.files, specification.population.form
        assert data is not None  # a rule of the specification
        return cls(people=people, data=data, base_folder=base_folder, form=form)


def arranged(specification: Specification, people: People, base_folder: Path) -> Arrangement | None:
    """Return None for other shufflers, and for populations without data."""
    if specification.shuffler.kind != "mallows":
        return None
    return arrangement(specification.shuffler, Source.of(specification, people, base_folder))


def arrangement(section: ShufflerSection, source: Source, given: Callable[[], Integers] | None = None) -> Arrangement:
    """Return the arrangement of a Mallows shuffle; `given` reads a public order, which is otherwise computed.

    Source: docs/theory/order.md, Theorem 5.
    """
    from hushuffle.tables.published import load_numbers  # noqa: PLC0415 - Polars is for those who have files

    wanted = cast("asked.MallowsShuffle", section)
    metric, columns = wanted.groups.metric or "euclidean", wanted.groups.columns
    places = None if columns is None else load_numbers(source.data, columns, **source.where)
    groups = _groups(wanted.groups, source, places, metric, only_codes=given is not None)
    if int(groups.sizes.max()) < 2:
        hint = "Use a larger radius or coarser labels, so that groups have several people."
        unfit("shuffler.groups", "must put two people into one group", "one person in every group", hint, where=_WHERE)
    reference: Integers
    if given is None:
        line = order.on_sphere(places) if metric == "great-circle" and places is not None else places
        reference = order.reference_order(groups, line, method=wanted.reference)
    else:
        reference = given()
    theta = wanted.theta
    if theta is None:
        assert wanted.alpha is not None
        theta = order.theta_for_alpha(wanted.alpha, reference=reference, groups=groups, distance=wanted.distance)
    published = given is None and wanted.distance == "kendall"
    return Arrangement(
        groups=groups,
        places=places,
        names=(*wanted.groups.public, *([wanted.groups.edges] if wanted.groups.edges else [])),
        metric=metric,
        shuffler=wanted.shuffler(reference, theta),
        alpha=order.alpha_for_theta(theta, reference=reference, groups=groups, distance=wanted.distance),
        sensitivity=order.sensitivity(reference, groups, distance=wanted.distance),
        published=order.published_sensitivity(reference, groups) if published else None,
        width=order.width(reference, groups),
        labelled=wanted.groups.column is not None,
    )


def coins(seed: int | str) -> Randomness:
    return secure() if seed == "secure" else reproducible(int(seed))


def _groups(groups: asked.Groups, source: Source, places: Floats | None, metric: Metric, *, only_codes: bool) -> Groups:
    """Return the groups that the specification describes; with `only_codes` labels are numbered and never shown."""
    from hushuffle.tables import published as tables  # noqa: PLC0415 - Polars is for those who have files

    try:
        if groups.column is not None:
            load = tables.load_codes if only_codes else tables.load_labels
            return order.column_groups(load(source.data, groups.column, **source.where))
        if groups.edges is not None:
            assert groups.steps is not None
            return order.path_groups(_edges(groups, source), n=source.people.n, radius=groups.steps)
        assert places is not None
        if groups.radius is not None:
            return order.radius_groups(places, groups.radius, metric=metric)
        assert groups.nearest is not None
        return order.nearest_groups(places, groups.nearest, metric=metric)
    except InvalidInputError as error:
        problem = error.problem
        unfit("shuffler.groups", problem.rule, problem.value, problem.hint, where=_WHERE)


def _edges(groups: asked.Groups, source: Source) -> npt.NDArray[np.int64]:
    from hushuffle.tables import published as tables  # noqa: PLC0415 - Polars is for those who have files

    people, names = source.people, None
    assert groups.edges is not None
    if groups.id is not None:
        records = people.n if people.kept is None else people.kept.size
        names = tables.load_labels(source.data, groups.id, n=records, base_folder=source.base_folder, form=source.form)
    return tables.load_edges(groups.edges, n=people.n, names=names, kept=people.kept, base_folder=source.base_folder)
