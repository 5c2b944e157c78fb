"""Several columns of the same people: each randomized and shuffled on its own, so that no row joins another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from hushuffle.collection.admission import Admitted, admit
from hushuffle.collection.collect import collected
from hushuffle.collection.columns_manifest import ColumnsManifest
from hushuffle.collection.key_rounds import KeyRounds
from hushuffle.collection.manifest import figure, number
from hushuffle.collection.release import release
from hushuffle.collection.request import MANIFEST, Collected, Release, Request
from hushuffle.errors import DataError
from hushuffle.files.new_folder import publish, workplace
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification.collection import CollectionSpecification

_RELATION: Final = "replace one person's values in all columns; in which columns they are missing stays as it is"


@dataclass(frozen=True, kw_only=True)
class CollectedColumns:
    """What was released of each column, by name, and what all of them together may say.

    `local_epsilon` is the sum over the columns. `rounds` is what everything that was collected with this key says
    together; None: without a key.
    """

    columns: Mapping[str, Collected]
    central: Bound
    local_epsilon: float
    file: Path
    rounds: KeyRounds | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Everything that was written."""
        return (*(file for one in self.columns.values() for file in one.files), self.file)


def collect_columns(specification: CollectionSpecification, *, out: Path, request: Request) -> CollectedColumns:
    """Run a collection of several columns: a folder with reports and manifest for each, and a manifest of all.

    The columns are read one after the other (of a Parquet file nothing else is read), randomized with coins of their
    own and shuffled independently: rows of two columns cannot be joined. With a key the coins of each column come
    from a key of its own. Where missing answers are dropped, columns have different numbers of people.

    Raises:
        DataError: as `collect`; or the central epsilon of all columns together is above targets.epsilon.
        InvalidInputError, UnsupportedProtocolError: as `collect`.
    """
    with workplace(out) as place:
        made = prepare_columns(specification, request, place)
        admitted = made.admit(request)
        publish(made.folder, out)
    request.tell("done", 1.0)
    return made.collected(out, admitted)


@dataclass(frozen=True, kw_only=True)
class PreparedColumns:
    """The releases of all columns in a `folder` that nobody has seen yet, and the guarantee of all of them."""

    releases: Mapping[str, Release]
    manifest: ColumnsManifest
    central: Bound
    folder: Path

    def admit(self, request: Request) -> Admitted:
        """Write all columns into the ledger of the key, if there is one, and what its rounds add up to beside them.

        Raises:
            DataError: coins would be used again, or the ledger cannot be used.
        """
        delta = float(self.manifest.facts["central"]["delta"])

        def note(rounds: KeyRounds) -> None:
            manifest = replace(self.manifest, facts={**self.manifest.facts, "key": rounds.facts()})
            (self.folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")

        return admit(request, list(self.releases.values()), delta=delta, note=note)

    def collected(self, out: Path, admitted: Admitted) -> CollectedColumns:
        """Return what was released at `out`."""
        return CollectedColumns(
            columns={
                name: collected(one, out / name, repeated=not new)
                for (name, one), new in zip(self.releases.items(), admitted.fresh, strict=True)
            },
            central=self.central,
            local_epsilon=_sum(self.releases),
            file=out / MANIFEST,
            rounds=admitted.rounds,
        )


def prepare_columns(specification: CollectionSpecification, request: Request, place: Path) -> PreparedColumns:
    """Write the releases of all columns, and their manifest, into a new folder inside the private folder `place`.

    Raises:
        DataError, InvalidInputError, UnsupportedProtocolError: as `collect_columns`.
    """
    if request.column is not None:
        message = "A column is named by specifications of one column without data only: this one has [[columns]]."
        raise DataError(message)
    folder = place / "release"
    folder.mkdir()
    made: dict[str, Release] = {}
    for position, (name, one) in enumerate(specification.columns.items()):
        spill = place / f"spill-{position}"
        spill.mkdir(mode=0o700)
        (folder / name).mkdir()
        asked = _part(request, name, position, len(specification.columns))
        made[name] = release(one, asked, spill=spill, target=folder / name)
    request.tell("the guarantee of all columns", 1.0)
    central = _together(specification, made)
    manifest = _manifest(specification, made, central, request)
    (folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return PreparedColumns(releases=made, manifest=manifest, central=central, folder=folder)


def _part(request: Request, name: str, position: int, columns: int) -> Request:
    """Return the request for one column, whose progress is its share of the whole."""
    tell = request.progress
    if tell is None:
        return replace(request, one_of_several=True)
    return replace(
        request,
        one_of_several=True,
        progress=lambda what, share: tell(f"{name}: {what}", (position + share) / columns),
    )


def _together(specification: CollectionSpecification, made: Mapping[str, Release]) -> Bound:
    """Return the central guarantee of all columns, if it is what was wanted."""
    together = dp.compose([one.protocol for one in made.values()], delta=specification.delta)
    if specification.epsilon is not None and together.upper > specification.epsilon:
        message = (
            f"The central epsilon of all columns together is up to {together.upper:.4g} at delta = "
            f"{specification.delta:g}, above targets.epsilon = {specification.epsilon:g}: nothing leaves. More people "
            "help, smaller local epsilons, or fewer columns."
        )
        raise DataError(message)
    return together


def _manifest(
    specification: CollectionSpecification, made: Mapping[str, Release], central: Bound, request: Request
) -> ColumnsManifest:
    """Return what may be known of all columns."""
    facts = {
        **({} if specification.title is None else {"title": specification.title}),
        "local_epsilon": number(_sum(made)),
        "central": {
            "epsilon": figure(central),
            "delta": specification.delta,
            "relation": _RELATION,
            "per": "person",
        },
        "coins": "secure" if request.keys is None else f"keyed, round {request.keys.round}",
    }
    people = {name: (one.manifest.people, one.protocol.randomizer.local_epsilon) for name, one in made.items()}
    return ColumnsManifest(columns=people, facts=facts)


def _sum(made: Mapping[str, Release]) -> float:
    """Return the sum of the local epsilons, rounded up."""
    parts = [one.protocol.randomizer.local_epsilon for one in made.values()]
    if math.inf in parts:
        return math.inf
    exact = sum(map(Fraction, parts), start=Fraction(0))
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
