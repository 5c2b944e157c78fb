"""Files and tables to model values: private columns, public data sets, sketches."""

from hushuffle.io.categories import FROM_DATA, Categories, missing_label
from hushuffle.io.census import load_census
from hushuffle.io.checkins import load_checkins
from hushuffle.io.column import Column, load_column
from hushuffle.io.conditions import Condition, parse_condition
from hushuffle.io.graphs import SocialGraph, load_graph
from hushuffle.io.ratings import load_ratings
from hushuffle.io.score_matrices import ScoreMatrix, load_scores
from hushuffle.io.sketch_files import identifier_columns, load_filter, save_filter

__all__ = [
    "FROM_DATA",
    "Categories",
    "Column",
    "Condition",
    "ScoreMatrix",
    "SocialGraph",
    "identifier_columns",
    "load_census",
    "load_checkins",
    "load_column",
    "load_filter",
    "load_graph",
    "load_ratings",
    "load_scores",
    "missing_label",
    "parse_condition",
    "save_filter",
]
