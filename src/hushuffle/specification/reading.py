"""`load` and `parse`: TOML text to a `Specification`, or every problem at once in plain words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

from pydantic import ValidationError

from hushuffle.errors import Problem, SpecificationError
from hushuffle.specification.rules import broken_rules
from hushuffle.specification.specification import Specification
from hushuffle.specification.wording import problem, shown

_PLACE: Final = re.compile(r"(.*?)(?: \(at (?:line (\d+), column (\d+)|end of document)\))?", re.DOTALL)


def load(path: str | Path) -> Specification:
    """Return the specification in the TOML file `path`.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    file = Path(path)
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        _fail(file, Problem(key="file", rule="must exist", value=str(file)))
    except OSError as error:
        _fail(file, Problem(key="file", rule="must be a file that can be read", value=error.strerror or "an error"))
    except UnicodeDecodeError as error:
        _fail(file, Problem(key="file", rule="must be UTF-8 text", value=f"something else at byte {error.start}"))
    return parse(text, file=str(file))


def parse(text: str, *, file: str = "specification") -> Specification:
    """Return the specification that TOML `text` states; `file` is for messages.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _fail(file, _syntax(str(error), text))
    except RecursionError:
        _fail(file, Problem(key="file", rule="must not nest so deeply", value="hundreds of brackets"))
    broken, found = list(broken_rules(raw)), []
    try:
        specification = Specification.model_validate(raw)
    except ValidationError as error:
        # What the model says about the whole (no location) are the broken rules once more.
        found = [problem(one, raw) for one in error.errors(include_url=False) if one["loc"] or not broken]
    if found or broken:
        raise SpecificationError(file, tuple(_in_order([*found, *broken])))
    return specification


def _syntax(message: str, text: str) -> Problem:
    found = _PLACE.fullmatch(message)
    assert found is not None  # the place is optional
    lines = text.rstrip().split("\n")
    line, column = int(found[2] or len(lines)), int(found[3] or len(lines[-1]) + 1)
    rule = f"must be valid TOML ({found[1]})"
    return Problem(key=f"line {line}, column {column}", rule=rule, value=shown(text.split("\n")[line - 1].strip()))


def _in_order(problems: list[Problem]) -> Iterator[Problem]:
    """Yield each problem once, section by section, the top of the file first."""
    sections = list(Specification.model_fields)

    def rank(one: Problem) -> int:
        name = re.split(r"[.\[]", one.key)[0]
        return sections.index(name) if name in sections else -1

    yield from sorted(dict.fromkeys(problems), key=rank)


def _fail(file: str | Path, problem: Problem) -> NoReturn:
    raise SpecificationError(str(file), (problem,)) from None
