from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

import hushuffle as hs
from assessment.test_targets import made, spec
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.scenarios import scenarios
from hushuffle.model import Report, Statement, number
from hushuffle.specification import parse
from hushuffle.specification.exposure import Exposure
from plain_protocols import Opaque

STATEMENT = """
[statement]
author = "Example Ltd."
shuffler = "Example Trust"
analyst = "people analytics"
colluders = 50
[statement.vouched]
one_answer = "the works council"
"""


def first(report: Report) -> Statement:
    assert report.statement is not None
    return report.statement


def everything(statement: Statement) -> str:
    rows = [*statement.threats, *statement.respondents, *statement.unprotected]
    rows += [row.sentence for row in statement.assumptions]
    return "\n".join([statement.claim, statement.unit, *rows])


def test_the_claim_is_the_certified_figure() -> None:
    report = made()
    bound = report.findings[0].bound
    claimed, factor = re.findall(r"epsilon = ([\d.]+) and .* a factor ([\d.]+),", first(report).claim)[0]
    assert bound.upper <= float(claimed) <= bound.upper * 1.001
    assert math.exp(bound.upper) <= float(factor) <= math.exp(bound.upper) * 1.001


def test_who_runs_and_vouches_is_said_where_it_is_known() -> None:
    named = everything(first(made(rest=STATEMENT)))
    assert "(people analytics)" in named
    assert named.count("run by Example Trust,") == 2
    report = made(rest=STATEMENT)
    assert [row.vouched for row in first(report).assumptions] == ["the works council", "", "", "", ""]
    assert dict(first(report).facts)["Author"] == "Example Ltd."
    assert "set statement.shuffler" in everything(first(made()))


def test_what_was_asked_and_who_asks_have_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    same, again, noise, categories = (
        dict(first(report).facts) for report in (made(), made(), made(noise=1.0), made(k=3))
    )
    assert same == again
    assert same["Date"].startswith("1970-01-02, by hushuffle ")
    whole, columns = "Specification, SHA-256", "Columns and categories, SHA-256"
    assert all(re.fullmatch("[0-9a-f]{64}", same[name]) for name in (whole, columns))
    assert noise[columns] == same[columns]
    assert noise[whole] != same[whole]
    assert categories[columns] != same[columns]


def test_without_a_shuffler_nobody_is_trusted_with_one() -> None:
    said = first(made(shuffler="none"))
    assert "There is no shuffler: reports are seen with their senders." in said.threats
    assert "shuffler" not in {row.key for row in said.assumptions}
    assert not any("shuffler" in sentence for sentence in said.respondents)


def test_without_noise_nothing_is_promised() -> None:
    said = first(made(noise='"inf"'))
    assert said.claim.startswith("No differential privacy")
    assert "Your device sends your answer as it is." in said.respondents
    assert any("nothing protects" in sentence for sentence in said.threats)
    assert not any("factor" in sentence for sentence in said.respondents)


def test_what_nobody_asked_is_not_protected() -> None:
    rest = 'adversaries = [{ kind = "linker" }]'
    said = first(assess(parse(f"{rest}\n{spec()}")))
    assert any("How often an adversary can guess a person's answer" in sentence for sentence in said.unprotected)
    rows = {row.key: row for row in said.anonymity}
    assert rows["inference"].bound is None
    assert rows["inference"].sentence.startswith("This was not analysed")
    assert rows["singling-out"].bound is not None


def test_the_three_questions_have_the_figures_of_the_findings() -> None:
    report = made()
    shown = {finding.question: finding.figure for finding in report.findings}
    rows = {row.key: row.bound for row in first(report).anonymity}
    assert rows["singling-out"] == shown["re-identification"]
    assert rows["linkability"] == shown["identity-information"]


def survey(n: int = 400) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.5), shuffler=hs.UniformShuffle(), n=n)


def test_every_case_costs_privacy_or_accuracy() -> None:
    rows = {row.key: row for row in scenarios([survey()], delta=1e-6, colluders=100)}
    planned = rows["as-planned"].central
    assert planned == hs.dp.epsilon(survey(), delta=1e-6)
    for key, row in rows.items():
        assert row.central is not None
        assert row.standard_error is not None
        if key != "as-planned":
            assert planned is not None
            assert row.central.upper > planned.upper, key
    assert rows["colluders"].central == hs.dp.epsilon(survey(300), delta=1e-6)
    assert rows["one-in-4"].central == hs.dp.epsilon(survey(100), delta=1e-6)
    assert rows["rounds"].central == hs.dp.compose([(survey(), 5)], delta=1e-6)
    assert rows["broken-shuffler"].central == hs.dp.local_epsilon(survey())


def test_colluders_are_one_in_a_hundred_and_at_least_one() -> None:
    assert (
        "4 people collude"
        in {row.key: row.case for row in scenarios([survey()], delta=1e-6, colluders=None)}["colluders"]
    )
    assert (
        "1 person colludes"
        in {row.key: row.case for row in scenarios([survey(7)], delta=1e-6, colluders=None)}["colluders"]
    )


