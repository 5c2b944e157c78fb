"""The data of the experiments: the paper's own data sets if given, else smaller data sets that replace them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from hushuffle._checks import fail
from hushuffle.model.traces import Traces
from hushuffle.randomness import reproducible
from hushuffle.tables.published import load_checkins, load_ratings
from hushuffle_papers.base import Request
from hushuffle_papers.murakami2021.sources import SUFFIXES, ScoreMatrix, Source, load_scores

DATA: Final = ("foursquare_nyc", "movielens_latest_small", "nist_bssr1_set1")
_FOURSQUARE, _MOVIELENS, _SCORES = "foursquare_global", "movielens", "scores"

ORIGINALS: Final = (
    (
        _FOURSQUARE,
        "the paper's check-ins all over the world: without noise, 2,000 people drawn at random; where the attacker "
        "knows some events, 100 to 500 check-ins of people with 1,000 or more",
    ),
    (
        _MOVIELENS,
        "all of MovieLens: 2,000 people drawn at random; where the attacker knows some events, people who liked 500 "
        "films or more",
    ),
    (_SCORES, "your score matrices: face (the paper has 3,000 people), fingerprint (4,000), finger-vein"),
)
"""Data sets of the paper that may not be redistributed: their names, and the claims that are tested with them."""

STAND_IN: Final = (
    "The paper has 1,370,637 people with check-ins all over the world, 185,107 who rate, 3,000 faces and finger veins."
)
"""How the data sets differ from the paper's data sets, if none of these is given."""

AT_LEAST: Final = 10
"""Smallest number of events of a person who is included, as in the paper."""

SCORED: Final = 2_000
"""Largest number of people who are scored against each other; the paper has 1,896 people with 1,000 check-ins."""

_ENOUGH: Final = 150
"""Smallest number of people with as many events as the paper requires; with fewer, a tenth of them is."""

_FEWEST: Final = 100
"""Smallest number of people for which an interval is computed."""

_COMPARABLE: Final = 0.5
"""Data with at least this share of the paper's number of people count as the paper's data."""

_PEOPLE: Final = {_FOURSQUARE: 1_370_637, _MOVIELENS: 185_107, "face": 3_000, "fingerprint": 4_000}
_LACKS: Final = {
    _FOURSQUARE: f"{_PEOPLE[_FOURSQUARE]:,} people with check-ins all over the world",
    _MOVIELENS: f"{_PEOPLE[_MOVIELENS]:,} people who rate",
    "face": f"{_PEOPLE['face']:,} faces",
    "fingerprint": f"{_PEOPLE['fingerprint']:,} fingers",
}
_KNOWN: Final = {_FOURSQUARE: (100, 200, 300, 400, 500), _MOVIELENS: (1, 2, 3, 4, 5)}
_LESS_KNOWN: Final = {_FOURSQUARE: (5, 10, 20, 30, 40, 50), _MOVIELENS: (1, 2, 3, 4, 5)}
_LONG: Final = {_FOURSQUARE: 1_000, _MOVIELENS: 500}
_LIKED: Final = 4.0
_FINEST: Final = 1e-9
"""The finest resolution of scores, as a share of their range."""

_VEIN: Final = "finger vein"
_LABELS: Final = {
    "face": ("face_C", 1e-5, "matcher C", "in place of set 3, matcher G, 3,000 people"),
    "fingerprint": (
        "finger_left",
        1.0,
        "left index finger",
        "in place of CASIA-FingerprintV5 with a commercial matcher, 4,000 fingers",
    ),
}
"""The matchers: the matrix of NIST's first set, the resolution of its scores, a description, and the paper's own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Events:
    """Traces of the scored people, drawn from those with at least `at_least` events.

    `known` lists numbers of events that a partial attacker knows. `lacks` describes differences from the paper's data.
    """

    traces: Traces
    at_least: int
    known: tuple[int, ...]
    source: str
    where: str
    lacks: str
    short: bool

    @property
    def n(self) -> int:
        return self.traces.n


@dataclass(frozen=True, kw_only=True, eq=False)
class Matcher:
    """A matcher's scores and their resolution, with `source` and `lacks` as in `Events`."""

    label: str
    matrix: ScoreMatrix = field(repr=False)
    step: float
    source: str
    lacks: str


