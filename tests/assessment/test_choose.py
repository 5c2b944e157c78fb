from __future__ import annotations

import itertools
import math
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment.candidates import Candidate, Miss
from hushuffle.assessment.choice_report import choice_report, specifications
from hushuffle.assessment.choose import Choices, choose
from hushuffle.assessment.trials import worst_error
from hushuffle.errors import DataError, InvalidInputError, SpecificationError
from hushuffle.specification import parse
from hushuffle.specification.kinds import RANDOMIZERS

Wished = dict[str, Any]


def wishes(n: int = 900, k: int = 3, **targets: float) -> Wished:
    return {
        "population": {"n": n, "k": k},
        "adversaries": [{"kind": "uninformed"}],
        "targets": {"delta": 1e-6, **targets},
    }


def kinds(found: Choices) -> set[tuple[str, str]]:
    """Return mechanism with settings, and shuffler, of every row."""
    return {(name, row.shuffler.partition(" with ")[0]) for row in found.rows for name in (row.mechanism, *row.also)}


EASY = wishes(n=60, k=2, standard_error=0.1, epsilon=1.0, local_epsilon=2.6, guessing=0.85)
PRIVATE = wishes(n=60, k=2, epsilon=0.5, local_epsilon=0.7)
_FOUND: dict[str, Choices] = {}


def found_once(asked: Wished) -> Choices:
    """Return what is chosen; the same question is answered once for all tests."""
    key = repr(asked)
    if key not in _FOUND:
        _FOUND[key] = choose(asked)
    return _FOUND[key]


def verified(row: Candidate, monkeypatch: pytest.MonkeyPatch) -> hs.Report:
    """Return the assessment of what a row proposes, which says the same of every target."""
    # The verdict does not rest on charts and scenarios, which take most of the time.
    for name in ("privacy_charts", "guessing_charts"):
        monkeypatch.setattr(f"hushuffle.assessment.charts.{name}", lambda *_, **__: ())
    monkeypatch.setattr("hushuffle.assessment.chapters.scenarios", lambda *_, **__: ())
    made = hs.assess(parse(row.specification))
    assert made.met, row.sentence
    for ours, theirs in zip(row.targets, made.targets, strict=True):
        assert (ours.key, ours.asked, ours.word) == (theirs.key, theirs.asked, theirs.word)
        assert ours.got is not None
        assert theirs.got is not None
        assert ours.got.upper == pytest.approx(theirs.got.upper, rel=1e-9)
    return made


