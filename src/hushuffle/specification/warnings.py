"""Warnings of all commands: too little noise, a large delta, few people, and values that are not significant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from hushuffle.curves.readout import counted
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.estimation import predicted_standard_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Warned, number
from hushuffle.questions.dp.central import LARGE_EPSILON
from hushuffle.specification.kinds import RANDOMIZERS

SMALL_CROWD: Final = 100
LEVEL: Final = 0.05
"""Family-wise error rate of a list of statistically significant values."""

_ALIKE: Final = 1.1
"""Mechanisms whose standard errors differ by less than this factor count as equally accurate."""


def deployment_warnings(protocol: Protocol, *, delta: float, level: float = LEVEL) -> tuple[Warned, ...]:
    """Return the warnings that follow from the protocol and delta; assess, calibrate, collect and estimate show them.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.RandomizedResponse(k=1000, epsilon=6.0), shuffler=hs.UniformShuffle(), n=50_000
    ... )
    >>> [warned.key for warned in deployment_warnings(survey, delta=0.1)]
    ['large-local-epsilon', 'large-delta', 'rare-values-hidden']
    """
    return (*privacy_warnings(protocol, delta=delta), *accuracy_warnings(protocol, level=level))


def privacy_warnings(protocol: Protocol, *, delta: float, times: int = 1) -> Iterator[Warned]:
    """Yield warnings about the noise on each device, about delta and about the number of people.

    `times`: total number of reports of one person.
    """
    local = times * protocol.randomizer.local_epsilon
    if math.isinf(local) and protocol.randomizer.chosen_epsilon is None:
        yield Warned(
            key="impossible-reports",
            sentence="Some reports are impossible for some values: such a report rules these values out.",
            advice="Give every report a probability above 0 for every value.",
        )
    elif math.isinf(local) and protocol.shuffler.value_law is not None and protocol.shuffler.tossed is None:
        yield Warned(
            key="no-noise",
            sentence=(
                "Devices add no noise. If the shuffler fails, adds fewer dummies or reveals their number, answers can "
                "be read."
            ),
            advice='Say who runs it and why it can be trusted, or let people hide each other: "blanket-messages".',
        )
    elif math.isinf(local) and protocol.shuffler.tossed is not None:
        yield Warned(
            key="no-noise",
            sentence=(
                "Devices add no noise. If the shuffler fails, or an adversary can link the messages of one person, "
                "answers can be read."
            ),
            advice="State that all privacy rests on the shuffler, or give [randomizer] a finite epsilon.",
        )
    elif math.isinf(local):
        yield Warned(
            key="no-noise",
            sentence="Devices add no noise. An adversary that knows all other answers computes the last one.",
            advice="Give [randomizer] a finite epsilon, unless only pseudonymity is claimed.",
        )
    elif local >= LARGE_EPSILON:
        yield _little_noise(local, "", "a report by itself hides" if times == 1 else "all reports of one person hide")
    if delta * protocol.n >= 1:
        yield Warned(
            key="large-delta",
            sentence=f"Delta is {delta:g}, not below 1/n = {1 / protocol.n:.2g}: it would allow to publish one answer.",
            advice="Take a delta well below 1/n, such as 1/(10 n) or less.",
        )
    if protocol.n < SMALL_CROWD:
        yield Warned(
            key="small-crowd",
            sentence=f"Only {protocol.n} people take part: a crowd below {SMALL_CROWD} hides little.",
            advice="Collect from more people before anything is released.",
        )


def total_warnings(protocols: Sequence[Protocol], *, rounds: int = 1) -> Iterator[Warned]:
    """Yield the warning about the local epsilon of all reports of one person, one report per column and round.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=2.0), shuffler=hs.UniformShuffle(), n=900)
    >>> print(next(total_warnings([survey, survey, survey])).sentence)
    Local epsilon of all 3 columns together is 6.000, 5 or more: all reports of one person hide little.
    """
    local = rounds * sum(protocol.randomizer.local_epsilon for protocol in protocols)
    if LARGE_EPSILON <= local < math.inf:
        of = f" of all {len(protocols):,} columns together{f' in {rounds:,} rounds' if rounds > 1 else ''}"
        yield _little_noise(local, of, "all reports of one person hide")


def _little_noise(local: float, of: str, hides: str) -> Warned:
    return Warned(
        key="large-local-epsilon",
        sentence=f"Local epsilon{of} is {number(local)}, {LARGE_EPSILON:g} or more: {hides} little.",
        advice="Lower the epsilon of [randomizer], or state that all privacy rests on the shuffler.",
    )


def accuracy_warnings(protocol: Protocol, *, level: float = LEVEL) -> Iterator[Warned]:
    """Yield a warning if a value must be held by more than n/k people to be statistically significant.

    It names a mechanism with a smaller error at the same local epsilon, if there is one.
    """
    table = protocol.randomizer.table
    if table is not None and table.numbers:  # chosen for means and quantiles: shares of single levels are by the way
        return
    try:
        if _small_share(protocol) == 0:
            return
    except UnsupportedProtocolError:  # the row about accuracy says why
        return
    except NumericalError:
        yield Warned(
            key="values-not-told-apart",
            sentence="The reports do not distinguish all values: frequencies cannot be estimated.",
            advice="Change the mechanism, or merge values, before the collection.",
        )
        return
    k, n, needed = protocol.randomizer.inputs, protocol.n, people_to_show(protocol, level=level)
    if needed <= n / k:
        return
    shows = (
        f"a value is statistically significant only if about {number(needed, up=True, digits=2)} people or more hold it"
        if needed <= n
        else "not even a value that all people hold is statistically significant"
    )
    better = more_accurate(protocol)
    yield Warned(
        key="rare-values-hidden",
        sentence=(
            f"Standard errors are near or above the shares ({_error(protocol)} for a small share; an even share of "
            f"{k:,} categories is {number(1 / k, digits=2)}): {shows}."
        ),
        advice=(
            "More people, fewer categories or a larger epsilon would help."
            if better is None
            else _advice(better, people_to_show(better, level=level))
        ),
    )


def people_to_show(protocol: Protocol, *, level: float = LEVEL) -> float:
    """Return how many people must hold a value for its expected count to be statistically significant at `level`.

    Raises:
        UnsupportedProtocolError: the randomizer's reports cannot be counted.
    """
    drawn = protocol.shuffler.dummy_law
    n, (read, others) = protocol.n, counted(protocol, dummies=drawn.middle if drawn else None)
    return n * float(read.thresholds(n=n, dummies=int(others), chance=level / protocol.randomizer.inputs).max())


def more_accurate(protocol: Protocol) -> Protocol | None:
    """Return the protocol with the most accurate mechanism for rare values at the same local epsilon.

    None if it is not better by a tenth, or if only the people's messages protect: then the mechanism decides how many
    are needed. Among equally accurate mechanisms the one with the smallest reports is taken.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(
    ...     randomizer=hs.RandomizedResponse(k=1000, epsilon=2.0), shuffler=hs.UniformShuffle(), n=50_000
    ... )
    >>> better = more_accurate(survey)
    >>> better.randomizer.table.kind, round(float(predicted_standard_error(better, frequency=0.0)), 5)
    ('local-hashing', 0.00381)
    """
    local, k = protocol.randomizer.local_epsilon, protocol.randomizer.inputs
    if math.isinf(local) and protocol.shuffler.tossed is not None:
        return None
    candidates: list[tuple[float, int, Protocol]] = []
    for section in RANDOMIZERS.values():
        table = section.mechanism.table
        if table is None or table.numbers or "epsilon" not in table.settings:
            continue
        try:
            other = replace(protocol, randomizer=section.mechanism.from_settings(k, {"epsilon": local}))
        except InvalidInputError:  # there is none of this epsilon for so many values, or it takes more than an epsilon
            continue
        if other.randomizer.law().support is None:  # one for numbers
            continue
        candidates.append((_small_share(other), other.randomizer.layout.dtype.itemsize, other))
    alike = _ALIKE * min((error for error, _, _ in candidates), default=math.inf)
    error, _, best = min(
        (one for one in candidates if one[0] <= alike), key=lambda one: one[1], default=(math.inf, 0, None)
    )
    return best if _ALIKE * error <= _small_share(protocol) else None


def _small_share(protocol: Protocol) -> float:
    return float(predicted_standard_error(protocol, frequency=0.0))


def _error(protocol: Protocol) -> str:
    return number(_small_share(protocol), up=True, digits=2)


def _advice(better: Protocol, needed: float) -> str:
    table = better.randomizer.table
    assert table is not None  # it was found by it
    shows = f"a value shows if about {number(needed, up=True, digits=2)} people hold it"
    return (
        f'[randomizer] kind = "{table.kind}" does better with the same local epsilon: {_error(better)}'
        f"{f', {shows}' if needed <= better.n else ''}."
    )
