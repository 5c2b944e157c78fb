from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
import pytest

import hushuffle as hs
from hushuffle import report
from hushuffle.assessment.deployment import assess, deployment_of
from hushuffle.assessment.findings import Questions
from hushuffle.assessment.reach import charts as reach_charts
from hushuffle.assessment.reach import privacy as reach_privacy
from hushuffle.assessment.reach import study as reach_study
from hushuffle.assessment.reach import trials as reach_trials
from hushuffle.assessment.reach import warnings as reach_warnings
from hushuffle.assessment.reach.privacy import Design
from hushuffle.cli import main
from hushuffle.errors import NumericalError, SpecificationError
from hushuffle.estimation import reach_questions
from hushuffle.estimation.reach import Reach, planned
from hushuffle.model import Bound, Report
from hushuffle.questions import bloom, dp
from hushuffle.specification import ReachPopulation, load, parse
from hushuffle.specification.specification import Run
from hushuffle_papers.buffling.simulation import every_pair

EXAMPLE = Path(__file__).parents[2] / "examples" / "reach.toml"
ONE = Design(names=("tv",), bits=200, hashes=1, p=0.1, delta=1e-5)
TWO = replace(ONE, names=("tv", "web"))


def text(
    *,
    audiences: str = "tv = 120",
    population: str = "people = 1000",
    bits: int = 200,
    hashes: int = 1,
    p: str = "p = 0.1",
    targets: str = "delta = 1e-5",
    run: str = "seed = 1",
) -> str:
    return f"""
        [population]
        audiences = {{ {audiences} }}
        {population}
        bits = {bits}
        hashes = {hashes}
        [randomizer]
        kind = "bit-flipping"
        {p}
        [shuffler]
        kind = "uniform"
        [targets]
        {targets}
        [run]
        {run}
    """


def warned(assessment: Report) -> set[str]:
    return {warning.key for warning in assessment.warnings}


