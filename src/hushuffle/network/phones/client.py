"""A phone's side of a task. It needs Python 3.11, `cryptography`, and `choices.py`, `formats.py`, `limits.py` with it.

    python client.py task.json [--id ID] --state FOLDER [--limits FILE] [--moved] --answers FILE --code-file FILE
    python client.py task.json [--id ID] --state FOLDER --check
    python client.py task.json [--id ID] --state FOLDER --next FILE

The first sends answers, or the same bytes once more if they were not taken, unless the task asks for more than the
owner's limits give, or all tasks of the folder together; the second looks whether they passed. The third writes the
document of the next iteration into a file, where a query asks several times: answers are then those of the first.
What the bytes are: docs/reference/phone-protocol.md.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from socket import SHUT_RDWR, socket
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

if __package__:
    from hushuffle.network.phones import choices, formats
    from hushuffle.network.phones import limits as owner
else:
    import choices  # type: ignore[import-not-found, no-redef]
    import formats  # type: ignore[import-not-found, no-redef]
    import limits as owner  # type: ignore[import-not-found, no-redef]

Answers: TypeAlias = choices.Answers
Folder: TypeAlias = str | os.PathLike[str]
PhoneError = formats.PhoneError
_NUMBER, _NO_DATA, _SEAL = struct.Struct(">H"), 0xFFFF, 48
_DOCUMENT, _MESSAGE = 20_000, (512, 16_384)
"""Bytes of a document, at most, and of its messages: what services take, too."""
_MOST: Final = 1 << 26
"""Bytes of an answer, at most."""
_EACH: Final = 60.0
"""Seconds that an answer may take, until its last byte is here."""
_ALL: Final = 600.0
"""Seconds for all answers of one call together; then it is a TryAgainError."""
_LIMITS: Final = owner.Limits()
_FAULTS: Final = {
    9: "is not valid yet (or the clock is wrong)",
    10: "has expired (or the clock is wrong)",
    62: "is for another name",
    64: "is for another address",
}
"""What OpenSSL says of certificates."""
_HERE: Final = ("localhost", "127.0.0.1", "[::1]")
_NO_ADDRESS: Final = "an address of the task, or the code, is of no form that HTTP knows."


class TryAgainError(PhoneError):
    """Somebody could not be reached or has no time: the same bytes can be sent once more."""


MOST_ROUNDS = 1_000_000

Send: TypeAlias = Callable[[str, bytes | None, Mapping[str, str]], tuple[int, bytes]]
"""Sends a POST with a body and headers, or a GET without one, to an address; returns status and content."""


class Task:
    """A task's document; its digest is the task's `id`.

    Raises:
        PhoneError: it is none, or not the one with the `expected` id.
    """

    def __init__(self, data: bytes, expected: bytes | None = None) -> None:
        self.id, self.data = hashlib.sha256(data).digest(), data
        if expected is not None and self.id != expected:
            message = "the task document is not the one with the expected id."
            raise PhoneError(message)
        try:
            self.document: dict[str, Any] = json.loads(data)
            known = len(data) <= _DOCUMENT and self.document["version"] == 2 and _formed(self.document)
            self.steps: list[dict[str, Any]] = self.document["steps"]
            self.chain: list[dict[str, str]] = self.document["chain"]
            self.gateway = formats.key_config(bytes.fromhex(self.chain[0]["key"]))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            known = False
        if not known:
            message = "this is no task document of version 2."
            raise PhoneError(message)

    def info(self, step: int, name: str) -> bytes:
        """Return what the seals for a scrambler or target are bound to."""
        return b"hushuffle onion 1|" + self.id + _NUMBER.pack(step) + name.encode()

    def challenge(self, step: int, name: str) -> bytes:
        """Return what a token for a target is for."""
        context = hashlib.sha256(b"hushuffle token 1|" + self.id + _NUMBER.pack(step) + name.encode()).digest()
        return formats.token_challenge(self.document["issuer"]["name"], context, "")

    def ticket_challenge(self, step: int) -> bytes:
        """Return what a ticket is for: the first scrambler takes it, one for each message of the step."""
        name = self.chain[0]["name"].encode()
        context = hashlib.sha256(b"hushuffle ticket 1|" + self.id + _NUMBER.pack(step) + name).digest()
        return formats.token_challenge(self.document["issuer"]["name"], context, "")

    def path(self, what: str) -> str:
        """Return what follows a service's address for this task."""
        return f"/tasks/{self.id.hex()}/{what}"


