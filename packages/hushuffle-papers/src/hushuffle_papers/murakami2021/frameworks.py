"""The frameworks of obfuscation and identification (figures 1 to 3), and the inequality that follows from them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hushuffle.model import Report, Table
from hushuffle.model.citation import PIE
from hushuffle_papers.base import Request, claim, study, target
from hushuffle_papers.diagram import LabelRelation, drawn

_TRIALS: Final = 200
_USERS: Final = 3
_OUTPUTS: Final = 4
_CLOSE: Final = 1e-12

_OBFUSCATION: Final = (
    LabelRelation("user U", "data X", "arrow", "personal data"),
    LabelRelation("data X", "report Y", "arrow", "mechanism Q"),
)
_IDENTIFICATION: Final = (
    LabelRelation("report Y", "scores S", "arrow", "matcher F"),
    LabelRelation("known data R", "scores S", "arrow", "one per user"),
    LabelRelation("scores S", "guess of U", "arrow", "largest score"),
)
_PLACES: Final = {
    "user U": (0.0, 0.0),
    "data X": (1.2, 0.0),
    "report Y": (2.4, 0.0),
    "known data R": (3.7, 1.2),
    "scores S": (3.7, 0.0),
    "guess of U": (5.0, 0.0),
}
_HERE: Final = {
    "user U": "uniform over n users",
    "data X": "one of k values, from the user's distribution",
    "report Y": "a randomizer of `hushuffle`",
    "known data R": "data of each user that the adversary knows",
    "scores S": "a score for each user (`attack linkage`, `questions.pie`)",
    "guess of U": "the user with the largest score",
}


@target("murakami2021/figure-1", "The framework of obfuscation")
def obfuscation(_request: Request) -> Report:
    return _framework("obfuscation", "figure 1", _OBFUSCATION)


@target("murakami2021/figure-2", "The framework of identification")
def identification(_request: Request) -> Report:
    return _framework("identification", "figure 2", _IDENTIFICATION)


def _framework(what: str, place: str, lines: Sequence[LabelRelation]) -> Report:
    names = dict.fromkeys(name for line in lines for name in (line.start, line.end))
    return study(
        f"The framework of {what}",
        f"What is {what} in the paper, and what is it here?",
        "The figure has no numbers. The names are the paper's.",
        drawn("framework", f"Framework of {what}", "", _placed(names), lines),
        Table(
            key="names",
            title="Names",
            caption="The parts of the framework, and what they are in this library.",
            columns=("part", "here"),
            rows=tuple((name, _HERE[name]) for name in names),
        ),
        citations=(PIE.at(place),),
    )


def _placed(names: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return the places of names, with the first one in the first column."""
    listed = list(names)
    left = min(_PLACES[name][0] for name in listed)
    return {name: (_PLACES[name][0] - left, _PLACES[name][1]) for name in listed}


@target("murakami2021/figure-3", "The graphical model of user, report, known data and scores")
def model(request: Request) -> Report:
    """Compare I(U;S) with I(U;Y) in random models: R independent of U and Y, S a random function of Y and R."""
    generator = np.random.default_rng(request.seed)
    informations = [_informations(generator) for _ in range(_TRIALS)]
    below = all(scores <= reports + _CLOSE for reports, scores, _ in informations)
    equal = all(abs(likelihoods - reports) <= _CLOSE for reports, _, likelihoods in informations)
    lost = sum(scores < reports - _CLOSE for reports, scores, _ in informations)
    settings = f"{_TRIALS} random models of {_USERS} users and {_OUTPUTS} reports"
    lines = (
        LabelRelation("user U", "report Y", "arrow"),
        LabelRelation("report Y", "scores S", "arrow"),
        LabelRelation("known data R", "scores S", "arrow"),
    )
    names = ("user U", "report Y", "known data R", "scores S")
    return study(
        "The graphical model of user, report, known data and scores",
        "Can scores tell more about the user than the report?",
        claim(
            "Proposition 3.3",
            "Scores are no more informative about the user than the report: I(U;S) <= I(U;Y).",
            below,
            f"In {settings} I(U;S) is never above I(U;Y); in {lost} it is smaller.",
            quote="Proposition 3.3 states that the PIE can be lower-bounded by the PSE",
            reason="The proof for all models is the data processing inequality.",
        ),
        claim(
            "section 3.2, after Proposition 3.3",
            "Likelihoods as scores are as informative as the report.",
            equal,
            f"In {settings} the two informations agree to {_CLOSE:g} bits.",
            quote="if the adversary knows a generative model of",
        ),
        drawn("model", "Graphical model", "", _placed(names), lines),
        Table(
            key="informations",
            title="Informations of the first models",
            caption="In bits, from exact probabilities.",
            columns=("I(U;Y)", "I(U;S), random scores", "I(U;S), likelihoods"),
            rows=tuple(informations[:5]),
        ),
        settings=(("models", settings),),
        citations=(PIE.at("figure 3"),),
    )


def _informations(generator: np.random.Generator) -> tuple[float, float, float]:
    """Return I(U;Y), I(U;R,S) with S a random function of Y and R, and I(U;S) with likelihoods, in bits."""
    weights = generator.integers(1, 10, (_USERS, _OUTPUTS)).tolist()
    channel = [[Fraction(weight, sum(row)) for weight in row] for row in weights]
    scores = generator.integers(0, 3, (_OUTPUTS, 2)).tolist()
    joint: dict[str, dict[tuple[int, Any], Fraction]] = {key: defaultdict(Fraction) for key in "yrl"}
    for user, row in enumerate(channel):
        for y, chance in enumerate(row):
            joint["y"][user, y] += chance / _USERS
            joint["l"][user, tuple(other[y] for other in channel)] += chance / _USERS
            for r in range(2):
                joint["r"][user, (r, scores[y][r])] += chance / _USERS / 2
    return information(joint["y"]), information(joint["r"]), information(joint["l"])


def information(joint: Mapping[tuple[int, Any], Fraction]) -> float:
    """Return the mutual information, in bits, of the two parts of the keys of a joint distribution.

    >>> information({(0, "a"): Fraction(1, 2), (1, "b"): Fraction(1, 2)})
    1.0
    """
    first: dict[int, Fraction] = defaultdict(Fraction)
    second: dict[Any, Fraction] = defaultdict(Fraction)
    for (left, right), chance in joint.items():
        first[left] += chance
        second[right] += chance
    return math.fsum(
        float(chance) * math.log2(chance / (first[left] * second[right]))
        for (left, right), chance in joint.items()
        if chance
    )
