"""What reaches the services for phones, and the phone: documents, sealed requests, batches, parts, tokens, keys."""

from __future__ import annotations

import base64
import json
import random
import struct
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import tomli_w
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fuzz.fuzzing import FLOATS, Fuzzer, Input, Maker, changed_bytes, changed_text, changed_tree
from hushuffle.errors import DataError
from hushuffle.specification.reading import parsed
from hushuffle.specification.wording import Vocabulary
from hushuffle_network import client, formats
from hushuffle_network.batches import FIRST, Link, check_trail, head_of, messages_of, pack, signed_head
from hushuffle_network.bundle import PhoneHosts
from hushuffle_network.oblivious_http import GatewayKey, decode_request
from hushuffle_network.parts import Counted, Counts, Part, opened_part, published
from hushuffle_network.promise import check_task
from hushuffle_network.settings import ServiceKeys, load_service, public_of
from hushuffle_network.task import TaskDocument, canonical, parse_task
from hushuffle_network.tokens import IssuerKey, Verifier, token_shown
from network.phone_cases import drawn

_JSON: Final[list[Any]] = [
    *(None, True, False, 0, -1, 1, 2, 10**9, 2**53, 2**63, 10**30, 0.5, -0.0, 1e308, 1e-320),
    *([], [[]], {}, [{}], "", "\0", "é", "a" * 5000, "==", "0" * 64, "f" * 128, "AAAA", "%"),
]
_TOML: Final[list[Any]] = [one for one in _JSON if one is not None]
_SIGN: Final = Ed25519PrivateKey.from_private_bytes(bytes(32))
_SEAL: Final = X25519PrivateKey.from_private_bytes(bytes(range(32)))
_DEEP: Final = b"[" * 100_000
SERVICE: Final = """
role = "scrambler"
name = "scrambler-1"
listen = "127.0.0.1:8080"
tasks = "tasks"
state = "state"
keys = "keys/scrambler-1.keys"
keep = 3600.0
connections = 100
"""
HOSTS: Final = """
people = 20
keys = "keys"
[urls]
relay = "https://relay.example"
scrambler-1 = "https://scrambler.example"
"""


def _told(read: Callable[[], object]) -> Callable[[], object]:
    """Return what does the same and raises an error of the project where a phone's client, which has none, refuses."""

    def reading() -> object:
        try:
            return read()
        except formats.PhoneError as error:
            raise DataError(str(error)) from None

    return reading


def tasks(_folder: Path) -> Maker:
    """Change the document of a task, and do with it what services and a phone do before they answer."""
    tree = json.loads(drawn().content)

    def look(data: bytes) -> None:
        check_task(parse_task(data))

    def answer(data: bytes) -> None:
        client.Task(data)

    def make(rng: random.Random) -> Input:
        data = canonical(changed_tree(tree, rng, _JSON))
        if rng.random() < 0.2:
            data = rng.choice([_DEEP, changed_bytes(data, rng)])
        return Input(content=data[:2000], read=_told(lambda: rng.choice([look, look, answer])(data)))

    return make


def requests(_folder: Path) -> Maker:
    """Change what a relay hands on, the request inside, and the answer that a phone opens."""
    key = GatewayKey(private=bytes(32), number=7)
    asked = formats.encode_request("POST", "https", "a.example", "/tasks/x/steps/1", [("authorization", "x")], b"abc")

    def make(rng: random.Random) -> Input:
        inside = changed_bytes(asked, rng) if rng.random() < 0.6 else rng.randbytes(rng.randint(0, 60))
        sealed, opened = formats.encapsulate(key.config, inside)
        damaged = changed_bytes(sealed, rng)
        config = changed_bytes(key.config, rng, most=2)
        content, read = rng.choice(
            [
                (inside, lambda: decode_request(key.open(sealed)[0])),
                (damaged, lambda: key.open(damaged)),
                (inside, lambda: formats.decode_response(inside)),
                (damaged, lambda: opened(damaged)),
                (config, lambda: formats.encapsulate(config, inside)),
                (damaged, lambda: formats.hpke_open(bytes(32), b"", b"", damaged)),
            ]
        )
        return Input(content=content, read=_told(read))

    return make


def batches(_folder: Path) -> Maker:
    """Change batches, under the right signature or another, and read them as a scrambler or a target does."""
    document = drawn()
    sender = document.chain[0].model_copy(update={"sign": _SIGN.public_key().public_bytes_raw().hex()})
    document = document.model_copy(update={"chain": (sender, *document.chain[1:])})
    messages = [bytes([number]) * 40 for number in range(6)]
    link = Link.signed(_SIGN, document.id, 1, 1, sender.name, 6, 6, 6 + document.step(1).dummies)
    head = head_of(document, 1, 1, sender.name, "scrambler-2", messages, trail=(link,))
    whole, tree = pack(head, messages, _SIGN), head.model_dump(mode="json")

    def look(body: bytes) -> None:
        read = signed_head(body, document, senders=[sender], receiver="scrambler-2")
        check_trail(document, read, hops=1)
        messages_of(body, read, size=40)

    def signed(rng: random.Random) -> bytes:
        text = canonical(changed_tree(tree, rng, _JSON))
        signature = _SIGN.sign(b"hushuffle batch 1|" + text)
        return len(text).to_bytes(FIRST) + text + signature + b"".join(messages)

    def make(rng: random.Random) -> Input:
        body = signed(rng) if rng.random() < 0.7 else changed_bytes(whole, rng)
        return Input(content=body[:2000], read=lambda: look(body))

    return make


