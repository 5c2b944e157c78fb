"""A `Target`: a table or figure of a paper, with the function that recomputes it; common functions of targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import RandomizedResponse
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import (
    Bound,
    Cell,
    Chart,
    Citation,
    Claim,
    Diagram,
    Finding,
    HeatMap,
    PointMap,
    Report,
    Series,
    Table,
    Verdict,
    Warned,
    number,
)
from hushuffle.numerics.roots import farthest
from hushuffle.questions import qif

_T = TypeVar("_T")
_P = ParamSpec("_P")

_NAME: Final = re.compile(
    r"(?P<paper>[a-z]+(\d{4})?)/(?P<what>figure|table|part|property|section|theorem)-(?P<number>\d+)"
    r"(?P<suffix>[a-z]?(-[a-z0-9]+)*)"
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The inputs of a reproduction: data sets, a seed for simulations, and a callback for progress.

    `data` is the folder of all data sets, each in its own subfolder. `named` maps names of data sets to other folders.
    """

    data: Path | None = None
    named: Mapping[str, Path] = field(default_factory=dict)
    seed: int = 1
    tell: Callable[[str, float], None] = lambda _what, _share: None

    def folder(self, name: str) -> Path:
        """Return the folder of the data set `name`.

        Raises:
            DataError: no folder of data sets is given, or it has no data set `name`.
        """
        if name in self.named:
            return self.named[name]
        hint = f"Pass the folder that contains {name}/ with --data or HUSHUFFLE_DATA, or pass --data {name}=FOLDER."
        if self.data is None:
            message = f"this target needs the data set {name}. {hint}"
            raise DataError(message)
        folder = self.data / name
        if not folder.is_dir():
            message = f"The folder {folder} does not exist. {hint}"
            raise DataError(message)
        return folder

    def each(self, items: Iterable[_T], what: str, start: float = 0.0, end: float = 1.0) -> Iterator[_T]:
        """Yield the items, and tell `what`, with the item (or its parts) in its braces, before each of them.

        >>> request = Request(tell=lambda what, share: print(f"{share:.0%} {what}"))
        >>> list(request.each([(2, 0.5), (5, 0.1)], "{} values, p = {:g}", start=0.2))
        20% 2 values, p = 0.5
        60% 5 values, p = 0.1
        [(2, 0.5), (5, 0.1)]
        """
        listed = list(items)
        for place, item in enumerate(listed):
            parts = item if isinstance(item, tuple) else (item,)
            self.tell(what.format(*parts), start + (end - start) * place / len(listed))
            yield item

    def original(self, name: str) -> Path | None:
        """Return the folder of the paper's data set `name`, which is too large to ship; None if it is absent."""
        folder = self.named.get(name) or (self.data / name if self.data else None)
        return folder if folder is not None and folder.is_dir() else None


