"""Parts that the analysis and the simulation of a plan share: the drawing, the settings, the warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hushuffle.model import Diagram, Warned
from hushuffle.plans import Plan, describe, svg
from hushuffle.queries.query import Records
from hushuffle.queries.specification import PlanSpecification


def diagram(specification: PlanSpecification, plan: Plan, people: int) -> Diagram:
    """Return the drawing of a plan and its description; for a long plan, those of a shorter plan of equal structure."""
    drawn, shorter = plan, specification.query.drawn
    caption = "Boxes are data (green), and clusters of messages that depend on data (blue) or are fixed (grey)."
    if shorter is not None:
        query, words = shorter
        drawn = specification.model_copy(update={"query": query}).plan(people)
        drawn = replace(drawn, name=f"{plan.name} (drawn: {words.partition(' of ')[0]})")
        caption += f" Drawn are {words}"
    if any(edge.carries != "hidden" for edge in plan.edges):
        caption += " Dashed arrows carry public values."
    text = "\n".join(line for line in describe(drawn).splitlines() if not line.lstrip().startswith(_SAID_ELSEWHERE))
    return Diagram(key="plan", title="The plan", caption=caption, svg=svg(drawn), text=text)


_SAID_ELSEWHERE: Final = ("assumed:", "no guarantee:")


def refusal(plan: Plan) -> str:
    """Return why the first unprotected cluster has no guarantee; "" if the plan has a guarantee."""
    first, *others = plan.refusals() or ("",)
    return f"{first} The same holds for {len(others)} more cluster{'s' * (len(others) > 1)}." if others else first


def settings(specification: PlanSpecification, records: Records) -> tuple[tuple[str, str], ...]:
    return (("people", f"{records.n:,}"), ("records", records.source), *_flat(specification.plain()))


def about_records(records: Records) -> Iterator[Warned]:
    if records.dropped:
        sentence = f"{records.dropped:,} records with a missing value were left out."
        advice = "The fact that a value is missing can be private too: document why values are missing."
        yield Warned(key="dropped", sentence=sentence, advice=advice)


def about_ranges(specification: PlanSpecification) -> Iterator[Warned]:
    """Yield the warning that one person's number may dominate a sum, if columns have no public range."""
    names = specification.query.unbounded
    if names:
        sentence = f"No range bounds the values of {', '.join(names)}: one dishonest source can dominate every sum."
        advice = (
            "Give [query.ranges] with the public range [low, high] of each column; nodes then refuse values outside."
        )
        yield Warned(key="no-ranges", sentence=sentence, advice=advice)


def no_guarantee(plan: Plan) -> Iterator[Warned]:
    if not plan.applies:
        sentence = f"The traffic of this plan has no guarantee. {refusal(plan)}"
        yield Warned(key="no-guarantee", sentence=sentence, advice="`hushuffle plan analyse` shows the details.")


def about_run(specification: PlanSpecification, records: Records) -> Iterator[Warned]:
    if specification.run.seed != "secure":
        sentence = (
            "A fixed seed generated the randomness: an adversary with the seed can undo the protection of this run."
        )
        yield Warned(key="fixed-seed", sentence=sentence, advice='Use seed = "secure" except for tests.')
    if specification.query.data is not None:
        sentence = "This report uses all records and shows the true result."
        advice = "Share it only with parties that already have the records."
        yield Warned(key="true-values-shown", sentence=sentence, advice=advice)
    yield from about_ranges(specification)
    yield from about_records(records)


def _flat(values: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{start}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.")
        else:
            yield name, _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(f"({_shown(one)})" if isinstance(one, list | tuple) else _shown(one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
