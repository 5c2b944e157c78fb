"""A phone's side of a task. It needs Python 3.11, `cryptography`, and `choices.py`, `formats.py`, `limits.py` with it.

    python client.py task.json [--id ID] --state FOLDER [--limits FILE] [--moved] --answers FILE --code-file FILE
    python client.py task.json [--id ID] --state FOLDER --check
    python client.py task.json [--id ID] --state FOLDER --next FILE

The first command sends answers, or the same bytes again if they were not accepted, unless the task exceeds the owner's
limits, alone or together with all tasks of the folder. The second checks whether the messages passed. The third writes
the document of the next iteration into a file, for queries with several iterations: the answers are then those of the
first one. docs/reference/phone-protocol.md defines the bytes.
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
    from hushuffle_network import choices, formats
    from hushuffle_network import limits as owner
else:
    import choices  # type: ignore[import-not-found, no-redef]
    import formats  # type: ignore[import-not-found, no-redef]
    import limits as owner  # type: ignore[import-not-found, no-redef]

Answers: TypeAlias = choices.Answers
Folder: TypeAlias = str | os.PathLike[str]
PhoneError = formats.PhoneError
refuse = formats.refuse
_NUMBER, _NO_DATA, _SEAL = struct.Struct(">H"), 0xFFFF, 48
_DOCUMENT, _MESSAGE = 20_000, (512, 16_384)
"""Largest number of bytes of a document; smallest and largest size of a message. Services have the same limits."""
_MOST: Final = 1 << 26
"""Largest number of bytes of an answer."""
_EACH: Final = 60.0
"""Seconds within which the last byte of an answer must arrive."""
_ALL: Final = 600.0
"""Seconds for all answers of one call together; after that, the call raises TryAgainError."""
_LIMITS: Final = owner.Limits()
_FAULTS: Final = {
    9: "is not valid yet (or the clock is wrong)",
    10: "has expired (or the clock is wrong)",
    62: "is for another name",
    64: "is for another address",
}
"""Texts for OpenSSL's codes of certificate errors."""
_HERE: Final = ("localhost", "127.0.0.1", "[::1]")
_NO_ADDRESS: Final = "an address of the task, or the code, does not have the form that HTTP requires."


class TryAgainError(PhoneError):
    """A service could not be reached or is busy: the same bytes can be sent again."""


MOST_ROUNDS = 1_000_000

Send: TypeAlias = Callable[[str, bytes | None, Mapping[str, str]], tuple[int, bytes]]
"""Function that sends a request to an address (POST with a body, GET without), and returns status and content."""


class Task:
    """The document of a task; its digest is the task's `id`, which must be `expected` if that is given."""

    def __init__(self, data: bytes, expected: bytes | None = None) -> None:
        self.id, self.data = hashlib.sha256(data).digest(), data
        if expected is not None and self.id != expected:
            refuse("the task document is not the one with the expected id.")
        try:
            self.document: dict[str, Any] = json.loads(data)
            valid = len(data) <= _DOCUMENT and self.document["version"] == 2 and _formed(self.document)
            self.steps: list[dict[str, Any]] = self.document["steps"]
            self.chain: list[dict[str, str]] = self.document["chain"]
            self.gateway = formats.key_config(bytes.fromhex(self.chain[0]["key"]))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            valid = False
        if not valid:
            refuse("this is no task document of version 2.")

    def info(self, step: int, name: str) -> bytes:
        """Return HPKE's `info` for messages to a scrambler or target in a step."""
        return b"hushuffle onion 1|" + self.id + _NUMBER.pack(step) + name.encode()

    def challenge(self, step: int, name: str) -> bytes:
        """Return the challenge (RFC 9577) of a token for a target in a step."""
        context = hashlib.sha256(b"hushuffle token 1|" + self.id + _NUMBER.pack(step) + name.encode()).digest()
        return formats.token_challenge(self.document["issuer"]["name"], context, "")

    def ticket_challenge(self, step: int) -> bytes:
        """Return the challenge of a step's ticket (RFC 9577); the first scrambler accepts one message per ticket."""
        name = self.chain[0]["name"].encode()
        context = hashlib.sha256(b"hushuffle ticket 1|" + self.id + _NUMBER.pack(step) + name).digest()
        return formats.token_challenge(self.document["issuer"]["name"], context, "")

    def path(self, what: str) -> str:
        return f"/tasks/{self.id.hex()}/{what}"


