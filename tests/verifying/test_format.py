"""Certificates as a format: a schema, test vectors, and two checkers in two languages that agree on them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import shuffle_certificate
from hushuffle import report
from hushuffle.assessment.deployment import assess
from hushuffle.errors import HushuffleError
from hushuffle.specification.mixed import load_deployment
from shuffle_certificate.certificate import MalformedError, read
from shuffle_certificate.checks import AGREES, CONTRADICTED, NOT_CHECKED
from shuffle_certificate.document import check_document
from shuffle_certificate.table import as_json
from verifying import certificate_vectors
from verifying.certificate_vectors import MALFORMED
from verifying.test_derivation import CLAIMS, altered, claimed

ROOT = Path(__file__).parents[2]
TYPESCRIPT = ROOT / "packages" / "shuffle-certificate" / "typescript"
SCHEMA: dict[str, Any] = json.loads(
    Path(shuffle_certificate.__file__).with_name("certificate.schema.json").read_text("ascii")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
VECTORS: list[dict[str, str]] = json.loads(certificate_vectors.FILE.read_text("ascii"))["vectors"]
LIMITED = {"a large matrix"}
"""Kinds that the checker in TypeScript does not check."""
BEYOND = {"bits", "bits with noise", "bits in rounds", "reports of bits", "random for two values"}
"""Claims of `CLAIMS` that are of such a kind, or too large for it."""
FROZEN = {
    "schema": "ab33893e9d2fac01b9abf14933e90494f8a32cd4ba5535120c8145bb920355ba",
    "vectors": "c2d1877fa07829357d9deda38893ca5090a26b4f0b2d6e93716dcafb009fb607",
}

BIN = next(
    (folder for root in (TYPESCRIPT, ROOT / "clients" / "typescript")
     if (folder := root / "node_modules" / ".bin").is_dir()), None
)  # fmt: skip
NODE = shutil.which("node")
node = pytest.mark.skipif(NODE is None or BIN is None, reason="needs Node, and `npm install`")


def test_the_schema_and_the_vectors_are_frozen() -> None:
    now = {"schema": SCHEMA, "vectors": VECTORS}
    assert {name: hashlib.sha256(json.dumps(part).encode()).hexdigest() for name, part in now.items()} == FROZEN
    assert SCHEMA["$id"].endswith(":1.0.0")


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _parts(part)


def test_the_schema_is_strict_and_describes_every_key() -> None:
    VALIDATOR.check_schema(SCHEMA)
    objects = [part for part in _parts(SCHEMA) if part.get("type") == "object"]
    assert len(objects) == 6
    for part in objects:
        assert part["additionalProperties"] is False
        for name, key in part["properties"].items():
            text = (key if "description" in key else SCHEMA["$defs"][key["$ref"].rpartition("/")[2]])["description"]
            assert text.endswith("."), name
            assert len(text.split()) <= 25, (name, text)


@pytest.mark.parametrize("name", CLAIMS)
def test_every_certificate_is_valid_and_no_broken_one(name: str) -> None:
    given = claimed(name)
    VALIDATOR.validate(given)
    for key in sorted(given.keys() - {"bits", "further"}):
        assert not VALIDATOR.is_valid({other: value for other, value in given.items() if other != key}), key
        assert not VALIDATOR.is_valid({**given, key: {"broken": True}}), key
    assert not VALIDATOR.is_valid({**given, "comment": "broken"})
    (first, *rest) = given["steps"]
    assert not VALIDATOR.is_valid({**given, "steps": [{**first, "release": {**first["release"], "depth": 1}}, *rest]})


@pytest.mark.slow
def test_the_certificates_of_all_examples_are_valid() -> None:
    valid = 0
    for file in sorted((ROOT / "examples").glob("*.toml")):
        try:
            result = json.loads(report.to_json(assess(load_deployment(file))))
        except HushuffleError:  # a plan, or a file without its data
            continue
        for finding in result["findings"]:
            if finding["certificate"] is not None:
                VALIDATOR.validate(finding["certificate"])
                valid += 1
    assert valid >= 15


def test_a_vector_is_valid_unless_it_is_malformed() -> None:
    assert len(VECTORS) >= 50
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS)
    assert sum(vector["verdict"] not in {AGREES, NOT_CHECKED} for vector in VECTORS) >= 15
    for vector in VECTORS:
        if vector["verdict"] == MALFORMED or vector["name"] == "another version":
            continue
        given = json.loads(vector["text"])
        certificates = [finding["certificate"] for finding in given["findings"]] if "findings" in given else [given]
        for certificate in filter(None, certificates):
            VALIDATOR.validate(certificate)


@pytest.mark.slow
def test_the_script_writes_these_vectors() -> None:
    now = certificate_vectors.document()["vectors"]
    keys = ("name", "kind", "verdict")
    assert [[vector[key] for key in keys] for vector in now] == [[vector[key] for key in keys] for vector in VECTORS]


LONG = {"rounds 25", "rounds: a lower bound that is too large", "reports of one person 27", "columns"}
"""Vectors that take seconds; `test_derivation` and `test_composed` check smaller certificates of these kinds."""


@pytest.mark.parametrize("vector", [
    pytest.param(vector, id=vector["name"], marks=pytest.mark.slow if vector["name"] in LONG else ())
    for vector in VECTORS
])  # fmt: skip
def test_the_checker_in_python_agrees(vector: dict[str, str]) -> None:
    try:
        rows = list(check_document(read(vector["text"])))
    except MalformedError:
        assert vector["verdict"] == MALFORMED
        return
    assert json.loads(as_json(rows))["summary"]["verdict"] == vector["verdict"], rows


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("checker") / "check.mjs"
    flags = ["--bundle", "--platform=node", "--format=esm", "--log-level=error", f"--outfile={file}"]
    subprocess.run([str(BIN / "esbuild"), "src/main.ts", *flags], cwd=TYPESCRIPT, check=True)  # type: ignore[operator]
    return file


def _checked(program: Path, file: Path) -> list[dict[str, Any]]:
    command = [str(NODE), str(program), "--vectors", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@node
def test_types_agree() -> None:
    done = subprocess.run([str(BIN / "tsc"), "--noEmit"], cwd=TYPESCRIPT, capture_output=True, text=True, check=False)  # type: ignore[operator]
    assert done.returncode == 0, done.stdout


@node
def test_the_checker_in_typescript_agrees(program: Path) -> None:
    rows = _checked(program, certificate_vectors.FILE)
    assert [row["name"] for row in rows] == [vector["name"] for vector in VECTORS]
    for row, vector in zip(rows, VECTORS, strict=True):
        expected = NOT_CHECKED if vector["kind"] in LIMITED else vector["verdict"]
        assert row["verdict"] == expected, row
    readme = (TYPESCRIPT / "README.md").read_text("utf-8")
    assert all(f"**{kind}**" in readme for kind in LIMITED)


@node
@pytest.mark.slow
def test_the_checker_in_typescript_confirms_no_altered_step(program: Path, tmp_path: Path) -> None:
    vectors = list[dict[str, str]]()
    for name in CLAIMS:
        given = claimed(name)
        low, high = given["epsilon"]
        changes: list[tuple[str, Any]] = [
            (AGREES, given),
            (CONTRADICTED, {**given, "epsilon": [high * 1.02, high * 2]}),
            (CONTRADICTED, {**given, "epsilon": [0.0, low * 0.98]}),
        ]
        for place, step in enumerate(given["steps"]):
            steps = (
                [*given["steps"][:place], other, *given["steps"][place + 1 :]]
                for _, other in altered(step)
                if other != step
            )
            changes += [("altered", {**given, "steps": each}) for each in steps]
        vectors += [{"name": f"{name}, {verdict}", "text": json.dumps(other)} for verdict, other in changes]
    file = tmp_path / "altered.json"
    file.write_text(json.dumps({"vectors": vectors}))
    for row in _checked(program, file):
        name, _, verdict = row["name"].rpartition(", ")
        if verdict == "altered":
            assert row["verdict"] != AGREES, row
        elif not name.startswith("order"):
            assert row["verdict"] == (NOT_CHECKED if name in BEYOND else verdict), row


@node
def test_the_program_in_typescript_prints_verdicts_and_exit_codes(program: Path, tmp_path: Path) -> None:
    codes = {AGREES: 0, NOT_CHECKED: 1, MALFORMED: 2, CONTRADICTED: 3}
    for verdict, code in codes.items():
        vector = next(vector for vector in VECTORS if vector["verdict"] == verdict)
        file = tmp_path / "certificate.json"
        file.write_text(vector["text"])
        done = subprocess.run([str(NODE), str(program), str(file)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (code, verdict)
