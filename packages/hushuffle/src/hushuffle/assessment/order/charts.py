"""Pictures about a Mallows shuffle: charts for other alpha and other groups, and maps for the data holder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from hushuffle.assessment.order.findings import uniform_mean
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import NoShuffle, UniformShuffle
from hushuffle.model import Chart, Groups, Panel, PointMap, Series
from hushuffle.randomness import Randomness
from hushuffle.specification import order as asked
from hushuffle.specification.order_setup import Arrangement

Size = TypeVar("Size", int, float)

_ALPHAS: Final = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 50.0)
_RADII: Final = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
_MOST_MEMBERSHIPS: Final = 4_000_000
_MANY: Final = 100_000
MOST_SHOWN: Final = 10_000
"""The largest number of people on a map. If there are more, the map shows an evenly spaced selection."""


def order_charts(arrangement: Arrangement, *, asked_for: asked.Groups, rng: Randomness) -> tuple[Chart, ...]:
    """Displacement against alpha and, for groups of near people, alpha against the radius."""
    charts = [_displacement(arrangement, rng)]
    if radius := asked_for.radius:
        # Large radii only if memory suffices.
        members = arrangement.groups.members.size
        factors = [factor for factor in _RADII if factor <= 1 or members * factor**3 <= _MOST_MEMBERSHIPS]
        radii = [factor * radius for factor in factors]
        charts.append(_others("radius", radii, _alphas(arrangement, radii, radius, arrangement.within), here=radius))
    if size := asked_for.nearest:
        n = arrangement.n
        sizes = sorted({2, *(max(2, size // part) for part in (4, 2, 1)), *(size * times for times in (2, 4))})
        sizes = [other for other in sizes if other <= size or (other <= n and other * n <= _MOST_MEMBERSHIPS)]
        alphas = _alphas(arrangement, sizes, size, arrangement.nearest)
        charts.append(_others("people in a group", sizes, alphas, here=size))
    return tuple(charts)


def _displacement(arrangement: Arrangement, rng: Randomness) -> Chart:
    here, n, exact, published = arrangement.alpha.upper, arrangement.n, arrangement.sensitivity, arrangement.published
    alphas, samples = sorted({*_ALPHAS, here}), 5 if n <= _MANY else 2
    shuffles = {"exact sensitivity": exact}
    if published is not None and published > exact:
        shuffles["published sensitivity"] = published
    series = [
        Series.through(
            label,
            alphas,
            [
                arrangement.displacement(alpha / sensitivity, samples=samples, confidence=0.95, rng=rng).mean
                for alpha in alphas
            ],
        )
        for label, sensitivity in shuffles.items()
    ]
    caption = "A smaller alpha moves reports farther, up to a uniform shuffle, and less can be learned about places."
    if len(series) > 1:
        caption += (
            " At the same alpha, a shuffle with the exact sensitivity moves reports less than with the published one."
        )
    return Chart(
        key="displacement-against-alpha",
        title="Displacement of reports against alpha",
        caption=caption,
        x_label="alpha (nats)",
        y_label="places that a report moves, mean",
        series=(*series, Series.through("uniform shuffle", alphas, (uniform_mean(n),) * len(alphas))),
        x_log=True,
        y_log=True,
        here=here,
    )


def _alphas(
    arrangement: Arrangement, sizes: Sequence[Size], own: Size, grouped: Callable[[Size], Groups]
) -> list[float]:
    """Alpha of the same shuffle for groups of other sizes; `own` is the size of its groups."""
    return [arrangement.alpha_of(arrangement.groups if size == own else grouped(size)).upper for size in sizes]


def _others(label: str, x: Sequence[float], alphas: Sequence[float], *, here: float) -> Chart:
    return Chart(
        key="alpha-against-groups",
        title="Alpha of the same shuffle, for smaller and larger groups",
        caption="Exact alpha against the radius of the groups: people near each other are the hardest to distinguish.",
        x_label=label,
        y_label="alpha (nats)",
        series=(Series.through("this shuffle", x, alphas),),
        y_log=min(alphas) > 0,
        here=float(here),
    )


def people_map(
    protocol: Protocol,
    arrangement: Arrangement,
    *,
    values: npt.NDArray[np.int64],
    labels: tuple[str, ...],
    rng: Randomness,
) -> PointMap:
    """Four maps of the people: true values, reports, and the reports that two shuffles release in their place.

    The groups are made from two columns. With the great-circle metric, the first column is the latitude and points up.

    Source: Meehan et al. 2022, figure 1.
    """
    places, names, n = arrangement.places, arrangement.names, protocol.n
    assert places is not None
    shown = np.arange(min(n, MOST_SHOWN)) * n // min(n, MOST_SHOWN)
    sphere = arrangement.metric == "great-circle"
    across, up = (1, 0) if sphere else (0, 1)
    x, y = (tuple(places[shown, axis].tolist()) for axis in (across, up))
    pictures = (
        ("true values", values),
        ("reports, with their senders", _released(replace(protocol, shuffler=NoShuffle()), values, rng)),
        ("released by this shuffle", _released(protocol, values, rng)),
        ("released by a uniform shuffle", _released(replace(protocol, shuffler=UniformShuffle()), values, rng)),
    )
    more = f" {shown.size:,} of {n:,} people, evenly chosen." if shown.size < n else ""
    return PointMap(
        key="people",
        title="What a release shows of places",
        caption=f"Each dot is a person's place. Its colour is the value that one run released at this place.{more}",
        x_label=names[across],
        y_label=names[up],
        labels=labels,
        panels=tuple(Panel(label=label, x=x, y=y, values=tuple(seen[shown].tolist())) for label, seen in pictures),
    )


def _released(protocol: Protocol, values: npt.NDArray[np.int64], rng: Randomness) -> npt.NDArray[np.int64]:
    return protocol.collect(values, rng=rng).reports