def _formed(document: Mapping[str, Any]) -> bool:
    """Return whether the fields that `limits` and `choices` use have the required form."""
    about, figures = document.get("round", {}), document.get("figures", {})
    numbers = [about.get(name, 1) for name in ("number", "rounds")] if isinstance(about, dict) else [None]
    steps, chain = document["steps"], document["chain"]
    whole = all(isinstance(one, int) and 0 < one <= MOST_ROUNDS for one in numbers)
    listed = isinstance(steps, list) and isinstance(chain, list) and len(steps) > 0 and len(chain) > 0
    low, high = _MESSAGE  # otherwise a document could demand any amount of memory
    whole = whole and isinstance(document["message"], int) and low <= document["message"] <= high
    return whole and listed and isinstance(figures, dict) and all(len(step["targets"]) > 0 for step in steps)


# A phone's messages in a step


def stream(secret: bytes, purpose: str) -> formats.Draw:
    """Return a pseudorandom generator of bytes, determined by `secret` and `purpose`."""
    calls = count()
    return lambda size: formats.expand(secret, f"hushuffle phone 1|{purpose}|{next(calls)}".encode(), size)


class Part(NamedTuple):
    """A phone's message in step `number` to the step's target `target`; the record `content` is None for no data.

    `blinded`, `ticket`: the requests for a token and for a ticket.
    """

    number: int
    target: int
    content: bytes | None
    blinded: formats.Blinded
    ticket: formats.Blinded

    def __repr__(self) -> str:
        return "Part()"  # never an answer

    @property
    def entry(self) -> bytes:
        """The 32-byte entry that the target publishes when the message has arrived."""
        return hashlib.sha256(b"hushuffle passage 1|" + self.blinded.message[2:34]).digest()


def parts_of(task: Task, answers: Answers, secret: bytes) -> list[Part]:
    """Return a phone's messages in a task's steps; all randomness is derived from the 32 bytes of `secret`."""
    numbers = list(range(1, len(task.steps) + 1))
    if task.document["per_person"] == "one":
        numbers = [1 + choices.below(len(numbers), stream(secret, "step"))]
    parts = []
    for number in numbers:
        step = task.steps[number - 1]
        record = choices.record_of(task.document, step, answers)
        target, carries = choices.choose(
            step, None if record is None else record[0], stream(secret, f"target {number}")
        )
        challenge = task.challenge(number, step["targets"][target]["name"])
        blinded = formats.blind(binascii.a2b_base64(step["token_key"]), challenge, stream(secret, f"token {number}"))
        key, draw = binascii.a2b_base64(step["ticket_key"]), stream(secret, f"ticket {number}")
        ticket = formats.blind(key, task.ticket_challenge(number), draw)
        parts.append(Part(number, target, record[1] if record is not None and carries else None, blinded, ticket))
    return parts


def onion_of(task: Task, part: Part, token: bytes, secret: bytes) -> bytes:
    """Return the message of a part, sealed for its target and then for each scrambler, the last scrambler first."""
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
        refuse("a record does not fit into the messages of this task.")
    return body


