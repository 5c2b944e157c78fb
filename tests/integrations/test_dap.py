"""DAP tasks with a certificate: the bytes, a client's check against forged tasks, and the reference implementation."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.assessment.dap import vdaf
from hushuffle.errors import DataError, InvalidInputError, UnsupportedProtocolError
from hushuffle.integrations import dap
from hushuffle.randomness import reproducible

pytest.importorskip("shuffle_certificate")
BITS = hs.UnaryEncoding(k=8, epsilon=2.0, encoding="symmetric")
ONE = hs.RandomizedResponse(k=8, epsilon=2.0)


def protocol(device: Any, n: int = 300) -> hs.Protocol:
    return hs.Protocol(randomizer=device, shuffler=hs.SecureAggregation(), n=n)


def task(device: Any = BITS, **more: Any) -> bytes:
    settings = {"leader": "https://l.example/", "helper": "https://h.example/", "time_precision": 3600}
    return dap.configuration(protocol(device), **{"delta": 1e-6, "task_info": b"votes", **settings, **more})


def forged(whole: bytes, **certificate: Any) -> bytes:
    """Return the task with another certificate."""
    fields = dap.read(whole)
    data = fields.extensions[dap.EXTENSION]
    given = json.loads(zlib.decompress(data[1:])) | certificate
    put = data[:1] + zlib.compress(json.dumps(given).encode(), 9)
    start = whole.index(struct.pack(">H", dap.EXTENSION) + struct.pack(">H", len(data)))
    return whole[: start - 2] + struct.pack(">HHH", len(put) + 4, dap.EXTENSION, len(put)) + put


def test_the_bytes_are_those_of_the_draft() -> None:
    """The layout of draft 18, written out by hand; the extension comes last."""
    whole = task()
    head = "05" + b"votes".hex() + "0012" + b"https://l.example/".hex() + "0012" + b"https://h.example/".hex()
    head += f"{3600:016x}" + f"{300:016x}" + "01" + "0000" + "00000003" + "0010" + "00000008" + f"{1:016x}" + "00000003"
    assert whole.hex().startswith(head)
    fields = dap.read(whole)
    assert (fields.leader, fields.helper, fields.min_batch_size) == ("https://l.example/", "https://h.example/", 300)
    assert list(fields.extensions) == [dap.EXTENSION]


@pytest.mark.parametrize("device", [BITS, ONE])
def test_a_client_learns_the_certified_figure(device: Any) -> None:
    figure = hs.dp.epsilon(protocol(device), delta=1e-6)
    assert dap.check(task(device), device) == (figure.upper, 1e-6)


def test_a_client_refuses_what_is_forged() -> None:
    whole, other = task(), hs.UnaryEncoding(k=8, epsilon=3.0, encoding="symmetric")
    upper = hs.dp.epsilon(protocol(BITS), delta=1e-6).upper
    assert forged(whole) != b""
    dap.check(forged(whole), BITS)
    cases = {
        "not confirmed": forged(whole, epsilon=[0.9 * upper, 0.95 * upper]),
        "another randomizer": task(other),
        "VDAF is not": task(hs.UnaryEncoding(k=9, epsilon=2.0, encoding="symmetric")),
        "for 300 reports": whole.replace(struct.pack(">QB", 300, 1), struct.pack(">QB", 299, 1)),
        "no certificate": whole[: whole.index(struct.pack(">H", dap.EXTENSION)) - 2] + b"\0\0",
        "truncated": whole[:-1],
        "order of their types": whole[: whole.index(struct.pack(">H", dap.EXTENSION)) - 2]
        + b"\0\x08"
        + b"\0\1\0\0" * 2,
        "not one of draft": whole + b"\0",
    }
    for message, given in cases.items():
        with pytest.raises(DataError, match=message):
            dap.check(given, BITS)


def test_a_damaged_certificate_is_refused() -> None:
    whole = task()
    for place in range(len(whole) - 40, len(whole), 7):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        with pytest.raises(DataError):
            dap.check(bytes(broken), BITS)


def test_a_bomb_is_not_unpacked() -> None:
    whole = task()
    start = whole.index(struct.pack(">H", dap.EXTENSION)) - 2
    put = b"\x01" + zlib.compress(b" " * (1 << 25), 9)
    bomb = whole[:start] + struct.pack(">HHH", len(put) + 4, dap.EXTENSION, len(put)) + put
    with pytest.raises(DataError):
        dap.check(bomb, BITS)


def test_janus_gets_a_stanza_without_secrets() -> None:
    stanza = dap.janus(task(), task_id=bytes(32), role="Helper")
    assert stanza.splitlines()[:5] == [
        f'- task_id: "{"A" * 43}"',
        '  peer_aggregator_endpoint: "https://l.example/"',
        '  own_aggregator_endpoint: "https://h.example/"',
        "  batch_mode: TimeInterval",
        "  vdaf: !Prio3SumVec",
    ]
    assert "    max_measurement: 1\n" in stanza
    assert "key" not in stanza
    assert "!LeaderSelected\n    batch_time_window_size: null\n" in dap.janus(
        task(batch_mode="leader-selected"), task_id=bytes(32), role="Leader"
    )
    noisy = dap.janus(task(), task_id=bytes(32), role="Leader", laplace=20.0)
    strategy = '{"dp_strategy": "PureDpDiscreteLaplace", "budget": {"epsilon": [[2], [5]]}}'
    assert set(noisy.splitlines()) - set(dap.janus(task(), task_id=bytes(32), role="Leader").splitlines()) == {
        f"    dp_strategy: {strategy}"
    }
    for task_id, role in ((b"", "Leader"), (bytes(32), "Collector")):
        with pytest.raises(InvalidInputError):
            dap.janus(task(), task_id=task_id, role=role)


@pytest.mark.parametrize(
    "settings", [{"task_info": b""}, {"task_info": b"x" * 256}, {"time_precision": 0}, {"batch_mode": "daily"}]
)
def test_arguments_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        task(**settings)


REFERENCE = """
import json, sys
from vdaf_poc import vdaf_prio3
from vdaf_poc.common import gen_rand
name, settings, measurements = json.load(sys.stdin)
vdaf = getattr(vdaf_prio3, name)(2, **settings)
key, shares = gen_rand(vdaf.VERIFY_KEY_SIZE), [vdaf.agg_init(None) for _ in range(2)]
for measurement in measurements:
    nonce, random = gen_rand(vdaf.NONCE_SIZE), gen_rand(vdaf.RAND_SIZE)
    public, inputs = vdaf.shard(b"", measurement, nonce, random)
    parts = [vdaf.verify_init(key, b"", j, None, nonce, public, inputs[j]) for j in range(2)]
    message = vdaf.verifier_shares_to_message(b"", None, [part[1] for part in parts])
    for j in range(2):
        shares[j] = vdaf.agg_update(None, shares[j], vdaf.verify_next(b"", parts[j][0], message))
