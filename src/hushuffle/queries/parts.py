"""What the analysis and the simulation of a plan both show: the plan drawn, its settings, its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hushuffle.model import Diagram, Warned
from hushuffle.plans import Plan, describe, svg
from hushuffle.queries.query import Records
from hushuffle.queries.specification import PlanSpecification


def diagram(specification: PlanSpecification, plan: Plan, people: int) -> Diagram:
    """Return the plan drawn and in words; of a long one the beginning, if the query says so."""
    drawn, shorter = plan, specification.query.drawn
    caption = "Boxes are data (green), clusters whose messages depend on data (blue), and fixed ones (grey)."
    if shorter is not None:
        query, words = shorter
        drawn = specification.model_copy(update={"query": query}).plan(people)
        drawn = replace(drawn, name=f"{plan.name} (drawn: {words.partition(' of ')[0]})")
        caption += f" Drawn are {words}"
    if any(edge.carries != "hidden" for edge in plan.edges):
        caption += " Dashed: what everybody may see."
    text = "\n".join(line for line in describe(drawn).splitlines() if not line.lstrip().startswith(_SAID_ELSEWHERE))
    return Diagram(key="plan", title="The plan", caption=caption, svg=svg(drawn), text=text)


_SAID_ELSEWHERE: Final = ("assumed:", "no guarantee:")


def refusal(plan: Plan) -> str:
    """Return why there is no guarantee, for the first cluster that stands in the way; "" if there is one."""
    first, *others = plan.refusals() or ("",)
    return f"{first} The same holds for {len(others)} more." if others else first


def settings(specification: PlanSpecification, records: Records) -> tuple[tuple[str, str], ...]:
    """Return everything that was chosen, every default spelled out."""
    return (("people", f"{records.n:,}"), ("records", records.source), *_flat(specification.plain()))


def about_records(records: Records) -> Iterator[Warned]:
    """Yield the warning about records that were left out."""
    if records.dropped:
        yield Warned(
            key="dropped",
            sentence=f"{records.dropped:,} records with a missing value were left out.",
            advice="Whether a value is missing can be private too: say how the missing ones came about.",
        )


def about_ranges(specification: PlanSpecification) -> Iterator[Warned]:
    """Yield the warning that one person's number may decide a sum."""
    names = specification.query.unbounded
    if names:
        yield Warned(
            key="no-ranges",
            sentence=f"Nothing bounds the values of {', '.join(names)}: a single source that lies decides every sum.",
            advice="Give [query.ranges] with the public range [low, high] of each: nodes refuse what is outside.",
        )


def no_guarantee(plan: Plan) -> Iterator[Warned]:
    """Yield the warning that what was run has no guarantee."""
    if not plan.applies:
        yield Warned(
            key="no-guarantee",
            sentence=f"The traffic of this plan has no guarantee. {refusal(plan)}",
            advice="`hushuffle plan analyse` says more.",
        )


def about_run(specification: PlanSpecification, records: Records) -> Iterator[Warned]:
    """Yield the warnings about the coins and records of one run."""
    if specification.run.seed != "secure":
        yield Warned(
            key="fixed-seed",
            sentence="The coins came from a fixed seed: whoever knows it can undo the protection of this run.",
            advice='Use seed = "secure" for anything but tests.',
        )
    if specification.query.data is not None:
        yield Warned(
            key="true-values-shown",
            sentence="This report was made with everybody's records and shows the true result.",
            advice="Keep it inside, with whoever holds the records anyway.",
        )
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
