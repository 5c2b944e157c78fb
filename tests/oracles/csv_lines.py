"""Slow twin of the lines on which the records of a CSV file begin: Python's own reader, record by record."""

from __future__ import annotations

import csv
from io import StringIO


def first_lines(text: str) -> list[int]:
    """Return the line on which each record begins, the line of names left out; lines are counted from 1."""
    stream = StringIO(text, newline="")
    reader = csv.reader(line + "\n" for line in stream.read().split("\n")[:-1])
    begins, last = [], 0
    for _ in reader:
        begins.append(last + 1)
        last = reader.line_num
    return begins[1:]
