"""Deployments with several messages of each person, or dummies beside true reports, that `choose` proposes."""

from __future__ import annotations

import itertools
import math
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
from assessment.test_choose import verified
from hushuffle.assessment.candidates import Candidate, Miss
from hushuffle.assessment.choice_report import choice_report
from hushuffle.assessment.choose import Choices, choose
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.message_candidates import MessageSearch
from hushuffle.assessment.trials import worst_error
from hushuffle.errors import InvalidInputError
from hushuffle.specification import parse

pytestmark = pytest.mark.usefixtures("no_charts")
Wished = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"


def wishes(n: int = 300, k: int = 4, **targets: float) -> Wished:
    return {
        "population": {"n": n, "k": k},
        "adversaries": [{"kind": "uninformed"}, {"kind": "strong"}],
        "targets": {"delta": 1e-5, **targets},
    }


def several(found: Choices) -> dict[str, Candidate]:
    """Return the rows with further messages, or dummies beside true reports, by kind of shuffler."""
    rows = {}
    for row in found.rows:
        tables = tomllib.loads(row.specification)
        if row.messages > 1 or math.isinf(row.point.local_epsilon):
            rows[tables["shuffler"]["kind"]] = row
    return rows


def missed(found: Choices) -> dict[str, Miss]:
    return {miss.search.name: miss for miss in found.missed if isinstance(miss.search, MessageSearch)}


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out deployments of one message and no dummies: they have tests of their own, and take longer."""
    monkeypatch.setattr("hushuffle.assessment.message_candidates.searches", lambda _: ([], []))


ASKED = wishes(standard_error=0.05, epsilon=0.7, guessing=0.6)


def test_each_row_is_verified_by_assess_and_says_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = wishes(standard_error=0.05, epsilon=0.7)
    found = several(choose(asked, most_messages=5, most_dummies=2000, honest=0.8))
    assert set(found) == {"blanket-messages", "fakes-per-value", "scrambler"}
    for kind, row in found.items():
        made = verified(row, monkeypatch)
        assert "no local epsilon" in row.sentence
        written = tomllib.loads(row.specification)
        assert written["randomizer"] == {"kind": "randomized-response", "epsilon": "inf"}
        if kind == "scrambler":
            assert (row.messages, row.bits, row.dummies) == (1, 2, written["shuffler"]["dummies"])
        else:
            assert written["shuffler"]["honest"] == 0.8
            costs = {str(row[0]): row[1] for row in next(t for t in made.tables if t.key == "messages").rows}
            assert row.messages == pytest.approx(costs["messages of each person, on average"])
            assert row.bits == pytest.approx(costs["bits of each person, on average"])
            assert row.dummies == 0


def feasible(asked: Wished, local: float, most: float) -> set[str]:
    """Return the kinds that meet the targets somewhere on a coarse grid of coins, p and dummies."""
    limits, n, k = asked["targets"], asked["population"]["n"], asked["population"]["k"]
    made: list[tuple[str, Any]] = []
    truth = hs.RandomizedResponse(k=k, epsilon=local)
    probabilities = (0.05, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0) if math.isinf(local) else (0.85, 1.0)
    for trials, p in itertools.product((1, 2, 3, 4), probabilities):
        if 1 + trials * p <= most:
            made.append(("blanket-messages", hs.BlanketMessages(p=p, trials=trials)))
    if math.isinf(local):
        fakes = [p for p in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if 1 + k * p <= most]
        made += [("fakes-per-value", hs.FakesPerValue(p=p)) for p in fakes]
        made += [("scrambler", hs.Scrambler(dummies=dummies)) for dummies in (30, 100, 200, 400, 800, 1600)]
    return {
        kind
        for kind, protocol in ((kind, hs.Protocol(randomizer=truth, shuffler=one, n=n)) for kind, one in made)
        if worst_error(protocol) <= limits.get("standard_error", 1)
        and hs.dp.epsilon(protocol, delta=limits["delta"]).upper <= limits["epsilon"]
    }


GRID = [
    (n, k, error, epsilon, most)
    for n, k in ((60, 2), (300, 4), (2000, 30))
    for error, epsilon in ((0.02, 1.5), (0.1, 0.5))
    for most in (1.3, 4.0)
]


@pytest.mark.usefixtures("_alone")
def test_nothing_that_meets_the_targets_on_a_coarse_grid_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.assessment.choose.advise", lambda *_: ())
    met = 0
    for n, k, error, epsilon, most in GRID:
        asked = wishes(n=n, k=k, standard_error=error, epsilon=epsilon)
        expected = feasible(asked, math.inf, most)
        found = several(choose(asked, most_messages=most, most_dummies=1600))
        assert expected <= set(found), (asked, most)
        assert all(row.messages <= most for row in found.values())
        met += len(expected)
    assert met > len(GRID)


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(
    ("n", "k", "local", "epsilon"), [(40, 2, 2.0, 0.9), pytest.param(60, 6, 3.0, 0.8, marks=pytest.mark.slow)]
)
def test_noisy_reports_with_messages_are_found_where_a_local_epsilon_is_asked_for(
    n: int, k: int, local: float, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushuffle.assessment.choose.advise", lambda *_: ())
    asked = wishes(n=n, k=k, standard_error=0.15, epsilon=epsilon, local_epsilon=local)
    expected = feasible(asked, local, 4.0)
    assert expected == {"blanket-messages"}
    found = choose(asked, most_messages=4.0)
    (row,) = several(found).values()
    assert row.point.local_epsilon == local
    assert f"local epsilon {local:g}" in row.sentence
    assert row.met
    reasons = {name: miss.reason for name, miss in missed(found).items()}
    answers = "Reports equal the answers: without the shuffler there is no local epsilon."
    assert reasons == {"true reports, blanket messages": answers, "true reports, fakes of each value": answers}
    alone = missed(choose(asked))["randomized response, blanket messages"]
    assert alone.reason == "Additional messages are not allowed (most_messages)."
    easy = wishes(n=n, k=k, standard_error=0.5, epsilon=local, local_epsilon=local)
    none = missed(choose(easy, most_messages=4.0))["randomized response, blanket messages"]
    assert none.reason == f"With local epsilon {local:g} no additional messages are needed."


@pytest.mark.usefixtures("_alone")
def test_messages_are_the_fewest_that_are_private_enough() -> None:
    row = several(choose(ASKED, most_messages=9))["blanket-messages"]
    table = tomllib.loads(row.specification)["shuffler"]
    coins, p = table.get("trials", 1), table["p"]
    truth = hs.RandomizedResponse(k=4, epsilon=math.inf)
    rarer = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=p * 0.997, trials=coins), n=300)
    assert hs.dp.epsilon(rarer, delta=1e-5).upper > 0.7
    if coins > 1:
        fewer = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=1, trials=coins - 1), n=300)
        assert hs.dp.epsilon(fewer, delta=1e-5).upper > 0.7


@pytest.mark.usefixtures("_alone")
def test_accuracy_alone_gives_the_most_messages_that_are_allowed() -> None:
    asked = wishes(standard_error=0.04)
    found = several(choose(asked, most_messages=2.5, most_dummies=5000))
    assert set(found) == {"blanket-messages", "fakes-per-value", "scrambler"}
    # Two bits each: 300 people who send 5 bits on average send 1.5 messages besides.
    for name, row in several(choose(asked, most_messages=9, most_bits=5)).items():
        assert 4.9 < row.bits <= 5, name
    assert 2.49 < found["blanket-messages"].messages <= 2.5
    more = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=4, epsilon=math.inf),
        shuffler=hs.Scrambler(dummies=int(found["scrambler"].dummies) + 1),
        n=300,
    )
    assert worst_error(more) > 0.04 >= found["scrambler"].point.standard_error
    less = several(choose(wishes(standard_error=0.03), most_messages=9))["blanket-messages"]
    assert less.messages < 2.5
    assert less.point.standard_error == pytest.approx(0.03, rel=1e-3)
    reasons = {miss.reason for miss in missed(choose(asked)).values()}
    assert reasons == {"Additional messages are not allowed (most_messages)."}
    hopeless = missed(choose(wishes(n=3, standard_error=1e-12), most_messages=2))
    assert all("Standard error: asked at most" in miss.reason for miss in hopeless.values())


@pytest.mark.usefixtures("_alone")
def test_looser_targets_and_limits_never_remove_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.assessment.choose.advise", lambda *_: ())
    rng = random.Random(1)  # noqa: S311 - not for privacy
    for _ in range(12):
        n, k = rng.choice((40, 150, 600)), rng.choice((2, 3, 10))
        targets = {"standard_error": rng.uniform(0.01, 0.2), "epsilon": math.exp(rng.uniform(-1.5, 1))}
        limits = {"most_messages": rng.uniform(1, 6), "most_dummies": rng.choice((0, 100, 3000))}
        looser = {key: value * rng.choice((1, 1.001, 1.3)) for key, value in targets.items()}
        more = {"most_messages": limits["most_messages"] * rng.choice((1, 2)), "most_dummies": limits["most_dummies"]}
        strict = several(choose(wishes(n=n, k=k, **targets), **limits))  # type: ignore[arg-type]
        assert set(strict) <= set(several(choose(wishes(n=n, k=k, **looser), **more)))  # type: ignore[arg-type]


@pytest.mark.usefixtures("_alone")
def test_what_is_missed_says_how_many_messages_it_takes_and_that_is_enough() -> None:
    found = choose(ASKED)
    assert not found.rows
    miss = missed(found)["true reports, blanket messages"]
    assert miss.over == "messages"
    assert miss.reason.endswith("messages per person; the limit most_messages is 1.")
    assert found.missed[0] is miss
    (advice,) = found.advice
    assert advice.most_messages is not None
    assert advice.sentence.startswith(
        f"If most_messages is {advice.most_messages:g} per person, this deployment meets all"
    )
    changed = tomllib.loads(advice.wishes)
    assert changed == ASKED
    assert several(choose(changed, most_messages=advice.most_messages)).keys() == {"blanket-messages"}
    reasons = {name: miss.reason for name, miss in missed(found).items()}
    assert "uniformly random dummies" in reasons["true reports, fakes of each value"]
    bits = choose(ASKED, most_messages=9, most_bits=2)
    assert missed(bits)["true reports, blanket messages"].reason.endswith("bits per person; most_bits is 2.")
    small = missed(choose(wishes(n=2, k=2, epsilon=0.01, guessing=0.9), most_messages=9))
    exposed = "The privacy targets are missed even with 1 additional messages of each person, the largest number tried."
    assert small["true reports, fakes of each value"].reason == exposed
    kept = {**wishes(epsilon=1.0), "memoised": True, "rounds": 3}
    averaged = "Fresh randomness averages out over many rounds."
    assert {miss.reason for miss in missed(choose(kept, most_messages=3)).values()} == {averaged}


@pytest.mark.usefixtures("_alone")
def test_several_rounds_are_counted_together() -> None:
    once = several(choose(wishes(epsilon=1.0), most_messages=20))["blanket-messages"]
    often = several(choose({**wishes(epsilon=1.0), "rounds": 3}, most_messages=20))["blanket-messages"]
    assert often.messages - 1 > 2 * (once.messages - 1)
    assert often.met


def test_bits_are_a_limit_for_one_message_too() -> None:
    asked = wishes(standard_error=0.1, local_epsilon=2.5)
    assert {row.bits for row in choose(asked).rows} == {2, 3, 4, 5}
    few = choose(asked, most_bits=2)
    assert {row.bits for row in few.rows} == {2}
    assert any(miss.reason == "It needs 4.000 bits per person; most_bits is 2." for miss in few.missed)


@pytest.mark.usefixtures("_alone")
def test_the_report_has_messages_and_no_local_epsilon() -> None:
    table = choice_report(choose(ASKED, most_messages=9)).tables[0]
    assert table.columns[5:8] == ("messages", "bits", "dummies")
    ((_, _, local, _, _, messages, bits, dummies, _),) = table.rows
    assert local == "none"
    assert isinstance(messages, float)
    assert (bits, dummies) == (2 * messages, 0)
    assert ">none<" in choose(ASKED, most_messages=9)._repr_html_()


@pytest.mark.parametrize(
    ("name", "value"),
    [("most_messages", 0.5), ("most_messages", math.nan), ("most_bits", 0), ("honest", 0), ("honest", 1.5)],
)
def test_limits_that_are_wrong(name: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=name):
        choose(ASKED, **{name: value})  # type: ignore[arg-type]


@pytest.mark.usefixtures("_alone")
def test_no_limit_of_messages_is_one_that_can_be_met() -> None:
    """As many coins as people may throw, and not one more."""
    found = choose({"population": {"n": 20_000, "k": 5}, "targets": {"delta": 1e-8, "standard_error": 0.1}})
    assert {miss.reason for miss in found.missed if "must be" in miss.reason} == set()
    unlimited = choose(
        {"population": {"n": 20_000, "k": 5}, "targets": {"delta": 1e-8, "standard_error": 0.1}}, most_messages=math.inf
    )
    assert "blanket-messages" in several(unlimited)


def hashed(found: Choices) -> Candidate:
    (row,) = [row for row in found.rows if row.sentence.startswith("true hashed reports")]
    return row


@pytest.mark.slow
@pytest.mark.usefixtures("_alone")
def test_very_many_values_are_hashed_and_take_few_messages() -> None:
    """The example of many values has two messages; fewer do."""
    asked: Wished = {
        "population": {"n": 10**6, "k": 10**6},
        "targets": {"delta": 1e-7, "epsilon": 1.1, "standard_error": 1e-5},
    }
    row = hashed(choose(asked, most_messages=2))
    assert row.met
    assert 1.7 < row.messages < 1.9
    example = parse((EXAMPLES / "many-values.toml").read_text(encoding="utf-8"))
    assert row.messages < 1 + example.shuffler.build().own_messages


@pytest.mark.usefixtures("_alone")
def test_as_many_buckets_as_messages_allow_where_no_error_is_asked() -> None:
    asked: Wished = {"population": {"n": 5_000, "k": 20_000}, "targets": {"delta": 1e-5, "epsilon": 1.0}}
    rows = [hashed(choose(asked, most_messages=most)) for most in (1.05, 1.5, 4.0)]
    for row, most in zip(rows, (1.05, 1.5, 4.0), strict=True):
        assert row.met
        assert 1 + 0.75 * (most - 1) < row.messages <= most
        found = assess(parse(row.specification))
        assert found.utility is not None
        assert float(found.utility.predicted.max()) == pytest.approx(row.point.standard_error)
        assert all(target.met for target in found.targets)
    errors = [row.point.standard_error for row in rows]
    assert errors == sorted(errors, reverse=True)
