"""Certificates are checked by code that shares nothing with what wrote them: right ones agree, wrong ones do not."""

from __future__ import annotations

import ast
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
from hushuffle import report, verifying
from hushuffle.assessment.assess import assess
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.questions.dp.certificate import certified
from hushuffle.specification import parse
from hushuffle.verifying.certificate import MalformedError, read
from hushuffle.verifying.checks import AGREES, CONTRADICTED, NOT_CHECKED, NOT_SHOWN, Row, check, check_document
from hushuffle.verifying.table import verdict_of, written

FOLDER = Path(verifying.__file__).parent
ROWS = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]


def claimed(randomizer: Any, n: int, delta: float, dummies: int = 0) -> dict[str, Any]:
    shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    protocol = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)
    return dict(json.loads(hs.dp.certificate(protocol, delta=delta).to_json()))


def answered(given: dict[str, Any]) -> Row:
    return check(read(json.dumps(given)), question="central-dp")


SOME = (
    (hs.RandomizedResponse(k=2, epsilon=1.0), 2, 0.1, 0),
    (hs.RandomizedResponse(k=2, epsilon=3.0), 100, 1e-6, 0),
    (hs.RandomizedResponse(k=2, epsilon=0.5), 50, 1e-6, 1000),
    (hs.RandomizedResponse(k=3, epsilon=1.0), 10, 1e-3, 0),
    (hs.RandomizedResponse(k=3, epsilon=5.0), 500, 1e-5, 3),
    (hs.RandomizedResponse(k=10, epsilon=2.0), 100, 1e-6, 20),
    (hs.RandomizedResponse(k=5, epsilon=2.0), 33_000, 1e-6, 0),
    (hs.RandomizedResponse(k=1000, epsilon=4.0), 1000, 1e-6, 0),
    (hs.TargetSampling(targets=10, sigma=0.5), 1_000_000, 1e-6, 0),
    (hs.LocalHashing(k=4, g=2, epsilon=1.0), 1000, 1e-6, 0),
    (hs.LocalHashing(k=3, g=2, epsilon=1.0), 4, 1e-4, 3),
    (hs.SubsetSelection(k=6, w=2, epsilon=0.5), 3, 1e-2, 0),
    (hs.UnaryEncoding(k=3, epsilon=1.0, kind="optimized"), 100_000, 1e-8, 0),
    (hs.HadamardResponse(k=3, epsilon=1.0), 5, 1e-2, 1),
    (hs.SquareWave(bins=4, width=1, epsilon=1.0), 20, 1e-3, 0),
    (hs.RoundedGaussian(levels=3, epsilon=4.0), 3, 1e-2, 0),
    (hs.BitFlipping(width=1, p=0.2), 100, 1e-6, 1),
    (hs.BitFlipping(width=2, p=0.2), 1000, 1e-5, 0),
    (hs.MatrixRandomizer([[0.75, 0.25, 0], [0.25, 0.5, 0.25]]), 1000, 1e-4, 0),
    (hs.MatrixRandomizer([[0.7, 0.3], [0.2, 0.8]]), 1000, 1e-3, 10),
)


@pytest.mark.parametrize(("randomizer", "n", "delta", "dummies"), SOME)
def test_a_bracket_agrees(randomizer: Any, n: int, delta: float, dummies: int) -> None:
    row = answered(claimed(randomizer, n, delta, dummies))
    assert row.verdict == AGREES, row.reason


@pytest.mark.parametrize(
    ("randomizer", "n", "delta", "dummies"),
    [
        # delta is small beside the chance that the test says yes
        pytest.param(hs.RandomizedResponse(k=1000, epsilon=2.0), 3000, 1e-9, 1, marks=pytest.mark.slow),
        # dummies have another law than people: the best test is not at 0
        (hs.LocalHashing(k=5, g=2, epsilon=1.0), 30, 1e-4, 100),
        # blocks of five compositions are not fine enough
        pytest.param(hs.RandomizedResponse(k=2, epsilon=6.0), 10_000, 1e-6, 0, marks=pytest.mark.slow),
    ],
)
def test_narrow_brackets_agree(randomizer: Any, n: int, delta: float, dummies: int) -> None:
    row = answered(claimed(randomizer, n, delta, dummies))
    assert row.verdict == "agrees", row


def test_reports_with_their_senders_agree() -> None:
    for randomizer in (hs.RandomizedResponse(k=2, epsilon=1.0), hs.MatrixRandomizer(ROWS)):
        protocol = hs.Protocol(randomizer=randomizer, shuffler=hs.NoShuffle(), n=100)
        assert answered(json.loads(hs.dp.certificate(protocol, delta=1e-3).to_json())).verdict == AGREES


