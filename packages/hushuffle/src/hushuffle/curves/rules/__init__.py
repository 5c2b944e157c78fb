"""Rules: each states one theorem that reduces a question about a release to simpler questions."""

from typing import Final

from hushuffle.curves.question import Rule
from hushuffle.curves.rules import batches, cap, count_seen, every_group, groups, memoized, simple

RULES: Final[tuple[Rule, ...]] = (
    simple.ROUNDS,
    memoized.PERMANENT,
    memoized.FRESH,
    memoized.LINKED,
    memoized.REVEALED,
    every_group.RULE,
    simple.COLLUDING,
    simple.SINGLE_ONES,
    count_seen.RULE,
    batches.RULE,
    simple.OTHER_GROUPS,
    simple.ORDER,
    groups.RULE,
    simple.OWN_MESSAGES,
    cap.RULE,
)
"""Rules are tried in this order."""
