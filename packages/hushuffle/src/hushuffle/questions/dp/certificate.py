"""Certificates: the data with which other software can check a bracket of epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Final, Literal, NoReturn

from hushuffle import _checks
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.flipped_columns import FlippedColumns
from hushuffle.curves.pairs.composition import attained
from hushuffle.curves.question import Question
from hushuffle.curves.search import derivation, solve
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import LaplaceNoise, Reveals, Source, Trials
from hushuffle.model import Bound, Certificate, Witness
from hushuffle.questions.dp.central import epsilon
from hushuffle.questions.dp.composition import curves_of, merged

_DIGITS: Final = 14
"""Digits of a matrix's probabilities in a certificate, so that probabilities that differ by rounding become equal."""

_RELEASES: Final = {Reveals.MULTISET: "shuffled", Reveals.SENDERS: "senders", Reveals.SUMS: "sums"}
"""Names of what the last step of a derivation reveals."""

LARGEST_ROWS: Final = 4096
"""Maximum number of entries of a matrix in a certificate."""

LARGEST_TABLE: Final = 1 << 14
"""Maximum number of different numbers of dummies in a certificate."""

_MIXED: Final = "some groups revealed"
_FINITE: Final = "any finite randomizer"

REPLAYED: Final = frozenset(
    {
        "rounds composed",
        "memoized reports shuffled once",
        "a batch for each report",
        "every group",
        "colluding people left out",
        "single ones counted",
        "other groups seen",
        _MIXED,
        "between senders and counts",
        "messages of all people together",
        "number of dummies seen",
        "cap removed",
        "true values among uniform messages",
        "k-ary randomized response, seen",
        "one report seen",
        "randomized response of two values, shuffled",
        "k-ary randomized response, shuffled",
        "flipped bits",
        "sums of one-hot reports",
        _FINITE,
    }
)
"""The rules and laws that `hushuffle verify` replays."""


def certificate(
    protocol: Protocol | MixedProtocol, *, delta: float, reports_per_person: int = 1, rounds: int = 1
) -> Certificate:
    """Return the bracket of `epsilon` with its derivation, the report distributions and the worst-case datasets.

    `hushuffle verify` replays the steps and checks the two bounds in ball arithmetic.

    Args:
        protocol: the collection.
        delta: in (0, 1).
        reports_per_person: the largest number of reports of one person in each round.
        rounds: the number of collections among the same people, with fresh randomness in each.

    Raises:
        InvalidInputError: delta, reports_per_person or rounds out of range.
        UnsupportedProtocolError: a rule or law that `hushuffle verify` does not replay, a matrix of more than 4,096
            probabilities, a distribution of more than 16,384 numbers of dummies, or no analysis.
        NumericalError: rounding errors hide the result (never observed above delta = 1e-30).

    Source: docs/explanation/kinds-of-figures.md.

    >>> import hushuffle as hs
    >>> messages = hs.BlanketMessages(p=1.0, honest=0.9)
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=messages, n=1000)
    >>> claim = hs.dp.certificate(survey, delta=1e-6)
    >>> [step["name"] for step in claim.steps][:2], claim.n, claim.others, claim.target
    (['colluding people left out', 'messages of all people together'], 900, (0, 0, 899), (0, 1))
    """
    _checks.of_type("protocol", protocol, Protocol, MixedProtocol)
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    most, times = (
        _checks.integer(name, value, low=1)
        for name, value in (("reports_per_person", reports_per_person), ("rounds", rounds))
    )
    if most == times == 1:
        return certified(protocol, epsilon(protocol, delta=level), delta=level)
    question = Question.of(protocol, most, rounds=times)
    return of_question(question, solve(question).epsilon(level), delta=level)


def certified(protocol: Protocol | MixedProtocol, bound: Bound, *, delta: float) -> Certificate:
    """Return the certificate of an already computed bracket for one report of each person.

    Raises:
        UnsupportedProtocolError: certificates do not cover this protocol.
    """
    return of_question(Question.of(protocol), bound, delta=delta)


