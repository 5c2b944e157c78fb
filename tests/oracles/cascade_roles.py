"""A batch through two scramblers, message by message, and what each role makes of what it sees.

A plain model: no seals, no network. An adversary holds some roles and all links. It knows a label of each message:
whose it is, that it made the message itself, or nothing after an honest scrambler has mixed it. Targets are seen on the
last links; what is inside only by the target's own node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
OWN, UNKNOWN = -1, -2
VICTIM = 0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """`people` in a batch, of which `least` are enough to release it; `dummies` of each of two scramblers."""

    people: int = 40
    least: int = 20
    targets: int = 10
    sigma: float = 0.2
    dummies: int = 5


@dataclass(frozen=True, kw_only=True)
class Coalition:
    """Roles in one hand: "relay", "first", "last", "target" (of target 0), "issuer", "result"; `active` ones forge."""

    roles: frozenset[str]
    active: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *names: str) -> Coalition:
        """Return the coalition of these roles; a star makes a role an active one.

        >>> Coalition.of("relay*", "target").active
        frozenset({'relay'})
        """
        return cls(
            roles=frozenset(name.rstrip("*") for name in names),
            active=frozenset(name.rstrip("*") for name in names if name.endswith("*")),
        )


@dataclass
class Messages:
    """What is under way: columns, one entry for each message."""

    target: Integers
    maker: Integers
    carries: npt.NDArray[np.bool_]
    label: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    def taken(self, rows: Integers) -> Messages:
        """Return these rows, in this order."""
        return Messages(self.target[rows], self.maker[rows], self.carries[rows], self.label[rows])

    def joined(self, target: Integers, maker: int, label: int) -> Messages:
        """Return these messages and such ones after them, which carry no data."""
        more = target.size
        return Messages(
            np.concatenate([self.target, target]),
            np.concatenate([self.maker, np.full(more, maker)]),
            np.concatenate([self.carries, np.zeros(more, np.bool_)]),
            np.concatenate([self.label, np.full(more, label)]),
        )


def batch(setting: Setting, own: Integers, coalition: Coalition, rng: np.random.Generator) -> Messages:
    """Return what arrives at the targets of one batch, in its last order, with the coalition's labels."""
    redirected = rng.random(setting.people) < setting.sigma
    sent = np.where(redirected, rng.integers(setting.targets, size=setting.people), own)
    people = np.arange(setting.people)
    messages = Messages(sent, people, ~redirected, people.copy())
    if "relay" in coalition.active:
        kept = np.arange(min(setting.least, setting.people))  # the victim is the first
        messages = replaced(messages) if "issuer" in coalition.active else messages.taken(kept)
    for place, name in enumerate(("first", "last")):
        held = name in coalition.roles
        if name in coalition.active:
            messages = replaced(messages)
        drawn = rng.integers(setting.targets, size=setting.dummies)
        messages = messages.joined(drawn, setting.people + place, OWN if held else UNKNOWN)
        if not held:
            messages = messages.taken(rng.permutation(messages.target.size))
            messages.label = np.where(messages.label == OWN, OWN, UNKNOWN)
    return messages


def replaced(messages: Messages) -> Messages:
    """Put own messages, to target 2, in the place of all but the victim's, where that one can be told."""
    if VICTIM not in messages.label:
        return messages
    kept = messages.taken(np.flatnonzero(messages.label == VICTIM))
    return kept.joined(np.full(messages.target.size - 1, 2), OWN, OWN)


def announced(setting: Setting, coalition: Coalition) -> int:
    """Return how many sources the first scrambler says there are: it counts tickets, which a relay has none of."""
    return setting.least if "relay" in coalition.active and "issuer" not in coalition.active else setting.people


def tokens(messages: Messages, setting: Setting, coalition: Coalition) -> int:
    """Return how many messages carry a token: people's own, also redirected ones, and those an issuer helped with."""
    own = messages.maker == OWN if "issuer" in coalition.active else np.zeros(messages.maker.size, np.bool_)
    return int(np.count_nonzero(((messages.maker >= 0) & (messages.maker < setting.people)) | own))


def guessed_target(
    setting: Setting, coalition: Coalition, rng: np.random.Generator, *, trials: int
) -> tuple[float, float]:
    """Return how often the victim's own target, 0 or 1, is guessed, and how often tokens are missing afterwards.

    Everybody else is at 2. The likeliest is guessed: the target of the victim's message if it can be told, else the one
    with more unknown messages. A target's node sees whether a record has come.
    """
    right, noticed = 0, 0
    for _ in range(trials):
        true = int(rng.integers(2))
        own = np.full(setting.people, 2)
        own[VICTIM] = true
        messages = batch(setting, own, coalition, rng)
        noticed += tokens(messages, setting, coalition) < announced(setting, coalition)
        right += _target(messages, setting, coalition, rng) == true
    return right / trials, noticed / trials


def _target(messages: Messages, setting: Setting, coalition: Coalition, rng: np.random.Generator) -> int:
    if "target" in coalition.roles:
        return 0 if bool((messages.carries & (messages.target == 0)).any()) else 1
    mine, unknown = messages.label == VICTIM, messages.label == UNKNOWN
    if "result" in coalition.roles:
        unknown &= messages.maker < setting.people
    seen = messages.target[mine if mine.any() else unknown]
    zero, one = int(np.count_nonzero(seen == 0)), int(np.count_nonzero(seen == 1))
    return int(rng.integers(2)) if zero == one else int(one > zero)


def named_sender(setting: Setting, coalition: Coalition, rng: np.random.Generator, *, trials: int) -> float:
    """Return how often the node of target 0 names who sent a record that it got, everybody's own target being 0."""
    right, seen = 0, 0
    for _ in range(trials):
        messages = batch(setting, np.zeros(setting.people, np.int64), coalition, rng)
        (got,) = np.nonzero(messages.carries & (messages.target == 0))
        if got.size:
            seen += 1
            one = int(rng.choice(got))
            label = int(messages.label[one])
            if label == UNKNOWN:
                # Somebody of whom it is not known that the message was kept back.
                alone = "first" in coalition.active and tokens(messages, setting, coalition) == 1
                label = VICTIM if alone else int(rng.integers(announced(setting, coalition)))
            right += label == int(messages.maker[one])
    return right / seen
