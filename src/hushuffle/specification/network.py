"""How a plan is run by real nodes: the size of messages, how long they wait, how many must come through."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hushuffle.specification._base import Section


class Network(Section):
    """What the nodes of a run have in common besides the plan."""

    message: Annotated[int, Field(ge=256, le=16_384)] = 1024
    """Bytes of every message."""
    collect: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """Seconds that a scrambler waits for its sources."""
    patience: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Seconds that a node waits for another one on a connection."""
    least: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The share of the sources without which there is no result."""
    processes: Annotated[int, Field(ge=1, le=64)] = 2
    """With `--network`: processes for the sources, and as many for scramblers and for compute nodes."""
