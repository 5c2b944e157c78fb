"""`hushuffle init` asks questions in plain words, and writes a first specification."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from hushuffle.cli.console import Exit, misused, progress, width, write_new

Answer = TypeVar("Answer")

_WIDEST: Final = 80
_MOST_PEOPLE: Final = 10**9
_MOST_VALUES: Final = 10**6
_MOST_ROUNDS: Final = 100_000
_MOST_REPORTS: Final = 10_000
_TIMES: Final = {"": 1, "k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6}
_MOST_COLUMNS: Final = 50
_LARGEST_DELTA: Final = 1e-6
_RELEASE: Final = {"a": 0.1, "b": 0.5, "c": 1.0}
_FAILED: Final = {"a": 1.0, "b": 2.0, "c": 4.0, "d": None}

_ASKED: Final = """Which answers may people give? Separate them by commas, or say how many
   there are, for example 5. Or write columns (several questions), number (for
   a mean) or sum. [no, yes]"""
_COLUMNS: Final = """Which questions do you ask, and which answers may people give? Separate
   questions by semicolons. [smokes: no, yes; health: good, fair, poor]"""
_RANGE: Final = """Between which two numbers are the answers? Decide it without the answers: a
   number outside counts as the nearer bound. [0 to 100]"""
_LEVELS: Final = """To how many equally spaced levels are numbers rounded? Or best: as many as
   need the most noise. [best]"""
_PEOPLE: Final = """How many people will answer? [10,000]"""
_OFTEN: Final = """How many times in all will you ask the same people? 1, or for example 52:
   once a week for a year. [1]"""
_CHANGES: Final = """How many times may one person's answer change over all that time, at most?
   0 is rare: one person who changes stops the collection. Or "often". [often]"""
_TWICE: Final = """May one person answer more than once when you ask? Say how many answers of
   one person there are at most. [1]"""
_ACCURATE: Final = """How far off may an estimated share be? In percentage points: 1 means that
   an estimate of 30 % is typically off by 1 point, rarely by more than 2. [1]"""
_MEAN: Final = """How far off may the estimated mean be, in the unit of the numbers? {error} means
   that it is typically off by {error}, rarely by more than twice as much. [{error}]"""
_REVEALED: Final = """How much may the release{rounds} reveal about one person to an adversary
   that knows all other answers (except with probability one in a million)?
   a  very little: odds of 50:50 become 53:47 at most (epsilon 0.1)
   b  little: 63:37 at most (epsilon 0.5)
   c  something: 74:26 at most (epsilon 1)
   or an epsilon of your own. [b]"""
_SHUFFLER: Final = """What if the shuffler fails, and {reports} seen with a name?
   a  it must reveal little: 50:50 becomes 74:26 at most (epsilon 1)
   b  it may make an answer likely: 89:11 at most (epsilon 2)
   c  it may make an answer almost certain: 99:1 at most (epsilon 4)
   d  the shuffler is trusted: no limit{messages}
   or an epsilon of your own. [c]"""
_MESSAGES: Final = """
   e  as d, and people may send blanket messages, for smaller errors"""
_HONEST: Final = """What percentage of the people answer, follow the protocol and do not
   collude with the analyst? The shuffler must release nothing of fewer. [90]"""
_ERRORS: Final = {
    "number": " The standard error of the mean is no target: standard_error is about shares of levels.",
    "sum": " standard_error is that of the mean, the sum divided by the number of people.",
}
_RUNS: Final = """Who runs the shuffler? A name for the report, or - if not yet decided. [-]"""
_SEES: Final = """Who is the analyst, the recipient of the release? A name, or -. [-]"""


def init(file: Path = Path("survey.toml"), /) -> Exit:
    """Ask about a survey, and write a specification that meets the answers.

    Examples (no files needed):
      hushuffle init
      hushuffle init hushuffle-out/survey.toml

    An empty line accepts the answer in brackets. The first question also takes
    the kind of answers: columns, number or sum. The deployment in the file meets
    all targets over all rounds. Next, run assess on it. Nothing is overwritten.

    Args:
        file: new file to write.
    """
    if file.exists():
        misused(f"{file} exists and is not overwritten. Choose a new file.")
    from hushuffle.files.private_files import refuse_file  # noqa: PLC0415 - only when needed

    refuse_file(file)
    wishes = _answers()
    with progress(enabled=sys.stderr.isatty()) as tell:
        # Imported here, so that the first question does not wait for numerics.
        from hushuffle.assessment.proposed import proposed  # noqa: PLC0415

        result = proposed(wishes.kind, wishes.population, wishes.targets, **wishes.more, progress=tell)
    if not result.tables:
        would = "What would do:" if result.advice else "Relax a target, or ask more people."
        sys.stdout.write(f"\nNo deployment meets all targets, and no file was written. {would}\n")
        sys.stdout.write("".join(f"{_filled(f'- {sentence}')}\n" for sentence in result.advice))
        return Exit.MISSED
    write_new(file, drafted(result.sentence, result.tables, wishes))
    sys.stdout.write(f"\n{_filled(f'It meets all targets: {result.sentence}.')}\n")
    sys.stdout.write(f"Wrote {file}. Next: hushuffle assess {file}\n")
    return Exit.DONE


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The tables for a file, and `more` that decides which deployments are tried."""

    kind: str
    population: dict[str, Any]
    targets: dict[str, Any]
    statement: dict[str, str]
    more: dict[str, Any]


