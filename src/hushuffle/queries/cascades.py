"""The guarantee of a plan if scramblers of a cascade collude with the observer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hushuffle.model import Guarantee, Table, number
from hushuffle.questions.traffic import Collusion


def cascade_answers(held: Sequence[Collusion]) -> Iterator[str]:
    """Yield sentences on epsilon against colluding scramblers; no sentence for a plan without scramblers."""
    if not held:
        return
    best, least, none = held[0], held[-2], held[-1]
    if best.honest > 1:
        yield (
            f"{best.honest} scramblers process every batch one after the other. The guarantee above holds if at least "
            f"one of them is honest. If all are honest, epsilon is {best.curious}."
        )
    held_by = "the other scramblers" if best.honest > 1 else "the issuer of tickets"
    yield (
        f"With one honest scrambler, epsilon is {least.active} if {held_by} can replace all other messages by forged "
        f"ones. Without an honest scrambler it is {none.curious}, as without any scrambler."
    )


def passive(held: Sequence[Collusion], guarantee: Guarantee | None) -> str:
    """Return words for the adversary of a plan's guarantee, and the figure of active adversaries if it is larger."""
    if not held or guarantee is None:
        return ""
    longest, active = held[0].honest, held[-2].active.upper
    words = f", {number(active, up=True)} nats against active ones (scramblers: row 1 of {longest})"
    return f", against passive adversaries{words if active > guarantee.upper else ''}"


def cascade_tables(held: Sequence[Collusion]) -> Iterator[Table]:
    """Yield the table of epsilons against colluding scramblers."""
    if held:
        longest = held[0].honest
        yield Table(
            key="scramblers",
            title="Scramblers that collude with the observer",
            caption=(
                "Epsilon of the whole plan against an adversary who observes all traffic and controls the other "
                "scramblers of every batch. It does not matter which scramblers are honest. Active adversaries "
                "replace the messages of other people by forged ones, with these scramblers or with the issuer of "
                "tickets. If honest scramblers come first and their batch consists of people, later scramblers and "
                "message carriers cannot do this: the passive figure then holds."
            ),
            columns=("honest scramblers", "passive adversary", "active adversary"),
            rows=tuple((f"{one.honest} of {longest}", one.curious, one.active) for one in held),
        )
