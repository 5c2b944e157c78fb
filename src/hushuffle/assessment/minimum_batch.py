"""The smallest number of people with whom a deployment meets its target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from hushuffle.assessment.columns import all_central
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.sum_calibration import fewest_people
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, json_number
from hushuffle.model.solver import Requirement, Solution, solve
from hushuffle.questions import dp
from hushuffle.questions.dp.calibration import number_of_people
from hushuffle.report.formatting import plural
from hushuffle.specification import Collection, Specification, build_protocol
from hushuffle.specification._base import unfit
from hushuffle.specification.sums import SumSpecification


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

    @property
    def sentences(self) -> tuple[str, ...]:
        reports, rounds = self.target["reports_per_person"], self.target["rounds"]
        several = f", at most {reports:,} per person" if reports > 1 else ""
        together = f" of {rounds:,} batches with the same people together" if rounds > 1 else ""
        lines = [
            f"{self.words[0].upper()}{self.words[1:]}.",
            f"Smallest batch: {plural(self.size, 'report')}{several}.",
        ]
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
    return SmallestBatch(
        words=f"{protocol.randomizer.describe()}; {protocol.shuffler.describe()}",
        size=int(solution.value),
        bound=solution.bound,
        beyond=_beyond(solution),
        target=target,
        parameters={**_device(protocol), **target, "randomizer": protocol.randomizer.describe(), **_release(protocol)},
        protocol=protocol,
    )


def of_column(specification: Specification, folder: Path) -> SmallestBatch:
    targets, exposure = specification.targets, Exposure.of(specification)
    epsilon = _asked(targets.epsilon)
    people = specification.population.read(folder)
    protocol = build_protocol(specification, n=people.n, k=people.k)
    reports, rounds = exposure.reports, exposure.composed
    try:
        return of_protocol(protocol, epsilon=epsilon, delta=targets.delta, reports_per_person=reports, rounds=rounds)
    except InvalidInputError as error:
        _unreached(epsilon, error.problem.hint)


def of_columns(collection: Collection, folder: Path) -> SmallestBatch:
    """Return the smallest batch in which all columns together meet targets.epsilon."""
    epsilon, delta = _asked(collection.epsilon), collection.delta
    protocols = {}
    for name, specification in collection.columns.items():
        people = specification.population.read(folder)
        protocols[name] = build_protocol(specification, n=people.n, k=people.k)
    several = list(protocols.values())
    crowd = number_of_people(several[0].n, lambda n: [replace(protocol, n=n) for protocol in several])
    together = Requirement[list[Protocol]](figure=lambda crowds: all_central(collection, crowds), limit=epsilon)
    solution = solve(crowd, together)
    if solution is None:
        _unreached(epsilon, "Use smaller local epsilons (more noise), or allow a larger one.")
    assert solution.bound is not None
    columns = {
        name: {**_device(protocol), "randomizer": protocol.randomizer.describe()}
        for name, protocol in protocols.items()
    }
    target = {"epsilon": epsilon, "delta": delta, "reports_per_person": 1, "rounds": collection.rounds}
    names = ", ".join(protocols)
    return SmallestBatch(
        words=f"{len(columns):,} columns together ({names}); {several[0].shuffler.describe()}",
        size=int(solution.value),
        bound=solution.bound,
        beyond=_beyond(solution),
        target=target,
        parameters={"columns": columns, **target, **_release(several[0])},
    )


def of_sum(specification: SumSpecification, folder: Path) -> SmallestBatch:
    """Return the fewest people for targets.standard_error, since epsilon of a sum is the same for all numbers."""
    wanted = specification.targets.standard_error
    if wanted is None:
        hint = (
            "Central epsilon of a sum is the same for any number of people; only the error of the mean depends on it."
        )
        unfit("targets.standard_error", "must be given", "nothing", hint)
    read = specification.asked.read(folder)
    size = fewest_people(specification, read.n, wanted)
    if size is None:
        rule = "must be a value that some number of people achieves"
        unfit("targets.standard_error", rule, f"{wanted:g}", "Allow a larger one.")
    protocol = specification.build(size)
    target = {
        "standard_error": wanted,
        "delta": specification.delta,
        "reports_per_person": 1,
        "rounds": specification.times,
    }
    return SmallestBatch(
        words=protocol.describe().rstrip("."),
        size=size,
        bound=dp.compose([(protocol, specification.times)], delta=specification.delta),
        target=target,
        parameters={
            **target,
            "epsilon": specification.sum.epsilon,
            "levels": protocol.levels,
            "messages": protocol.messages,
            "people_needed_honest": protocol.needed,
            "release": "messages of a sum",
        },
    )


def _asked(epsilon: float | None) -> float:
    if epsilon is None:
        unfit("targets.epsilon", "must be given", "nothing", "Set the largest acceptable epsilon, for example 0.5.")
    return epsilon


def _unreached(epsilon: float, hint: str) -> NoReturn:
    unfit("targets.epsilon", "must be a value that some number of people achieves", f"{epsilon:g}", hint)


def _beyond(solution: Solution) -> tuple[int, Bound] | None:
    return None if solution.beyond_bound is None else (int(solution.beyond), solution.beyond_bound)


def _device(protocol: Protocol) -> dict[str, Any]:
    return {"values": protocol.randomizer.inputs, "local_epsilon": json_number(protocol.randomizer.local_epsilon)}


def _release(protocol: Protocol) -> dict[str, str]:
    return {"release": "sums" if protocol.shuffler.reveals is Reveals.SUMS else "shuffled reports"}
