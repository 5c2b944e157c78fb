"""Read certificates from a file: claims about epsilon, with the distributions; refuse malformed certificates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from .ends import Law, log

RELEASES = ("shuffled", "senders", "sums")
VIEWS = ("multiset", "senders", "sums", "noisy order", "capped multiset")

_UNITS = 2**64
"""Denominator of the probabilities in a table of numbers of messages."""

LARGEST = 4096
"""Largest number of matrix entries in a certificate."""

MOST_REPORTS = 2 * 10**9
_ENTRIES, _LONGEST, _DIGITS = 1 << 16, 64 * 2**20, 400
_ROUNDING = Fraction(1, 10**9)


class MalformedError(ValueError):
    """Raised if a file is not a result of hushuffle, or if a certificate in the file is not valid."""


class NotCheckedError(Exception):
    """Raised if the checker has no theorem or not enough time to check a certificate."""


@dataclass(frozen=True)
class Randomizer:
    """Report distributions. Randomized response has `k` values and `truth`, and `rows` is None.

    For other randomizers, `rows` contains the report distribution of each value, and `dummy` that of dummies, if any.
    One-hot reports have a bit per value: `bits` are the probabilities that the true value's bit, or another one, is 1.
    """

    k: int
    truth: Fraction | None
    rows: tuple[Law, ...] | None
    dummy: Law | None
    bits: tuple[Fraction, Fraction] | None = None

    @property
    def pure(self) -> Any:
        """The local epsilon as a ball; None if it is infinite."""
        if self.bits is not None:
            p, q = self.bits
            return log(p * (1 - q) / (q * (1 - p))) if q and p < 1 else None
        if self.rows is None:
            assert self.truth is not None
            return None if self.truth == 1 else log(self.truth * (self.k - 1) / (1 - self.truth))
        columns = [(min(column), max(column)) for column in zip(*self.rows, strict=True) if any(column)]
        return None if any(not low for low, _ in columns) else log(max(high / low for low, high in columns))

    @classmethod
    def of(cls, given: Any) -> Randomizer:
        """Return the randomizer that an object describes; an error is raised as in `Certificate.of`."""
        k = _whole(given, "values", 2)
        if k > MOST_REPORTS:
            message = f"more than {MOST_REPORTS:,} values"
            raise NotCheckedError(message)
        if given.get("bits") is not None:
            return cls(k, None, None, None, _bits(given))
        truth, rows = _law(given, k)
        if rows is None or given.get("dummy") is None:
            return cls(k, truth, rows, None)
        if len(_list(given, "dummy")) != len(rows[0]):
            _refuse("dummy", "a probability for each report")
        return cls(k, truth, rows, _probabilities(given["dummy"], "dummy"))


@dataclass(frozen=True)
class Messages:
    """Messages that depend on no value: the successes of `trials` trials, or a number with the probability in `table`.

    `own`: people send them, each person with the same number of trials; otherwise the shuffler adds them. `each`: each
    sum of one-hot reports contains `trials` fair random bits.
    """

    trials: int
    p: Fraction
    own: bool = False
    table: tuple[tuple[int, Fraction], ...] = ()
    each: bool = False

    @classmethod
    def of(cls, given: Any) -> Messages | None:
        """Return the messages that an object describes, None for null; an error is raised as in `Certificate.of`."""
        if given is None:
            return None
        table, trials = _pairs(given, "table"), _whole(given, "trials", 0)
        own, p, parts = bool(given.get("own")), _fraction(given.get("p"), "p"), dict(table)
        listed = sorted(parts.items()) == table and all(parts.values()) and sum(parts.values()) == _UNITS
        if table and (own or trials or p != 1 or not listed):
            _refuse("table", "ascending numbers of the shuffler's messages, with parts of 2**64 in all, without trials")
        each = bool(given.get("each"))
        if each and (own or table or p != Fraction(1, 2)):
            _refuse("each", "fair random bits")
        if p > 1 or max([trials, *dict(table)]) > MOST_REPORTS:
            _refuse("trials, p", f"at most {MOST_REPORTS:,} trials, with a probability")
        return cls(trials, p, own, tuple((number, Fraction(part, _UNITS)) for number, part in table), each)

    @property
    def number(self) -> int | None:
        """The number of messages, or of random bits in a sum; None if it is random."""
        if self.each:
            return self.trials
        if len(self.table) == 1:
            return self.table[0][0]
        return None if self.table or self.p not in {0, 1} else int(self.trials * self.p)


@dataclass(frozen=True)
class Release:
    """What an observer sees: `groups` of people (number, place of the randomizer), `messages`, and the `view` of all.

    The people of the groups `targets` are protected, each with at most `reports` reports; `honest`: None, or the number
    of people who do not collude with the observer. View `sums`: each report is a vector with a single 1. There are
    `rounds` such releases of the same people, with fresh randomness in each, or, if `memory` is not 0, with memoized
    reports of at most `memory` values of each person.
    """

    groups: tuple[tuple[int, int], ...]
    targets: tuple[int, ...]
    reports: int
    view: str
    honest: int | None
    messages: Messages | None
    rounds: int = 1
    memory: int = 0

    @classmethod
    def of(cls, given: Any, randomizers: int) -> Release:
        """Return the release that an object describes; an error is raised as in `Certificate.of`."""
        groups, targets = _pairs(given, "groups"), _wholes(given, "targets")
        people, reports, view = sum(count for count, _ in groups), _whole(given, "reports", 1), given.get("view")
        honest = None if given.get("honest") is None else _whole(given, "honest", 1)
        if view not in VIEWS:
            _refuse("view", f"one of {', '.join(VIEWS)}")
        if any(not count or place >= randomizers for count, place in groups) or people > MOST_REPORTS:
            _refuse("groups", f"numbers of people, at most {MOST_REPORTS:,} in all, with places of randomizers")
        if not targets or len(set(targets)) < len(targets) or max(targets) >= len(groups):
            _refuse("targets", "places of different groups")
        if max(honest or 1, reports) > people:
            _refuse("honest, reports", "at most the number of people")
        rounds = _whole(given, "rounds", 1) if "rounds" in given else 1
        memory = _whole(given, "memory", 1) if "memory" in given else 0
        if rounds > MOST_REPORTS or memory > rounds:
            _refuse("rounds, memory", f"at most {MOST_REPORTS:,} rounds, and a value for each of them")
        sent = Messages.of(given.get("messages"))
        return cls(tuple(groups), tuple(targets), reports, view, honest, sent, rounds, memory)


@dataclass(frozen=True)
class Plain:
    """n people with one randomizer and `dummies`, shuffled or seen with their senders; `others` and `target` name data.

    `others` are the numbers of other people by value, and `target` are the two values of the target's `reports`
    reports, which are among those of the n people. With `groups` of other randomizers, all others have one value.
    """

    shuffled: bool
    randomizer: Randomizer
    n: int
    dummies: int
    others: tuple[tuple[int, int], ...]
    target: tuple[int, int]
    reports: int = 1
    groups: tuple[tuple[int, Randomizer], ...] = ()

    @property
    def named(self) -> bool:
        """Whether the people and values of the datasets are those of this release."""
        people = self.n + sum(count for count, _ in self.groups)
        counted = sum(count for _, count in self.others) == people - self.reports or not self.shuffled
        counted &= not self.groups or len(self.others) == 1
        return counted and all(x < self.randomizer.k for x in (*self.target, *(x for x, _ in self.others)))


@dataclass(frozen=True)
class Certificate:
    """A claim that the smallest epsilon at `delta` is in [`lower`, `upper`], for the release of the first step.

    A step has the name of a rule or law, the page of its proof, and the release that it treats. The last one treats the
    `plain` release, whose datasets attain the lower bound. Without steps the claim is about the plain release. With
    `further` releases of the same people, described in the same way, the claim is about all of them together.
    """

    plain: Plain
    delta: Fraction
    lower: Fraction
    upper: Fraction | None
    exact: bool
    randomizers: tuple[Randomizer, ...]
    steps: tuple[tuple[str, str, Release], ...]
    further: tuple[Certificate, ...] = ()

    @classmethod
    def of(cls, given: Any, *, part: bool = False) -> Certificate:
        """Return the certificate in a JSON object, or that of a further release (`part`).

        Raises:
            MalformedError: the object is not a certificate.
            NotCheckedError: the certificate has another version, or is too large.
        """
        if not isinstance(given, Mapping):
            _refuse("certificate", "an object")
        if given.get("version") not in (1, 2, 3):
            message = f"the certificate has version {str(given.get('version'))[:20]}, not 1, 2 or 3"
            raise NotCheckedError(message)
        if given.get("release") not in RELEASES:
            _refuse("release", f"one of {', '.join(RELEASES)}")
        n, dummies = _whole(given, "n", 1), _whole(given, "dummies", 0)
        if n + dummies > MOST_REPORTS:
            message = f"more than {MOST_REPORTS:,} reports"
            raise NotCheckedError(message)
        lower, upper = _ends(given)
        delta = _number(given.get("delta"), "delta")
        if delta is None or not 0 < float(delta) < 1:
            _refuse("delta", "between 0 and 1")
        own = Randomizer.of(given)
        _check_randomizer(own, given["release"], dummies)
        steps = [] if given["version"] == 1 else _list(given, "steps")
        if not steps and given["version"] > 1:
            _refuse("steps", "at least one step")
        randomizers = (own, *(Randomizer.of(each) for each in (_list(given, "randomizers") if steps else [])))
        read = tuple(_step(each, len(randomizers)) for each in steps)
        several = any(name == "some groups revealed" or release.reports > 1 for name, _, release in read)
        plain = Plain(given["release"] != "senders", own, n, dummies, *_pair(given, own.k, None if several else n))
        others = _list(given, "further") if given.get("further") else []
        if others and (given["version"] < 3 or not all(isinstance(each, Mapping) for each in others)):
            _refuse("further", "a list of releases, in version 3")
        shared = {key: given[key] for key in ("version", "delta", "epsilon", "kind") if key in given}
        further = tuple(cls.of({**each, **shared, "further": []}, part=True) for each in others)
        certificate = cls(plain, delta, lower, upper, given.get("kind") == "exact", randomizers, read, further)
        if (given["version"] == 3) != certificate.needs_3 and not part:
            _refuse("version", "3 for such a release, and only then")
        return certificate

    @property
    def needs_3(self) -> bool:
        """Whether the certificate is about a release that versions 1 and 2 do not describe."""
        steps = [name == "some groups revealed" or r.reports > 1 or r.memory > 0 for name, _, r in self.steps]
        return bool(self.further) or any(steps) or self.plain.randomizer.bits is not None


def _ends(given: Mapping[str, Any]) -> tuple[Fraction, Fraction | None]:
    ends = given.get("epsilon")
    if not isinstance(ends, list) or len(ends) != 2:
        _refuse("epsilon", "two ends")
    lower, upper = (_number(end, "epsilon", infinite=True) for end in ends)
    if lower is None or lower < 0 or (upper is not None and upper < lower):
        _refuse("epsilon", "a lower and an upper bound, in order, with a finite lower bound")
    return lower, upper


def _step(given: Any, randomizers: int) -> tuple[str, str, Release]:
    given = given if isinstance(given, Mapping) else {}
    return str(given.get("name"))[:80], str(given.get("page"))[:80], Release.of(given.get("release"), randomizers)


def read(text: str) -> Any:
    """Return a JSON document, with its numbers as exact rationals.

    Raises:
        MalformedError: the text is not JSON, or too long.
    """
    if len(text) > _LONGEST:
        message = f"The file has more than {_LONGEST >> 20} MiB."
        raise MalformedError(message)
    try:
        return json.loads(text, parse_float=_decimal, parse_constant=_decimal, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        message = f"The file is not a JSON document: {str(error)[:80]}"
        raise MalformedError(message) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(members := dict(pairs)) == len(pairs):
        return members
    message = "an object with the same key twice"
    raise ValueError(message)


def _decimal(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > _DIGITS or (exponent and abs(int(exponent[:9])) > _DIGITS):
        message = "a number of too many digits"
        raise ValueError(message)
    return Fraction(text)


def _refuse(name: str, rule: str) -> NoReturn:
    message = f"The certificate is invalid: {name} must be {rule}."
    raise MalformedError(message)


def _whole(given: Any, name: str, low: int) -> int:
    value = given.get(name) if isinstance(given, Mapping) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= low:
        return value
    return _refuse(name, f"a whole number from {low} on")


def _list(given: Any, name: str) -> list[Any]:
    value = given.get(name) if isinstance(given, Mapping) else None
    if not isinstance(value, list) or len(value) > _ENTRIES:
        _refuse(name, f"a list of at most {_ENTRIES:,} entries")
    return value


def _wholes(given: Any, name: str) -> list[int]:
    return [_whole({name: each}, name, 0) for each in _list(given, name)]


def _pairs(given: Any, name: str) -> list[tuple[int, int]]:
    pairs = [_wholes({name: each}, name) for each in _list(given, name)]
    if any(len(pair) != 2 for pair in pairs):
        _refuse(name, "a list of pairs")
    return [(first, second) for first, second in pairs]


def _fraction(value: Any, name: str) -> Fraction:
    if not isinstance(value, str) or len(value) > _DIGITS or not set(value) <= set("0123456789/"):
        _refuse(name, "a fraction")
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        return _refuse(name, "a fraction")


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
        probability = _fraction(truth, "truth")
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


def _check_randomizer(randomizer: Randomizer, release: str, dummies: int) -> None:
    if (randomizer.bits is not None) != (release == "sums"):
        _refuse("bits", "given for sums of one-hot reports, and only for these")
    if dummies and randomizer.rows is not None and randomizer.dummy is None:
        _refuse("dummy", "a probability for each report")


def _bits(given: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    entries = _list(given, "bits")
    if len(entries) != 2 or given.get("truth") is not None or given.get("rows") is not None:
        _refuse("bits", "two fractions, without truth and rows")
    p, q = (_fraction(entry, "bits") for entry in entries)
    if not 0 <= q < p <= 1:
        _refuse("bits", "two probabilities, the larger one first")
    return p, q


def _probabilities(row: list[Any], name: str) -> Law:
    law = [_number(entry, name) or Fraction(0) for entry in row]
    whole = sum(law, Fraction(0))
    if any(entry < 0 for entry in law) or abs(whole - 1) > _ROUNDING:
        _refuse(name, "probabilities that add up to 1")
    return [entry / whole for entry in law]


def _pair(given: Mapping[str, Any], k: int, n: int | None) -> tuple[tuple[tuple[int, int], ...], tuple[int, int]]:
    others, target = _wholes(given, "others"), _wholes(given, "target")
    if len(others) > k or (n is not None and sum(others) != n - 1):
        _refuse("others", "counts of n - 1 people by value")
    if len(target) != 2 or max(target) >= k or target[0] == target[1]:
        _refuse("target", "two different values")
    return tuple((x, count) for x, count in enumerate(others) if count), (target[0], target[1])