def of_question(question: Question, bound: Bound, *, delta: float) -> Certificate:
    """Return the certificate of an already computed bracket for any question.

    Raises:
        UnsupportedProtocolError: certificates do not cover this protocol.
    """
    _check_figure(bound)
    body = _body(question, bound.witness, (bound.upper, delta))
    for step, part in derivation(question):
        if step.name == "cap removed":
            uncapped = part.about(view=Reveals.MULTISET)
            if bound.upper < solve(uncapped).epsilon(delta).upper:
                _refuse("an epsilon that the cap limits")
    mixed = _MIXED in [step["name"] for step in body["steps"]]
    new = mixed or body["release"] == "sums" or question.reports > 1 or question.memory is not None
    version: Literal[2, 3] = 3 if new else 2
    return Certificate(version=version, delta=delta, kind=bound.kind, epsilon=(bound.lower, bound.upper), **body)


def of_rounds(rounds: Sequence[tuple[Protocol, int]], bound: Bound, *, delta: float) -> Certificate:
    """Return the certificate of an already computed bracket for several collections among the same people.

    Raises:
        UnsupportedProtocolError: certificates do not cover one of the protocols.
    """
    _check_figure(bound)
    different, curves = [protocol for protocol, _ in merged(rounds)], curves_of(rounds)
    named: Sequence[Witness | None] = attained(curves, delta, bound.witness) or ()
    named = named or [curve.epsilon(delta).witness for curve, _ in curves]
    bodies = list[dict[str, Any]]()
    for protocol, times in rounds:
        question = Question.of(protocol, rounds=times)
        bodies.append(_body(question, named[different.index(protocol)]))
    first, *further = bodies
    ends = bound.lower, bound.upper
    return Certificate(version=3, delta=delta, kind=bound.kind, epsilon=ends, **first, further=tuple(further))


def _others(question: Question, n: int) -> set[int]:
    """The possible numbers of other reports in named datasets; `n` is the number of people of the last step."""
    people = question.release.n if question.release.honest is None else question.release.honest
    mixed = len(question.release.groups) > 1 and question.release.view is not Reveals.SENDERS
    return {people - 1, people - question.reports} if question.reports > 1 or mixed else {n - 1}


def _check_figure(bound: Bound) -> None:
    if math.isinf(bound.lower):
        _refuse("an infinite epsilon: there is nothing to compute again")
    if bound.witness is None:
        _refuse("a bracket without named datasets")


def _body(question: Question, witness: Witness | None, claim: tuple[float, float] | None = None) -> dict[str, Any]:
    """Return the release with its derivation, and the named datasets. `claim`: an upper epsilon with its delta."""
    assert witness is not None
    proof = list(derivation(question))
    (_, claimed), (_, last) = proof[0], proof[-1]
    for step, _ in proof:
        if step.name not in REPLAYED:
            _refuse(f'the step "{step.name}" ({step.page}), which `hushuffle verify` does not replay')
    if any(isinstance(source.count, LaplaceNoise) for source in claimed.release.sources):
        _refuse("servers' discrete Laplace noise. The certificate without it (`laplace` = 0) holds with it too")
    random = any(source.random for source in claimed.release.sources)
    of_people = any(source.from_people for source in claimed.release.sources)
    if (random and claimed.rounds > 1) or ((random or of_people) and claimed.reports > 1):
        _refuse("several collections, or several reports of a person, among a random number of messages")
    if claimed.release.view is Reveals.CAPPED_MULTISET and max(claimed.rounds, claimed.reports) > 1:
        _refuse("several collections, or several reports of a person, under a cap")
    _check_crowd(claimed, last, claim)
    tabulated = max(claimed.rounds, claimed.reports) > 1 and proof[-1][0].name == _FINITE
    if tabulated and FiniteDivergence.of(last.release).near(1e-9, often=True).sliced:
        _refuse("several collections, or several reports of a person, in a crowd that needs pools in sequence")
    if _MIXED in [step.name for step, _ in proof]:
        _check_groups(claimed, witness)
    devices, further = [last.device], [group.device for group in claimed.release.groups]
    devices += [device for place, device in enumerate(further) if device not in [*devices, *further[:place]]]
    dummies, summed = bool(claimed.release.sources), last.release.view is Reveals.SUMS
    own, *others = [_randomizer(device, dummies=dummies, summed=summed) for device in devices]
    n, named, others_of = last.release.n, witness.others, _others(question, last.release.n)
    sources = last.release.sources
    numbers = (each.trials.number if each.each else 0 if each.random else each.fewest for each in sources)
    steps = ({"name": step.name, "page": step.page, "release": _release(part, devices)} for step, part in proof)
    return (
        own
        | {
            "release": _RELEASES[last.release.view],
            "n": n,
            "dummies": sum(numbers),  # or the number of random bits in a sum; 0 if it is random
            "others": named[: last.device.inputs] if sum(named) in others_of else (max(others_of),),
            "target": witness.target,
            "randomizers": tuple(others),
            "steps": tuple(steps),
        }
    )


