"""Select the grid points that the page with sliders shows, and compute each adversary's figure at these points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Final

from hushuffle.assessment.findings import GUESSER, LINKER, RELEASE
from hushuffle.assessment.messages import with_messages
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Guesser, Strong, Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.report_law import averages_to_dummies
from hushuffle.mechanisms.shufflers import Reveals, Scrambler, Shuffler, UniformShuffle
from hushuffle.model import Bound, Progress
from hushuffle.model.explorer import Adversary, Axis, GridPoint
from hushuffle.numerics.normal_pair import level_between
from hushuffle.questions import dp, pie
from hushuffle.questions.qif.guessing import vulnerability_within
from hushuffle.specification import Specification
from hushuffle.specification.exposure import Exposure

_TOLERANCE: Final = 0.05
"""Relative width of brackets that are not the deployment's own: narrower ones are not computed."""

_LEAST: Final = 1e-6
_WIDEST: Final = 10.0
"""Largest approximate standard deviation of a privacy loss (nats)."""

_BLIND: Final = 1e-3
"""A guess is as good as blind if it is right at most this part more often: more people need no point of the grid."""

_FEWEST: Final = 2
_FINE: Final = 2
"""If at least every second number of people is computed, a third of the smallest number is computed as well."""

_SENT_ONCE: Final = "Re-identification is analysed only for one report per person; here a person may send several."
_GUESSERS: Final[dict[str, Guesser]] = {"uninformed": Uninformed(), "strong": Strong()}
_COARSE_EPSILONS: Final = (1.0, 2.5, 4.0)
_FINE_EPSILONS: Final = (2.0, 3.5, 5.0)
_REFUSED: Final = (InvalidInputError, NumericalError, UnsupportedProtocolError)


@dataclass(frozen=True, kw_only=True, eq=False)
class Deployments:
    """Computes variants of a deployment with other parameters.

    `movable`: the number of dummies can be varied. `sends`: people send additional messages; then `dummies` counts the
    additional messages of each person, and all `people` are honest.
    """

    specification: Specification
    own: Protocol
    exposure: Exposure
    ordered: bool
    movable: bool
    sends: bool = False

    @property
    def scaled(self) -> bool:
        """Whether central epsilon decreases at least in proportion to the probability of a truthful report."""
        hidden = self.own.reveals is Reveals.MULTISET
        return self.ordered and hidden and self.exposure.alone and averages_to_dummies(self.own.randomizer.law())

    @property
    def quick(self) -> bool:
        """Whether a figure takes less than a tenth of a second to compute, so that many points are computed."""
        law = self.own.randomizer.law().symmetric
        if self.slow or law is None:
            return False
        return self.sends or law.k == 2 or not self.own.shuffler.dummies

    @property
    def slow(self) -> bool:
        """Whether a figure may take a second to compute, so that few points are computed."""
        return takes_long(self.own, self.exposure)

    @property
    def searched(self) -> bool:
        """Whether the search for bounds takes much longer than the evaluation of bounds."""
        hidden = self.own.reveals is Reveals.MULTISET and not (self.sends and self.own.truthful)
        return hidden and self.exposure.alone

    def randomizer(self, k: int, epsilon: float) -> Mechanism:
        return _randomizer(self, k, epsilon)

    def protocol(self, *, k: int, people: int, epsilon: float, dummies: float) -> Protocol:
        shuffler = self.own.shuffler
        if self.movable:
            shuffler = Scrambler(dummies=int(dummies)) if dummies else UniformShuffle()
        elif self.sends:
            shuffler = self.shuffler(k, dummies).secret(people)[1]
        return Protocol(randomizer=self.randomizer(k, epsilon), shuffler=shuffler, n=people)

    def shuffler(self, k: int, messages: float) -> Shuffler:
        own = self.own
        if k != own.randomizer.inputs:
            own = replace(own, randomizer=self.specification.randomizer.build(k))
        here = k == self.own.randomizer.inputs and messages == own.shuffler.own_messages
        return own.shuffler if here else with_messages(own, messages).shuffler

    def trusted(self, n: int) -> int:
        """How many of n people are honest by the shuffler's settings, without the colluders subtracted."""
        return self.own.shuffler.secret(n)[0]

    def local(self, k: int, epsilon: float) -> Bound:
        """Local epsilon (nats) of all reports and messages of one person."""
        return self.exposure.local(replace(self.own, randomizer=self.randomizer(k, epsilon)))


