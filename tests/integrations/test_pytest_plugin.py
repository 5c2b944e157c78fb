"""The plugin in a test run of its own: private code passes, code that leaks fails, and loading it is light."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import numpy as np
import pytest
import hushuffle as hs

RESPONSE = hs.RandomizedResponse(k=2, epsilon=1.0)


def test_randomizer(assert_private):
    assert assert_private(RESPONSE, epsilon=1.0, trials=20_000).epsilon.lower > 0.5
    with pytest.raises(AssertionError, match="local epsilon is 1, more than 0.9"):
        assert_private(RESPONSE, epsilon=0.9)


def test_protocol(assert_private):
    survey = hs.Protocol(randomizer=RESPONSE, shuffler=hs.UniformShuffle(), n=100)
    assert_private(survey, epsilon=0.5, delta=1e-4, trials=2_000)
    with pytest.raises(AssertionError, match="more than 0.1"):
        assert_private(survey, epsilon=0.1, delta=1e-4)


def test_function(assert_private):
    lies = lambda codes: np.where(np.random.default_rng().random(codes.size) < 0.1, 1 - codes, codes)
    assert_private(lies, epsilon=2.2, trials=20_000)
    with pytest.raises(AssertionError, match="refute epsilon = 1"):
        assert_private(lies, epsilon=1.0, trials=20_000)


def test_command(assert_private):
    with pytest.raises(AssertionError, match="refute"):
        assert_private("cat", epsilon=1.0, values=["no", "yes"], trials=2_000)
    with pytest.raises(AssertionError, match="refute"):
        assert_private(["cat"], epsilon=1.0, values=["no", "yes"], trials=2_000)


def test_replay(assert_replay):
    votes = np.arange(40) % 2
    assert_replay(lambda values, rng: RESPONSE.randomize(values, rng=rng), votes)


def test_a_leak(assert_replay):
    votes = np.array([0, 0, 0, 1])
    assert_replay(lambda values, rng: RESPONSE.randomize(values, rng=rng) if values.any() else values, votes)
"""


def test_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*With equal randomness, the value of record 3 changed*"])


def test_loading_the_plugin_imports_no_library() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import hushuffle.integrations.pytest_plugin; "
        "added = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "assert not added & {'numpy', 'scipy', 'polars', 'cryptography'}, added; "
        "print(sorted(name for name in set(sys.modules) - before if name.startswith('hushuffle')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {"hushuffle", "hushuffle._version", "hushuffle.errors"}
    assert set(eval(done.stdout)) <= loaded | {"hushuffle.integrations", "hushuffle.integrations.pytest_plugin"}  # noqa: S307
