"""Files and tables to model values: one private column becomes codes and labels."""

from hushuffle.io.categories import FROM_DATA, Categories, missing_label
from hushuffle.io.column import Column, load_column
from hushuffle.io.conditions import Condition, parse_condition

__all__ = [
    "FROM_DATA",
    "Categories",
    "Column",
    "Condition",
    "load_column",
    "missing_label",
    "parse_condition",
]
