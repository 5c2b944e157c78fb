"""Child process that reads Parquet files, started by `hushuffle.tables.parquet`; a damaged file may abort it.

Standard input contains blocks of bytes, each after its length. The first block is JSON: the paths of modules, and how
many seconds to wait for work. Each other block is a request: the number of rows at a time, the size of the file (eight
bytes each), and a query of Polars. The process ends when the input ends, since the parent then has ended. Standard
output contains for each request blocks with a letter and a length: T, a table (the first table is empty and has the
types of the columns); E, the end; F, a failure.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import struct
import sys
import threading
from io import BytesIO
from typing import BinaryIO

LENGTH = struct.Struct("<Q")
ANSWER = struct.Struct("<cQ")
ASKED = struct.Struct("<QQ")
IDLE, NO_LIBRARIES = 0, 3
"""Exit codes: the process had no work, or could not import Polars."""

_SHARE = 0.75  # of the memory of the machine
_BESIDES = 1 << 32  # address space of libraries, threads and buffers


def block(stream: BinaryIO) -> bytes:
    (length,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data


def answer(request: bytes, out: BinaryIO) -> None:
    import polars as pl  # noqa: PLC0415 - where modules are is known now

    rows, _ = ASKED.unpack_from(request)
    try:
        query = pl.LazyFrame.deserialize(BytesIO(memoryview(request)[ASKED.size :]))
        _send(out, pl.DataFrame(schema=query.collect_schema()))
        for frame in query.collect_batches(chunk_size=rows, maintain_order=True):
            _send(out, frame)
    except BrokenPipeError:
        raise
    except Exception:  # noqa: BLE001 - what it says may quote the file
        _put(out, b"F", b"")
    else:
        _put(out, b"E", b"")


def _send(out: BinaryIO, frame: object) -> None:
    table = BytesIO()
    frame.write_ipc_stream(table)  # type: ignore[attr-defined]
    _put(out, b"T", table.getbuffer())


def _put(out: BinaryIO, kind: bytes, content: bytes | memoryview) -> None:
    out.write(ANSWER.pack(kind, len(content)))
    view = memoryview(content)
    while view:
        view = view[out.write(view) :]


def _limit(size: int) -> None:
    """Limit the memory of this process, so that a file which claims or unpacks to too much ends this process only."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - is not everywhere

        held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = int(_SHARE * held) + _BESIDES + size
        resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def _alone() -> None:
    """Write no core dump, be the first process to end if memory is short, and ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - is not everywhere

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("1000")


def _listen(requests: queue.SimpleQueue[bytes]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            requests.put(block(sys.stdin.buffer))
    os._exit(IDLE)


def main() -> None:
    """Answer requests until no request arrives for some time, or the parent has ended."""
    _alone()
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is no answer
    sys.path[:], seconds = json.loads(block(sys.stdin.buffer))
    try:
        import polars  # noqa: F401, ICN001, PLC0415 - now it is known where modules are
    except ImportError:
        os._exit(NO_LIBRARIES)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    try:
        while True:
            request = requests.get(timeout=seconds)
            _limit(ASKED.unpack_from(request)[1])
            answer(request, out)
    except queue.Empty:
        os._exit(IDLE)
    finally:
        os._exit(1)  # at once: nobody listens any more, or Polars is in a panic (which is no Exception)


if __name__ == "__main__":
    main()
