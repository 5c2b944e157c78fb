"""The ledger's part of a release: nothing leaves whose coins are used up; what the key was used for is added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hushuffle.collection.key_rounds import KeyRounds, rounds_of
from hushuffle.collection.ledger import Candidate, opened
from hushuffle.collection.request import Release, Request


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """For each release, whether it is new (else it repeats an earlier one); and what all with this key say together."""

    fresh: tuple[bool, ...]
    rounds: KeyRounds | None = None


def admit(
    request: Request, releases: Sequence[Release], *, delta: float, note: Callable[[KeyRounds], None]
) -> Admitted:
    """Write releases of different coins (one for each column) into the ledger of their key, all or none.

    Args:
        request: with a key, or nothing is done.
        releases: written, and not seen by anybody yet.
        delta: of the figure for everything that the key was used for.
        note: writes it beside the releases, before the ledger has them.

    Raises:
        DataError: coins would be used again, or the ledger cannot be used: nothing may leave.
    """
    if request.keys is None:
        return Admitted(fresh=(True,) * len(releases))
    candidates = [_candidate(release) for release in releases]
    key = releases[0].key
    assert key is not None
    with opened(key, request.keys.file) as ledger:
        fresh = ledger.check(candidates)
        new = [candidate for candidate, is_new in zip(candidates, fresh, strict=True) if is_new]
        request.tell("the guarantee of all rounds with this key", 1.0)
        rounds = rounds_of((*ledger.batches, *(candidate.batch for candidate in new)), delta=delta)
        note(rounds)
        if new:
            ledger.admit(new)
    return Admitted(fresh=fresh, rounds=rounds)


def _candidate(release: Release) -> Candidate:
    assert release.entries is not None
    return Candidate(
        entries=release.entries,
        shuffler=repr(release.protocol.shuffler),
        specification=release.manifest.specification,
    )