def parts(_folder: Path) -> Maker:
    """Change what targets tell the result, sealed as they seal it, and add it all up."""
    document, sign = drawn(), _SIGN.public_key().public_bytes_raw().hex()
    result = document.result.model_copy(update={"key": _SEAL.public_key().public_bytes_raw().hex()})
    chain = tuple(one.model_copy(update={"sign": sign}) for one in document.chain)
    document = document.model_copy(update={"result": result, "chain": chain})
    promise = check_task(drawn())
    honest = {
        target.name: _honest(document, number, first=place == 0)
        for number, step in enumerate(document.steps, 1)
        for place, target in enumerate(step.targets)
    }

    def look(name: str, kind: str, content: Any) -> None:
        from hushuffle_network.parts import _INFO, _SUITE  # noqa: PLC0415 - sealed, whatever it is

        sealed = _SUITE.encrypt(
            json.dumps(content).encode(), _SEAL.public_key(), info=_INFO + document.id + name.encode()
        )
        counts = {one: Counts.model_validate(each["counts"]) for one, each in honest.items()}
        parts = {one: Part.model_validate(each["part"]) for one, each in honest.items()}
        if kind == "counts":
            counts[name] = opened_part(Counts, document, name, sealed, _SEAL)
        else:
            parts[name] = opened_part(Part, document, name, sealed, _SEAL)
        json.dumps(published(document, promise, counts, parts), allow_nan=False)

    def make(rng: random.Random) -> Input:
        name = rng.choice(sorted(honest))
        kind = rng.choice(["counts", "part"])
        content = changed_tree(honest[name][kind], rng, _JSON)
        if kind == "part" and rng.random() < 0.5:
            odd = (1.0, 2.0, -1.0, 0.5, *FLOATS)
            floats = b"".join(struct.pack("<d", rng.choice(odd)) for _ in range(rng.randint(0, 6)))
            content = {"numbers": base64.b64encode(floats).decode()}
        return Input(content=content, read=lambda: look(name, kind, content))

    return make


def _honest(document: TaskDocument, number: int, *, first: bool) -> dict[str, Any]:
    """Return what a target tells of a step in which everything went to the first one."""
    step, counted = document.step(number), []
    for batch in range(1, step.batches + 1):
        came, trail = step.batch, list[Link]()
        for place in document.chain:
            counts = came, step.batch, came + step.dummies
            trail.append(Link.signed(_SIGN, document.id, number, batch, place.name, *counts))
            came += step.dummies
        messages, valid = (came, step.batch) if first else (0, 0)
        made = Counted(batch=batch, messages=messages, valid=valid, trail=tuple(trail))
        counted.append(made.model_dump(mode="json"))
    part = {"numbers": base64.b64encode(bytes(8)).decode()}
    return {"counts": {"batches": counted, "closed": step.batches}, "part": part}


def tokens(_folder: Path) -> Maker:
    """Change requests for tokens, tokens, how they are shown, and keys of issuers."""
    key = IssuerKey.generate()
    challenge = formats.token_challenge("issuer.example", bytes(32), "")
    blinded = formats.blind(key.spki, challenge)
    answer = key.sign(blinded.request)
    token, verifier = blinded.finalize(answer), Verifier(key.spki)
    header = f'PrivateToken token="{base64.urlsafe_b64encode(token).decode()}"'

    def make(rng: random.Random) -> Input:
        asked, shown, spki, signed = (
            changed_bytes(one, rng, most=3) for one in (blinded.request, token, key.spki, answer)
        )
        text, pem = (changed_text(one, rng, ("", "\0", "é", '"', "=", "-")) for one in (header, key.pem))
        content, read = rng.choice(
            [
                (asked, lambda: key.number(asked)),
                (shown, lambda: verifier.nonce(shown, challenge)),
                (text, lambda: verifier.nonce(token_shown([text]), challenge)),
                (spki, lambda: Verifier(spki)),
                (spki, lambda: formats.blind(spki, challenge)),
                (signed, lambda: blinded.finalize(signed)),
                (b"a key", lambda: IssuerKey.of(pem)),
            ]
        )
        return Input(content=content, read=_told(read))

    return make


def service_keys(folder: Path) -> Maker:
    """Change the keys of services, secret and public, and what a phone keeps."""
    made = [ServiceKeys.generate(role, steps=1) for role in ("scrambler", "target", "issuer")]
    secret, public, state = folder / "a.keys", folder / "a.public.json", folder / "state"

    def make(rng: random.Random) -> Input:
        one = rng.choice(made)
        path, text, read = rng.choice(
            [
                (secret, one.text, lambda: ServiceKeys.read(str(secret))),
                (public, json.dumps(one.public), lambda: public_of(folder, "a")),
                (state, json.dumps({"secret": "ab" * 32, "answers": {"age": 4}}), lambda: client.kept(str(state))),
            ]
        )
        coin, content = rng.random(), json.dumps(changed_tree(json.loads(text), rng, _JSON)).encode()
        if coin < 0.3:
            content = _DEEP if coin < 0.05 else changed_bytes(text.encode(), rng)
        path.write_bytes(content)
        path.chmod(0o600)
        return Input(content=content[:2000], read=_told(read))

    return make


def _settings(text: str, load: Callable[[Path], object]) -> Fuzzer:
    def fuzzer(folder: Path) -> Maker:
        def make(rng: random.Random) -> Input:
            content = tomli_w.dumps(changed_tree(tomllib.loads(text), rng, _TOML))
            (folder / "file.toml").write_text(content, encoding="utf-8")
            return Input(content=content, read=lambda: load(folder / "file.toml"))

        return make

    return fuzzer


def _hosts(path: Path) -> PhoneHosts:
    words = Vocabulary(sections={"": (PhoneHosts,)}, goes_with={})
    return parsed(path.read_text(encoding="utf-8"), PhoneHosts, file="hosts.toml", words=words)


service_settings = _settings(SERVICE, load_service)
phone_hosts = _settings(HOSTS, _hosts)
