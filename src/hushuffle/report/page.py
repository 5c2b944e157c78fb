"""`report.html`: one self-contained page."""

from __future__ import annotations

from hushuffle.model import Assessment
from hushuffle.report import lines, shares
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.formatting import KINDS_EXPLAINED, asked, block, plain, refusal
from hushuffle.report.html_parts import Picture, picture, point_maps, rows, tables, template, tied, units_explained
from hushuffle.report.references import references
from hushuffle.report.result import refuse_nan


def html(assessment: Assessment) -> str:
    """Return the page: no address is loaded, no script needed; the same assessment, the same text.

    Raises:
        InvalidInputError: a number of the assessment is nan.
    """
    refuse_nan(assessment)
    utility = assessment.utility
    reading = None if utility is None else accuracy(assessment, utility)
    return template("report.html").render(
        title=plain(assessment.title),
        deployment=tied(assessment.deployment),
        asked=asked(assessment.population),
        rows=rows(assessment.findings, assessment.citations, assessment.population.labels),
        unanswered=[(plain(row.topic), plain(row.question), refusal(row)) for row in assessment.unanswered],
        warnings=[(tied(warned.sentence), tied(warned.advice)) for warned in assessment.warnings],
        accuracy=reading,
        missed=utility is not None and utility.met is False,
        tables=tables(assessment.tables),
        pictures=_pictures(assessment, reading),
        maps=point_maps(assessment.maps),
        kinds=KINDS_EXPLAINED,
        units=units_explained(bound.unit for bound in assessment.bounds),
        specification=block(assessment.specification).strip("\n"),
        references=references(assessment.citations),
        software=[(plain(name), plain(version)) for name, version in assessment.software],
    )


def _pictures(assessment: Assessment, reading: Accuracy | None) -> list[Picture]:
    pictures = []
    if assessment.utility is not None and reading is not None:
        estimates = shares.draw(assessment, assessment.utility, reading.rows)
        if estimates is not None:
            caption = f"One run on the data. Values shown: {reading.order}." if reading.more else "One run on the data."
            pictures.append(picture("Estimated shares", caption, estimates, "chart-0"))
    for position, chart in enumerate(assessment.charts, 1):
        pictures.append(picture(plain(chart.title), plain(chart.caption), lines.draw(chart), f"chart-{position}"))
    return pictures
