"""What each role of a cascade learns, and pairs of them, in a plain model: measured beside the certified figure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import hushuffle as hs
from oracles.cascade_roles import Coalition, Setting, guessed_target, named_sender

PAGE = Path(__file__).parents[3] / "docs/explanation/network-security.md"
SETTING = Setting()
TRIALS = 4000


class Row(NamedTuple):
    """A coalition; sources and dummies left against it (None: the local figure); people of whom one sent a record."""

    roles: tuple[str, ...]
    left: tuple[int, int] | None
    hidden_among: int | None = None


n, least, d = SETTING.people, SETTING.least, SETTING.dummies
ROWS = {
    "an observer, alone or with relay or issuer": Row((), (n, 2 * d)),
    "the relay, active": Row(("relay*",), (least, 2 * d)),
    "the first scrambler": Row(("first",), (n, d)),
    "the first scrambler, active": Row(("first*",), (1, d)),
    "the last scrambler": Row(("last",), (n, d)),
    "the last scrambler, active": Row(("last*",), (n, d)),
    "the relay, active, and the last scrambler": Row(("relay*", "last"), (least, d)),
    "both scramblers": Row(("first", "last"), None),
    "a target": Row(("target",), None, n),
    "a target and the first scrambler": Row(("first", "target"), None, n),
    "a target and the last scrambler": Row(("last", "target"), None, n),
    "a target and the relay, active": Row(("relay*", "target"), None, least),
    "a target and the first scrambler, active": Row(("first*", "target"), None, 1),
    "a target and both scramblers": Row(("first", "last", "target"), None, 1),
    "the relay and the issuer, both active": Row(("relay*", "issuer*"), (1, 2 * d)),
    "an observer of the number of tokens at each target": Row(("result",), (n, 0)),
}


def chance(left: tuple[int, int] | None) -> float:
    """Return the best chance of guessing which of two targets: (1 + delta(0))/2, certified from above."""
    sampling = hs.TargetSampling(targets=SETTING.targets, sigma=SETTING.sigma)
    sources, dummies = left or (1, 0)
    protocol = hs.Protocol(randomizer=sampling, shuffler=hs.Scrambler(dummies=dummies), n=sources)
    return (1 + hs.dp.delta(protocol, epsilon=0.0).upper) / 2


@pytest.mark.parametrize("name", ROWS)
def test_no_role_and_no_pair_learns_more_than_its_figure_and_the_page_says_how_much(name: str) -> None:
    row = ROWS[name]
    rng = np.random.default_rng(list(ROWS).index(name))
    coalition, bound = Coalition.of(*row.roles), chance(row.left)
    target, noticed = guessed_target(SETTING, coalition, rng, trials=TRIALS)
    slack = 4 * math.sqrt(bound * (1 - bound) / TRIALS)
    assert bound - 0.06 - slack < target < bound + slack  # the attack is the best one, or nearly
    assert noticed == ("first" in coalition.active)
    cells = ["no", "yes"][round(noticed)] if coalition.active else "-"
    helped = Coalition.of(*row.roles, *[role for role in ("relay", "issuer") if f"{role}*" not in row.roles])
    again = (guessed_target(SETTING, one, np.random.default_rng(7), trials=200) for one in (coalition, helped))
    assert len(set(again)) == 1  # a passive relay and the issuer add nothing
    said = [name, f"{target:.2f}", f"{bound:.2f}"]
    if row.hidden_among is None:
        said += ["-", "-"]
    else:
        sender = named_sender(SETTING, coalition, rng, trials=TRIALS)
        assert abs(sender - 1 / row.hidden_among) <= 4 * math.sqrt(0.25 / TRIALS) * (row.hidden_among > 1)
        said += [f"{sender:.2f}", f"{1 / row.hidden_among:.2f}"]
    assert f"| {' | '.join([*said, cells])} |" in PAGE.read_text(encoding="utf-8")
