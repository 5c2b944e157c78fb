"""Two kinds of channel side by side: python benchmarks/channels.py.

gRPC (grpc.aio), and asyncio with ssl as the nodes use it. Both with TLS 1.3, a certificate demanded of the client, the
same keys, messages of 1 KiB, one server process, on loopback: connections, messages one way, what an observer sees, the
cost of a node that does nothing. Takes about a minute.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import multiprocessing
import os
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final

import grpc
import grpc.aio
import polars as pl
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from hushuffle.network.nodes.connections import Connection, Control, Kind, Layout, Message, connect
from hushuffle.network.nodes.identities import Authority, Identity
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.listening import listen
from hushuffle.network.nodes.recorder import Recorder, Trace, record_size

LAYOUT: Final = Layout(size=1024)
PATIENCE: Final = 60.0
AT_ONCE: Final = 24
IDENTITIES: Final = 300
WATCHED: Final = 4_096
HOST: Final = "127.0.0.2"
MESSAGES: Final = 20_000
PACKED: Final = 64
"""Messages in one message of gRPC, where they are packed."""
METHOD: Final = "/hushuffle/take"

Place = tuple[str, int]
Client = Callable[[Identity, Place, int], Awaitable[None]]
"""Opens a connection to a place, sends as many messages, waits for the answer."""


def identities(count: int) -> list[Identity]:
    """Return a server and `count` clients with P-256 keys, which both kinds of channel can use."""
    root = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    own = certificate(name, name, root, root, [x509.BasicConstraints(ca=True, path_length=0)])

    def issue(who: str) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        more = [x509.SubjectAlternativeName([x509.DNSName(who)]), x509.BasicConstraints(ca=False, path_length=None)]
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return Identity(name=who, certificate=certificate(x509.Name([]), name, key, root, more), authority=own, key=pem)

    return [issue("server"), *(issue(f"source-{number}") for number in range(count))]


def certificate(subject: x509.Name, issuer: x509.Name, key: Any, signer: Any, extensions: list[Any]) -> str:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(hours=1)).not_valid_after(now + dt.timedelta(days=1))
    for one in extensions:
        builder = builder.add_extension(one, critical=isinstance(one, x509.BasicConstraints))
    return builder.sign(signer, SHA256()).public_bytes(Encoding.PEM).decode()


async def serve_own(identity: Identity, where: socket.socket, counted: list[int]) -> None:
    async def take(connection: Connection) -> None:
        while isinstance(await connection.receive(), Message):
            counted[0] += 1
        await connection.send(Control(Kind.ACCEPTED))

    await listen(where, identity.server(), take, layout=LAYOUT, patience=PATIENCE, journal=Journal(node="server"))


def send_own(together: int) -> Client:
    async def send(identity: Identity, place: Place, count: int) -> None:
        loop, messages = asyncio.get_running_loop(), [Message(1, 0, 0, os.urandom(LAYOUT.sealed))] * together
        connection = await connect(
            "server", place, identity, layout=LAYOUT, patience=PATIENCE, until=loop.time() + PATIENCE
        )
        for _ in range(max(count // together, 1)):
            await connection.send(*messages)
        await connection.send(Control(Kind.END))
        assert (await connection.answer()).kind is Kind.ACCEPTED
        await connection.close()

    return send


def grpc_server(identity: Identity, counted: list[int], size: int) -> tuple[grpc.aio.Server, int]:
    async def take(messages: AsyncIterator[bytes], _context: Any) -> bytes:
        async for message in messages:
            counted[0] += len(message) // size
        return b""

    server = grpc.aio.server()
    handler = grpc.stream_unary_rpc_method_handler(take)
    _, service, method = METHOD.split("/")
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    pair = (identity.key.encode(), identity.certificate.encode())
    credentials = grpc.ssl_server_credentials([pair], identity.authority.encode(), require_client_auth=True)
    return server, server.add_secure_port("127.0.0.1:0", credentials)


def send_grpc(packed: int) -> Client:
    async def send(identity: Identity, place: Place, count: int) -> None:
        message = os.urandom(LAYOUT.size) * packed
        credentials = grpc.ssl_channel_credentials(
            identity.authority.encode(), identity.key.encode(), identity.certificate.encode()
        )
        options = [("grpc.ssl_target_name_override", "server"), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.secure_channel(f"{place[0]}:{place[1]}", credentials, options) as channel:
            call = channel.stream_unary(METHOD)()
            for _ in range(max(count // packed, 1)):
                await call.write(message)
            await call.done_writing()
            await call

    return send


def server_process(kind: str, identity: Identity, where: socket.socket, pipe: Pipe) -> None:
    """Serve until told to stop; say what was counted and the processor time, whenever asked."""
    counted = [0]

    async def run() -> None:
        server = None
        if kind == "grpc":
            where.close()
            server, port = grpc_server(identity, counted, LAYOUT.size)
            await server.start()
            pipe.send(port)
        else:
            own = asyncio.create_task(serve_own(identity, where, counted))
            pipe.send(where.getsockname()[1])
        while await asyncio.to_thread(pipe.recv):
            pipe.send((counted[0], time.process_time()))
        if server is None:
            own.cancel()
        else:
            await server.stop(None)

    asyncio.run(run())


class Server:
    """A server process of one kind."""

    def __init__(self, kind: str, identity: Identity) -> None:
        self.pipe, there = multiprocessing.Pipe()
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as where:
            context = multiprocessing.get_context("spawn")
            self.process = context.Process(target=server_process, args=(kind, identity, where, there))
            self.process.start()
            self.place = ("127.0.0.1", self.pipe.recv())

    def asked(self) -> tuple[int, float]:
        """Return messages counted, processor seconds."""
        self.pipe.send(True)  # noqa: FBT003 - go on
        return self.pipe.recv()  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End it."""
        self.pipe.send(False)  # noqa: FBT003 - the end
        self.process.join()


