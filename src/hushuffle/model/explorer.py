"""`Explorer`: a deployment with its neighbours, certified at the points of a grid, for a page with sliders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hushuffle.model.bound import Bound
from hushuffle.model.report import Unanswered


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One slider: the values it stops at, the place of the deployment's own, and why there is but one, if so.

    `ordered`: figures are proven to fall or rise along it, so that they are bracketed between points of the grid.
    """

    key: str
    title: str
    stops: tuple[float, ...]
    start: int = 0
    ordered: bool = True
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class GridPoint:
    """A figure: `people` are those a person hides among (without colluders); `delta` is 1 where there is none.

    `dummies` is how many there are, on average where their number is random; or how many messages each person sends
    besides the report (`Explorer.per_person`), and all `people` are honest.
    """

    k: int
    people: int
    dummies: float
    epsilon: float
    delta: float
    bound: Bound


@dataclass(frozen=True, kw_only=True)
class Adversary:
    """What one adversary is told by the release, at points of the grid; or why nobody knows.

    `sentence` has {factor} (e to the figure), {often} (a percentage), {blind} (that of a blind guess) and {delta} in
    their places. `colluding`: the colluders tell this adversary their reports. `scaled`: epsilon falls at least in
    proportion with how often the truth is told on purpose.
    """

    key: str
    name: str
    sentence: str
    points: tuple[GridPoint, ...] = ()
    colluding: bool = False
    scaled: bool = False
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Device:
    """What one randomizer does, whatever the crowd: k values and a local epsilon of one report.

    `local` is that of all that one person gives (nats, exact). `told`: how often the truth is told on purpose (1 where
    nothing is scaled by it). The variance of an estimated share is a/n + (b dummies + c)/n**2, with `rare` = (a, b, c)
    at share 0 and `worst` at the worst share, one of them, or one for each number of messages of a person; None where
    shares are not estimated.
    """

    k: int
    epsilon: float
    local: float
    told: float
    rare: tuple[tuple[float, float, float], ...] | None
    worst: tuple[tuple[float, float, float], ...] | None


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """All that the page needs; `dummies_count`: a dummy hides at least as well as one more person.

    `toml` holds the parts of the specification, with n, epsilon, dummies, delta and colluders, each between two NULs,
    in the places of what the sliders change. Each person gives `reports` of the n reports at most. `trusted`: among how
    many a person hides without colluders, for each stop of n. `per_person`: dummies are messages of each person.
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
