"""What would have to change where nothing meets the targets: each change is tried before it is given."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import tomli_w

from hushuffle.assessment.candidates import Candidate, Miss, Search, Wishes, rounded
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers.settings import LARGEST_EPSILON
from hushuffle.questions.dp.calibration import MOST_PEOPLE

_NEAREST: Final = 2
"""So many of those that come nearest are looked at."""

_USEFUL: Final = 0.25
"""A share that is off by more than this, typically, tells nobody anything."""

_RELAXED: Final = ("epsilon", "local_epsilon", "guessing", "reidentification")


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One change that is enough: a sentence, and the changed wishes (TOML), which something meets.

    `most_messages`: how many messages a person must be allowed to send on average, where that is the change.
    """

    sentence: str
    wishes: str
    most_messages: float | None = None


def advise(wishes: Wishes, missed: Sequence[Miss]) -> Iterator[Advice]:
    """Yield what would have to change: targets of privacy, that of accuracy, the number of people, or of messages."""
    tried = [miss for miss in missed if not miss.over][:_NEAREST]
    for change in (_less_private, _less_accurate, _more_people):
        for miss in tried:
            try:
                found = change(wishes, miss)
            except (UnsupportedProtocolError, InvalidInputError, NumericalError):
                continue
            if found is not None:
                yield found
                break
    # Those that take the fewest messages come first.
    yield from [_more_messages(wishes, miss) for miss in missed if miss.over == "messages"][:1]


def _less_private(wishes: Wishes, miss: Miss) -> Advice | None:
    """Allow what the mechanism gives where it is accurate enough."""
    if miss.local is None:
        return None
    given = miss.candidate or miss.search.candidate(miss.local)
    if any(target.key not in _RELAXED or target.got is None for target in given.unmet):
        return None
    allowed = {one.key: rounded(one.got.upper, up=True) for one in given.unmet if one.got is not None}
    # A local epsilon above what a file may say protects nothing: the target goes.
    dropped = "local_epsilon" if allowed.get("local_epsilon", 0.0) > LARGEST_EPSILON else ""
    words = " and ".join(
        f"no targets.{key}" if key == dropped else f"targets.{key} = {value:g}" for key, value in allowed.items()
    )
    allowed = {key: value for key, value in allowed.items() if key != dropped}
    return _checked(_asking(wishes, allowed, without=dropped), miss.search, words)


def _less_accurate(wishes: Wishes, miss: Miss) -> Advice | None:
    """Allow the error that the mechanism has where it is private enough."""
    if "standard_error" not in wishes.tables["targets"]:
        return None
    private = _asking(wishes, {}, without="standard_error")
    if not any(key in private.tables["targets"] for key in _RELAXED):
        return None
    found = replace(miss.search, wishes=private).run()
    if not isinstance(found, Candidate):
        return None
    error = rounded(found.point.standard_error, up=True)
    if not 0 < error <= max(_USEFUL, wishes.tables["targets"]["standard_error"]):
        return None
    return _checked(_asking(wishes, {"standard_error": error}), miss.search, f"targets.standard_error = {error:g}")


def _more_people(wishes: Wishes, miss: Miss) -> Advice | None:
    """Ask more people, where nobody has been asked yet: to two digits."""
    search = miss.search
    if "n" not in wishes.tables["population"] or "standard_error" not in wishes.tables["targets"]:
        return None
    few, many = wishes.n, _two_digits(2 * wishes.n)
    while (found := _with_people(wishes, search, many)) is None:
        if many >= MOST_PEOPLE:
            return None
        few, many = many, min(_two_digits(4 * many), MOST_PEOPLE)
    while (middle := _two_digits(math.sqrt(few * many))) < many and middle > few:
        one = _with_people(wishes, search, middle)
        few, many, found = (middle, many, found) if one is None else (few, middle, one)
    return found


def _with_people(wishes: Wishes, search: Search, n: int) -> Advice | None:
    tables = {**wishes.tables, "population": {**wishes.tables["population"], "n": n}}
    people = -(-n // max(1, wishes.n // wishes.people))
    return _checked(replace(wishes, tables=tables, n=n, people=people), search, f"{n:,} people")


def _more_messages(wishes: Wishes, miss: Miss) -> Advice:
    """Let people send as many messages as it takes: that the targets are met then has been found out."""
    assert miss.candidate is not None
    allowed = rounded(miss.candidate.messages, up=True)
    sentence = (
        f"With {allowed:g} messages of each person (most_messages): {miss.candidate.sentence}, meets all targets."
    )
    return Advice(sentence=sentence, wishes=tomli_w.dumps(dict(wishes.tables)), most_messages=allowed)


def _two_digits(value: float) -> int:
    """Return a whole number of two digits and zeros, rounded up."""
    unit = int(10 ** max(len(str(math.ceil(value))) - 2, 0))
    return -(-math.ceil(value) // unit) * unit


def _asking(wishes: Wishes, changed: Mapping[str, Any], *, without: str = "") -> Wishes:
    targets = {key: value for key, value in wishes.tables["targets"].items() if key != without}
    return replace(wishes, tables={**wishes.tables, "targets": {**targets, **changed}})


def _checked(changed: Wishes, search: Search, words: str) -> Advice | None:
    """Return the advice if it is true."""
    found = replace(search, wishes=changed).run()
    if not isinstance(found, Candidate):
        return None
    sentence = f"With {words}: {found.sentence}, meets all targets."
    return Advice(sentence=sentence, wishes=tomli_w.dumps(dict(changed.tables)))
