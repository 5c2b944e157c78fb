"""`hushuffle init` asks questions in plain words, and writes a first specification."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hushuffle.cli.console import Exit, misused, progress, width

if TYPE_CHECKING:
    from hushuffle.model import Progress

Answer = TypeVar("Answer")

_WIDEST: Final = 80
_MOST_PEOPLE: Final = 10**9
_MOST_VALUES: Final = 10**6
_MOST_ROUNDS: Final = 100_000
_MOST_REPORTS: Final = 10_000
_TIMES: Final = {"": 1, "k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6}
_LARGEST_DELTA: Final = 1e-6
_RELEASE: Final = {"a": 0.1, "b": 0.5, "c": 1.0}
_FAILED: Final = {"a": 1.0, "b": 2.0, "c": 4.0, "d": None}

_ASKED: Final = """Which answers may people give? Separate them by commas, or say how many
   there are, for example 5. [no, yes]"""
_PEOPLE: Final = """How many people will answer? [10,000]"""
_OFTEN: Final = """How many times in all will you ask the same people? 1, or for example 52:
   once a week for a year. [1]"""
_CHANGES: Final = """How many times may one person's answer change over all that time, at most?
   0 is rare: one person who changes stops the collection. Or "often". [often]"""
_TWICE: Final = """May one person answer more than once when you ask? Say how many answers of
   one person there are at most. [1]"""
_ACCURATE: Final = """How far off may an estimated share be? In percentage points: 1 means that
   an estimate of 30 % is typically off by 1 point, rarely by more than 2. [1]"""
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
   d  the shuffler is trusted: no limit
   or an epsilon of your own. [c]"""
_RUNS: Final = """Who runs the shuffler? A name for the report, or - if not yet decided. [-]"""
_SEES: Final = """Who is the analyst, the recipient of the release? A name, or -. [-]"""


def init(file: Path = Path("survey.toml"), /) -> Exit:
    """Ask about a survey, and write a specification that meets the answers.

    Examples (no files needed):
      hushuffle init
      hushuffle init hushuffle-out/survey.toml

    An empty line accepts the answer in brackets. The deployment in the file meets
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
        sentence, tables, advice = _designed(wishes, tell)
    if not tables:
        _no_way(advice)
        return Exit.MISSED
    from hushuffle.files.causes import naming  # noqa: PLC0415
    from hushuffle.files.private_files import private_file  # noqa: PLC0415

    with naming(file), private_file(file, first=True) as new:
        new.write(drafted(sentence, tables, wishes).encode())
    sys.stdout.write(f"\n{_filled(f'It meets all targets: {sentence}.')}\n")
    sys.stdout.write(f"Wrote {file}. Next: hushuffle assess {file}\n")
    return Exit.DONE


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Tables of a specification, the number of rounds, and how often answers change."""

    population: dict[str, Any]
    targets: dict[str, Any]
    statement: dict[str, str]
    rounds: int
    changes: int | None


def _designed(answers: _Asked, tell: Progress | None) -> tuple[str, Mapping[str, Any], Sequence[str]]:
    """The deployment in words and as tables; if none is possible, advice on changes."""
    # Imported here, so that the first question does not wait for numerics.
    if answers.rounds > 1 or "reports_per_person" in answers.population:
        from hushuffle.assessment.repeated import repeated  # noqa: PLC0415

        design = repeated(
            answers.population, answers.targets, rounds=answers.rounds, changes=answers.changes, progress=tell
        )
        return design.sentence, design.tables, design.advice
    import tomllib  # noqa: PLC0415

    from hushuffle.assessment.choose import choose  # noqa: PLC0415

    wishes = {"population": answers.population, "shuffler": {"kind": "uniform"}, "targets": answers.targets}
    choice = choose(wishes, progress=tell)
    if not choice.rows:
        return "", {}, [advice.sentence for advice in choice.advice]
    words = f"{choice.rows[0].sentence}, the first of {len(choice.rows)} deployments that hushuffle choose lists"
    return words, tomllib.loads(choice.rows[0].specification), ()


