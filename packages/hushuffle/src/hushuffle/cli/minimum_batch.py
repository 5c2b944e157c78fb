"""`hushuffle minimum-batch`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from hushuffle.cli.console import Exit, Flag, from_options, misused, print_json, progress, width
from hushuffle.errors import InvalidInputError

if TYPE_CHECKING:
    from hushuffle.assessment.minimum_batch import SmallestBatch
    from hushuffle.mechanisms.protocol import Protocol

_Deployment = Parameter(group=Group("Instead of a specification", sort_key=2))


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
    json: Flag = False,
    dap: Flag = False,
) -> Exit:
    """Compute the smallest batch whose release meets a guarantee.

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
        delta: delta of the central guarantee (default: targets.delta).
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
        misused("--reports-per-person and --rounds are for use without a specification, which has keys for them.")
    json = json or dap
    with progress(enabled=not json and sys.stderr.isatty()) as tell:
        if tell is not None:
            tell("looking for the smallest batch", 0.0)
        if specification is not None:
            from hushuffle.assessment.deployment import opened  # noqa: PLC0415 - a mistake in the options shows before

            batch = opened(specification).smallest_batch()
        else:
            from hushuffle.assessment.minimum_batch import of_protocol  # noqa: PLC0415

            assert k is not None
            assert local_epsilon is not None
            assert epsilon is not None
            assert delta is not None
            protocol = _of_options(k, local_epsilon, mechanism, release)
            if dap:
                _check_dap(protocol, of_file=False)
            with from_options():
                batch = of_protocol(
                    protocol, epsilon=epsilon, delta=delta, reports_per_person=reports_per_person, rounds=rounds
                )
    if dap and specification is not None:
        _check_dap(batch.protocol, of_file=True)
    if json:
        print_json("smallest batch", _document(batch, dap=dap))
    else:
        sys.stdout.write("".join(textwrap.fill(sentence, width=width()) + "\n" for sentence in batch.sentences))
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


def _check_dap(protocol: Protocol | None, *, of_file: bool) -> None:
    from hushuffle.assessment.dap import refusal  # noqa: PLC0415 - only when needed
    from hushuffle.specification._base import unfit  # noqa: PLC0415

    if protocol is None:
        misused("--dap needs a specification of one column: a DAP task has one measurement.")
    why = refusal(protocol)
    if why is None:
        return
    rule, value, hint = why
    if of_file:
        unfit("shuffler", rule, value, hint)
    misused(f"--dap goes with --release sums: {hint}")


def _document(batch: SmallestBatch, *, dap: bool) -> dict[str, Any]:
    from hushuffle.assessment.dap import task  # noqa: PLC0415 - only when needed

    document: dict[str, Any] = {
        "min_batch_size": batch.size,
        "parameters": dict(batch.parameters),
        "certificate": {
            "central_epsilon": batch.bound.as_dict(),
            "delta": batch.target["delta"],
            "relation": "replace one person's values",
            "holds_for": "this batch size and every larger one, for all answers",
        },
    }
    if dap:
        assert batch.protocol is not None
        document["dap"] = task(batch.protocol, batch=batch.size, asked=batch.target)
    return document
