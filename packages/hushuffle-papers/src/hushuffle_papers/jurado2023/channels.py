"""The channels of three people and two values, in exact rationals: the paper's tables I to V."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hushuffle.model import Channel, Claim, HeatMap, Report, Table
from hushuffle.model.citation import QIF
from hushuffle.questions import qif
from hushuffle_papers.base import Request, claim, study, target
from hushuffle_papers.jurado2023.relations import BOTH, CASCADE, COMMUTE, NOISE, REDUCED, SQUARE

_N: Final = 3
_K: Final = 2
_TRUTH: Final = Fraction(4, 5)
_ROMAN: Final = ("I", "II", "III", "IV", "V")
_SETTINGS: Final = (("people", "3"), ("values", "2, named a and b"), ("probability of the truth p", str(_TRUTH)))


@target("jurado2023/table-1", "Three people, two values: noise, shuffle and reduced shuffle in exact rationals")
def single(_request: Request) -> Report:
    noise, shuffle, reduced = qif.noise(_N, _K, _TRUTH), qif.shuffle(_N, _K), qif.reduced_shuffle(_N, _K)
    merged = qif.merge_proportional_columns(shuffle) == reduced
    return _study(
        1,
        "Channel matrices of noise, shuffle and reduced shuffle",
        "With which probabilities do noise and shuffle map each data set of three people to outputs?",
        (
            REDUCED.claimed(
                "The shuffle and the reduced shuffle leak the same, for every prior and gain.",
                merged,
                "Merging the columns of S that are multiples of each other gives the reduced shuffle.",
            ),
            _pattern(
                "Table I(a)",
                _NOISE_MARKS,
                noise,
                "Table I(a) contains the full channel N representing the application of",
            ),
        ),
        (("N", noise), ("S", shuffle), ("S^r", reduced)),
        "Definitions 7, 8 and 10, Proposition 9",
    )


@target("jurado2023/table-2", "Three people, two values: noise then shuffle, which is shuffle then noise")
def combined(_request: Request) -> Report:
    first, second = qif.noise_then_shuffle(_N, _K, _TRUTH), qif.shuffle_then_noise(_N, _K, _TRUTH)
    finer = qif.refines(qif.noise(_N, _K, _TRUTH), first)
    return _study(
        2,
        "Noise then shuffle, which is shuffle then noise",
        "Do noise and shuffle give the same channel in both orders?",
        (
            COMMUTE.claimed("Noise and shuffle commute.", first == second, "NS and SN agree in every entry."),
            _pattern("Table II", _BOTH_MARKS, first, "are identical, as represented in Table II."),
            NOISE.claimed(
                "NS refines N: the shuffle after the noise never leaks more, for any prior and gain.",
                bool(finer),
                "Linear programming finds a post-processing that turns N into NS.",
            ),
        ),
        (("NS = SN", first),),
        "Proposition 11, Theorem 4",
    )


@target("jurado2023/table-3", "Three people, two values: noise, then reduced shuffle")
def reduced_cascade(_request: Request) -> Report:
    channel = qif.noise_then_reduced_shuffle(_N, _K, _TRUTH)
    same = qif.equivalent(qif.noise_then_shuffle(_N, _K, _TRUTH), channel)
    return _study(
        3,
        "Noise, then reduced shuffle",
        "What remains when only the histogram of the noisy answers is kept?",
        (
            CASCADE.claimed("NS^r and NS are equivalent.", same, _BOTH_WAYS),
            _pattern(
                "Table III", _REDUCED_MARKS, channel, "followed by the reduced shuffle is represented in Table III."
            ),
        ),
        (("NS^r", channel),),
        "Proposition 12",
    )


@target("jurado2023/table-4", "Three people, two values: noise on histograms")
def reduced_noise(_request: Request) -> Report:
    reduced, cascade = qif.reduced_noise(_N, _K, _TRUTH), qif.noise_then_reduced_shuffle(_N, _K, _TRUTH)
    ends = bool((reduced.matrix[0] == cascade.matrix[0]).all() and (reduced.matrix[-1] == cascade.matrix[-1]).all())
    return _study(
        4,
        "Noise on histograms",
        "How does the noise change a histogram, if all data sets with that histogram are equally likely?",
        (
            claim(
                "Example 24, Table IV",
                "The entries of the table.",
                None,
                "By Definition 23 the first and the last row are those of NS^r: one data set has each of these "
                f"histograms{'' if ends else ', but they differ'}.",
                quote="Table IV contains the channel representing the application of a reduced",
                reason="Our copy of the text has lost all entries of this table.",
            ),
        ),
        (("N^r", reduced),),
        "Definition 23, Example 24",
        answers=(
            f"N and N^r cannot be compared: N takes {len(qif.datasets(_N, _K))} data sets, N^r takes "
            f"{len(qif.histograms(_N, _K))} histograms.",
        ),
    )


@target("jurado2023/table-5", "Three people, two values: noise and reduced shuffle commute")
def commuting(_request: Request) -> Report:
    direct = qif.noise_then_reduced_shuffle(_N, _K, _TRUTH)
    cascade = qif.reduced_shuffle(_N, _K).cascade(qif.reduced_noise(_N, _K, _TRUTH))
    same = qif.equivalent(qif.shuffle_then_noise(_N, _K, _TRUTH), cascade)
    return _study(
        5,
        "Noise and reduced shuffle commute",
        "Do noise and reduced shuffle commute, if the noise also works on histograms?",
        (
            SQUARE.claimed("Reduced noise and reduced shuffle commute.", direct == cascade, "All entries equal."),
            BOTH.claimed("S^r N^r and SN are equivalent.", same, _BOTH_WAYS),
        ),
        (("NS^r = S^r N^r", direct),),
        "Propositions 26 and 28",
    )


def _study(
    number: int,
    title: str,
    question: str,
    claims: tuple[Claim, ...],
    channels: tuple[tuple[str, Channel], ...],
    where: str,
    *,
    answers: tuple[str, ...] = (),
) -> Report:
    return study(
        title,
        question,
        *claims,
        *answers,
        *(
            Table(
                key=name,
                title=f"The channel {name}",
                caption=f"Probability of each output (column) for each input (row), p = {_TRUTH}, exact.",
                columns=("input", *map(_label, channel.outputs)),
                rows=tuple(
                    (_label(label), *map(str, row))
                    for label, row in zip(channel.inputs, channel.matrix.tolist(), strict=True)
                ),
            )
            for name, channel in channels
        ),
        *(
            HeatMap(
                key=name,
                title=f"The channel {name}",
                caption=f"Probability of each output for each input, p = {_TRUTH}.",
                x_label="output",
                y_label="input",
                x=tuple(map(_label, channel.outputs)),
                y=tuple(map(_label, channel.inputs)),
                values=tuple(tuple(float(entry) for entry in row) for row in channel.matrix.tolist()),
            )
            for name, channel in channels
        ),
        settings=_SETTINGS,
        citations=(QIF.at(f"Table {_ROMAN[number - 1]}"), QIF.at(where)),
    )


_BOTH_WAYS: Final = "Linear programming finds a post-processing from each to the other."


_ROWS: Final = ("aaa", "aab", "aba", "baa", "abb", "bab", "bba", "bbb")
_NOISE_MARKS: Final = "15558884 51885548 58185458 58814558 85541885 85458185 84558815 48885551"
_BOTH_MARKS: Final = "15558884 5999xxx8 5999xxx8 5999xxx8 8xxx9995 8xxx9995 8xxx9995 48885551"
_REDUCED_MARKS: Final = "1234 5678 5678 5678 8765 8765 8765 4321"
"""The numbers of the colours of the printed entries, by row; x is 10."""


def _pattern(place: str, marks: str, channel: Channel, quote: str) -> Claim:
    """Return the claim that entries of the channel are equal exactly where the printed marks are."""
    columns = _ROWS if len(channel.outputs) == len(_ROWS) else tuple(map(_label, channel.outputs))
    entries = {
        (_label(row), _label(column)): entry
        for row, line in zip(channel.inputs, channel.matrix.tolist(), strict=True)
        for column, entry in zip(channel.outputs, line, strict=True)
    }
    pairs = {
        (mark, entries[row, column])
        for row, line in zip(_ROWS, marks.split(), strict=True)
        for column, mark in zip(columns, line, strict=True)
    }
    printed, ours = len({mark for mark, _ in pairs}), len({entry for _, entry in pairs})
    same = len(pairs) == printed == ours
    return claim(
        place,
        f"Equal entries of {place} are where the printed marks are equal.",
        same,
        f"{ours} different entries, {'' if same else 'not '}equal exactly where the marks are. Our copy has the "
        "marks, not the entries.",
        quote=quote,
        printed=f"{printed} different marks",
    )


def _label(label: object) -> str:
    assert isinstance(label, tuple)
    if len(label) == _N:
        return "".join("ab"[value] for value in label)
    return ", ".join(f"{value}:{count}" for value, count in zip("ab", label, strict=True))
