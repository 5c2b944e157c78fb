"""Values that everything speaks: frozen, keyword-only, validated when made."""

from hushuffle.model.assessment import Assessment, Chart, Population, Series, Utility, Warned
from hushuffle.model.bound import Bound, Guarantee, Kind, Witness, number
from hushuffle.model.channel import Channel
from hushuffle.model.citation import Citation
from hushuffle.model.domain import Domain
from hushuffle.model.finding import Finding
from hushuffle.model.release import Estimate, Histogram, Transcript

__all__ = [
    "Assessment",
    "Bound",
    "Channel",
    "Chart",
    "Citation",
    "Domain",
    "Estimate",
    "Finding",
    "Guarantee",
    "Histogram",
    "Kind",
    "Population",
    "Series",
    "Transcript",
    "Utility",
    "Warned",
    "Witness",
    "number",
]
