"""A small task with made-up services: its document, and what each service does with what it gets."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hushuffle_network.client import Task, TryAgainError
from hushuffle_network.formats import Invitation, hpke_open, is_proof, name_in
from hushuffle_network.oblivious_http import GatewayKey, decode_request, encode_response
from hushuffle_network.tokens import IssuerKey, Verifier, token_shown

TARGETS, SCRAMBLERS, MESSAGE = 4, 2, 1024
_SHOWN = re.compile('Invitation name="([0-9a-f]{64})", proof="([0-9a-f]{128})"')


def code_of(person: int) -> str:
    """Return a code of an invitation; of the first 20 people they are good."""
    return f"{person:032x}"


CODE = code_of(0)
INVITED = [Invitation(code_of(person)).public for person in range(20)]
AGES = [
    {
        "name": "age",
        "groups": [{"name": str(low), "when": [[[">=", low], ["<", low + 20]]]} for low in range(0, 80, 20)],
    }
]
ANSWERS = [{"name": "smokes", "groups": [{"name": label, "when": [[["==", label]]]} for label in ("no", "yes")]}]


def _public(key: bytes) -> str:
    return X25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw().hex()


@dataclass
class Services:
    """All services of one task in one place; keeps what each has seen."""

    issuer: IssuerKey
    keys: dict[str, bytes]
    changes: dict[str, Any] = field(default_factory=dict)
    host: str = ""
    """Where all of them are reached, by name as a folder; empty: each on a host of its own."""
    seen: list[tuple[str, bytes | None, dict[str, str]]] = field(default_factory=list)
    arrived: list[tuple[int, int, bytes, bytes | None]] = field(default_factory=list)
    tickets: list[bytes] = field(default_factory=list)
    codes: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    answers: list[int] = field(default_factory=list)
    """Statuses with which the relay answers before it forwards anything."""

    @property
    def gateway(self) -> GatewayKey:
        """The first scrambler's."""
        return GatewayKey(private=self.keys["scrambler-1"])

    def url(self, name: str) -> str:
        """Return the address of a service."""
        return f"{self.host}/{name}" if self.host else f"https://{name}.example"

    def place(self, name: str) -> dict[str, str]:
        """Return what the document says of a service."""
        return {"name": name, "url": self.url(name), "key": _public(self.keys[name]), "sign": "00" * 32}

    @property
    def document(self) -> dict[str, Any]:
        step = {
            "sigma": 0.5,
            "convention": "uniform",
            "only_on_purpose": False,
            "token_key": base64.b64encode(self.issuer.spki).decode(),
            "ticket_key": base64.b64encode(self.issuer.spki).decode(),
            "dummies": 2,
            "batch": 20,
            "min_batch": 3,
            "sources": 20,
        }
        steps = [
            {
                "name": "age",
                "columns": ["age", "smokes"],
                "sizes": [4, 2],
                **step,
                "targets": [self.place(f"target-1-{one}") for one in range(1, 5)],
            },
            {
                "name": "smokes",
                "columns": ["smokes"],
                "sizes": [2],
                **step,
                "targets": [self.place(f"target-2-{one}") for one in (1, 2)],
            },
        ]
        document = {
            "version": 2,
            "per_person": "all",
            "figures": {"epsilon": 0.8, "delta": 1e-06, "issuer": 1.6},
            "columns": AGES + ANSWERS,
            "values": [{"name": "bmi", "low": 10.0, "high": 60.0}],
            "steps": steps,
            "relay": self.url("relay") + "/ohttp",
            "chain": [self.place(f"scrambler-{one}") for one in range(1, SCRAMBLERS + 1)],
            "issuer": {"name": "issuer.example", "url": self.url("issuer") + "/"},
            "result": self.place("result"),
            "message": MESSAGE,
        }
        return document | self.changes

    @property
    def content(self) -> bytes:
        return json.dumps(self.document, sort_keys=True, separators=(",", ":")).encode()

    @property
    def task(self) -> Task:
        return Task(self.content)

    def send(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Do what the network does, all in one place."""
        self.seen.append((url, body, dict(headers)))
        if url.startswith(self.url("issuer") + "/"):
            return self._issue(url, body or b"", *_shown(headers["authorization"]))
        if url == self.url("relay") + "/ohttp":
            if self.answers and (status := self.answers.pop(0)) != 200:
                return status, b""
            return 200, self._take(body or b"")
        if url.endswith("/passage"):
            return 200, b'{"batches": [3, 7]}'
        if "/passage/" in url:
            return 200, self._entries(url, url.endswith("/7"))
        message = f"nobody is at {url}"
        raise TryAgainError(message)

    def _issue(self, url: str, request: bytes, name: bytes, proof: bytes) -> tuple[int, bytes]:
        (public,) = (one for one in INVITED if name_in(self.task.id, one) == name)
        step, kind = url.split("/")[-2:]
        assert is_proof(public, proof, self.task.id, int(step), kind, self.issuer.spki, request)
        if self.codes.setdefault((url, name), request) != request:
            return 403, b"code used"
        return 200, self.issuer.sign(request)

    def _take(self, message: bytes) -> bytes:
        request, seal = self.gateway.open(message)
        asked = decode_request(request)
        path, number = asked.path, int(asked.path[-4:])
        ((name, shown),) = asked.headers
        assert name == "authorization"
        self.tickets.append(Verifier(self.issuer.spki).nonce(token_shown([shown]), self.task.ticket_challenge(number)))
        folder = "/scrambler-1" if self.host else ""
        assert path == f"{folder}/tasks/{self.task.id.hex()}/steps/{number:04d}"
        content = asked.content
        assert len(content) == MESSAGE
        self.arrived.append(self.opened(number, content))
        return seal(encode_response(202, [], b""))

    def opened(self, number: int, content: bytes) -> tuple[int, int, bytes, bytes | None]:
        """Return step, target, nonce of the token, and record of a message that all services have opened."""
        task = self.task
        for scrambler in task.chain:
            content = hpke_open(self.keys[scrambler["name"]], task.info(number, scrambler["name"]), b"", content)
        target, name = (
            int.from_bytes(content[:2]),
            task.steps[number - 1]["targets"][int.from_bytes(content[:2])]["name"],
        )
        plain = hpke_open(self.keys[name], task.info(number, name), b"", content[2:])
        nonce = Verifier(self.issuer.spki).nonce(plain[:354], task.challenge(number, name))
        length = int.from_bytes(plain[354:356])
        record = None if length == 0xFFFF else plain[356 : 356 + length]
        assert not any(plain[356 + len(record or b"") :])
        return number, target, nonce, record

    def _entries(self, url: str, late: bool) -> bytes:
        places = itertools.product((1, 2), (1, 2, 3, 4))
        step, target = next(place for place in places if url.startswith(self.url("target-{}-{}".format(*place))))
        mine = [nonce for number, place, nonce, _ in self.arrived if (number, place) == (step, target - 1)]
        entries = [hashlib.sha256(b"hushuffle passage 1|" + nonce).digest() for nonce in mine]
        return b"".join(sorted(one for one in entries if (one[0] > 127) == late))


def _shown(header: str) -> list[bytes]:
    found = _SHOWN.fullmatch(header)
    assert found is not None
    return [bytes.fromhex(one) for one in found.groups()]


def services(issuer: IssuerKey, **changes: Any) -> Services:
    """Return services with keys that are always the same; `changes`: of the document."""
    names = (
        [f"scrambler-{one}" for one in (1, 2)]
        + [f"target-1-{one}" for one in (1, 2, 3, 4)]
        + ["target-2-1", "target-2-2", "result"]
    )
    keys = {name: bytes([number]) * 32 for number, name in enumerate(names, 1)}
    return Services(issuer=issuer, keys=keys, changes=changes)
