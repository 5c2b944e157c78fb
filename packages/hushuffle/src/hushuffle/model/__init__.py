"""Value classes that all packages of this library use; they are frozen, and validate their keyword-only fields.

`Progress` is the type of functions to which long computations report their progress.
"""

from collections.abc import Callable
from typing import TypeAlias

from hushuffle.model.bound import Bound, Bounds, Guarantee, Kind, Witness, as_bound, json_number, number
from hushuffle.model.channel import Channel
from hushuffle.model.citation import Citation
from hushuffle.model.claim import VERDICTS, Claim, Verdict
from hushuffle.model.domain import Domain
from hushuffle.model.groups import Groups, GroupsLike
from hushuffle.model.number_grid import NumberGrid
from hushuffle.model.pictures import Chart, Diagram, HeatMap, Panel, PointMap, Series
from hushuffle.model.release import Estimate, Histogram, Transcript, released_reports
from hushuffle.model.report import Cell, Certificate, Finding, Population, Report, Table, Unanswered, Utility, Warned
from hushuffle.model.statement import Anonymity, Assumption, Headline, Scenario, Statement, Status, Target, Translation
from hushuffle.model.traces import Traces

__all__ = [
    "VERDICTS",
    "Anonymity",
    "Assumption",
    "Bound",
    "Bounds",
    "Cell",
    "Certificate",
    "Channel",
    "Chart",
    "Citation",
    "Claim",
    "Diagram",
    "Domain",
    "Estimate",
    "Finding",
    "Groups",
    "GroupsLike",
    "Guarantee",
    "Headline",
    "HeatMap",
    "Histogram",
    "Kind",
    "NumberGrid",
    "Panel",
    "PointMap",
    "Population",
    "Progress",
    "Report",
    "Scenario",
    "Series",
    "Statement",
    "Status",
    "Table",
    "Target",
    "Traces",
    "Transcript",
    "Translation",
    "Unanswered",
    "Utility",
    "Verdict",
    "Warned",
    "Witness",
    "as_bound",
    "json_number",
    "number",
    "released_reports",
    "silent",
]

Progress: TypeAlias = Callable[[str, float], None]
"""A function that receives the current step in words, and the approximate share of the work done, from 0 to 1."""


def silent(_stage: str, _share: float) -> None:
    """Ignore the progress; this is the default function if the caller passes none."""