def _formed(document: Mapping[str, Any]) -> bool:
    """Say whether what the owner's limits and the choices of targets rest on has the form that it must have."""
    about, figures = document.get("round", {}), document.get("figures", {})
    numbers = [about.get(name, 1) for name in ("number", "rounds")] if isinstance(about, dict) else [None]
    steps, chain = document["steps"], document["chain"]
    whole = all(isinstance(one, int) and 0 < one <= MOST_ROUNDS for one in numbers)
    listed = isinstance(steps, list) and isinstance(chain, list) and len(steps) > 0 and len(chain) > 0
    low, high = _MESSAGE  # else it asks for any amount of memory
    whole = whole and isinstance(document["message"], int) and low <= document["message"] <= high
    return whole and listed and isinstance(figures, dict) and all(len(step["targets"]) > 0 for step in steps)


# What a phone does in a step


def stream(secret: bytes, purpose: str) -> formats.Draw:
    """Return a source of random bytes: as secret as `secret`, the same for the same purpose."""
    calls = count()
    return lambda size: formats.expand(secret, f"hushuffle phone 1|{purpose}|{next(calls)}".encode(), size)


class Part(NamedTuple):
    """What a phone does in a step: its `number`, `target`, `content` (None: no data), requests for token and ticket."""

    number: int
    target: int
    content: bytes | None
    blinded: formats.Blinded
    ticket: formats.Blinded

    def __repr__(self) -> str:
        return "Part()"  # never an answer

    @property
    def entry(self) -> bytes:
        """What the target publishes when the message came, 32 bytes."""
        return hashlib.sha256(b"hushuffle passage 1|" + self.blinded.message[2:34]).digest()


def parts_of(task: Task, answers: Answers, secret: bytes) -> list[Part]:
    """Return what a phone does, all of it drawn from 32 secret bytes: the same again for the same secret."""
    asked = list(range(1, len(task.steps) + 1))
    if task.document["per_person"] == "one":
        asked = [1 + choices.below(len(asked), stream(secret, "step"))]
    parts = []
    for number in asked:
        step = task.steps[number - 1]
        found = choices.record_of(task.document, step, answers)
        target, carries = choices.choose(step, None if found is None else found[0], stream(secret, f"target {number}"))
        challenge = task.challenge(number, step["targets"][target]["name"])
        blinded = formats.blind(binascii.a2b_base64(step["token_key"]), challenge, stream(secret, f"token {number}"))
        key, draw = binascii.a2b_base64(step["ticket_key"]), stream(secret, f"ticket {number}")
        ticket = formats.blind(key, task.ticket_challenge(number), draw)
        parts.append(Part(number, target, found[1] if found is not None and carries else None, blinded, ticket))
    return parts


def onion_of(task: Task, part: Part, token: bytes, secret: bytes) -> bytes:
    """Return the message of a part, sealed for its target and for one scrambler after the other."""
    draw = stream(secret, f"onion {part.number}")
    target = task.steps[part.number - 1]["targets"][part.target]
    room = task.document["message"] - _SEAL * (len(task.chain) + 1) - _NUMBER.size - len(token)
    length = _NO_DATA if part.content is None else len(part.content)
    plain = token + _NUMBER.pack(length) + (part.content or b"").ljust(room - _NUMBER.size, b"\0")
    body = formats.hpke_seal(bytes.fromhex(target["key"]), task.info(part.number, target["name"]), b"", plain, draw)
    body = _NUMBER.pack(part.target) + body
    for scrambler in reversed(task.chain):
        info = task.info(part.number, scrambler["name"])
        body = formats.hpke_seal(bytes.fromhex(scrambler["key"]), info, b"", body, draw)
    if len(body) != task.document["message"]:
        message = "a record does not fit into the messages of this task."
        raise PhoneError(message)
    return body


