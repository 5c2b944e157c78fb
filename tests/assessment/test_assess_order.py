"""Assessments of a Mallows shuffle, from the specification to the report."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment import charts as curves
from hushuffle.assessment import trials
from hushuffle.assessment.calibrate import calibrate
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.order import findings as order_findings
from hushuffle.assessment.order import report as order_charts
from hushuffle.errors import SpecificationError, UnsupportedProtocolError
from hushuffle.model import Report
from hushuffle.specification import load, parse
from hushuffle_papers.meehan2022.data import crescents

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate less than a report does, but for the examples."""
    if "slow" not in request.keywords:
        monkeypatch.setattr(order_findings, "_DRAWS", 30)
        monkeypatch.setattr(order_charts, "_ALPHAS", (1.0,))
        monkeypatch.setattr(curves, "_NOISES", (1.0,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(9)
    lines = ["east,north,town,answer"]
    for _ in range(120):
        east, north = rng.random(2)
        answer = "" if rng.random() < 0.05 else "yes" if east > 0.5 else "no"
        lines.append(f"{east:.3f},{north:.3f},{'ab'[int(east * 2)]},{answer}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def made(
    folder: Path,
    *,
    groups: str = '{ columns = ["east", "north"], radius = 0.15 }',
    shuffler: str = "alpha = 3.0",
    randomizer: str = 'kind = "randomized-response", epsilon = 2.0',
    more: str = "",
    run: str = "repetitions = 3, seed = 5",
) -> Report:
    spec = parse(f"""
        {more}
        population = {{ data = "people.csv", column = "answer", categories = ["no", "yes"], missing = "drop" }}
        randomizer = {{ {randomizer} }}
        shuffler = {{ kind = "mallows", {shuffler}, groups = {groups} }}
        targets = {{ delta = 1e-6 }}
        run = {{ {run} }}
    """)
    return assess(spec, base_folder=folder)


def warned(assessment: Report) -> set[str]:
    return {warning.key for warning in assessment.warnings}


def questions(assessment: Report) -> list[str]:
    return [finding.question for finding in assessment.findings]


def test_everything_that_can_be_asked(folder: Path) -> None:
    attack = '{ kind = "order", attack = { column = "town", radius = 0.2 } }'
    asked = f'adversaries = [{attack}, {{ kind = "linker" }}, {{ kind = "strong" }}]'
    result = made(folder, more=asked, run="repetitions = 3, seed = 5, show_people = true")
    assert questions(result) == [
        "central-dp",
        "local-dp",
        "vulnerability",
        "re-identification",
        "identity-information",
        "order-privacy",
        "order-inference",
        "order-reidentification",
        "order-displacement",
        "order-attack",
    ]
    by_question = {finding.question: finding.bound for finding in result.findings}
    assert by_question["order-privacy"].upper == pytest.approx(3.0, rel=1e-12)
    assert by_question["order-privacy"].kind == "exact"
    assert result.population is not None
    n = result.population.n
    uniform = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=n)
    assert by_question["central-dp"].lower == hs.dp.epsilon(uniform, delta=1e-6).lower
    seen = hs.Protocol(randomizer=uniform.randomizer, shuffler=hs.NoShuffle(), n=n)
    assert by_question["central-dp"].upper == hs.dp.epsilon(seen, delta=1e-6).upper < by_question["local-dp"].upper
    assert [table.key for table in result.tables] == ["order-preservation", "order-attack"]
    assert [chart.key for chart in result.charts] == [
        "displacement-against-alpha",
        "alpha-against-groups",
        "privacy-against-noise",
        "accuracy-against-noise",
    ]
    (drawn,) = result.maps
    assert drawn.panels[0].values.count(1) == result.population.counts[1] if result.population.counts else False
    assert {"public-columns", "people-shown", "dropped-records", "fixed-seed"} <= warned(result)
    assert result.utility is not None
    assert result.utility.measured is not None
    assert report.terminal(result, width=80).replace("\n", " ").count("What a release shows of places.") == 1
    assert "What a release shows of places" in report.html(result)
    assert '"key": "people"' in report.to_json(result)


def test_only_what_is_asked_for(folder: Path) -> None:
    result = made(folder, more='adversaries = [{ kind = "uninformed" }]')
    assert questions(result) == ["central-dp", "local-dp", "vulnerability"]
    assert (result.tables, result.maps) == ((), ())
    default = made(folder, groups='{ column = "town" }', shuffler='theta = 0.5, distance = "hamming"')
    assert "order-attack" not in questions(default)
    assert [table.key for table in default.tables] == ["order-preservation"]
    assert "large-alpha" in warned(default)


def test_warnings_about_the_order(folder: Path) -> None:
    lonely = made(folder, groups='{ columns = ["east", "north"], radius = 0.04 }')
    assert "alone-in-a-group" in warned(lonely)
    mixed = made(folder, groups='{ columns = ["east", "north"], radius = 0.9 }', shuffler="alpha = 0.1")
    assert {"nearly-uniform", "public-columns"} <= warned(mixed)
    assert not {"alone-in-a-group", "large-alpha", "people-shown"} & warned(mixed)


def test_other_randomizers(folder: Path) -> None:
    bare = made(folder, randomizer='kind = "randomized-response", epsilon = "inf"')
    assert math.isinf(bare.findings[0].bound.upper)
    asked = 'adversaries = [{ kind = "order" }, { kind = "linker" }, { kind = "strong" }]'
    hashed = made(folder, randomizer='kind = "local-hashing", epsilon = 1.0', more=asked)
    assert "vulnerability" in questions(hashed)


def test_a_column_of_labels_known_to_the_attacker(folder: Path) -> None:
    asked = 'adversaries = [{ kind = "order", attack = {} }]'
    result = made(folder, groups='{ column = "town" }', more=asked)
    assert "error of shares that an analyst learns near each person (uniform guess: 1)" in result.tables[1].columns


def test_what_a_preservation_cannot_be_computed_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The name of the module is that of a function in its package.
    monkeypatch.setattr(sys.modules["hushuffle.questions.order.preservation"], "MOST", 10)
    result = made(folder, shuffler='alpha = 3.0, distance = "hamming"')
    assert result.tables == ()
    assert [row.question for row in result.unanswered] == ["order-preservation"]


def test_groups_that_do_not_fit_are_a_problem_of_the_specification(folder: Path) -> None:
    with pytest.raises(SpecificationError, match="must be an integer from 1 to 118, got 500"):
        made(folder, groups='{ columns = ["east", "north"], nearest = 500 }')


def test_calibration_needs_another_shuffler(folder: Path) -> None:
    spec = parse("""
        population = { data = "people.csv", column = "answer", categories = ["no", "yes"], missing = "drop" }
        randomizer = { kind = "randomized-response", epsilon = 2.0 }
        shuffler = { kind = "mallows", alpha = 1.0, groups = { column = "town" } }
        targets = { delta = 1e-6, epsilon = 1.0 }
    """)
    with pytest.raises(UnsupportedProtocolError, match='Use `hushuffle assess`, or set kind = "uniform"'):
        calibrate(spec, base_folder=folder)


def test_the_invented_people_of_the_example() -> None:
    people = crescents(3000, seed=1)
    labels = ("gas", "oil", "wood", "electric")
    expected = ["east,north,heating"] + [
        f"{x:.3f},{y:.3f},{labels[value]}"
        for (x, y), value in zip(people.points.tolist(), people.coarse(4).tolist(), strict=True)
    ]
    assert (EXAMPLES / "places.csv").read_text(encoding="utf-8").splitlines() == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["order", "places"])