@pytest.mark.parametrize("randomizer", [hs.RandomizedResponse(k=5, epsilon=1.0), hs.BitFlipping(width=1, p=0.3)])
@pytest.mark.parametrize(("place", "factor"), [(0, 1.01), (1, 0.99)])
def test_an_end_that_is_one_per_cent_too_good_is_refuted(randomizer: Any, place: int, factor: float) -> None:
    given = claimed(randomizer, 200, 1e-4)
    given["epsilon"][place] *= factor
    given["epsilon"][1 - place] = given["epsilon"][1] * 2 if place == 0 else 0.0
    row = answered(given)
    assert row.verdict == CONTRADICTED
    assert ("lower bound" in row.reason, "upper bound" in row.reason) == (place == 0, place == 1)


def halved(given: dict[str, Any]) -> None:
    given["delta"] /= 2


def doubled(given: dict[str, Any]) -> None:
    given["delta"] *= 2


def fewer(given: dict[str, Any]) -> None:
    given["n"] -= 20
    given["others"][-1] -= 20


def noisier(given: dict[str, Any]) -> None:
    given["truth"] = "2/5"


def clearer(given: dict[str, Any]) -> None:
    given["truth"] = "9/10"


def elsewhere(given: dict[str, Any]) -> None:
    given["others"] = [given["n"] // 2, 0, given["n"] - 1 - given["n"] // 2]


def unseen(given: dict[str, Any]) -> None:
    given["release"] = "senders"


@pytest.mark.parametrize("change", [halved, doubled, fewer, noisier, clearer, elsewhere, unseen])
def test_a_changed_certificate_is_refuted(change: Callable[[dict[str, Any]], None]) -> None:
    given = claimed(hs.RandomizedResponse(k=5, epsilon=1.0), 100, 1e-4)
    change(given)
    assert answered(given).verdict in {CONTRADICTED, NOT_SHOWN}


def test_a_changed_law_of_dummies_is_refuted() -> None:
    given = claimed(hs.MatrixRandomizer(ROWS), 5, 1e-2, 3)
    given["dummy"] = [0.01, 0.01, 0.98]
    assert answered(given).verdict in {CONTRADICTED, NOT_SHOWN}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n", 0),
        ("n", 2.5),
        ("n", True),
        ("dummies", -1),
        ("values", 1),
        ("delta", 0),
        ("delta", 1.5),
        ("delta", "1e-6"),
        ("delta", None),
        ("release", "sums"),
        ("epsilon", 1.0),
        ("epsilon", [2.0, 1.0]),
        ("epsilon", ["infinity", 1.0]),
        ("epsilon", [-1, 1]),
        ("epsilon", [0, 1e9]),
        ("truth", "1/0"),
        ("truth", "1/2/3"),
        ("truth", "1/100"),
        ("truth", 0.5),
        ("truth", None),
        ("rows", [[1.0]]),
        ("others", [1]),
        ("others", "all"),
        ("others", [0] * 9),
        ("target", [0, 0]),
        ("target", [0, 9]),
        ("target", [0]),
    ],
)
def test_a_malformed_certificate_is_one_clear_error(key: str, value: object) -> None:
    given = claimed(hs.RandomizedResponse(k=5, epsilon=1.0), 100, 1e-4)
    given[key] = value
    with pytest.raises(MalformedError) as error:
        answered(given)
    assert str(error.value).count("\n") == 0
    assert str(error.value).startswith("In a certificate")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rows", [0.5, 0.5]),
        ("rows", [[0.5, 0.5], [1.0], [1.0]]),
        ("rows", [[0.5, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]),
        ("rows", [[1.5, -0.5, 0], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]),
        ("dummy", None),
        ("dummy", [0.5, 0.5]),
    ],
)
def test_a_malformed_matrix_is_one_clear_error(key: str, value: object) -> None:
    given = claimed(hs.MatrixRandomizer(ROWS), 10, 1e-2, 1)
    given[key] = value
    with pytest.raises(MalformedError, match=r"In a certificate (rows|dummy) must be"):
        answered(given)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": 1e999999999}', '{"a": NaN}', "[1]", "{}", '"text"'])
def test_other_files_are_one_clear_error(text: str) -> None:
    with pytest.raises(MalformedError):
        list(check_document(read(text)))


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("version", 2, "version 2"),
        ("version", None, "version None"),
        ("n", 10**15, "reports"),
        ("rows", [[1 / 100] * 100] * 100, "entries"),
    ],
)
def test_what_is_too_large_or_unknown_is_not_checked(key: str, value: object, why: str) -> None:
    given = claimed(hs.RandomizedResponse(k=3, epsilon=1.0), 9, 1e-2)
    if key == "rows":
        given["values"], given["truth"] = 100, None
    given[key] = value
    row = answered(given)
    assert row.verdict == NOT_CHECKED
    assert why in row.reason


