"""Divide traces into the events that the attacker knows beforehand and the events that are reported afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from hushuffle import _checks
from hushuffle.model.traces import Traces

Knowledge = Literal["partial", "maximum"]
Split = Literal["half", "none"]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """`training`: the events that the attacker knows of each user; `reported`: those that are randomized and sent."""

    training: Traces
    reported: Traces


def scene(
    traces: Traces,
    *,
    knowledge: Knowledge = "partial",
    split: Split = "half",
    training: int | None = None,
    events: int | None = 1,
) -> Scene:
    """Divide every trace into the events that the attacker knows and the events that are reported.

    The personal data X of a user are the latter half of the trace (`split="half"`: both halves have half the events,
    rounded down, an odd last event belongs to neither) or the whole trace ("none"). The first `events` events of X
    are reported (None: all).

    An attacker with "partial" knowledge knows the first half or, without a split, the first `training` events of the
    whole trace. An attacker with "maximum" knowledge knows X. `training` limits either to the first `training` events;
    None: no limit.

    The paper uses halves for check-ins. For ratings it uses no split and the first 1 to 5 events, because no user
    rates a movie twice.

    Raises:
        InvalidInputError: an argument is out of range, a trace is too short to be divided, or knowledge is "partial"
            although there is no split and no `training`, which would be maximum knowledge.

    Source: Murakami, Takahashi 2021, sections 3.1 and 5.1.

    >>> there = scene(Traces.of([[0, 1, 0, 2, 1], [1, 2]], k=3))
    >>> there.training.trace(0).tolist(), there.reported.trace(0).tolist()
    ([0, 1], [0])
    """
    for name, value, choices in (("knowledge", knowledge, Knowledge), ("split", split, Split)):
        if value not in get_args(choices):
            _checks.reject(name, " or ".join(get_args(choices)), value)
    if split == "none" and knowledge == "partial" and training is None:
        hint = "Set training to the number of events that the attacker knows of each person, or use maximum knowledge."
        _checks.reject("training", "a number if knowledge is partial and split is none", None, hint)
    least = 2 if split == "half" else 1
    if bool(np.any(traces.lengths < least)):
        short = int(np.count_nonzero(traces.lengths < least))
        hint = f"Exclude people with fewer events: traces.select(traces.lengths >= {least})."
        _checks.reject("traces", f"traces of at least {least} events each", f"<{short} of {traces.n} shorter>", hint)
    former, personal = traces, traces
    if split == "half":
        half = traces.lengths // 2
        former, rest = traces.split(half)
        personal = rest.split(half)[0]
    background = personal if knowledge == "maximum" else former
    return Scene(training=_first("training", background, training), reported=_first("events", personal, events))


def _first(name: str, traces: Traces, number: int | None) -> Traces:
    return traces if number is None else traces.first(_checks.integer(name, number, low=1))
