"""Attackers who play against a deployment win as often as they can, and never more often than certified."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushuffle import (
    LocalHashing,
    MallowsShuffle,
    MatrixRandomizer,
    NoShuffle,
    Protocol,
    RandomizedResponse,
    Scrambler,
    UniformShuffle,
    dp,
    order,
    qif,
)
from hushuffle.attacks.audit_specification import audit_specification
from hushuffle.attacks.audit_study import audit_deployment
from hushuffle.attacks.games import Game, Named, Terms, fair, filter_games, games, round_games, tell_apart
from hushuffle.attacks.order_games import order_games
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.sketches import BloomFilter
from hushuffle.model import Bound
from hushuffle.plans import Cluster, Plan, messages
from hushuffle.plans.plan import Data
from hushuffle.randomness import Randomness, reproducible
from hushuffle.specification import parse
from hushuffle_network.queries.audit import graph_games
from hushuffle_network.queries.exchange import Exchange, exchange
from oracles import dp_enumeration, mallows_enumeration, traffic_enumeration

MATRIX = MatrixRandomizer([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
COIN = RandomizedResponse(k=2, epsilon=1.5)
TRUTH = math.exp(1.5) / (1 + math.exp(1.5))
REFERENCE = (2, 0, 4, 1, 3)
NAMES = {
    "Guess a value, knowing no value",
    "Guess a value, knowing all other values",
    "Name the sender of a report",
    "Guess a value from two rounds",
    "Pick out a household",
}


def played(named: list[Named], *, releases: int = 2000, reports: int = 50_000) -> list[Game]:
    terms = Terms(releases=releases, reports=reports, confidence=0.9999, rng=reproducible(1))
    return [play(terms) for _, play in named]


def single(named: list[Named], **sizes: int) -> Game:
    (game,) = played(named, **sizes)
    return game


def survey(mechanism: Mechanism = COIN, n: int = 5) -> Protocol:
    return Protocol(randomizer=mechanism, shuffler=UniformShuffle(), n=n)


def mallows(theta: float, kind: order.Displacement | str = "kendall", epsilon: float = 1.5) -> Protocol:
    shuffler = MallowsShuffle(reference=REFERENCE, theta=theta, distance=kind)  # type: ignore[arg-type]
    return Protocol(randomizer=RandomizedResponse(k=2, epsilon=epsilon), shuffler=shuffler, n=5)


def apart(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> float:
    """Return how often the better guess between two laws is right."""
    return 0.5 + float(sum(abs(first.get(key, 0) - second.get(key, 0)) for key in {*first, *second})) / 4


def agrees(game: Game, exact: float) -> bool:
    return game.success.lower <= exact <= min(game.success.upper, game.certified.upper)


@pytest.mark.parametrize(
    "mechanism",
    [RandomizedResponse(k=3, epsilon=2.0), LocalHashing(k=6, g=4, epsilon=2.0), MATRIX],
    ids=["response", "hashing", "matrix"],
)
def test_no_attacker_beats_what_is_certified(mechanism: Mechanism) -> None:
    protocol = survey(mechanism, 7)
    for game in played(games(protocol), releases=1500):
        assert not game.broken, game
        assert game.success.upper > 0.7 * game.certified.upper, game
    others = [*round_games(protocol, rounds=2), *round_games(protocol, rounds=2, memoised=True), *order_games(protocol)]
    for game in played(others, releases=500):
        assert not game.broken, game


def test_the_best_attack_on_randomized_response_reaches_the_exact_figure() -> None:
    protocol = survey(RandomizedResponse(k=3, epsilon=2.0))
    nobody, everybody, sender = played(games(protocol), releases=4000, reports=200_000)
    assert nobody.certified == qif.vulnerability(protocol)
    for game in (nobody, everybody, sender):
        assert game.success.lower <= game.certified.upper
        assert game.success.upper >= game.certified.lower


@pytest.mark.parametrize("n", [1, 3])
def test_two_rounds_are_told_apart_as_often_as_enumerated(n: int) -> None:
    protocol = survey(n=n)
    witness = dp.delta(protocol, epsilon=0.0).witness
    assert witness is not None
    rows = dp_enumeration.channel(2, TRUTH)
    known = dp_enumeration.counts_law((*witness.others, 0)[:2], rows)
    laws = [dp_enumeration.add_report(known, rows[value]) for value in witness.target]
    twice = [{(a, b): law[a] * law[b] for a in law for b in law} for law in laws]
    assert agrees(single(round_games(protocol, rounds=2), releases=4000), apart(*twice))


def test_a_change_of_kept_reports_shows_as_often_as_enumerated() -> None:
    shows = sum(
        first * second
        for (a, first), (b, second) in itertools.product(enumerate((TRUTH, 1 - TRUTH)), enumerate((1 - TRUTH, TRUTH)))
        if a != b
    )
    game = single(round_games(survey(), rounds=2, memoised=True), releases=4000)
    assert agrees(game, (1 + shows) / 2)
    assert game.certified.upper == pytest.approx((1 + shows) / 2)


@pytest.mark.parametrize("kind", ["kendall", "hamming"])
def test_one_report_is_found_as_often_as_enumerated(kind: str) -> None:
    protocol, groups = mallows(0.8, kind), order.Groups.of([[0, 1, 2, 4]], n=5)
    joint: dict[tuple[object, ...], float] = {}
    first = min([0, 1, 2, 4], key=REFERENCE.index)
    for tau, chance in mallows_enumeration.law(5, 0.8, kind).items():
        place = mallows_enumeration.released(REFERENCE, tau, range(5)).index(first)
        for seen in itertools.product((0, 1), repeat=5):
            right = sum(report == (where != place) for where, report in enumerate(seen))
            joint[seen, place] = joint.get((seen, place), 0) + chance * TRUTH**right * (1 - TRUTH) ** (5 - right)
    exact = sum(max(joint.get((seen, place), 0) for place in range(5)) for seen in itertools.product((0, 1), repeat=5))
    game = single(order_games(protocol, groups, household=1)[:1], releases=2000)
    assert agrees(game, exact)


@pytest.mark.parametrize("kind", ["kendall", "hamming"])
def test_an_exchange_is_seen_as_often_as_enumerated(kind: str) -> None:
    members = sorted([0, 1, 4], key=REFERENCE.index)
    kept = list(range(5))
    changed = list(kept)
    for one, other in zip(members, members[::-1], strict=True):
        changed[one] = other
    taus = mallows_enumeration.law(5, 0.5, kind)
    laws = [
        {mallows_enumeration.released(REFERENCE, tau, sent): chance for tau, chance in taus.items()}
        for sent in (kept, changed)
    ]
    game = single(order_games(mallows(0.5, kind), order.Groups.of([members, range(5)]))[1:], releases=3000)
    assert agrees(game, apart(*laws))


def test_a_household_of_several_is_looked_for() -> None:
    game = single(order_games(survey(n=5), household=2))
    assert game.what == "reports of 2 of 5 people"
    assert game.success.lower > 2 / 20  # of ten pairs of places
    assert not game.broken


@pytest.mark.parametrize(("bits", "p"), [(6, 0.2), (20, 0.05)])
def test_fillings_are_told_apart_as_often_as_enumerated(bits: int, p: float) -> None:
    rows: list[list[Any]] = [[1 - p, p], [p, 1 - p]]
    laws = [dp_enumeration.counts_law((bits - ones, ones), rows) for ones in (0, 1)]
    game = single(filter_games(audiences=np.array([0, 0]), bits=bits, p=p), releases=4000)
    assert agrees(game, apart(*laws))


@pytest.mark.parametrize("hashes", [1, 3])
def test_several_filters_stay_below_what_is_certified(hashes: int) -> None:
    game = single(filter_games(audiences=np.array([0, 30, 20, 10]), bits=200, p=0.1, hashes=hashes))
    assert not game.broken
    tight = 0.8 if hashes == 1 else 0.4  # of several columns the bound is that of one, several times
    assert game.success.upper > 0.5 + tight * (game.certified.upper - 0.5)


def plan_of(*, sources: int, targets: int, clusters: int = 1, **traffic: float) -> Plan:
    rows = [
        messages(f"by {each}", sources=sources, targets=targets, reads=("people",), **traffic)  # type: ignore[arg-type]
        for each in range(clusters)
    ]
    return Plan(name="a plan", data=(Data(name="people", items=sources),), clusters=tuple(rows))


@pytest.mark.parametrize(("targets", "dummies"), [(2, 0), (2, 3), (3, 0)])
def test_graphs_are_told_apart_as_often_as_enumerated(targets: int, dummies: int) -> None:
    plan = plan_of(sources=3, targets=targets, sigma=0.5, dummies=dummies, batch=3)
    witness = dp.delta(plan.clusters[0].protocol, epsilon=0.0).witness
    assert witness is not None
    rest = [value for value, count in enumerate(witness.others) for _ in range(count)]
    laws = [
        traffic_enumeration.scrambled((*rest, value), targets, Fraction(1, 2), dummies, None, "uniform")
        for value in witness.target
    ]
    assert agrees(single(graph_games(plan), releases=4000), apart(*laws))


@pytest.mark.parametrize(
    "traffic",
    [{}, {"flood": 1}, {"dummies": 5, "batch": 10, "min_batch": 4}, {"dummies": 2, "batch": 4, "capped": True}],
    ids=["seen", "flooded", "scrambled", "capped"],
)
@pytest.mark.parametrize("clusters", [1, 3])
def test_no_watcher_beats_what_is_certified_of_a_plan(traffic: dict[str, float], clusters: int) -> None:
    plan = plan_of(sources=20, targets=5, clusters=clusters, sigma=0.4, **traffic)
    game = single(graph_games(plan), releases=1000)
    assert not game.broken
    assert game.success.upper > 0.5 + 0.6 * (game.certified.upper - 0.5)


class Told(UniformShuffle):
    """Leaves every report in its place."""

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        del rng
        return messages


class Eager(RandomizedResponse):
    """Tells the truth more often than its law says."""

    def randomize(self, values: npt.ArrayLike, *, rng: Randomness) -> npt.NDArray[np.int64]:
        return RandomizedResponse(k=self.k, epsilon=self.epsilon + 2).randomize(values, rng=rng)


class Stiff(MallowsShuffle):
    """Moves people less far than its theta says."""

    def release(self, messages: npt.NDArray[np.int64], *, rng: Randomness) -> npt.NDArray[np.int64]:
        return MallowsShuffle(reference=self.reference, theta=4 * self.theta).release(messages, rng=rng)


def test_a_shuffle_that_does_nothing_is_caught() -> None:
    quiet = RandomizedResponse(k=2, epsilon=0.1)
    assert single(order_games(Protocol(randomizer=quiet, shuffler=Told(), n=50), household=1), releases=500).broken


def test_an_order_that_is_kept_too_well_is_caught() -> None:
    shuffler = Stiff(reference=np.arange(8), theta=0.3)
    protocol = Protocol(randomizer=COIN, shuffler=shuffler, n=8)
    game = single(order_games(protocol, order.Groups.of([[3, 4], range(8)]))[1:], releases=1000)
    assert game.broken


@pytest.mark.parametrize("memoised", [False, True])
def test_a_device_that_lies_too_seldom_is_caught(memoised: bool) -> None:
    assert single(round_games(survey(Eager(k=2, epsilon=0.5)), rounds=2, memoised=memoised)).broken


def test_filters_that_are_not_flipped_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BloomFilter, "flip", lambda self, **_: replace(self, threshold=1))
    assert single(filter_games(audiences=np.array([0, 20]), bits=100, p=0.2)).broken


def test_dummies_that_are_the_same_every_time_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(sources=2, targets=3, sigma=0.3, dummies=40, batch=2)
    assert not single(graph_games(plan)).broken

    def same(cluster: Cluster, targets: Any, *, rng: Randomness) -> Exchange:
        return exchange(cluster, targets, coins=rng, rng=reproducible(7))

    monkeypatch.setattr("hushuffle_network.queries.audit.exchange", same)
    assert single(graph_games(plan)).broken


def test_a_certificate_that_is_too_small_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = Protocol(randomizer=RandomizedResponse(k=2, epsilon=3.0), shuffler=NoShuffle(), n=1)
    low = Bound(lower=0.0, upper=0.6, kind="upper", unit="probability")
    monkeypatch.setattr(qif, "vulnerability", lambda *_, **__: low)
    made = audit_deployment(protocol, delta=1e-3, trials=2000, rng=reproducible(1))
    assert any("The claim about a person's value is refuted" in answer for answer in made.answers)
    assert "refuted" in {row[2] for row in made.tables[1].rows}


def test_the_threshold_is_chosen_by_other_runs_than_are_counted() -> None:
    coins = reproducible(3)
    found = tell_apart(lambda _: float(coins.integers(2**30, 1)[0]), Terms(releases=400, rng=reproducible(4)))
    assert found.lower < 0.5 < found.upper


def test_fair_is_one_half_and_half_of_the_distance() -> None:
    none = Bound.exact(0.0, unit="probability")
    assert fair(0.0, none).upper == pytest.approx(0.5)
    assert fair(7.0, none).upper == 1.0


def test_games_that_cannot_be_played_say_why() -> None:
    plan = plan_of(sources=3, targets=2, sigma=0.5)
    made = audit_deployment(
        mallows(0.5),
        delta=1e-3,
        trials=300,
        further=[
            *round_games(mallows(0.5), rounds=1),
            *order_games(mallows(0.5), order.Groups.of([[0]], n=5)),
            *order_games(Protocol(randomizer=COIN, shuffler=Scrambler(dummies=3), n=9)),
            *order_games(survey(n=4), household=2),
            *round_games(Protocol(randomizer=COIN, shuffler=Scrambler(dummies=3), n=9), rounds=2, memoised=True),
            *filter_games(audiences=np.array([0, 10**8]), bits=100, p=0.1),
            *graph_games(replace(plan, clusters=tuple(replace(one, moves=0) for one in plan.clusters))),
        ],
        rng=reproducible(1),
    )
    reasons = [row.reason for row in made.unanswered if row.question == "game"]
    for said in (
        "people report once",
        "no group has 2",
        "only for shuffled reports without dummies",
        "no group has 5",
        "the shuffler adds reports up, or adds dummies or noise",
    ):
        assert any(said in reason for reason in reasons), said
    assert any("over 20,000,000 bits" in reason for reason in reasons)
    assert any("no record decides" in reason for reason in reasons)


@pytest.mark.parametrize("size", [{"releases": -1}, {"reports": 1.5}, {"confidence": 1.0}])
def test_terms_are_checked(size: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        Terms(**size)  # type: ignore[arg-type]


SURVEY = """
population = { n = 40, k = 3 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-3 }
rounds = 3
"""
REACH = """
population = { people = 200, audiences = { tv = 30, web = 20 }, bits = 200 }
randomizer = { kind = "bit-flipping" }
shuffler = { kind = "uniform" }
targets = { delta = 1e-3, epsilon = 0.5 }
"""
PLAN = """
traffic = { sigma = 0.2, dummies = 10, batch = 20 }
targets = { delta = 1e-5 }
[query]
kind = "aggregate"
generated = { people = 200 }
columns = { age = 20, bmi = 20 }
grouping_sets = [["age"], ["bmi"]]
partitions = 20
"""


def audited(text: str, folder: Path, *more: str) -> tuple[int, list[list[Any]]]:
    """Run the program; return its exit code and the table of games."""
    (folder / "spec.toml").write_text(text, encoding="utf-8")
    code = main(
        ["audit", str(folder / "spec.toml"), "--out", str(folder / "out"), "--trials", "400", "--seed", "1", *more]
    )
    if not (folder / "out").exists():
        return code, []
    tables = json.loads((folder / "out" / "study.json").read_bytes())["tables"]
    return code, next(table["rows"] for table in tables if table["key"] == "games")


def test_the_program_plays_what_a_survey_allows(tmp_path: Path) -> None:
    code, rows = audited(SURVEY, tmp_path)
    assert code == Exit.DONE
    assert [row[0] for row in rows] == [
        "a person's value",
        "a person's value",
        "who sent a report",
        "which of two values a person reports in two rounds",
        "reports of 2 of 40 people",
    ]
    assert {row[2] for row in rows} == {"not refuted"}


def test_the_program_plays_what_a_reach_study_allows(tmp_path: Path) -> None:
    code, rows = audited(REACH, tmp_path)
    assert code == Exit.DONE
    assert [row[0] for row in rows] == ["whether a person is in every audience or in none"]


def test_the_program_plays_against_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = audited(PLAN, tmp_path)
    assert code == Exit.DONE
    assert [row[0] for row in rows] == ["which of two records a person has"]
    assert audited(PLAN, tmp_path / "..", "--delta", "0.1")[0] == Exit.USAGE
    assert "--delta is not for plans" in capsys.readouterr().err


def test_a_file_that_is_no_toml_is_refused_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audited("[query", tmp_path)[0] == Exit.USAGE
    assert "must be valid TOML" in capsys.readouterr().err


def test_an_order_is_played_against(tmp_path: Path) -> None:
    rows = "".join(f"{20 + row % 7},{'ab'[row % 2]}\n" for row in range(60))
    (tmp_path / "people.csv").write_text("age,answer\n" + rows, encoding="utf-8")
    spec = parse(
        """
        population = { data = "people.csv", column = "answer", categories = ["a", "b"] }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "mallows", alpha = 2.0, groups = { columns = ["age"], radius = 1 } }
        targets = { delta = 1e-3 }
        """
    )
    made = audit_specification(spec, base_folder=tmp_path, trials=300, rng=reproducible(1))
    (table,) = [table for table in made.tables if table.key == "games"]
    assert [row[0] for row in table.rows][-2:] == [
        "which report a person sent",
        "whether the reports within a group were exchanged",
    ]
