"""Keys, and what a key or a budget remembers in files; and JSON that other programs read: the test vectors."""

from __future__ import annotations

import io
import itertools
import json
import random
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

import hushuffle as hs
from fuzz.fuzzing import SECRET, Input, Maker, changed_bytes, changed_text, changed_tree
from hushuffle.collection.budget import Budget
from hushuffle.errors import DataError
from hushuffle.files.secret_keys import key_in_file, read_memory, write_memory
from hushuffle_network.certificates import AUTHORITY, make_certificates
from scripts import script
from shuffle_certificate.certificate import MalformedError, read
from shuffle_certificate.document import check_document
from shuffle_certificate.table import written

_DOCS: Final = Path(__file__).parents[2] / "docs"
_PIECES: Final = ("", "]", "[", '"', "=", "{", "}", "\n", "9" * 400, "-", "nan", "inf", "1e999", "[" * 2000)
_VALUES: Final[list[Any]] = [
    0,
    -1,
    2**64,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    [],
    {},
    None,
    True,
]
_BUDGET: Final = """
epsilon = 2.0
delta = 1e-6

[[released]]
date = "2026-01-01T00:00:00+00:00"
coins = "secure"
total = 0.5

[[released.parts]]
reports = 100
specification = '''
population = { n = 100, k = 2 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
'''
"""


def budgets(folder: Path) -> Maker:
    """Change what was released of a budget, and add it up."""
    path = folder / "budget.toml"

    def use() -> None:
        Budget.read(path).spent()

    def make(rng: random.Random) -> Input:
        changed = changed_text(_BUDGET, rng, _PIECES, most=3).encode()
        path.write_bytes(changed if rng.random() < 0.8 else changed_bytes(_BUDGET.encode(), rng))
        path.chmod(0o600)
        return Input(content=path.read_bytes(), read=use)

    return make


def keys(folder: Path) -> Maker:
    """Change a key, or the authority whose key signs certificates; no message may show a private one."""
    own, names = folder / "my.key", (f"host-{number}" for number in itertools.count())
    own.touch(mode=0o600)
    whole = {path: path.read_text() for path in make_certificates(["first"], out=folder) if path.stem == AUTHORITY}

    def make(rng: random.Random) -> Input:
        for path, text in whole.items():
            path.write_text(text)
        if rng.random() < 0.4:
            content = changed_text("5e" * 32 + SECRET, rng, ("", "0", "é", " "))
            own.write_text(content, encoding="utf-8")
            return Input(content=content, read=lambda: key_in_file(own))
        path = rng.choice(sorted(whole))
        content = whole[path].replace("-----END", f"{SECRET}\n-----END") if rng.random() < 0.3 else whole[path]
        path.write_bytes(changed_bytes(content.encode(), rng, most=3))
        return Input(content=path.read_bytes(), read=lambda: make_certificates([next(names)], out=folder))

    return make


def memories(folder: Path) -> Maker:
    """Change what a key remembers."""
    path = folder / "memory.json"
    write_memory(path, "a test", {"entries": [{"round": 1, "digest": "0" * 64}]})
    tree = json.loads(path.read_bytes())

    def make(rng: random.Random) -> Input:
        content = json.dumps(changed_tree(tree, rng, _VALUES)).encode()
        content = b"[" * 100_000 if rng.random() < 0.02 else content
        path.write_bytes(changed_bytes(content, rng) if rng.random() < 0.4 else content)
        return Input(content=path.read_bytes()[:1000], read=lambda: read_memory(path, "a test"))

    return make


def vectors(folder: Path) -> Maker:
    """Change the file of test vectors; its checker says in words what is wrong."""
    tree = json.loads((_DOCS / "test-vectors.json").read_bytes())
    tree["brackets"] = [entry for entry in tree["brackets"] if entry["n"] == 4 and len(entry["matrix"]) == 2][:2]
    check, path = script("docs/check_vectors").main, folder / "vectors.json"

    def use() -> None:
        with redirect_stdout(io.StringIO()) as said:
            code = check(str(path))
        if code:
            assert code == 1
            raise DataError(said.getvalue()[:300])
        assert "nothing is wrong" in said.getvalue()

    def make(rng: random.Random) -> Input:
        content = json.dumps(changed_tree(tree, rng, _VALUES)).encode()
        path.write_bytes(changed_bytes(content, rng) if rng.random() < 0.1 else content)
        return Input(content=path.read_bytes()[:3000], read=use)

    return make


def certificates(_folder: Path) -> Maker:
    """Change certificates and the results that hold them, and check them by the second program."""
    protocols = [
        hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=5),
        hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.Scrambler(dummies=2), n=4),
        hs.Protocol(randomizer=hs.MatrixRandomizer([[0.7, 0.3], [0.2, 0.8]]), shuffler=hs.UniformShuffle(), n=4),
    ]
    made = [json.loads(hs.dp.certificate(one, delta=1e-3).to_json()) for one in protocols]

    def use(text: str) -> None:
        try:
            written(list(check_document(read(text))))
        except MalformedError as error:
            raise DataError(str(error)) from None

    def make(rng: random.Random) -> Input:
        text = json.dumps(changed_tree(made if rng.random() < 0.3 else rng.choice(made), rng, _VALUES))
        text = changed_text(text, rng, _PIECES) if rng.random() < 0.1 else text
        return Input(content=text, read=lambda: use(text))

    return make
