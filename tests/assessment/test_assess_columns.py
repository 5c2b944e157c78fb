from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import hushuffle as hs
from hushuffle import report as output
from hushuffle.assessment.columns import SeveralColumns
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.targets import Choice
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import SpecificationError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Bound, Report
from hushuffle.questions.qif.guessing import guarantee_vulnerability
from hushuffle.report.formatting import asked
from hushuffle.specification.reading import Collection, parse_collection

COLUMNS = """
[[columns]]
name = "habit"
column = "smokes"
categories = ["no", "yes"]
missing = "drop"
randomizer = { kind = "randomized-response", epsilon = 1.0 }

[[columns]]
column = "town"
categories = ["a", "b", "c"]
randomizer = { kind = "local-hashing", epsilon = 2.0, g = 4 }
"""
QUICK = COLUMNS.replace('"local-hashing", epsilon = 2.0, g = 4', '"randomized-response", epsilon = 2.0')


def text(*, rounds: int = 1, targets: str = "delta = 1e-6", columns: str = COLUMNS) -> str:
    return f"""
title = "Two questions"
rounds = {rounds}
population = {{ data = "people.csv" }}
shuffler = {{ kind = "uniform" }}
targets = {{ {targets} }}
{columns}
"""


def written(folder: Path) -> Path:
    smokes = ["no", "yes", "no", None] * 100
    pl.DataFrame({"smokes": smokes, "town": ["a", "b", "c", "a"] * 100}).write_csv(folder / "people.csv")
    return folder


