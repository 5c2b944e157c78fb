"""Everybody's place, coloured by true, reported and released values: for whoever holds the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import NoShuffle, UniformShuffle
from hushuffle.model import Panel, PointMap
from hushuffle.randomness import Randomness
from hushuffle.specification.order_setup import Arrangement

MOST: Final = 10_000
"""So many people are shown at most, evenly chosen."""


def people_map(
    protocol: Protocol,
    arrangement: Arrangement,
    *,
    values: npt.NDArray[np.int64],
    labels: tuple[str, ...],
    rng: Randomness,
) -> PointMap:
    """Return four pictures of the people: true values, reports, and what two shuffles release in their places.

    The groups are made from two columns; with the great-circle metric the first, the latitude, points up.

    Source: Meehan et al. 2022, figure 1.
    """
    assert arrangement.places is not None
    n = protocol.n
    shown = np.arange(min(n, MOST)) * n // min(n, MOST)
    sphere = arrangement.metric == "great-circle"
    across, up = (1, 0) if sphere else (0, 1)
    x, y = (tuple(arrangement.places[shown, axis].tolist()) for axis in (across, up))
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
        caption=f"Everybody at their own place, in the colour of what the release says there; one run.{more}",
        x_label=arrangement.names[across],
        y_label=arrangement.names[up],
        labels=labels,
        panels=tuple(Panel(label=label, x=x, y=y, values=tuple(seen[shown].tolist())) for label, seen in pictures),
    )


def _released(protocol: Protocol, values: npt.NDArray[np.int64], rng: Randomness) -> npt.NDArray[np.int64]:
    return protocol.collect(values, rng=rng).reports
