from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.explore import explore
from hushuffle.errors import InvalidInputError, SpecificationError, UnsupportedProtocolError
from hushuffle.estimation import predicted_standard_error
from hushuffle.model.explorer import Axis, Explorer
from hushuffle.questions.dp.composition import curve_of
from hushuffle.specification import parse
from oracles.dp_enumeration import worst_delta
from oracles.several_messages import person, uniform_messages, worst

SURVEY = """
population = { n = 60, k = 2 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-3 }
"""
EXAMPLES = Path(__file__).parents[2] / "examples"


@cache
def explored(text: str) -> Explorer:
    return explore(parse(text))


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave out what takes time."""
    monkeypatch.setattr("hushuffle.assessment.explore.adversaries", lambda *_, **__: ())
    explored.cache_clear()
    yield
    explored.cache_clear()


def axes(made: Explorer) -> dict[str, Axis]:
    return {axis.key: axis for axis in made.axes}


def test_the_deployments_own_figures_are_those_of_its_assessment() -> None:
    made = explored(SURVEY)
    findings = {(row.question, row.adversary): row.figure for row in assess(parse(SURVEY)).findings}
    own = {axis.key: axis.stops[axis.start] for axis in made.axes}
    for adversary in made.adversaries:
        point = adversary.points[0]
        assert (point.k, point.people, point.dummies, point.epsilon) == (2, 60, 0, 1.0)
        (figure,) = {
            found.bound
            for found in adversary.points
            if found.people == 60
            and found.delta in (1.0, own["delta"])
            and found.dummies == 0
            and found.epsilon == 1.0
            and found.k == 2
        }
        asked = next(row for (_, name), row in findings.items() if name == adversary.name)
        assert (figure.lower, figure.upper, figure.kind) == (asked.lower, asked.upper, asked.kind)


def test_figures_of_the_grid_hold_the_truth_by_enumeration() -> None:
    made = explored(SURVEY.replace("n = 60", "n = 8"))
    points = [point for point in made.adversaries[0].points if point.people + point.dummies <= 16 and point.k == 2]
    assert len(points) > 50
    for point in points:
        law = hs.RandomizedResponse(k=2, epsilon=point.epsilon).law().symmetric
        assert law is not None
        for end, sign in ((point.bound.lower, 1), (point.bound.upper, -1)):
            if end == 0 and sign == 1:
                continue
            found = worst_delta(
                point.people, 2, float(law.truth), math.exp(end * (1 - sign * 1e-9)), int(point.dummies)
            )
            assert sign * (found - point.delta) >= -1e-12


@pytest.mark.usefixtures("no_figures")
def test_the_error_at_any_size_follows_from_three_numbers() -> None:
    for text in (
        SURVEY,
        SURVEY.replace('kind = "uniform"', 'kind = "scrambler", dummies = { kind = "binomial", trials = 20, p = 0.5 }'),
        SURVEY.replace("randomized-response", "unary-encoding").replace(
            'kind = "uniform"', 'kind = "secure-aggregation", coins = 30'
        ),
    ):
        specification = parse(text)
        made = explore(specification)
        own = next(one for one in made.devices if one.k == 2 and one.epsilon == 1.0)
        for n in (60, 7_000):
            protocol = hs.Protocol(
                randomizer=specification.randomizer.build(2), shuffler=specification.shuffler.build(), n=n
            )
            error = float(predicted_standard_error(protocol, frequency=0.0))
            assert own.rare is not None
            ((first, added, beside),) = own.rare
            dummies = axes(made)["dummies"].stops[axes(made)["dummies"].start]
            assert math.sqrt(first / n + (added * dummies + beside) / n**2) == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize(
    ("changed", "key", "reason"),
    [
        (
            {"randomized-response": "matrix", "epsilon = 1.0": "matrix = [[0.8, 0.2], [0.3, 0.7]]"},
            "epsilon",
            "No epsilon sets the noise",
        ),
        (
            {"randomized-response": "matrix", "epsilon = 1.0": "matrix = [[0.8, 0.2], [0.3, 0.7]]"},
            "k",
            "only this number of values",
        ),
        ({"randomized-response": "unary-encoding", '"uniform"': '"secure-aggregation"'}, "dummies", "adds no dummies"),
        ({'"uniform"': '"none"'}, "dummies", "adds no dummies"),
        (
            {'kind = "uniform"': 'kind = "scrambler", dummies = { kind = "binomial", trials = 20, p = 0.5 }'},
            "dummies",
            "random",
        ),
        ({"population": "rounds = 3\nmemoised = true\npopulation"}, "dummies", "Memoized"),
        ({"k = 2": 'kind = "number", low = 0, high = 1, levels = 2'}, "k", "levels"),
    ],
)
@pytest.mark.usefixtures("no_figures")
def test_a_slider_that_cannot_move_says_why(changed: dict[str, str], key: str, reason: str) -> None:
    text = SURVEY
    for old, new in changed.items():
        text = text.replace(old, new, 1)
    made = explored(text)
    axis = axes(made)[key]
    assert len(axis.stops) == 1
    assert reason in axis.reason


@pytest.mark.usefixtures("no_figures")
def test_nothing_is_bracketed_where_no_order_is_proven() -> None:
    coins = SURVEY.replace("randomized-response", "unary-encoding").replace(
        'kind = "uniform"', 'kind = "secure-aggregation", coins = 30'
    )
    assert not axes(explored(coins))["epsilon"].ordered
    assert axes(explored(SURVEY))["epsilon"].ordered
    assert not axes(explored(SURVEY))["k"].ordered
    waves = 'kind = "number", low = 0, high = 1, levels = 4'
    made = explored(SURVEY.replace("k = 2", waves).replace("randomized-response", "square-wave"))
    assert not axes(made)["epsilon"].ordered
    assert not made.dummies_count


def test_every_level_of_noise_is_computed_where_no_order_is_proven() -> None:
    waves = 'kind = "number", low = 0, high = 1, levels = 4'
    made = explored(
        SURVEY.replace("k = 2", waves).replace("randomized-response", "square-wave").replace("uniform", "none")
    )
    assert {point.epsilon for point in made.adversaries[0].points} == set(axes(made)["epsilon"].stops)


def test_what_is_known_for_one_report_alone_says_so() -> None:
    made = explored(SURVEY.replace("k = 2", "k = 2, reports_per_person = 2").replace("uniform", "none"))
    assert made.reports == 2
    central, *others = made.adversaries
    assert central.points
    assert not central.scaled
    assert not made.dummies_count
    guessed, linker = others
    assert guessed.derived
    assert "up to 2 reports of each person" in guessed.sentence
    assert "several" in linker.reason
    assert not linker.points


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SURVEY.replace("epsilon = 1.0", 'epsilon = "inf"'), "must add noise to explore"),
        (SURVEY.replace("n = 60", f"n = {10**13}"), "must be at most 1,000,000,000,000 for explore"),
        ("rounds = 3\nmemoised = true\nchanges = 1\n" + SURVEY, "changes: must be 0"),
    ],
)
def test_what_has_no_sliders_is_refused(text: str, words: str) -> None:
    with pytest.raises(SpecificationError, match=words):
        explored(text)


SENDING = """
population = { n = 300, k = 3 }
randomizer = { kind = "randomized-response", epsilon = "inf" }
shuffler = { kind = "blanket-messages", p = 0.4, trials = 2, honest = 0.9 }
targets = { delta = 1e-4 }
"""
FAKES = SENDING.replace('"blanket-messages", p = 0.4, trials = 2', '"fakes-per-value", p = 0.3')


def test_messages_of_people_have_a_slider_of_coins_and_then_of_more_coins() -> None:
    made = explored(SENDING)
    assert made.per_person
    assert not made.dummies_count
    axis = axes(made)["dummies"]
    assert axis.ordered
    assert axis.stops[axis.start] == 0.8
    assert axis.stops == (0.1, 0.2, 0.4, 0.56, 0.8, 1.12, 1.6, 4.0, 7.0)
    assert axes(made)["epsilon"].stops == (math.inf,)
    assert "Reports equal the answers" in axes(made)["epsilon"].reason
    # Nine tenths of the people are honest, at every size.
    assert made.trusted == tuple(math.floor(9 * round(stop) / 10) for stop in axes(made)["n"].stops)
    tables = made.toml["shuffler"]["3"]
    assert 'kind = "blanket-messages"\np = 0.8\ntrials = 2\nhonest = 0.9' in tables[axis.stops.index(1.6)]
    assert "p = 1.0\ntrials = 7\nhonest = 0.9" in tables[-1]
    for k, place, messages in ((2, 0, 0.1), (6, 8, 7.0)):
        without = "".join(line for line in SENDING.splitlines(keepends=True) if not line.startswith("shuffler"))
        specification = parse(without.replace("k = 3", f"k = {k}") + made.toml["shuffler"][str(k)][place])
        assert specification.shuffler.build().own_messages == messages


def test_no_order_is_taken_for_proven_between_numbers_of_fakes() -> None:
    made = explored(FAKES)
    axis = axes(made)["dummies"]
    assert not axis.ordered
    assert max(axis.stops) <= 1.5
    central, *guessers, linker = made.adversaries
    assert {point.dummies for point in central.points} == set(axis.stops)
    assert all("uniformly random dummies" in one.reason for one in guessers)
    assert linker.points


def test_figures_where_people_send_messages_are_those_of_the_honest() -> None:
    made = explored(SENDING)
    specification = parse(SENDING)
    rng = np.random.default_rng(5)
    points = [point for point in made.adversaries[0].points if math.isfinite(point.bound.upper)]
    for place in rng.integers(len(points), size=12):
        point = points[place]
        trials = max(2, math.ceil(point.dummies))
        shuffler = hs.BlanketMessages(p=point.dummies / trials, trials=trials)
        truth = hs.RandomizedResponse(k=point.k, epsilon=math.inf)
        honest = hs.Protocol(randomizer=truth, shuffler=shuffler, n=point.people)
        found = hs.dp.epsilon(honest, delta=point.delta)
        assert (found.lower, found.upper) == (point.bound.lower, point.bound.upper)
    own = next(one for one in made.devices if one.k == 3)
    assert own.worst is not None
    for sent, (alone, each, beside) in zip(axes(made)["dummies"].stops, own.worst, strict=True):
        protocol = hs.Protocol(
            randomizer=specification.randomizer.build(3),
            shuffler=specification.shuffler.build().with_own_messages(sent),
            n=5_000,
        )
        error = float(predicted_standard_error(protocol, frequency=np.array([0.0, 1.0])).max())
        assert math.sqrt(alone / 5_000 + (each * sent + beside) / 5_000**2) == pytest.approx(error, rel=1e-9)


def test_more_messages_and_more_people_hide_more_by_enumeration() -> None:
    """Theorem 6 of docs/theory/more-and-less.md: along likelier heads, then more coins; and with one more person."""
    p = [Fraction(1, 4), Fraction(2, 3), Fraction(1)]
    chain = [(1, p[0]), (1, p[1]), (1, p[2]), (2, p[2])]
    for k, theta, growth in (
        (2, Fraction(1), Fraction(3, 2)),
        (3, Fraction(1), 2),
        (2, Fraction(2, 3), Fraction(6, 5)),
    ):
        for n in (1, 2):
            found = [delta(n, k, theta, growth, trials, heads) for trials, heads in chain]
            assert found == sorted(found, reverse=True)
            assert all(delta(n + 1, k, theta, growth, *place) <= more for place, more in zip(chain, found, strict=True))


def delta(n: int, k: int, theta: Fraction, growth: Fraction | int, trials: int, p: Fraction) -> Fraction:
    extra = uniform_messages(k, p, trials)
    messages = lambda value: person(value, k, extra=extra, theta=theta)  # noqa: E731
    return worst(n, k, Fraction(growth), messages=messages)[1]


@pytest.mark.slow
def test_noisy_reports_with_messages_have_both_sliders() -> None:
    text = SENDING.replace('"inf"', "2.0").replace("p = 0.4, trials = 2", "p = 0.5").replace("n = 300", "n = 60")
    made = explored(text)
    assert len(axes(made)["epsilon"].stops) > 5
    assert axes(made)["epsilon"].ordered
    central = made.adversaries[0]
    assert {point.dummies for point in central.points} == {0.0625, 0.5, 4.0}
    assert len({point.epsilon for point in central.points}) == 3
    for point in central.points[:8]:
        noisy = hs.RandomizedResponse(k=3, epsilon=point.epsilon)
        shuffler = hs.BlanketMessages(p=min(point.dummies, 1), trials=max(1, round(point.dummies)))
        found = hs.dp.epsilon(hs.Protocol(randomizer=noisy, shuffler=shuffler, n=point.people), delta=point.delta)
        assert point.bound.lower <= found.upper
        assert found.lower <= point.bound.upper


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("order", "must be a shuffler without an order for explore"),
        ("reach", "must be people with one value each for explore"),
        ("collect-columns", "must not be several to explore"),
    ],
)
def test_examples_without_sliders_are_refused(name: str, words: str) -> None:
    with pytest.raises(SpecificationError, match=words):
        explore(EXAMPLES / f"{name}.toml")
    with pytest.raises(InvalidInputError):
        explore(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3, 0.2, 0.4])
@pytest.mark.parametrize("guess", [1e-9, 0.1, 1.0])
def test_ends_found_soon_are_ends_and_near(delta: float, guess: float) -> None:
    for n, epsilon in ((4, 6.0), (50, 1.0), (2000, 2.0)):
        survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=4, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)
        exact = hs.dp.epsilon(survey, delta=delta)
        found = curve_of(survey).within(delta, 0.02, guess)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper
        assert found.lower >= exact.lower * 0.79
        assert found.upper <= exact.upper * 1.21
        bare = replace(survey, randomizer=hs.RandomizedResponse(k=4, epsilon=math.inf))
        assert curve_of(bare).within(delta, 0.02, guess).upper == hs.dp.epsilon(bare, delta=delta).upper


@pytest.mark.parametrize(
    "survey",
    [
        hs.Protocol(randomizer=hs.SubsetSelection(k=6, epsilon=3.0), shuffler=hs.UniformShuffle(), n=40),
        hs.Protocol(randomizer=hs.HadamardResponse(k=6, epsilon=2.0), shuffler=hs.UniformShuffle(), n=3_000),
        hs.Protocol(randomizer=hs.SquareWave(bins=5, epsilon=1.0), shuffler=hs.UniformShuffle(), n=60),
        hs.Protocol(
            randomizer=hs.RandomizedResponse(k=5, epsilon=2.0),
            shuffler=hs.Scrambler(dummies=hs.DummyLaw.binomial(trials=400, p=0.5)),
            n=2_000,
        ),
    ],
)
def test_a_bracket_for_charts_is_at_most_five_per_cent_wider(survey: hs.Protocol) -> None:
    for delta in (1e-8, 1e-4):
        exact, found = hs.dp.epsilon(survey, delta=delta), curve_of(survey).within(delta, 0.05)
        assert exact.lower / 1.05 <= found.lower <= exact.upper
        assert exact.lower <= found.upper <= exact.upper * 1.05


def test_nearly_blind_guesses_are_computed_for_the_fewest_people_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def left_out(*_: object) -> NoReturn:
        raise UnsupportedProtocolError

    monkeypatch.setattr("hushuffle.assessment.explore_grid._central", left_out)  # it takes most of the time
    made = explored(SURVEY.replace("n = 60", f"n = {10**9}").replace("k = 2", "k = 3"))
    for adversary in made.adversaries[1:3]:
        alike = [point for point in adversary.points if (point.k, point.epsilon, point.dummies) == (3, 0.25, 0)]
        assert [point.people for point in alike] == [10**7]
        assert alike[0].bound.upper <= 1.001 / 3


@pytest.mark.parametrize("chosen", [0.25, 2.0, 6.0, 8.0, 39.0])
def test_the_slider_of_noise_reaches_beyond_the_files_own_value_on_both_sides(chosen: float) -> None:
    stops = axes(explored(SURVEY.replace("epsilon = 1.0", f"epsilon = {chosen}").replace("uniform", "none")))["epsilon"]
    assert stops.stops[0] < chosen <= stops.stops[-1]
    assert chosen < stops.stops[-1] or chosen == 39.0
    assert stops.stops[stops.start] == chosen