Used = Events | Matcher


def checkins(request: Request, *, long: bool = False, every: bool = False) -> Events:
    """Return the check-ins of people (`every`: all) with enough check-ins; with `long`, of people with long traces."""
    original = request.original(_FOURSQUARE)
    folder = original or request.folder(DATA[0])
    traces = load_checkins(folder)
    source = f"check-ins of {{people}} at {traces.k:,} places all over the world"
    if original is None:
        source = (
            f"check-ins of {{people}} at {traces.k:,} places in New York, in place of the paper's 1,370,637 people at "
            "10,500,393 places all over the world, which are not available"
        )
    return _events(request, traces, folder, _FOURSQUARE, source, own=original is not None, long=long, every=every)


def visitors(request: Request) -> Events | None:
    """Return the check-ins of all people whom the paper includes, if the paper's data are given."""
    return None if request.original(_FOURSQUARE) is None else checkins(request, every=True)


def _refuse_few(source: Path, people: int, what: str) -> None:
    if people < _FEWEST:
        fail(f"{source}: {people:,} people {what}; an estimate and its interval need {_FEWEST:,} people.")


def _lacks(name: str, people: int) -> str:
    return "" if people >= _COMPARABLE * _PEOPLE[name] else _LACKS[name]


def ratings(request: Request, *, long: bool = False) -> Events:
    original = request.original(_MOVIELENS)
    folder = original or request.folder(DATA[1])
    order = "ratings of the same second are in order of the movie, as in the file"
    source = f"MovieLens, 4 stars or more, {{people}}; {order}"
    if original is None:
        full = f"in place of the full set of {_PEOPLE[_MOVIELENS]:,}"
        source = f"MovieLens latest small, 4 stars or more, {{people}}, {full}; {order}"
    traces = load_ratings(folder, least=_LIKED)
    return _events(request, traces, folder, _MOVIELENS, source, own=original is not None, long=long)


def _events(
    request: Request,
    traces: Traces,
    folder: Path,
    name: str,
    source: str,
    *,
    own: bool,
    long: bool,
    every: bool = False,
) -> Events:
    counted = int(np.count_nonzero(traces.lengths >= AT_LEAST))
    full = own and int(np.count_nonzero(traces.lengths >= _LONG[name])) >= _ENOUGH
    at_least = AT_LEAST if not long else _LONG[name] if full else _LONG[name] // 10
    enough = np.flatnonzero(traces.lengths >= at_least)
    _refuse_few(folder, enough.size, f"have {at_least:,} events or more")
    scored = np.sort(reproducible(request.seed).permutation(enough.size)[: None if every else SCORED])
    drawn = f"{scored.size:,} people"
    if scored.size < enough.size:
        drawn += f", drawn at random from {enough.size:,} with {at_least:,} events or more,"
    return Events(
        traces=traces.select(enough[scored]),
        at_least=at_least,
        known=(_KNOWN if full else _LESS_KNOWN)[name],
        source=source.format(people=drawn),
        where="the whole world" if own else "one city",
        lacks=_lacks(name, counted) if own else _LACKS[name],
        short=long and not full,
    )


def matrices(request: Request) -> list[Matcher]:
    """Return the matchers of face and fingerprint, and of finger veins if these data are available."""
    folder = request.original(_SCORES)
    if folder is None:
        return list(_nist(request, *_LABELS))
    given = {name: path for name in (*_LABELS, _VEIN) for path in _files(folder, name)}
    if not given:
        fail(f"{folder} has none of the files {', '.join(_LABELS)}, finger-vein, with an ending {', '.join(SUFFIXES)}.")
    own = [_own(name, path) for name, path in given.items()]
    missing = [name for name in _LABELS if name not in given]
    order = (*_LABELS, _VEIN)
    return sorted([*own, *_nist(request, *missing)], key=lambda matcher: order.index(matcher.label))


