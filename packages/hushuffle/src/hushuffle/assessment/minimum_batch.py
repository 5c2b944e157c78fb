"""The smallest number of people with whom a deployment meets its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, json_number
from hushuffle.model.solver import Solution
from hushuffle.questions import dp
from hushuffle.report.formatting import plural
from hushuffle.specification._base import unfit


@dataclass(frozen=True, kw_only=True)
class SmallestBatch:
    """The smallest batch, `size`, and the central epsilon (`bound`) that holds for it and for every larger one.

    `target` is what it meets, by the names of parameters; `beyond` is the figure of the batch that is smaller by one
    (None: there is none). `parameters` are the facts of the deployment. `protocol` is that of one column.
    """

    words: str
    size: int
    bound: Bound
    target: Mapping[str, Any]
    parameters: Mapping[str, Any]
    beyond: tuple[int, Bound] | None = None
    protocol: Protocol | None = None

    @classmethod
    def of(cls, solution: Solution, **facts: Any) -> SmallestBatch:
        """Return the batch that a search for the number of people found."""
        assert solution.bound is not None  # the requirement has a figure
        beyond = None if solution.beyond_bound is None else (int(solution.beyond), solution.beyond_bound)
        return cls(size=int(solution.value), bound=solution.bound, beyond=beyond, **facts)

    @property
    def sentences(self) -> tuple[str, ...]:
        reports, rounds = self.target["reports_per_person"], self.target["rounds"]
        together = f" of {rounds:,} batches with the same people together" if rounds > 1 else ""
        most = f", at most {reports:,} per person" if reports > 1 else ""
        lines = [f"{self.words[0].upper()}{self.words[1:]}.", f"Smallest batch: {plural(self.size, 'report')}{most}."]
        if "standard_error" in self.target:
            lines.append(
                f"With this number of people or more, the standard error of the mean is at most "
                f"{self.target['standard_error']:g}. Central epsilon{together} at delta = {self.target['delta']:g} "
                f"does not depend on the number of people: {self.bound}."
            )
        else:
            lines.append(
                f"With this number of reports or more, central epsilon{together} is at most "
                f"{self.target['epsilon']:g} at delta = {self.target['delta']:g}, whatever the answers are: "
                f"{self.bound}."
            )
        if self.beyond is not None:
            lines.append(f"With {self.beyond[0]:,}: {self.beyond[1]}.")
        return tuple(lines)


def of_protocol(
    protocol: Protocol, *, epsilon: float, delta: float, reports_per_person: int, rounds: int
) -> SmallestBatch:
    """Return the smallest batch of a protocol, whose own number of people only begins the search.

    Raises:
        InvalidInputError: no number of people meets the target.
    """
    target = {"epsilon": epsilon, "delta": delta, "reports_per_person": reports_per_person, "rounds": rounds}
    solution = dp.calibrate(
        protocol, parameter="n", epsilon=epsilon, delta=delta, reports_per_person=reports_per_person, rounds=rounds
    )
    facts = device(protocol)
    words = facts.pop("randomizer")
    return SmallestBatch.of(
        solution,
        words=f"{words}; {protocol.shuffler.describe()}",
        target=target,
        parameters={**facts, **target, "randomizer": words, **released(protocol)},
        protocol=protocol,
    )


def wanted_epsilon(epsilon: float | None) -> float:
    """Return targets.epsilon; a file without this target raises SpecificationError."""
    if epsilon is None:
        unfit("targets.epsilon", "must be given", "nothing", "Set the largest acceptable epsilon, for example 0.5.")
    return epsilon


def unreached(epsilon: float, hint: str) -> NoReturn:
    """Raise SpecificationError, because no number of people meets the target."""
    unfit("targets.epsilon", "must be a value that some number of people achieves", f"{epsilon:g}", hint)


def device(protocol: Protocol) -> dict[str, Any]:
    """Return the facts of what a device does with a value of one column."""
    return {
        "values": protocol.randomizer.inputs,
        "local_epsilon": json_number(protocol.randomizer.local_epsilon),
        "randomizer": protocol.randomizer.describe(),
    }


def released(protocol: Protocol) -> dict[str, str]:
    """Return what the analyst receives."""
    return {"release": "sums" if protocol.shuffler.reveals is Reveals.SUMS else "shuffled reports"}
