"""`Explorer`: the data of a page with sliders: certified figures of a deployment with varied parameters, on a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hushuffle.model.bound import Bound
from hushuffle.model.report import Unanswered


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One slider: its positions, the position of the deployment's value, and the reason if there is only one.

    `ordered` states that figures are proven monotone along the slider, so that figures between grid points are bounded
    by those at the neighbouring grid points.
    """

    key: str
    title: str
    stops: tuple[float, ...]
    start: int = 0
    ordered: bool = True
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class GridPoint:
    """One adversary's figure for one setting of the sliders.

    `people` counts the people who do not collude; `delta` is 1 if the figure has no delta. `dummies` is the number
    of dummies, or its average. With `Explorer.per_person`, `dummies` is the number of additional messages of each
    person, and all `people` are honest.
    """

    k: int
    people: int
    dummies: float
    epsilon: float
    delta: float
    bound: Bound


@dataclass(frozen=True, kw_only=True)
class Adversary:
    """One adversary's figures at the points of the grid, or the reason why there are none.

    `sentence` is a template: {factor} is e to the figure, {often} the figure as a percentage, {blind} the success rate
    of a guess without the release, and {delta} delta. `colluding` states that colluders reveal their reports to this
    adversary, and `scaled` that epsilon decreases at least in proportion to the probability of a truthful report.
    `derived` states that there are no grid points, because the figure, an upper bound on the success rate of a guess,
    follows from the central epsilon and delta of all reports together.
    """

    key: str
    name: str
    sentence: str
    points: tuple[GridPoint, ...] = ()
    colluding: bool = False
    scaled: bool = False
    derived: bool = False
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Device:
    """The figures of one randomizer, with k values and a local epsilon, that do not depend on the number of people.

    `local` is the local epsilon of everything that one person sends (nats, exact). `told` is the probability of a
    truthful report (1 if no figure scales with it). The variance of an estimated share is a/n + (b dummies + c)/n**2.
    `rare` has (a, b, c) for share 0, and `worst` for the worst share. Both have one triple, or one for each number of
    messages of a person; they are None if shares are not estimated.
    """

    k: int
    epsilon: float
    local: float
    told: float
    rare: tuple[tuple[float, float, float], ...] | None
    worst: tuple[tuple[float, float, float], ...] | None


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """All data of the page with sliders.

    `dummies_count` states that a dummy protects at least as much as an additional person. `toml` holds the parts of the
    specification, in which the names n, epsilon, dummies, delta and colluders, each between two NULs, stand for the
    numbers that the sliders set. Each person sends at most `reports` of the n reports. `trusted` is, for each position
    of the slider n, the number of people among whom a person hides if there are no colluders. `per_person` states that
    dummies are additional messages of each person.
    """

    title: str
    deployment: str
    axes: tuple[Axis, ...]
    adversaries: tuple[Adversary, ...]
    devices: tuple[Device, ...]
    dummies_count: bool
    toml: Mapping[str, Any] = field(default_factory=dict)
    unanswered: tuple[Unanswered, ...] = ()
    reports: int = 1
    trusted: tuple[int, ...] = ()
    per_person: bool = False
    software: tuple[tuple[str, str], ...] = ()
