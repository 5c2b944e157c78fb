"""Certificates are checked by code that shares nothing with what wrote them: right ones agree, wrong ones do not."""

from __future__ import annotations

import ast
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hushuffle as hs
import shuffle_certificate
from hushuffle import report
from hushuffle.assessment.deployment import assess
from hushuffle.assessment.deployment import assess as assess_deployment
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.questions.dp.certificate import certified
from hushuffle.specification import parse
from hushuffle.specification.mixed import load_deployment
from shuffle_certificate.certificate import MalformedError, read
from shuffle_certificate.checks import AGREES, CONTRADICTED, NOT_CHECKED, NOT_SHOWN, Row, check
from shuffle_certificate.document import check_document
from shuffle_certificate.table import as_json, verdict_of, written

pytestmark = pytest.mark.usefixtures("no_charts")
FOLDER = Path(shuffle_certificate.__file__).parent
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
    (hs.UnaryEncoding(k=3, epsilon=1.0, encoding="optimized"), 100_000, 1e-8, 0),
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
    given = claimed(hs.RandomizedResponse(k=5, epsilon=1.0), 60, 1e-4)
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
    given = claimed(hs.RandomizedResponse(k=5, epsilon=1.0), 60, 1e-4)
    given[key] = value
    with pytest.raises(MalformedError) as error:
        answered(given)
    assert str(error.value).count("\n") == 0
    assert str(error.value).startswith("The certificate is invalid")


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
    with pytest.raises(MalformedError, match=r"The certificate is invalid: (rows|dummy) must be"):
        answered(given)


def test_a_delta_below_all_floats_is_one_clear_error() -> None:
    text = json.dumps(claimed(hs.RandomizedResponse(k=5, epsilon=1.0), 60, 1e-4))
    tiny = text.replace('"delta": 0.0001', '"delta": 1e-399')
    with pytest.raises(MalformedError, match="delta must be between 0 and 1"):
        list(check_document(read(tiny)))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": 1e999999999}', '{"a": NaN}', "[1]", "{}", '"text"'])
def test_other_files_are_one_clear_error(text: str) -> None:
    with pytest.raises(MalformedError):
        list(check_document(read(text)))


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("version", 4, "version 4"),
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


def test_a_matrix_of_too_many_values_is_not_compared_for_hours() -> None:
    given = claimed(hs.RandomizedResponse(k=3, epsilon=1.0), 9, 1e-2)
    rows = [[0.5 + place / 4000, 0.5 - place / 4000] for place in range(600)]
    row = answered(given | {"version": 1, "values": 600, "truth": None, "rows": rows})
    assert (row.verdict, "to compare in pairs" in row.reason) == (NOT_CHECKED, True)


def test_a_check_ends_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shuffle_certificate.checks._SECONDS", 0.0)
    row = answered(claimed(hs.RandomizedResponse(k=2, epsilon=1.0), 50, 1e-6))
    assert row.verdict == NOT_SHOWN


def test_a_result_with_another_figure_than_its_certificate_is_refuted() -> None:
    given = claimed(hs.RandomizedResponse(k=3, epsilon=1.0), 10, 1e-3)
    bound = {"lower": given["epsilon"][0], "upper": given["epsilon"][1], "unit": "nats", "kind": given["kind"]}
    finding = {"question": "central-dp", "bound": bound}
    whole: dict[str, Any] = {
        "findings": [{**finding, "certificate": given}, {"question": "local-dp", "certificate": None}],
        "population": {"n": 10},
        "specification": '[population]\nn = 10\nk = 3\n[randomizer]\nkind = "randomized-response"\nepsilon = 1.0\n'
        '[shuffler]\nkind = "uniform"\n[targets]\ndelta = 1e-3\n',
    }
    bare = {"findings": whole["findings"]}
    assert next(check_document(read(json.dumps(bare)))).verdict == CONTRADICTED
    first, second, _ = check_document(read(json.dumps(whole)))  # and the target that the verdict lacks
    assert (first.verdict, second.verdict) == (AGREES, NOT_CHECKED)
    assert verdict_of([first, second]) == 0
    assert verdict_of([second]) == 1
    whole["findings"][0]["bound"] = {"lower": 0.1, "upper": 0.2}
    rows = list(check_document(read(json.dumps(whole))))
    assert rows[0].verdict == CONTRADICTED
    assert verdict_of(rows) == 3
    assert "contradicted: 2, not checked: 1" in written(rows)


