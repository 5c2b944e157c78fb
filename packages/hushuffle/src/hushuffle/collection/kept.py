"""Requirements for a collection of memoized reports, and the joint guarantee of all rounds of a key.

No report is stored, since a report is a function of the key, the person, the value, the column, the categories and the
randomizer. If none of these changes, the report is the same in every round.

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
    if not specification.memoised:
        return
    person = specification.population.whose
    if person is None:
        hint = 'Set it to the column that identifies the person of each report, for example person = "user".'
        unfit("population.person", "must be given to collect memoized reports", "nothing", hint)
    if request.keys is None:
        fail(
            "Memoized reports are not stored: a key reproduces their randomness. Pass `--key-file`, and in the first "
            "round `--new-key`."
        )
    if request.keys.ids != person:
        fail(f"With memoized reports, --id is the column of population.person, {person!r}. Pass this, or remove --id.")
    if request.budget is not None:
        fail(
            "A budget covers fresh reports only: remove `--budget`. The ledger of the key counts rounds of memoized "
            "reports, and targets.epsilon limits them."
        )


def kept_rounds(made: Release, counts: tuple[int, int, int], rounds: int) -> KeyRounds:
    """Return the joint guarantee of all rounds; only people with the same report in all rounds count as the crowd."""
    specification, (unchanged, changed, most) = parse(made.manifest.specification), counts
    announced, targets = specification.rounds or 1, specification.targets
    if rounds > announced:
        fail(
            f"This key has {announced:,} rounds, as many as the specification announces: nothing was released. Raise "
            "rounds in the specification, or end the collection."
        )
    if rounds > 1 and unchanged == 0:
        fail(
            f"No person has sent the same report in all {rounds:,} rounds so far, so nothing was released. If an id "
            "changes, its person sends a second report: write ids as in earlier rounds."
        )
    _refuse_changes(specification, changed, most)
    crowd = replace(made.protocol, n=max(unchanged, 1))
    values = specification.reports_kept(crowd.randomizer.inputs) or 1
    figure = dp.waves(crowd, waves=rounds, delta=targets.delta, changes=values - 1)
    if targets.epsilon is not None and figure.upper > targets.epsilon:
        fail(
            f"Only {unchanged:,} people have sent the same report in all {rounds:,} rounds so far: their central "
            f"epsilon is up to {figure.upper:.4g} at delta = {targets.delta:g}, above targets.epsilon = "
            f"{targets.epsilon:g}. Nothing was released."
        )
    epsilon = Bound(lower=0.0, upper=figure.upper, kind="upper", unit="nats")
    return KeyRounds(collections=rounds, epsilon=epsilon, delta=targets.delta, kept=unchanged, changed=changed)


def _refuse_changes(specification: Specification, changed: int, most: int) -> None:
    """Raise an error if a person has sent more different reports than the guarantee covers."""
    announced = specification.changes or 0
    if most - 1 > announced:
        who = "1 person" if changed == 1 else f"{changed:,} people"
        fail(
            f"{who} gave another answer in an earlier round, up to {most:,} different answers each. With changes = "
            f"{announced} the specification announces {announced + 1:,} at most: nothing was released. Raise changes "
            "(hushuffle calibrate computes the noise for it), or put the earlier answer into this round's file. Do not "
            "leave these people out: whether an answer is missing would then depend on the answer."
        )
