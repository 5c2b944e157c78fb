"""Certificates: the data with which other software can check a bracket of epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NoReturn

from hushuffle import _checks
from hushuffle.curves.laws.flipped_columns import ROOMY
from hushuffle.curves.laws.pooled import MOST
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Certificate
from hushuffle.questions.dp.central import epsilon

_DIGITS: Final = 14
"""Digits of a matrix's probabilities in a certificate, so that probabilities that differ by rounding become equal."""

LARGEST_ROWS: Final = 4096
"""Maximum number of entries of a matrix in a certificate."""


def certificate(protocol: Protocol, *, delta: float) -> Certificate:
    """Return the bracket of `epsilon` with the report distribution and the datasets that attain its lower bound.

    `hushuffle verify` checks the two bounds in ball arithmetic.

    Args:
        protocol: the collection: uniform shuffle, a fixed number of dummies allowed, or no shuffle.
        delta: in (0, 1).

    Raises:
        InvalidInputError: delta out of range.
        UnsupportedProtocolError: another shuffler, a matrix of more than 4,096 probabilities, or no analysis.
        NumericalError: as for `epsilon`.

    Source: docs/explanation/kinds-of-figures.md.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> claim = hs.dp.certificate(survey, delta=1e-6)
    >>> claim.values, claim.others, claim.target, claim.to_json()[:43]
    (5, (0, 0, 32999), (0, 1), '{"version": 1, "release": "shuffled", "n": ')
    """
    _checks.of_type("protocol", protocol, Protocol)
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    return certified(protocol, epsilon(protocol, delta=level), delta=level)


def certified(protocol: Protocol, bound: Bound, *, delta: float) -> Certificate:
    """Return the certificate of an already computed bracket.

    Raises:
        UnsupportedProtocolError: certificates do not cover this protocol.
    """
    release = {Reveals.MULTISET: "shuffled", Reveals.SENDERS: "senders"}.get(protocol.reveals)
    if release is None or protocol.shuffler.dummy_law is not None or protocol.shuffler.tossed is not None:
        _refuse(f"this shuffler: {protocol.shuffler.describe()}")
    if math.isinf(bound.lower):
        _refuse("an infinite epsilon: there is nothing to compute again")
    if bound.witness is None:
        _refuse("a bracket without named datasets")
    truth, rows = _law(protocol)
    given = rows is not None and protocol.shuffler.dummies > 0
    witness = bound.witness
    others = witness.others if sum(witness.others) == protocol.n - 1 else (protocol.n - 1,)
    return Certificate(
        release="shuffled" if release == "shuffled" else "senders",
        n=protocol.n,
        dummies=protocol.shuffler.dummies,
        delta=delta,
        kind=bound.kind,
        epsilon=(bound.lower, bound.upper),
        values=protocol.randomizer.inputs,
        truth=truth,
        rows=rows,
        dummy=_written(protocol.randomizer.law().blanket().law) if given else None,
        others=others,
        target=witness.target,
    )


def _law(protocol: Protocol) -> tuple[str | None, tuple[tuple[float, ...], ...] | None]:
    """Return the probability of the true report (randomized response), or the matrix of all probabilities."""
    law = protocol.randomizer.law()
    if law.symmetric is not None:
        return str(law.symmetric.truth), None
    if law.flipped is not None and law.flipped.width == 1:
        return str(1 - law.flipped.flip), None
    if law.flipped is not None and (protocol.n - 1) * MOST * law.blanket().weight < ROOMY:
        _refuse("flipped bits in a small crowd (docs/theory/crowds.md)")
    matrix = law.channel().matrix
    if matrix.size > LARGEST_ROWS:
        _refuse(f"a matrix of {matrix.size:,} probabilities, more than {LARGEST_ROWS:,}")
    return None, tuple(_written(row) for row in matrix)


def _written(law: Iterable[float]) -> tuple[float, ...]:
    """Round probabilities to `_DIGITS` digits, so that equal ones have equal floats."""
    return tuple(float(f"{float(entry):.{_DIGITS}g}") for entry in law)


def _refuse(what: str) -> NoReturn:
    _checks.unsupported(f"No certificate is written for {what}.")
