from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import hushuffle as hs
from hushuffle.assessment.calibrate import calibrate
from hushuffle.assessment.deployment import assess
from hushuffle.errors import SpecificationError
from hushuffle.questions.qif.guessing import guarantee_vulnerability
from hushuffle.report.formatting import asked
from hushuffle.specification import Specification, parse


def survey(population: str, *, rounds: int = 1, targets: str = "delta = 1e-6") -> Specification:
    return parse(f"""
        rounds = {rounds}
        population = {{ {population} }}
        randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ {targets} }}
        run = {{ repetitions = 2 }}
    """)


def protocol(n: int) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=n)


def test_the_first_row_is_about_all_that_one_person_gives() -> None:
    report = assess(survey("n = 900, k = 3, reports_per_person = 3", rounds=4))
    rows = {row.question: row for row in report.findings}
    once = hs.dp.per_person(protocol(900), reports=3)
    assert report.findings[0].question == "central-dp"
    assert rows["central-dp"].bound == hs.dp.compose([(once, 4)], delta=1e-6)
    assert rows["central-dp-one-round"].bound == hs.dp.epsilon(protocol(900), delta=1e-6, reports_per_person=3)
    assert rows["local-dp"].bound.upper == pytest.approx(12.0)
    assert "all 4 rounds, with up to 3 reports of each person in each" in rows["central-dp"].sentence
    assert rows["local-dp"].sentence == "If the shuffler fails, your answers are practically readable."  # e^12
    guess = guarantee_vulnerability(3, epsilon=rows["central-dp"].bound.upper, delta=1e-6)
    assert rows["vulnerability"].bound == guess
    assert "from all 4 rounds, with up to 3 reports of each person in each" in rows["vulnerability"].sentence
    assert "900 reports, up to 3 of each person" in report.question


def test_the_first_page_is_about_a_person() -> None:
    targets = "delta = 1e-6, epsilon = 9.0, guessing = 0.9, people = 300, local_epsilon = 11"
    report = assess(survey("n = 900, k = 3, reports_per_person = 3", rounds=4, targets=targets))
    page = report.statement
    assert page is not None
    assert "The claim covers all 4 rounds, with up to 3 reports of each person in each." in page.claim
    assert "all of whose reports, 3 at most, in all 4 rounds, are replaced" in page.unit
    said = {row.key: row.sentence for row in page.assumptions}
    assert "No person sends more than 3 reports in a round" in said["one_answer"]
    assert "more than 4 times" in said["no_repeats"]
    assert "all 900 messages, of which you send at most 3" in " ".join(page.respondents)
    cases = {row.key: row for row in page.scenarios}
    assert cases["as-planned"].central == report.findings[0].bound
    assert cases["broken-shuffler"].central == report.findings[1 + 1].bound
    assert "asked 20 times" in cases["rounds"].case
    got = {target.key: target for target in report.targets}
    assert got["epsilon"].got == report.findings[0].bound
    assert got["guessing"].got == guarantee_vulnerability(3, epsilon=report.findings[0].bound.upper, delta=1e-6)
    assert got["people"].got is not None
    assert got["people"].got.upper == 300  # at least: 900 reports of at most three each
    local = got["local_epsilon"].got
    assert local is not None
    assert local.upper == pytest.approx(12.0)


def test_colluders_tell_all_of_their_reports() -> None:
    report = assess(
        parse("""
        population = { n = 900, k = 3, reports_per_person = 3 }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        statement = { colluders = 100 }
    """)
    )
    assert report.statement is not None
    (row,) = [row for row in report.statement.scenarios if row.key == "colluders"]
    assert row.central == hs.dp.epsilon(protocol(600), delta=1e-6, reports_per_person=3)


def test_who_sent_a_report_has_no_figure_where_a_person_gives_several() -> None:
    report = assess(survey("n = 900, k = 3, reports_per_person = 3"))
    reasons = {row.question: row.reason for row in report.unanswered}
    assert reasons["re-identification"].endswith("the release covers up to 3 reports of each person.")
    rounds = assess(survey("n = 900, k = 3", rounds=2))
    assert {row.question for row in rounds.findings} == {
        "central-dp",
        "central-dp-one-round",
        "local-dp",
        "vulnerability",
    }
    assert rounds.statement is not None
    said = {row.key: row.sentence for row in rounds.statement.anonymity}
    assert said["singling-out"].endswith("the release covers all 2 rounds.")
    assert said["linkability"] == "Not known, for the same reason."
    assert not any(chart.key.startswith("guessing") for chart in rounds.charts), "they are of one report"


