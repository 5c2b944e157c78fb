"""The charts of an assessment: privacy, accuracy and guessing against the number of people and the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from hushuffle.assessment.findings import Questions
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
from hushuffle.specification.exposure import ONCE, Exposure

_LARGEST = 10**9
_MOST_GUESSED = 10**6
"""The largest number of people on charts of guessing: above it, one figure may take a second to compute."""
VISIBLE = 0.004
"""Relative width of the brackets of epsilon on charts."""
_TIMES = tuple(10 ** (half / 2) for half in range(-4, 5))
_NOISES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0)


def privacy_charts(
    questions: Questions, protocol: Protocol, *, delta: float, central: Bound | None = None, exposure: Exposure = ONCE
) -> tuple[Chart, ...]:
    """Charts of central epsilon against n and against epsilon_0, and of the standard error against epsilon_0.

    The number of buckets is fixed. `central` is the deployment's own central epsilon, if it is already computed.
    """
    ask = questions.ask
    noisy = math.isfinite(protocol.randomizer.local_epsilon)
    # A noisy order and a cap are defined for these people only: there is no figure for another n.
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
        topic = "The charts of privacy and accuracy against the number of messages"
        both = ask("against-messages", topic, lambda: message_charts(protocol, delta=delta, exposure=exposure))
        return both or ()
    own = protocol.randomizer.chosen_epsilon
    if own is not None and protocol.shuffler.value_law is None:  # dummies of each value exclude noise
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
        caption=f"Epsilon at delta = {delta:g} falls as the number of people grows; smaller is more private.",
        x_label="people" if exposure.reports == 1 else "reports of all people",
        y_label="epsilon (nats)",
        series=(central, Series.through("unshuffled", sizes, [local] * len(sizes))),
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
    unshuffled = Series.through("unshuffled", noises, [exposure.total * noise for noise in noises])
    series = (released, unshuffled) if variants[0].reveals is not Reveals.SENDERS else (unshuffled,)
    return Chart(
        key="privacy-against-noise",
        title="Privacy against the noise on each device",
        caption=f"Epsilon at delta = {delta:g} grows with the local epsilon, that is with less noise.",
        x_label="local epsilon of one report (nats)",
        y_label="epsilon (nats)",
        series=series,
        y_log=True,
        here=here,
    )


def _accuracy(variants: Sequence[Protocol], noises: Sequence[float], here: float | None) -> Chart:
    worst = [float(predicted_standard_error(variant, frequency=np.array([0.0, 1.0])).max()) for variant in variants]
    # The best number of buckets depends on the noise; the deployment's own number is used throughout.
    settings = variants[0].randomizer.besides_epsilon
    fixed = f" The {settings} stays the same." if settings else ""
    line = Series.through("standard error", noises, worst)
    return Chart(
        key="accuracy-against-noise",
        title="Accuracy against the noise on each device",
        caption="Predicted standard error of an estimated share, at the worst true share." + fixed,
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
    """Central epsilon against x; at x = `here` the figure is `own`, if given."""
    figures = (
        own if own is not None and at == here else exposure.epsilon(protocol, delta=delta, tolerance=VISIBLE)
        for at, protocol in zip(x, protocols, strict=True)
    )
    return Series.through("released, after the shuffler", x, figures)


def guessing_charts(questions: Questions, protocol: Protocol) -> tuple[Chart, ...]:
    """Charts of an adversary's success probability against n, by mechanism and by adversary's knowledge.

    Empty if the randomizer treats values differently, or if the release shows the senders. Takes about a second for up
    to 10 values and 10**5 people.

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

    @cache  # used by each of the two charts
    def uninformed(n: int) -> Bound:
        return qif.quick_vulnerability(replace(protocol, n=n), adversary=Uninformed())

    if law.lie > 0:
        topic = "The chart of guessing with noise only and with shuffling only"
        mechanism = partial(_by_mechanism, protocol, sizes, truth, uninformed)
        charts.append(questions.ask("guessing-by-mechanism", topic, mechanism))
    topic = "The chart of guessing by the adversary's knowledge"
    charts.append(questions.ask("guessing-by-knowledge", topic, partial(_by_knowledge, protocol, sizes, uninformed)))
    return tuple(chart for chart in charts if chart is not None)


def _by_mechanism(protocol: Protocol, sizes: Sequence[int], truth: float, uninformed: Callable[[int], Bound]) -> Chart:
    """Success of an uninformed adversary against n, with noise only, with shuffling only, with both."""
    open_answers = RandomizedResponse(k=protocol.randomizer.inputs, epsilon=math.inf)
    bare = replace(protocol, randomizer=open_answers)
    return Chart(
        key="guessing-by-mechanism",
        title="Success of a guess with noise only, with shuffling only, and with both",
        caption=(
            "An adversary who knows no answer guesses yours. Without the release the guess is right "
            f"{percent(1 / protocol.randomizer.inputs)} of the time. Shuffling protects more as the number of people "
            "grows; the protection of noise does not depend on it."
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
    """Success of adversaries who know none, a tenth or all of the other answers, against n."""

    def knowing(adversary: Callable[[int], Informed | Strong]) -> Callable[[int], Bound]:
        return lambda n: qif.quick_vulnerability(replace(protocol, n=n), adversary=adversary(n))

    return Chart(
        key="guessing-by-knowledge",
        title="Success of a guess, for adversaries with more and less knowledge",
        caption=(
            "Adversaries guess one person's answer. They know none, a tenth or all of the other answers (worst case). "
            "Without noise or dummies, an adversary who knows all other answers is always right."
        ),
        x_label="people",
        y_label="probability of a right guess",
        series=(
            _guessed("knows no answer", sizes, uninformed),
            _guessed("knows one answer in ten", sizes, knowing(lambda n: Informed(m=n // 10))),
            _guessed("knows all other answers", sizes, knowing(lambda _: Strong())),
        ),
        x_log=True,
        here=_here(protocol, sizes),
    )


def _here(protocol: Protocol, sizes: Sequence[int]) -> float | None:
    """The deployment's n if it is within the range of the chart, else None."""
    return float(protocol.n) if protocol.n <= sizes[-1] else None


def _guessed(label: str, sizes: Sequence[int], figure: Callable[[int], Bound]) -> Series:
    return Series.through(label, sizes, (figure(n) for n in sizes))