def calibrate_columns(
    collection: Collection,
    *,
    base_folder: Path = Path(),
    how: Callable[[SeveralColumns], Choice] = SeveralColumns.calibrate,
) -> Choice:
    return how(SeveralColumns(collection, base_folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture
def no_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out scenarios, which take most of the time of an assessment: they are compared with figures of `twice`."""
    monkeypatch.setattr("hushuffle.assessment.chapters.scenarios", lambda *_, **__: ())


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hushuffle.assessment.chapters.scenarios", lambda *_, **__: ())
        return assess(parse_collection(text()), base_folder=written(tmp_path_factory.mktemp("once")))


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Report:
    more = "\n[statement]\ncolluders = 20\n"
    folder = written(tmp_path_factory.mktemp("twice"))
    return assess(parse_collection(text(rounds=2) + more), base_folder=folder)


def protocols(second: Mechanism | None = None) -> list[hs.Protocol]:
    uniform = hs.UniformShuffle()
    return [
        hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=uniform, n=300),
        hs.Protocol(randomizer=second or hs.LocalHashing(k=3, g=4, epsilon=2.0), shuffler=uniform, n=400),
    ]


def bare(bound: Bound) -> Bound:
    """Return it without the datasets, which are told in words."""
    return replace(bound, witness=None)


def test_what_all_columns_come_to_is_said_first(twice: Report) -> None:
    total, local, *rest = twice.findings
    assert (total.question, local.question) == ("central-dp", "local-dp")
    assert total.bound == bare(hs.dp.compose([(protocol, 2) for protocol in protocols()], delta=1e-6))
    assert local.bound.upper == pytest.approx(6.0)
    assert "your answers to all 2 columns in all 2 rounds" in total.sentence
    assert not [row for row in rest if row.question in ("central-dp", "local-dp")]
    alone = {row.adversary: row for row in rest if row.question == "central-dp-one-round-of-a-column"}
    assert alone["Column habit: Anyone who sees the release of one round"].bound == bare(
        hs.dp.epsilon(protocols()[0], delta=1e-6)
    )
    guesses = [row for row in rest if row.question == "vulnerability"]
    assert [row.adversary.split(":")[0] for row in guesses] == ["Column habit", "Column town"]
    assert [row.bound for row in guesses] == [
        guarantee_vulnerability(k, epsilon=total.bound.upper, delta=1e-6) for k in (2, 3)
    ]
    assert all("from all 2 columns in all 2 rounds" in row.sentence for row in guesses)
    assert [row.question for row in twice.unanswered] == ["re-identification"], "said once"


def test_accuracy_and_people_are_those_of_each_column(once: Report) -> None:
    made = once
    (table,) = made.tables
    assert [(row[0], row[1], row[2]) for row in table.rows] == [("habit", 300, 2), ("town", 400, 3)]
    assert all(isinstance(row[5], float) and 0 < row[5] < 1 for row in table.rows)
    assert table.rows[0][4] == bare(hs.dp.epsilon(protocols()[0], delta=1e-6))
    assert made.population is not None
    assert "400 people, 2 columns; people.csv. Left out: 100 records without an answer. Each row" in asked(
        made.population
    )
    assert any(warned.sentence.startswith("Column habit: ") for warned in made.warnings)


def test_both_epsilons_of_a_column_are_of_the_same_rounds(once: Report, twice: Report) -> None:
    (one,), (two,) = once.tables, twice.tables
    assert one.columns[3:5] == ("local epsilon", "central epsilon")
    assert two.columns[3:5] == ("local epsilon, 2 rounds", "central epsilon, 2 rounds")
    assert "both epsilons cover all 2 rounds" in two.caption
    for row, protocol in zip(two.rows, protocols(), strict=True):
        assert isinstance(row[3], Bound)
        assert isinstance(row[4], Bound)
        assert row[3].upper == pytest.approx(2 * protocol.randomizer.local_epsilon)
        assert row[4] == bare(hs.dp.compose([(protocol, 2)], delta=1e-6))
        assert row[4].upper < row[3].upper


def test_the_first_page_says_what_if_of_all_columns_together(twice: Report) -> None:
    made = twice
    assert made.statement is not None
    cases = {case.key: case for case in made.statement.scenarios}
    assert list(cases) == [
        "as-planned",
        "one-in-4",
        "one-in-10",
        "colluders",
        "fake-users",
        "rounds",
        "broken-shuffler",
    ]

    def composed(sizes: tuple[int, int], times: int) -> Bound:
        rounds = [(replace(protocol, n=n), times) for protocol, n in zip(protocols(), sizes, strict=True)]
        return hs.dp.compose(rounds, delta=1e-6)

    assert cases["as-planned"].central == made.findings[0].bound
    assert cases["one-in-4"].case == "A quarter of the people take part: 100"
    assert cases["one-in-4"].central == composed((75, 100), 2)
    assert cases["colluders"].central == composed((280, 380), 2)
    assert cases["rounds"].central == composed((300, 400), 10)
    broken = cases["broken-shuffler"].central
    assert broken is not None
    assert broken.upper == made.findings[1].bound.upper == pytest.approx(6.0)
    errors = [made.tables[0].rows[place][5] for place in (0, 1)]
    assert cases["as-planned"].standard_error == max(errors)  # type: ignore[type-var]


def test_the_local_total_of_all_columns_is_warned_about(once: Report, twice: Report) -> None:
    first = twice.warnings[0]
    assert first.key == "large-local-epsilon"
    assert first.sentence.startswith("Local epsilon of all 2 columns together in 2 rounds is 6.0")
    assert not [warned for warned in once.warnings if warned.key == "large-local-epsilon"]


@pytest.mark.usefixtures("no_scenarios")
def test_targets_are_for_all_columns(folder: Path) -> None:
    targets = "delta = 1e-6, epsilon = 0.01, standard_error = 0.9, guessing = 0.9, local_epsilon = 2.5"
    made = assess(parse_collection(text(targets=targets)), base_folder=folder)
    got = {target.key: target for target in made.targets}
    assert got["epsilon"].got == made.findings[0].bound
    assert got["epsilon"].met is False
    assert got["local_epsilon"].met is False
    assert got["standard_error"].met is True
    assert got["guessing"].got == guarantee_vulnerability(2, epsilon=made.findings[0].bound.upper, delta=1e-6)


@pytest.mark.usefixtures("no_scenarios")
def test_what_is_asked_of_all_is_written_down_and_read_again(folder: Path) -> None:
    first = parse_collection(text(targets="delta = 1e-6, epsilon = 3.0", rounds=2))
    again = parse_collection(first.effective())
    assert again == first
    assert assess(first, base_folder=folder).specification == first.effective()


@pytest.mark.usefixtures("no_scenarios")
def test_the_command_writes_a_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "survey.toml").write_text(text(targets="delta = 1e-6, epsilon = 0.01"), encoding="utf-8")
    place = folder / "out"
    arguments = ["assess", str(folder / "survey.toml"), "--out", str(place), "--strict"]
    assert main(arguments) == Exit.MISSED
    assert "Column habit:" in capsys.readouterr().out
    document = json.loads((place / "result.json").read_text())
    assert document["findings"][0]["question"] == "central-dp"
    assert document["statement"]["claim"].startswith("The release is")
    assert "Each column" in (place / "report.html").read_text()
    assert parse_collection((place / "specification.toml").read_text()).kind_of_deployment == "columns"


@pytest.mark.slow
def test_columns_are_assessed_and_calibrated_without_data() -> None:
    plan = """
        population = { n = 2000 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6, epsilon = 0.1 }
        [[columns]]
        name = "smokes"
        k = 2
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        [[columns]]
        name = "town"
        categories = ["a", "b", "c"]
        randomizer = { kind = "randomized-response", epsilon = 0.5 }
    """
    made = assess(parse_collection(plan))
    parts = [
        hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=2000)
        for k, epsilon in ((2, 1.0), (3, 0.5))
    ]
    assert made.findings[0].bound == bare(hs.dp.compose(parts, delta=1e-6))
    assert made.statement is not None
    assert made.statement.unit == "One person, whose values in all 2 columns are replaced by any others."
    page = output.html(made)
    assert "Each row counts as one person" not in page
    assert "row of data" not in page
    assert made.population is not None
    assert "2,000 people, 2 columns" in asked(made.population)
    assert calibrate_columns(parse_collection(plan)).proposed.central.upper <= 0.1


def test_without_noise_nothing_is_promised(folder: Path) -> None:
    bare = COLUMNS.replace("epsilon = 1.0", 'epsilon = "inf"')
    made = assess(parse_collection(text(columns=bare)), base_folder=folder)
    assert made.findings[0].bound.upper == float("inf")
    assert "No differential privacy" in made.findings[0].sentence
    assert "practically readable" in made.findings[1].sentence
    assert "infinity" in output.to_json(made)


@pytest.mark.slow
def test_one_factor_for_the_noise_of_all_columns_meets_the_target_together(folder: Path) -> None:
    collection = parse_collection(text(rounds=2, targets="delta = 1e-6, epsilon = 0.5", columns=QUICK))
    choice = calibrate_columns(collection, base_folder=folder)
    assert choice.met
    rounds = [
        (protocol.randomizer.with_epsilon(point.local_epsilon), protocol.n)
        for protocol, point in zip(protocols(hs.RandomizedResponse(k=3, epsilon=2.0)), choice.columns, strict=True)
    ]
    uniform = hs.UniformShuffle()
    again = [(hs.Protocol(randomizer=one, shuffler=uniform, n=n), 2) for one, n in rounds]
    assert hs.dp.compose(again, delta=1e-6).upper == pytest.approx(choice.proposed.central.upper, rel=1e-9)
    assert 0.499 < choice.proposed.central.upper <= 0.5
    written = [protocol.randomizer.local_epsilon for protocol in protocols(hs.RandomizedResponse(k=3, epsilon=2.0))]
    assert [point.settings["written_local_epsilon"] for point in choice.columns] == written
    assert [point.local_epsilon / own for point, own in zip(choice.columns, written, strict=True)] == pytest.approx(
        [choice.proposed.settings["factor"]] * 2
    )


def test_the_program_calibrates_several_columns(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    targets = "delta = 1e-6, epsilon = 0.5, standard_error = 0.01"
    Path("two.toml").write_text(text(targets=targets, columns=QUICK), encoding="utf-8")
    found = functools.cache(lambda: calibrate_columns(parse_collection(Path("two.toml").read_text("utf-8"))))
    monkeypatch.setattr(SeveralColumns, "calibrate", lambda *_, **__: found())
    assert main(["calibrate", "two.toml", "--strict"]) == Exit.MISSED
    said = capsys.readouterr()
    assert said.err.startswith("hushuffle: target not met: Standard error: asked at most 0.01, got")
    assert "PASS Central epsilon, at delta = 1e-06: asked at most 0.5, got" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert main(["calibrate", "two.toml", "--json"]) == Exit.DONE
    found = json.loads(capsys.readouterr().out)
    assert [column["name"] for column in found["columns"]] == ["habit", "town"]
    assert found["met"] is False


def test_columns_that_cannot_be_calibrated(folder: Path) -> None:
    with pytest.raises(SpecificationError, match=r"targets\.epsilon: must be given to calibrate"):
        calibrate_columns(parse_collection(text()), base_folder=folder)
    open_answers = COLUMNS.replace("epsilon = 1.0", 'epsilon = "inf"')
    with pytest.raises(UnsupportedProtocolError, match="Column habit has no finite local epsilon"):
        calibrate_columns(
            parse_collection(text(targets="delta = 1e-6, epsilon = 0.5", columns=open_answers)), base_folder=folder
        )


@pytest.mark.usefixtures("no_scenarios")
def test_the_first_page_is_about_all_columns(folder: Path) -> None:
    asked_for = f'{text()}\n[statement]\nauthor = "Office"\nshuffler = "Trust"\n'
    collection = parse_collection(asked_for)
    assert parse_collection(collection.effective()).effective() == collection.effective()
    made = assess(collection, base_folder=folder)
    said = made.statement
    assert said is not None
    assert said.unit.startswith("One person, whose values in all 2 columns are replaced by any others")
    assert f"epsilon = {made.findings[0].bound.upper:.3f}"[:-1] in said.claim
    assert "Your device changes each of your answers at random before it sends it." in said.respondents
    assert dict(said.facts)["Author"] == "Office"
    other = assess(parse_collection(asked_for.replace('"no", "yes"', '"no", "yes", "x"')), base_folder=folder)
    assert other.statement is not None
    assert dict(other.statement.facts).keys() == dict(said.facts).keys()
    digests = [dict(page.facts)["Columns and categories, SHA-256"] for page in (said, other.statement)]
    assert digests[0] != digests[1]


def test_datasets_of_a_column_are_told_in_its_own_categories(once: Report) -> None:
    """They were told in the names of the columns: target "habit" against "town"."""
    made = once
    assert not [row for row in made.findings if row.bound.witness is not None]
    (first,) = [row for row in made.findings if row.adversary == "Column habit: Anyone who sees the release"]
    assert 'target "no" against "yes"' in first.proof or 'target "yes" against "no"' in first.proof
    assert 'against "town"' not in output.html(made)


@pytest.mark.usefixtures("no_scenarios")
def test_a_column_of_numbers_says_what_they_are_rounded_to(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,town\n" + "31,a\n52,b\n" * 20, encoding="utf-8")
    made = assess(
        parse_collection(
            '[population]\ndata = "people.csv"\n[shuffler]\nkind = "uniform"\n[targets]\ndelta = 1e-3\n'
            '[[columns]]\ncolumn = "age"\nkind = "number"\nlow = 0\nhigh = 80\nlevels = 3\n'
            'randomizer = { kind = "randomized-response", epsilon = 1.0 }\n'
            '[[columns]]\ncolumn = "town"\ncategories = ["a", "b"]\n'
            'randomizer = { kind = "randomized-response", epsilon = 1.0 }\n'
        ),
        base_folder=tmp_path,
    )
    age, town = made.question.split(" Column town: ")
    assert "Numbers from 0 to 80 are rounded stochastically to 3 levels, 40 apart" in age
    assert "levels" not in town
