"""Pictures of a linkage attack."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from hushuffle.attacks.results import Outcome, Try, headline
from hushuffle.model import Bound, Chart, Series

_POINTS: Final = 60


def charts(found: Sequence[Outcome]) -> tuple[Chart, ...]:
    """Return the error against each quantity of which more than one was tried, and false accepts against rejects."""
    drawn = [
        _chart(
            found,
            key="error-by-epsilon",
            title="Noise against identification",
            caption="How often the attacker is wrong: measured, with its interval, above what is certified.",
            x_label="epsilon of one report",
            x=lambda tried: tried.randomizer.epsilon,
            name=lambda tried: f"{_mechanism(tried)}, {_size(tried)}",
            certified=True,
        ),
        _chart(
            found,
            key="error-by-known",
            title="What the attacker knows",
            caption="How often the attacker is wrong, by how many past events of each person are known.",
            x_label="events known of each person",
            x=lambda tried: math.inf if tried.known is None else tried.known,
            name=lambda tried: f"{_noise(tried)}, {tried.events} reported",
        ),
        _chart(
            found,
            key="error-by-events",
            title="What people report",
            caption="How often the attacker is wrong, by how many events each person reports.",
            x_label="events reported by each person",
            x=lambda tried: math.inf if tried.events == "all" else tried.events,
            name=lambda tried: f"{_noise(tried)}, {_known(tried)}",
        ),
    ]
    return (*(chart for chart in drawn if chart is not None), _detection(headline(found)))


def _detection(found: Sequence[Outcome]) -> Chart:
    """Return the detection error tradeoff: for every threshold, who is wrongly accepted and who is missed."""
    series = []
    for one in found:
        accept, reject = one.detection.false_accept, one.detection.false_reject
        wanted = np.geomspace(accept[accept > 0].min(), 1.0, _POINTS)
        shown = np.unique(np.searchsorted(accept, wanted, side="right") - 1)
        places, missed = tuple(accept[shown].tolist()), tuple(reject[shown].tolist())
        series.append(Series.through(_noise(one.tried), places, missed))
    return Chart(
        key="detection",
        title="Is this report of this person?",
        caption="Whoever accepts more wrong pairs of person and report misses fewer right ones: lower is easier.",
        x_label="false accept rate",
        y_label="false reject rate",
        series=tuple(series),
        x_log=True,
    )


def _chart(
    found: Sequence[Outcome],
    *,
    key: str,
    title: str,
    caption: str,
    x_label: str,
    x: Callable[[Try], float],
    name: Callable[[Try], str],
    certified: bool = False,
) -> Chart | None:
    """Return a line for each `name`; None unless two finite values of `x` were tried."""
    shown = sorted((one for one in found if math.isfinite(x(one.tried))), key=lambda one: x(one.tried))
    if len({x(one.tried) for one in shown}) < 2:
        return None
    names = list(dict.fromkeys(name(one.tried) for one in shown))
    series = []
    for label in names:
        mine = [one for one in shown if name(one.tried) == label]
        places = tuple(x(one.tried) for one in mine)
        series.append(Series.through(f"measured: {label}", places, [one.error for one in mine]))
        if certified:
            least = [one.least for one in mine]
            series.append(
                Series.through(f"certified: {label}", places, [Bound.exact(b.lower, unit=b.unit) for b in least])
            )
    return Chart(
        key=key, title=title, caption=caption, x_label=x_label, y_label="identification error", series=tuple(series)
    )


def _mechanism(tried: Try) -> str:
    return tried.mechanism.partition(" (")[0]


def _noise(tried: Try) -> str:
    epsilon = tried.randomizer.epsilon
    return tried.mechanism if math.isinf(epsilon) else f"{_mechanism(tried)} at {epsilon:g}"


def _known(tried: Try) -> str:
    return "all known" if tried.known is None else f"{tried.known} known"


def _size(tried: Try) -> str:
    return f"{_known(tried)}, {tried.events} reported"