print(json.dumps(list(vdaf.unshard(None, shares, len(measurements)))))
"""


@pytest.mark.skipif("HUSHUFFLE_VDAF" not in os.environ, reason="HUSHUFFLE_VDAF names no Python with vdaf_poc")
@pytest.mark.parametrize("device", [BITS, ONE])
def test_the_reference_implementation_adds_our_reports_up(device: Any) -> None:
    """HUSHUFFLE_VDAF names a Python (3.12 or later) with the reference implementation of the VDAF draft."""
    survey, values = protocol(device, 20), [0, 3, 3, 7] * 5
    reports = survey.randomizer.randomize(values, rng=reproducible(5))
    bits = vdaf(survey).bits
    measurements = [[int(y) >> place & 1 for place in range(8)] if bits else int(y) for y in reports.tolist()]
    done = subprocess.run(
        [os.environ["HUSHUFFLE_VDAF"], "-c", REFERENCE],
        input=json.dumps([vdaf(survey).name, vdaf(survey).parameters, measurements]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == survey.randomizer.counts(np.asarray(reports)).counts.tolist()


def test_noise_of_servers_has_no_certificate_but_holds_with_it() -> None:
    noisy = replace(protocol(BITS), shuffler=hs.SecureAggregation(laplace=20.0))
    with pytest.raises(UnsupportedProtocolError, match="The certificate without it"):
        dap.configuration(noisy, delta=1e-6, task_info=b"x", leader="a", helper="b", time_precision=1)


def test_reports_and_noise_of_servers_have_no_task() -> None:
    for shuffler in (hs.SecureAggregation(coins=100), hs.UniformShuffle()):
        other = replace(protocol(BITS), shuffler=shuffler)
        with pytest.raises(UnsupportedProtocolError, match="no task for this release"):
            dap.configuration(other, delta=1e-6, task_info=b"x", leader="a", helper="b", time_precision=1)
