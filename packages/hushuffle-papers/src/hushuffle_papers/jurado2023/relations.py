"""Relations of noise, shuffle and their reduced forms (figures 1, 8, 9), and the introduction's two mechanisms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

from hushuffle.model import Cell, Channel, Claim, Report, Table, number
from hushuffle.model.citation import QIF
from hushuffle.questions import qif
from hushuffle_papers.base import Request, claim, study, target
from hushuffle_papers.diagram import Kind, LabelRelation, drawn

_TRUTH: Final = Fraction(4, 5)
_SIZES: Final = ((3, 2), (2, 3))
_INTRODUCTION: Final = Fraction(3, 4)


@dataclass(frozen=True)
class Relation:
    """The paper's relation of two channels: "refined by" means that the second channel leaks no more."""

    first: str
    how: str
    second: str
    where: str
    quote: str
    study: str = "jurado2023/figure-1"

    def holds(self, channels: Mapping[str, Channel]) -> bool:
        """Return whether the relation is true, exactly: by comparing entries, or by a checked post-processing."""
        first, second = channels[self.first], channels[self.second]
        if self.how == "=":
            return first == second
        return qif.equivalent(first, second) if self.how == "equivalent" else bool(qif.refines(first, second))

    def claimed(self, sentence: str, holds: bool, ours: str, *, study: str = "") -> Claim:  # noqa: FBT001 - as in `claim`
        """Return the claim of `study` (default: another study than the first one) that the relation holds."""
        repeats = "" if study == self.study else self.study
        return claim(self.where, sentence, holds, ours, quote=self.quote, repeats=repeats)

    @property
    def line(self) -> LabelRelation:
        kinds: dict[str, Kind] = {"=": "equal", "equivalent": "link", "refined by": "arrow"}
        return LabelRelation(self.first, self.second, kinds[self.how], self.where.replace("osition", "."))

    def __str__(self) -> str:
        words = {"=": "=", "equivalent": "is equivalent to", "refined by": "is refined by"}
        return f"{self.first} {words[self.how]} {self.second}"


COMMUTE: Final = Relation(
    "NS",
    "=",
    "SN",
    "Proposition 11",
    "The channel NS and the channel SN representing the application of … followed by full shuffle or vice-versa "
    "are identical",
)
REDUCED: Final = Relation(
    "S",
    "equivalent",
    "S^r",
    "Proposition 9",
    "is obtained from S by merging similar columns, these channels are equivalent",
)
CASCADE: Final = Relation(
    "NS",
    "equivalent",
    "NS^r",
    "Proposition 12",
    "the equivalence between the full S and reduced versions of shuffle channel (Prop. 9) is carried over",
)
SQUARE: Final = Relation(
    "NS^r",
    "=",
    "S^r N^r",
    "Proposition 26",
    "followed by reduced shuffling and the channel representing the application of reduced shuffling followed by "
    "a reduced … mechanism are identical",
    study="jurado2023/figure-8",
)
BOTH: Final = Relation(
    "SN",
    "equivalent",
    "S^r N^r",
    "Proposition 28",
    "the composed mechanisms of shuffling and … in their full and reduced forms are equivalent",
    study="jurado2023/figure-9",
)
NOISE: Final = Relation(
    "N", "refined by", "NS", "Theorem 4", "we know that NS can never cause more leakage than N alone"
)
SHUFFLE: Final = Relation(
    "S",
    "refined by",
    "SN",
    "Theorem 4",
    "adding noise on top of shuffle, or shuffle on top of noise, can never increase the leakage of information",
)
_MERGED: Final = Relation(
    "S^r",
    "refined by",
    "S^r N^r",
    "Theorem 4",
    "for any D in cascade CD, we know that leakage can never be increased",
    study="jurado2023/figure-8",
)

_PLACES: Final = {
    "N": (0.0, 0.0), "NS": (1.0, 0.0), "SN": (2.0, 0.0), "S": (3.0, 0.0),
    "NS^r": (1.0, 1.0), "S^r N^r": (2.0, 1.0), "S^r": (3.0, 1.0),
}  # fmt: skip
_FIGURES: Final = {
    1: ("Noise, shuffle and reduced shuffle", (NOISE, SHUFFLE, COMMUTE, REDUCED, CASCADE)),
    8: ("Noise and shuffle commute in reduced form", (SQUARE, _MERGED)),
    9: (
        "Relations between the channels of noise, shuffle and their reduced forms",
        (NOISE, SHUFFLE, COMMUTE, REDUCED, CASCADE, SQUARE, BOTH, _MERGED),
    ),
}


def relations(figure: int, _request: Request) -> Report:
    title, held = _FIGURES[figure]
    key = f"jurado2023/figure-{figure}"
    by_size = {size: channels(*size) for size in _SIZES}
    names = {name for relation in held for name in (relation.first, relation.second)}
    decided = {relation: [relation.holds(by_size[size]) for size in _SIZES] for relation in held}
    sizes = " and ".join(f"{n} people with {k} values" for n, k in _SIZES)
    return study(
        title,
        "Which of these channels are equal, and which leak equally much or less than another?",
        *(
            relation.claimed(
                f"{relation}.", all(held_at), f"{'Holds' if all(held_at) else 'Fails'} for {sizes}.", study=key
            )
            for relation, held_at in decided.items()
        ),
        "N and N^r cannot be compared: one takes data sets, the other histograms. An arrow means: whatever the "
        "prior and the gain, the end never leaks more than the start.",
        Table(
            key="relations",
            title="Relations",
            caption="Equal: all entries agree, in rationals. Equivalent and refined: shown by a post-processing.",
            columns=("relation", "where", *(f"n = {n}, k = {k}" for n, k in _SIZES)),
            rows=tuple(
                (str(relation), relation.where, *("holds" if each else "does not hold" for each in held_at))
                for relation, held_at in decided.items()
            ),
        ),
        drawn(
            "relations",
            title,
            "Double lines: equal channels. Lines: equivalent channels. Arrows: the target leaks at most as much.",
            {name: place for name, place in _PLACES.items() if name in names},
            [each.line for each in held],
        ),
        settings=(("sizes", sizes), ("probability of the truth p", str(_TRUTH))),
        citations=(QIF.at(f"figure {figure}"),),
    )