async def many(client: Client, identities: list[Identity], place: Place) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(identity: Identity) -> None:
        async with limit:
            await client(identity, place, 1)

    await asyncio.gather(*(one(identity) for identity in identities))


def measured(server: Server, work: Coroutine[Any, Any, None], messages: int) -> tuple[float, float, float]:
    """Return seconds by the clock, and of processor in client and server."""
    counted, before = server.asked()
    clock, own = time.perf_counter(), time.process_time()
    asyncio.run(work)
    clock, own = time.perf_counter() - clock, time.process_time() - own
    after = server.asked()
    assert after[0] - counted == messages, (after[0] - counted, messages)
    return clock, own, after[1] - before


async def watched(client: Client, identity: Identity, place: Place, count: int) -> pl.DataFrame:
    """Send through a recorder, and return the records from client to server that it saw."""
    trace = Trace(hosts={}, cell=record_size(LAYOUT.size))
    where = socket.create_server((HOST, 0))
    async with Recorder(trace, [(where, place)]):
        await client(identity, where.getsockname()[:2], count)
    return trace.table().filter(pl.col("receiver") == HOST)


def seen(name: str, client: Client, identity: Identity, place: Place) -> None:
    """Print what an observer sees: the same messages sent several times."""
    runs = [asyncio.run(watched(client, identity, place, WATCHED)) for _ in range(5)]
    opening = asyncio.run(watched(client, identity, place, PACKED))
    counts = [run.height - opening.height for run in runs]
    each = [
        (run["bytes"].sum() - opening["bytes"].sum() + 5 * more) / (WATCHED - PACKED)
        for run, more in zip(runs, counts, strict=True)
    ]
    sizes = pl.concat(runs)["bytes"].value_counts(sort=True)
    common = ", ".join(f"{size:,} ({count / sizes['count'].sum():.0%})" for size, count in sizes.head(3).iter_rows())
    print(
        f"{name}: {min(each):,.1f} to {max(each):,.1f} bytes on the wire for a message; {WATCHED - PACKED:,} messages "
        f"are {min(counts):,} to {max(counts):,} records, of {sizes.height} sizes, most often {common}"
    )


def versions(name: str, identity: Identity, place: Place) -> None:
    """Print which versions of TLS a server accepts."""
    accepted = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = identity.client()
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, version
        context.set_alpn_protocols(["h2"])
        with suppress(ssl.SSLError), socket.create_connection(place) as there:
            accepted.append(context.wrap_socket(there, server_hostname="server").version())
    print(f"{name}: accepts {' and '.join(filter(None, accepted))}")


