"""`hushuffle minimum-batch`."""

from __future__ import annotations

import json as json_text
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from hushuffle.cli.console import Exit, UsageError, misused, progress, width
from hushuffle.errors import InvalidInputError

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.questions.dp import Calibration

_Deployment = Parameter(group=Group("Instead of a specification", sort_key=2))
SCHEMA_VERSION = 1


def minimum_batch(
    specification: Path | None = None,
    /,
    *,
    k: Annotated[int | None, _Deployment] = None,
    local_epsilon: Annotated[float | None, _Deployment] = None,
    epsilon: Annotated[float | None, _Deployment] = None,
    delta: Annotated[float | None, _Deployment] = None,
    mechanism: Annotated[Literal["symmetric", "optimized", "randomized-response"], _Deployment] = "symmetric",
    release: Annotated[Literal["sums", "shuffle"], _Deployment] = "sums",
    reports_per_person: Annotated[int, _Deployment] = 1,
    rounds: Annotated[int, _Deployment] = 1,
    json: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    dap: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> Exit:
    """Compute the smallest batch whose release keeps a guarantee.

    Examples (to create these files, first run: hushuffle examples ./examples):
      hushuffle minimum-batch examples/secure-sums.toml
      hushuffle minimum-batch --k 10 --local-epsilon 4 --epsilon 1 --delta 1e-6

    The guarantee is certified for this batch size and for every larger one, for
    all possible answers. Give a specification with targets.epsilon, or all of --k,
    --local-epsilon, --epsilon and --delta.

    Args:
        specification: the TOML file of the deployment; its number of people is ignored.
        k: number of values (default: that of the specification).
        local_epsilon: epsilon of one report in nats: the guarantee if the shuffler or all servers are dishonest
            (default: that of the specification).
        epsilon: largest central epsilon of a release, in nats (default: targets.epsilon).
        delta: delta of that guarantee (default: targets.delta).
        mechanism: the randomizer: one-hot bits with equal flip probabilities (symmetric) or with different ones
            (optimized), or randomized response.
        release: what is released: sums of all reports (secure aggregation: Prio, DAP), or the shuffled reports.
        reports_per_person: maximum number of reports per person in a batch.
        rounds: number of batches with the same people; epsilon is for all these batches together.
        json: print only JSON to standard output.
        dap: print JSON with the settings of a DAP task: the VDAF, its parameters, and requirements.
    """
    options = {"--k": k, "--local-epsilon": local_epsilon, "--epsilon": epsilon, "--delta": delta}
    given = [name for name, value in options.items() if value is not None]
    if (specification is None and len(given) < len(options)) or (specification is not None and given):
        misused(f"minimum-batch needs a specification, or all of the options {', '.join(options)}.")
    if specification is not None and (reports_per_person, rounds) != (1, 1):
        misused("--reports-per-person and --rounds are for use without a specification, which has own keys.")
    from hushuffle.questions import dp  # noqa: PLC0415 - a mistake in the options shows before

    if specification is not None:
        protocol, target = _of_file(specification)
    else:
        assert k is not None
        assert local_epsilon is not None
        protocol = _of_options(k, local_epsilon, mechanism, release)
        target = {"epsilon": epsilon, "delta": delta, "reports_per_person": reports_per_person, "rounds": rounds}
    if dap:
        _check_dap(protocol, of_file=specification is not None)
    json = json or dap
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        if tell is not None:
            tell("looking for the smallest batch", 0.0)
        try:
            calibration = dp.calibrate(protocol, parameter="n", **target)
        except InvalidInputError as error:
            if specification is not None:
                from hushuffle.specification._base import unfit  # noqa: PLC0415 - only when needed

                rule = "must be a value that some number of people achieves"
                unfit("targets.epsilon", rule, f"{target['epsilon']:g}", error.problem.hint)
            raise UsageError(str(error)) from None
    sys.stdout.write(_as_json(calibration, target, dap=dap) if json else _text(calibration, target))
    return Exit.DONE


def _of_options(k: int, local_epsilon: float, mechanism: str, release: str) -> Protocol:
    from hushuffle.mechanisms.protocol import Protocol  # noqa: PLC0415 - only when needed
    from hushuffle.mechanisms.randomizers import Mechanism, RandomizedResponse, UnaryEncoding  # noqa: PLC0415
    from hushuffle.mechanisms.shufflers import SecureAggregation, Shuffler, UniformShuffle  # noqa: PLC0415

    shuffler: Shuffler = SecureAggregation() if release == "sums" else UniformShuffle()
    randomizer: Mechanism
    try:
        if mechanism == "randomized-response":
            randomizer = RandomizedResponse(k=k, epsilon=local_epsilon)
        else:
            randomizer = UnaryEncoding(
                k=k, epsilon=local_epsilon, encoding="symmetric" if mechanism == "symmetric" else "optimized"
            )
    except InvalidInputError as error:
        problem = error.problem  # the message names the option instead of the argument
        option = {"epsilon": "--local-epsilon", "k": "--k"}[problem.key]
        misused(f"{option} {problem.rule}, got {problem.value}. {problem.hint}".rstrip())
    return Protocol(randomizer=randomizer, shuffler=shuffler, n=10_000)


def _of_file(path: Path) -> tuple[Protocol, dict[str, Any]]:
    from hushuffle.assessment.exposure import Exposure  # noqa: PLC0415 - only when needed
    from hushuffle.specification import build_protocol  # noqa: PLC0415
    from hushuffle.specification._base import unfit  # noqa: PLC0415
    from hushuffle.specification.reading import load_collection  # noqa: PLC0415

    collection = load_collection(path)
    if collection.several:
        misused("minimum-batch needs a specification of one column. Write a separate specification for each column.")
    specification = collection.columns[""]
    targets, exposure = specification.targets, Exposure.of(specification)
    if targets.epsilon is None:
        unfit("targets.epsilon", "must be given", "nothing", "Set the largest acceptable epsilon, for example 0.5.")
    people = specification.population.read(path.parent)
    protocol = build_protocol(specification, n=people.n, k=people.k)
    return protocol, {
        "epsilon": targets.epsilon,
        "delta": targets.delta,
        "reports_per_person": exposure.reports,
        "rounds": exposure.composed,
    }


def _check_dap(protocol: Protocol, *, of_file: bool) -> None:
    from hushuffle.assessment.dap import refusal  # noqa: PLC0415 - only when needed
    from hushuffle.specification._base import unfit  # noqa: PLC0415

    why = refusal(protocol)
    if why is None:
        return
    rule, value, hint = why
    if of_file:
        unfit("shuffler", rule, value, hint)
    misused(f"--dap goes with --release sums: {hint}")


def _text(calibration: Calibration, target: dict[str, Any]) -> str:
    several = f", at most {target['reports_per_person']:,} per person" if target["reports_per_person"] > 1 else ""
    together = f" of {target['rounds']:,} batches with the same people together" if target["rounds"] > 1 else ""
    randomizer, shuffler = calibration.protocol.randomizer.describe(), calibration.protocol.shuffler.describe()
    parts = [
        f"{randomizer[0].upper()}{randomizer[1:]}; {shuffler}.",
        f"Smallest batch: {calibration.value:,.0f} reports{several}.",
        f"With this number of reports or more, central epsilon{together} is at most {target['epsilon']:g} at delta = "
        f"{target['delta']:g}, whatever the answers are: {calibration.bound}.",
    ]
    if calibration.beyond_bound is not None:
        parts.append(f"With {calibration.beyond:,.0f}: {calibration.beyond_bound}.")
    return "".join(textwrap.fill(part, width=width()) + "\n" for part in parts)


def _as_json(calibration: Calibration, target: dict[str, Any], *, dap: bool) -> str:
    from hushuffle.assessment.dap import task  # noqa: PLC0415 - only when needed
    from hushuffle.mechanisms.shufflers import Reveals  # noqa: PLC0415 - only when needed
    from hushuffle.model import json_number  # noqa: PLC0415

    bound, protocol = calibration.bound, calibration.protocol
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "min_batch_size": int(calibration.value),
        "parameters": {
            "values": protocol.randomizer.inputs,
            "local_epsilon": json_number(protocol.randomizer.local_epsilon),
            **target,
            "randomizer": protocol.randomizer.describe(),
            "release": "sums" if protocol.shuffler.reveals is Reveals.SUMS else "shuffled reports",
        },
        "certificate": {
            "central_epsilon": bound.as_dict(),
            "delta": calibration.delta,
            "relation": "replace one person's values",
            "holds_for": "this batch size and every larger one, for all answers",
        },
    }
    if dap:
        document["dap"] = task(protocol, batch=int(calibration.value), asked=target)
    return json_text.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
