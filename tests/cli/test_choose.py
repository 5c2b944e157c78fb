from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
from hushuffle.assessment.choose import Choices, choose
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.cli.init import _FAILED, _RELEASE, _REVEALED, _SHUFFLER, usual_delta
from hushuffle.specification import load, parse

WISHES = """
population = { n = 60, k = 2 }
targets = { delta = 1e-6, standard_error = 0.1, TARGETS }
"""
DEPLOYMENT = """
population = { n = 300, k = 2 }
randomizer = { kind = "randomized-response", epsilon = EPSILON }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6, standard_error = 0.05, epsilon = 1.0 }
"""
Type = Callable[[str], None]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Type:
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def wished(targets: str) -> str:
    Path("wishes.toml").write_text(WISHES.replace("TARGETS", targets), encoding="utf-8")
    return "wishes.toml"


def test_choose_prints_writes_and_never_mixes_two_choices(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["choose", wished("epsilon = 1.0, local_epsilon = 2.6"), "--out", "new"]
    assert main([*command, "--strict"]) == Exit.DONE
    said = capsys.readouterr()
    assert said.err == ""
    assert max(map(len, said.out.splitlines())) <= 80
    files = {path.name for path in Path("new").iterdir()}
    deployments = sorted(name for name in files if name.endswith(".toml"))
    assert files == {"study.html", "study.json", *deployments}
    table = json.loads(Path("new/study.json").read_text(encoding="utf-8"))["tables"][0]
    assert len(table["rows"]) == len(deployments) > 0
    assert all(load(Path("new") / name).targets.epsilon == 1.0 for name in deployments)
    assert main(command) == Exit.USAGE
    assert "holds 1-" in capsys.readouterr().err


def test_choose_says_what_would_have_to_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = wished("epsilon = 0.01")
    answers: list[Choices] = []

    def chosen(*given: Any, **options: Any) -> Choices:
        """Answer the same question once."""
        answers.extend([] if answers else [choose(*given, **options)])
        return answers[0]

    monkeypatch.setattr("hushuffle.assessment.choose.choose", chosen)
    assert main(["choose", asked, "--out", "a"]) == Exit.DONE
    said = capsys.readouterr()
    assert "Nothing meets all targets." in said.out
    assert "With targets.epsilon = " in said.out
    assert said.err == "hushuffle: nothing meets all targets.\n"
    assert not list(Path("a").glob("*.toml"))
    assert main(["choose", asked, "--out", "b", "--strict", "--json"]) == Exit.MISSED
    assert json.loads(capsys.readouterr().out)["key"] == "choice"


def test_choose_takes_limits_of_messages_and_bits(capsys: pytest.CaptureFixture[str]) -> None:
    asked = wished("epsilon = 1.4")
    limits = ["--most-messages", "2.5", "--most-bits", "2.4", "--honest", "0.9"]
    assert main(["choose", asked, "--out", "new", "--json", *limits]) == Exit.DONE
    table = json.loads(capsys.readouterr().out)["tables"][0]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    (several,) = [row for row in rows if row["local epsilon"] == "none"]
    assert 1 < several["messages"] == several["bits"] <= 2.4
    file = f"new/{several['deployment'].partition('.')[0]}-true-reports.toml"
    assert load(file).shuffler.model_dump()["honest"] == 0.9
    for option, value in (("messages", "0.5"), ("bits", "0"), ("messages", "nan")):
        assert main(["choose", asked, "--out", "other", f"--most-{option}", value]) == Exit.USAGE
        assert f"--most-{option} must be" in capsys.readouterr().err
    assert main(["choose", asked, "--out", "other", "--honest", "0"]) == Exit.USAGE
    assert not Path("other").exists()


def test_choose_compares_a_sum_with_noisy_reports(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sum.toml").write_text(
        """
        population = { n = 60, kind = "number", low = 0, high = 10, levels = 3 }
        sum = { epsilon = 1.0, delta = 1e-4 }
        targets = { standard_error = 2.0 }
        """,
        encoding="utf-8",
    )
    assert main(["choose", "sum.toml", "--out", "new"]) == Exit.DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert "standard error of the mean at most 2" in shown
    files = sorted(path.name for path in Path("new").glob("*.toml"))
    sums = [name for name in files if "sum-by-several-messages" in name]
    assert 0 < len(sums) < len(files)
    for name in {files[-1], sums[-1]}:
        assert main(["compare", f"new/{files[0]}", f"new/{name}"]) == Exit.DONE
    capsys.readouterr()
    assert main(["choose", "sum.toml", "--most-messages", "1"]) == Exit.DONE
    assert "sum by several messages (" not in capsys.readouterr().out.partition("What does not meet")[0]


def test_choose_refuses_before_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose", wished("epsilon = 0.5"), "--most-dummies", "-1"]) == Exit.USAGE
    assert main(["choose", wished("epsilom = 0.5")]) == Exit.USAGE
    assert "epsilom" in capsys.readouterr().err
    hopeless = wished("epsilon = 0.5")
    Path(hopeless).write_text(Path(hopeless).read_text(encoding="utf-8").replace("1e-6", "0.1"), encoding="utf-8")
    assert main(["choose", hopeless]) == Exit.USAGE
    assert capsys.readouterr().err.startswith("hushuffle: wishes.toml: 1 problem\n  targets.delta")
    assert {path.name for path in Path().iterdir()} == {"wishes.toml"}


def deployments(*epsilons: float) -> list[str]:
    names = []
    for place, epsilon in enumerate(epsilons):
        names.append(f"{'abc'[place]}.toml")
        Path(names[-1]).write_text(DEPLOYMENT.replace("EPSILON", str(epsilon)), encoding="utf-8")
    return names


@pytest.mark.usefixtures("no_charts")
def test_compare_has_the_figures_and_verdicts_of_assess(capsys: pytest.CaptureFixture[str]) -> None:
    files = deployments(1.5, 0.2)
    assert main(["compare", *files, "--out", "new"]) == Exit.DONE
    said = capsys.readouterr()
    assert max(map(len, said.out.splitlines())) <= 80
    document = json.loads(Path("new/study.json").read_text(encoding="utf-8"))
    figures, targets, keys = document["tables"]
    rows = {row[0]: row[1:] for row in figures["rows"]}
    judged = {row[0]: row[1:] for row in targets["rows"]}
    assert figures["columns"] == ["", "a", "b", "differs"]
    for place, file in enumerate(files):
        made = hs.assess(file)
        found = {one.question: one.figure for one in made.findings}
        for question, name in (("central-dp", "central epsilon"), ("re-identification", "naming a sender")):
            assert rows[name][place]["upper"] == found[question].upper
        guesses = [one.figure.upper for one in made.findings if one.question == "vulnerability"]
        assert rows["guessing an answer"][place]["upper"] == max(guesses)
        for target in made.targets:
            assert judged[target.topic.partition(",")[0]][place].startswith(f"{target.word} (")
    assert rows["central epsilon"][-1] == rows["standard error"][-1] == "differs"
    assert rows["mechanism"] == ["randomized-response", "randomized-response", ""]
    assert rows["people"] == ["300", "300", ""]
    assert keys["rows"] == [["randomizer.epsilon", "1.5", "0.2"]]
    assert judged["Standard error"][:2] == ["pass (at most 0.05)", "fail (at most 0.05)"]


@pytest.mark.usefixtures("no_charts")
def test_compare_of_the_same_file_marks_nothing_and_strict_ends_with_a_missed_target() -> None:
    (file,) = deployments(0.2)
    assert main(["compare", file, file, "--out", "new", "--strict"]) == Exit.MISSED
    tables = json.loads(Path("new/study.json").read_text(encoding="utf-8"))["tables"]
    assert [table["key"] for table in tables] == ["figures", "targets"]
    assert tables[0]["columns"] == ["", "1. a", "2. a", "differs"]
    assert all(row[-1] == "" for table in tables for row in table["rows"])


def test_compare_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = deployments(1.0)
    assert main(["compare", file]) == Exit.USAGE
    Path("several.toml").write_text(
        """
        population = { n = 300 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        [[columns]]
        name = "one"
        k = 2
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        [[columns]]
        name = "two"
        k = 2
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        """,
        encoding="utf-8",
    )
    assert main(["compare", file, "several.toml"]) == Exit.DONE
    assert "2 columns: randomized-response" in capsys.readouterr().out


@pytest.mark.usefixtures("no_charts")
def test_init_with_empty_lines_writes_what_assess_takes(typed: Type, capsys: pytest.CaptureFixture[str]) -> None:
    typed("\n" * 9)
    assert main(["init"]) == Exit.DONE
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "9. Who is the analyst" in said, "how often answers change is asked only of several rounds"
    text = Path("survey.toml").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80
    assert sum(line.startswith("# ") for line in text.splitlines()) >= 5
    specification = parse(text)
    targets = specification.targets
    assert (targets.delta, targets.standard_error) == (1e-6, 0.01)
    assert (targets.epsilon, targets.local_epsilon) == (0.5, 4.0)
    assert hs.assess(specification).met
    typed("\n" * 9)
    assert main(["init"]) == Exit.USAGE
    assert Path("survey.toml").read_text(encoding="utf-8") == text


WEEKLY = {
    "kept, stays": ("no, yes", "12.000", "52", "0", "1", "2", "c", "b"),
    "kept, changes": ("no, yes", "900k", "52", "9", "1", "2", "2", "c"),
    "changes, so fresh": ("never, weekly, daily", "12 000", "12", "3", "1", "3", "c", "d"),
    "fresh": ("4", "50,000", "4", "often", "1", "2", "b", "d"),
    "several reports": ("no, yes", "20,000", "2", "often", "2", "3", "c", "d"),
    "asked once, several reports": ("no, yes", "30k", "1", "3", "3", "c", "c"),
}


@pytest.mark.usefixtures("no_charts")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "several" in name else ()) for name in WEEKLY]
)
def test_what_init_writes_for_repeated_questions_meets_its_own_targets(name: str, typed: Type) -> None:
    typed("\n".join([*WEEKLY[name], "Trust Ltd", "-"]) + "\n")
    assert main(["init"]) == Exit.DONE
    specification = load("survey.toml")
    assert specification.statement.shuffler == "Trust Ltd"
    assert specification.statement.analyst is None
    assert specification.memoised is (True if name.startswith("kept") else None)
    report = hs.assess(specification)
    assert report.met, [target.sentence for target in report.targets]


