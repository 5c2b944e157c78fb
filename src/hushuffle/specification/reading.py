"""`load` and `parse`: TOML text to a `Specification`, or every problem at once in plain words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from pydantic import ValidationError

from hushuffle.errors import Problem, SpecificationError
from hushuffle.files.causes import cause
from hushuffle.specification._base import Section
from hushuffle.specification.rules import broken_rules
from hushuffle.specification.specification import Specification
from hushuffle.specification.wording import COLLECTION, Vocabulary, problem, shown

_PLACE: Final = re.compile(r"(.*?)(?: \(at (?:line (\d+), column (\d+)|end of document)\))?", re.DOTALL)
_UNNAMED: Final = "specification"
AnySection = TypeVar("AnySection", bound=Section)
"""The whole of one kind of file."""


def load(path: str | Path) -> Specification:
    """Return the specification in the TOML file `path`.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parse(read_text(path), file=str(path))


def read_text(path: str | Path) -> str:
    """Return the text of a file.

    Raises:
        SpecificationError: it cannot be read.
    """
    file = Path(path)
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        _fail(file, Problem(key="file", rule="must exist", value=str(file)))
    except OSError as error:
        _fail(file, Problem(key="file", rule="must be a file that can be read", value=cause(error)))
    except UnicodeDecodeError as error:
        _fail(file, Problem(key="file", rule="must be UTF-8 text", value=f"something else at byte {error.start}"))


def parse(text: str, *, file: str = _UNNAMED) -> Specification:
    """Return the specification that TOML `text` states; `file` is for messages.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    _refuse_columns(text, file)
    return parsed(text, Specification, file=file, rules=broken_rules, words=COLLECTION)


def _refuse_columns(text: str, file: str) -> None:
    """Say in one sentence what a file of several columns is for."""
    with suppress(tomllib.TOMLDecodeError, RecursionError):
        if "columns" in tomllib.loads(text):
            hint = "Such a file is for hushuffle collect. To assess it, write a file for each column."
            _fail(file, Problem(key="columns", rule="must be left out here", value="several columns", hint=hint))


def parsed(
    text: str,
    model: type[AnySection],
    *,
    file: str,
    rules: Callable[[Mapping[str, Any]], Iterator[Problem]],
    words: Vocabulary,
) -> AnySection:
    """Return what TOML `text` states as a `model`, whose `rules` tie values together and whose tables `words` names.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _fail(file, _syntax(str(error), text, file))
    except RecursionError:
        _fail(file, Problem(key="file", rule="must not nest so deeply", value="hundreds of brackets"))
    broken, found = list(rules(raw)), []
    try:
        specification = model.model_validate(raw)
    except ValidationError as error:
        # What the model says about the whole (no location) are the broken rules once more.
        found = [problem(one, raw, words) for one in error.errors(include_url=False) if one["loc"] or not broken]
    if found or broken:
        raise SpecificationError(file, tuple(_in_order([*found, *broken], list(model.model_fields))))
    return specification


def _syntax(message: str, text: str, file: str) -> Problem:
    """Say where TOML is wrong. A line of a file that is called otherwise is not shown: it may be one of data."""
    found = _PLACE.fullmatch(message)
    assert found is not None  # the place is optional
    lines = text.rstrip().split("\n")
    line, column = int(found[2] or len(lines)), int(found[3] or len(lines[-1]) + 1)
    key = f"line {line}, column {column}"
    if not file.endswith((".toml", _UNNAMED)):
        hint = "Is it the specification? A line is shown only where the name of the file ends in .toml."
        return Problem(key=key, rule="must be valid TOML", value="something else", hint=hint)
    return Problem(key=key, rule=f"must be valid TOML ({found[1]})", value=shown(text.split("\n")[line - 1].strip()))


def _in_order(problems: list[Problem], sections: list[str]) -> Iterator[Problem]:
    """Yield each problem once, section by section, the top of the file first."""

    def rank(one: Problem) -> int:
        name = re.split(r"[.\[]", one.key)[0]
        return sections.index(name) if name in sections else -1

    yield from sorted(dict.fromkeys(problems), key=rank)


def _fail(file: str | Path, problem: Problem) -> NoReturn:
    raise SpecificationError(str(file), (problem,)) from None