def request_of(
    task: Task, part: Part, onion: bytes, ticket: bytes, secret: bytes
) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Return what is posted to the relay, and what opens its answer."""
    scheme, _, rest = task.chain[0]["url"].partition("://")
    authority, _, folder = rest.rstrip("/").partition("/")
    path = f"{'/' if folder else ''}{folder}" + task.path(f"steps/{part.number:04d}")
    request = formats.encode_request("POST", scheme, authority, path, [formats.authorization(ticket)], onion)
    return formats.encapsulate(task.gateway, request, stream(secret, f"request {part.number}"))


# What is kept, and what is sent


def kept(path: str) -> dict[str, Any] | None:
    """Return what was written before anything was sent; None if nothing was."""
    try:
        found: dict[str, Any] = json.loads(content_of(path))
        _ = bytes.fromhex(found["secret"]), found["answers"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        message = f"{path} cannot be read or is damaged: nothing is sent."
        raise PhoneError(message) from None
    return found


def content_of(path: str) -> bytes:
    """Return what is in a file."""
    with open(path, "rb") as file:  # noqa: PTH123 - without pathlib the client starts sooner
        return file.read()


def keep(path: str, answers: Answers) -> None:
    """Write answers and a new secret, through to the disk, for the owner alone; what is there already stays."""
    content = json.dumps({"answers": answers, "secret": os.urandom(32).hex()}).encode()
    place = os.path.dirname(path)  # noqa: PTH120
    try:
        new = owner.write_new(path, lambda _: content)
        try:
            os.link(new, path)  # a name that is taken stays as it is
        except FileExistsError:
            pass
        finally:
            os.unlink(new)  # noqa: PTH108
        owner.settle(place)
    except OSError:
        owner.cannot_write(place)


def post(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Send one request over HTTPS, plain HTTP to this machine only; redirections are not followed.

    The answer must be here 60 seconds after the connection was made, however it comes, and have at most 64 MB.
    """
    from http import client as http  # noqa: PLC0415 - a third of the time that the client needs to start

    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    if scheme != "https" and (scheme != "http" or (authority.rpartition(":")[0] or authority) not in _HERE):
        message = "an address of the task is not https."
        raise PhoneError(message)
    connection: http.HTTPConnection | None = None
    try:
        connection = (http.HTTPSConnection if scheme == "https" else http.HTTPConnection)(authority, timeout=_EACH)
        if not connection.host or not 0 < connection.port < 1 << 16 or set("@[]") & set(connection.host):
            raise http.InvalidURL
        connection.putrequest("GET" if body is None else "POST", f"/{path}")
        for name, value in headers.items():
            connection.putheader(name, value)
        return _answer(connection, body)
    except (OSError, http.HTTPException) as error:
        if isinstance(error, http.InvalidURL):
            raise PhoneError(_NO_ADDRESS) from None
        if (fault := getattr(error, "verify_code", None)) is not None:  # it is the same at the next try
            words = _FAULTS.get(fault, "is not signed by an authority that this machine trusts")
            message = f"the certificate of {connection.host if connection else authority} {words}: nothing is sent."
            raise PhoneError(message) from None
        message = "there is no connection, or no answer in time."
        raise TryAgainError(message) from None
    except (ValueError, OverflowError):
        raise PhoneError(_NO_ADDRESS) from None
    finally:
        if connection is not None:
            connection.close()


def _answer(connection: Any, body: bytes | None) -> tuple[int, bytes]:
    """Connect, send a request, and return status and content of its answer, if all of it is here in time."""
    from threading import Timer  # noqa: PLC0415 - only where something is sent

    if body is not None:
        connection.putheader("content-length", str(len(body)))
    connection.connect()
    last, watch = monotonic() + _EACH, Timer(_EACH, _end, (connection.sock,))
    watch.start()
    try:
        connection.endheaders(body)
        answer = connection.getresponse()
        status, content = answer.status, answer.read(_MOST + 1)
    finally:
        watch.cancel()
    if monotonic() >= last:
        raise TimeoutError
    return status, content


def _end(connected: socket) -> None:
    """End every wait for a further byte: what comes byte by byte has a timeout for each of them only."""
    with suppress(OSError):
        socket.shutdown(connected, SHUT_RDWR)