def test_the_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "secure", lambda: hs.reproducible(1))  # they ask for secure coins
    result = assess(load(EXAMPLES / f"{name}.toml"), base_folder=EXAMPLES)
    by_question = {finding.question: finding.bound for finding in result.findings}
    assert by_question["order-privacy"].upper == pytest.approx(4.0, rel=1e-12)
    rows = {str(row[0]): row for row in result.tables[1].rows}
    error = [rows[name][2] for name in ("no shuffle", "this shuffle", "uniform shuffle")]
    middles = [(bound.lower + bound.upper) / 2 for bound in error if isinstance(bound, hs.Bound)]
    # Far apart: by ten and more standard deviations of the runs.
    assert middles[0] + 0.1 < min(middles[1:])
    assert len(result.maps) == (name == "places")
    assert result.utility is not None
    assert result.utility.z is not None
    # Normal deviates: |z| > 5.5 has probability 4e-8 for each of at most four values.
    assert float(np.abs(result.utility.z).max()) < 5.5


def test_a_refused_question_is_a_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_named: object) -> NoReturn:
        message = "No law."
        raise UnsupportedProtocolError(message)

    monkeypatch.setattr(order_findings, "identified", refuse)
    result = made(folder, run="repetitions = 0, seed = 5")
    assert [row.question for row in result.unanswered] == ["re-identification"]
    assert {"central-dp", "identity-information", "order-privacy"} <= {row.question for row in result.findings}
