"""Values that everything speaks: frozen, keyword-only, validated when made."""

from hushuffle.model.assessment import Assessment, Chart, Population, Series, Utility, Warned
from hushuffle.model.bound import Bound, Guarantee, Kind, Witness, number
from hushuffle.model.channel import Channel
from hushuffle.model.citation import Citation
from hushuffle.model.diagram import Diagram
from hushuffle.model.domain import Domain
from hushuffle.model.finding import Finding, Unanswered
from hushuffle.model.groups import Groups, GroupsLike
from hushuffle.model.point_map import Panel, PointMap
from hushuffle.model.release import Estimate, Histogram, Transcript
from hushuffle.model.study import HeatMap, Study
from hushuffle.model.table import Cell, Table
from hushuffle.model.traces import Traces

__all__ = [
    "Assessment",
    "Bound",
    "Cell",
    "Channel",
    "Chart",
    "Citation",
    "Diagram",
    "Domain",
    "Estimate",
    "Finding",
    "Groups",
    "GroupsLike",
    "Guarantee",
    "HeatMap",
    "Histogram",
    "Kind",
    "Panel",
    "PointMap",
    "Population",
    "Series",
    "Study",
    "Table",
    "Traces",
    "Transcript",
    "Unanswered",
    "Utility",
    "Warned",
    "Witness",
    "number",
]