def _answers() -> _Asked:
    numbers = count(1)

    def ask(question: str, default: str, read: Callable[[str], Answer]) -> Answer:
        return _ask(next(numbers), question, default, read)

    kind, values = ask(_ASKED, "no, yes", _kind)
    columns = ask(_COLUMNS, "smokes: no, yes; health: good, fair, poor", _columns) if kind == "columns" else []
    mean = kind in ("number", "sum")
    if mean:
        values = {"kind": "number", **ask(_RANGE, "0 to 100", _range)}
    if kind == "number":
        values |= ask(_LEVELS, "best", lambda text: {} if text.lower() == "best" else {"levels": _whole(text, 2, 1024)})
    people = ask(_PEOPLE, "10,000", lambda text: _whole(text, 2, _MOST_PEOPLE))
    rounds = ask(_OFTEN, "1", lambda text: _whole(text, 1, _MOST_ROUNDS))
    changes = None
    if kind == "shares" and rounds > 1:
        never = "often"
        changes = ask(_CHANGES, never, lambda text: None if text.lower() == never else _whole(text, 0, _MOST_ROUNDS))
    twice = ask(_TWICE, "1", lambda text: _whole(text, 1, _MOST_REPORTS)) if kind in ("shares", "number") else 1
    if mean:
        width = values["high"] - values["low"]
        error = ask(_MEAN.format(error=f"{width / 100:g}"), f"{width / 100:g}", lambda text: _number(text, width / 2))
    else:
        error = ask(_ACCURATE, "1", lambda text: _number(text, 50) / 100)
    again = f" of all {rounds:,} times" if rounds > 1 else ""
    release = ask(_REVEALED.format(rounds=again), "b", lambda text: _chosen(text, _RELEASE))
    failed, messages, honest = None, False, 1.0
    if kind == "sum":
        honest = ask(_HONEST, "90", lambda text: _whole(text.removesuffix("%").strip(), 1, 100) / 100)
    else:
        seen = "each person's report is" if rounds == twice == 1 and not columns else "all reports of a person are"
        question = _SHUFFLER.format(reports=seen, messages=_MESSAGES if kind == "shares" else "")
        failed, messages = ask(question, "c", lambda text: _failed(text, messages=kind == "shares"))
    names = {"shuffler": ask(_RUNS, "-", _name), "analyst": ask(_SEES, "-", _name)}
    targets = {"delta": usual_delta(people), "standard_error": error, "epsilon": release, "local_epsilon": failed}
    if twice > 1:
        values |= {"reports_per_person": twice}
    return _Asked(
        kind=kind,
        population={"n": people * twice, **values},
        targets={key: value for key, value in targets.items() if value is not None},
        statement={key: name for key, name in names.items() if name},
        more={"rounds": rounds, "changes": changes, "columns": columns, "honest": honest, "messages": messages},
    )


