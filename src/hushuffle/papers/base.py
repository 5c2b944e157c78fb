"""A `Target`: one table or figure of a paper, and what recomputes it; what several papers draw."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Bound, Claim, Report, Verdict, number
from hushuffle.questions import qif

_NAME: Final = re.compile(
    r"(?P<paper>[a-z]+(\d{4})?)/(?P<what>figure|table|part|property|section|theorem)-(?P<number>\d+)"
    r"(?P<suffix>[a-z]?(-[a-z0-9]+)*)"
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a reproduction may use: data sets, a seed for what is simulated, who is told of progress.

    `data` is the folder that holds the data sets, each in a folder of its own; `named` are folders of data sets that
    are somewhere else, by name.
    """

    data: Path | None = None
    named: Mapping[str, Path] = field(default_factory=dict)
    seed: int = 1
    tell: Callable[[str, float], None] = lambda _what, _share: None

    def folder(self, name: str) -> Path:
        """Return the folder of the data set `name`.

        Raises:
            DataError: no folder of data sets was given, or it lacks this one.
        """
        if name in self.named:
            return self.named[name]
        hint = f"Give the folder that holds {name}/ with --data or in HUSHUFFLE_DATA, or itself: --data {name}=FOLDER."
        if self.data is None:
            message = f"this target needs the data set {name}. {hint}"
            raise DataError(message)
        folder = self.data / name
        if not folder.is_dir():
            message = f"{folder}: there is no such folder. {hint}"
            raise DataError(message)
        return folder

    def original(self, name: str) -> Path | None:
        """Return the folder of the data set `name` that may be there or not: a paper's own, too large to ship."""
        folder = self.named.get(name) or (self.data / name if self.data else None)
        return folder if folder is not None and folder.is_dir() else None


@dataclass(frozen=True, kw_only=True)
class Target:
    """A table, figure or place of a paper: `name` is PAPER/figure-N, `data` the data sets that it needs.

    A place is a figure, table, part, property, section or theorem; the name may have a suffix: jurado2023/figure-3a,
    jurado2023/figure-3-knowledge. `originals` are names of data sets of the paper's own, taken in place of `data`
    where they are given, each with what is then tested. `seconds` is about how long it takes on two
    cores; `quick` computes the same at sizes that take seconds (None: `build` does).

    Raises:
        InvalidInputError: a name of another form.
    """

    name: str
    title: str
    build: Callable[[Request], Report]
    data: tuple[str, ...] = ()
    originals: tuple[tuple[str, str], ...] = ()
    seconds: float = 1.0
    quick: Callable[[Request], Report] | None = None

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            places = "figure, table, part, property, section or theorem"
            _checks.reject("name", f"PAPER/figure-N, with a suffix or without; a {places}", self.name)

    @property
    def paper(self) -> str:
        """The paper's name: author and year, or title."""
        return self.name.partition("/")[0]

    @property
    def order(self) -> tuple[str, str, int, str]:
        """What targets are sorted by: figure-2 before figure-10."""
        match = _NAME.fullmatch(self.name)
        assert match is not None
        return match["paper"], match["what"], int(match["number"]), match["suffix"]


def deployment(k: int, p: float, n: int) -> Protocol:
    """Return k values, the truth reported with probability `p`, n people, shuffled."""
    return Protocol(randomizer=RandomizedResponse.from_truth_probability(k=k, p=p), shuffler=UniformShuffle(), n=n)


@lru_cache(maxsize=4096)
def guessed(k: int, p: float, n: int) -> Bound:
    """Return how often somebody who knows nobody guesses right after noise and shuffle; p = 1 is the shuffle alone."""
    return qif.vulnerability(deployment(k, p, n))


def sizes(low: int, high: int, per_decade: int) -> list[int]:
    """Return about evenly spaced sizes on a logarithmic axis, both ends among them.

    >>> sizes(10, 1000, 2)
    [10, 32, 100, 316, 1000]
    """
    steps, size = [], float(low)
    while size < high * 0.999:
        steps.append(round(size))
        size *= 10 ** (1 / per_decade)
    return sorted({*steps, high})


def first_below(p: float, k: int) -> int:
    """Return the fewest people for whom the shuffle alone leaves a guesser right less often than `p`.

    The shuffle alone never does worse with more people, so halving finds it.

    >>> first_below(0.6, 2)
    16
    """

    def below(n: int) -> bool:
        return guessed(k, 1.0, n).upper < p

    high = 1
    while not below(high):
        high *= 2
    return smallest(below, high // 2, high)


def smallest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number in (low, high] for which `holds`, given that it holds for `high` and all beyond.

    >>> smallest(lambda n: n * n >= 10, 0, 100)
    4
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def claim(
    place: str,
    sentence: str,
    holds: bool | None,  # noqa: FBT001 - what every claim turns on
    ours: str,
    *,
    quote: str,
    printed: str = "",
    reason: str = "",
    data: str = "",
    stand_in: str = "",
    repeats: str = "",
) -> Claim:
    """Return the claim with its verdict; `holds` is None where nothing here can decide it.

    `stand_in` says how the data differ from the paper's: on them nothing is confirmed or contradicted.

    >>> claim("Figure 1", "A is below B.", False, "A is above B.", quote="A < B", stand_in="Another city.").verdict
    'differs on other data'
    """
    if holds is None:
        verdict: Verdict = "not testable"
    elif holds:
        verdict = "holds on other data" if stand_in else "confirmed"
    else:
        verdict = "differs on other data" if stand_in else "contradicted"
    told = " ".join(filter(None, (data, stand_in)))
    why = reason or (stand_in if verdict == "differs on other data" else "") or (_POINT if holds is None else "")
    return Claim(
        place=place,
        quote=quote,
        sentence=sentence,
        ours=ours,
        verdict=verdict,
        printed=printed,
        reason=why,
        data=data if why == stand_in else told,
        repeats=repeats,
    )


_POINT: Final = "A line of so few points decides nothing."


def falling(line: Iterable[float], *, slack: float = 1e-6) -> bool | None:
    """Return whether no step of the line rises by more than `slack` of its value; None for fewer than two points.

    >>> falling([3, 2, 2]), falling([3, 1, 2]), falling([3])
    (True, False, None)
    """
    steps = list(pairwise(line))
    return all(later <= earlier * (1 + slack) for earlier, later in steps) if steps else None


def flattening(x: Iterable[float], line: Iterable[float], *, slack: float = 1e-6) -> bool | None:
    """Return whether the line falls less steeply with every step; None for fewer than three points.

    >>> flattening([0, 1, 2], [3, 1, 0]), flattening([0, 1, 2], [3, 2, 0]), flattening([0, 1], [3, 1])
    (True, False, None)
    """
    points = list(zip(x, line, strict=True))
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(points)]
    return all(later >= earlier - slack for earlier, later in pairwise(slopes)) if len(slopes) > 1 else None


def every(decided: Iterable[bool | None]) -> bool | None:
    """Return whether all hold; None if none fails and one is not decided, or there is none.

    >>> every([True, True]), every([True, None]), every([None, False]), every([])
    (True, None, False, None)
    """
    found = list(decided)
    if False in found:
        return False
    return None if None in found or not found else True


def said(bound: Bound, digits: int = 4) -> str:
    """Return the figure in an answer: the number, or both ends of a bracket."""
    if bound.lower == bound.upper:
        return number(bound.upper, digits=digits)
    return f"{number(bound.lower, up=False, digits=digits)} to {number(bound.upper, up=True, digits=digits)}"