@lru_cache(maxsize=256)
def _randomizer(deployments: Deployments, k: int, epsilon: float) -> Mechanism:
    own = deployments.own.randomizer
    mechanism = own if k == own.inputs else deployments.specification.randomizer.build(k)
    return mechanism if own.chosen_epsilon in (None, epsilon) else mechanism.with_epsilon(epsilon)


def takes_long(own: Protocol, exposure: Exposure) -> bool:
    """Whether one figure of the deployment may take a second to compute."""
    drawn = own.shuffler.dummy_law is not None and not own.truthful
    return own.reveals is Reveals.SUMS or drawn or not exposure.alone


@dataclass(frozen=True, kw_only=True)
class _Place:
    k: int
    people: int
    epsilon: float
    dummies: float
    deltas: tuple[float, ...]


def adversaries(
    deployments: Deployments, n: Axis, k: Axis, epsilon: Axis, delta: Axis, dummies: Axis, *, tell: Progress
) -> tuple[Adversary, ...]:
    places = list(dict.fromkeys(_places(deployments, n, k, epsilon, delta, dummies)))
    central = Adversary(
        key="central",
        name=RELEASE,
        sentence=(
            f"Whatever else they know, seeing {deployments.exposure.seen} changes the odds of any conclusion about you "
            "by at most a factor {factor} (delta = {delta})."
        ),
        scaled=deployments.scaled,
    )
    named = "The adversary names a sender correctly {often} of the time, for any relation of people and answers."
    linker = Adversary(key="linker", name=LINKER, sentence=named, colluding=True)
    released = partial(_asked, central, places, partial(_central, deployments, {}), tell=tell, share=(0.0, 0.6))
    if deployments.exposure.total > 1:
        seen = deployments.exposure.words
        words = f"The adversary guesses an answer right {{often}} of the time from {seen}; {{blind}} without them."
        # The bound for any adversary follows from the central figures.
        guesser = Adversary(key="strong", name=GUESSER, sentence=words, colluding=True, derived=True)
        return released(), guesser, replace(linker, reason=_SENT_ONCE)
    one_report = [replace(place, deltas=(1.0,)) for place in places]
    guessed = one_report
    if deployments.own.reveals is Reveals.SUMS:
        guessed = one_report[:1]
    elif deployments.own.randomizer.law().support is None:  # each such figure needs many central figures
        guessed = [place for place in one_report if place.epsilon == one_report[0].epsilon][:4]
    guess = "The adversary guesses your answer right {often} of the time; {blind} without the release."
    results = [released()]
    for (key, who), share in zip(_GUESSERS.items(), ((0.6, 0.7), (0.7, 0.9)), strict=True):
        guesser = Adversary(key=key, name=who.phrase, sentence=guess, colluding=True)
        results.append(_asked(guesser, guessed, partial(_guess, deployments, who), tell=tell, share=share))
    alone = [place for place in one_report if place.dummies == places[0].dummies]
    return (*results, _asked(linker, alone, partial(_named, deployments), tell=tell, share=(0.9, 0.95)))


