"""Rules: each file states one theorem that reduces a question about a release to simpler questions."""

from typing import Final

from hushuffle.curves.question import Rule
from hushuffle.curves.rules import (
    alone,
    batches,
    cap,
    colluding,
    count_seen,
    every_group,
    groups,
    memoized,
    order,
    own_messages,
    rounds,
    single_ones,
)

RULES: Final[tuple[Rule, ...]] = (
    rounds.RULE,
    memoized.PERMANENT,
    memoized.FRESH,
    memoized.REVEALED,
    every_group.RULE,
    colluding.RULE,
    single_ones.RULE,
    batches.RULE,
    alone.RULE,
    order.RULE,
    groups.RULE,
    own_messages.RULE,
    count_seen.RULE,
    cap.RULE,
)
"""Rules are tried in this order."""