@dataclass(frozen=True, kw_only=True)
class Target:
    """A place of a paper to recompute: `name` is PAPER/figure-N, and `data` lists the necessary data sets.

    A place is a figure, table, part, property, section or theorem; the name may have a suffix: jurado2023/figure-3a,
    jurado2023/figure-3-knowledge. `originals` are names of the paper's data sets, which replace `data` if they are
    available, each with the claims that are then tested. `seconds` is the approximate time on two cores. `quick`
    computes the place at small sizes, within seconds (None: `build` takes only seconds).

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
        """The sort key of targets: figure-2 before figure-10."""
        match = _NAME.fullmatch(self.name)
        assert match is not None
        return match["paper"], match["what"], int(match["number"]), match["suffix"]


TARGETS: Final[dict[str, Target]] = {}
"""The targets of the modules imported so far, by name."""


def target(
    name: str,
    title: str,
    *,
    data: tuple[str, ...] = (),
    originals: tuple[tuple[str, str], ...] = (),
    seconds: float = 1.0,
    quick: Mapping[str, Any] | None = None,
) -> Callable[[Callable[_P, Report]], Callable[_P, Report]]:
    """Add the decorated function to `TARGETS`, as in `Target`; `quick` has its arguments at small sizes.

    The name of the target becomes the key of the function's reports.
    """

    def added(build: Callable[_P, Report]) -> Callable[_P, Report]:
        @wraps(build)
        def keyed(*args: _P.args, **kwargs: _P.kwargs) -> Report:
            return replace(build(*args, **kwargs), key=name)

        whole: Callable[..., Report] = keyed
        small = None if quick is None else partial(whole, **quick)
        TARGETS[name] = Target(
            name=name, title=title, build=whole, data=data, originals=originals, seconds=seconds, quick=small
        )
        return keyed

    return added


def deployment(k: int, p: float, n: int) -> Protocol:
    """Return the protocol of n people with k values, reported truthfully with probability `p`, and shuffled."""
    return Protocol(randomizer=RandomizedResponse.from_truth_probability(k=k, p=p), shuffler=UniformShuffle(), n=n)


@lru_cache(maxsize=4096)
def guessed(k: int, p: float, n: int) -> Bound:
    return qif.vulnerability(deployment(k, p, n))


def sizes(low: int, high: int, per_decade: int) -> list[int]:
    """Return about evenly spaced sizes on a logarithmic axis, including the smallest and the largest size.

    >>> sizes(10, 1000, 2)
    [10, 32, 100, 316, 1000]
    """
    steps, size = [], float(low)
    while size < high * 0.999:
        steps.append(round(size))
        size *= 10 ** (1 / per_decade)
    return sorted({*steps, high})


def first_below(p: float, k: int) -> int:
    """Return the smallest n (by bisection) at which the uninformed adversary's success without noise is below `p`.

    >>> first_below(0.6, 2)
    16
    """

    def below(n: int) -> bool:
        return guessed(k, 1.0, n).upper < p

    high = 1
    while not below(high):
        high *= 2
    return farthest(below, good=high, bad=high // 2)


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
    """Return the claim with its verdict; None is undecided, and a `stand_in` neither confirms nor contradicts.

    >>> claim("Figure 1", "A is below B.", False, "A is above B.", quote="A < B", stand_in="Another city.").verdict
    'differs on other data'
    """
    if holds is None:
        verdict: Verdict = "not testable"
    elif holds:
        verdict = "holds on other data" if stand_in else "confirmed"
    else:
        verdict = "differs on other data" if stand_in else "contradicted"
    basis = " ".join(filter(None, (data, stand_in)))
    why = reason or (stand_in if verdict == "differs on other data" else "") or (_POINT if holds is None else "")
    return Claim(
        place=place,
        quote=quote,
        sentence=sentence,
        ours=ours,
        verdict=verdict,
        printed=printed,
        reason=why,
        data=data if why == stand_in else basis,
        repeats=repeats,
    )


_SLACK: Final = 1e-6
_POINT: Final = "The curve has too few points to confirm or contradict the claim."


def chart(
    key: str, title: str, caption: str, axes: tuple[str, str], series: Iterable[Series], *, log: str = ""
) -> Chart:
    """Return a chart of lines with labelled `axes`; `log` lists the logarithmic ones: "x", "y" or "xy"."""
    x, y = axes
    return Chart(
        key=key,
        title=title,
        caption=caption,
        x_label=x,
        y_label=y,
        series=tuple(series),
        x_log="x" in log,
        y_log="y" in log,
    )


Part = Claim | str | Finding | Table | Chart | HeatMap | PointMap | Diagram | Warned
_FIELDS: Final[dict[type, str]] = {
    Claim: "claims",
    str: "answers",
    Finding: "findings",
    Table: "tables",
    Chart: "charts",
    HeatMap: "heat_maps",
    PointMap: "maps",
    Diagram: "diagrams",
    Warned: "warnings",
}


def study(
    title: str,
    question: str,
    *parts: Part,
    settings: tuple[tuple[str, str], ...] = (),
    citations: tuple[Citation, ...] = (),
    software: tuple[tuple[str, str], ...] = (),
) -> Report:
    """Return a report with the parts of each kind in their order; sentences are its answers.

    >>> study("Dice", "How many sides?", "Six.", "Always.").answers
    ('Six.', 'Always.')
    """
    kinds: dict[str, Any] = {}
    for part in parts:
        kinds[_FIELDS[type(part)]] = (*kinds.get(_FIELDS[type(part)], ()), part)
    return Report(title=title, question=question, settings=settings, citations=citations, software=software, **kinds)


def tabulated(
    items: Sequence[_T], columns: Mapping[str, Callable[[_T], Cell]], *, key: str, title: str, caption: str
) -> Table:
    rows = tuple(tuple(cell(item) for cell in columns.values()) for item in items)
    return Table(key=key, title=title, caption=caption, columns=tuple(columns), rows=rows)


def falling(line: Iterable[float]) -> bool | None:
    """Return whether no step of the line rises by a share of more than 1e-6; None for fewer than two points.

    >>> falling([3, 2, 2]), falling([3, 1, 2]), falling([3])
    (True, False, None)
    """
    steps = list(pairwise(line))
    return all(later <= earlier * (1 + _SLACK) for earlier, later in steps) if steps else None


def flattening(x: Iterable[float], line: Iterable[float]) -> bool | None:
    """Return whether the line falls less steeply with every step; None for fewer than three points.

    >>> flattening([0, 1, 2], [3, 1, 0]), flattening([0, 1, 2], [3, 2, 0]), flattening([0, 1], [3, 1])
    (True, False, None)
    """
    points = list(zip(x, line, strict=True))
    slopes = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(points)]
    return all(later >= earlier - _SLACK for earlier, later in pairwise(slopes)) if len(slopes) > 1 else None


def every(decided: Iterable[bool | None]) -> bool | None:
    """Return False if a decision is False, True if all are True, and None otherwise (or without decisions).

    >>> every([True, True]), every([True, None]), every([None, False]), every([])
    (True, None, False, None)
    """
    verdicts = list(decided)
    if False in verdicts:
        return False
    return None if None in verdicts or not verdicts else True


def said(bound: Bound, digits: int = 4) -> str:
    """Return a bound as text for an answer: the number, or the lower and upper bound."""
    if bound.lower == bound.upper:
        return number(bound.upper, digits=digits)
    return f"{number(bound.lower, up=False, digits=digits)} to {number(bound.upper, up=True, digits=digits)}"