def test_no_certificate_is_written_for_what_is_not_understood() -> None:
    encoding = hs.UnaryEncoding(k=13, epsilon=1.0, encoding="optimized")
    wide = hs.DummyLaw.of(dict.fromkeys(range(2**15), Fraction(1, 2**15)))
    for randomizer, shuffler in (
        (encoding, hs.UniformShuffle()),
        (hs.RandomizedResponse(k=2, epsilon=1.0), hs.Scrambler(dummies=wide)),
        (hs.RandomizedResponse(k=2, epsilon=math.inf), hs.UniformShuffle()),
    ):
        with pytest.raises(hs.errors.UnsupportedProtocolError):
            hs.dp.certificate(hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=20), delta=1e-2)
    capped = hs.Protocol(
        randomizer=hs.TargetSampling(targets=5, sigma=0.3), shuffler=hs.Scrambler(dummies=19, cap=20), n=20
    )
    with pytest.raises(hs.errors.UnsupportedProtocolError, match="that the cap limits"):
        hs.dp.certificate(capped, delta=1e-12)


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


SURVEY = """
    population = { n = 300, k = 2 }
    randomizer = { kind = "randomized-response", epsilon = 1.0 }
    shuffler = { kind = "uniform" }
    targets = { epsilon = 0.6, delta = 1e-6, guessing = 0.6, people = 100, standard_error = 0.5 }
    run = { repetitions = 0 }
"""


@pytest.fixture(scope="module")
def surveyed() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(report.to_json(assess(parse(SURVEY))))
    return result


def _places(result: object) -> dict[str, str]:
    return {row.question: row.verdict for row in check_document(read(json.dumps(result)))}


def test_every_place_that_repeats_a_certified_figure_is_compared(surveyed: dict[str, Any]) -> None:
    places = _places(surveyed)
    compared = {"central-dp", "target epsilon", "target delta", "target people", "case as-planned", "claim"}
    compared |= {"chart privacy-against-people", "chart privacy-against-noise"}
    assert {place for place, verdict in places.items() if verdict == AGREES} == compared
    assert {verdict for place, verdict in places.items() if place not in compared} == {NOT_CHECKED}


def _at_here(chart: dict[str, Any]) -> int:
    place: int = chart["series"][0]["x"].index(chart["here"])
    return place


@pytest.mark.parametrize(
    ("keys", "value", "place"),
    [
        (("verdict", "targets", 0, "got", "upper"), 0.2, "target epsilon"),
        (("verdict", "targets", 0, "got", "lower"), 0.0, "target epsilon"),
        (("verdict", "targets", 0, "got", "unit"), "bits", "target epsilon"),
        (("verdict", "targets", 0, "asked"), 6.0, "target epsilon"),
        (("verdict", "targets", 0, "rule"), "at least", "target epsilon"),
        (("verdict", "targets", 0, "met"), False, "target epsilon"),
        (("verdict", "targets", 0, "word"), "fail", "target epsilon"),
        (("verdict", "targets", 1, "got", "upper"), 1e-9, "target delta"),
        (("verdict", "targets", 1, "asked"), 0.5, "target delta"),
        (("verdict", "targets", 2, "got", "upper"), 0.51, "target guessing"),
        (("verdict", "targets", 3, "got", "lower"), 9000.0, "target people"),
        (("verdict", "targets", 4, "word"), "not shown", "target standard_error"),
        (("verdict", "targets"), [], "target epsilon"),
        (("verdict", "status"), "met", "verdict"),
        (("verdict", "met"), False, "verdict"),
        (("statement", "scenarios", 0, "central", "upper"), 0.01, "case as-planned"),
        (("statement", "scenarios", 0, "central"), None, "case as-planned"),
        (("statement", "claim"), "The release is private with epsilon = 0.1 and delta = 1e-06.", "claim"),
        (("findings", 0, "sentence"), "Seeing it changes the odds by at most a factor 1.001.", "central-dp"),
        (("findings", 0, "shown"), {"lower": 0.0, "upper": 0.1, "kind": "bracket", "unit": "nats"}, "central-dp"),
        (("charts", 0, "series", 0, "upper", "here"), 0.01, "chart privacy-against-people"),
    ],
)
def test_a_place_with_another_figure_is_contradicted(
    keys: tuple[str | int, ...], value: object, place: str, surveyed: dict[str, Any]
) -> None:
    where = [_at_here(surveyed["charts"][0]) if key == "here" else key for key in keys]
    changed = _tampered(surveyed, *where, value=value)
    assert _places(changed)[place] == CONTRADICTED
    assert verdict_of(list(check_document(read(json.dumps(changed))))) == 3


