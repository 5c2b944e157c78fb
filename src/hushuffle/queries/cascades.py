"""What the study of a plan says about scramblers that do not keep their secrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hushuffle.model import Table
from hushuffle.questions.traffic import Collusion


def cascade_answers(held: Sequence[Collusion]) -> Iterator[str]:
    """Yield in sentences what scramblers that work together learn; nothing for a plan without scramblers."""
    if not held:
        return
    best, least, none = held[0], held[-2], held[-1]
    if best.honest > 1:
        yield (
            f"Every batch passes {best.honest} scramblers one after the other. The figure above holds if one of them "
            f"is honest; with all honest epsilon is {best.curious}."
        )
    held_by = "the others" if best.honest > 1 else "whoever says who takes part"
    yield (
        f"With one honest scrambler epsilon is {least.active} where {held_by} may put messages of their own in the "
        f"place of everybody else's. With none it is {none.curious}: the local figure."
    )


def cascade_tables(held: Sequence[Collusion]) -> Iterator[Table]:
    """Yield the table of what scramblers that work together learn."""
    if held:
        longest = held[0].honest
        yield Table(
            key="scramblers",
            title="Scramblers that do not keep their secrets",
            caption=(
                "Epsilon of the whole plan against somebody who watches all traffic and holds the other scramblers of "
                "every batch; which ones are honest does not matter. Messages are replaced: those of other people are "
                "kept back and own ones put in their place, by these scramblers or with the help of whoever says who "
                "takes part (the issuer of tickets). Where honest scramblers stand first and their batch is of people, "
                "what comes after them, and who carries messages to them, changes nothing: the column before holds, "
                "with these scramblers alone."
            ),
            columns=("honest scramblers", "the others only look", "messages are replaced"),
            rows=tuple((f"{one.honest} of {longest}", one.curious, one.active) for one in held),
        )
