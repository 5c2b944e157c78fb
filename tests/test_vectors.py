"""The file of test vectors: it is current, and a checker that knows nothing of hushuffle agrees with it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import script

DOCS = Path(__file__).parents[1] / "docs"
CHECKER = DOCS / "check_vectors.py"


vectors = script("docs/vectors")
WRITTEN: dict[str, Any] = json.loads(vectors.FILE.read_text(encoding="utf-8"))


def test_the_checker_knows_nothing_of_hushuffle_and_agrees() -> None:
    tree = ast.parse(CHECKER.read_text("utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= {*sys.stdlib_module_names, "cryptography"}
    done = subprocess.run(
        [sys.executable, str(CHECKER), str(vectors.FILE)],
        check=False,
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout in (DOCS / "how-to" / "verify.md").read_text("utf-8")


def test_the_checker_sees_what_is_wrong() -> None:
    checker = script("docs/check_vectors")
    sound = next(entry for entry in WRITTEN["brackets"] if entry["n"] == 4)
    lower, upper = sound["epsilon"]
    worse = [sound["matrix"][0], [0.5] * len(sound["matrix"][0])]
    for wrong, message in (
        ({"epsilon": [lower, lower * 0.999]}, "order of the ends"),
        ({"epsilon": [lower * 0.9, lower * 0.999]}, "the upper end does not hold"),
        ({"epsilon": [upper * 1.001, upper * 1.002]}, "the lower end is not attained"),
        ({"local_epsilon": sound["local_epsilon"] * 1.01}, "local epsilon"),
        ({"matrix": worse}, "not that of the mechanism"),
    ):
        with pytest.raises(AssertionError, match=message):
            checker.check_bracket({**sound, **wrong})
    samplers = WRITTEN["samplers"]
    for asked in samplers["draws"]:
        with pytest.raises(AssertionError, match=asked["draw"]):
            checker.check_sampler(asked, bytes(32), samplers["records"], samplers["round"])


SMALL: dict[str, Any] = {**WRITTEN, "brackets": [entry for entry in WRITTEN["brackets"] if entry["n"] == 4][:1]}
ENTRY: dict[str, Any] = SMALL["brackets"][0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no file of test vectors"),
        (b"\xff", "no file of test vectors"),
        (b"[" * 100_000, "no file of test vectors"),
        (b"[]", "no file of test vectors"),
        (b'{"brackets": NaN}', "NaN is no number"),
        ({**SMALL, "brackets": []}, "there are no brackets"),
        ({**SMALL, "brackets": {}}, "brackets are a list"),
        ({**SMALL, "samplers": {**SMALL["samplers"], "draws": []}}, "there are no draws"),
        ({**SMALL, "samplers": {**SMALL["samplers"], "records": []}}, "no records"),
        ({**SMALL, "samplers": {**SMALL["samplers"], "draws": [5]}}, "draw 0: it is no entry"),
        ({**SMALL, "brackets": [{}]}, "bracket 0: it is no entry"),
        ({**SMALL, "brackets": [{**ENTRY, "n": 2**64}]}, "people and dummies"),
        ({**SMALL, "brackets": [{**ENTRY, "dummies": 10**6}]}, "too many releases"),
        ({**SMALL, "brackets": [{**ENTRY, "delta": 0}]}, "delta"),
        ({**SMALL, "brackets": [{**ENTRY, "mechanism": {**ENTRY["mechanism"], "k": 10**9}}]}, "rows for each value"),
    ],
)
def test_the_checker_refuses_another_file_in_words(
    content: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "vectors.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    assert script("docs/check_vectors").main(str(path)) == 1
    assert message in capsys.readouterr().out
    assert script("docs/check_vectors").main(str(tmp_path / "missing")) == 1


def same(written: dict[str, Any], now: dict[str, Any]) -> None:
    for key, value in now.items():
        if key == "epsilon":
            assert written[key] == pytest.approx(value, rel=2e-8)  # where a search ends
        elif key in {"matrix", "dummy_law"}:
            assert len(written[key]) == len(value)
        else:
            assert written[key] == pytest.approx(value) if key == "local_epsilon" else written[key] == value


@pytest.mark.parametrize(("mechanism", "crowd"), [(0, 1), (2, 0), (3, 3), (12, 2)])
def test_entries_are_what_the_library_says(mechanism: int, crowd: int) -> None:
    entry = WRITTEN["brackets"][mechanism * len(vectors.CROWDS) + crowd]
    described, randomizer = vectors.MECHANISMS[mechanism]
    n, dummies, delta = vectors.CROWDS[crowd]
    assert entry["mechanism"] == described
    same(entry, vectors.bracket(randomizer, n=n, dummies=dummies, delta=delta))


def test_draws_are_what_the_library_draws() -> None:
    assert WRITTEN["samplers"]["draws"] == list(vectors.samplers())
    assert len(WRITTEN["brackets"]) == len(vectors.MECHANISMS) * len(vectors.CROWDS)


@pytest.mark.slow
def test_every_entry_is_what_the_library_says() -> None:
    now = vectors.document()
    assert {**now, "brackets": []} == {**WRITTEN, "brackets": []}
    for written, entry in zip(WRITTEN["brackets"], now["brackets"], strict=True):
        same(written, entry)
