"""Certificates: the data with which other software can check a bracket of epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final, NoReturn

from hushuffle import _checks
from hushuffle.curves.laws.flipped_columns import ROOMY
from hushuffle.curves.laws.pooled import MOST
from hushuffle.curves.question import Question
from hushuffle.curves.search import derivation, solve
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Reveals, Source, Trials
from hushuffle.model import Bound, Certificate
from hushuffle.questions.dp.central import epsilon

_DIGITS: Final = 14
"""Digits of a matrix's probabilities in a certificate, so that probabilities that differ by rounding become equal."""

LARGEST_ROWS: Final = 4096
"""Maximum number of entries of a matrix in a certificate."""

LARGEST_TABLE: Final = 1 << 14
"""Maximum number of different numbers of dummies in a certificate."""

REPLAYED: Final = frozenset(
    {
        "every group",
        "colluding people left out",
        "single ones counted",
        "other groups seen",
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
        "any finite randomizer",
    }
)
"""The rules and laws that `hushuffle verify` replays."""


def certificate(protocol: Protocol | MixedProtocol, *, delta: float) -> Certificate:
    """Return the bracket of `epsilon` with its derivation, the report distributions and the worst-case datasets.

    `hushuffle verify` replays the steps and checks the two bounds in ball arithmetic.

    Args:
        protocol: the collection.
        delta: in (0, 1).

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: a rule or law that `hushuffle verify` does not replay, a matrix of more than 4,096
            probabilities, a distribution of more than 16,384 numbers of dummies, or no analysis.
        NumericalError: as for `epsilon`.

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
    return certified(protocol, epsilon(protocol, delta=level), delta=level)


def certified(protocol: Protocol | MixedProtocol, bound: Bound, *, delta: float) -> Certificate:
    """Return the certificate of an already computed bracket.

    Raises:
        UnsupportedProtocolError: certificates do not cover this protocol.
    """
    if math.isinf(bound.lower):
        _refuse("an infinite epsilon: there is nothing to compute again")
    if bound.witness is None:
        _refuse("a bracket without named datasets")
    proof = list(derivation(Question.of(protocol)))
    (_, claimed), (_, last) = proof[0], proof[-1]
    for step, question in proof:
        if step.name not in REPLAYED:
            _refuse(f'the step "{step.name}" ({step.page}), which `hushuffle verify` does not replay')
        if question.release.view is Reveals.CAPPED_MULTISET:
            uncapped = question.about(view=Reveals.MULTISET)
            if bound.upper < solve(uncapped).epsilon(delta).upper:
                _refuse("an epsilon that the cap limits")
    _check_crowd(last)
    devices, further = [last.device], [group.device for group in claimed.release.groups]
    devices += [device for place, device in enumerate(further) if device not in [*devices, *further[:place]]]
    own, *others = [_randomizer(device, dummies=bool(claimed.release.sources)) for device in devices]
    n, named = last.release.n, bound.witness.others
    return Certificate(
        release="shuffled" if last.release.view is Reveals.MULTISET else "senders",
        n=n,
        dummies=sum(source.fewest for source in last.release.sources if not source.random),
        delta=delta,
        kind=bound.kind,
        epsilon=(bound.lower, bound.upper),
        **own,
        others=named if sum(named) == n - 1 else (n - 1,),
        target=bound.witness.target,
        randomizers=tuple(others),
        steps=tuple(
            {"name": step.name, "page": step.page, "release": _release(question, devices)} for step, question in proof
        ),
    )


def _check_crowd(question: Question) -> None:
    law, release = question.law, question.release
    if law.flipped is None or law.flipped.width == 1 or release.view is not Reveals.MULTISET:
        return
    if (release.n - 1) * MOST * law.blanket().weight < ROOMY:
        _refuse("flipped bits in a small crowd (docs/theory/crowds.md)")


def _release(question: Question, devices: list[Mechanism]) -> dict[str, Any]:
    release = question.release
    return {
        "groups": [[group.people, devices.index(group.device)] for group in release.groups],
        "targets": list(question.targets),
        "reports": question.reports,
        "view": release.view.value,
        "honest": release.honest,
        "messages": next((_messages(source) for source in release.sources), None),
    }


def _messages(source: Source) -> dict[str, Any]:
    """Return Bernoulli trials, or a table of numbers and their probabilities in units of 2**-64."""
    table: list[list[int]] = []
    if hasattr(source.count, "numbers"):
        table = [list(pair) for pair in zip(source.table.numbers.tolist(), source.table.parts, strict=True)]
    if len(table) > LARGEST_TABLE:
        _refuse(f"a distribution of {len(table):,} numbers of dummies, more than {LARGEST_TABLE:,}")
    trials = Trials(number=0, p=1.0) if table else source.trials
    return {"trials": trials.number, "p": str(Fraction(trials.p)), "own": source.from_people, "table": table}


def _randomizer(device: Mechanism, *, dummies: bool) -> dict[str, Any]:
    """Return the probability of the true report (randomized response), or the matrix of all probabilities."""
    law, truth, rows, dummy = device.law(), None, None, None
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