def channels(n: int, k: int) -> dict[str, Channel]:
    reduced = qif.reduced_shuffle(n, k)
    return {
        "N": qif.noise(n, k, _TRUTH),
        "S": qif.shuffle(n, k),
        "S^r": reduced,
        "NS": qif.noise_then_shuffle(n, k, _TRUTH),
        "SN": qif.shuffle_then_noise(n, k, _TRUTH),
        "NS^r": qif.noise_then_reduced_shuffle(n, k, _TRUTH),
        "S^r N^r": reduced.cascade(qif.reduced_noise(n, k, _TRUTH)),
    }


@target("jurado2023/section-1", "The introduction's two mechanisms")
def introduction(_request: Request) -> Report:
    rows: list[tuple[Cell, ...]] = []
    figures = []
    for n in (2, 3, 4, 5):
        gain, prior = qif.single_target_gain(n, 2, target=n - 1), qif.uniform_prior(2**n)
        pair = (mechanism(n, _INTRODUCTION, parity=False), mechanism(n, _INTRODUCTION, parity=True))
        epsilons = [_epsilon(channel) for channel in pair]
        strong = [_strong(channel, n) for channel in pair]
        uninformed = [Fraction(qif.posterior_vulnerability(channel, prior, gain)) for channel in pair]
        figures.append((epsilons, strong, uninformed))
        rows.append((n, *map(number, epsilons), *map(str, strong), *map(str, uninformed)))
    p = _INTRODUCTION
    same = all(e[0] == e[1] == math.log(p / (1 - p)) and s == [p, p] for e, s, _ in figures)
    better = all(u == [p, Fraction(1, 2)] for _, _, u in figures)
    return study(
        "Two mechanisms with equal privacy for the strong adversary, but not for the uninformed adversary",
        "Are two mechanisms equally private for all adversaries if they are for a strong adversary?",
        claim(
            "Section I",
            "Both are exactly ln(p/(1-p))-differentially private, and equivalent for the strong adversary.",
            same,
            f"Both have epsilon = {number(figures[0][0][0])}. The strong adversary is right with probability {p}.",
            quote="differentially private, so they are equivalent under the strong adversary",
        ),
        claim(
            "Section I",
            "M' is more private than M for the uninformed adversary: the report does not depend on the last record.",
            better,
            f"The uninformed adversary guesses right with probability {p} after M, and with 1/2 after M', as "
            "without it.",
            quote="is more private than … under the uninformed adversary",
        ),
        Table(
            key="mechanisms",
            title="M and M'",
            caption="Exact, over every dataset of n bits. Success in guessing the last bit, with a uniform prior.",
            columns=("n", *(f"{what}, {of}" for what in ("epsilon", "strong", "uninformed") for of in ("M", "M'"))),
            rows=tuple(rows),
        ),
        settings=(
            ("M", "the last of n bits, or its complement with probability 1 - p"),
            ("M'", "as M if the sum of the other bits is even, else with p and 1 - p exchanged"),
            ("p", str(p)),
        ),
        citations=(QIF.at("section I"),),
    )


def mechanism(n: int, truth: Fraction, *, parity: bool) -> Channel:
    """Return the channel of M (or of M', with `parity`), from n input bits to one output bit.

    >>> mechanism(2, Fraction(3, 4), parity=True).matrix[:, 0].tolist()  # 00, 01, 10, 11
    [Fraction(3, 4), Fraction(1, 4), Fraction(1, 4), Fraction(3, 4)]
    """
    rows = []
    for *others, last in itertools.product((0, 1), repeat=n):
        right = truth if not parity or sum(others) % 2 == 0 else 1 - truth
        rows.append([right, 1 - right] if last == 0 else [1 - right, right])
    return Channel(matrix=rows, inputs=qif.datasets(n, 2), outputs=(0, 1))


def _epsilon(channel: Channel) -> float:
    """Return the largest |ln| of the ratio of two rows whose datasets differ in one bit."""
    size = channel.matrix.shape[0]  # the bits of a row's number are its dataset
    worst = max(
        channel.matrix[first, y] / channel.matrix[other, y]
        for first, other in itertools.permutations(range(size), 2)
        if (first ^ other).bit_count() == 1
        for y in (0, 1)
    )
    return math.log(worst)


def _strong(channel: Channel, n: int) -> Fraction:
    """Return the success rate of an adversary who knows all bits but the last, in the worst case over these bits."""
    gain = qif.single_target_gain(n, 2, target=n - 1)
    priors = (
        qif.explicit_prior(channel.inputs, {(*others, last): Fraction(1, 2) for last in (0, 1)})
        for others in itertools.product((0, 1), repeat=n - 1)
    )
    return max(Fraction(qif.posterior_vulnerability(channel, list(prior), gain)) for prior in priors)


for _figure, (_title, _) in _FIGURES.items():
    target(f"jurado2023/figure-{_figure}", _title)(partial(relations, _figure))