def test_charts_are_about_a_person_too() -> None:
    report = assess(survey("n = 900, k = 3, reports_per_person = 3", rounds=2))
    (chart,) = [chart for chart in report.charts if chart.key == "privacy-against-people"]
    released, seen = chart.series
    place = released.x.index(900)
    assert released.upper[place] == report.findings[0].bound.upper
    assert seen.upper[place] == pytest.approx(6.0)
    assert chart.x_label == "reports of all people"


def test_a_report_says_whose_the_rows_are(tmp_path: Path) -> None:
    users = [f"u{place % 50}" for place in range(400)]
    pl.DataFrame({"user": users, "x": [place % 3 for place in range(400)]}).write_csv(tmp_path / "trips.csv")
    data = 'data = "trips.csv", column = "x", categories = ["0", "1", "2"]'
    rows = assess(survey(data), base_folder=tmp_path)
    assert rows.population is not None
    assert "400 people, 3 values" in asked(rows.population)
    assert "Each row counts as one person." in asked(rows.population)
    persons = assess(survey(f'{data}, person = "user", reports_per_person = 2'), base_folder=tmp_path)
    assert persons.population is not None
    assert "100 reports of 50 people, at most 2 of each person, 3 values" in asked(persons.population)
    assert "Left out: 300 records in excess of 2 records per person (population.reports_per_person)." in asked(
        persons.population
    )
    assert "Each row counts" not in asked(persons.population)
    assert persons.findings[0].bound.upper > rows.findings[0].bound.upper
    single = assess(survey(f'{data}, person = "user"'), base_folder=tmp_path)
    assert single.population is not None
    assert (single.population.n, single.population.people, sum(single.population.counts or ())) == (50, 50, 50)
    counted = assess(survey("n = 900, k = 3"))
    assert counted.population is not None
    assert "Each row" not in asked(counted.population)


def test_the_same_seed_keeps_the_same_records(tmp_path: Path) -> None:
    users = [f"u{place % 20}" for place in range(400)]
    pl.DataFrame({"user": users, "x": [place % 3 for place in range(400)]}).write_csv(tmp_path / "trips.csv")
    spec = parse("""
        population = { data = "trips.csv", column = "x", categories = ["0", "1", "2"], person = "user" }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        run = { repetitions = 1, seed = 7 }
    """)
    first, again = (assess(spec, base_folder=tmp_path).population for _ in range(2))
    assert first == again


def test_calibration_solves_for_all_that_one_person_gives() -> None:
    targets = "delta = 1e-6, epsilon = 0.8, standard_error = 0.5"
    choice = calibrate(survey("n = 900, k = 3, reports_per_person = 2", rounds=2, targets=targets))
    noise = choice.proposed.local_epsilon
    found = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=noise), shuffler=hs.UniformShuffle(), n=900)
    total = hs.dp.compose([(hs.dp.per_person(found, reports=2), 2)], delta=1e-6)
    assert total.upper <= 0.8 * (1 + 1e-5)
    assert choice.proposed.central.upper == pytest.approx(0.8, rel=0.01)
    assert choice.proposed.local_epsilon < calibrate(survey("n = 900, k = 3", targets=targets)).proposed.local_epsilon


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            'population = { data = "a.csv", column = "x", categories = ["a", "b"], reports_per_person = 3 }',
            "population.reports_per_person: needs the key person, got 3.",
        ),
        (
            'population = { data = "a.csv", column = "x", categories = ["a", "b"], person = "x" }',
            'population.person: must not be the private column, got "x".',
        ),
        ("population = { n = 9, k = 3, reports_per_person = 0 }", "population.reports_per_person: must be"),
        ("rounds = 0\npopulation = { n = 9, k = 3 }", "rounds: must be"),
    ],
)
def test_what_does_not_go_together(text: str, problem: str) -> None:
    rest = """
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
    """
    with pytest.raises(SpecificationError) as error:
        parse(text + rest)
    assert problem in str(error.value)


def test_a_public_order_has_one_place_and_one_round_for_everybody() -> None:
    text = """
        rounds = 3
        population = { data = "a.csv", column = "x", categories = ["a", "b"], person = "user" }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        targets = { delta = 1e-6 }
        [shuffler]
        kind = "mallows"
        alpha = 1.0
        groups = { column = "age", radius = 1.0 }
    """
    with pytest.raises(SpecificationError) as error:
        parse(text)
    assert "population.person: must be left out with a Mallows shuffle" in str(error.value)
    assert "rounds: must be left out with a Mallows shuffle" in str(error.value)


def test_a_reach_study_is_one_round() -> None:
    text = """
        rounds = 3
        population = { bits = 1000, publishers = [{ name = "a", file = "a.csv" }] }
        randomizer = { kind = "bit-flipping", p = 0.3 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
    """
    with pytest.raises(SpecificationError, match="rounds: must be left out in a reach study"):
        parse(text)
