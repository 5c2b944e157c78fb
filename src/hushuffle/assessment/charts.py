"""The deployment at other sizes and other noise: the charts of an assessment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hushuffle.assessment.findings import Questions, hides_senders
from hushuffle.estimation import predicted_standard_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Chart, Series
from hushuffle.questions import dp
from hushuffle.questions.dp.calibration import with_local_epsilon

_LARGEST = 10**9
_TIMES = tuple(10 ** (half / 2) for half in range(-4, 5))
_NOISES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0)


def privacy_charts(
    questions: Questions, protocol: Protocol, *, delta: float, central: Bound | None = None
) -> tuple[Chart, ...]:
    """Return privacy against n and against epsilon_0, and accuracy against epsilon_0 (buckets fixed).

    `central`: the deployment's own epsilon, where it is known; its point is drawn from it.
    """
    ask = questions.ask
    noisy = math.isfinite(protocol.randomizer.local_epsilon)
    # A noisy order and a cap belong to these people: there is none for others.
    sized = protocol.shuffler.reveals is Reveals.MULTISET
    charts: list[Chart | None] = []
    if noisy and sized:
        charts.append(
            ask(
                "privacy-against-people",
                "The chart of privacy against the number of people",
                lambda: _against_people(protocol, delta, central),
            )
        )
    own = protocol.randomizer.chosen_epsilon
    if own is not None:
        noises = sorted({*_NOISES, own}) if noisy else list(_NOISES)
        variants = [with_local_epsilon(protocol, noise) for noise in noises]
        here = own if noisy else None
        charts += [
            ask(
                "privacy-against-noise",
                "The chart of privacy against the noise on each device",
                lambda: _against_noise(variants, noises, delta, here, central),
            ),
            ask(
                "accuracy-against-noise",
                "The chart of accuracy against the noise on each device",
                lambda: _accuracy(variants, noises, here),
            ),
        ]
    return tuple(chart for chart in charts if chart is not None)


def _against_people(protocol: Protocol, delta: float, own: Bound | None) -> Chart:
    sizes = sorted({min(max(2, round(protocol.n * times)), _LARGEST) for times in _TIMES} | {protocol.n})
    central = _band(sizes, [replace(protocol, n=n) for n in sizes], delta, here=protocol.n, own=own)
    local = protocol.randomizer.local_epsilon
    return Chart(
        key="privacy-against-people",
        title="Privacy against the number of people",
        caption=f"More people hide each one better: epsilon at delta = {delta:g}, smaller is more private.",
        x_label="people",
        y_label="epsilon (nats)",
        series=(central, _flat("with the sender known", sizes, local)),
        x_log=True,
        y_log=True,
        here=float(protocol.n),
    )


def _against_noise(
    variants: Sequence[Protocol], noises: Sequence[float], delta: float, here: float | None, own: Bound | None
) -> Chart:
    released = _band(noises, variants, delta, here=here, own=own)
    known = Series.through("with the sender known", noises, noises)
    series = (released, known) if hides_senders(variants[0]) else (known,)
    return Chart(
        key="privacy-against-noise",
        title="Privacy against the noise on each device",
        caption=f"Less noise (larger local epsilon) protects less: epsilon at delta = {delta:g} for this many people.",
        x_label="local epsilon of one report (nats)",
        y_label="epsilon (nats)",
        series=series,
        y_log=True,
        here=here,
    )


def _accuracy(variants: Sequence[Protocol], noises: Sequence[float], here: float | None) -> Chart:
    worst = [float(predicted_standard_error(variant, frequency=np.array([0.0, 1.0])).max()) for variant in variants]
    # As the noise, so the best number of buckets: the deployment's own is kept.
    kept = variants[0].randomizer.besides_epsilon
    fixed = f" The {kept} stays the same." if kept else ""
    line = Series.through("standard error", noises, worst)
    return Chart(
        key="accuracy-against-noise",
        title="Accuracy against the noise on each device",
        caption="What the noise costs: predicted standard error of an estimated share, at the worst true share."
        + fixed,
        x_label="local epsilon of one report (nats)",
        y_label="standard error of a share",
        series=(line,),
        y_log=True,
        here=here,
    )


def _band(
    x: Sequence[float], protocols: Sequence[Protocol], delta: float, *, here: float | None, own: Bound | None
) -> Series:
    """Return epsilon of the release against x; at `here` it is `own`, if that is known."""
    asked = zip(x, protocols, strict=True)
    figures = (own if own is not None and at == here else dp.epsilon(one, delta=delta) for at, one in asked)
    return Series.through("released, after the shuffler", x, figures)


def _flat(label: str, x: Sequence[float], value: float) -> Series:
    return Series.through(label, x, [value] * len(x))
