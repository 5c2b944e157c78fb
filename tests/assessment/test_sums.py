"""The report about a sum: its figures, targets and tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import DataError, InvalidInputError
from hushuffle.model import number
from hushuffle.specification.sums import parse_sum

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_says_who_learns_what_and_what_it_costs() -> None:
    told: list[str] = []
    report = hs.assess(EXAMPLES / "sum.toml", progress=lambda what, _: told.append(what))
    assert told[-1] == "done"
    protocol = parse_sum((EXAMPLES / "sum.toml").read_text(encoding="utf-8")).build(20_000)
    assert report.question == protocol.describe()
    assert [finding.question for finding in report.findings] == ["central-dp", "local-dp"]
    assert report.findings[0].bound == hs.dp.epsilon(protocol, delta=1e-9)
    assert "colluding with 4,000 of the people" in report.findings[0].sentence
    assert report.met
    assert [target.key for target in report.targets] == ["delta", "people", "standard_error", "bits"]
    tables = {table.key: table.rows for table in report.tables}
    assert tables["costs"][2][1] == protocol.bits_per_person / 8
    assert tables["accuracy"][0][1:3] == (protocol.standard_error(), protocol.standard_error() / 20_000)
    assert tables["accuracy"][-1][0] == "16,000 people"
    assert tables["rounds"][0][2] == hs.dp.compose([(protocol, 4)], delta=4e-9)
    assert {row.question for row in report.unanswered} == {"vulnerability", "re-identification"}
    assert [warned.key for warned in report.warnings] == ["one-fake-person", "no-local-privacy", "too-few-people"]
    few = report.warnings[-1]
    assert "needs 16,000 people of 20,000 who answer, are honest" in few.sentence
    assert "Who answers must not depend on the numbers" in few.sentence
    assert "Let the shuffler release nothing if fewer than 16,000 people answer" in few.advice
    assert parse_sum(report.specification).sum.honest == 0.8


def test_the_first_page_says_what_the_claim_rests_on_and_what_happens_otherwise() -> None:
    report = hs.assess(EXAMPLES / "sum.toml")
    protocol = parse_sum((EXAMPLES / "sum.toml").read_text(encoding="utf-8")).build(20_000)
    page = report.statement
    assert page is not None
    assert "with epsilon = 1.000 and delta = 1e-09" in page.claim
    assert "if 16,000 people answer and are honest" in page.claim
    assert "One row of data" not in page.unit
    assert {row.key for row in page.assumptions} >= {"participation", "honest", "shuffler", "withheld"}
    assert "does not depend on the numbers" in " ".join(row.sentence for row in page.assumptions)
    assert "4,000" in page.threats[-1]
    assert f"splits it into {protocol.messages_per_person} messages" in page.respondents[0]
    assert all(row.bound is None for row in page.anonymity)
    (rows,) = (table.rows for table in report.tables if table.key == "cases")
    central = report.findings[0].bound
    assert [row[1] for row in rows[:4]] == [central, central, central, "no guarantee"]
    assert [row[2] for row in rows[:2]] == [
        protocol.standard_error() / 20_000,
        protocol.standard_error(16_000) / 16_000,
    ]
    assert [row[0] for row in rows[3:5]] == [
        "4,001 people do not answer",
        "4,001 people who answer collude with the analyst",
    ]
    assert rows[-1][1] == hs.dp.local_epsilon(protocol)
    with pytest.raises(InvalidInputError, match="too small"):
        protocol.standard_error(20_000 - 4_001)


def test_data_are_counted_and_targets_missed(tmp_path: Path) -> None:
    numbers = np.linspace(-5, 110, 500)
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(map(str, numbers)) + "\n", encoding="utf-8")
    specification = parse_sum("""
        population = { data = "people.csv", column = "age", kind = "number", low = 0, high = 100, levels = 101 }
        sum = { epsilon = 1.0, delta = 1e-2 }
        targets = { standard_error = 0.001, bits = 10, people = 501 }
    """)
    report = hs.assess(specification, base_folder=tmp_path)
    assert report.population is not None
    assert report.population.n == 500
    assert report.statement is not None
    assert report.statement.unit.endswith("Each row of data counts as one person.")
    assert len(report.statement.threats) == 2
    assert [target.word for target in report.targets] == ["fail"] * 4
    keys = [warned.key for warned in report.warnings]
    assert keys == ["numbers-outside", "one-fake-person", "no-local-privacy", "too-few-people", "nobody-may-drop-out"]
    assert len({table.rows[0][0] for table in report.tables if table.key == "accuracy"}) == 1
    with pytest.raises(DataError):
        hs.assess(specification, base_folder=tmp_path / "nowhere")


def test_rounds_are_in_every_figure_and_words_in_the_statement() -> None:
    specification = parse_sum("""
        rounds = 12
        population = { n = 20_000, kind = "number", low = 0, high = 100, levels = 101 }
        sum = { epsilon = 0.2, delta = 1e-9 }
        targets = { epsilon = 2.0 }
        statement = { author = "Anna", shuffler = "Sigma", analyst = "Theta", vouched = { withheld = "a contract" } }
    """)
    report = hs.assess(specification)
    protocol = specification.build(20_000)
    together = hs.dp.compose([(protocol, 12)], delta=specification.delta)
    assert specification.delta == pytest.approx(1.2e-8)
    assert report.findings[0].bound == together
    assert "seeing all messages of all 12 rounds" in report.findings[0].sentence
    assert report.targets[0].got == together
    assert report.targets[0].word == "fail"
    assert report.targets[1].got == hs.Bound.exact(specification.delta, unit="probability")
    page = report.statement
    assert page is not None
    assert "delta = 1.2e-08" in page.claim
    assert page.claim.endswith("answer and are honest, in all 12 rounds.")
    assert "by any other, in all 12 rounds;" in page.unit
    assert page.threats[0].startswith("The analyst (Theta) is not trusted")
    assert page.threats[1].startswith("The shuffler, run by Sigma, is trusted")
    assert any(line.startswith("A shuffler, run by Sigma, mixes") for line in page.respondents)
    assert any(line.startswith("All released sums change") for line in page.respondents)
    vouched = {row.key: row.vouched for row in page.assumptions}
    assert vouched["withheld"] == "a contract"
    assert vouched["honest"] == ""
    assert "more than 12 times" in next(row.sentence for row in page.assumptions if row.key == "no_repeats")
    assert page.facts[0] == ("Author", "Anna")
    (cases,) = (table for table in report.tables if table.key == "cases")
    assert "of all 12 rounds at delta = 1.2e-08" in cases.caption
    assert cases.rows[0][1] == together


def test_what_is_left_of_one_person_and_the_error_on_levels_are_exact() -> None:
    report = hs.assess(EXAMPLES / "sum.toml")
    protocol = parse_sum((EXAMPLES / "sum.toml").read_text(encoding="utf-8")).build(20_000)
    parts = protocol.noise.parts
    none = sum(part**2 for part in parts) / 2**256
    assert protocol.noise.ties == pytest.approx(none, rel=1e-12)
    assert report.findings[1].proof == f"each person adds zero noise with probability {none:.4g}"
    (accuracy,) = (table for table in report.tables if table.key == "accuracy")
    least = protocol.step * np.sqrt(2 * protocol.noise.variance * 20_000)
    assert f"the error of the sum is {number(least, up=True)}." in accuracy.caption
    numbers = np.full(20_000, 60.0)  # on a level
    found = [
        float(hs.estimate_sum(protocol.collect(numbers, rng=hs.reproducible(seed)), protocol=protocol).total[0])
        for seed in range(60)
    ]
    assert 0.7 < np.std(found) / least < 1.35
