"""The shuffled reports of the votes: the only model that other models should read.

A run of dbt that builds this model again is a second collection among the same people. It is refused, since the folder
exists: add up the rounds in `survey.toml` before you remove the folder.
"""

from pathlib import Path
from typing import Any

from hushuffle.integrations.frames import collect_table


def model(dbt: Any, session: Any) -> Any:
    """Return the reports as a table."""
    dbt.config(materialized="table")
    return collect_table(dbt.ref("votes"), Path("survey.toml"), out=Path("wave-1"), column="vote")
