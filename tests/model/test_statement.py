from __future__ import annotations

import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import Bound, Target
from hushuffle.model.statement import Rule, met

BRACKET = Bound(lower=0.1, upper=0.2, kind="bracket", unit="nats")


def target(rule: Rule, asked: float, got: Bound | None = BRACKET) -> Target:
    return Target(key="k", topic="Figure", rule=rule, asked=asked, got=got, reason="" if got else "No law.")


@pytest.mark.parametrize(
    ("rule", "asked", "word"),
    [
        ("at most", 0.2, "pass"),
        ("at most", 0.19, "not shown"),
        ("at most", 0.1, "not shown"),
        ("at most", 0.09, "fail"),
        ("below", 0.21, "pass"),
        ("below", 0.2, "not shown"),
        ("below", 0.05, "fail"),
        ("at least", 0.1, "pass"),
        ("at least", 0.15, "not shown"),
        ("at least", 0.21, "fail"),
    ],
)
def test_the_end_that_counts_is_the_worse_one(rule: Rule, asked: float, word: str) -> None:
    judged = target(rule, asked)
    assert judged.word == word
    assert judged.met is (word == "pass")


def test_an_exact_figure_is_never_open() -> None:
    assert target("below", 0.2, Bound.exact(0.2, unit="nats")).word == "fail"


def test_a_target_without_a_figure_is_not_known_and_not_met() -> None:
    unknown = target("at most", 0.2, None)
    assert (unknown.met, unknown.word) == (None, "not known")
    assert unknown.sentence == "Figure: asked at most 0.2, not known. No law."
    assert met((target("at most", 0.2), unknown)) is False
    assert met((target("at most", 0.2),)) is True


def test_what_is_no_target() -> None:
    with pytest.raises(InvalidInputError, match="`rule` must be one of at most, below, at least"):
        target("about", 1.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="`reason` must be given where there is no figure"):
        Target(key="k", topic="Figure", rule="at most", asked=1.0, got=None)