@pytest.mark.parametrize("asked", [EASY, PRIVATE])
def test_each_row_is_verified_by_assess(asked: Wished, monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_once(asked)
    assert found.rows
    for row in found.rows[:4]:
        verified(row, monkeypatch)


def feasible(asked: Wished, dummies: tuple[int, ...] = ()) -> set[tuple[str, str]]:
    """Return what the targets allow, of every mechanism with every local epsilon of a coarse grid, by assessment."""
    names = {"uniform": "a uniform shuffle", "secure-aggregation": "secure aggregation", "none": "no shuffler"}
    shufflers: list[tuple[str, Wished]] = [(name, {"kind": kind}) for kind, name in names.items()]
    shufflers += [("a scrambler", {"kind": "scrambler", "dummies": count}) for count in dummies]
    mechanisms: list[tuple[str, Wished]] = [
        ("randomized response", {"kind": "randomized-response"}),
        ("hadamard response", {"kind": "hadamard-response"}),
        ("subset selection", {"kind": "subset-selection"}),
        ("local hashing", {"kind": "local-hashing"}),
        ("unary encoding (symmetric)", {"kind": "unary-encoding", "encoding": "symmetric"}),
        ("unary encoding (optimized)", {"kind": "unary-encoding", "encoding": "optimized"}),
    ]
    found = set()
    limits, n, k = asked["targets"], asked["population"]["n"], asked["population"]["k"]
    for (name, mechanism), (behind, shuffler), local in itertools.product(mechanisms, shufflers, (1.0, 1.9)):
        settings = {key: value for key, value in mechanism.items() if key != "kind"}
        made = RANDOMIZERS[mechanism["kind"]].mechanism.from_settings(k, {**settings, "epsilon": local})
        whole = parse_of({**asked, "randomizer": {**mechanism, "epsilon": local}, "shuffler": shuffler})
        if whole is None:
            continue
        try:
            protocol = hs.Protocol(randomizer=made, shuffler=whole.shuffler.build(), n=n)
        except InvalidInputError:
            continue
        within = worst_error(protocol) <= limits["standard_error"] and made.local_epsilon <= limits["local_epsilon"]
        if within and hs.dp.epsilon(protocol, delta=limits["delta"]).upper <= limits["epsilon"]:
            found.add((name, behind))
    return found


def parse_of(tables: Wished) -> Any:
    try:
        return parse(tomli_w.dumps(tables))
    except SpecificationError:
        return None


@pytest.mark.parametrize(
    "asked",
    [
        wishes(n=100, k=4, standard_error=0.1, epsilon=1.5, local_epsilon=2.5),
        wishes(n=100, k=2, standard_error=0.12, epsilon=0.8, local_epsilon=2.0),
    ],
)
def test_nothing_that_meets_the_targets_on_a_coarse_grid_is_missed(asked: Wished) -> None:
    expected = feasible(asked)
    assert expected
    assert expected <= kinds(choose(asked))


def test_scramblers_are_found_where_a_uniform_shuffle_falls_short() -> None:
    asked = wishes(n=60, k=2, standard_error=0.5, epsilon=0.3, local_epsilon=3.0)
    asked["targets"]["standard_error"] = 0.1
    without = choose(asked)
    assert ("randomized response", "a uniform shuffle") not in kinds(without)
    found = choose(asked, most_dummies=300)
    assert feasible(asked, (64, 256)) <= kinds(found)
    scrambled = [row for row in found.rows if row.shuffler.startswith("a scrambler")]
    for row in scrambled:
        table = tomllib.loads(row.specification)["shuffler"]
        assert table["dummies"] in (1, 4, 16, 64, 256)
        assert row.dummies == table["dummies"]
        assert row.met


@pytest.mark.parametrize("key", ["standard_error", "epsilon", "local_epsilon", "guessing"])
@pytest.mark.parametrize("factor", [1.07])
def test_looser_targets_never_remove_a_row(key: str, factor: float) -> None:
    asked = EASY
    looser = {**asked, "targets": {**asked["targets"], key: asked["targets"][key] * factor}}
    assert kinds(found_once(asked)) <= kinds(found_once(looser))


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 0)) for seed in range(40)])
def test_looser_targets_never_remove_a_row_of_random_wishes(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - not for privacy
    targets = {
        "standard_error": rng.uniform(0.03, 0.2),
        "epsilon": math.exp(rng.uniform(-2, 0.5)),
        "local_epsilon": rng.uniform(0.5, 5),
        "guessing": rng.uniform(0.6, 0.95),
    }
    asked = rng.sample(sorted(targets), rng.choice((2, 3)))
    if "standard_error" not in asked:
        asked[0] = "standard_error"
    n, k = rng.choice((40, 150, 600)), rng.choice((2, 3))
    strict = choose(wishes(n=n, k=k, **{key: targets[key] for key in asked}))
    loosened = {key: targets[key] * rng.choice((1.0, 1.01, 1.3, 2.0)) for key in asked}
    assert kinds(strict) <= kinds(
        choose(wishes(n=n, k=k, **{key: min(x, 0.99 if key == "guessing" else x) for key, x in loosened.items()}))
    )


def test_the_same_deployment_is_listed_once() -> None:
    found = choose(wishes(n=900, k=40, standard_error=0.025, local_epsilon=2.9))
    assert len({repr(row.protocol) for row in found.rows}) == len(found.rows)


def test_no_advice_is_an_error_that_tells_nothing() -> None:
    found = choose(wishes(n=20, k=3, standard_error=0.02, epsilon=0.01, local_epsilon=0.1))
    assert not found.rows
    errors = [tomllib.loads(advice.wishes)["targets"].get("standard_error", 0) for advice in found.advice]
    assert all(error <= 0.25 for error in errors)


def test_the_local_epsilon_is_the_smallest_that_is_accurate() -> None:
    (row,) = [row for row in found_once(EASY).rows if row.sentence.startswith("randomized response") and row.shuffled][
        :1
    ]
    less = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=2, epsilon=row.point.local_epsilon * 0.999),
        shuffler=hs.UniformShuffle(),
        n=60,
    )
    assert worst_error(less) > 0.1


