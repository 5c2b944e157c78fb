"""The file that clients in other languages are held against is what this one does, and opens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hushuffle_network.client import Task
from hushuffle_network.formats import hpke_open, is_proof, name_in
from hushuffle_network.oblivious_http import GatewayKey, decode_request
from hushuffle_network.tokens import IssuerKey, Verifier, token_shown
from scripts import script

MAKER = Path(__file__).parents[2] / "docs" / "phone_vectors.py"


MADE = script("docs/phone_vectors")
WRITTEN: dict[str, Any] = json.loads(MADE.FILE.read_text("ascii"))


def test_the_file_is_current() -> None:
    """If not: a client that is in use would be broken. Else `python docs/phone_vectors.py` writes it anew."""
    assert json.loads(json.dumps(MADE.vectors(MADE.published_key()))) == WRITTEN


def test_the_file_opens_from_outside_to_inside() -> None:
    """By the bytes alone: gateway, scrambler after scrambler, target, token."""
    task, issuer = Task(WRITTEN["task"].encode(), bytes.fromhex(WRITTEN["id"])), IssuerKey.of(WRITTEN["issuer"])
    keys = {name: bytes.fromhex(key) for name, key in WRITTEN["keys"].items()}
    for step in WRITTEN["steps"]:
        number = step["step"]
        request = decode_request(GatewayKey(private=keys["scrambler-1"]).open(bytes.fromhex(step["request"]))[0])
        assert request[:4] == ("POST", "https", "scrambler-1.example", f"/tasks/{WRITTEN['id']}/steps/{number:04d}")
        ticket = token_shown([value for _, value in request.headers])
        assert ticket.hex() == step["ticket"]
        assert len(Verifier(issuer.spki).nonce(ticket, bytes.fromhex(step["ticket_challenge"]))) == 32
        content = request.content
        assert content.hex() == step["onion"]
        for name in ("scrambler-1", "scrambler-2"):
            content = hpke_open(keys[name], task.info(number, name), b"", content)
        assert int.from_bytes(content[:2]) == step["target"]
        name = task.steps[number - 1]["targets"][step["target"]]["name"]
        plain = hpke_open(keys[name], task.info(number, name), b"", content[2:])
        assert plain[:354].hex() == step["token"]
        nonce = Verifier(issuer.spki).nonce(plain[:354], bytes.fromhex(step["challenge"]))
        assert step["token_input"][4:68] == nonce.hex()
        record = step["record"]
        assert plain[354:].hex().startswith("ffff" if record is None else f"{len(record) // 2:04x}{record}")
        for kind in ("token", "ticket"):
            holder, proof = (bytes.fromhex(part) for part in re.findall('"([0-9a-f]+)"', step[f"{kind}_shown"]))
            public, asked = bytes.fromhex(WRITTEN["invited"]), bytes.fromhex(step[f"{kind}_request"])
            assert holder == name_in(task.id, public)
            assert is_proof(public, proof, task.id, number, kind, issuer.spki, asked)
    assert [step["record"] is None for step in WRITTEN["steps"]] == [False, True]


def test_the_choices_cover_every_branch() -> None:
    seen = {
        (one["convention"], one["only_on_purpose"], one["own"] is None, one["carries"]) for one in WRITTEN["choices"]
    }
    assert seen >= {
        (convention, only, False, carries)
        for convention in ("uniform", "exclusive")
        for only in (False, True)
        for carries in (False, True)
    }
    assert {len(one["words"]) for one in WRITTEN["choices"]} >= {1, 2, 3}
