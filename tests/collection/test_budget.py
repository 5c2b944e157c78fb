from __future__ import annotations

import os
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection import collect as module
from hushuffle.collection.budget import Budget, opened
from hushuffle.collection.collect import Collected, collect
from hushuffle.collection.request import Keys
from hushuffle.errors import DataError
from hushuffle.specification import parse
from key_memory import new_key

DELTA = 1e-6


def specification(epsilon: float = 1.0, *, most: int = 1) -> str:
    person = f', person = "user", reports_per_person = {most}' if most > 1 else ""
    return f"""
        population = {{ data = "people.csv", column = "answer", categories = ["a", "b", "c"]{person} }}
        randomizer = {{ kind = "randomized-response", epsilon = {epsilon} }}
        shuffler = {{ kind = "uniform" }}
        targets = {{ delta = 1e-6 }}
    """


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pl.DataFrame(
        {"id": range(300), "user": [number // 3 for number in range(300)], "answer": ["a", "b", "c"] * 100}
    )
    table.write_csv(tmp_path / "people.csv")
    (tmp_path / "panel.toml").write_text("# the panel\nepsilon = 1.0\ndelta = 1e-6\n")
    (tmp_path / "panel.toml").chmod(0o644)
    new_key(tmp_path / "my.key")
    return tmp_path


def run(folder: Path, out: str, *, epsilon: float = 1.0, most: int = 1, **more: Any) -> Collected:
    spec = parse(specification(epsilon, most=most))
    return collect(spec, out=folder / out, base_folder=folder, budget=folder / "panel.toml", **more)


def protocol(epsilon: float = 1.0, n: int = 300) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def written(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "panel.toml").read_text())


def limit(folder: Path, epsilon: float) -> None:
    (folder / "panel.toml").write_text(f"epsilon = {epsilon}\ndelta = 1e-6\n")


def test_collections_add_up_as_rounds_with_the_same_people(folder: Path) -> None:
    first = run(folder, "one")
    assert first.spent is not None
    assert first.spent.epsilon == hs.dp.epsilon(protocol(), delta=DELTA).upper
    second = run(folder, "two", epsilon=0.5, most=2)
    assert second.spent is not None
    rounds: list[Any] = [protocol(), hs.dp.per_person(protocol(0.5, 200), reports=2)]
    assert second.spent.epsilon == pytest.approx(hs.dp.compose(rounds, delta=DELTA).upper, rel=1e-9)
    assert second.spent.collections == 2
    kept = written(folder)
    assert (kept["epsilon"], kept["delta"], len(kept["released"])) == (1.0, 1e-6, 2)
    assert kept["released"][1]["total"] == second.spent.epsilon
    assert (folder / "panel.toml").read_text().startswith("# the panel\n")
    assert (folder / "panel.toml").stat().st_mode & 0o777 == 0o600


def test_what_exceeds_the_limit_does_not_leave_and_is_not_noted(folder: Path) -> None:
    once = hs.dp.epsilon(protocol(), delta=DELTA).upper
    limit(folder, once * 1.1)
    run(folder, "one")
    before = (folder / "panel.toml").read_bytes()
    with pytest.raises(DataError, match=r"is used; with this collection it would be .*: nothing was released"):
        run(folder, "two")
    assert not (folder / "two").exists()
    assert (folder / "panel.toml").read_bytes() == before
    run(folder, "small", epsilon=0.01)  # there is room for that


def test_a_budget_that_is_used_up_is_refused_before_anything_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(folder, "one")
    kept = (folder / "panel.toml").read_text()
    (folder / "panel.toml").write_text(kept.replace("epsilon = 1.0\n", "epsilon = 0.1\n", 1))
    monkeypatch.setattr(module, "prepare", lambda *_: pytest.fail("it was read"))
    with pytest.raises(
        DataError, match=r"is used up: central epsilon .* of 0\.1 at delta = 1e-06\. No data were read\."
    ):
        run(folder, "two")


def test_what_was_noted_counts_if_the_run_ends_before_it_appears(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "publish", stop)
        with pytest.raises(KeyboardInterrupt):
            run(folder, "one")
    assert not (folder / "one").exists()
    assert len(written(folder)["released"]) == 1
    again = run(folder, "one")
    assert again.spent is not None
    assert again.spent.collections == 2


def test_a_failure_before_it_is_noted_costs_nothing(folder: Path) -> None:
    before = (folder / "panel.toml").read_bytes()
    with pytest.raises(DataError, match="fewer than the 1,000"):
        run(folder, "one", min_batch=1000)
    assert (folder / "panel.toml").read_bytes() == before


def test_a_repetition_with_a_key_costs_nothing_and_fresh_coins_do(folder: Path) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    first, again = run(folder, "one", keys=keys), run(folder, "again", keys=keys)
    assert again.repeated
    assert first.spent == again.spent
    assert len(written(folder)["released"]) == 1
    fresh = run(folder, "fresh")
    assert fresh.spent is not None
    assert fresh.spent.collections == 2
    later = run(folder, "later", keys=Keys(file=folder / "my.key", ids="id", round=1))
    assert later.spent is not None
    assert later.spent.collections == 3


def test_collections_at_once_wait_for_each_other(folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda place: run(folder, f"out-{place}", epsilon=0.3), range(4)))
    assert len(written(folder)["released"]) == 4
    assert sorted(one.spent.collections for one in found if one.spent is not None) == [1, 2, 3, 4]