class Phone:
    """One person's part in one task.

    The state file, written before the first byte leaves, decides everything that is sent: who starts again sends the
    same bytes. `answers` left out: those of the state, or of the iteration before. `limits`: what the owner gives at
    most; what the tasks of the folder `state` spend is added up there. `moved`: the folder is a copy, and the old one
    is gone.

    Raises:
        PhoneError: the state holds other answers, or none, or cannot be used; the task asks for more than is given.
    """

    def __init__(
        self,
        task: Task,
        state: Folder,
        answers: Answers | None = None,
        *,
        limits: owner.Limits = _LIMITS,
        moved: bool = False,
        send: Send = post,
    ) -> None:
        self._task, self._send, self._limits, self._moved = task, send, limits, moved
        self._folder = os.path.abspath(state)  # noqa: PTH100
        self._path = path = os.path.join(self._folder, f"{task.id.hex()}.json")  # noqa: PTH118
        found, former = kept(path), task.document.get("round", {}).get("former")
        if answers is None and found is None and former is not None:
            answers = self._earlier(former)
        if answers is not None:
            asked = {name for step in task.steps for name in step["columns"]}
            asked |= {column["name"] for column in task.document["values"]}
            if missing := ", ".join(sorted(asked - set(answers))):
                message = f"the answers lack {missing} (null is an answer): nothing is sent."
                raise PhoneError(message)
            answers = {name: answers[name] for name in sorted(asked)}
            if found is None:
                owner.check_limits(limits, task.document, task.data)
                self._begin(answers)
                found = kept(path)
        if found is None:
            message = f"{path} is not there: nothing was sent for this task."
            raise PhoneError(message)
        if answers is not None and json.dumps(answers) != json.dumps(found["answers"]):
            message = "another answer was given for this task before: only that one is sent."
            raise PhoneError(message)
        self._secret = bytes.fromhex(found["secret"])
        self.parts = parts_of(task, found["answers"], self._secret)

    def _earlier(self, former: str) -> Answers | None:
        """Return the answers of the iteration before, which only one of the same run may have."""
        earlier = kept(os.path.join(self._folder, f"{former}.json"))  # noqa: PTH118
        if earlier is None:
            return None
        with owner.alone(self._folder):
            owner.Total(self._folder, moved=self._moved).check_follows(self._task.document)
        answers: Answers = earlier["answers"]
        return answers

    def _begin(self, answers: Answers) -> None:
        with owner.alone(self._folder):
            if owner.Total(self._folder, moved=self._moved).holds(self._task.id.hex()) and kept(self._path) is None:
                message = f"{self._path} is missing: what was sent for this task is not known. Nothing is sent."
                raise PhoneError(message)
            keep(self._path, answers)

    def send(self, code: str) -> None:
        """Get tokens and tickets with an invitation's code, and send everything; once more after a TryAgainError.

        The code stays here: issuers get proofs. What it costs is written down before the first byte leaves, once for a
        task however often it is sent.
        """
        invitation, ask = formats.Invitation(code.strip()), self._asking()
        cost = owner.check_limits(self._limits, self._task.document, self._task.data)
        with owner.alone(self._folder):
            total = owner.Total(self._folder, moved=self._moved)
            total.spend(self._task.id.hex(), self._task.document, cost, self._limits)
        for part in self.parts:
            onion = onion_of(self._task, part, self._token(ask, part, "token", invitation), self._secret)
            ticket = self._token(ask, part, "ticket", invitation)
            request, open_response = request_of(self._task, part, onion, ticket, self._secret)
            headers = {"content-type": "message/ohttp-req"}
            answer = _good(*ask(self._task.document["relay"], request, headers), "the relay", self._task.document)
            status, _, content = formats.decode_response(open_response(answer))
            _good(status, content, "the first scrambler", self._task.document)

    def _asking(self) -> Send:
        """Return what sends requests, as long as there is time for those of one call."""
        last = monotonic() + _ALL

        def ask(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
            if monotonic() > last:
                message = f"the answers take more than {_ALL:g} seconds together."
                raise TryAgainError(message)
            status, content = self._send(url, body, headers)
            if len(content) > _MOST:
                message = f"an answer has more than {_MOST:,} bytes."
                raise PhoneError(message)
            return status, content

        return ask

    def _token(self, ask: Send, part: Part, kind: str, invitation: formats.Invitation) -> bytes:
        url = self._task.document["issuer"]["url"].rstrip("/") + self._task.path(f"steps/{part.number}/{kind}")
        blinded = part.blinded if kind == "token" else part.ticket
        shown = invitation.shown(self._task.id, part.number, kind, blinded.spki, blinded.request)
        headers = {"content-type": "application/private-token-request", **dict([shown])}
        return blinded.finalize(_good(*ask(url, blinded.request, headers), "the issuer", self._task.document))

    def passed(self) -> Iterator[tuple[int, bool]]:
        """Yield each step with whether its message is in the lists that were published until now.

        The lists of all targets are read, so that nobody sees which of them it went to.
        """
        ask = self._asking()
        for part in self.parts:
            step, there = self._task.steps[part.number - 1], False
            batches = 2 * -(-step["sources"] // step["batch"]) + 16  # more than planned may come at the same time
            size = 32 * (step["batch"] + len(self._task.chain) * step["dummies"])
            for target in step["targets"]:
                url = target["url"].rstrip("/") + self._task.path("passage")
                listed = json.loads(_good(*ask(url, None, {}), "a target", self._task.document))["batches"]
                _bounded(listed, batches)
                for batch in listed:
                    found = _good(*ask(f"{url}/{int(batch)}", None, {}), "a target", self._task.document)
                    _bounded(found, size)
                    there |= part.entry in {found[at : at + 32] for at in range(0, len(found), 32)}
            yield part.number, there

    def following(self) -> bytes:
        """Return the document of the next iteration, made of what came of this one; a TryAgainError: not there yet."""
        url = self._task.document["result"]["url"].rstrip("/") + self._task.path("next")
        status, content = self._asking()(url, None, {})
        found = Task(_good(408 if status == 404 else status, content, "the result", self._task.document))
        if not owner.follows(found.document, self._task.document, self._task.id.hex()):
            message = "what the result answered is not the next iteration."
            raise PhoneError(message)
        return content


def _bounded(listed: bytes | list[Any], most: int) -> None:
    if len(listed) > most:
        message = "a target lists more batches or messages than the task can have."
        raise PhoneError(message)


_WORDS: Final = {
    b"code used": "the code was used already, with another request: each code is for one phone",
    b"no such code": "it knows no such code for this task",
    b"ticket used": "the ticket was used already",
    b"too late": "this task is closed",
    b"over": "this task is over",
    b"no such task": "it takes no part in this task",
    b"out of service": "it cannot go on with this task until its operator has put it right",
    b"busy": "it cannot write to its disk",
    b"no gateway": "it does not reach the first scrambler",
}
"""What services answer in a word, in a sentence; nothing else of an answer is shown."""


def _closed_since(document: Mapping[str, Any]) -> str:
    """Return " since" the moment at which a task was closed, in UTC."""
    from datetime import datetime, timedelta  # noqa: PLC0415 - only where something went wrong

    try:
        moment = datetime.fromisoformat(document["start"]) + timedelta(seconds=document["collect"])
    except (ValueError, TypeError, LookupError, OverflowError):
        return ""
    return f" since {moment:%Y-%m-%d %H:%M} UTC"


def _good(status: int, content: bytes, who: str, document: Mapping[str, Any]) -> bytes:
    if 200 <= status < 300:
        return content
    word = content[:32].strip()
    words = _WORDS.get(word, "")
    if word in (b"too late", b"over"):
        words += _closed_since(document)
    message = f"{who} answered {status}{': ' * bool(words)}{words}."
    raise (TryAgainError if status in (408, 425, 429) or status >= 500 else PhoneError)(message)


def main(arguments: list[str] | None = None) -> int:
    """Run the program: 0 if all is well, 1 if not, 2 if it was asked wrongly, 75 if the same command may help later."""
    import getopt  # noqa: PLC0415 - argparse takes two megabytes

    try:
        names = ["id=", "answers=", "code-file=", "state=", "limits=", "next=", "moved", "check"]
        options, (file,) = getopt.gnu_getopt(sys.argv[1:] if arguments is None else arguments, "", names)
        given = dict(options)
        state, expected = given["--state"], bytes.fromhex(given["--id"]) if "--id" in given else None
        code_file = "" if {"--check", "--next"} & {*given} else given["--code-file"]
    except (getopt.GetoptError, LookupError, ValueError):
        print(__doc__, file=sys.stderr)  # noqa: T201
        return 2
    try:
        task = Task(content_of(file), expected)
        answers = dict(json.loads(content_of(given["--answers"]))) if "--answers" in given else None
        limits = owner.read_limits(content_of(given["--limits"])) if "--limits" in given else _LIMITS
        phone = Phone(task, state, answers, limits=limits, moved="--moved" in given)
        if "--next" in given:
            content = phone.following()
            os.replace(owner.write_new(given["--next"], lambda _: content), given["--next"])  # noqa: PTH105
            return 0
        if not code_file:
            lost = [str(number) for number, there in phone.passed() if not there]
            print(f"not in the lists of step {', '.join(lost)}" if lost else "passed")  # noqa: T201
            return 1 if lost else 0
        phone.send(content_of(code_file).decode("ascii").strip())
        print("sent")  # noqa: T201
    except (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        known = isinstance(error, PhoneError | OSError)
        print(error if known else "what was read or answered has not the right form.", file=sys.stderr)  # noqa: T201
        return 75 if isinstance(error, TryAgainError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
