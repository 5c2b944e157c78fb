"""The grid of the explorer: which points are computed, and each adversary's figure there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Final

from hushuffle.assessment.explore_ends import near_ends
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.findings import LINKER, RELEASE
from hushuffle.assessment.messages import with_messages
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Guesser, Strong, Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.processing import averages_to_dummies
from hushuffle.mechanisms.shufflers import Reveals, Scrambler, Shuffler, UniformShuffle
from hushuffle.model import Bound, Progress
from hushuffle.model.explorer import Adversary, Axis, GridPoint
from hushuffle.questions import dp, pie, qif
from hushuffle.questions.dp.composition import curve_of
from hushuffle.specification import Specification

_FEWEST: Final = 2
_FINE: Final = 2
"""Where every so many stops for people are computed at least, fewer people are, too."""

_SEVERAL: Final = "It is known for one report alone, and a person gives several."
_SENT_ONCE: Final = "Who sent a report is analysed where each person gives one; here a person may give several."
_COARSE_EPSILONS: Final = (1.0, 2.5, 4.0)
_FINE_EPSILONS: Final = (2.0, 3.5, 5.0)
_REFUSED: Final = (InvalidInputError, NumericalError, UnsupportedProtocolError)


@dataclass(frozen=True, kw_only=True, eq=False)
class Deployments:
    """The deployment with other numbers in it. `movable`: it may have any number of dummies.

    `sends`: people send further messages: `dummies` are those of each person besides the report then, and figures are
    for `people` who are all honest.
    """

    specification: Specification
    own: Protocol
    exposure: Exposure
    ordered: bool
    movable: bool
    sends: bool = False

    @property
    def scaled(self) -> bool:
        """Whether epsilon of the release falls at least in proportion with how often the truth is told on purpose."""
        hidden = self.own.reveals is Reveals.MULTISET
        return self.ordered and hidden and self.exposure.alone and averages_to_dummies(self.own.randomizer.law())

    @property
    def quick(self) -> bool:
        """Whether a figure takes less than a tenth of a second, so that many can be computed."""
        law = self.own.randomizer.law().symmetric
        if self.slow or law is None:
            return False
        return self.sends or law.k == 2 or not self.own.shuffler.dummies

    @property
    def slow(self) -> bool:
        """Whether a figure may take a second, so that few are computed."""
        return takes_long(self.own, self.exposure)

    def searched(self, k: int) -> bool:
        """Whether looking for the ends of a figure takes much longer than evaluating them, with k values."""
        symmetric = self.own.randomizer.law().symmetric
        hidden = self.own.reveals is Reveals.MULTISET and not (self.sends and self.own.truthful)
        return hidden and self.exposure.alone and (symmetric is None or k > 2)

    def randomizer(self, k: int, epsilon: float) -> Mechanism:
        """Return what devices do with one of k values; what else was chosen for k is that of the own epsilon."""
        return _randomizer(self, k, epsilon)

    def protocol(self, *, k: int, people: int, epsilon: float, dummies: float) -> Protocol:
        """Return the deployment with these numbers."""
        shuffler = self.own.shuffler
        if self.movable:
            shuffler = Scrambler(dummies=int(dummies)) if dummies else UniformShuffle()
        elif self.sends:
            shuffler = self.shuffler(k, dummies).secret(people)[1]
        return Protocol(randomizer=self.randomizer(k, epsilon), shuffler=shuffler, n=people)

    def shuffler(self, k: int, messages: float) -> Shuffler:
        """Return what makes each person send so many messages besides, of k values."""
        own = self.own
        if k != own.randomizer.inputs:
            own = replace(own, randomizer=self.specification.randomizer.build(k))
        here = k == self.own.randomizer.inputs and messages == own.shuffler.own_messages
        return own.shuffler if here else with_messages(own, messages).shuffler

    def trusted(self, n: int) -> int:
        """Return how many of n people a person hides among where nobody of them is told to work with the reader."""
        return self.own.shuffler.secret(n)[0]

    def local(self, k: int, epsilon: float) -> Bound:
        """Return the local epsilon (nats) of all that one person gives."""
        return self.exposure.local(replace(self.own, randomizer=self.randomizer(k, epsilon)))


@lru_cache(maxsize=256)
def _randomizer(deployments: Deployments, k: int, epsilon: float) -> Mechanism:
    own = deployments.own.randomizer
    made = own if k == own.inputs else deployments.specification.randomizer.build(k)
    return made if own.chosen_epsilon in (None, epsilon) else made.with_epsilon(epsilon)


def takes_long(own: Protocol, exposure: Exposure) -> bool:
    """Return whether one figure may take a second."""
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
    """Return the adversaries with their figures at all points of the grid."""
    places = list(dict.fromkeys(_places(deployments, n, k, epsilon, delta, dummies)))
    single = "" if deployments.exposure.total == 1 else _SEVERAL
    central = Adversary(
        key="central",
        name=RELEASE,
        sentence=(
            f"Whatever else they know, seeing {deployments.exposure.seen} changes the odds of any conclusion about you "
            "by at most a factor {factor} (delta = {delta})."
        ),
        scaled=deployments.scaled,
    )
    guess = "Guesses your answer right {often} of the time; {blind} without the release."
    one_report = [_Place(k=p.k, people=p.people, epsilon=p.epsilon, dummies=p.dummies, deltas=(1.0,)) for p in places]
    guessed = one_report
    if deployments.own.reveals is Reveals.SUMS:
        guessed = one_report[:1]
    elif deployments.own.randomizer.law().support is None:  # many central figures make one of these
        guessed = [place for place in one_report if place.epsilon == one_report[0].epsilon][:4]
    alone = [place for place in one_report if place.dummies == places[0].dummies]
    rows: list[tuple[Adversary, list[_Place], Callable[[_Place], Iterator[Bound]]]] = [
        (central, places, partial(_central, deployments)),
        (
            Adversary(key="uninformed", name=Uninformed().phrase, sentence=guess, colluding=True),
            guessed,
            partial(_guess, deployments, Uninformed()),
        ),
        (
            Adversary(key="strong", name=Strong().phrase, sentence=guess, colluding=True),
            guessed,
            partial(_guess, deployments, Strong()),
        ),
        (
            Adversary(
                key="linker",
                name=LINKER,
                sentence="Names the sender of a report correctly {often} of the time, even if each answer told as "
                "much as can be about its owner.",
                colluding=True,
            ),
            alone,
            partial(_named, deployments),
        ),
    ]
    made = []
    for row, (adversary, asked, figures) in enumerate(rows):
        if row and single:
            made.append(replace(adversary, reason=_SENT_ONCE if adversary.key == "linker" else single))
            continue
        share = (0.0, 0.6, 0.7, 0.9)[row], (0.6, 0.7, 0.9, 0.95)[row]
        made.append(_asked(adversary, asked, figures, tell=tell, share=share))
    return tuple(made)


def _places(deployments: Deployments, n: Axis, k: Axis, epsilon: Axis, delta: Axis, dummies: Axis) -> Iterator[_Place]:
    """Yield what is computed: the own place first, then crowds and noise together, then others more thinly."""
    quick, slow, own_k = deployments.quick, deployments.slow, int(k.stops[k.start])
    own, noise, hidden = int(n.stops[n.start]), epsilon.stops[epsilon.start], dummies.stops[dummies.start]
    sizes = _sizes(deployments, n, 2 if quick else 6 if slow else 4)
    noises = _noises(epsilon, _FINE_EPSILONS if quick else () if slow else _COARSE_EPSILONS)
    deltas = tuple(delta.stops[::2]) if quick else (delta.stops[0], delta.stops[delta.start])
    few, most, own = min(sizes), max(sizes), deployments.trusted(own)
    yield from _box([own_k], [own], [noise], [hidden], delta.stops)
    # Figures change least with delta: away from its own one half of the crowds will do.
    every = {few, own, most, *sizes[::2]} if quick else {*sizes}
    yield from _box([own_k], every, noises, [hidden], deltas)
    yield from _box([own_k], {*sizes} - every, noises, [hidden], (delta.stops[delta.start],))
    if deployments.sends:
        yield from _messages(deployments, own, n, k, epsilon, delta, dummies)
        return
    other_k = [int(value) for value in k.stops if value != own_k]
    fewer = {min(noises), noise, max(noises)}
    yield from _box(other_k, {few, own, most}, fewer, [hidden], deltas)
    if quick:
        # Where figures change most: more noise is bounded by less in proportion, little noise is not.
        between = (sizes[len(sizes) // 4], sizes[(3 * len(sizes)) // 4])
        yield from _box(other_k, {few, own, most, *between}, {noise, *noises[-3:]}, [hidden], deltas)
    others = [stop for stop in dummies.stops if stop != hidden]
    if others:
        # More dummies are bounded from above by more people: what is left to find are lower ends.
        people = {own, most}
        if quick:
            people |= {int(n.stops[0])} if deployments.searched(own_k) else set(sizes[::2])
        some = {others[len(others) // 2], max(others)}
        yield from _box([own_k], people, {min(noises), noise}, some, deltas[-2:])
        yield from _box(other_k, {own, most}, {min(noises), noise}, [max(others)], deltas[-2:])


def _messages(
    deployments: Deployments, own: int, n: Axis, k: Axis, epsilon: Axis, delta: Axis, messages: Axis
) -> Iterator[_Place]:
    """Yield crowds and numbers of messages together: all of them where figures take little time."""
    noise, own_k, quick = epsilon.stops[epsilon.start], int(k.stops[k.start]), deployments.quick
    sizes = _sizes(deployments, n, _FINE if quick else 6)
    few = {messages.stops[0], messages.stops[messages.start], messages.stops[-1]}
    sent = messages.stops if quick or not messages.ordered else few
    deltas = delta.stops if quick else (delta.stops[delta.start],)
    yield from _box([own_k], sizes, [noise], sent, deltas)
    other_k = [int(value) for value in k.stops if value != own_k]
    yield from _box(other_k, sizes[::2], [noise], sent, deltas)
    if not quick:
        yield from _box([own_k], {own, max(sizes)}, {epsilon.stops[0], epsilon.stops[-1]}, few, deltas)


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
    """Return for how many people figures are computed: every so many stops, and fewer people, for colluders."""
    least = max(_FEWEST, deployments.exposure.reports)
    stops = {int(stop) for place, stop in enumerate(n.stops) if (place - n.start) % step == 0}
    fewer = (n.stops[0] / times for times in ((3, 10) if step <= _FINE else (10,)))
    sizes = (deployments.trusted(int(size)) for size in (*stops, n.stops[0], n.stops[-1], *fewer))
    return sorted({max(least, size) for size in sizes})


def _noises(epsilon: Axis, wanted: tuple[float, ...]) -> list[float]:
    """Return the local epsilons of the grid: all stops where nothing is proven between them."""
    if not epsilon.ordered:
        return list(epsilon.stops)
    kept = {epsilon.stops[0], epsilon.stops[-1], epsilon.stops[epsilon.start], *wanted}
    return sorted(kept & set(epsilon.stops))


def _asked(
    adversary: Adversary,
    places: list[_Place],
    figures: Callable[[_Place], Iterator[Bound]],
    *,
    tell: Progress,
    share: tuple[float, float],
) -> Adversary:
    """Return an adversary with the figures, or with the reason why there are none."""
    points: list[GridPoint] = []
    start, end = share
    for done, place in enumerate(places):
        tell(adversary.name, start + (end - start) * done / len(places))
        try:
            for delta, bound in zip(place.deltas, figures(place), strict=True):
                points.append(
                    GridPoint(
                        k=place.k,
                        people=place.people,
                        dummies=place.dummies,
                        epsilon=place.epsilon,
                        delta=delta,
                        bound=bound,
                    )
                )
        except _REFUSED as error:
            if not points:  # not even of the deployment itself
                return replace(adversary, reason=str(error))
    return replace(adversary, points=tuple(points))


def _built(deployments: Deployments, place: _Place) -> Protocol:
    return deployments.protocol(k=place.k, people=place.people, epsilon=place.epsilon, dummies=place.dummies)


def _central(deployments: Deployments, place: _Place) -> Iterator[Bound]:
    protocol, exposure = _built(deployments, place), deployments.exposure
    if exposure.memoised:
        yield from (exposure.epsilon(protocol, delta=delta) for delta in place.deltas)
        return
    curve = curve_of([(exposure.once(protocol), exposure.rounds)])
    if not deployments.searched(place.k) or protocol == deployments.own:
        yield from (curve.epsilon(delta) for delta in place.deltas)
        return
    yield from (near_ends(curve, delta, _about(protocol, curve.pure, delta)) for delta in place.deltas)


def _about(protocol: Protocol, pure: float, delta: float) -> float:
    """Return an epsilon to start a search from."""
    law = protocol.shuffler.dummy_law
    typical = protocol if law is None else protocol.with_dummies(law.middle)
    try:
        return dp.approximate(typical, delta=delta).upper or pure / 4
    except UnsupportedProtocolError:
        return pure / 2


def _guess(deployments: Deployments, guesser: Guesser, place: _Place) -> Iterator[Bound]:
    protocol = _built(deployments, place)
    law = protocol.randomizer.law()
    yield (qif.quick_vulnerability if law.symmetric is not None else qif.vulnerability)(protocol, adversary=guesser)


def _named(deployments: Deployments, place: _Place) -> Iterator[Bound]:
    yield pie.bayes_error(_built(deployments, place)).complement
