"""Certificates and keys for trials: an authority in a folder, and what each node needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from hushuffle.errors import DataError
from hushuffle.io.private_files import write_private
from hushuffle.runtime.identities import Authority
from hushuffle.runtime.seals import SealKey

AUTHORITY = "authority"


def make_certificates(names: Sequence[str], *, out: Path, days: float = 30.0) -> list[Path]:
    """Write NAME.pem, NAME.key, NAME.seal and NAME.seal.pub for each node, with the authority of the folder.

    An authority that is in the folder already is used again; a node's files are never overwritten.

    Args:
        names: of nodes, as in the run's document.
        out: the folder; made if it is not there.
        days: how long the certificates are valid.

    Raises:
        DataError: a file is there already, or cannot be written.
        InvalidInputError: days not positive.
    """
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        place, key = out / f"{AUTHORITY}.pem", out / f"{AUTHORITY}.key"
        for name in names:
            if (out / f"{name}.key").exists():
                _fail(f"{out / name}.key is there already: a node's key is never overwritten.")
        if key.exists():
            authority = Authority.read(certificate=place.read_text("ascii"), key=key.read_text("ascii"), days=days)
        else:
            authority = Authority(days=days)
            write_private(key, authority.key.encode())
            place.write_text(authority.certificate, encoding="ascii")
        written = [place, key]
        for name in names:
            identity, seal = authority.issue(name), SealKey.generate()
            (out / f"{name}.pem").write_text(identity.certificate, encoding="ascii")
            (out / f"{name}.seal.pub").write_text(seal.public.text + "\n", encoding="ascii")
            write_private(out / f"{name}.key", identity.key.encode())
            write_private(out / f"{name}.seal", seal.text.encode())
            written += [out / f"{name}{ending}" for ending in (".pem", ".key", ".seal", ".seal.pub")]
    except OSError as error:
        _fail(f"{error.filename or out} cannot be used: {error.strerror or 'an error'}.")
    return written


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
