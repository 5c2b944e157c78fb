"""Whatever a file or a peer says, one of the project's own errors comes of it, and nothing private is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.every import CORPUS, FUZZERS
from fuzz.fuzzing import Choices, Maker, Outcome, attempt, hunt


@pytest.mark.parametrize("name", FUZZERS)
def test_some_inputs(name: str, tmp_path: Path) -> None:
    fuzzer, count, _ = FUZZERS[name]
    outcome = hunt(fuzzer(tmp_path), seed=1, count=count)
    assert not outcome.findings, f"\n{outcome}"
    assert outcome.counts["refused"] > count // 10


@pytest.fixture(scope="module")
def makers() -> dict[str, Maker]:
    """What inputs are made of, once for all of them."""
    return {}


def tried(name: str, choices: bytes, makers: dict[str, Maker], folders: pytest.TempPathFactory) -> Outcome:
    if name not in makers:
        makers[name] = FUZZERS[name][0](folders.mktemp("fuzz"))
    outcome = Outcome()
    attempt(makers[name], Choices(choices), outcome)
    return outcome


@settings(max_examples=150, deadline=None, derandomize=True)
@given(name=st.sampled_from(sorted(FUZZERS)), choices=st.binary(max_size=300))
def test_choices_that_are_made_smaller(
    name: str, choices: bytes, makers: dict[str, Maker], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert not tried(name, choices, makers, tmp_path_factory).findings


def test_what_was_found_before(makers: dict[str, Maker], tmp_path_factory: pytest.TempPathFactory) -> None:
    kept = sorted(CORPUS.glob("*.choices"))
    assert kept
    for path in kept:
        outcome = tried(path.stem.rpartition("_")[0].replace("_", " "), path.read_bytes(), makers, tmp_path_factory)
        assert not outcome.findings, f"{path.name}\n{outcome}"


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_many_inputs(name: str, tmp_path: Path) -> None:
    fuzzer, _, count = FUZZERS[name]
    outcome = hunt(fuzzer(tmp_path), seed=2, count=count)
    assert not outcome.findings, f"\n{outcome}"
