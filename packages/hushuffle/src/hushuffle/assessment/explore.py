"""Compute the data of a page with sliders: the positions of each slider, and the figures of the varied deployments."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.assessment.explore_grid import Deployments, adversaries, takes_long
from hushuffle.assessment.explore_toml import parts
from hushuffle.assessment.messages import sends_more
from hushuffle.errors import InvalidInputError, NumericalError, SpecificationError, UnsupportedProtocolError
from hushuffle.estimation import predicted_standard_error
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import ReportLaw
from hushuffle.mechanisms.randomizers.report_law import averages_to_dummies, is_processing
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Progress, Unanswered, silent
from hushuffle.model.explorer import Axis, Device, Explorer
from hushuffle.model.report import software
from hushuffle.specification import People, Specification, build_protocol
from hushuffle.specification._base import unfit
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.reading import load_collection

_MOST: Final = 10**12
_PER_DECADE: Final = 6
"""Slider positions per factor of 10: the slider covers a tenth to ten times the deployment's number of people."""

_EPSILONS: Final = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0)
_DELTAS: Final = (100.0, 10.0, 1.0, 0.1, 0.01)
_DUMMIES: Final = (0.01, 0.03, 0.1, 0.3, 1.0)
_TIMES: Final = (0.125, 0.25, 0.5, 0.7, 1.4, 2.0, 4.0, 8.0)
_SHARES: Final = (0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90)
_OTHER_K: Final = (0.5, 2.0, 4.0)
_REFUSED: Final = (InvalidInputError, NumericalError, SpecificationError, UnsupportedProtocolError)


@dataclass(frozen=True, kw_only=True)
class _Axes:
    n: Axis
    k: Axis
    epsilon: Axis
    delta: Axis
    dummies: Axis
    movable: bool
    """Whether the number of dummies can be varied."""
    count: bool
    """Whether a dummy protects at least as much as an additional person."""

    @property
    def all(self) -> tuple[Axis, ...]:
        shares = tuple(float(share) for share in _SHARES)
        colluders = Axis(key="colluders", title="Colluders (% of the people)", stops=shares)
        return (self.n, self.k, self.epsilon, self.delta, self.dummies, colluders)


