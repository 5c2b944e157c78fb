"""`Simulated`: what one run of a plan came to, whatever it computes."""

from __future__ import annotations

from dataclasses import dataclass

from hushuffle.model import Chart, Table
from hushuffle.queries import Exchange


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulated:
    """The exchanges of the clusters whose messages depend on data, and what to say and show of the result."""

    exchanges: tuple[Exchange, ...]
    answers: tuple[str, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...] = ()