def test_those_that_nothing_beats_come_first() -> None:
    rows = found_once(EASY).rows
    assert [row.best for row in rows] == sorted((row.best for row in rows), reverse=True)
    for row in rows:
        beaten = any(
            all(a <= b for a, b in zip(other.costs, row.costs, strict=True)) and other.costs != row.costs
            for other in rows
        )
        assert row.best != beaten
    assert rows[0].best


def largest_factor(asked: Wished, changed: str) -> float:
    tables = tomllib.loads(changed)
    factors = [tables["targets"][key] / limit for key, limit in asked["targets"].items()]
    return float(max(*factors, tables["population"]["n"] / asked["population"]["n"]))


@pytest.mark.parametrize(
    "asked",
    [
        wishes(n=100, k=2, standard_error=0.05, epsilon=0.2, local_epsilon=2.0),
        wishes(n=100, k=2, standard_error=0.06, local_epsilon=0.5, guessing=0.55),
    ],
)
def test_each_advice_by_itself_is_enough(asked: Wished) -> None:
    found = choose(asked)
    assert not found.rows
    for advice in found.advice:
        changed = tomllib.loads(advice.wishes)
        assert changed != asked
        assert choose(changed).rows, advice.sentence
    first = "epsilon" if "epsilon" in asked["targets"] else "local_epsilon"
    changed_keys = {advice.sentence.partition(" = ")[0] for advice in found.advice}
    assert {f"With targets.{first}", "With targets.standard_error"} < changed_keys
    assert any(" people, " in advice.sentence for advice in found.advice)
    assert list(found.advice) == sorted(found.advice, key=lambda advice: largest_factor(asked, advice.wishes))


def test_what_is_missed_says_why_with_a_number_and_without_a_central_figure() -> None:
    found = choose(wishes(n=900, k=3, standard_error=0.02, local_epsilon=2.0))
    misses = {miss.search.name: miss for miss in found.missed}
    refused = misses["hadamard response, a uniform shuffle"]
    assert refused.candidate is None
    assert "for every local epsilon" in refused.reason
    late = misses["randomized response, a uniform shuffle"]
    assert late.candidate is None
    assert late.local is not None
    assert late.local > 2.0
    assert late.reason == f"Accuracy needs a local epsilon of {late.local:.4g}; targets.local_epsilon is 2."
    assert (
        misses["local hashing, secure aggregation"].reason
        == "This shuffler does not support the reports of this mechanism."
    )


def test_privacy_that_no_local_epsilon_gives() -> None:
    found = choose(wishes(n=20, k=2, epsilon=0.1, guessing=0.4))
    assert not found.rows
    assert {miss.reason for miss in found.missed} == {
        "No local epsilon of 0.001 or more meets the privacy targets.",
        "The privacy targets are missed even with 10,000 additional messages of each person, the largest number tried.",
        "The privacy targets are missed even with 1 additional messages of each person, the largest number tried.",
        "This shuffler does not support the reports of this mechanism.",
    }


