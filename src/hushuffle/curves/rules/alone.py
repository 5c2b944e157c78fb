"""If senders are seen, a report is protected by its own noise only."""

from __future__ import annotations

from typing import Final

from hushuffle.curves.question import Feature, Rule, Same

RULE: Final = Rule(
    name="other groups seen",
    statement="If senders are seen, other groups' reports can be set aside: they do not depend on the target's value.",
    page="index.md",
    on=frozenset({Feature.GROUPS, Feature.SENDERS}),
    reduce=lambda question: Same(question=question.alone()),
)
