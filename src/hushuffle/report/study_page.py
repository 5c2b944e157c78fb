"""`study.html`: one self-contained page."""

from __future__ import annotations

from hushuffle.model import Study
from hushuffle.report import heat, lines
from hushuffle.report.diagrams import page_diagrams
from hushuffle.report.formatting import KINDS_EXPLAINED, figure, plain
from hushuffle.report.html_parts import (
    Picture,
    joined,
    picture,
    point_maps,
    rows,
    tables,
    template,
    tied,
    units_explained,
)
from hushuffle.report.references import references
from hushuffle.report.study_document import refuse_nan

_NUMBERS = "study.json"
_ESTIMATE = KINDS_EXPLAINED[-1][0]


def study_html(study: Study) -> str:
    """Return the page: no address is loaded, no script needed; the same study, the same text.

    Raises:
        InvalidInputError: a number of the study is nan.
    """
    refuse_nan(study)
    used = {_ESTIMATE if bound.kind == "estimate" else figure(bound).kind for bound in study.bounds}
    return template("study.html").render(
        key=plain(study.key),
        title=plain(study.title),
        question=tied(study.question),
        answers=[tied(answer) for answer in study.answers],
        warnings=[(tied(warned.sentence), tied(warned.advice)) for warned in study.warnings],
        rows=rows(study.findings, study.sources, ()),
        diagrams=page_diagrams(study.diagrams),
        pictures=[*_charts(study), *_heat_maps(study)],
        maps=point_maps(study.maps),
        tables=tables(study.tables),
        kinds=[(kind, meaning) for kind, meaning in KINDS_EXPLAINED if kind in used],
        units=units_explained(bound.unit for bound in study.bounds),
        settings=[(plain(name), tied(value)) for name, value in study.settings],
        references=references(study.sources),
        software=[(plain(name), plain(version)) for name, version in study.software],
    )


def _charts(study: Study) -> list[Picture]:
    return [
        picture(plain(chart.title), tied(chart.caption), lines.draw(chart, numbers=_NUMBERS), f"chart-{position}")
        for position, chart in enumerate(study.charts)
    ]


def _heat_maps(study: Study) -> list[Picture]:
    pictures = []
    for made in study.heat_maps:
        drawn, title, caption = heat.draw(made), plain(made.title), tied(made.caption)
        if drawn is None:
            pictures.append(picture(title, caption, None, ""))
        else:
            pictures.append(Picture(title=title, caption=joined(caption, drawn.remark), svg=drawn.svg, key=()))
    return pictures
