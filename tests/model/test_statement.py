from __future__ import annotations

from dataclasses import replace

import pytest

from hushuffle.errors import InvalidInputError
from hushuffle.model import Assumption, Bound, Target
from hushuffle.model.statement import Rule, headline, met

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


PEOPLE = Target(key="people", topic="People", rule="at least", asked=9.0, got=Bound.exact(10.0, unit="people"))
EPSILON = Target(key="epsilon", topic="Central epsilon", rule="at most", asked=0.5, got=BRACKET)
DELTA = Target(key="delta", topic="Check: delta", rule="below", asked=0.1, got=Bound.exact(1e-6, unit="probability"))
LARGE = Target(key="delta", topic="Check: delta", rule="below", asked=0.1, got=Bound.exact(0.2, unit="probability"))
GUESS = Bound.exact(0.6, unit="probability")
GUESSING = Target(key="guessing", topic="Guessing", rule="at most", asked=0.9999, got=GUESS)
OPEN, CONFIRMED = Assumption(key="a", sentence="A."), Assumption(key="b", sentence="B.", vouched="Anna")


@pytest.mark.parametrize(
    ("targets", "assumptions", "status", "sentence"),
    [
        ((EPSILON, DELTA), (CONFIRMED,), "met", "The one target is met."),
        ((EPSILON, PEOPLE, DELTA), (), "met", "All 2 targets met."),
        (
            (EPSILON, DELTA),
            (OPEN, CONFIRMED),
            "not confirmed",
            "The one target is met. 1 assumption is not confirmed. Name who confirms each in [statement.vouched].",
        ),
        (
            (DELTA,),
            (CONFIRMED,),
            "no privacy limit",
            "No privacy limit was set: write one, for example epsilon = 1, in [targets].",
        ),
        (
            (DELTA, PEOPLE, PEOPLE),
            (),
            "no privacy limit",
            "No privacy limit was set: write one, for example epsilon = 1, in [targets]. The other 2 targets are met.",
        ),
        (
            (GUESSING, DELTA, PEOPLE),
            (CONFIRMED,),
            "no privacy limit",
            "No effective privacy limit was set: guessing = 0.9999 restricts nothing in practice. Write one, for "
            "example epsilon = 1, in [targets]. All 2 targets met.",
        ),
        (
            (replace(EPSILON, asked=25.0), GUESSING),
            (CONFIRMED,),
            "no privacy limit",
            "No effective privacy limit was set: epsilon = 25 and guessing = 0.9999 restrict nothing in practice. "
            "Write one, for example epsilon = 1, in [targets]. All 2 targets met.",
        ),
        ((replace(EPSILON, asked=25.0), replace(GUESSING, asked=0.9)), (), "met", "All 2 targets met."),
        ((EPSILON, LARGE), (), "not met", "The one target is met. A check failed: delta."),
        ((replace(EPSILON, asked=0.05), PEOPLE), (OPEN,), "not met", "1 of 2 targets is not met: Central epsilon."),
    ],
)
def test_the_first_line_is_good_news_only_with_a_privacy_limit_and_confirmed_assumptions(
    targets: tuple[Target, ...], assumptions: tuple[Assumption, ...], status: str, sentence: str
) -> None:
    first = headline(targets, assumptions)
    assert first is not None
    assert (first.status, first.sentence) == (status, sentence)


@pytest.mark.parametrize(
    ("key", "asked", "limits"),
    [
        ("epsilon", 20.0, True),
        ("local_epsilon", 20.5, False),
        ("guessing", 0.98, True),
        ("reidentification", 0.99, False),
        ("people", 0.5, False),
    ],
)
def test_a_target_that_excludes_nothing_is_no_privacy_limit(key: str, asked: float, limits: bool) -> None:
    assert replace(EPSILON, key=key, asked=asked).limits_privacy is limits


def test_a_check_is_no_target() -> None:
    assert DELTA.check
    assert not EPSILON.check
    assert DELTA.sentence == "Check: delta: must be below 0.1, got 1.000e-06 (exact)."
    assert headline(()) is None
