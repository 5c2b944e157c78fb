"""DAP tasks with a certificate: the bytes of a task's configuration, a stanza for Janus, and a client's check.

A task extension carries the certificate of the release. A client that knows its own randomizer checks the certificate
with the independent program before it sends a report. DAP binds the configuration to each report, so aggregators that
use other parameters cannot decrypt it.

Source: draft-ietf-ppm-dap-18, "Task Configuration" and "Task Extensions".
"""

from __future__ import annotations

import json
import struct
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hushuffle import _checks
from hushuffle.assessment.dap import FORMS, NAMES, dp_strategy, refusal, vdaf
from hushuffle.errors import MissingDependencyError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import SecureAggregation
from hushuffle.questions import dp

EXTENSION: Final = 0xFE50
"""The extension type of certificates. DAP's registry has no entry for them yet, so all parties must agree on it."""

_FORMAT: Final = b"\x01"
_LONGEST: Final = 1 << 20
_MODES: Final = {"time-interval": 1, "leader-selected": 2}


@dataclass(frozen=True, kw_only=True)
class TaskFields:
    """The fields of a `TaskConfiguration` that a client reads.

    `vdaf_configuration` is encoded as DAP lays it out; `extensions` has the data of each extension by its type.
    """

    task_info: bytes
    leader: str
    helper: str
    time_precision: int
    min_batch_size: int
    batch_mode: int
    vdaf_type: int
    vdaf_configuration: bytes
    extensions: Mapping[int, bytes]


def configuration(
    protocol: Protocol,
    *,
    delta: float,
    task_info: bytes,
    leader: str,
    helper: str,
    time_precision: int,
    batch_mode: str = "time-interval",
) -> bytes:
    """Return the `TaskConfiguration` of a release of sums, as DAP encodes it, with the certificate as an extension.

    Args:
        protocol: secure aggregation without server noise, which no certificate counts; `n` is the minimum batch size.
        delta: delta of the certified guarantee.
        task_info: 1 to 255 bytes that distinguish this task from others.
        leader: the URL of the leader.
        helper: the URL of the helper.
        time_precision: seconds to which clients round the times of reports.
        batch_mode: "time-interval" or "leader-selected".

    Raises:
        InvalidInputError: an argument is out of range.
        UnsupportedProtocolError: DAP has no task for the release, or no certificate is written for it.

    >>> import hushuffle as hs
    >>> device = hs.UnaryEncoding(k=8, epsilon=2.0, encoding="symmetric")
    >>> votes = hs.Protocol(randomizer=device, shuffler=hs.SecureAggregation(), n=1000)
    >>> place = {"leader": "https://leader.example/", "helper": "https://helper.example/", "time_precision": 3600}
    >>> task = configuration(votes, delta=1e-6, task_info=b"votes", **place)
    >>> epsilon, delta = check(task, device)
    >>> round(epsilon, 4), delta, read(task).min_batch_size
    (0.1813, 1e-06, 1000)
    """
    if batch_mode not in _MODES:
        _checks.reject("batch_mode", "time-interval or leader-selected", batch_mode)
    if not 1 <= len(task_info) <= 255:
        _checks.reject("task_info", "1 to 255 bytes", f"<{len(task_info)} bytes>")
    if (why := refusal(protocol)) is not None:
        _checks.unsupported(f"DAP has no task for this release. {why[2]}")
    precision = _checks.integer("time_precision", time_precision, low=1, high=2**64 - 1)
    function, certificate = vdaf(protocol), dp.certificate(protocol, delta=delta).to_json()
    parts = [
        _opaque(task_info, ">B"),
        *(_opaque(url.encode(), ">H") for url in (leader, helper)),
        struct.pack(">QQB", precision, protocol.n, _MODES[batch_mode]),
        _opaque(b"", ">H"),
        struct.pack(">I", function.number),
        _opaque(function.configuration, ">H"),
        _opaque(struct.pack(">H", EXTENSION) + _opaque(_FORMAT + zlib.compress(certificate.encode(), 9), ">H"), ">H"),
    ]
    return b"".join(parts)


def read(task: bytes) -> TaskFields:
    """Return the fields of an encoded `TaskConfiguration`.

    Raises:
        DataError: the bytes are no task configuration of draft-ietf-ppm-dap-18.
    """
    reader = _Reader(task)
    info, leader, helper = reader.opaque(">B"), reader.opaque(">H"), reader.opaque(">H")
    precision, batch, mode = reader.numbers(">QQB")
    reader.opaque(">H")
    (kind,) = reader.numbers(">I")
    settings, inner, extensions = reader.opaque(">H"), _Reader(reader.opaque(">H")), dict[int, bytes]()
    while inner.left:
        (name,) = inner.numbers(">H")
        if extensions and name <= max(extensions):
            _checks.fail("The task configuration is invalid: its extensions must be in the order of their types.")
        extensions[name] = inner.opaque(">H")
    if reader.left or not info or mode not in _MODES.values():
        _checks.fail("The task configuration is invalid: it is not one of draft-ietf-ppm-dap-18.")
    try:
        urls = leader.decode(), helper.decode()
    except UnicodeDecodeError:
        _checks.fail("The task configuration is invalid: a URL is not text.")
    return TaskFields(
        task_info=info,
        leader=urls[0],
        helper=urls[1],
        time_precision=precision,
        min_batch_size=batch,
        batch_mode=mode,
        vdaf_type=kind,
        vdaf_configuration=settings,
        extensions=extensions,
    )


