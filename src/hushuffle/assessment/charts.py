"""The charts of an assessment: other sizes and other noise, and guessing against the number of people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from hushuffle.assessment.exposure import ONCE, Exposure
from hushuffle.assessment.findings import Questions, hides_senders
from hushuffle.assessment.messages import message_charts, sends_more
from hushuffle.estimation import predicted_standard_error
from hushuffle.mechanisms.adversaries import Informed, Strong, Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Chart, Series
from hushuffle.model.bound import percent
from hushuffle.questions import qif
from hushuffle.questions.dp.calibration import with_local_epsilon

_LARGEST = 10**9
_MOST_GUESSED = 10**6
"""Most people on a chart of guessing: beyond, a figure may take a second."""
_TIMES = tuple(10 ** (half / 2) for half in range(-4, 5))
_NOISES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0)


def privacy_charts(
    questions: Questions,
    protocol: Protocol,
    *,
    delta: float,
    central: Bound | None = None,
    exposure: Exposure = ONCE,
) -> tuple[Chart, ...]:
    """Return privacy against n and against epsilon_0, and accuracy against epsilon_0 (buckets fixed).

    Privacy is that of all that one person gives. `central`: the deployment's own epsilon, where it is known; its point
    is drawn from it.
    """
    ask = questions.ask
    noisy = math.isfinite(protocol.randomizer.local_epsilon)
    # A noisy order and a cap belong to these people: there is none for others.
    sized = protocol.reveals in (Reveals.MULTISET, Reveals.SUMS)
    charts: list[Chart | None] = []
    if noisy and sized:
        charts.append(
            ask(
                "privacy-against-people",
                "The chart of privacy against the number of people",
                lambda: _against_people(protocol, delta, central, exposure),
            )
        )
    if not noisy and sends_more(protocol):
        topic = "The charts of privacy and accuracy against people's messages"
        both = ask("against-messages", topic, lambda: message_charts(protocol, delta=delta, exposure=exposure))
        return both or ()
    own = protocol.randomizer.chosen_epsilon
    if own is not None and protocol.shuffler.value_law is None:  # else noise does not go with it
        noises = sorted({*_NOISES, own}) if noisy else list(_NOISES)
        variants = [with_local_epsilon(protocol, noise) for noise in noises]
        here = own if noisy else None
        charts += [
            ask(
                "privacy-against-noise",
                "The chart of privacy against the noise on each device",
                lambda: _against_noise(variants, noises, delta, here, central, exposure),
            ),
            ask(
                "accuracy-against-noise",
                "The chart of accuracy against the noise on each device",
                lambda: _accuracy(variants, noises, here),
            ),
        ]
    return tuple(chart for chart in charts if chart is not None)


def _against_people(protocol: Protocol, delta: float, own: Bound | None, exposure: Exposure) -> Chart:
    sizes = sorted({min(max(2, round(protocol.n * times)), _LARGEST) for times in _TIMES} | {protocol.n})
    protocols = [replace(protocol, n=n) for n in sizes]
    central = _band(sizes, protocols, delta, here=protocol.n, own=own, exposure=exposure)
    local = exposure.total * protocol.randomizer.local_epsilon
    return Chart(
        key="privacy-against-people",
        title="Privacy against the number of people",
        caption=f"More people hide each one better: epsilon at delta = {delta:g}, smaller is more private.",
        x_label="people" if exposure.reports == 1 else "reports of all people",
        y_label="epsilon (nats)",
        series=(central, _flat("with the sender known", sizes, local)),
        x_log=True,
        y_log=True,
        here=float(protocol.n),
    )


def _against_noise(
    variants: Sequence[Protocol],
    noises: Sequence[float],
    delta: float,
    here: float | None,
    own: Bound | None,
    exposure: Exposure,
) -> Chart:
    released = _band(noises, variants, delta, here=here, own=own, exposure=exposure)
    known = Series.through("with the sender known", noises, [exposure.total * noise for noise in noises])
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
    x: Sequence[float],
    protocols: Sequence[Protocol],
    delta: float,
    *,
    here: float | None,
    own: Bound | None,
    exposure: Exposure,
) -> Series:
    """Return epsilon of the release against x; at `here` it is `own`, if that is known."""
    asked = zip(x, protocols, strict=True)
    figures = (own if own is not None and at == here else exposure.epsilon(one, delta=delta) for at, one in asked)
    return Series.through("released, after the shuffler", x, figures)


def _flat(label: str, x: Sequence[float], value: float) -> Series:
    return Series.through(label, x, [value] * len(x))


def guessing_charts(questions: Questions, protocol: Protocol) -> tuple[Chart, ...]:
    """Return how often a guesser is right against n, by mechanism and by what the guesser knows.

    Nothing for a randomizer that treats values differently, or a release that says who sent what. About
    a second for up to 10 values and 10**5 people.

    >>> from hushuffle.mechanisms.shufflers import UniformShuffle
    >>> survey = Protocol(randomizer=RandomizedResponse(k=2, epsilon=2.0), shuffler=UniformShuffle(), n=1000)
    >>> [chart.key for chart in guessing_charts(Questions(), survey)]
    ['guessing-by-mechanism', 'guessing-by-knowledge']
    """
    law = protocol.randomizer.law().symmetric
    if law is None or protocol.reveals is not Reveals.MULTISET:
        return ()
    largest = min(10 * protocol.n, _MOST_GUESSED)
    sizes = sorted({max(2, round(largest / 10 ** (half / 2))) for half in range(7)})
    charts: list[Chart | None] = []
    truth = float(law.truth)

    @cache  # on both charts
    def uninformed(n: int) -> Bound:
        return qif.quick_vulnerability(replace(protocol, n=n), adversary=Uninformed())

    if law.lie > 0:
        topic = "The chart of what noise and shuffling each do"
        mechanism = partial(_by_mechanism, protocol, sizes, truth, uninformed)
        charts.append(questions.ask("guessing-by-mechanism", topic, mechanism))
    topic = "The chart of guessers who know more and more"
    charts.append(questions.ask("guessing-by-knowledge", topic, partial(_by_knowledge, protocol, sizes, uninformed)))
    return tuple(chart for chart in charts if chart is not None)


def _by_mechanism(protocol: Protocol, sizes: Sequence[int], truth: float, uninformed: Callable[[int], Bound]) -> Chart:
    """Return noise, shuffle, and both, for a guesser who knows nobody."""
    open_answers = RandomizedResponse(k=protocol.randomizer.inputs, epsilon=math.inf)
    bare = replace(protocol, randomizer=open_answers)
    return Chart(
        key="guessing-by-mechanism",
        title="What noise and shuffling each do",
        caption=(
            "Somebody who knows nobody's answer guesses yours. Without the release this guesser is right "
            f"{percent(1 / protocol.randomizer.inputs)} of the time. Shuffling protects more as the number of people "
            "grows; noise does not depend on it."
        ),
        x_label="people",
        y_label="probability of a right guess",
        series=(
            _guessed("noise alone", sizes, lambda _: Bound.exact(truth, unit="probability")),
            _guessed(
                "shuffle alone", sizes, lambda n: qif.quick_vulnerability(replace(bare, n=n), adversary=Uninformed())
            ),
            _guessed("noise and shuffle", sizes, uninformed),
        ),
        x_log=True,
        here=_here(protocol, sizes),
    )


def _by_knowledge(protocol: Protocol, sizes: Sequence[int], uninformed: Callable[[int], Bound]) -> Chart:
    """Return this deployment for guessers who know nobody, a tenth of the others, and all of them."""

    def knowing(guesser: Callable[[int], Informed | Strong]) -> Callable[[int], Bound]:
        return lambda n: qif.quick_vulnerability(replace(protocol, n=n), adversary=guesser(n))

    return Chart(
        key="guessing-by-knowledge",
        title="When noise matters, and when shuffling alone is enough",
        caption=(
            "The same deployment for guessers who know more and more (worst case over what the others answered). "
            "Without noise or dummies, whoever knows everybody else's answer is always right."
        ),
        x_label="people",
        y_label="probability of a right guess",
        series=(
            _guessed("knows nobody's answer", sizes, uninformed),
            _guessed("knows one in ten", sizes, knowing(lambda n: Informed(m=n // 10))),
            _guessed("knows everybody else's", sizes, knowing(lambda _: Strong())),
        ),
        x_log=True,
        here=_here(protocol, sizes),
    )


def _here(protocol: Protocol, sizes: Sequence[int]) -> float | None:
    """Return the deployment's n if it is on the chart."""
    return float(protocol.n) if protocol.n <= sizes[-1] else None


def _guessed(label: str, sizes: Sequence[int], figure: Callable[[int], Bound]) -> Series:
    return Series.through(label, sizes, (figure(n) for n in sizes))
