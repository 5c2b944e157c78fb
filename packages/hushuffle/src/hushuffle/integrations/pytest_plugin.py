"""Fixtures of pytest that test privacy claims: `assert_private` by trials, `assert_replay` with equal randomness.

pytest loads this module in every run, so it imports the library only when a fixture is used.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import pytest


@pytest.fixture(scope="session")
def assert_private() -> Callable[..., Any]:
    """Return `assert_private(what, *, epsilon, delta=0.0, values=None, trials=None, confidence=1 - 1e-6)`.

    `what` is a randomizer (its local epsilon), a protocol (its central epsilon at `delta`), a function that takes an
    array of codes 0 and 1 and returns one report for each, or a command (a text or a list) that reads a value and
    writes a report on each line; a command needs two `values`. The assertion fails if trials refute `epsilon`, or if
    the certified epsilon of a randomizer or protocol is above it. A true claim fails with probability at most 1e-6.
    The result is the measurement.
    """
    return _assert_private


@pytest.fixture(scope="session")
def assert_replay() -> Callable[..., None]:
    """Return `hushuffle.attacks.replay.assert_replay(collect, records, ...)`, a test without false alarms."""
    from hushuffle.attacks import replay  # noqa: PLC0415 - when used

    return replay.assert_replay


def _assert_private(
    what: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    values: Sequence[Any] | None = None,
    trials: int | None = None,
    confidence: float = 1 - 1e-6,
) -> Any:
    from hushuffle.attacks import audit  # noqa: PLC0415 - when used
    from hushuffle.attacks.audit_command import of_command  # noqa: PLC0415
    from hushuffle.mechanisms.protocol import Protocol  # noqa: PLC0415
    from hushuffle.mechanisms.randomizers import Mechanism  # noqa: PLC0415
    from hushuffle.questions import dp  # noqa: PLC0415

    claim: dict[str, Any] = {"claimed": epsilon, "confidence": confidence}
    if isinstance(what, Mechanism):
        _at_most(what.local_epsilon, epsilon, f"The local epsilon is {what.local_epsilon:.6g}")
        first, second = values or (0, 1)
        measured = audit.audit_mechanism(what, values=(first, second), trials=trials or 200_000, **claim)
    elif isinstance(what, Protocol):
        bound = dp.epsilon(what, delta=delta)
        _at_most(bound.upper, epsilon, f"The certified central epsilon at delta = {delta:g} is {bound}")
        worst = bound.witness
        assert worst is not None
        measured = audit.audit_protocol(
            what, others=worst.others, values=worst.target, delta=delta, trials=trials or 20_000, **claim
        )
    else:
        sampler, names = what, tuple(map(str, values or (0, 1)))
        if not callable(what):
            program = shlex.split(what) if isinstance(what, str) else list(what)
            sampler = of_command(program, (names[0], names[1]))
        measured = audit.audit_sampler(
            sampler, (0, 1), names=(names[0], names[1]), delta=delta, trials=trials or 100_000, **claim
        )
    assert not measured.refuted, (
        f"Trials refute epsilon = {epsilon:g}: epsilon is at least {measured.epsilon.lower:.4g} "
        f"(delta = {delta:g}, confidence {confidence:g})."
    )
    return measured


def _at_most(figure: float, epsilon: float, words: str) -> None:
    assert figure <= epsilon, f"{words}, more than {epsilon:g}. Choose more noise, or claim this epsilon."