def check(task: bytes, randomizer: Mechanism) -> tuple[float, float]:
    """Return the certified (epsilon in nats, delta) of a task, for a client with this randomizer.

    An independent program checks the certificate. The certificate must be about this randomizer, the task's VDAF,
    and a batch of at most `min_batch_size` reports.

    Raises:
        DataError: the task is invalid, has no certificate, or has one that is wrong or about something else.
        MissingDependencyError: shuffle-certificate is not installed.
    """
    try:
        from shuffle_certificate import certificate, checks, document  # noqa: PLC0415 - another package
    except ImportError as missing:
        message = "A client's check needs shuffle-certificate. Install it with: pip install shuffle-certificate"
        raise MissingDependencyError(message) from missing
    fields = read(task)
    data = fields.extensions.get(EXTENSION, b"")
    if not data.startswith(_FORMAT):
        _checks.fail("The task has no certificate: nothing is known about its privacy.")
    try:
        given = certificate.read(zlib.decompressobj().decompress(data[1:], _LONGEST).decode())
        (row,) = document.check_document([given])
    except (zlib.error, ValueError):
        _checks.fail("The certificate of the task is damaged.")
    if row.verdict != checks.AGREES or row.claimed is None:
        _checks.fail(f"The certificate of the task is not confirmed: {row.verdict}. {row.reason}")
    protocol = Protocol(randomizer=randomizer, shuffler=SecureAggregation(), n=given["n"])
    function, delta = vdaf(protocol), float(given["delta"])
    if (fields.vdaf_type, fields.vdaf_configuration) != (function.number, function.configuration):
        _checks.fail(f"The task's VDAF is not that of this randomizer, {function.name} {function.parameters}.")
    if given["n"] > fields.min_batch_size:
        _checks.fail(f"The certificate is for {given['n']:,} reports, but the task allows {fields.min_batch_size:,}.")
    own = certificate.read(dp.certificate(protocol, delta=delta).to_json())
    if any(own[key] != given.get(key) for key in own.keys() - _FIGURES):
        _checks.fail("The certificate of the task is about another randomizer or release.")
    return row.claimed[1], delta


_FIGURES: Final = {"kind", "epsilon", "others", "target"}
"""Keys of a certificate that the checker has confirmed; all others describe the release."""


class _Reader:
    """Reads the structures of TLS's presentation language."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def numbers(self, form: str) -> tuple[int, ...]:
        size = struct.calcsize(form)
        taken, self.left = self.left[:size], self.left[size:]
        if len(taken) < size:
            _checks.fail("The task configuration is truncated.")
        return struct.unpack(form, taken)

    def opaque(self, form: str) -> bytes:
        """Read bytes that follow their number, which has the form `form`."""
        (size,) = self.numbers(form)
        taken, self.left = self.left[:size], self.left[size:]
        if len(taken) < size:
            _checks.fail("The task configuration is truncated.")
        return taken


def _opaque(data: bytes, form: str) -> bytes:
    return struct.pack(form, len(data)) + data


def janus(task: bytes, *, task_id: bytes, role: str, laplace: float = 0.0) -> str:
    """Return the stanza of a task for the file tasks.yaml of Janus, without its secrets.

    With `laplace`, a scale, this aggregator adds discrete Laplace noise to each sum of Prio3SumVec.

    The operator adds `vdaf_verify_key`, `collector_hpke_config`, the authentication tokens and `hpke_keys`, which only
    this aggregator may have.

    Raises:
        DataError: the bytes are no task configuration, or have another VDAF.
        InvalidInputError: `task_id` has not 32 bytes, `role` is not "Leader" or "Helper", or noise for another VDAF.
    """
    if len(task_id) != 32:
        _checks.reject("task_id", "32 random bytes", f"<{len(task_id)} bytes>")
    if role not in ("Leader", "Helper"):
        _checks.reject("role", "Leader or Helper", role)
    fields = read(task)
    own, peer = (fields.leader, fields.helper) if role == "Leader" else (fields.helper, fields.leader)
    settings = {3: ("length", "max_measurement", "chunk_length"), 4: ("length", "chunk_length")}
    if fields.vdaf_type not in settings:
        _checks.fail("Janus does not run this VDAF. Leave out the limit on the number of ones.")
    given = struct.unpack(FORMS[fields.vdaf_type], fields.vdaf_configuration)
    if laplace and fields.vdaf_type != 3:
        _checks.reject("laplace", "0 for Prio3Histogram", laplace, "Noise of servers needs one-hot encodings.")
    numbers = zip(settings[fields.vdaf_type], given, strict=True)
    mode = "TimeInterval" if fields.batch_mode == 1 else "!LeaderSelected\n    batch_time_window_size: null"
    lines = [
        f"- task_id: {json.dumps(_base64(task_id))}",
        f"peer_aggregator_endpoint: {json.dumps(peer)}",
        f"own_aggregator_endpoint: {json.dumps(own)}",
        f"batch_mode: {mode}",
        f"vdaf: !{NAMES[fields.vdaf_type]}",
        *(f"  {name}: {number}" for name, number in numbers),
        *([f"  dp_strategy: {json.dumps(dp_strategy(given[0], laplace))}"] if laplace else []),
        f"role: {role}",
        f"task_info: {json.dumps(_base64(fields.task_info))}",
        f"min_batch_size: {fields.min_batch_size}",
        f"time_precision: {fields.time_precision}",
    ]
    return "\n  ".join(lines) + "\n"


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
