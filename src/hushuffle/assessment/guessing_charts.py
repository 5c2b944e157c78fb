"""Guessing against the number of people: when noise matters, and when shuffling alone is enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from hushuffle.assessment.findings import Questions
from hushuffle.mechanisms.adversaries import Informed, Strong, Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Chart, Series
from hushuffle.questions import qif

_LARGEST = 10**6
"""Most people on a chart: beyond, a figure may take a second."""


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
    if law is None or protocol.shuffler.reveals is not Reveals.MULTISET:
        return ()
    largest = min(10 * protocol.n, _LARGEST)
    sizes = sorted({max(2, round(largest / 10 ** (half / 2))) for half in range(7)})
    charts: list[Chart | None] = []
    truth = float(law.truth)
    if law.lie > 0:
        topic = "The chart of what noise and shuffling each do"
        charts.append(questions.ask("guessing-by-mechanism", topic, lambda: _by_mechanism(protocol, sizes, truth)))
    topic = "The chart of guessers who know more and more"
    charts.append(questions.ask("guessing-by-knowledge", topic, lambda: _by_knowledge(protocol, sizes)))
    return tuple(chart for chart in charts if chart is not None)


def _by_mechanism(protocol: Protocol, sizes: Sequence[int], truth: float) -> Chart:
    """Return noise, shuffle, and both, for a guesser who knows nobody."""
    open_answers = RandomizedResponse(k=protocol.randomizer.inputs, epsilon=math.inf)
    bare = replace(protocol, randomizer=open_answers)
    return Chart(
        key="guessing-by-mechanism",
        title="What noise and shuffling each do",
        caption=(
            f"Somebody who knows nobody's answer guesses yours: right {1 / protocol.randomizer.inputs:.4g} of the "
            "time without a release. Shuffling helps the more, the more people there are; noise helps the same."
        ),
        x_label="people",
        y_label="probability of a right guess",
        series=(
            _line("noise alone", sizes, lambda _: Bound.exact(truth, unit="probability")),
            _line(
                "shuffle alone", sizes, lambda n: qif.quick_vulnerability(replace(bare, n=n), adversary=Uninformed())
            ),
            _line(
                "noise and shuffle",
                sizes,
                lambda n: qif.quick_vulnerability(replace(protocol, n=n), adversary=Uninformed()),
            ),
        ),
        x_log=True,
        here=_here(protocol, sizes),
    )


def _by_knowledge(protocol: Protocol, sizes: Sequence[int]) -> Chart:
    """Return this deployment for guessers who know nobody, a tenth of the others, and all of them."""

    def knowing(guesser: Callable[[int], Informed | Strong | Uninformed]) -> Callable[[int], Bound]:
        return lambda n: qif.quick_vulnerability(replace(protocol, n=n), adversary=guesser(n))

    return Chart(
        key="guessing-by-knowledge",
        title="When noise matters, and when shuffling alone is enough",
        caption=(
            "The same deployment for guessers who know more and more (worst case over what the others answered). "
            "Without noise, whoever knows everybody else's answer is always right: there only noise helps."
        ),
        x_label="people",
        y_label="probability of a right guess",
        series=(
            _line("knows nobody's answer", sizes, knowing(lambda _: Uninformed())),
            _line("knows one in ten", sizes, knowing(lambda n: Informed(m=n // 10))),
            _line("knows everybody else's", sizes, knowing(lambda _: Strong())),
        ),
        x_log=True,
        here=_here(protocol, sizes),
    )


def _here(protocol: Protocol, sizes: Sequence[int]) -> float | None:
    """Return the deployment's n if it is on the chart."""
    return float(protocol.n) if protocol.n <= sizes[-1] else None


def _line(label: str, sizes: Sequence[int], figure: Callable[[int], Bound]) -> Series:
    return Series.through(label, sizes, (figure(n) for n in sizes))
