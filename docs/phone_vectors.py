"""Writes phone-vectors.json: what one phone does in one task, byte by byte, for clients in other languages.

python docs/phone_vectors.py
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hushuffle_network import client, formats
from hushuffle_network.choices import choose
from hushuffle_network.client import Task
from hushuffle_network.oblivious_http import GatewayKey, encode_response
from hushuffle_network.tokens import IssuerKey

FILE: Final = Path(__file__).parent / "phone-vectors.json"
STANDARD: Final = Path(__file__).parents[1] / "tests/network/vectors/tokens.json"
SECRET: Final = bytes(range(4, 36))
CODE: Final = "5ec2e7c0de" * 4
ANSWERS: Final = {"age": 33, "smokes": "yes", "bmi": 21.5}
TARGETS: Final = ("target-1-1", "target-1-2", "target-1-3", "target-2-1", "target-2-2")
CHAIN: Final = ("scrambler-1", "scrambler-2")
BANDS: Final = {"below 30": [[["<", 30]]], "30 to 50": [[[">=", 30], ["<", 50]]], "50 and more": [[[">=", 50]]]}


def secret_of(name: str) -> bytes:
    """Return a key that everybody knows."""
    return hashlib.sha256(b"hushuffle phone vectors|" + name.encode()).digest()


def place(name: str) -> dict[str, str]:
    """Return what the document says of a service; nothing of it is ever reached."""
    public = X25519PrivateKey.from_private_bytes(secret_of(name)).public_key().public_bytes_raw()
    return {
        "name": name,
        "url": f"https://{name}.example",
        "key": public.hex(),
        "sign": secret_of(f"{name} sign").hex(),
    }


def document(issuer: IssuerKey) -> dict[str, Any]:
    """Return a task of two questions."""
    hidden = {"dummies": 20, "batch": 50, "min_batch": 40, "sources": 100, "token_key": _text(issuer.spki)}
    hidden["ticket_key"] = hidden["token_key"]
    age = {"name": "age, smokes", "columns": ["age", "smokes"], "sizes": [3, 2], "sigma": 0.2, "convention": "uniform"}
    smokes = {"name": "smokes", "columns": ["smokes"], "sizes": [2], "sigma": 0.3, "convention": "exclusive"}
    places = [[place(name) for name in TARGETS if name.startswith(f"target-{step}")] for step in (1, 2)]
    return {
        "version": 2,
        "number": "00" * 16,
        "plan": "",
        "people": 100,
        "per_person": "all",
        "figures": {"epsilon": 0.8, "delta": 1e-06, "issuer": 1.6},
        "columns": [
            {"name": "age", "groups": [{"name": name, "when": when} for name, when in BANDS.items()]},
            {"name": "smokes", "groups": [{"name": label, "when": [[["==", label]]]} for label in ("no", "yes")]},
        ],
        "values": [{"name": "bmi", "low": 10.0, "high": 60.0}],
        "steps": [
            {**age, **hidden, "only_on_purpose": False, "targets": places[0]},
            {**smokes, **hidden, "only_on_purpose": True, "targets": places[1]},
        ],
        "relay": "https://relay.example",
        "chain": [place(name) for name in CHAIN],
        "issuer": {"name": "issuer.example", "url": "https://issuer.example"},
        "result": place("result"),
        "message": 1024,
        "start": "2026-05-01T10:00:00.000Z",
        "collect": 3600.0,
        "patience": 30.0,
        "least": 0.9,
    }


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def step_of(task: Task, issuer: IssuerKey, gateway: GatewayKey, part: client.Part) -> dict[str, Any]:
    """Return what one step comes to."""
    name = task.steps[part.number - 1]["targets"][part.target]["name"]
    answer = issuer.sign(part.blinded.request)
    token = part.blinded.finalize(answer)
    onion = client.onion_of(task, part, token, SECRET)
    ticket_answer = issuer.sign(part.ticket.request)
    ticket = part.ticket.finalize(ticket_answer)
    request, open_response = client.request_of(task, part, onion, ticket, SECRET)
    inside, seal_response = gateway.open(request, lambda size: secret_of("response")[:size])
    response = seal_response(encode_response(200, [], b"taken".ljust(16)))
    assert formats.decode_response(open_response(response))[0] == 200
    requests = {"token": part.blinded.request, "ticket": part.ticket.request}
    shown = {
        f"{kind}_shown": formats.Invitation(CODE).shown(task.id, part.number, kind, issuer.spki, asked)[1]
        for kind, asked in requests.items()
    }
    found = {
        "challenge": task.challenge(part.number, name),
        "token_input": part.blinded.message,
        "token_request": part.blinded.request,
        "token_response": answer,
        "token": token,
        "ticket_challenge": task.ticket_challenge(part.number),
        "ticket_request": part.ticket.request,
        "ticket_response": ticket_answer,
        "ticket": ticket,
        "onion": onion,
        "binary_request": inside,
        "request": request,
        "response": response,
        "entry": part.entry,
    }
    record = None if part.content is None else part.content.hex()
    head = {"step": part.number, "target": part.target, "record": record}
    return head | shown | {key: value.hex() for key, value in found.items()}


def choices() -> list[dict[str, Any]]:
    """Return where messages go for given words of 64 bits, those at the coins' edges among them."""
    found = []
    hidden = ((2, 0.5, "uniform"), (5, 0.1, "uniform"), (3, 0.2, "exclusive"), (4, 0.75, "exclusive"))
    for targets, sigma, convention in hidden:
        for number in range(8):
            words: list[str] = []
            draw = client.stream(SECRET, f"choice {targets} {number}")

            def drawn(size: int, number: int = number, words: list[str] = words, draw: formats.Draw = draw) -> bytes:
                word = b"\xff" * size if number % 2 and not words else draw(size)
                words.append(word.hex())
                return word

            only, own = number >= 4, None if number == 3 else number % targets
            step = {"targets": [None] * targets, "sigma": sigma, "convention": convention, "only_on_purpose": only}
            target, carries = choose(step, own, drawn)
            found.append({**step, "targets": targets, "own": own, "words": words, "target": target, "carries": carries})
    return found


def vectors(issuer: IssuerKey) -> dict[str, Any]:
    """Return everything in the file."""
    gateway = GatewayKey(private=secret_of(CHAIN[0]))
    text = json.dumps(document(issuer), sort_keys=True, separators=(",", ":"))
    task = Task(text.encode())
    return {
        "version": 2,
        "task": text,
        "id": task.id.hex(),
        "keys": {name: secret_of(name).hex() for name in (*CHAIN, *TARGETS)},
        "issuer": issuer.pem,
        "gateway": gateway.config.hex(),
        "code": CODE,
        "invited": formats.Invitation(CODE).public.hex(),
        "secret": SECRET.hex(),
        "answers": ANSWERS,
        "steps": [step_of(task, issuer, gateway, part) for part in client.parts_of(task, ANSWERS, SECRET)],
        "choices": choices(),
    }


def published_key() -> IssuerKey:
    """Return the issuer's key of RFC 9578, appendix A.2: everybody knows it."""
    return IssuerKey.of(bytes.fromhex(json.loads(STANDARD.read_text("utf-8"))["skS"]))


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(published_key()), indent=1) + "\n", encoding="ascii")
