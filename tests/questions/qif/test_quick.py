from __future__ import annotations

from fractions import Fraction
from time import process_time

import pytest

import hushuffle as hs
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.questions import qif
from hushuffle.questions.qif import many
from plain_protocols import OtherShuffle, protocol


@pytest.mark.parametrize(
    ("k", "n"),
    [
        *((k, n) for k in (3, 4, 6) for n in (3, 20)),
        (3, 300),
        pytest.param(4, 300, marks=pytest.mark.slow),
        pytest.param(6, 300, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("truth", [Fraction(1, 2), Fraction(99, 100)])
def test_holds_what_the_full_figure_holds(k: int, n: int, truth: Fraction) -> None:
    survey = protocol(n, k, truth)
    guessers: list[Guesser] = [hs.Uninformed(), hs.Informed(m=max(1, n // 10)), hs.Strong()]
    for guesser in guessers:
        full, rough = qif.vulnerability(survey, adversary=guesser), qif.quick_vulnerability(survey, adversary=guesser)
        # Both hold the truth; an exact figure lies inside.
        assert rough.lower <= full.upper
        assert full.lower <= rough.upper
        if full.kind == "exact":
            assert full.upper in rough
        assert rough.upper <= float(truth) * (1 + 1e-15)


def test_passes_on_what_is_cheap() -> None:
    two, open_answers = protocol(50, 2, Fraction(3, 5)), protocol(50, 4, Fraction(1))
    named = protocol(50, 4, Fraction(3, 5), OtherShuffle(revealed=Reveals.SENDERS))
    for survey, guesser in (
        (two, hs.Strong()),
        (open_answers, hs.Strong()),
        (named, hs.Strong()),
        (protocol(9, 3, Fraction(3, 5)), hs.Strong(others=hs.Histogram(counts=[4, 4, 0]))),
    ):
        assert qif.quick_vulnerability(survey, adversary=guesser) == qif.vulnerability(survey, adversary=guesser)


def test_does_without_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> float:
        raise NumericalError

    survey = protocol(300, 4, Fraction(1, 2))
    full = qif.quick_vulnerability(survey, adversary=hs.Strong())
    monkeypatch.setattr(many, "one_value_rate", refuse)
    less = qif.quick_vulnerability(survey, adversary=hs.Strong())
    assert 1 / 4 < less.lower <= full.lower
    assert less.upper == full.upper


def test_is_quick() -> None:
    start = process_time()
    for k in (3, 5, 10):
        found = qif.quick_vulnerability(protocol(10**5, k, Fraction(1, 2)), adversary=hs.Strong())
        assert found.width < 0.2 * (found.upper - 1 / k)
    assert process_time() - start < 2