@pytest.fixture(scope="module")
def planned_study() -> Report:
    """Return one publisher's study: fast, since one filter has a fast law, and charts have few points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reach_charts, "_NOISES", (0.03, 0.4))
        patch.setattr(reach_charts, "_FACTORS", (0.3, 3.0))
        return assess(parse(text(targets="delta = 1e-5\nstandard_error = 0.2")))


def test_what_is_said(planned_study: Report) -> None:
    assert planned_study.question == (
        "One Bloom filter of 200 bits (one hash function): every bit is flipped with probability 0.1000, and the "
        "columns of all filters are released in random order."
    )
    assert planned_study.title == "Assessment of a reach study"
    central, member, local = planned_study.findings
    assert [finding.question for finding in planned_study.findings] == ["central-dp", "membership", "local-dp"]
    expected = bloom.epsilon(filters=1, bits=200, p=0.1, delta=1e-5)
    assert (central.bound.lower, central.bound.upper) == (expected.lower, expected.upper)
    assert central.bound.witness is None
    assert "; lower bound at one column " in central.proof
    assert 0.5 < member.bound.upper < 0.7
    assert local.bound.upper == pytest.approx(math.log(9))
    assert planned_study.utility is None
    assert warned(planned_study) == {"assumed-audiences"}
    assert "p = 0.1" in planned_study.specification


def test_tables(planned_study: Report) -> None:
    reach, privacy = planned_study.tables
    assert reach.columns == ("Audience", "True", "Estimate", "Interval", "Predicted error", "Measured error", "z")
    ((label, truth, estimate, interval, predicted, measured, z),) = reach.rows
    assert (label, truth) == ("tv", 120)
    assert isinstance(interval, Bound)
    assert isinstance(estimate, int)
    assert estimate in interval
    assert isinstance(predicted, float)
    assert isinstance(measured, float)
    assert abs(measured / predicted - 1) < 0.4
    assert abs(float(str(z))) < 5
    assert reach.caption.startswith("Target met: the predicted error of the total reach is ")
    assert [row[:2] for row in privacy.rows] == [
        ("one column of bits", 1),
        ("one person exchanged for another", 2),
        ("one column full, or all empty: only these two datasets", 1),
    ]


def test_charts(planned_study: Report) -> None:
    assert [chart.key for chart in planned_study.charts] == [
        "privacy-against-flips",
        "accuracy-against-flip-probability",
        "flips-against-bits",
        "accuracy-against-bits",
    ]
    privacy, accuracy, flips, _ = planned_study.charts
    upper = privacy.series[0].upper
    assert list(upper) == sorted(upper, reverse=True)
    assert accuracy.series[0].lower[0] < accuracy.series[0].lower[-1]
    assert list(flips.series[0].upper) == sorted(flips.series[0].upper, reverse=True)
    assert flips.series[0].upper[flips.series[0].x.index(200.0)] == 0.1


def test_rendered(planned_study: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(report.json_schema()).validate(json.loads(report.to_json(planned_study)))
    page = report.html(planned_study)
    assert "Reach and overlaps, in people" in page
    assert "120 people, 1 publisher; assumed audiences among 1,000 people" in page
    said = report.terminal(planned_study)
    assert "Epsilon by what changes in the data" in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach_charts, "charts", lambda *_, **__: ())


@pytest.mark.usefixtures("no_charts")
def test_publishers_files(tmp_path: Path) -> None:
    pl.DataFrame({"id": [f"user-{i}" for i in range(1500)]}).write_csv(tmp_path / "tv.csv")
    pl.DataFrame({"id": [f"user-{i}" for i in range(1000, 2200)]}).write_parquet(tmp_path / "web.parquet")
    key = tmp_path / "reach.key"
    key.write_text("5a" * 32, encoding="ascii")
    key.chmod(0o600)
    files = text(
        population='publishers = { tv = "tv.csv", web = "web.parquet" }\ncolumn = "id"\nkey_file = "reach.key"',
        bits=4000,
        run="repetitions = 40\nseed = 3",
    ).replace("audiences = { tv = 120 }", "")
    found = assess(parse(files), base_folder=tmp_path)
    table = found.tables[0]
    assert [row[:2] for row in table.rows] == [
        ("tv or web", 2200),
        ("tv", 1500),
        ("web", 1200),
        ("tv alone", 1000),
        ("web alone", 700),
        ("tv and web", 500),
    ]
    for row in table.rows:
        _, truth, estimate, _, predicted, measured, z = row
        assert isinstance(truth, int)
        assert isinstance(estimate, int)
        assert isinstance(predicted, float)
        assert isinstance(measured, float)
        assert abs(estimate - truth) < 5 * predicted
        assert 0.5 < measured / predicted < 1.6
        assert abs(float(str(z))) < 5
    assert warned(found) == {"fixed-seed", "true-values-shown"}
    assert "5a5a" not in report.to_json(found)
    without_runs = assess(parse(files.replace("repetitions = 40", "repetitions = 0")), base_folder=tmp_path)
    assert without_runs.tables[0].columns == ("Audience", "True", "Estimate", "Interval", "Predicted error")
    (tmp_path / "tv.csv").write_text("id\n1\n\n2\n", encoding="utf-8")
    dropping = parse(files.replace("seed = 3", 'seed = "secure"').replace("column", 'missing = "drop"\ncolumn'))
    assert {"dropped-records", "small-crowd"} & warned(assess(dropping, base_folder=tmp_path)) == {"dropped-records"}


@pytest.mark.usefixtures("no_charts")
def test_the_least_flips_for_a_target() -> None:
    progress: list[float] = []
    found = assess(
        parse(text(p="", targets="delta = 1e-5\nepsilon = 0.5", run="repetitions = 0")),
        progress=lambda _, share: progress.append(share),
    )
    assert 0.499 < found.findings[0].bound.upper <= 0.5
    p = bloom.estimate_flip_prob(filters=1, bits=200, epsilon=0.5, delta=1e-5).p
    assert f"p = {p!r}" in found.specification
    assert parse(found.specification).randomizer.build(1) == hs.BitFlipping(width=1, p=p)
    assert progress == sorted(progress)
    assert found.tables[0].columns == ("Audience", "True", "Predicted error")


@pytest.mark.usefixtures("no_charts")
def test_several_hash_functions() -> None:
    found = assess(parse(text(hashes=3, audiences="tv = 50", run="repetitions = 30\nseed = 1")))
    central, member, local = found.findings
    expected = bloom.epsilon(filters=1, bits=200, p=0.1, delta=1e-5, hashes=3)
    assert (central.bound.lower, central.bound.upper) == (expected.lower, expected.upper)
    assert "group privacy over 3 columns" in central.proof
    assert member.bound.upper > assess(parse(text(run="repetitions = 0"))).findings[1].bound.upper
    assert local.bound.upper == pytest.approx(3 * math.log(9))
    assert local.bound.upper >= 3 * math.log(9)
    assert [row[1] for row in found.tables[1].rows] == [1, 3, 6, 1]
    assert "several-hash-functions" in warned(found)
    (row,) = found.tables[0].rows
    assert abs(float(str(row[-1]))) < 5


@pytest.mark.usefixtures("no_charts")
def test_what_is_warned_about() -> None:
    weak = assess(
        parse(text(p="p = 1e-6", targets="delta = 0.01\nepsilon = 1.0\nstandard_error = 1e-4", run="repetitions = 0"))
    )
    assert warned(weak) >= {"large-epsilon", "privacy-target-missed", "large-delta", "target-missed"}
    assert "no-amplification" in warned(weak)
    assert weak.tables[0].caption.startswith("Target missed")
    full = assess(parse(text(audiences="tv = 900", bits=100, targets="delta = 1e-5\nstandard_error = 0.01")))
    assert warned(full) >= {"refused", "target-missed"}
    assert full.tables[0].rows == ()
    assert "unknown of the reach" in full.tables[0].caption
    assert any('There is no estimate for "tv". An estimated' in warning.sentence for warning in full.warnings)
    small = assess(parse(text(audiences="tv = 3", p="p = 0.3", run="repetitions = 20\nseed = 1")))
    assert warned(small) >= {"small-crowd", "noise-above-signal"}
    edge = assess(parse(text(audiences="tv = 900", population="people = 100_000", bits=550, p="p = 0.2")))
    assert "unsteady" in warned(edge)
    assert edge.tables[0].columns[-1] == "Predicted error"


def test_brackets_that_are_wide_and_errors_that_differ() -> None:
    figure = reach_trials.Figure(
        asked=reach_questions.questions(("tv",))[0], truth=100.0, predicted=5.0, measured=50.0, z=20.0
    )
    spec = parse(text())
    assert isinstance(spec.population, ReachPopulation)
    audiences = spec.population.meet(Path())
    for lower, words in ((0.0, "may be 0"), (0.1, "2.0 times that")):
        central = Bound(lower=lower, upper=0.2, kind="bracket", unit="nats")
        found = reach_warnings.concerns(
            ONE, audiences=audiences, figures=(figure,), specification=spec, central=central
        )
        assert [warning.key for warning in found] == ["wide-bracket", "measured-differs", "assumed-audiences"]
        assert words in found[0].sentence


def test_witnesses_in_words() -> None:
    witness = hs.Protocol(randomizer=hs.BitFlipping(width=2, p=0.3), shuffler=hs.UniformShuffle(), n=1)
    single = dp.epsilon(witness, delta=0.0).witness
    assert single is None or "others none" in reach_privacy._columns(single, 2)
    assert reach_privacy._pattern(0b110, 3) == "011"


def test_membership_covers_every_pair_of_few_columns() -> None:
    for p, m in ((0.1, 2), (0.25, 3)):
        (_, member, _) = reach_privacy.findings(Questions(), replace(TWO, bits=m, p=p, delta=0.01))
        distance = max(pair.delta for pair in every_pair(m, p, 0.0))
        assert 0.5 + distance / 2 <= member.bound.upper
    certain = reach_privacy._member(replace(ONE, p=1e-9, hashes=2))
    assert certain.bound.upper == 1.0


def test_sentences_of_huge_factors() -> None:
    assert "practically reveals your audiences" in reach_privacy._local(replace(ONE, p=1e-9, hashes=30)).sentence


def test_no_exchange_of_more_columns_than_there_are() -> None:
    table = reach_privacy.table(replace(ONE, bits=100, hashes=60, p=0.4))
    assert [row[1] for row in table.rows] == [1, 60, 1]


def test_simulated_filters_fill_up_as_they_should() -> None:
    """A column stays empty with probability (1 - 1/m)**(h n); 6 standard deviations: false alarm below 1e-8."""
    design = replace(TWO, bits=10_000, hashes=2, p=1e-12)
    counts = reach_trials.released(np.array([0, 1000, 2000, 500]), design, hs.reproducible(1)).counts
    empty = [(1 - 1e-4) ** (2 * n) for n in (3500, 1500, 2500)]
    expected = 10_000 * np.array(empty)
    found = [counts[0], counts[0] + counts[2], counts[0] + counts[1]]
    assert found == pytest.approx(expected, abs=6 * 50)


def test_questions_to_many_publishers() -> None:
    names = tuple("abcde")
    asked = reach_questions.questions(names)
    assert asked[0].label == "any of the 5"
    assert len(asked) == 1 + 5 + 5 + 10
    four = reach_questions.questions(names[:4])
    assert len(four) == 1 + 4 + 4 + 6 + 4 + 1
    assert four[-1].label == "a, b, c and d"


def test_a_run_without_an_answer_is_not_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Reach:
        message = "Too noisy. Change something."
        raise NumericalError(message)

    spec = parse(text())
    assert isinstance(spec.population, ReachPopulation)
    monkeypatch.setitem(reach_trials._ASK, "reach", refuse)
    (figure,) = reach_trials.figures(
        spec.population.meet(Path()), ONE, run=Run(repetitions=3, seed=1), progress=lambda _: None
    )
    assert (figure.estimate, figure.measured, figure.z) == (None, None, None)


def test_charts_of_two_publishers(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = parse(text(audiences="tv = 60, web = 40"))
    assert isinstance(spec.population, ReachPopulation)
    audiences = spec.population.meet(Path())
    monkeypatch.setattr(reach_charts, "central", lambda _: Bound.exact(0.0, unit="nats"))
    noise, accuracy = reach_charts.charts(Questions(), audiences, TWO, progress=lambda _: None)
    assert noise.key == "privacy-against-flips"
    assert [series.label for series in accuracy.series] == ["reach of all together", "tv and web"]
    expected = planned(audiences.people, protocol=TWO.protocol, question="overlap").standard_error
    assert accuracy.series[1].upper[accuracy.series[1].x.index(0.1)] == expected
    crowded = reach_charts.charts(Questions(), audiences, replace(TWO, bits=100), progress=lambda _: None)[1]
    assert all(len(series.x) < 8 for series in crowded.series)


@pytest.mark.slow
def test_the_example() -> None:
    found = assess(load(EXAMPLE), base_folder=EXAMPLE.parent)
    assert found.findings[0].bound.upper <= 0.5
    assert len(found.tables[0].rows) == 20
    assert warned(found) == {"assumed-audiences"}
    assert reach_study.describe(TWO).startswith("2 Bloom filters of 200 bits each")


def test_a_refused_question_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_named: object) -> NoReturn:
        message = "No figure."
        raise NumericalError(message)

    monkeypatch.setattr(reach_privacy, "_central", refuse)
    monkeypatch.setattr(reach_charts, "_noise_chart", refuse)
    result = assess(parse(text(targets="delta = 1e-5, epsilon = 1.0".replace(", ", "\n"))))
    assert [row.question for row in result.unanswered] == ["central-dp", "privacy-against-flips"]
    assert {"membership", "local-dp"} == {row.question for row in result.findings}
    assert "privacy-target-unknown" in warned(result)
    assert "privacy-against-flips" not in {chart.key for chart in result.charts}


DUMMIES = """
    [population]
    audiences = { tv = 120, web = 80 }
    people = 1000
    bits = 1000
    [randomizer]
    kind = "randomized-response"
    epsilon = "inf"
    [shuffler]
    kind = "augmented"
    trusted = true
    each = { kind = "discrete-gaussian", center = 60, sigma = 6.0 }
    [targets]
    delta = 1e-5
    standard_error = 0.5
    [run]
    seed = 1
