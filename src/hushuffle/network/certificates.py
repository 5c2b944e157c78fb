"""Certificates and keys for trials: an authority in a folder, and what each node needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from hushuffle import _checks
from hushuffle.errors import DataError
from hushuffle.files.causes import cause
from hushuffle.files.private_files import write_private
from hushuffle.files.secret_keys import text_of_secret
from hushuffle.network.nodes.identities import Authority
from hushuffle.network.nodes.seals import SealKey
from hushuffle.specification.hosts import NAME_RULE, is_name

AUTHORITY: Final = "authority"
_ENDINGS: Final = (".pem", ".key", ".seal", ".seal.pub")


def make_certificates(names: Sequence[str], *, out: Path, days: float = 30.0) -> list[Path]:
    """Write NAME.pem, NAME.key, NAME.seal and NAME.seal.pub for each node, with the authority of the folder.

    An authority that is in the folder already is used again; a node's files are never overwritten.

    Args:
        names: of nodes, as in the run's document; one that is there twice counts once.
        out: the folder; made if it is not there.
        days: how long the certificates are valid.

    Raises:
        DataError: a file is there already, or cannot be written.
        InvalidInputError: days not positive, or a name that no document takes.
    """
    _checks.positive("days", days)
    nodes = list(dict.fromkeys(names))
    for name in nodes:
        if not is_name(name) or name == AUTHORITY:
            _checks.reject("names", f"of {NAME_RULE}, and not {AUTHORITY!r}", name)
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (out / f"{name}{ending}" for name in nodes for ending in _ENDINGS):
            if path.exists():
                _fail(f"{path} is there already: a node's files are never overwritten.")
        authority, written = _authority(out, days)
        for name in nodes:
            identity, seal = authority.issue(name), SealKey.generate()
            (out / f"{name}.pem").write_text(identity.certificate, encoding="ascii")
            (out / f"{name}.seal.pub").write_text(seal.public.text + "\n", encoding="ascii")
            write_private(out / f"{name}.key", identity.key.encode())
            write_private(out / f"{name}.seal", seal.text.encode())
            written += [out / f"{name}{ending}" for ending in _ENDINGS]
    except OSError as error:
        _fail(f"{error.filename or out} cannot be used: {cause(error)}.")
    return written


def _authority(out: Path, days: float) -> tuple[Authority, list[Path]]:
    """Return the authority of a folder, and its files if they were written just now."""
    place, key = out / f"{AUTHORITY}.pem", out / f"{AUTHORITY}.key"
    if key.exists():
        certificate = place.read_text("ascii", errors="replace")
        return Authority.read(certificate=certificate, key=text_of_secret(str(key)), days=days), []
    if place.exists():
        _fail(f"{place} is there without {key.name}: only whoever holds that key can make certificates for it.")
    authority = Authority(days=days)
    write_private(key, authority.key.encode())
    place.write_text(authority.certificate, encoding="ascii")
    return authority, [place, key]


def _fail(message: str) -> NoReturn:
    raise DataError(message) from None