def _answers() -> _Asked:
    numbers = count(1)

    def ask(question: str, default: str, read: Callable[[str], Answer]) -> Answer:
        return _ask(next(numbers), question, default, read)

    values = ask(_ASKED, "no, yes", _values)
    people = ask(_PEOPLE, "10,000", lambda text: _whole(text, 2, _MOST_PEOPLE))
    rounds = ask(_OFTEN, "1", lambda text: _whole(text, 1, _MOST_ROUNDS))
    changes = ask(_CHANGES, "often", _changes) if rounds > 1 else None
    twice = ask(_TWICE, "1", lambda text: _whole(text, 1, _MOST_REPORTS))
    error = ask(_ACCURATE, "1", lambda text: _number(text, 50) / 100)
    again = f" of all {rounds:,} times" if rounds > 1 else ""
    release = ask(_REVEALED.format(rounds=again), "b", lambda text: _chosen(text, _RELEASE))
    seen = "each person's report is" if rounds == twice == 1 else "all reports of a person are"
    failed = ask(_SHUFFLER.format(reports=seen), "c", lambda text: _chosen(text, _FAILED))
    names = {"shuffler": ask(_RUNS, "-", _name), "analyst": ask(_SEES, "-", _name)}
    targets = {"delta": _delta(people), "standard_error": error, "epsilon": release, "local_epsilon": failed}
    several = {"reports_per_person": twice} if twice > 1 else {}
    return _Asked(
        population={"n": people * twice, **values, **several},
        targets={key: value for key, value in targets.items() if value is not None},
        statement={key: name for key, name in names.items() if name},
        rounds=rounds,
        changes=changes,
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


def _changes(text: str) -> int | None:
    return None if text.lower() == "often" else _whole(text, 0, _MOST_ROUNDS)


def _name(text: str) -> str:
    if not text.isprintable():
        message = "Give a name, or - if it is not yet decided."
        raise ValueError(message)
    return "" if text == "-" else text


def _values(text: str) -> dict[str, Any]:
    if re.fullmatch(r"[\d,]*\d", text):
        return {"k": _whole(text, 2, _MOST_VALUES)}
    values = [value.strip() for value in text.split(",")]
    if len(values) < 2 or not all(value and value.isprintable() for value in values):
        message = "Give two answers or more, separated by commas, for example: no, yes."
        raise ValueError(message)
    if len(set(values)) < len(values):
        message = "Give each answer once."
        raise ValueError(message)
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
        message = f"Give a whole number from {least:,} to {most:,}{example}."
        raise ValueError(message)
    return value


def _number(text: str, most: float) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 < value < most:
        message = f"Give a number above 0 and below {most:g}, for example 0.5."
        raise ValueError(message)
    return value


def _chosen(text: str, letters: Mapping[str, float | None]) -> float | None:
    return letters[text.lower()] if text.lower() in letters else _epsilon(text, ", ".join(letters))


def _epsilon(text: str, letters: str) -> float:
    try:
        return _number(text, 40)
    except ValueError:
        message = f"Answer with one of {letters}, or with a number above 0 and below 40."
        raise ValueError(message) from None


def _delta(n: int) -> float:
    """A power of ten, at most a tenth of one over the number of people."""
    return min(_LARGEST_DELTA, float(f"1e-{len(str(n)) + 1}"))


def _no_way(advice: Sequence[str]) -> None:
    would = "What would do:" if advice else "Relax a target, or ask more people."
    sys.stdout.write(f"\nNo deployment meets all targets, and no file was written. {would}\n")
    sys.stdout.write("".join(f"{_filled(f'- {sentence}')}\n" for sentence in advice))


def _filled(text: str) -> str:
    """Wrapped to the width of the terminal, at most 80; all lines after the first are indented."""
    return textwrap.fill(text, min(width(), _WIDEST), subsequent_indent="  ", break_on_hyphens=False)


def drafted(sentence: str, tables: Mapping[str, Any], asked: _Asked) -> str:
    import tomli_w  # noqa: PLC0415 - only when needed

    about = {
        "population": 'The people. With data of your own, write data = "people.csv", column = "..." instead of n.',
        "randomizer": "How each device changes its answer. Epsilon limits the loss if the shuffler fails.",
        "shuffler": "What hides who sent which report.",
        "targets": "The targets. hushuffle assess reports whether each is met.",
        "statement": "The names of the parties. [statement.vouched] names who confirms each assumption.",
    }
    if asked.population.get("reports_per_person"):
        about["population"] = "The people: n is the number of reports. One person sends at most reports_per_person."
    values = {"population": asked.population, "targets": asked.targets, "statement": asked.statement}
    parts = [f"{_comment(f'{sentence}: proposed by hushuffle init. Check and change every setting as you need.')}\n"]
    times = {key: tables[key] for key in ("rounds", "memoised", "changes") if key in tables}
    if times:
        memoized = "A device draws a report once and memoizes it. changes: how often one person's value may change."
        words = memoized if "memoised" in times else "Every person sends a fresh report in each round."
        parts.append(f"{_comment(f'How often the same people are asked. {words}')}\n{tomli_w.dumps(times)}")
    for name, words in about.items():
        content = values.get(name, tables.get(name))
        if content:
            parts.append(f"{_comment(words)}\n{tomli_w.dumps({name: content})}")
    return "\n".join(parts)


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDEST, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
