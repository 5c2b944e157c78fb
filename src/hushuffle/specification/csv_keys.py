"""Keys for the form of CSV files, the same in every type of specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from hushuffle.errors import InvalidInputError
from hushuffle.specification._base import Section, refuse
from hushuffle.tables.csv_form import UTF8, CsvForm, check_encoding, check_separator


def _encoding(value: str) -> str:
    return _checked(value, check_encoding)


def _separator(value: str) -> str:
    return _checked(value, check_separator)


def _checked(value: str, check: Callable[[str], None]) -> str:
    try:
        check(value)
    except InvalidInputError as error:
        refuse(error.problem.rule, error.problem.hint)
    return value


Encoding: TypeAlias = Annotated[str, AfterValidator(_encoding)]
Separator: TypeAlias = Annotated[str, AfterValidator(_separator)]


class CsvKeys(Section):
    """Keys for the form of CSV files: encoding and separator."""

    encoding: Encoding | None = None
    """The encoding of CSV files, such as "windows-1252" or "latin-1"; utf-8 by default."""
    separator: Separator | None = None
    """Separator of the fields of CSV files; if left out, a comma, or a tab in .tsv files."""

    @property
    def form(self) -> CsvForm:
        """The form of CSV files."""
        return CsvForm(encoding=self.encoding or UTF8, separator=self.separator)
