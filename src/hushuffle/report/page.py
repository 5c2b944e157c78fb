"""`report.html`: one self-contained page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from hushuffle.model import Assessment, Finding
from hushuffle.report import drawing, lines, shares
from hushuffle.report.accuracy import Accuracy, accuracy
from hushuffle.report.formatting import KINDS_EXPLAINED, UNITS_EXPLAINED, Figure, asked, attained, block, figure, plain
from hushuffle.report.references import Mention, mentions, references
from hushuffle.report.result import refuse_nan
from hushuffle.report.styling import Drawing, KeyEntry


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table of findings."""

    question: str
    adversary: str
    sentence: str
    figure: Figure
    style: str
    proof: str
    mentions: tuple[Mention, ...]
    witness: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One chart of the page; `svg` is "" if there was nothing to draw."""

    title: str
    caption: str
    svg: str
    key: tuple[KeyEntry, ...]


def html(assessment: Assessment) -> str:
    """Return the page: no address is loaded, no script needed; the same assessment, the same text.

    Raises:
        InvalidInputError: a number of the assessment is nan.
    """
    refuse_nan(assessment)
    utility = assessment.utility
    reading = None if utility is None else accuracy(assessment, utility)
    units = dict.fromkeys(finding.bound.unit for finding in assessment.findings)
    return _template().render(
        title=plain(assessment.title),
        deployment=_tied(assessment.deployment),
        asked=asked(assessment.population),
        rows=[_row(assessment, finding) for finding in assessment.findings],
        warnings=[(_tied(warned.sentence), _tied(warned.advice)) for warned in assessment.warnings],
        accuracy=reading,
        missed=utility is not None and utility.met is False,
        pictures=_pictures(assessment, reading),
        kinds=KINDS_EXPLAINED,
        units=[UNITS_EXPLAINED[unit] for unit in units if unit in UNITS_EXPLAINED],
        specification=block(assessment.specification).strip("\n"),
        references=references(assessment),
        software=[(plain(name), plain(version)) for name, version in assessment.software],
    )


def _tied(text: str) -> str:
    """Return `text` on one line, a percentage never broken before its sign."""
    return plain(text).replace(" %", "\N{NO-BREAK SPACE}%")


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("hushuffle.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html")


def _row(assessment: Assessment, finding: Finding) -> Row:
    witness = finding.bound.witness
    return Row(
        question=plain(finding.question),
        adversary=plain(finding.adversary),
        sentence=_tied(finding.sentence),
        figure=figure(finding.bound),
        style=finding.bound.kind,
        proof=plain(finding.proof),
        mentions=mentions(assessment, finding.bound.sources),
        witness="" if witness is None else attained(witness, assessment.population.labels),
    )


def _pictures(assessment: Assessment, reading: Accuracy | None) -> list[Picture]:
    pictures = []
    if assessment.utility is not None and reading is not None:
        estimates = shares.draw(assessment, assessment.utility, reading.rows)
        if estimates is not None:
            caption = f"One run on the data. Values shown: {reading.order}." if reading.more else "One run on the data."
            pictures.append(_picture("Estimated shares", caption, estimates, 0))
    for position, chart in enumerate(assessment.charts, 1):
        pictures.append(_picture(plain(chart.title), plain(chart.caption), lines.draw(chart), position))
    return pictures


def _picture(title: str, caption: str, drawn: Drawing | None, position: int) -> Picture:
    if drawn is None:
        return Picture(title=title, caption=f"{caption} No point of this chart is finite.", svg="", key=())
    beyond = " What reaches the edge of the picture goes on beyond it." if drawn.clipped else ""
    svg = drawing.svg(drawn, f"chart-{position}")
    return Picture(title=title, caption=f"{caption}{beyond}", svg=svg, key=drawn.key)
