"""`hushuffle init`: five questions, and a first specification."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hushuffle.cli.console import Exit, UsageError, progress, width

if TYPE_CHECKING:
    from hushuffle.assessment.candidates import Candidate
    from hushuffle.assessment.choose import Choices

Answer = TypeVar("Answer")

_WIDEST: Final = 80
_MOST_PEOPLE: Final = 10**9
_MOST_VALUES: Final = 10**6
_LARGEST_DELTA: Final = 1e-6
_RELEASE: Final = {"a": 0.1, "b": 0.5, "c": 1.0}
_FAILED: Final = {"a": 1.0, "b": 2.0, "c": 4.0, "d": None}

_ASKED: Final = """1. Which answers may people give? Separate them by commas, or say how many
   there are, for example 5. [no, yes]"""
_PEOPLE: Final = """2. How many people will answer? [10,000]"""
_ACCURATE: Final = """3. How far off may an estimated share be? In percentage points: 1 means that
   an estimate of 30 % is typically off by 1 point, rarely by more than 2. [1]"""
_REVEALED: Final = """4. How much may the release reveal about one person, to somebody who knows
   everybody else's answer (but for a chance of one in a million)?
   a  next to nothing: odds of 50:50 become 53:47 at most (epsilon 0.1)
   b  little: 63:37 at most (epsilon 0.5)
   c  something: 74:26 at most (epsilon 1)
   or an epsilon of your own. [b]"""
_SHUFFLER: Final = """5. What if the shuffler fails, and everybody's report is seen with a name?
   a  the report must say little: 50:50 becomes 74:26 at most (epsilon 1)
   b  it may make an answer likely: 89:11 at most (epsilon 2)
   c  it may all but give it away: 99:1 at most (epsilon 4)
   d  the shuffler is trusted: no limit
   or an epsilon of your own. [c]"""


def init(file: Path = Path("survey.toml"), /) -> Exit:
    """Ask five questions, and write a first specification for what was answered.

    An empty line takes what stands in brackets. The deployment is the first
    one of choose; assess takes the file as it is. Nothing is overwritten.

    Args:
        file: the new file to write.
    """
    if file.exists():
        message = f"{file} is there already. Nothing is overwritten: give the name of a new file."
        raise UsageError(message)
    from hushuffle.files import outputs  # noqa: PLC0415 - only when needed

    outputs.refuse_file(file)
    population, targets = _answers()
    # Imported here, so that the first question does not wait for numerics.
    from hushuffle.assessment.choose import choose  # noqa: PLC0415

    with progress(enabled=sys.stderr.isatty()) as tell:
        found = choose({"population": population, "targets": targets}, progress=tell)
    if not found.rows:
        _no_way(found)
        return Exit.MISSED
    from hushuffle.files.causes import naming  # noqa: PLC0415
    from hushuffle.files.private_files import private_file  # noqa: PLC0415

    with naming(file), private_file(file, first=True) as new:
        new.write(drafted(found.rows[0], population, targets).encode())
    sys.stdout.write(f"\n{_filled(f'First of {len(found.rows)} that meet all targets: {found.rows[0].sentence}.')}\n")
    sys.stdout.write(f"Wrote {file}. Next: hushuffle assess {file}\n")
    return Exit.DONE


def _answers() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables [population] and [targets]."""
    values = _ask(_ASKED, "no, yes", _values)
    n = _ask(_PEOPLE, "10,000", lambda text: _whole(text, 2, _MOST_PEOPLE))
    error = _ask(_ACCURATE, "1", lambda text: _number(text, 50) / 100)
    release = _ask(_REVEALED, "b", lambda text: _chosen(text, _RELEASE))
    failed = _ask(_SHUFFLER, "c", lambda text: _chosen(text, _FAILED))
    targets = {"delta": _delta(n), "standard_error": error, "epsilon": release, "local_epsilon": failed}
    return {"n": n, **values}, {key: value for key, value in targets.items() if value is not None}


def _ask(question: str, default: str, read: Callable[[str], Answer]) -> Answer:
    """Ask until an answer can be read."""
    while True:
        sys.stdout.write(f"{question}\n> ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            message = "init takes five lines, one for each question; the input ended before."
            raise UsageError(message)
        if not sys.stdin.isatty():
            sys.stdout.write("\n")
        try:
            return read(line.strip() or default)
        except ValueError as error:
            sys.stdout.write(f"   {error}\n")


def _values(text: str) -> dict[str, Any]:
    if re.fullmatch(r"[\d,]*\d", text):
        return {"k": _whole(text, 2, _MOST_VALUES)}
    values = [value.strip() for value in text.split(",")]
    if len(values) < 2 or not all(value and value.isprintable() for value in values):
        message = "Give two answers or more, for example: no, yes."
        raise ValueError(message)
    if len(set(values)) < len(values):
        message = "Give each answer once."
        raise ValueError(message)
    return {"categories": values}


def _whole(text: str, least: int, most: int) -> int:
    plain = re.sub(r"[,_ ]", "", text)
    if not plain.isascii() or not plain.isdigit() or not least <= int(plain) <= most:
        message = f"Give a whole number from {least:,} to {most:,}."
        raise ValueError(message)
    return int(plain)


def _number(text: str, most: float) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 < value < most:
        message = f"Give a number above 0 and below {most:g}."
        raise ValueError(message)
    return value


def _chosen(text: str, letters: Mapping[str, float | None]) -> float | None:
    return letters[text.lower()] if text.lower() in letters else _epsilon(text, ", ".join(letters))


def _epsilon(text: str, letters: str) -> float:
    try:
        return _number(text, 40)
    except ValueError:
        message = f"Give one of {letters}, or a number above 0 and below 40."
        raise ValueError(message) from None


def _delta(n: int) -> float:
    """Return a power of ten, at most a tenth of one over the number of people."""
    return min(_LARGEST_DELTA, float(f"1e-{len(str(n)) + 1}"))


def _no_way(found: Choices) -> None:
    would = "What would do:" if found.advice else "Ask for less, or for more people."
    sys.stdout.write(f"\nNothing meets all of that, and nothing was written. {would}\n")
    sys.stdout.write("".join(f"{_filled(f'- {advice.sentence}')}\n" for advice in found.advice))


def _filled(text: str) -> str:
    """Return a text in lines as wide as the terminal, at most 80; the second one and others are indented."""
    return textwrap.fill(text, min(width(), _WIDEST), subsequent_indent="  ", break_on_hyphens=False)


def drafted(row: Candidate, population: Mapping[str, Any], targets: Mapping[str, Any]) -> str:
    """Return a specification with comments."""
    import tomllib  # noqa: PLC0415 - only when needed

    import tomli_w  # noqa: PLC0415

    tables = tomllib.loads(row.specification)
    about = {
        "population": 'Who is asked. With data of your own: data = "people.csv", column = "..." instead of n.',
        "randomizer": "What each device does with the answer before it leaves. Epsilon: if the shuffler fails.",
        "shuffler": "What hides who sent which report.",
        "targets": "What is asked: assess says whether it is met.",
    }
    values = {"population": population, "targets": targets}
    first = f"{row.sentence}: chosen by hushuffle init. Everything in it is for you to decide."
    parts = [f"{_comment(first)}\n"]
    for name, words in about.items():
        parts.append(f"{_comment(words)}\n{tomli_w.dumps({name: values.get(name, tables[name])})}")
    return "\n".join(parts)


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDEST, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
