"""The exceptions of hushuffle; all derive from `HushuffleError`, so that a caller can catch them together.

Every message names the argument (or file and key), the rule, the value and, if there is a fix, the fix.
Private values never appear in a message.
"""

from __future__ import annotations

from dataclasses import dataclass


class HushuffleError(Exception):
    """Base of every exception that hushuffle raises on purpose."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem in an argument or a specification: the key, the rule, the value, and a hint on how to fix it."""

    key: str
    rule: str
    value: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.key}: {self.rule}, got {self.value}.{hint}"


class InvalidInputError(HushuffleError, ValueError):
    """An argument breaks a rule: `problem` holds argument, rule, value and hint."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem)

    def __str__(self) -> str:
        problem = self.problem
        hint = f" {problem.hint}" if problem.hint else ""
        return f"`{problem.key}` {problem.rule}, got {problem.key}={problem.value}.{hint}"


class UnsupportedProtocolError(HushuffleError):
    """The question has no implemented answer for this protocol; the message names what is missing."""


class NumericalError(HushuffleError, ArithmeticError):
    """A result cannot be certified to a useful precision; the message says what to change."""


class DataError(HushuffleError, ValueError):
    """A data file or column cannot be used for the requested operation."""


class MissingDependencyError(HushuffleError, ImportError):
    """An optional dependency is needed; the message gives the extra that installs it."""

    @classmethod
    def of_program(cls, missing: ModuleNotFoundError) -> MissingDependencyError:
        return cls(f"{missing.name} is not installed. Install it with: pip install 'hushuffle[program]'")


class SpecificationError(HushuffleError, ValueError):
    """A specification is invalid; the exception lists all problems, not only the first."""

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        self.file = file
        self.problems = problems
        lines = [f"{file}: {len(problems)} problem{'s' if len(problems) != 1 else ''}"]
        lines += [f"  {problem}" for problem in problems]
        super().__init__("\n".join(lines))