async def edwards() -> None:
    """Print whether gRPC works with certificates that have Ed25519 keys, which the nodes use."""
    authority, counted = Authority(), [0]
    server, port = grpc_server(authority.issue("server"), counted, LAYOUT.size)
    await server.start()
    with suppress(grpc.RpcError):
        await send_grpc(1)(authority.issue("source"), ("127.0.0.1", port), 1)
    await server.stop(None)
    print(f"gRPC with Ed25519 certificates: {'works' if counted[0] else 'does not work'}")


OWN_NODE: Final = """
from hushuffle.network.nodes.connections import Layout
from hushuffle.network.nodes.identities import Authority
from hushuffle.network.nodes.journal import Journal
from hushuffle.network.nodes.listening import listen
context = Authority().issue("server").server()
async def main():
    async def take(connection):
        pass
    where = socket.create_server(("127.0.0.1", 0))
    more = {"layout": Layout(size=1024), "patience": 1.0, "journal": Journal(node="server")}
    task = asyncio.create_task(listen(where, context, take, **more))
    await asyncio.sleep(0.2)
    task.cancel()
"""
GRPC_NODE: Final = """
import grpc
async def main():
    server = grpc.aio.server()
    server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await asyncio.sleep(0.2)
    await server.stop(None)
"""
ROOM: Final = "import hushuffle.network.nodes.scrambler, hushuffle.network.nodes.compute"


def idle(what: str) -> tuple[float, float]:
    """Return seconds of processor and peak megabytes of a process that does what is said: medians of five."""
    # Not from getrusage, which counts what the parent had.
    tail = "import time; print(time.process_time(), open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    script = f"import asyncio, socket\n{what}\n{tail}"
    found = []
    for _ in range(5):
        ended = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        found.append([float(word) for word in ended.stdout.split()])
    processor, peak = (statistics.median(column) for column in zip(*found, strict=True))
    return processor, peak / 1024


def nodes() -> None:
    run = "asyncio.run(main())"
    for name, what in (
        ("Python with asyncio and socket", ""),
        ("the node's modules", ROOM),
        ("the node's modules, listening with asyncio and ssl", f"{ROOM}\n{OWN_NODE}\n{run}"),
        ("the node's modules, and gRPC imported", f"{ROOM}\nimport grpc.aio"),
        ("the node's modules, listening with gRPC", f"{ROOM}\n{GRPC_NODE}\n{run}"),
    ):
        processor, peak = idle(what)
        print(f"{name}: {processor:.2f} s of processor, {peak:.0f} MB")


def main() -> None:
    own, *clients = identities(IDENTITIES)
    kinds: list[tuple[str, str, Client, int]] = [
        ("asyncio and ssl", "own", send_own(1), 1),
        (f"asyncio and ssl, {PACKED} messages handed over at a time", "own", send_own(PACKED), PACKED),
        ("gRPC", "grpc", send_grpc(1), 1),
        (f"gRPC, {PACKED} messages packed into one", "grpc", send_grpc(PACKED), PACKED),
    ]
    for name, kind, client, packed in kinds:
        server = Server(kind, own)
        measured(server, client(clients[0], server.place, packed), packed)  # once, to warm up
        if packed == 1:
            clock, here, there = measured(server, many(client, clients, server.place), len(clients))
            print(
                f"{name}: {len(clients) / clock:,.0f} connections per second with a message each; processor "
                f"{here / len(clients) * 1e3:.2f} ms in the client, {there / len(clients) * 1e3:.2f} ms in the server"
            )
        count = MESSAGES // packed * packed
        clock, here, there = measured(server, client(clients[0], server.place, count), count)
        print(
            f"{name}: {count / clock:,.0f} messages per second on one connection; processor "
            f"{here / count * 1e6:.1f} µs in the client, {there / count * 1e6:.1f} µs in the server"
        )
        seen(name, client, clients[0], server.place)
        if packed == 1:
            versions(name, clients[0], server.place)
        server.stop()
    asyncio.run(edwards())
    nodes()


if __name__ == "__main__":
    main()
