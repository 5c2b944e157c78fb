"""What the owner of a source demands of a run, whoever drew it up; and what its runs may spend in all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from hushuffle.errors import DataError
from hushuffle.files.secret_keys import derived
from hushuffle.network.check import Promise, in_words
from hushuffle.network.nodes.document import RunDocument
from hushuffle.network.nodes.identities import Identity
from hushuffle.network.nodes.source import Person
from hushuffle.network.odometer import Odometer, Spending
from hushuffle.specification.node import Policy


def check_policy(policy: Policy, promise: Promise, document: RunDocument, identity: Identity) -> None:
    """Refuse a run that asks for more than the owner of a source gives.

    Raises:
        DataError: with what is too weak; nothing was sent.
    """
    name, guarantee = identity.name, promise.guarantee
    if guarantee.upper > policy.max_epsilon:
        _refuse(name, f"{in_words(guarantee)}, above max_epsilon = {policy.max_epsilon:g}")
    if guarantee.delta > policy.max_delta:
        _refuse(name, f"delta is {guarantee.delta:g}, above max_delta = {policy.max_delta:g}")
    for step in document.steps:
        batches = [batch for batch in step.batches if name in batch.holders]
        least = step.min_batch if step.scrambled else 1
        if batches and least < policy.min_batch:
            what = f"may be released with {least:,} sources" if step.scrambled else "has no scrambler"
            _refuse(name, f"the step {step.name!r} {what}, min_batch is {policy.min_batch:,}")
        fewest = min((len(set(batch.holders)) if step.scrambled else 1 for batch in batches), default=None)
        if fewest is not None and fewest < policy.min_distinct_holders:
            wanted = f"min_distinct_holders is {policy.min_distinct_holders:,}"
            _refuse(name, f"its batch in the step {step.name!r} has {fewest:,} different holders, {wanted}")
    _check_authority(policy, identity)


def _check_authority(policy: Policy, identity: Identity) -> None:
    if policy.authorities is None:
        return
    try:
        certificates = x509.load_pem_x509_certificates(identity.authority.encode())
    except Exception:  # noqa: BLE001 - of an unknown version, damaged: each raises something else
        _refuse(identity.name, "its authority.pem holds no certificate")
    unknown = [one for one in map(_fingerprint, certificates) if one not in policy.authorities]
    if unknown:
        _refuse(identity.name, f"the authority with the fingerprint {unknown[0]} is not among authorities")


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(SHA256()).hex()


def spend(
    policy: Policy, promise: Promise, document: RunDocument, held: Sequence[Person], *, key: bytes, state: Path
) -> None:
    """Note what a run costs the records of a key before anything is sent, or refuse it.

    The figures of all runs are added up, which holds for whatever the runs are. A run that is started again costs
    nothing more, if it is the same document and the same records.

    Args:
        policy: its `budget` bounds the sum of epsilons, its `max_delta` that of deltas.
        promise: the run's figure.
        document: of the run.
        held: the records.
        key: of their coins; the sums are those of the key.
        state: where sources keep what they sent: a key that has sent and has no record of it is refused.

    Raises:
        DataError: it would be too much, or what was spent before cannot be told; nothing was noted nor sent.
    """
    odometer = Odometer.of(key)
    if not any(state.glob("*.messages")):
        odometer.begin()
    spending = Spending(
        run=document.run,
        epsilon=promise.guarantee.upper,
        delta=promise.guarantee.delta,
        use=derived(key, f"use {document.digest.hex()} {_digest(held)}").hex(),
    )
    odometer.spend(spending, max_epsilon=policy.budget, max_delta=policy.max_delta)


def _digest(held: Sequence[Person]) -> str:
    """Return a digest of records; only what is made of it with a key is ever written."""
    whole = hashlib.sha256()
    for one in held:
        whole.update(repr((one.record, sorted(one.places.items()), one.row.tolist())).encode())
    return whole.hexdigest()


def _refuse(name: str, why: str) -> NoReturn:
    message = f"{name} takes no part: {why}. That is the [policy] of its configuration. Nothing was sent."
    raise DataError(message) from None