def _check_groups(claimed: Question, witness: Witness) -> None:
    laws = [group.device.law() for group in claimed.release.groups]
    if any(law.symmetric is None for law in laws) or claimed.device.inputs == 2:
        _refuse("shuffled groups, except of randomized response with three or more values")
    if sum(map(bool, witness.others)) > 1:
        _refuse("groups whose other people have several values in the named datasets")


def _check_crowd(claimed: Question, last: Question, claim: tuple[float, float] | None) -> None:
    """Refuse flipped bits in a small crowd, unless pools of all columns in sequence prove the claim."""
    law, release = last.law, last.release
    if law.flipped is None or law.flipped.width == 1 or release.view is not Reveals.MULTISET:
        return
    curve = FlippedColumns.of(release)
    if release.n > 1 and not curve.small:
        return
    several = max(claimed.rounds, claimed.reports) > 1 or any(source.random for source in claimed.release.sources)
    if claim is not None and curve.small and not several and curve.near(claim[1]).in_one_pool(claim[0]):
        return
    _refuse("flipped bits in a small crowd (docs/theory/crowds.md)")


def _release(question: Question, devices: list[Mechanism]) -> dict[str, Any]:
    release = question.release
    written = {
        "groups": [[group.people, devices.index(group.device)] for group in release.groups],
        "targets": list(question.targets),
        "reports": question.reports,
        "view": release.view.value,
        "honest": release.honest,
        "messages": next((_messages(source) for source in release.sources), None),
    }
    repeated = {"rounds": question.rounds} if question.rounds > 1 else {}
    return written | repeated | ({} if question.memory is None else {"memory": question.memory.values})


def _messages(source: Source) -> dict[str, Any]:
    """Return Bernoulli trials, or a table of numbers and their probabilities in units of 2**-64."""
    table: list[list[int]] = []
    if hasattr(source.count, "numbers"):
        table = [list(pair) for pair in zip(source.table.numbers.tolist(), source.table.parts, strict=True)]
    if len(table) > LARGEST_TABLE:
        _refuse(f"a distribution of {len(table):,} numbers of dummies, more than {LARGEST_TABLE:,}")
    trials = Trials(number=0, p=1.0) if table else source.trials
    written = {"trials": trials.number, "p": str(Fraction(trials.p)), "own": source.from_people, "table": table}
    return written | ({"each": True} if source.each else {})


def _randomizer(device: Mechanism, *, dummies: bool, summed: bool) -> dict[str, Any]:
    """Return the probability of the true report (randomized response), or the matrix of all probabilities.

    For one-hot reports whose sums are released, return the probabilities of their bits.
    """
    law, truth, rows, dummy = device.law(), None, None, None
    if summed and law.one_hot is not None:
        bits = str(law.one_hot.own), str(law.one_hot.raised)
        return {"values": device.inputs, "truth": None, "rows": None, "dummy": None, "bits": bits}
    if law.symmetric is not None:
        truth = str(law.symmetric.truth)
    elif law.flipped is not None and law.flipped.width == 1:
        truth = str(1 - law.flipped.flip)
    else:
        matrix = law.channel().matrix
        if matrix.size > LARGEST_ROWS:
            _refuse(f"a matrix of {matrix.size:,} probabilities, more than {LARGEST_ROWS:,}")
        rows, dummy = tuple(_written(row) for row in matrix), _written(law.blanket().law) if dummies else None
    return {"values": device.inputs, "truth": truth, "rows": rows, "dummy": dummy}


def _written(law: Iterable[float]) -> tuple[float, ...]:
    """Round probabilities to `_DIGITS` digits, so that equal ones have equal floats."""
    return tuple(float(f"{float(entry):.{_DIGITS}g}") for entry in law)


def _refuse(what: str) -> NoReturn:
    _checks.unsupported(f"No certificate is written for {what}.")