def test_a_budget_with_a_second_name_is_refused(folder: Path) -> None:
    """A hard link became a budget of its own as soon as the first name was written anew."""
    (folder / "second.toml").hardlink_to(folder / "panel.toml")
    for _ in range(2):
        with pytest.raises(DataError, match=r"panel\.toml has 2 names \(hard links\), .* Nothing was released"):
            run(folder, "one")
    assert not (folder / "one").exists()
    (folder / "second.toml").unlink()
    run(folder, "one")


def test_a_link_leads_to_the_budget(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "panel.toml").rename(folder / "real" / "panel.toml")
    (folder / "panel.toml").symlink_to(folder / "real" / "panel.toml")
    run(folder, "one")
    assert (folder / "panel.toml").is_symlink()
    assert len(tomllib.loads((folder / "real" / "panel.toml").read_text())["released"]) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("epsilon = 1" + "0" * 400 + "\ndelta = 1e-6", "epsilon must be a number"),
        ("epsilon = 1" + "0" * 5000 + "\ndelta = 1e-6", "not valid TOML"),
        ("epsilon = " + "[" * 3000, "not valid TOML"),
        ("epsilon = 1.0\n", "delta must be a number above 0 and below 1"),
        ("epsilon = 1.0\ndelta = 1\n", "delta must be a number above 0 and below 1"),
        ("epsilon = 0\ndelta = 1e-6\n", "epsilon must be a number above 0"),
        ("epsilon = true\ndelta = 1e-6\n", "epsilon must be a number above 0"),
        ("epsilon = inf\ndelta = 1e-6\n", "epsilon must be a number above 0"),
        ("epsilom = 1.0\ndelta = 1e-6\n", "epsilom is no key of a budget"),
        ("epsilon 1.0", "it is not valid TOML"),
        ("epsilon = 1.0\ndelta = 1e-6\nreleased = 3\n", "the list of releases is truncated or was changed"),
        ("epsilon = 1.0\ndelta = 1e-6\n[[released]]\ndate = 1\n", "the list of releases is truncated or was changed"),
        (
            'epsilon = 1.0\ndelta = 1e-6\n[[released]]\ndate = "x"\ncoins = "secure"\n'
            'parts = [{ reports = 0, specification = "" }]\n',
            "the list of releases is truncated or was changed",
        ),
        (
            'epsilon = 1.0\ndelta = 1e-6\n[[released]]\ndate = "x"\ncoins = "secure"\n'
            'parts = [{ reports = 9, specification = "nothing" }]\n',
            "the list of releases is truncated or was changed",
        ),
    ],
)
def test_files_that_are_no_budget(folder: Path, text: str, problem: str) -> None:
    (folder / "panel.toml").write_text(text)
    with pytest.raises(DataError) as error:
        run(folder, "one")
    assert problem in str(error.value)
    assert not (folder / "one").exists()