@pytest.mark.slow
@pytest.mark.usefixtures("no_charts")
def test_init_says_what_would_do_where_no_design_meets_the_targets(
    typed: Type, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("no, yes\n1000\n8\n5\n1\n3\nc\nb\n\n\n")
    assert main(["init"]) == Exit.MISSED
    said = " ".join(capsys.readouterr().out.split())
    people = re.search(
        r"- With ([\d,]+) people, this deployment meets all targets: randomized response with local epsilon [\d.]+, a "
        r"uniform shuffle, 8 rounds with memoized reports",
        said,
    )
    local = re.search(r"- With targets\.local_epsilon = ([\d.]+), this deployment meets all targets: randomized", said)
    assert people
    assert local
    assert not Path("survey.toml").exists()
    for number, limit in ((people[1], "b"), ("1000", local[1])):
        typed(f"no, yes\n{number}\n8\n5\n1\n3\nc\n{limit}\n\n\n")
        assert main(["init"]) == Exit.DONE
        assert hs.assess(load("survey.toml")).met
        Path("survey.toml").unlink()


def test_init_asks_again_and_takes_answers(
    typed: Type, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("one\nnever; daily\nred,red\n1\n3\n many\n1.5\n50,000,000\n\n0\n\nx\n2 %\nz\nA\nD\n\n\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["init", "new.toml"]) == Exit.DONE
    said = capsys.readouterr().out
    for message in (
        "two answers or more, separated by commas",
        "each answer once",
        "from 2 to 1,000,000, for example 12,000.",
        "from 2 to 1,000,000,000, for example 12,000.",
        "from 1 to 10,000.",
        "below 50, for example 0.5.",
        "one of a, b, c, or",
    ):
        assert message in said
    specification = load("new.toml")
    targets = specification.targets
    assert (targets.delta, targets.standard_error) == (1e-9, 0.02)
    assert (targets.epsilon, targets.local_epsilon) == (0.1, None)


def test_init_that_ends_early_or_finds_nothing_leaves_nothing(
    typed: Type, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("\n\n")
    assert main(["init"]) == Exit.USAGE
    assert "The input ended before question 3" in capsys.readouterr().err
    typed("\nmany\n1\n")
    assert main(["init"]) == Exit.USAGE
    assert "question 2: Give a whole number" in capsys.readouterr().err, "of a pipe no answer moves to another question"
    typed("\n100\n\n\n0.1\na\na\n\n\n")
    assert main(["init"]) == Exit.MISSED
    assert "- With " in capsys.readouterr().out
    typed("\n" * 9)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hushuffle.assessment.proposed.chosen", interrupted)
    assert main(["init"]) == Exit.INTERRUPTED
    assert list(Path().iterdir()) == []


def test_the_odds_in_the_questions_are_those_of_the_epsilons() -> None:
    for words, epsilons in ((_REVEALED, _RELEASE), (_SHUFFLER, _FAILED)):
        found = re.findall(r"^   ([a-d]) .*?(\d+):(\d+) at most \(epsilon ([\d.]+)\)$", words, re.MULTILINE)
        assert len(found) == 3
        for letter, more, less, epsilon in found:
            assert epsilons[letter] == float(epsilon)
            assert int(more) == math.ceil(100 / (1 + math.exp(-float(epsilon))))
            assert int(more) + int(less) == 100


@pytest.mark.parametrize("n", [2, 99_999, 100_000, 10**6, 10**9])
def test_the_delta_of_init_is_at_most_a_tenth_of_one_over_n(n: int) -> None:
    assert usual_delta(n) <= min(0.1 / n * 1.0001, 1e-6)


@pytest.mark.usefixtures("no_charts")
def test_nothing_is_written_unless_a_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choose", wished("epsilon = 1.0, local_epsilon = 2.6")]) == Exit.DONE
    assert "No file was written. Use --out DIR to write" in capsys.readouterr().out
    files = deployments(1.5, 0.2)
    assert main(["compare", *files, "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["key"] == "comparison"
    assert {path.name for path in Path().iterdir()} == {"wishes.toml", *files}


@pytest.mark.usefixtures("no_charts")
def test_compare_shows_every_deployment_at_80_columns_and_its_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    files = deployments(1.5, 0.2, 1.0)
    Path("weekly.toml").write_text("rounds = 3\n" + Path(files[0]).read_text(encoding="utf-8"), encoding="utf-8")
    memoized = "rounds = 3\nmemoised = true\nchanges = 1\n"
    Path("memoized.toml").write_text(memoized + Path(files[0]).read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["compare", *files, "weekly.toml", "memoized.toml"]) == Exit.DONE
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "Columns in" not in text
    (figures,) = re.findall(r"Figures of each deployment\n(.*?)\nTargets", text, re.DOTALL)
    assert {"a", "b", "c", "weekly", "memoized"} <= set(figures.split())
    for row in ("rounds", "reports", "standard error", "bits of each person", "messages of each person"):
        assert re.search(rf"^{row}", figures, re.MULTILINE)
    assert "fresh in every round" in " ".join(figures.split())