def _places(deployments: Deployments, n: Axis, k: Axis, epsilon: Axis, delta: Axis, dummies: Axis) -> Iterator[_Place]:
    """The grid points: the deployment itself, then n with epsilon, then fewer points for other parameters."""
    quick, slow, own_k = deployments.quick, deployments.slow, int(k.stops[k.start])
    own, noise, hidden = int(n.stops[n.start]), epsilon.stops[epsilon.start], dummies.stops[dummies.start]
    sizes = _sizes(deployments, n, 2 if quick else 6 if slow else 4)
    noises = _noises(epsilon, _FINE_EPSILONS if quick else () if slow else _COARSE_EPSILONS)
    deltas = tuple(delta.stops[::2]) if quick else (delta.stops[0], delta.stops[delta.start])
    least, most, own = min(sizes), max(sizes), deployments.trusted(own)
    yield from _box([own_k], [own], [noise], [hidden], delta.stops)
    # Figures change least with delta: for other deltas, every second number of people suffices.
    every = {least, own, most, *sizes[::2]} if quick else {*sizes}
    yield from _box([own_k], every, noises, [hidden], deltas)
    yield from _box([own_k], {*sizes} - every, noises, [hidden], (delta.stops[delta.start],))
    if deployments.sends:
        yield from _messages(deployments, own, n, k, epsilon, delta, dummies)
        return
    other_k = [int(value) for value in k.stops if value != own_k]
    fewer = {min(noises), noise, max(noises)}
    yield from _box(other_k, {least, own, most}, fewer, [hidden], deltas)
    if quick:
        # Figures for more noise follow in proportion from those for less noise; this does not hold for little noise.
        between = (sizes[len(sizes) // 4], sizes[(3 * len(sizes)) // 4])
        yield from _box(other_k, {least, own, most, *between}, {noise, *noises[-3:]}, [hidden], deltas)
    others = [stop for stop in dummies.stops if stop != hidden]
    if others:
        # Figures with fewer dummies are upper bounds of those with more: only lower bounds are missing.
        people = {own, most}
        if quick:
            people |= {int(n.stops[0])} if deployments.searched and own_k > 2 else set(sizes[::2])
        counts = {others[len(others) // 2], max(others)}
        yield from _box([own_k], people, {min(noises), noise}, counts, deltas[-2:])
        yield from _box(other_k, {own, most}, {min(noises), noise}, [max(others)], deltas[-2:])


def _messages(
    deployments: Deployments, own: int, n: Axis, k: Axis, epsilon: Axis, delta: Axis, messages: Axis
) -> Iterator[_Place]:
    """Grid points of n and the number of messages: all numbers if quick, else the first, own and last."""
    noise, own_k, quick = epsilon.stops[epsilon.start], int(k.stops[k.start]), deployments.quick
    sizes = _sizes(deployments, n, _FINE if quick else 6)
    selected = {messages.stops[0], messages.stops[messages.start], messages.stops[-1]}
    sent = messages.stops if quick or not messages.ordered else selected
    deltas = delta.stops if quick else (delta.stops[delta.start],)
    yield from _box([own_k], sizes, [noise], sent, deltas)
    other_k = [int(value) for value in k.stops if value != own_k]
    yield from _box(other_k, sizes[::2], [noise], sent, deltas)
    if not quick:
        yield from _box([own_k], {own, max(sizes)}, {epsilon.stops[0], epsilon.stops[-1]}, selected, deltas)


def _box(
    ks: Iterable[int],
    people: Iterable[int],
    noises: Iterable[float],
    dummies: Iterable[float],
    deltas: tuple[float, ...],
) -> Iterator[_Place]:
    for k, crowd, noise, added in product(ks, *map(sorted, (people, noises, dummies))):
        yield _Place(k=int(k), people=int(crowd), epsilon=noise, dummies=added, deltas=deltas)


def _sizes(deployments: Deployments, n: Axis, step: int) -> list[int]:
    """Numbers of people to compute: every `step`-th stop, and smaller numbers, which colluders lead to."""
    least = max(_FEWEST, deployments.exposure.reports)
    stops = {int(stop) for place, stop in enumerate(n.stops) if (place - n.start) % step == 0}
    fewer = (n.stops[0] / times for times in ((3, 10) if step <= _FINE else (10,)))
    sizes = (deployments.trusted(int(size)) for size in (*stops, n.stops[0], n.stops[-1], *fewer))
    return sorted({max(least, size) for size in sizes})


def _noises(epsilon: Axis, wanted: tuple[float, ...]) -> list[float]:
    """Local epsilons of the grid: all stops if no bounds between stops are proven, else `wanted` ones."""
    if not epsilon.ordered:
        return list(epsilon.stops)
    stops = {epsilon.stops[0], epsilon.stops[-1], epsilon.stops[epsilon.start], *wanted}
    return sorted(stops & set(epsilon.stops))


def _asked(
    adversary: Adversary,
    places: list[_Place],
    figures: Callable[[_Place], Iterator[Bound]],
    *,
    tell: Progress,
    share: tuple[float, float],
) -> Adversary:
    """The adversary with its figures at all grid points, or with the reason why there are none."""
    points: list[GridPoint] = []
    start, end = share
    for done, place in enumerate(places):
        tell(adversary.name, start + (end - start) * done / len(places))
        if adversary.key in _GUESSERS and any(_blind(point, place) for point in points):
            continue
        try:
            for delta, bound in zip(place.deltas, figures(place), strict=True):
                k, people, epsilon, dummies = place.k, place.people, place.epsilon, place.dummies
                points.append(GridPoint(k=k, people=people, dummies=dummies, epsilon=epsilon, delta=delta, bound=bound))
        except _REFUSED as error:
            if not points:  # there is no figure even for the deployment itself
                return replace(adversary, reason=str(error))
    return replace(adversary, points=tuple(points))


def _blind(point: GridPoint, place: _Place) -> bool:
    """Whether guesses at a point, with at most as many people and all else equal, are nearly blind."""
    alike = (point.k, point.epsilon, point.dummies) == (place.k, place.epsilon, place.dummies)
    return alike and point.people <= place.people and point.bound.upper <= (1 + _BLIND) / place.k


def _built(deployments: Deployments, place: _Place) -> Protocol:
    return deployments.protocol(k=place.k, people=place.people, epsilon=place.epsilon, dummies=place.dummies)


def _central(deployments: Deployments, ratios: dict[tuple[int, float, float], float], place: _Place) -> Iterator[Bound]:
    """Central epsilon at each delta; `ratios` has those of the last number of people, divided by approximations."""
    protocol, exposure = _built(deployments, place), deployments.exposure
    curve = exposure.curve(protocol)
    own, spread = protocol == deployments.own, _spread(protocol)
    for delta in place.deltas:
        if not deployments.searched or (own and delta == deployments.specification.targets.delta):
            yield curve.epsilon(delta)
            continue
        at = (place.k, place.epsilon, delta)
        approximate = min(level_between(spread, delta), curve.pure) or curve.pure / 4
        bound = curve.within(delta, _TOLERANCE, approximate * ratios.get(at, 1.0))
        ratios[at] = max(bound.lower, _LEAST) / approximate
        yield bound


def _spread(protocol: Protocol) -> float:
    """Approximate standard deviation of the privacy loss (nats), with which the search for epsilon starts."""
    law = protocol.shuffler.dummy_law
    try:
        return min(math.sqrt(dp.information(protocol if law is None else protocol.with_dummies(law.middle))), _WIDEST)
    except UnsupportedProtocolError:
        return 1.0


def _guess(deployments: Deployments, guesser: Guesser, place: _Place) -> Iterator[Bound]:
    protocol = _built(deployments, place)
    tolerance = 0.0 if protocol == deployments.own else _TOLERANCE
    yield vulnerability_within(protocol, adversary=guesser, tolerance=tolerance)


def _named(deployments: Deployments, place: _Place) -> Iterator[Bound]:
    yield pie.bayes_error(_built(deployments, place)).complement
