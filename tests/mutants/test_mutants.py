"""The lists of mutants stay current: what they change is there, and so are the tests that notice."""

from __future__ import annotations

import re
from functools import cache

import pytest

from mutants.run import ROOT, Mutant, main, mutants

LIST = mutants()


@cache
def names_in(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("mutant", LIST, ids=[mutant.name for mutant in LIST])
def test_a_mutant_changes_one_place_and_is_noticed_by_tests_that_exist(mutant: Mutant) -> None:
    assert mutant.occurrences == 1, f"{mutant.old!r} must be in {mutant.file} once"
    assert mutant.new != mutant.old
    assert mutant.breaks.endswith(".")
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name in names_in(file), f"{test} does not exist"


def test_there_are_many_mutants_and_each_has_a_name() -> None:
    assert len(LIST) >= 60
    assert len({mutant.name for mutant in LIST}) == len(LIST)


def test_a_mutant_is_killed_and_one_that_changes_nothing_survives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = ("tests/model/test_statement.py::test_an_exact_figure_is_never_open",)
    changes = {"nothing": "self.got.lower < self.got.upper", "openness": "self.got.lower <= self.got.upper"}
    made = [
        Mutant(name=name, breaks="", file="hushuffle/model/statement.py", old=changes["nothing"], new=new, tests=tests)
        for name, new in changes.items()
    ]
    monkeypatch.setattr("mutants.run.mutants", lambda: made)
    assert main([]) == 1
    told = capsys.readouterr().out
    assert "survived" in told
    assert "killed by tests/model/test_statement.py::test_an_exact_figure_is_never_open" in told
    assert "1 of 2 mutants killed" in told