def everything(request: Request, *, long: bool = False) -> tuple[Events, Events, list[Matcher]]:
    """Return the check-ins and the ratings, with `long` of people with long traces, and the matchers."""
    return checkins(request, long=long), ratings(request, long=long), matrices(request)


def _files(folder: Path, name: str) -> list[Path]:
    """Return the file of scores `name` with the first existing ending of `SUFFIXES`, as a list of at most one."""
    paths = [folder / f"{name.replace(' ', '-')}{suffix}" for suffix in SUFFIXES]
    return [path for path in paths if path.is_file()][:1]


def _own(label: str, path: Path) -> Matcher:
    held = load_scores(path)
    if len(held) > 1:
        fail(f"{path} contains {len(held):,} matrices. Save only the matrix of the {label} in this file.")
    (matrix,) = held.values()
    _refuse_few(path, matrix.n, "are compared")
    steps = np.diff(np.unique(matrix.scores))
    if not steps.size:
        fail(f"{path}: all scores are the same.")
    return Matcher(
        label=label,
        matrix=matrix,
        step=float(max(steps.min(), steps.sum() * _FINEST)),
        source=f"{path.name} of the data set {_SCORES}, {matrix.n:,} people{_left_out(matrix)}",
        lacks=_lacks(label, matrix.n) if label in _PEOPLE else "",
    )


def _nist(request: Request, *labels: str) -> Iterable[Matcher]:
    if not labels:
        return
    held = load_scores(request.folder(DATA[2]) / "bssr1_set1.npz")
    for label in labels:
        key, step, source, instead = _LABELS[label]
        matrix = held[key]
        yield Matcher(
            label=label,
            matrix=matrix,
            step=step,
            source=f"NIST Biometric Scores Set 1, {source}, {matrix.n:,} people{_left_out(matrix)}, {instead}",
            lacks=_LACKS[label],
        )


def _left_out(matrix: ScoreMatrix) -> str:
    return f", {matrix.left_out:,} more left out because they failed to enrol (scores of -1)" * bool(matrix.left_out)


def biometrics(matchers: Sequence[Matcher]) -> list[Source]:
    return [Source(label=one.label, scores=one.matrix.scores, resolution=one.step) for one in matchers]


def stand_in(needed: Iterable[Used], used: Iterable[Used]) -> str:
    """Return how the `used` data differ from the paper's; "" if the data `needed` for a claim do not differ.

    >>> face = Matcher(label="face", matrix=ScoreMatrix(name="face", scores=np.eye(2)), step=1.0, source="", lacks="")
    >>> stand_in([face], [face])
    ''
    """
    if not any(one.lacks for one in needed):
        return ""
    lacks = [one.lacks for one in used]
    return STAND_IN if all(lacks) else f"The paper has {', '.join(filter(None, lacks))}."


def settings(
    request: Request, *, places: Events, movies: Events | None = None, scores: Sequence[Matcher] = ()
) -> tuple[tuple[str, str], ...]:
    rows = [("location traces", places.source)]
    if movies is not None:
        rows.append(("ratings", movies.source))
    rows += [(one.label, one.source) for one in scores]
    if scores and not any(one.label == _VEIN for one in scores):
        rows.append((_VEIN, "left out: the paper's data are not available"))
    steps = ", ".join(f"{one.label} {np.format_float_positional(one.step, trim='-')}" for one in scores)
    rows += [
        ("resolution", f"log-likelihoods 0.01 nats{', ' * bool(steps)}{steps}: the steps of the scores"),
        ("seed", str(request.seed)),
    ]
    return tuple(rows)
