"""The summary of a study for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from hushuffle import _checks
from hushuffle.model import Study
from hushuffle.report.diagrams import wrapped
from hushuffle.report.formatting import plain
from hushuffle.report.printing import findings, item, printed, text, warning
from hushuffle.report.study_document import refuse_nan
from hushuffle.report.table_lines import table_lines


def study_terminal(study: Study, width: int = 80, *, color: bool = False) -> str:
    """Return the summary as text, no line longer than `width` columns.

    Plain text, unless `color` asks for ANSI escapes (when the text goes to a terminal). Columns of a table
    that do not fit are left out, and it says so.

    Raises:
        InvalidInputError: `width` below 40, or a number of the study is nan.
    """
    refuse_nan(study)
    _checks.integer("width", width, low=40)
    return printed(_parts(study, width), width, color=color)


def _parts(study: Study, width: int) -> Iterable[RenderableType]:
    yield text(study.title, "bold")
    yield text(study.question)
    yield Text()
    for answer in study.answers:
        yield item(answer)
    for warned in study.warnings:
        yield from warning(warned)
    if study.findings:
        yield Text()
        yield findings(study.findings)
    for drawn in study.diagrams:
        yield Text()
        yield text(drawn.title, "bold")
        yield from map(Text, wrapped(drawn.text, width))
    for made in study.tables:
        yield from table_lines(made, width, page="study.html", numbers="study.json")
    titles = [
        *(drawn.title for drawn in study.diagrams),
        *(chart.title for chart in study.charts),
        *(heat_map.title for heat_map in study.heat_maps),
        *(point_map.title for point_map in study.maps),
    ]
    if titles:
        yield Text()
        yield text(f"Pictures, in study.html: {'; '.join(map(plain, titles))}.")