def test_a_missed_target_that_is_called_passed_is_contradicted() -> None:
    result = json.loads(report.to_json(assess(parse(SURVEY.replace("epsilon = 0.6", "epsilon = 0.1")))))
    assert result["verdict"]["targets"][0]["word"] == "fail"
    assert CONTRADICTED not in _places(result).values()
    target = result["verdict"]["targets"][0] | {"word": "pass", "met": True}
    places = _places(_tampered(result, "verdict", "targets", 0, value=target))
    assert (places["target epsilon"], places["verdict"]) == (CONTRADICTED, CONTRADICTED)


def test_columns_are_compared_with_the_table_of_columns(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("a,b\n" + "x,u\ny,v\n" * 100)
    column = """
        [[columns]]
        column = "{}"
        categories = {}
        randomizer = {{ kind = "randomized-response", epsilon = 1.0 }}
    """
    text = f'population = {{ data = "{tmp_path / "answers.csv"}", person = "none" }}\n'
    text += 'shuffler = { kind = "uniform" }\ntargets = { delta = 1e-6 }\n'
    text += column.format("a", '["x", "y"]') + column.format("b", '["u", "v"]')
    (tmp_path / "survey.toml").write_text(text)
    result = json.loads(report.to_json(assess_deployment(load_deployment(tmp_path / "survey.toml"))))
    rows = [row.verdict for row in check_document(read(json.dumps(result))) if row.question == "table columns"]
    assert rows == [AGREES, AGREES]
    place = next(at for at, table in enumerate(result["tables"]) if table["key"] == "columns")
    changed = _tampered(result, "tables", place, "rows", 1, 4, "upper", value=0.001)
    rows = [row.verdict for row in check_document(read(json.dumps(changed))) if row.question == "table columns"]
    assert rows == [AGREES, CONTRADICTED]


def test_the_last_line_counts_the_figures_checked(surveyed: dict[str, Any]) -> None:
    rows = list(check_document(read(json.dumps(surveyed))))
    last = written(rows).splitlines()[-1]
    assert last.startswith(f"8 of {len(rows)} figures checked; {len(rows) - 8} not checked: no certificate is written")
    summary = json.loads(as_json(rows))["summary"]
    assert (summary["reason"], summary["checked"], summary["figures"]) == (last, 8, len(rows))
    assert written(rows[:1]).splitlines()[-1] == "1 of 1 figures checked."
    assert verdict_of([row for row in rows if row.verdict == NOT_CHECKED]) == 1


def _central(text: str) -> str:
    return next(row.verdict for row in check_document(read(text)) if row.question == "central-dp")


@pytest.mark.parametrize(("p", "n", "delta"), [(0.3, 60, 1e-6), (0.2, 200, 1e-4)])
def test_flipped_bits_in_a_small_crowd_are_checked_by_pools_in_sequence(p: float, n: int, delta: float) -> None:
    bits = hs.Protocol(randomizer=hs.BitFlipping(width=2, p=p), shuffler=hs.UniformShuffle(), n=n)
    claim = hs.dp.certificate(bits, delta=delta)
    assert check(read(claim.to_json()), question="").verdict == AGREES


def test_no_certificate_without_datasets_or_for_flipped_bits_in_a_small_crowd() -> None:
    protocol = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=10)
    bound = hs.Bound(lower=0.1, upper=0.2, kind="bracket", unit="nats")
    with pytest.raises(UnsupportedProtocolError, match="without named datasets"):
        certified(protocol, bound, delta=1e-6)
    for n, delta in (1, 1e-3), (4, 1e-2), (300, 1e-4):  # no other column, hardly any; halves of the columns
        bits = hs.Protocol(randomizer=hs.BitFlipping(width=3, p=0.2), shuffler=hs.UniformShuffle(), n=n)
        with pytest.raises(UnsupportedProtocolError, match="flipped bits in a small crowd"):
            hs.dp.certificate(bits, delta=delta)