def test_a_file_names_all_its_faults_at_once(folder: Path) -> None:
    (folder / "panel.toml").write_text("epsilom = 1.0\nepsilon = -1\ndelta = 2\nrelease = 1\nreleased = 3\n")
    with pytest.raises(DataError) as error:
        run(folder, "one")
    wrong = (
        "epsilom is no key of a budget (keys: epsilon, delta, people, released)",
        "release is no key of a budget (keys: epsilon, delta, people, released)",
        "epsilon must be a number above 0",
        "delta must be a number above 0 and below 1",
        "the list of releases is truncated or was changed: restore it from a backup",
    )
    assert f"panel.toml is no budget: {'; '.join(wrong)}. To create a budget" in str(error.value)


def test_places_that_cannot_be_used(folder: Path) -> None:
    (folder / "panel.toml").chmod(0o666)
    with pytest.raises(DataError, match=r"other users of this machine can write the budget .*\. Run: chmod 600"):
        run(folder, "one")
    (folder / "panel.toml").unlink()
    with pytest.raises(
        DataError, match=r"does not exist\. To create a budget for a group of people, write a file with two lines"
    ):
        run(folder, "one")
    (folder / "panel.toml").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        run(folder, "one")
    with pytest.raises(DataError, match="the folder of the budget"), opened(folder / "nowhere" / "panel.toml"):
        pass


def test_a_budget_that_cannot_be_written_keeps_everything_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("hushuffle.collection.budget.write_private", full)
    with pytest.raises(DataError, match=r"cannot be written: .* Nothing was released"):
        run(folder, "one")
    assert not (folder / "one").exists()


def test_an_empty_budget_is_unused(folder: Path) -> None:
    assert Budget.read(folder / "panel.toml").spent().epsilon == 0


def test_the_command_says_how_much_is_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "survey.toml").write_text(specification())
    assert main(["collect", "survey.toml", "--out", "one", "--budget", "panel.toml"]) == Exit.DONE
    assert "Budget: 1 collection, central epsilon 0.2" in capsys.readouterr().out
    assert main(["collect", "survey.toml", "--out", "two", "--budget", "panel.toml"]) == Exit.DONE
    assert "Budget: 2 collections, central epsilon 0." in capsys.readouterr().out
    limit(folder, 0.01)
    assert main(["collect", "survey.toml", "--out", "three", "--budget", "panel.toml"]) == Exit.FAILED
    assert "The budget" in capsys.readouterr().err


def test_all_columns_of_a_collection_are_one_entry(folder: Path) -> None:
    text = """
        population = { data = "people.csv" }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        [[columns]]
        column = "answer"
        categories = ["a", "b", "c"]
        randomizer = { kind = "randomized-response", epsilon = 0.5 }
        [[columns]]
        column = "user"
        categories = { low = "< 50", high = ">= 50" }
        randomizer = { kind = "randomized-response", epsilon = 0.5 }
    """
    (folder / "survey.toml").write_text(text)
    place = str(folder / "survey.toml")
    budget = str(folder / "panel.toml")
    assert main(["collect", place, "--out", str(folder / "one"), "--budget", budget]) == Exit.DONE
    (entry,) = written(folder)["released"]
    assert [part["reports"] for part in entry["parts"]] == [300, 300]
    two = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.5), shuffler=hs.UniformShuffle(), n=300)
    assert entry["total"] == pytest.approx(hs.dp.compose([protocol(0.5), two], delta=DELTA).upper, rel=1e-9)