def request_of(
    task: Task, part: Part, onion: bytes, ticket: bytes, secret: bytes
) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Return the encapsulated request for the relay, and a function that opens its response."""
    scheme, _, rest = task.chain[0]["url"].partition("://")
    authority, _, folder = rest.rstrip("/").partition("/")
    path = f"{'/' if folder else ''}{folder}" + task.path(f"steps/{part.number:04d}")
    request = formats.encode_request("POST", scheme, authority, path, [formats.authorization(ticket)], onion)
    return formats.encapsulate(task.gateway, request, stream(secret, f"request {part.number}"))


# Stored state and requests


def kept(path: str) -> dict[str, Any] | None:
    """Return the stored state, which is written before anything is sent; None if there is no state file."""
    try:
        state: dict[str, Any] = json.loads(content_of(path))
        _ = bytes.fromhex(state["secret"]), state["answers"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        refuse(f"{path} cannot be read or is damaged: nothing was sent. Restore it from a backup.")
    return state


def content_of(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - without pathlib the client starts sooner
        return file.read()


def keep(path: str, answers: Answers) -> None:
    """Write answers and a new secret to the disk, readable by the owner only; an existing file stays unchanged."""
    content = json.dumps({"answers": answers, "secret": os.urandom(32).hex()}).encode()
    place = os.path.dirname(path)  # noqa: PTH120
    try:
        new = owner.write_new(path, lambda _: content)
        try:
            os.link(new, path)  # an existing file stays unchanged
        except FileExistsError:
            pass
        finally:
            os.unlink(new)  # noqa: PTH108
        owner.settle(place)
    except OSError:
        owner.cannot_write(place)


def post(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Send one request over HTTPS; plain HTTP is allowed to this machine only. Redirections are not followed.

    The answer must be complete 60 seconds after the connection was established, and have at most 64 MB.
    """
    from http import client as http  # noqa: PLC0415 - a third of the time that the client needs to start

    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    if scheme != "https" and (scheme != "http" or (authority.rpartition(":")[0] or authority) not in _HERE):
        refuse("an address of the task is not https.")
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
            refuse(_NO_ADDRESS)
        if (fault := getattr(error, "verify_code", None)) is not None:  # a retry would fail in the same way
            words = _FAULTS.get(fault, "is not signed by an authority that this machine trusts")
            refuse(f"the certificate of {connection.host if connection else authority} {words}: nothing was sent.")
        message = "there is no connection, or no answer in time: try again later."
        raise TryAgainError(message) from None
    except (ValueError, OverflowError):
        refuse(_NO_ADDRESS)
    finally:
        if connection is not None:
            connection.close()


def _answer(connection: Any, body: bytes | None) -> tuple[int, bytes]:
    """Send a request over a new connection; return the answer's status and content, if complete in time."""
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
    """Close a connection, to limit the total time of an answer: a socket's own timeout restarts at every byte."""
    with suppress(OSError):
        socket.shutdown(connected, SHUT_RDWR)