@pytest.mark.slow
def test_privacy_alone_gives_the_largest_local_epsilon() -> None:
    found = choose(wishes(n=60, k=2, epsilon=0.4, local_epsilon=1.5))
    row = next(row for row in found.rows if row.sentence.startswith("randomized response") and row.shuffled)
    more = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=2, epsilon=row.point.local_epsilon * 1.02),
        shuffler=hs.UniformShuffle(),
        n=60,
    )
    assert hs.dp.epsilon(more, delta=1e-6).upper > 0.4
    assert row.point.central.upper <= 0.4


def test_a_file_with_a_mechanism_in_it_and_data_whose_values_do_not_matter(tmp_path: Path) -> None:
    rows = []
    for answers in (["no"] * 400 + ["yes"] * 100, ["yes"] * 500):
        (tmp_path / "people.csv").write_text("vote\n" + "\n".join(answers) + "\n", encoding="utf-8")
        text = """
            population = { data = "people.csv", column = "vote", categories = ["no", "yes"] }
            randomizer = { kind = "subset-selection", epsilon = 9.0 }
            targets = { delta = 1e-6, standard_error = 0.05, local_epsilon = 1.0 }
        """
        (tmp_path / "wishes.toml").write_text(text, encoding="utf-8")
        rows.append(choose(tmp_path / "wishes.toml").rows)
    assert rows[0] == rows[1]
    assert hs.assess(parse(rows[0][0].specification), base_folder=tmp_path).met


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (wishes(), "targets: must set at least one of standard_error, epsilon, local_epsilon, guessing"),
        (
            wishes(n=10**6, standard_error=0.1),
            "targets.delta: must be below 1 divided by the number of people (1,000,000)",
        ),
        (wishes(standard_error=0.1, people=1000), "targets.people: must be at most the number of people (900)"),
        ({"targets": {"delta": 1e-6}}, "population"),
    ],
)
def test_wishes_that_are_wrong(asked: Wished, message: str) -> None:
    with pytest.raises(SpecificationError) as error:
        choose(asked)
    assert message in str(error.value)


def test_arguments_that_are_wrong(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="most_dummies"):
        choose(EASY, most_dummies=-1)
    with pytest.raises(InvalidInputError, match="wishes"):
        choose(7)  # type: ignore[arg-type]
    unknown: Any
    for unknown in ({"targets": {"delta": None}}, {"population": {"n": object()}}, {1: 2}):
        with pytest.raises(InvalidInputError, match="wishes"):
            choose(unknown)
        with pytest.raises(InvalidInputError, match="deployment"):
            hs.assess(unknown)
    (tmp_path / "broken.toml").write_text("targets = [", encoding="utf-8")
    with pytest.raises(SpecificationError, match="valid TOML"):
        choose(tmp_path / "broken.toml")
    with pytest.raises((DataError, SpecificationError, OSError)):
        choose(tmp_path / "missing.toml")