"""


def test_dummies_of_bit_patterns_in_place_of_flips() -> None:
    report_ = assess(parse(DUMMIES))
    assert "plus a random number of dummies for each, with mean 60" in report_.question
    central, member, local = report_.findings
    law = hs.DummyLaw.discrete_gaussian(center=60, sigma=6.0)
    truth = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=4, epsilon=math.inf), shuffler=hs.AugmentedShuffle(each=law), n=1000
    )
    expected = dp.epsilon(truth, delta=1e-5)
    assert central.bound.lower == pytest.approx(expected.lower)
    assert central.bound.upper == pytest.approx(expected.upper)
    assert 0.5 < member.bound.upper < 0.7
    assert math.isinf(local.bound.upper)
    reach, privacy = report_.tables
    assert "assumed-audiences" in warned(report_)
    assert len(privacy.rows) == 2
    for row in reach.rows:
        measured, predicted = row[5], row[4]
        assert isinstance(measured, float)
        assert isinstance(predicted, float)
        assert measured == pytest.approx(predicted, rel=0.4)
    assert report_.charts == ()


def test_the_example_with_dummies_meets_its_targets() -> None:
    specification = load(EXAMPLE.with_name("reach-dummies.toml"))
    few = specification.model_copy(update={"run": Run(repetitions=2, seed=1)})
    assert all(target.met for target in assess(few).targets)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('epsilon = "inf"', "epsilon = 1.0", "randomizer.epsilon"),
        ("delta = 1e-5", 'delta = 1e-5\n[[adversaries]]\nkind = "linker"', "strong"),
        ('each = { kind = "discrete-gaussian", center = 60, sigma = 6.0 }', "pure_epsilon = 1.0", "pure_epsilon"),
    ],
)
def test_dummies_that_do_not_fit(old: str, new: str, words: str) -> None:
    with pytest.raises(SpecificationError, match=words):
        parse(DUMMIES.replace(old, new))


def test_dummies_have_nothing_to_audit() -> None:
    with pytest.raises(SpecificationError, match="to audit a reach study"):
        deployment_of(parse(DUMMIES), Path()).audit(delta=1e-5)


def test_calibrated_dummies_just_meet_what_assess_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    laplace = 'each = { kind = "discrete-laplace", center = 200, scale = 9.0 }'
    views = f'views = [{{ shows = "union" }}, {{ shows = "patterns", {laplace}, empty = {{ {laplace[9:]} }}]'
    text = DUMMIES.replace("bits = 1000", f"bits = 1000\n{views}").replace("[run]", "epsilon = 0.3\n[run]")
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study = deployment_of(parse(text), tmp_path)
    chosen = study.calibrate()
    monkeypatch.setattr(type(study), "calibrate", lambda *_: chosen)  # once for both forms
    assert main(["calibrate", str(tmp_path / "study.toml"), "--json"]) == 0
    choice = json.loads(capsys.readouterr().out)
    private, accurate = choice["fewest_dummies_for_privacy"], choice["most_dummies_for_accuracy"]
    proposed = assess(parse(choice["specification"]))
    assert proposed.findings[0].bound.upper == private["central_epsilon"]["upper"] <= 0.3 < private["next_epsilon"]
    assert private["next_factor"] == pytest.approx(private["factor"], rel=1e-3)
    assert private["laws"].keys() == {"shuffler.each", "population.views[1].each", "population.views[1].empty"}
    assert accurate["standard_error"] == pytest.approx(0.5, rel=1e-2)
    assert private["dummies"] < accurate["dummies"]
    assert main(["calibrate", str(tmp_path / "study.toml")]) == 0
    assert "above the target" in capsys.readouterr().out
    monkeypatch.undo()
    own = text.replace(laplace, 'each = { kind = "own", numbers = [1, 2], probabilities = [0.5, 0.5] }', 1)
    with pytest.raises(SpecificationError, match="discrete-laplace or discrete-gaussian to calibrate"):
        deployment_of(parse(own), tmp_path).calibrate()
    monkeypatch.setattr(reach_study, "_WIDEST", 90.0)  # wider dummies take long
    tight = parse(text.replace("epsilon = 0.3", "epsilon = 1e-3"))
    with pytest.raises(SpecificationError, match="some width of the dummies achieves"):
        deployment_of(tight, tmp_path).calibrate()


def test_views_of_twelve_publishers() -> None:
    sizes = ", ".join(f"a{place} = {20 * place + 20}" for place in range(12))
    views = (
        '{ shows = "union" }, { shows = "union", sets_of = 1, publishers = ["a10", "a11"] }, '
        '{ shows = "union", publishers = ["a11", "a10"] }, { shows = "contacts", most = 3 }'
    )
    text = DUMMIES.replace("audiences = { tv = 120, web = 80 }", f"audiences = {{ {sizes} }}\nviews = [{views}]")
    report_ = assess(parse(text))
    assert "in all 8 counts of columns" in report_.question
    law = hs.DummyLaw.discrete_gaussian(center=60, sigma=6.0)
    unions = [tuple(range(12)), (10,), (11,), (10, 11)]
    shown = [hs.ColumnView(publishers=union, each=law) for union in unions]
    shown.append(hs.ColumnView(publishers=unions[0], shows="contacts", most=3, each=law))
    design = hs.ColumnViews(publishers=12, columns=1000, views=tuple(shown))
    expected = hs.bloom.views_epsilon(design, delta=1e-5)
    central = report_.findings[0].bound
    assert (central.lower, central.upper) == (expected.lower, expected.upper)
    reach = report_.tables[0]
    assert [row[0] for row in reach.rows] == [
        "any of the 12",
        "a10",
        "a11",
        "a10 and a11",
        "a10 or a11",
        "1 contact",
        "2 contacts",
        "3 or more contacts",
    ]
    assert sum(row[1] for row in reach.rows[-3:] if isinstance(row[1], int)) == pytest.approx(reach.rows[0][1], abs=2)
    for row in reach.rows:
        assert row[5] == pytest.approx(row[4], rel=0.4)


def test_a_release_without_the_union_of_all() -> None:
    text = DUMMIES.replace("bits = 1000", 'bits = 1000\n    views = [{ shows = "union", sets_of = 1 }]')
    report_ = assess(parse(text))
    assert [row[0] for row in report_.tables[0].rows] == ["tv", "web"]
    assert {"refused", "target-missed"} <= warned(report_)


def test_the_example_with_views_meets_its_targets() -> None:
    specification = load(EXAMPLE.with_name("reach-views.toml"))
    few = specification.model_copy(update={"run": Run(repetitions=1, seed=1)})
    assert all(target.met for target in assess(few).targets)
