"""The exceptions of hushuffle: one tree, so that a caller can catch all of it.

Every message names the argument (or file and key), the rule, the value and, where
there is one, a way out. Private values never appear in a message.
"""

from __future__ import annotations

from dataclasses import dataclass


class HushuffleError(Exception):
    """Base of every exception that hushuffle raises on purpose."""


class InvalidInputError(HushuffleError, ValueError):
    """An argument breaks a rule; the message names argument, rule and value."""


class UnsupportedProtocolError(HushuffleError):
    """The question has no implemented answer for this protocol; the message names what is missing."""


class NumericalError(HushuffleError, ArithmeticError):
    """A figure could not be certified to a useful precision; the message advises what to change."""


class DataError(HushuffleError, ValueError):
    """A data file or column cannot be used as asked."""


class MissingDependencyError(HushuffleError, ImportError):
    """An optional dependency is needed; the message gives the extra that installs it."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong with a specification: where, what rule, which value, what to do."""

    key: str
    rule: str
    value: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.key}: {self.rule}, got {self.value}.{hint}"


class SpecificationError(HushuffleError, ValueError):
    """A specification is wrong; carries every problem at once, not only the first."""

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        self.file = file
        self.problems = problems
        lines = [f"{file}: {len(problems)} problem{'s' if len(problems) != 1 else ''}"]
        lines += [f"  {problem}" for problem in problems]
        super().__init__("\n".join(lines))
