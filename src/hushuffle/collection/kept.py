"""Reports that people keep: what keeps them, and what all rounds of a key say together.

Nothing is stored: a report is drawn by coins of the key, the person, the value, the column, the categories and the
randomizer. The same of all of these, the same report, in whatever round.

Source: docs/theory/composition.md, Theorem 11.
"""

from __future__ import annotations

from dataclasses import replace

from hushuffle._checks import fail
from hushuffle.collection.release import Release
from hushuffle.collection.request import KeyRounds, Request
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification import Specification, parse
from hushuffle.specification._base import unfit


def refuse_unkept(specification: Specification, request: Request) -> None:
    """Refuse to collect reports that are kept without what keeps them."""
    if not specification.memoised:
        return
    person = specification.population.whose
    if person is None:
        hint = 'For example person = "user": the column that says whose report it is.'
        unfit("population.person", "must be given to collect reports that are kept (memoised)", "nothing", hint)
    if request.keys is None:
        fail(
            "Reports that are kept (memoised) are not stored: a key repeats their coins. Say --key-file, and in the "
            "first round --new-key."
        )
    if request.keys.ids != person:
        fail(f"Where reports are kept (memoised) --id is the column of population.person, {person!r}, or left out.")
    if request.budget is not None:
        fail(
            "A budget adds up fresh reports, not those that are kept (memoised): leave --budget out. The ledger of the "
            "key knows the rounds, and targets.epsilon limits them."
        )


def kept_rounds(made: Release, counts: tuple[int, int, int], rounds: int) -> KeyRounds:
    """Return what so many rounds of kept reports say together; refused if they are more, or say more, than was asked.

    `counts` are as `Ledger.kept` says. The crowd are people who have sent the same report in all rounds.
    """
    specification, (kept, changed, most) = parse(made.manifest.specification), counts
    announced, targets = specification.rounds or 1, specification.targets
    if rounds > announced:
        fail(
            f"With this key {announced:,} rounds were collected, as many as the specification announces: nothing "
            "leaves."
        )
    if rounds > 1 and kept == 0:
        fail(
            f"Nobody has sent the same report in all {rounds:,} rounds so far: are the ids written as before? A person "
            "whose id is written in another way sends a second report. Nothing leaves."
        )
    _refuse_changes(specification, changed, most)
    crowd = replace(made.protocol, n=max(kept, 1))
    values = specification.reports_kept(crowd.randomizer.inputs) or 1
    figure = dp.waves(crowd, waves=rounds, delta=targets.delta, changes=values - 1)
    if targets.epsilon is not None and figure.upper > targets.epsilon:
        fail(
            f"Only {kept:,} people have sent the same report in all {rounds:,} rounds so far: their central epsilon is "
            f"up to {figure.upper:.4g} at delta = {targets.delta:g}, above targets.epsilon = {targets.epsilon:g}. "
            "Nothing leaves."
        )
    epsilon = Bound(lower=0.0, upper=figure.upper, kind="upper", unit="nats")
    return KeyRounds(collections=rounds, epsilon=epsilon, delta=targets.delta, kept=kept, changed=changed)


def _refuse_changes(specification: Specification, changed: int, most: int) -> None:
    """Refuse people who have sent more different reports than the figures are for."""
    announced = specification.changes or 0
    if most - 1 > announced:
        who = "1 person" if changed == 1 else f"{changed:,} people"
        fail(
            f"{who} gave another answer in an earlier round, up to {most:,} different ones each: with changes = "
            f"{announced} the specification announces {announced + 1:,} at most. Nothing leaves. Raise changes "
            "(hushuffle calibrate finds the noise for it), or put the earlier answer into this round's file. Do not "
            "leave out who changed: whether an answer is missing would then depend on the answer."
        )