def test_the_report_and_the_specifications(tmp_path: Path) -> None:
    found = found_once(EASY)
    made = choice_report(found)
    names = list(specifications(found))
    assert len(names) == len(found.rows)
    assert names[0].startswith("1-")
    assert "guessing" in made.tables[0].columns
    text = report.terminal(made, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "standard" in text.partition("Deployments that miss a target or limit")[0]
    files = report.write(made, tmp_path / "new", beside=specifications(found))
    assert {file.name for file in files} == {"study.html", "study.json", *names}
    assert all(isinstance(row, Candidate) for row in found.rows)
    assert all(isinstance(miss, Miss) for miss in found.missed)
    assert math.isfinite(found.rows[0].bits)


def test_a_year_of_weekly_questions_is_answered_with_what_would_have_to_change() -> None:
    """Local epsilons of 52 reports add up to more than a file may say: that is no error of the file."""
    found = choose(
        {
            "rounds": 52,
            "population": {"n": 12_000, "k": 6},
            "randomizer": {"kind": "randomized-response", "epsilon": 1.8},
            "shuffler": {"kind": "uniform"},
            "targets": {"delta": 1e-6, "epsilon": 1.0, "local_epsilon": 2.0, "standard_error": 0.01},
        }
    )
    assert found.rows == ()
    assert any("no targets.local_epsilon" in advice.sentence for advice in found.advice)


WEEKLY: Wished = {
    "rounds": 52,
    "population": {"n": 12_000, "k": 6},
    "shuffler": {"kind": "uniform"},
    "targets": {"delta": 1e-6, "epsilon": 1.0, "standard_error": 0.01},
}


def test_fresh_and_memoized_reports_are_compared_and_say_how_often_people_are_asked() -> None:
    found = found_once(WEEKLY)
    made = choice_report(found)
    assert "12,000 people, 6 values, 52 rounds with fresh reports in every round." in made.question
    table, compared, *_ = made.tables
    assert table.columns[2:4] == ("local epsilon of one report", "local epsilon of all reports")
    row = found.rows[0]
    assert row.all_reports is not None
    assert row.all_reports.upper == pytest.approx(52 * row.point.local_epsilon, rel=1e-6)
    figures = {cells[0]: cells[1] for cells in compared.rows}
    assert figures["fresh in every round, even if values change"] == row.point.central
    assert figures["memoized, value never changes"] == hs.dp.epsilon(row.protocol, delta=1e-6)
    strict = {**WEEKLY, "targets": {**WEEKLY["targets"], "local_epsilon": 2.0}}
    assert (
        choose(strict).advice[0].sentence.startswith("With memoised = true and changes = 0 (values that never change")
    )


def test_memoized_reports_of_values_that_change_are_ranked() -> None:
    asked = {
        **WEEKLY,
        "memoised": True,
        "changes": 3,
        "targets": {"delta": 1e-6, "epsilon": 5.0, "standard_error": 0.05},
    }
    found = choose(asked)
    assert found.rows
    for row in found.rows:
        assert row.all_reports is not None
        assert row.point.central.upper <= min(5.0, row.all_reports.upper) * 1.001
        assert row.all_reports.upper == pytest.approx(4 * row.point.local_epsilon, rel=1e-6)


def test_secure_aggregation_is_tried_for_a_file_that_names_a_shuffler_only_on_request() -> None:
    asked = wishes(n=100, k=4, standard_error=0.1, epsilon=1.5, local_epsilon=2.5)
    named = {**asked, "shuffler": {"kind": "uniform"}}
    behind = {row.shuffler for row in choose(named).rows}
    assert "secure aggregation" not in behind
    assert behind == {row.shuffler for row in choose(asked).rows} - {"secure aggregation"}
    assert kinds(choose(named, secure_aggregation=True)) == kinds(choose(asked))


def test_one_mechanism_under_two_names_is_one_row() -> None:
    found = found_once(WEEKLY)
    (row,) = [row for row in found.rows if row.mechanism == "randomized response"]
    assert row.also == ("subset selection",)
    assert "randomized response = subset selection, a uniform shuffle" in report.terminal(
        choice_report(found), width=80
    )


def test_every_figure_of_a_row_is_shown_at_80_columns_and_the_order_is_stated() -> None:
    text = report.terminal(choice_report(found_once(EASY)), width=80)
    shown = text.partition("Deployments that miss a target or limit")[0]
    for words in (
        "local epsilon",
        "central epsilon",
        "standard error",
        "bits",
        "dummies",
        "guessing",
        "Order: by central",
    ):
        assert words in shown
    assert "only:" not in text


def test_an_error_above_an_even_share_is_pointed_out() -> None:
    text = report.terminal(choice_report(choose(wishes(n=300, k=20, epsilon=0.03, local_epsilon=0.1))), width=80)
    assert "is larger than an even share (1/20 = 0.05): most shares cannot be" in " ".join(text.split())