class Phone:
    """One person's part in one task.

    The state file is written before the first byte is sent and determines all bytes that are sent, so a restarted phone
    sends the same bytes. `answers`: by default those in the state file, or those of the previous iteration. `state`: a
    folder, which also has the total privacy loss of its tasks. `moved`: the folder was moved here, and the old folder
    no longer exists.
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
        stored, former = kept(path), task.document.get("round", {}).get("former")
        if answers is None and stored is None and former is not None:
            answers = self._earlier(former)
        if answers is not None:
            names = {name for step in task.steps for name in step["columns"]}
            names |= {column["name"] for column in task.document["values"]}
            if missing := ", ".join(sorted(names - set(answers))):
                refuse(f"the answers lack {missing} (null is an answer): nothing was sent.")
            answers = {name: answers[name] for name in sorted(names)}
            if stored is None:
                owner.check_limits(limits, task.document, task.data)
                self._begin(answers)
                stored = kept(path)
        if stored is None:
            refuse(f"{path} does not exist, so nothing was sent for this task. Send answers first.")
        if answers is not None and json.dumps(answers) != json.dumps(stored["answers"]):
            refuse(
                "the stored answers for this task differ from these: only the stored answers are sent. "
                "Give the same answers again."
            )
        self._secret = bytes.fromhex(stored["secret"])
        self.parts = parts_of(task, stored["answers"], self._secret)

    def _earlier(self, former: str) -> Answers | None:
        """Return the answers of the previous iteration; only a later iteration of the same run may reuse them."""
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
                refuse(
                    f"{self._path} is missing, so what this task has sent is unknown: nothing was sent. "
                    "Restore the file from a backup."
                )
            keep(self._path, answers)

    def send(self, code: str) -> None:
        """Get tokens and tickets with an invitation's code, and send all messages; retry after a TryAgainError.

        The code itself is never sent: the issuer gets proofs. The cost is recorded before the first byte is sent.
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
        """Return a function that sends requests and enforces the time limit of one call."""
        last = monotonic() + _ALL

        def ask(url: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
            if monotonic() > last:
                message = f"the answers took more than {_ALL:g} seconds together: try again later."
                raise TryAgainError(message)
            status, content = self._send(url, body, headers)
            if len(content) > _MOST:
                refuse(f"an answer has more than {_MOST:,} bytes, so it was not used.")
            return status, content

        return ask

    def _token(self, ask: Send, part: Part, kind: str, invitation: formats.Invitation) -> bytes:
        url = self._task.document["issuer"]["url"].rstrip("/") + self._task.path(f"steps/{part.number}/{kind}")
        blinded = part.blinded if kind == "token" else part.ticket
        shown = invitation.shown(self._task.id, part.number, kind, blinded.spki, blinded.request)
        headers = {"content-type": "application/private-token-request", **dict([shown])}
        return blinded.finalize(_good(*ask(url, blinded.request, headers), "the issuer", self._task.document))

    def passed(self) -> Iterator[tuple[int, bool]]:
        """Yield the number of each step, and whether its message is in the lists that targets have published so far.

        The phone reads the lists of all targets, so that no observer learns the message's target.
        """
        ask = self._asking()
        for part in self.parts:
            step, there = self._task.steps[part.number - 1], False
            batches = 2 * -(-step["sources"] // step["batch"]) + 16  # more may arrive than planned
            size = 32 * (step["batch"] + len(self._task.chain) * step["dummies"])
            for target in step["targets"]:
                url = target["url"].rstrip("/") + self._task.path("passage")
                listed = json.loads(_good(*ask(url, None, {}), "a target", self._task.document))["batches"]
                _bounded(listed, batches)
                for batch in listed:
                    entries = _good(*ask(f"{url}/{int(batch)}", None, {}), "a target", self._task.document)
                    _bounded(entries, size)
                    there |= part.entry in {entries[at : at + 32] for at in range(0, len(entries), 32)}
            yield part.number, there

    def following(self) -> bytes:
        """Return the document of the next iteration from the result's service, or raise TryAgainError."""
        url = self._task.document["result"]["url"].rstrip("/") + self._task.path("next")
        status, content = self._asking()(url, None, {})
        task = Task(_good(408 if status == 404 else status, content, "the result", self._task.document))
        if not owner.follows(task.document, self._task.document, self._task.id.hex()):
            refuse("the result service did not answer with the next iteration of this task.")
        return content


def _bounded(listed: bytes | list[Any], most: int) -> None:
    if len(listed) > most:
        refuse("a target lists more batches or messages than the task can have.")


_WORDS: Final = {
    b"code used": "the code was used already, with another request: each code is for one phone",
    b"no such code": "it knows no such code for this task",
    b"ticket used": "the ticket was used already",
    b"too late": "this task is closed",
    b"over": "this task is over",
    b"no such task": "it takes no part in this task",
    b"out of service": "it cannot go on with this task until its operator has repaired it",
    b"busy": "it cannot write to its disk",
    b"no gateway": "it does not reach the first scrambler",
}
"""Sentences for the one-word answers of services; no other part of an answer is shown."""


def _closed_since(document: Mapping[str, Any]) -> str:
    """Return " since" and the moment at which a task was closed, in UTC; an empty text if the document lacks it."""
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
    """Run the program: 0 on success, 1 on failure, 2 for a wrong command line, 75 if a retry may succeed."""
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
        foreseen = isinstance(error, PhoneError | OSError)
        print(error if foreseen else "a file or an answer does not have the required form.", file=sys.stderr)  # noqa: T201
        return 75 if isinstance(error, TryAgainError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
