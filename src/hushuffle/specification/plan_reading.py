"""`load_plan` and `parse_plan`: TOML text to a `PlanSpecification`, or every problem at once in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hushuffle.specification.network import Network
from hushuffle.specification.plan import (
    AggregateQuery,
    Generated,
    GeneratedPoints,
    KMeansQuery,
    NoiseOfCentroids,
    PlanRun,
    PlanSpecification,
    PlanTargets,
    Traffic,
)
from hushuffle.specification.plan_rules import plan_problems
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary

_WORDS: Final = Vocabulary(
    sections={
        "": (PlanSpecification,),
        "query": (AggregateQuery, KMeansQuery),
        "query.generated": (Generated, GeneratedPoints),
        "query.noise": (NoiseOfCentroids,),
        "traffic": (Traffic,),
        "targets": (PlanTargets,),
        "run": (PlanRun,),
        "network": (Network,),
    },
    goes_with={
        Generated: 'It goes with kind = "aggregate".',
        GeneratedPoints: 'It goes with kind = "k-means".',
    },
)


def load_plan(path: str | Path) -> PlanSpecification:
    """Return the plan's specification in the TOML file `path`.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parse_plan(read_text(path), file=str(path))


def parse_plan(text: str, *, file: str = "specification") -> PlanSpecification:
    """Return the plan's specification that TOML `text` states; `file` is for messages.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parsed(text, PlanSpecification, file=file, rules=plan_problems, words=_WORDS)