def test_a_check_ends_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle.verifying.checks._SECONDS", 0.0)
    row = answered(claimed(hs.RandomizedResponse(k=2, epsilon=1.0), 50, 1e-6))
    assert row.verdict == NOT_SHOWN


def test_a_result_with_another_figure_than_its_certificate_is_refuted() -> None:
    given = claimed(hs.RandomizedResponse(k=3, epsilon=1.0), 10, 1e-3)
    bound = {"lower": given["epsilon"][0], "upper": given["epsilon"][1], "unit": "nats", "kind": given["kind"]}
    finding = {"question": "central-dp", "bound": bound}
    whole: dict[str, Any] = {
        "findings": [{**finding, "certificate": given}, {"question": "local-dp", "certificate": None}]
    }
    first, second = check_document(read(json.dumps(whole)))
    assert (first.verdict, second.verdict) == (AGREES, NOT_CHECKED)
    assert verdict_of([first, second]) == 0
    assert verdict_of([second]) == 1
    whole["findings"][0]["bound"] = {"lower": 0.1, "upper": 0.2}
    rows = list(check_document(read(json.dumps(whole))))
    assert rows[0].verdict == CONTRADICTED
    assert verdict_of(rows) == 3
    assert "contradicted: 1, not checked: 1" in written(rows)


def test_no_certificate_is_written_for_what_is_not_understood() -> None:
    encoding = hs.UnaryEncoding(k=13, epsilon=1.0, kind="optimized")
    law = hs.DummyLaw.of({1: 0.5, 2: 0.5})
    for randomizer, shuffler in (
        (encoding, hs.UniformShuffle()),
        (hs.UnaryEncoding(k=3, epsilon=1.0, kind="optimized"), hs.SecureAggregation()),
        (hs.RandomizedResponse(k=2, epsilon=1.0), hs.Scrambler(dummies=law)),
        (hs.RandomizedResponse(k=2, epsilon=math.inf), hs.UniformShuffle()),
    ):
        with pytest.raises(hs.errors.UnsupportedProtocolError):
            hs.dp.certificate(hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=20), delta=1e-2)


def test_the_checker_knows_nothing_of_hushuffle(tmp_path: Path) -> None:
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(str(node.module))
            assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "flint"}, file
    shutil.copytree(FOLDER, tmp_path / "verifying", ignore=shutil.ignore_patterns("__pycache__"))
    certificate = tmp_path / "certificate.json"
    certificate.write_text(json.dumps(claimed(hs.RandomizedResponse(k=2, epsilon=1.0), 50, 1e-4)))
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); sys.modules['hushuffle'] = None; "
        f"sys.argv = ['verifying', {str(certificate)!r}]; runpy.run_module('verifying', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "agrees: 1" in done.stdout


def _tampered(result: dict[str, Any], *keys: str | int, value: object) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(result))
    place: Any = made
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return made


def test_a_certificate_of_another_deployment_is_contradicted() -> None:
    text = """
        population = { n = 300, k = 2 }
        randomizer = { kind = "randomized-response", epsilon = 1.0 }
        shuffler = { kind = "uniform" }
        targets = { delta = 1e-6 }
        run = { repetitions = 0 }
    """
    content = report.to_json(assess(parse(text)))
    assert _central(content) == "agrees"
    result = json.loads(content)
    other = result["specification"].replace("delta = 1e-06", "delta = 1e-12")
    assert other != result["specification"]
    place = next(at for at, one in enumerate(result["findings"]) if one["certificate"])
    for made in (
        _tampered(result, "population", "n", value=5),
        _tampered(result, "specification", value=other),
        _tampered(result, "findings", place, "bound", "unit", value="bits"),
        _tampered(result, "findings", place, "bound", "kind", value="exact"),
    ):
        assert _central(json.dumps(made)) == "contradicted"


def _central(text: str) -> str:
    return next(row.verdict for row in check_document(read(text)) if row.question == "central-dp")


def test_no_certificate_without_datasets_or_for_flipped_bits_in_a_small_crowd() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=10)
    bound = hs.Bound(lower=0.1, upper=0.2, kind="bracket", unit="nats")
    with pytest.raises(UnsupportedProtocolError, match="without named datasets"):
        certified(protocol, bound, delta=1e-6)
    bits = hs.Protocol(randomizer=hs.BitFlipping(width=3, p=0.2), shuffler=hs.UniformShuffle(), n=4)
    with pytest.raises(UnsupportedProtocolError, match="flipped bits in a small crowd"):
        hs.dp.certificate(bits, delta=1e-2)