def _ask(place: int, question: str, default: str, read: Callable[[str], Answer]) -> Answer:
    """Asks until the answer is valid; if the input is a file or a pipe, an invalid answer ends the run."""
    while True:
        sys.stdout.write(f"{place}. {question}\n> ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            misused(f"The input ended before question {place}. init needs one line for each question.")
        piped = not sys.stdin.isatty()
        if piped:
            sys.stdout.write("\n")
        try:
            return read(line.strip() or default)
        except ValueError as error:
            if piped:
                misused(f"question {place}: {error}")
            sys.stdout.write(f"   {error}\n")


def _name(text: str) -> str:
    if not text.isprintable():
        _wrong("Give a name, or - if it is not yet decided.")
    return "" if text == "-" else text


def _kind(text: str) -> tuple[str, dict[str, Any]]:
    """The kind of answers, and the answers if they are shares."""
    word = text.lower().strip("\"' .")
    return (word, {}) if word in ("columns", "number", "sum") else ("shares", _values(text))


def _columns(text: str) -> list[dict[str, Any]]:
    """Columns with their answers.

    >>> _columns("smokes: no, yes; mood: 5")
    [{'name': 'smokes', 'categories': ['no', 'yes']}, {'name': 'mood', 'k': 5}]
    """
    parts = [part.partition(":") for part in text.strip("; ").split(";")]
    names = [name.strip() for name, _, _ in parts]
    if not 2 <= len(parts) <= _MOST_COLUMNS or not all(re.fullmatch(r"\w[\w-]{0,99}", name) for name in names):
        example = "for example smokes: no, yes; mood: 5"
        _wrong(f"Give 2 to {_MOST_COLUMNS} questions, {example}. A name has at most 100 letters, digits, _ and -.")
    if len({name.casefold() for name in names}) < len(names):
        _wrong("Give each question another name.")
    return [{"name": name, **_values(answers.strip())} for name, (_, _, answers) in zip(names, parts, strict=True)]


def _range(text: str) -> dict[str, float]:
    """The bounds of numbers.

    >>> _range("0 to 120"), _range("-2.5 to 1e3")
    ({'low': 0, 'high': 120}, {'low': -2.5, 'high': 1000})
    """
    try:
        low, high = (float(part) for part in text.lower().split("to"))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        _wrong("Give two numbers, the smaller one first, for example 0 to 120.")
    return {"low": int(low) if low.is_integer() else low, "high": int(high) if high.is_integer() else high}


def _failed(text: str, *, messages: bool) -> tuple[float | None, bool]:
    """The largest local epsilon (None: no limit), and whether people may send blanket messages."""
    return (None, True) if messages and text.lower() == "e" else (_chosen(text, _FAILED), False)


def _values(text: str) -> dict[str, Any]:
    if re.fullmatch(r"[\d,]*\d", text):
        return {"k": _whole(text, 2, _MOST_VALUES)}
    values = [value.strip() for value in text.split(",")]
    if len(values) < 2 or not all(value and value.isprintable() for value in values):
        _wrong("Give two answers or more, separated by commas, for example: no, yes.")
    if len(set(values)) < len(values):
        _wrong("Give each answer once.")
    return {"categories": values}


def _whole(text: str, least: int, most: int) -> int:
    """A whole number, also as 12,000, 12.000, 12 000, 12k or 2 million.

    >>> [_whole(text, 2, 10**9) for text in ("12,000", "12.000", "12 000", "12k", "2 million")]
    [12000, 12000, 12000, 12000, 2000000]
    """
    match = re.fullmatch(r"(\d{1,3}(?:[.,'_\s]\d{3})+|\d+)\s*(k|m|thousand|million)?", text.lower(), re.ASCII)
    value = int(re.sub(r"\D", "", match[1])) * _TIMES[match[2] or ""] if match else -1
    if not least <= value <= most:
        example = f", for example {min(most, max(least, 12_000)):,}" if most > _MOST_REPORTS else ""
        _wrong(f"Give a whole number from {least:,} to {most:,}{example}.")
    return value


def _number(text: str, most: float) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 < value < most:
        _wrong(f"Give a number above 0 and below {most:g}, for example {min(0.5, most / 2):g}.")
    return value


def _chosen(text: str, letters: Mapping[str, float | None]) -> float | None:
    if text.lower() in letters:
        return letters[text.lower()]
    try:
        return _number(text, 40)
    except ValueError:
        _wrong(f"Answer with one of {', '.join(letters)}, or with a number above 0 and below 40.")


def _wrong(rule: str) -> NoReturn:
    raise ValueError(rule) from None


def usual_delta(n: int) -> float:
    """A power of ten, at most a tenth of one over the number of people."""
    return min(_LARGEST_DELTA, float(f"1e-{len(str(n)) + 1}"))


def _filled(text: str) -> str:
    """Wrapped to the width of the terminal, at most 80; all lines after the first are indented."""
    return textwrap.fill(text, min(width(), _WIDEST), subsequent_indent="  ", break_on_hyphens=False)


def drafted(sentence: str, tables: Mapping[str, Any], asked: _Asked) -> str:
    import tomli_w  # noqa: PLC0415 - only when needed

    about = {
        "population": 'The people. With data of your own, write data = "people.csv", column = "..." instead of n.',
        "randomizer": "How each device changes its answer. Epsilon limits the loss if the shuffler fails.",
        "columns": "The questions. Each has its randomizer; limits of epsilon are for all questions together.",
        "shuffler": "What hides who sent which report.",
        "sum": "The noise of a round, if the share honest of the people follows the protocol. A compromised shuffler "
        "learns every number.",
        "targets": "The targets. hushuffle assess reports whether each is met.",
        "statement": "The names of the parties. [statement.vouched] names who confirms each assumption.",
    }
    if asked.population.get("reports_per_person"):
        about["population"] = "The people: n is the number of reports. One person sends at most reports_per_person."
    if tables["shuffler" if "shuffler" in tables else "sum"].get("kind") == "blanket-messages":
        about["randomizer"] = 'Reports are true ("inf"): a compromised shuffler learns every answer.'
        about["shuffler"] += " Add honest = 0.9 if only 90 % of the people follow the protocol and do not collude."
    about["targets"] += _ERRORS.get(asked.kind, "")
    values = {"population": asked.population, "targets": asked.targets, "statement": asked.statement}
    parts = [f"{_comment(f'{sentence}: proposed by hushuffle init. Check and change every setting as you need.')}\n"]
    times = {key: tables[key] for key in ("rounds", "memoised", "changes") if key in tables}
    if times:
        memoized = "A device draws a report once and memoizes it. changes: how often one person's value may change."
        words = memoized if "memoised" in times else "Every person sends a fresh report in each round."
        parts.append(f"{_comment(f'How often the same people are asked. {words}')}\n{tomli_w.dumps(times)}")
    for name, words in about.items():
        content: Any = values[name] if name in values and asked.kind == "shares" else tables.get(name, values.get(name))
        if content:
            text = tomli_w.dumps({name: content})
            if name == "columns":  # never inline: the keys after them would belong to another table
                text = "\n".join(f"[[columns]]\n{tomli_w.dumps(column)}" for column in content)
                text = text.replace("\n[randomizer]\n", "\n[columns.randomizer]\n")
            parts.append(f"{_comment(words)}\n{text}")
    return "\n".join(parts)


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDEST, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
