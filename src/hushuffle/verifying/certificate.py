"""Read certificates from a file: claims about epsilon, with the distributions; refuse malformed certificates."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from .ends import Law

VERSION = 1

LARGEST = 4096
"""Largest number of matrix entries in a certificate."""

MOST_REPORTS = 2 * 10**9
_LONGEST = 64 * 2**20
_DIGITS = 400
_ROUNDING = Fraction(1, 10**9)


class MalformedError(ValueError):
    """Raised if a file is not a result of hushuffle, or if a certificate in the file is not valid."""


class NotCheckedError(Exception):
    """Raised if the checker has no theorem or not enough time to check a certificate."""


@dataclass(frozen=True)
class Certificate:
    """A claim that the smallest epsilon at `delta` is in [`lower`, `upper`], with the distributions of all reports.

    Randomized response has `k` values and `truth`, and `rows` is None. For other randomizers, `rows` contains the
        report distribution of each value; `dummy` is the report distribution of dummies, if there are dummies."""

    release: str
    n: int
    dummies: int
    delta: Fraction
    lower: Fraction
    upper: Fraction | None
    k: int
    truth: Fraction | None
    rows: tuple[Law, ...] | None
    dummy: Law | None
    others: tuple[tuple[int, int], ...]
    target: tuple[int, int]
    exact: bool = False

    @classmethod
    def of(cls, given: Any) -> Certificate:
        """Return the certificate in a JSON object.

        Raises:
            MalformedError: the object is not a certificate.
            NotCheckedError: the certificate has another version, or is too large.
        """
        if not isinstance(given, Mapping):
            _refuse("certificate", "an object")
        if given.get("version") != VERSION:
            message = f"the certificate has version {str(given.get('version'))[:20]}, not {VERSION}"
            raise NotCheckedError(message)
        release = given.get("release")
        if release not in ("shuffled", "senders"):
            _refuse("release", "shuffled or senders")
        n, dummies, k = _whole(given, "n", 1), _whole(given, "dummies", 0), _whole(given, "values", 2)
        if n + dummies > MOST_REPORTS:
            message = f"more than {MOST_REPORTS:,} reports"
            raise NotCheckedError(message)
        ends = given.get("epsilon")
        if not isinstance(ends, list) or len(ends) != 2:
            _refuse("epsilon", "two ends")
        lower, upper = (_number(end, "epsilon", infinite=True) for end in ends)
        if lower is None or lower < 0 or (upper is not None and upper < lower):
            _refuse("epsilon", "a lower and an upper bound, in order, with a finite lower bound")
        delta = _number(given.get("delta"), "delta")
        if delta is None or not 0 < delta < 1:
            _refuse("delta", "between 0 and 1")
        truth, rows = _law(given, k)
        others, target = _pair(given, k, n)
        return cls(
            release=str(release),
            n=n,
            dummies=dummies,
            delta=delta,
            lower=lower,
            upper=upper,
            k=k,
            truth=truth,
            rows=rows,
            dummy=_dummy(given, rows, dummies),
            others=others,
            target=target,
            exact=given.get("kind") == "exact",
        )


def read(text: str) -> Any:
    """Return a JSON document, with its numbers as exact rationals.

    Raises:
        MalformedError: the text is not JSON, or too long.
    """
    if len(text) > _LONGEST:
        message = f"The file has more than {_LONGEST >> 20} MiB."
        raise MalformedError(message)
    try:
        return json.loads(text, parse_float=_decimal)
    except (ValueError, RecursionError) as error:
        message = f"The file is not a JSON document: {str(error)[:80]}"
        raise MalformedError(message) from None


def _decimal(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > _DIGITS or (exponent and abs(int(exponent[:9])) > _DIGITS):
        message = "a number of too many digits"
        raise ValueError(message)
    return Fraction(text)


def _refuse(name: str, rule: str) -> NoReturn:
    message = f"The certificate is invalid: {name} must be {rule}."
    raise MalformedError(message)


def _whole(given: Mapping[str, Any], name: str, low: int) -> int:
    value = given.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and value >= low:
        return value
    return _refuse(name, f"a whole number from {low} on")


def _number(value: Any, name: str, *, infinite: bool = False) -> Fraction | None:
    if infinite and value == "infinity":
        return None
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        _refuse(name, "a number")
    number = Fraction(value)
    if abs(number) > 10**6:
        _refuse(name, "smaller than a million")
    return number


def _law(given: Mapping[str, Any], k: int) -> tuple[Fraction | None, tuple[Law, ...] | None]:
    truth, rows = given.get("truth"), given.get("rows")
    if (truth is None) == (rows is None):
        _refuse("truth, rows", "given, one of them")
    if truth is not None:
        if not isinstance(truth, str) or len(truth) > _DIGITS or not set(truth) <= set("0123456789/"):
            _refuse("truth", "a fraction")
        try:
            probability = Fraction(truth)
        except (ValueError, ZeroDivisionError):
            _refuse("truth", "a fraction")
        if not Fraction(1, k) <= probability <= 1:
            _refuse("truth", "between 1/values and 1")
        return probability, None
    if not isinstance(rows, list) or len(rows) != k or not all(isinstance(row, list) for row in rows):
        _refuse("rows", "a list for each value")
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        _refuse("rows", "lists of one length")
    if k * len(rows[0]) > LARGEST:
        message = f"a matrix of more than {LARGEST:,} entries"
        raise NotCheckedError(message)
    return None, tuple(_probabilities(row, "rows") for row in rows)


def _probabilities(row: list[Any], name: str) -> Law:
    law = [_number(entry, name) or Fraction(0) for entry in row]
    whole = sum(law, Fraction(0))
    if any(entry < 0 for entry in law) or abs(whole - 1) > _ROUNDING:
        _refuse(name, "probabilities that add up to 1")
    return [entry / whole for entry in law]


def _dummy(given: Mapping[str, Any], rows: tuple[Law, ...] | None, dummies: int) -> Law | None:
    dummy = given.get("dummy")
    if rows is None or not dummies:
        return None
    if not isinstance(dummy, list) or len(dummy) != len(rows[0]):
        _refuse("dummy", "a probability for each report")
    return _probabilities(dummy, "dummy")


def _pair(given: Mapping[str, Any], k: int, n: int) -> tuple[tuple[tuple[int, int], ...], tuple[int, int]]:
    others, target = given.get("others"), given.get("target")
    if not isinstance(others, list) or not all(isinstance(c, int) and not isinstance(c, bool) for c in others):
        _refuse("others", "a list of counts")
    if len(others) > k or any(count < 0 for count in others) or sum(others) != n - 1:
        _refuse("others", "counts of n - 1 people by value")
    if not isinstance(target, list) or len(target) != 2 or not all(isinstance(x, int) for x in target):
        _refuse("target", "two values")
    first, second = target
    if not (first in range(k) and second in range(k) and first != second):
        _refuse("target", "two different values")
    return tuple((x, count) for x, count in enumerate(others) if count), (first, second)


def different_pairs(rows: tuple[Law, ...], common: Law) -> list[tuple[int, int]]:
    """Return pairs of values; of several pairs that are equal up to renaming reports and values, only the first."""
    pairs: dict[Any, tuple[int, int]] = {}
    numbers: dict[Fraction, int] = {}
    named = [[numbers.setdefault(entry, len(numbers)) for entry in row] for row in (*rows, common)]
    for a, b in itertools.permutations(range(len(rows)), 2):
        alike = {tuple(sorted(zip(named[a], named[b], named[-1], row, strict=True))) for row in named[:-1]}
        pairs.setdefault(frozenset(alike), (a, b))
    return list(pairs.values())


def widened(certificate: Certificate) -> tuple[Fraction, Fraction | None]:
    """Return the bounds on epsilon to check; for an epsilon stated as exact, they are wider by a relative 10**-9."""
    hair = _ROUNDING if certificate.exact else Fraction(0)
    upper = certificate.upper
    return certificate.lower * (1 - hair), None if upper is None else upper * (1 + hair)