def explore(
    specification: str | os.PathLike[str] | Specification,
    *,
    base_folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Explorer:
    """Return the figures of a deployment for varied people, values, noise, delta, dummies and colluders.

    The deployment's own figures equal those of `assess`. At other points of a grid, brackets of epsilon are at most 5 %
    wider; docs/theory/more-and-less.md proves the bounds between grid points. Values in the data are not used: only
    people and categories are counted. Raises `SpecificationError` for several columns, the order of records, or reach;
    if clients add neither noise nor messages; or if values with memoized reports change.

    >>> from hushuffle.specification import parse
    >>> found = explore(parse('''
    ...     population = { n = 30, k = 2 }
    ...     randomizer = { kind = "randomized-response", epsilon = 1.0 }
    ...     shuffler = { kind = "none" }
    ...     targets = { delta = 1e-3 }
    ... '''))
    >>> [axis.key for axis in found.axes if len(axis.stops) > 1]
    ['n', 'k', 'epsilon', 'delta', 'colluders']
    """
    _checks.of_type("specification", specification, str, os.PathLike, Specification)
    folder = Path() if base_folder is None else Path(base_folder)
    if not isinstance(specification, Specification):
        folder = Path(specification).parent if base_folder is None else folder
        hint, file = "Explore a file of one column. Run assess for several columns together.", str(specification)
        specification = load_collection(file).single("explore", hint, file=file)
    tell = progress or silent
    specification.population.explored()
    if specification.shuffler.reveals is Reveals.NOISY_ORDER:
        hint = "The order of release is defined only for the people of the file. Run assess for its charts."
        unfit("shuffler.kind", "must be a shuffler without an order for explore", '"mallows"', hint)
    exposure = Exposure.of(specification)
    exposure.composed  # noqa: B018 - raises SpecificationError if values change
    tell("counting people", 0.0)
    people = specification.population.read(folder)
    own = build_protocol(specification, n=people.n, k=people.k)
    if people.n > _MOST:
        unfit("population.n", f"must be at most {_MOST:,} for explore", f"{people.n:,}")
    axes = _axes(specification, people, own)
    deployments = Deployments(
        specification=specification,
        own=own,
        exposure=exposure,
        ordered=axes.epsilon.ordered,
        movable=axes.movable,
        sends=sends_more(own),
    )
    rows = adversaries(deployments, axes.n, axes.k, axes.epsilon, axes.delta, axes.dummies, tell=tell)
    tell("accuracy", 0.95)
    devices, unanswered = _devices(deployments, axes)
    explorer = Explorer(
        title=specification.title or "A shuffled collection",
        deployment=own.describe(reports_per_person=exposure.reports),
        axes=axes.all,
        adversaries=rows,
        devices=devices,
        dummies_count=axes.count,
        toml=parts(deployments, people, axes.k.stops, axes.dummies.stops),
        unanswered=unanswered,
        reports=exposure.reports,
        trusted=tuple(deployments.trusted(int(stop)) for stop in axes.n.stops),
        per_person=deployments.sends,
        software=software("polars"),
    )
    tell("done", 1.0)
    return explorer


def _axes(specification: Specification, people: People, own: Protocol) -> _Axes:
    steps = (step for step in range(-_PER_DECADE, _PER_DECADE + 1) if step)
    sizes = (_rounded(own.n * 10 ** (step / _PER_DECADE)) for step in steps)
    delta = specification.targets.delta
    exposure = Exposure.of(specification)
    if sends_more(own):
        dummies, movable, count = _messages(own), False, False
    else:
        dummies, count = _dummies(own, exposure), exposure.alone and averages_to_dummies(own.randomizer.law())
        movable = len(dummies.stops) > 1
    given = exposure.reports
    return _Axes(
        n=_axis("n", "People" if given == 1 else "Reports", (max(size, given + 1) for size in sizes), own.n),
        k=_values(specification, people, own),
        epsilon=_noise(own),
        delta=_axis("delta", "Delta", (delta * times for times in _DELTAS if delta * times < 0.5), delta),
        dummies=dummies,
        movable=movable,
        count=count,
    )


def _axis(key: str, title: str, stops: Iterable[float], own: float, *, ordered: bool = True) -> Axis:
    every = tuple(sorted({float(f"{stop:.12g}") for stop in stops} | {own}))
    return Axis(key=key, title=title, stops=every, start=every.index(own), ordered=ordered)


def _rounded(value: float) -> int:
    """Two significant digits."""
    return round(float(f"{value:.2g}"))


def _values(specification: Specification, people: People, own: Protocol) -> Axis:
    if specification.population.grid is not None:
        reason = "The specification fixes the number of levels."
        return Axis(key="k", title="Values", stops=(people.k,), ordered=False, reason=reason)
    if takes_long(own, Exposure.of(specification)):
        reason = "Results for other numbers of values take too long to compute."
        return Axis(key="k", title="Values", stops=(people.k,), ordered=False, reason=reason)
    tried = sorted({max(2, round(people.k * times)) for times in _OTHER_K} - {people.k})[:2]
    able = [k for k in tried if _builds(specification, own, k)]
    reason = "" if able else "This mechanism supports only this number of values."
    axis = _axis("k", "Values", able, people.k, ordered=False)
    return replace(axis, reason=reason)


def _builds(specification: Specification, own: Protocol, k: int) -> bool:
    try:
        return build_protocol(specification, n=own.n, k=k).randomizer.inputs == k
    except _REFUSED:
        return False


def _noise(own: Protocol) -> Axis:
    chosen, title = own.randomizer.chosen_epsilon, "Local epsilon of one report"
    if chosen is None or math.isinf(chosen):
        local = own.randomizer.local_epsilon
        if sends_more(own) and own.truthful:
            reason = "Reports equal the answers: only additional messages of the clients hide them."
            return Axis(key="epsilon", title=title, stops=(math.inf,), ordered=False, reason=reason)
        if math.isinf(local):
            hint = "Without noise, an adversary who knows all other answers reads the last one from the release."
            if own.shuffler.sources:
                hint = "Reports equal the answers, and only the shuffler's dummies hide them. Use assess or compare."
            unfit("randomizer", "must add noise to explore", "none", hint)
        reason = "No epsilon sets the noise of this mechanism, so the noise cannot be changed here."
        return Axis(key="epsilon", title=title, stops=(local,), ordered=False, reason=reason)

    @cache
    def law(epsilon: float) -> ReportLaw:
        return own.randomizer.law() if epsilon == chosen else own.randomizer.with_epsilon(epsilon).law()

    able = []
    for epsilon in sorted({*_EPSILONS, chosen, *_beyond(chosen)}):
        try:
            law(epsilon)
        except _REFUSED:
            continue
        able.append(epsilon)
    servers_draw = own.shuffler.all_coins or own.shuffler.sum_noise is not None
    ordered = not servers_draw and all(is_processing(law(a), law(b)) for a, b in itertools.pairwise(able))
    return _axis("epsilon", title, able, chosen, ordered=ordered)


def _beyond(chosen: float) -> set[float]:
    """Additional local epsilons, so that the slider has stops below and above the deployment's value.

    >>> sorted(_beyond(8.0)), sorted(_beyond(0.25)), sorted(_beyond(2.0))
    ([10.0, 12.0, 16.0], [0.0625, 0.125], [])
    """
    above = {times * chosen for times in (1.25, 1.5, 2.0) if chosen >= _EPSILONS[-2]}
    below = {times * chosen for times in (0.25, 0.5) if chosen <= _EPSILONS[1]}
    return {value for value in above if value <= LARGEST_EPSILON} | below


def _dummies(own: Protocol, exposure: Exposure) -> Axis:
    title, reason = "Dummies", exposure.fixed_dummies
    if own.shuffler.dummy_law is not None:
        reason = reason or "The shuffler draws the number of dummies at random."
    elif own.shuffler.reveals is not Reveals.MULTISET:
        reason = reason or "This shuffler adds no dummies."
    if reason:
        return Axis(key="dummies", title=title, stops=(float(own.shuffler.expected_dummies),), reason=reason)
    stops = {0, *(_rounded(own.n * share) for share in _DUMMIES)}
    return _axis("dummies", title, stops, own.shuffler.dummies)


def _messages(own: Protocol) -> Axis:
    """The slider for additional messages: p up to 1 with the same trials, then more trials at p = 1."""
    shuffler, title = own.shuffler, "Additional messages of each person"
    here, trials = shuffler.own_messages, shuffler.most_messages
    ordered = shuffler.value_law is None
    stops = {here * times for times in _TIMES if here * times <= trials}
    if ordered:
        stops |= {float(math.ceil(here * times)) for times in _TIMES if trials < here * times}
        stops = {stop for stop in stops if stop <= shuffler.most_own_messages}
    else:
        stops = {stop for stop in stops if stop <= shuffler.best_own_messages}
    return _axis("dummies", title, stops, here, ordered=ordered)


def _devices(deployments: Deployments, axes: _Axes) -> tuple[tuple[Device, ...], tuple[Unanswered, ...]]:
    """The figures of the randomizers, and the reason if shares cannot be estimated."""
    devices, reason = [], ""
    for k in axes.k.stops:
        for epsilon in axes.epsilon.stops:
            randomizer = deployments.randomizer(int(k), epsilon)
            truthful = randomizer.law().told if deployments.scaled else None
            rare, worst = None, None
            try:
                messages = axes.dummies.stops if deployments.sends else (0.0,)
                rare, worst = zip(*(_variances(deployments, int(k), epsilon, sent) for sent in messages), strict=True)
            except (NumericalError, UnsupportedProtocolError, InvalidInputError) as refusal:
                reason = str(refusal)
            devices.append(
                Device(
                    k=int(k),
                    epsilon=epsilon,
                    local=deployments.local(int(k), epsilon).upper,
                    told=1.0 if truthful is None else float(truthful),
                    rare=rare,
                    worst=worst,
                )
            )
    row = Unanswered(question="accuracy", topic="The accuracy of the answers", reason=reason)
    return tuple(devices), (row,) if reason else ()


def _variances(deployments: Deployments, k: int, epsilon: float, sent: float) -> tuple[tuple[float, float, float], ...]:
    """(a, b, c) for share 0 and for the worst share: the variance is a/n + (b dummies + c)/n**2.

    If people send additional messages, the variance is that with `sent` messages of each person, and b is 0.
    """

    def variances(n: int, dummies: float) -> npt.NDArray[np.float64]:
        protocol = deployments.protocol(k=k, people=n, epsilon=epsilon, dummies=dummies)
        return predicted_standard_error(protocol, frequency=np.array([0.0, 1.0])) ** 2

    size = max(2, deployments.exposure.reports + 1)
    none = sent if deployments.sends or deployments.movable else float(deployments.own.shuffler.expected_dummies)
    first, second = variances(size, none) * size, variances(2 * size, none) * 2 * size
    beside = (first - second) * 2 * size
    beside = np.where(abs(beside) > 1e-9 * abs(first), beside, 0.0)
    slope = (variances(size, 1.0) * size**2 - first * size) if deployments.movable else np.zeros(2)
    alone = first - beside / size
    worst = int(np.argmax(alone))
    rows = [(float(alone[at]), float(slope[at]), float(beside[at])) for at in (0, worst)]
    return tuple(rows)