def test_fake_users_know_what_colluders_know_and_move_shares() -> None:
    for shuffler in (hs.UniformShuffle(), hs.Scrambler(dummies=50)):
        protocol = replace(survey(), shuffler=shuffler)
        rows = {row.key: row for row in scenarios([protocol], delta=1e-6, colluders=100)}
        fewer = hs.dp.epsilon(replace(protocol, n=300), delta=1e-6)
        assert rows["colluders"].central == rows["fake-users"].central == fewer, "the dummies stay"
        assert rows["fake-users"].standard_error == rows["as-planned"].standard_error
        gain = hs.poisoning_gain(protocol, fakes=100)
        moved = number(gain.raised.upper, up=True, digits=2)
        assert rows["fake-users"].case == f"100 Sybil clients send arbitrary reports: a share moves by up to {moved}"
    small = {row.key: row for row in scenarios([survey(7)], delta=1e-6, colluders=None)}
    assert small["fake-users"].case.startswith("1 Sybil client sends arbitrary reports: a share")


def test_fake_users_of_several_columns_and_with_several_reports() -> None:
    tight = replace(survey(), randomizer=hs.RandomizedResponse(k=3, epsilon=4.0))
    both = {row.key: row for row in scenarios([tight, survey()], delta=1e-6, colluders=20)}
    alone = {row.key: row for row in scenarios([survey()], delta=1e-6, colluders=20)}
    assert both["fake-users"].case == alone["fake-users"].case, "of the column that they move furthest"
    several = {row.key: row for row in scenarios([survey()], delta=1e-6, colluders=20, exposure=Exposure(reports=3))}
    gain = hs.poisoning_gain(survey(), fakes=20, reports_per_person=3)
    assert several["fake-users"].case.endswith(f"up to {number(gain.raised.upper, up=True, digits=2)}")
    assert several["fake-users"].case.startswith("20 Sybil clients")
    alone = {row.key: row for row in scenarios([survey(2)], delta=1e-6, colluders=1, exposure=Exposure(reports=3))}
    assert alone["fake-users"].central is None
    whole = hs.poisoning_gain(survey(2), fakes=2)
    assert alone["fake-users"].case.endswith(f"up to {number(whole.raised.upper, up=True, digits=2)}")


def test_what_cannot_be_estimated_cannot_be_moved() -> None:
    opaque = replace(survey(), randomizer=Opaque())
    rows = {row.key: row for row in scenarios([opaque], delta=1e-6, colluders=5)}
    assert rows["fake-users"].case == "5 Sybil clients send arbitrary reports"
    assert rows["fake-users"].remark


def test_a_crowd_of_colluders_and_a_crowd_of_one() -> None:
    rows = {row.key: row for row in scenarios([survey(1)], delta=1e-6, colluders=None)}
    assert rows["colluders"].central is None
    assert rows["colluders"].remark.startswith("No honest people remain")
    assert "one-in-4" not in rows


def test_a_case_without_a_figure_says_why() -> None:
    order = hs.Protocol(
        randomizer=hs.RandomizedResponse(k=2, epsilon=1.0),
        shuffler=hs.MallowsShuffle(reference=range(20), theta=0.5),
        n=20,
    )
    rows = {row.key: row for row in scenarios([order], delta=1e-6, colluders=None)}
    assert rows["one-in-4"].central is None
    assert rows["one-in-4"].remark == "The public order is of 20 people. Assess that of 5."
    assert rows["broken-shuffler"].central is not None


def test_a_figure_never_contradicts_its_sentence() -> None:
    """An error rate of 0.9999 stood beside "names the right person at most 0.006 %"."""
    report = made()
    for finding in report.findings:
        if finding.figure.unit == "probability" and finding.question != "membership-inference":  # it gives two rates
            said = re.findall(r"([\d.]+) %", finding.sentence)[0]
            assert float(said) / 100 == pytest.approx(finding.figure.upper, rel=2e-3)
        if finding.figure.unit == "bits":
            said = re.findall(r"([\d.]+) bits", finding.sentence)[0]
            assert float(said) == pytest.approx(finding.figure.upper, rel=6e-4)


def test_colluders_are_all_honest_people_where_only_these_hide_somebody() -> None:
    truth = hs.RandomizedResponse(k=10, epsilon=float("inf"))
    planned = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.99, honest=0.05), n=10_000)
    left = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.99), n=400)  # of 500 honest people
    rows = {row.key: row for row in scenarios([planned], delta=1e-4, colluders=100)}
    fewer = hs.dp.epsilon(left, delta=1e-4)
    assert rows["colluders"].central == rows["fake-users"].central == fewer
    assert round(fewer.upper, 4) == 0.7216
    assert rows["one-in-4"].central == hs.dp.epsilon(replace(left, n=125), delta=1e-4)
    nobody = {row.key: row for row in scenarios([planned], delta=1e-4, colluders=500)}["colluders"]
    assert (nobody.central, nobody.remark[:23]) == (None, "No honest people remain")
